// How a matmul's operands fall into plain matrix products: y = op(a) * op(b).
//
// Read by the shape rule, the cost formulas and every device's kernel, so that all agree.
#ifndef PEN_GRAPH_OPS_PRODUCT_MATMUL_GEOMETRY_H
#define PEN_GRAPH_OPS_PRODUCT_MATMUL_GEOMETRY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "graph/graph_types.h"
#include "graph/tensor_type.h"

// product_count products of an m x k by a k x n matrix, all dense and row-major: product i reads
// op(a) at a walk of batch_a and op(b) at a walk of batch_b, broadcast to `batch`, and writes y at
// i * m * n. Stored, a is k x m when trans_a, and b is n x k when trans_b.
//
// Activations times one matrix, (…, M, K) x (K, N), come out as one product with m = …*M rows.
typedef struct pen_matmul_geometry {
    int64_t m, n, k;
    bool trans_a, trans_b;
    int64_t product_count;
    pen_shape batch, batch_a, batch_b; // rank 0 for a single product
    // Product i reads a at i * stride_a and b at i * stride_b (elements; 0: the same matrix for
    // all). Meaningless unless is_strided: then only a walk over the batch shapes will do.
    bool is_strided;
    int64_t stride_a, stride_b;
    pen_shape output; // of y, with promoted dimensions dropped
} pen_matmul_geometry;

// The geometry of a `matmul` node whose operands are typed.
//   INVALID_INPUT  a scalar operand, a transposed vector, shapes that do not go together
PEN_NODISCARD pen_status pen_matmul_geometry_of(const pen_graph *graph, const pen_node *node,
                                                pen_matmul_geometry *out_geometry);
// The same for a `gemm` node: one product.
//   INVALID_INPUT  an operand that is not a matrix, inner dimensions that differ
PEN_NODISCARD pen_status pen_gemm_geometry_of(const pen_graph *graph, const pen_node *node,
                                              pen_matmul_geometry *out_geometry);

#endif // PEN_GRAPH_OPS_PRODUCT_MATMUL_GEOMETRY_H
