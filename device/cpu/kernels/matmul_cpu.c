// Matrix products: matmul and gemm, on OpenBLAS, oneDNN, gemm_rows or gemm_one_row, whichever
// does shapes like the one at hand faster.
//
// What is added to the product (gemm's c, or the sum so far of a node that accumulates) is put into
// the output first, and the library adds to that: no product ever lies in a temporary.
//
// Products are shared out in parts that follow from the shape (gemm_parts.h), or by strips of
// columns (gemm_rows), so that numbers do not depend on the team.
#include <limits.h>
#include <omp.h>
#include <string.h>

#include "device/cpu/blas.h"
#include "device/cpu/cpu_kernel.h"
#include "device/cpu/gemm.h"
#include "device/cpu/gemm_parts.h"
#include "device/cpu/kernels/loops/gemm_one_row.h"
#include "device/cpu/kernels/loops/gemm_rows.h"
#include "device/cpu/onednn/onednn_gemm.h"
#include "graph/graph.h"
#include "graph/op.h"
#include "graph/ops/product/matmul_geometry.h"

// Below this many flops a product is not worth a team.
#define MATMUL_TEAM_FLOPS 200000

typedef struct matmul_state {
    pen_matmul_geometry geometry;
    pen_gemm_fn sgemm;
    float alpha;
    float beta;
    bool has_c;
    int64_t c_row_stride;     // of gemm's c, 0 where it repeats
    int64_t c_column_stride;  // 0 or 1
    int64_t *a_offsets;       // [product_count]; NULL: strided
    int64_t *b_offsets;       // [product_count]
    bool is_parallel_outside; // the team shares out the products, each on one thread
} matmul_state;

static pen_status matmul_openblas_whole(const pen_gemm *gemm) {
    pen_blas_sgemm(gemm);
    return PEN_OK;
}

static pen_status matmul_openblas(const pen_gemm *gemm) {
    return pen_gemm_in_parts(gemm, matmul_openblas_whole);
}

static pen_status matmul_onednn(const pen_gemm *gemm) {
    return pen_gemm_in_parts(gemm, pen_onednn_sgemm);
}

static bool matmul_supports(const pen_cpu_request *request) {
    const pen_node *node = request->node;
    for (uint32_t i = 0; i < node->input_count; i++) {
        if (!pen_cpu_is_plain_float(request, node->inputs[i])) return false;
        if (!pen_value_is(node->inputs[i])) continue;
        const pen_shape *shape = &pen_value_type(request->graph, node->inputs[i])->shape;
        for (uint32_t d = 0; d < shape->rank; d++) {
            if (shape->dims[d] > INT_MAX) return false;
        }
    }
    const pen_shape *y = &pen_value_type(request->graph, node->outputs[0])->shape;
    return pen_cpu_is_plain_float(request, node->outputs[0]) &&
           pen_shape_element_count(y) < (int64_t)1 << 40;
}

static bool matmul_openblas_supports(const pen_cpu_request *request) {
    return pen_blas_is_loaded() && matmul_supports(request);
}

static pen_status matmul_geometry_of(const pen_cpu_request *request, pen_matmul_geometry *out) {
    return strcmp(request->node->op->name, "gemm") == 0
               ? pen_gemm_geometry_of(request->graph, request->node, out)
               : pen_matmul_geometry_of(request->graph, request->node, out);
}

// The shape as far as a rule of thumb looks at it; false when prepare will report an error.
static bool matmul_single(const pen_cpu_request *request, pen_matmul_geometry *g) {
    const pen_status status = matmul_geometry_of(request, g);
    if (status != PEN_OK) {
        pen_status_ignore(status, "a preference only; prepare reports it");
        return false;
    }
    return g->product_count == 1;
}

// Where OpenBLAS was measured faster: forward products of some hundred rows (oneDNN does not copy
// b then, and rows a large power of two apart collide in its caches), and gradients of weights
// over few rows. The rest is oneDNN's.
static bool matmul_openblas_prefers(const pen_cpu_request *request) {
    pen_matmul_geometry g;
    if (!matmul_single(request, &g)) return false;
    const bool is_forward = !g.trans_a && g.trans_b && g.m > 64 && g.m < 512 && g.n >= 512;
    const bool is_weights = g.trans_a && !g.trans_b && g.k <= 64 && g.m >= 512 && g.n >= 512;
    return is_forward || is_weights;
}

static bool matmul_rows_supports(const pen_cpu_request *request) {
    pen_matmul_geometry g;
    return matmul_supports(request) && matmul_single(request, &g) && !g.trans_a && g.trans_b &&
           g.m <= 256;
}

static bool matmul_rows_prefers(const pen_cpu_request *request) {
    pen_matmul_geometry g;
    return request->level == PEN_KERNEL_LEVEL_V4 && matmul_single(request, &g) && g.m >= 16 &&
           g.m <= 64 && g.k >= 64;
}

