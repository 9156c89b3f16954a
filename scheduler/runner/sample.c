#include "scheduler/runner/sample.h"

#include <inttypes.h>
#include <string.h>

#include "base/clock.h"
#include "base/integer.h"
#include "base/log.h"
#include "graph/graph.h"

typedef struct sample_state {
    const pen_sample_request *request;
    const pen_runner_form *form;   // of the whole window
    const pen_runner_form *decode; // of one position; NULL: nothing is kept
    pen_value_id input;
    pen_value_id output;
    uint64_t sequence;
    uint32_t vocabulary;
    uint64_t kept_count; // positions that are kept, from the first token on
    unsigned char *kept; // of one value, on its way
    pen_sample_figures figures;
    int64_t *tokens;          // [prompt_count + count], what stands so far
    int64_t *window;          // [sequence]
    float *scores;            // [sequence][vocabulary]
    pen_token_score *scratch; // [vocabulary]
} sample_state;

static pen_status sample_find_output(sample_state *state) {
    const pen_program *program = state->form->program;
    const char *name = state->request->output;
    state->output = program->outputs[0];
    for (uint32_t i = 0; name != NULL; i++) {
        if (i == program->output_count) {
            return pen_error(PEN_NOT_FOUND, "the model has no output '%s'; its first is '%s'", name,
                             pen_value_name(program->graph, program->outputs[0]));
        }
        state->output = program->outputs[i];
        if (strcmp(pen_value_name(program->graph, state->output), name) == 0) break;
    }
    return PEN_OK;
}

// Whether the model is one of language.
static pen_status sample_check_model(sample_state *state) {
    const pen_program *program = state->form->program;
    const pen_graph *graph = program->graph;
    char text[PEN_SHAPE_TEXT_BYTES];
    if (program->input_count != 1) {
        return pen_error(PEN_UNSUPPORTED,
                         "the model has %" PRIu32 " inputs; to write text it must have one, of "
                         "tokens",
                         program->input_count);
    }
    state->input = program->inputs[0];
    const pen_tensor_type *input = pen_value_type(graph, state->input);
    if (input->element != PEN_INT64 || input->shape.rank != 2 || input->shape.dims[1] == 0) {
        return pen_error(PEN_UNSUPPORTED,
                         "input '%s' is %s; to write text it must be int64 [1, sequence]",
                         pen_value_name(graph, state->input), pen_tensor_type_format(input, text));
    }
    PEN_TRY(sample_find_output(state));
    const pen_tensor_type *output = pen_value_type(graph, state->output);
    const pen_shape *shape = &output->shape;
    if (output->element != PEN_FLOAT32 || shape->rank != 3 || shape->dims[0] != 1 ||
        shape->dims[1] != input->shape.dims[1] || shape->dims[2] < 1 ||
        shape->dims[2] > UINT32_MAX) {
        return pen_error(PEN_UNSUPPORTED,
                         "output '%s' is %s; to write text it must be float32 [1, sequence, "
                         "vocabulary], the scores of the token behind each",
                         pen_value_name(graph, state->output),
                         pen_tensor_type_format(output, text));
    }
    state->sequence = (uint64_t)input->shape.dims[1];
    state->vocabulary = (uint32_t)shape->dims[2];
    return PEN_OK;
}

// All memory is taken before the first token; tokens of the beginning must be ones that the model
// knows.
static pen_status sample_prepare(sample_state *state, pen_arena *arena) {
    const pen_sample_request *request = state->request;
    uint64_t total, scores;
    if (!pen_u64_add(request->prompt_count, request->count, &total) ||
        !pen_u64_mul(state->sequence, state->vocabulary, &scores)) {
        return pen_error_out_of_memory();
    }
    PEN_TRY(PEN_NEW(arena, total, &state->tokens));
    PEN_TRY(PEN_NEW(arena, state->sequence, &state->window));
    PEN_TRY(PEN_NEW(arena, scores, &state->scores));
    PEN_TRY(PEN_NEW(arena, state->vocabulary, &state->scratch));
    for (uint64_t i = 0; i < request->prompt_count; i++) {
        if (request->prompt[i] < 0 || request->prompt[i] >= (int64_t)state->vocabulary) {
            return pen_error(PEN_INVALID_INPUT,
                             "token %" PRIu64 " of the beginning is %" PRId64
                             ", expected 0 to %" PRIu32,
                             i, request->prompt[i], state->vocabulary - 1);
        }
        state->tokens[i] = request->prompt[i];
    }
    return PEN_OK;
}

static uint64_t sample_bytes(const pen_program *program, uint32_t index) {
    return pen_tensor_type_bytes(pen_value_type(program->graph, program->cached[index]));
}

// Why every token runs the whole window.
static void sample_note_windows(const sample_state *state, const char *why) {
    pen_log(PEN_LOG_NOTE, "each token runs the whole window of %" PRIu64 " tokens: %s",
            state->sequence, why);
}

