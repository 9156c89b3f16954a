#include "graph/import/tensorflow/ops/graphdef_norm.h"

#include "graph/graph.h"
#include "graph/import/tensorflow/graphdef_mapping.h"
#include "graph/import/tensorflow/ops/graphdef_broadcast.h"
#include "graph/import/tensorflow/ops/graphdef_image.h"

// ---- in one node

// Whether operand 0 is known to be a batch of one.
static bool image_is_one(pen_graphdef_draft *draft) {
    pen_shape shape;
    pen_graphdef_value x;
    pen_status status = pen_graphdef_operand(draft, 0, &x);
    if (status == PEN_OK) status = pen_graphdef_value_shape(draft, &x, &shape);
    if (status == PEN_OK) return shape.rank == 4 && shape.dims[0] == 1;
    pen_status_ignore(status, "a shape that is not known is not that of one");
    return false;
}

// The statistics of a batch of one are its own, in evaluation too: so Keras normalises layers.
static pen_status convert_one_image(pen_graphdef_draft *draft, double epsilon) {
    pen_graphdef_value operands[3];
    PEN_TRY(pen_graphdef_operands(draft, 3, operands));
    return pen_graphdef_give_form(draft, false, "instance_normalization",
                                  PEN_GRAPHDEF_ALL(operands),
                                  PEN_WITH(pen_attribute_float("epsilon", epsilon)));
}

// By the statistics of the batch, which nobody keeps. Only the first result is there.
static pen_status norm_by_batch(pen_graphdef_draft *draft, bool is_last, double epsilon) {
    static const int64_t axes[] = {0, 2, 3};
    const pen_element_type element = pen_graphdef_draft_element(draft);
    const pen_node_attributes keeps = PEN_WITH(pen_attribute_int("keepdims", 1));
    pen_graphdef_value x, scale, offset, small, mean, square, over;
    PEN_TRY(pen_graphdef_operand_form(draft, 0, is_last, &x));
    PEN_TRY(pen_graphdef_operand(draft, 1, &scale));
    PEN_TRY(pen_graphdef_operand(draft, 2, &offset));
    PEN_TRY(pen_graphdef_channel_vector(draft, "scale", scale, &scale));
    PEN_TRY(pen_graphdef_channel_vector(draft, "offset", offset, &offset));
    PEN_TRY(pen_graphdef_number_value(draft, "epsilon", element, epsilon, &small));
    PEN_TRY(pen_graphdef_ints_value(draft, "axes", 3, axes, &over));
    PEN_TRY(pen_graphdef_emit(draft, "reduce_mean", "mean", PEN_GRAPHDEF_INPUTS(x, over), keeps,
                              &mean));
    PEN_TRY(pen_graphdef_pair(draft, "sub", "centred", x, mean, &x));
    PEN_TRY(pen_graphdef_pair(draft, "mul", "square", x, x, &square));
    PEN_TRY(pen_graphdef_emit(draft, "reduce_mean", "variance", PEN_GRAPHDEF_INPUTS(square, over),
                              keeps, &square));
    PEN_TRY(pen_graphdef_pair(draft, "add", "above_zero", square, small, &square));
    PEN_TRY(pen_graphdef_map(draft, "sqrt", "deviation", square, &square));
    PEN_TRY(pen_graphdef_pair(draft, "div", "normal", x, square, &x));
    PEN_TRY(pen_graphdef_pair(draft, "mul", "scaled", x, scale, &x));
    return pen_graphdef_give_pair(draft, is_last, "add", x, offset);
}

typedef struct norm_operands {
    pen_graphdef_value values[5]; // x, with channels first, scale, offset, mean, variance
    double epsilon;
    bool is_unbiased; // the running variance is
} norm_operands;

static bool norm_is_trained(const pen_graphdef_draft *draft, const pen_graphdef_value *value) {
    const pen_value *in_graph = pen_graph_value(draft->graphs[0], value->in[0]);
    return in_graph->kind == PEN_VALUE_PARAMETER && in_graph->trainable;
}

static bool norm_trains(const pen_graphdef_draft *draft, const norm_operands *operands) {
    return draft->options->train_batch_norm && (norm_is_trained(draft, &operands->values[1]) ||
                                                norm_is_trained(draft, &operands->values[2]));
}

