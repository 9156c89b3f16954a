#include "graph/passes/gradient/freeze_matching.h"

#include "base/pattern.h"
#include "graph/graph.h"
#include "graph/op.h"
#include "graph/op_known.h"
#include "graph/passes/set_inference.h"

// Batch normalizations whose running statistics are frozen stay as they are, too.
pen_status pen_freeze_values(pen_graph *graph, const bool *is_frozen) {
    for (uint32_t v = 0; v < pen_graph_value_count(graph); v++) {
        const pen_value *value = pen_graph_value(graph, (pen_value_id){v});
        if (value->kind != PEN_VALUE_PARAMETER || !is_frozen[v]) continue;
        pen_graph_set_trainable(graph, (pen_value_id){v}, false);
    }
    for (uint32_t n = 0; n < pen_graph_node_count(graph); n++) {
        const pen_node *node = pen_graph_node(graph, (pen_node_id){n});
        if (node->op != PEN_OP(batch_normalization)) continue;
        if (pen_node_int(node, "training_mode") == 0) continue;
        if (!is_frozen[node->inputs[3].index] || !is_frozen[node->inputs[4].index]) continue;
        PEN_TRY(pen_set_inference_normalization(graph, (pen_node_id){n}));
    }
    return PEN_OK;
}

static pen_status freeze_matches(pen_graph *graph, const char *text, const pen_pattern *pattern) {
    uint32_t matched = 0;
    const char *example = "";
    const uint32_t value_count = pen_graph_value_count(graph);
    bool *is_frozen;
    PEN_TRY(PEN_NEW(pen_graph_arena(graph), value_count, &is_frozen));
    for (uint32_t v = 0; v < value_count; v++) {
        const pen_value *value = pen_graph_value(graph, (pen_value_id){v});
        is_frozen[v] = pen_pattern_matches(pattern, value->name);
        if (value->kind != PEN_VALUE_PARAMETER) continue;
        example = value->name;
        matched += is_frozen[v];
    }
    if (matched > 0) return pen_freeze_values(graph, is_frozen);
    return pen_error(PEN_NOT_FOUND, "freeze: no parameter matches '%s'; one is called '%s'", text,
                     example);
}

pen_status pen_freeze_matching(pen_graph *graph, const char *text) {
    if (text == NULL) return PEN_OK;
    pen_pattern *pattern;
    pen_status status = pen_pattern_create(text, &pattern);
    if (pen_status_get_code(status) == PEN_INVALID_INPUT) {
        const pen_status refused =
            pen_error(PEN_INVALID_INPUT, "freeze: '%s' is not a regular expression: %s", text,
                      pen_status_message(status));
        pen_status_ignore(status, "part of the message");
        return refused;
    }
    PEN_TRY(status);
    status = freeze_matches(graph, text, pattern);
    pen_pattern_destroy(pattern);
    return status;
}
