// Elements as another type. Integers and truths go by way of an int64, all else of a double, as on
// the host.

// Towards 0. What is beyond an int64 ends there, what is not a number is 0.
DEVICE int64_t cast_whole_of(double x) {
    if (x >= 9223372036854775808.0) return 9223372036854775807LL;
    if (x < -9223372036854775808.0) return -9223372036854775807LL - 1;
    return x != x ? 0 : (int64_t)x;
}

DEVICE void cast_write_whole(const struct cuda_cast_args *a, uint64_t i, int64_t whole) {
    if (a->to == PEN_CUDA_INT64)
        ((int64_t *)a->y)[i] = whole;
    else if (a->to == PEN_CUDA_INT32)
        ((int32_t *)a->y)[i] = (int32_t)whole;
    else
        ((unsigned char *)a->y)[i] = whole != 0;
}

KERNEL(cast, cuda_cast_args) {
    EACH(i, a.count) {
        const uint32_t is_exact = a.from > PEN_CUDA_FLOAT64 && a.to > PEN_CUDA_FLOAT64;
        const double x = is_exact ? 0.0 : read_number(a.x, a.from, i);
        if (is_exact)
            cast_write_whole(&a, i, read_whole(a.x, a.from, i));
        else if (a.to == PEN_CUDA_FLOAT32)
            ((float *)a.y)[i] = (float)x;
        else if (a.to == PEN_CUDA_FLOAT64)
            ((double *)a.y)[i] = x;
        else if (a.to == PEN_CUDA_BOOL)
            cast_write_whole(&a, i, x != 0.0);
        else
            cast_write_whole(&a, i, cast_whole_of(x));
    }
}
