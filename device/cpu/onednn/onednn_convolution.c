// Convolutions and their backward halves by oneDNN.
//
// Parameters and their gradients lie plain; oneDNN's order of the weights is made in workspace on
// the way in, and undone (or added) on the way out. A transposed convolution is oneDNN's
// deconvolution, whose weights are the convolution's with its two channel axes exchanged.
//
// Two algorithms compete for windows of 3 x 3: the direct one, and Winograd's F(4 x 4, 3 x 3)
// (Lavin and Gray, "Fast Algorithms for Convolutional Neural Networks", 2016), with a quarter of
// the multiplications and a few bits less.
#include "device/cpu/onednn/onednn_convolution.h"

#include <string.h>

#include "base/integer.h"
#include "device/cpu/cpu_kernel.h"
#include "device/cpu/cpu_layout.h"
#include "device/cpu/one_thread.h"
#include "device/cpu/onednn/onednn_layout.h"
#include "device/cpu/onednn/onednn_operation.h"
#include "device/cpu/onednn/onednn_parts.h"
#include "graph/graph.h"
#include "graph/op.h"
#include "graph/ops/product/convolution_geometry.h"

#define CONV_OPERAND_LIMIT 4
#define CONV_PART_CHANNELS 16 // least channels of a part, and what they are a multiple of

// What a tensor is to the convolution that the geometry describes.
typedef enum conv_part {
    CONV_INPUT,
    CONV_WEIGHT,
    CONV_BIAS,
    CONV_OUTPUT,
    CONV_PART_COUNT,
} conv_part;

typedef struct conv_operand {
    conv_part part;
    int argument;
    bool is_output;
    uint32_t index;
} conv_operand;

typedef struct conv_kind {
    const char *op_name;
    pen_status (*geometry)(const pen_graph *graph, const pen_node *node,
                           pen_conv_geometry *out_geometry);
    pen_onednn_pass pass;
    uint32_t operand_count;
    conv_operand operands[CONV_OPERAND_LIMIT]; // the bias, which may be left out, comes last
} conv_kind;

typedef struct conv_problem {
    const conv_kind *kind;
    dnnl_alg_kind_t algorithm; // of convolutions; transposed ones are always direct
    pen_conv_geometry geometry;
    uint32_t operand_count;
    pen_layout layouts[CONV_PART_COUNT];       // of input and output
    pen_onednn_tensor lies[CONV_PART_COUNT];   // how the values lie
    pen_onednn_tensor wanted[CONV_PART_COUNT]; // what the primitive is asked for
    dnnl_dims_t strides;
    dnnl_dims_t dilations; // oneDNN's: 0 is dense
    dnnl_dims_t pads_begin;
    dnnl_dims_t pads_end;
} conv_problem;

static const conv_kind conv_kinds[] = {
    {
        .op_name = "conv",
        .geometry = pen_conv_geometry_of,
        .pass = PEN_ONEDNN_FORWARD,
        .operand_count = 4,
        .operands = {{CONV_INPUT, DNNL_ARG_SRC, false, 0},
                     {CONV_WEIGHT, DNNL_ARG_WEIGHTS, false, 1},
                     {CONV_OUTPUT, DNNL_ARG_DST, true, 0},
                     {CONV_BIAS, DNNL_ARG_BIAS, false, 2}},
    },
    {
        .op_name = "conv_transpose",
        .geometry = pen_conv_transpose_geometry,
        .pass = PEN_ONEDNN_TRANSPOSED,
        .operand_count = 4,
        .operands = {{CONV_OUTPUT, DNNL_ARG_SRC, false, 0},
                     {CONV_WEIGHT, DNNL_ARG_WEIGHTS, false, 1},
                     {CONV_INPUT, DNNL_ARG_DST, true, 0},
                     {CONV_BIAS, DNNL_ARG_BIAS, false, 2}},
    },
    {
        .op_name = "conv_backward_input",
        .geometry = pen_conv_backward_input_geometry,
        .pass = PEN_ONEDNN_BACKWARD_INPUT,
        .operand_count = 3,
        .operands = {{CONV_OUTPUT, DNNL_ARG_DIFF_DST, false, 0},
                     {CONV_WEIGHT, DNNL_ARG_WEIGHTS, false, 1},
                     {CONV_INPUT, DNNL_ARG_DIFF_SRC, true, 0}},
    },
    {
        .op_name = "conv_backward_weight",
        .geometry = pen_conv_backward_weight_geometry,
        .pass = PEN_ONEDNN_BACKWARD_WEIGHT,
        .operand_count = 3,
        .operands = {{CONV_INPUT, DNNL_ARG_SRC, false, 0},
                     {CONV_OUTPUT, DNNL_ARG_DIFF_DST, false, 1},
                     {CONV_WEIGHT, DNNL_ARG_DIFF_WEIGHTS, true, 0}},
    },
};

