// Operators of TensorFlow on volumes (depth, height, width), and on images in blocks.

#include <string.h>

#include "base/integer.h"
#include "graph/graph.h"
#include "graph/import/tensorflow/graphdef_mapping.h"

// ---- volumes: channels are put first before the operator, and last after it

typedef struct volume_window {
    bool is_last; // channels are
    int64_t strides[3], dilations[3], kernel[3];
    const char *auto_pad;
} volume_window;

static pen_status volume_sides(const pen_graphdef_draft *draft, const char *name, bool is_last,
                               int64_t out_sides[3]) {
    uint32_t count;
    int64_t *integers;
    PEN_TRY(pen_graphdef_ints(draft->node, name, draft->arena, &count, &integers));
    for (uint32_t i = 0; i < 3; i++) {
        out_sides[i] = count == 5 ? integers[(is_last ? 1 : 2) + i] : 1;
    }
    const bool is_usual =
        count == 0 || (count == 5 && integers[0] == 1 && integers[is_last ? 4 : 1] == 1);
    if (is_usual) return PEN_OK;
    return pen_error(PEN_UNSUPPORTED,
                     "%s has %u numbers, or is not 1 along batch and channels; only volumes (5) "
                     "are possible",
                     name, count);
}

static pen_status volume_window_read(const pen_graphdef_draft *draft, volume_window *out_window) {
    const pen_graphdef_node *node = draft->node;
    const char *padding = pen_graphdef_text(node, "padding", "");
    const bool is_same = strcmp(padding, "SAME") == 0;
    volume_window window = {
        .is_last = strcmp(pen_graphdef_text(node, "data_format", "NDHWC"), "NCDHW") != 0,
        .auto_pad = is_same ? "SAME_UPPER" : "NOTSET"};
    if (!is_same && strcmp(padding, "VALID") != 0) {
        return pen_error(PEN_UNSUPPORTED, "padding is '%.32s'; possible are SAME and VALID",
                         padding);
    }
    PEN_TRY(volume_sides(draft, "strides", window.is_last, window.strides));
    PEN_TRY(volume_sides(draft, "dilations", window.is_last, window.dilations));
    PEN_TRY(volume_sides(draft, "ksize", window.is_last, window.kernel));
    *out_window = window;
    return PEN_OK;
}

static pen_status volume_operand(pen_graphdef_draft *draft, bool is_last,
                                 pen_graphdef_value *out_value) {
    static const int64_t to_first[] = {0, 4, 1, 2, 3};
    PEN_TRY(pen_graphdef_operand(draft, 0, out_value));
    if (!is_last) return PEN_OK;
    return pen_graphdef_emit_transpose(draft, "to_channels_first", *out_value, 5, to_first,
                                       out_value);
}

static pen_status volume_give(pen_graphdef_draft *draft, bool is_last, const char *op_name,
                              pen_graphdef_inputs inputs, pen_node_attributes attributes) {
    static const int64_t to_last[] = {0, 2, 3, 4, 1};
    pen_graphdef_value result;
    PEN_TRY(
        pen_graphdef_emit(draft, op_name, is_last ? "volume" : NULL, inputs, attributes, &result));
    if (is_last) PEN_TRY(pen_graphdef_emit_transpose(draft, NULL, result, 5, to_last, &result));
    return pen_graphdef_set(draft, 0, result);
}

// Groups are not given: they follow from channels and filter.
static pen_status convert_conv(pen_graphdef_draft *draft) {
    static const int64_t filter_axes[] = {4, 3, 0, 1, 2};
    volume_window window;
    pen_graphdef_value operands[2], filter;
    pen_shape shape, filter_shape;
    PEN_TRY(volume_window_read(draft, &window));
    PEN_TRY(volume_operand(draft, window.is_last, &operands[0]));
    PEN_TRY(pen_graphdef_operand(draft, 1, &filter));
    PEN_TRY(pen_graphdef_value_shape(draft, &operands[0], &shape));
    PEN_TRY(pen_graphdef_value_shape(draft, &filter, &filter_shape));
    const bool fits = shape.rank == 5 && filter_shape.rank == 5 && shape.dims[1] > 0 &&
                      filter_shape.dims[3] > 0 && shape.dims[1] % filter_shape.dims[3] == 0;
    if (!fits) return pen_error(PEN_UNSUPPORTED, "the channels that its filter sees do not fit");
    PEN_TRY(pen_graphdef_emit_transpose(draft, "filter", filter, 5, filter_axes, &operands[1]));
    return volume_give(draft, window.is_last, "conv", PEN_GRAPHDEF_ALL(operands),
                       PEN_WITH(pen_attribute_ints("strides", 3, window.strides),
                                pen_attribute_ints("dilations", 3, window.dilations),
                                pen_attribute_text("auto_pad", window.auto_pad),
                                pen_attribute_int("group", shape.dims[1] / filter_shape.dims[3])));
}

