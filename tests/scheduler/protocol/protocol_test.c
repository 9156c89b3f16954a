// Coordinator and workers together, over random tables, delays and times: see
// tests/support/protocol_run.h for what is judged.
#include <inttypes.h>

#include "scheduler/protocol/admission.h"
#include "tests/support/check.h"
#include "tests/support/dice.h"
#include "tests/support/protocol_run.h"
#include "tests/support/random_run_table.h"

#define ROUNDS_LIMIT 12

static uint64_t seed_count(void) {
    return getenv("PEN_LONG") != NULL ? 20000 : 2000;
}

static uint32_t draw_rounds(const pen_run_table *table, uint64_t seed, protocol_round *out_rounds) {
    dice d = {.seed = seed ^ 0x0dd5};
    const uint32_t count = (uint32_t)dice_between(&d, 1, ROUNDS_LIMIT);
    uint32_t form = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (dice_between(&d, 0, 3) == 0) form = 1 - form;
        const int64_t most = table->forms[form].microbatch_count;
        out_rounds[i] = (protocol_round){
            .form = form,
            .count = (uint32_t)(dice_between(&d, 0, 2) == 0 ? dice_between(&d, 1, most) : most),
            .updates = form == 0 && dice_between(&d, 0, 3) > 0};
    }
    return count;
}

static void run_seed(const pen_run_table *table, uint64_t seed, protocol_run_result *out_result) {
    protocol_round rounds[ROUNDS_LIMIT];
    const protocol_run_options options = {.seed = seed,
                                          .rounds = rounds,
                                          .round_count = draw_rounds(table, seed, rounds),
                                          .repeats = seed % 2 == 0};
    protocol_run(table, &options, out_result);
    CHECK(out_result->wrong[0] == 0, "seed %" PRIu64 ": %s", seed, out_result->wrong);
}

static void tables_with_room_run_to_their_end(void **state) {
    (void)state;
    uint64_t task_count = 0;
    for (uint64_t seed = 0; seed < seed_count(); seed++) {
        pen_arena *arena = check_arena();
        protocol_run_result result;
        run_seed(random_run_table(arena, seed, true), seed, &result);
        CHECK(result.finished, "seed %" PRIu64 " got stuck", seed);
        task_count += result.task_count;
        pen_arena_destroy(arena);
    }
    CHECK(task_count > 50 * seed_count(), "only %" PRIu64 " tasks", task_count);
}

// What admission takes never gets stuck; what it refuses does, in the rounds that it tried.
static void admission_tells_which_get_stuck(void **state) {
    (void)state;
    uint32_t taken = 0, refused = 0;
    for (uint64_t seed = 0; seed < seed_count(); seed++) {
        pen_arena *arena = check_arena();
        const pen_run_table *table = random_run_table(arena, seed, false);
        const pen_status status = pen_run_table_admit(table, NULL);
        protocol_run_result result;
        if (status == PEN_OK) {
            run_seed(table, seed, &result);
            CHECK(result.finished, "seed %" PRIu64 " was taken and got stuck", seed);
            taken++;
        } else {
            pen_status_ignore(status, "some are");
            const uint32_t most = table->forms[0].microbatch_count;
            const protocol_round rounds[] = {{0, most, true},
                                             {0, most, true},
                                             {0, (most + 1) / 2, false},
                                             {0, 1, true},
                                             {0, most, true},
                                             {1, most, false},
                                             {1, most, false},
                                             {1, (most + 1) / 2, false},
                                             {1, 1, false},
                                             {1, most, false}};
            const protocol_run_options options = {
                .seed = seed, .rounds = rounds, .round_count = 10};
            protocol_run(table, &options, &result);
            CHECK(result.wrong[0] == 0, "seed %" PRIu64 ": %s", seed, result.wrong);
            CHECK(!result.finished, "seed %" PRIu64 " was refused and did not get stuck", seed);
            refused++;
        }
        pen_arena_destroy(arena);
    }
    CHECK(taken > seed_count() / 10 && refused > seed_count() / 10, "%u taken, %u refused", taken,
          refused);
}

static void the_same_seed_gives_the_same_run(void **state) {
    (void)state;
    uint64_t before = 0;
    for (uint64_t seed = 0; seed < 50; seed++) {
        pen_arena *arena = check_arena();
        const pen_run_table *table = random_run_table(arena, seed, true);
        protocol_run_result first, second;
        run_seed(table, seed, &first);
        run_seed(table, seed, &second);
        CHECK(first.digest == second.digest && first.duration == second.duration, "seed %" PRIu64,
              seed);
        CHECK(first.digest != before, "seed %" PRIu64 " is like the one before", seed);
        before = first.digest;
        pen_arena_destroy(arena);
    }
}

PEN_TEST_MAIN(cmocka_unit_test(tables_with_room_run_to_their_end),
              cmocka_unit_test(admission_tells_which_get_stuck),
              cmocka_unit_test(the_same_seed_gives_the_same_run))
