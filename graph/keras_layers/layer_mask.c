// Masks: which layers pass on those of what they read, as Keras' do.

#include "graph/keras_layers/layer_builder.h"
#include "graph/keras_layers/layer_list.h"

// What a layer's results have of the masks of its inputs.
typedef enum mask_rule {
    MASK_NONE,  // nothing
    MASK_FIRST, // that of the first input
    MASK_ALL,   // all hold
    MASK_OWN,   // its build function says
} mask_rule;

static const uint8_t mask_rules[PEN_LAYER_AT_END] = {
    [PEN_LAYER_AT_dense] = MASK_FIRST,
    [PEN_LAYER_AT_activation] = MASK_FIRST,
    [PEN_LAYER_AT_activity_regularization] = MASK_FIRST,
    [PEN_LAYER_AT_dropout] = MASK_FIRST,
    [PEN_LAYER_AT_spatial_dropout1d] = MASK_FIRST,
    [PEN_LAYER_AT_spatial_dropout2d] = MASK_FIRST,
    [PEN_LAYER_AT_spatial_dropout3d] = MASK_FIRST,
    [PEN_LAYER_AT_gaussian_noise] = MASK_FIRST,
    [PEN_LAYER_AT_gaussian_dropout] = MASK_FIRST,
    [PEN_LAYER_AT_alpha_dropout] = MASK_FIRST,
    [PEN_LAYER_AT_batch_normalization] = MASK_FIRST,
    [PEN_LAYER_AT_layer_normalization] = MASK_FIRST,
    [PEN_LAYER_AT_rms_normalization] = MASK_FIRST,
    [PEN_LAYER_AT_group_normalization] = MASK_FIRST,
    [PEN_LAYER_AT_unit_normalization] = MASK_FIRST,
    [PEN_LAYER_AT_relu] = MASK_FIRST,
    [PEN_LAYER_AT_leaky_relu] = MASK_FIRST,
    [PEN_LAYER_AT_elu] = MASK_FIRST,
    [PEN_LAYER_AT_prelu] = MASK_FIRST,
    [PEN_LAYER_AT_thresholded_relu] = MASK_FIRST,
    [PEN_LAYER_AT_softmax] = MASK_FIRST,
    [PEN_LAYER_AT_multi_head_attention] = MASK_FIRST,
    [PEN_LAYER_AT_group_query_attention] = MASK_FIRST,
    [PEN_LAYER_AT_attention] = MASK_FIRST,
    [PEN_LAYER_AT_additive_attention] = MASK_FIRST,
    [PEN_LAYER_AT_add] = MASK_ALL,
    [PEN_LAYER_AT_subtract] = MASK_ALL,
    [PEN_LAYER_AT_multiply] = MASK_ALL,
    [PEN_LAYER_AT_average] = MASK_ALL,
    [PEN_LAYER_AT_maximum] = MASK_ALL,
    [PEN_LAYER_AT_minimum] = MASK_ALL,
    [PEN_LAYER_AT_concatenate] = MASK_OWN,
    [PEN_LAYER_AT_embedding] = MASK_OWN,
    [PEN_LAYER_AT_masking] = MASK_OWN,
    [PEN_LAYER_AT_lstm] = MASK_OWN,
    [PEN_LAYER_AT_gru] = MASK_OWN,
    [PEN_LAYER_AT_simple_rnn] = MASK_OWN,
    [PEN_LAYER_AT_bidirectional] = MASK_OWN,
    [PEN_LAYER_AT_time_distributed] = MASK_OWN,
};

pen_status pen_layer_join_masks(const pen_layer_call *call, pen_layer_tensor *io_tensor) {
    io_tensor->mask_rank = 0;
    for (uint32_t i = 0; i < call->input_count; i++) {
        const pen_layer_tensor *input = &call->inputs[i];
        if (input->mask_rank == 0) continue;
        if (io_tensor->mask_rank == 0) {
            io_tensor->mask_rank = input->mask_rank;
            io_tensor->mask = input->mask;
            continue;
        }
        if (input->mask_rank != io_tensor->mask_rank) {
            return pen_error(PEN_INVALID_INPUT, "the masks of its inputs have %u and %u dimensions",
                             io_tensor->mask_rank, input->mask_rank);
        }
        const pen_value_id both[2] = {io_tensor->mask, input->mask};
        PEN_TRY(pen_layer_pair(call, "and", "mask", both[0], both[1], &io_tensor->mask));
    }
    return PEN_OK;
}

pen_status pen_layer_pass_masks(const pen_layer_call *call, pen_layer_result *io_result) {
    const mask_rule rule = mask_rules[call->layer - pen_layer_at(0)];
    for (uint32_t i = 0; i < io_result->count; i++) {
        pen_layer_tensor *tensor = &io_result->tensors[i];
        if (rule == MASK_OWN) continue;
        tensor->mask_rank = 0;
        if (rule == MASK_ALL) PEN_TRY(pen_layer_join_masks(call, tensor));
        if (rule == MASK_FIRST && call->inputs[0].mask_rank <= tensor->shape.rank) {
            tensor->mask_rank = call->inputs[0].mask_rank;
            tensor->mask = call->inputs[0].mask;
        }
    }
    return PEN_OK;
}

pen_status pen_layer_cast(const pen_layer_call *call, pen_value_id value, const char *element,
                          pen_value_id *out_value) {
    return pen_layer_add(call, "cast", "cast", PEN_INPUTS(value),
                         PEN_WITH(pen_attribute_text("to", element)), out_value);
}

pen_status pen_layer_mask_column(const pen_layer_call *call, const pen_layer_tensor *tensor,
                                 uint32_t rank, pen_value_id *out_value) {
    pen_shape shape = {.rank = rank};
    for (uint32_t i = 0; i < rank; i++) {
        shape.dims[i] = i < tensor->mask_rank ? tensor->shape.dims[i] : 1;
    }
    PEN_TRY(pen_layer_cast(call, tensor->mask, "float32", out_value));
    return pen_layer_reshape(call, *out_value, &shape, "mask_column", out_value);
}
