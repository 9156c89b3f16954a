#include "graph/keras_layers/layer_sequence.h"

static pen_status sequence_op(pen_layer_builder *builder, const pen_layer_call *call,
                              const char *op, pen_value_id a, pen_value_id b,
                              pen_value_id *out_value) {
    const pen_value_id operands[2] = {a, b};
    return pen_layer_pair(builder, call, op, "steps", operands, out_value);
}

static pen_status sequence_number(pen_layer_builder *builder, const pen_layer_call *call,
                                  int64_t number, pen_value_id *out_value) {
    return pen_layer_ints(builder, call, "step", 1, &number, out_value);
}

// Sums of all before, along an axis.
static pen_status sequence_before(pen_layer_builder *builder, const pen_layer_call *call,
                                  pen_value_id value, int64_t axis, pen_value_id *out_value) {
    pen_value_id operands[2] = {value};
    const pen_attribute_given exclusive = pen_attribute_int("exclusive", 1);
    PEN_TRY(sequence_number(builder, call, axis, &operands[1]));
    const pen_layer_node node = {.op = "cum_sum",
                                 .suffix = "before",
                                 .inputs = operands,
                                 .input_count = 2,
                                 .attributes = &exclusive,
                                 .attribute_count = 1};
    return pen_layer_add_node(builder, call, &node, out_value);
}

pen_status pen_layer_sequence_open(pen_layer_builder *builder, const pen_layer_call *call,
                                   const pen_layer_tensor *tensor,
                                   pen_layer_sequence *out_sequence) {
    pen_layer_sequence sequence = {.steps = tensor->shape.dims[1]};
    const pen_layer_range first = {.axis = 1, .start = 0, .end = 1, .step = 1};
    pen_value_id operands[2], number;
    if (tensor->mask_rank != 2) {
        return pen_error(PEN_INVALID_INPUT,
                         "the mask of its input has %u dimensions, expected (batch, steps)",
                         tensor->mask_rank);
    }
    PEN_TRY(pen_layer_cast(builder, call, tensor->mask, "int64", &sequence.counts));
    PEN_TRY(sequence_before(builder, call, sequence.counts, 1, &sequence.before));
    operands[0] = sequence.counts;
    PEN_TRY(sequence_number(builder, call, 1, &operands[1]));
    const pen_layer_node sum = {
        .op = "reduce_sum", .suffix = "lengths", .inputs = operands, .input_count = 2};
    PEN_TRY(pen_layer_add_node(builder, call, &sum, &sequence.lengths));
    // zeros, then as many rows as an example has, then those of all before
    PEN_TRY(pen_layer_slice(builder, call, sequence.before, "zero", first, &sequence.offsets));
    PEN_TRY(sequence_number(builder, call, sequence.steps, &number));
    PEN_TRY(sequence_op(builder, call, "add", sequence.offsets, number, &sequence.offsets));
    PEN_TRY(sequence_before(builder, call, sequence.offsets, 0, &sequence.offsets));
    *out_sequence = sequence;
    return PEN_OK;
}

// Rows of (batch, steps, numbers), `places` being steps of each example.
static pen_status sequence_gather(pen_layer_builder *builder, const pen_layer_call *call,
                                  const pen_layer_sequence *sequence, const pen_layer_tensor *x,
                                  pen_value_id places, pen_value_id *out_value) {
    const int64_t rows[2] = {-1, x->shape.dims[2]};
    pen_value_id operands[2] = {x->value};
    PEN_TRY(pen_layer_ints(builder, call, "rows", 2, rows, &operands[1]));
    PEN_TRY(pen_layer_pair(builder, call, "reshape", "rows", operands, &operands[0]));
    PEN_TRY(sequence_op(builder, call, "add", places, sequence->offsets, &operands[1]));
    return pen_layer_pair(builder, call, "gather", "rows", operands, out_value);
}

// 0, 1, 2, … of every example, (batch, steps).
static pen_status sequence_places(pen_layer_builder *builder, const pen_layer_call *call,
                                  const pen_layer_sequence *sequence, pen_value_id *out_value) {
    pen_value_id ones, number;
    PEN_TRY(sequence_op(builder, call, "sub", sequence->before, sequence->before, &ones));
    PEN_TRY(sequence_number(builder, call, 1, &number));
    PEN_TRY(sequence_op(builder, call, "add", ones, number, &ones));
    return sequence_before(builder, call, ones, 1, out_value);
}

