#include "base/format/unpack.h"

#include "base/limits.h"
#include "tests/support/check.h"

static void limits_grow_with_what_is_packed(void **state) {
    (void)state;
    assert_true(pen_unpack_limit(0) == PEN_UNPACK_BYTES);
    assert_true(pen_unpack_limit(PEN_UNPACK_BYTES / PEN_UNPACK_RATIO) == PEN_UNPACK_BYTES);
    assert_true(pen_unpack_limit(PEN_UNPACK_BYTES) ==
                (uint64_t)PEN_UNPACK_BYTES * PEN_UNPACK_RATIO);
    assert_true(pen_unpack_limit(UINT64_MAX) == UINT64_MAX);
    assert_true(pen_unpack_limit(UINT64_MAX / 2) == UINT64_MAX);
}

static void more_is_refused_by_name(void **state) {
    (void)state;
    CHECK_OK(pen_unpack_check("a.gz", 1, PEN_UNPACK_BYTES, "do"));
    CHECK_OK(pen_unpack_check("a.gz", (uint64_t)1 << 30, (uint64_t)500 << 30, "do"));
    CHECK_ERROR(pen_unpack_check("a.gz", 1, PEN_UNPACK_BYTES + 1, "gunzip it"), PEN_UNSUPPORTED,
                "a.gz: 1 packed bytes would become 67108865 or more; of so few at most 67108864 "
                "are unpacked (500 times, or 64 MiB). If the file is one of yours: gunzip it");
    CHECK_ERROR(pen_unpack_check("a.gz", (uint64_t)1 << 30, ((uint64_t)500 << 30) + 1, "do"),
                PEN_UNSUPPORTED, "at most 536870912000 are");
}

static void what_has_no_room_is_refused(void **state) {
    (void)state;
    CHECK_OK(pen_unpack_check_memory("a.gz", 1, "gunzip it"));
    CHECK_OK(pen_unpack_check_memory("a.gz", PEN_UNPACK_BYTES + 1, "gunzip it"));
    CHECK_ERROR(pen_unpack_check_memory("a.gz", (uint64_t)1 << 60, "gunzip it"), PEN_DOES_NOT_FIT,
                "a.gz: unpacked it has 1152921504606846976 bytes, and ");
}

PEN_TEST_MAIN(cmocka_unit_test(limits_grow_with_what_is_packed),
              cmocka_unit_test(more_is_refused_by_name),
              cmocka_unit_test(what_has_no_room_is_refused))
