// Functions of one number, and their derivatives: v is x or y of the function, as
// graph/ops/elementwise/unary_op.c and activation_op.c say; of gelu, swish and hard_swish it is x.

// A gate, and its slope, by which gelu and swish multiply x.
struct function_gate {
    float value, slope;
};

DEVICE struct function_gate gelu_gate(float x) {
    struct function_gate gate;
    gate.value = 0.5f * (1.0f + error_function(0.707106781f * x));
    gate.slope = 0.398942280f * exponential(-0.5f * x * x);
    return gate;
}

DEVICE struct function_gate gelu_tanh_gate(float x) {
    const float k = 0.797884561f, c = 0.044715f; // k = sqrt(2 / pi)
    const float t = tangent_h(k * (x + c * x * x * x));
    struct function_gate gate;
    gate.value = 0.5f * (1.0f + t);
    gate.slope = 0.5f * (1.0f - t * t) * k * (1.0f + 3.0f * c * x * x);
    return gate;
}

DEVICE struct function_gate swish_gate(float x, float alpha) {
    const float s = sigmoid_of(alpha * x);
    struct function_gate gate;
    gate.value = s;
    gate.slope = alpha * s * (1.0f - s);
    return gate;
}

DEVICE struct function_gate function_gate_of(uint32_t what, float x, float alpha) {
    if (what == PEN_CUDA_GELU) return gelu_gate(x);
    return what == PEN_CUDA_GELU_TANH ? gelu_tanh_gate(x) : swish_gate(x, alpha);
}

// Held to [0, 1].
DEVICE float function_unit(float x) {
    return x < 0.0f ? 0.0f : x > 1.0f ? 1.0f : x;
}

// The largest whole number that is not above x.
DEVICE float function_floor(float x) {
    if (!(magnitude_of(x) < 8388608.0f)) return x;
    const float whole = (float)(int32_t)x;
    return whole > x ? whole - 1.0f : whole;
}

// Halves to even; from 2^23 on all are whole.
DEVICE float function_round(float x) {
    const float size = magnitude_of(x);
    return size < 8388608.0f ? signed_like(size + 8388608.0f - 8388608.0f, x) : x;
}

DEVICE float function_sign(float x) {
    return x > 0.0f ? 1.0f : x < 0.0f ? -1.0f : x;
}

// Functions with a smooth end below 0.
DEVICE float function_bent(uint32_t what, float x, float alpha, float beta) {
    switch (what) {
    case PEN_CUDA_ELU:
        return x >= 0.0f ? x : alpha * exponential_less_one(x);
    case PEN_CUDA_CELU:
        return x >= 0.0f ? x : alpha * exponential_less_one(x / alpha);
    case PEN_CUDA_SELU:
        return x > 0.0f ? beta * x : beta * alpha * exponential_less_one(x);
    case PEN_CUDA_SOFTPLUS:
        return softplus_of(x);
    case PEN_CUDA_MISH:
        return x * tangent_h(softplus_of(x));
    default: // the logarithm of a sigmoid
        return -softplus_of(-x);
    }
}

DEVICE float function_bent_slope(uint32_t what, float v, float alpha, float beta) {
    switch (what) {
    case PEN_CUDA_ELU:
        return v > 0.0f ? 1.0f : alpha * exponential(v);
    case PEN_CUDA_CELU:
        return v > 0.0f ? 1.0f : exponential(v / alpha);
    case PEN_CUDA_SELU:
        return v > 0.0f ? beta : beta * alpha * exponential(v);
    case PEN_CUDA_SOFTPLUS:
        return sigmoid_of(v);
    case PEN_CUDA_MISH: {
        const float t = tangent_h(softplus_of(v));
        return t + v * (1.0f - t * t) * sigmoid_of(v);
    }
    default:
        return sigmoid_of(-v);
    }
}

