// Convolutions over up to three dimensions, as products whose right operand is never laid out.
//
//                          rows                  columns                  terms
//   PEN_CUDA_CONV          channels of y         positions of y           (channel of x, tap)
//   PEN_CUDA_CONV_INPUT    channels of dx        positions of dx          (channel of dy, tap)
//   PEN_CUDA_CONV_WEIGHT   channels of dy        (channel of x, tap)      positions of y
//
// What is read of the source is at the sum of a place that the column has and one that the term
// has, where a stride of the input's gradient makes a class of positions for each remainder: those
// of a class have the same taps, and none of these is between two positions of dy. A part of a
// product is such a class, or a piece of the terms of a weight's gradient.

// One dimension of a class.
struct conv_line {
    uint32_t count, first, pace;        // position j is first + j * pace of the target,
    int32_t start, step;                // and looks at start + j * step of the source
    uint32_t taps, tap_first, tap_pace; // plus, for tap tap_first + q * tap_pace,
    int32_t reach, reach_step;          // reach + q * reach_step
};

DEVICE struct conv_line conv_line_of(const struct cuda_conv_args *a, uint32_t d, uint32_t rest) {
    const int32_t pad = (int32_t)a->pad[d], dilation = (int32_t)a->dilation[d];
    const int32_t stride = (int32_t)a->stride[d];
    struct conv_line line = {a->target[d], 0, 1, -pad, stride, a->kernel[d], 0, 1, 0, dilation};
    if (a->what != PEN_CUDA_CONV_INPUT) return line;
    line.count = (a->target[d] + a->stride[d] - 1 - rest) / a->stride[d];
    line.first = rest;
    line.pace = a->stride[d];
    line.start = 0;
    line.step = 1;
    line.taps = 0;
    line.tap_pace = a->kernel[d];
    for (uint32_t k = 0; k < a->kernel[d]; k++) {
        if (((int32_t)rest + pad - (int32_t)k * dilation) % stride != 0) continue;
        if (line.taps++ == 0) {
            line.tap_first = k;
            continue;
        }
        line.tap_pace = k - line.tap_first;
        break;
    }
    if (line.taps > 0) line.taps = 1 + (a->kernel[d] - 1 - line.tap_first) / line.tap_pace;
    line.reach = ((int32_t)rest + pad - (int32_t)line.tap_first * dilation) / stride;
    line.reach_step = -((int32_t)line.tap_pace * dilation / stride);
    return line;
}

// The classes of all dimensions are numbered in row-major order.
DEVICE uint32_t conv_class(const struct cuda_conv_args *a, uint32_t d, uint32_t part) {
    if (a->what != PEN_CUDA_CONV_INPUT) return 0;
    if (d == 2) return part % a->stride[2];
    part /= a->stride[2];
    return d == 1 ? part % a->stride[1] : part / a->stride[1];
}

// A column, or a term: where it is in the source, and in the other operand or the result.
struct conv_place {
    int64_t source, other;
    int32_t at[3];
};

// Of what is behind the last: no sum with it is a position.
DEVICE struct conv_place conv_nowhere(void) {
    const struct conv_place place = {0, 0, {-0x40000000, 0, 0}};
    return place;
}

DEVICE int64_t conv_offset(const uint32_t *sizes, const int32_t *at) {
    return ((int64_t)at[0] * sizes[1] + at[1]) * sizes[2] + at[2];
}

// Position i of the class, counted over all samples.
DEVICE struct conv_place conv_position(const struct cuda_conv_args *a,
                                       const struct conv_line *lines, uint32_t i) {
    struct conv_place place;
    int32_t at[3];
    UNROLLED
    for (uint32_t d = 3; d-- > 0;) {
        const uint32_t j = i % lines[d].count;
        i /= lines[d].count;
        place.at[d] = lines[d].start + (int32_t)j * lines[d].step;
        at[d] = (int32_t)(lines[d].first + j * lines[d].pace);
    }
    const uint64_t from = (uint64_t)i * a->groups * a->channels,
                   to = (uint64_t)i * a->groups * a->rows;
    place.source = (int64_t)(from * window_volume(a->source)) + conv_offset(a->source, place.at);
    place.other = (int64_t)(to * window_volume(a->target)) + conv_offset(a->target, at);
    return place;
}

