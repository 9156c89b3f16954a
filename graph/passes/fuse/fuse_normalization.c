#include "graph/passes/fuse/fuse_normalization.h"

#include "graph/analysis/readers.h"
#include "graph/graph.h"
#include "graph/op.h"
#include "graph/op_known.h"
#include "graph/passes/copy_graph.h"

// What becomes of a node of the old graph.
typedef enum fuse_fate {
    FUSE_COPIED,
    FUSE_GONE,     // taken in by another
    FUSE_FORWARD,  // a relu: the fused forward node stands here
    FUSE_BACKWARD, // a relu_backward: the fused backward node stands here
} fuse_fate;

typedef struct fuse_plan {
    fuse_fate fate;
    pen_node_id normalization; // forward or backward
    pen_node_id addition;      // of the residual; backward: of gradients; or NONE
    pen_value_id residual;     // forward; or NONE
    bool adds;                 // backward: the forward chain has a residual
} fuse_plan;

typedef struct fuser {
    const pen_graph *graph;
    pen_readers readers;
    fuse_plan *plans; // [node_count]
    pen_graph_copy copy;
} fuser;

static bool fuse_is(const fuser *f, pen_node_id node, const pen_op *op) {
    return pen_node_is(node) && pen_graph_node(f->graph, node)->op == op &&
           f->plans[node.index].fate == FUSE_COPIED;
}

static pen_node_id fuse_producer(const fuser *f, pen_value_id value) {
    return pen_graph_value(f->graph, value)->producer;
}

static bool fuse_same_type(const fuser *f, pen_value_id a, pen_value_id b) {
    return pen_tensor_type_equal(pen_value_type(f->graph, a), pen_value_type(f->graph, b));
}

// Whether the statistics of a normalisation are read behind `node` only: there they will be made.
static bool fuse_statistics_can_wait(const fuser *f, const pen_node *normalization,
                                     pen_node_id node) {
    for (uint32_t i = 1; i < normalization->output_count; i++) {
        const pen_value_id value = normalization->outputs[i];
        if (!pen_value_is(value) || pen_readers_count(&f->readers, value) == 0) continue;
        if (f->readers.nodes[f->readers.first[value.index]].index < node.index) return false;
    }
    return true;
}

// The backward chain of a fused forward chain that ends in `relu`.
static void fuse_find_backward(fuser *f, pen_node_id normalization, pen_node_id relu, bool adds) {
    const pen_value_id y = pen_graph_node(f->graph, relu)->outputs[0];
    for (uint32_t i = f->readers.first[y.index]; i < f->readers.first[y.index + 1]; i++) {
        const pen_node_id back = f->readers.nodes[i];
        if (!fuse_is(f, back, PEN_OP(relu_backward))) continue;
        const pen_node *back_node = pen_graph_node(f->graph, back);
        const pen_value_id d = back_node->outputs[0];
        if (!pen_value_same(back_node->inputs[1], y) || f->readers.is_visible[d.index]) continue;
        if (!adds && pen_readers_count(&f->readers, d) != 1) continue;
        for (uint32_t k = f->readers.first[d.index]; k < f->readers.first[d.index + 1]; k++) {
            const pen_node_id inner = f->readers.nodes[k];
            const pen_node *node = pen_graph_node(f->graph, inner);
            if (!fuse_is(f, inner, PEN_OP(batch_normalization_backward)) || node->accumulates)
                continue;
            if (node->gradient_of.index != normalization.index) continue;
            if (!pen_value_same(node->inputs[0], d)) continue;
            fuse_plan plan = {FUSE_BACKWARD, inner, PEN_NODE_NONE, PEN_VALUE_NONE, adds};
            const pen_value_id dy = back_node->inputs[0];
            const pen_node_id sum = fuse_producer(f, dy);
            if (adds && fuse_is(f, sum, PEN_OP(add)) &&
                pen_node_is(pen_readers_only(&f->readers, dy)) &&
                fuse_same_type(f, pen_graph_node(f->graph, sum)->inputs[0], dy) &&
                fuse_same_type(f, pen_graph_node(f->graph, sum)->inputs[1], dy)) {
                plan.addition = sum;
                f->plans[sum.index].fate = FUSE_GONE;
            }
            f->plans[inner.index].fate = FUSE_GONE;
            f->plans[back.index] = plan;
            return;
        }
    }
}