// Functions of an angle, and hyperbolic ones, and their inverses.
DEVICE float function_of_angle(uint32_t what, float x) {
    switch (what) {
    case PEN_CUDA_TAN:
        return tangent_of(x);
    case PEN_CUDA_ASIN:
        return arc_sine_of(x);
    case PEN_CUDA_ACOS:
        return arc_cosine_of(x);
    case PEN_CUDA_ATAN:
        return arc_tangent_of(x);
    case PEN_CUDA_SINH:
        return hyperbolic_sine_of(x);
    case PEN_CUDA_COSH:
        return hyperbolic_cosine_of(x);
    case PEN_CUDA_ASINH:
        return area_sine_of(x);
    case PEN_CUDA_ACOSH:
        return area_cosine_of(x);
    default:
        return area_tangent_of(x);
    }
}

// What is squared and taken from 1 is a product, where v may be next to 1. Of a v that is large the
// 1 is lost, and its square may be infinite: the slope of 1e20 would be 0 instead of 1e-20.
DEVICE float function_slope_of_angle(uint32_t what, float v) {
    const float size = magnitude_of(v), large = 1e9f;
    switch (what) {
    case PEN_CUDA_TAN:
        return 1.0f + v * v;
    case PEN_CUDA_ASIN:
        return 1.0f / square_root((1.0f - v) * (1.0f + v));
    case PEN_CUDA_ACOS:
        return -1.0f / square_root((1.0f - v) * (1.0f + v));
    case PEN_CUDA_ATAN:
        return 1.0f / (1.0f + v * v);
    case PEN_CUDA_SINH:
        return hyperbolic_cosine_of(v);
    case PEN_CUDA_COSH:
        return hyperbolic_sine_of(v);
    case PEN_CUDA_ASINH:
        return 1.0f / (size > large ? size : square_root(v * v + 1.0f));
    case PEN_CUDA_ACOSH:
        return 1.0f / (size > large ? size : square_root((v - 1.0f) * (v + 1.0f)));
    default:
        return 1.0f / ((1.0f - v) * (1.0f + v));
    }
}

KERNEL(function, cuda_function_args) {
    EACH(i, a.count) {
        const float x = a.x[i];
        float y = x;
        switch (a.what) {
        case PEN_CUDA_NEG:
            y = -x;
            break;
        case PEN_CUDA_RELU:
            y = x > 0.0f || x != x ? x : 0.0f;
            break;
        case PEN_CUDA_ABS:
            y = magnitude_of(x);
            break;
        case PEN_CUDA_RECIPROCAL:
            y = 1.0f / x;
            break;
        case PEN_CUDA_SQRT:
            y = square_root(x);
            break;
        case PEN_CUDA_EXP:
            y = exponential(x);
            break;
        case PEN_CUDA_ERF:
            y = error_function(x);
            break;
        case PEN_CUDA_TANH:
            y = tangent_h(x);
            break;
        case PEN_CUDA_SIGMOID:
            y = sigmoid_of(x);
            break;
        case PEN_CUDA_LEAKY_RELU:
            y = x >= 0.0f ? x : a.alpha * x;
            break;
        case PEN_CUDA_HARD_SIGMOID:
            y = function_unit(a.alpha * x + a.beta);
            break;
        case PEN_CUDA_HARD_SWISH:
            y = x * function_unit(x / 6.0f + 0.5f);
            break;
        case PEN_CUDA_LOG:
            y = natural_log(x);
            break;
        case PEN_CUDA_SIN:
            y = sine_of(x);
            break;
        case PEN_CUDA_COS:
            y = cosine_of(x);
            break;
        case PEN_CUDA_SIGN:
            y = function_sign(x);
            break;
        case PEN_CUDA_FLOOR:
            y = function_floor(x);
            break;
        case PEN_CUDA_CEIL:
            y = -function_floor(-x);
            break;
        case PEN_CUDA_ROUND:
            y = function_round(x);
            break;
        case PEN_CUDA_TANH_SHRINK:
            y = x - tangent_h(x);
            break;
        case PEN_CUDA_SOFTSIGN:
            y = x / (1.0f + magnitude_of(x));
            break;
        case PEN_CUDA_THRESHOLDED_RELU:
            y = x <= a.alpha ? 0.0f : x;
            break;
        case PEN_CUDA_SHRINK:
            y = x < -a.alpha ? x + a.beta : x > a.alpha ? x - a.beta : 0.0f;
            break;
        case PEN_CUDA_GELU:
        case PEN_CUDA_GELU_TANH:
        case PEN_CUDA_SWISH:
            y = x * function_gate_of(a.what, x, a.alpha).value;
            break;
        default:
            y = a.what >= PEN_CUDA_TAN ? function_of_angle(a.what, x)
                                       : function_bent(a.what, x, a.alpha, a.beta);
            break;
        }
        store(a.y, i, y, a.adds);
    }
}

