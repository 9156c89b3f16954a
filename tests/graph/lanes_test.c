#include "graph/lanes.h"

#include "tests/support/check.h"

// Lanes are contiguous, none is empty in a full step, and their sizes differ by one at most.
static void lanes_are_even(void **state) {
    (void)state;
    for (uint32_t microbatches = 1; microbatches < 40; microbatches++) {
        for (uint32_t count = 1; count <= microbatches; count++) {
            const pen_lanes lanes = {count, microbatches};
            uint32_t sizes[40] = {0}, last = 0;
            for (uint32_t m = 0; m < microbatches; m++) {
                const uint32_t lane = pen_lane_of(&lanes, m);
                assert_true(lane == last || lane == last + 1);
                assert_true(lane < count);
                assert_int_equal(pen_lane_count(&lanes, m + 1), lane + 1);
                sizes[lane]++;
                last = lane;
            }
            for (uint32_t l = 0; l < count; l++) {
                assert_true(sizes[l] >= microbatches / count);
                assert_true(sizes[l] <= (microbatches + count - 1) / count);
            }
        }
    }
    assert_int_equal(pen_lane_count(&(pen_lanes){4, 8}, 0), 0);
    assert_int_equal(pen_lane_of(&(pen_lanes){0}, 7), 0);
}

// Whether lanes [first, first + count) stand in the tree as one, without anything beside them.
static bool is_subtree(uint32_t first, uint32_t count, uint32_t begin, uint32_t end) {
    return first >= begin && first + count <= end;
}

// The blocks, from the top of the tree downwards.
static uint32_t descend(uint32_t at, uint32_t size, uint32_t begin, uint32_t end,
                        pen_lane_block *out, uint32_t count) {
    if (at >= end || at + size <= begin) return count;
    if (is_subtree(at, size, begin, end)) {
        out[count] = (pen_lane_block){at, size};
        return count + 1;
    }
    count = descend(at, size / 2, begin, end, out, count);
    return descend(at + size / 2, size / 2, begin, end, out, count);
}

static void blocks_are_subtrees(void **state) {
    (void)state;
    for (uint32_t begin = 0; begin < 70; begin++) {
        uint32_t depth = 0;
        for (uint32_t end = begin; end < 130; end++) {
            pen_lane_block expected[PEN_LANE_BLOCKS], found[PEN_LANE_BLOCKS];
            const uint32_t count = descend(0, 256, begin, end, expected, 0);
            assert_int_equal(pen_lane_blocks(begin, end, found), count);
            for (uint32_t b = 0; b < count; b++) {
                assert_int_equal(found[b].first, expected[b].first);
                assert_int_equal(found[b].count, expected[b].count);
                if (b > 0) assert_false(pen_lane_blocks_pair(found[b - 1], found[b]));
            }
            if (count > depth) depth = count;
            if (end > begin) assert_int_equal(pen_lane_depth(begin, end), depth);
        }
    }
    assert_int_equal(pen_lane_depth(0, 4), 2);
    assert_int_equal(pen_lane_depth(0, 8), 3);
    assert_int_equal(pen_lane_depth(3, 8), 3);
    assert_true(pen_lane_blocks_pair((pen_lane_block){4, 2}, (pen_lane_block){6, 2}));
    assert_false(pen_lane_blocks_pair((pen_lane_block){2, 2}, (pen_lane_block){4, 2}));
    assert_false(pen_lane_blocks_pair((pen_lane_block){4, 2}, (pen_lane_block){6, 1}));
}

// A lane that comes is put where the blocks with it end, and takes in what stood there.
static void places_follow_from_blocks(void **state) {
    (void)state;
    for (uint32_t begin = 0; begin < 20; begin++) {
        pen_lane_block kept[PEN_LANE_BLOCKS], expected[PEN_LANE_BLOCKS];
        uint32_t count = 0;
        for (uint32_t lane = begin; lane < 70; lane++) {
            uint32_t added;
            const pen_lane_range range = {begin, 100, 100};
            const uint32_t place = pen_lane_place(range, lane, &added);
            assert_int_equal(place + added, count);
            pen_lane_block sum = {lane, 1};
            for (uint32_t b = count; b-- > place;) {
                assert_true(pen_lane_blocks_pair(kept[b], sum));
                sum = (pen_lane_block){kept[b].first, 2 * sum.count};
            }
            kept[place] = sum;
            count = place + 1;
            assert_int_equal(pen_lane_blocks(begin, lane + 1, expected), count);
            assert_memory_equal(kept, expected, count * sizeof *kept);
        }
    }
}

// In a step that has fewer lanes, what is kept with the last one is in the places of the blocks of
// a full step, each from its first lane to the last that is there.
static void short_steps_end_in_the_same_places(void **state) {
    (void)state;
    for (uint32_t begin = 0; begin < 12; begin++) {
        for (uint32_t end = begin + 1; end < 40; end++) {
            for (uint32_t there = begin + 1; there <= end; there++) {
                const pen_lane_range range = {begin, end, there};
                uint32_t first[PEN_LANE_BLOCKS] = {0}, count = 0, most = 0;
                for (uint32_t lane = begin; lane < there; lane++) {
                    uint32_t added;
                    const uint32_t place = pen_lane_place(range, lane, &added);
                    assert_int_equal(place + added, count);
                    if (added == 0) first[place] = lane;
                    count = place + 1;
                    if (count > most) most = count;
                }
                pen_lane_block expected[PEN_LANE_BLOCKS], full[PEN_LANE_BLOCKS];
                const uint32_t full_count = pen_lane_blocks(begin, end, full);
                assert_int_equal(pen_lane_blocks_there(range, expected), count);
                assert_true(count <= full_count && most <= pen_lane_depth(begin, end));
                for (uint32_t b = 0; b < count; b++) {
                    assert_memory_equal(&expected[b], &full[b], sizeof *full);
                    assert_int_equal(first[b], full[b].first);
                }
                assert_true(count == full_count || full[count].first >= there);
            }
        }
    }
}

PEN_TEST_MAIN(cmocka_unit_test(lanes_are_even), cmocka_unit_test(blocks_are_subtrees),
              cmocka_unit_test(places_follow_from_blocks),
              cmocka_unit_test(short_steps_end_in_the_same_places))
