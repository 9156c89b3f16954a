// Pools: a thread makes an element, from its window or from the windows that it is in.

// The window of an output position along one dimension: taps [first, last) lie inside the input,
// tap k at start + k * dilation; `counted` taps lie there or in the pads.
struct pool_span {
    int32_t start, first, last, counted;
};

DEVICE int32_t pool_ceil_divide(int32_t a, int32_t b) {
    return a <= 0 ? 0 : (a + b - 1) / b;
}

DEVICE struct pool_span pool_span_of(const struct cuda_pool_args *a, uint32_t d, uint32_t output) {
    const int32_t dilation = (int32_t)a->dilation[d], kernel = (int32_t)a->kernel[d];
    struct pool_span span;
    span.start = (int32_t)(output * a->stride[d]) - (int32_t)a->pad_begin[d];
    const int32_t left = (int32_t)a->input[d] - span.start;
    span.first = pool_ceil_divide(-span.start, dilation);
    const int32_t last = pool_ceil_divide(left, dilation);
    span.last = last < kernel ? last : kernel;
    if (span.last < span.first) span.last = span.first;
    const int32_t counted = pool_ceil_divide(left + (int32_t)a->pad_end[d], dilation);
    span.counted = counted < kernel ? counted : kernel;
    return span;
}

// Splits the position i of a plane.
DEVICE void pool_split(const uint32_t *sizes, uint32_t i, uint32_t *at) {
    at[2] = i % sizes[2];
    at[1] = i / sizes[2] % sizes[1];
    at[0] = i / sizes[2] / sizes[1];
}

DEVICE void pool_window_of(const struct cuda_pool_args *a, const uint32_t *output,
                           struct pool_span *spans) {
    for (uint32_t d = 0; d < 3; d++)
        spans[d] = pool_span_of(a, d, output[d]);
}

// The taps that an average divides by.
DEVICE float pool_divisor(const struct cuda_pool_args *a, const struct pool_span *s) {
    int32_t count = (s[0].last - s[0].first) * (s[1].last - s[1].first) * (s[2].last - s[2].first);
    if (a->counts_pads) count = s[0].counted * s[1].counted * s[2].counted;
    return count > 0 ? (float)count : 1.0f;
}

// Each tap of a window inside the input, at `at` of its plane, in row-major order.
#define POOL_EACH_TAP(a, s, at)                                                                    \
    for (int32_t k0 = (s)[0].first; k0 < (s)[0].last; k0++)                                        \
        for (int32_t k1 = (s)[1].first; k1 < (s)[1].last; k1++)                                    \
            for (int32_t k2 = (s)[2].first,                                                        \
                         at = pool_row(a, s, k0, k1) + k2 * (int32_t)(a)->dilation[2];             \
                 k2 < (s)[2].last; k2++, at += (int32_t)(a)->dilation[2])

// Where tap (k0, k1, 0) would be.
DEVICE int32_t pool_row(const struct cuda_pool_args *a, const struct pool_span *s, int32_t k0,
                        int32_t k1) {
    const int32_t z = s[0].start + k0 * (int32_t)a->dilation[0];
    const int32_t y = s[1].start + k1 * (int32_t)a->dilation[1];
    return (z * (int32_t)a->input[1] + y) * (int32_t)a->input[2] + s[2].start;
}

// Where the largest is: the first of equals, and what is not a number before all; -1: no tap is
// inside.
DEVICE int32_t pool_largest(const struct cuda_pool_args *a, const struct pool_span *s,
                            const float *x) {
    int32_t best = -1;
    POOL_EACH_TAP(a, s, at) {
        if (best < 0 || x[at] > x[best] || x[at] != x[at]) best = at;
    }
    return best;
}

DEVICE float pool_sum(const struct cuda_pool_args *a, const struct pool_span *s, const float *x) {
    float sum = 0.0f;
    POOL_EACH_TAP(a, s, at) sum += x[at];
    return sum;
}

KERNEL(pool, cuda_pool_args) {
    const uint32_t volume = window_volume(a.output);
    EACH(i, a.planes * volume) {
        struct pool_span spans[3];
        uint32_t output[3];
        const uint64_t first = i / volume * window_volume(a.input);
        pool_split(a.output, (uint32_t)(i % volume), output);
        pool_window_of(&a, output, spans);
        if (a.what == PEN_CUDA_POOL_AVERAGE) {
            store(a.y, i, pool_sum(&a, spans, a.x + first) / pool_divisor(&a, spans), a.adds);
            continue;
        }
        const int32_t best = pool_largest(&a, spans, a.x + first);
        const float lowest = float_of_bits(0xff800000u);
        store(a.y, i, best < 0 ? lowest : a.x[first + (uint32_t)best], a.adds);
        if (a.indices) a.indices[i] = best < 0 ? -1 : (int64_t)(first + (uint32_t)best);
    }
}

