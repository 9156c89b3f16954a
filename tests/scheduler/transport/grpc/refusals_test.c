// Refusals are said once for each host and reason, and then where their count has grown tenfold.

#include "scheduler/transport/grpc/refusals.h"

#include <stdio.h>
#include <string.h>

#include "tests/support/check.h"

static uint32_t add_many(pen_refusals *refusals, const char *host, const char *reason,
                         uint32_t times) {
    uint32_t told = 0;
    for (uint32_t i = 0; i < times; i++) {
        char address[64];
        uint64_t count;
        (void)snprintf(address, sizeof address, "%s:%u", host, 40000 + i);
        told += pen_refusals_add(refusals, address, reason, &count);
        assert_true(count >= i + 1);
    }
    return told;
}

static void test_once_with_a_count(void **state) {
    (void)state;
    pen_refusals refusals = {0};
    uint64_t count;
    assert_int_equal(add_many(&refusals, "10.0.0.2", "its certificate has expired", 1000), 4);
    assert_int_equal(add_many(&refusals, "10.0.0.3", "its certificate has expired", 9), 1);
    assert_int_equal(add_many(&refusals, "[::1]", "its certificate has expired", 9), 1);
    assert_int_equal(add_many(&refusals, "10.0.0.2", "it speaks without TLS", 11), 2);
    assert_false(pen_refusals_add(&refusals, "10.0.0.2:1", "its certificate has expired", &count));
    assert_int_equal(count, 1001);
    assert_true(pen_refusals_add(&refusals, "10.0.0.3:1", "its certificate has expired", &count));
    assert_int_equal(count, 10);
}

// However many hosts come: the lines stay few, and what was known before is still counted.
static void test_many_hosts(void **state) {
    (void)state;
    pen_refusals refusals = {0};
    uint32_t told = 0;
    for (uint32_t i = 0; i < 1000; i++) {
        char host[32];
        (void)snprintf(host, sizeof host, "10.0.%u.%u", i / 250, i % 250);
        told += add_many(&refusals, host, "it speaks without TLS", 1);
    }
    CHECK(told >= PEN_REFUSAL_KINDS && told <= PEN_REFUSAL_KINDS + 3, "%u", told);
    uint64_t count;
    assert_false(pen_refusals_add(&refusals, "10.0.0.0:9", "it speaks without TLS", &count));
    assert_int_equal(count, 2);
}

PEN_TEST_MAIN(cmocka_unit_test(test_once_with_a_count), cmocka_unit_test(test_many_hosts))