static const conv_kind *conv_kind_find(const char *op_name) {
    for (size_t i = 0; i < sizeof conv_kinds / sizeof *conv_kinds; i++) {
        if (strcmp(conv_kinds[i].op_name, op_name) == 0) return &conv_kinds[i];
    }
    return NULL;
}

static void conv_set_windows(conv_problem *problem) {
    const pen_conv_geometry *g = &problem->geometry;
    for (uint32_t i = 0; i < g->spatial_rank; i++) {
        const uint32_t d = PEN_SPATIAL_LIMIT - g->spatial_rank + i;
        const int64_t extent = (g->kernel_size[d] - 1) * g->dilation[d] + 1;
        const int64_t reach = (g->output_size[d] - 1) * g->stride[d] + extent;
        // as far as the last window reaches; oneDNN prefers a whole pad where it means the same
        int64_t pad_end = reach - g->input_size[d] - g->pad_begin[d];
        if (g->pad_end[d] >= pad_end && g->pad_end[d] < pad_end + g->stride[d]) {
            pad_end = g->pad_end[d];
        }
        problem->strides[i] = g->stride[d];
        problem->dilations[i] = g->dilation[d] - 1;
        problem->pads_begin[i] = g->pad_begin[d];
        problem->pads_end[i] = pad_end;
    }
}

// (M, C / groups, kernel…) as it lies, with the groups as an axis of their own where there are
// several, and the channel axes exchanged for a transposed convolution.
static void conv_set_weight(conv_problem *problem) {
    const pen_conv_geometry *g = &problem->geometry;
    const pen_shape weight = pen_conv_weight_shape(g);
    const int rank = (int)weight.rank + 1;
    const bool is_transposed = problem->kind->pass == PEN_ONEDNN_TRANSPOSED;
    dnnl_dims_t dims = {g->group_count, weight.dims[0] / g->group_count, weight.dims[1]};
    dnnl_dims_t strides;
    pen_onednn_tensor *lies = &problem->lies[CONV_WEIGHT];
    for (int i = 3; i < rank; i++) {
        dims[i] = weight.dims[i - 1];
    }
    strides[rank - 1] = 1;
    for (int i = rank - 1; i > 0; i--) {
        strides[i - 1] = strides[i] * dims[i];
    }
    if (is_transposed) {
        const dnnl_dim_t dim = dims[1], stride = strides[1];
        dims[1] = dims[2];
        dims[2] = dim;
        strides[1] = strides[2];
        strides[2] = stride;
    }
    const int first = g->group_count > 1 ? 0 : 1;
    *lies = (pen_onednn_tensor){.rank = rank - first, .tag = dnnl_format_tag_undef};
    for (int i = first; i < rank; i++) {
        lies->dims[i - first] = dims[i];
        lies->strides[i - first] = strides[i];
    }
    problem->wanted[CONV_WEIGHT] = *lies;
    problem->wanted[CONV_WEIGHT].tag = dnnl_format_tag_any;
}

static pen_value_id conv_value(const pen_node *node, const conv_operand *operand) {
    if (operand->is_output) return node->outputs[operand->index];
    return operand->index < node->input_count ? node->inputs[operand->index] : PEN_VALUE_NONE;
}

// The shape of an operand of the problem's size: of input or output.
static pen_status conv_set_slice(const pen_graph *graph, const pen_node *node,
                                 const conv_operand *operand, conv_problem *problem) {
    const pen_value *value = pen_graph_value(graph, conv_value(node, operand));
    pen_shape shape = value->type.shape;
    shape.dims[0] = problem->geometry.batch;
    if (operand->part == CONV_OUTPUT) shape.dims[1] = problem->geometry.output_channels;
    PEN_TRY(pen_onednn_layout_tensor(&shape, value->layout, &problem->lies[operand->part]));
    problem->wanted[operand->part] = problem->lies[operand->part];
    return PEN_OK;
}

