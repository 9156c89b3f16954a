// Means of losses of pairs, as device/reference/kernels/loss_reference.c has them.

// A logarithm held above -100.
DEVICE float held_log(float log_x) {
    return log_x < -100.0f ? -100.0f : log_x;
}

DEVICE float pair_loss_of(uint32_t what, float x, float target, float beta) {
    const float distance = magnitude_of(x - target);
    switch (what) {
    case PEN_CUDA_SQUARE:
        return distance * distance;
    case PEN_CUDA_L1:
        return distance;
    case PEN_CUDA_SMOOTH_L1:
        return distance < beta ? distance * distance / (2.0f * beta) : distance - beta / 2.0f;
    case PEN_CUDA_BINARY:
        return -(target * held_log(natural_log(x)) +
                 (1.0f - target) * held_log(log_of_one_and(-x)));
    case PEN_CUDA_BINARY_LOGITS:
        return (x > 0.0f || x != x ? x : 0.0f) - x * target +
               log_of_one_and(exponential(-magnitude_of(x)));
    default:
        return (target == 0.0f ? 0.0f : target * natural_log(target)) - target * x;
    }
}

DEVICE float pair_loss_slope(uint32_t what, float x, float target, float beta) {
    const float distance = x - target;
    const float sign = distance > 0.0f ? 1.0f : distance < 0.0f ? -1.0f : 0.0f;
    switch (what) {
    case PEN_CUDA_SQUARE:
        return 2.0f * distance;
    case PEN_CUDA_L1:
        return sign;
    case PEN_CUDA_SMOOTH_L1:
        return magnitude_of(distance) < beta ? distance / beta : sign;
    case PEN_CUDA_BINARY: {
        const float divisor = x * (1.0f - x);
        return distance / (divisor < 1e-12f ? 1e-12f : divisor);
    }
    case PEN_CUDA_BINARY_LOGITS:
        return sigmoid_of(x) - target;
    default:
        return -target;
    }
}

// The sum of each piece; `total` adds them.
KERNEL(pair_loss, cuda_pair_loss_args) {
    SHARED float room[PEN_CUDA_BLOCK / 32];
    for (uint64_t piece = BLOCK_X; piece * PEN_CUDA_PAIR_PIECE < a.count; piece += BLOCKS_X) {
        float sum = 0.0f;
        for (uint32_t i = THREAD; i < PEN_CUDA_PAIR_PIECE; i += THREADS) {
            const uint64_t at = piece * PEN_CUDA_PAIR_PIECE + i;
            if (at < a.count) sum += pair_loss_of(a.what, a.x[at], a.target[at], a.beta);
        }
        sum = block_sum(sum, room);
        if (THREAD == 0) a.sums[piece] = sum;
    }
}

KERNEL(pair_loss_backward, cuda_pair_loss_args) {
    const float dy = a.dy[0] * a.factor;
    EACH(i, a.count) {
        const float slope = pair_loss_slope(a.what, a.x[i], a.target[i], a.beta);
        store(a.y, i, dy * slope, a.adds);
    }
}
