// Scaled dot product attention, as graph/ops/product/attention_op.c has it. No square of scores is
// kept: a block has 32 rows of q, or of k, and goes over the others 32 at a time, in shared memory.
// Eight threads share a row: of the tile's scores each has four, of the row's result every eighth
// number. Scores are made again where they are needed; sums have the order of the keys, or rows.

#define ATTENTION_ROWS PEN_CUDA_ATTENTION_ROWS
#define ATTENTION_LANES (PEN_CUDA_BLOCK / ATTENTION_ROWS)
#define ATTENTION_SCORES (ATTENTION_ROWS / ATTENTION_LANES)
#define ATTENTION_NUMBERS (PEN_CUDA_ATTENTION_DEPTH / ATTENTION_LANES)
#define ATTENTION_WIDTH (PEN_CUDA_ATTENTION_DEPTH + 1)
#define ATTENTION_ROW (THREAD / ATTENTION_LANES)
#define ATTENTION_LANE (THREAD % ATTENTION_LANES)

typedef struct cuda_attention_args attention_args;
typedef struct cuda_attention_strides attention_strides;

// A tile of rows of q of one attention, and the row of this thread.
struct attention_tile {
    uint64_t index; // of the attention
    uint64_t mask;  // where its mask begins
    uint32_t first, row;
};

DEVICE uint64_t attention_offset(const attention_args *a, const attention_strides *of,
                                 uint64_t index) {
    return index / a->heads * of->outer + index % a->heads / of->shared * of->head;
}

DEVICE struct attention_tile attention_tile_of(const attention_args *a, uint64_t index,
                                               uint32_t first) {
    struct attention_tile tile;
    uint64_t rest = index;
    tile.index = index;
    tile.first = first;
    tile.row = first + ATTENTION_ROW;
    tile.mask = 0;
    for (uint32_t d = 0; d < a->mask_rank; d++) {
        tile.mask += rest % a->mask_dims[d] * a->mask_strides[d];
        rest /= a->mask_dims[d];
    }
    return tile;
}

// How many keys a row sees; none beyond the last row.
DEVICE uint32_t attention_sees(const attention_args *a, uint32_t row) {
    if (row >= a->queries) return 0;
    return a->is_causal && row + 1 < a->keys ? row + 1 : a->keys;
}

// Of a tile of keys.
DEVICE uint32_t attention_sees_of(const attention_args *a, uint32_t row, uint32_t first_key) {
    const uint32_t seen = attention_sees(a, row);
    if (seen <= first_key) return 0;
    return seen - first_key < ATTENTION_ROWS ? seen - first_key : ATTENTION_ROWS;
}

// Keys that the last row of a tile sees, which are those of all of its rows.
DEVICE uint32_t attention_end(const attention_args *a, uint32_t first) {
    const uint32_t last = first + ATTENTION_ROWS - 1;
    return attention_sees(a, last < a->queries ? last : a->queries - 1);
}

// Rows from x on, of which `rows` are there; zeros beyond.
DEVICE void attention_load(float (*to)[ATTENTION_WIDTH], const attention_args *a, const float *x,
                           uint64_t stride, uint32_t rows, uint32_t depth) {
    for (uint32_t i = THREAD; i < ATTENTION_ROWS * depth; i += THREADS) {
        const uint32_t row = i / depth, column = i % depth;
        to[row][column] = row < rows ? rounded(x[row * stride + column], a->precision) : 0.0f;
    }
}

DEVICE void attention_load_q(float (*to)[ATTENTION_WIDTH], const attention_args *a,
                             const struct attention_tile *tile) {
    const uint64_t at = attention_offset(a, &a->of_q, tile->index) + tile->first * a->of_q.row;
    attention_load(to, a, a->q + at, a->of_q.row, a->queries - tile->first, a->depth);
}

DEVICE void attention_load_dy(float (*to)[ATTENTION_WIDTH], const attention_args *a,
                              const struct attention_tile *tile) {
    const uint64_t at = attention_offset(a, &a->of_y, tile->index) + tile->first * a->of_y.row;
    attention_load(to, a, a->dy + at, a->of_y.row, a->queries - tile->first, a->value_depth);
}

