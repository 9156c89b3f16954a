#include "scheduler/measure/link_probe.h"

#include "tests/support/check.h"

static void check_probe(const pen_link_probe *probe) {
    // no link is slower than 1 MB/s or 10 s, or faster than light over a chip
    CHECK(probe->bandwidth > 1e6 && probe->bandwidth < 1e13, "%g bytes a second", probe->bandwidth);
    CHECK(probe->latency > 1e-9 && probe->latency < 10, "%g s", probe->latency);
}

static void memory_is_probed(void **state) {
    (void)state;
    pen_link_probe probe = {0};
    CHECK_OK(pen_link_probe_memory(&probe));
    check_probe(&probe);
}

PEN_TEST_MAIN(cmocka_unit_test(memory_is_probed))
