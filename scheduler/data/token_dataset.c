// Sequences of tokens, for models that predict what comes next.
//
// Of n tokens and with sequences of S tokens that begin every D-th token, example i has
//
//   input   t[i D]     …  t[i D + S - 1]
//   labels  t[i D + 1] …  t[i D + S]       the token that follows each
//
// so there are floor((n - 1 - S) / D) + 1 examples, and what is left over at the end is not used.
//
// With a mask, both are of t[i D] … t[i D + S - 1], as token_mask.h says, and the token behind
// these is not needed.

#include <inttypes.h>
#include <string.h>

#include "base/memory.h"
#include "base/system/file.h"
#include "scheduler/data/dataset_format.h"
#include "scheduler/data/token_source.h"

typedef struct token_state {
    pen_mapping file;
    void *inflated;
    pen_token_source source;
    uint64_t sequence;
    uint64_t stride;
    uint64_t read_count; // of an example: sequence, and without a mask the token behind it
    int64_t *scratch;    // [read_count]
    bool is_masked;
    pen_token_mask mask;
    uint64_t seed;
} token_state;

// Options that make no sense for tokens are refused; overlapping sequences with holdout would test
// on what was trained.
static pen_status token_check_options(const pen_dataset_options *options) {
    const uint64_t limit = PEN_SEQUENCE_LIMIT;
    if (options->path == NULL) {
        return pen_error(PEN_INVALID_INPUT, "format %s needs a file", options->format);
    }
    if (options->sequence == 0 || options->sequence > limit) {
        return pen_error(PEN_INVALID_INPUT,
                         "sequences of %" PRIu64 " tokens, expected 1 to %" PRIu64,
                         options->sequence, limit);
    }
    if (options->scale != 0 || options->mean_count > 0 || options->deviation_count > 0) {
        return pen_error(PEN_INVALID_INPUT,
                         "tokens are whole numbers that stand for something: they cannot be "
                         "normalized");
    }
    if (options->holdout > 0 && options->stride > 0 && options->stride < options->sequence) {
        return pen_error(PEN_INVALID_INPUT,
                         "a stride of %" PRIu64 " makes sequences of %" PRIu64
                         " tokens overlap, so that what is held out would be trained on too; with "
                         "holdout the stride is at least the sequence",
                         options->stride, options->sequence);
    }
    return PEN_OK;
}

static pen_status token_set_mask(pen_dataset *dataset, const pen_dataset_options *options,
                                 token_state *state) {
    const pen_token_mask *mask = options->mask;
    int64_t *keep;
    state->read_count = state->sequence + (mask == NULL);
    if (mask == NULL) return PEN_OK;
    if (mask->token < 0 || mask->token >= mask->vocabulary || mask->vocabulary > UINT32_MAX) {
        return pen_error(PEN_INVALID_INPUT,
                         "mask: found token %" PRIi64 ", expected one below vocabulary, %" PRIi64,
                         mask->token, mask->vocabulary);
    }
    PEN_TRY(PEN_NEW(dataset->arena, mask->keep_count, &keep));
    if (mask->keep_count > 0) memcpy(keep, mask->keep, mask->keep_count * sizeof *keep);
    state->is_masked = true;
    state->mask = *mask;
    state->mask.keep = keep;
    state->seed = options->seed;
    return PEN_OK;
}

static pen_status token_add_fields(pen_dataset *dataset, const pen_dataset_options *options,
                                   token_state *state) {
    pen_dataset_field *input, *labels;
    PEN_TRY(pen_dataset_add_single_input(dataset, options, &input));
    input->element = PEN_DATASET_INT64;
    input->rank = 1;
    input->shape[0] = (int64_t)options->sequence;
    PEN_TRY(pen_dataset_field_measure(input, options->path));
    PEN_TRY(PEN_NEW(dataset->arena, 1, &labels));
    *labels = *input;
    labels->name = "labels";
    pen_dataset_set_labels(dataset, labels, state->source.path);
    return PEN_OK;
}