// The statistics of the batch, which move the running ones.
static pen_status norm_emit_training(pen_graphdef_draft *draft, const norm_operands *operands,
                                     bool is_first, pen_graphdef_value *out_value) {
    pen_graph *graph = draft->graphs[0];
    pen_graphdef_value made[5];
    for (uint32_t i = 3; i < 5; i++) {
        if (pen_graph_value(graph, operands->values[i].in[0])->kind == PEN_VALUE_STATE) continue;
        return pen_error(PEN_UNSUPPORTED,
                         "its running statistic '%.100s' is computed; model.train_batch_norm "
                         "needs a variable or constant",
                         pen_value_name(graph, operands->values[i].in[0]));
    }
    PEN_TRY(pen_graphdef_emit_node(
        draft,
        &(pen_graphdef_emission){
            .op_name = "batch_normalization",
            .inputs = (pen_graphdef_inputs){operands->values, 5},
            .attributes =
                PEN_WITH(pen_attribute_float("epsilon", operands->epsilon),
                         pen_attribute_float("momentum", draft->options->batch_norm_momentum),
                         pen_attribute_int("training_mode", 1),
                         pen_attribute_int("unbiased", operands->is_unbiased)),
            .output_count = 5,
            .is_first = is_first},
        made));
    for (uint32_t i = 1; i < 3; i++) {
        const pen_value_id statistic = operands->values[i + 2].in[0];
        const pen_tensor_type type = *pen_value_type(graph, statistic);
        pen_graph_set_type(graph, made[i].in[0], &type); // a state's contents keep its type
        pen_graph_set_replaces(graph, made[i].in[0], statistic);
    }
    *out_value = made[0];
    return PEN_OK;
}

// Training by moments of the batch, training with kept moments, or use: each becomes another op or
// form.
static pen_status convert_batch_norm(pen_graphdef_draft *draft) {
    const pen_graphdef_node *node = draft->node;
    const bool is_last = pen_graphdef_image_is_last(draft);
    const bool is_training = pen_graphdef_int(node, "is_training", 1) != 0;
    // version 1 says 0.0001 where it says nothing
    norm_operands operands = {.epsilon = pen_graphdef_float(node, "epsilon", 0.0001),
                              .is_unbiased = true};
    if (is_training && !is_last && image_is_one(draft)) {
        return convert_one_image(draft, operands.epsilon);
    }
    if (is_training) return norm_by_batch(draft, is_last, operands.epsilon);
    PEN_TRY(pen_graphdef_operand_form(draft, 0, is_last, &operands.values[0]));
    for (uint32_t i = 1; i < 5; i++) {
        PEN_TRY(pen_graphdef_operand(draft, i, &operands.values[i]));
    }
    if (norm_trains(draft, &operands)) {
        pen_graphdef_value result;
        PEN_TRY(norm_emit_training(draft, &operands, is_last, &result));
        return pen_graphdef_set_form(draft, is_last, result);
    }
    return pen_graphdef_give_form(
        draft, is_last, "batch_normalization", (pen_graphdef_inputs){operands.values, 5},
        PEN_WITH(pen_attribute_float("epsilon", operands.epsilon),
                 pen_attribute_int("training_mode", 0), pen_attribute_int("unbiased", 1)));
}

static const pen_graphdef_mapping norm_mappings[] = {
    {.op = "FusedBatchNorm", .convert = convert_batch_norm, .statistics = 3u << 3},
    {.op = "FusedBatchNormV2", .convert = convert_batch_norm, .statistics = 3u << 3},
    {.op = "FusedBatchNormV3", .convert = convert_batch_norm, .statistics = 3u << 3},
};

PEN_GRAPHDEF_FAMILY(pen_graphdef_norms, norm_mappings);

// ---- in several nodes

static bool norm_two(const pen_graphdef_block *block, pen_graphdef_place at, const char *op,
                     pen_graphdef_place operands[2]) {
    return pen_graphdef_match_two(block, at, op, operands);
}

// 1 / sqrt(variance + epsilon)
static bool norm_match_inverse(const pen_graphdef_block *block, pen_graphdef_place at,
                               pen_graphdef_norm *norm) {
    pen_graphdef_place sum[2];
    if (!pen_graphdef_match_op(block, at, "Rsqrt")) return false;
    if (!norm_two(block, pen_graphdef_match_operand(block, at, 0), "AddV2", sum)) return false;
    norm->variance = sum[0];
    norm->epsilon = sum[1];
    return pen_graphdef_match_op(block, sum[1], "Const");
}

