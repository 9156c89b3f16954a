#include "scheduler/measure/profile.h"

#include <math.h>

#include "tests/support/check.h"
#include "tests/support/tiny_model.h"
#include "tests/support/training.h"

static const pen_job *job_of(pen_arena *arena, const char *model, const char *data,
                             const char *devices, int microbatches) {
    return training_job(arena,
                        "version: 1\nmodel: {file: %s}\n"
                        "data: {train: {format: npy, inputs: {x: %s_x.npy}, labels: %s_y.npy}}\n"
                        "train: {loss: softmax_cross_entropy, optimizer: {adam: {}}, batch: 8, "
                        "microbatches: %d, epochs: 1}\ndevices: [%s]\n",
                        model, data, data, microbatches, devices);
}

typedef struct session {
    pen_arena *arena;
    const pen_job *job;
    pen_dataset *dataset;
    pen_profile_targets targets;
    pen_profiler *profiler;
    pen_cost_table *table;
} session;

static session open_session(int microbatches) {
    session s = {.arena = check_arena()};
    const char *model = tiny_model_write(&(tiny_model){.has_dropout = true}, "profile.onnx");
    s.job = job_of(s.arena, model, tiny_data_write("profile", 16, 3), "{name: a, threads: 1}",
                   microbatches);
    CHECK_OK(pen_job_open_dataset(s.job, PEN_DATASET_PART_TRAIN, s.arena, &s.dataset));
    CHECK_OK(pen_profile_find_targets(s.job, NULL, s.arena, &s.targets));
    CHECK_OK(pen_profiler_create(s.job, pen_dataset_get_info(s.dataset), &s.targets.items[0],
                                 &s.profiler));
    CHECK_OK(pen_cost_table_new(s.arena, &s.table));
    // rates take a while, and are tested elsewhere
    CHECK_OK(pen_cost_table_set_rates(s.table, &(pen_cost_rates){"cpu", 1, 1e9, 1e9, NULL}));
    return s;
}

static void close_session(session *s) {
    pen_profiler_destroy(s->profiler);
    pen_dataset_close(s->dataset);
    pen_arena_destroy(s->arena);
}

static const pen_profile_options fast = {.operator_time_limit = 1e-6};

static void what_the_table_has_is_kept(void **state) {
    (void)state;
    session s = open_session(1);
    pen_profile_summary summary;
    CHECK_OK(pen_profiler_measure(&s.profiler, 1, &fast, s.table));
    CHECK_OK(pen_profiler_summarize(s.profiler, &summary));
    assert_true(summary.row_count > 5 && summary.row_count <= summary.node_count);
    assert_int_equal(summary.fresh_count, summary.row_count);
    assert_int_equal(summary.kept_count + summary.failed_count + summary.left_count, 0);
    assert_int_equal(pen_cost_table_count(s.table), summary.row_count);
    assert_true(summary.seconds_predicted > 0);
    for (uint32_t r = 1; r < summary.row_count; r++) {
        const pen_profile_row *a = &summary.rows[r - 1], *b = &summary.rows[r];
        assert_true(a->seconds * a->node_count * a->runs_per_step >=
                    b->seconds * b->node_count * b->runs_per_step);
    }

    // someone says that one of them takes an hour: it does, until it is measured again
    pen_cost_entry entry = *pen_cost_table_at(s.table, 0);
    entry.seconds = 3600;
    CHECK_OK(pen_cost_table_set(s.table, &entry));
    pen_profiler *again;
    CHECK_OK(
        pen_profiler_create(s.job, pen_dataset_get_info(s.dataset), &s.targets.items[0], &again));
    CHECK_OK(pen_profiler_measure(&again, 1, &fast, s.table));
    CHECK_OK(pen_profiler_summarize(again, &summary));
    assert_int_equal(summary.kept_count, summary.row_count);
    assert_int_equal(summary.fresh_count, 0);
    assert_true(summary.rows[0].seconds == 3600);
    pen_profile_options repeat = fast;
    repeat.repeat = true;
    CHECK_OK(pen_profiler_measure(&again, 1, &repeat, s.table));
    CHECK_OK(pen_profiler_summarize(again, &summary));
    assert_int_equal(summary.fresh_count, summary.row_count);
    assert_true(pen_cost_table_at(s.table, 0)->seconds < 60);
    assert_true(pen_cost_table_find_rates(s.table, "cpu", 1)->flops > 1e9); // measured too
    pen_profiler_destroy(again);
    close_session(&s);
}

static void time_limits_leave_the_rest(void **state) {
    (void)state;
    session s = open_session(1);
    pen_profile_summary summary;
    const pen_profile_options options = {.operator_time_limit = 1e-6, .time_limit = 1e-9};
    CHECK_OK(pen_profiler_measure(&s.profiler, 1, &options, s.table));
    CHECK_OK(pen_profiler_summarize(s.profiler, &summary));
    assert_true(summary.left_count >= summary.row_count - 1);
    assert_int_equal(pen_cost_table_count(s.table), summary.fresh_count);
    CHECK_OK(pen_profiler_measure(&s.profiler, 1, &fast, s.table));
    CHECK_OK(pen_profiler_summarize(s.profiler, &summary));
    assert_int_equal(summary.left_count, 0);
    close_session(&s);
}

static void count_progress(void *context, const pen_profile_row *row, uint32_t done,
                           uint32_t count) {
    uint32_t *calls = context;
    assert_non_null(row->op);
    assert_true(done < count);
    *calls += 1;
}

