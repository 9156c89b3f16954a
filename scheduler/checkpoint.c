#include "scheduler/checkpoint.h"

#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/option.h"
#include "scheduler/checkpoint_state.h"
#include "scheduler/parameter_file.h"
#include "scheduler/training/safetensors.h"

#define CHECKPOINT_HASH_START 0xcbf29ce484222325u
#define CHECKPOINT_HASH_FACTOR 0x100000001b3u // FNV-1a
#define CHECKPOINT_HASH_TEXT_BYTES 17
#define CHECKPOINT_COUNT_LIMIT 9e15 // whole numbers are exact as doubles

// The manifest as it stands in the file.
typedef struct checkpoint_manifest {
    int64_t version;
    int64_t step;
    int64_t epoch;
    int64_t batch_index;
    int64_t rate_steps;
    double loss;
    int64_t seed;
    int64_t examples;
    int64_t batch;
    int64_t microbatches;
    bool shuffle;
    bool drop_last;
    const char *model_hash;
    const char *tensors_hash;
} checkpoint_manifest;

#define CHECKPOINT_INTEGER(name, member, least, text)                                              \
    {                                                                                              \
        .key = (name), .kind = PEN_OPTION_INTEGER,                                                 \
        .offset = offsetof(checkpoint_manifest, member), .is_required = true,                      \
        .minimum = PEN_OPTION_FROM(least), .maximum = PEN_OPTION_TO(CHECKPOINT_COUNT_LIMIT),       \
        .help = (text)                                                                             \
    }
#define CHECKPOINT_OTHER(name, member, type, text)                                                 \
    {                                                                                              \
        .key = (name), .kind = (type), .offset = offsetof(checkpoint_manifest, member),            \
        .is_required = true, .help = (text)                                                        \
    }

static const pen_option_field checkpoint_fields[] = {
    {.key = "version",
     .kind = PEN_OPTION_INTEGER,
     .offset = offsetof(checkpoint_manifest, version),
     .is_required = true,
     .minimum = PEN_OPTION_FROM(1),
     .maximum = PEN_OPTION_TO(1),
     .help = "of this format"},
    CHECKPOINT_INTEGER("step", step, 1, "steps that were done"),
    CHECKPOINT_INTEGER("epoch", epoch, 0, "of the batch to come, from 0"),
    CHECKPOINT_INTEGER("batch_index", batch_index, 0, "of that batch in its epoch"),
    CHECKPOINT_INTEGER("rate_steps", rate_steps, 1, "over which the learning rate runs its course"),
    CHECKPOINT_OTHER("loss", loss, PEN_OPTION_NUMBER, "of the last step"),
    CHECKPOINT_INTEGER("seed", seed, 0, "of the training"),
    CHECKPOINT_INTEGER("examples", examples, 1, "in the training data"),
    CHECKPOINT_INTEGER("batch", batch, 1, "examples a step"),
    CHECKPOINT_INTEGER("microbatches", microbatches, 1, "a step"),
    CHECKPOINT_OTHER("shuffle", shuffle, PEN_OPTION_BOOL, "whether the data is shuffled"),
    CHECKPOINT_OTHER("drop_last", drop_last, PEN_OPTION_BOOL, "whether short batches are left out"),
    CHECKPOINT_OTHER("model_hash", model_hash, PEN_OPTION_TEXT, "of the model as it was read"),
    CHECKPOINT_OTHER("tensors_hash", tensors_hash, PEN_OPTION_TEXT, "of all tensors, by name"),
};

static const pen_option_table checkpoint_table = {
    .help = "Where a training stood.",
    .size = sizeof(checkpoint_manifest),
    PEN_OPTION_FIELDS(checkpoint_fields),
};

static uint64_t checkpoint_hash(uint64_t hash, const void *bytes, uint64_t count) {
    const unsigned char *at = bytes;
    for (uint64_t i = 0; i < count; i += sizeof(uint64_t)) {
        uint64_t word = 0;
        memcpy(&word, at + i, count - i < sizeof word ? count - i : sizeof word);
        hash = (hash ^ word) * CHECKPOINT_HASH_FACTOR;
    }
    return hash;
}

static const char *checkpoint_format_hash(uint64_t hash, char *text) {
    snprintf(text, CHECKPOINT_HASH_TEXT_BYTES, "%016" PRIx64, hash);
    return text;
}

static pen_status checkpoint_tensors_path(const char *folder, uint64_t step, pen_arena *arena,
                                          const char **out_path) {
    return pen_arena_format(arena, out_path, "%s/step-%" PRIu64 ".safetensors", folder, step);
}

