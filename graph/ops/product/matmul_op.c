// Matrix products.
//
//   matmul(a, b; transA, transB)             y = op(a) * op(b), batched as in NumPy
//   gemm(a, b, c; alpha, beta, transA, transB)   y = alpha * op(a) * op(b) + beta * c
//
// transA and transB of matmul are an extension of ONNX: they transpose the last two dimensions, so
// that gradients are products of the operands as they lie in memory, never of transposed copies.
// The gradient of a matrix that many rows share, (…, M, K) x (K, N), is one product over all rows
// (the operands are reshaped, which moves nothing), and so can accumulate inside the product.
//
// flops = 2 * products * m * n * k, and for gemm 2 * m * n more with c.

#include "graph/graph.h"
#include "graph/ops/product/matmul_geometry.h"
#include "graph/ops/shared/infer_checks.h"

#define MATMUL_ELEMENTS (PEN_ELEMENTS_FLOAT | PEN_ELEMENTS_WIDE_INTEGER)

static pen_status matmul_infer(pen_infer_context *context) {
    PEN_TRY(pen_infer_check_element(context, 0, MATMUL_ELEMENTS));
    PEN_TRY(pen_infer_check_same_element(context, 1, 0));
    pen_matmul_geometry geometry;
    PEN_TRY(pen_infer_wrap(context, pen_matmul_geometry_of(pen_infer_graph(context),
                                                           pen_infer_node(context), &geometry)));
    const pen_tensor_type type = {pen_infer_input(context, 0)->element, geometry.output};
    return pen_infer_set(context, 0, &type);
}

// c may be smaller than the product, but not stretch it.
static pen_status gemm_infer(pen_infer_context *context) {
    PEN_TRY(pen_infer_check_element(context, 0, MATMUL_ELEMENTS));
    PEN_TRY(pen_infer_check_same_element(context, 1, 0));
    pen_matmul_geometry geometry;
    PEN_TRY(pen_infer_wrap(context, pen_gemm_geometry_of(pen_infer_graph(context),
                                                         pen_infer_node(context), &geometry)));
    if (pen_infer_has_input(context, 2)) {
        PEN_TRY(pen_infer_check_same_element(context, 2, 0));
        const pen_shape *c = &pen_infer_input(context, 2)->shape;
        pen_shape common;
        PEN_TRY(pen_infer_wrap(context, pen_shape_broadcast(c, &geometry.output, &common)));
        if (!pen_shape_equal(&common, &geometry.output)) {
            char c_text[PEN_SHAPE_TEXT_BYTES], y_text[PEN_SHAPE_TEXT_BYTES];
            return pen_infer_error(
                context, PEN_INVALID_INPUT, "c is %s, which does not broadcast to the product's %s",
                pen_shape_format(c, c_text), pen_shape_format(&geometry.output, y_text));
        }
    }
    const pen_tensor_type type = {pen_infer_input(context, 0)->element, geometry.output};
    return pen_infer_set(context, 0, &type);
}

static uint64_t matmul_geometry_flops(const pen_matmul_geometry *geometry) {
    return 2 * (uint64_t)geometry->product_count * (uint64_t)geometry->m * (uint64_t)geometry->n *
           (uint64_t)geometry->k;
}

static uint64_t matmul_flops(const pen_graph *graph, pen_node_id node) {
    pen_matmul_geometry geometry;
    const pen_status status = pen_matmul_geometry_of(graph, pen_graph_node(graph, node), &geometry);
    PEN_ASSERT(status == PEN_OK); // the shape rule passed
    return matmul_geometry_flops(&geometry);
}

static uint64_t gemm_flops(const pen_graph *graph, pen_node_id node) {
    const pen_node *gemm = pen_graph_node(graph, node);
    const bool has_c = gemm->input_count > 2 && pen_value_is(gemm->inputs[2]);
    const int64_t count = pen_shape_element_count(&pen_value_type(graph, gemm->outputs[0])->shape);
    return matmul_flops(graph, node) + (has_c ? 2 * (uint64_t)count : 0);
}

// One product of the gradient, of the kind of the forward node.
typedef struct matmul_product {
    uint32_t for_input;
    pen_value_id a, b;
    bool trans_a, trans_b;
    double alpha; // gemm
    bool is_gemm;
} matmul_product;

