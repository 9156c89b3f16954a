#include "tests/support/stage_chain.h"

#include <math.h>

#include "tests/support/check.h"
#include "tests/support/dice.h"

static double *no_limits(pen_arena *arena, uint32_t device_count) {
    double *bytes_limit;
    CHECK_OK(PEN_NEW(arena, device_count, &bytes_limit));
    for (uint32_t d = 0; d < device_count; d++) {
        bytes_limit[d] = INFINITY;
    }
    return bytes_limit;
}

const pen_stage_graph *stage_chain(pen_arena *arena, uint32_t stage_count,
                                   uint32_t microbatch_count, double forward_seconds,
                                   double backward_seconds, double transfer_seconds) {
    pen_stage_graph *graph;
    pen_stage *stages;
    pen_stage_edge *edges;
    CHECK_OK(PEN_NEW(arena, 1, &graph));
    CHECK_OK(PEN_NEW(arena, stage_count, &stages));
    CHECK_OK(PEN_NEW(arena, stage_count, &edges));
    for (uint32_t s = 0; s < stage_count; s++) {
        stages[s] = (pen_stage){
            .device = s,
            .has_backward = true,
            .has_update = true,
            .forward_seconds = forward_seconds,
            .backward_input_seconds = backward_seconds / 2,
            .backward_weight_seconds = backward_seconds / 2,
            .fixed_bytes = 100,
            .workspace_bytes = 10,
            .activation_bytes = 100,
        };
        edges[s] = (pen_stage_edge){
            .source = s,
            .target = s + 1,
            .forward_bytes = 8,
            .has_gradient = true,
            .backward_bytes = 8,
            .forward_seconds = transfer_seconds,
            .backward_seconds = transfer_seconds,
        };
    }
    *graph = (pen_stage_graph){
        .stage_count = stage_count,
        .edge_count = stage_count - 1,
        .device_count = stage_count,
        .microbatch_count = microbatch_count,
        .stages = stages,
        .edges = edges,
        .bytes_limit = no_limits(arena, stage_count),
    };
    return graph;
}

static void draw_stage(dice *d, pen_stage *stage, uint32_t device_count) {
    *stage = (pen_stage){
        .device = (uint32_t)dice_between(d, 0, device_count - 1),
        .forward_seconds = (double)dice_between(d, 0, 6),
        .fixed_bytes = (double)dice_between(d, 0, 1000),
        .workspace_bytes = (double)dice_between(d, 0, 100),
        .activation_bytes = (double)dice_between(d, 0, 300),
    };
    if (dice_between(d, 0, 4) == 0) return;
    stage->has_backward = true;
    stage->has_update = dice_between(d, 0, 6) > 0;
    stage->halved_bytes = (double)dice_between(d, 0, 100);
    stage->backward_input_seconds = (double)dice_between(d, 0, 6);
    stage->backward_weight_seconds = (double)dice_between(d, 0, 6);
    if (stage->has_update) stage->update_seconds = (double)dice_between(d, 0, 3);
}

static void draw_edge(dice *d, pen_stage *stages, pen_stage_edge *edge) {
    edge->forward_bytes = (double)dice_between(d, 1, 100);
    edge->has_gradient = dice_between(d, 0, 2) > 0;
    if (edge->has_gradient) {
        edge->backward_bytes = (double)dice_between(d, 0, 100);
        stages[edge->source].has_backward = true;
        stages[edge->target].has_backward = true;
    }
    if (stages[edge->source].device == stages[edge->target].device) return;
    edge->forward_seconds = (double)dice_between(d, 0, 5);
    edge->backward_seconds = (double)dice_between(d, 0, 5);
}

// What updates exchange, between stages that have some.
static void draw_step_edges(dice *d, pen_stage_graph *graph, pen_stage_step_edge *edges) {
    graph->update_phase_count = (uint32_t)dice_between(d, 0, 3);
    graph->step_edges = edges;
    if (graph->update_phase_count < 2) return;
    for (uint32_t source = 0; source < graph->stage_count; source++) {
        for (uint32_t target = 0; target < graph->stage_count; target++) {
            const bool can = source != target && graph->stages[source].has_update &&
                             graph->stages[target].has_update;
            if (!can || dice_between(d, 0, 3) > 0) continue;
            const bool moves = graph->stages[source].device != graph->stages[target].device;
            edges[graph->step_edge_count++] = (pen_stage_step_edge){
                .source = source,
                .target = target,
                .phase = (uint32_t)dice_between(d, 0, graph->update_phase_count - 2),
                .bytes = (double)dice_between(d, 0, 50),
                .seconds = moves ? (double)dice_between(d, 0, 4) : 0,
            };
        }
    }
}

