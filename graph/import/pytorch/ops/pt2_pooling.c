// Pools of fixed windows. pt2_adaptive.c has those of a fixed number of windows.

#include <string.h>

#include "graph/import/pytorch/ops/pt2_spatial.h"
#include "graph/import/pytorch/pt2_mapping.h"

typedef struct pooling {
    pen_pt2_spatial spatial;
    int64_t kernel[PEN_PT2_SPATIAL_LIMIT], strides[PEN_PT2_SPATIAL_LIMIT];
    int64_t dilations[PEN_PT2_SPATIAL_LIMIT];
    int64_t pads[2 * PEN_PT2_SPATIAL_LIMIT]; // before all, then behind all
    bool rounds_up;
} pooling;

static pen_status pooling_read(pen_pt2_draft *draft, pooling *work) {
    const uint32_t rank = pen_pt2_spatial_rank(draft);
    *work = (pooling){.rounds_up = pen_pt2_bool(draft, "ceil_mode", false)};
    PEN_TRY(pen_pt2_spatial_read(draft, "self", rank, &work->spatial));
    PEN_TRY(pen_pt2_spatial_ints(draft, "kernel_size", rank, 1, work->kernel));
    PEN_TRY(pen_pt2_spatial_ints(draft, "padding", rank, 0, work->pads));
    PEN_TRY(pen_pt2_spatial_ints(draft, "dilation", rank, 1, work->dilations));
    if (pen_pt2_ints(draft, "stride").count == 0) {
        memcpy(work->strides, work->kernel, sizeof work->strides);
    } else {
        PEN_TRY(pen_pt2_spatial_ints(draft, "stride", rank, 1, work->strides));
    }
    memcpy(work->pads + rank, work->pads, rank * sizeof work->pads[0]);
    return PEN_OK;
}

#define POOLING_ATTRIBUTES 6

static void pooling_attributes(const pooling *work, pen_attribute_given *out_attributes) {
    const uint32_t rank = work->spatial.rank;
    const pen_attribute_given attributes[POOLING_ATTRIBUTES - 1] = {
        pen_attribute_ints("kernel_shape", rank, work->kernel),
        pen_attribute_ints("strides", rank, work->strides),
        pen_attribute_ints("dilations", rank, work->dilations),
        pen_attribute_ints("pads", 2 * rank, work->pads),
        pen_attribute_int("ceil_mode", work->rounds_up),
    };
    memcpy(out_attributes, attributes, sizeof attributes);
}

// Positions within the plane, of those within the whole operand.
static pen_status pooling_positions(pen_pt2_draft *draft, const pooling *work, pen_value_id indices,
                                    pen_value_id *out_value) {
    pen_value_id shape, sizes, plane;
    const pen_attribute_given start = pen_attribute_int("start", 2);
    PEN_TRY(pen_pt2_emit(draft, "shape", "plane_sizes", PEN_INPUTS(work->spatial.input),
                         PEN_WITH(start), &shape));
    PEN_TRY(pen_pt2_constant_ints(draft, 1, (const int64_t[]){0}, &sizes));
    PEN_TRY(pen_pt2_pair(draft, "reduce_prod", "plane", shape, sizes, &plane));
    return pen_pt2_emit(draft, "mod", "positions", PEN_INPUTS(indices, plane), PEN_NO_ATTRIBUTES,
                        out_value);
}

static pen_status convert_max_pool(pen_pt2_draft *draft) {
    pooling work;
    pen_attribute_given attributes[POOLING_ATTRIBUTES];
    pen_value_id values[2];
    PEN_TRY(pooling_read(draft, &work));
    pooling_attributes(&work, attributes);
    const uint32_t count = pen_pt2_result_count(draft) > 1 ? 2 : 1;
    const pen_pt2_emission pool = {.op_name = "max_pool",
                                   .inputs = PEN_INPUTS(work.spatial.input),
                                   .attributes = {attributes, POOLING_ATTRIBUTES - 1},
                                   .output_count = count};
    PEN_TRY(pen_pt2_emit_many(draft, &pool, values));
    PEN_TRY(pen_pt2_spatial_set(draft, &work.spatial, 0, values[0]));
    if (count == 1) return PEN_OK;
    PEN_TRY(pooling_positions(draft, &work, values[1], &values[1]));
    return pen_pt2_spatial_set(draft, &work.spatial, 1, values[1]);
}

