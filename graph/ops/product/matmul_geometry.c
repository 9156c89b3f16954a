#include "graph/ops/product/matmul_geometry.h"

#include "graph/graph.h"
#include "graph/op.h"

static pen_status matmul_mismatch(const char *what, const pen_shape *a, const pen_shape *b) {
    char a_text[PEN_SHAPE_TEXT_BYTES], b_text[PEN_SHAPE_TEXT_BYTES];
    return pen_error(PEN_INVALID_INPUT, "%s, %s x %s", what, pen_shape_format(a, a_text),
                     pen_shape_format(b, b_text));
}

// A vector becomes a matrix of one row (a) or one column (b), as in NumPy.
static pen_shape matmul_promote(const pen_shape *shape, bool is_left) {
    if (shape->rank != 1) return *shape;
    const int64_t length = shape->dims[0];
    return is_left ? (pen_shape){2, {1, length}} : (pen_shape){2, {length, 1}};
}

static pen_shape matmul_batch(const pen_shape *shape) {
    pen_shape batch = *shape;
    batch.rank -= 2;
    return batch;
}

static bool matmul_broadcasts_wholly(const pen_shape *operand, const pen_shape *batch) {
    const int64_t count = pen_shape_element_count(operand);
    return count == 1 || count == pen_shape_element_count(batch);
}

static void matmul_set_products(pen_matmul_geometry *geometry) {
    geometry->product_count = pen_shape_element_count(&geometry->batch);
    if (pen_shape_element_count(&geometry->batch_b) == 1 && !geometry->trans_a) {
        geometry->m *= geometry->product_count; // one tall product
        geometry->product_count = 1;
        geometry->batch = geometry->batch_a = geometry->batch_b = (pen_shape){0};
    }
    geometry->is_strided = matmul_broadcasts_wholly(&geometry->batch_a, &geometry->batch) &&
                           matmul_broadcasts_wholly(&geometry->batch_b, &geometry->batch);
    const bool a_repeats = pen_shape_element_count(&geometry->batch_a) == 1;
    const bool b_repeats = pen_shape_element_count(&geometry->batch_b) == 1;
    geometry->stride_a = a_repeats ? 0 : geometry->m * geometry->k;
    geometry->stride_b = b_repeats ? 0 : geometry->k * geometry->n;
}

// Vectors count as matrices of one row or column, and lose it in the result.
static pen_status matmul_geometry_make(const pen_shape *a_given, const pen_shape *b_given,
                                       bool trans_a, bool trans_b, pen_matmul_geometry *geometry) {
    if (a_given->rank == 0 || b_given->rank == 0) {
        return matmul_mismatch("a scalar has no product", a_given, b_given);
    }
    if ((trans_a && a_given->rank == 1) || (trans_b && b_given->rank == 1)) {
        return matmul_mismatch("a vector cannot be transposed", a_given, b_given);
    }
    const pen_shape a = matmul_promote(a_given, true);
    const pen_shape b = matmul_promote(b_given, false);
    const int64_t *a_dims = a.dims + a.rank - 2;
    const int64_t *b_dims = b.dims + b.rank - 2;
    if (a_dims[trans_a ? 0 : 1] != b_dims[trans_b ? 1 : 0]) {
        const char *what = trans_a && trans_b ? "inner dimensions of the transposed operands differ"
                           : trans_a          ? "inner dimensions differ with the first transposed"
                           : trans_b          ? "inner dimensions differ with the second transposed"
                                              : "inner dimensions differ";
        return matmul_mismatch(what, a_given, b_given);
    }
    *geometry = (pen_matmul_geometry){
        .m = a_dims[trans_a ? 1 : 0],
        .n = b_dims[trans_b ? 0 : 1],
        .k = a_dims[trans_a ? 0 : 1],
        .trans_a = trans_a,
        .trans_b = trans_b,
        .batch_a = matmul_batch(&a),
        .batch_b = matmul_batch(&b),
    };
    const pen_status broadcast =
        pen_shape_broadcast(&geometry->batch_a, &geometry->batch_b, &geometry->batch);
    if (broadcast != PEN_OK) {
        pen_status_ignore(broadcast, "the whole shapes say more than the batch dimensions");
        return matmul_mismatch("batch dimensions do not broadcast", a_given, b_given);
    }
    geometry->output = geometry->batch;
    if (a_given->rank > 1) geometry->output.dims[geometry->output.rank++] = geometry->m;
    if (b_given->rank > 1) geometry->output.dims[geometry->output.rank++] = geometry->n;
    matmul_set_products(geometry);
    return PEN_OK;
}

pen_status pen_matmul_geometry_of(const pen_graph *graph, const pen_node *node,
                                  pen_matmul_geometry *out_geometry) {
    return matmul_geometry_make(&pen_value_type(graph, node->inputs[0])->shape,
                                &pen_value_type(graph, node->inputs[1])->shape,
                                pen_node_int(node, "transA") != 0,
                                pen_node_int(node, "transB") != 0, out_geometry);
}

pen_status pen_gemm_geometry_of(const pen_graph *graph, const pen_node *node,
                                pen_matmul_geometry *out_geometry) {
    const pen_shape *a = &pen_value_type(graph, node->inputs[0])->shape;
    const pen_shape *b = &pen_value_type(graph, node->inputs[1])->shape;
    if (a->rank != 2 || b->rank != 2) return matmul_mismatch("operands must be matrices", a, b);
    return pen_matmul_geometry_of(graph, node, out_geometry);
}
