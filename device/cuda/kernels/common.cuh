// What several kernels use.

// The elements that a thread takes of `count`.
#define EACH(i, count)                                                                             \
    for (uint64_t i = (uint64_t)BLOCK_X * THREADS + THREAD; i < (count);                           \
         i += (uint64_t)BLOCKS_X * THREADS)

// Which of the blocks that share a tensor this one is.
struct block_of {
    uint32_t block, blocks;
};

// The elements that a thread takes of `count`, in a kernel of one or many.
#define EACH_OF(of, i, count)                                                                      \
    for (uint64_t i = (uint64_t)(of).block * THREADS + THREAD; i < (count);                        \
         i += (uint64_t)(of).blocks * THREADS)

// The argument of a block: the last one that begins at it, or before.
DEVICE uint32_t many_find(const uint32_t *first_blocks, uint32_t count, struct block_of *of) {
    uint32_t low = 0, high = count;
    while (high - low > 1) {
        const uint32_t middle = low + (high - low) / 2;
        if (first_blocks[middle] <= BLOCK_X)
            low = middle;
        else
            high = middle;
    }
    of->block = BLOCK_X - first_blocks[low];
    of->blocks = first_blocks[low + 1] - first_blocks[low];
    return low;
}

// Two kernels of one text: NAME for one tensor, NAME_many for those of a table. The text has its
// argument `a`, and `of`: its place among the blocks of its tensor.
#define KERNEL_OF_MANY(name, args)                                                                 \
    DEVICE void name##_of(const struct args a, const struct block_of of);                          \
    KERNEL(name, args) {                                                                           \
        const struct block_of of = {BLOCK_X, BLOCKS_X};                                            \
        name##_of(a, of);                                                                          \
    }                                                                                              \
    KERNEL(name##_many, cuda_many_args) {                                                          \
        struct block_of of;                                                                        \
        const uint32_t which = many_find(a.first_blocks, a.count, &of);                            \
        struct args one = ((const struct args *)a.table)[which];                                   \
        reach(one);                                                                                \
        name##_of(one, of);                                                                        \
    }                                                                                              \
    DEVICE void name##_of(const struct args a, const struct block_of of)

// Sets or adds.
DEVICE void store(float *y, uint64_t i, float value, uint32_t adds) {
    y[i] = adds ? y[i] + value : value;
}

// 64 bits of the lane of this warp whose number differs in the bits of o; all call it.
DEVICE uint64_t whole_from_lane_xor(uint64_t v, int o) {
    const float low = from_lane_xor(float_of_bits((uint32_t)v), o);
    const float high = from_lane_xor(float_of_bits((uint32_t)(v >> 32)), o);
    return (uint64_t)bits_of_float(high) << 32 | bits_of_float(low);
}

// Of `lanes` neighbours in a warp, a power of two; in each of them.
DEVICE float lanes_sum(float v, int lanes) {
    for (int o = lanes / 2; o > 0; o >>= 1)
        v += from_lane_xor(v, o);
    return v;
}

DEVICE float lanes_largest(float v, int lanes) {
    for (int o = lanes / 2; o > 0; o >>= 1) {
        const float other = from_lane_xor(v, o);
        v = other > v || other != other ? other : v;
    }
    return v;
}

DEVICE float warp_sum(float v) {
    return lanes_sum(v, 32);
}

DEVICE float warp_largest(float v) {
    return lanes_largest(v, 32);
}

// The sum of all threads' v, in each of them; always the same order of additions. `room` has a
// float for each warp.
DEVICE float block_sum(float v, float *room) {
    v = warp_sum(v);
    if (THREAD % 32 == 0) room[THREAD / 32] = v;
    barrier();
    v = warp_sum(THREAD % 32 < THREADS / 32 ? room[THREAD % 32] : 0.0f);
    barrier(); // the room is used again
    return v;
}

// The same in double, of a room with a double for each thread.
DEVICE double block_sum_wide(double v, double *room) {
    room[THREAD] = v;
    barrier();
    for (uint32_t half = PEN_CUDA_BLOCK / 2; half > 0; half /= 2) {
        if (THREAD < half) room[THREAD] += room[THREAD + half];
        barrier();
    }
    v = room[0];
    barrier(); // the room is used again
    return v;
}

// The largest, or what is not a number where one is.
DEVICE float block_largest(float v, float *room) {
    v = warp_largest(v);
    if (THREAD % 32 == 0) room[THREAD / 32] = v;
    barrier();
    v = warp_largest(room[THREAD % 32 < THREADS / 32 ? THREAD % 32 : 0]);
    barrier();
    return v;
}

