#include "tests/support/placement_generator.h"

#include <math.h>

#include "graph/graph.h"
#include "partition/problem/problem_build.h"
#include "tests/support/check.h"
#include "tests/support/random_case.h"

typedef struct generator {
    random_case random;
    const placement_wish *wish;
    pen_arena *arena;
    pen_problem_given *given;
    pen_problem_device *devices;
    pen_problem_node *nodes;
    pen_problem_edge *edges;
    double *compute;
    double *link;
    double *link_latency;
    pen_problem_forbidden *forbidden;
    uint32_t *number; // [node_count] of each place in topological order: the node's number
    uint32_t forward_count;
    bool has_ties; // costs are few round numbers
} generator;

static uint32_t generator_pick(generator *g, int64_t first, int64_t last) {
    return (uint32_t)random_between(&g->random, first, last);
}

static double generator_cost(generator *g) {
    if (random_chance(&g->random, 10)) return 0.0;
    if (g->has_ties) return 0.5 * (double)random_between(&g->random, 1, 6);
    return (double)random_between(&g->random, 1, 1000000) * 1e-5;
}

static void generator_add_edge(generator *g, uint32_t source, uint32_t target) {
    g->edges[g->given->edge_count++] = (pen_problem_edge){g->number[source], g->number[target]};
}

// Places 0 … forward_count-1 are forward nodes; the others mirror the first of them, backwards.
static void generator_draw_edges(generator *g) {
    const uint32_t count = g->given->node_count;
    static const int densities[] = {0, 8, 20, 40, 80};
    const bool is_chain = random_chance(&g->random, 15);
    int density = densities[generator_pick(g, 0, 4)];
    if (count > 30) density = 1 + density / 8;
    for (uint32_t u = 0; u < g->forward_count; u++) {
        for (uint32_t v = u + 1; v < g->forward_count; v++) {
            const bool is_next = is_chain && v == u + 1;
            if (!is_next && (is_chain || !random_chance(&g->random, density))) continue;
            generator_add_edge(g, u, v);
            const uint32_t u_mirror = count - 1 - u, v_mirror = count - 1 - v;
            if (v_mirror >= g->forward_count) generator_add_edge(g, v_mirror, u_mirror);
        }
    }
    for (uint32_t v = g->forward_count; v < count; v++) { // what backward nodes have kept
        if (random_chance(&g->random, 70)) generator_add_edge(g, count - 1 - v, v);
    }
    if (g->given->edge_count > 0 && random_chance(&g->random, 20)) { // a doubled one
        g->edges[g->given->edge_count] = g->edges[generator_pick(g, 0, g->given->edge_count - 1)];
        g->given->edge_count += 1;
    }
}

static pen_role generator_backward_role(generator *g) {
    return random_chance(&g->random, 60)   ? PEN_ROLE_BACKWARD_INPUT
           : random_chance(&g->random, 50) ? PEN_ROLE_BACKWARD_WEIGHT
                                           : PEN_ROLE_UPDATE;
}

static void generator_draw_nodes(generator *g) {
    const uint32_t count = g->given->node_count;
    const bool has_transfers = random_chance(&g->random, 90);
    const bool has_bytes = random_chance(&g->random, 80);
    const bool has_flight = has_bytes && random_chance(&g->random, 25) && !g->wish->is_plain;
    const int mirrored_colors = random_chance(&g->random, 70) ? 100 : 30;
    for (uint32_t place = 0; place < count; place++) {
        pen_problem_node *node = &g->nodes[g->number[place]];
        *node = (pen_problem_node){.color = PEN_PROBLEM_ANY, .pin = PEN_PROBLEM_ANY};
        if (place >= g->forward_count) node->role = generator_backward_role(g);
        if (has_transfers) node->transfer = generator_cost(g);
        if (has_bytes) node->bytes = generator_cost(g) * 8.0;
        if (has_flight) node->bytes_in_flight = generator_cost(g);
        if (has_flight) node->workspace_bytes = generator_cost(g);
    }
    for (uint32_t k = 0; k < g->given->kind_count; k++) {
        for (uint32_t v = 0; v < count; v++)
            g->compute[k * count + v] = generator_cost(g);
    }
    if (g->wish->is_unconstrained) return;
    for (uint32_t place = g->forward_count; place < count; place++) {
        if (!random_chance(&g->random, mirrored_colors)) continue;
        const uint32_t color = 1000 + place;
        g->nodes[g->number[place]].color = color;
        g->nodes[g->number[count - 1 - place]].color = color;
    }
    const int colored = random_chance(&g->random, 30) ? 25 : 0;
    const int pinned = random_chance(&g->random, 30) ? 15 : 0;
    const int forbidden = random_chance(&g->random, 30) ? 10 : 0;
    for (uint32_t v = 0; v < count; v++) {
        if (random_chance(&g->random, colored)) g->nodes[v].color = generator_pick(g, 0, 2);
        if (random_chance(&g->random, pinned)) {
            g->nodes[v].pin = generator_pick(g, 0, g->given->device_count - 1);
        }
        for (uint32_t k = 0; k < g->given->kind_count; k++) {
            if (random_chance(&g->random, forbidden)) g->compute[k * count + v] = INFINITY;
        }
    }
}