// One row, whichever way b lies: what libraries do with it costs more than the product. Lines of b
// of less than some vectors are theirs.
static bool matmul_one_row_supports(const pen_cpu_request *request) {
    pen_matmul_geometry g;
    return matmul_supports(request) && matmul_single(request, &g) && g.m == 1 &&
           (g.trans_b ? g.k : g.n) >= 32;
}

// Element offsets of the operands of every product, where they are not evenly spaced.
static pen_status matmul_make_offsets(const pen_cpu_request *request, matmul_state *state) {
    const pen_matmul_geometry *g = &state->geometry;
    PEN_TRY(PEN_NEW(request->arena, (size_t)g->product_count, &state->a_offsets));
    PEN_TRY(PEN_NEW(request->arena, (size_t)g->product_count, &state->b_offsets));
    const pen_shape *const batches[2] = {&g->batch_a, &g->batch_b};
    int64_t *const offsets[2] = {state->a_offsets, state->b_offsets};
    const int64_t sizes[2] = {g->m * g->k, g->k * g->n};
    for (int operand = 0; operand < 2; operand++) {
        const pen_shape *shape = batches[operand];
        for (int64_t p = 0; p < g->product_count; p++) {
            int64_t rest = p, stride = 1, at = 0;
            for (uint32_t d = 0; d < g->batch.rank; d++) { // counted from the last dimension
                const int64_t dim = g->batch.dims[g->batch.rank - 1 - d];
                const int64_t own = d < shape->rank ? shape->dims[shape->rank - 1 - d] : 1;
                if (own > 1) at += rest % dim * stride;
                rest /= dim;
                stride *= own;
            }
            offsets[operand][p] = at * sizes[operand];
        }
    }
    return PEN_OK;
}

static void matmul_prepare_gemm(const pen_cpu_request *request, matmul_state *state) {
    const pen_node *node = request->node;
    state->alpha = (float)pen_node_float(node, "alpha");
    state->beta = (float)pen_node_float(node, "beta");
    state->has_c = node->input_count > 2 && pen_value_is(node->inputs[2]) && state->beta != 0;
    if (!state->has_c) return;
    const pen_shape *c = &pen_value_type(request->graph, node->inputs[2])->shape;
    const int64_t columns = c->rank > 0 ? c->dims[c->rank - 1] : 1;
    const int64_t rows = c->rank > 1 ? c->dims[c->rank - 2] : 1;
    state->c_column_stride = columns > 1 ? 1 : 0;
    state->c_row_stride = rows > 1 ? columns : 0;
}

static pen_status matmul_prepare_with(const pen_cpu_request *request, pen_gemm_fn sgemm,
                                      void **out_state) {
    matmul_state *state;
    PEN_TRY(PEN_NEW(request->arena, 1, &state));
    state->sgemm = sgemm;
    state->alpha = 1;
    PEN_TRY(matmul_geometry_of(request, &state->geometry));
    if (strcmp(request->node->op->name, "gemm") == 0) matmul_prepare_gemm(request, state);
    const pen_matmul_geometry *g = &state->geometry;
    if (!g->is_strided) PEN_TRY(matmul_make_offsets(request, state));
    const double flops = 2.0 * (double)g->m * (double)g->n * (double)g->k;
    const double all_flops = flops * (double)g->product_count;
    state->is_parallel_outside =
        g->product_count >= request->thread_count && all_flops > MATMUL_TEAM_FLOPS && flops < 4e7;
    *out_state = state;
    return PEN_OK;
}

static pen_status matmul_prepare_onednn(const pen_cpu_request *request, void **out_state,
                                        uint64_t *out_workspace_bytes) {
    *out_workspace_bytes = 0;
    return matmul_prepare_with(request, matmul_onednn, out_state);
}

static pen_status matmul_prepare_openblas(const pen_cpu_request *request, void **out_state,
                                          uint64_t *out_workspace_bytes) {
    *out_workspace_bytes = 0;
    return matmul_prepare_with(request, matmul_openblas, out_state);
}

static pen_status matmul_prepare_rows(const pen_cpu_request *request, void **out_state,
                                      uint64_t *out_workspace_bytes) {
    *out_workspace_bytes = 0;
    return matmul_prepare_with(request, gemm_rows_run, out_state);
}

static pen_status matmul_prepare_one_row(const pen_cpu_request *request, void **out_state,
                                         uint64_t *out_workspace_bytes) {
    *out_workspace_bytes = 0;
    return matmul_prepare_with(request, gemm_one_row_run, out_state);
}

