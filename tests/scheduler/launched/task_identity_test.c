#include "scheduler/launched/task_identity.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/check.h"

static const char *const parts[] = {"SLURM_JOB_ID", "SLURM_STEP_ID", "SLURM_RESTART_COUNT",
                                    "PENSTOCK_START"};
#define PARTS (sizeof parts / sizeof *parts)

// Slurm's environment, with `length` letters in each part of the start's name.
static void set_parts(size_t length) {
    char value[128];
    PEN_ASSERT(length < sizeof value);
    setenv("SLURM_PROCID", "2", 1);
    setenv("SLURM_NTASKS", "3", 1);
    for (size_t i = 0; i < PARTS; i++) {
        memset(value, 'a' + (int)i, length);
        value[length] = '\0';
        setenv(parts[i], value, 1);
    }
}

static void a_start_has_a_long_name(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    pen_task_identity identity;
    set_parts(60);
    CHECK_OK(pen_task_identity_find(0, arena, &identity));
    CHECK(identity.rank == 2 && identity.size == 3, "task %u of %u", identity.rank, identity.size);
    CHECK(strlen(identity.start) == PARTS * 60 + PARTS - 1, "found '%s'", identity.start);
    for (size_t i = 0; i < strlen(identity.start); i++) {
        const char expected = i % 61 == 60 ? '.' : (char)('a' + (int)(i / 61));
        CHECK(identity.start[i] == expected, "found '%s'", identity.start);
    }
    pen_arena_destroy(arena);
}

static void a_longer_name_is_refused(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    pen_task_identity identity;
    set_parts(61);
    CHECK_ERROR(pen_task_identity_find(0, arena, &identity), PEN_INVALID_INPUT, "SLURM_JOB_ID");
    pen_arena_destroy(arena);
}

PEN_TEST_MAIN(cmocka_unit_test(a_start_has_a_long_name), cmocka_unit_test(a_longer_name_is_refused))
