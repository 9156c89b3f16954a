#include "scheduler/train/train_keeper.h"

#include <inttypes.h>
#include <math.h>
#include <stdatomic.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/random.h"
#include "base/system/failpoint.h"
#include "base/thread.h"
#include "scheduler/store/watched_disk.h"

#define KEEPER_POLL_SECONDS 0.002
#define KEEPER_SLOW_SECONDS 10.0 // that a training waits for a checkpoint before it is said

struct pen_train_keeper {
    pen_train_keeper_options options;
    pen_arena *arena;
    pen_checkpoint_subject subject;
    pen_watched_disk disk;
    pen_checkpoint_store *store;
    pen_engine_log log;
    uint64_t incarnation;
    uint64_t generation; // that this process has fenced; 0: none yet
    bool begins;         // the training, with the next fence

    pen_checkpoint taken; // under way
    bool is_under_way;
    bool is_last;    // failing to keep it is an error
    bool is_owed;    // one could not be written, and the other folder may take it: the next step's
    bool is_of_debt; // the one under way is that
    const char *shards;  // folder that its shards are written to
    double taken_at;     // when the last one was begun
    double cost_seconds; // for which the training stood still for it; negative: none yet
    double work_seconds; // until it was durable
    bool is_slow;        // the training waited for one that was being written: said
    pen_train_kept kept; // the newest in the log

    // a manifest being published, by a thread, which tells the engine what came of it
    pen_thread *thread;
    pen_engine *engine;        // that waits for it
    atomic_bool is_publishing; // until the engine is told
    atomic_bool is_published;  // the thread has done all it does
    pen_engine_saved saved;
    pen_status published;
};

static bool keeper_has(const pen_train_keeper *keeper) {
    return !keeper->begins && pen_checkpoint_store_count(keeper->store) > 0;
}

// ---- the log, for the engine

// Behind our own: where another coordinator has taken over, its generation is not passed by, and
// workers that serve it are left alone.
static uint64_t keeper_next_generation(void *context) {
    const pen_train_keeper *keeper = context;
    const uint64_t before = keeper->generation > 0 ? keeper->generation
                                                   : pen_checkpoint_store_generation(keeper->store);
    return before + 1;
}

static pen_status keeper_fence(void *context, uint64_t generation) {
    pen_train_keeper *keeper = context;
    const uint64_t in_force = pen_checkpoint_store_generation(keeper->store);
    uint64_t fenced;
    if (keeper->generation > 0 && in_force != keeper->generation) {
        return pen_error(PEN_CANCELLED, "superseded by generation %" PRIu64, in_force);
    }
    PEN_TRY(
        pen_checkpoint_store_fence(keeper->store, keeper->incarnation, keeper->begins, &fenced));
    keeper->begins = false;
    keeper->generation = fenced;
    if (fenced == generation) return PEN_OK;
    return pen_error(PEN_CANCELLED, "superseded: generation %" PRIu64 " of %s is another's",
                     generation, keeper->options.folder);
}

static bool keeper_has_checkpoint(void *context) {
    return keeper_has(context);
}

const pen_engine_log *pen_train_keeper_log(pen_train_keeper *keeper) {
    return &keeper->log;
}

// The engine has a deadline for what stands still, and not for what is slow.
static void keeper_get_on(void *context) {
    pen_train_keeper *keeper = context;
    if (!atomic_load(&keeper->is_publishing)) return;
    if (keeper->engine->kind->publishing != NULL) keeper->engine->kind->publishing(keeper->engine);
}

// ---- what is there

