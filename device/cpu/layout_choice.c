#include "device/cpu/layout_choice.h"

#include "device/cpu/cpu_kernel_list.h"
#include "device/cpu/cpu_layout.h"
#include "device/cpu/depthwise.h"
#include "device/cpu/onednn/onednn_convolution.h"
#include "graph/graph.h"
#include "graph/op.h"
#include "graph/op_known.h"

static bool layout_is_possible(const pen_graph *graph, pen_value_id value) {
    if (!pen_value_is(value)) return true;
    const pen_tensor_type *type = pen_value_type(graph, value);
    return type->element == PEN_FLOAT32 && type->shape.rank >= 3 && type->shape.rank <= 5 &&
           pen_shape_element_count(&type->shape) > 0;
}

static bool layout_is_masked(uint64_t mask, uint32_t index) {
    return index < 64 && (mask >> index & 1) != 0;
}

// Operands that must lie alike take the layout of the first of them that is not plain. All else is
// plain.
static void layout_follow(const pen_graph *graph, const pen_node *node, pen_layout *inputs,
                          pen_layout *outputs) {
    pen_layout layout = PEN_LAYOUT_PLAIN;
    bool possible = true;
    for (uint32_t i = 0; i < node->input_count; i++) {
        const pen_layout found = inputs[i];
        inputs[i] = PEN_LAYOUT_PLAIN;
        if (!layout_is_masked(node->op->alike_inputs, i)) continue;
        possible = possible && layout_is_possible(graph, node->inputs[i]);
        if (pen_cpu_layout_block(layout) == 1) layout = found;
    }
    for (uint32_t i = 0; i < node->output_count; i++) {
        // an output that should not be there: only the plain kernel makes it
        if (!layout_is_masked(node->op->alike_outputs, i) && pen_value_is(node->outputs[i]) &&
            pen_value_type(graph, node->outputs[i])->element != PEN_FLOAT32) {
            possible = false;
        }
        if (!layout_is_masked(node->op->alike_outputs, i)) continue;
        possible = possible && layout_is_possible(graph, node->outputs[i]);
    }
    if (!possible || pen_cpu_layout_block(layout) == 1) return;
    for (uint32_t i = 0; i < node->input_count; i++) {
        if (layout_is_masked(node->op->alike_inputs, i)) inputs[i] = layout;
    }
    for (uint32_t i = 0; i < node->output_count; i++) {
        if (layout_is_masked(node->op->alike_outputs, i)) outputs[i] = layout;
    }
}

static bool layout_is_scalar(const pen_graph *graph, pen_value_id value) {
    return pen_shape_element_count(&pen_value_type(graph, value)->shape) == 1;
}

// Whether a clip keeps zeros: its limits are constants with 0 between them.
static bool layout_clips_around_zero(const pen_graph *graph, const pen_node *node) {
    if (node->op != PEN_OP(clip)) return false;
    for (uint32_t i = 1; i < node->input_count; i++) {
        double limit;
        if (!pen_value_is(node->inputs[i])) continue;
        const pen_status status = pen_value_read_number(graph, node->inputs[i], &limit);
        if (status != PEN_OK) {
            pen_status_ignore(status, "a limit that may be anything");
            return false;
        }
        if (i == 1 ? !(limit <= 0) : !(limit >= 0)) return false;
    }
    return true;
}

// The layout that all operands of an elementwise node can have: plain unless all shapes are equal,
// but for those of one number for each channel of each sample.
static pen_layout layout_common(const pen_graph *graph, const pen_node *node,
                                const pen_layout *inputs) {
    const pen_shape *shape = &pen_value_type(graph, node->outputs[0])->shape;
    pen_layout layout = PEN_LAYOUT_PLAIN;
    if (node->output_count != 1 || !layout_is_possible(graph, node->outputs[0])) return layout;
    for (uint32_t i = 0; i < node->input_count; i++) {
        const pen_value_id input = node->inputs[i];
        if (!pen_value_is(input) || layout_is_scalar(graph, input)) continue;
        if (!layout_is_possible(graph, input)) return PEN_LAYOUT_PLAIN;
        const pen_shape *found = &pen_value_type(graph, input)->shape;
        if (!pen_shape_equal(found, shape)) {
            if (!pen_cpu_is_of_channels(found, shape)) return PEN_LAYOUT_PLAIN;
            continue; // it lies as the others do
        }
        if (layout == PEN_LAYOUT_PLAIN) layout = inputs[i];
    }
    const bool may_be_padded = node->op->keeps_zeros || layout_clips_around_zero(graph, node);
    const bool is_full = shape->dims[1] % pen_cpu_layout_block(layout) == 0;
    return is_full || may_be_padded ? layout : PEN_LAYOUT_PLAIN;
}

static void layout_elementwise(const pen_graph *graph, const pen_node *node, pen_layout *inputs,
                               pen_layout *outputs) {
    const pen_layout layout = layout_common(graph, node, inputs);
    for (uint32_t i = 0; i < node->input_count; i++) {
        const bool follows =
            pen_value_is(node->inputs[i]) && !layout_is_scalar(graph, node->inputs[i]);
        inputs[i] = follows ? layout : PEN_LAYOUT_PLAIN;
    }
    if (layout != PEN_LAYOUT_PLAIN) outputs[0] = layout;
}

