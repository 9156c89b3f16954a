#include "scheduler/data/image/image_resize.h"

#include <math.h>
#include <string.h>

#include "base/memory.h"

// Four numbers that need not be aligned.
typedef float resize_lanes __attribute__((vector_size(16), aligned(4), may_alias));

// Memory that grows, and forgets what it had.
typedef struct resize_scratch {
    float *values;
    size_t capacity;
} resize_scratch;

// Which input pixels make each output pixel of one axis.
typedef struct resize_axis {
    uint32_t out_size;
    uint32_t in_size;       // that first and weights are for; 0: none yet
    uint32_t tap_limit;     // weights of one output pixel, at most
    uint32_t *first;        // [out_size]
    uint32_t *count;        // [out_size]
    resize_scratch weights; // [out_size][tap_limit]
} resize_axis;

struct pen_image_resizer {
    resize_axis horizontal;
    resize_axis vertical;
    uint32_t channel_count;
    resize_scratch line; // [in width][channel_count] and a pixel of room, one row of the picture
    resize_scratch row;  // [channel_count][out width], that row as wide as the planes
    uint32_t row_index;  // of the next row of the picture
    uint32_t out_first;  // the first row of the planes that is not whole
    float *planes;       // [channel_count][out height][out width]
};

static pen_status resize_reserve(resize_scratch *scratch, size_t count) {
    if (count <= scratch->capacity) return PEN_OK;
    pen_memory_free(scratch->values);
    scratch->capacity = 0;
    scratch->values = pen_memory_allocate(count, sizeof *scratch->values);
    if (scratch->values == NULL) return pen_error_out_of_memory();
    scratch->capacity = count;
    return PEN_OK;
}

static pen_status resize_axis_init(resize_axis *axis, uint32_t out_size) {
    axis->out_size = out_size;
    axis->first = pen_memory_allocate(out_size, sizeof *axis->first);
    axis->count = pen_memory_allocate(out_size, sizeof *axis->count);
    if (axis->first == NULL || axis->count == NULL) return pen_error_out_of_memory();
    return PEN_OK;
}

static void resize_axis_deinit(resize_axis *axis) {
    pen_memory_free(axis->first);
    pen_memory_free(axis->count);
    pen_memory_free(axis->weights.values);
}

pen_status pen_image_resizer_create(uint32_t width, uint32_t height, uint32_t channel_count,
                                    pen_image_resizer **out_resizer) {
    pen_image_resizer *resizer = pen_memory_allocate(1, sizeof *resizer);
    if (resizer == NULL) return pen_error_out_of_memory();
    resizer->channel_count = channel_count;
    pen_status status = resize_axis_init(&resizer->horizontal, width);
    if (status == PEN_OK) status = resize_axis_init(&resizer->vertical, height);
    if (status != PEN_OK) {
        pen_image_resizer_destroy(resizer);
        return status;
    }
    *out_resizer = resizer;
    return PEN_OK;
}

void pen_image_resizer_destroy(pen_image_resizer *resizer) {
    if (resizer == NULL) return;
    resize_axis_deinit(&resizer->horizontal);
    resize_axis_deinit(&resizer->vertical);
    pen_memory_free(resizer->line.values);
    pen_memory_free(resizer->row.values);
    pen_memory_free(resizer);
}

// The weights of output pixel `index`: 1 - |x - centre| / support, made to sum to 1.
static void resize_axis_weigh(resize_axis *axis, uint32_t index) {
    const double scale = (double)axis->in_size / axis->out_size;
    const double support = fmax(scale, 1);
    const double centre = (index + 0.5) * scale;
    const uint32_t from = (uint32_t)fmax(centre - support + 0.5, 0);
    const uint32_t to = (uint32_t)fmin(centre + support + 0.5, axis->in_size);
    float *weights = axis->weights.values + (size_t)index * axis->tap_limit;
    double sum = 0;
    for (uint32_t x = from; x < to; x++)
        sum += fmax(0, 1 - fabs(x + 0.5 - centre) / support);
    for (uint32_t x = from; x < to; x++) {
        weights[x - from] = (float)(fmax(0, 1 - fabs(x + 0.5 - centre) / support) / sum);
    }
    axis->first[index] = from;
    axis->count[index] = to - from;
}

static pen_status resize_axis_prepare(resize_axis *axis, uint32_t in_size) {
    if (axis->in_size == in_size) return PEN_OK;
    axis->in_size = 0; // until it is done
    const uint32_t tap_limit = 2 * (in_size / axis->out_size + 1) + 2;
    PEN_TRY(resize_reserve(&axis->weights, (size_t)axis->out_size * tap_limit));
    axis->in_size = in_size;
    axis->tap_limit = tap_limit;
    for (uint32_t i = 0; i < axis->out_size; i++)
        resize_axis_weigh(axis, i);
    return PEN_OK;
}

