#include "graph/lanes.h"

#include "base/status.h"

uint32_t pen_lane_of(const pen_lanes *lanes, uint64_t microbatch) {
    if (lanes->lanes <= 1) return 0;
    PEN_ASSERT(lanes->lanes <= lanes->microbatches);
    const uint64_t lane = microbatch * lanes->lanes / lanes->microbatches;
    return lane < lanes->lanes ? (uint32_t)lane : lanes->lanes - 1;
}

uint32_t pen_lane_count(const pen_lanes *lanes, uint64_t microbatch_count) {
    return microbatch_count == 0 ? 0 : pen_lane_of(lanes, microbatch_count - 1) + 1;
}

// The largest block that begins at `first` and does not go beyond `end`.
static pen_lane_block lanes_next(uint32_t first, uint32_t end) {
    uint32_t count = 1;
    while (count <= (end - first) / 2 && (first & (2 * count - 1)) == 0) {
        count *= 2;
    }
    return (pen_lane_block){first, count};
}

uint32_t pen_lane_blocks(uint32_t first, uint32_t end, pen_lane_block out_blocks[PEN_LANE_BLOCKS]) {
    uint32_t count = 0;
    while (first < end) {
        const pen_lane_block block = lanes_next(first, end);
        out_blocks[count++] = block;
        first += block.count;
    }
    return count;
}

bool pen_lane_blocks_pair(pen_lane_block left, pen_lane_block right) {
    return left.count == right.count && (left.first & (2 * left.count - 1)) == 0 &&
           right.first == left.first + left.count;
}

uint32_t pen_lane_depth(uint32_t first, uint32_t end) {
    pen_lane_block blocks[PEN_LANE_BLOCKS];
    uint32_t depth = 0;
    for (uint32_t last = first + 1; last <= end; last++) {
        const uint32_t count = pen_lane_blocks(first, last, blocks);
        if (count > depth) depth = count;
    }
    return depth;
}

uint32_t pen_lane_blocks_there(pen_lane_range range, pen_lane_block out_blocks[PEN_LANE_BLOCKS]) {
    uint32_t count = pen_lane_blocks(range.first, range.end, out_blocks);
    while (count > 0 && out_blocks[count - 1].first >= range.lane_count)
        count--;
    return count;
}

uint32_t pen_lane_place(pen_lane_range range, uint32_t lane, uint32_t *out_added) {
    pen_lane_block blocks[PEN_LANE_BLOCKS];
    const bool is_last = lane + 1 == range.end || lane + 1 == range.lane_count;
    const uint32_t before = pen_lane_blocks(range.first, lane, blocks);
    const uint32_t count = is_last ? pen_lane_blocks_there(range, blocks)
                                   : pen_lane_blocks(range.first, lane + 1, blocks);
    PEN_ASSERT(count > 0);
    *out_added = before - (count - 1);
    return count - 1;
}
