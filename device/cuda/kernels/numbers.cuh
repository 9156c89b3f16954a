// Functions of a number, made of operations that have the same bits on a GPU and on the host.

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

// The logarithm of an x that is a normal number: x = 2^k m, and s = (m - 1) / (m + 1).
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

DEVICE float natural_log(float x) {
    if (x != x || x < 0.0f) return float_of_bits(0x7fc00000u);
    if (x == 0.0f) return -float_of_bits(0x7f800000u);
    return x < 1.17549435e-38f ? logarithm(x * 8388608.0f) - 15.9423851f : logarithm(x);
}

// log(1 + x): what is lost where 1 + x is rounded is put back.
DEVICE float log_of_one_and(float x) {
    const float one_and = 1.0f + x;
    return one_and == 1.0f ? x : natural_log(one_and) * (x / (one_and - 1.0f));
}

DEVICE float magnitude_of(float x) {
    return float_of_bits(bits_of_float(x) & 0x7fffffffu);
}

// `size`, at least 0, with the sign of x.
DEVICE float signed_like(float size, float x) {
    return float_of_bits(bits_of_float(size) | (bits_of_float(x) & 0x80000000u));
}

// e^x - 1, and ln(1 + e^x).
DEVICE float exponential_less_one(float x) {
    const float all = exponential(x), rest = all - 1.0f;
    if (all == 1.0f) return x;
    return rest == -1.0f || x > 1.0f ? rest : rest * (x / logarithm(all));
}

DEVICE float softplus_of(float x) {
    return (x > 0.0f ? x : 0.0f) + log_of_one_and(exponential(-magnitude_of(x)));
}

// ---- sines

// x = k pi / 2 + rest, where k ends in `quarter`; by way of double, exact enough to about 2^40.
struct number_turn {
    uint32_t quarter;
    float rest;
};

DEVICE struct number_turn turn_of(float x) {
    const float size = magnitude_of(x);
    struct number_turn turn = {0, x - x}; // what is infinite has none
    if (!(size < 1.0e15f)) return turn;
    const double k = (double)x * 0.636619772367581343 + 6755399441055744.0 - 6755399441055744.0;
    turn.quarter = (uint32_t)((int64_t)k & 3);
    turn.rest = (float)((double)x - k * 1.57079632673412561 - k * 6.07710050650619224e-11);
    return turn;
}

DEVICE float sine_of_turn(uint32_t quarter, float r) {
    const float z = r * r;
    float y;
    if (quarter % 2 == 0) {
        y = multiply_add(-1.9515295891e-4f, z, 8.3321608736e-3f);
        y = multiply_add(y, z, -1.6666654611e-1f);
        y = multiply_add(y * z, r, r);
    } else {
        y = multiply_add(2.443315711809948e-5f, z, -1.388731625493765e-3f);
        y = multiply_add(y, z, 4.166664568298827e-2f);
        y = multiply_add(y * z, z, multiply_add(-0.5f, z, 1.0f));
    }
    return quarter & 2u ? -y : y;
}

DEVICE float sine_of(float x) {
    const struct number_turn turn = turn_of(x);
    return sine_of_turn(turn.quarter, turn.rest);
}

DEVICE float cosine_of(float x) {
    const struct number_turn turn = turn_of(x);
    return turn.rest == turn.rest ? sine_of_turn((turn.quarter + 1) & 3u, turn.rest) : turn.rest;
}

DEVICE float tangent_of(float x) {
    const struct number_turn turn = turn_of(x);
    return sine_of_turn(turn.quarter, turn.rest) / sine_of_turn((turn.quarter + 1) & 3u, turn.rest);
}

// Polynomials of these and of the hyperbolic ones are those of Cephes.
DEVICE float arc_sine_series(float x) {
    const float z = x * x;
    float p = 4.2163199048e-2f;
    p = multiply_add(p, z, 2.4181311049e-2f);
    p = multiply_add(p, z, 4.5470025998e-2f);
    p = multiply_add(p, z, 7.4953002686e-2f);
    p = multiply_add(p, z, 1.6666752422e-1f);
    return multiply_add(p * z, x, x);
}

// Above a half by the half angle, whose sine is small.
DEVICE float arc_cosine_of_size(float size) {
    return 2.0f * arc_sine_series(square_root(0.5f * (1.0f - size)));
}

DEVICE float arc_sine_of(float x) {
    const float size = magnitude_of(x);
    if (!(size > 0.5f)) return arc_sine_series(x);
    return signed_like(1.57079633f - arc_cosine_of_size(size), x);
}

DEVICE float arc_cosine_of(float x) {
    const float size = magnitude_of(x);
    if (!(size > 0.5f)) return 1.57079633f - arc_sine_series(x);
    const float small = arc_cosine_of_size(size);
    return x < 0.0f ? 3.14159265f - small : small;
}

