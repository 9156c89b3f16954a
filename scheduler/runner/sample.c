#include "scheduler/runner/sample.h"

#include <inttypes.h>
#include <string.h>

#include "base/integer.h"
#include "graph/graph.h"

typedef struct sample_state {
    const pen_sample_request *request;
    const pen_runner_form *form;
    pen_value_id input;
    pen_value_id output;
    uint64_t sequence;
    uint32_t vocabulary;
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

// The token that follows the first `length`.
static pen_status sample_next(sample_state *state, uint64_t length, uint32_t *out_token) {
    const uint64_t shown = pen_min_u64(length, state->sequence);
    pen_executor *executor = state->form->executor;
    const pen_run_context run = {.first_microbatch = true};
    memset(state->window, 0, state->sequence * sizeof *state->window);
    memcpy(state->window, state->tokens + (length - shown), shown * sizeof *state->window);
    PEN_TRY(pen_executor_write(executor, state->input, 0, state->window,
                               state->sequence * sizeof *state->window));
    PEN_TRY(pen_executor_run(executor, PEN_EXECUTOR_MICROBATCH, 0, &run));
    PEN_TRY(pen_executor_read(executor, state->output, 0, state->scores,
                              state->sequence * state->vocabulary * sizeof *state->scores));
    const float *row = state->scores + (shown - 1) * state->vocabulary;
    return pen_token_sample(&state->request->sampling, row, state->vocabulary, length,
                            state->scratch, out_token);
}

pen_status pen_sample(pen_runner *runner, const pen_sample_request *request, pen_arena *arena,
                      pen_sample_fn take, void *context) {
    sample_state state = {.request = request};
    PEN_ASSERT(request->prompt_count > 0);
    PEN_TRY(pen_runner_get(runner, PEN_COMPILE_PREDICT, 1, false, &state.form));
    PEN_TRY(sample_check_model(&state));
    PEN_TRY(sample_prepare(&state, arena));
    for (uint64_t i = 0; i < request->count; i++) {
        const uint64_t length = request->prompt_count + i;
        uint32_t token;
        PEN_TRY(sample_next(&state, length, &token));
        state.tokens[length] = token;
        PEN_TRY(take(context, token));
    }
    return PEN_OK;
}