static pen_status checkpoint_manifest_path(const char *folder, pen_arena *arena,
                                           const char **out_path) {
    return pen_arena_format(arena, out_path, "%s/checkpoint.yaml", folder);
}

// Of the bytes in the file, in its order.
static pen_status checkpoint_hash_tensors(const char *path, char *out_text) {
    pen_safetensors *file;
    PEN_TRY(pen_safetensors_open(path, &file));
    uint64_t hash = CHECKPOINT_HASH_START;
    for (uint32_t i = 0; i < pen_safetensors_count(file); i++) {
        const pen_safetensors_entry *entry = pen_safetensors_at(file, i);
        hash = checkpoint_hash(hash, entry->name, strlen(entry->name));
        hash = checkpoint_hash(hash, entry->data, pen_tensor_type_bytes(&entry->type));
    }
    pen_safetensors_close(file);
    checkpoint_format_hash(hash, out_text);
    return PEN_OK;
}

// ---- writing

static pen_status checkpoint_write_manifest(const char *path, const pen_checkpoint_subject *subject,
                                            const pen_checkpoint *checkpoint,
                                            const char *tensors_hash) {
    const pen_job_train *train = &subject->job->train;
    char model_hash[CHECKPOINT_HASH_TEXT_BYTES];
    PEN_TRY(pen_checkpoint_hash_model(subject->job->model.file, model_hash));
    pen_file *file;
    PEN_TRY(pen_file_create_beside(path, &file));
    fprintf(pen_file_stream(file),
            "# Where a training stands; `penstock train --resume` goes on from it.\n"
            "version: 1\nstep: %" PRIu64 "\nepoch: %" PRIu64 "\nbatch_index: %" PRIu64
            "\nrate_steps: %" PRIu64 "\nloss: %.17g\nseed: %" PRId64 "\nexamples: %" PRIu64
            "\nbatch: %" PRId64 "\nmicrobatches: %" PRId64 "\nshuffle: %s\ndrop_last: %s\n"
            "model_hash: \"%s\"\ntensors_hash: \"%s\"\n",
            checkpoint->step, checkpoint->next.epoch, checkpoint->next.index,
            checkpoint->rate_steps, checkpoint->loss, train->seed, subject->example_count,
            train->batch, train->microbatches, train->shuffle ? "true" : "false",
            train->drop_last ? "true" : "false", model_hash, tensors_hash);
    const pen_status status = pen_file_commit(file);
    return pen_status_join(status, pen_file_close(file));
}

static pen_status checkpoint_save(const char *folder, const pen_checkpoint_subject *subject,
                                  const pen_checkpoint *checkpoint, pen_arena *scratch) {
    const char *manifest, *tensors, *old;
    char hash[CHECKPOINT_HASH_TEXT_BYTES];
    PEN_TRY(pen_folder_create(folder, scratch));
    const uint64_t before = pen_checkpoint_find(folder);
    PEN_TRY(checkpoint_manifest_path(folder, scratch, &manifest));
    PEN_TRY(checkpoint_tensors_path(folder, checkpoint->step, scratch, &tensors));
    PEN_TRY(checkpoint_tensors_path(folder, before, scratch, &old));
    PEN_TRY(pen_tensor_file_save(tensors, subject->store, subject->store->count));
    PEN_TRY(checkpoint_hash_tensors(tensors, hash));
    PEN_TRY(checkpoint_write_manifest(manifest, subject, checkpoint, hash));
    if (before != 0 && before != checkpoint->step) unlink(old);
    return PEN_OK;
}

pen_status pen_checkpoint_save(const char *folder, const pen_checkpoint_subject *subject,
                               const pen_checkpoint *checkpoint) {
    pen_arena *scratch;
    PEN_TRY(pen_arena_create(&scratch));
    const pen_status status = checkpoint_save(folder, subject, checkpoint, scratch);
    pen_arena_destroy(scratch);
    return pen_status_add_context(status, "while writing the checkpoint of step %" PRIu64 " to %s",
                                  checkpoint->step, folder);
}

// ---- reading

static pen_status checkpoint_read(const char *folder, pen_arena *arena,
                                  checkpoint_manifest *out_manifest) {
    const char *path;
    const pen_yaml_node *root;
    const pen_option_source *source;
    PEN_TRY(checkpoint_manifest_path(folder, arena, &path));
    PEN_TRY(pen_yaml_read(path, arena, &root));
    const pen_option_settings settings = {.file = path};
    *out_manifest = (checkpoint_manifest){0};
    return pen_option_read(&checkpoint_table, root, &settings, arena, out_manifest, &source);
}

