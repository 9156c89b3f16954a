// Rows of gradients that microbatches leave behind each other.

// The first microbatch sets all to zeros but for its own rows; others only add theirs.
KERNEL(stack, cuda_stack_args) {
    const uint64_t turn = a.place->stream;
    const uint64_t first = turn == ~(uint64_t)0 ? a.count : turn * a.turn;
    EACH(i, a.count) {
        const uint32_t is_own = i >= first && i - first < a.x_count;
        if (!is_own && a.adds) continue;
        copy_element(a.y, i, is_own ? a.x : 0, is_own ? i - first : 0, a.bytes,
                     a.adds && a.is_float);
    }
}