// By the tangent of an angle that is an eighth of a turn less, or a quarter.
DEVICE float arc_tangent_of(float x) {
    const float size = magnitude_of(x);
    float turned = 0.0f, t = size;
    if (size > 2.41421356f) {
        turned = 1.57079633f;
        t = -1.0f / size;
    } else if (size > 0.414213562f) {
        turned = 0.785398163f;
        t = (size - 1.0f) / (size + 1.0f);
    }
    const float z = t * t;
    float p = 8.05374449538e-2f;
    p = multiply_add(p, z, -1.38776856032e-1f);
    p = multiply_add(p, z, 1.99777106478e-1f);
    p = multiply_add(p, z, -3.33329491539e-1f);
    return x == x ? signed_like(turned + multiply_add(p * z, t, t), x) : x;
}

// ---- hyperbolic functions

// Half of e^size, also where that of the whole is too large.
DEVICE float half_exponential(float size) {
    const float root = exponential(0.5f * size);
    return size > 80.0f ? 0.5f * root * root : 0.5f * exponential(size);
}

DEVICE float hyperbolic_sine_of(float x) {
    const float size = magnitude_of(x), z = x * x;
    if (size > 1.0f) {
        const float half = half_exponential(size);
        return signed_like(half - 0.25f / half, x);
    }
    float p = 2.03721912945e-4f;
    p = multiply_add(p, z, 8.33028376239e-3f);
    p = multiply_add(p, z, 1.66667160211e-1f);
    return multiply_add(p * z, x, x);
}

DEVICE float hyperbolic_cosine_of(float x) {
    const float half = half_exponential(magnitude_of(x));
    return half + 0.25f / half;
}

DEVICE float area_sine_of(float x) {
    const float size = magnitude_of(x), z = x * x;
    if (size > 1500.0f) return signed_like(natural_log(size) + 0.693147181f, x);
    if (size > 0.5f) return signed_like(natural_log(size + square_root(z + 1.0f)), x);
    float p = 2.0122003309e-2f;
    p = multiply_add(p, z, -4.2699340972e-2f);
    p = multiply_add(p, z, 7.4847586088e-2f);
    p = multiply_add(p, z, -1.6666288134e-1f);
    return multiply_add(p * z, x, x);
}

DEVICE float area_cosine_of(float x) {
    const float z = x - 1.0f;
    if (x > 1500.0f) return natural_log(x) + 0.693147181f;
    if (!(z < 0.5f)) return natural_log(x + square_root(z * (x + 1.0f)));
    float p = 1.7596881071e-3f;
    p = multiply_add(p, z, -7.5272886713e-3f);
    p = multiply_add(p, z, 2.6454905019e-2f);
    p = multiply_add(p, z, -1.1784741703e-1f);
    p = multiply_add(p, z, 1.4142135263f);
    return p * square_root(z); // no number below 1
}

DEVICE float area_tangent_of(float x) {
    const float z = x * x;
    if (!(z < 0.25f)) return 0.5f * natural_log((1.0f + x) / (1.0f - x));
    float p = 1.81740078349e-1f;
    p = multiply_add(p, z, 8.24370301058e-2f);
    p = multiply_add(p, z, 1.46691431730e-1f);
    p = multiply_add(p, z, 1.99782164500e-1f);
    p = multiply_add(p, z, 3.33337300303e-1f);
    return multiply_add(p * z, x, x);
}

// ---- powers, by way of double

// The logarithm of 2^k m, of an m from 1 to 2.
DEVICE double wide_log_of(double k, double m) {
    if (m > 1.4142135623730951) {
        m *= 0.5;
        k += 1.0;
    }
    const double s = (m - 1.0) / (m + 1.0), z = s * s;
    double p = 1.0 / 17.0;
    UNROLLED
    for (int32_t n = 15; n > 0; n -= 2)
        p = p * z + 1.0 / (double)n;
    return k * 0.693147180559945309 + 2.0 * s * p;
}

// The logarithm of an x above 0 that is finite.
DEVICE double wide_log(float x) {
    const uint32_t is_small = x < 1.17549435e-38f;
    const uint32_t bits = bits_of_float(is_small ? x * 8388608.0f : x);
    const double k = (double)((int32_t)(bits >> 23) - 127 - (is_small ? 23 : 0));
    return wide_log_of(k, (double)float_of_bits((bits & 0x7fffffu) | 0x3f800000u));
}

// The logarithm of an x from 2^-54 to 1. The float next to it may be twice what it is divided by.
DEVICE double wide_log_below_one(double x) {
    const int32_t k = (int32_t)(bits_of_float((float)x) >> 23) - 127;
    return wide_log_of((double)k, x * (double)float_of_bits((uint32_t)(127 - k) << 23));
}

