#include "graph/ops/window/resize_geometry.h"

#include <math.h>
#include <string.h>

#include "graph/graph.h"
#include "graph/op.h"

static pen_status resize_choice(const pen_node *node, const char *attribute, uint32_t count,
                                const char *const *names, const char **out_name) {
    const char *given = pen_node_text(node, attribute);
    for (uint32_t i = 0; i < count; i++) {
        if (strcmp(given, names[i]) != 0) continue;
        *out_name = names[i];
        return PEN_OK;
    }
    return pen_error(PEN_INVALID_INPUT, "%s is '%.64s'; there are %s, %s, %s and others", attribute,
                     given, names[0], names[1], names[2]);
}

static pen_status resize_read_choices(const pen_node *node, pen_resize *resize) {
    static const char *const modes[] = {"nearest", "linear", "cubic"};
    static const char *const coordinates[] = {"half_pixel",         "asymmetric",
                                              "align_corners",      "pytorch_half_pixel",
                                              "tf_crop_and_resize", "tf_half_pixel_for_nn"};
    static const char *const nearests[] = {"round_prefer_floor", "round_prefer_ceil", "floor",
                                           "ceil"};
    PEN_TRY(resize_choice(node, "mode", 3, modes, &resize->mode));
    PEN_TRY(
        resize_choice(node, "coordinate_transformation_mode", 6, coordinates, &resize->coordinate));
    PEN_TRY(resize_choice(node, "nearest_mode", 4, nearests, &resize->nearest));
    resize->cubic_a = pen_node_float(node, "cubic_coeff_a");
    resize->excludes_outside = pen_node_int(node, "exclude_outside") != 0;
    resize->extrapolation = pen_node_float(node, "extrapolation_value");
    return PEN_OK;
}

static bool resize_crops(const pen_resize *resize) {
    return strcmp(resize->coordinate, "tf_crop_and_resize") == 0;
}

// How many elements constant operand `input` has; 0 where it is left out.
static int64_t resize_count(const pen_graph *graph, const pen_node *node, uint32_t input) {
    if (input >= node->input_count || !pen_value_is(node->inputs[input])) return 0;
    return pen_shape_element_count(&pen_value_type(graph, node->inputs[input])->shape);
}

static pen_status resize_read_numbers(const pen_graph *graph, const pen_node *node, uint32_t input,
                                      int64_t expected, const double **out_numbers) {
    static const char *const names[] = {"x", "roi", "scales", "sizes"};
    const int64_t count = resize_count(graph, node, input);
    if (count != expected) {
        return pen_error(PEN_INVALID_INPUT, "%s has %lld numbers, it must have %lld", names[input],
                         (long long)count, (long long)expected);
    }
    return pen_value_read_numbers(graph, node->inputs[input], out_numbers);
}

// Scales are quotients of sizes, rounded to float32: what is whole but for that is whole.
static double resize_whole(double width) {
    const double whole = round(width);
    return fabs(width - whole) <= whole * 0x1p-22 ? whole : width;
}

static pen_status resize_set_scales(const double *scales, pen_resize *resize) {
    for (uint32_t d = 0; d < resize->rank; d++) {
        pen_resize_axis *axis = &resize->axes[d];
        if (!(scales[d] > 0 && scales[d] < 0x1p31)) {
            return pen_error(PEN_INVALID_INPUT, "scale %u is %g, it must be above 0", d, scales[d]);
        }
        const double part = resize_crops(resize) ? axis->roi_end - axis->roi_first : 1;
        axis->width = resize_whole((double)axis->from * scales[d]);
        axis->scale = axis->from > 0 ? axis->width / (double)axis->from : scales[d];
        const double to = floor(resize_whole((double)axis->from * part * scales[d]));
        if (!(to >= 0 && to < 0x1p46)) {
            return pen_error(PEN_INVALID_INPUT, "dimension %u becomes %g elements long", d, to);
        }
        axis->to = (int64_t)to;
    }
    return PEN_OK;
}

static pen_status resize_set_sizes(const double *sizes, pen_resize *resize) {
    for (uint32_t d = 0; d < resize->rank; d++) {
        pen_resize_axis *axis = &resize->axes[d];
        if (!(sizes[d] >= 1 && sizes[d] < 0x1p46) || axis->from == 0) {
            return pen_error(PEN_INVALID_INPUT, "size %u is %g, of %lld elements", d, sizes[d],
                             (long long)axis->from);
        }
        axis->to = (int64_t)sizes[d];
        axis->width = sizes[d];
        axis->scale = sizes[d] / (double)axis->from;
    }
    return PEN_OK;
}

