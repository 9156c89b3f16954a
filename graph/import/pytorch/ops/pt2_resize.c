// Planes sampled between their elements: interpolation, and grids.

#include <string.h>

#include "graph/graph.h"
#include "graph/import/pytorch/ops/pt2_spatial.h"
#include "graph/import/pytorch/pt2_mapping.h"

// Sizes of all dimensions: those of batch and channels as they are.
static pen_status resize_sizes(pen_pt2_draft *draft, const pen_pt2_spatial *spatial,
                               pen_value_id *out_value) {
    pen_value_id shape, sizes;
    PEN_TRY(pen_pt2_emit(draft, "shape", "leading_sizes", PEN_INPUTS(spatial->input),
                         PEN_WITH(pen_attribute_int("end", 2)), &shape));
    PEN_TRY(pen_pt2_sizes(draft, "output_size", &sizes));
    return pen_pt2_emit(draft, "concat", "sizes", PEN_INPUTS(shape, sizes),
                        PEN_WITH(pen_attribute_int("axis", 0)), out_value);
}

// Sizes of all dimensions, of a result that the file has all of.
static pen_status resize_result_sizes(pen_pt2_draft *draft, const pen_pt2_spatial *spatial,
                                      pen_value_id *out_value) {
    const pen_shape *result = &pen_pt2_result_type(draft, 0)->shape;
    const int64_t *plane = &result->dims[result->rank - spatial->rank];
    pen_value_id shape, sizes;
    for (uint32_t i = 0; i < spatial->rank; i++) {
        if (plane[i] >= 0) continue;
        return pen_pt2_refuse(draft, "it has scales and align_corners, and its sizes are open");
    }
    PEN_TRY(pen_pt2_emit(draft, "shape", "leading_sizes", PEN_INPUTS(spatial->input),
                         PEN_WITH(pen_attribute_int("end", 2)), &shape));
    PEN_TRY(pen_pt2_constant_ints(draft, spatial->rank, plane, &sizes));
    return pen_pt2_emit(draft, "concat", "sizes", PEN_INPUTS(shape, sizes),
                        PEN_WITH(pen_attribute_int("axis", 0)), out_value);
}

// Scales of all dimensions: `scale_factors` is a list, or scales come one by one. Places are found
// by them even where the size is given beside; but not where corners are aligned.
static pen_status resize_scales(pen_pt2_draft *draft, const pen_pt2_spatial *spatial,
                                pen_value_id *out_value) {
    static const char *const names[] = {"scales_d", "scales_h", "scales_w"};
    const pen_pt2_numbers factors = pen_pt2_floats(draft, "scale_factors");
    const int64_t count = 2 + (int64_t)spatial->rank;
    const pen_tensor_type type = pen_tensor_type_make(PEN_FLOAT32, 1, &count);
    float *scales;
    *out_value = PEN_VALUE_NONE;
    PEN_TRY(PEN_NEW(pen_pt2_arena(draft), 2 + PEN_PT2_SPATIAL_LIMIT, &scales));
    scales[0] = scales[1] = 1;
    for (uint32_t i = 0; i < spatial->rank; i++) {
        const char *name = spatial->rank == 1 ? "scales" : names[3 - spatial->rank + i];
        if (factors.count == spatial->rank) {
            scales[2 + i] = (float)factors.numbers[i];
        } else if (factors.count == 0 && pen_pt2_has(draft, name)) {
            scales[2 + i] = (float)pen_pt2_float(draft, name, 1);
        } else {
            return PEN_OK;
        }
    }
    return pen_graph_constant(pen_pt2_graph(draft), "resize_scales", &type, scales, out_value);
}

// How places of the result are found in the operand: by the row's `op_name`, which is the mode.
static void resize_attributes(pen_pt2_draft *draft, pen_attribute_given out_attributes[3]) {
    const char *mode = pen_pt2_op_name(draft);
    const bool is_exact = strcmp(mode, "nearest_exact") == 0;
    const bool is_nearest = is_exact || strcmp(mode, "nearest") == 0;
    const char *coordinate = "half_pixel";
    if (is_nearest && !is_exact) coordinate = "asymmetric";
    if (pen_pt2_bool(draft, "align_corners", false)) coordinate = "align_corners";
    out_attributes[0] = pen_attribute_text("mode", is_nearest ? "nearest" : mode);
    out_attributes[1] = pen_attribute_text("coordinate_transformation_mode", coordinate);
    out_attributes[2] =
        pen_attribute_text("nearest_mode", is_exact ? "round_prefer_ceil" : "floor");
}

