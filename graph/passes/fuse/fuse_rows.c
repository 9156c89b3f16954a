#include "graph/passes/fuse/fuse_rows.h"

#include "graph/analysis/readers.h"
#include "graph/graph.h"
#include "graph/op.h"
#include "graph/op_known.h"
#include "graph/passes/copy_graph.h"

// Of any update; it has fewer outputs.
#define ROWS_UPDATE_INPUTS 16

typedef struct rows_fuser {
    const pen_graph *graph;
    pen_readers readers;
    pen_node_id *gathers; // [node_count]: the gather_backward that a sum or update takes in
    bool *is_gone;        // [node_count]: taken in
    pen_graph_copy copy;
} rows_fuser;

// The gather_backward into zeros that makes `value` for one reader alone; NONE if that is not so.
static pen_node_id rows_gather(const rows_fuser *f, pen_value_id value) {
    const pen_node_id producer = pen_graph_value(f->graph, value)->producer;
    if (!pen_node_is(producer) || !pen_node_is(pen_readers_only(&f->readers, value))) {
        return PEN_NODE_NONE;
    }
    const pen_node *node = pen_graph_node(f->graph, producer);
    const bool is_gather = node->op == PEN_OP(gather_backward);
    if (!is_gather || node->input_count > 2 || node->accumulates || f->is_gone[producer.index]) {
        return PEN_NODE_NONE;
    }
    return producer;
}

// Whether it is the gradient of a parameter's rows. A sum for anything else is where that was
// computed, which may be on another device than who reads the rows.
static bool rows_are_of_parameter(const rows_fuser *f, pen_node_id gather) {
    const pen_node_id forward = pen_graph_node(f->graph, gather)->gradient_of;
    if (!pen_node_is(forward)) return false;
    const pen_value_id table = pen_graph_node(f->graph, forward)->inputs[0];
    return pen_graph_value(f->graph, table)->kind == PEN_VALUE_PARAMETER;
}

// Whether what `other` is the gradient of is computed from the rows that were gathered. Then it is
// in their stage or a later one, and its gradient flows the way that gradients flow. Two tables for
// two inputs, as encoder and decoder have, may be in stages of any order.
static pen_status rows_are_before(const rows_fuser *f, pen_node_id gather, pen_value_id other,
                                  bool *out_are) {
    const pen_node_id from = pen_graph_node(f->graph, gather)->gradient_of;
    const pen_node_id maker = pen_graph_value(f->graph, other)->producer;
    *out_are = false;
    if (!pen_node_is(maker)) return PEN_OK;
    const pen_node_id to = pen_graph_node(f->graph, maker)->gradient_of;
    bool *follows;
    if (!pen_node_is(to) || to.index < from.index) return PEN_OK;
    PEN_TRY(PEN_NEW(pen_graph_arena(f->graph), (size_t)to.index + 1, &follows));
    follows[from.index] = true;
    for (uint32_t n = from.index + 1; n <= to.index; n++) {
        const pen_node *node = pen_graph_node(f->graph, (pen_node_id){n});
        for (uint32_t i = 0; i < node->input_count && !follows[n]; i++) {
            if (!pen_value_is(node->inputs[i])) continue;
            const pen_node_id source = pen_graph_value(f->graph, node->inputs[i])->producer;
            follows[n] = pen_node_is(source) && source.index < n && follows[source.index];
        }
    }
    *out_are = follows[to.index];
    return PEN_OK;
}

// A sum of rows of a table and of another gradient, which nobody else reads and which is there
// before: the rows are added into it.
static pen_status rows_find_sum(rows_fuser *f, pen_node_id sum) {
    const pen_node *node = pen_graph_node(f->graph, sum);
    const pen_tensor_type *type = pen_value_type(f->graph, node->outputs[0]);
    if (node->accumulates) return PEN_OK;
    for (uint32_t i = 2; i-- > 0;) { // the second is the later use
        const pen_node_id gather = rows_gather(f, node->inputs[i]);
        const pen_value_id other = node->inputs[1 - i];
        if (!pen_node_is(gather) || !rows_are_of_parameter(f, gather)) continue;
        if (!pen_tensor_type_equal(pen_value_type(f->graph, other), type)) {
            continue;
        }
        if (!pen_node_is(pen_readers_only(&f->readers, other))) continue; // it must stay as it is
        bool are_before;
        PEN_TRY(rows_are_before(f, gather, other, &are_before));
        if (!are_before) continue;
        f->gathers[sum.index] = gather;
        f->is_gone[gather.index] = true;
        return PEN_OK;
    }
    return PEN_OK;
}

static void rows_find_update(rows_fuser *f, pen_node_id update) {
    const pen_node *node = pen_graph_node(f->graph, update);
    const pen_node_id gather = rows_gather(f, node->inputs[node->op->update.gradient]);
    if (!pen_node_is(gather)) return;
    const int64_t axis = pen_node_int(pen_graph_node(f->graph, gather), "axis");
    if (axis != 0) return;
    f->gathers[update.index] = gather;
    f->is_gone[gather.index] = true;
}

