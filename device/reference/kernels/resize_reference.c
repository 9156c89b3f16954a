// Planes sampled between their elements.

#include <math.h>

#include "device/reference/reference_kernel.h"
#include "device/reference/reference_position.h"
#include "graph/graph.h"
#include "graph/op.h"
#include "graph/ops/window/resize_geometry.h"

// ---- resize

typedef struct resize_work {
    pen_resize resize;
    pen_resize_taps *taps[PEN_RANK_LIMIT]; // [to] of each axis
    pen_shape small;                       // of the operand
} resize_work;

static pen_status resize_init(const pen_reference_call *call, const pen_shape *shape,
                              resize_work *work) {
    PEN_TRY(pen_resize_of(call->graph, call->node, shape, &work->resize));
    work->small = *shape;
    for (uint32_t d = 0; d < shape->rank; d++) {
        const int64_t to = work->resize.axes[d].to;
        PEN_TRY(PEN_NEW(call->scratch, (size_t)to, &work->taps[d]));
        for (int64_t i = 0; i < to; i++) {
            pen_resize_find_taps(&work->resize, d, i, &work->taps[d][i]);
        }
    }
    return PEN_OK;
}

// The taps of element `at` of the result: how many, and whether it lies outside.
static uint32_t resize_tap_count(const resize_work *work, const int64_t *at, bool *out_outside) {
    uint32_t count = 1;
    *out_outside = false;
    for (uint32_t d = 0; d < work->resize.rank; d++) {
        const pen_resize_taps *taps = &work->taps[d][at[d]];
        count *= taps->count;
        *out_outside = *out_outside || taps->is_outside;
    }
    return count;
}

// Tap `tap` of element `at`: an element of the operand and its weight.
static int64_t resize_tap(const resize_work *work, const int64_t *at, uint32_t tap,
                          double *out_weight) {
    int64_t index = 0;
    double weight = 1;
    for (uint32_t d = 0; d < work->resize.rank; d++) {
        const pen_resize_taps *taps = &work->taps[d][at[d]];
        index = index * work->small.dims[d] + taps->index[tap % taps->count];
        weight *= taps->weight[tap % taps->count];
        tap /= taps->count;
    }
    *out_weight = weight;
    return index;
}

// One tap copies the element, so that integers of 64 bits stay exact.
static pen_status resize_run(const pen_reference_call *call) {
    const pen_tensor *x = &call->inputs[0], *y = &call->outputs[0];
    resize_work work = {0};
    PEN_TRY(resize_init(call, &x->type.shape, &work));
    for (int64_t k = 0; k < pen_tensor_count(y); k++) {
        int64_t at[PEN_RANK_LIMIT] = {0};
        bool is_outside;
        double sum = 0, weight;
        reference_position_of(&y->type.shape, k, at);
        const uint32_t count = resize_tap_count(&work, at, &is_outside);
        if (is_outside) {
            pen_tensor_set(y, k, work.resize.extrapolation);
            continue;
        }
        if (count == 1) { // exact, whatever the element type
            reference_copy_element(y, k, x, resize_tap(&work, at, 0, &weight));
            continue;
        }
        for (uint32_t t = 0; t < count; t++) {
            const int64_t index = resize_tap(&work, at, t, &weight);
            sum += weight * pen_tensor_get(x, index);
        }
        pen_tensor_set(y, k, sum);
    }
    return PEN_OK;
}

// The forward pass the other way round: each gradient is spread over the taps that it came from.
static pen_status resize_backward_run(const pen_reference_call *call) {
    const pen_tensor *dy = &call->inputs[0], *dx = &call->outputs[0];
    resize_work work = {0};
    double *sums;
    PEN_TRY(resize_init(call, &dx->type.shape, &work));
    PEN_TRY(PEN_NEW(call->scratch, (size_t)pen_tensor_count(dx), &sums));
    for (int64_t k = 0; k < pen_tensor_count(dy); k++) {
        int64_t at[PEN_RANK_LIMIT] = {0};
        bool is_outside;
        reference_position_of(&dy->type.shape, k, at);
        const uint32_t count = resize_tap_count(&work, at, &is_outside);
        for (uint32_t t = 0; t < count && !is_outside; t++) {
            double weight;
            const int64_t index = resize_tap(&work, at, t, &weight);
            sums[index] += weight * pen_tensor_get(dy, k);
        }
    }
    reference_store_sums(dx, sums);
    return PEN_OK;
}

