// Normalization over batches, layers, groups, channels; and of weights.

#include "graph/import/pytorch/ops/pt2_movement.h"
#include "graph/import/pytorch/pt2_mapping.h"

// A vector of one number for each of the channels, which are dimension 1.
static pen_status normalization_vector(pen_pt2_draft *draft, double number,
                                       pen_value_id *out_value) {
    const pen_shape *shape = &pen_pt2_type(draft, "input")->shape;
    if (shape->rank < 2 || shape->dims[1] < 0) {
        return pen_pt2_refuse(draft, "the number of its channels is open");
    }
    PEN_TRY(pen_pt2_own_number(draft, number, out_value));
    return pen_pt2_with_int(draft, "expand", number == 0 ? "zeros" : "ones", *out_value,
                            shape->dims[1], out_value);
}

// An operand of a number a channel; where it is left out, `number` for all.
static pen_status normalization_operand(pen_pt2_draft *draft, const char *name, double number,
                                        pen_value_id *out_value) {
    PEN_TRY(pen_pt2_tensor_or_none(draft, name, out_value));
    if (pen_value_is(*out_value)) return PEN_OK;
    return normalization_vector(draft, number, out_value);
}

typedef struct batch_norm {
    pen_value_id inputs[5]; // x, scale, bias, mean, variance
    pen_value_id outputs[5];
} batch_norm;

static pen_status batch_norm_read(pen_pt2_draft *draft, batch_norm *work) {
    PEN_TRY(pen_pt2_own_operand(draft, "input", &work->inputs[0]));
    PEN_TRY(normalization_operand(draft, "weight", 1, &work->inputs[1]));
    PEN_TRY(normalization_operand(draft, "bias", 0, &work->inputs[2]));
    PEN_TRY(normalization_operand(draft, "running_mean", 0, &work->inputs[3]));
    return normalization_operand(draft, "running_var", 1, &work->inputs[4]);
}

static pen_status batch_norm_emit(pen_pt2_draft *draft, batch_norm *work, bool is_training) {
    const pen_attribute_given attributes[] = {
        pen_attribute_float("epsilon", pen_pt2_float(draft, "eps", 1e-5)),
        pen_attribute_float("momentum", 1 - pen_pt2_float(draft, "momentum", 0.1)),
        pen_attribute_int("training_mode", is_training),
        pen_attribute_int("unbiased", is_training),
    };
    const pen_pt2_emission emission = {.op_name = "batch_normalization",
                                       .inputs = PEN_INPUTS_ALL(work->inputs),
                                       .attributes = {attributes, 4},
                                       .output_count = is_training ? 5 : 1};
    return pen_pt2_emit_many(draft, &emission, work->outputs);
}

// x with its mean over `axes` taken off and divided by its deviation: what our operator would not
// do in an evaluation.
static pen_status batch_norm_standardize(pen_pt2_draft *draft, pen_value_id x, pen_pt2_list axes,
                                         pen_value_id *out_value) {
    pen_value_id list, mean, variance, epsilon;
    const double eps = pen_pt2_float(draft, "eps", 1e-5);
    PEN_TRY(pen_pt2_constant_ints(draft, axes.count, axes.integers, &list));
    PEN_TRY(pen_pt2_pair(draft, "reduce_mean", "mean", x, list, &mean));
    PEN_TRY(pen_pt2_pair(draft, "sub", "centred", x, mean, &x));
    PEN_TRY(pen_pt2_pair(draft, "mul", "squares", x, x, &variance));
    PEN_TRY(pen_pt2_pair(draft, "reduce_mean", "variance", variance, list, &variance));
    PEN_TRY(pen_pt2_own_number(draft, eps, &epsilon));
    PEN_TRY(pen_pt2_pair(draft, "add", "held", variance, epsilon, &variance));
    PEN_TRY(pen_pt2_map(draft, "sqrt", "deviation", variance, &variance));
    return pen_pt2_pair(draft, "div", "standard", x, variance, out_value);
}