// A folder with checkpoints is used only when the user says how: --continue or --overwrite. Where
// the job names the folder, the error names its line.
static pen_status keeper_open(pen_train_keeper *keeper) {
    const pen_train_keeper_options *options = &keeper->options;
    keeper->subject =
        (pen_checkpoint_subject){.job = options->job, .example_count = options->example_count};
    PEN_TRY(pen_arena_create(&keeper->arena));
    pen_watched_disk_init(&keeper->disk, keeper_get_on, keeper);
    const pen_checkpoint_folders folders = {
        .folder = options->folder, .mirror = options->mirror, .disk = &keeper->disk.disk};
    PEN_TRY(pen_checkpoint_store_open(&folders, &keeper->subject, keeper->arena, &keeper->store));
    const char *job = pen_checkpoint_store_job(keeper->store);
    if (job[0] == '\0') { // as the first fence will name it
        PEN_TRY(pen_arena_format(keeper->arena, &job, "penstock-%016" PRIx64, keeper->incarnation));
    }
    keeper->log = (pen_engine_log){.context = keeper,
                                   .job = job,
                                   .folder = pen_checkpoint_store_copy_folder(keeper->store, 0),
                                   .mirror = pen_checkpoint_store_copy_folder(keeper->store, 1),
                                   .is_anew = !options->continues,
                                   .next_generation = keeper_next_generation,
                                   .fence = keeper_fence,
                                   .has_checkpoint = keeper_has_checkpoint};
    const bool has_some = pen_checkpoint_store_count(keeper->store) > 0;
    keeper->begins = !has_some || options->overwrites;
    if (keeper->begins || options->continues) return PEN_OK;
    const pen_commit_record *newest = pen_checkpoint_store_record(keeper->store, 0);
    const pen_status status = pen_error(
        PEN_INVALID_INPUT,
        "%s has the checkpoint of step %" PRIu64 ": --continue goes on from it, --overwrite "
        "forgets it",
        pen_checkpoint_store_folder(keeper->store, 0), newest->manifest.step);
    // the folder may have been named elsewhere
    const char *dir = options->job->checkpoint.dir;
    if (dir == NULL || strcmp(dir, options->folder) != 0) return status;
    return pen_job_blame(options->job, &options->job->checkpoint.dir, status);
}

pen_status pen_train_keeper_create(const pen_train_keeper_options *options,
                                   pen_train_keeper **out_keeper) {
    pen_train_keeper *keeper = pen_memory_allocate(1, sizeof *keeper);
    if (keeper == NULL) return pen_error_out_of_memory();
    keeper->options = *options;
    keeper->incarnation = pen_random_incarnation();
    keeper->cost_seconds = -1;
    keeper->taken_at = pen_clock_seconds();
    const pen_status status = keeper_open(keeper);
    if (status != PEN_OK) {
        pen_train_keeper_destroy(keeper);
        return status;
    }
    *out_keeper = keeper;
    return PEN_OK;
}

uint64_t pen_train_keeper_generation(const pen_train_keeper *keeper) {
    return keeper->generation;
}

const pen_train_kept *pen_train_keeper_kept(const pen_train_keeper *keeper) {
    return &keeper->kept;
}

static void keeper_note_kept(pen_train_keeper *keeper, uint64_t step) {
    const pen_train_keeper_options *options = &keeper->options;
    pen_train_kept *kept = &keeper->kept;
    *kept = (pen_train_kept){.step = step,
                             .copies = pen_checkpoint_store_copies(keeper->store, 0),
                             .folder = pen_checkpoint_store_folder(keeper->store, 0)};
    if (options->mirror == NULL || kept->copies > 1) return;
    const bool is_mirror = strcmp(kept->folder, options->mirror) == 0;
    kept->without = is_mirror ? options->folder : options->mirror;
}

// ---- publishing

// The engine hears of it here and not from the next poll: until then a program may do anything,
// for any time, and the engine has a deadline for what it waits for.
static void keeper_publish(void *context) {
    pen_train_keeper *keeper = context;
    const pen_engine_saved *saved = &keeper->saved;
    keeper->published = pen_checkpoint_store_publish(keeper->store, &keeper->taken, saved->shards,
                                                     saved->shard_count);
    if (keeper->published == PEN_OK) {
        pen_status pruned = pen_checkpoint_store_prune(
            keeper->store, (uint32_t)keeper->options.job->checkpoint.keep);
        if (pruned != PEN_OK) {
            pen_log(PEN_LOG_WARNING, "%s; older checkpoints stay", pen_status_message(pruned));
            pen_status_ignore(pruned, "said");
        }
    }
    pen_engine *engine = keeper->engine;
    atomic_store(&keeper->is_publishing, false);
    engine->kind->published(engine, keeper->taken.step, pen_status_get_code(keeper->published));
    atomic_store(&keeper->is_published, true);
}

