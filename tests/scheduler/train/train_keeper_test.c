// What becomes of checkpoints that do not get into the log, and of a coordinator that another has
// taken over from, with an engine that only says that all is durable.
#include "scheduler/train/train_keeper.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "tests/support/check.h"
#include "tests/support/scratch.h"
#include "tests/support/tiny_model.h"
#include "tests/support/training.h"

typedef struct keeper_engine {
    pen_engine engine; // first
    uint64_t step;
    _Atomic uint64_t committed; // said by the keeper's thread
    _Atomic uint64_t forgone;
    bool fails;           // to save
    _Atomic bool is_open; // a save is durable, and nothing was said of it yet
} keeper_engine;

static keeper_engine *engine_of(pen_engine *engine) {
    return (keeper_engine *)(void *)engine;
}

static pen_status engine_save(pen_engine *engine, uint64_t step, const char *folder) {
    keeper_engine *e = engine_of(engine);
    (void)folder;
    CHECK(!e->is_open, "step %llu is saved, and that of step %llu is still open",
          (unsigned long long)step, (unsigned long long)e->step);
    if (e->fails) return pen_error(PEN_IO, "the disk is full");
    e->step = step;
    return PEN_OK;
}

static pen_status engine_poll_saved(pen_engine *engine, bool waits, pen_engine_saved *out_saved) {
    keeper_engine *e = engine_of(engine);
    (void)waits;
    e->is_open = true;
    *out_saved = (pen_engine_saved){.state = PEN_ENGINE_SAVE_DURABLE, .step = e->step};
    return PEN_OK;
}

static void engine_published(pen_engine *engine, uint64_t step, pen_status_code code) {
    keeper_engine *e = engine_of(engine);
    *(code == PEN_CODE_OK ? &e->committed : &e->forgone) = step;
    e->is_open = false;
}

static const pen_engine_kind engine_kind = {.name = "durable",
                                            .save = engine_save,
                                            .poll_saved = engine_poll_saved,
                                            .published = engine_published};

static const pen_job *keeper_job(pen_arena *arena) {
    const char *data = tiny_data_write("tiny", 8, 3);
    return training_job(arena,
                        "version: 1\n"
                        "model: {file: %s}\n"
                        "data: {train: {format: npy, inputs: {x: %s_x.npy}, labels: %s_y.npy}}\n"
                        "train: {loss: softmax_cross_entropy, optimizer: {sgd: {lr: 0.3}}, "
                        "batch: 8}\n"
                        "devices: [{name: a, threads: 1}]\n",
                        tiny_model_write(&(tiny_model){0}, "tiny.onnx"), data, data);
}

static pen_train_keeper *keeper_open(const pen_job *job, const char *folder) {
    const pen_train_keeper_options options = {
        .job = job, .example_count = 8, .folder = folder, .every = {1, PEN_INTERVAL_STEPS}};
    pen_train_keeper *keeper;
    CHECK_OK(pen_train_keeper_create(&options, &keeper));
    return keeper;
}

// Begins a generation, as an engine does.
static void keeper_begin(pen_train_keeper *keeper, uint64_t expected) {
    const pen_engine_log *log = pen_train_keeper_log(keeper);
    assert_int_equal(log->next_generation(log->context), expected);
    CHECK_OK(log->fence(log->context, expected));
}

static void keeper_take(pen_train_keeper *keeper, keeper_engine *engine, uint64_t step) {
    const pen_checkpoint checkpoint = {.step = step};
    CHECK_OK(pen_train_keeper_take(keeper, &engine->engine, &checkpoint));
    CHECK_OK(pen_train_keeper_go_on(keeper, &engine->engine, true));
}

// A program that does something else for long between two steps does not keep the engine waiting.
static void engines_hear_of_checkpoints_between_polls(void **unused) {
    (void)unused;
    pen_arena *arena = check_arena();
    const pen_checkpoint checkpoint = {.step = 1};
    keeper_engine engine = {.engine.kind = &engine_kind};
    pen_train_keeper *keeper = keeper_open(keeper_job(arena), scratch_path("between"));
    keeper_begin(keeper, 1);
    CHECK_OK(pen_train_keeper_take(keeper, &engine.engine, &checkpoint));
    CHECK_OK(pen_train_keeper_go_on(keeper, &engine.engine, false));
    for (uint32_t i = 0; i < 60000 && engine.committed == 0; i++) {
        pen_clock_pause(0.001);
    }
    assert_int_equal(engine.committed, 1);
    pen_train_keeper_destroy(keeper);
    pen_arena_destroy(arena);
}

