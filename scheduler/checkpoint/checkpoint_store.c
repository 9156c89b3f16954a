#include "scheduler/checkpoint/checkpoint.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/system/build.h"
#include "base/system/failpoint.h"
#include "graph/dump/dump_text.h"
#include "graph/import/import.h"
#include "scheduler/checkpoint/checkpoint_state.h"

#define CHECKPOINT_FOUND_LIMIT 5 // files that are named

static uint64_t checkpoint_to_bits(double number) {
    uint64_t bits;
    memcpy(&bits, &number, sizeof bits);
    return bits;
}

static double checkpoint_of_bits(uint64_t bits) {
    double number;
    memcpy(&number, &bits, sizeof number);
    return number;
}

// Nodes, attributes, names and types, before anything is made of them for a device.
pen_status pen_checkpoint_hash_model(const char *path, const pen_import_options *options,
                                     char out_text[PEN_CHECKPOINT_HASH_BYTES]) {
    pen_model *model;
    const char *text = "";
    PEN_TRY(pen_model_open(path, options, &model));
    const pen_status status = pen_dump_text(model->graph, model->arena, &text);
    // layers are called, in the first line, after the job's file, which may get another name
    const char *end = model->layers != NULL ? strchr(text, '\n') : NULL;
    if (end != NULL) text = end;
    uint64_t hash = 0xcbf29ce484222325u; // FNV-1a over words
    const size_t length = strlen(text);
    for (size_t i = 0; i < length; i += sizeof(uint64_t)) {
        uint64_t word = 0;
        memcpy(&word, text + i, length - i < sizeof word ? length - i : sizeof word);
        hash = (hash ^ word) * 0x100000001b3u;
    }
    snprintf(out_text, PEN_CHECKPOINT_HASH_BYTES, "%016" PRIx64, hash);
    pen_model_destroy(model);
    return status;
}

// ---- opening

static pen_status store_add_copy(pen_checkpoint_store *store, pen_disk *disk, const char *folder) {
    pen_checkpoint_copy *copy = &store->copies[store->copy_count];
    copy->disk = disk == NULL ? pen_disk_of_machine() : disk;
    store->copy_count += 1;
    PEN_TRY(pen_arena_create_within(store->arena, &copy->arena));
    PEN_TRY(pen_arena_copy_text(store->arena, folder, strlen(folder), &copy->folder));
    PEN_TRY(pen_arena_format(store->arena, &copy->commit_folder, "%s/commit", folder));
    return pen_arena_format(store->arena, &copy->shard_folder, "%s/shards", folder);
}

pen_status pen_checkpoint_store_open(const pen_checkpoint_folders *folders,
                                     const pen_checkpoint_subject *subject, pen_arena *arena,
                                     pen_checkpoint_store **out_store) {
    pen_checkpoint_store *store;
    PEN_TRY(PEN_NEW(arena, 1, &store));
    store->arena = arena;
    store->subject = subject;
    PEN_TRY(pen_arena_create_within(arena, &store->scratch));
    PEN_TRY(store_add_copy(store, folders->disk, folders->folder));
    if (folders->mirror != NULL) PEN_TRY(store_add_copy(store, folders->disk, folders->mirror));
    PEN_TRY(pen_status_add_context(pen_checkpoint_copies_do(store, "checkpoints that can be read",
                                                            pen_checkpoint_copy_open, NULL),
                                   "while opening the checkpoints in %s", folders->folder));
    pen_checkpoint_store_leave(store);
    pen_arena_reset(store->scratch);
    *out_store = store;
    return PEN_OK;
}

uint64_t pen_checkpoint_store_generation(const pen_checkpoint_store *store) {
    uint64_t generation = 0;
    for (uint32_t c = 0; c < store->copy_count; c++) {
        const pen_commit_log *log = store->copies[c].log;
        const uint64_t own = log == NULL ? 0 : pen_commit_log_generation(log);
        if (own > generation) generation = own;
    }
    return generation;
}

const char *pen_checkpoint_store_job(const pen_checkpoint_store *store) {
    return store->job;
}

const char *pen_checkpoint_store_shard_folder(const pen_checkpoint_store *store) {
    return store->copies[store->source].shard_folder;
}

const char *pen_checkpoint_store_copy_folder(const pen_checkpoint_store *store, uint32_t copy) {
    return copy < store->copy_count ? store->copies[copy].shard_folder : NULL;
}

uint32_t pen_checkpoint_store_count(const pen_checkpoint_store *store) {
    return store->entry_count;
}