// Only if relu is the one reader, or else the value between would be missing.
static void fuse_find(fuser *f, pen_node_id normalization) {
    if (!fuse_is(f, normalization, PEN_OP(batch_normalization))) return;
    const pen_node *node = pen_graph_node(f->graph, normalization);
    const pen_value_id y = node->outputs[0];
    pen_node_id relu = pen_readers_only(&f->readers, y);
    fuse_plan plan = {FUSE_FORWARD, normalization, PEN_NODE_NONE, PEN_VALUE_NONE, false};
    if (fuse_is(f, relu, PEN_OP(add))) {
        const pen_node *sum = pen_graph_node(f->graph, relu);
        plan.addition = relu;
        plan.residual = sum->inputs[pen_value_same(sum->inputs[0], y) ? 1 : 0];
        if (!fuse_same_type(f, plan.residual, y)) return;
        relu = pen_readers_only(&f->readers, sum->outputs[0]);
    }
    if (!fuse_is(f, relu, PEN_OP(relu)) || node->accumulates) return;
    if (!fuse_statistics_can_wait(f, node, relu)) return;
    f->plans[normalization.index].fate = FUSE_GONE;
    if (pen_node_is(plan.addition)) f->plans[plan.addition.index].fate = FUSE_GONE;
    f->plans[relu.index] = plan;
    fuse_find_backward(f, normalization, relu, pen_node_is(plan.addition));
}

// Values of the old graph.
typedef struct fuse_operands {
    uint32_t input_count, output_count;
    const pen_value_id *inputs;
    const pen_value_id *outputs; // that those of the fused node stand for
} fuse_operands;

// Makes the fused node in place of `normalization`.
static pen_status fuse_make(fuser *f, pen_node_id normalization, const pen_op *op,
                            const fuse_operands *operands) {
    const pen_value_id *inputs = operands->inputs, *outputs = operands->outputs;
    const uint32_t input_count = operands->input_count, output_count = operands->output_count;
    pen_graph_copy *copy = &f->copy;
    pen_value_id moved[8] = {PEN_VALUE_NONE};
    const char *names[8] = {NULL};
    const pen_node *node = pen_graph_node(f->graph, normalization);
    PEN_ASSERT(input_count <= 8 && output_count <= 8);
    for (uint32_t i = 0; i < input_count; i++) {
        moved[i] = copy->values[inputs[i].index];
        PEN_ASSERT(pen_value_is(moved[i]));
    }
    for (uint32_t i = 0; i < output_count; i++) {
        if (pen_value_is(outputs[i])) names[i] = pen_value_name(f->graph, outputs[i]);
    }
    pen_node_spec spec;
    PEN_TRY(pen_graph_copy_spec(copy, normalization, op, node->name, &spec));
    PEN_TRY(pen_graph_copy_attributes(copy, normalization, &spec));
    spec.inputs = moved;
    spec.input_count = input_count;
    spec.output_count = output_count;
    spec.output_names = names;
    pen_node_id made;
    PEN_TRY(pen_graph_add_node(copy->to, &spec, &made));
    copy->nodes[normalization.index] = made;
    for (uint32_t i = 0; i < output_count; i++) {
        if (!pen_value_is(outputs[i])) continue;
        pen_graph_copy_value(copy, outputs[i], pen_graph_node(copy->to, made)->outputs[i]);
    }
    return PEN_OK;
}