// The sum's other operand goes into the gather's gradient, which adds its rows to it.
static pen_status rows_make_sum(rows_fuser *f, pen_node_id sum) {
    pen_graph_copy *copy = &f->copy;
    const pen_node_id gather = f->gathers[sum.index];
    const pen_node *node = pen_graph_node(f->graph, gather);
    const pen_node *of = pen_graph_node(f->graph, sum);
    const pen_value_id other = of->inputs[pen_value_same(of->inputs[0], node->outputs[0]) ? 1 : 0];
    const pen_value_id inputs[3] = {copy->values[node->inputs[0].index],
                                    copy->values[node->inputs[1].index], copy->values[other.index]};
    const char *name = pen_value_name(f->graph, of->outputs[0]);
    pen_node_spec spec;
    PEN_TRY(pen_graph_copy_spec(copy, gather, PEN_OP(gather_backward), node->name, &spec));
    PEN_TRY(pen_graph_copy_attributes(copy, gather, &spec));
    spec.inputs = inputs;
    spec.input_count = 3;
    spec.output_count = 1;
    spec.output_names = &name;
    pen_node_id made;
    PEN_TRY(pen_graph_add_node(copy->to, &spec, &made));
    copy->nodes[gather.index] = copy->nodes[sum.index] = made;
    pen_graph_copy_value(copy, of->outputs[0], pen_graph_node(copy->to, made)->outputs[0]);
    return PEN_OK;
}

// The update reads rows and indices, and the gradient of the table's size is never made.
static pen_status rows_make_update(rows_fuser *f, pen_node_id update) {
    pen_graph_copy *copy = &f->copy;
    const pen_node *node = pen_graph_node(f->graph, update);
    const pen_node *gather = pen_graph_node(f->graph, f->gathers[update.index]);
    const uint32_t rows = node->op->update.rows;
    pen_value_id inputs[ROWS_UPDATE_INPUTS];
    const char *names[ROWS_UPDATE_INPUTS] = {NULL};
    PEN_ASSERT(rows < ROWS_UPDATE_INPUTS && node->input_count <= rows);
    for (uint32_t i = 0; i < rows; i++) {
        const bool is_there = i < node->input_count && pen_value_is(node->inputs[i]);
        inputs[i] = is_there ? copy->values[node->inputs[i].index] : PEN_VALUE_NONE;
    }
    inputs[node->op->update.gradient] = copy->values[gather->inputs[0].index];
    inputs[rows] = copy->values[gather->inputs[1].index];
    for (uint32_t i = 0; i < node->output_count; i++) {
        if (pen_value_is(node->outputs[i])) names[i] = pen_value_name(f->graph, node->outputs[i]);
    }
    pen_node_spec spec;
    PEN_TRY(pen_graph_copy_spec(copy, update, node->op, node->name, &spec));
    PEN_TRY(pen_graph_copy_attributes(copy, update, &spec));
    spec.inputs = inputs;
    spec.input_count = rows + 1;
    spec.output_count = node->output_count;
    spec.output_names = names;
    pen_node_id made;
    PEN_TRY(pen_graph_add_node(copy->to, &spec, &made));
    copy->nodes[update.index] = made;
    for (uint32_t i = 0; i < node->output_count; i++) {
        if (!pen_value_is(node->outputs[i])) continue;
        pen_graph_copy_value(copy, node->outputs[i], pen_graph_node(copy->to, made)->outputs[i]);
    }
    return PEN_OK;
}

static pen_status rows_write(rows_fuser *f) {
    for (uint32_t n = 0; n < pen_graph_node_count(f->graph); n++) {
        const pen_node_id node = {n};
        if (f->is_gone[n]) continue;
        if (!pen_node_is(f->gathers[n])) {
            PEN_TRY(pen_graph_copy_node(&f->copy, node));
        } else if (pen_graph_node(f->graph, node)->op == PEN_OP(add)) {
            PEN_TRY(rows_make_sum(f, node));
        } else {
            PEN_TRY(rows_make_update(f, node));
        }
    }
    return pen_graph_copy_end(&f->copy);
}

// First everything is found, then written: a graph is only added to, so the result is a copy.
pen_status pen_fuse_rows(const pen_graph *graph, uint32_t kept_count, const pen_value_id *kept,
                         bool into_updates, pen_graph **out_graph,
                         const pen_value_id **out_values) {
    rows_fuser f = {.graph = graph};
    pen_arena *arena = pen_graph_arena(graph);
    const uint32_t node_count = pen_graph_node_count(graph);
    PEN_TRY(pen_readers_build(graph, kept_count, kept, arena, &f.readers));
    PEN_TRY(PEN_NEW(arena, node_count, &f.gathers));
    PEN_TRY(PEN_NEW(arena, node_count, &f.is_gone));
    for (uint32_t n = 0; n < node_count; n++) {
        f.gathers[n] = PEN_NODE_NONE;
    }
    for (uint32_t n = 0; n < node_count; n++) {
        const pen_node *node = pen_graph_node(graph, (pen_node_id){n});
        if (node->op == PEN_OP(add)) {
            PEN_TRY(rows_find_sum(&f, (pen_node_id){n}));
        } else if (into_updates && node->op->update.rows != 0) {
            rows_find_update(&f, (pen_node_id){n});
        }
    }
    PEN_TRY(pen_graph_copy_begin(graph, &f.copy));
    PEN_TRY(rows_write(&f));
    *out_graph = f.copy.to;
    *out_values = f.copy.values;
    return PEN_OK;
}