// Where each step goes: those that count to the front, the others behind them, each in its order.
// The inverse says what stands at each place.
pen_status pen_layer_sequence_pack(pen_layer_builder *builder, const pen_layer_call *call,
                                   const pen_layer_sequence *sequence, const pen_layer_tensor *x,
                                   pen_value_id *out_value) {
    const pen_attribute_given axis = pen_attribute_int("axis", 1);
    pen_value_id places, others, operands[3];
    PEN_TRY(sequence_places(builder, call, sequence, &places));
    PEN_TRY(sequence_op(builder, call, "sub", places, sequence->before, &others));
    PEN_TRY(sequence_op(builder, call, "add", others, sequence->lengths, &others));
    PEN_TRY(pen_layer_cast(builder, call, sequence->counts, "bool", &operands[0]));
    operands[1] = sequence->before;
    operands[2] = others;
    const pen_layer_node where = {
        .op = "where", .suffix = "goes", .inputs = operands, .input_count = 3};
    PEN_TRY(pen_layer_add_node(builder, call, &where, &operands[1]));
    operands[0] = operands[1];
    operands[2] = places;
    const pen_layer_node scatter = {.op = "scatter_elements",
                                    .suffix = "order",
                                    .inputs = operands,
                                    .input_count = 3,
                                    .attributes = &axis,
                                    .attribute_count = 1};
    PEN_TRY(pen_layer_add_node(builder, call, &scatter, &places));
    return sequence_gather(builder, call, sequence, x, places, out_value);
}

pen_status pen_layer_sequence_lengths(pen_layer_builder *builder, const pen_layer_call *call,
                                      const pen_layer_sequence *sequence, pen_value_id *out_value) {
    const pen_shape flat = {1, {PEN_LAYER_BATCH}};
    PEN_TRY(pen_layer_cast(builder, call, sequence->lengths, "int32", out_value));
    return pen_layer_reshape(builder, call, *out_value, &flat, "lengths", out_value);
}

pen_status pen_layer_sequence_unpack(pen_layer_builder *builder, const pen_layer_call *call,
                                     const pen_layer_sequence *sequence,
                                     const pen_layer_tensor *packed, pen_layer_filler filler,
                                     pen_value_id *out_value) {
    const pen_shape column = {3, {PEN_LAYER_BATCH, sequence->steps, 1}};
    pen_value_id places = sequence->before, there = PEN_VALUE_NONE, limit, operands[2];
    switch (filler) {
    case PEN_LAYER_FILL_BEFORE: // how many count up to a step: its place and one
        PEN_TRY(sequence_op(builder, call, "add", sequence->before, sequence->counts, &there));
        PEN_TRY(sequence_number(builder, call, 1, &limit));
        PEN_TRY(sequence_op(builder, call, "min", there, limit, &there));
        PEN_TRY(sequence_op(builder, call, "add", sequence->before, sequence->counts, &places));
        PEN_TRY(sequence_op(builder, call, "sub", places, there, &places));
        break;
    case PEN_LAYER_FILL_BEHIND:
        PEN_TRY(sequence_op(builder, call, "sub", sequence->lengths, sequence->before, &there));
        PEN_TRY(sequence_number(builder, call, 1, &limit));
        PEN_TRY(sequence_op(builder, call, "min", there, limit, &there));
        break;
    case PEN_LAYER_FILL_ZEROS:
        there = sequence->counts;
        break;
    }
    PEN_TRY(sequence_number(builder, call, sequence->steps - 1, &limit));
    PEN_TRY(sequence_op(builder, call, "min", places, limit, &places));
    PEN_TRY(sequence_gather(builder, call, sequence, packed, places, &operands[0]));
    PEN_TRY(pen_layer_cast(builder, call, there, "float32", &operands[1]));
    PEN_TRY(pen_layer_reshape(builder, call, operands[1], &column, "there", &operands[1]));
    return pen_layer_pair(builder, call, "mul", "filled", operands, out_value);
}