// Takes the place of the normalization, so that its moments exist where they did before.
static pen_status fuse_forward(fuser *f, pen_node_id relu) {
    const fuse_plan *plan = &f->plans[relu.index];
    const pen_node *node = pen_graph_node(f->graph, plan->normalization);
    const bool adds = pen_value_is(plan->residual);
    pen_value_id inputs[6], outputs[5];
    for (uint32_t i = 0; i < 5; i++) {
        inputs[i] = node->inputs[i];
    }
    inputs[5] = plan->residual;
    outputs[0] = pen_graph_node(f->graph, relu)->outputs[0];
    for (uint32_t i = 1; i < node->output_count; i++) {
        outputs[i] = node->outputs[i];
    }
    const fuse_operands operands = {adds ? 6 : 5, node->output_count, inputs, outputs};
    PEN_TRY(fuse_make(
        f, plan->normalization,
        adds ? PEN_OP(batch_normalization_add_relu) : PEN_OP(batch_normalization_relu), &operands));
    const pen_node_id made = f->copy.nodes[plan->normalization.index];
    f->copy.nodes[relu.index] = made;
    if (adds) f->copy.nodes[plan->addition.index] = made;
    return PEN_OK;
}

// Relu's gradient goes into that of the normalization, which makes the mask again from its input.
static pen_status fuse_backward(fuser *f, pen_node_id id) {
    const fuse_plan *plan = &f->plans[id.index];
    const pen_node *back = pen_graph_node(f->graph, id);
    const pen_node *node = pen_graph_node(f->graph, plan->normalization);
    const pen_node *forward = pen_graph_node(f->graph, node->gradient_of);
    const pen_value_id *of = node->inputs; // dy, x, scale, mean, inverse
    pen_value_id outputs[6] = {back->outputs[0]};
    if (!plan->adds) {
        const pen_value_id inputs[] = {back->inputs[0],    of[1], of[2],
                                       forward->inputs[2], of[3], of[4]};
        const fuse_operands operands = {6, node->output_count, inputs, node->outputs};
        return fuse_make(f, plan->normalization, PEN_OP(batch_normalization_relu_backward),
                         &operands);
    }
    pen_value_id dy = back->inputs[0], dy_2 = PEN_VALUE_NONE;
    if (pen_node_is(plan->addition)) {
        dy = pen_graph_node(f->graph, plan->addition)->inputs[0];
        dy_2 = pen_graph_node(f->graph, plan->addition)->inputs[1];
    }
    const pen_value_id inputs[] = {dy, back->inputs[1], of[1], of[2], of[3], of[4], dy_2};
    for (uint32_t i = 0; i < node->output_count; i++) {
        outputs[1 + i] = node->outputs[i];
    }
    const fuse_operands operands = {pen_value_is(dy_2) ? 7 : 6, node->output_count + 1, inputs,
                                    outputs};
    return fuse_make(f, plan->normalization, PEN_OP(batch_normalization_add_relu_backward),
                     &operands);
}

static pen_status fuse_write(fuser *f) {
    for (uint32_t n = 0; n < pen_graph_node_count(f->graph); n++) {
        const pen_node_id node = {n};
        switch (f->plans[n].fate) {
        case FUSE_COPIED:
            PEN_TRY(pen_graph_copy_node(&f->copy, node));
            break;
        case FUSE_GONE:
            break;
        case FUSE_FORWARD:
            PEN_TRY(fuse_forward(f, node));
            break;
        case FUSE_BACKWARD:
            PEN_TRY(fuse_backward(f, node));
            break;
        }
    }
    return pen_graph_copy_end(&f->copy);
}

pen_status pen_fuse_normalization(const pen_graph *graph, uint32_t kept_count,
                                  const pen_value_id *kept, pen_graph **out_graph,
                                  const pen_value_id **out_values) {
    fuser f = {.graph = graph};
    pen_arena *arena = pen_graph_arena(graph);
    PEN_TRY(pen_readers_build(graph, kept_count, kept, arena, &f.readers));
    PEN_TRY(PEN_NEW(arena, pen_graph_node_count(graph), &f.plans));
    for (uint32_t n = 0; n < pen_graph_node_count(graph); n++) {
        fuse_find(&f, (pen_node_id){n});
    }
    PEN_TRY(pen_graph_copy_begin(graph, &f.copy));
    PEN_TRY(fuse_write(&f));
    *out_graph = f.copy.to;
    *out_values = f.copy.values;
    return PEN_OK;
}