// Tap i of the class, counted over all channels of the source in a group.
DEVICE struct conv_place conv_tap(const struct cuda_conv_args *a, const struct conv_line *lines,
                                  uint32_t i) {
    const uint32_t taps = window_volume(a->kernel);
    struct conv_place place;
    int32_t at[3];
    UNROLLED
    for (uint32_t d = 3; d-- > 0;) {
        const uint32_t q = i % lines[d].taps;
        i /= lines[d].taps;
        place.at[d] = lines[d].reach + (int32_t)q * lines[d].reach_step;
        at[d] = (int32_t)(lines[d].tap_first + q * lines[d].tap_pace);
    }
    place.source = (int64_t)i * window_volume(a->source) + conv_offset(a->source, place.at);
    place.other = (int64_t)i * taps * (a->what == PEN_CUDA_CONV_INPUT ? a->rows : 1) +
                  conv_offset(a->kernel, at);
    return place;
}

// Of the source, zeros around it.
DEVICE float conv_read(const float *x, const uint32_t *sizes, const struct conv_place *column,
                       const struct conv_place *term) {
    UNROLLED
    for (uint32_t d = 0; d < 3; d++)
        if ((uint32_t)(column->at[d] + term->at[d]) >= sizes[d]) return 0.0f;
    return x[column->source + term->source];
}

// What a part of the product has.
struct conv_product {
    uint32_t columns, first, end; // terms from `first` on
    uint64_t left_row, row;       // from row to row of the left operand, of the result
    const float *left, *source;   // of the group
    float *y;                     // of the group, and of the piece
};

DEVICE struct conv_product conv_product_of(const struct cuda_conv_args *a,
                                           const struct conv_line *lines, uint32_t group,
                                           uint32_t part) {
    const uint64_t kernel = window_volume(a->kernel), target = window_volume(a->target);
    const uint64_t weights = (uint64_t)a->rows * a->channels * kernel;
    const uint32_t positions = a->batch * lines[0].count * lines[1].count * lines[2].count;
    const uint32_t taps = a->channels * lines[0].taps * lines[1].taps * lines[2].taps;
    const uint32_t by_weight = a->what == PEN_CUDA_CONV_WEIGHT;
    struct conv_product p;
    p.columns = by_weight ? taps : positions;
    p.first = by_weight ? part * a->piece_terms : 0;
    p.end = by_weight ? positions : taps;
    if (by_weight && a->pieces > 1 && p.end - p.first > a->piece_terms)
        p.end = p.first + a->piece_terms;
    p.left_row = by_weight                        ? target
                 : a->what == PEN_CUDA_CONV_INPUT ? kernel
                                                  : a->channels * kernel;
    p.row = by_weight ? a->channels * kernel : target;
    p.left = a->left + group * (by_weight ? a->rows * target : weights);
    p.source = a->right + (uint64_t)group * a->channels * window_volume(a->source);
    p.y = a->y + group * (by_weight ? weights : a->rows * target);
    if (by_weight) p.y += part * (a->groups * weights);
    return p;
}

DEVICE struct conv_place conv_column(const struct cuda_conv_args *a, const struct conv_line *lines,
                                     const struct conv_product *p, uint32_t i) {
    if (i >= p->columns) return conv_nowhere();
    return a->what == PEN_CUDA_CONV_WEIGHT ? conv_tap(a, lines, i) : conv_position(a, lines, i);
}

DEVICE struct conv_place conv_term(const struct cuda_conv_args *a, const struct conv_line *lines,
                                   const struct conv_product *p, uint32_t i) {
    if (i >= p->end) return conv_nowhere();
    return a->what == PEN_CUDA_CONV_WEIGHT ? conv_position(a, lines, i) : conv_tap(a, lines, i);
}

DEVICE void conv_store(const struct cuda_conv_args *a, const struct conv_product *p, uint32_t group,
                       uint32_t row, int64_t column, float value) {
    if (a->bias) value += a->bias[group * a->rows + row];
    store(p->y, row * p->row + (uint64_t)column, value, a->adds);
}