DEVICE void attention_load_k(float (*to)[ATTENTION_WIDTH], const attention_args *a, uint64_t index,
                             uint32_t first_key) {
    const uint64_t at = attention_offset(a, &a->of_k, index) + first_key * a->of_k.row;
    attention_load(to, a, a->k + at, a->of_k.row, a->keys - first_key, a->depth);
}

DEVICE void attention_load_v(float (*to)[ATTENTION_WIDTH], const attention_args *a, uint64_t index,
                             uint32_t first_key) {
    const uint64_t at = attention_offset(a, &a->of_v, index) + first_key * a->of_v.row;
    attention_load(to, a, a->v + at, a->of_v.row, a->keys - first_key, a->value_depth);
}

// This thread's products of its row with four of the others.
DEVICE void attention_dots(float (*rows)[ATTENTION_WIDTH], float (*others)[ATTENTION_WIDTH],
                           uint32_t depth, float *dots) {
    UNROLLED
    for (uint32_t e = 0; e < ATTENTION_SCORES; e++)
        dots[e] = 0.0f;
    for (uint32_t i = 0; i < depth; i++) {
        const float x = rows[ATTENTION_ROW][i];
        UNROLLED
        for (uint32_t e = 0; e < ATTENTION_SCORES; e++)
            dots[e] =
                multiply_add(x, others[ATTENTION_LANE + e * ATTENTION_LANES][i], dots[e]);
    }
}

// Which key of a tile a thread's score `e` is of.
DEVICE uint32_t attention_key(uint32_t e) {
    return ATTENTION_LANE + e * ATTENTION_LANES;
}

DEVICE uint64_t attention_mask_at(const attention_args *a, const struct attention_tile *tile,
                                  uint32_t key) {
    return tile->mask + tile->row * a->mask_row + key * a->mask_column;
}

// Whether a boolean mask hides a score that the row sees.
DEVICE uint32_t attention_hides(const attention_args *a, const struct attention_tile *tile,
                                uint32_t key) {
    return a->mask && a->mask_is_bool &&
           !((const unsigned char *)a->mask)[attention_mask_at(a, tile, key)];
}

// This thread's four scores; -inf where the row does not see the key.
DEVICE void attention_scores(const attention_args *a, const struct attention_tile *tile,
                             uint32_t first_key, float (*q)[ATTENTION_WIDTH],
                             float (*k)[ATTENTION_WIDTH], float *scores) {
    const uint32_t seen = attention_sees_of(a, tile->row, first_key);
    attention_dots(q, k, a->depth, scores);
    UNROLLED
    for (uint32_t e = 0; e < ATTENTION_SCORES; e++) {
        const uint32_t at = attention_key(e), key = first_key + at;
        if (at >= seen)
            scores[e] = float_of_bits(0xff800000u);
        else if (attention_hides(a, tile, key))
            scores[e] = a->fill;
        else if (a->mask && !a->mask_is_bool)
            scores[e] = a->scale * scores[e] +
                        ((const float *)a->mask)[attention_mask_at(a, tile, key)];
        else
            scores[e] = a->scale * scores[e];
    }
}

// What a probability is multiplied by on its way to v.
DEVICE float attention_kept(const attention_args *a, const struct attention_tile *tile,
                            uint32_t key) {
    if (a->threshold == 0) return 1.0f;
    const uint64_t number = (tile->index * a->queries + tile->row) * a->keys + key;
    return random_24_bits(*a->random, number) >= a->threshold ? a->kept : 0.0f;
}

// The softmax of a row, as far as it has come: its largest score, and the sum of
// e^(score - largest).
struct attention_softmax {
    float largest, sum;
};

// Takes in a tile of scores, and makes e^(score - largest) of them. Returns by what all that was
// before has shrunk. While all scores are -inf, the largest stays so.
DEVICE float attention_take(const attention_args *a, const struct attention_tile *tile,
                            uint32_t first_key, struct attention_softmax *softmax, float *scores) {
    const float least = float_of_bits(0xff800000u);
    const uint32_t seen = attention_sees_of(a, tile->row, first_key);
    float largest = softmax->largest, sum = 0.0f;
    UNROLLED
    for (uint32_t e = 0; e < ATTENTION_SCORES; e++)
        largest = scores[e] > largest || scores[e] != scores[e] ? scores[e] : largest;
    largest = lanes_largest(largest, ATTENTION_LANES);
    const float shrinks = largest == least ? 1.0f : exponential(softmax->largest - largest);
    UNROLLED
    for (uint32_t e = 0; e < ATTENTION_SCORES; e++) {
        scores[e] = largest == least ? 1.0f : exponential(scores[e] - largest);
        if (attention_key(e) >= seen) scores[e] = 0.0f;
        sum += scores[e];
    }
    softmax->largest = largest;
    softmax->sum = softmax->sum * shrinks + lanes_sum(sum, ATTENTION_LANES);
    return shrinks;
}

