#include "base/name_map.h"

#include "base/memory.h"
#include "tests/support/check.h"

static void an_empty_map_finds_nothing(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    pen_name_map map;
    pen_name_map_init(&map, arena);
    assert_int_equal(pen_name_map_find(&map, ""), PEN_NAME_MAP_NONE);
    assert_int_equal(pen_name_map_find(&map, "x"), PEN_NAME_MAP_NONE);
    pen_arena_destroy(arena);
}

static void names_are_found_as_the_map_grows(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    pen_name_map map;
    pen_name_map_init(&map, arena);
    CHECK_OK(pen_name_map_add(&map, "", 12345678));
    for (uint32_t i = 0; i < 20000; i++) {
        const char *name;
        CHECK_OK(pen_arena_format(arena, &name, "layer%u.weight", i));
        assert_int_equal(pen_name_map_find(&map, name), PEN_NAME_MAP_NONE);
        CHECK_OK(pen_name_map_add(&map, name, i ^ 5));
    }
    assert_int_equal(map.count, 20001);
    assert_true((map.capacity & (map.capacity - 1)) == 0);
    for (uint32_t i = 0; i < 20000; i++) {
        char name[32];
        snprintf(name, sizeof name, "layer%u.weight", i);
        assert_int_equal(pen_name_map_find(&map, name), i ^ 5);
        snprintf(name, sizeof name, "layer%u.bias", i);
        assert_int_equal(pen_name_map_find(&map, name), PEN_NAME_MAP_NONE);
    }
    assert_int_equal(pen_name_map_find(&map, ""), 12345678);
    pen_arena_destroy(arena);
}

static void free_names_are_found(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    pen_name_map map;
    const char *name;
    pen_name_map_init(&map, arena);
    CHECK_OK(pen_name_map_free_name(&map, "x", &name));
    assert_string_equal(name, "x");
    for (uint32_t i = 1; i < 20000; i++) { // ends soon only if no name is searched for one by one
        CHECK_OK(pen_name_map_free_name(&map, "x", &name));
        char expected[16];
        snprintf(expected, sizeof expected, i == 1 ? "x" : "x_%u", i);
        assert_string_equal(name, expected);
        assert_int_equal(pen_name_map_find(&map, name), PEN_NAME_MAP_NONE);
        CHECK_OK(pen_name_map_add(&map, name, i));
    }
    CHECK_OK(pen_name_map_free_name(&map, "x_7", &name)); // of a name that looks made
    assert_string_equal(name, "x_7_2");
    pen_arena_destroy(arena);
}

static void reserved_room_is_used(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    pen_name_map map;
    pen_name_map_init(&map, arena);
    static char names[300][8];
    CHECK_OK(pen_name_map_add(&map, "first", 300));
    CHECK_OK(pen_name_map_reserve(&map, 301));
    const uint64_t bytes = pen_arena_bytes(arena);
    CHECK_OK(pen_name_map_reserve(&map, 17));
    for (uint32_t i = 0; i < 300; i++) {
        snprintf(names[i], sizeof names[i], "%u", i);
        CHECK_OK(pen_name_map_add(&map, names[i], i));
    }
    assert_int_equal(pen_arena_bytes(arena), bytes);
    assert_int_equal(pen_name_map_find(&map, "first"), 300);
    assert_int_equal(pen_name_map_find(&map, "299"), 299);
    pen_arena_destroy(arena);
}

static void refused_memory_leaves_the_map_whole(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    pen_name_map map;
    pen_name_map_init(&map, arena);
    static char names[5000][8];
    uint32_t refused = 0;
    for (uint32_t i = 0; i < 5000; i++) {
        snprintf(names[i], sizeof names[i], "%u", i);
        pen_memory_fail_at(1, 1);
        pen_status status = pen_name_map_add(&map, names[i], i);
        pen_memory_fail_at(0, 0);
        if (status != PEN_OK) {
            refused++;
            CHECK_ERROR(status, PEN_OUT_OF_MEMORY, "memory");
            CHECK_OK(pen_name_map_add(&map, names[i], i));
        }
    }
    CHECK(refused > 3, "only %u calls were refused", refused);
    for (uint32_t i = 0; i < 5000; i++) {
        assert_int_equal(pen_name_map_find(&map, names[i]), i);
    }
    pen_arena_destroy(arena);
}

PEN_TEST_MAIN(cmocka_unit_test(an_empty_map_finds_nothing),
              cmocka_unit_test(names_are_found_as_the_map_grows),
              cmocka_unit_test(free_names_are_found), cmocka_unit_test(reserved_room_is_used),
              cmocka_unit_test(refused_memory_leaves_the_map_whole))
