#include "graph/passes/gradient/skip_stops.h"

#include <string.h>

#include "graph/analysis/readers.h"
#include "graph/graph.h"
#include "graph/op.h"
#include "graph/op_known.h"
#include "graph/ops/reduction/reduction_axes.h"
#include "graph/passes/bypass_nodes.h"

static bool skip_is(const pen_node *node, const pen_op *op) {
    return node->op == op;
}

// ---- the mean in a variance

// Which dimensions a reduction goes along.
static pen_status skip_read_axes(const pen_graph *graph, const pen_node *node,
                                 pen_reduction_axes *out_axes) {
    uint32_t count = 0;
    const int64_t *axes = NULL;
    if (node->input_count > 1 && pen_value_is(node->inputs[1])) {
        PEN_TRY(pen_value_read_ints(graph, node->inputs[1], &count, &axes));
    }
    const pen_shape *shape = &pen_value_type(graph, node->inputs[0])->shape;
    return pen_reduction_axes_find(node, shape, count, axes, out_axes);
}

static bool skip_find_axes(const pen_graph *graph, const pen_node *node,
                           pen_reduction_axes *out_axes) {
    const pen_status status = skip_read_axes(graph, node, out_axes);
    if (status == PEN_OK) return true;
    pen_status_ignore(status, "such axes match nothing");
    return false;
}

static bool skip_same_axes(const pen_reduction_axes *a, const pen_reduction_axes *b) {
    if (a->kept.rank != b->kept.rank) return false;
    return memcmp(a->reduced, b->reduced, a->kept.rank * sizeof *a->reduced) == 0;
}

// Whether `value` goes into sums and means along `axes` alone.
static bool skip_is_summed(const pen_graph *graph, const pen_readers *readers, pen_value_id value,
                           const pen_reduction_axes *axes) {
    if (readers->is_visible[value.index]) return false;
    const uint32_t end = readers->first[value.index + 1];
    for (uint32_t i = readers->first[value.index]; i < end; i++) {
        const pen_node *node = pen_graph_node(graph, readers->nodes[i]);
        pen_reduction_axes found;
        if (!skip_is(node, PEN_OP(reduce_mean)) && !skip_is(node, PEN_OP(reduce_sum))) return false;
        if (!skip_find_axes(graph, node, &found)) return false;
        if (!skip_same_axes(&found, axes)) return false;
    }
    return true;
}

// Whether `difference` goes only into squares that are summed along `axes`.
static bool skip_is_squared(const pen_graph *graph, const pen_readers *readers,
                            pen_value_id difference, const pen_reduction_axes *axes) {
    if (readers->is_visible[difference.index]) return false;
    const uint32_t end = readers->first[difference.index + 1];
    for (uint32_t i = readers->first[difference.index]; i < end; i++) {
        const pen_node *node = pen_graph_node(graph, readers->nodes[i]);
        const bool is_square = skip_is(node, PEN_OP(mul)) &&
                               pen_value_same(node->inputs[0], difference) &&
                               pen_value_same(node->inputs[1], difference);
        if (!is_square || !skip_is_summed(graph, readers, node->outputs[0], axes)) return false;
    }
    return true;
}

static bool skip_is_idle(const pen_graph *graph, const pen_readers *readers, const pen_node *stop) {
    const pen_value_id output = stop->outputs[0];
    const pen_value *source = pen_graph_value(graph, stop->inputs[0]);
    if (readers->is_visible[output.index] || !pen_node_is(source->producer)) return false;
    const pen_node *mean = pen_graph_node(graph, source->producer);
    pen_reduction_axes axes;
    if (!skip_is(mean, PEN_OP(reduce_mean)) || pen_node_int(mean, "keepdims") == 0) return false;
    if (!skip_find_axes(graph, mean, &axes)) return false;
    const pen_value_id x = mean->inputs[0];
    for (uint32_t i = readers->first[output.index]; i < readers->first[output.index + 1]; i++) {
        const pen_node *node = pen_graph_node(graph, readers->nodes[i]);
        if (!skip_is(node, PEN_OP(sub))) return false;
        const uint32_t other = pen_value_same(node->inputs[0], output) ? 1 : 0;
        if (!pen_value_same(node->inputs[other], x)) return false;
        if (!skip_is_squared(graph, readers, node->outputs[0], &axes)) return false;
    }
    return true;
}

// ---- all of them

// `readers` NULL: whatever the stop stands before.
static pen_status skip_where(pen_graph *graph, const pen_readers *readers) {
    bool *is_idle;
    PEN_TRY(PEN_NEW(pen_graph_arena(graph), pen_graph_node_count(graph), &is_idle));
    for (uint32_t n = 0; n < pen_graph_node_count(graph); n++) {
        const pen_node *node = pen_graph_node(graph, (pen_node_id){n});
        is_idle[n] =
            node->op->stops_gradient && (readers == NULL || skip_is_idle(graph, readers, node));
    }
    return pen_bypass_nodes(graph, is_idle);
}

pen_status pen_skip_idle_stops(pen_graph *graph) {
    pen_readers readers;
    PEN_TRY(pen_readers_build(graph, 0, NULL, pen_graph_arena(graph), &readers));
    return skip_where(graph, &readers);
}

pen_status pen_skip_stops(pen_graph *graph) {
    return skip_where(graph, NULL);
}
