// Offsets beside those of a plain search that looks at every buffer, and what finding them costs.

#include "graph/analysis/buffer_offsets.h"

#include "base/integer.h"
#include "graph/analysis/first_fit.h"
#include "tests/support/check.h"
#include "tests/support/random_case.h"

typedef struct offset_case {
    pen_arena *arena;
    pen_buffer *buffers;
    uint32_t count;
} offset_case;

static offset_case case_of(uint32_t count) {
    offset_case c = {.arena = check_arena(), .count = count};
    CHECK_OK(PEN_NEW(c.arena, count, &c.buffers));
    return c;
}

// Sizes of a few kinds, as layers have them, or all different; lives short and long.
static offset_case random_buffers(uint64_t seed) {
    random_case dice = {.seed = seed};
    offset_case c = case_of((uint32_t)random_between(&dice, 1, 120));
    const int64_t times = random_between(&dice, 1, 200);
    const int64_t life = random_between(&dice, 0, times);
    const bool few_sizes = random_chance(&dice, 50);
    for (uint32_t i = 0; i < c.count; i++) {
        const int64_t first = random_between(&dice, 0, times - 1);
        const int64_t last = first + random_between(&dice, 0, life);
        const int64_t bytes =
            few_sizes ? 64 * random_between(&dice, 1, 4) : random_between(&dice, 0, 5000);
        c.buffers[i] = (pen_buffer){.bytes = (uint64_t)bytes,
                                    .first = (uint32_t)first,
                                    .last = (uint32_t)pen_min_i64(last, times - 1)};
    }
    return c;
}

static bool live_at_once(const pen_buffer *a, const pen_buffer *b) {
    return a->first <= b->last && b->first <= a->last;
}

static uint64_t end_of(const pen_buffer *buffer) {
    return pen_align_up(buffer->offset + buffer->bytes, PEN_BUFFER_ALIGNMENT);
}

static void check_apart(const offset_case *c, uint64_t bytes) {
    for (uint32_t i = 0; i < c->count; i++) {
        const pen_buffer *a = &c->buffers[i];
        assert_int_equal(a->offset % PEN_BUFFER_ALIGNMENT, 0);
        assert_true(end_of(a) <= bytes);
        for (uint32_t k = 0; k < i; k++) {
            const pen_buffer *b = &c->buffers[k];
            if (!live_at_once(a, b) || end_of(a) <= b->offset || end_of(b) <= a->offset) continue;
            CHECK(a->bytes == 0 || b->bytes == 0, "buffers %u and %u overlap", i, k);
        }
    }
}

// The lowest offset, found by trying the end of each buffer that is placed.
static uint64_t lowest_offset(const offset_case *c, const bool *placed, const pen_buffer *buffer) {
    uint64_t best = UINT64_MAX;
    for (uint32_t candidate = 0; candidate <= c->count; candidate++) {
        if (candidate < c->count && !placed[candidate]) continue;
        pen_buffer tried = *buffer;
        tried.offset = candidate < c->count ? end_of(&c->buffers[candidate]) : 0;
        bool is_free = true;
        for (uint32_t k = 0; k < c->count; k++) {
            const pen_buffer *other = &c->buffers[k];
            is_free &= !placed[k] || !live_at_once(other, &tried) ||
                       end_of(other) <= tried.offset || end_of(&tried) <= other->offset;
        }
        if (is_free) best = pen_min_u64(best, tried.offset);
    }
    return best;
}

static void takes_the_lowest_offsets(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 200; seed++) {
        offset_case c = random_buffers(seed);
        pen_first_fit *fit;
        bool *placed;
        CHECK_OK(PEN_NEW(c.arena, c.count, &placed));
        CHECK_OK(pen_first_fit_new(200, c.arena, &fit));
        for (int round = 0; round < 2; round++) {
            for (uint32_t i = 0; i < c.count; i++) {
                pen_buffer *buffer = &c.buffers[i];
                const uint64_t lowest = buffer->bytes == 0 ? 0 : lowest_offset(&c, placed, buffer);
                CHECK_OK(pen_first_fit_take(fit, buffer->first, buffer->last,
                                            pen_align_up(buffer->bytes, PEN_BUFFER_ALIGNMENT),
                                            &buffer->offset));
                CHECK(buffer->offset == lowest, "seed %llu, buffer %u lies at %llu, not %llu",
                      (unsigned long long)seed, i, (unsigned long long)buffer->offset,
                      (unsigned long long)lowest);
                placed[i] = buffer->bytes > 0;
            }
            pen_first_fit_clear(fit);
            memset(placed, 0, c.count * sizeof *placed);
        }
        pen_arena_destroy(c.arena);
    }
}