// Makes a problem that of so many images and so many output channels alone.
static pen_status conv_problem_slice(const pen_graph *graph, const pen_node *node, int64_t batch,
                                     int64_t output_channels, conv_problem *problem) {
    problem->geometry.batch = batch;
    problem->geometry.output_channels = output_channels;
    conv_set_weight(problem);
    for (uint32_t i = 0; i < problem->operand_count; i++) {
        const conv_operand *operand = &problem->kind->operands[i];
        const bool is_sliced = operand->part == CONV_INPUT || operand->part == CONV_OUTPUT;
        if (is_sliced) PEN_TRY(conv_set_slice(graph, node, operand, problem));
        const bool is_bias = operand->part == CONV_BIAS;
        if (is_bias && problem->kind->pass == PEN_ONEDNN_FORWARD) {
            problem->lies[CONV_BIAS].dims[0] = output_channels;
        }
    }
    return PEN_OK;
}

// The problem of a node. With `any_layout`, oneDNN may choose how input and output lie.
static pen_status conv_problem_make(const pen_graph *graph, const pen_node *node, bool any_layout,
                                    conv_problem *problem) {
    *problem = (conv_problem){.kind = conv_kind_find(node->op->name),
                              .algorithm = dnnl_convolution_direct};
    PEN_ASSERT(problem->kind != NULL);
    PEN_TRY(problem->kind->geometry(graph, node, &problem->geometry));
    conv_set_windows(problem);
    conv_set_weight(problem);
    for (uint32_t i = 0; i < problem->kind->operand_count; i++) {
        const conv_operand *operand = &problem->kind->operands[i];
        const pen_value_id value = conv_value(node, operand);
        if (!pen_value_is(value)) break;
        problem->operand_count = i + 1;
        if (operand->part == CONV_WEIGHT) continue;
        problem->layouts[operand->part] = pen_graph_value(graph, value)->layout;
        PEN_TRY(pen_onednn_layout_of_value(graph, value, &problem->lies[operand->part]));
        problem->wanted[operand->part] = problem->lies[operand->part];
        if (!any_layout || operand->part == CONV_BIAS) continue;
        pen_onednn_layout_any(&pen_value_type(graph, value)->shape,
                              &problem->wanted[operand->part]);
    }
    return PEN_OK;
}

// The convolution in the words that both versions of oneDNN share.
static dnnl_status_t conv_describe(const conv_problem *problem,
                                   dnnl_primitive_desc_t *out_description) {
    const bool is_transposed = problem->kind->pass == PEN_ONEDNN_TRANSPOSED;
    pen_onednn_convolution convolution = {
        .pass = problem->kind->pass,
        .algorithm = problem->algorithm,
        .source = &problem->wanted[is_transposed ? CONV_OUTPUT : CONV_INPUT],
        .weight = &problem->wanted[CONV_WEIGHT],
        .bias = &problem->lies[CONV_BIAS],
        .result = &problem->wanted[is_transposed ? CONV_INPUT : CONV_OUTPUT],
        .strides = problem->strides,
        .dilations = problem->dilations,
        .pads_begin = problem->pads_begin,
        .pads_end = problem->pads_end,
    };
    dnnl_primitive_attr_t attributes;
    dnnl_status_t status = pen_onednn_operation_attributes(&attributes);
    convolution.attributes = attributes;
    if (status == dnnl_success) {
        status =
            pen_onednn_convolution_describe(&convolution, pen_onednn_engine(), out_description);
    }
    if (attributes != NULL) dnnl_primitive_attr_destroy(attributes);
    return status;
}

// Whether a value is float32, of a rank oneDNN convolves, and not empty.
static bool conv_suits(const pen_graph *graph, pen_value_id id) {
    const pen_value *value = pen_graph_value(graph, id);
    return value->type.element == PEN_FLOAT32 && value->type.shape.rank <= 5 &&
           pen_shape_element_count(&value->type.shape) > 0;
}

