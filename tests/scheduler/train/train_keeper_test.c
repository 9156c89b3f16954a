// What becomes of checkpoints that do not get into the log, and of a coordinator that another has
// taken over from, with an engine that only says that all is durable.
#include "scheduler/train/train_keeper.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/system/file.h"
#include "tests/support/check.h"
#include "tests/support/scratch.h"
#include "tests/support/tiny_model.h"
#include "tests/support/training.h"

typedef struct keeper_engine {
    pen_engine engine; // first
    uint64_t step;
    _Atomic uint64_t committed; // said by the keeper's thread
    _Atomic uint64_t forgone;
    _Atomic uint64_t heard; // how often that it gets on
    bool fails;             // to save
    const char *refuses;    // folder of shards that cannot be saved to; NULL: none
    bool is_late;           // that shows when shards are written
    const char *unseen;     // folder of shards that not all see
    const char *folder;     // that it was to save to last
    uint32_t saves;         // that were asked for
    _Atomic bool is_open;   // a save is durable, and nothing was said of it yet
} keeper_engine;

static keeper_engine *engine_of(pen_engine *engine) {
    return (keeper_engine *)(void *)engine;
}

static pen_status engine_save(pen_engine *engine, uint64_t step, const char *folder) {
    keeper_engine *e = engine_of(engine);
    e->folder = folder;
    e->saves += 1;
    CHECK(!e->is_open, "step %llu is saved, and that of step %llu is still open",
          (unsigned long long)step, (unsigned long long)e->step);
    const bool is_refused = !e->is_late && e->refuses != NULL && strcmp(e->refuses, folder) == 0;
    if (e->fails || is_refused) return pen_error(PEN_IO, "the disk is full");
    e->step = step;
    return PEN_OK;
}

static pen_status engine_poll_saved(pen_engine *engine, bool waits, pen_engine_saved *out_saved) {
    keeper_engine *e = engine_of(engine);
    (void)waits;
    if (e->is_late && e->refuses != NULL && strcmp(e->refuses, e->folder) == 0) {
        *out_saved = (pen_engine_saved){
            .state = PEN_ENGINE_SAVE_FAILED, .step = e->step, .failure = "the disk is full"};
        return PEN_OK;
    }
    e->is_open = true;
    *out_saved = (pen_engine_saved){.state = PEN_ENGINE_SAVE_DURABLE, .step = e->step};
    return PEN_OK;
}

static void engine_publishing(pen_engine *engine) {
    keeper_engine *e = engine_of(engine);
    CHECK(e->is_open, "nothing is being published");
    e->heard += 1;
}

static void engine_published(pen_engine *engine, uint64_t step, pen_status_code code) {
    keeper_engine *e = engine_of(engine);
    *(code == PEN_CODE_OK ? &e->committed : &e->forgone) = step;
    e->is_open = false;
}

static bool engine_writes_to(pen_engine *engine, const char *folder) {
    const keeper_engine *e = engine_of(engine);
    return e->unseen == NULL || strcmp(e->unseen, folder) != 0;
}

