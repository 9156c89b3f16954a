// Local response normalization: a thread takes an element, and goes over its neighbours' channels.

// From channel `first` up to, not with, `end`: those of up to `before` channels before c and
// `after` behind it that there are.
struct lrn_channels {
    uint64_t c, first, end;
};

DEVICE struct lrn_channels lrn_channels_of(const struct cuda_lrn_args *a, uint64_t i,
                                           uint64_t before, uint64_t after) {
    struct lrn_channels found;
    found.c = i / a->size % a->channels;
    found.first = found.c > before ? found.c - before : 0;
    found.end = found.c + after < a->channels ? found.c + after + 1 : a->channels;
    return found;
}

// d of element i.
DEVICE float lrn_divisor(const struct cuda_lrn_args *a, uint64_t i) {
    const struct lrn_channels near = lrn_channels_of(a, i, a->before, a->after);
    float squares = 0.0f;
    for (uint64_t c = near.first; c < near.end; c++) {
        const float x = a->x[i - near.c * a->size + c * a->size];
        squares += x * x;
    }
    return a->bias + a->share * squares;
}

KERNEL(lrn, cuda_lrn_args) {
    EACH(i, a.count) store(a.y, i, a.x[i] * power_of(lrn_divisor(&a, i), (double)-a.beta), a.adds);
}

// dx = dy d^-beta - 2 share beta x (sum of dy x d^(-beta - 1) over the channels that count this
// one, which are as many behind it as it counts before it).
KERNEL(lrn_backward, cuda_lrn_args) {
    EACH(i, a.count) {
        const struct lrn_channels near = lrn_channels_of(&a, i, a.after, a.before);
        float sum = 0.0f;
        for (uint64_t c = near.first; c < near.end; c++) {
            const uint64_t at = i - near.c * a.size + c * a.size;
            sum += a.dy[at] * a.x[at] * power_of(lrn_divisor(&a, at), (double)-a.beta - 1.0);
        }
        const float own = a.dy[i] * power_of(lrn_divisor(&a, i), (double)-a.beta);
        store(a.y, i, own - 2.0f * a.share * a.beta * a.x[i] * sum, a.adds);
    }
}
