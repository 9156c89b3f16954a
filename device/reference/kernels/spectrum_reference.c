// Fourier transforms term by term, windows, and determinants by elimination.

#include <math.h>

#include "device/reference/reference_kernel.h"
#include "graph/op.h"

#define SPECTRUM_PI 3.14159265358979323846

// A run of complex numbers: element i begins at `first` + i * stride.
typedef struct spectrum_row {
    const pen_tensor *x;
    int64_t first, stride, count;
    int64_t parts; // 1: real, 2: real and imaginary
} spectrum_row;

// Term `k` of the transform of length `length`, of the row times `window` (or NULL).
static void spectrum_term(const spectrum_row *row, const pen_tensor *window, int64_t k,
                          int64_t length, double sign, double out_sum[2]) {
    out_sum[0] = out_sum[1] = 0;
    for (int64_t i = 0; i < row->count && i < length; i++) {
        // reduced first: the angle stays exact for long rows
        const double angle = sign * 2 * SPECTRUM_PI * (double)(k * i % length) / (double)length;
        const double weight = window == NULL ? 1 : pen_tensor_get(window, i);
        const int64_t at = row->first + i * row->stride;
        const double real = pen_tensor_get(row->x, at) * weight;
        const double imaginary = row->parts == 2 ? pen_tensor_get(row->x, at + 1) * weight : 0;
        out_sum[0] += real * cos(angle) - imaginary * sin(angle);
        out_sum[1] += real * sin(angle) + imaginary * cos(angle);
    }
}

// Straight from the definition, each term a sum over the row; inputs may be real or complex.
static pen_status dft_run(const pen_reference_call *call) {
    const pen_tensor *x = &call->inputs[0], *y = &call->outputs[0];
    const pen_shape *shape = &x->type.shape;
    const bool inverse = pen_node_int(call->node, "inverse") != 0;
    const bool has_length = pen_reference_input(call, 1) != NULL;
    uint32_t axis;
    PEN_TRY(pen_shape_axis(shape->rank, pen_node_int(call->node, "axis"), &axis));
    const int64_t parts = shape->dims[shape->rank - 1], count = shape->dims[axis];
    const int64_t length = has_length ? pen_tensor_get_int(&call->inputs[1], 0) : count;
    const int64_t terms = y->type.shape.dims[axis];
    const int64_t inner = pen_shape_count(shape, axis + 1, shape->rank - 1);
    const int64_t outer = pen_shape_count(shape, 0, axis);
    for (int64_t r = 0; r < outer * inner; r++) {
        const int64_t o = r / inner, i = r % inner;
        const spectrum_row row = {x, (o * count * inner + i) * parts, inner * parts, count, parts};
        for (int64_t k = 0; k < terms; k++) {
            double sum[2];
            spectrum_term(&row, NULL, k, length, inverse ? 1 : -1, sum);
            const int64_t to = ((o * terms + k) * inner + i) * 2;
            pen_tensor_set(y, to, inverse ? sum[0] / (double)length : sum[0]);
            pen_tensor_set(y, to + 1, inverse ? sum[1] / (double)length : sum[1]);
        }
    }
    return PEN_OK;
}

// A transform of each frame; terms beyond half of a real frame are not asked for.
static pen_status stft_run(const pen_reference_call *call) {
    const pen_tensor *x = &call->inputs[0], *y = &call->outputs[0];
    const pen_shape *from = &x->type.shape, *to = &y->type.shape;
    const bool has_window = pen_reference_input(call, 2) != NULL;
    const bool has_length = pen_reference_input(call, 3) != NULL;
    const pen_tensor *window = has_window ? &call->inputs[2] : NULL;
    const int64_t step = pen_tensor_get_int(&call->inputs[1], 0);
    const int64_t length =
        has_length ? pen_tensor_get_int(&call->inputs[3], 0) : pen_tensor_count(&call->inputs[2]);
    const int64_t parts = from->rank == 3 ? from->dims[2] : 1;
    const int64_t frames = to->dims[1], terms = to->dims[2];
    for (int64_t f = 0; f < to->dims[0] * frames; f++) {
        const int64_t first = (f / frames * from->dims[1] + f % frames * step) * parts;
        const spectrum_row row = {x, first, parts, length, parts};
        for (int64_t k = 0; k < terms; k++) {
            double sum[2];
            spectrum_term(&row, window, k, length, -1, sum);
            pen_tensor_set(y, (f * terms + k) * 2, sum[0]);
            pen_tensor_set(y, (f * terms + k) * 2 + 1, sum[1]);
        }
    }
    return PEN_OK;
}

// a - b cos(2 pi i / n) + c cos(4 pi i / n), n being the length, or one less.
static pen_status window_run(const pen_reference_call *call, double a, double b, double c) {
    const pen_tensor *y = &call->outputs[0];
    const int64_t count = pen_tensor_count(y);
    const bool periodic = pen_node_int(call->node, "periodic") != 0;
    const int64_t length = periodic ? count : count - 1;
    for (int64_t i = 0; i < count; i++) {
        const double angle = length == 0 ? 0 : 2 * SPECTRUM_PI * (double)i / (double)length;
        pen_tensor_set(y, i, length == 0 ? 1 : a - b * cos(angle) + c * cos(2 * angle));
    }
    return PEN_OK;
}

