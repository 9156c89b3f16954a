#include "graph/passes/gradient/loss_mask.h"

#include "graph/graph.h"
#include "graph/op_known.h"
#include "graph/passes/gradient/loss_nodes.h"

pen_status pen_loss_where(pen_graph *graph, pen_value_id mask, pen_value_id value, double other,
                          pen_value_id *out_value) {
    pen_value_id operands[3] = {mask, value};
    const pen_element_type element = pen_value_type(graph, value)->element;
    PEN_TRY(pen_graph_constant_number(graph, "loss/masked", element, other, &operands[2]));
    return pen_loss_node(graph, PEN_OP(where), 3, operands, out_value);
}

pen_status pen_loss_shape_mask(pen_graph *graph, pen_value_id output, uint32_t rank,
                               pen_value_id *io_mask) {
    const pen_tensor_type mask = *pen_value_type(graph, *io_mask);
    const pen_tensor_type type = *pen_value_type(graph, output);
    bool fits = mask.element == PEN_BOOL && mask.shape.rank <= rank;
    int64_t dims[PEN_RANK_LIMIT];
    for (uint32_t d = 0; d < rank && fits; d++) {
        dims[d] = d < mask.shape.rank ? mask.shape.dims[d] : 1;
        fits = d >= mask.shape.rank || dims[d] == type.shape.dims[d];
    }
    if (fits) return pen_loss_reshape(graph, *io_mask, "loss/mask_shape", rank, dims, io_mask);
    char texts[2][PEN_SHAPE_TEXT_BYTES];
    return pen_error(PEN_INVALID_INPUT, "the mask of output '%s' is %s, which does not go with %s",
                     pen_value_name(graph, output), pen_tensor_type_format(&mask, texts[0]),
                     pen_tensor_type_format(&type, texts[1]));
}

pen_status pen_loss_count(pen_graph *graph, pen_value_id counts, pen_value_id *out_count) {
    PEN_TRY(pen_loss_cast(graph, counts, "float32", out_count));
    return pen_loss_total(graph, *out_count, out_count);
}

static double loss_count_all(const pen_graph *graph, pen_value_id value) {
    return (double)pen_shape_element_count(&pen_value_type(graph, value)->shape);
}

pen_status pen_loss_mask_share(pen_graph *graph, pen_value_id mask, pen_value_id *out_share) {
    pen_value_id count, least, all;
    PEN_TRY(pen_loss_count(graph, mask, &count));
    PEN_TRY(pen_graph_constant_number(graph, "loss/mask_least", PEN_FLOAT32, 1, &least));
    PEN_TRY(pen_loss_pair(graph, PEN_OP(max), count, least, &count));
    PEN_TRY(pen_graph_constant_number(graph, "loss/mask_total", PEN_FLOAT32,
                                      loss_count_all(graph, mask), &all));
    return pen_loss_pair(graph, PEN_OP(div), all, count, out_share);
}

pen_status pen_loss_find_counted(pen_graph *graph, pen_value_id counts, pen_value_id *out_counted) {
    PEN_TRY(pen_loss_count(graph, counts, out_counted));
    return pen_loss_multiply(graph, "loss/counted", 1 / loss_count_all(graph, counts), out_counted);
}
