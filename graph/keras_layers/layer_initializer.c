// First contents of weights, with Keras' distributions: numbers of a stream that the job's seed and
// the weight's name choose.
//
//   glorot  variance 2 / (fan_in + fan_out)
//   he      2 / fan_in
//   lecun   1 / fan_in
//   variance_scaling  scale / n, n being fan_in, fan_out, or their mean
//   …_uniform   in [-sqrt(3 variance), sqrt(3 variance))
//   …_normal    a normal cut at two deviations, whose deviation is then sqrt(variance)
//   truncated_normal  a normal of deviation stddev, cut at two of them
//   orthogonal  a matrix of normal numbers, its columns (or rows, if fewer) made orthonormal by
//               Gram and Schmidt, which is Q of its QR factorisation with a positive diagonal

#include <math.h>
#include <stdbool.h>

#include "base/random.h"
#include "graph/keras_layers/layer_build.h"

// Deviation of a standard normal that is cut at -2 and 2.
#define INITIALIZER_CUT_DEVIATION 0.87962566103423978

typedef struct initializer_fans {
    double in;
    double out;
} initializer_fans;

// Of a weight whose last two dimensions are inputs and outputs, as Keras counts.
static initializer_fans initializer_count_fans(const pen_shape *shape) {
    if (shape->rank == 0) return (initializer_fans){1, 1};
    const double last = (double)shape->dims[shape->rank - 1];
    if (shape->rank == 1) return (initializer_fans){last, last};
    double field = 1;
    for (uint32_t d = 0; d + 2 < shape->rank; d++) {
        field *= (double)shape->dims[d];
    }
    return (initializer_fans){field * (double)shape->dims[shape->rank - 2], field * last};
}

static void initializer_fill(const pen_shape *shape, float number, float *out) {
    const int64_t count = pen_shape_element_count(shape);
    for (int64_t i = 0; i < count; i++) {
        out[i] = number;
    }
}

// What a distribution is made with.
typedef struct initializer_draw {
    uint64_t seed;
    const char *stream;
    const pen_shape *shape;
    float *out;
} initializer_draw;

// In [least, most).
static void initializer_uniform(const initializer_draw *draw, double least, double most) {
    const pen_random_key key = {draw->seed, pen_random_stream(draw->stream, 0, 0)};
    const int64_t count = pen_shape_element_count(draw->shape);
    const double middle = (most + least) / 2;
    const double reach = (most - least) / 2;
    for (int64_t i = 0; i < count; i++) {
        const double unit = 2.0 * (double)pen_random_uniform(key, (uint64_t)i) - 1.0;
        draw->out[i] = (float)(middle + unit * reach);
    }
}

static void initializer_normal(const initializer_draw *draw, double mean, double deviation,
                               bool is_cut) {
    const int64_t count = pen_shape_element_count(draw->shape);
    for (int64_t i = 0; i < count; i++) {
        double number = 0;
        uint64_t attempt = 0;
        do { // a number is dropped with probability 0.046
            const pen_random_key key = {draw->seed, pen_random_stream(draw->stream, attempt++, 0)};
            number = pen_random_normal(key, (uint64_t)i);
        } while (is_cut && fabs(number) > 2.0);
        draw->out[i] = (float)(mean + number * deviation);
    }
}

static void initializer_scaled(const initializer_draw *draw, double variance,
                               pen_layer_spread spread) {
    switch (spread) {
    case PEN_LAYER_SPREAD_UNIFORM:
        initializer_uniform(draw, -sqrt(3.0 * variance), sqrt(3.0 * variance));
        break;
    case PEN_LAYER_SPREAD_TRUNCATED:
        initializer_normal(draw, 0, 1.0 / INITIALIZER_CUT_DEVIATION * sqrt(variance), true);
        break;
    case PEN_LAYER_SPREAD_UNTRUNCATED:
        initializer_normal(draw, 0, sqrt(variance), false);
        break;
    }
}

// One of the vectors: column `index` of a matrix with `cols` columns, or row.
typedef struct initializer_vectors {
    double *elements; // [count][length]
    int64_t count;
    int64_t length;
} initializer_vectors;

// In eight sums, which do not wait for each other.
static double initializer_dot(const double *u, const double *v, int64_t n) {
    double sums[8] = {0};
    int64_t k = 0;
    for (; k + 8 <= n; k += 8) {
        for (int64_t s = 0; s < 8; s++) {
            sums[s] += u[k + s] * v[k + s];
        }
    }
    for (; k < n; k++) {
        sums[0] += u[k] * v[k];
    }
    return ((sums[0] + sums[1]) + (sums[2] + sums[3])) +
           ((sums[4] + sums[5]) + (sums[6] + sums[7]));
}

static void initializer_orthonormalize(const initializer_vectors *vectors) {
    const int64_t n = vectors->length;
    for (int64_t i = 0; i < vectors->count; i++) {
        double *v = vectors->elements + i * n;
        for (int64_t j = 0; j < i; j++) {
            const double *u = vectors->elements + j * n;
            const double dot = initializer_dot(u, v, n);
            for (int64_t k = 0; k < n; k++) {
                v[k] -= dot * u[k];
            }
        }
        const double norm = sqrt(initializer_dot(v, v, n));
        for (int64_t k = 0; k < n; k++) {
            v[k] = norm > 0 ? v[k] / norm : 0;
        }
    }
}