// Without running statistics those of the batch are taken in evaluations, too.
static pen_status batch_norm_without_statistics(pen_pt2_draft *draft) {
    const uint32_t rank = pen_pt2_rank(draft, "input");
    int64_t axes[PEN_RANK_LIMIT] = {0}, shape[PEN_RANK_LIMIT];
    pen_value_id x, weights[2];
    if (rank < 2) return pen_pt2_refuse(draft, "its operand has %u dimensions", rank);
    for (uint32_t d = 0; d < rank; d++) {
        shape[d] = d == 1 ? -1 : 1;
        if (d >= 2) axes[d - 1] = d;
    }
    PEN_TRY(pen_pt2_own_operand(draft, "input", &x));
    PEN_TRY(normalization_operand(draft, "weight", 1, &weights[0]));
    PEN_TRY(normalization_operand(draft, "bias", 0, &weights[1]));
    for (uint32_t i = 0; i < 2; i++) {
        PEN_TRY(pen_pt2_with_ints(draft, "reshape", "channels", weights[i],
                                  (pen_pt2_list){rank, shape}, &weights[i]));
    }
    PEN_TRY(batch_norm_standardize(draft, x, (pen_pt2_list){rank - 1, axes}, &x));
    PEN_TRY(pen_pt2_pair(draft, "mul", "scaled", x, weights[0], &x));
    return pen_pt2_give_pair(draft, "add", x, weights[1]);
}

// In training, what the running statistics become is what the buffers hold from then on.
static pen_status convert_batch_norm(pen_pt2_draft *draft) {
    const bool is_training = pen_pt2_bool(draft, "training", false);
    batch_norm work;
    if (!pen_pt2_has(draft, "running_mean")) return batch_norm_without_statistics(draft);
    PEN_TRY(batch_norm_read(draft, &work));
    PEN_TRY(batch_norm_emit(draft, &work, is_training));
    if (is_training) {
        PEN_TRY(pen_pt2_mutate(draft, "running_mean", work.outputs[1]));
        PEN_TRY(pen_pt2_mutate(draft, "running_var", work.outputs[2]));
    }
    return pen_pt2_set(draft, 0, work.outputs[0]);
}

// The same with the running statistics among its results.
static pen_status convert_functional_batch_norm(pen_pt2_draft *draft) {
    batch_norm work;
    PEN_TRY(batch_norm_read(draft, &work));
    if (!pen_pt2_bool(draft, "training", false)) {
        PEN_TRY(batch_norm_emit(draft, &work, false));
        work.outputs[1] = work.inputs[3];
        work.outputs[2] = work.inputs[4];
    } else {
        PEN_TRY(batch_norm_emit(draft, &work, true));
    }
    PEN_TRY(pen_pt2_set(draft, 3, work.outputs[1]));
    PEN_TRY(pen_pt2_set(draft, 4, work.outputs[2]));
    return pen_pt2_set(draft, 0, work.outputs[0]);
}

// A row of `op_name` with the operand's own scale and bias, or a bias alone, added behind it.
static pen_status normalization_give(pen_pt2_draft *draft, const char *op_name, pen_value_id x,
                                     pen_node_attributes attributes) {
    pen_value_id inputs[3] = {x}, y;
    PEN_TRY(pen_pt2_tensor_or_none(draft, "weight", &inputs[1]));
    PEN_TRY(pen_pt2_tensor_or_none(draft, "bias", &inputs[2]));
    const bool has_scale = pen_value_is(inputs[1]), has_bias = pen_value_is(inputs[2]);
    const uint32_t count = !has_scale ? 1 : has_bias ? 3 : 2;
    const bool adds = has_bias && !has_scale;
    PEN_TRY(pen_pt2_emit(draft, op_name, adds ? "normalized" : NULL,
                         (pen_node_inputs){inputs, count}, attributes, &y));
    return adds ? pen_pt2_give_pair(draft, "add", y, inputs[2]) : pen_pt2_set(draft, 0, y);
}

// The first dimension of those that normalized_shape names, which are the last ones.
static int64_t normalization_axis(pen_pt2_draft *draft) {
    return -(int64_t)pen_pt2_ints(draft, "normalized_shape").count;
}