// ---- lines, whose elements a team of threads shares: short lines have several teams in a warp

struct line_team {
    uint32_t size, lane;
    uint32_t is_there;      // 0: another team has the line, and this one stores nothing
    uint64_t line, lines;   // the line of this turn, of how many
    uint64_t first, offset; // the first line of this turn that its warp, or block, has; from there
};

// All teams of a warp take as many turns, since their lanes exchange numbers: the last lines are
// taken by several.
DEVICE void team_turn(struct line_team *team) {
    team->line = team->first + team->offset;
    team->is_there = team->line < team->lines;
    if (!team->is_there) team->line = team->lines - 1;
}

DEVICE struct line_team team_of(uint64_t lines, uint64_t length) {
    struct line_team team;
    team.size = PEN_CUDA_TEAM(length);
    team.lane = THREAD % team.size;
    team.lines = lines;
    const uint32_t together = team.size > 32 ? team.size : 32; // threads that take as many turns
    team.first = ((uint64_t)BLOCK_X * THREADS + THREAD / together * together) / team.size;
    team.offset = THREAD % together / team.size;
    team_turn(&team);
    return team;
}

#define EACH_LINE(team, line_count, line_length)                                                   \
    for (struct line_team team = team_of(line_count, line_length); team.first < team.lines;        \
         team.first += (uint64_t)BLOCKS_X * (THREADS / team.size), team_turn(&team))

// In each thread of a team; the room is as that of a block's sum.
DEVICE float team_sum(const struct line_team *team, float v, float *room) {
    return team->size > 32 ? block_sum(v, room) : lanes_sum(v, (int)team->size);
}

// A product that is never too large on the way: `size` 2^exponent, of a size from 1 to 2, or from
// -2 to -1. A size that is 0, infinite or no number stays so. 64 numbers that are 1e10 and 1e-10 by
// turns make 1, where lanes of one kind would make 1e320, which is infinite in double.
struct long_product {
    double size;
    int64_t exponent;
};

DEVICE uint64_t bits_of_double(double v) {
    union {
        double number;
        uint64_t bits;
    } word;
    word.number = v;
    return word.bits;
}

DEVICE double double_of_bits(uint64_t v) {
    union {
        double number;
        uint64_t bits;
    } word;
    word.bits = v;
    return word.number;
}

// size 2^exponent, of a size that is not below the least normal number, or 0.
DEVICE struct long_product long_product_of(double size, int64_t exponent) {
    struct long_product made = {size, exponent};
    const uint64_t bits = bits_of_double(size), power = bits >> 52 & 0x7ffu;
    if (power == 0 || power == 0x7ffu) return made;
    made.size = double_of_bits((bits & ~((uint64_t)0x7ffu << 52)) | (uint64_t)1023 << 52);
    made.exponent += (int64_t)power - 1023;
    return made;
}

DEVICE struct long_product long_times(struct long_product a, struct long_product b) {
    return long_product_of(a.size * b.size, a.exponent + b.exponent);
}

DEVICE struct long_product long_divided(struct long_product a, struct long_product by) {
    return long_product_of(a.size / by.size, a.exponent - by.exponent);
}

// The nearest float: from 2^900 on all are infinite, and below 2^-900 all are 0.
DEVICE float float_of_long(struct long_product p) {
    const int64_t far = 900;
    const int64_t power = p.exponent > far ? far : p.exponent < -far ? -far : p.exponent;
    return (float)(p.size * double_of_bits((uint64_t)(power + 1023) << 52));
}

DEVICE struct long_product lanes_product(struct long_product p, int lanes) {
    for (int o = lanes / 2; o > 0; o >>= 1) {
        const struct long_product other = {
            double_of_bits(whole_from_lane_xor(bits_of_double(p.size), o)),
            (int64_t)whole_from_lane_xor((uint64_t)p.exponent, o)};
        p = long_times(p, other);
    }
    return p;
}

// In each thread of a team, of a room with a product for each warp.
DEVICE struct long_product team_product(const struct line_team *team, struct long_product p,
                                        struct long_product *room) {
    p = lanes_product(p, team->size > 32 ? 32 : (int)team->size);
    if (team->size <= 32) return p;
    if (THREAD % 32 == 0) room[THREAD / 32] = p;
    barrier();
    p = lanes_product(room[THREAD % (PEN_CUDA_BLOCK / 32)], PEN_CUDA_BLOCK / 32);
    barrier(); // the room is used again
    return p;
}

