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

#define CHECKPOINT_FOLDER_LIMIT 4096u // files that a folder of checkpoints may have
#define CHECKPOINT_FOUND_LIMIT 5      // of them are named

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

static pen_status store_open_log(pen_checkpoint_store *store) {
    return pen_commit_log_open(store->disk, store->commit_folder, store->arena, &store->log);
}

static pen_status store_open(pen_checkpoint_store *store) {
    const char *const *names;
    uint32_t count = 0;
    const pen_status status = store->disk->kind->list(
        store->disk, store->folder, CHECKPOINT_FOLDER_LIMIT, store->scratch, &names, &count);
    if (pen_status_get_code(status) == PEN_NOT_FOUND) {
        pen_status_ignore(status, "it is made when something is written");
        return PEN_OK;
    }
    PEN_TRY(status);
    for (uint32_t i = 0; i < count; i++) {
        if (strcmp(names[i], "commit") == 0) return store_open_log(store);
    }
    return PEN_OK;
}

pen_status pen_checkpoint_store_open(pen_disk *disk, const char *folder,
                                     const pen_checkpoint_subject *subject, pen_arena *arena,
                                     pen_checkpoint_store **out_store) {
    pen_checkpoint_store *store;
    PEN_TRY(PEN_NEW(arena, 1, &store));
    store->disk = disk == NULL ? pen_disk_of_machine() : disk;
    store->arena = arena;
    store->subject = subject;
    PEN_TRY(pen_arena_create_within(arena, &store->scratch));
    PEN_TRY(pen_arena_copy_text(arena, folder, strlen(folder), &store->folder));
    PEN_TRY(pen_arena_format(arena, &store->commit_folder, "%s/commit", folder));
    PEN_TRY(pen_arena_format(arena, &store->shard_folder, "%s/shards", folder));
    PEN_TRY(
        pen_status_add_context(store_open(store), "while opening the checkpoints in %s", folder));
    pen_arena_reset(store->scratch);
    *out_store = store;
    return PEN_OK;
}

uint64_t pen_checkpoint_store_generation(const pen_checkpoint_store *store) {
    return store->log == NULL ? 0 : pen_commit_log_generation(store->log);
}

const char *pen_checkpoint_store_job(const pen_checkpoint_store *store) {
    return store->log == NULL ? "" : pen_commit_log_job(store->log);
}

const char *pen_checkpoint_store_shard_folder(const pen_checkpoint_store *store) {
    return store->shard_folder;
}

uint32_t pen_checkpoint_store_count(const pen_checkpoint_store *store) {
    uint32_t count = 0;
    while (store->log != NULL && pen_commit_log_manifest(store->log, count) != NULL) {
        count++;
    }
    return count;
}

const pen_commit_record *pen_checkpoint_store_record(const pen_checkpoint_store *store,
                                                     uint32_t index) {
    return store->log == NULL ? NULL : pen_commit_log_manifest(store->log, index);
}

// ---- taking over

static void store_copy_text(char *to, const char *text) {
    snprintf(to, PEN_COMMIT_TEXT_BYTES, "%s", text);
}

static pen_status store_fence(pen_checkpoint_store *store, uint64_t incarnation, bool begins) {
    PEN_TRY(store->disk->kind->make_folder(store->disk, store->shard_folder));
    if (store->log == NULL) PEN_TRY(store_open_log(store));
    pen_commit_record record = {.kind = PEN_COMMIT_FENCE,
                                .generation = pen_commit_log_generation(store->log) + 1,
                                .coordinator = incarnation,
                                .begins = begins};
    store_copy_text(record.job, pen_commit_log_job(store->log));
    if (record.job[0] == 0) { // the incarnation was drawn, and is nobody else's
        snprintf(record.job, sizeof record.job, "penstock-%016" PRIx64, incarnation);
    }
    PEN_TRY(pen_commit_log_append(store->log, &record));
    store->generation = record.generation;
    store->incarnation = incarnation;
    if (PEN_FAILPOINT("coordinator.fenced")) {
        return pen_error(PEN_IO, "failed as the test wants it, behind the fence");
    }
    return PEN_OK;
}