// A checkpoint that was not kept: said, but another coordinator's taking over ends this one. The
// place was there when the training began, so that a later try at the last one may go well.
static pen_status keeper_give_up(pen_train_keeper *keeper, pen_status take_status) {
    keeper->is_under_way = false;
    if (pen_status_get_code(take_status) == PEN_CANCELLED) return take_status;
    if (keeper->is_last) {
        const pen_status last =
            pen_error(PEN_NO_STORAGE, "the checkpoint of step %" PRIu64 " cannot be written: %s",
                      keeper->taken.step, pen_status_message(take_status));
        pen_status_ignore(take_status, "its message is in the other");
        return last;
    }
    pen_log(PEN_LOG_WARNING,
            "the checkpoint of step %" PRIu64 " is given up: %s; the training "
            "goes on",
            keeper->taken.step, pen_status_message(take_status));
    pen_status_ignore(take_status, "said, and tried again later");
    return PEN_OK;
}

// The thread is through.
static pen_status keeper_end_publishing(pen_train_keeper *keeper) {
    pen_thread_join(keeper->thread);
    keeper->thread = NULL;
    const pen_status published = keeper->published;
    keeper->published = PEN_OK;
    if (published != PEN_OK) return keeper_give_up(keeper, published);
    keeper->is_under_way = false;
    keeper_note_kept(keeper, keeper->taken.step);
    keeper->work_seconds = pen_clock_seconds() - keeper->taken_at;
    return PEN_OK;
}

static pen_status keeper_begin_publishing(pen_train_keeper *keeper, pen_engine *engine) {
    atomic_store(&keeper->is_published, false);
    keeper->engine = engine;
    atomic_store(&keeper->is_publishing, true);
    const pen_status status = pen_thread_create("commit", keeper_publish, keeper, &keeper->thread);
    if (status == PEN_OK) return PEN_OK;
    atomic_store(&keeper->is_publishing, false);
    engine->kind->published(engine, keeper->taken.step, pen_status_get_code(status));
    return keeper_give_up(keeper, status);
}

// ---- which of two folders

// Whether shards may go to the other folder: there is one, and all that write see it.
static bool keeper_may_turn(const pen_train_keeper *keeper, pen_engine *engine) {
    const char *now = pen_checkpoint_store_shard_folder(keeper->store);
    for (uint32_t i = 0; i < 2; i++) {
        const char *folder = pen_checkpoint_store_copy_folder(keeper->store, i);
        if (folder == NULL || folder == now) continue;
        return engine->kind->writes_to == NULL || engine->kind->writes_to(engine, folder);
    }
    return false;
}

// Where a generation is of other processes than the one before, it may see the other folder alone.
static void keeper_choose(pen_train_keeper *keeper, pen_engine *engine) {
    const char *now = pen_checkpoint_store_shard_folder(keeper->store);
    if (engine->kind->writes_to == NULL || engine->kind->writes_to(engine, now)) return;
    if (keeper_may_turn(keeper, engine)) pen_checkpoint_store_turn(keeper->store);
}

// The folder took no shards. Whether the other one is next.
static bool keeper_leave_folder(pen_train_keeper *keeper, pen_engine *engine) {
    const bool turns = keeper_may_turn(keeper, engine);
    pen_checkpoint_store_give_up(keeper->store, turns);
    return turns;
}

// ---- going on

