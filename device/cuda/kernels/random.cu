// Random tensors: element i is made of number i of the node's stream, as on every device.

DEVICE double drawn_uniform(struct cuda_random random, uint64_t i) {
    return (double)random_24_bits(random, i) * (1.0 / 16777216.0);
}

// pen_random_normal (base/random.c), whose logarithm and cosine are those of numbers.cuh.
DEVICE double drawn_normal(struct cuda_random random, uint64_t i) {
    const struct random_numbers drawn = random_block(random, i);
    const uint64_t bits = (uint64_t)drawn.c0 << 21 | drawn.c1 >> 11;
    const double u = ((double)bits + 0.5) * (1.0 / 9007199254740992.0);
    return wide_square_root(-2.0 * wide_log_below_one(u)) * wide_cosine_of_turn(drawn.c2);
}

KERNEL(draw, cuda_drawn_args) {
    const struct cuda_random random = *a.random;
    EACH(i, a.count) {
        double y;
        if (a.what == PEN_CUDA_NORMAL)
            y = a.low + a.width * drawn_normal(random, i);
        else
            y = a.low + a.width * drawn_uniform(random, i);
        if (a.what == PEN_CUDA_BERNOULLI) y = y < read_number(a.x, a.x_type, i) ? 1.0 : 0.0;
        write_number(a.y, a.type, i, y);
    }
}

// ---- classes by the logarithms of their shares

// e^x of an x that is not above 0, to the least double.
DEVICE double drawn_share(double x) {
    if (!(x < -80.0)) return x == x ? wide_exp(x) : x;
    if (x < -745.2) return 0.0;
    double share = wide_exp(x * 0.0625);
    UNROLLED
    for (uint32_t i = 0; i < 4; i++)
        share *= share;
    return share;
}

// The class at which the running sum of shares passes `part`, which is not before `first`; that of
// all before it is `sum`.
DEVICE uint64_t drawn_class(const struct cuda_classes_args *a, uint64_t row, uint64_t first,
                            double largest, double sum, double part) {
    for (uint64_t c = first; c + 1 < a->classes; c++) {
        sum += drawn_share(read_number(a->x, a->x_type, row * a->classes + c) - largest);
        if (sum > part) return c;
    }
    return a->classes - 1;
}

// A block has a row. A thread sums the shares of a piece of classes; then it looks for the piece of
// a sample, and in it for the class.
KERNEL(draw_classes, cuda_classes_args) {
    SHARED double room[PEN_CUDA_BLOCK];
    const struct cuda_random random = *a.random;
    const uint64_t piece = (a.classes + THREADS - 1) / THREADS;
    for (uint64_t row = BLOCK_X; row < a.rows; row += BLOCKS_X) {
        const uint64_t begin = THREAD * piece < a.classes ? THREAD * piece : a.classes;
        const uint64_t end = begin + piece < a.classes ? begin + piece : a.classes;
        double largest = -(double)float_of_bits(0x7f800000u), sum = 0.0;
        for (uint64_t c = begin; c < end; c++) {
            const double x = read_number(a.x, a.x_type, row * a.classes + c);
            largest = x > largest ? x : largest;
        }
        room[THREAD] = largest;
        barrier();
        for (uint32_t i = 0; i < THREADS; i++)
            largest = room[i] > largest ? room[i] : largest;
        barrier(); // the room is used again
        for (uint64_t c = begin; c < end; c++)
            sum += drawn_share(read_number(a.x, a.x_type, row * a.classes + c) - largest);
        room[THREAD] = sum;
        barrier();
        if (THREAD == 0) {
            for (uint32_t i = 1; i < THREADS; i++)
                room[i] += room[i - 1];
        }
        barrier();
        for (uint64_t i = THREAD; i < a.samples; i += THREADS) {
            const uint64_t at = row * a.samples + i;
            const double part = drawn_uniform(random, at) * room[THREADS - 1];
            uint32_t k = 0;
            while (k + 1 < THREADS && !(room[k] > part))
                k++;
            const double before = k > 0 ? room[k - 1] : 0.0;
            write_whole(a.y, a.type, at,
                        (int64_t)drawn_class(&a, row, k * piece, largest, before, part));
        }
        barrier(); // the room is used again
    }
}
