// Element by element.

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