static pen_status convert_layer_norm(pen_pt2_draft *draft) {
    pen_value_id x;
    PEN_TRY(pen_pt2_own_operand(draft, "input", &x));
    return normalization_give(
        draft, "layer_normalization", x,
        PEN_WITH(pen_attribute_int("axis", normalization_axis(draft)),
                 pen_attribute_float("epsilon", pen_pt2_float(draft, "eps", 1e-5))));
}

// Without an epsilon: the distance of 1 to the next number.
static pen_status convert_rms_norm(pen_pt2_draft *draft) {
    const double smallest = pen_pt2_own_element(draft) == PEN_FLOAT64 ? 0x1p-52 : 0x1p-23;
    pen_value_id x;
    PEN_TRY(pen_pt2_own_operand(draft, "input", &x));
    return normalization_give(
        draft, "rms_normalization", x,
        PEN_WITH(pen_attribute_int("axis", normalization_axis(draft)),
                 pen_attribute_float("epsilon", pen_pt2_float(draft, "eps", smallest))));
}

// The number of groups is called `group` by the native operator.
static pen_status convert_group_norm(pen_pt2_draft *draft) {
    const int64_t groups = pen_pt2_int(draft, "num_groups", pen_pt2_int(draft, "group", 1));
    pen_value_id x;
    if (pen_pt2_has(draft, "bias") && !pen_pt2_has(draft, "weight")) {
        return pen_pt2_refuse(draft, "it has a bias, but no weight");
    }
    PEN_TRY(pen_pt2_own_operand(draft, "input", &x));
    return normalization_give(
        draft, "group_normalization", x,
        PEN_WITH(pen_attribute_int("num_groups", groups),
                 pen_attribute_float("epsilon", pen_pt2_float(draft, "eps", 1e-5))));
}

// A number a channel, for each of the examples in turn.
static pen_status instance_norm_repeat(pen_pt2_draft *draft, pen_value_id x, pen_value_id vector,
                                       pen_value_id *out_value) {
    pen_value_id examples;
    PEN_TRY(pen_pt2_emit(draft, "shape", "examples", PEN_INPUTS(x),
                         PEN_WITH(pen_attribute_int("end", 1)), &examples));
    return pen_pt2_pair(draft, "tile", "repeated", vector, examples, out_value);
}

// What the running statistics of all examples became, their mean being what is kept.
static pen_status instance_norm_mutate(pen_pt2_draft *draft, const char *name, int64_t channels,
                                       pen_value_id value) {
    const int64_t sizes[] = {-1, channels};
    pen_value_id axes;
    PEN_TRY(
        pen_pt2_with_ints(draft, "reshape", "by_example", value, (pen_pt2_list){2, sizes}, &value));
    PEN_TRY(pen_pt2_constant_ints(draft, 1, (const int64_t[]){0}, &axes));
    PEN_TRY(pen_pt2_emit(draft, "reduce_mean", "kept", PEN_INPUTS(value, axes),
                         PEN_WITH(pen_attribute_int("keepdims", 0)), &value));
    return pen_pt2_mutate(draft, name, value);
}

// As batch normalization of one example that has the channels of all: so an evaluation takes the
// running statistics.
static pen_status instance_norm_with_statistics(pen_pt2_draft *draft) {
    const pen_shape *shape = &pen_pt2_type(draft, "input")->shape;
    int64_t sizes[PEN_RANK_LIMIT] = {1, -1};
    batch_norm work;
    if (shape->rank < 2) return pen_pt2_refuse(draft, "its operand has %u dimensions", shape->rank);
    PEN_TRY(batch_norm_read(draft, &work));
    for (uint32_t d = 2; d < shape->rank; d++) {
        if (shape->dims[d] < 0) return pen_pt2_refuse(draft, "its operand's sizes are open");
        sizes[d] = shape->dims[d];
    }
    for (uint32_t i = 1; i < 5; i++) {
        PEN_TRY(instance_norm_repeat(draft, work.inputs[0], work.inputs[i], &work.inputs[i]));
    }
    PEN_TRY(pen_pt2_with_ints(draft, "reshape", "joined", work.inputs[0],
                              (pen_pt2_list){shape->rank, sizes}, &work.inputs[0]));
    PEN_TRY(batch_norm_emit(draft, &work, true));
    PEN_TRY(instance_norm_mutate(draft, "running_mean", shape->dims[1], work.outputs[1]));
    PEN_TRY(instance_norm_mutate(draft, "running_var", shape->dims[1], work.outputs[2]));
    PEN_TRY(pen_pt2_reshape_to(draft, "apart", work.outputs[0], 0, &work.outputs[0]));
    return pen_pt2_set(draft, 0, work.outputs[0]);
}