// The second form of a model that looks back. Without memory for it the first one does.
static pen_status sample_prepare_decoding(sample_state *state, pen_runner *runner,
                                          pen_arena *arena) {
    const pen_program *program = state->form->program;
    uint64_t largest = 0;
    if (state->request->whole_windows || state->sequence == 1) return PEN_OK;
    if (program->cache_refusal != NULL) {
        sample_note_windows(state, program->cache_refusal);
        return PEN_OK;
    }
    const pen_status status =
        pen_runner_get_row(runner, PEN_COMPILE_DECODE, state->request->output, &state->decode);
    const pen_status_code code = pen_status_get_code(status);
    if (status != PEN_OK && (code == PEN_DOES_NOT_FIT || code == PEN_UNSUPPORTED)) {
        sample_note_windows(state, pen_status_message(status));
        pen_status_ignore(status, "it was told");
        return PEN_OK;
    }
    PEN_TRY(status);
    PEN_ASSERT(program->cached_count == state->decode->program->cached_count);
    for (uint32_t i = 0; i < program->cached_count; i++) {
        largest = pen_max_u64(largest, sample_bytes(program, i));
        state->figures.kept_bytes += sample_bytes(program, i);
    }
    return PEN_NEW(arena, largest, &state->kept);
}

// ---- tokens

// Hands what the whole window has made of its positions to the form of one position.
static pen_status sample_keep(sample_state *state, uint64_t length) {
    const pen_program *from = state->form->program, *to = state->decode->program;
    for (uint32_t i = 0; i < from->cached_count; i++) {
        const uint64_t bytes = sample_bytes(from, i);
        PEN_TRY(pen_executor_read(state->form->executor, from->cached[i], 0, state->kept, bytes));
        PEN_TRY(pen_executor_write(state->decode->executor, to->cached[i], 0, state->kept, bytes));
    }
    state->kept_count = length;
    return PEN_OK;
}

// The token that follows the first `length`, of all positions. What stands at the front is where it
// will be for the next token, too, unless the window slides.
static pen_status sample_window(sample_state *state, uint64_t length, uint32_t *out_token) {
    const uint64_t shown = pen_min_u64(length, state->sequence);
    pen_executor *executor = state->form->executor;
    const pen_run_context run = {.first_microbatch = true};
    pen_token_choice choice;
    memset(state->window, 0, state->sequence * sizeof *state->window);
    memcpy(state->window, state->tokens + (length - shown), shown * sizeof *state->window);
    PEN_TRY(pen_executor_write(executor, state->input, 0, state->window,
                               state->sequence * sizeof *state->window));
    PEN_TRY(pen_executor_run(executor, PEN_EXECUTOR_MICROBATCH, 0, &run));
    PEN_TRY(pen_executor_read(executor, state->output, 0, state->scores,
                              state->sequence * state->vocabulary * sizeof *state->scores));
    const bool has_more = length + 1 < state->request->prompt_count + state->request->count;
    if (state->decode != NULL && has_more && length < state->sequence) {
        PEN_TRY(sample_keep(state, length));
    }
    const float *row = state->scores + (shown - 1) * state->vocabulary;
    PEN_TRY(pen_token_sample(&state->request->sampling, row, state->vocabulary, length,
                             state->scratch, &choice));
    state->figures.window_count += 1;
    *out_token = choice.token;
    return PEN_OK;
}

// The same of position `length - 1` alone; those before it are kept.
static pen_status sample_position(sample_state *state, uint64_t length,
                                  pen_token_choice *out_choice) {
    const pen_program *program = state->decode->program;
    pen_executor *executor = state->decode->executor;
    const pen_run_context run = {.first_microbatch = true};
    pen_token_sampling sampling = state->request->sampling;
    const int64_t position = (int64_t)(length - 1);
    PEN_TRY(pen_executor_write(executor, program->inputs[0], 0, &state->tokens[length - 1],
                               sizeof *state->tokens));
    PEN_TRY(pen_executor_write(executor, program->position, 0, &position, sizeof position));
    PEN_TRY(pen_executor_run(executor, PEN_EXECUTOR_MICROBATCH, 0, &run));
    PEN_TRY(pen_executor_read(executor, program->outputs[0], 0, state->scores,
                              state->vocabulary * sizeof *state->scores));
    state->kept_count = length;
    sampling.error = PEN_SAMPLE_ERROR;
    return pen_token_sample(&sampling, state->scores, state->vocabulary, length, state->scratch,
                            out_choice);
}

static pen_status sample_next(sample_state *state, uint64_t length, uint32_t *out_token) {
    const bool is_kept = state->decode != NULL && state->kept_count + 1 == length;
    if (is_kept && length <= state->sequence) {
        pen_token_choice choice;
        PEN_TRY(sample_position(state, length, &choice));
        if (!choice.is_close) {
            state->figures.decoded_count += 1;
            *out_token = choice.token;
            return PEN_OK;
        }
    }
    return sample_window(state, length, out_token);
}

// All is compiled and allocated before the first token, so that what follows takes its time alone.
pen_status pen_sample(pen_runner *runner, const pen_sample_request *request, pen_arena *arena,
                      pen_sample_fn take, void *context, pen_sample_figures *out_figures) {
    sample_state state = {.request = request};
    const pen_compile_mode mode =
        request->whole_windows ? PEN_COMPILE_PREDICT : PEN_COMPILE_PREFILL;
    PEN_ASSERT(request->prompt_count > 0);
    PEN_TRY(pen_runner_get_row(runner, mode, request->output, &state.form));
    PEN_TRY(sample_check_model(&state));
    PEN_TRY(sample_prepare(&state, arena));
    PEN_TRY(sample_prepare_decoding(&state, runner, arena));
    const double started = pen_clock_seconds();
    for (uint64_t i = 0; i < request->count; i++) {
        const uint64_t length = request->prompt_count + i;
        uint32_t token;
        PEN_TRY(sample_next(&state, length, &token));
        state.tokens[length] = token;
        PEN_TRY(take(context, token));
    }
    state.figures.seconds = pen_clock_seconds() - started;
    *out_figures = state.figures;
    return PEN_OK;
}
