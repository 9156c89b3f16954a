#include "graph/passes/gradient/freeze_matching.h"

#include "graph/op.h"
#include "graph/op_known.h"
#include "graph/passes/set_inference.h"
#include <regex.h>

static pen_status freeze_parameters(pen_graph *graph, const char *text, const regex_t *pattern) {
    uint32_t matched = 0;
    const char *example = "";
    for (uint32_t v = 0; v < pen_graph_value_count(graph); v++) {
        const pen_value *value = pen_graph_value(graph, (pen_value_id){v});
        if (value->kind != PEN_VALUE_PARAMETER) continue;
        example = value->name;
        if (regexec(pattern, value->name, 0, NULL, 0) != 0) continue;
        pen_graph_set_trainable(graph, (pen_value_id){v}, false);
        matched++;
    }
    if (matched > 0) return PEN_OK;
    return pen_error(PEN_NOT_FOUND, "freeze: no parameter matches '%s'; one is called '%s'", text,
                     example);
}

// Batch normalizations whose running statistics match stay as they are, too.
static pen_status freeze_statistics(pen_graph *graph, const regex_t *pattern) {
    for (uint32_t n = 0; n < pen_graph_node_count(graph); n++) {
        const pen_node *node = pen_graph_node(graph, (pen_node_id){n});
        if (node->op != PEN_OP(batch_normalization)) continue;
        if (pen_node_int(node, "training_mode") == 0) continue;
        const char *mean = pen_value_name(graph, node->inputs[3]);
        const char *variance = pen_value_name(graph, node->inputs[4]);
        if (regexec(pattern, mean, 0, NULL, 0) != 0) continue;
        if (regexec(pattern, variance, 0, NULL, 0) != 0) continue;
        PEN_TRY(pen_set_inference_normalization(graph, (pen_node_id){n}));
    }
    return PEN_OK;
}

pen_status pen_freeze_matching(pen_graph *graph, const char *text) {
    if (text == NULL) return PEN_OK;
    regex_t pattern;
    const int code = regcomp(&pattern, text, REG_EXTENDED | REG_NOSUB);
    if (code != 0) {
        char reason[128];
        regerror(code, &pattern, reason, sizeof reason);
        return pen_error(PEN_INVALID_INPUT, "freeze: '%s' is not a regular expression: %s", text,
                         reason);
    }
    pen_status status = freeze_parameters(graph, text, &pattern);
    if (status == PEN_OK) status = freeze_statistics(graph, &pattern);
    regfree(&pattern);
    return status;
}
