// Updates among the other tasks: by hand, and over random replicas, where no step may be longer.

#include "scheduler/schedule/exchange_order.h"

#include <math.h>

#include "scheduler/schedule/schedule_check.h"
#include "scheduler/schedule/schedule_simulate.h"
#include "tests/support/check.h"
#include "tests/support/dice.h"

#define STAGES 24
#define STEP_EDGES 64

typedef struct exchange_case {
    pen_stage_graph graph;
    pen_stage stages[STAGES];
    pen_stage_edge edges[STAGES];
    pen_stage_step_edge step_edges[STEP_EDGES];
    double bytes_limit[STAGES];
} exchange_case;

// Replicas with as many stages each, in a chain, over so many devices each.
static void make_chains(exchange_case *c, uint32_t replicas, uint32_t each, uint32_t devices,
                        uint32_t microbatches) {
    *c = (exchange_case){.graph = {.stage_count = replicas * each,
                                   .device_count = replicas * devices,
                                   .microbatch_count = replicas * microbatches,
                                   .update_phase_count = 3}};
    for (uint32_t s = 0; s < replicas * each; s++) {
        const uint32_t replica = s / each, place = s % each;
        c->stages[s] = (pen_stage){.device = replica * devices + place * devices / each,
                                   .has_backward = true,
                                   .has_update = true,
                                   .forward_seconds = 1,
                                   .backward_input_seconds = 1,
                                   .backward_weight_seconds = 1,
                                   .first_microbatch = replica * microbatches,
                                   .microbatch_count = microbatches};
        c->bytes_limit[s] = INFINITY;
        if (place == 0) continue;
        c->edges[c->graph.edge_count++] = (pen_stage_edge){
            .source = s - 1, .target = s, .forward_bytes = 1, .has_gradient = true};
    }
}

static const pen_stage_graph *case_graph(exchange_case *c, pen_exchange exchange) {
    c->graph.stages = c->stages;
    c->graph.edges = c->edges;
    c->graph.step_edges = c->step_edges;
    c->graph.bytes_limit = c->bytes_limit;
    c->graph.exchange = exchange;
    return &c->graph;
}

static void add_exchange(exchange_case *c, uint32_t from, uint32_t to, uint32_t phase,
                         double seconds) {
    CHECK(c->graph.step_edge_count < STEP_EDGES, "%u", c->graph.step_edge_count);
    c->step_edges[c->graph.step_edge_count++] = (pen_stage_step_edge){
        .source = from, .target = to, .phase = phase, .bytes = 1, .seconds = seconds};
}

static const pen_timeline *run(exchange_case *c, pen_exchange exchange, const char *name,
                               pen_arena *arena) {
    const pen_schedule_generator *generator;
    const pen_schedule *schedule;
    const pen_timeline *timeline;
    const pen_stage_graph *graph = case_graph(c, exchange);
    CHECK_OK(pen_schedule_generator_find(name, arena, &generator));
    CHECK_OK(generator->generate(graph, arena, &schedule));
    CHECK_OK(pen_schedule_check(graph, schedule, arena));
    CHECK_OK(pen_schedule_simulate(graph, schedule, arena, &timeline));
    return timeline;
}

// Two replicas of one device with two stages each, one microbatch; the first owns all. A sum or a
// value takes 1 on its way; a forward task 1, a backward task 2:
//   last      both devices  F F B B until 6
//             1 to 0        sums 6-7, 7-8
//             0 to 1        values 7-8, 8-9
//   among     1 to 0        sum of the later stage 4-5, of the earlier 6-7
//             0 to 1        value of the later stage 6-7 (the device is free at 6), then 7-8
static void sums_go_while_earlier_stages_compute(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    exchange_case c;
    make_chains(&c, 2, 2, 1, 1);
    for (uint32_t s = 0; s < 2; s++) {
        add_exchange(&c, s + 2, s, 0, 1);
        add_exchange(&c, s, s + 2, 1, 1);
    }
    CHECK(run(&c, PEN_EXCHANGE_AFTER_BACKWARD, "1f1b", arena)->step_seconds == 9, "last");
    CHECK(run(&c, PEN_EXCHANGE_OVERLAPPED, "1f1b", arena)->step_seconds == 8, "among");
    pen_arena_destroy(arena);
}

// Every stage has an owner among its like in all replicas; some owners tell each other a norm.
static void draw_exchange(dice *d, exchange_case *c, uint32_t replicas, uint32_t each) {
    const bool has_norm = dice_between(d, 0, 3) == 0;
    for (uint32_t s = 0; s < each; s++) {
        const uint32_t owner = (uint32_t)dice_between(d, 0, replicas - 1) * each + s;
        const double seconds = (double)dice_between(d, 0, 12) / 2;
        for (uint32_t r = 0; r < replicas; r++) {
            if (r * each + s == owner) continue;
            add_exchange(c, r * each + s, owner, 0, seconds);
            add_exchange(c, owner, r * each + s, 1, seconds);
        }
        if (has_norm && owner != 0) add_exchange(c, owner, 0, 1, 0.125);
    }
}

static void steps_are_never_longer(void **state) {
    (void)state;
    static const char *const names[] = {"gpipe", "1f1b", "interleaved", "zero_bubble"};
    uint32_t shorter = 0, count = 0;
    for (uint64_t seed = 1; seed <= 300; seed++) {
        dice d = {.seed = seed};
        pen_arena *arena = check_arena();
        exchange_case c;
        const uint32_t replicas = (uint32_t)dice_between(&d, 2, 3);
        const uint32_t each = (uint32_t)dice_between(&d, 1, 6);
        const uint32_t devices = (uint32_t)dice_between(&d, 1, each < 3 ? each : 3);
        make_chains(&c, replicas, each, devices, (uint32_t)dice_between(&d, 1, 4));
        for (uint32_t s = 0; s < c.graph.stage_count; s++) {
            c.stages[s].forward_seconds = (double)dice_between(&d, 0, 6) / 2;
            c.stages[s].backward_weight_seconds = (double)dice_between(&d, 0, 6) / 2;
            c.stages[s].update_seconds = (double)dice_between(&d, 0, 2) / 4;
        }
        draw_exchange(&d, &c, replicas, each);
        for (uint32_t n = 0; n < sizeof names / sizeof *names; n++) {
            const double last = run(&c, PEN_EXCHANGE_AFTER_BACKWARD, names[n], arena)->step_seconds;
            const double among = run(&c, PEN_EXCHANGE_OVERLAPPED, names[n], arena)->step_seconds;
            CHECK(among <= last, "seed %llu, %s: %g, with updates last %g",
                  (unsigned long long)seed, names[n], among, last);
            shorter += among < last;
            count++;
        }
        pen_arena_destroy(arena);
    }
    CHECK(shorter > count / 3, "%u of %u are shorter", shorter, count);
}

PEN_TEST_MAIN(cmocka_unit_test(sums_go_while_earlier_stages_compute),
              cmocka_unit_test(steps_are_never_longer))