static void steps_time_every_node(void **state) {
    (void)state;
    for (int microbatches = 1; microbatches <= 2; microbatches++) {
        session s = open_session(microbatches);
        pen_profile_summary summary;
        uint32_t calls = 0;
        pen_profile_options options = fast;
        options.progress = count_progress;
        options.progress_context = &calls;
        CHECK_OK(pen_profiler_measure(&s.profiler, 1, &options, s.table));
        CHECK_OK(pen_profiler_run_steps(s.profiler, 5, NULL, 0));
        CHECK_OK(pen_profiler_summarize(s.profiler, &summary));
        assert_int_equal(calls, summary.row_count);
        assert_int_equal(summary.step_count, 5);
        assert_true(summary.seconds_in_step > 0);
        assert_true(summary.step_seconds > 0);
        assert_true(isfinite(summary.error_weighted) && isfinite(summary.error_mean));
        assert_true(summary.memory.persistent_bytes > 0 && summary.memory.arena_bytes > 0);
        double sum = 0;
        bool has_updates = false;
        for (uint32_t r = 0; r < summary.row_count; r++) {
            const pen_profile_row *row = &summary.rows[r];
            assert_true(row->seconds_in_step > 0);
            assert_true(row->runs_per_step == 1 || row->runs_per_step == microbatches);
            has_updates |= strcmp(row->op, "adam_update") == 0 && row->runs_per_step == 1;
            sum += row->seconds_in_step * row->node_count * row->runs_per_step;
        }
        assert_true(has_updates);
        CHECK(fabs(sum - summary.seconds_in_step) <= 1e-9 * sum, "%g", sum);

        // the times of the steps replace those of operators alone
        CHECK_OK(pen_profiler_store_steps(s.profiler, s.table));
        const pen_profile_row *first = &summary.rows[0];
        const pen_cost_entry *entry =
            pen_cost_table_find(s.table, first->op, first->shape, "cpu", 1);
        assert_true(entry->seconds == first->seconds_in_step);
        assert_int_equal(entry->runs, 5);
        close_session(&s);
    }
}

static void steps_without_measurements_are_fine(void **state) {
    (void)state;
    session s = open_session(1);
    pen_profile_summary summary;
    CHECK_OK(pen_profiler_run_steps(s.profiler, 1, NULL, 0));
    CHECK_OK(pen_profiler_summarize(s.profiler, &summary));
    assert_int_equal(summary.left_count, summary.row_count);
    assert_true(summary.seconds_in_step == 0); // of the rows that are measured: none
    assert_true(summary.error_weighted == 0);
    assert_true(summary.rows[0].seconds_in_step > 0);
    close_session(&s);
}

// A device that cannot hold the model cannot keep company either.
static void other_devices_keep_company(void **state) {
    (void)state;
    session s = open_session(1);
    pen_profile_summary summary;
    const pen_device_options others[] = {{.name = "b", .thread_count = 1},
                                         {.name = "c", .thread_count = 2}};
    const pen_device_options small = {.name = "d", .thread_count = 1, .memory_bytes = 1000};
    CHECK_OK(pen_profiler_run_steps(s.profiler, 3, others, 2));
    CHECK_OK(pen_profiler_summarize(s.profiler, &summary));
    assert_int_equal(summary.step_count, 3);
    assert_true(summary.rows[0].seconds_in_step > 0);
    CHECK_ERROR(pen_profiler_run_steps(s.profiler, 1, &small, 1), PEN_DOES_NOT_FIT, "'d'");
    close_session(&s);
}

static void devices_that_compute_alike_are_one_target(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    const pen_job *job = job_of(arena, "model.onnx", "data",
                                "{name: a, threads: 1}, {name: e, threads: 1, host: \"n2:1\", "
                                "memory: 1GiB}, {name: b, threads: 1, host: \"localhost:7070\"}, "
                                "{name: c, threads: 2}, {name: d, threads: 1, kind: reference}, "
                                "{name: f, threads: 1, host: \"n2:2\", memory: 1GiB}",
                                1);
    pen_profile_targets targets;
    CHECK_OK(pen_profile_find_targets(job, NULL, arena, &targets));
    assert_int_equal(targets.count, 4);
    assert_string_equal(targets.items[0].device, "a");
    assert_int_equal(targets.items[0].device_count, 2);
    assert_string_equal(targets.items[2].kind, "reference");
    assert_int_equal(targets.remote_count, 1); // behind the others
    assert_string_equal(targets.items[3].device, "e");
    assert_string_equal(targets.items[3].host_name, "n2");
    assert_int_equal(targets.items[3].device_count, 2);
    assert_true(targets.items[3].is_remote && !targets.items[0].is_remote);
    assert_string_equal(targets.items[0].host_name, "");
    CHECK_OK(pen_profile_find_targets(job, "c", arena, &targets));
    assert_int_equal(targets.count, 1);
    assert_int_equal(targets.items[0].threads, 2);
    CHECK_ERROR(pen_profile_find_targets(job, "cc", arena, &targets), PEN_NOT_FOUND,
                "no device is called 'cc', possible: c, a, e, b, d, f");
    CHECK_OK(pen_profile_find_targets(job, "e", arena, &targets));
    assert_true(targets.count == 1 && targets.remote_count == 1);
    pen_arena_destroy(arena);
}

PEN_TEST_MAIN(cmocka_unit_test(what_the_table_has_is_kept),
              cmocka_unit_test(time_limits_leave_the_rest), cmocka_unit_test(steps_time_every_node),
              cmocka_unit_test(steps_without_measurements_are_fine),
              cmocka_unit_test(other_devices_keep_company),
              cmocka_unit_test(devices_that_compute_alike_are_one_target))