static pen_status convert_pool(pen_graphdef_draft *draft) {
    volume_window window;
    pen_graphdef_value x;
    PEN_TRY(volume_window_read(draft, &window));
    PEN_TRY(volume_operand(draft, window.is_last, &x));
    return volume_give(draft, window.is_last, draft->mapping->op_name, PEN_GRAPHDEF_INPUTS(x),
                       PEN_WITH(pen_attribute_ints("strides", 3, window.strides),
                                pen_attribute_ints("kernel_shape", 3, window.kernel),
                                pen_attribute_text("auto_pad", window.auto_pad)));
}

// ---- blocks: of images and sequences, whose parts go into the batch, or come from it

typedef struct volume_blocks {
    uint32_t count; // dimensions that are cut
    int64_t sizes[PEN_RANK_LIMIT / 2];
    int64_t edges[PEN_RANK_LIMIT / 2][2]; // what is added, or cut off, before and after
    pen_shape shape;                      // of x
} volume_blocks;

// Sizes are limited, so that their products stay within 64 bits.
static pen_status blocks_read(pen_graphdef_draft *draft, const pen_graphdef_value *x,
                              volume_blocks *out_blocks) {
    const pen_graphdef_ints_known *sizes;
    pen_graphdef_value edges;
    uint32_t count = 0;
    const int64_t *integers;
    PEN_TRY(pen_graphdef_operand_ints(draft, 1, &sizes));
    PEN_TRY(pen_graphdef_operand(draft, 2, &edges));
    PEN_TRY(pen_graphdef_value_shape(draft, x, &out_blocks->shape));
    PEN_TRY(pen_value_read_ints(draft->graphs[0], edges.in[0], &count, &integers));
    out_blocks->count = sizes->count;
    if (sizes->count < 1 || sizes->count > 3 || count != 2 * sizes->count ||
        out_blocks->shape.rank != sizes->count + 2) {
        return pen_error(PEN_UNSUPPORTED,
                         "%u dimensions of %u are cut; possible are all but the first and last, 1 "
                         "to 3",
                         sizes->count, out_blocks->shape.rank);
    }
    for (uint32_t i = 0; i < sizes->count; i++) {
        out_blocks->sizes[i] = sizes->integers[i];
        out_blocks->edges[i][0] = integers[2 * i];
        out_blocks->edges[i][1] = integers[2 * i + 1];
        const int64_t side = out_blocks->shape.dims[1 + i];
        if (sizes->integers[i] < 1 || sizes->integers[i] > 1 << 20 || side < 1 || side > 1 << 20 ||
            integers[2 * i] < 0 || integers[2 * i] > 1 << 20 || integers[2 * i + 1] < 0 ||
            integers[2 * i + 1] > 1 << 20) {
            return pen_error(PEN_UNSUPPORTED, "the size of a side, or of a block, is not known, or "
                                              "above 2^20");
        }
    }
    return PEN_OK;
}

// Reshapes to `dims`, transposes, and reshapes to `then`.
static pen_status blocks_move(pen_graphdef_draft *draft, pen_graphdef_value *x, uint32_t rank,
                              const int64_t *const lists[3], uint32_t then_rank) {
    PEN_TRY(pen_graphdef_emit_with_ints(draft, "reshape", "cut", *x,
                                        (pen_graphdef_integers){rank, lists[0]}, x));
    PEN_TRY(pen_graphdef_emit_transpose(draft, "moved", *x, rank, lists[1], x));
    return pen_graphdef_emit_with_ints(draft, "reshape", "joined", *x,
                                       (pen_graphdef_integers){then_rank, lists[2]}, x);
}