// Opens the file; `is_text` says how it is read.
static pen_status token_open(pen_dataset *dataset, const pen_dataset_options *options,
                             bool is_text) {
    token_state *state;
    const char *path;
    PEN_TRY(token_check_options(options));
    PEN_TRY(PEN_NEW(dataset->arena, 1, &state));
    dataset->state = state;
    PEN_TRY(pen_arena_copy_text(dataset->arena, options->path, strlen(options->path), &path));
    PEN_TRY(pen_mapping_open(path, &state->file));
    const uint8_t *bytes = state->file.bytes;
    const size_t size = state->file.length;
    if (is_text) {
        PEN_TRY(pen_token_source_read_text(bytes, size, path, &state->source, &state->inflated));
        if (state->inflated != NULL) dataset->info.held_bytes = state->source.count;
    } else {
        PEN_TRY(pen_token_source_read_tokens(bytes, size, path, options->token_element,
                                             &state->source));
    }
    state->sequence = options->sequence;
    state->stride = options->stride == 0 ? options->sequence : options->stride;
    PEN_TRY(token_set_mask(dataset, options, state));
    if (state->source.count < state->read_count) {
        return pen_error(PEN_INVALID_INPUT,
                         "'%s' has %" PRIu64 " tokens, expected at least %" PRIu64
                         ": a sequence of %" PRIu64 "%s",
                         path, state->source.count, state->read_count, state->sequence,
                         state->is_masked ? "" : " and the token behind it");
    }
    PEN_TRY(PEN_NEW(dataset->arena, state->read_count, &state->scratch));
    dataset->info.example_count = (state->source.count - state->read_count) / state->stride + 1;
    return token_add_fields(dataset, options, state);
}

static pen_status token_open_text(pen_dataset *dataset, const pen_dataset_options *options) {
    return token_open(dataset, options, true);
}

static pen_status token_open_tokens(pen_dataset *dataset, const pen_dataset_options *options) {
    return token_open(dataset, options, false);
}

// An evaluation is of epoch 0, so that it masks the same tokens each time.
static pen_status token_read(pen_dataset *dataset, const uint64_t *indices, uint64_t count,
                             void *const *out_inputs, void *const *out_labels) {
    const token_state *state = dataset->state;
    const uint64_t sequence = state->sequence;
    int64_t *inputs = out_inputs[0];
    int64_t *labels = out_labels[0];
    for (uint64_t i = 0; i < count; i++) {
        PEN_TRY(pen_token_source_copy(&state->source, indices[i] * state->stride, state->read_count,
                                      state->scratch));
        if (state->is_masked) {
            const pen_token_place place = {state->seed, dataset->epoch, indices[i]};
            pen_token_mask_apply(&state->mask, &place, sequence, state->scratch,
                                 inputs == NULL ? NULL : inputs + i * sequence,
                                 labels == NULL ? NULL : labels + i * sequence);
            continue;
        }
        if (inputs != NULL) {
            memcpy(inputs + i * sequence, state->scratch, sequence * sizeof *inputs);
        }
        if (labels != NULL) {
            memcpy(labels + i * sequence, state->scratch + 1, sequence * sizeof *labels);
        }
    }
    return PEN_OK;
}

static void token_close(pen_dataset *dataset) {
    token_state *state = dataset->state;
    if (state == NULL) return;
    pen_mapping_close(&state->file);
    pen_memory_free(state->inflated);
}

const pen_dataset_format pen_dataset_format_text = {
    .name = "text",
    .token_hint = "",
    .open = token_open_text,
    .read = token_read,
    .close = token_close,
};

const pen_dataset_format pen_dataset_format_tokens = {
    .name = "tokens",
    .token_hint = "; 'element' says how large the file's tokens are",
    .open = token_open_tokens,
    .read = token_read,
    .close = token_close,
};
