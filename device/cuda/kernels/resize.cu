// Resized planes and volumes, as graph/ops/window/resize_geometry.c has them: places are found in
// double, so that they are those of the host. Three axes at most are resized; what is before and
// behind them is `outer` and `inner`.

#define RESIZE_TAPS 4

// Elements of an axis that count for a position, and how much.
struct resize_taps {
    uint32_t count;
    int64_t index[RESIZE_TAPS];
    float weight[RESIZE_TAPS];
};

DEVICE double resize_floor(double x) {
    const double whole = (double)(int64_t)x;
    return whole > x ? whole - 1.0 : whole;
}

DEVICE double resize_place(const struct cuda_resize_args *a, uint32_t d, int64_t position) {
    const double x = (double)position, last = (double)a->from[d] - 1.0;
    switch (a->coordinate) {
    case PEN_CUDA_RESIZE_ASYMMETRIC:
        return x / a->scale[d];
    case PEN_CUDA_RESIZE_ALIGN_CORNERS:
        return a->width[d] == 1.0 ? 0.0 : x * last / (a->width[d] - 1.0);
    case PEN_CUDA_RESIZE_HALF_PIXEL_FOR_NEAREST:
        return (x + 0.5) / a->scale[d];
    default:
        if (a->coordinate == PEN_CUDA_RESIZE_PYTORCH && a->to[d] == 1) return 0.0;
        return (x + 0.5) / a->scale[d] - 0.5;
    }
}

DEVICE double resize_round(const struct cuda_resize_args *a, double place) {
    switch (a->nearest) {
    case PEN_CUDA_RESIZE_FLOOR:
        return resize_floor(place);
    case PEN_CUDA_RESIZE_CEIL:
        return -resize_floor(-place);
    case PEN_CUDA_RESIZE_ROUND_UP:
        return resize_floor(place + 0.5);
    default:
        return -resize_floor(0.5 - place);
    }
}

DEVICE int64_t resize_inside(const struct cuda_resize_args *a, uint32_t d, int64_t index) {
    const int64_t last = (int64_t)a->from[d] - 1;
    return index < 0 ? 0 : index > last ? last : index;
}

// Weights are made in double, and what lies outside is left out if the operator says so.
DEVICE void resize_weigh(const struct cuda_resize_args *a, uint32_t d, double low, double t,
                         struct resize_taps *taps) {
    const double c = a->cubic_a, far = t + 1.0, near = 1.0 - t, farther = 2.0 - t;
    double weights[RESIZE_TAPS] = {1.0 - t, t, 0.0, 0.0}, sum = 0.0;
    const int64_t first = (int64_t)low - (a->mode == PEN_CUDA_RESIZE_CUBIC ? 1 : 0);
    if (a->mode == PEN_CUDA_RESIZE_CUBIC) {
        weights[0] = ((c * far - 5.0 * c) * far + 8.0 * c) * far - 4.0 * c;
        weights[1] = ((c + 2.0) * t - (c + 3.0)) * t * t + 1.0;
        weights[2] = ((c + 2.0) * near - (c + 3.0)) * near * near + 1.0;
        weights[3] = ((c * farther - 5.0 * c) * farther + 8.0 * c) * farther - 4.0 * c;
    }
    taps->count = a->mode == PEN_CUDA_RESIZE_CUBIC ? 4 : 2;
    for (uint32_t i = 0; i < taps->count; i++) {
        const int64_t index = first + i;
        taps->index[i] = resize_inside(a, d, index);
        if (a->excludes_outside && index != taps->index[i]) weights[i] = 0.0;
        sum += weights[i];
    }
    for (uint32_t i = 0; i < taps->count; i++) {
        const uint32_t divides = a->excludes_outside && sum != 0.0;
        taps->weight[i] = (float)(divides ? weights[i] / sum : weights[i]);
    }
}

DEVICE struct resize_taps resize_taps_of(const struct cuda_resize_args *a, uint32_t d,
                                         int64_t position) {
    struct resize_taps taps = {1, {position, 0, 0, 0}, {1.0f, 0.0f, 0.0f, 0.0f}};
    if (a->from[d] == a->to[d] && a->scale[d] == 1.0) return taps;
    const double place = resize_place(a, d, position);
    if (a->mode == PEN_CUDA_RESIZE_NEAREST) {
        taps.index[0] = resize_inside(a, d, (int64_t)resize_round(a, place));
        return taps;
    }
    const double low = resize_floor(place);
    resize_weigh(a, d, low, place - low, &taps);
    return taps;
}