// A checkpoint goes through three states beside the training: shards are written by the workers,
// then the record by a thread of ours, which tells the engine. Without `waits` this looks once
// and returns.
pen_status pen_train_keeper_go_on(pen_train_keeper *keeper, pen_engine *engine, bool waits) {
    for (; keeper->is_under_way; pen_clock_pause(KEEPER_POLL_SECONDS)) {
        if (keeper->thread != NULL) {
            if (waits || atomic_load(&keeper->is_published)) {
                return keeper_end_publishing(keeper);
            }
            return PEN_OK;
        }
        PEN_TRY(engine->kind->poll_saved(engine, waits, &keeper->saved));
        switch (keeper->saved.state) {
        case PEN_ENGINE_SAVE_WRITING:
            break;
        case PEN_ENGINE_SAVE_DURABLE:
            (void)PEN_FAILPOINT("coordinator.shards_durable");
            PEN_TRY(keeper_begin_publishing(keeper, engine));
            break;
        case PEN_ENGINE_SAVE_NONE:
        case PEN_ENGINE_SAVE_FAILED:
            keeper->is_owed = keeper_leave_folder(keeper, engine) && !keeper->is_of_debt;
            return keeper_give_up(keeper, pen_error(PEN_NO_STORAGE, "%s", keeper->saved.failure));
        }
        if (!waits) return PEN_OK;
    }
    return PEN_OK;
}

void pen_train_keeper_abandon(pen_train_keeper *keeper) {
    if (keeper->thread != NULL) {
        pen_status_ignore(keeper_end_publishing(keeper), "the log is read again");
    }
    keeper->is_under_way = false;
}

void pen_train_keeper_destroy(pen_train_keeper *keeper) {
    if (keeper == NULL) return;
    pen_train_keeper_abandon(keeper);
    pen_arena_destroy(keeper->arena);
    pen_memory_free(keeper);
}

// ---- taking and loading

// What a checkpoint costs against what a failure does: Young, Daly.
static double keeper_interval(const pen_train_keeper *keeper) {
    const double least = keeper->work_seconds; // they follow each other, at most
    return fmax(least, sqrt(2 * keeper->cost_seconds * keeper->options.mtbf_seconds));
}

bool pen_train_keeper_is_due(const pen_train_keeper *keeper, uint64_t step, uint64_t epoch,
                             bool ends_epoch) {
    if (keeper->is_owed) return true;
    if (keeper->options.mtbf_seconds > 0) {
        return keeper->cost_seconds < 0 ||
               pen_clock_seconds() - keeper->taken_at >= keeper_interval(keeper);
    }
    return pen_interval_is_due(&keeper->options.every, step, epoch, ends_epoch);
}

static pen_status keeper_begin_save(pen_train_keeper *keeper, pen_engine *engine) {
    keeper->shards = pen_checkpoint_store_shard_folder(keeper->store);
    return engine->kind->save(engine, keeper->taken.step, keeper->shards);
}

// Of two folders the slower one decides how often there may be checkpoints.
static pen_status keeper_await_last(pen_train_keeper *keeper, pen_engine *engine) {
    const double started = pen_clock_seconds();
    const uint64_t step = keeper->taken.step;
    PEN_TRY(pen_train_keeper_go_on(keeper, engine, true));
    const double seconds = pen_clock_seconds() - started;
    if (seconds < KEEPER_SLOW_SECONDS || keeper->is_slow) return PEN_OK;
    keeper->is_slow = true;
    pen_log(PEN_LOG_WARNING,
            "the training stood still for %.1f s, until the checkpoint of step %" PRIu64
            " was in %s%s%s: too slow a disk for checkpoints as often as that (checkpoint.every)",
            seconds, step, keeper->options.folder, keeper->options.mirror == NULL ? "" : " and ",
            keeper->options.mirror == NULL ? "" : keeper->options.mirror);
    return PEN_OK;
}

// A folder that takes nothing is most often found out before anything was copied: then the other
// one gets this checkpoint.
pen_status pen_train_keeper_take(pen_train_keeper *keeper, pen_engine *engine,
                                 const pen_checkpoint *checkpoint) {
    PEN_TRY(keeper_await_last(keeper, engine));
    const double started = pen_clock_seconds();
    keeper->taken = *checkpoint;
    keeper->taken_at = started;
    keeper->is_of_debt = keeper->is_owed;
    keeper->is_owed = false;
    keeper_choose(keeper, engine);
    pen_status status = keeper_begin_save(keeper, engine);
    const bool turns = pen_disk_is_at_fault(status) && keeper_leave_folder(keeper, engine);
    if (turns) {
        pen_log(PEN_LOG_WARNING, "%s", pen_status_message(status));
        pen_status_ignore(status, "said, and tried in the other folder");
        status = keeper_begin_save(keeper, engine);
        if (pen_disk_is_at_fault(status)) (void)keeper_leave_folder(keeper, engine);
    }
    keeper->cost_seconds = pen_clock_seconds() - started;
    keeper->is_under_way = status == PEN_OK;
    return pen_disk_is_at_fault(status) ? keeper_give_up(keeper, status) : status;
}