// Scales or sizes are given: the other follows, in the ways that ONNX has for it.
pen_status pen_resize_of(const pen_graph *graph, const pen_node *node, const pen_shape *shape,
                         pen_resize *out_resize) {
    pen_resize resize = {.rank = shape->rank};
    const double *numbers;
    PEN_TRY(resize_read_choices(node, &resize));
    for (uint32_t d = 0; d < shape->rank; d++) {
        resize.axes[d] = (pen_resize_axis){.from = shape->dims[d], .roi_end = 1};
    }
    if (resize_crops(&resize)) {
        PEN_TRY(resize_read_numbers(graph, node, 1, 2 * (int64_t)shape->rank, &numbers));
        for (uint32_t d = 0; d < shape->rank; d++) {
            resize.axes[d].roi_first = numbers[d];
            resize.axes[d].roi_end = numbers[shape->rank + d];
        }
    }
    if (resize_count(graph, node, 2) > 0) {
        PEN_TRY(resize_read_numbers(graph, node, 2, shape->rank, &numbers));
        PEN_TRY(resize_set_scales(numbers, &resize));
    } else {
        PEN_TRY(resize_read_numbers(graph, node, 3, shape->rank, &numbers));
        PEN_TRY(resize_set_sizes(numbers, &resize));
    }
    *out_resize = resize;
    return PEN_OK;
}

pen_shape pen_resize_shape(const pen_resize *resize) {
    pen_shape shape = {.rank = resize->rank};
    for (uint32_t d = 0; d < resize->rank; d++) {
        shape.dims[d] = resize->axes[d].to;
    }
    return shape;
}

// The place in the operand, in elements, of element `position` of the result.
static double resize_place(const pen_resize *resize, const pen_resize_axis *axis,
                           int64_t position) {
    const double x = (double)position, last = (double)(axis->from - 1);
    if (strcmp(resize->coordinate, "asymmetric") == 0) return x / axis->scale;
    if (strcmp(resize->coordinate, "align_corners") == 0) {
        return axis->width == 1 ? 0 : x * last / (axis->width - 1);
    }
    if (resize_crops(resize)) {
        const double part = axis->roi_end - axis->roi_first;
        const double first = axis->roi_first * last;
        if (axis->width == 1) return first + part * last / 2;
        return first + x * part * last / (axis->width - 1);
    }
    if (strcmp(resize->coordinate, "tf_half_pixel_for_nn") == 0) return (x + 0.5) / axis->scale;
    if (strcmp(resize->coordinate, "pytorch_half_pixel") == 0 && axis->to == 1) return 0;
    return (x + 0.5) / axis->scale - 0.5;
}

static double resize_round(const pen_resize *resize, double place) {
    if (strcmp(resize->nearest, "floor") == 0) return floor(place);
    if (strcmp(resize->nearest, "ceil") == 0) return ceil(place);
    if (strcmp(resize->nearest, "round_prefer_ceil") == 0) return floor(place + 0.5);
    return ceil(place - 0.5);
}

// Weights of the elements at `first`, `first` + 1, …
static void resize_set_taps(const pen_resize *resize, const pen_resize_axis *axis, double first,
                            pen_resize_taps *taps) {
    const double last = (double)(axis->from - 1);
    double sum = 0;
    for (uint32_t i = 0; i < taps->count; i++) {
        const double index = first + i;
        const bool is_outside = index < 0 || index > last;
        taps->index[i] = (int64_t)fmax(0, fmin(last, index));
        if (is_outside && resize->excludes_outside) taps->weight[i] = 0;
        sum += taps->weight[i];
    }
    for (uint32_t i = 0; i < taps->count && resize->excludes_outside && sum != 0; i++) {
        taps->weight[i] /= sum;
    }
}

// For one position along one axis: which input elements count and how much. Axes are independent,
// so that kernels make a table for each.
void pen_resize_find_taps(const pen_resize *resize, uint32_t axis_index, int64_t position,
                          pen_resize_taps *out_taps) {
    const pen_resize_axis *axis = &resize->axes[axis_index];
    pen_resize_taps taps = {.count = 1, .index = {position}, .weight = {1}};
    if (axis->from == axis->to && axis->scale == 1 && !resize_crops(resize)) {
        *out_taps = taps;
        return;
    }
    const double place = resize_place(resize, axis, position);
    taps.is_outside = resize_crops(resize) && (place < 0 || place > (double)(axis->from - 1));
    if (strcmp(resize->mode, "nearest") == 0) {
        const double nearest = resize_round(resize, place); // what lies outside is moved in
        taps.index[0] = (int64_t)fmax(0, fmin((double)(axis->from - 1), nearest));
    } else if (strcmp(resize->mode, "linear") == 0) {
        const double low = floor(place), t = place - low;
        taps.count = 2;
        taps.weight[0] = 1 - t;
        taps.weight[1] = t;
        resize_set_taps(resize, axis, low, &taps);
    } else {
        const double low = floor(place), t = place - low, a = resize->cubic_a;
        taps.count = 4;
        // Keys' cubic convolution: distances 1 + t, t, 1 - t, 2 - t
        taps.weight[0] = ((a * (t + 1) - 5 * a) * (t + 1) + 8 * a) * (t + 1) - 4 * a;
        taps.weight[1] = ((a + 2) * t - (a + 3)) * t * t + 1;
        taps.weight[2] = ((a + 2) * (1 - t) - (a + 3)) * (1 - t) * (1 - t) + 1;
        taps.weight[3] = ((a * (2 - t) - 5 * a) * (2 - t) + 8 * a) * (2 - t) - 4 * a;
        resize_set_taps(resize, axis, low - 1, &taps);
    }
    *out_taps = taps;
}