static bool conv_node_suits(const pen_graph *graph, const pen_node *node) {
    const conv_kind *kind = conv_kind_find(node->op->name);
    for (uint32_t i = 0; kind != NULL && i < kind->operand_count; i++) {
        const conv_operand *operand = &kind->operands[i];
        const pen_value_id value = conv_value(node, operand);
        if (!pen_value_is(value)) break;
        if (!conv_suits(graph, value)) return false;
        const bool is_weight = operand->part == CONV_WEIGHT || operand->part == CONV_BIAS;
        if (is_weight && pen_graph_value(graph, value)->layout != PEN_LAYOUT_PLAIN) return false;
    }
    return kind != NULL;
}

// Whether oneDNN can do it; with `by_threads`, whether in a way that it divides by the number of
// threads.
static bool conv_can(const pen_cpu_request *request, dnnl_alg_kind_t algorithm, bool by_threads) {
    if (!conv_node_suits(request->graph, request->node)) return false;
    conv_problem problem;
    const pen_status status = conv_problem_make(request->graph, request->node, false, &problem);
    if (status != PEN_OK) {
        pen_status_ignore(status, "another kernel reports it, or can do it");
        return false;
    }
    problem.algorithm = algorithm;
    dnnl_primitive_desc_t description;
    const char *name = "";
    if (conv_describe(&problem, &description) != dnnl_success) return false;
    if (dnnl_primitive_desc_query(description, dnnl_query_impl_info_str, 0, &name) !=
        dnnl_success) {
        name = "";
    }
    const bool is_divided = pen_onednn_sums_by_threads(name);
    dnnl_primitive_desc_destroy(description);
    return is_divided || !by_threads;
}

static bool conv_supports(const pen_cpu_request *request) {
    return conv_can(request, dnnl_convolution_direct, false);
}

static bool conv_supports_by_threads(const pen_cpu_request *request) {
    return conv_can(request, dnnl_convolution_direct, true);
}

static bool conv_supports_winograd(const pen_cpu_request *request) {
    return request->level == PEN_KERNEL_LEVEL_V4 &&
           conv_can(request, dnnl_convolution_winograd, false);
}

// Worth it where the transformed weights, 36 numbers for 9, serve enough tiles of 4 x 4 outputs.
// The limits are where it was measured to win, at 64 channels and more.
static bool conv_prefers_winograd(const pen_cpu_request *request) {
    conv_problem problem;
    const pen_status status = conv_problem_make(request->graph, request->node, false, &problem);
    PEN_ASSERT(status == PEN_OK); // it is supported
    const pen_conv_geometry *g = &problem.geometry;
    const int64_t tiles = g->batch * ((g->output_size[1] + 3) / 4) * ((g->output_size[2] + 3) / 4);
    const int64_t least = problem.kind->pass == PEN_ONEDNN_BACKWARD_WEIGHT ? 24 : 96;
    return tiles >= least && g->input_channels >= 64 && g->output_channels >= 64;
}

// One operation of a problem; the same operands for both algorithms.
static pen_status conv_operation(const pen_cpu_request *request, conv_problem *problem,
                                 bool accumulates, pen_onednn_operation **out_operation,
                                 uint64_t *out_workspace_bytes) {
    pen_onednn_operand operands[CONV_OPERAND_LIMIT];
    for (uint32_t i = 0; i < problem->operand_count; i++) {
        const conv_operand *operand = &problem->kind->operands[i];
        operands[i] = (pen_onednn_operand){operand->argument, operand->is_output, operand->index,
                                           problem->lies[operand->part]};
    }
    pen_onednn_operation_spec spec = {
        .operands = operands, .operand_count = problem->operand_count, .accumulates = accumulates};
    PEN_TRY(pen_onednn_status(conv_describe(problem, &spec.primitive), "making a convolution"));
    return pen_onednn_operation_make(request, &spec, out_operation, out_workspace_bytes);
}

static pen_status conv_prepare_with(const pen_cpu_request *request, dnnl_alg_kind_t algorithm,
                                    void **out_state, uint64_t *out_workspace_bytes) {
    conv_problem problem;
    PEN_TRY(conv_problem_make(request->graph, request->node, false, &problem));
    problem.algorithm = algorithm;
    pen_onednn_operation *operation;
    PEN_TRY(conv_operation(request, &problem, request->node->accumulates, &operation,
                           out_workspace_bytes));
    *out_state = operation;
    return PEN_OK;
}

