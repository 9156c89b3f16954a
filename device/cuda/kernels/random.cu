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