pen_status pen_checkpoint_store_fence(pen_checkpoint_store *store, uint64_t incarnation,
                                      bool begins, uint64_t *out_generation) {
    PEN_ASSERT(incarnation != 0);
    PEN_TRY(pen_status_add_context(store_fence(store, incarnation, begins),
                                   "while taking over the training in %s", store->folder));
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
    if (store->log != NULL) {
        return pen_error(PEN_NOT_FOUND, "no checkpoint was finished in %s", store->folder);
    }
    const pen_status status = store->disk->kind->list(
        store->disk, store->folder, CHECKPOINT_FOLDER_LIMIT, store->scratch, &names, &count);
    if (pen_status_get_code(status) == PEN_NOT_FOUND) {
        pen_status_ignore(status, "said in other words");
        return pen_error(PEN_NOT_FOUND, "there is no checkpoint in %s: no such folder",
                         store->folder);
    }
    PEN_TRY(status);
    if (count == 0) {
        return pen_error(PEN_NOT_FOUND, "there is no checkpoint in %s: it is empty", store->folder);
    }
    pen_text_init(&text, store->scratch);
    pen_text_add_names(&text, "", names, count, CHECKPOINT_FOUND_LIMIT);
    PEN_TRY(pen_text_finish(&text, &found));
    return pen_error(PEN_NOT_FOUND, "there is no checkpoint in %s, but: %s", store->folder, found);
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

// That it is of this training: model, data, and what decides which examples come when.
static pen_status store_check(pen_checkpoint_store *store, const pen_commit_manifest *manifest) {
    const pen_checkpoint_subject *subject = store->subject;
    if (subject == NULL) return PEN_OK;
    const pen_job_train *train = &subject->job->train;
    PEN_TRY(store_hash_model(store));
    if (strcmp(store->model_hash, manifest->model_hash) != 0) {
        return pen_job_blame(subject->job, &subject->job->model.file,
                             pen_error(PEN_INVALID_INPUT,
                                       "the checkpoint is of another model: its hash is %.32s, "
                                       "that of %s is %s",
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
    PEN_TRY(store_differs(subject, &train->shuffle, "shuffle", manifest->shuffle, train->shuffle));
    return store_differs(subject, &train->drop_last, "drop_last", manifest->drop_last,
                         train->drop_last);
}

static pen_status store_newest(pen_checkpoint_store *store, uint32_t index,
                               pen_checkpoint *out_checkpoint) {
    const pen_commit_record *record = pen_checkpoint_store_record(store, index);
    if (record == NULL && index == 0) return store_find_none(store);
    if (record == NULL) {
        return pen_error(PEN_NOT_FOUND, "there is no checkpoint before that in %s", store->folder);
    }
    const pen_commit_manifest *manifest = &record->manifest;
    PEN_TRY(store_check(store, manifest));
    *out_checkpoint = (pen_checkpoint){
        .step = manifest->step,
        .next = {.epoch = manifest->epoch, .index = manifest->batch_index},
        .rate_steps = manifest->rate_steps,
        .loss = checkpoint_of_bits(manifest->loss),
        .losses_hash = manifest->losses_hash,
        .generation = record->generation,
    };
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
    PEN_TRY(store_hash_model(store));
    pen_commit_record record = {.kind = PEN_COMMIT_MANIFEST,
                                .generation = store->generation,
                                .manifest = {.step = checkpoint->step,
                                             .epoch = checkpoint->next.epoch,
                                             .batch_index = checkpoint->next.index,
                                             .rate_steps = checkpoint->rate_steps,
                                             .loss = checkpoint_to_bits(checkpoint->loss),
                                             .losses_hash = checkpoint->losses_hash,
                                             .seed = (uint64_t)train->seed,
                                             .examples = subject->example_count,
                                             .batch = (uint64_t)train->batch,
                                             .microbatches = (uint64_t)train->microbatches,
                                             .lanes = train->lanes > 1 ? (uint64_t)train->lanes : 0,
                                             .shuffle = train->shuffle,
                                             .drop_last = train->drop_last,
                                             .shard_count = shard_count,
                                             .shards = shards}};
    store_copy_text(record.job, pen_commit_log_job(store->log));
    store_copy_text(record.manifest.model_hash, store->model_hash);
    store_copy_text(record.manifest.build, pen_build_name());
    char consistency[PEN_JOB_CONSISTENCY_BYTES];
    store_copy_text(record.manifest.consistency,
                    pen_job_format_consistency(subject->job, consistency));
    pen_kernel_level level; // that all devices of the process run at
    PEN_TRY(pen_kernel_level_settle(PEN_KERNEL_LEVEL_AUTO, &level));
    store_copy_text(record.manifest.level, pen_kernel_level_names[level]);
    return pen_commit_log_append(store->log, &record);
}

pen_status pen_checkpoint_store_publish(pen_checkpoint_store *store,
                                        const pen_checkpoint *checkpoint,
                                        const pen_shard_summary *shards, uint32_t shard_count) {
    return pen_status_add_context(store_publish(store, checkpoint, shards, shard_count),
                                  "while writing the checkpoint of step %" PRIu64 " to %s",
                                  checkpoint->step, store->folder);
}

pen_status pen_checkpoint_store_prune(pen_checkpoint_store *store, uint32_t keep) {
    PEN_ASSERT(store->log != NULL);
    const pen_shard_place shards = {.disk = store->disk, .folder = store->shard_folder};
    PEN_TRY(pen_status_add_context(pen_commit_log_prune(store->log, &shards, keep),
                                   "while removing old checkpoints from %s", store->folder));
    if (PEN_FAILPOINT("coordinator.pruned")) {
        return pen_error(PEN_IO, "failed as the test wants it, after removing old checkpoints");
    }
    return PEN_OK;
}
