#include "tests/simulator/orders.h"

#include "tests/simulator/checks.h"
#include "tests/simulator/coordinator_process.h"

static uint32_t orders_microbatches(const shape *s, uint32_t step) {
    return s->counts[step][0] + s->counts[step][1];
}

// How often a microbatch of a step is told of.
static uint32_t orders_expect(const shape *s, uint32_t number, uint32_t microbatch) {
    const uint32_t whole = s->counts[number][0];
    uint32_t count = 0;
    for (uint32_t stage = 0; stage < s->stage_count; stage++) {
        count += shape_tells(s, stage, microbatch < whole ? microbatch : microbatch - whole);
    }
    return count;
}

// Whether all gradients of a lane's microbatches were heard of.
static bool orders_has_come(const shape *s, const orders_step *step, uint32_t number,
                            uint32_t lane) {
    for (uint32_t m = 0; m < orders_microbatches(s, number); m++) {
        if (pen_lane_of(&s->lanes, m) != lane) continue;
        if (step->heard[m] < orders_expect(s, number, m)) return false;
    }
    return true;
}

static void orders_take(const shape *s, orders_step *step, uint32_t number, uint32_t lane) {
    for (uint32_t i = 0; i < step->count; i++) {
        if (pen_arrivals_order_lane(step->lanes, i) == lane) return;
    }
    if (!orders_has_come(s, step, number, lane)) return;
    step->lanes = pen_arrivals_order_add(step->lanes, step->count, lane);
    step->count += 1;
}

void orders_hear(coordinator_process *c, const pen_message *message) {
    coordinator_run *run = c->run;
    const shape *s = c->process->world->shape;
    const coordinator_round_of *round = &run->rounds[message->round % COORDINATOR_ROUNDS];
    if (round->number != message->round || message->microbatch >= round->count) return;
    orders_step *step = &run->orders[round->step];
    const uint32_t microbatch = round->first_microbatch + message->microbatch;
    step->heard[microbatch] += 1;
    orders_take(s, step, round->step, pen_lane_of(&s->lanes, microbatch));
}

void orders_say(coordinator_process *c, const pen_coordinator_action *action) {
    const coordinator_run *run = c->run;
    world *w = c->process->world;
    const shape *s = w->shape;
    const uint32_t step = coordinator_find_round_of(run, action->round)->step;
    const uint32_t lanes = pen_lane_count(&s->lanes, orders_microbatches(s, step));
    const orders_step *come = &run->orders[step];
    const bool is_known = c->knows_order[step];
    const pen_arrivals_order expected = is_known ? c->orders[step] : come->lanes;
    if (!s->tells_gradients) return;
    if (!is_known && come->count < lanes) {
        world_wrong(w, "I12", "step %u may update when %u of %u lanes have come", step, come->count,
                    lanes);
    } else if (action->order != expected) {
        world_wrong(w, "I12",
                    "lanes of step %u are told in the order %" PRIx64 ", they %s %" PRIx64, step,
                    action->order, is_known ? "were done in" : "came in", expected);
    }
    c->knows_order[step] = true;
    c->orders[step] = expected;
}

void orders_tell(process *p, const pen_message *go) {
    world *w = p->world;
    orders_told *told = &w->checks->told[(go->generation * 37 + go->round) % ORDERS_TOLD];
    const bool is_known = told->generation == go->generation && told->round == go->round;
    if (is_known && told->lanes != go->order) {
        world_wrong(w, "I12",
                    "round %" PRIu64 " has the order %" PRIx64 " here, %" PRIx64 " elsewhere",
                    go->round, go->order, told->lanes);
    }
    *told = (orders_told){go->generation, go->round, go->order};
}
