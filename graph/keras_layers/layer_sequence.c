#include "graph/keras_layers/layer_sequence.h"

static pen_status sequence_op(const pen_layer_call *call, const char *op, pen_value_id a,
                              pen_value_id b, pen_value_id *out_value) {
    return pen_layer_pair(call, op, "steps", a, b, out_value);
}

static pen_status sequence_number(const pen_layer_call *call, int64_t number,
                                  pen_value_id *out_value) {
    return pen_layer_ints(call, "step", 1, &number, out_value);
}

// Sums of all before, along an axis.
static pen_status sequence_before(const pen_layer_call *call, pen_value_id value, int64_t axis,
                                  pen_value_id *out_value) {
    pen_value_id number;
    PEN_TRY(sequence_number(call, axis, &number));
    return pen_layer_add(call, "cum_sum", "before", PEN_INPUTS(value, number),
                         PEN_WITH(pen_attribute_int("exclusive", 1)), out_value);
}

// How many steps of each example count, and where its rows begin among those of all: what a packed
// batch needs.
pen_status pen_layer_sequence_open(const pen_layer_call *call, const pen_layer_tensor *tensor,
                                   pen_layer_sequence *out_sequence) {
    pen_layer_sequence sequence = {.steps = tensor->shape.dims[1]};
    const pen_layer_range first = {.axis = 1, .start = 0, .end = 1, .step = 1};
    pen_value_id number;
    if (tensor->mask_rank != 2) {
        return pen_error(PEN_INVALID_INPUT,
                         "the mask of its input has %u dimensions, expected (batch, steps)",
                         tensor->mask_rank);
    }
    PEN_TRY(pen_layer_cast(call, tensor->mask, "int64", &sequence.counts));
    PEN_TRY(sequence_before(call, sequence.counts, 1, &sequence.before));
    PEN_TRY(sequence_number(call, 1, &number));
    PEN_TRY(
        pen_layer_pair(call, "reduce_sum", "lengths", sequence.counts, number, &sequence.lengths));
    // zeros, then as many rows as an example has, then those of all before
    PEN_TRY(pen_layer_slice(call, sequence.before, "zero", first, &sequence.offsets));
    PEN_TRY(sequence_number(call, sequence.steps, &number));
    PEN_TRY(sequence_op(call, "add", sequence.offsets, number, &sequence.offsets));
    PEN_TRY(sequence_before(call, sequence.offsets, 0, &sequence.offsets));
    *out_sequence = sequence;
    return PEN_OK;
}

// Rows of (batch, steps, numbers), `places` being steps of each example.
static pen_status sequence_gather(const pen_layer_call *call, const pen_layer_sequence *sequence,
                                  const pen_layer_tensor *x, pen_value_id places,
                                  pen_value_id *out_value) {
    const int64_t rows[2] = {-1, x->shape.dims[2]};
    pen_value_id all, shape;
    PEN_TRY(pen_layer_ints(call, "rows", 2, rows, &shape));
    PEN_TRY(pen_layer_pair(call, "reshape", "rows", x->value, shape, &all));
    PEN_TRY(sequence_op(call, "add", places, sequence->offsets, &places));
    return pen_layer_pair(call, "gather", "rows", all, places, out_value);
}

// 0, 1, 2, … of every example, (batch, steps).
static pen_status sequence_places(const pen_layer_call *call, const pen_layer_sequence *sequence,
                                  pen_value_id *out_value) {
    pen_value_id ones, number;
    PEN_TRY(sequence_op(call, "sub", sequence->before, sequence->before, &ones));
    PEN_TRY(sequence_number(call, 1, &number));
    PEN_TRY(sequence_op(call, "add", ones, number, &ones));
    return sequence_before(call, ones, 1, out_value);
}

// Where each step goes: those that count to the front, the others behind them, each in its order.
// The inverse says what stands at each place.
pen_status pen_layer_sequence_pack(const pen_layer_call *call, const pen_layer_sequence *sequence,
                                   const pen_layer_tensor *x, pen_value_id *out_value) {
    pen_value_id places, others, counts, goes;
    PEN_TRY(sequence_places(call, sequence, &places));
    PEN_TRY(sequence_op(call, "sub", places, sequence->before, &others));
    PEN_TRY(sequence_op(call, "add", others, sequence->lengths, &others));
    PEN_TRY(pen_layer_cast(call, sequence->counts, "bool", &counts));
    PEN_TRY(pen_layer_add(call, "where", "goes", PEN_INPUTS(counts, sequence->before, others),
                          PEN_NO_ATTRIBUTES, &goes));
    PEN_TRY(pen_layer_add(call, "scatter_elements", "order", PEN_INPUTS(goes, goes, places),
                          PEN_WITH(pen_attribute_int("axis", 1)), &places));
    return sequence_gather(call, sequence, x, places, out_value);
}

pen_status pen_layer_sequence_lengths(const pen_layer_call *call,
                                      const pen_layer_sequence *sequence, pen_value_id *out_value) {
    const pen_shape flat = {1, {PEN_LAYER_BATCH}};
    PEN_TRY(pen_layer_cast(call, sequence->lengths, "int32", out_value));
    return pen_layer_reshape(call, *out_value, &flat, "lengths", out_value);
}

// Each step takes the row of its place, and a factor of 0 clears what the filler does not want.
pen_status pen_layer_sequence_unpack(const pen_layer_call *call, const pen_layer_sequence *sequence,
                                     const pen_layer_tensor *packed, pen_layer_filler filler,
                                     pen_value_id *out_value) {
    const pen_shape column = {3, {PEN_LAYER_BATCH, sequence->steps, 1}};
    pen_value_id places = sequence->before, there = PEN_VALUE_NONE, limit, rows;
    switch (filler) {
    case PEN_LAYER_FILL_BEFORE: // how many count up to a step: its place and one
        PEN_TRY(sequence_op(call, "add", sequence->before, sequence->counts, &there));
        PEN_TRY(sequence_number(call, 1, &limit));
        PEN_TRY(sequence_op(call, "min", there, limit, &there));
        PEN_TRY(sequence_op(call, "add", sequence->before, sequence->counts, &places));
        PEN_TRY(sequence_op(call, "sub", places, there, &places));
        break;
    case PEN_LAYER_FILL_BEHIND:
        PEN_TRY(sequence_op(call, "sub", sequence->lengths, sequence->before, &there));
        PEN_TRY(sequence_number(call, 1, &limit));
        PEN_TRY(sequence_op(call, "min", there, limit, &there));
        break;
    case PEN_LAYER_FILL_ZEROS:
        there = sequence->counts;
        break;
    }
    PEN_TRY(sequence_number(call, sequence->steps - 1, &limit));
    PEN_TRY(sequence_op(call, "min", places, limit, &places));
    PEN_TRY(sequence_gather(call, sequence, packed, places, &rows));
    PEN_TRY(pen_layer_cast(call, there, "float32", &there));
    PEN_TRY(pen_layer_reshape(call, there, &column, "there", &there));
    return pen_layer_pair(call, "mul", "filled", rows, there, out_value);
}