const pen_commit_record *pen_checkpoint_store_record(const pen_checkpoint_store *store,
                                                     uint32_t index) {
    if (index >= store->entry_count) return NULL;
    const pen_checkpoint_entry *entry = &store->entries[index];
    return entry->records[0] != NULL ? entry->records[0] : entry->records[1];
}

const char *pen_checkpoint_store_folder(const pen_checkpoint_store *store, uint32_t index) {
    PEN_ASSERT(index < store->entry_count);
    return store->copies[store->entries[index].records[0] != NULL ? 0 : 1].folder;
}

uint32_t pen_checkpoint_store_copies(const pen_checkpoint_store *store, uint32_t index) {
    if (index >= store->entry_count) return 0;
    const pen_checkpoint_entry *entry = &store->entries[index];
    return (uint32_t)(entry->records[0] != NULL) + (uint32_t)(entry->records[1] != NULL);
}

// ---- taking over

static void store_copy_text(char *to, const char *text) {
    snprintf(to, PEN_COMMIT_TEXT_BYTES, "%s", text);
}

// A generation that could not be fenced was none.
static pen_status store_fence(pen_checkpoint_store *store, uint64_t incarnation, bool begins) {
    const uint64_t generation_before = store->generation, begun_before = store->begun;
    if (store->job[0] == '\0') { // the incarnation was drawn, and is nobody else's
        snprintf(store->job, sizeof store->job, "penstock-%016" PRIx64, incarnation);
    }
    store->incarnation = incarnation;
    store->generation = pen_checkpoint_store_generation(store) + 1;
    if (begins) store->begun = store->generation;
    const pen_status status =
        pen_checkpoint_copies_do(store, "the training", pen_checkpoint_copy_fence, NULL);
    pen_arena_reset(store->scratch);
    if (status != PEN_OK) {
        store->generation = generation_before;
        store->begun = begun_before;
        return status;
    }
    pen_checkpoint_store_leave(store);
    if (PEN_FAILPOINT("coordinator.fenced")) {
        return pen_error(PEN_IO, "failed as the test wants it, behind the fence");
    }
    return PEN_OK;
}

pen_status pen_checkpoint_store_fence(pen_checkpoint_store *store, uint64_t incarnation,
                                      bool begins, uint64_t *out_generation) {
    PEN_ASSERT(incarnation != 0);
    PEN_TRY(pen_status_add_context(store_fence(store, incarnation, begins),
                                   "while taking over the training in %s",
                                   store->copies[0].folder));
    *out_generation = store->generation;
    return PEN_OK;
}

// ---- what there is

// That there is no checkpoint, and what there is instead.
static pen_status store_find_none(pen_checkpoint_store *store) {
    const char *const *names;
    uint32_t count = 0;
    pen_text text;
    const char *found;
    const pen_checkpoint_copy *copy = &store->copies[0];
    if (copy->log != NULL || store->copies[1].log != NULL) {
        return pen_error(PEN_NOT_FOUND, "no checkpoint was finished in %s", copy->folder);
    }
    const pen_status status = copy->disk->kind->list(
        copy->disk, copy->folder, PEN_CHECKPOINT_FOLDER_LIMIT, store->scratch, &names, &count);
    if (pen_status_get_code(status) == PEN_NOT_FOUND) {
        pen_status_ignore(status, "said in other words");
        return pen_error(PEN_NOT_FOUND, "there is no checkpoint in %s: no such folder",
                         copy->folder);
    }
    PEN_TRY(status);
    if (count == 0) {
        return pen_error(PEN_NOT_FOUND, "there is no checkpoint in %s: it is empty", copy->folder);
    }
    pen_text_init(&text, store->scratch);
    pen_text_add_names(&text, "", names, count, CHECKPOINT_FOUND_LIMIT);
    PEN_TRY(pen_text_finish(&text, &found));
    return pen_error(PEN_NOT_FOUND, "there is no checkpoint in %s, but: %s", copy->folder, found);
}

static pen_status store_differs(const pen_checkpoint_subject *subject, const void *field,
                                const char *what, uint64_t found, uint64_t expected) {
    if (found == expected) return PEN_OK;
    const pen_status status =
        pen_error(PEN_INVALID_INPUT,
                  "the checkpoint is of a training with %s %" PRIu64 ", the job has %" PRIu64, what,
                  found, expected);
    return field == NULL ? status : pen_job_blame(subject->job, field, status);
}

static pen_status store_hash_model(pen_checkpoint_store *store) {
    if (store->model_hash[0] != 0) return PEN_OK;
    const pen_import_options options = pen_job_import_options(store->subject->job);
    return pen_checkpoint_hash_model(store->subject->job->model.file, &options, store->model_hash);
}