// `numbers` += the weights of a row of the tile times rows of `x`; `step` is between the weights.
DEVICE void attention_gather(const float *weights, uint32_t step, uint32_t from, uint32_t to,
                             float (*x)[ATTENTION_WIDTH], uint32_t depth, float *numbers) {
    for (uint32_t i = from; i < to; i++) {
        const float weight = weights[i * step];
        UNROLLED
        for (uint32_t n = 0; n < ATTENTION_NUMBERS; n++) {
            const uint32_t column = ATTENTION_LANE + n * ATTENTION_LANES;
            if (column < depth) numbers[n] = multiply_add(weight, x[i][column], numbers[n]);
        }
    }
}

DEVICE void attention_store(float *to, uint32_t depth, const float *numbers, float factor,
                            uint32_t adds) {
    UNROLLED
    for (uint32_t n = 0; n < ATTENTION_NUMBERS; n++) {
        const uint32_t column = ATTENTION_LANE + n * ATTENTION_LANES;
        if (column < depth) store(to, column, numbers[n] * factor, adds);
    }
}

DEVICE void attention_clear(float *numbers) {
    UNROLLED
    for (uint32_t n = 0; n < ATTENTION_NUMBERS; n++)
        numbers[n] = 0.0f;
}

// y of a tile of rows. A row whose scores are all -inf has no numbers.
KERNEL(attention, cuda_attention_args) {
    SHARED float q[ATTENTION_ROWS][ATTENTION_WIDTH];
    SHARED float other[ATTENTION_ROWS][ATTENTION_WIDTH];
    SHARED float weights[ATTENTION_ROWS][ATTENTION_ROWS + 1];
    const uint32_t tiles = (a.queries + ATTENTION_ROWS - 1) / ATTENTION_ROWS;
    for (uint64_t block = BLOCK_X; block < a.attentions * tiles; block += BLOCKS_X) {
        const struct attention_tile tile =
            attention_tile_of(&a, block / tiles, (uint32_t)(block % tiles) * ATTENTION_ROWS);
        const uint32_t end = attention_end(&a, tile.first);
        struct attention_softmax softmax = {float_of_bits(0xff800000u), 0.0f};
        float numbers[ATTENTION_NUMBERS];
        attention_clear(numbers);
        attention_load_q(q, &a, &tile);
        for (uint32_t key = 0; key < end; key += ATTENTION_ROWS) {
            float scores[ATTENTION_SCORES];
            attention_load_k(other, &a, tile.index, key);
            barrier();
            attention_scores(&a, &tile, key, q, other, scores);
            const float shrinks = attention_take(&a, &tile, key, &softmax, scores);
            UNROLLED
            for (uint32_t e = 0; e < ATTENTION_SCORES; e++)
                weights[ATTENTION_ROW][attention_key(e)] = rounded(
                    scores[e] * attention_kept(&a, &tile, key + attention_key(e)), a.precision);
            UNROLLED
            for (uint32_t n = 0; n < ATTENTION_NUMBERS; n++)
                numbers[n] *= shrinks;
            barrier(); // k was read
            attention_load_v(other, &a, tile.index, key);
            barrier();
            attention_gather(weights[ATTENTION_ROW], 1, 0, attention_sees_of(&a, tile.row, key),
                             other, a.value_depth, numbers);
            barrier(); // v was read
        }
        if (tile.row >= a.queries) continue;
        const uint32_t is_hidden = softmax.largest == float_of_bits(0xff800000u);
        const float factor = is_hidden ? float_of_bits(0x7fc00000u) : 1.0f / softmax.sum;
        attention_store(a.y + attention_offset(&a, &a.of_y, tile.index) + tile.row * a.of_y.row,
                        a.value_depth, numbers, factor, a.adds);
    }
}