// The engine hears of it, so that it takes another; the training goes on.
static void engines_hear_of_checkpoints_that_are_forgone(void **unused) {
    (void)unused;
    pen_arena *arena = check_arena();
    const char *folder = scratch_path("forgone");
    char commit[512], away[512];
    keeper_engine engine = {.engine.kind = &engine_kind};
    pen_train_keeper *keeper = keeper_open(keeper_job(arena), folder);
    keeper_begin(keeper, 1);
    keeper_take(keeper, &engine, 1);
    assert_int_equal(engine.committed, 1);
    snprintf(commit, sizeof commit, "%s/commit", folder);
    snprintf(away, sizeof away, "%s/away", folder);
    assert_int_equal(rename(commit, away), 0);
    keeper_take(keeper, &engine, 2);
    assert_int_equal(engine.forgone, 2);
    assert_int_equal(pen_train_keeper_step(keeper), 1);
    assert_int_equal(rename(away, commit), 0);
    keeper_take(keeper, &engine, 3);
    assert_int_equal(engine.committed, 3);
    assert_int_equal(engine.forgone, 2);
    pen_train_keeper_destroy(keeper);
    pen_arena_destroy(arena);
}

// Others cost a warning; the last one must be kept.
static void last_checkpoints_must_be_kept(void **unused) {
    (void)unused;
    pen_arena *arena = check_arena();
    keeper_engine engine = {.engine.kind = &engine_kind, .fails = true};
    pen_train_keeper *keeper = keeper_open(keeper_job(arena), scratch_path("last"));
    const pen_checkpoint first = {.step = 1}, last = {.step = 2};
    keeper_begin(keeper, 1);
    keeper_take(keeper, &engine, 1);
    assert_int_equal(pen_train_keeper_step(keeper), 0);
    CHECK_ERROR(pen_train_keeper_take_last(keeper, &engine.engine, &first), PEN_NO_STORAGE,
                "the checkpoint of step 1 cannot be written: the disk is full");
    keeper_take(keeper, &engine, 1); // as before: after a recovery the training may go on
    engine.fails = false;
    CHECK_OK(pen_train_keeper_take_last(keeper, &engine.engine, &last));
    assert_int_equal(pen_train_keeper_step(keeper), 2);
    engine.fails = true; // it is there: nothing is saved
    CHECK_OK(pen_train_keeper_take_last(keeper, &engine.engine, &last));
    pen_train_keeper_destroy(keeper);
    pen_arena_destroy(arena);
}

// Whatever it reads of its successor, it does not pass by the successor's generation.
static void who_is_superseded_takes_nothing_back(void **unused) {
    (void)unused;
    pen_arena *arena = check_arena();
    const char *folder = scratch_path("superseded");
    const pen_job *job = keeper_job(arena);
    const pen_checkpoint checkpoint = {.step = 1};
    keeper_engine engine = {.engine.kind = &engine_kind};
    pen_train_keeper *old = keeper_open(job, folder);
    keeper_begin(old, 1);
    CHECK_OK(pen_train_keeper_take(old, &engine.engine, &checkpoint));
    pen_train_keeper *successor = keeper_open(job, folder);
    keeper_begin(successor, 2);
    // it publishes what it has, and a worker is lost meanwhile: what comes of it is not looked at
    CHECK_OK(pen_train_keeper_go_on(old, &engine.engine, false));
    pen_train_keeper_abandon(old);
    const pen_engine_log *log = pen_train_keeper_log(old);
    assert_int_equal(log->next_generation(log->context), 2);
    CHECK_ERROR(log->fence(log->context, 2), PEN_CANCELLED, "superseded by generation 2");
    keeper_begin(successor, 3);
    pen_train_keeper_destroy(old);
    pen_train_keeper_destroy(successor);
    pen_arena_destroy(arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(engines_hear_of_checkpoints_that_are_forgone),
        cmocka_unit_test(engines_hear_of_checkpoints_between_polls),
        cmocka_unit_test(last_checkpoints_must_be_kept),
        cmocka_unit_test(who_is_superseded_takes_nothing_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
