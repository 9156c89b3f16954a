#include "scheduler/protocol/admission.h"

#include "base/clock.h"
#include "scheduler/protocol/run_table_check.h"
#include "tests/support/check.h"
#include "tests/support/random_run_table.h"

static void takes_tables_with_room(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 500; seed++) {
        pen_arena *arena = check_arena();
        const pen_run_table *table = random_run_table(arena, seed, true);
        const pen_status status = pen_run_table_admit(table, NULL);
        if (status != PEN_OK) printf("seed %llu\n", (unsigned long long)seed);
        CHECK_OK(status);
        pen_arena_destroy(arena);
    }
}

// Of tables with few places, some finish and some do not; none confuses the cores.
static void takes_or_refuses_tables_with_few_places(void **state) {
    (void)state;
    uint32_t taken = 0, refused = 0;
    for (uint64_t seed = 0; seed < 500; seed++) {
        pen_arena *arena = check_arena();
        const pen_run_table *table = random_run_table(arena, seed, false);
        CHECK_OK(pen_run_table_check(table));
        const pen_status status = pen_run_table_admit(table, NULL);
        if (status == PEN_OK) {
            taken++;
        } else {
            refused++;
            CHECK_ERROR(status, PEN_INVALID_INPUT, "the plan does not finish: device ");
        }
        pen_arena_destroy(arena);
    }
    CHECK(taken > 50 && refused > 50, "%u taken, %u refused", taken, refused);
}

// Two devices, each of which makes what the other reads first.
static void names_the_circle(void **state) {
    (void)state;
    const pen_run_channel channels[] = {
        {.source_worker = 1,
         .target_worker = 2,
         .target_device = 1,
         .capacity = 2,
         .copies = 2,
         .bytes = 4},
        {.source_worker = 2,
         .target_worker = 1,
         .source_device = 1,
         .capacity = 2,
         .copies = 2,
         .bytes = 4},
    };
    uint32_t refs[12];
    pen_run_task tasks[4];
    for (uint32_t t = 0; t < 4; t++) { // reads and releases one channel, makes the other
        const uint32_t device = t / 2;
        refs[3 * t] = refs[3 * t + 2] = 1 - device;
        refs[3 * t + 1] = device;
        tasks[t] = (pen_run_task){.task = {PEN_TASK_FORWARD, device, t % 2},
                                  .receive_first = 3 * t,
                                  .receive_end = 3 * t + 1,
                                  .send_first = 3 * t + 1,
                                  .send_end = 3 * t + 2,
                                  .release_first = 3 * t + 2,
                                  .release_end = 3 * t + 3};
    }
    const pen_run_device at[] = {{.worker = 1, .task_end = 2},
                                 {.worker = 2, .task_first = 2, .task_end = 4}};
    const pen_run_form form = {.microbatch_count = 2,
                               .microbatch_size = 1,
                               .channel_count = 2,
                               .channels = channels,
                               .task_count = 4,
                               .tasks = tasks,
                               .ref_count = 12,
                               .refs = refs,
                               .devices = at};
    const pen_run_table table = {
        .worker_count = 2, .device_count = 2, .form_count = 1, .forms = &form};
    static const char *const devices[] = {"north", "south"};
    static const char *const values[] = {"act", "grad"};
    const char *const *const values_of_form[] = {values};
    const pen_admission_names names = {.devices = devices, .channels = values_of_form};
    CHECK_ERROR(pen_run_table_admit(&table, &names), PEN_INVALID_INPUT,
                "the plan does not finish: device 'north' waits for 'grad' of microbatch 0 from "
                "device 'south', which waits for 'act' of microbatch 0 from device 'north'");
    CHECK_ERROR(pen_run_table_admit(&table, NULL), PEN_INVALID_INPUT,
                "device 0 waits for channel 1 of microbatch 0 from device 1, which waits for "
                "channel 0 of microbatch 0 from device 0");
}

// 1f1b keeps the labels of each microbatch until its backward task: one place for them blocks.
static void names_the_place_that_lacks(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    CHECK_OK(pen_run_table_admit(chain_run_table(arena, 4, 8, 4), NULL));
    CHECK_ERROR(pen_run_table_admit(chain_run_table(arena, 2, 8, 1), NULL), PEN_INVALID_INPUT,
                "from the host, which waits for a place for it at device 0");
    pen_arena_destroy(arena);
}

static void takes_milliseconds(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    const pen_run_table *table = chain_run_table(arena, 8, 64, 64);
    const double start = pen_clock_seconds();
    CHECK_OK(pen_run_table_admit(table, NULL));
    const double seconds = pen_clock_seconds() - start;
    printf("8 devices, 64 microbatches: %.1f ms\n", seconds * 1e3);
    CHECK(seconds < 10, "%g s", seconds); // with sanitizers too, on a busy machine
    pen_arena_destroy(arena);
}

PEN_TEST_MAIN(cmocka_unit_test(takes_tables_with_room),
              cmocka_unit_test(takes_or_refuses_tables_with_few_places),
              cmocka_unit_test(names_the_circle), cmocka_unit_test(names_the_place_that_lacks),
              cmocka_unit_test(takes_milliseconds))
