#include "partition/plan/plan_waiting.h"

#include <math.h>
#include <string.h>

#include "base/format/quantity.h"
#include "partition/problem/problem.h"

#define WAITING_SHARE 0.05 // of the step or the bound, from which reasons are told
#define WAITING_UNEVEN 0.5 // of the bubble

// What devices do in a step, as the plan has it.
typedef struct waiting_load {
    uint32_t used;             // devices with nodes
    uint32_t busiest;          // of them
    double most_seconds;       // that it computes in a step
    double mean_seconds;       // that the used ones do
    double microbatch_seconds; // forward and backward, on the device where that takes longest
} waiting_load;

// Where the values of a microbatch are longest on their way.
typedef struct waiting_way {
    uint32_t source; // devices
    uint32_t target;
    double seconds;
} waiting_way;

// What the device computes of one microbatch, and, in *out_step, of a step.
static double waiting_device(const pen_plan *plan, uint32_t device, double *out_step) {
    double microbatch = 0.0;
    *out_step = 0.0;
    for (uint32_t s = 0; s < plan->stages.stage_count; s++) {
        const pen_stage *stage = &plan->stages.stages[s];
        if (stage->device != device) continue;
        const uint32_t count =
            stage->microbatch_count > 0 ? stage->microbatch_count : plan->microbatch_count;
        const double seconds = stage->forward_seconds + pen_stage_backward_input_seconds(stage) +
                               stage->backward_weight_seconds;
        if (!stage->is_owner) {
            microbatch += seconds;
            *out_step += seconds * count;
        }
        *out_step += stage->update_seconds;
    }
    return microbatch;
}

static waiting_load waiting_measure(const pen_plan *plan) {
    waiting_load load = {0};
    double sum = 0.0;
    for (uint32_t d = 0; d < plan->device_count; d++) {
        double step;
        if (plan->devices[d].node_count == 0) continue;
        const double microbatch = waiting_device(plan, d, &step);
        load.microbatch_seconds = fmax(load.microbatch_seconds, microbatch);
        if (load.used == 0 || step > load.most_seconds) {
            load.busiest = d;
            load.most_seconds = step;
        }
        load.used += 1;
        sum += step;
    }
    load.mean_seconds = load.used > 0 ? sum / load.used : 0.0;
    return load;
}

static double waiting_handling(const pen_stage_handling *handling) {
    return handling->latency_seconds + handling->send_seconds + handling->receive_seconds;
}

static waiting_way waiting_find_way(const pen_stage_graph *stages) {
    waiting_way longest = {0};
    for (uint32_t e = 0; e < stages->edge_count; e++) {
        const pen_stage_edge *edge = &stages->edges[e];
        const uint32_t source = stages->stages[edge->source].device;
        const uint32_t target = stages->stages[edge->target].device;
        const double there = edge->forward_seconds + waiting_handling(&edge->forward_handling);
        const double back = edge->backward_seconds + waiting_handling(&edge->backward_handling);
        if (source == target) continue;
        if (there > longest.seconds) longest = (waiting_way){source, target, there};
        if (edge->has_gradient && back > longest.seconds) {
            longest = (waiting_way){target, source, back};
        }
    }
    return longest;
}

static void waiting_add_way(const pen_plan *plan, const waiting_load *load, const waiting_way *way,
                            pen_text *text) {
    char longest[PEN_QUANTITY_TEXT_BYTES], computes[PEN_QUANTITY_TEXT_BYTES];
    pen_text_print(
        text,
        "the gap      the bound leaves out that devices wait while a microbatch is %s on "
        "its way from '%s' to '%s'; a device computes it in %s at most; a faster link "
        "there, or another cut, waits less\n",
        pen_seconds_format(way->seconds, longest), plan->devices[way->source].name,
        plan->devices[way->target].name, pen_seconds_format(load->microbatch_seconds, computes));
}

static void waiting_add_uneven(const pen_plan *plan, const waiting_load *load, pen_text *text) {
    char most[PEN_QUANTITY_TEXT_BYTES], mean[PEN_QUANTITY_TEXT_BYTES];
    pen_text_print(text,
                   "the bubble   '%s' computes for %s of a step, the %u devices for %s in the "
                   "mean; a pin, the memory, a large layer or the strategy may be why\n",
                   plan->devices[load->busiest].name, pen_seconds_format(load->most_seconds, most),
                   load->used, pen_seconds_format(load->mean_seconds, mean));
}

// One line at most: what waits most is to be changed first.
void pen_plan_dump_waiting(const pen_plan *plan, pen_text *text) {
    const waiting_load load = waiting_measure(plan);
    const waiting_way way = waiting_find_way(&plan->stages);
    const bool is_step_time =
        strcmp(plan->objective, pen_objective_names[PEN_OBJECTIVE_STEP_TIME]) == 0;
    const bool has_gap =
        plan->lower_bound > 0.0 && plan->value / plan->lower_bound - 1.0 > WAITING_SHARE;
    if (!is_step_time || load.used < 2 || plan->bubble <= WAITING_SHARE) return;
    if (has_gap && way.seconds > load.microbatch_seconds) {
        waiting_add_way(plan, &load, &way, text);
    } else if (1.0 - load.mean_seconds / load.most_seconds >= WAITING_UNEVEN * plan->bubble) {
        waiting_add_uneven(plan, &load, text);
    } else if (has_gap) {
        pen_text_print(
            text,
            "the gap      the bound leaves out that %u devices wait (%.1f%%) while a "
            "pipeline of %u microbatch%s fills and drains; more microbatches wait less\n",
            load.used, 100.0 * plan->bubble, plan->microbatch_count,
            plan->microbatch_count == 1 ? "" : "es");
    }
}