KERNEL(resize, cuda_resize_args) {
    const uint64_t volume = a.to[0] * a.to[1] * a.to[2];
    EACH(i, a.outer * volume * a.inner) {
        struct resize_taps taps[3];
        uint64_t rest = i / a.inner;
        for (uint32_t d = 3; d-- > 0;) {
            taps[d] = resize_taps_of(&a, d, (int64_t)(rest % a.to[d]));
            rest /= a.to[d];
        }
        const float *x = a.x + rest * a.from[0] * a.from[1] * a.from[2] * a.inner + i % a.inner;
        float sum = 0.0f;
        for (uint32_t k = 0; k < taps[0].count; k++) {
            for (uint32_t l = 0; l < taps[1].count; l++) {
                const float weight = taps[0].weight[k] * taps[1].weight[l];
                const uint64_t row =
                    (uint64_t)taps[0].index[k] * a.from[1] + (uint64_t)taps[1].index[l];
                for (uint32_t m = 0; m < taps[2].count; m++) {
                    const uint64_t at = row * a.from[2] + (uint64_t)taps[2].index[m];
                    sum += weight * taps[2].weight[m] * x[at * a.inner];
                }
            }
        }
        store(a.y, i, sum, a.adds);
    }
}

// ---- backward: an element's gradient comes from positions that lie beside each other

struct resize_range {
    int64_t element, first, end;
};

// The first position whose place is not below this one: places do not fall.
DEVICE int64_t resize_search(const struct cuda_resize_args *a, uint32_t d, double place) {
    int64_t low = 0, high = (int64_t)a->to[d];
    while (low < high) {
        const int64_t middle = (low + high) / 2;
        if (resize_place(a, d, middle) < place)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

// The outermost elements have what lies outside, too. A place that is 3 away has no tap here.
DEVICE struct resize_range resize_range_of(const struct cuda_resize_args *a, uint32_t d,
                                           int64_t element) {
    struct resize_range range = {element, 0, (int64_t)a->to[d]};
    if (a->from[d] == a->to[d] && a->scale[d] == 1.0) {
        range.first = element;
        range.end = element + 1;
        return range;
    }
    if (element > 0) range.first = resize_search(a, d, (double)element - 3.0);
    if (element < (int64_t)a->from[d] - 1) range.end = resize_search(a, d, (double)element + 3.0);
    return range;
}

// How much of position `position` is of the range's element.
DEVICE float resize_share(const struct cuda_resize_args *a, uint32_t d,
                          const struct resize_range *range, int64_t position) {
    const struct resize_taps taps = resize_taps_of(a, d, position);
    float share = 0.0f;
    for (uint32_t i = 0; i < taps.count; i++)
        share += taps.index[i] == range->element ? taps.weight[i] : 0.0f;
    return share;
}

// The sum over positions of the last axis, from position `at` of the others on.
DEVICE float resize_line(const struct cuda_resize_args *a, const struct resize_range *range,
                         const float *dy) {
    float sum = 0.0f;
    for (int64_t p = range->first; p < range->end; p++) {
        const float share = resize_share(a, 2, range, p);
        if (share != 0.0f) sum += share * dy[(uint64_t)p * a->inner];
    }
    return sum;
}

KERNEL(resize_backward, cuda_resize_args) {
    const uint64_t volume = a.from[0] * a.from[1] * a.from[2];
    EACH(i, a.outer * volume * a.inner) {
        struct resize_range ranges[3];
        uint64_t rest = i / a.inner;
        for (uint32_t d = 3; d-- > 0;) {
            ranges[d] = resize_range_of(&a, d, (int64_t)(rest % a.from[d]));
            rest /= a.from[d];
        }
        const float *dy = a.x + rest * a.to[0] * a.to[1] * a.to[2] * a.inner + i % a.inner;
        float sum = 0.0f;
        for (int64_t p = ranges[0].first; p < ranges[0].end; p++) {
            const float of_plane = resize_share(&a, 0, &ranges[0], p);
            if (of_plane == 0.0f) continue;
            for (int64_t q = ranges[1].first; q < ranges[1].end; q++) {
                const float of_row = of_plane * resize_share(&a, 1, &ranges[1], q);
                const uint64_t row = ((uint64_t)p * a.to[1] + (uint64_t)q) * a.to[2];
                if (of_row != 0.0f) sum += of_row * resize_line(&a, &ranges[2], dy + row * a.inner);
            }
        }
        store(a.y, i, sum, a.adds);
    }
}