// Pad, split each side into blocks, and move the blocks before the batch.
static pen_status convert_space_to_batch(pen_graphdef_draft *draft) {
    pen_graphdef_value operands[2];
    volume_blocks blocks;
    int64_t pads[2 * PEN_RANK_LIMIT] = {0}, dims[PEN_RANK_LIMIT], axes[PEN_RANK_LIMIT];
    int64_t then[PEN_RANK_LIMIT];
    PEN_TRY(pen_graphdef_operand(draft, 0, &operands[0]));
    PEN_TRY(blocks_read(draft, &operands[0], &blocks));
    const uint32_t count = blocks.count, rank = count + 2;
    dims[0] = then[0] = -1;
    for (uint32_t i = 0; i < count; i++) {
        pads[1 + i] = blocks.edges[i][0];
        pads[rank + 1 + i] = blocks.edges[i][1];
        const int64_t side = blocks.shape.dims[1 + i] + blocks.edges[i][0] + blocks.edges[i][1];
        dims[1 + 2 * i] = then[1 + i] = side / blocks.sizes[i];
        dims[2 + 2 * i] = blocks.sizes[i];
        axes[i] = 2 + 2 * i;
        axes[count + 1 + i] = 1 + 2 * i;
    }
    axes[count] = 0;
    axes[2 * count + 1] = 2 * count + 1;
    dims[2 * count + 1] = then[count + 1] = blocks.shape.dims[count + 1];
    PEN_TRY(pen_graphdef_ints_value(draft, "pads", 2 * rank, pads, &operands[1]));
    PEN_TRY(pen_graphdef_emit(draft, "pad", "padded", PEN_GRAPHDEF_ALL(operands),
                              PEN_WITH(pen_attribute_text("mode", "constant")), &operands[0]));
    PEN_TRY(blocks_move(draft, &operands[0], 2 * count + 2,
                        (const int64_t *const[]){dims, axes, then}, rank));
    return pen_graphdef_set(draft, 0, operands[0]);
}

// The steps of convert_space_to_batch backwards, with a crop at the end.
static pen_status convert_batch_to_space(pen_graphdef_draft *draft) {
    pen_graphdef_value operands[4];
    volume_blocks blocks;
    int64_t dims[PEN_RANK_LIMIT], axes[PEN_RANK_LIMIT], then[PEN_RANK_LIMIT];
    int64_t starts[3], ends[3], places[3];
    PEN_TRY(pen_graphdef_operand(draft, 0, &operands[0]));
    PEN_TRY(blocks_read(draft, &operands[0], &blocks));
    const uint32_t count = blocks.count;
    for (uint32_t i = 0; i < count; i++) {
        const int64_t side = blocks.shape.dims[1 + i] * blocks.sizes[i];
        dims[i] = blocks.sizes[i];
        dims[count + 1 + i] = blocks.shape.dims[1 + i];
        axes[1 + 2 * i] = count + 1 + i;
        axes[2 + 2 * i] = i;
        then[1 + i] = side;
        starts[i] = blocks.edges[i][0];
        ends[i] = side - blocks.edges[i][1];
        places[i] = 1 + i;
    }
    dims[count] = then[0] = -1;
    axes[0] = count;
    axes[2 * count + 1] = 2 * count + 1;
    dims[2 * count + 1] = then[count + 1] = blocks.shape.dims[count + 1];
    PEN_TRY(blocks_move(draft, &operands[0], 2 * count + 2,
                        (const int64_t *const[]){dims, axes, then}, count + 2));
    PEN_TRY(pen_graphdef_ints_value(draft, "starts", count, starts, &operands[1]));
    PEN_TRY(pen_graphdef_ints_value(draft, "ends", count, ends, &operands[2]));
    PEN_TRY(pen_graphdef_ints_value(draft, "axes", count, places, &operands[3]));
    return pen_graphdef_give(draft, "slice", (pen_graphdef_inputs){operands, 4}, PEN_NO_ATTRIBUTES);
}

static const pen_graphdef_mapping volume_mappings[] = {
    {.op = "AvgPool3D", .op_name = "average_pool", .convert = convert_pool},
    {.op = "BatchToSpaceND", .convert = convert_batch_to_space},
    {.op = "Conv3D", .convert = convert_conv},
    {.op = "MaxPool3D", .op_name = "max_pool", .convert = convert_pool},
    {.op = "SpaceToBatchND", .convert = convert_space_to_batch},
};

PEN_GRAPHDEF_FAMILY(pen_graphdef_volumes, volume_mappings);