// Keras writes batch normalization out as arithmetic: this recognises it, with and without scale
// and offset.
bool pen_graphdef_norm_match(const pen_graphdef_block *block, uint32_t n,
                             pen_graphdef_norm *out_norm) {
    const pen_graphdef_place none = {UINT32_MAX, 0}, at = {n, 0};
    pen_graphdef_norm norm = {.scale = none, .offset = none};
    pen_graphdef_place sum[2], product[2], shift[2], moved[2], factor[2];
    if (!norm_two(block, at, "AddV2", sum) || !norm_two(block, sum[0], "Mul", product))
        return false;
    if (norm_two(block, sum[1], "Sub", shift)) {
        norm.offset = shift[0];
        if (!norm_two(block, shift[1], "Mul", moved)) return false;
        norm.mean = moved[0];
    } else {
        if (!norm_two(block, sum[1], "Mul", moved)) return false;
        if (!pen_graphdef_match_op(block, moved[0], "Neg")) return false;
        norm.mean = pen_graphdef_match_operand(block, moved[0], 0);
    }
    norm.x = product[0];
    if (!pen_graphdef_match_same(product[1], moved[1])) return false;
    pen_graphdef_place inverse = product[1];
    if (norm_two(block, inverse, "Mul", factor)) {
        inverse = factor[0];
        norm.scale = factor[1];
    }
    if (!norm_match_inverse(block, inverse, &norm)) return false;
    *out_norm = norm;
    return true;
}

// A vector of one number, where the graph has none.
static pen_status norm_vector(pen_graphdef_draft *draft, const char *suffix, int64_t channels,
                              double number, pen_graphdef_value *out_value) {
    pen_graphdef_value scalar, shape;
    PEN_TRY(pen_graphdef_number_value(draft, suffix, PEN_FLOAT32, number, &scalar));
    PEN_TRY(pen_graphdef_ints_value(draft, suffix, 1, &channels, &shape));
    return pen_graphdef_pair(draft, "expand", suffix, scalar, shape, out_value);
}

static pen_status norm_value(pen_graphdef_result ***results, const pen_graphdef_draft *draft,
                             pen_graphdef_place at, pen_graphdef_value *out_value) {
    return pen_graphdef_result_value(draft, results[at.node][at.output], out_value);
}

// Missing scale and offset become ones and zeros; if a shape does not fit, the arithmetic stays as
// it was.
static pen_status norm_vectors(pen_graphdef_result ***results, const pen_graphdef_norm *norm,
                               pen_graphdef_draft *draft, norm_operands *operands, bool *out_fits) {
    const pen_graphdef_place places[] = {norm->x, norm->scale, norm->offset, norm->mean,
                                         norm->variance};
    pen_graphdef_value epsilon;
    pen_shape shape;
    *out_fits = false;
    PEN_TRY(norm_value(results, draft, norm->mean, &operands->values[3]));
    PEN_TRY(pen_graphdef_value_shape(draft, &operands->values[3], &shape));
    if (shape.rank != 1 || shape.dims[0] < 1) return PEN_OK;
    for (uint32_t i = 0; i < 5; i++) {
        if (places[i].node != UINT32_MAX) {
            PEN_TRY(norm_value(results, draft, places[i], &operands->values[i]));
        } else {
            PEN_TRY(norm_vector(draft, i == 1 ? "scale" : "offset", shape.dims[0], i == 1,
                                &operands->values[i]));
        }
    }
    PEN_TRY(norm_value(results, draft, norm->epsilon, &epsilon));
    const pen_value *value = pen_graph_value(draft->graphs[0], epsilon.in[0]);
    if (value->kind != PEN_VALUE_CONSTANT || pen_shape_element_count(&value->type.shape) != 1) {
        return PEN_OK;
    }
    PEN_TRY(pen_value_read_number(draft->graphs[0], epsilon.in[0], &operands->epsilon));
    *out_fits = norm_trains(draft, operands);
    return PEN_OK;
}

// The last dimension to place 1, or back.
static pen_status norm_transpose(pen_graphdef_draft *draft, uint32_t rank, bool to_first,
                                 pen_graphdef_value *value) {
    int64_t axes[PEN_RANK_LIMIT] = {0};
    for (uint32_t d = 1; d < rank; d++) {
        axes[d] = to_first ? (d == 1 ? rank - 1 : d - 1) : (d == rank - 1 ? 1 : d + 1);
    }
    return pen_graphdef_emit_transpose(draft, to_first ? "to_channels_first" : "to_channels_last",
                                       *value, rank, axes, value);
}

pen_status pen_graphdef_norm_convert(pen_graphdef_result ***results, const pen_graphdef_norm *norm,
                                     pen_graphdef_draft *draft, bool *out_is_done) {
    norm_operands operands = {0};
    pen_graphdef_value result;
    pen_shape shape;
    PEN_TRY(norm_vectors(results, norm, draft, &operands, out_is_done));
    if (!*out_is_done) return PEN_OK;
    PEN_TRY(pen_graphdef_value_shape(draft, &operands.values[0], &shape));
    if (shape.rank > 2) PEN_TRY(norm_transpose(draft, shape.rank, true, &operands.values[0]));
    PEN_TRY(norm_emit_training(draft, &operands, shape.rank > 2, &result));
    if (shape.rank > 2) PEN_TRY(norm_transpose(draft, shape.rank, false, &result));
    return pen_graphdef_set(draft, 0, result);
}
