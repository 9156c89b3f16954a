// Elements that only change their places. They are words of 4 bytes, or pairs of them.

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
        if (a.is_wide)
            ((uint64_t *)a.y)[to] = ((const uint64_t *)a.x)[from];
        else if (a.adds)
            store((float *)a.y, (uint64_t)to, ((const float *)a.x)[from], 1);
        else
            ((uint32_t *)a.y)[to] = ((const uint32_t *)a.x)[from];
    }
}

// y = x, or zeros where there is none.
KERNEL(fill, cuda_fill_args) {
    EACH(i, a.count) store(a.y, i, a.x ? a.x[i] : 0.0f, a.adds);
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
        if (index < 0) continue;
        const uint64_t outer = i / a.inner / a.index_count;
        store(a.y, i, a.x[(outer * a.dim + (uint64_t)index) * a.inner + i % a.inner], a.adds);
    }
}

// Adds to y, in the order of the indices: a thread takes a column of all of them.
KERNEL(gather_backward, cuda_gather_args) {
    EACH(i, a.outer * a.inner) {
        const uint64_t outer = i / a.inner, column = i % a.inner;
        for (uint64_t k = 0; k < a.index_count; k++) {
            const int64_t index = gather_index(&a, k);
            if (index < 0) continue;
            store(a.y, (outer * a.dim + (uint64_t)index) * a.inner + column,
                  a.x[(outer * a.index_count + k) * a.inner + column], 1);
        }
    }
}
