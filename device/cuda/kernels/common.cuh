// What several kernels use.

// The elements that a thread takes of `count`.
#define EACH(i, count)                                                                             \
    for (uint64_t i = (uint64_t)BLOCK_X * THREADS + THREAD; i < (count);                           \
         i += (uint64_t)BLOCKS_X * THREADS)

// Sets or adds.
DEVICE void store(float *y, uint64_t i, float value, uint32_t adds) {
    y[i] = adds ? y[i] + value : value;
}

// Of `lanes` neighbours in a warp, a power of two; in each of them.
DEVICE float lanes_sum(float v, int lanes) {
    for (int o = lanes / 2; o > 0; o >>= 1)
        v += from_lane_xor(v, o);
    return v;
}

DEVICE float lanes_largest(float v, int lanes) {
    for (int o = lanes / 2; o > 0; o >>= 1) {
        const float other = from_lane_xor(v, o);
        v = other > v || other != other ? other : v;
    }
    return v;
}

DEVICE float warp_sum(float v) {
    return lanes_sum(v, 32);
}

DEVICE float warp_largest(float v) {
    return lanes_largest(v, 32);
}

// The sum of all threads' v, in each of them; always the same order of additions. `room` has a
// float for each warp.
DEVICE float block_sum(float v, float *room) {
    v = warp_sum(v);
    if (THREAD % 32 == 0) room[THREAD / 32] = v;
    barrier();
    v = warp_sum(THREAD % 32 < THREADS / 32 ? room[THREAD % 32] : 0.0f);
    barrier(); // the room is used again
    return v;
}

// The same in double, of a room with a double for each thread.
DEVICE double block_sum_wide(double v, double *room) {
    room[THREAD] = v;
    barrier();
    for (uint32_t half = PEN_CUDA_BLOCK / 2; half > 0; half /= 2) {
        if (THREAD < half) room[THREAD] += room[THREAD + half];
        barrier();
    }
    v = room[0];
    barrier(); // the room is used again
    return v;
}

// The largest, or what is not a number where one is.
DEVICE float block_largest(float v, float *room) {
    v = warp_largest(v);
    if (THREAD % 32 == 0) room[THREAD / 32] = v;
    barrier();
    v = warp_largest(room[THREAD % 32 < THREADS / 32 ? THREAD % 32 : 0]);
    barrier();
    return v;
}

// e^x, within two units of the last place: x = k ln 2 + r, a polynomial in r, and k in the
// exponent.
DEVICE float exponential(float x) {
    if (x != x) return x;
    if (x > 88.72283f) return float_of_bits(0x7f800000u);
    if (x < -103.97208f) return 0.0f;
    const float k = multiply_add(x, 1.44269504f, 12582912.0f) - 12582912.0f;
    const float r = multiply_add(k, -1.42860677e-6f, multiply_add(k, -0.693145752f, x));
    float p = 1.98412698e-4f;
    p = multiply_add(p, r, 1.38888889e-3f);
    p = multiply_add(p, r, 8.33333333e-3f);
    p = multiply_add(p, r, 4.16666667e-2f);
    p = multiply_add(p, r, 1.66666667e-1f);
    p = multiply_add(p, r, 0.5f);
    p = multiply_add(p, r, 1.0f);
    p = multiply_add(p, r, 1.0f);
    // in two steps, for what is below or above the exponents that there are
    const int32_t whole = (int32_t)k, half = whole / 2;
    return p * float_of_bits((uint32_t)(half + 127) << 23) *
           float_of_bits((uint32_t)(whole - half + 127) << 23);
}

// The logarithm of an x from 1 to 2^100: x = 2^k m, and s = (m - 1) / (m + 1).
DEVICE float logarithm(float x) {
    if (!(x < float_of_bits(0x7f800000u))) return x;
    uint32_t bits = bits_of_float(x);
    int32_t k = (int32_t)(bits >> 23) - 127;
    float m = float_of_bits((bits & 0x7fffffu) | 0x3f800000u);
    if (m > 1.41421356f) {
        m *= 0.5f;
        k += 1;
    }
    const float s = (m - 1.0f) / (m + 1.0f), z = s * s;
    float p = 0.111111111f;
    p = multiply_add(p, z, 0.142857143f);
    p = multiply_add(p, z, 0.2f);
    p = multiply_add(p, z, 0.333333333f);
    p = multiply_add(p, z, 1.0f);
    return multiply_add((float)k, 0.693145752f,
                        multiply_add((float)k, 1.42860677e-6f, 2.0f * s * p));
}