static pen_status matmul_emit_product(pen_gradient_context *context, const matmul_product *product,
                                      pen_value_id *out_value) {
    const pen_attribute_given attributes[] = {
        pen_attribute_int("transA", product->trans_a),
        pen_attribute_int("transB", product->trans_b),
        pen_attribute_float("alpha", product->alpha),
    };
    const pen_gradient_emission emission = {
        .op_name = product->is_gemm ? "gemm" : "matmul",
        .suffix = product->for_input == 0 ? "backward_a" : "backward_b",
        .for_input = product->for_input,
        .inputs = (const pen_value_id[]){product->a, product->b},
        .input_count = 2,
        .attributes = attributes,
        .attribute_count = product->is_gemm ? 3 : 2,
    };
    return pen_gradient_emit(context, &emission, out_value);
}

// What the gradient rules of both ops work from: y = op(a) * op(b), dy.
typedef struct matmul_backward {
    pen_value_id a, b, dy;
    bool trans_a, trans_b;
    double alpha;
    bool is_gemm;
} matmul_backward;

// da = dy * op(b)^T, or, of a stored transposed, op(b) * dy^T.
static matmul_product matmul_product_of_a(const matmul_backward *backward) {
    matmul_product product = {
        .for_input = 0, .alpha = backward->alpha, .is_gemm = backward->is_gemm};
    product.a = backward->trans_a ? backward->b : backward->dy;
    product.b = backward->trans_a ? backward->dy : backward->b;
    product.trans_a = backward->trans_a && backward->trans_b;
    product.trans_b = backward->trans_a || !backward->trans_b;
    return product;
}

// db = op(a)^T * dy, or, of b stored transposed, dy^T * op(a).
static matmul_product matmul_product_of_b(const matmul_backward *backward) {
    matmul_product product = {
        .for_input = 1, .alpha = backward->alpha, .is_gemm = backward->is_gemm};
    product.a = backward->trans_b ? backward->dy : backward->a;
    product.b = backward->trans_b ? backward->a : backward->dy;
    product.trans_a = backward->trans_b || !backward->trans_a;
    product.trans_b = backward->trans_b && backward->trans_a;
    return product;
}

// A view of `value` in another shape; the value itself when it has it already.
static pen_status matmul_reshape(pen_gradient_context *context, uint32_t for_input,
                                 const pen_shape *shape, const char *suffix, pen_value_id *value) {
    pen_graph *graph = pen_gradient_graph(context);
    if (pen_shape_equal(&pen_value_type(graph, *value)->shape, shape)) return PEN_OK;
    pen_value_id dims;
    PEN_TRY(pen_graph_constant_ints(graph, "shape", shape->rank, shape->dims, &dims));
    const pen_gradient_emission emission = {
        .op_name = "reshape",
        .suffix = suffix,
        .for_input = for_input,
        .inputs = (const pen_value_id[]){*value, dims},
        .input_count = 2,
    };
    return pen_gradient_emit(context, &emission, value);
}

// Emits `product` and gives its result the shape of the input: summed over what was broadcast.
static pen_status matmul_emit_gradient(pen_gradient_context *context,
                                       const matmul_product *product) {
    pen_value_id gradient;
    PEN_TRY(matmul_emit_product(context, product, &gradient));
    const pen_graph *graph = pen_gradient_graph(context);
    const pen_value_id input = pen_gradient_input(context, product->for_input);
    const pen_shape own = pen_value_type(graph, input)->shape;
    const int64_t count = pen_shape_element_count(&pen_value_type(graph, gradient)->shape);
    if (count == pen_shape_element_count(&own)) {
        PEN_TRY(matmul_reshape(context, product->for_input, &own, "reshape", &gradient));
    } else {
        PEN_TRY(pen_gradient_unbroadcast(context, product->for_input, gradient, &gradient));
    }
    pen_gradient_set(context, product->for_input, gradient);
    return PEN_OK;
}

static pen_shape matmul_matrix_of_rows(const pen_shape *shape) {
    return (pen_shape){2,
                       {pen_shape_count(shape, 0, shape->rank - 1), shape->dims[shape->rank - 1]}};
}

