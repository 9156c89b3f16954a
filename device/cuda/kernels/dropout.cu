// Dropout: element i has number i of the node's stream, as on every device. A thread takes four
// elements, which is what a block of random numbers has.

KERNEL(dropout, cuda_dropout_args) {
    const struct cuda_random random = *a.random;
    EACH(block, (a.count + 3) / 4) {
        const struct random_numbers drawn = random_block(random, block);
        for (uint32_t k = 0; k < 4 && block * 4 + k < a.count; k++) {
            const uint64_t i = block * 4 + k;
            const uint32_t keeps = random_one(&drawn, k) >> 8 >= a.threshold;
            const float x = a.x[i];
            store(a.y, i, keeps ? x / a.keep : 0.0f, a.adds);
            if (a.mask_new) a.mask_new[i] = (unsigned char)keeps;
        }
    }
}

KERNEL(dropout_backward, cuda_dropout_args) {
    EACH(i, a.count) store(a.y, i, a.mask[i] ? a.x[i] / a.keep : 0.0f, a.adds);
}