// ---- grid_sample

typedef struct grid_axis {
    int64_t size;
    const char *padding;
    bool aligned; // -1 and 1 are the centers of the outermost elements, not their outer edges
} grid_axis;

// Mirrors a place at the ends of the axis until it lies between them.
static double grid_reflect(const grid_axis *axis, double place) {
    const double low = axis->aligned ? 0 : -0.5;
    const double span = (double)axis->size - (axis->aligned ? 1 : 0);
    if (span == 0) return 0;
    const double distance = fabs(place - low);
    const double rest = fmod(distance, span);
    const bool turned = fmod(floor(distance / span), 2) != 0;
    return low + (turned ? span - rest : rest);
}

static double grid_clip(const grid_axis *axis, double place) {
    if (!(place > 0)) return 0; // also what is not a number
    return fmin(place, (double)(axis->size - 1));
}

static double grid_pad(const grid_axis *axis, double place) {
    if (strcmp(axis->padding, "border") == 0) return grid_clip(axis, place);
    if (strcmp(axis->padding, "reflection") == 0) return grid_clip(axis, grid_reflect(axis, place));
    return place;
}

// One tap along an axis; outside of it (padding with zeros) the weight is 0.
static void grid_set_tap(const grid_axis *axis, uint32_t tap, double place, double weight,
                         pen_resize_taps *taps) {
    const bool is_inside = place >= 0 && place <= (double)(axis->size - 1);
    taps->index[tap] = is_inside ? (int64_t)place : 0;
    taps->weight[tap] = is_inside ? weight : 0;
}

// Cubic pads each tap, the others the place itself, as ONNX and PyTorch have it.
static pen_resize_taps grid_find_taps(const grid_axis *axis, const char *mode, double coordinate) {
    const double size = (double)axis->size;
    const double place =
        axis->aligned ? (coordinate + 1) / 2 * (size - 1) : ((coordinate + 1) * size - 1) / 2;
    pen_resize_taps taps = {.count = 1};
    if (strcmp(mode, "nearest") == 0) {
        grid_set_tap(axis, 0, nearbyint(grid_pad(axis, place)), 1, &taps);
        return taps;
    }
    if (strcmp(mode, "bilinear") == 0) {
        const double padded = grid_pad(axis, place), low = floor(padded), t = padded - low;
        taps.count = 2;
        grid_set_tap(axis, 0, low, 1 - t, &taps);
        grid_set_tap(axis, 1, low + 1, t, &taps);
        return taps;
    }
    const double low = floor(place), t = place - low, a = -0.75;
    const double far = t + 1, near = 1 - t, farther = 2 - t;
    const double weights[4] = {((a * far - 5 * a) * far + 8 * a) * far - 4 * a,
                               ((a + 2) * t - (a + 3)) * t * t + 1,
                               ((a + 2) * near - (a + 3)) * near * near + 1,
                               ((a * farther - 5 * a) * farther + 8 * a) * farther - 4 * a};
    taps.count = 4;
    for (uint32_t i = 0; i < 4; i++) {
        grid_set_tap(axis, i, grid_pad(axis, low - 1 + i), weights[i], &taps);
    }
    return taps;
}

// What one place of the grid reads of a plane.
typedef struct grid_point {
    pen_resize_taps rows, columns;
} grid_point;