static bool conv_is_channels_last(const conv_problem *problem) {
    const pen_layout layout = problem->layouts[CONV_OUTPUT];
    if (layout == PEN_CPU_LAYOUT_CHANNELS_LAST) return true;
    return layout == PEN_LAYOUT_PLAIN && problem->lies[CONV_OUTPUT].strides[1] == 1;
}

// Winograd's transforms cost more: of the weights for each part by images, of the whole input for
// each part by channels. Measured for 64 to 512 channels of 56 x 56 to 7 x 7.
static pen_onednn_split conv_split_winograd(const pen_conv_geometry *g,
                                            const pen_onednn_split *images,
                                            const pen_onednn_split *channels) {
    const pen_shape x = pen_conv_input_shape(g), y = pen_conv_output_shape(g),
                    w = pen_conv_weight_shape(g);
    const int64_t elements = pen_shape_element_count(&x) + pen_shape_element_count(&y);
    const int64_t weights = pen_shape_element_count(&w);
    if (2 * elements < weights || images->count == 1) return *channels;
    return pen_onednn_split_into(g->batch, elements < 4 * weights ? 2 : 4, 1, false);
}

// By images where each makes results of its own; one image alone may be divided by channels.
// Gradients of weights by images cost a result for each part, those by channels a copy of what
// comes from behind, and that each part reads all of the input.
static pen_onednn_split conv_split_of(const conv_problem *problem) {
    const pen_conv_geometry *g = &problem->geometry;
    const pen_onednn_split images =
        pen_onednn_split_into(g->batch, PEN_ONEDNN_PART_LIMIT, 1, false);
    const bool is_sum = problem->kind->pass == PEN_ONEDNN_BACKWARD_WEIGHT;
    const bool is_one =
        problem->kind->pass == PEN_ONEDNN_FORWARD && g->batch == 1 && pen_onednn_divides_images();
    if ((!is_sum && !is_one) || g->group_count > 1 || conv_is_channels_last(problem)) return images;
    const pen_onednn_split channels =
        pen_onednn_split_into(g->output_channels, PEN_ONEDNN_PART_LIMIT, CONV_PART_CHANNELS, true);
    if (is_one) return channels;
    if (problem->algorithm == dnnl_convolution_winograd) {
        return conv_split_winograd(g, &images, &channels);
    }
    if (images.count >= 2 * channels.count) return images;
    if (channels.count >= 2 * images.count) return channels;
    const pen_shape x = pen_conv_input_shape(g), y = pen_conv_output_shape(g),
                    w = pen_conv_weight_shape(g);
    const int64_t of_images = 4 * images.count * pen_shape_element_count(&w);
    const int64_t of_channels =
        2 * pen_shape_element_count(&y) + channels.count * pen_shape_element_count(&x) / 4;
    return of_images <= of_channels ? images : channels;
}

// With the lanes behind the last channel.
static int64_t conv_padded_channels(const conv_problem *problem, conv_part part) {
    const int64_t block = pen_cpu_layout_block(problem->layouts[part]);
    return (problem->lies[part].dims[1] + block - 1) / block * block;
}

// Bytes of one image of an operand, or of so many of its channels.
static uint64_t conv_image_bytes(const conv_problem *problem, conv_part part, int64_t channels) {
    const pen_onednn_tensor *lies = &problem->lies[part];
    uint64_t bytes = sizeof(float) * (uint64_t)channels;
    for (int d = 2; d < lies->rank; d++) {
        bytes *= (uint64_t)lies->dims[d];
    }
    return bytes;
}

// Where a part that begins at `first` finds its operands.
static void conv_part_place(const conv_problem *problem, const pen_onednn_split *split,
                            int64_t first, pen_onednn_part *part) {
    for (uint32_t i = 0; i < problem->operand_count; i++) {
        const conv_operand *operand = &problem->kind->operands[i];
        uint64_t at = 0;
        if (split->by_channels) {
            const pen_shape w = pen_conv_weight_shape(&problem->geometry);
            const uint64_t row = (uint64_t)(pen_shape_element_count(&w) / w.dims[0]);
            if (operand->part == CONV_OUTPUT) at = conv_image_bytes(problem, CONV_OUTPUT, first);
            if (operand->part == CONV_WEIGHT) at = (uint64_t)first * row * sizeof(float);
            if (operand->part == CONV_BIAS) at = (uint64_t)first * sizeof(float);
        } else if (operand->part == CONV_INPUT || operand->part == CONV_OUTPUT) {
            const int64_t channels = conv_padded_channels(problem, operand->part);
            at = (uint64_t)first * conv_image_bytes(problem, operand->part, channels);
        }
        if (operand->is_output) {
            part->output = at;
        } else {
            part->inputs[operand->index] = at;
        }
    }
}

