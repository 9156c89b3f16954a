// Elements that only change their places. They have 1, 4 or 8 bytes.

// Element i of a box lies at the sum of its positions times strides, in x and in y.
KERNEL(move, cuda_move_args) {
    EACH(i, a.count) {
        int64_t from = a.x_first, to = a.y_first;
        uint64_t rest = i;
        for (uint32_t d = a.rank; d-- > 0;) {
            const int64_t at = (int64_t)(rest % a.dims[d]);
            rest /= a.dims[d];
            from += at * a.x_strides[d];
            to += at * a.y_strides[d];
        }
        copy_element(a.y, (uint64_t)to, a.x, (uint64_t)from, a.bytes, a.adds);
    }
}

// Parts of a whole along an axis, from the one to the other. A part that is NULL is left out.
KERNEL(parts, cuda_parts_args) {
    const uint64_t first = a.starts[0], span = a.starts[a.count] - first;
    EACH(i, a.outer * span * a.inner) {
        const uint64_t inner = i % a.inner, k = i / a.inner % span + first;
        const uint64_t outer = i / a.inner / span;
        uint32_t part = 0, end = a.count;
        while (end - part > 1) {
            const uint32_t middle = (part + end) / 2;
            if (a.starts[middle] <= k)
                part = middle;
            else
                end = middle;
        }
        const uint64_t dim = a.starts[part + 1] - a.starts[part];
        const uint64_t own = (outer * dim + k - a.starts[part]) * a.inner + inner;
        const uint64_t of_whole = (outer * a.dim + k) * a.inner + inner;
        void *place = a.parts[part];
        if (!place) continue;
        if (a.is_split)
            copy_element(place, own, a.whole, of_whole, a.bytes, a.adds);
        else
            copy_element(a.whole, of_whole, place, own, a.bytes, a.adds);
    }
}

// Where position `at` of a line of `dim` elements, which may be outside, is read; -1: nowhere.
// Reflection goes to and fro between the first and the last element, which are not repeated.
DEVICE int64_t border_source(uint32_t mode, int64_t at, int64_t dim) {
    if (at >= 0 && at < dim) return at;
    if (mode == PEN_CUDA_BORDER_CONSTANT) return -1;
    if (mode == PEN_CUDA_BORDER_REPEAT) return (at % dim + dim) % dim;
    if (mode == PEN_CUDA_BORDER_EDGE || dim == 1) return at < 0 ? 0 : dim - 1;
    const int64_t period = 2 * (dim - 1), phase = (at % period + period) % period;
    return phase < dim ? phase : period - phase;
}

KERNEL(border, cuda_border_args) {
    EACH(i, a.count) {
        uint64_t rest = i;
        int64_t from = 0, stride = 1;
        for (uint32_t d = a.rank; d-- > 0;) {
            const int64_t at = (int64_t)(rest % a.dims[d]) - a.before[d];
            const int64_t source = border_source(a.mode, at, (int64_t)a.x_dims[d]);
            rest /= a.dims[d];
            if (source < 0 || from < 0)
                from = -1;
            else
                from += source * stride;
            stride *= (int64_t)a.x_dims[d];
        }
        copy_element(a.y, i, from < 0 ? a.value : a.x, from < 0 ? 0 : (uint64_t)from, a.bytes,
                     a.adds);
    }
}

// The positions of a line with its border that repeat one element: two series.
struct border_series {
    int64_t first, pace, count, other, other_count;
};

DEVICE int64_t border_count(int64_t first, int64_t pace, int64_t end) {
    return first < end ? (end - 1 - first) / pace + 1 : 0;
}

DEVICE struct border_series border_series_of(const struct cuda_border_args *a, uint32_t d,
                                             int64_t element) {
    const int64_t dim = (int64_t)a->x_dims[d], end = (int64_t)a->dims[d], before = a->before[d];
    struct border_series series = {before + element, 1, 0, 0, 0};
    if (a->mode == PEN_CUDA_BORDER_EDGE || (a->mode == PEN_CUDA_BORDER_REFLECT && dim == 1)) {
        int64_t last = before + element;
        if (element == 0) series.first = 0;
        if (element == dim - 1) last = end - 1;
        if (series.first < 0) series.first = 0;
        series.count = border_count(series.first, 1, last + 1 < end ? last + 1 : end);
        return series;
    }
    series.pace = a->mode == PEN_CUDA_BORDER_REPEAT ? dim : 2 * (dim - 1);
    series.first = ((before + element) % series.pace + series.pace) % series.pace;
    series.count = border_count(series.first, series.pace, end);
    if (a->mode == PEN_CUDA_BORDER_REPEAT || element == 0 || element == dim - 1) return series;
    series.other = ((before - element) % series.pace + series.pace) % series.pace;
    series.other_count = border_count(series.other, series.pace, end);
    return series;
}

