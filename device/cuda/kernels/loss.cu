// The softmax's cross entropy: a block takes a target.

DEVICE int64_t loss_label(const struct cuda_loss_args *a, uint64_t target) {
    const int64_t label = a->labels_are_wide ? ((const int64_t *)a->labels)[target]
                                             : (int64_t)((const int32_t *)a->labels)[target];
    if (label >= 0 && label < (int64_t)a->classes) return label;
    if (THREAD == 0) raise_to(a->error, (uint32_t)(a->count - target));
    return -1;
}

// The scores' largest, and the sum of e^(score - largest), in each thread.
DEVICE float loss_largest(const struct cuda_loss_args *a, const float *x, float *room) {
    float largest = x[0];
    for (uint32_t c = THREAD; c < a->classes; c += THREADS) {
        const float score = x[c * a->stride];
        largest = score > largest || score != score ? score : largest;
    }
    return block_largest(largest, room);
}

DEVICE float loss_sum(const struct cuda_loss_args *a, const float *x, float largest, float *room) {
    float sum = 0.0f;
    for (uint32_t c = THREAD; c < a->classes; c += THREADS)
        sum += exponential(x[c * a->stride] - largest);
    return block_sum(sum, room);
}

// What both directions need of a target, the same in all threads.
struct loss_target {
    uint64_t at; // of its first score
    const float *x;
    int64_t label; // -1: there is no such class
    float largest;
    float sum; // of e^(score - largest)
};

DEVICE struct loss_target loss_look(const struct cuda_loss_args *a, uint64_t target, float *room) {
    struct loss_target found;
    found.at = target / a->stride * a->classes * a->stride + target % a->stride;
    found.x = a->scores + found.at;
    found.label = loss_label(a, target);
    found.largest = loss_largest(a, found.x, room);
    found.sum = loss_sum(a, found.x, found.largest, room);
    return found;
}

KERNEL(loss, cuda_loss_args) {
    SHARED float room[PEN_CUDA_BLOCK / 32];
    for (uint64_t t = BLOCK_X; t < a.count; t += BLOCKS_X) {
        const struct loss_target look = loss_look(&a, t, room);
        const float all = logarithm(look.sum);
        for (uint32_t c = THREAD; c < a.classes; c += THREADS) {
            const float found = look.x[c * a.stride] - look.largest - all;
            if (a.logarithms) store(a.logarithms, look.at + c * a.stride, found, a.adds);
            if ((int64_t)c == look.label) store(a.losses, t, -found, a.adds && a.is_each);
        }
    }
}

KERNEL(loss_backward, cuda_loss_args) {
    SHARED float room[PEN_CUDA_BLOCK / 32];
    for (uint64_t t = BLOCK_X; t < a.count; t += BLOCKS_X) {
        const struct loss_target look = loss_look(&a, t, room);
        const float dy = a.dy[a.is_each ? t : 0] * a.factor;
        for (uint32_t c = THREAD; c < a.classes; c += THREADS) {
            const float share = exponential(look.x[c * a.stride] - look.largest) / look.sum;
            const float hit = (int64_t)c == look.label ? 1.0f : 0.0f;
            store(a.gradient, look.at + c * a.stride, dy * (share - hit), a.adds);
        }
    }
}

// Whether score a comes before b where the largest is looked for: what is not a number does.
DEVICE uint32_t accuracy_wins(float a, float b) {
    return a > b || (a != a && b == b);
}

// Whether fewer than `top` scores come before the label's; of equals the first does. Labels that are
// ignored do not count.
KERNEL(accuracy, cuda_loss_args) {
    SHARED float room[PEN_CUDA_BLOCK / 32];
    for (uint64_t t = BLOCK_X; t < a.count; t += BLOCKS_X) {
        const int64_t given = a.labels_are_wide ? ((const int64_t *)a.labels)[t]
                                                : (int64_t)((const int32_t *)a.labels)[t];
        const uint32_t counts = !(a.has_ignored && given == a.ignored);
        const int64_t label = counts ? loss_label(&a, t) : -1;
        const float *x = a.scores + t / a.stride * a.classes * a.stride + t % a.stride;
        const float own = label < 0 ? 0.0f : x[(uint64_t)label * a.stride];
        float better = 0.0f;
        for (uint32_t c = THREAD; c < a.classes && label >= 0; c += THREADS) {
            const float score = x[c * a.stride];
            const uint32_t is_better = (int64_t)c < label   ? !accuracy_wins(own, score)
                                       : (int64_t)c > label ? accuracy_wins(score, own)
                                                            : 0;
            better += is_better ? 1.0f : 0.0f;
        }
        better = block_sum(better, room);
        if (THREAD == 0) a.losses[t] = label >= 0 && better < (float)a.top ? 1.0f : 0.0f;
    }
}

// By one block.
KERNEL(accuracy_count, cuda_loss_args) {
    SHARED uint32_t room[PEN_CUDA_BLOCK];
    uint32_t right = 0;
    for (uint64_t t = THREAD; t < a.count; t += THREADS)
        right += a.losses[t] > 0.0f;
    room[THREAD] = right;
    barrier();
    for (uint32_t half = PEN_CUDA_BLOCK / 2; half > 0; half /= 2) {
        if (THREAD < half) room[THREAD] += room[THREAD + half];
        barrier();
    }
    if (THREAD == 0) a.right[0] = (int64_t)room[0];
}
