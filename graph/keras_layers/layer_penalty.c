// What regularizers add to the loss, as Keras does.

#include "base/reserve.h"
#include "graph/graph.h"
#include "graph/keras_layers/layer_builder.h"

static pen_status penalty_note(pen_layer_builder *builder, pen_value_id number) {
    PEN_TRY(PEN_RESERVE(builder->arena, &builder->penalties, builder->penalty_count,
                        &builder->penalty_capacity, 16));
    builder->penalties[builder->penalty_count++] = number;
    return PEN_OK;
}

// One of the two: its op reduces `value` over `axes`, or over all when there are none.
typedef struct penalty_part {
    const char *name; // of nodes: "kernel/l2"
    const char *op;
    double factor;
    pen_value_id value;
    pen_value_id axes;
} penalty_part;

static pen_status penalty_reduce(const pen_layer_call *call, const char *op, const char *suffix,
                                 const pen_value_id operands[2], pen_value_id *out_value) {
    return pen_layer_add(call, op, suffix,
                         (pen_node_inputs){operands, pen_value_is(operands[1]) ? 2 : 1},
                         PEN_WITH(pen_attribute_int("keepdims", 0)), out_value);
}

// `part` has a factor.
static pen_status penalty_add(const pen_layer_call *call, const penalty_part *part) {
    pen_value_id operands[2] = {part->value, part->axes}, sum;
    PEN_TRY(penalty_reduce(call, part->op, part->name, operands, &sum));
    if (pen_value_is(part->axes)) {
        const pen_value_id batch[2] = {sum, PEN_VALUE_NONE};
        PEN_TRY(penalty_reduce(call, "reduce_mean", part->name, batch, &sum));
    }
    operands[0] = sum;
    PEN_TRY(pen_layer_number(call, part->name, part->factor, &operands[1]));
    PEN_TRY(pen_layer_pair(call, "mul", part->name, operands[0], operands[1], &sum));
    return penalty_note(call->builder, sum);
}

static pen_status penalty_add_both(const pen_layer_call *call, const char *name,
                                   const pen_layer_regularizer *regularizer,
                                   const pen_value_id operands[2]) {
    penalty_part parts[2] = {
        {.op = "reduce_l1", .factor = regularizer->l1},
        {.op = "reduce_sum_square", .factor = regularizer->l2},
    };
    for (uint32_t i = 0; i < 2; i++) {
        if (parts[i].factor == 0) continue;
        PEN_TRY(pen_arena_format(call->builder->arena, &parts[i].name, "%s/%s", name,
                                 i == 0 ? "l1" : "l2"));
        parts[i].value = operands[0];
        parts[i].axes = operands[1];
        PEN_TRY(penalty_add(call, &parts[i]));
    }
    return PEN_OK;
}

pen_status pen_layer_penalize_weight(const pen_layer_call *call, const char *name,
                                     const pen_layer_regularizer *regularizer,
                                     pen_value_id parameter) {
    const pen_value_id operands[2] = {parameter, PEN_VALUE_NONE};
    return penalty_add_both(call, name, regularizer, operands);
}

static bool penalty_is_none(const pen_layer_regularizer *regularizer) {
    return regularizer->l1 == 0 && regularizer->l2 == 0;
}

pen_status pen_layer_penalize_result(const pen_layer_call *call,
                                     const pen_layer_regularizer *regularizer,
                                     const pen_layer_tensor *result) {
    int64_t axes[PEN_RANK_LIMIT] = {0};
    pen_value_id operands[2] = {result->value};
    if (penalty_is_none(regularizer)) return PEN_OK;
    if (result->shape.rank < 2 || !pen_element_is_float(result->element)) {
        return pen_error(PEN_INVALID_INPUT, "activity_regularizer is of numbers with a dimension "
                                            "besides the batch, which its result has not");
    }
    for (uint32_t i = 1; i < result->shape.rank; i++) {
        axes[i - 1] = i;
    }
    PEN_TRY(pen_layer_ints(call, "activity_axes", result->shape.rank - 1, axes, &operands[1]));
    return penalty_add_both(call, "activity", regularizer, operands);
}

pen_status pen_layer_refuse_inner(const pen_layer_common *common) {
    if (penalty_is_none(&common->activity_regularizer)) return PEN_OK;
    return pen_error(PEN_UNSUPPORTED, "the layer within it has an activity_regularizer, which is "
                                      "possible of the whole alone");
}

// Adds up all, after the last layer.
static pen_status penalty_sum(pen_layer_builder *builder, const char **out_name) {
    const pen_layer_call call = {.builder = builder, .name = "penalty"};
    pen_value_id sum = PEN_VALUE_NONE;
    *out_name = NULL;
    for (uint32_t i = 0; i < builder->penalty_count; i++) {
        const pen_value_id next = builder->penalties[i];
        if (i > 0) PEN_TRY(pen_layer_pair(&call, "add", NULL, sum, next, &sum));
        if (i == 0) sum = next;
    }
    if (pen_value_is(sum)) *out_name = pen_value_name(builder->graph, sum);
    return PEN_OK;
}

pen_status pen_layer_builder_finish(pen_layer_builder *builder, const char **out_penalty,
                                    const char *const **out_masks) {
    const uint32_t count = pen_graph_output_count(builder->graph);
    const char **names = NULL;
    *out_masks = NULL;
    PEN_TRY(penalty_sum(builder, out_penalty));
    PEN_TRY(PEN_NEW(builder->arena, count, &names));
    for (uint32_t i = 0; i < count; i++) {
        names[i] = NULL;
        if (!pen_value_is(builder->output_masks[i])) continue;
        names[i] = pen_value_name(builder->graph, builder->output_masks[i]);
        *out_masks = names;
    }
    return PEN_OK;
}
