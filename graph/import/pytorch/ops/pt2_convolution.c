// Convolutions, and transposed ones.

#include <string.h>

#include "graph/import/pytorch/ops/pt2_spatial.h"
#include "graph/import/pytorch/pt2_mapping.h"

typedef struct convolution {
    pen_pt2_spatial spatial;
    pen_value_id weight, bias;
    int64_t strides[PEN_PT2_SPATIAL_LIMIT], dilations[PEN_PT2_SPATIAL_LIMIT];
    int64_t pads[2 * PEN_PT2_SPATIAL_LIMIT]; // before all, then behind all
    int64_t output_padding[PEN_PT2_SPATIAL_LIMIT];
    int64_t groups;
} convolution;

// Padding as text: "valid" is none, "same" keeps the size, an odd one having more behind.
static pen_status convolution_read_text(pen_pt2_draft *draft, convolution *work) {
    const char *text = pen_pt2_text(draft, "padding", "valid");
    const uint32_t rank = work->spatial.rank;
    if (strcmp(text, "valid") == 0) return PEN_OK;
    if (strcmp(text, "same") != 0) {
        return pen_pt2_refuse(draft, "its padding is '%.32s'; there are valid and same", text);
    }
    const int64_t *kernel = &pen_pt2_type(draft, "weight")->shape.dims[2];
    for (uint32_t i = 0; i < rank; i++) {
        if (kernel[i] < 0 || kernel[i] > INT32_MAX) {
            return pen_pt2_refuse(draft, "the size of its kernel is open, or too large");
        }
        const int64_t total = work->dilations[i] * (kernel[i] - 1);
        work->pads[i] = total / 2;
        work->pads[rank + i] = total - total / 2;
    }
    return PEN_OK;
}

static pen_status convolution_read_padding(pen_pt2_draft *draft, convolution *work) {
    const uint32_t rank = work->spatial.rank;
    const char *overload = strrchr(pen_pt2_target(draft), '.');
    if (overload != NULL && strcmp(overload, ".padding") == 0) {
        return convolution_read_text(draft, work);
    }
    PEN_TRY(pen_pt2_spatial_ints(draft, "padding", rank, 0, work->pads));
    memcpy(work->pads + rank, work->pads, rank * sizeof work->pads[0]);
    return PEN_OK;
}

static pen_status convolution_read(pen_pt2_draft *draft, convolution *work) {
    const uint32_t weight_rank = pen_pt2_rank(draft, "weight");
    *work = (convolution){.groups = pen_pt2_int(draft, "groups", 1)};
    PEN_TRY(pen_pt2_spatial_read(draft, "input", weight_rank < 2 ? 0 : weight_rank - 2,
                                 &work->spatial));
    const uint32_t rank = work->spatial.rank;
    PEN_TRY(pen_pt2_tensor(draft, "weight", &work->weight));
    PEN_TRY(pen_pt2_tensor_or_none(draft, "bias", &work->bias));
    PEN_TRY(pen_pt2_spatial_ints(draft, "stride", rank, 1, work->strides));
    PEN_TRY(pen_pt2_spatial_ints(draft, "dilation", rank, 1, work->dilations));
    PEN_TRY(pen_pt2_spatial_ints(draft, "output_padding", rank, 0, work->output_padding));
    return convolution_read_padding(draft, work);
}

static pen_status convolution_give(pen_pt2_draft *draft, const convolution *work,
                                   bool is_transposed) {
    const uint32_t rank = work->spatial.rank;
    const pen_attribute_given attributes[] = {
        pen_attribute_ints("strides", rank, work->strides),
        pen_attribute_ints("dilations", rank, work->dilations),
        pen_attribute_ints("pads", 2 * rank, work->pads),
        pen_attribute_int("group", work->groups),
        pen_attribute_ints("output_padding", rank, work->output_padding),
    };
    const pen_value_id inputs[] = {work->spatial.input, work->weight, work->bias};
    return pen_pt2_spatial_give(draft, &work->spatial, is_transposed ? "conv_transpose" : "conv",
                                (pen_node_inputs){inputs, pen_value_is(work->bias) ? 3 : 2},
                                (pen_node_attributes){attributes, is_transposed ? 5 : 4});
}

static pen_status convert_conv(pen_pt2_draft *draft) {
    convolution work;
    PEN_TRY(convolution_read(draft, &work));
    return convolution_give(draft, &work, false);
}

static pen_status convert_conv_transpose(pen_pt2_draft *draft) {
    convolution work;
    PEN_TRY(convolution_read(draft, &work));
    return convolution_give(draft, &work, true);
}

static pen_status convert_convolution(pen_pt2_draft *draft) {
    convolution work;
    PEN_TRY(convolution_read(draft, &work));
    return convolution_give(draft, &work, pen_pt2_bool(draft, "transposed", false));
}

static const pen_pt2_mapping convolution_rows[] = {
    PEN_PT2_ROW("conv1d.default", conv),
    PEN_PT2_ROW("conv1d.padding", conv),
    PEN_PT2_ROW("conv2d.default", conv),
    PEN_PT2_ROW("conv2d.padding", conv),
    PEN_PT2_ROW("conv3d.default", conv),
    PEN_PT2_ROW("conv3d.padding", conv),
    PEN_PT2_ROW("conv_transpose1d.default", conv_transpose),
    PEN_PT2_ROW("conv_transpose2d.input", conv_transpose),
    PEN_PT2_ROW("conv_transpose3d.input", conv_transpose),
    PEN_PT2_ROW("convolution.default", convolution),
    PEN_PT2_ROW("_convolution.default", convolution),
};

PEN_PT2_FAMILY(pen_pt2_convolutions, convolution_rows);