static void generator_draw_devices(generator *g) {
    static const double factors[] = {0.0, 0.5, 1.0, 2.0};
    const bool is_alike = random_chance(&g->random, 40);
    const bool is_limited = !g->wish->is_unconstrained && random_chance(&g->random, 60);
    const bool has_parallel = random_chance(&g->random, 40);
    const bool is_uniform = random_chance(&g->random, 50);
    double bytes = 0.0;
    for (uint32_t v = 0; v < g->given->node_count; v++)
        bytes += g->nodes[v].bytes + g->nodes[v].bytes_in_flight;
    // from hardly enough for all to plenty
    const double share =
        bytes / g->given->device_count * (0.5 + 0.1 * (double)random_between(&g->random, 3, 20));
    for (uint32_t d = 0; d < g->given->device_count; d++) {
        pen_problem_device *device = &g->devices[d];
        *device = (pen_problem_device){.slowness = 1.0, .send = 1.0, .receive = 1.0};
        device->kind = generator_pick(g, 0, g->given->kind_count - 1);
        device->bytes_limit = is_limited ? share : INFINITY;
        if (is_alike && d > 0 && random_chance(&g->random, 80)) {
            *device = g->devices[d - 1];
            continue;
        }
        device->microbatches = generator_pick(g, 0, 2);
        device->slowness = (double)(1u << generator_pick(g, 0, 3));
        if (is_limited) device->bytes_limit *= (double)generator_pick(g, 1, 4) / 2.0;
        if (random_chance(&g->random, 10)) device->bytes_limit = INFINITY;
        if (!is_uniform) {
            device->send = factors[generator_pick(g, 0, 3)];
            device->receive = factors[generator_pick(g, 0, 3)];
        }
        if (has_parallel && random_chance(&g->random, 40)) { // a core
            device->is_parallel = true;
            device->send = device->receive = 0.0;
            device->bytes_limit = INFINITY;
        }
    }
}

static void generator_draw_links(generator *g) {
    const uint32_t count = g->given->device_count;
    if (g->wish->has_no_links || !random_chance(&g->random, 40)) return;
    CHECK_OK(PEN_NEW(g->arena, (size_t)count * count, &g->link));
    const bool is_symmetric = random_chance(&g->random, 30);
    for (uint32_t a = 0; a < count; a++) {
        for (uint32_t b = 0; b < count; b++) {
            if (a == b) continue;
            g->link[a * count + b] = is_symmetric && b < a
                                         ? g->link[b * count + a]
                                         : 0.5 * (double)random_between(&g->random, 0, 6);
        }
    }
    g->given->link = g->link;
    if (random_chance(&g->random, 40) && !g->wish->is_plain) {
        CHECK_OK(PEN_NEW(g->arena, (size_t)count * count, &g->link_latency));
        for (uint32_t i = 0; i < count * count; i++)
            g->link_latency[i] = 0.25 * (double)random_between(&g->random, 0, 4);
        g->given->link_latency = g->link_latency;
    }
    if (!random_chance(&g->random, 50)) return;
    for (uint32_t d = 0; d < count; d++) // links alone cost
        g->devices[d].send = g->devices[d].receive = 0.0;
}

static void generator_forbid(generator *g) {
    if (g->wish->is_unconstrained || g->wish->is_plain || !random_chance(&g->random, 20)) return;
    const uint32_t count = generator_pick(g, 1, 4);
    CHECK_OK(PEN_NEW(g->arena, count, &g->forbidden));
    for (uint32_t i = 0; i < count; i++) {
        g->forbidden[i].node = generator_pick(g, 0, g->given->node_count - 1);
        g->forbidden[i].device = generator_pick(g, 0, g->given->device_count - 1);
    }
    g->given->forbidden = g->forbidden;
    g->given->forbidden_count = count;
}