static void resize_load_line(const pen_image_resizer *resizer, const uint8_t *pixels,
                             uint32_t width) {
    float *line = resizer->line.values;
    if (resizer->channel_count == 3) {
#pragma omp simd
        for (size_t i = 0; i < (size_t)width * 3; i++)
            line[i] = (float)pixels[i];
        return;
    }
    for (uint32_t x = 0; x < width; x++) {
        const uint8_t *pixel = pixels + (size_t)x * 3;
        const uint32_t gray = pixel[0] * 19595u + pixel[1] * 38470u + pixel[2] * 7471u;
        line[x] = (float)((gray + 0x8000) >> 16);
    }
}

static void resize_line_gray(const resize_axis *axis, const float *line, float *out_row) {
    for (uint32_t i = 0; i < axis->out_size; i++) {
        const float *weights = axis->weights.values + (size_t)i * axis->tap_limit;
        const float *from = line + axis->first[i];
        float sum = 0;
        for (uint32_t k = 0; k < axis->count[i]; k++)
            sum += weights[k] * from[k];
        out_row[i] = sum;
    }
}

// The three colours of a pixel at once; the fourth lane has the next pixel's, and does not count.
// Each sum is in the order of the pixels, as one number after another would make it.
static void resize_line_colours(const resize_axis *axis, const float *line, float *out_row) {
    const size_t width = axis->out_size;
    for (size_t i = 0; i < width; i++) {
        const float *weights = axis->weights.values + i * axis->tap_limit;
        const float *from = line + (size_t)axis->first[i] * 3;
        const float *end = from + (size_t)axis->count[i] * 3;
        resize_lanes sum = {0};
        for (; from < end; from += 3)
            sum += *weights++ * *(const resize_lanes *)(const void *)from;
        out_row[i] = sum[0];
        out_row[width + i] = sum[1];
        out_row[2 * width + i] = sum[2];
    }
}

// A row of the picture is a part of those rows of the planes that it has a weight for. They get
// their parts from the top, so sums are always in the same order.
static void resize_add_row(pen_image_resizer *resizer, uint32_t channel) {
    const resize_axis *axis = &resizer->vertical;
    const size_t width = resizer->horizontal.out_size;
    const float *from = resizer->row.values + channel * width;
    for (uint32_t y = resizer->out_first; y < axis->out_size; y++) {
        if (axis->first[y] > resizer->row_index) return;
        const uint32_t k = resizer->row_index - axis->first[y];
        if (k >= axis->count[y]) continue;
        const float weight = axis->weights.values[(size_t)y * axis->tap_limit + k];
        float *to = resizer->planes + ((size_t)channel * axis->out_size + y) * width;
#pragma omp simd
        for (size_t x = 0; x < width; x++)
            to[x] += weight * from[x];
    }
}

pen_status pen_image_resizer_begin(pen_image_resizer *resizer, pen_image_size size,
                                   float *out_planes) {
    const size_t width = resizer->horizontal.out_size;
    PEN_TRY(resize_axis_prepare(&resizer->horizontal, size.width));
    PEN_TRY(resize_axis_prepare(&resizer->vertical, size.height));
    PEN_TRY(resize_reserve(&resizer->line, (size_t)resizer->channel_count * (size.width + 1)));
    PEN_TRY(resize_reserve(&resizer->row, resizer->channel_count * width));
    memset(out_planes, 0,
           resizer->channel_count * resizer->vertical.out_size * width * sizeof *out_planes);
    resizer->planes = out_planes;
    resizer->row_index = resizer->out_first = 0;
    return PEN_OK;
}

// The line is loaded.
static void resize_add_line(pen_image_resizer *resizer) {
    const resize_axis *axis = &resizer->vertical;
    if (resizer->channel_count == 3) {
        resize_line_colours(&resizer->horizontal, resizer->line.values, resizer->row.values);
    } else {
        resize_line_gray(&resizer->horizontal, resizer->line.values, resizer->row.values);
    }
    for (uint32_t c = 0; c < resizer->channel_count; c++)
        resize_add_row(resizer, c);
    resizer->row_index += 1;
    while (resizer->out_first < axis->out_size &&
           axis->first[resizer->out_first] + axis->count[resizer->out_first] <=
               resizer->row_index) {
        resizer->out_first += 1;
    }
}

void pen_image_resizer_add(pen_image_resizer *resizer, const uint8_t *pixels) {
    PEN_ASSERT(resizer->row_index < resizer->vertical.in_size);
    resize_load_line(resizer, pixels, resizer->horizontal.in_size);
    resize_add_line(resizer);
}

void pen_image_resizer_add_colours(pen_image_resizer *resizer, const float *pixels,
                                   size_t channel_stride, size_t pixel_stride) {
    float *line = resizer->line.values;
    PEN_ASSERT(resizer->row_index < resizer->vertical.in_size);
    for (uint32_t x = 0; x < resizer->horizontal.in_size; x++) {
        for (uint32_t c = 0; c < resizer->channel_count; c++)
            *line++ = pixels[c * channel_stride + x * pixel_stride];
    }
    resize_add_line(resizer);
}