static uint64_t live_peak(const offset_case *c) {
    uint64_t peak = 0;
    for (uint32_t i = 0; i < c->count; i++) {
        uint64_t live = 0;
        for (uint32_t k = 0; k < c->count; k++) {
            const pen_buffer *other = &c->buffers[k];
            const uint32_t time = c->buffers[i].first;
            if (other->first <= time && time <= other->last) live += other->bytes;
        }
        peak = pen_max_u64(peak, live);
    }
    return peak;
}

static void buffers_lie_apart(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 300; seed++) {
        offset_case c = random_buffers(seed);
        pen_buffer_sums sums;
        CHECK_OK(pen_buffer_offsets_find(c.buffers, c.count, &sums));
        check_apart(&c, sums.bytes);
        assert_true(sums.live_bytes_peak == live_peak(&c));
        assert_true(sums.bytes >= sums.live_bytes_peak);
        pen_arena_destroy(c.arena);
    }
}

// More stacks than a list has entries: gaps are given up, and nothing overlaps.
static void lists_that_are_full_stay_safe(void **state) {
    (void)state;
    const uint32_t count = 12 * PEN_FIRST_FIT_ENTRIES;
    offset_case c = case_of(count);
    uint64_t bytes = 0;
    pen_first_fit *fit;
    CHECK_OK(pen_first_fit_new(count, c.arena, &fit));
    for (uint32_t i = 0; i < count; i++) {
        // a tower, of which every other floor ends early, and then what fits into the gaps
        pen_buffer *buffer = &c.buffers[i];
        const bool is_late = i >= count / 2;
        buffer->first = is_late ? count / 2 : 0;
        buffer->last = !is_late && i % 2 == 0 ? 1 : count - 1;
        buffer->bytes = is_late ? 64 : 128;
        CHECK_OK(
            pen_first_fit_take(fit, buffer->first, buffer->last, buffer->bytes, &buffer->offset));
        bytes = pen_max_u64(bytes, end_of(buffer));
    }
    check_apart(&c, bytes);
    pen_arena_destroy(c.arena);
}

typedef enum growth {
    NESTED,  // activations of a chain, each read when the backward pass comes by
    PASSING, // each is read by the next few
    MIXED,   // both, of eight sizes
    GROWTH_COUNT,
} growth;

static uint64_t steps_of(growth kind, uint32_t count) {
    random_case dice = {.seed = kind};
    offset_case c = case_of(count);
    pen_buffer_sums sums;
    for (uint32_t i = 0; i < count; i++) {
        pen_buffer *buffer = &c.buffers[i];
        const bool is_nested = kind == NESTED || (kind == MIXED && i % 2 == 0);
        buffer->first = i;
        buffer->last = is_nested ? 2 * count - i : i + 1 + i % 3;
        buffer->bytes = kind == MIXED ? 4096u << random_between(&dice, 0, 7) : 4096;
    }
    CHECK_OK(pen_buffer_offsets_find(c.buffers, count, &sums));
    pen_arena_destroy(c.arena);
    return sums.steps;
}

// Where all sizes differ, gaps are many; the entries of lists bound what a buffer costs.
static void work_has_a_bound(void **state) {
    (void)state;
    random_case dice = {.seed = 1};
    offset_case c = case_of(20000);
    pen_buffer_sums sums;
    for (uint32_t i = 0; i < c.count; i++) {
        c.buffers[i] = (pen_buffer){.bytes = (uint64_t)random_between(&dice, 1, 100000),
                                    .first = i,
                                    .last = i % 2 == 0 ? 2 * c.count - i : i + 1 + i % 3};
    }
    CHECK_OK(pen_buffer_offsets_find(c.buffers, c.count, &sums));
    CHECK(sums.steps <= UINT64_C(4) * c.count * 16 * PEN_FIRST_FIT_ENTRIES, "%llu steps",
          (unsigned long long)sums.steps);
    CHECK(sums.bytes <= sums.live_bytes_peak + sums.live_bytes_peak / 20, "%llu bytes of %llu",
          (unsigned long long)sums.bytes, (unsigned long long)sums.live_bytes_peak);
    pen_arena_destroy(c.arena);
}

static void work_follows_the_count(void **state) {
    (void)state;
    for (int kind = 0; kind < GROWTH_COUNT; kind++) {
        const uint64_t few = steps_of((growth)kind, 2000), many = steps_of((growth)kind, 20000);
        printf("kind %d: %llu steps of 2,000, %llu of 20,000\n", kind, (unsigned long long)few,
               (unsigned long long)many);
        CHECK(many <= 15 * few, "kind %d: %llu steps of 2,000, %llu of 20,000", kind,
              (unsigned long long)few, (unsigned long long)many);
    }
}

PEN_TEST_MAIN(cmocka_unit_test(takes_the_lowest_offsets), cmocka_unit_test(buffers_lie_apart),
              cmocka_unit_test(lists_that_are_full_stay_safe), cmocka_unit_test(work_has_a_bound),
              cmocka_unit_test(work_follows_the_count))
