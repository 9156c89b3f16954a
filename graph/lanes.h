// Lanes: the parts of a step whose gradients are summed by themselves, then added as a tree.
//
// The microbatches of a step form lanes, contiguous and as equal as can be. A lane adds up its own
// in order. Lanes are then added in a balanced binary tree over their numbers, of which those that
// are not there are left out: with five, ((0 + 1) + (2 + 3)) + 4. So the bits of a sum do not
// depend on who computed which lanes.
//
// Lanes from `first` up to `end` leave complete subtrees, as large as fit between the two: of lanes
// 3 to 7, these are 3 and 4..7. Such a subtree is a block. In a step that has lanes 0 to 5 alone,
// what is there of 4..7 is the sum of that block: nothing else will come to it.
//
// Threads: pure.
#ifndef PEN_GRAPH_LANES_H
#define PEN_GRAPH_LANES_H

#include <stdbool.h>
#include <stdint.h>

#define PEN_LANE_BLOCKS 64 // at most, of any range of lanes

typedef struct pen_lanes {
    uint32_t lanes;        // 0 and 1: all microbatches are one lane
    uint32_t microbatches; // of a full step, at least as many as lanes
} pen_lanes;

typedef struct pen_lane_block {
    uint32_t first;
    uint32_t count; // a power of two, of which `first` is a multiple
} pen_lane_block;

// The lane of a microbatch, counted over the step.
uint32_t pen_lane_of(const pen_lanes *lanes, uint64_t microbatch);
// How many lanes the first `microbatch_count` microbatches of a step are in.
uint32_t pen_lane_count(const pen_lanes *lanes, uint64_t microbatch_count);

// Whoever sums up lanes `first` up to, without, `end` of a step that has lanes 0 up to
// `lane_count`.
typedef struct pen_lane_range {
    uint32_t first;
    uint32_t end;
    uint32_t lane_count;
} pen_lane_range;

// The blocks of lanes `first` up to `end`, in their order. Returns how many.
uint32_t pen_lane_blocks(uint32_t first, uint32_t end, pen_lane_block out_blocks[PEN_LANE_BLOCKS]);
// Those of which the step has lanes: of the last one perhaps not all. Returns how many.
uint32_t pen_lane_blocks_there(pen_lane_range range, pen_lane_block out_blocks[PEN_LANE_BLOCKS]);
// Whether two blocks are the halves of a larger one.
bool pen_lane_blocks_pair(pen_lane_block left, pen_lane_block right);
// The most blocks that there are at once while lanes `first` up to `end` come, one after the other.
uint32_t pen_lane_depth(uint32_t first, uint32_t end);
// Where the sum of `lane` goes among the blocks of the lanes before it: in this place, with what
// the *out_added blocks from there on have. With the last lane that there is, all are in the places
// of pen_lane_blocks_there.
uint32_t pen_lane_place(pen_lane_range range, uint32_t lane, uint32_t *out_added);

#endif // PEN_GRAPH_LANES_H