// The sum over keys in softmax's gradient, which is the product of y and of dy as slopes have it.
DEVICE float attention_mean(const attention_args *a, const struct attention_tile *tile) {
    float sum = 0.0f;
    if (tile->row < a->queries) {
        const uint64_t at =
            attention_offset(a, &a->of_y, tile->index) + tile->row * a->of_y.row;
        for (uint32_t i = ATTENTION_LANE; i < a->value_depth; i += ATTENTION_LANES)
            sum = multiply_add(rounded(a->dy[at + i], a->precision), a->y[at + i], sum);
    }
    return lanes_sum(sum, ATTENTION_LANES);
}

// The gradient of a score of which p, and dy times v, are known.
DEVICE float attention_slope(const attention_args *a, const struct attention_tile *tile,
                             uint32_t key, float p, float dot, float mean) {
    if (tile->row >= a->queries || key >= attention_sees(a, tile->row)) return 0.0f;
    if (attention_hides(a, tile, key)) return 0.0f;
    return p * (dot * attention_kept(a, tile, key) - mean);
}

// Of a tile of rows and keys: the scores, of q and k, and the slopes before softmax, of dy and v.
DEVICE void attention_meet(const attention_args *a, const struct attention_tile *tile,
                           uint32_t first_key, float (*own)[ATTENTION_WIDTH],
                           float (*other)[ATTENTION_WIDTH], float *scores, float *dots) {
    attention_load_q(own, a, tile);
    attention_load_k(other, a, tile->index, first_key);
    barrier();
    attention_scores(a, tile, first_key, own, other, scores);
    barrier();
    attention_load_dy(own, a, tile);
    attention_load_v(other, a, tile->index, first_key);
    barrier();
    attention_dots(own, other, a->value_depth, dots);
}

// dq of a tile of rows, and what the next kernel needs of each row.
KERNEL(attention_backward_rows, cuda_attention_args) {
    SHARED float own[ATTENTION_ROWS][ATTENTION_WIDTH];
    SHARED float other[ATTENTION_ROWS][ATTENTION_WIDTH];
    SHARED float slopes[ATTENTION_ROWS][ATTENTION_ROWS + 1];
    const uint32_t tiles = (a.queries + ATTENTION_ROWS - 1) / ATTENTION_ROWS;
    for (uint64_t block = BLOCK_X; block < a.attentions * tiles; block += BLOCKS_X) {
        const struct attention_tile tile =
            attention_tile_of(&a, block / tiles, (uint32_t)(block % tiles) * ATTENTION_ROWS);
        const uint32_t end = attention_end(&a, tile.first);
        const float mean = attention_mean(&a, &tile);
        struct attention_softmax softmax = {float_of_bits(0xff800000u), 0.0f};
        float scores[ATTENTION_SCORES], dots[ATTENTION_SCORES], numbers[ATTENTION_NUMBERS];
        attention_load_q(own, &a, &tile);
        for (uint32_t key = 0; key < end; key += ATTENTION_ROWS) {
            attention_load_k(other, &a, tile.index, key);
            barrier();
            attention_scores(&a, &tile, key, own, other, scores);
            attention_take(&a, &tile, key, &softmax, scores);
            barrier(); // k was read
        }
        attention_clear(numbers);
        for (uint32_t key = 0; key < end; key += ATTENTION_ROWS) {
            attention_meet(&a, &tile, key, own, other, scores, dots);
            UNROLLED
            for (uint32_t e = 0; e < ATTENTION_SCORES; e++) {
                const float p = exponential(scores[e] - softmax.largest) / softmax.sum;
                slopes[ATTENTION_ROW][attention_key(e)] = rounded(
                    attention_slope(&a, &tile, key + attention_key(e), p, dots[e], mean),
                    a.precision);
            }
            barrier();
            attention_load_k(other, &a, tile.index, key);
            barrier();
            attention_gather(slopes[ATTENTION_ROW], 1, 0, attention_sees_of(&a, tile.row, key),
                             other, a.depth, numbers);
            barrier();
        }
        if (tile.row >= a.queries) continue;
        if (ATTENTION_LANE == 0) {
            const struct cuda_attention_row row = {softmax.largest, softmax.sum, mean};
            a.rows[tile.index * a.queries + tile.row] = row;
        }
        attention_store(a.dq + attention_offset(&a, &a.of_q, tile.index) + tile.row * a.of_q.row,
                        a.depth, numbers, a.scale, a.adds);
    }
}

