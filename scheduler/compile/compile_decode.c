// A model of language as two programs: one that runs all positions and keeps what later ones read
// of them, and one that runs a single position and reads what was kept.
#include <string.h>

#include "graph/graph.h"
#include "graph/passes/decode/decode_position.h"
#include "scheduler/compile/compile_pass.h"

// Where tokens stand in the input and in the output: [1, sequence] and [1, sequence, …].
#define DECODE_AXIS 1

// What the model must be for its positions to be told apart at all.
static pen_status decode_find_ends(const pen_compilation *compilation,
                                   pen_causality_request *out_request) {
    const pen_graph *graph = compilation->graph;
    const char *name = compilation->request->output;
    const uint32_t output_count = pen_graph_output_count(graph);
    if (pen_graph_input_count(graph) != 1 || output_count == 0) {
        return pen_error(PEN_UNSUPPORTED, "the model has %u inputs, expected one, of tokens",
                         pen_graph_input_count(graph));
    }
    uint32_t at = 0;
    while (name != NULL && strcmp(pen_value_name(graph, pen_graph_output(graph, at)), name) != 0) {
        if (++at == output_count) {
            return pen_error(PEN_UNSUPPORTED, "the model has no output '%s'", name);
        }
    }
    const pen_causality_request request = {.input = pen_graph_input(graph, 0),
                                           .input_axis = DECODE_AXIS,
                                           .output = pen_graph_output(graph, at),
                                           .output_axis = DECODE_AXIS};
    const pen_shape *tokens = &pen_value_type(graph, request.input)->shape;
    const pen_shape *scores = &pen_value_type(graph, request.output)->shape;
    if (tokens->rank != 2 || scores->rank < 2 || tokens->dims[1] != scores->dims[1]) {
        return pen_error(PEN_UNSUPPORTED, "output '%s' does not have a position for each of '%s'",
                         pen_value_name(graph, request.output),
                         pen_value_name(graph, request.input));
    }
    *out_request = request;
    return PEN_OK;
}

static pen_status decode_find(const pen_compilation *compilation,
                              pen_causality_request *out_request, pen_causality *out_causality) {
    PEN_TRY(decode_find_ends(compilation, out_request));
    return pen_causality_find(compilation->graph, out_request, compilation->arena, out_causality);
}

static pen_status decode_set_cached(pen_compilation *compilation, uint32_t count,
                                    const pen_value_id *cached) {
    PEN_TRY(PEN_NEW(compilation->arena, count, &compilation->cached));
    for (uint32_t i = 0; i < count; i++)
        compilation->cached[i] = cached[i];
    compilation->program.cached = compilation->cached;
    compilation->program.cached_count = count;
    return PEN_OK;
}

// A model that is not shown to look back is none to refuse: it runs, and says why it cannot do
// more.
pen_status pen_compile_keep_positions(pen_compilation *compilation) {
    pen_causality_request request;
    pen_causality causality;
    const pen_status status = decode_find(compilation, &request, &causality);
    if (status == PEN_OK) {
        return decode_set_cached(compilation, causality.kept_count, causality.kept);
    }
    if (pen_status_get_code(status) != PEN_UNSUPPORTED) return status;
    uint32_t line, column;
    const char *file = pen_status_position(status, &line, &column), **out;
    out = &compilation->program.cache_refusal;
    const pen_status kept =
        file == NULL ? pen_arena_format(compilation->arena, out, "%s", pen_status_message(status))
                     : pen_arena_format(compilation->arena, out, "%s:%u: %s", file, line,
                                        pen_status_message(status));
    pen_status_ignore(status, "the program says it");
    return kept;
}

// The same values as before, in the same order: both look at the same graph.
pen_status pen_compile_decode_position(pen_compilation *compilation) {
    pen_causality_request request;
    pen_causality causality;
    pen_decoding decoding;
    PEN_TRY(decode_find(compilation, &request, &causality));
    PEN_TRY(pen_decode_position(compilation->graph, &request, &causality, &decoding));
    pen_compilation_follow(compilation, decoding.graph, decoding.values);
    compilation->program.position = decoding.position;
    return decode_set_cached(compilation, causality.kept_count, decoding.states);
}