// The operation of one part, and where its operands lie in the whole ones.
static pen_status conv_part_prepare(const pen_cpu_request *request, const conv_problem *whole,
                                    const pen_onednn_split *split, uint32_t index,
                                    pen_onednn_parts *parts) {
    pen_onednn_part *part = &parts->parts[index];
    const int64_t first = index * split->step;
    const int64_t rest = split->extent - first;
    const int64_t extent = rest < split->step ? rest : split->step;
    conv_problem problem = *whole;
    uint64_t bytes;
    PEN_TRY(conv_problem_slice(
        request->graph, request->node, split->by_channels ? whole->geometry.batch : extent,
        split->by_channels ? extent : whole->geometry.output_channels, &problem));
    conv_part_place(whole, split, first, part);
    if (parts->sliced_input >= 0) {
        const int64_t channels = conv_padded_channels(&problem, CONV_OUTPUT);
        part->slice_bytes = conv_image_bytes(&problem, CONV_OUTPUT, channels);
    }
    const bool accumulates = request->node->accumulates && parts->sum_count == 0;
    PEN_TRY(conv_operation(request, &problem, accumulates, &part->operation, &bytes));
    parts->count = index + 1;
    if (bytes > parts->own_offset) parts->own_offset = bytes;
    return PEN_OK;
}

// Workspace of a part: its operation's, then its own sums or slices.
static pen_status conv_prepare_parts_with(const pen_cpu_request *request, dnnl_alg_kind_t algorithm,
                                          void **out_state, uint64_t *out_workspace_bytes) {
    conv_problem problem;
    pen_onednn_parts *parts;
    PEN_TRY(conv_problem_make(request->graph, request->node, false, &problem));
    PEN_TRY(PEN_NEW(request->arena, 1, &parts));
    problem.algorithm = algorithm;
    const pen_onednn_split split = conv_split_of(&problem);
    const pen_shape weight = pen_conv_weight_shape(&problem.geometry);
    const int64_t channels = conv_padded_channels(&problem, CONV_OUTPUT);
    const bool is_sum = problem.kind->pass == PEN_ONEDNN_BACKWARD_WEIGHT;
    uint64_t own = 0;
    parts->input_count = request->node->input_count;
    parts->sliced_input =
        split.by_channels && split.count > 1 && problem.geometry.batch > 1 ? 1 : -1;
    parts->image_count = problem.geometry.batch;
    parts->image_bytes = conv_image_bytes(&problem, CONV_OUTPUT, channels);
    if (is_sum && !split.by_channels && split.count > 1) {
        parts->sum_count = pen_shape_element_count(&weight);
        own = (uint64_t)parts->sum_count * sizeof(float);
    } else if (parts->sliced_input >= 0) {
        own = (uint64_t)parts->image_count * conv_image_bytes(&problem, CONV_OUTPUT, split.step);
    }
    const int team = pen_one_thread_begin();
    pen_status status = PEN_OK;
    for (uint32_t p = 0; p < split.count && status == PEN_OK; p++) {
        status = conv_part_prepare(request, &problem, &split, p, parts);
    }
    pen_one_thread_end(team);
    if (status != PEN_OK) {
        pen_onednn_parts_release(parts);
        return status;
    }
    parts->own_offset = pen_align_up(parts->own_offset, 64);
    parts->part_workspace = pen_align_up(parts->own_offset + own, 64);
    *out_workspace_bytes = parts->part_workspace * parts->count;
    *out_state = parts;
    return PEN_OK;
}

static pen_status conv_prepare_parts(const pen_cpu_request *request, void **out_state,
                                     uint64_t *out_workspace_bytes) {
    return conv_prepare_parts_with(request, dnnl_convolution_direct, out_state,
                                   out_workspace_bytes);
}