// The first of a window that is not below its maximum.
DEVICE int32_t pool_first(const struct cuda_pool_args *a, const struct pool_span *s, const float *x,
                          float maximum) {
    POOL_EACH_TAP(a, s, at) {
        if (!(x[at] < maximum)) return at;
    }
    return -1;
}

// What the element `at` of a plane gets of an output position whose window it is in.
DEVICE float pool_part(const struct cuda_pool_args *a, uint64_t plane, const uint32_t *output,
                       uint32_t at) {
    struct pool_span spans[3];
    const uint64_t from = plane * window_volume(a->output) +
                          (output[0] * a->output[1] + output[1]) * a->output[2] + output[2];
    pool_window_of(a, output, spans);
    if (a->what == PEN_CUDA_POOL_AVERAGE) return a->dy[from] / pool_divisor(a, spans);
    const float *x = a->x + plane * window_volume(a->input);
    const float maximum = a->maxima[from];
    if (x[at] < maximum || pool_first(a, spans, x, maximum) != (int32_t)at) return 0.0f;
    return a->dy[from];
}

// Output positions [first, last) whose windows may hold a position, which is `at` behind the
// beginning of the front pad.
struct pool_range {
    uint32_t at, first, last;
};

DEVICE struct pool_range pool_range_of(const struct cuda_pool_args *a, uint32_t d, uint32_t i) {
    struct pool_range range;
    range.at = i + a->pad_begin[d];
    const uint32_t reach = (a->kernel[d] - 1) * a->dilation[d];
    range.first = range.at > reach ? (range.at - reach + a->stride[d] - 1) / a->stride[d] : 0;
    range.last = range.at / a->stride[d] + 1;
    if (range.last > a->output[d]) range.last = a->output[d];
    return range;
}

// Whether a tap of output position o is there, which a dilation may prevent.
DEVICE uint32_t pool_holds(const struct cuda_pool_args *a, uint32_t d,
                           const struct pool_range *range, uint32_t o) {
    return (range->at - o * a->stride[d]) % a->dilation[d] == 0;
}

KERNEL(pool_backward, cuda_pool_args) {
    const uint32_t volume = window_volume(a.input);
    EACH(i, a.planes * volume) {
        struct pool_range range[3];
        uint32_t at[3], o[3];
        float sum = 0.0f;
        pool_split(a.input, (uint32_t)(i % volume), at);
        for (uint32_t d = 0; d < 3; d++)
            range[d] = pool_range_of(&a, d, at[d]);
        for (o[0] = range[0].first; o[0] < range[0].last; o[0]++) {
            for (o[1] = range[1].first; o[1] < range[1].last; o[1]++) {
                for (o[2] = range[2].first; o[2] < range[2].last; o[2]++) {
                    uint32_t holds = 1;
                    for (uint32_t d = 0; d < 3; d++)
                        holds = holds && pool_holds(&a, d, &range[d], o[d]);
                    if (holds) sum += pool_part(&a, i / volume, o, (uint32_t)(i % volume));
                }
            }
        }
        store(a.y, i, sum, a.adds);
    }
}

// Whole planes: a warp takes one, in pieces of 64 elements a lane.
KERNEL(plane, cuda_plane_args) {
    const uint32_t lane = THREAD % 32, warps = THREADS / 32;
    for (uint64_t plane = (uint64_t)BLOCK_X * warps + THREAD / 32; plane < a.planes;
         plane += (uint64_t)BLOCKS_X * warps) {
        const float *x = a.x + plane * a.size;
        float sum = 0.0f, piece = 0.0f, largest = x[0];
        uint32_t taken = 0;
        for (uint64_t i = lane; i < a.size; i += 32) {
            largest = x[i] > largest || x[i] != x[i] ? x[i] : largest;
            piece += x[i];
            if (++taken % 64 != 0) continue;
            sum += piece;
            piece = 0.0f;
        }
        const float y =
            a.what == PEN_CUDA_POOL_MAX ? warp_largest(largest) : warp_sum(sum + piece) / a.divisor;
        if (lane == 0) store(a.y, plane, y, a.adds);
    }
}