static pen_status convert_instance_norm(pen_pt2_draft *draft) {
    batch_norm work;
    pen_value_id x;
    if (!pen_pt2_bool(draft, "use_input_stats", true)) {
        PEN_TRY(batch_norm_read(draft, &work));
        PEN_TRY(batch_norm_emit(draft, &work, false));
        return pen_pt2_set(draft, 0, work.outputs[0]);
    }
    if (pen_pt2_has(draft, "running_mean")) return instance_norm_with_statistics(draft);
    PEN_TRY(pen_pt2_own_operand(draft, "input", &x));
    return normalization_give(
        draft, "instance_normalization", x,
        PEN_WITH(pen_attribute_float("epsilon", pen_pt2_float(draft, "eps", 1e-5))));
}

// v · g / |v|, the norm being taken over all dimensions but one, or over all where that is -1.
static pen_status convert_weight_norm(pen_pt2_draft *draft) {
    const uint32_t rank = pen_pt2_rank(draft, "v");
    const int64_t kept = pen_pt2_int(draft, "dim", 0);
    int64_t axes[PEN_RANK_LIMIT];
    uint32_t count = 0;
    pen_value_id v, g, list, norm;
    for (uint32_t d = 0; d < rank; d++) {
        if (d != kept) axes[count++] = d;
    }
    PEN_TRY(pen_pt2_tensor(draft, "v", &v));
    PEN_TRY(pen_pt2_tensor(draft, "g", &g));
    if (count == 0) {
        PEN_TRY(pen_pt2_map(draft, "abs", "norm", v, &norm));
    } else {
        PEN_TRY(pen_pt2_constant_ints(draft, count, axes, &list));
        PEN_TRY(pen_pt2_pair(draft, "reduce_l2", "norm", v, list, &norm));
    }
    PEN_TRY(pen_pt2_pair(draft, "div", "factor", g, norm, &g));
    PEN_TRY(pen_pt2_set(draft, 1, norm));
    return pen_pt2_give_pair(draft, "mul", v, g);
}

static const pen_pt2_mapping normalization_rows[] = {
    {.target = "aten.batch_norm.default", .convert = convert_batch_norm, .trains_by = "training"},
    PEN_PT2_ROW("native_batch_norm.default", batch_norm),
    PEN_PT2_ROW("_native_batch_norm_legit.default", batch_norm),
    PEN_PT2_ROW("_native_batch_norm_legit.no_stats", batch_norm),
    PEN_PT2_ROW("_native_batch_norm_legit_no_training.default", batch_norm),
    PEN_PT2_ROW("_native_batch_norm_legit_functional.default", functional_batch_norm),
    PEN_PT2_ROW("layer_norm.default", layer_norm),
    PEN_PT2_ROW("native_layer_norm.default", layer_norm),
    PEN_PT2_ROW("rms_norm.default", rms_norm),
    PEN_PT2_ROW("group_norm.default", group_norm),
    PEN_PT2_ROW("native_group_norm.default", group_norm),
    PEN_PT2_ROW("instance_norm.default", instance_norm),
    PEN_PT2_ROW("_weight_norm.default", weight_norm),
    PEN_PT2_ROW("_weight_norm_interface.default", weight_norm),
};

PEN_PT2_FAMILY(pen_pt2_normalizations, normalization_rows);