static void generator_bound_used(generator *g) {
    if (!g->wish->has_used_bounds || !random_chance(&g->random, 25)) return;
    const uint32_t least = generator_pick(g, 1, g->given->device_count);
    if (random_chance(&g->random, 60)) g->given->devices_used_minimum = least;
    if (random_chance(&g->random, 60)) {
        g->given->devices_used_maximum = generator_pick(g, least, g->given->device_count);
    }
}

static void generator_choose_sizes(generator *g) {
    const placement_wish *wish = g->wish;
    uint32_t devices = generator_pick(g, 1, wish->device_count_most);
    uint32_t nodes = generator_pick(g, 1, wish->node_count_most);
    if (random_chance(&g->random, 50)) nodes = wish->node_count_most;
    if (devices == 1 && random_chance(&g->random, 80)) devices = wish->device_count_most;
    while (wish->placement_count_most > 0.0 && nodes > 1 &&
           pow(devices, nodes) > wish->placement_count_most) {
        if (devices > 2 && random_chance(&g->random, 50)) {
            devices--;
        } else {
            nodes--;
        }
    }
    g->given->device_count = devices;
    g->given->node_count = nodes;
    g->given->kind_count = generator_pick(g, 1, 3);
    g->forward_count = random_chance(&g->random, 35) ? (nodes + 1) / 2 : nodes;
}

void placement_case_make(uint64_t seed, const placement_wish *wish, pen_arena *arena,
                         pen_problem_given *out_given) {
    generator g = {.random = {.seed = seed}, .wish = wish, .arena = arena, .given = out_given};
    *out_given =
        (pen_problem_given){.objective = wish->objective, .is_contiguous = wish->is_contiguous};
    generator_choose_sizes(&g);
    const uint32_t count = out_given->node_count;
    CHECK_OK(PEN_NEW(arena, out_given->device_count, &g.devices));
    CHECK_OK(PEN_NEW(arena, count, &g.nodes));
    CHECK_OK(PEN_NEW(arena, count, &g.number));
    CHECK_OK(PEN_NEW(arena, (size_t)count * count + count + 1, &g.edges));
    CHECK_OK(PEN_NEW(arena, (size_t)count * out_given->kind_count, &g.compute));
    g.has_ties = random_chance(&g.random, 40);
    for (uint32_t i = 0; i < count; i++) { // a random permutation
        const uint32_t j = generator_pick(&g, 0, i);
        g.number[i] = g.number[j];
        g.number[j] = i;
    }
    generator_draw_edges(&g);
    generator_draw_nodes(&g);
    generator_draw_devices(&g);
    generator_draw_links(&g);
    generator_forbid(&g);
    generator_bound_used(&g);
    out_given->devices = g.devices;
    out_given->nodes = g.nodes;
    out_given->edges = g.edges;
    out_given->compute = g.compute;
}

const pen_problem *placement_case_build(uint64_t *io_seed, const placement_wish *wish,
                                        pen_arena *arena) {
    for (int tries = 0; tries < 200; tries++) {
        pen_problem_given *given;
        pen_problem *problem;
        CHECK_OK(PEN_NEW(arena, 1, &given));
        placement_case_make((*io_seed)++, wish, arena, given);
        const pen_status status = pen_problem_build(given, arena, &problem);
        if (status == PEN_OK) return problem;
        pen_status_ignore(status, "a case without any placement");
    }
    CHECK(false, "200 cases without any placement");
    return NULL;
}

void placement_case_scatter(const pen_problem *problem, uint64_t seed, uint32_t *device_of_group) {
    random_case random = {.seed = seed};
    for (uint32_t g = 0; g < problem->group_count; g++) {
        for (int tries = 0; tries < 100; tries++) {
            device_of_group[g] =
                (uint32_t)random_between(&random, 0, problem->given.device_count - 1);
            if (pen_problem_allows(problem, g, device_of_group[g])) break;
        }
        for (uint32_t d = 0; !pen_problem_allows(problem, g, device_of_group[g]); d++)
            device_of_group[g] = d;
    }
}

uint32_t *placement_case_spread(const pen_problem *problem, const uint32_t *device_of_group,
                                pen_arena *arena) {
    uint32_t *device_of_node;
    CHECK_OK(PEN_NEW(arena, problem->given.node_count, &device_of_node));
    for (uint32_t v = 0; v < problem->given.node_count; v++)
        device_of_node[v] = device_of_group[problem->group_of_node[v]];
    return device_of_node;
}