// Positions of a window, or of a plane.
DEVICE uint32_t window_volume(const uint32_t *sizes) {
    return sizes[0] * sizes[1] * sizes[2];
}

DEVICE float magnitude_of(float x) {
    return float_of_bits(bits_of_float(x) & 0x7fffffffu);
}

// `size`, at least 0, with the sign of x.
DEVICE float signed_like(float size, float x) {
    return float_of_bits(bits_of_float(size) | (bits_of_float(x) & 0x80000000u));
}

// The polynomials of tangent_h and error_function are those of the host's kernels (vector_math.h).
DEVICE float tangent_h(float x) {
    const float size = magnitude_of(x), z = x * x;
    if (!(size < 0.65f)) return signed_like(1.0f - 2.0f / (exponential(2.0f * size) + 1.0f), x);
    float p = 0.0020595825f; // (tanh x - x) / x^3
    p = multiply_add(p, z, -0.0080856286f);
    p = multiply_add(p, z, 0.0216634041f);
    p = multiply_add(p, z, -0.0539399428f);
    p = multiply_add(p, z, 0.1333315218f);
    p = multiply_add(p, z, -0.3333332944f);
    return multiply_add(x * z, p, x);
}

DEVICE float sigmoid_of(float x) {
    return 1.0f / (1.0f + exponential(-x));
}

DEVICE float error_function(float x) {
    const float size = magnitude_of(x), z = x * x;
    if (x != x) return x;
    if (size < 1.0f) {
        float p = 7.8534296500e-05f; // erf(x) / x - 1
        p = multiply_add(p, z, -8.0100519219e-04f);
        p = multiply_add(p, z, 5.1883097570e-03f);
        p = multiply_add(p, z, -2.6853801014e-02f);
        p = multiply_add(p, z, 1.1283584824e-01f);
        p = multiply_add(p, z, -3.7612625783e-01f);
        p = multiply_add(p, z, 1.283791657e-01f);
        return multiply_add(x, p, x);
    }
    const float b = size > 4.1f ? 4.1f : size;
    float q = -2.1445591647e-05f; // log(1 - erf(b)) from 0.95 to 4.1; beyond, erf rounds to 1
    q = multiply_add(q, b, 4.3853021001e-04f);
    q = multiply_add(q, b, -4.1908569720e-03f);
    q = multiply_add(q, b, 2.5171811638e-02f);
    q = multiply_add(q, b, -1.0836155655e-01f);
    q = multiply_add(q, b, -6.3327241028e-01f);
    q = multiply_add(q, b, -1.1295520430e+00f);
    q = multiply_add(q, b, 1.8246048289e-04f);
    return signed_like(1.0f - exponential(q), x);
}

// ---- random numbers: those of base/random.c

struct random_numbers {
    uint32_t c0, c1, c2, c3;
};

// Block `counter` of a stream: Philox4x32-10.
DEVICE struct random_numbers random_block(struct cuda_random key, uint64_t counter) {
    struct random_numbers c;
    uint32_t k0 = (uint32_t)key.seed, k1 = (uint32_t)(key.seed >> 32);
    c.c0 = (uint32_t)counter;
    c.c1 = (uint32_t)(counter >> 32);
    c.c2 = (uint32_t)key.stream;
    c.c3 = (uint32_t)(key.stream >> 32);
    for (int round = 0; round < 10; round++) {
        const uint64_t p0 = (uint64_t)0xD2511F53u * c.c0;
        const uint64_t p1 = (uint64_t)0xCD9E8D57u * c.c2;
        c.c0 = (uint32_t)(p1 >> 32) ^ c.c1 ^ k0;
        c.c2 = (uint32_t)(p0 >> 32) ^ c.c3 ^ k1;
        c.c1 = (uint32_t)p1;
        c.c3 = (uint32_t)p0;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    return c;
}

DEVICE uint32_t random_one(const struct random_numbers *drawn, uint32_t k) {
    return k < 2 ? k == 0 ? drawn->c0 : drawn->c1 : k == 2 ? drawn->c2 : drawn->c3;
}

// Number `index` of a stream, uniform in [0, 2^24): pen_random_uniform times 2^24.
DEVICE uint32_t random_24_bits(struct cuda_random key, uint64_t index) {
    const struct random_numbers drawn = random_block(key, index / 4);
    return random_one(&drawn, (uint32_t)(index % 4)) >> 8;
}