static pen_status keeper_try_last(pen_train_keeper *keeper, pen_engine *engine,
                                  const pen_checkpoint *checkpoint) {
    keeper->is_last = true;
    pen_status status = pen_train_keeper_take(keeper, engine, checkpoint);
    if (status == PEN_OK) status = pen_train_keeper_go_on(keeper, engine, true);
    keeper->is_last = false;
    return status;
}

// Where one folder takes no shards, the mirror may.
pen_status pen_train_keeper_take_last(pen_train_keeper *keeper, pen_engine *engine,
                                      const pen_checkpoint *checkpoint) {
    PEN_TRY(pen_train_keeper_go_on(keeper, engine, true));
    if (keeper->kept.step == checkpoint->step) return PEN_OK;
    const pen_status status = keeper_try_last(keeper, engine, checkpoint);
    const bool is_of_disk = pen_status_get_code(status) == PEN_NO_STORAGE;
    const char *shards = pen_checkpoint_store_shard_folder(keeper->store);
    if (!is_of_disk || shards == keeper->shards) return status;
    pen_status_ignore(status, "the other folder is tried at once");
    return keeper_try_last(keeper, engine, checkpoint);
}

pen_status pen_train_keeper_load(pen_train_keeper *keeper, pen_engine *engine,
                                 pen_checkpoint *out_checkpoint, bool *out_found) {
    pen_train_keeper_abandon(keeper);
    *out_found = keeper_has(keeper);
    if (!*out_found) return PEN_OK;
    PEN_TRY(pen_checkpoint_store_load_newest(keeper->store, engine->kind->tensors(engine),
                                             out_checkpoint));
    keeper_note_kept(keeper, out_checkpoint->step);
    return PEN_OK;
}

pen_status pen_train_keeper_export(pen_train_keeper *keeper, uint64_t step,
                                   pen_checkpoint_export kind, const char *path) {
    for (uint32_t i = 0; i < pen_checkpoint_store_count(keeper->store); i++) {
        if (pen_checkpoint_store_record(keeper->store, i)->manifest.step != step) continue;
        return pen_checkpoint_store_export(keeper->store, i, kind, path);
    }
    return pen_error(PEN_NOT_FOUND, "there is no checkpoint of step %" PRIu64 " in %s", step,
                     keeper->options.folder);
}

pen_status pen_train_keeper_read_level(const char *folder, const char *mirror, pen_arena *arena,
                                       const char **out_level) {
    const pen_checkpoint_folders folders = {.folder = folder, .mirror = mirror};
    pen_checkpoint_store *store;
    *out_level = "";
    PEN_TRY(pen_checkpoint_store_open(&folders, NULL, arena, &store));
    const pen_commit_record *newest = pen_checkpoint_store_record(store, 0);
    if (newest != NULL) *out_level = newest->manifest.level;
    return PEN_OK;
}

pen_status pen_train_keeper_load_from(const char *folder, const pen_checkpoint_subject *subject,
                                      const pen_tensor_store *tensors,
                                      pen_checkpoint *out_checkpoint) {
    const pen_checkpoint_folders folders = {.folder = folder};
    pen_arena *scratch;
    pen_checkpoint_store *store;
    PEN_TRY(pen_arena_create(&scratch));
    pen_status status = pen_checkpoint_store_open(&folders, subject, scratch, &store);
    if (status == PEN_OK) status = pen_checkpoint_store_load_newest(store, tensors, out_checkpoint);
    pen_arena_destroy(scratch);
    return pen_status_add_context(status, "while resuming from %s", folder);
}
