#include "graph/op_table.h"

#include <string.h>

static const pen_op_family *const op_table_families[] = {
    &pen_elementwise_family,  &pen_unary_family,      &pen_activation_family,
    &pen_gelu_family,         &pen_comparison_family, &pen_reduction_family,
    &pen_softmax_family,      &pen_loss_family,       &pen_matmul_family,
    &pen_convolution_family,  &pen_pooling_family,    &pen_normalization_family,
    &pen_layer_norm_family,   &pen_dropout_family,    &pen_reshape_family,
    &pen_movement_family,     &pen_slice_family,      &pen_indexing_family,
    &pen_constant_family,     &pen_optimizer_family,  &pen_transfer_family,
    &pen_recurrent_family,    &pen_attention_family,  &pen_series_family,
    &pen_selection_family,    &pen_einsum_family,     &pen_resize_family,
    &pen_quantization_family, &pen_random_family,     &pen_spectrum_family,
    &pen_unpool_family,       &pen_tree_family,       &pen_version_family,
};

uint32_t pen_op_family_count(void) {
    return sizeof op_table_families / sizeof *op_table_families;
}

const pen_op_family *pen_op_family_at(uint32_t index) {
    PEN_ASSERT(index < pen_op_family_count());
    return op_table_families[index];
}

pen_status pen_op_find(const char *name, const pen_op **out_op) {
    for (uint32_t f = 0; f < pen_op_family_count(); f++) {
        const pen_op_family *family = op_table_families[f];
        for (uint32_t i = 0; i < family->op_count; i++) {
            if (strcmp(family->ops[i].name, name) == 0) {
                *out_op = &family->ops[i];
                return PEN_OK;
            }
        }
    }
    return pen_error(PEN_NOT_FOUND, "no operator is called '%s'", name);
}