// The cosine of part 2^-32 of a turn: a sine or cosine of at most an eighth, by its series.
DEVICE double wide_cosine_of_turn(uint32_t part) {
    const uint64_t quarter = ((uint64_t)part + 0x20000000u) >> 30;
    const double r =
        (double)((int64_t)part - (int64_t)(quarter << 30)) * (1.57079632679489662 / 1073741824.0);
    const double is_sine = (double)(quarter & 1), z = r * r;
    double p = 1.0;
    UNROLLED
    for (int32_t n = 16; n > 0; n -= 2)
        p = 1.0 - p * z / (((double)n + is_sine) * ((double)n - 1.0 + is_sine));
    if (quarter & 1) p *= r;
    return quarter == 1 || quarter == 2 ? -p : p;
}

// e^x of an x from -80 to 80.
DEVICE double wide_exp(double x) {
    const double k = x * 1.44269504088896341 + 6755399441055744.0 - 6755399441055744.0;
    const double r = x - k * 0.693147180559945309;
    double p = 1.0;
    UNROLLED
    for (int32_t n = 13; n > 0; n--)
        p = p * r * (1.0 / (double)n) + 1.0;
    return p * (double)float_of_bits((uint32_t)((int32_t)k + 127) << 23);
}

// x^y of a finite x above 0.
DEVICE float power_of_size(float x, double y) {
    const double t = x == 1.0f ? 0.0 : y * wide_log(x);
    if (t > 100.0) return float_of_bits(0x7f800000u);
    if (t < -110.0) return 0.0f;
    const double root = wide_exp(0.5 * t);
    return (float)(root * root);
}

// As pow of C has it. The exponent is a double, so that one that was an integer is odd or even as
// it was: (-1)^16777217 is -1, but 16777217 is no float.
DEVICE float power_of(float x, double y) {
    const float infinite = float_of_bits(0x7f800000u), size = magnitude_of(x);
    const double most = 9007199254740992.0; // 2^53: from there on all are whole, and even
    const uint32_t is_large = !(y < most && y > -most); // or not a number
    const int64_t whole = is_large ? 0 : (int64_t)y;
    const uint32_t is_whole = is_large || (double)whole == y, is_odd = is_whole && (whole & 1) != 0;
    if (y == 0.0 || x == 1.0f) return 1.0f;
    if (x != x || y != y) return x + (float)y;
    if (x < 0.0f && size < infinite && !is_whole) return float_of_bits(0x7fc00000u);
    float found = power_of_size(size > 0.0f && size < infinite ? size : 1.0f, y);
    if (size == 0.0f) found = y < 0.0 ? infinite : 0.0f;
    if (size == infinite) found = y < 0.0 ? 0.0f : infinite;
    return is_odd && bits_of_float(x) >> 31 ? -found : found;
}

// x as an operand of products: the nearest number that a pen_precision has, of two the even one.
// What is infinite, or not a number, stays so; what is too large becomes infinite.
DEVICE float rounded(float x, uint32_t precision) {
    const uint32_t bits = bits_of_float(x), exponent = bits & 0x7f800000u;
    if (precision == PEN_PRECISION_FLOAT32 || exponent == 0x7f800000u) return x;
    // below 2^-14 float16 has the multiples of 2^-24, as floats from 1/2 to 1 are
    if (precision == PEN_PRECISION_FLOAT16 && exponent < 0x38800000u)
        return signed_like(magnitude_of(x) + 0.5f - 0.5f, x);
    const uint32_t dropped = precision == PEN_PRECISION_BFLOAT16 ? 16 : 13;
    const uint32_t odd = bits >> dropped & 1, half = (1u << (dropped - 1)) - 1;
    const float y = float_of_bits((bits + half + odd) & ~((1u << dropped) - 1));
    const uint32_t is_too_large = precision == PEN_PRECISION_FLOAT16 && magnitude_of(y) > 65504.0f;
    return is_too_large ? signed_like(float_of_bits(0x7f800000u), x) : y;
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

// The remainder of x / y with the sign of x, exact. Of the larger fraction, shifted by as many bits
// as exponents differ, the remainder is taken by 40 bits at a time.
DEVICE float remainder_of(float x, float y) {
    const float infinite = float_of_bits(0x7f800000u);
    const float a = magnitude_of(x), b = magnitude_of(y);
    if (!(a < infinite) || !(b > 0.0f)) return float_of_bits(0x7fc00000u);
    if (a < b) return x;
    const uint32_t a_bits = bits_of_float(a), b_bits = bits_of_float(b);
    const uint32_t a_power = a_bits >> 23 ? a_bits >> 23 : 1,
                   b_power = b_bits >> 23 ? b_bits >> 23 : 1;
    const uint64_t a_whole = (a_bits & 0x7fffffu) | (a_bits >> 23 ? 0x800000u : 0);
    const uint64_t b_whole = (b_bits & 0x7fffffu) | (b_bits >> 23 ? 0x800000u : 0);
    uint64_t rest = a_whole % b_whole;
    for (uint32_t left = a_power - b_power; left > 0;) {
        const uint32_t bits = left < 40 ? left : 40;
        rest = (rest << bits) % b_whole;
        left -= bits;
    }
    return signed_like((float)rest * 1.1920929e-7f * float_of_bits(b_power << 23), x);
}
