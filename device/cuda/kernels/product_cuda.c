// Matrix products: kernels/product.cu.
#include <string.h>

#include "base/status.h"
#include "device/cuda/cuda_kernel.h"
#include "graph/ops/product/matmul_geometry.h"

#define PRODUCT_COLUMNS_MOST ((int64_t)PEN_CUDA_GRID_MOST * PEN_CUDA_TILE)

typedef enum product_rule { PRODUCT_MATMUL, PRODUCT_GEMM } product_rule;

static bool product_geometry(const pen_graph *graph, const pen_node *node,
                             pen_matmul_geometry *out_geometry) {
    const bool is_gemm = pen_cuda_rule(node) == PRODUCT_GEMM;
    const pen_status status = is_gemm ? pen_gemm_geometry_of(graph, node, out_geometry)
                                      : pen_matmul_geometry_of(graph, node, out_geometry);
    if (status == PEN_OK) return true;
    pen_status_ignore(status, "the host's kernel says what is wrong");
    return false;
}

// Batches that lie at equal distances, in numbers that a grid can have.
static bool product_supports(const pen_graph *graph, const pen_node *node) {
    pen_matmul_geometry g;
    if (!pen_cuda_all_float(graph, node) || !product_geometry(graph, node, &g)) return false;
    if (g.product_count > 1 && !g.is_strided) return false;
    return g.m <= INT32_MAX && g.n <= PRODUCT_COLUMNS_MOST && g.k <= INT32_MAX &&
           g.product_count <= PEN_CUDA_GRID_MOST;
}

// Where an element of c, which broadcasts to m x n, is.
static void product_place_c(const pen_shape *c, const pen_matmul_geometry *g,
                            struct cuda_product_args *args) {
    const int64_t columns = c->rank > 0 ? c->dims[c->rank - 1] : 1;
    const int64_t rows = c->rank > 1 ? c->dims[c->rank - 2] : 1;
    args->c_column = columns > 1 && g->n > 1;
    args->c_row = rows > 1 ? (uint64_t)columns : 0;
}

// Rows go along x, of which a grid may have most.
pen_cuda_step pen_cuda_product_step(const struct cuda_product_args *args, uint32_t count) {
    return (pen_cuda_step){.kernel = PEN_CUDA_KERNEL_product,
                           .grid = {(args->m + PEN_CUDA_TILE - 1) / PEN_CUDA_TILE,
                                    (args->n + PEN_CUDA_TILE - 1) / PEN_CUDA_TILE, count},
                           .args.product = *args};
}

pen_cuda_step pen_cuda_product_addend(const struct cuda_product_args *args) {
    const uint64_t count = (uint64_t)args->m * args->n;
    return (pen_cuda_step){.kernel = PEN_CUDA_KERNEL_combine,
                           .grid = {pen_cuda_blocks_for(count), 1, 1},
                           .args.broadcast = {.adds = 1,
                                              .what = PEN_CUDA_SCALE,
                                              .rank = 2,
                                              .count = count,
                                              .x = {args->c},
                                              .y = args->y,
                                              .dims = {args->m, args->n},
                                              .strides = {{args->c_row, args->c_column}},
                                              .factor = args->beta}};
}

// What matmul has not is 1, or 0.
static uint32_t product_steps(const pen_cuda_call *call, pen_cuda_step *steps) {
    const pen_node *node = call->node;
    const bool is_gemm = pen_cuda_rule(node) == PRODUCT_GEMM;
    pen_matmul_geometry g;
    if (!product_geometry(call->graph, node, &g) || g.m * g.n * g.product_count == 0) return 0;
    struct cuda_product_args args = {
        .precision = call->precision,
        .m = (uint32_t)g.m,
        .n = (uint32_t)g.n,
        .k = (uint32_t)g.k,
        .trans_a = g.trans_a,
        .trans_b = g.trans_b,
        .stride_a = g.product_count > 1 ? (uint64_t)g.stride_a : 0,
        .stride_b = g.product_count > 1 ? (uint64_t)g.stride_b : 0,
        .a = call->inputs[0],
        .b = call->inputs[1],
        .y = call->outputs[0],
        .alpha = is_gemm ? (float)pen_node_float(node, "alpha") : 1,
        .beta = is_gemm ? (float)pen_node_float(node, "beta") : 0,
    };
    if (is_gemm && pen_cuda_has(node, 2)) {
        args.c = call->inputs[2];
        product_place_c(&pen_value_type(call->graph, node->inputs[2])->shape, &g, &args);
    }
    *steps = pen_cuda_product_step(&args, (uint32_t)g.product_count);
    return 1;
}

static const pen_cuda_entry product_entries[] = {
    PEN_CUDA_ENTRY("matmul", product_supports, product_steps, PRODUCT_MATMUL),
    PEN_CUDA_ENTRY("gemm", product_supports, product_steps, PRODUCT_GEMM),
};

PEN_CUDA_FAMILY_OF(product);