static grid_point grid_read(const pen_reference_call *call, const pen_shape *x, int64_t place) {
    const pen_tensor *grid = &call->inputs[1];
    const char *mode = pen_node_text(call->node, "mode");
    const grid_axis rows = {x->dims[2], pen_node_text(call->node, "padding_mode"),
                            pen_node_int(call->node, "align_corners") != 0};
    grid_axis columns = rows;
    columns.size = x->dims[3];
    return (grid_point){grid_find_taps(&rows, mode, pen_tensor_get(grid, 2 * place + 1)),
                        grid_find_taps(&columns, mode, pen_tensor_get(grid, 2 * place))};
}

// Over all channels of a place: y gets the sum of x's taps, or, with `sums`, those get dy.
static void grid_apply(const pen_reference_call *call, const pen_shape *x, int64_t place,
                       double *sums) {
    const pen_tensor *in = &call->inputs[0], *out = &call->outputs[0];
    const pen_shape *grid = &call->inputs[1].type.shape;
    const int64_t plane = grid->dims[1] * grid->dims[2], n = place / plane, channels = x->dims[1];
    const grid_point point = grid_read(call, x, place);
    for (int64_t c = 0; c < channels; c++) {
        const int64_t at = (n * channels + c) * plane + place % plane;
        const int64_t base = (n * channels + c) * x->dims[2] * x->dims[3];
        double sum = 0;
        for (uint32_t t = 0; t < point.rows.count * point.columns.count; t++) {
            const uint32_t r = t / point.columns.count, w = t % point.columns.count;
            const double weight = point.rows.weight[r] * point.columns.weight[w];
            const int64_t from = base + point.rows.index[r] * x->dims[3] + point.columns.index[w];
            if (weight == 0) continue;
            if (sums != NULL) {
                sums[from] += weight * pen_tensor_get(in, at);
            } else {
                sum += weight * pen_tensor_get(in, from);
            }
        }
        if (sums == NULL) pen_tensor_set(out, at, sum);
    }
}

static pen_status grid_sample_run(const pen_reference_call *call) {
    const int64_t places = pen_tensor_count(&call->inputs[1]) / 2;
    for (int64_t p = 0; p < places; p++) {
        grid_apply(call, &call->inputs[0].type.shape, p, NULL);
    }
    return PEN_OK;
}

static pen_status grid_sample_backward_run(const pen_reference_call *call) {
    const pen_tensor *dx = &call->outputs[0];
    const int64_t places = pen_tensor_count(&call->inputs[1]) / 2;
    double *sums;
    PEN_TRY(PEN_NEW(call->scratch, (size_t)pen_tensor_count(dx), &sums));
    for (int64_t p = 0; p < places; p++) {
        grid_apply(call, &dx->type.shape, p, sums);
    }
    reference_store_sums(dx, sums);
    return PEN_OK;
}

// ---- roi_align

typedef struct roi_region {
    double top, left, bin_height, bin_width;
    int64_t rows, columns; // samples of a bin
    int64_t batch;
} roi_region;

// Bins are limited in size, since the number of samples follows from them and regions are data.
static pen_status roi_read(const pen_reference_call *call, int64_t region, roi_region *out) {
    const pen_node *node = call->node;
    const pen_tensor *regions = &call->inputs[1];
    const double scale = pen_node_float(node, "spatial_scale");
    const int64_t ratio = pen_node_int(node, "sampling_ratio");
    const bool half =
        strcmp(pen_node_text(node, "coordinate_transformation_mode"), "half_pixel") == 0;
    const double offset = half ? 0.5 : 0;
    double edges[4]; // left, top, right, bottom
    for (int64_t i = 0; i < 4; i++) {
        edges[i] = pen_tensor_get(regions, 4 * region + i) * scale - offset;
    }
    double width = edges[2] - edges[0], height = edges[3] - edges[1];
    if (!half) width = fmax(width, 1);
    if (!half) height = fmax(height, 1);
    out->batch = pen_tensor_get_int(&call->inputs[2], region);
    out->top = edges[1];
    out->left = edges[0];
    out->bin_height = height / (double)pen_node_int(node, "output_height");
    out->bin_width = width / (double)pen_node_int(node, "output_width");
    const bool fits = fabs(out->bin_height) < 4096 && fabs(out->bin_width) < 4096;
    if (out->batch < 0 || out->batch >= call->inputs[0].type.shape.dims[0] || !fits) {
        return pen_error(PEN_INVALID_INPUT,
                         "roi_align '%s': region %lld is of batch %lld and has bins of %g x %g",
                         node->name, (long long)region, (long long)out->batch, out->bin_height,
                         out->bin_width);
    }
    out->rows = ratio > 0 ? ratio : (int64_t)ceil(out->bin_height);
    out->columns = ratio > 0 ? ratio : (int64_t)ceil(out->bin_width);
    return PEN_OK;
}