// The longer side holds the vectors, since no more than their length can be at right angles.
static pen_status initializer_orthogonal(const initializer_draw *draw, double gain) {
    const pen_random_key key = {draw->seed, pen_random_stream(draw->stream, 0, 0)};
    const pen_shape *shape = draw->shape;
    float *out = draw->out;
    if (shape->rank < 2) {
        return pen_error(PEN_INVALID_INPUT, "orthogonal needs a weight of two dimensions or more");
    }
    const int64_t cols = shape->dims[shape->rank - 1];
    const int64_t rows = pen_shape_count(shape, 0, shape->rank - 1);
    const bool is_tall = rows >= cols; // vectors are its columns
    pen_arena *arena = NULL;
    PEN_TRY(pen_arena_create(&arena));
    initializer_vectors vectors = {.count = is_tall ? cols : rows, .length = is_tall ? rows : cols};
    pen_status status = PEN_NEW(arena, (size_t)(vectors.count * vectors.length), &vectors.elements);
    if (status == PEN_OK) {
        for (int64_t i = 0; i < vectors.count * vectors.length; i++) {
            vectors.elements[i] = pen_random_normal(key, (uint64_t)i);
        }
        initializer_orthonormalize(&vectors);
        for (int64_t r = 0; r < rows; r++) {
            for (int64_t c = 0; c < cols; c++) {
                const int64_t from = is_tall ? c * rows + r : r * cols + c;
                out[r * cols + c] = (float)(gain * vectors.elements[from]);
            }
        }
    }
    pen_arena_destroy(arena);
    return status;
}

static pen_status initializer_identity(const pen_shape *shape, double gain, float *out) {
    if (shape->rank != 2) {
        return pen_error(PEN_INVALID_INPUT, "identity needs a weight of two dimensions");
    }
    for (int64_t r = 0; r < shape->dims[0]; r++) {
        for (int64_t c = 0; c < shape->dims[1]; c++) {
            out[r * shape->dims[1] + c] = r == c ? (float)gain : 0;
        }
    }
    return PEN_OK;
}

// glorot, he, lecun and variance_scaling
static double initializer_variance(const pen_layer_initializer *initializer,
                                   const pen_shape *shape) {
    const initializer_fans fans = initializer_count_fans(shape);
    const double mean = (fans.in + fans.out) / 2;
    const pen_layer_initializer_numbers *numbers = &initializer->numbers;
    const bool is_glorot = initializer->kind == PEN_LAYER_GLOROT_UNIFORM ||
                           initializer->kind == PEN_LAYER_GLOROT_NORMAL;
    const bool is_he =
        initializer->kind == PEN_LAYER_HE_UNIFORM || initializer->kind == PEN_LAYER_HE_NORMAL;
    if (is_glorot) return 1.0 / mean;
    if (initializer->kind != PEN_LAYER_VARIANCE_SCALING) return (is_he ? 2.0 : 1.0) / fans.in;
    switch (numbers->mode) {
    case PEN_LAYER_FAN_IN:
        return numbers->scale / fans.in;
    case PEN_LAYER_FAN_OUT:
        return numbers->scale / fans.out;
    case PEN_LAYER_FAN_AVERAGE:
        break;
    }
    return numbers->scale / mean;
}

// The stream is the weight's name, so that a weight starts the same whatever stands before it in
// the model.
pen_status pen_layer_initialize(const pen_layer_initializer *initializer, uint64_t seed,
                                const char *stream, const pen_shape *shape, float *out_numbers) {
    const pen_layer_initializer_numbers *numbers = &initializer->numbers;
    const initializer_draw draw = {numbers->has_seed ? (uint64_t)numbers->seed : seed, stream,
                                   shape, out_numbers};
    switch (initializer->kind) {
    case PEN_LAYER_ZEROS:
        initializer_fill(shape, 0, out_numbers);
        break;
    case PEN_LAYER_ONES:
        initializer_fill(shape, 1, out_numbers);
        break;
    case PEN_LAYER_CONSTANT:
        initializer_fill(shape, (float)numbers->value, out_numbers);
        break;
    case PEN_LAYER_GLOROT_UNIFORM:
    case PEN_LAYER_HE_UNIFORM:
    case PEN_LAYER_LECUN_UNIFORM:
        initializer_scaled(&draw, initializer_variance(initializer, shape),
                           PEN_LAYER_SPREAD_UNIFORM);
        break;
    case PEN_LAYER_GLOROT_NORMAL:
    case PEN_LAYER_HE_NORMAL:
    case PEN_LAYER_LECUN_NORMAL:
        initializer_scaled(&draw, initializer_variance(initializer, shape),
                           PEN_LAYER_SPREAD_TRUNCATED);
        break;
    case PEN_LAYER_VARIANCE_SCALING:
        initializer_scaled(&draw, initializer_variance(initializer, shape), numbers->distribution);
        break;
    case PEN_LAYER_RANDOM_UNIFORM:
    case PEN_LAYER_UNIFORM:
        initializer_uniform(&draw, numbers->minval, numbers->maxval);
        break;
    case PEN_LAYER_RANDOM_NORMAL:
    case PEN_LAYER_NORMAL:
        initializer_normal(&draw, numbers->mean, numbers->stddev, false);
        break;
    case PEN_LAYER_TRUNCATED_NORMAL:
        initializer_normal(&draw, numbers->mean, numbers->stddev, true);
        break;
    case PEN_LAYER_ORTHOGONAL:
        return initializer_orthogonal(&draw, numbers->gain);
    case PEN_LAYER_IDENTITY:
        return initializer_identity(shape, numbers->gain, out_numbers);
    }
    return PEN_OK;
}
