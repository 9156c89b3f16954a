// Pools of a fixed number of windows: window i of m along n elements has those from floor(i n / m)
// up to ceil((i + 1) n / m). Where m divides n, that is a plain pool. Elsewhere windows differ in
// size, and overlap: means are products with a matrix for each dimension, largest elements those of
// windows that are made equal in size by naming their last element again.

#include "graph/import/import.h"
#include "graph/import/pytorch/ops/pt2_spatial.h"
#include "graph/import/pytorch/pt2_mapping.h"

#define ADAPTIVE_LIMIT ((int64_t)1 << 24) // windows times elements, of a dimension

typedef struct adaptive {
    pen_pt2_spatial spatial;
    int64_t to[PEN_PT2_SPATIAL_LIMIT];
} adaptive;

static pen_status adaptive_read(pen_pt2_draft *draft, adaptive *work) {
    const uint32_t rank = pen_pt2_spatial_rank(draft);
    PEN_TRY(pen_pt2_spatial_read(draft, "self", rank, &work->spatial));
    pen_pt2_ints_each(draft, "output_size", rank, 1, work->to);
    for (uint32_t i = 0; i < rank; i++) {
        if (work->to[i] < 1) return pen_pt2_refuse(draft, "its output_size is not above 0");
    }
    return PEN_OK;
}

// Whether a dimension's windows are one, or all of the same size without overlap.
static bool adaptive_is_even(const adaptive *work, uint32_t i) {
    const int64_t from = work->spatial.sizes[i];
    return from != PEN_DIMENSION_UNKNOWN && from % work->to[i] == 0;
}

static bool adaptive_is_whole(const adaptive *work) {
    for (uint32_t i = 0; i < work->spatial.rank; i++) {
        if (work->to[i] != 1) return false;
    }
    return true;
}

// Sizes are those that the file says, so what is made of them is bounded here.
static pen_status adaptive_check_known(const pen_pt2_draft *draft, const adaptive *work) {
    for (uint32_t i = 0; i < work->spatial.rank; i++) {
        const int64_t from = work->spatial.sizes[i], to = work->to[i];
        if (from == PEN_DIMENSION_UNKNOWN) {
            return pen_pt2_refuse(draft,
                                  "its operand's size is open; only one window goes with that");
        }
        if (from < 1 || from > ADAPTIVE_LIMIT || to > ADAPTIVE_LIMIT / from) {
            return pen_pt2_refuse(draft, "it has %lld windows along %lld elements", (long long)to,
                                  (long long)from);
        }
    }
    return PEN_OK;
}

static pen_status adaptive_give_even(pen_pt2_draft *draft, const adaptive *work,
                                     const char *op_name) {
    const uint32_t rank = work->spatial.rank;
    int64_t kernel[PEN_PT2_SPATIAL_LIMIT];
    for (uint32_t i = 0; i < rank; i++) {
        kernel[i] = work->spatial.sizes[i] / work->to[i];
    }
    return pen_pt2_spatial_give(draft, &work->spatial, op_name, PEN_INPUTS(work->spatial.input),
                                PEN_WITH(pen_attribute_ints("kernel_shape", rank, kernel),
                                         pen_attribute_ints("strides", rank, kernel)));
}

static int64_t adaptive_start(int64_t window, int64_t from, int64_t to) {
    return window * from / to;
}

static int64_t adaptive_end(int64_t window, int64_t from, int64_t to) {
    return ((window + 1) * from + to - 1) / to;
}

// 1 / (size of the window) where an element lies in it.
static pen_status adaptive_weights(pen_pt2_draft *draft, int64_t from, int64_t to,
                                   const double **out_weights) {
    double *weights;
    void *table = NULL;
    PEN_TRY(pen_pt2_table(draft, to * from, sizeof *weights, &table));
    weights = table;
    for (int64_t window = 0; window < to; window++) {
        const int64_t start = adaptive_start(window, from, to);
        const int64_t end = adaptive_end(window, from, to);
        for (int64_t k = start; k < end; k++) {
            weights[window * from + k] = 1.0 / (double)(end - start);
        }
    }
    *out_weights = weights;
    return PEN_OK;
}

static pen_status adaptive_average(pen_pt2_draft *draft, const adaptive *work) {
    pen_value_id value = work->spatial.input;
    for (uint32_t i = 0; i < work->spatial.rank; i++) {
        pen_pt2_mixture weights = {i, work->to[i], work->spatial.sizes[i], NULL};
        if (weights.from == weights.to) continue;
        PEN_TRY(adaptive_weights(draft, weights.from, weights.to, &weights.numbers));
        PEN_TRY(pen_pt2_spatial_mix(draft, work->spatial.rank, &weights, &value));
    }
    return pen_pt2_spatial_set(draft, &work->spatial, 0, value);
}