// Bilinear taps along one axis; none far outside.
static pen_resize_taps roi_taps(double place, int64_t size) {
    pen_resize_taps taps = {.count = 2};
    if (place < -1 || place > (double)size) {
        taps.is_outside = true;
        return taps;
    }
    const double clipped = fmax(place, 0);
    int64_t low = (int64_t)clipped, high = low + 1;
    double t = clipped - (double)low;
    if (low >= size - 1) {
        low = high = size - 1;
        t = 0;
    }
    taps.index[0] = low;
    taps.index[1] = high;
    taps.weight[0] = 1 - t;
    taps.weight[1] = t;
    return taps;
}

// One bin of one channel: the mean, or the largest weighted tap.
static double roi_bin(const pen_reference_call *call, const roi_region *region, int64_t channel,
                      int64_t row, int64_t column) {
    const pen_tensor *x = &call->inputs[0];
    const pen_shape *shape = &x->type.shape;
    const bool takes_mean = strcmp(pen_node_text(call->node, "mode"), "avg") == 0;
    const int64_t base =
        (region->batch * shape->dims[1] + channel) * shape->dims[2] * shape->dims[3];
    const int64_t samples = region->rows * region->columns;
    double sum = 0, largest = -INFINITY;
    for (int64_t s = 0; s < samples; s++) {
        const int64_t sample_row = s / region->columns;
        const double i = (double)sample_row + 0.5;
        const double j = (double)(s % region->columns) + 0.5;
        const double y = region->top + (double)row * region->bin_height +
                         i * region->bin_height / (double)region->rows;
        const double z = region->left + (double)column * region->bin_width +
                         j * region->bin_width / (double)region->columns;
        const pen_resize_taps rows = roi_taps(y, shape->dims[2]);
        const pen_resize_taps columns = roi_taps(z, shape->dims[3]);
        const bool is_outside = rows.is_outside || columns.is_outside;
        for (uint32_t t = 0; t < 4; t++) {
            const int64_t from = base + rows.index[t / 2] * shape->dims[3] + columns.index[t % 2];
            const double weight = rows.weight[t / 2] * columns.weight[t % 2];
            const double part = is_outside ? 0 : weight * pen_tensor_get(x, from);
            sum += part;
            largest = fmax(largest, part);
        }
    }
    if (samples <= 0) return 0;
    return takes_mean ? sum / (double)samples : largest;
}

static pen_status roi_align_run(const pen_reference_call *call) {
    const pen_tensor *y = &call->outputs[0];
    const pen_shape *shape = &y->type.shape;
    for (int64_t r = 0; r < shape->dims[0]; r++) {
        roi_region region;
        PEN_TRY(roi_read(call, r, &region));
        const int64_t count = pen_shape_count(shape, 1, 4);
        for (int64_t k = 0; k < count; k++) {
            const int64_t plane = shape->dims[2] * shape->dims[3];
            pen_tensor_set(
                y, r * count + k,
                roi_bin(call, &region, k / plane, k % plane / shape->dims[3], k % shape->dims[3]));
        }
    }
    return PEN_OK;
}

static const pen_reference_kernel resize_kernels[] = {
    {"resize", resize_run, NULL},
    {"resize_backward", resize_backward_run, NULL},
    {"grid_sample", grid_sample_run, NULL},
    {"grid_sample_backward", grid_sample_backward_run, NULL},
    {"roi_align", roi_align_run, NULL},
};

PEN_REFERENCE_FAMILY(resize);