// The gradient of a matrix b that all rows of a share: one product over all rows.
static pen_status matmul_gradient_of_shared(pen_gradient_context *context,
                                            matmul_backward backward) {
    const pen_graph *graph = pen_gradient_graph(context);
    const pen_shape a = matmul_matrix_of_rows(&pen_value_type(graph, backward.a)->shape);
    const pen_shape dy = matmul_matrix_of_rows(&pen_value_type(graph, backward.dy)->shape);
    PEN_TRY(matmul_reshape(context, 1, &a, "rows_of_a", &backward.a));
    PEN_TRY(matmul_reshape(context, 1, &dy, "rows_of_dy", &backward.dy));
    const matmul_product product = matmul_product_of_b(&backward);
    return matmul_emit_gradient(context, &product);
}

// Gives vectors, and the gradient of the result, the matrix shapes that they stand for.
static pen_status matmul_promote_operands(pen_gradient_context *context,
                                          matmul_backward *backward) {
    const pen_graph *graph = pen_gradient_graph(context);
    const pen_shape a = pen_value_type(graph, backward->a)->shape;
    const pen_shape b = pen_value_type(graph, backward->b)->shape;
    if (a.rank > 1 && b.rank > 1) return PEN_OK;
    pen_shape dy = pen_value_type(graph, backward->dy)->shape;
    if (a.rank == 1) { // a dimension of 1 before the columns
        const int64_t columns = b.rank == 1 ? 1 : dy.dims[--dy.rank];
        dy.dims[dy.rank++] = 1;
        dy.dims[dy.rank++] = columns;
    } else {
        dy.dims[dy.rank++] = 1;
    }
    const uint32_t for_input = pen_gradient_needed(context, 0) ? 0 : 1;
    const pen_shape row = {2, {1, a.dims[0]}};
    const pen_shape column = {2, {b.dims[0], 1}};
    PEN_TRY(matmul_reshape(context, for_input, &dy, "matrices_of_dy", &backward->dy));
    if (a.rank == 1) PEN_TRY(matmul_reshape(context, for_input, &row, "row_of_a", &backward->a));
    if (b.rank == 1) {
        PEN_TRY(matmul_reshape(context, for_input, &column, "column_of_b", &backward->b));
    }
    return PEN_OK;
}

// A weight shared by a batch gets one product over all rows, instead of one for each and a sum.
static pen_status matmul_gradient(pen_gradient_context *context) {
    const pen_node *node = pen_gradient_node(context);
    matmul_backward backward = {
        .a = pen_gradient_input(context, 0),
        .b = pen_gradient_input(context, 1),
        .dy = pen_gradient_of_output(context, 0),
        .trans_a = pen_node_int(node, "transA") != 0,
        .trans_b = pen_node_int(node, "transB") != 0,
        .alpha = 1,
    };
    PEN_TRY(matmul_promote_operands(context, &backward));
    if (pen_gradient_needed(context, 0)) {
        const matmul_product product = matmul_product_of_a(&backward);
        PEN_TRY(matmul_emit_gradient(context, &product));
    }
    if (!pen_gradient_needed(context, 1)) return PEN_OK;
    const pen_graph *graph = pen_gradient_graph(context);
    const pen_shape a = pen_value_type(graph, backward.a)->shape;
    const pen_shape b = pen_value_type(graph, backward.b)->shape;
    const bool b_is_shared = pen_shape_count(&b, 0, b.rank - 2) == 1;
    if (a.rank > 2 && b_is_shared && !backward.trans_a) {
        return matmul_gradient_of_shared(context, backward);
    }
    const matmul_product product = matmul_product_of_b(&backward);
    return matmul_emit_gradient(context, &product);
}

