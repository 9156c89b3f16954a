// Activation functions and softmax.

#include "graph/import/pytorch/pt2_mapping.h"

// `clip` has no gradient at its limits, as hardtanh has none.
static pen_status activation_clip(pen_pt2_draft *draft, double low, double high) {
    pen_value_id x, limits[2];
    PEN_TRY(pen_pt2_own_operand(draft, "self", &x));
    PEN_TRY(pen_pt2_own_number(draft, low, &limits[0]));
    PEN_TRY(pen_pt2_own_number(draft, high, &limits[1]));
    return pen_pt2_give(draft, "clip", PEN_INPUTS(x, limits[0], limits[1]), PEN_NO_ATTRIBUTES);
}

static pen_status convert_relu6(pen_pt2_draft *draft) {
    return activation_clip(draft, 0, 6);
}

static pen_status convert_hardtanh(pen_pt2_draft *draft) {
    return activation_clip(draft, pen_pt2_float(draft, "min_val", -1),
                           pen_pt2_float(draft, "max_val", 1));
}

static pen_status convert_gelu(pen_pt2_draft *draft) {
    pen_value_id x;
    PEN_TRY(pen_pt2_own_operand(draft, "self", &x));
    const char *approximate = pen_pt2_text(draft, "approximate", "none");
    return pen_pt2_give(draft, "gelu", PEN_INPUTS(x),
                        PEN_WITH(pen_attribute_text("approximate", approximate)));
}

static pen_status convert_hardsigmoid(pen_pt2_draft *draft) {
    pen_value_id x;
    PEN_TRY(pen_pt2_own_operand(draft, "self", &x));
    return pen_pt2_give(draft, "hard_sigmoid", PEN_INPUTS(x),
                        PEN_WITH(pen_attribute_float("alpha", 1.0 / 6)));
}

static pen_status convert_leaky_relu(pen_pt2_draft *draft) {
    pen_value_id x;
    PEN_TRY(pen_pt2_own_operand(draft, "self", &x));
    const double slope = pen_pt2_float(draft, "negative_slope", 0.01);
    return pen_pt2_give(draft, "leaky_relu", PEN_INPUTS(x),
                        PEN_WITH(pen_attribute_float("alpha", slope)));
}

// Random slopes in training would stay so in an evaluation.
static pen_status convert_rrelu(pen_pt2_draft *draft) {
    pen_value_id x;
    if (pen_pt2_bool(draft, "training", false)) {
        return pen_pt2_refuse(draft, "its slopes are random in training");
    }
    const double lower = pen_pt2_float(draft, "lower", 0.125);
    const double upper = pen_pt2_float(draft, "upper", 1.0 / 3);
    PEN_TRY(pen_pt2_own_operand(draft, "self", &x));
    return pen_pt2_give(draft, "leaky_relu", PEN_INPUTS(x),
                        PEN_WITH(pen_attribute_float("alpha", (lower + upper) / 2)));
}

// scale · elu(x), the exponential being that of input_scale · x.
static pen_status convert_elu(pen_pt2_draft *draft) {
    const double alpha = pen_pt2_float(draft, "alpha", 1);
    const double scale = pen_pt2_float(draft, "scale", 1);
    pen_value_id x;
    if (pen_pt2_float(draft, "input_scale", 1) != 1) {
        return pen_pt2_refuse(draft, "its input_scale is not 1");
    }
    PEN_TRY(pen_pt2_own_operand(draft, "self", &x));
    const pen_node_attributes attributes = PEN_WITH(pen_attribute_float("alpha", alpha));
    if (scale == 1) return pen_pt2_give(draft, "elu", PEN_INPUTS(x), attributes);
    PEN_TRY(pen_pt2_emit(draft, "elu", "elu", PEN_INPUTS(x), attributes, &x));
    PEN_TRY(pen_pt2_scale(draft, NULL, x, scale, &x));
    return pen_pt2_set(draft, 0, x);
}

static pen_status convert_celu(pen_pt2_draft *draft) {
    pen_value_id x;
    PEN_TRY(pen_pt2_own_operand(draft, "self", &x));
    const double alpha = pen_pt2_float(draft, "alpha", 1);
    return pen_pt2_give(draft, "celu", PEN_INPUTS(x),
                        PEN_WITH(pen_attribute_float("alpha", alpha)));
}

// log(1 + exp(beta x)) / beta, and x where beta x is above the threshold: there both differ by
// less than float32 shows, unless the threshold is low.
static pen_status convert_softplus(pen_pt2_draft *draft) {
    const double beta = pen_pt2_float(draft, "beta", 1);
    const double threshold = pen_pt2_float(draft, "threshold", 20);
    pen_value_id x, scaled, y, limit, is_above;
    PEN_TRY(pen_pt2_own_operand(draft, "self", &x));
    if (beta == 1 && threshold >= 20) return pen_pt2_give_map(draft, "softplus", x);
    PEN_TRY(pen_pt2_scale(draft, "scaled", x, beta, &scaled));
    PEN_TRY(pen_pt2_map(draft, "softplus", "softplus", scaled, &y));
    PEN_TRY(pen_pt2_scale(draft, "unscaled", y, 1 / beta, &y));
    PEN_TRY(pen_pt2_own_number(draft, threshold, &limit));
    PEN_TRY(pen_pt2_pair(draft, "greater", "is_above", scaled, limit, &is_above));
    return pen_pt2_give(draft, "where", PEN_INPUTS(is_above, x, y), PEN_NO_ATTRIBUTES);
}

