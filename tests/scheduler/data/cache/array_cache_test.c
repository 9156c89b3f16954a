#include "scheduler/data/cache/array_cache.h"

#include <string.h>

#include "tests/support/check.h"

// Two files whose checksums are alike: a folder of shards has no other name for what was unpacked.
static void alike_checksums_have_two_paths(void **state) {
    (void)state;
    static const char *const requests[] = {
        "unpacked /data/shards/s-065943.tar.gz: 58643054 bytes, 1700038696.129687236\n",
        "unpacked /data/shards/s-147988.tar.gz: 55923610 bytes, 1700083281.947960727\n"};
    pen_arena *arena = check_arena();
    const char *paths[2];
    for (int i = 0; i < 2; i++)
        CHECK_OK(pen_cache_path("kept", requests[i], arena, &paths[i]));
    CHECK(strncmp(paths[0], "kept/", 5) == 0 && strlen(paths[0]) == 21, "found %s", paths[0]);
    CHECK(strcmp(paths[0], paths[1]) != 0, "both are %s", paths[0]);
    pen_arena_destroy(arena);
}

PEN_TEST_MAIN(cmocka_unit_test(alike_checksums_have_two_paths))
