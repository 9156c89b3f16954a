// Elementary functions on float32, written without branches so that the compiler vectorises loops
// over them. Errors are at most 2 units in the last place (tests/device/cpu/vector_math_test.c);
// special values are those of the C library. The polynomials were fitted for least relative error
// on the intervals named.
//
// Include after nothing in particular; all functions are static inline.
#ifndef PEN_DEVICE_CPU_KERNELS_LOOPS_VECTOR_MATH_H
#define PEN_DEVICE_CPU_KERNELS_LOOPS_VECTOR_MATH_H

#include <math.h>
#include <stdint.h>
#include <string.h>

static inline int32_t vector_bits(float x) {
    int32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}
static inline float vector_of_bits(int32_t bits) {
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

// 2^n for n in [-126, 127]. (Integers here are unsigned where not a number could overflow them.)
static inline float vector_power_of_2(int32_t n) {
    return vector_of_bits((int32_t)(((uint32_t)n + 127u) << 23));
}

// n, the integer nearest to x / ln 2, and r = x - n ln 2, for |x| <= 110.
static inline int32_t vector_split_exp(float x, float *out_rest) {
    const float magic = 12582912.0f; // 1.5 * 2^23: adding it rounds to an integer in the low bits
    const float shifted = x * 1.44269504f + magic;
    const float n = shifted - magic;
    *out_rest = x - n * 0.693359375f - n * -2.12194440e-4f; // ln 2 in two parts
    return (int32_t)((uint32_t)vector_bits(shifted) - (uint32_t)vector_bits(magic));
}

// (e^r - 1 - r) / r^2 on |r| <= ln 2 / 2.
static inline float vector_exp_tail(float r) {
    float p = 0.0013813142f;
    p = p * r + 0.008369419f;
    p = p * r + 0.0416684568f;
    p = p * r + 0.1666651479f;
    return p * r + 0.4999999305f;
}

static inline float vector_exp(float x) {
    // beyond these the result is 0 or infinite anyway; not a number passes both tests
    const float low = x < -104.0f ? -104.0f : x;
    const float held = low > 89.0f ? 89.0f : low;
    float r;
    const int32_t n = vector_split_exp(held, &r);
    const float y = vector_exp_tail(r) * (r * r) + r + 1.0f;
    const int32_t half = n >> 1; // in two steps: 2^n itself may be out of range
    return y * vector_power_of_2(half) * vector_power_of_2(n - half);
}

// e^x - 1 without cancellation near 0.
static inline float vector_expm1(float x) {
    const float held = x > 88.5f ? 88.5f : x < -20.0f ? -20.0f : x;
    float r;
    const int32_t n = vector_split_exp(held, &r);
    const float tail = vector_exp_tail(r) * (r * r) + r; // e^r - 1
    const float scale = vector_power_of_2(n > 127 ? 127 : n);
    const float twice = n > 127 ? 2.0f : 1.0f;
    const float y = (tail * scale + (scale - 0.5f * (2.0f / twice))) * twice;
    return x > 88.722839f ? INFINITY : y;
}

// (log(1 + f) - f + f^2 / 2) / f^3 on sqrt(1/2) - 1 <= f <= sqrt(2) - 1.
static inline float vector_log_tail(float f) {
    float p = 0.0674660124f;
    p = p * f - 0.1167564127f;
    p = p * f + 0.1188817462f;
    p = p * f - 0.1240559142f;
    p = p * f + 0.1421955091f;
    p = p * f - 0.1666799567f;
    p = p * f + 0.2000211873f;
    p = p * f - 0.250000096f;
    return p * f + 0.333333126f;
}

static inline float vector_log(float x) {
    const int is_small = x < 1.17549435e-38f; // not normal: 0, negative, or denormal
    const float scaled = is_small ? x * 8388608.0f : x;
    // exponent such that the mantissa is in [sqrt(1/2), sqrt(2))
    const int32_t bits = (int32_t)((uint32_t)vector_bits(scaled) - 0x3f3504f3u);
    const float e = (float)(bits >> 23) - (is_small ? 23.0f : 0.0f);
    const float f = vector_of_bits((bits & 0x007fffff) + 0x3f3504f3) - 1.0f;
    const float z = f * f;
    float y = vector_log_tail(f) * f * z;
    y = y + e * -2.12194440e-4f - 0.5f * z;
    y = f + y + e * 0.693359375f;
    y = x == 0.0f ? -INFINITY : y;
    y = x < 0.0f ? NAN : y;
    return x < INFINITY ? y : x; // infinite, or not a number
}

// log(1 + x) for x >= 0.
static inline float vector_log1p(float x) {
    const float u = 1.0f + x;
    const float lost = x - (u - 1.0f); // what the sum dropped
    const float y = vector_log(u) + lost / u;
    return u < INFINITY ? y : u;
}

static inline float vector_tanh(float x) {
    const float a = fabsf(x);
    const float z = x * x;
    float p = 0.0020595825f; // (tanh x - x) / x^3 on |x| <= 0.65
    p = p * z - 0.0080856286f;
    p = p * z + 0.0216634041f;
    p = p * z - 0.0539399428f;
    p = p * z + 0.1333315218f;
    p = p * z - 0.3333332944f;
    const float near = copysignf(x + x * z * p, x); // keeps the sign of 0
    const float far = 1.0f - 2.0f / (vector_exp(2.0f * a) + 1.0f);
    return a < 0.65f ? near : copysignf(far, x);
}

static inline float vector_sigmoid(float x) {
    return 1.0f / (1.0f + vector_exp(-x));
}

// log(1 + e^x)
static inline float vector_softplus(float x) {
    return (x > 0.0f ? x : 0.0f) + vector_log1p(vector_exp(-fabsf(x)));
}

// Two polynomials, near and far, both computed and one chosen, so that a vector's lanes need not
// part.
static inline float vector_erf(float x) {
    const float a = fabsf(x);
    const float z = x * x;
    float p = 7.8534296500e-05f; // erf(x) / x - 1 on |x| <= 1
    p = p * z - 8.0100519219e-04f;
    p = p * z + 5.1883097570e-03f;
    p = p * z - 2.6853801014e-02f;
    p = p * z + 1.1283584824e-01f;
    p = p * z - 3.7612625783e-01f;
    p = p * z + 1.283791657e-01f;
    const float b = a > 4.1f ? 4.1f : a;
    float q = -2.1445591647e-05f; // log(1 - erf(a)) on 0.95 <= a <= 4.1; beyond, erf rounds to 1
    q = q * b + 4.3853021001e-04f;
    q = q * b - 4.1908569720e-03f;
    q = q * b + 2.5171811638e-02f;
    q = q * b - 1.0836155655e-01f;
    q = q * b - 6.3327241028e-01f;
    q = q * b - 1.1295520430e+00f;
    q = q * b + 1.8246048289e-04f;
    const float far = copysignf(1.0f - vector_exp(q), x);
    return a < 1.0f ? x + x * p : a >= 1.0f ? far : x;
}

#endif // PEN_DEVICE_CPU_KERNELS_LOOPS_VECTOR_MATH_H
