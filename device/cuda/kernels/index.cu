// Rows that are read and written where several indices say.

// The row of the data that a tuple of indices says; -1: outside, of which `error` is told.
DEVICE int64_t nd_row(const struct cuda_nd_args *a, uint64_t tuple) {
    int64_t row = (int64_t)(tuple / a->batch_tuples);
    for (uint32_t d = 0; d < a->depth; d++) {
        const uint64_t k = tuple * a->depth + d;
        const int64_t dim = a->dims[d];
        const int64_t index = a->indices_are_wide ? ((const int64_t *)a->indices)[k]
                                                  : (int64_t)((const int32_t *)a->indices)[k];
        if (index < -dim || index >= dim) {
            raise_to(a->error, (uint32_t)(a->tuples * a->depth - k));
            return -1;
        }
        row = row * dim + (index < 0 ? index + dim : index);
    }
    return row;
}

KERNEL(gather_nd, cuda_nd_args) {
    EACH(i, a.tuples * a.inner) {
        const int64_t row = nd_row(&a, i / a.inner);
        if (row < 0)
            pick_nothing(a.y, i, a.bytes);
        else
            copy_element(a.y, i, a.x, (uint64_t)row * a.inner + i % a.inner, a.bytes, a.adds);
    }
}

// In the order of the tuples: all that come to one element are a thread's own, and element i is one
// of these.
KERNEL(scatter_nd, cuda_nd_args) {
    const struct put_kind kind = {a.put, a.type, a.bytes};
    EACH(i, a.parts * a.inner) {
        const uint64_t part = i / a.inner, column = i % a.inner;
        bool is_outside = false;
        for (uint64_t tuple = 0; tuple < a.tuples; tuple++) {
            const int64_t row = nd_row(&a, tuple);
            is_outside |= row < 0;
            if (row < 0 || (uint64_t)row % a.parts != part) continue;
            put_element(a.y, (uint64_t)row * a.inner + column, a.x, tuple * a.inner + column,
                        &kind);
        }
        if (is_outside) pick_nothing(a.y, i, a.bytes);
    }
}