// Zeros around the operand, so that every window lies inside.
static pen_status pooling_pad(pen_pt2_draft *draft, pooling *work) {
    const uint32_t rank = work->spatial.rank;
    const pen_shape *result = &pen_pt2_result_type(draft, 0)->shape;
    int64_t pads[2 * (PEN_PT2_SPATIAL_LIMIT + 2)] = {0};
    for (uint32_t i = 0; i < rank; i++) {
        const int64_t from = work->spatial.sizes[i], to = result->dims[result->rank - rank + i];
        pads[2 + i] = work->pads[i];
        pads[2 + rank + 2 + i] = work->pads[rank + i];
        if (!work->rounds_up) continue;
        if (from < 0 || to < 1 || to > INT32_MAX) {
            return pen_pt2_refuse(draft, "it has ceil_mode, and its operand's sizes are open");
        }
        pads[2 + rank + 2 + i] =
            (to - 1) * work->strides[i] + work->kernel[i] - from - work->pads[i];
    }
    memset(work->pads, 0, sizeof work->pads);
    work->rounds_up = false;
    return pen_pt2_with_ints(draft, "pad", "padded", work->spatial.input,
                             (pen_pt2_list){2 * (rank + 2), pads}, &work->spatial.input);
}

// Sums divided by a number of one's own: means of whole windows, times their size over it.
static pen_status pooling_divide(pen_pt2_draft *draft, pooling *work, double divisor) {
    pen_attribute_given attributes[POOLING_ATTRIBUTES];
    pen_value_id mean, factor;
    double size = 1;
    for (uint32_t i = 0; i < work->spatial.rank; i++) {
        size *= (double)work->kernel[i];
    }
    PEN_TRY(pooling_pad(draft, work));
    pooling_attributes(work, attributes);
    PEN_TRY(pen_pt2_emit(draft, "average_pool", "mean", PEN_INPUTS(work->spatial.input),
                         (pen_node_attributes){attributes, POOLING_ATTRIBUTES - 1}, &mean));
    PEN_TRY(pen_pt2_own_number(draft, size / divisor, &factor));
    return pen_pt2_spatial_give(draft, &work->spatial, "mul", PEN_INPUTS(mean, factor),
                                PEN_NO_ATTRIBUTES);
}

static pen_status convert_avg_pool(pen_pt2_draft *draft) {
    pooling work;
    pen_attribute_given attributes[POOLING_ATTRIBUTES];
    PEN_TRY(pooling_read(draft, &work));
    const double divisor = pen_pt2_float(draft, "divisor_override", 0);
    if (divisor != 0) return pooling_divide(draft, &work, divisor);
    pooling_attributes(&work, attributes);
    attributes[POOLING_ATTRIBUTES - 1] =
        pen_attribute_int("count_include_pad", pen_pt2_bool(draft, "count_include_pad", true));
    return pen_pt2_spatial_give(draft, &work.spatial, "average_pool",
                                PEN_INPUTS(work.spatial.input),
                                (pen_node_attributes){attributes, POOLING_ATTRIBUTES});
}

static const pen_pt2_mapping pooling_rows[] = {
    PEN_PT2_ROW("max_pool1d.default", max_pool),
    PEN_PT2_ROW("max_pool2d.default", max_pool),
    PEN_PT2_ROW("max_pool3d.default", max_pool),
    PEN_PT2_ROW("max_pool1d_with_indices.default", max_pool),
    PEN_PT2_ROW("max_pool2d_with_indices.default", max_pool),
    PEN_PT2_ROW("max_pool3d_with_indices.default", max_pool),
    PEN_PT2_ROW("avg_pool1d.default", avg_pool),
    PEN_PT2_ROW("avg_pool2d.default", avg_pool),
    PEN_PT2_ROW("avg_pool3d.default", avg_pool),
};

PEN_PT2_FAMILY(pen_pt2_pools, pooling_rows);
