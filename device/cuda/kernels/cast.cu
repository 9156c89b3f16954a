// Elements as another type. Integers and truths go by way of an int64, all else of a double, as on
// the host.

// Towards 0. What is beyond an int64 ends there, what is not a number is 0.
DEVICE int64_t cast_whole_of(double x) {
    if (x >= 9223372036854775808.0) return 9223372036854775807LL;
    if (x < -9223372036854775808.0) return -9223372036854775807LL - 1;
    return x != x ? 0 : (int64_t)x;
}

KERNEL(cast, cuda_cast_args) {
    EACH(i, a.count) {
        const uint32_t is_exact = a.from > PEN_CUDA_FLOAT64 && a.to > PEN_CUDA_FLOAT64;
        const double x = is_exact ? 0.0 : read_number(a.x, a.from, i);
        if (is_exact)
            write_whole(a.y, a.to, i, read_whole(a.x, a.from, i));
        else if (a.to == PEN_CUDA_FLOAT32)
            ((float *)a.y)[i] = (float)x;
        else if (a.to == PEN_CUDA_FLOAT64)
            ((double *)a.y)[i] = x;
        else if (a.to == PEN_CUDA_BOOL)
            write_whole(a.y, a.to, i, x != 0.0);
        else
            write_whole(a.y, a.to, i, cast_whole_of(x));
    }
}
