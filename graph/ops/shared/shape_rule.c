#include "graph/ops/shared/shape_rule.h"

#include "graph/graph.h"
#include "graph/tensor_type.h"

pen_status pen_infer_wrap(const pen_infer_context *context, pen_status status) {
    if (status == PEN_OK) return PEN_OK;
    const pen_status named =
        pen_infer_error(context, pen_status_get_code(status), "%s", pen_status_message(status));
    pen_status_ignore(status, "its message was copied");
    return named;
}

pen_status pen_infer_axis(const pen_infer_context *context, uint32_t rank, int64_t axis,
                          uint32_t *out_axis) {
    return pen_infer_wrap(context, pen_shape_axis(rank, axis, out_axis));
}

pen_status pen_infer_same_element(const pen_infer_context *context, uint32_t input) {
    const pen_element_type first = pen_infer_input(context, 0)->element;
    const pen_element_type other = pen_infer_input(context, input)->element;
    if (first == other) return PEN_OK;
    return pen_infer_error(context, PEN_INVALID_INPUT,
                           "input %u is %s, but input 0 is %s; they must be equal", input,
                           pen_element_name(other), pen_element_name(first));
}

pen_status pen_infer_dims(const pen_infer_context *context, uint32_t input, uint32_t *out_rank,
                          const int64_t **out_dims) {
    PEN_TRY(pen_infer_ints(context, input, out_rank, out_dims));
    if (*out_rank <= PEN_RANK_LIMIT) return PEN_OK;
    return pen_infer_error(context, PEN_INVALID_INPUT,
                           "the new shape has %u dimensions, at most %d are possible", *out_rank,
                           PEN_RANK_LIMIT);
}

pen_status pen_infer_shape_attribute(const pen_infer_context *context, const char *name,
                                     pen_tensor_type *out_type) {
    uint32_t count;
    const int64_t *dims = pen_node_ints(pen_infer_node(context), name, &count);
    if (count > PEN_RANK_LIMIT) {
        return pen_infer_error(context, PEN_INVALID_INPUT,
                               "attribute '%s' has %u dimensions, at most %d are possible", name,
                               count, PEN_RANK_LIMIT);
    }
    *out_type = pen_tensor_type_make(pen_infer_input(context, 0)->element, count, dims);
    return pen_infer_wrap(context, pen_tensor_type_check(out_type));
}

uint64_t pen_bytes_moved(const pen_graph *graph, pen_node_id node) {
    const pen_node *moving = pen_graph_node(graph, node);
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < moving->output_count; i++) {
        if (!pen_value_is(moving->outputs[i])) continue;
        bytes += 2 * pen_tensor_type_bytes(pen_value_type(graph, moving->outputs[i]));
    }
    return bytes;
}