static pen_status conv_prepare_parts_winograd(const pen_cpu_request *request, void **out_state,
                                              uint64_t *out_workspace_bytes) {
    return conv_prepare_parts_with(request, dnnl_convolution_winograd, out_state,
                                   out_workspace_bytes);
}

static pen_status conv_prepare(const pen_cpu_request *request, void **out_state,
                               uint64_t *out_workspace_bytes) {
    return conv_prepare_with(request, dnnl_convolution_direct, out_state, out_workspace_bytes);
}

static pen_status conv_prepare_winograd(const pen_cpu_request *request, void **out_state,
                                        uint64_t *out_workspace_bytes) {
    return conv_prepare_with(request, dnnl_convolution_winograd, out_state, out_workspace_bytes);
}

// Asks oneDNN which layouts it likes for the shape, on one thread; weights and biases stay plain.
pen_status pen_onednn_convolution_layouts(const pen_graph *graph, pen_node_id id,
                                          pen_layout *inputs, pen_layout *outputs) {
    const pen_node *node = pen_graph_node(graph, id);
    for (uint32_t i = 0; i < node->input_count; i++) {
        inputs[i] = PEN_LAYOUT_PLAIN;
    }
    if (!conv_node_suits(graph, node)) return PEN_OK;
    conv_problem problem;
    PEN_TRY(conv_problem_make(graph, node, true, &problem));
    dnnl_primitive_desc_t description;
    const int team = pen_one_thread_begin(); // the answer is no matter of how many ask
    const dnnl_status_t described = conv_describe(&problem, &description);
    pen_one_thread_end(team);
    if (described != dnnl_success) return PEN_OK;
    for (uint32_t i = 0; i < problem.operand_count; i++) {
        const conv_operand *operand = &problem.kind->operands[i];
        if (operand->part == CONV_WEIGHT || operand->part == CONV_BIAS) continue;
        const pen_shape *shape = &pen_value_type(graph, conv_value(node, operand))->shape;
        *(operand->is_output ? &outputs[operand->index] : &inputs[operand->index]) =
            pen_onednn_layout_wanted(description, operand->argument, shape);
    }
    dnnl_primitive_desc_destroy(description);
    return PEN_OK;
}

#define CONV_ENTRY(op, title, supports, prepare)                                                   \
    PEN_CPU_ENTRY(op, title, supports, prepare, pen_onednn_operation_run),                         \
        .can_accumulate = true, .release = pen_onednn_operation_release
#define CONV_KERNEL(op)                                                                            \
    { CONV_ENTRY(op, "onednn", conv_supports, conv_prepare) }
#define CONV_KERNEL_WINOGRAD(op)                                                                   \
    {                                                                                              \
        CONV_ENTRY(op, "winograd", conv_supports_winograd, conv_prepare_winograd),                 \
            .prefers = conv_prefers_winograd                                                       \
    }

#define CONV_PARTS(op, title, supports, prepare)                                                   \
    PEN_CPU_ENTRY(op, title, supports, prepare, pen_onednn_parts_run),                             \
        .can_accumulate = true, .release = pen_onednn_parts_release
#define CONV_KERNEL_IMAGES(op)                                                                     \
    { CONV_PARTS(op, "images", conv_supports_by_threads, conv_prepare_parts) }

static const pen_cpu_kernel onednn_convolution_kernels[] = {
    CONV_KERNEL_IMAGES("conv"),
    CONV_KERNEL_IMAGES("conv_transpose"),
    CONV_KERNEL_IMAGES("conv_backward_input"),
    CONV_KERNEL("conv"),
    CONV_KERNEL("conv_transpose"),
    CONV_KERNEL("conv_backward_input"),
    {CONV_PARTS("conv_backward_weight", "onednn", conv_supports, conv_prepare_parts)},
    CONV_KERNEL_WINOGRAD("conv"),
    CONV_KERNEL_WINOGRAD("conv_backward_input"),
    {CONV_PARTS("conv_backward_weight", "winograd", conv_supports_winograd,
                conv_prepare_parts_winograd),
     .prefers = conv_prefers_winograd},
};

PEN_CPU_FAMILY_OF(onednn_convolution);