static pen_status hann_window_run(const pen_reference_call *call) {
    return window_run(call, 0.5, 0.5, 0);
}
static pen_status hamming_window_run(const pen_reference_call *call) {
    return window_run(call, 25.0 / 46, 21.0 / 46, 0);
}
static pen_status blackman_window_run(const pen_reference_call *call) {
    return window_run(call, 0.42, 0.5, 0.08);
}

// Triangles between neighbouring points of the mel scale, over the terms of a spectrum.
static pen_status mel_run(const pen_reference_call *call) {
    const pen_tensor *y = &call->outputs[0];
    const int64_t bins = y->type.shape.dims[1], terms = y->type.shape.dims[0];
    const int64_t length = pen_tensor_get_int(&call->inputs[1], 0);
    const double rate = (double)pen_tensor_get_int(&call->inputs[2], 0);
    const double low = 2595 * log10(1 + pen_tensor_get(&call->inputs[3], 0) / 700);
    const double high = 2595 * log10(1 + pen_tensor_get(&call->inputs[4], 0) / 700);
    int64_t *points; // where bands begin, peak and end
    PEN_TRY(PEN_NEW(call->scratch, (size_t)bins + 2, &points));
    for (int64_t i = 0; i < bins + 2; i++) {
        const double mel = low + (double)i * (high - low) / (double)(bins + 2);
        const double hertz = 700 * (pow(10, mel / 2595) - 1);
        const double point = floor((double)(length + 1) * hertz / rate);
        points[i] = (int64_t)fmin((double)terms, fmax(0, point));
    }
    for (int64_t k = 0; k < bins * terms; k++) {
        const int64_t term = k / bins, begin = points[k % bins];
        const int64_t peak = points[k % bins + 1], end = points[k % bins + 2];
        double weight = 0;
        if (term >= begin && term < peak) {
            weight = (double)(term - begin) / (double)(peak - begin);
        } else if (term == peak) {
            weight = 1;
        } else if (term > peak && term < end) {
            weight = (double)(end - term) / (double)(end - peak);
        }
        pen_tensor_set(y, k, weight);
    }
    return PEN_OK;
}

// ---- determinants

// Of the matrix in `m`, [size][size], which is destroyed.
static double det_eliminate(double *m, int64_t size) {
    double det = 1;
    for (int64_t c = 0; c < size; c++) {
        int64_t pivot = c;
        for (int64_t r = c + 1; r < size; r++) {
            if (fabs(m[r * size + c]) > fabs(m[pivot * size + c])) pivot = r;
        }
        if (m[pivot * size + c] == 0) return 0;
        for (int64_t k = 0; pivot != c && k < size; k++) {
            const double kept = m[c * size + k];
            m[c * size + k] = m[pivot * size + k];
            m[pivot * size + k] = kept;
        }
        det *= pivot == c ? m[c * size + c] : -m[c * size + c];
        for (int64_t r = c + 1; r < size; r++) {
            const double factor = m[r * size + c] / m[c * size + c];
            for (int64_t k = c; k < size; k++) {
                m[r * size + k] -= factor * m[c * size + k];
            }
        }
    }
    return det;
}

// Matrix `index` of x without row and column `left_out` (counted over both; -1: all of it).
static void det_read(const pen_tensor *x, int64_t index, int64_t size, int64_t left_out,
                     double *to) {
    for (int64_t k = 0; k < size * size; k++) {
        const bool is_out =
            left_out >= 0 && (k / size == left_out / size || k % size == left_out % size);
        if (!is_out) *to++ = pen_tensor_get(x, index * size * size + k);
    }
}

static pen_status det_run(const pen_reference_call *call) {
    const pen_tensor *x = &call->inputs[0], *y = &call->outputs[0];
    const int64_t size = x->type.shape.dims[x->type.shape.rank - 1];
    double *work;
    PEN_TRY(PEN_NEW(call->scratch, (size_t)(size * size), &work));
    for (int64_t i = 0; i < pen_tensor_count(y); i++) {
        det_read(x, i, size, -1, work);
        pen_tensor_set(y, i, det_eliminate(work, size));
    }
    return PEN_OK;
}

// Each element's cofactor times dy.
static pen_status det_backward_run(const pen_reference_call *call) {
    const pen_tensor *dy = &call->inputs[0], *x = &call->inputs[1], *dx = &call->outputs[0];
    const int64_t size = x->type.shape.dims[x->type.shape.rank - 1];
    double *work;
    PEN_TRY(PEN_NEW(call->scratch, (size_t)(size * size), &work));
    for (int64_t i = 0; i < pen_tensor_count(dy); i++) {
        for (int64_t k = 0; k < size * size; k++) {
            det_read(x, i, size, k, work);
            const double minor = det_eliminate(work, size - 1);
            const double sign = (k / size + k % size) % 2 == 0 ? 1 : -1;
            pen_tensor_set(dx, i * size * size + k, sign * minor * pen_tensor_get(dy, i));
        }
    }
    return PEN_OK;
}

static const pen_reference_kernel spectrum_kernels[] = {
    {"dft", dft_run, NULL},
    {"stft", stft_run, NULL},
    {"hann_window", hann_window_run, NULL},
    {"hamming_window", hamming_window_run, NULL},
    {"blackman_window", blackman_window_run, NULL},
    {"mel_weight_matrix", mel_run, NULL},
    {"det", det_run, NULL},
    {"det_backward", det_backward_run, NULL},
};

PEN_REFERENCE_FAMILY(spectrum);