// A block makes a tile of one group's part. Places of columns are found once, those of terms while
// the terms before them are multiplied.
KERNEL(conv, cuda_conv_args) {
    SHARED float left[TILE_DEPTH][PEN_CUDA_TILE + 1];
    SHARED float right[TILE_DEPTH][PEN_CUDA_TILE + 1];
    SHARED struct conv_line lines[3];
    SHARED struct conv_place columns[PEN_CUDA_TILE], terms[TILE_DEPTH];
    const uint32_t group = BLOCK_Z / a.parts, part = BLOCK_Z % a.parts;
    if (THREAD < 3) lines[THREAD] = conv_line_of(&a, THREAD, conv_class(&a, THREAD, part));
    barrier();
    const struct conv_product p = conv_product_of(&a, lines, group, part);
    const uint32_t first = BLOCK_X * PEN_CUDA_TILE, top = BLOCK_Y * PEN_CUDA_TILE;
    if (first >= p.columns) return; // of a class that is smaller than others
    if (THREAD < PEN_CUDA_TILE) columns[THREAD] = conv_column(&a, lines, &p, first + THREAD);
    if (THREAD < TILE_DEPTH) terms[THREAD] = conv_term(&a, lines, &p, p.first + THREAD);
    barrier();
    struct tile_sums sums;
    tile_begin(&sums);
    for (uint32_t base = p.first; base < p.end; base += TILE_DEPTH) {
        UNROLLED
        for (uint32_t load = 0; load < TILE_LOADS; load++) {
            const uint32_t i = THREAD + load * PEN_CUDA_BLOCK;
            const uint32_t term = i % TILE_DEPTH, row = i / TILE_DEPTH;
            const uint32_t is_there = top + row < a.rows && base + term < p.end;
            const float w =
                is_there ? p.left[(top + row) * p.left_row + (uint64_t)terms[term].other] : 0.0f;
            left[term][row] = rounded(w, a.precision);
            // positions are neighbours in memory: they are loaded by neighbours among the threads
            const uint32_t by_term = a.what == PEN_CUDA_CONV_WEIGHT;
            const uint32_t column = by_term ? row : i % PEN_CUDA_TILE;
            const uint32_t other = by_term ? term : i / PEN_CUDA_TILE;
            right[other][column] = rounded(
                conv_read(p.source, a.source, &columns[column], &terms[other]), a.precision);
        }
        barrier();
        if (THREAD < TILE_DEPTH) // nobody reads them until the next barrier
            terms[THREAD] = conv_term(&a, lines, &p, base + TILE_DEPTH + THREAD);
        tile_multiply(left, right, base - p.first, p.end - base, &sums);
        barrier();
    }
    tile_end_piece(&sums);
    const uint32_t y = THREAD / 16, c = THREAD % 16;
    UNROLLED
    for (uint32_t i = 0; i < 4; i++) {
        UNROLLED
        for (uint32_t j = 0; j < 4; j++) {
            const uint32_t row = top + y + 16 * i, column = c + 16 * j;
            if (row >= a.rows || first + column >= p.columns) continue;
            conv_store(&a, &p, group, row, columns[column].other, sums.whole[i][j]);
        }
    }
}

// The sum of a channel's terms at a place of the source.
DEVICE float conv_window(const struct cuda_conv_args *a, const struct conv_line *lines,
                         const int32_t *at, const float *weight, const float *source) {
    float sum = 0.0f;
    for (uint32_t q = 0; q < lines[0].taps; q++) {
        const int32_t z = at[0] + lines[0].reach + (int32_t)q * lines[0].reach_step;
        const uint32_t k = lines[0].tap_first + q * lines[0].tap_pace;
        if ((uint32_t)z >= a->source[0]) continue;
        for (uint32_t r = 0; r < lines[1].taps; r++) {
            const int32_t y = at[1] + lines[1].reach + (int32_t)r * lines[1].reach_step;
            const uint32_t l = k * a->kernel[1] + lines[1].tap_first + r * lines[1].tap_pace;
            if ((uint32_t)y >= a->source[1]) continue;
            const float *row = source + ((uint64_t)z * a->source[1] + (uint32_t)y) * a->source[2];
            const float *w = weight + (uint64_t)l * a->kernel[2] + lines[2].tap_first;
            for (uint32_t s = 0; s < lines[2].taps; s++) {
                const int32_t x = at[2] + lines[2].reach + (int32_t)s * lines[2].reach_step;
                if ((uint32_t)x >= a->source[2]) continue;
                sum = multiply_add(rounded(w[s * lines[2].tap_pace], a->precision),
                                   rounded(row[x], a->precision), sum);
            }
        }
    }
    return sum;
}

