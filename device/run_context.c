#include "device/run_context.h"

#include "graph/arrivals.h"
#include "graph/op.h"

void pen_run_context_place(pen_run_context *run, const pen_lanes *lanes, uint64_t microbatch,
                           uint64_t microbatch_count) {
    const uint32_t lane = pen_lane_of(lanes, microbatch);
    run->microbatch = microbatch;
    run->lane = lane;
    run->lane_count = pen_lane_count(lanes, microbatch_count);
    run->microbatch_count = (uint32_t)microbatch_count;
    run->first_microbatch = microbatch == 0 || pen_lane_of(lanes, microbatch - 1) != lane;
    run->later_lane = lane > 0;
    run->ends_lane =
        microbatch + 1 >= microbatch_count || pen_lane_of(lanes, microbatch + 1) != lane;
}

void pen_run_context_place_update(pen_run_context *run, const pen_lanes *lanes,
                                  uint64_t microbatch_count) {
    run->microbatch = 0;
    run->lane = 0;
    run->lane_count = pen_lane_count(lanes, microbatch_count);
    run->microbatch_count = (uint32_t)microbatch_count;
    run->order =
        run->lane_count > PEN_ARRIVALS_LANES ? 0 : pen_arrivals_order_of_one(run->lane_count);
    run->first_microbatch = run->later_lane = run->ends_lane = false;
}

bool pen_run_adds(const pen_node *node, const pen_run_context *run) {
    if (!node->accumulates || node->op->adds_itself) return false;
    return !run->first_microbatch || (node->op->spans_lanes && run->later_lane);
}