// dc = beta * dy, summed over what was broadcast.
static pen_status gemm_gradient_of_c(pen_gradient_context *context, double beta) {
    pen_value_id gradient = pen_gradient_of_output(context, 0);
    PEN_TRY(pen_gradient_unbroadcast(context, 2, gradient, &gradient));
    if (beta != 1) {
        pen_graph *graph = pen_gradient_graph(context);
        const pen_element_type element = pen_value_type(graph, gradient)->element;
        pen_value_id factor;
        PEN_TRY(pen_graph_constant_number(graph, "beta", element, beta, &factor));
        const pen_gradient_emission emission = {
            .op_name = "mul",
            .suffix = "backward_c",
            .for_input = 2,
            .inputs = (const pen_value_id[]){gradient, factor},
            .input_count = 2,
        };
        PEN_TRY(pen_gradient_emit(context, &emission, &gradient));
    }
    pen_gradient_set(context, 2, gradient);
    return PEN_OK;
}

static pen_status gemm_gradient(pen_gradient_context *context) {
    const pen_node *node = pen_gradient_node(context);
    const double beta = pen_node_float(node, "beta");
    const matmul_backward backward = {
        .a = pen_gradient_input(context, 0),
        .b = pen_gradient_input(context, 1),
        .dy = pen_gradient_of_output(context, 0),
        .trans_a = pen_node_int(node, "transA") != 0,
        .trans_b = pen_node_int(node, "transB") != 0,
        .alpha = pen_node_float(node, "alpha"),
        .is_gemm = true,
    };
    const matmul_product of_a = matmul_product_of_a(&backward);
    const matmul_product of_b = matmul_product_of_b(&backward);
    if (pen_gradient_needed(context, 0)) PEN_TRY(matmul_emit_gradient(context, &of_a));
    if (pen_gradient_needed(context, 1)) PEN_TRY(matmul_emit_gradient(context, &of_b));
    return pen_gradient_needed(context, 2) ? gemm_gradient_of_c(context, beta) : PEN_OK;
}

// A row of the product reads that row of the left operand, a column that of the right one; both
// read all of the other.
static pen_axis_link matmul_axis(const pen_graph *graph, const pen_node *node, uint32_t axis,
                                 uint32_t input) {
    const pen_shape *shape = &pen_value_type(graph, node->inputs[input])->shape;
    const uint32_t rank = pen_value_type(graph, node->outputs[0])->shape.rank;
    if (input > 1) return pen_axis_broadcast(shape, rank, axis); // what gemm adds
    const bool has_rows = pen_value_type(graph, node->inputs[0])->shape.rank > 1;
    const bool has_columns = pen_value_type(graph, node->inputs[1])->shape.rank > 1;
    const uint32_t batch = rank - has_rows - has_columns;
    if (axis < batch) {
        pen_shape own = *shape;
        own.rank = shape->rank > 2 ? shape->rank - 2 : 0;
        return pen_axis_broadcast(&own, batch, axis);
    }
    const bool is_row = has_rows && axis == batch;
    if (is_row != (input == 0)) return pen_axis_all();
    const bool is_turned = pen_node_int(node, input == 0 ? "transA" : "transB") != 0;
    return pen_axis_same(shape->rank - (is_row != is_turned ? 2 : 1));
}

static const pen_attribute_schema matmul_attributes[] = {
    PEN_INT_OR("transA", 0),
    PEN_INT_OR("transB", 0),
};

static const pen_attribute_schema gemm_attributes[] = {
    PEN_FLOAT_OR("alpha", 1),
    PEN_FLOAT_OR("beta", 1),
    PEN_INT_OR("transA", 0),
    PEN_INT_OR("transB", 0),
};

static const pen_op matmul_ops[] = {
    {"matmul", "matrix product, batched over leading dimensions", PEN_TAKES(2, 2), PEN_GIVES(1, 1),
     PEN_ATTRIBUTES(matmul_attributes), .infer = matmul_infer, .gradient = matmul_gradient,
     .flops = matmul_flops, .work = PEN_WORK_PRODUCT, .is_product = true, .axis_rule = matmul_axis},
    {"gemm", "alpha * op(a) * op(b) + beta * c", PEN_TAKES(2, 3), PEN_GIVES(1, 1),
     PEN_ATTRIBUTES(gemm_attributes), .infer = gemm_infer, .gradient = gemm_gradient,
     .flops = gemm_flops, .work = PEN_WORK_PRODUCT, .is_product = true, .factor = "alpha",
     .axis_rule = matmul_axis},
};

PEN_OP_FAMILY(matmul);
