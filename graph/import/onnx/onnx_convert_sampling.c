// Conversions of operators that pick or sample elements, and of those that are several of ours.

#include "graph/import/onnx/onnx_mapping.h"

pen_status pen_onnx_convert_top_k(pen_onnx_draft *draft) {
    const pen_onnx_attribute *k = pen_onnx_draft_attribute(draft, "k");
    if (draft->node->opset < 10) {
        if (k == NULL || k->type != PEN_ONNX_INT) {
            return pen_error(PEN_INVALID_INPUT, "there is no attribute 'k'");
        }
        PEN_TRY(pen_onnx_draft_ints(draft, 1, "k", 1, &k->integer));
    }
    if (draft->output_count > 1) return PEN_OK;
    draft->output_count = 2; // its gradient needs the indices
    return pen_arena_format(pen_graph_arena(draft->graph), &draft->output_names[1], "%s/indices",
                            draft->name);
}

// Operand 1 is scales: then it becomes operand 2, behind a region that is left out.
static void convert_move_scales(pen_onnx_draft *draft) {
    const pen_value_id scales = pen_onnx_draft_has(draft, 1) ? draft->inputs[1] : PEN_VALUE_NONE;
    pen_onnx_draft_set_input(draft, 1, PEN_VALUE_NONE);
    pen_onnx_draft_set_input(draft, 2, scales);
}

// Upsample, and Resize as it began: places are multiples of the scale, rounded down.
static void convert_sample_from_corner(pen_onnx_draft *draft) {
    pen_onnx_draft_add_attribute(
        draft, pen_attribute_text("coordinate_transformation_mode", "asymmetric"));
    pen_onnx_draft_add_attribute(draft, pen_attribute_text("nearest_mode", "floor"));
}

pen_status pen_onnx_convert_resize(pen_onnx_draft *draft) {
    if (draft->node->opset >= 11) return PEN_OK;
    convert_move_scales(draft);
    convert_sample_from_corner(draft);
    return PEN_OK;
}

pen_status pen_onnx_convert_upsample(pen_onnx_draft *draft) {
    const pen_onnx_attribute *scales = pen_onnx_draft_attribute(draft, "scales");
    if (draft->node->opset < 9) {
        if (scales == NULL || scales->type != PEN_ONNX_FLOATS) {
            return pen_error(PEN_INVALID_INPUT, "there is no attribute 'scales'");
        }
        PEN_TRY(pen_onnx_draft_floats(draft, 1, "scales", scales->count, scales->numbers));
    }
    convert_move_scales(draft);
    convert_sample_from_corner(draft);
    return PEN_OK;
}

pen_status pen_onnx_convert_roi_align(pen_onnx_draft *draft) {
    if (draft->node->opset >= 16) return PEN_OK;
    pen_onnx_draft_add_attribute(
        draft, pen_attribute_text("coordinate_transformation_mode", "output_half_pixel"));
    return PEN_OK;
}

// A node in front of the draft's.
static pen_status convert_apply(pen_onnx_draft *draft, const char *op_name, const char *suffix,
                                pen_node_inputs inputs, pen_value_id *out_value) {
    const pen_onnx_extra extra = {op_name, suffix, inputs, PEN_NO_ATTRIBUTES};
    return pen_onnx_draft_extra(draft, &extra, out_value);
}

// (x - mean) / (sqrt(mean of squares of that) + 1e-9)
pen_status pen_onnx_convert_mean_variance(pen_onnx_draft *draft) {
    static const int64_t planes[] = {0, 2, 3};
    const pen_onnx_attribute *axes = pen_onnx_draft_attribute(draft, "axes");
    const bool given = axes != NULL && axes->type == PEN_ONNX_INTS;
    if (!pen_onnx_draft_has(draft, 0)) return pen_error(PEN_INVALID_INPUT, "there is no operand");
    pen_value_id x = draft->inputs[0], mean, centered, variance, deviation;
    // the operands 1 and 2 are places for constants until the node has its own
    PEN_TRY(pen_onnx_draft_ints(draft, 1, "axes", given ? axes->count : 3,
                                given ? axes->integers : planes));
    PEN_TRY(pen_onnx_draft_number(draft, 2, "epsilon", 1e-9));
    const pen_value_id axes_value = draft->inputs[1], epsilon = draft->inputs[2];
    PEN_TRY(convert_apply(draft, "reduce_mean", "mean", PEN_INPUTS(x, axes_value), &mean));
    PEN_TRY(convert_apply(draft, "sub", "centered", PEN_INPUTS(x, mean), &centered));
    PEN_TRY(convert_apply(draft, "mul", "squares", PEN_INPUTS(centered, centered), &variance));
    PEN_TRY(convert_apply(draft, "reduce_mean", "variance", PEN_INPUTS(variance, axes_value),
                          &variance));
    PEN_TRY(convert_apply(draft, "sqrt", "deviation", PEN_INPUTS(variance), &deviation));
    PEN_TRY(convert_apply(draft, "add", "divisor", PEN_INPUTS(deviation, epsilon), &deviation));
    draft->inputs[0] = centered;
    draft->inputs[1] = deviation;
    draft->input_count = 2;
    return PEN_OK;
}
