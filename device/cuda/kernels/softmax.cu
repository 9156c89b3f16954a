// Softmax and its logarithm along an axis: a block takes a line, whose elements lie `inner` apart.

DEVICE uint64_t softmax_first(const struct cuda_softmax_args *a, uint64_t line) {
    return line / a->inner * a->count * a->inner + line % a->inner;
}

KERNEL(softmax, cuda_softmax_args) {
    SHARED float room[PEN_CUDA_BLOCK / 32];
    for (uint64_t line = BLOCK_X; line < a.lines; line += BLOCKS_X) {
        const uint64_t first = softmax_first(&a, line);
        float largest = a.x[first], sum = 0.0f;
        for (uint64_t k = THREAD; k < a.count; k += THREADS) {
            const float x = a.x[first + k * a.inner];
            largest = x > largest || x != x ? x : largest;
        }
        largest = block_largest(largest, room);
        for (uint64_t k = THREAD; k < a.count; k += THREADS)
            sum += exponential(a.x[first + k * a.inner] - largest);
        sum = block_sum(sum, room);
        const float all = a.is_logarithm ? logarithm(sum) : 0.0f;
        for (uint64_t k = THREAD; k < a.count; k += THREADS) {
            const uint64_t at = first + k * a.inner;
            const float x = a.x[at] - largest;
            store(a.y, at, a.is_logarithm ? x - all : exponential(x) / sum, a.adds);
        }
    }
}

// x is what the forward pass gave.
KERNEL(softmax_backward, cuda_softmax_args) {
    SHARED float room[PEN_CUDA_BLOCK / 32];
    for (uint64_t line = BLOCK_X; line < a.lines; line += BLOCKS_X) {
        const uint64_t first = softmax_first(&a, line);
        float sum = 0.0f;
        for (uint64_t k = THREAD; k < a.count; k += THREADS) {
            const uint64_t at = first + k * a.inner;
            sum += a.is_logarithm ? a.dy[at] : a.dy[at] * a.x[at];
        }
        sum = block_sum(sum, room);
        for (uint64_t k = THREAD; k < a.count; k += THREADS) {
            const uint64_t at = first + k * a.inner;
            const float dy = a.dy[at], x = a.x[at];
            store(a.y, at, a.is_logarithm ? dy - exponential(x) * sum : x * (dy - sum), a.adds);
        }
    }
}