// y = beta * c, or y += beta * c: what the product is then added to.
static void matmul_put_c(const matmul_state *state, const float *c, float *y, bool accumulate) {
    const int64_t m = state->geometry.m, n = state->geometry.n;
    const float beta = state->beta;
    const int64_t step = state->c_column_stride;
#pragma omp parallel for schedule(static) if (m * n > 65536)
    for (int64_t row = 0; row < m; row++) {
        const float *from = c + row * state->c_row_stride;
        float *to = y + row * n;
        if (accumulate) {
            for (int64_t i = 0; i < n; i++) {
                to[i] += beta * from[i * step];
            }
        } else if (step == 1) {
            for (int64_t i = 0; i < n; i++) {
                to[i] = beta * from[i];
            }
        } else {
            for (int64_t i = 0; i < n; i++) {
                to[i] = beta * from[0];
            }
        }
    }
}

static pen_status matmul_product(const matmul_state *state, const pen_gemm *base, int64_t p) {
    const pen_matmul_geometry *g = &state->geometry;
    pen_gemm gemm = *base;
    gemm.a += state->a_offsets != NULL ? state->a_offsets[p] : p * g->stride_a;
    gemm.b += state->b_offsets != NULL ? state->b_offsets[p] : p * g->stride_b;
    gemm.c += p * g->m * g->n;
    return state->sgemm(&gemm);
}

static pen_status matmul_products(const matmul_state *state, const pen_gemm *base) {
    const int64_t count = state->geometry.product_count;
    pen_status first = PEN_OK;
    if (!state->is_parallel_outside) {
        for (int64_t p = 0; p < count; p++) {
            PEN_TRY(matmul_product(state, base, p));
        }
        return PEN_OK;
    }
#pragma omp parallel for schedule(static)
    for (int64_t p = 0; p < count; p++) {
        const pen_status status = matmul_product(state, base, p);
        if (status == PEN_OK) continue;
#pragma omp critical(matmul_status)
        first = pen_status_join(first, status);
    }
    return first;
}

// c is put into the result first, so that one product adds to it; empty sums are zeros.
static pen_status matmul_run(const pen_cpu_call *call) {
    const matmul_state *state = call->state;
    const pen_matmul_geometry *g = &state->geometry;
    float *y = call->outputs[0];
    if (g->m == 0 || g->n == 0 || g->product_count == 0) return PEN_OK;
    if (state->has_c) matmul_put_c(state, call->inputs[2], y, call->accumulate);
    const bool adds = state->has_c || call->accumulate;
    if (g->k == 0) {
        if (!adds) memset(y, 0, (size_t)(g->product_count * g->m * g->n) * sizeof *y);
        return PEN_OK;
    }
    const pen_gemm base = {
        .m = g->m,
        .n = g->n,
        .k = g->k,
        .trans_a = g->trans_a,
        .trans_b = g->trans_b,
        .alpha = state->alpha,
        .beta = adds ? 1.0f : 0.0f,
        .a = call->inputs[0],
        .b = call->inputs[1],
        .c = y,
        .lda = g->trans_a ? g->m : g->k,
        .ldb = g->trans_b ? g->k : g->n,
        .ldc = g->n,
    };
    // a small product is done by the calling thread alone
    const double flops =
        2.0 * (double)g->m * (double)g->n * (double)g->k * (double)g->product_count;
    const int team = omp_get_max_threads();
    const bool alone = team > 1 && flops < MATMUL_TEAM_FLOPS;
    if (alone) omp_set_num_threads(1);
    const pen_status status = matmul_products(state, &base);
    if (alone) omp_set_num_threads(team);
    return status;
}

static const pen_cpu_kernel matmul_kernels[] = {
    {PEN_CPU_ENTRY("matmul", "one_row", matmul_one_row_supports, matmul_prepare_one_row,
                   matmul_run),
     .can_accumulate = true},
    {PEN_CPU_ENTRY("matmul", "onednn", matmul_supports, matmul_prepare_onednn, matmul_run),
     .can_accumulate = true},
    {PEN_CPU_ENTRY("matmul", "openblas", matmul_openblas_supports, matmul_prepare_openblas,
                   matmul_run),
     .can_accumulate = true, .prefers = matmul_openblas_prefers},
    {PEN_CPU_ENTRY("matmul", "rows", matmul_rows_supports, matmul_prepare_rows, matmul_run),
     .can_accumulate = true, .prefers = matmul_rows_prefers},
    {PEN_CPU_ENTRY("gemm", "one_row", matmul_one_row_supports, matmul_prepare_one_row, matmul_run),
     .can_accumulate = true},
    {PEN_CPU_ENTRY("gemm", "onednn", matmul_supports, matmul_prepare_onednn, matmul_run),
     .can_accumulate = true},
    {PEN_CPU_ENTRY("gemm", "openblas", matmul_openblas_supports, matmul_prepare_openblas,
                   matmul_run),
     .can_accumulate = true, .prefers = matmul_openblas_prefers},
    {PEN_CPU_ENTRY("gemm", "rows", matmul_rows_supports, matmul_prepare_rows, matmul_run),
     .can_accumulate = true, .prefers = matmul_rows_prefers},
};

PEN_CPU_FAMILY_OF(matmul);