// An element's gradient is the sum of those of its repetitions, in order.
KERNEL(border_backward, cuda_border_args) {
    EACH(i, a.x_count) {
        struct border_series series[PEN_CUDA_RANK];
        uint64_t rest = i, repetitions = 1;
        float sum = 0.0f;
        for (uint32_t d = a.rank; d-- > 0;) {
            series[d] = border_series_of(&a, d, (int64_t)(rest % a.x_dims[d]));
            rest /= a.x_dims[d];
            repetitions *= (uint64_t)(series[d].count + series[d].other_count);
        }
        for (uint64_t r = 0; r < repetitions; r++) {
            uint64_t left = r, from = 0, stride = 1;
            for (uint32_t d = a.rank; d-- > 0;) {
                const struct border_series s = series[d];
                const int64_t k = (int64_t)(left % (uint64_t)(s.count + s.other_count));
                left /= (uint64_t)(s.count + s.other_count);
                const int64_t at =
                    k < s.count ? s.first + k * s.pace : s.other + (k - s.count) * s.pace;
                from += (uint64_t)at * stride;
                stride *= a.dims[d];
            }
            sum += ((const float *)a.x)[from];
        }
        store((float *)a.y, i, sum, a.adds);
    }
}

// What lies outside of the triangle is zero.
KERNEL(triangle, cuda_triangle_args) {
    EACH(i, a.count) {
        const int64_t distance = (int64_t)(i % a.columns) - (int64_t)(i / a.columns % a.rows);
        const uint32_t keeps = a.is_upper ? distance >= a.diagonal : distance <= a.diagonal;
        copy_element(a.y, i, keeps ? a.x : 0, i, a.bytes, a.adds);
    }
}

// Running sums along lines whose elements lie `inner` apart: a thread takes a line.
KERNEL(running_sum, cuda_running_sum_args) {
    EACH(line, a.outer * a.inner) {
        const uint64_t first = line / a.inner * a.length * a.inner + line % a.inner;
        double sum = 0.0;
        uint64_t whole = 0;
        for (uint64_t k = 0; k < a.length; k++) {
            const uint64_t at = first + (a.is_reverse ? a.length - 1 - k : k) * a.inner;
            if (a.type == PEN_CUDA_FLOAT32) {
                const double x = (double)((const float *)a.x)[at];
                store((float *)a.y, at, (float)(a.is_exclusive ? sum : sum + x), a.adds);
                sum += x;
            } else {
                const uint64_t x = (uint64_t)read_whole(a.x, a.type, at);
                const uint64_t y = a.is_exclusive ? whole : whole + x;
                whole += x;
                if (a.type == PEN_CUDA_INT64)
                    ((int64_t *)a.y)[at] = (int64_t)y;
                else
                    ((int32_t *)a.y)[at] = (int32_t)y;
            }
        }
    }
}

// y = x, or zeros where there is none.
KERNEL(fill, cuda_fill_args) {
    EACH(i, a.count) store(a.y, i, a.x ? a.x[i] : 0.0f, a.adds);
}

// What an index outside picks is not a number: so is the loss, on whatever device, and nobody
// updates before `error` is heard of.
DEVICE void pick_nothing(void *y, uint64_t to, uint32_t bytes) {
    if (bytes == 8)
        ((uint64_t *)y)[to] = 0x7ff8000000000000u;
    else if (bytes == 4)
        ((uint32_t *)y)[to] = 0x7fc00000u;
    else
        ((unsigned char *)y)[to] = 0;
}

// The place along the axis that index k says; -1: outside, of which `error` is told.
DEVICE int64_t gather_index(const struct cuda_gather_args *a, uint64_t k) {
    const int64_t dim = (int64_t)a->dim;
    const int64_t index = a->indices_are_wide ? ((const int64_t *)a->indices)[k]
                                              : (int64_t)((const int32_t *)a->indices)[k];
    if (index >= -dim && index < dim) return index < 0 ? index + dim : index;
    raise_to(a->error, (uint32_t)(a->index_count - k));
    return -1;
}

KERNEL(gather, cuda_gather_args) {
    EACH(i, a.outer * a.index_count * a.inner) {
        const int64_t index = gather_index(&a, i / a.inner % a.index_count);
        if (index < 0) {
            pick_nothing(a.y, i, a.bytes);
            continue;
        }
        const uint64_t outer = i / a.inner / a.index_count;
        copy_element(a.y, i, a.x, (outer * a.dim + (uint64_t)index) * a.inner + i % a.inner,
                     a.bytes, a.adds);
    }
}

