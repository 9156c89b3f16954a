#include "graph/passes/fold_transposes.h"

#include "graph/graph.h"
#include "graph/op.h"
#include "graph/op_known.h"

// What a transpose of the last two dimensions alone transposes; NONE where `value` is not of one.
static pen_value_id fold_source(const pen_graph *graph, pen_value_id value) {
    const pen_node_id producer = pen_graph_value(graph, value)->producer;
    if (!pen_node_is(producer)) return PEN_VALUE_NONE;
    const pen_node *node = pen_graph_node(graph, producer);
    const uint32_t rank = pen_value_type(graph, value)->shape.rank;
    if (node->op != PEN_OP(transpose) || rank < 2) return PEN_VALUE_NONE;
    uint32_t count;
    const int64_t *perm = pen_node_ints(node, "perm", &count);
    if (perm == NULL) return rank == 2 ? node->inputs[0] : PEN_VALUE_NONE;
    for (uint32_t d = 0; d + 2 < rank; d++) {
        if (perm[d] != (int64_t)d) return PEN_VALUE_NONE;
    }
    return perm[rank - 2] == (int64_t)rank - 1 ? node->inputs[0] : PEN_VALUE_NONE;
}

void pen_fold_transposes(pen_graph *graph) {
    static const char *const names[2] = {"transA", "transB"};
    for (uint32_t n = 0; n < pen_graph_node_count(graph); n++) {
        const pen_node_id id = {n};
        const pen_node *node = pen_graph_node(graph, id);
        const bool is_product = node->op == PEN_OP(matmul) || node->op == PEN_OP(gemm);
        for (uint32_t i = 0; is_product && i < 2; i++) {
            const pen_value_id source = fold_source(graph, node->inputs[i]);
            if (!pen_value_is(source)) continue;
            pen_graph_set_input(graph, id, i, source);
            pen_graph_set_int(graph, id, names[i], pen_node_int(node, names[i]) == 0);
        }
    }
}
