// Numbers that are picked by their size, and where they are.

// A number as an integer that sorts as numbers do, or the other way round for the least. What is
// not a number has all bits set where `nan` says so, or none. Both zeros are equal.
DEVICE uint64_t choice_key(const struct cuda_choice_args *a, uint64_t i, uint32_t nan) {
    const uint32_t is_wide = a->type == PEN_CUDA_FLOAT64;
    uint64_t bits, sign = (uint64_t)1 << 63, infinite = (uint64_t)0x7ff << 52;
    if (a->type > PEN_CUDA_FLOAT64) {
        bits = (uint64_t)read_whole(a->x, a->type, i) ^ sign;
        return a->is_least ? ~bits : bits;
    }
    bits = is_wide ? ((const uint64_t *)a->x)[i] : ((const uint32_t *)a->x)[i];
    if (!is_wide) sign = 0x80000000u, infinite = 0x7f800000u;
    if ((bits & ~sign) > infinite) return nan ? ~(uint64_t)0 : 0;
    if (bits == sign) bits = 0;
    bits = bits & sign ? 2 * sign - 1 - bits : bits | sign;
    return a->is_least ? ~bits : bits;
}

// Where the number that comes first is.
struct choice {
    uint64_t key, at;
};

DEVICE struct choice choice_first(struct choice one, struct choice other) {
    const uint32_t wins = other.key > one.key || (other.key == one.key && other.at < one.at);
    return wins ? other : one;
}

DEVICE struct choice lanes_first(struct choice found, int lanes) {
    for (int o = lanes / 2; o > 0; o >>= 1) {
        const struct choice other = {whole_from_lane_xor(found.key, o),
                                     whole_from_lane_xor(found.at, o)};
        found = choice_first(found, other);
    }
    return found;
}

// In each thread of a team; the room has one for each warp.
DEVICE struct choice team_first(const struct line_team *team, struct choice found,
                                struct choice *room) {
    found = lanes_first(found, team->size > 32 ? 32 : (int)team->size);
    if (team->size <= 32) return found;
    if (THREAD % 32 == 0) room[THREAD / 32] = found;
    barrier();
    found = lanes_first(room[THREAD % (THREADS / 32)], PEN_CUDA_BLOCK / 32);
    barrier(); // the room is used again
    return found;
}

// What is not a number comes first, also where the least is looked for.
KERNEL(choose_place, cuda_choice_args) {
    SHARED struct choice room[PEN_CUDA_BLOCK / 32];
    EACH_LINE(team, a.lines, a.count) {
        const uint64_t first = team.line / a.inner * a.count * a.inner + team.line % a.inner;
        struct choice found = {0, ~(uint64_t)0};
        for (uint64_t k = team.lane; k < a.count; k += team.size) {
            const struct choice own = {choice_key(&a, first + k * a.inner, 1), k};
            found = choice_first(found, own);
        }
        found = team_first(&team, found, room);
        if (team.lane == 0 && team.is_there) a.places[team.line] = (int64_t)found.at;
    }
}

// A thread counts how many numbers come before its own, up to k. What is not a number counts as the
// largest.
KERNEL(choose_top, cuda_choice_args) {
    EACH(i, a.lines * a.count) {
        const uint64_t line = i / (a.count * a.inner) * a.inner + i % a.inner;
        const uint64_t own = i / a.inner % a.count, first = i - own * a.inner;
        const uint64_t key = choice_key(&a, i, !a.is_least);
        uint64_t before = 0;
        for (uint64_t k = 0; k < a.count && before < a.k; k++) {
            const uint64_t other = choice_key(&a, first + k * a.inner, !a.is_least);
            before += other > key || (other == key && k < own);
        }
        if (before >= a.k) continue;
        const uint64_t to = (line / a.inner * a.k + before) * a.inner + line % a.inner;
        copy_element(a.y, to, a.x, i, a.bytes, 0);
        if (a.places) a.places[to] = (int64_t)own;
    }
}

// An index that is no position switches nothing on.
KERNEL(one_hot, cuda_one_hot_args) {
    EACH(i, a.count) {
        const uint64_t at = i / (a.depth * a.inner) * a.inner + i % a.inner;
        double index = read_number(a.indices, a.type, at);
        if (index < 0.0) index += (double)a.depth;
        copy_element(a.y, i, a.values, index == (double)(i / a.inner % a.depth) ? 1 : 0, a.bytes,
                     0);
    }
}

KERNEL(constant, cuda_constant_args) {
    EACH(i, a.count) {
        if (a.bytes == 8)
            ((uint64_t *)a.y)[i] = a.bits;
        else if (a.bytes == 4)
            ((uint32_t *)a.y)[i] = (uint32_t)a.bits;
        else
            ((unsigned char *)a.y)[i] = (unsigned char)a.bits;
    }
}