// Adds to y, in the order of the indices: a thread takes a column of all of them.
KERNEL(gather_backward, cuda_gather_args) {
    EACH(i, a.outer * a.inner) {
        const uint64_t outer = i / a.inner, column = i % a.inner;
        for (uint64_t k = 0; k < a.index_count; k++) {
            const int64_t index = gather_index(&a, k);
            if (index < 0) continue;
            store((float *)a.y, (outer * a.dim + (uint64_t)index) * a.inner + column,
                  ((const float *)a.x)[(outer * a.index_count + k) * a.inner + column], 1);
        }
    }
}

// ---- elements one by one along an axis

// How an element is put: what of a kernel's argument says it.
struct put_kind {
    uint32_t put, type, bytes;
};

// The place along the axis that index k says; -1: outside.
DEVICE int64_t elements_index(const struct cuda_elements_args *a, uint64_t k) {
    const int64_t dim = (int64_t)a->dim;
    const int64_t index = a->indices_are_wide ? ((const int64_t *)a->indices)[k]
                                              : (int64_t)((const int32_t *)a->indices)[k];
    if (index >= -dim && index < dim) return index < 0 ? index + dim : index;
    raise_to(a->error, (uint32_t)(a->count - k));
    return -1;
}

// Element `from` of x comes to `to` of y, or is joined with what is there; integers wrap.
DEVICE void put_element(void *y, uint64_t to, const void *x, uint64_t from,
                        const struct put_kind *kind) {
    if (kind->put == PEN_CUDA_PUT) {
        copy_element(y, to, x, from, kind->bytes, 0);
        return;
    }
    if (kind->type == PEN_CUDA_FLOAT32) {
        const float a = ((const float *)y)[to], b = ((const float *)x)[from];
        ((float *)y)[to] = kind->put == PEN_CUDA_PUT_ADD   ? a + b
                           : kind->put == PEN_CUDA_PUT_MUL ? a * b
                           : kind->put == PEN_CUDA_PUT_MAX ? (a > b ? a : b)
                                                           : (a > b ? b : a);
        return;
    }
    const int64_t a = read_whole(y, kind->type, to), b = read_whole(x, kind->type, from);
    const int64_t joined = kind->put == PEN_CUDA_PUT_ADD   ? (int64_t)((uint64_t)a + (uint64_t)b)
                           : kind->put == PEN_CUDA_PUT_MUL ? (int64_t)((uint64_t)a * (uint64_t)b)
                           : kind->put == PEN_CUDA_PUT_MAX ? (a > b ? a : b)
                                                           : (a > b ? b : a);
    write_whole(y, kind->type, to, joined);
}

KERNEL(pick_elements, cuda_elements_args) {
    EACH(k, a.count) {
        const int64_t index = elements_index(&a, k);
        uint64_t rest = k, place = 0;
        for (uint32_t d = a.rank; d-- > 0;) {
            if (d != a.axis) place += rest % a.dims[d] * a.strides[d];
            rest /= a.dims[d];
        }
        if (index < 0) {
            pick_nothing(a.y, k, a.bytes);
            continue;
        }
        copy_element(a.y, k, a.x, place + (uint64_t)index * a.strides[a.axis], a.bytes, a.adds);
    }
}

// In the order of the indices: a thread takes all that lie on a line along the axis.
KERNEL(put_elements, cuda_elements_args) {
    const uint64_t length = a.dims[a.axis];
    const struct put_kind kind = {a.put, a.type, a.bytes};
    EACH(line, a.count / length) {
        uint64_t rest = line, first = 0, place = 0, stride = 1, pace = 1;
        for (uint32_t d = a.rank; d-- > 0;) {
            if (d == a.axis) {
                pace = stride;
            } else {
                first += rest % a.dims[d] * stride;
                place += rest % a.dims[d] * a.strides[d];
                rest /= a.dims[d];
            }
            stride *= a.dims[d];
        }
        bool is_outside = false;
        for (uint64_t r = 0; r < length; r++) {
            const uint64_t k = first + r * pace;
            const int64_t index = elements_index(&a, k);
            is_outside |= index < 0;
            if (index < 0) continue;
            put_element(a.y, place + (uint64_t)index * a.strides[a.axis], a.updates, k, &kind);
        }
        if (is_outside && a.dim > 0) pick_nothing(a.y, place, a.bytes);
    }
}