static const pen_engine_kind engine_kind = {.name = "durable",
                                            .save = engine_save,
                                            .writes_to = engine_writes_to,
                                            .poll_saved = engine_poll_saved,
                                            .publishing = engine_publishing,
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

static pen_train_keeper *keeper_open_both(const pen_job *job, const char *folder,
                                          const char *mirror) {
    const pen_train_keeper_options options = {.job = job,
                                              .example_count = 8,
                                              .folder = folder,
                                              .mirror = mirror,
                                              .every = {100, PEN_INTERVAL_STEPS},
                                              .continues = true};
    pen_train_keeper *keeper;
    CHECK_OK(pen_train_keeper_create(&options, &keeper));
    return keeper;
}

static pen_train_keeper *keeper_open(const pen_job *job, const char *folder) {
    return keeper_open_both(job, folder, NULL);
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
    assert_true(engine.heard > 0); // that it got on
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
    assert_int_equal(pen_train_keeper_kept(keeper)->step, 1);
    assert_int_equal(rename(away, commit), 0);
    keeper_take(keeper, &engine, 3);
    assert_int_equal(engine.committed, 3);
    assert_int_equal(engine.forgone, 2);
    pen_train_keeper_destroy(keeper);
    pen_arena_destroy(arena);
}

// A folder that was removed is made again, with its log: that costs the checkpoint under way.
static void a_folder_that_was_removed_is_made_again(void **unused) {
    (void)unused;
    pen_arena *arena = check_arena();
    char folder[512], elsewhere[600];
    keeper_engine engine = {.engine.kind = &engine_kind};
    snprintf(folder, sizeof folder, "%s", scratch_path("removed"));
    snprintf(elsewhere, sizeof elsewhere, "%s_elsewhere", folder);
    pen_train_keeper *keeper = keeper_open(keeper_job(arena), folder);
    keeper_begin(keeper, 1);
    keeper_take(keeper, &engine, 1);
    assert_int_equal(rename(folder, elsewhere), 0);
    keeper_take(keeper, &engine, 2);
    assert_int_equal(engine.forgone, 2);
    keeper_take(keeper, &engine, 3);
    assert_int_equal(engine.committed, 3);
    pen_train_keeper_destroy(keeper);
    // it is gone on from that one, as the training that it is
    keeper = keeper_open(keeper_job(arena), folder);
    assert_true(pen_train_keeper_log(keeper)->has_checkpoint(keeper));
    keeper_begin(keeper, 2);
    keeper_take(keeper, &engine, 4);
    assert_int_equal(engine.committed, 4);
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
    assert_int_equal(pen_train_keeper_kept(keeper)->step, 0);
    CHECK_ERROR(pen_train_keeper_take_last(keeper, &engine.engine, &first), PEN_NO_STORAGE,
                "the checkpoint of step 1 cannot be written: the disk is full");
    keeper_take(keeper, &engine, 1); // as before: after a recovery the training may go on
    engine.fails = false;
    CHECK_OK(pen_train_keeper_take_last(keeper, &engine.engine, &last));
    assert_int_equal(pen_train_keeper_kept(keeper)->step, 2);
    engine.fails = true; // it is there: nothing is saved
    CHECK_OK(pen_train_keeper_take_last(keeper, &engine.engine, &last));
    pen_train_keeper_destroy(keeper);
    pen_arena_destroy(arena);
}

// Two folders, and where shards go in them.
typedef struct keeper_folders {
    char folder[512], mirror[600], shards[600], mirror_shards[700];
} keeper_folders;

static pen_train_keeper *keeper_open_folders(pen_arena *arena, const char *name,
                                             keeper_folders *out) {
    snprintf(out->folder, sizeof out->folder, "%s", scratch_path(name));
    snprintf(out->mirror, sizeof out->mirror, "%s_mirror", out->folder);
    snprintf(out->shards, sizeof out->shards, "%s/shards", out->folder);
    snprintf(out->mirror_shards, sizeof out->mirror_shards, "%s/shards", out->mirror);
    return keeper_open_both(keeper_job(arena), out->folder, out->mirror);
}

// A checkpoint goes where it can be written; a folder that takes files again gets the next one.
static void checkpoints_go_to_the_folder_that_takes_them(void **unused) {
    (void)unused;
    pen_arena *arena = check_arena();
    keeper_folders f;
    keeper_engine engine = {.engine.kind = &engine_kind};
    pen_train_keeper *keeper = keeper_open_folders(arena, "trouble", &f);
    keeper_begin(keeper, 1);
    keeper_take(keeper, &engine, 1);
    assert_string_equal(engine.folder, f.shards);
    engine.refuses = f.shards;
    keeper_take(keeper, &engine, 2); // at once
    assert_string_equal(engine.folder, f.mirror_shards);
    assert_int_equal(engine.committed, 2);
    assert_int_equal(engine.saves, 3);
    engine.refuses = f.mirror_shards; // and back
    keeper_take(keeper, &engine, 3);
    assert_string_equal(engine.folder, f.shards);
    assert_int_equal(engine.committed, 3);
    engine.is_late = true; // when it shows, the training is a step further: that one is kept
    engine.refuses = f.shards;
    assert_false(pen_train_keeper_is_due(keeper, 4, 0, false));
    keeper_take(keeper, &engine, 4);
    assert_int_equal(engine.committed, 3);
    assert_true(pen_train_keeper_is_due(keeper, 5, 0, false));
    keeper_take(keeper, &engine, 5);
    assert_string_equal(engine.folder, f.mirror_shards);
    assert_int_equal(engine.committed, 5);
    assert_int_equal(pen_train_keeper_kept(keeper)->copies, 2);
    assert_false(pen_train_keeper_is_due(keeper, 6, 0, false));
    pen_train_keeper_destroy(keeper);
    pen_arena_destroy(arena);
}

// Where neither takes any, each checkpoint is tried in both, and no other is owed.
static void nothing_is_owed_where_no_folder_takes_files(void **unused) {
    (void)unused;
    pen_arena *arena = check_arena();
    keeper_folders f;
    keeper_engine engine = {.engine.kind = &engine_kind, .fails = true};
    pen_train_keeper *keeper = keeper_open_folders(arena, "neither", &f);
    keeper_begin(keeper, 1);
    for (uint64_t step = 1; step <= 3; step++) {
        keeper_take(keeper, &engine, step);
        assert_int_equal(engine.saves, 2 * step);
        assert_false(pen_train_keeper_is_due(keeper, step + 1, 0, false));
    }
    engine.fails = false;
    keeper_take(keeper, &engine, 4);
    assert_int_equal(engine.committed, 4);
    assert_int_equal(pen_train_keeper_kept(keeper)->copies, 2);
    pen_train_keeper_destroy(keeper);
    pen_arena_destroy(arena);
}

// Workers that see one folder alone are not sent to the other, however often that one fails.
static void shards_go_to_the_folder_that_all_see(void **unused) {
    (void)unused;
    pen_arena *arena = check_arena();
    keeper_folders f;
    keeper_engine engine = {.engine.kind = &engine_kind};
    pen_train_keeper *keeper = keeper_open_folders(arena, "seen", &f);
    engine.unseen = f.mirror_shards;
    engine.refuses = f.shards;
    keeper_begin(keeper, 1);
    for (uint64_t step = 1; step <= 3; step++) {
        keeper_take(keeper, &engine, step);
        assert_string_equal(engine.folder, f.shards);
        assert_int_equal(engine.saves, step);
    }
    engine.refuses = NULL;
    keeper_take(keeper, &engine, 4);
    assert_int_equal(engine.committed, 4);
    assert_int_equal(pen_train_keeper_kept(keeper)->copies, 2);
    engine.unseen = f.shards; // other workers: those that came in their place
    keeper_take(keeper, &engine, 5);
    assert_string_equal(engine.folder, f.mirror_shards);
    assert_int_equal(pen_train_keeper_kept(keeper)->copies, 2);
    pen_train_keeper_destroy(keeper);
    pen_arena_destroy(arena);
}

// Workers are told of both folders, whichever is away when the training begins; it is gone on from
// the one that is there, and what comes back gets the next checkpoint.
static void trainings_begin_where_they_can(void **unused) {
    (void)unused;
    pen_arena *arena = check_arena();
    keeper_folders f;
    keeper_engine engine = {.engine.kind = &engine_kind};
    char elsewhere[600];
    pen_train_keeper *keeper = keeper_open_folders(arena, "away", &f);
    keeper_begin(keeper, 1);
    keeper_take(keeper, &engine, 1);
    pen_train_keeper_destroy(keeper);
    snprintf(elsewhere, sizeof elsewhere, "%s_elsewhere", f.folder);
    assert_int_equal(rename(f.folder, elsewhere), 0);
    CHECK_OK(pen_file_write_text(f.folder, "no folder"));
    keeper = keeper_open_folders(arena, "away", &f);
    const pen_engine_log *log = pen_train_keeper_log(keeper);
    assert_string_equal(log->folder, f.shards);
    assert_string_equal(log->mirror, f.mirror_shards);
    keeper_begin(keeper, 2);
    keeper_take(keeper, &engine, 2);
    assert_string_equal(engine.folder, f.mirror_shards);
    assert_int_equal(pen_train_keeper_kept(keeper)->copies, 1);
    assert_string_equal(pen_train_keeper_kept(keeper)->folder, f.mirror);
    assert_string_equal(pen_train_keeper_kept(keeper)->without, f.folder);
    assert_int_equal(remove(f.folder), 0);
    assert_int_equal(rename(elsewhere, f.folder), 0);
    keeper_take(keeper, &engine, 3);
    assert_int_equal(pen_train_keeper_kept(keeper)->copies, 2);
    assert_null(pen_train_keeper_kept(keeper)->without);
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
        cmocka_unit_test(a_folder_that_was_removed_is_made_again),
        cmocka_unit_test(last_checkpoints_must_be_kept),
        cmocka_unit_test(checkpoints_go_to_the_folder_that_takes_them),
        cmocka_unit_test(nothing_is_owed_where_no_folder_takes_files),
        cmocka_unit_test(shards_go_to_the_folder_that_all_see),
        cmocka_unit_test(trainings_begin_where_they_can),
        cmocka_unit_test(who_is_superseded_takes_nothing_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