pen_stage_graph *stage_graph_random(pen_arena *arena, uint64_t seed) {
    dice d = {.seed = seed};
    const uint32_t stage_count = (uint32_t)dice_between(&d, 1, 9);
    const uint32_t device_count = (uint32_t)dice_between(&d, 1, 4);
    const int64_t density = dice_between(&d, 1, 4);
    pen_stage_graph *graph;
    pen_stage *stages;
    pen_stage_edge *edges;
    pen_stage_step_edge *step_edges;
    CHECK_OK(PEN_NEW(arena, 1, &graph));
    CHECK_OK(PEN_NEW(arena, stage_count, &stages));
    CHECK_OK(PEN_NEW(arena, (size_t)stage_count * stage_count, &edges));
    CHECK_OK(PEN_NEW(arena, (size_t)stage_count * stage_count, &step_edges));
    for (uint32_t s = 0; s < stage_count; s++) {
        draw_stage(&d, &stages[s], device_count);
    }
    uint32_t edge_count = 0;
    for (uint32_t source = 0; source < stage_count; source++) {
        for (uint32_t target = source + 1; target < stage_count; target++) {
            if (dice_between(&d, 0, 4) >= density) continue;
            edges[edge_count] = (pen_stage_edge){.source = source, .target = target};
            draw_edge(&d, stages, &edges[edge_count++]);
        }
    }
    *graph = (pen_stage_graph){
        .stage_count = stage_count,
        .edge_count = edge_count,
        .device_count = device_count,
        .microbatch_count = (uint32_t)dice_between(&d, 1, 9),
        .stages = stages,
        .edges = edges,
        .bytes_limit = no_limits(arena, device_count),
    };
    draw_step_edges(&d, graph, step_edges);
    return graph;
}

static double draw_fraction(dice *d) {
    return (double)dice_between(d, 1, 1000000000) * 1e-9;
}

static void draw_handling(dice *d, pen_stage_handling *handling) {
    handling->latency_seconds = draw_fraction(d);
    if (dice_between(d, 0, 3) == 0) return;
    handling->send_seconds = draw_fraction(d);
    handling->receive_seconds = draw_fraction(d);
}

// Up to two hosts, with up to two processes each.
static const pen_device_seat *draw_seats(dice *d, pen_arena *arena, uint32_t device_count) {
    pen_device_seat *seats;
    CHECK_OK(PEN_NEW(arena, device_count, &seats));
    const double rates[] = {20 + 40 * draw_fraction(d), 10 + 40 * draw_fraction(d)};
    for (uint32_t s = 0; s < device_count; s++) {
        const uint32_t process = (uint32_t)dice_between(d, 0, device_count - 1);
        const uint32_t host = process % 2;
        seats[s] = (pen_device_seat){host, process, rates[host], rates[1 - host] + 1};
    }
    return seats;
}

pen_stage_graph *stage_graph_priced(pen_arena *arena, uint64_t seed) {
    pen_stage_graph *graph = stage_graph_random(arena, seed);
    dice d = {.seed = seed ^ 0xb111};
    pen_stage *stages;
    pen_stage_edge *edges;
    pen_stage_step_edge *step_edges;
    CHECK_OK(PEN_NEW(arena, graph->stage_count, &stages));
    CHECK_OK(PEN_NEW(arena, graph->edge_count, &edges));
    CHECK_OK(PEN_NEW(arena, graph->step_edge_count, &step_edges));
    for (uint32_t s = 0; s < graph->stage_count; s++) {
        stages[s] = graph->stages[s];
        stages[s].forward_seconds += draw_fraction(&d);
        if (stages[s].has_backward) stages[s].backward_input_seconds += draw_fraction(&d);
    }
    for (uint32_t e = 0; e < graph->edge_count; e++) {
        edges[e] = graph->edges[e];
        if (stages[edges[e].source].device == stages[edges[e].target].device) continue;
        edges[e].forward_seconds += draw_fraction(&d);
        draw_handling(&d, &edges[e].forward_handling);
        if (!edges[e].has_gradient) continue;
        edges[e].backward_seconds += draw_fraction(&d);
        draw_handling(&d, &edges[e].backward_handling);
    }
    for (uint32_t e = 0; e < graph->step_edge_count; e++) {
        step_edges[e] = graph->step_edges[e];
        if (stages[step_edges[e].source].device == stages[step_edges[e].target].device) continue;
        step_edges[e].seconds += draw_fraction(&d);
        draw_handling(&d, &step_edges[e].handling);
    }
    graph->stages = stages;
    graph->edges = edges;
    graph->step_edges = step_edges;
    if (dice_between(&d, 0, 3) > 0) graph->seats = draw_seats(&d, arena, graph->device_count);
    return graph;
}