// Of groups with few rows, as of a depthwise convolution, which would leave a tile almost empty: a
// thread makes an element, a sum of its channels' sums. Not for the weight's gradient.
KERNEL(conv_narrow, cuda_conv_args) {
    const uint32_t volume = window_volume(a.target), kernel = window_volume(a.kernel);
    const uint32_t all = a.groups * a.rows, by_input = a.what == PEN_CUDA_CONV_INPUT;
    const uint64_t size = window_volume(a.source);
    EACH(i, (uint64_t)a.batch * all * volume) {
        struct conv_line lines[3];
        int32_t at[3];
        uint32_t rest = (uint32_t)(i % volume);
        const uint32_t channel = (uint32_t)(i / volume % all);
        const uint32_t group = channel / a.rows, row = channel % a.rows;
        UNROLLED
        for (uint32_t d = 3; d-- > 0;) {
            const uint32_t position = rest % a.target[d], pace = by_input ? a.stride[d] : 1;
            rest /= a.target[d];
            lines[d] = conv_line_of(&a, d, position % pace);
            at[d] = lines[d].start + (int32_t)(position / pace) * lines[d].step;
        }
        const float *x = a.right + (i / volume / all * a.groups + group) * a.channels * size;
        const float *w =
            a.left +
            ((uint64_t)group * a.channels * a.rows + (by_input ? row : row * a.channels)) * kernel;
        const uint64_t from_channel = (uint64_t)kernel * (by_input ? a.rows : 1);
        float sum = 0.0f;
        for (uint32_t c = 0; c < a.channels; c++)
            sum += conv_window(&a, lines, at, w + c * from_channel, x + c * size);
        store(a.y, i, a.bias ? sum + a.bias[channel] : sum, a.adds);
    }
}

// The weight's gradient likewise: a warp makes an element or, where it has many terms, a block; a
// thread goes in pieces of 64 positions.
KERNEL(conv_narrow_weight, cuda_conv_args) {
    SHARED float room[PEN_CUDA_BLOCK / 32];
    const uint32_t of_row = a.channels * window_volume(a.kernel);
    struct conv_line lines[3];
    UNROLLED
    for (uint32_t d = 0; d < 3; d++)
        lines[d] = conv_line_of(&a, d, 0);
    const uint32_t by_warp = a.batch * window_volume(a.target) <= 32 * THREADS;
    const uint32_t team = by_warp ? 32 : THREADS, lane = THREAD % team;
    const uint64_t teams = (uint64_t)BLOCKS_X * (THREADS / team);
    for (uint64_t i = (uint64_t)BLOCK_X * (THREADS / team) + THREAD / team;
         i < (uint64_t)a.groups * a.rows * of_row; i += teams) {
        const uint32_t channel = (uint32_t)(i / of_row);
        const struct conv_product p = conv_product_of(&a, lines, channel / a.rows, 0);
        const struct conv_place column = conv_tap(&a, lines, (uint32_t)(i % of_row));
        const float *dy = p.left + channel % a.rows * p.left_row;
        float sum = 0.0f, piece = 0.0f;
        uint32_t taken = 0;
        for (uint32_t term = lane; term < p.end; term += team) {
            const struct conv_place at = conv_position(&a, lines, term);
            const float x = conv_read(p.source, a.source, &column, &at);
            piece =
                multiply_add(rounded(dy[at.other], a.precision), rounded(x, a.precision), piece);
            if (++taken % 64 != 0) continue;
            sum += piece;
            piece = 0.0f;
        }
        sum = by_warp ? warp_sum(sum + piece) : block_sum(sum + piece, room);
        if (lane == 0) store(a.y, i, sum, a.adds);
    }
}