static pen_status store_check_consistency(const pen_checkpoint_subject *subject,
                                          const pen_commit_manifest *manifest) {
    char text[PEN_JOB_CONSISTENCY_BYTES];
    const char *expected = pen_job_format_consistency(subject->job, text);
    const char *found = manifest->consistency;
    if (strcmp(found, expected) == 0) return PEN_OK;
    return pen_job_blame(subject->job, &subject->job->train.consistency,
                         pen_error(PEN_INVALID_INPUT,
                                   "the checkpoint is of a training with consistency '%s', the "
                                   "job has '%s'",
                                   found[0] == 0 ? "sync" : found,
                                   expected[0] == 0 ? "sync" : expected));
}

// Losses of another precision would follow.
static pen_status store_check_precision(const pen_checkpoint_subject *subject,
                                        const pen_commit_manifest *manifest) {
    const char *expected = pen_precision_names[subject->job->numerics.precision];
    const char *found = manifest->precision;
    if (found[0] == 0) found = pen_precision_names[PEN_PRECISION_FLOAT32];
    if (strcmp(found, expected) == 0) return PEN_OK;
    return pen_job_blame(subject->job, &subject->job->numerics.precision,
                         pen_error(PEN_INVALID_INPUT,
                                   "the checkpoint is of a training with precision '%s', the job "
                                   "has '%s'; `numerics: {precision: %s}` goes on with it",
                                   found, expected, found));
}

// That it is of this training: model, data, precision, and what decides which examples come when.
static pen_status store_check(pen_checkpoint_store *store, const pen_commit_manifest *manifest) {
    const pen_checkpoint_subject *subject = store->subject;
    if (subject == NULL) return PEN_OK;
    const pen_job_train *train = &subject->job->train;
    PEN_TRY(store_hash_model(store));
    if (strcmp(store->model_hash, manifest->model_hash) != 0) {
        return pen_job_blame(subject->job, &subject->job->model.file,
                             pen_error(PEN_INVALID_INPUT,
                                       "the checkpoint is of another model: its hash is %.32s, "
                                       "that of %s is %s; `penstock checkpoint export` writes its "
                                       "parameters, with which a new training may begin as "
                                       "model: {weights: FILE}",
                                       manifest->model_hash, subject->job->model.file,
                                       store->model_hash));
    }
    PEN_TRY(store_differs(subject, NULL, "examples:", manifest->examples, subject->example_count));
    PEN_TRY(store_differs(subject, &train->seed, "seed", manifest->seed, (uint64_t)train->seed));
    PEN_TRY(
        store_differs(subject, &train->batch, "batch", manifest->batch, (uint64_t)train->batch));
    PEN_TRY(store_differs(subject, &train->microbatches, "microbatches", manifest->microbatches,
                          (uint64_t)train->microbatches));
    PEN_TRY(store_differs(subject, &train->lanes, "lanes",
                          manifest->lanes == 0 ? 1 : manifest->lanes, (uint64_t)train->lanes));
    PEN_TRY(store_check_consistency(subject, manifest));
    PEN_TRY(store_check_precision(subject, manifest));
    PEN_TRY(store_differs(subject, &train->shuffle, "shuffle", manifest->shuffle, train->shuffle));
    return store_differs(subject, &train->drop_last, "drop_last", manifest->drop_last,
                         train->drop_last);
}

// What the record says, once it is known to be of this training.
static pen_status store_newest(pen_checkpoint_store *store, uint32_t index,
                               pen_checkpoint *out_checkpoint) {
    const pen_commit_record *record = pen_checkpoint_store_record(store, index);
    if (record == NULL && index == 0) return store_find_none(store);
    if (record == NULL) {
        return pen_error(PEN_NOT_FOUND, "there is no checkpoint before that in %s",
                         store->copies[0].folder);
    }
    const pen_commit_manifest *manifest = &record->manifest;
    PEN_TRY(store_check(store, manifest));
    pen_metric metric = PEN_METRIC_LOSS;
    if (manifest->best_metric[0] != 0) metric = pen_metric_find(manifest->best_metric);
    if (metric == PEN_METRIC_COUNT) {
        return pen_error(PEN_UNSUPPORTED,
                         "the checkpoint's evaluations were compared by %s, which is no metric "
                         "here",
                         manifest->best_metric);
    }
    *out_checkpoint = (pen_checkpoint){
        .step = manifest->step,
        .next = {.epoch = manifest->epoch, .index = manifest->batch_index},
        .rate_steps = manifest->rate_steps,
        .loss = checkpoint_of_bits(manifest->loss),
        .rate = checkpoint_of_bits(manifest->rate),
        .scale = {.scale = checkpoint_of_bits(manifest->loss_scale),
                  .good = manifest->scale_good,
                  .skipped = manifest->scale_skipped,
                  .bad = manifest->scale_bad},
        .losses_hash = manifest->losses_hash,
        .evaluated = {.count = manifest->evaluations,
                      .best_step = manifest->best_step,
                      .best = checkpoint_of_bits(manifest->best),
                      .since_best = manifest->since_best,
                      .keeps_best = manifest->keeps_best,
                      .metric = metric,
                      .plateau = {.rate = checkpoint_of_bits(manifest->plateau_rate),
                                  .best = checkpoint_of_bits(manifest->plateau_best),
                                  .bad = manifest->plateau_bad,
                                  .cooldown = manifest->plateau_cooldown}},
        .changed_step = manifest->changed_step,
        .generation = record->generation,
    };
    memcpy(out_checkpoint->arithmetic, manifest->arithmetic, sizeof manifest->arithmetic);
    return PEN_OK;
}

