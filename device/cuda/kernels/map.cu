// Element by element.

#define EACH(i, count)                                                                             \
    for (uint64_t i = (uint64_t)BLOCK_X * THREADS + THREAD; i < (count);                           \
         i += (uint64_t)BLOCKS_X * THREADS)

KERNEL(relu, cuda_map_args) {
    EACH(i, a.count) {
        const float x = a.x[i];
        store(a.y, i, x > 0.0f || x != x ? x : 0.0f, a.adds);
    }
}

KERNEL(relu_backward, cuda_map_args) {
    EACH(i, a.count) store(a.y, i, a.x[i] > 0.0f ? a.dy[i] : 0.0f, a.adds);
}

KERNEL(pair, cuda_pair_args) {
    EACH(i, a.count) {
        const float x = a.a[i / a.a_each % a.a_count], z = a.b[i / a.b_each % a.b_count];
        const float y = a.what == PEN_CUDA_ADD   ? x + z
                        : a.what == PEN_CUDA_SUB ? x - z
                        : a.what == PEN_CUDA_MUL ? x * z
                                                 : x / z;
        store(a.y, i, y, a.adds);
    }
}

KERNEL(magnitude, cuda_magnitude_args) {
    uint32_t largest = 0;
    EACH(i, a.count) {
        const uint32_t bits = bits_of_float(a.x[i]) & 0x7fffffffu;
        largest = bits > largest ? bits : largest;
    }
    if (largest > 0) raise_to(a.largest, largest);
}

// p = p - rate * g, as graph/ops/training/optimizer_op.c has it. A scale below 0 applies nothing.
KERNEL(sgd, cuda_sgd_args) {
    const float rate = (float)((a.wide & 1 ? *(const double *)a.rate : (double)*(const float *)a.rate) *
                               a.rate_scale);
    float scale = 1.0f;
    if (a.scale)
        scale = a.wide & 2 ? (float)*(const double *)a.scale : *(const float *)a.scale;
    EACH(i, a.count) {
        const float p = a.p[i];
        float g = a.gradient[i] * scale, v = a.v ? a.v[i] : 0.0f;
        if (!(scale < 0.0f)) {
            if (a.most > 0.0f) g = g < -a.most ? -a.most : g > a.most ? a.most : g;
            g = g + a.decay * p;
            if (a.v) {
                v = a.momentum * v + g;
                g = a.nesterov ? g + a.momentum * v : v;
            }
        }
        a.p_new[i] = scale < 0.0f ? p : p - rate * g;
        if (a.v_new) a.v_new[i] = v;
    }
}
