#include "graph/passes/gradient/freeze_matching.h"

#include "base/pattern.h"
#include "graph/graph.h"
#include "graph/op.h"
#include "graph/op_known.h"
#include "graph/passes/set_inference.h"

static pen_status freeze_parameters(pen_graph *graph, const char *text,
                                    const pen_pattern *pattern) {
    uint32_t matched = 0;
    const char *example = "";
    for (uint32_t v = 0; v < pen_graph_value_count(graph); v++) {
        const pen_value *value = pen_graph_value(graph, (pen_value_id){v});
        if (value->kind != PEN_VALUE_PARAMETER) continue;
        example = value->name;
        if (!pen_pattern_matches(pattern, value->name)) continue;
        pen_graph_set_trainable(graph, (pen_value_id){v}, false);
        matched++;
    }
    if (matched > 0) return PEN_OK;
    return pen_error(PEN_NOT_FOUND, "freeze: no parameter matches '%s'; one is called '%s'", text,
                     example);
}

// Batch normalizations whose running statistics match stay as they are, too.
static pen_status freeze_statistics(pen_graph *graph, const pen_pattern *pattern) {
    for (uint32_t n = 0; n < pen_graph_node_count(graph); n++) {
        const pen_node *node = pen_graph_node(graph, (pen_node_id){n});
        if (node->op != PEN_OP(batch_normalization)) continue;
        if (pen_node_int(node, "training_mode") == 0) continue;
        const char *mean = pen_value_name(graph, node->inputs[3]);
        const char *variance = pen_value_name(graph, node->inputs[4]);
        if (!pen_pattern_matches(pattern, mean)) continue;
        if (!pen_pattern_matches(pattern, variance)) continue;
        PEN_TRY(pen_set_inference_normalization(graph, (pen_node_id){n}));
    }
    return PEN_OK;
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
    status = freeze_parameters(graph, text, pattern);
    if (status == PEN_OK) status = freeze_statistics(graph, pattern);
    pen_pattern_destroy(pattern);
    return status;
}