static pen_status convert_average(pen_pt2_draft *draft) {
    adaptive work;
    PEN_TRY(adaptive_read(draft, &work));
    if (adaptive_is_whole(&work)) {
        return pen_pt2_spatial_give(draft, &work.spatial, "global_average_pool",
                                    PEN_INPUTS(work.spatial.input), PEN_NO_ATTRIBUTES);
    }
    PEN_TRY(adaptive_check_known(draft, &work));
    for (uint32_t i = 0; i < work.spatial.rank; i++) {
        if (!adaptive_is_even(&work, i)) return adaptive_average(draft, &work);
    }
    return adaptive_give_even(draft, &work, "average_pool");
}

// The elements of all windows of dimension `i`, each window as long as the longest.
static pen_status adaptive_gather(pen_pt2_draft *draft, const adaptive *work, uint32_t i,
                                  pen_value_id *value, int64_t *out_size) {
    const int64_t from = work->spatial.sizes[i], to = work->to[i];
    int64_t size = 0, *indices;
    void *table = NULL;
    pen_value_id list;
    for (int64_t window = 0; window < to; window++) {
        const int64_t own = adaptive_end(window, from, to) - adaptive_start(window, from, to);
        size = own > size ? own : size;
    }
    PEN_TRY(pen_pt2_table(draft, to * size, sizeof *indices, &table));
    indices = table;
    for (int64_t window = 0; window < to; window++) {
        const int64_t last = adaptive_end(window, from, to) - 1;
        for (int64_t k = 0; k < size; k++) {
            const int64_t index = adaptive_start(window, from, to) + k;
            indices[window * size + k] = index < last ? index : last;
        }
    }
    PEN_TRY(pen_pt2_constant_ints(draft, (uint32_t)(to * size), indices, &list));
    PEN_TRY(pen_pt2_emit(draft, "gather", "windows", PEN_INPUTS(*value, list),
                         PEN_WITH(pen_attribute_int("axis", 2 + i)), value));
    *out_size = size;
    return PEN_OK;
}

// Of equals the first has the gradient, as in a plain pool: the one named again comes behind.
static pen_status adaptive_largest(pen_pt2_draft *draft, const adaptive *work) {
    const uint32_t rank = work->spatial.rank;
    int64_t kernel[PEN_PT2_SPATIAL_LIMIT];
    pen_value_id value = work->spatial.input;
    for (uint32_t i = 0; i < rank; i++) {
        kernel[i] = work->spatial.sizes[i] / work->to[i];
        if (adaptive_is_even(work, i)) continue;
        PEN_TRY(adaptive_gather(draft, work, i, &value, &kernel[i]));
    }
    return pen_pt2_spatial_give(draft, &work->spatial, "max_pool", PEN_INPUTS(value),
                                PEN_WITH(pen_attribute_ints("kernel_shape", rank, kernel),
                                         pen_attribute_ints("strides", rank, kernel)));
}

static pen_status convert_largest(pen_pt2_draft *draft) {
    adaptive work;
    PEN_TRY(adaptive_read(draft, &work));
    if (adaptive_is_whole(&work)) {
        return pen_pt2_spatial_give(draft, &work.spatial, "global_max_pool",
                                    PEN_INPUTS(work.spatial.input), PEN_NO_ATTRIBUTES);
    }
    PEN_TRY(adaptive_check_known(draft, &work));
    return adaptive_largest(draft, &work);
}

static const pen_pt2_mapping adaptive_rows[] = {
    PEN_PT2_ROW("adaptive_avg_pool1d.default", average),
    PEN_PT2_ROW("adaptive_avg_pool2d.default", average),
    PEN_PT2_ROW("adaptive_avg_pool3d.default", average),
    PEN_PT2_ROW("_adaptive_avg_pool2d.default", average),
    PEN_PT2_ROW("_adaptive_avg_pool3d.default", average),
    PEN_PT2_ROW("adaptive_max_pool1d.default", largest),
    PEN_PT2_ROW("adaptive_max_pool2d.default", largest),
    PEN_PT2_ROW("adaptive_max_pool3d.default", largest),
};

PEN_PT2_FAMILY(pen_pt2_adaptive_pools, adaptive_rows);