// Tensors joined or split along channels are so in whole blocks, or plain.
static void layout_join(const pen_graph *graph, const pen_node *node, bool is_split,
                        pen_layout *inputs, pen_layout *outputs) {
    const int64_t axis = pen_node_int(node, "axis");
    const uint32_t rank = pen_value_type(graph, node->inputs[0])->shape.rank;
    const uint32_t part_count = is_split ? node->output_count : node->input_count;
    pen_layout layout = PEN_LAYOUT_PLAIN;
    bool possible = axis == 1 || axis + (int64_t)rank == 1;
    for (uint32_t i = 0; i < (is_split ? 1 : node->input_count); i++) {
        if (pen_cpu_layout_block(layout) == 1) layout = inputs[i];
    }
    for (uint32_t i = 0; i < part_count; i++) {
        const pen_value_id part = is_split ? node->outputs[i] : node->inputs[i];
        possible = possible && pen_value_is(part) && layout_is_possible(graph, part) &&
                   pen_value_type(graph, part)->shape.dims[1] % pen_cpu_layout_block(layout) == 0;
    }
    if (!possible || pen_cpu_layout_block(layout) == 1) layout = PEN_LAYOUT_PLAIN;
    for (uint32_t i = 0; i < node->input_count; i++) {
        inputs[i] = is_split && i > 0 ? PEN_LAYOUT_PLAIN : layout;
    }
    for (uint32_t i = 0; i < node->output_count; i++) {
        outputs[i] = layout;
    }
}

static pen_layout layout_of_level(pen_kernel_level level) {
    switch (level) {
    case PEN_KERNEL_LEVEL_V4:
        return PEN_CPU_LAYOUT_BLOCKED_16;
    case PEN_KERNEL_LEVEL_V3:
    case PEN_KERNEL_LEVEL_V2:
        return PEN_CPU_LAYOUT_BLOCKED_8;
    case PEN_KERNEL_LEVEL_AUTO:
    case PEN_KERNEL_LEVEL_BASE:
    case PEN_KERNEL_LEVEL_COUNT:
        break;
    }
    return PEN_LAYOUT_PLAIN;
}

// A small plain tensor spread over a large one that convolutions will read: blocked from here on.
static void layout_spread(pen_kernel_level level, const pen_graph *graph, const pen_node *node,
                          pen_layout *inputs, pen_layout *outputs) {
    const pen_layout layout = layout_of_level(level);
    const bool is_possible =
        layout_is_possible(graph, node->outputs[0]) && layout_is_possible(graph, node->inputs[0]);
    inputs[0] = outputs[0] = is_possible ? layout : PEN_LAYOUT_PLAIN;
}

// Of many positions one: as they lie.
static void layout_reduce(const pen_graph *graph, const pen_node *node, pen_layout *inputs,
                          pen_layout *outputs) {
    pen_layout layout = inputs[0];
    if (pen_cpu_layout_block(layout) == 1 || !layout_is_possible(graph, node->outputs[0]) ||
        !layout_is_possible(graph, node->inputs[0]) || !pen_cpu_reduces_positions(graph, node)) {
        layout = PEN_LAYOUT_PLAIN;
    }
    inputs[0] = outputs[0] = layout;
}

// Gradients of convolutions of one channel each: our kernels take blocks alone. Sets nothing where
// oneDNN is to be asked.
static bool layout_depthwise(pen_kernel_level level, const pen_graph *graph, const pen_node *node,
                             pen_layout *inputs, pen_layout *outputs) {
    const pen_layout layout = layout_of_level(level);
    const bool is_weight = node->op == PEN_OP(conv_backward_weight);
    pen_conv_geometry geometry;
    if (layout == PEN_LAYOUT_PLAIN || !pen_depthwise_is(graph, node, &geometry)) return false;
    if (!layout_is_possible(graph, node->inputs[0])) return false;
    if (!layout_is_possible(graph, node->outputs[0])) return false;
    inputs[0] = layout;
    inputs[1] = is_weight ? layout : PEN_LAYOUT_PLAIN;
    outputs[0] = is_weight ? PEN_LAYOUT_PLAIN : layout;
    return true;
}

// What computes no elements of its own follows the layouts of its neighbours; only convolutions
// have a wish.
pen_status pen_cpu_layout_choose(pen_kernel_level level, const pen_graph *graph, pen_node_id id,
                                 pen_layout *inputs, pen_layout *outputs) {
    const pen_node *node = pen_graph_node(graph, id);
    const pen_op *op = node->op;
    if (op->alike_inputs != 0) {
        layout_follow(graph, node, inputs, outputs);
    } else if (layout_depthwise(level, graph, node, inputs, outputs)) {
        return PEN_OK;
    } else if (op->work == PEN_WORK_CONVOLUTION) {
        return pen_onednn_convolution_layouts(graph, id, inputs, outputs);
    } else if (op == PEN_OP(global_average_pool_backward)) {
        layout_spread(level, graph, node, inputs, outputs);
    } else if (op == PEN_OP(reduce_sum) || op == PEN_OP(reduce_mean)) {
        layout_reduce(graph, node, inputs, outputs);
    } else if (op == PEN_OP(concat) || op == PEN_OP(split)) {
        layout_join(graph, node, op == PEN_OP(split), inputs, outputs);
    } else if (pen_cpu_takes_any_layout(level, op->name)) {
        layout_elementwise(graph, node, inputs, outputs);
    } else {
        for (uint32_t i = 0; i < node->input_count; i++) {
            inputs[i] = PEN_LAYOUT_PLAIN;
        }
    }
    return PEN_OK;
}
