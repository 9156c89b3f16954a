// Losses over classes, and the count of what was right: a team of threads takes a target.

// The class of a target; -1: it is ignored, or is none, of which `error` is told.
DEVICE int64_t loss_label(const struct cuda_loss_args *a, uint64_t target) {
    const int64_t label = a->labels_are_wide ? ((const int64_t *)a->labels)[target]
                                             : (int64_t)((const int32_t *)a->labels)[target];
    if (a->has_ignored && label == a->ignored) return -1;
    if (label >= 0 && label < (int64_t)a->classes) return label;
    raise_to(a->error, (uint32_t)(a->count - target));
    return -1;
}

DEVICE float loss_weight(const struct cuda_loss_args *a, uint64_t c) {
    return a->weights ? a->weights[c] : 1.0f;
}

// What both directions need of a target, the same in all threads of a team.
struct loss_target {
    uint64_t at; // of its first score
    const float *x;
    int64_t label; // -1: it does not count
    float weight;
    float largest;
    float sum; // of e^(score - largest)
};

// Of logarithms nothing is subtracted: their largest is taken for 0, and the sum for 1.
DEVICE struct loss_target loss_look(const struct cuda_loss_args *a, const struct line_team *team,
                                    float *room) {
    struct loss_target found;
    found.at = team->line / a->stride * a->classes * a->stride + team->line % a->stride;
    found.x = a->scores + found.at;
    found.label = loss_label(a, team->line);
    found.weight = found.label < 0 ? 0.0f : loss_weight(a, (uint64_t)found.label);
    found.largest = 0.0f;
    found.sum = 1.0f;
    if (a->are_logs) return found;
    float largest = found.x[0], sum = 0.0f;
    for (uint64_t c = team->lane; c < a->classes; c += team->size) {
        const float score = found.x[c * a->stride];
        largest = score > largest || score != score ? score : largest;
    }
    found.largest = team_largest(team, largest, room);
    for (uint64_t c = team->lane; c < a->classes; c += team->size)
        sum += exponential(found.x[c * a->stride] - found.largest);
    found.sum = team_sum(team, sum, room);
    return found;
}

// The sum of the weights of all targets that count, by one block.
KERNEL(loss_total, cuda_loss_args) {
    SHARED double room[PEN_CUDA_BLOCK];
    double sum = 0.0;
    for (uint64_t t = THREAD; t < a.count; t += THREADS) {
        const int64_t label = loss_label(&a, t);
        if (label >= 0) sum += (double)loss_weight(&a, (uint64_t)label);
    }
    sum = block_sum_wide(sum, room);
    if (THREAD == 0) *a.total = sum;
}

// The logarithm at the label, and, with smoothing, the mean of all.
KERNEL(loss, cuda_loss_args) {
    SHARED float room[PEN_CUDA_BLOCK / 32];
    EACH_LINE(team, a.count, a.classes) {
        const struct loss_target look = loss_look(&a, &team, room);
        const float all = a.are_logs ? 0.0f : logarithm(look.sum);
        float own = 0.0f, others = 0.0f;
        for (uint64_t c = team.lane; c < a.classes; c += team.size) {
            const float found = look.x[c * a.stride] - look.largest - all;
            if (a.logarithms && team.is_there)
                store(a.logarithms, look.at + c * a.stride, found, a.adds);
            if ((int64_t)c == look.label) own = -found * look.weight;
            if (a.smoothing > 0.0f) others -= found * loss_weight(&a, c);
        }
        own = team_sum(&team, own, room); // one thread has it
        if (a.smoothing > 0.0f) {
            others = team_sum(&team, others, room) / (float)a.classes;
            own = (1.0f - a.smoothing) * own + a.smoothing * others;
        }
        if (look.label < 0) own = 0.0f;
        if (team.lane == 0 && team.is_there) store(a.losses, team.line, own, a.adds && a.is_each);
    }
}

// slope = own * (share - hit) without smoothing; with it, all classes have a part of their weight.
KERNEL(loss_backward, cuda_loss_args) {
    SHARED float room[PEN_CUDA_BLOCK / 32];
    const float of_mean = a.total ? (float)((double)a.factor / *a.total) : a.factor;
    EACH_LINE(team, a.count, a.classes) {
        const struct loss_target look = loss_look(&a, &team, room);
        const float dy = a.dy[a.is_each ? team.line : 0] * of_mean;
        const float own = (1.0f - a.smoothing) * look.weight;
        const float part = a.smoothing / (float)a.classes;
        float all = own;
        if (a.smoothing > 0.0f) {
            float weights = 0.0f;
            for (uint64_t c = team.lane; c < a.classes; c += team.size)
                weights += loss_weight(&a, c);
            all += part * team_sum(&team, weights, room);
        }
        for (uint64_t c = team.lane; c < a.classes && team.is_there; c += team.size) {
            const uint64_t at = c * a.stride;
            float slope = (int64_t)c == look.label ? -own : 0.0f;
            if (!a.are_logs) slope += all * (exponential(look.x[at] - look.largest) / look.sum);
            if (a.smoothing > 0.0f) slope -= part * loss_weight(&a, c);
            store(a.gradient, look.at + at, look.label < 0 ? 0.0f : dy * slope, a.adds);
        }
    }
}

// Whether score a comes before b where the largest is looked for: what is not a number does.
DEVICE uint32_t accuracy_wins(float a, float b) {
    return a > b || (a != a && b == b);
}

// Whether fewer than `top` scores come before the label's; of equals the first does.
KERNEL(accuracy, cuda_loss_args) {
    SHARED float room[PEN_CUDA_BLOCK / 32];
    EACH_LINE(team, a.count, a.classes) {
        const uint64_t t = team.line;
        const int64_t label = loss_label(&a, t);
        const float *x = a.scores + t / a.stride * a.classes * a.stride + t % a.stride;
        const float own = label < 0 ? 0.0f : x[(uint64_t)label * a.stride];
        float better = 0.0f;
        for (uint64_t c = team.lane; c < a.classes && label >= 0; c += team.size) {
            const float score = x[c * a.stride];
            const uint32_t is_better = (int64_t)c < label   ? !accuracy_wins(own, score)
                                       : (int64_t)c > label ? accuracy_wins(score, own)
                                                            : 0;
            better += is_better ? 1.0f : 0.0f;
        }
        better = team_sum(&team, better, room);
        if (team.lane == 0 && team.is_there)
            a.losses[t] = label >= 0 && better < (float)a.top ? 1.0f : 0.0f;
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