pen_status pen_checkpoint_store_newest(pen_checkpoint_store *store, uint32_t index,
                                       pen_checkpoint *out_checkpoint) {
    const pen_status status = store_newest(store, index, out_checkpoint);
    pen_arena_reset(store->scratch);
    return status;
}

// A damaged checkpoint falls back to the one before, with a warning; when none is left, the first
// error is told. Errors of another kind, such as a model that does not fit, end the search.
pen_status pen_checkpoint_store_load_newest(pen_checkpoint_store *store,
                                            const pen_tensor_store *tensors,
                                            pen_checkpoint *out_checkpoint) {
    pen_status damaged = PEN_OK;
    for (uint32_t index = 0;; index++) {
        pen_checkpoint checkpoint = {0};
        pen_status status = pen_checkpoint_store_newest(store, index, &checkpoint);
        if (damaged != PEN_OK && pen_status_get_code(status) == PEN_NOT_FOUND) {
            pen_status_ignore(status, "why there was none is said already");
            return damaged;
        }
        if (status != PEN_OK) return pen_status_join(status, damaged);
        status = pen_checkpoint_store_load(store, index, tensors);
        const pen_status_code code = pen_status_get_code(status);
        if (code != PEN_CORRUPT && code != PEN_IO && code != PEN_NO_STORAGE) {
            pen_status_ignore(damaged, "an older one is whole, or something else is wrong");
            if (status == PEN_OK) *out_checkpoint = checkpoint;
            return status;
        }
        pen_log(PEN_LOG_WARNING,
                "the checkpoint of step %" PRIu64 " cannot be used, the one before is tried: %s",
                checkpoint.step, pen_status_message(status));
        damaged = pen_status_join(damaged, status);
    }
}

// ---- writing