// Scales, where there are any, say where places lie; else sizes do.
static pen_status convert_upsample(pen_pt2_draft *draft) {
    const uint32_t rank = pen_pt2_rank(draft, "input");
    pen_pt2_spatial spatial;
    pen_attribute_given attributes[3];
    pen_value_id inputs[4] = {PEN_VALUE_NONE, PEN_VALUE_NONE, PEN_VALUE_NONE, PEN_VALUE_NONE};
    PEN_TRY(pen_pt2_spatial_read(draft, "input", rank < 2 ? 0 : rank - 2, &spatial));
    resize_attributes(draft, attributes);
    inputs[0] = spatial.input;
    PEN_TRY(resize_scales(draft, &spatial, &inputs[2]));
    const bool has_scales = pen_value_is(inputs[2]);
    if (has_scales && pen_pt2_bool(draft, "align_corners", false)) {
        inputs[2] = PEN_VALUE_NONE;
        PEN_TRY(resize_result_sizes(draft, &spatial, &inputs[3]));
    } else if (!has_scales) {
        PEN_TRY(resize_sizes(draft, &spatial, &inputs[3]));
    }
    return pen_pt2_spatial_give(draft, &spatial, "resize",
                                (pen_node_inputs){inputs, pen_value_is(inputs[2]) ? 3 : 4},
                                (pen_node_attributes){attributes, 3});
}

static pen_status convert_grid_sampler(pen_pt2_draft *draft) {
    static const char *const modes[] = {"bilinear", "nearest", "bicubic"};
    static const char *const paddings[] = {"zeros", "border", "reflection"};
    const int64_t mode = pen_pt2_int(draft, "interpolation_mode", 0);
    const int64_t padding = pen_pt2_int(draft, "padding_mode", 0);
    const pen_element_type element = pen_pt2_own_element(draft);
    pen_value_id x, grid;
    if (mode < 0 || mode > 2 || padding < 0 || padding > 2) {
        return pen_pt2_refuse(draft, "its modes are %lld and %lld", (long long)mode,
                              (long long)padding);
    }
    PEN_TRY(pen_pt2_operand(draft, "input", element, &x));
    PEN_TRY(pen_pt2_operand(draft, "grid", element, &grid));
    return pen_pt2_give(
        draft, "grid_sample", PEN_INPUTS(x, grid),
        PEN_WITH(pen_attribute_text("mode", modes[mode]),
                 pen_attribute_text("padding_mode", paddings[padding]),
                 pen_attribute_int("align_corners", pen_pt2_bool(draft, "align_corners", false))));
}

#define UPSAMPLE(aten, mode)                                                                       \
    {.target = "aten." aten ".default", .op_name = mode, .convert = convert_upsample}, {           \
        .target = "aten." aten ".vec", .op_name = mode, .convert = convert_upsample                \
    }

static const pen_pt2_mapping resize_rows[] = {
    UPSAMPLE("upsample_nearest1d", "nearest"),
    UPSAMPLE("upsample_nearest2d", "nearest"),
    UPSAMPLE("upsample_nearest3d", "nearest"),
    UPSAMPLE("_upsample_nearest_exact1d", "nearest_exact"),
    UPSAMPLE("_upsample_nearest_exact2d", "nearest_exact"),
    UPSAMPLE("_upsample_nearest_exact3d", "nearest_exact"),
    UPSAMPLE("upsample_linear1d", "linear"),
    UPSAMPLE("upsample_bilinear2d", "linear"),
    UPSAMPLE("upsample_trilinear3d", "linear"),
    UPSAMPLE("upsample_bicubic2d", "cubic"),
    PEN_PT2_ROW("grid_sampler.default", grid_sampler),
    PEN_PT2_ROW("grid_sampler_2d.default", grid_sampler),
};

PEN_PT2_FAMILY(pen_pt2_resizes, resize_rows);