uint64_t pen_checkpoint_find(const char *folder) {
    pen_arena *scratch;
    pen_status status = pen_arena_create(&scratch);
    if (status != PEN_OK) {
        pen_status_ignore(status, "what cannot be read is none");
        return 0;
    }
    checkpoint_manifest manifest = {0};
    status = checkpoint_read(folder, scratch, &manifest);
    const uint64_t step = status == PEN_OK ? (uint64_t)manifest.step : 0;
    pen_status_ignore(status, "what cannot be read is none");
    pen_arena_destroy(scratch);
    return step;
}

static pen_status checkpoint_differs(const pen_checkpoint_subject *subject, const void *field,
                                     const char *what, int64_t found, int64_t expected) {
    if (found == expected) return PEN_OK;
    const pen_status status =
        pen_error(PEN_INVALID_INPUT,
                  "the checkpoint is of a training with %s %" PRId64 ", the job has %" PRId64, what,
                  found, expected);
    return field == NULL ? status : pen_job_blame(subject->job, field, status);
}

// That it is of this training: model, data, and what decides which examples come when.
static pen_status checkpoint_check(const checkpoint_manifest *manifest,
                                   const pen_checkpoint_subject *subject) {
    const pen_job_train *train = &subject->job->train;
    char hash[CHECKPOINT_HASH_TEXT_BYTES];
    PEN_TRY(pen_checkpoint_hash_model(subject->job->model.file, hash));
    if (strcmp(hash, manifest->model_hash) != 0) {
        return pen_job_blame(subject->job, &subject->job->model.file,
                             pen_error(PEN_INVALID_INPUT,
                                       "the checkpoint is of another model: its hash is %.32s, "
                                       "that of %s is %s",
                                       manifest->model_hash, subject->job->model.file, hash));
    }
    PEN_TRY(checkpoint_differs(subject, NULL, "examples:", manifest->examples,
                               (int64_t)subject->example_count));
    PEN_TRY(checkpoint_differs(subject, &train->seed, "seed", manifest->seed, train->seed));
    PEN_TRY(checkpoint_differs(subject, &train->batch, "batch", manifest->batch, train->batch));
    PEN_TRY(checkpoint_differs(subject, &train->microbatches, "microbatches",
                               manifest->microbatches, train->microbatches));
    PEN_TRY(
        checkpoint_differs(subject, &train->shuffle, "shuffle", manifest->shuffle, train->shuffle));
    return checkpoint_differs(subject, &train->drop_last, "drop_last", manifest->drop_last,
                              train->drop_last);
}

static pen_status checkpoint_load(const char *folder, const pen_checkpoint_subject *subject,
                                  pen_arena *scratch, pen_checkpoint *out_checkpoint) {
    checkpoint_manifest manifest;
    PEN_TRY(checkpoint_read(folder, scratch, &manifest));
    PEN_TRY(checkpoint_check(&manifest, subject));
    const char *tensors;
    char hash[CHECKPOINT_HASH_TEXT_BYTES];
    PEN_TRY(checkpoint_tensors_path(folder, (uint64_t)manifest.step, scratch, &tensors));
    PEN_TRY(checkpoint_hash_tensors(tensors, hash));
    if (strcmp(hash, manifest.tensors_hash) != 0) {
        return pen_error(PEN_CORRUPT, "%s: the tensors have hash %s, the manifest says %.32s",
                         tensors, hash, manifest.tensors_hash);
    }
    PEN_TRY(pen_tensor_file_load(tensors, subject->store, subject->store->count));
    *out_checkpoint = (pen_checkpoint){
        .step = (uint64_t)manifest.step,
        .next = {.epoch = (uint64_t)manifest.epoch, .index = (uint64_t)manifest.batch_index},
        .rate_steps = (uint64_t)manifest.rate_steps,
        .loss = manifest.loss};
    return PEN_OK;
}

pen_status pen_checkpoint_load(const char *folder, const pen_checkpoint_subject *subject,
                               pen_checkpoint *out_checkpoint) {
    pen_arena *scratch;
    PEN_TRY(pen_arena_create(&scratch));
    const pen_status status = checkpoint_load(folder, subject, scratch, out_checkpoint);
    pen_arena_destroy(scratch);
    return pen_status_add_context(status, "while resuming from %s", folder);
}