// dk and dv of a tile of keys: a thread has a row of them for its numbers, and a row of q for its
// scores. All heads that share the keys come one after the other.
KERNEL(attention_backward_keys, cuda_attention_args) {
    SHARED float own[ATTENTION_ROWS][ATTENTION_WIDTH];
    SHARED float other[ATTENTION_ROWS][ATTENTION_WIDTH];
    SHARED float weights[ATTENTION_ROWS][ATTENTION_ROWS + 1];
    SHARED float slopes[ATTENTION_ROWS][ATTENTION_ROWS + 1];
    const uint32_t tiles = (a.keys + ATTENTION_ROWS - 1) / ATTENTION_ROWS, shared = a.of_k.shared;
    for (uint64_t block = BLOCK_X; block < a.attentions / shared * tiles; block += BLOCKS_X) {
        const uint64_t head = block / tiles * shared; // the first that shares them
        const uint32_t key = (uint32_t)(block % tiles) * ATTENTION_ROWS;
        const uint32_t own_key = key + ATTENTION_ROW;
        const uint32_t begin = a.is_causal ? key : 0; // rows before see none of the keys
        float dk[ATTENTION_NUMBERS], dv[ATTENTION_NUMBERS];
        attention_clear(dk);
        attention_clear(dv);
        for (uint64_t turn = 0; turn < shared; turn++) {
            for (uint32_t first = begin; first < a.queries; first += ATTENTION_ROWS) {
                const struct attention_tile tile = attention_tile_of(&a, head + turn, first);
                const uint32_t rows = a.queries - first;
                const uint32_t to = rows < ATTENTION_ROWS ? rows : ATTENTION_ROWS;
                // the first row that sees this thread's key
                const uint32_t from = a.is_causal && own_key > first ? own_key - first : 0;
                struct cuda_attention_row row = {0.0f, 1.0f, 0.0f};
                float scores[ATTENTION_SCORES], dots[ATTENTION_SCORES];
                if (tile.row < a.queries) row = a.rows[tile.index * a.queries + tile.row];
                attention_meet(&a, &tile, key, own, other, scores, dots);
                UNROLLED
                for (uint32_t e = 0; e < ATTENTION_SCORES; e++) {
                    const uint32_t at = attention_key(e);
                    const float p = exponential(scores[e] - row.largest) / row.sum;
                    const float slope =
                        attention_slope(&a, &tile, key + at, p, dots[e], row.mean);
                    weights[ATTENTION_ROW][at] =
                        rounded(p * attention_kept(&a, &tile, key + at), a.precision);
                    slopes[ATTENTION_ROW][at] = rounded(slope, a.precision);
                }
                barrier();
                attention_gather(&weights[0][ATTENTION_ROW], ATTENTION_ROWS + 1, from, to, own,
                                 a.value_depth, dv);
                barrier();
                attention_load_q(own, &a, &tile);
                barrier();
                attention_gather(&slopes[0][ATTENTION_ROW], ATTENTION_ROWS + 1, from, to, own,
                                 a.depth, dk);
                barrier();
            }
        }
        if (own_key >= a.keys) continue;
        attention_store(a.dk + attention_offset(&a, &a.of_k, head) + own_key * a.of_k.row, a.depth,
                        dk, a.scale, a.adds);
        attention_store(a.dv + attention_offset(&a, &a.of_v, head) + own_key * a.of_v.row,
                        a.value_depth, dv, 1.0f, a.adds);
    }
}

// The attention that reads a mask as number `repeat` of those that do. Digits of its index are
// those of the mask where the mask has the dimension, and else those of the repetition.
DEVICE uint64_t attention_of_mask(const attention_args *a, uint64_t mask, uint64_t repeat) {
    uint64_t index = 0, stride = 1;
    for (uint32_t d = 0; d < a->mask_rank; d++) {
        const uint64_t dim = a->mask_dims[d], is_own = a->mask_strides[d] > 0;
        index += (is_own ? mask : repeat) % dim * stride;
        mask = is_own ? mask / dim : mask;
        repeat = is_own ? repeat : repeat / dim;
        stride *= dim;
    }
    return index + repeat * stride;
}