// The record holds all that has to be equal to go on with the same numbers: where the data stand,
// the seed, the batch, the model's hash.
static pen_status store_publish(pen_checkpoint_store *store, const pen_checkpoint *checkpoint,
                                const pen_shard_summary *shards, uint32_t shard_count) {
    const pen_checkpoint_subject *subject = store->subject;
    PEN_ASSERT(store->generation != 0 && subject != NULL);
    const pen_job_train *train = &subject->job->train;
    const pen_checkpoint_evaluated *evaluated = &checkpoint->evaluated;
    const pen_plateau_state *plateau = &evaluated->plateau;
    const pen_loss_scale *scale = &checkpoint->scale;
    PEN_TRY(store_hash_model(store));
    pen_commit_record record = {.kind = PEN_COMMIT_MANIFEST,
                                .generation = store->generation,
                                .manifest = {.step = checkpoint->step,
                                             .epoch = checkpoint->next.epoch,
                                             .batch_index = checkpoint->next.index,
                                             .rate_steps = checkpoint->rate_steps,
                                             .loss = checkpoint_to_bits(checkpoint->loss),
                                             .rate = checkpoint_to_bits(checkpoint->rate),
                                             .loss_scale = checkpoint_to_bits(scale->scale),
                                             .scale_good = scale->good,
                                             .scale_skipped = scale->skipped,
                                             .scale_bad = scale->bad,
                                             .losses_hash = checkpoint->losses_hash,
                                             .evaluations = evaluated->count,
                                             .best_step = evaluated->best_step,
                                             .best = checkpoint_to_bits(evaluated->best),
                                             .since_best = evaluated->since_best,
                                             .keeps_best = evaluated->keeps_best,
                                             .plateau_rate = checkpoint_to_bits(plateau->rate),
                                             .plateau_best = checkpoint_to_bits(plateau->best),
                                             .plateau_bad = plateau->bad,
                                             .plateau_cooldown = plateau->cooldown,
                                             .seed = (uint64_t)train->seed,
                                             .examples = subject->example_count,
                                             .batch = (uint64_t)train->batch,
                                             .microbatches = (uint64_t)train->microbatches,
                                             .lanes = train->lanes > 1 ? (uint64_t)train->lanes : 0,
                                             .shuffle = train->shuffle,
                                             .drop_last = train->drop_last,
                                             .shard_count = shard_count,
                                             .shards = shards}};
    store_copy_text(record.job, store->job);
    store_copy_text(record.manifest.model_hash, store->model_hash);
    store_copy_text(record.manifest.build, pen_build_name());
    if (evaluated->metric != PEN_METRIC_LOSS) {
        store_copy_text(record.manifest.best_metric, pen_metric_names[evaluated->metric]);
    }
    char consistency[PEN_JOB_CONSISTENCY_BYTES];
    store_copy_text(record.manifest.consistency,
                    pen_job_format_consistency(subject->job, consistency));
    pen_kernel_level level; // that all devices of the process run at
    PEN_TRY(pen_kernel_level_settle(PEN_KERNEL_LEVEL_AUTO, &level));
    store_copy_text(record.manifest.level, pen_kernel_level_names[level]);
    memcpy(record.manifest.arithmetic, checkpoint->arithmetic, sizeof checkpoint->arithmetic);
    record.manifest.changed_step = checkpoint->changed_step;
    if (subject->job->numerics.precision != PEN_PRECISION_FLOAT32) {
        store_copy_text(record.manifest.precision,
                        pen_precision_names[subject->job->numerics.precision]);
    }
    pen_checkpoint_publication publication = {.record = record};
    char what[64];
    snprintf(what, sizeof what, "the checkpoint of step %" PRIu64, checkpoint->step);
    pen_status status = pen_checkpoint_copies_carry(store, &publication);
    if (status == PEN_OK) {
        status = pen_checkpoint_copies_do(store, what, pen_checkpoint_copy_publish, &publication);
    }
    pen_status_ignore(publication.failure, "publishing failed before it was asked for");
    pen_arena_reset(store->scratch);
    if (status == PEN_OK) pen_checkpoint_store_leave(store);
    return status;
}

pen_status pen_checkpoint_store_publish(pen_checkpoint_store *store,
                                        const pen_checkpoint *checkpoint,
                                        const pen_shard_summary *shards, uint32_t shard_count) {
    return pen_status_add_context(store_publish(store, checkpoint, shards, shard_count),
                                  "while writing the checkpoint of step %" PRIu64 " to %s",
                                  checkpoint->step, store->copies[0].folder);
}

void pen_checkpoint_store_turn(pen_checkpoint_store *store) {
    if (store->copy_count > 1) store->source = 1 - store->source;
}

// It stays where it is as long as it can.
void pen_checkpoint_store_leave(pen_checkpoint_store *store) {
    const uint32_t other = store->copy_count - 1 - store->source; // itself, where there is one
    if (store->copies[store->source].is_away && !store->copies[other].is_away) {
        store->source = other;
    }
}

// The folder is opened and fenced anew before anything is published there.
void pen_checkpoint_store_give_up(pen_checkpoint_store *store, bool turns) {
    pen_checkpoint_copy *copy = &store->copies[store->source];
    if (store->copy_count == 1) return;
    copy->is_away = true;
    copy->fenced = 0;
    if (!turns) return;
    pen_checkpoint_store_turn(store);
    pen_log(PEN_LOG_WARNING, "%s takes no shards: %s is written to first", copy->folder,
            store->copies[store->source].folder);
}

// Each folder by itself, that which is away left out: what it has is all that it will have.
pen_status pen_checkpoint_store_prune(pen_checkpoint_store *store, uint32_t keep) {
    pen_status status = PEN_OK;
    for (uint32_t c = 0; c < store->copy_count; c++) {
        pen_checkpoint_copy *copy = &store->copies[c];
        const pen_shard_place shards = pen_checkpoint_copy_place(copy);
        if (copy->log == NULL || copy->fenced != store->generation) continue;
        status = pen_status_join(
            status, pen_status_add_context(pen_commit_log_prune(copy->log, &shards, keep),
                                           "while removing old checkpoints from %s", copy->folder));
    }
    PEN_TRY(pen_status_join(status, pen_checkpoint_copies_list(store)));
    if (PEN_FAILPOINT("coordinator.pruned")) {
        return pen_error(PEN_IO, "failed as the test wants it, after removing old checkpoints");
    }
    return PEN_OK;
}
