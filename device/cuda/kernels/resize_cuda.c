// Resized planes and volumes, and their gradients: kernels/resize.cu. What is cropped, and more
// than three axes from the first to the last that is resized, is left to the host.
#include <string.h>

#include "base/status.h"
#include "device/cuda/cuda_kernel.h"
#include "graph/op.h"
#include "graph/ops/window/resize_geometry.h"

typedef enum resize_rule { RESIZE_FORWARD, RESIZE_BACKWARD } resize_rule;

static const pen_shape *resize_small(const pen_graph *graph, const pen_node *node) {
    const bool is_backward = pen_cuda_rule(node) == RESIZE_BACKWARD;
    return &pen_value_type(graph, is_backward ? node->outputs[0] : node->inputs[0])->shape;
}

static bool resize_word(const char *text, const char *const *words, uint32_t count,
                        uint32_t *out_number) {
    for (*out_number = 0; *out_number < count; (*out_number)++)
        if (strcmp(words[*out_number], text) == 0) return true;
    return false;
}

// The numbers of words are those of the enumerations in cuda_window_args.h.
static bool resize_read_words(const pen_resize *resize, struct cuda_resize_args *args) {
    static const char *const modes[] = {"nearest", "linear", "cubic"};
    static const char *const coordinates[] = {"half_pixel", "asymmetric", "align_corners",
                                              "pytorch_half_pixel", "tf_half_pixel_for_nn"};
    static const char *const nearests[] = {"round_prefer_floor", "round_prefer_ceil", "floor",
                                           "ceil"};
    return resize_word(resize->mode, modes, 3, &args->mode) &&
           resize_word(resize->coordinate, coordinates, 5, &args->coordinate) &&
           resize_word(resize->nearest, nearests, 4, &args->nearest);
}

static bool resize_keeps(const pen_resize_axis *axis) {
    return axis->from == axis->to && axis->scale == 1;
}

// The last axes are those of the arguments; a tensor without one that is resized has one that is
// not.
static bool resize_read_axes(const pen_resize *resize, struct cuda_resize_args *args) {
    uint32_t first = 0, end = resize->rank;
    while (first < resize->rank && resize_keeps(&resize->axes[first]))
        first++;
    while (end > first && resize_keeps(&resize->axes[end - 1]))
        end--;
    if (end - first > 3) return false;
    args->outer = args->inner = 1;
    for (uint32_t d = 0; d < resize->rank; d++) {
        if (d < first) args->outer *= (uint64_t)resize->axes[d].from;
        if (d >= end) args->inner *= (uint64_t)resize->axes[d].from;
    }
    for (uint32_t k = 0; k < 3; k++) {
        args->from[k] = args->to[k] = 1;
        args->scale[k] = args->width[k] = 1;
        if (k + end < 3 + first) continue;
        const pen_resize_axis *axis = &resize->axes[k + end - 3];
        args->from[k] = (uint64_t)axis->from;
        args->to[k] = (uint64_t)axis->to;
        args->scale[k] = axis->scale;
        args->width[k] = axis->width;
    }
    return true;
}

static bool resize_read(const pen_graph *graph, const pen_node *node,
                        struct cuda_resize_args *args) {
    pen_resize resize;
    const pen_status status = pen_resize_of(graph, node, resize_small(graph, node), &resize);
    if (status != PEN_OK) {
        pen_status_ignore(status, "the host's kernel says what is wrong");
        return false;
    }
    args->cubic_a = resize.cubic_a;
    args->excludes_outside = resize.excludes_outside;
    return resize_read_words(&resize, args) && resize_read_axes(&resize, args);
}

static bool resize_supports(const pen_graph *graph, const pen_node *node) {
    struct cuda_resize_args args = {0};
    return pen_cuda_is_float(graph, node->inputs[0]) && resize_read(graph, node, &args);
}

static uint32_t resize_steps(const pen_cuda_call *call, pen_cuda_step *steps) {
    const pen_node *node = call->node;
    const uint64_t count = pen_cuda_count(call->graph, node->outputs[0]);
    struct cuda_resize_args args = {.x = call->inputs[0], .y = call->outputs[0]};
    if (count == 0 || !resize_read(call->graph, node, &args)) return 0;
    *steps = (pen_cuda_step){.kernel = pen_cuda_rule(node) == RESIZE_BACKWARD
                                           ? PEN_CUDA_KERNEL_resize_backward
                                           : PEN_CUDA_KERNEL_resize,
                             .grid = {pen_cuda_blocks_for(count), 1, 1},
                             .args.resize = args};
    return 1;
}

static const pen_cuda_entry resize_entries[] = {
    PEN_CUDA_ENTRY("resize", resize_supports, resize_steps, RESIZE_FORWARD),
    PEN_CUDA_ENTRY("resize_backward", resize_supports, resize_steps, RESIZE_BACKWARD),
};

PEN_CUDA_FAMILY_OF(resize);