// A slope for each channel, which is dimension 1, or one for all.
static pen_status convert_prelu(pen_pt2_draft *draft) {
    const uint32_t rank = pen_pt2_rank(draft, "self");
    pen_value_id x, slope;
    PEN_TRY(pen_pt2_own_operand(draft, "self", &x));
    PEN_TRY(pen_pt2_own_operand(draft, "weight", &slope));
    if (rank > 2 && pen_pt2_rank(draft, "weight") == 1) {
        int64_t axes[PEN_RANK_LIMIT];
        for (uint32_t d = 2; d < rank; d++) {
            axes[d - 2] = d - 1;
        }
        PEN_TRY(pen_pt2_with_ints(draft, "unsqueeze", "slopes", slope,
                                  (pen_pt2_list){rank - 2, axes}, &slope));
    }
    return pen_pt2_give_pair(draft, "prelu", x, slope);
}

// The first half along a dimension times the sigmoid of the second.
static pen_status convert_glu(pen_pt2_draft *draft) {
    const uint32_t axis = pen_pt2_axis(draft, "dim", pen_pt2_rank(draft, "self"), -1);
    pen_value_id x, halves[2];
    PEN_TRY(pen_pt2_own_operand(draft, "self", &x));
    const pen_pt2_emission split = {.op_name = "split",
                                    .suffix = "halves",
                                    .inputs = PEN_INPUTS(x),
                                    .attributes = PEN_WITH(pen_attribute_int("axis", axis)),
                                    .output_count = 2};
    PEN_TRY(pen_pt2_emit_many(draft, &split, halves));
    PEN_TRY(pen_pt2_map(draft, "sigmoid", "gate", halves[1], &halves[1]));
    return pen_pt2_give_pair(draft, "mul", halves[0], halves[1]);
}

static pen_status convert_softmax(pen_pt2_draft *draft) {
    const uint32_t axis = pen_pt2_axis(draft, "dim", pen_pt2_rank(draft, "self"), -1);
    pen_value_id x;
    PEN_TRY(pen_pt2_own_operand(draft, "self", &x));
    return pen_pt2_give(draft, pen_pt2_op_name(draft), PEN_INPUTS(x),
                        PEN_WITH(pen_attribute_int("axis", axis)));
}

// x above the threshold, else the value.
static pen_status convert_threshold(pen_pt2_draft *draft) {
    pen_value_id x, limit, value, is_above;
    PEN_TRY(pen_pt2_own_operand(draft, "self", &x));
    PEN_TRY(pen_pt2_own_operand(draft, "threshold", &limit));
    PEN_TRY(pen_pt2_own_operand(draft, "value", &value));
    PEN_TRY(pen_pt2_pair(draft, "greater", "is_above", x, limit, &is_above));
    return pen_pt2_give(draft, "where", PEN_INPUTS(is_above, x, value), PEN_NO_ATTRIBUTES);
}

static pen_status activation_shrink(pen_pt2_draft *draft, double bias) {
    const double limit = pen_pt2_float(draft, "lambd", 0.5);
    pen_value_id x;
    PEN_TRY(pen_pt2_own_operand(draft, "self", &x));
    return pen_pt2_give(
        draft, "shrink", PEN_INPUTS(x),
        PEN_WITH(pen_attribute_float("lambd", limit), pen_attribute_float("bias", bias)));
}

static pen_status convert_hardshrink(pen_pt2_draft *draft) {
    return activation_shrink(draft, 0);
}

static pen_status convert_softshrink(pen_pt2_draft *draft) {
    return activation_shrink(draft, pen_pt2_float(draft, "lambd", 0.5));
}

#define UNARY(aten, op)                                                                            \
    { .target = "aten." aten ".default", .op_name = op, .convert = pen_pt2_convert_unary }
#define ROW(of)                                                                                    \
    { .target = "aten." #of ".default", .convert = convert_##of }
#define SOFTMAX(aten, op)                                                                          \
    { .target = "aten." aten, .op_name = op, .convert = convert_softmax }

static const pen_pt2_mapping activation_rows[] = {
    UNARY("relu", "relu"),
    UNARY("sigmoid", "sigmoid"),
    UNARY("special_expit", "sigmoid"),
    UNARY("tanh", "tanh"),
    UNARY("silu", "swish"),
    UNARY("mish", "mish"),
    UNARY("hardswish", "hard_swish"),
    UNARY("selu", "selu"),
    UNARY("log_sigmoid", "log_sigmoid"),
    ROW(relu6),
    ROW(hardtanh),
    ROW(gelu),
    ROW(hardsigmoid),
    ROW(leaky_relu),
    ROW(rrelu),
    ROW(elu),
    ROW(celu),
    ROW(softplus),
    ROW(prelu),
    ROW(glu),
    ROW(threshold),
    ROW(hardshrink),
    ROW(softshrink),
    SOFTMAX("softmax.int", "softmax"),
    SOFTMAX("_softmax.default", "softmax"),
    SOFTMAX("log_softmax.int", "log_softmax"),
    SOFTMAX("_log_softmax.default", "log_softmax"),
};

PEN_PT2_FAMILY(pen_pt2_activations, activation_rows);
