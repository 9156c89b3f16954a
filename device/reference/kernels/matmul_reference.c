#include "device/reference/reference_kernel.h"
#include "graph/op.h"
#include "graph/ops/product/matmul_geometry.h"

// Where in its operand row `row`, column `column` of the matrix that begins at `base` lies.
static int64_t matmul_at(int64_t base, int64_t row, int64_t column, int64_t rows, int64_t columns,
                         bool transposed) {
    return base + (transposed ? column * rows + row : row * columns + column);
}

static double matmul_dot(const pen_reference_call *call, const pen_matmul_geometry *g,
                         int64_t a_base, int64_t b_base, int64_t row, int64_t column) {
    double sum = 0;
    for (int64_t i = 0; i < g->k; i++) {
        const int64_t a = matmul_at(a_base, row, i, g->m, g->k, g->trans_a);
        const int64_t b = matmul_at(b_base, i, column, g->k, g->n, g->trans_b);
        sum += pen_tensor_get(&call->inputs[0], a) * pen_tensor_get(&call->inputs[1], b);
    }
    return sum;
}

static int64_t matmul_dot_int(const pen_reference_call *call, const pen_matmul_geometry *g,
                              int64_t a_base, int64_t b_base, int64_t row, int64_t column) {
    uint64_t sum = 0; // unsigned, so that it wraps
    for (int64_t i = 0; i < g->k; i++) {
        const int64_t a = matmul_at(a_base, row, i, g->m, g->k, g->trans_a);
        const int64_t b = matmul_at(b_base, i, column, g->k, g->n, g->trans_b);
        sum += (uint64_t)pen_tensor_get_int(&call->inputs[0], a) *
               (uint64_t)pen_tensor_get_int(&call->inputs[1], b);
    }
    return (int64_t)sum;
}

static void matmul_product(const pen_reference_call *call, const pen_matmul_geometry *g,
                           const pen_broadcast_walk *walk) {
    const pen_tensor *y = &call->outputs[0];
    const int64_t a_base = walk->index[0] * g->m * g->k;
    const int64_t b_base = walk->index[1] * g->k * g->n;
    for (int64_t row = 0; row < g->m; row++) {
        for (int64_t column = 0; column < g->n; column++) {
            const int64_t at = (walk->position * g->m + row) * g->n + column;
            if (pen_element_is_float(y->type.element)) {
                pen_tensor_set(y, at, matmul_dot(call, g, a_base, b_base, row, column));
            } else {
                pen_tensor_set_int(y, at, matmul_dot_int(call, g, a_base, b_base, row, column));
            }
        }
    }
}

static pen_status matmul_run(const pen_reference_call *call) {
    pen_matmul_geometry geometry;
    PEN_TRY(pen_matmul_geometry_of(call->graph, call->node, &geometry));
    const pen_shape *const operands[] = {&geometry.batch_a, &geometry.batch_b};
    pen_broadcast_walk walk;
    for (pen_broadcast_start(&walk, &geometry.batch, 2, operands); pen_broadcast_more(&walk);
         pen_broadcast_next(&walk)) {
        matmul_product(call, &geometry, &walk);
    }
    return PEN_OK;
}

// Integer types: alpha and beta are truncated to integers.
static void gemm_store(const pen_reference_call *call, const pen_matmul_geometry *g, int64_t at,
                       int64_t c_at) {
    const pen_tensor *y = &call->outputs[0];
    const bool has_c = pen_reference_input(call, 2) != NULL;
    const double alpha = pen_node_float(call->node, "alpha");
    const double beta = pen_node_float(call->node, "beta");
    const int64_t row = at / g->n, column = at % g->n;
    if (pen_element_is_float(y->type.element)) {
        const double c = has_c ? pen_tensor_get(&call->inputs[2], c_at) : 0;
        pen_tensor_set(y, at, alpha * matmul_dot(call, g, 0, 0, row, column) + beta * c);
    } else {
        const uint64_t c = has_c ? (uint64_t)pen_tensor_get_int(&call->inputs[2], c_at) : 0;
        const uint64_t dot = (uint64_t)matmul_dot_int(call, g, 0, 0, row, column);
        const uint64_t sum = (uint64_t)(int64_t)alpha * dot + (uint64_t)(int64_t)beta * c;
        pen_tensor_set_int(y, at, (int64_t)sum);
    }
}

static pen_status gemm_run(const pen_reference_call *call) {
    pen_matmul_geometry geometry;
    PEN_TRY(pen_gemm_geometry_of(call->graph, call->node, &geometry));
    const bool has_c = pen_reference_input(call, 2) != NULL;
    const pen_shape none = {0};
    const pen_shape *const operands[] = {has_c ? &call->inputs[2].type.shape : &none};
    pen_broadcast_walk walk;
    for (pen_broadcast_start(&walk, &geometry.output, 1, operands); pen_broadcast_more(&walk);
         pen_broadcast_next(&walk)) {
        gemm_store(call, &geometry, walk.position, walk.index[0]);
    }
    return PEN_OK;
}

static const pen_reference_kernel matmul_kernels[] = {
    {"matmul", matmul_run, NULL},
    {"gemm", gemm_run, NULL},
};

PEN_REFERENCE_FAMILY(matmul);