KERNEL(function_backward, cuda_function_args) {
    EACH(i, a.count) {
        const float v = a.x[i], dy = a.dy[i];
        float y = 0.0f;
        switch (a.what) {
        case PEN_CUDA_RELU:
            y = v > 0.0f ? dy : 0.0f;
            break;
        case PEN_CUDA_ABS:
            y = v > 0.0f ? dy : v < 0.0f ? -dy : dy * 0.0f;
            break;
        case PEN_CUDA_RECIPROCAL:
            y = -dy * v * v;
            break;
        case PEN_CUDA_SQRT:
            y = dy / (2.0f * v);
            break;
        case PEN_CUDA_EXP:
            y = dy * v;
            break;
        case PEN_CUDA_ERF:
            y = dy * 1.12837917f * exponential(-v * v);
            break;
        case PEN_CUDA_TANH:
            y = dy * (1.0f - v * v);
            break;
        case PEN_CUDA_SIGMOID:
            y = dy * v * (1.0f - v);
            break;
        case PEN_CUDA_LEAKY_RELU:
            y = v > 0.0f ? dy : a.alpha * dy;
            break;
        case PEN_CUDA_HARD_SIGMOID:
            y = v > 0.0f && v < 1.0f ? dy * a.alpha : 0.0f;
            break;
        case PEN_CUDA_HARD_SWISH:
            y = v <= -3.0f ? 0.0f : v >= 3.0f ? dy : dy * (v / 3.0f + 0.5f);
            break;
        case PEN_CUDA_LOG:
            y = dy / v;
            break;
        case PEN_CUDA_SIN:
            y = dy * cosine_of(v);
            break;
        case PEN_CUDA_COS:
            y = -dy * sine_of(v);
            break;
        case PEN_CUDA_TANH_SHRINK: {
            const float t = tangent_h(v);
            y = dy * t * t;
            break;
        }
        case PEN_CUDA_SOFTSIGN: {
            const float divisor = 1.0f + magnitude_of(v);
            y = dy / (divisor * divisor);
            break;
        }
        case PEN_CUDA_THRESHOLDED_RELU:
            y = v > a.alpha ? dy : 0.0f;
            break;
        case PEN_CUDA_SHRINK:
            y = v < -a.alpha || v > a.alpha ? dy : 0.0f;
            break;
        case PEN_CUDA_GELU:
        case PEN_CUDA_GELU_TANH:
        case PEN_CUDA_SWISH: {
            const struct function_gate gate = function_gate_of(a.what, v, a.alpha);
            y = dy * (gate.value + v * gate.slope);
            break;
        }
        default:
            y = dy * (a.what >= PEN_CUDA_TAN ? function_slope_of_angle(a.what, v)
                                             : function_bent_slope(a.what, v, a.alpha, a.beta));
            break;
        }
        store(a.y, i, y, a.adds);
    }
}

KERNEL(clip, cuda_clip_args) {
    EACH(i, a.count) {
        float y = a.x[i];
        if (a.low && y < a.low[0]) y = a.low[0];
        if (a.high && y > a.high[0]) y = a.high[0];
        store(a.y, i, y, a.adds);
    }
}

KERNEL(clip_backward, cuda_clip_args) {
    EACH(i, a.count) {
        const float y = a.x[i];
        const uint32_t is_held = (a.low && y <= a.low[0]) || (a.high && y >= a.high[0]);
        store(a.y, i, is_held ? 0.0f : a.dy[i], a.adds);
    }
}
