#include "graph/import/pytorch/ops/pt2_spatial.h"

#include <string.h>

uint32_t pen_pt2_spatial_rank(const pen_pt2_draft *draft) {
    const char *digit = strpbrk(pen_pt2_target(draft), "123");
    return digit == NULL ? 0 : (uint32_t)(*digit - '0');
}

pen_status pen_pt2_spatial_ints(pen_pt2_draft *draft, const char *name, uint32_t rank,
                                int64_t fallback, int64_t *out_integers) {
    pen_pt2_ints_each(draft, name, rank, fallback, out_integers);
    for (uint32_t i = 0; i < rank; i++) {
        if (out_integers[i] >= INT32_MIN && out_integers[i] <= INT32_MAX) continue;
        return pen_pt2_refuse(draft, "its %s is %lld", name, (long long)out_integers[i]);
    }
    return PEN_OK;
}

// Sizes are the file's, so they are bounded before anything is computed of them.
pen_status pen_pt2_spatial_read(pen_pt2_draft *draft, const char *name, uint32_t rank,
                                pen_pt2_spatial *out_spatial) {
    const pen_shape *shape = &pen_pt2_type(draft, name)->shape;
    pen_pt2_spatial spatial = {.rank = rank, .is_single = shape->rank == rank + 1};
    if (rank < 1 || rank > PEN_PT2_SPATIAL_LIMIT ||
        (shape->rank != rank + 1 && shape->rank != rank + 2) ||
        pen_pt2_result_type(draft, 0)->shape.rank != shape->rank) {
        return pen_pt2_refuse(draft, "its operand has %u dimensions", shape->rank);
    }
    for (uint32_t i = 0; i < rank; i++) {
        spatial.sizes[i] = shape->dims[shape->rank - rank + i];
        if (spatial.sizes[i] <= INT32_MAX) continue;
        return pen_pt2_refuse(draft, "its operand has a size of %lld", (long long)spatial.sizes[i]);
    }
    PEN_TRY(pen_pt2_tensor(draft, name, &spatial.input));
    if (spatial.is_single) {
        PEN_TRY(pen_pt2_with_int(draft, "unsqueeze", "batch", spatial.input, 0, &spatial.input));
    }
    *out_spatial = spatial;
    return PEN_OK;
}

pen_status pen_pt2_spatial_set(pen_pt2_draft *draft, const pen_pt2_spatial *spatial,
                               uint32_t result, pen_value_id value) {
    if (spatial->is_single) {
        PEN_TRY(pen_pt2_with_int(draft, "squeeze", "single", value, 0, &value));
    }
    return pen_pt2_set(draft, result, value);
}

pen_status pen_pt2_spatial_give(pen_pt2_draft *draft, const pen_pt2_spatial *spatial,
                                const char *op_name, pen_node_inputs inputs,
                                pen_node_attributes attributes) {
    pen_value_id value;
    PEN_TRY(pen_pt2_emit(draft, op_name, NULL, inputs, attributes, &value));
    return pen_pt2_spatial_set(draft, spatial, 0, value);
}

// A product with a constant matrix, by an equation that says which dimension goes.
pen_status pen_pt2_spatial_mix(pen_pt2_draft *draft, uint32_t rank, const pen_pt2_mixture *weights,
                               pen_value_id *io_value) {
    static const char *const equations[PEN_PT2_SPATIAL_LIMIT][PEN_PT2_SPATIAL_LIMIT] = {
        {"ncx,ox->nco"},
        {"ncxw,ox->ncow", "nchx,ox->ncho"},
        {"ncxhw,ox->ncohw", "ncdxw,ox->ncdow", "ncdhx,ox->ncdho"},
    };
    const int64_t dims[] = {weights->to, weights->from};
    const pen_element_type element = pen_pt2_own_element(draft);
    const pen_tensor_type type = pen_tensor_type_make(element, 2, dims);
    const pen_attribute_given equation =
        pen_attribute_text("equation", equations[rank - 1][weights->dimension]);
    pen_value_id matrix;
    PEN_TRY(pen_pt2_constant_numbers(draft, "spatial_weights", &type, weights->numbers, &matrix));
    return pen_pt2_emit(draft, "einsum", "mixed", PEN_INPUTS(*io_value, matrix), PEN_WITH(equation),
                        io_value);
}