// Adds the slopes of a tile of scores, which are the gradient of what a mask adds there.
DEVICE void attention_add_slopes(const attention_args *a, const struct attention_tile *tile,
                                 uint32_t key, float (*own)[ATTENTION_WIDTH],
                                 float (*other)[ATTENTION_WIDTH], double *sums) {
    struct cuda_attention_row row = {0.0f, 1.0f, 0.0f};
    float scores[ATTENTION_SCORES], dots[ATTENTION_SCORES];
    if (tile->row < a->queries) row = a->rows[tile->index * a->queries + tile->row];
    attention_meet(a, tile, key, own, other, scores, dots);
    UNROLLED
    for (uint32_t e = 0; e < ATTENTION_SCORES; e++) {
        const float p = exponential(scores[e] - row.largest) / row.sum;
        sums[e] +=
            (double)attention_slope(a, tile, key + attention_key(e), p, dots[e], row.mean);
    }
    barrier(); // both were read
}

// Stores a tile of a mask's gradient; along what the mask repeats, all of the tile are one number.
DEVICE void attention_store_mask(const attention_args *a, uint64_t mask, uint32_t first,
                                 uint32_t key, double (*slopes)[ATTENTION_ROWS + 1]) {
    const uint32_t rows = a->mask_row > 0 ? 1 : ATTENTION_ROWS; // that are one number
    const uint32_t keys = a->mask_column > 0 ? 1 : ATTENTION_ROWS;
    const uint64_t size =
        (a->mask_row > 0 ? a->queries : 1) * (uint64_t)(a->mask_column > 0 ? a->keys : 1);
    for (uint32_t i = THREAD; i < ATTENTION_ROWS * ATTENTION_ROWS; i += THREADS) {
        const uint32_t r = i / ATTENTION_ROWS, k = i % ATTENTION_ROWS;
        double sum = 0.0;
        if (r % rows > 0 || k % keys > 0 || first + r >= a->queries || key + k >= a->keys) continue;
        for (uint32_t n = 0; n < rows * keys; n++)
            sum += slopes[r + n / keys][k + n % keys];
        store(a->dmask, mask * size + (first + r) * a->mask_row + (key + k) * a->mask_column,
              (float)sum, a->adds);
    }
}

// The gradient of a tile of a mask: all attentions that read it come one after the other, and in
// each all tiles that it is repeated for.
KERNEL(attention_backward_mask, cuda_attention_args) {
    SHARED float own[ATTENTION_ROWS][ATTENTION_WIDTH];
    SHARED float other[ATTENTION_ROWS][ATTENTION_WIDTH];
    SHARED double slopes[ATTENTION_ROWS][ATTENTION_ROWS + 1];
    const uint32_t step = ATTENTION_ROWS;
    const uint32_t row_tiles = a.mask_row > 0 ? (a.queries + step - 1) / step : 1;
    const uint32_t key_tiles = a.mask_column > 0 ? (a.keys + step - 1) / step : 1;
    const uint64_t tiles = (uint64_t)row_tiles * key_tiles;
    for (uint64_t block = BLOCK_X; block < a.masks * tiles; block += BLOCKS_X) {
        const uint64_t mask = block / tiles;
        const uint32_t first = (uint32_t)(block % tiles / key_tiles) * step;
        const uint32_t first_key = (uint32_t)(block % key_tiles) * step;
        const uint32_t end = a.mask_row > 0 ? first + 1 : a.queries;
        const uint32_t end_key = a.mask_column > 0 ? first_key + 1 : a.keys;
        double sums[ATTENTION_SCORES] = {0.0};
        for (uint64_t repeat = 0; repeat < a.attentions / a.masks; repeat++) {
            const uint64_t index = attention_of_mask(&a, mask, repeat);
            for (uint32_t row = first; row < end; row += step) {
                const struct attention_tile tile = attention_tile_of(&a, index, row);
                for (uint32_t key = first_key; key < end_key; key += step)
                    attention_add_slopes(&a, &tile, key, own, other, sums);
            }
        }
        UNROLLED
        for (uint32_t e = 0; e < ATTENTION_SCORES; e++)
            slopes[ATTENTION_ROW][attention_key(e)] = sums[e];
        barrier();
        attention_store_mask(&a, mask, first, first_key, slopes);
    }
}