DEVICE float team_largest(const struct line_team *team, float v, float *room) {
    return team->size > 32 ? block_largest(v, room) : lanes_largest(v, (int)team->size);
}

// ---- numbers of any type

DEVICE int64_t read_whole(const void *x, uint32_t type, uint64_t i) {
    if (type == PEN_CUDA_INT64) return ((const int64_t *)x)[i];
    if (type == PEN_CUDA_INT32) return (int64_t)((const int32_t *)x)[i];
    return (int64_t)((const unsigned char *)x)[i];
}

DEVICE double read_number(const void *x, uint32_t type, uint64_t i) {
    if (type == PEN_CUDA_FLOAT32) return (double)((const float *)x)[i];
    if (type == PEN_CUDA_FLOAT64) return ((const double *)x)[i];
    return (double)read_whole(x, type, i);
}

// An integer wraps; a truth is whether it is 0.
DEVICE void write_whole(void *y, uint32_t type, uint64_t i, int64_t whole) {
    if (type == PEN_CUDA_INT64)
        ((int64_t *)y)[i] = whole;
    else if (type == PEN_CUDA_INT32)
        ((int32_t *)y)[i] = (int32_t)whole;
    else
        ((unsigned char *)y)[i] = whole != 0;
}

// Of integers and truths only what an int64 has.
DEVICE void write_number(void *y, uint32_t type, uint64_t i, double number) {
    if (type == PEN_CUDA_FLOAT32)
        ((float *)y)[i] = (float)number;
    else if (type == PEN_CUDA_FLOAT64)
        ((double *)y)[i] = number;
    else
        write_whole(y, type, i, (int64_t)number);
}

// y[to] = x[from] of 1, 4 or 8 bytes, or zeros where x is NULL; floats of 4 bytes are added where
// `adds`.
DEVICE void copy_element(void *y, uint64_t to, const void *x, uint64_t from, uint32_t bytes,
                         uint32_t adds) {
    if (bytes == 8)
        ((uint64_t *)y)[to] = x ? ((const uint64_t *)x)[from] : 0;
    else if (bytes == 1)
        ((unsigned char *)y)[to] = x ? ((const unsigned char *)x)[from] : (unsigned char)0;
    else if (adds)
        store((float *)y, to, x ? ((const float *)x)[from] : 0.0f, 1);
    else
        ((uint32_t *)y)[to] = x ? ((const uint32_t *)x)[from] : 0u;
}

// Positions of a window, or of a plane.
DEVICE uint32_t window_volume(const uint32_t *sizes) {
    return sizes[0] * sizes[1] * sizes[2];
}

// ---- random numbers: those of base/random.c

struct random_numbers {
    uint32_t c0, c1, c2, c3;
};

// Block `counter` of a stream: Philox4x32-10.
DEVICE struct random_numbers random_block(struct cuda_random key, uint64_t counter) {
    struct random_numbers c;
    uint32_t k0 = (uint32_t)key.seed, k1 = (uint32_t)(key.seed >> 32);
    c.c0 = (uint32_t)counter;
    c.c1 = (uint32_t)(counter >> 32);
    c.c2 = (uint32_t)key.stream;
    c.c3 = (uint32_t)(key.stream >> 32);
    for (int round = 0; round < 10; round++) {
        const uint64_t p0 = (uint64_t)0xD2511F53u * c.c0;
        const uint64_t p1 = (uint64_t)0xCD9E8D57u * c.c2;
        c.c0 = (uint32_t)(p1 >> 32) ^ c.c1 ^ k0;
        c.c2 = (uint32_t)(p0 >> 32) ^ c.c3 ^ k1;
        c.c1 = (uint32_t)p1;
        c.c3 = (uint32_t)p0;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    return c;
}

DEVICE uint32_t random_one(const struct random_numbers *drawn, uint32_t k) {
    return k < 2 ? k == 0 ? drawn->c0 : drawn->c1 : k == 2 ? drawn->c2 : drawn->c3;
}

// Number `index` of a stream, uniform in [0, 2^24): pen_random_uniform times 2^24.
DEVICE uint32_t random_24_bits(struct cuda_random key, uint64_t index) {
    const struct random_numbers drawn = random_block(key, index / 4);
    return random_one(&drawn, (uint32_t)(index % 4)) >> 8;
}
