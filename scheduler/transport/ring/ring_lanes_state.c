// What becomes of a lane (ring_lanes.h has the diagram).
#include <stdio.h>

#include "scheduler/transport/ring/ring_lanes_inside.h"

static bool lane_may_become(pen_ring_lane_state from, pen_ring_lane_state to) {
    switch (from) {
    case PEN_RING_LANE_WAITING:
        return to != PEN_RING_LANE_WAITING;
    case PEN_RING_LANE_OPEN:
        return to == PEN_RING_LANE_BROKEN;
    case PEN_RING_LANE_REFUSED: // what comes the other way may still break
        return to == PEN_RING_LANE_BROKEN;
    case PEN_RING_LANE_BROKEN:
        return false;
    }
    PEN_NEVER("a lane is in one of its states");
}

void lane_set_state(pen_ring_lane *lane, pen_ring_lane_state state) {
    pen_mutex_lock(&lane->lanes->lock);
    PEN_ASSERT(lane_may_become(lane->state, state));
    lane->state = state;
    pen_mutex_unlock(&lane->lanes->lock);
    if (state == PEN_RING_LANE_OPEN) return;
    lane->lanes->events.changed(lane->lanes->events.context, lane->peer);
}

// The first failure counts.
void lane_fail(pen_ring_lane *lane, pen_status take_failure, bool is_gone) {
    pen_mutex_lock(&lane->lanes->lock);
    const bool is_first = lane->state != PEN_RING_LANE_BROKEN;
    if (is_first) {
        lane->failure_code = pen_status_get_code(take_failure);
        lane->is_gone = is_gone;
        snprintf(lane->failure, sizeof lane->failure, "%s", pen_status_message(take_failure));
    }
    pen_mutex_unlock(&lane->lanes->lock);
    pen_status_ignore(take_failure, "kept as a text");
    if (is_first) lane_set_state(lane, PEN_RING_LANE_BROKEN);
}
