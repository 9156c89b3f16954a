#include "partition/search/linear_orders.h"

#include "base/random.h"

#define ORDER_LOOK_LIMIT 48 // greedy orders choose among so many of those that became ready last

typedef struct order_build {
    const pen_problem *problem;
    const pen_problem_lists *after; // or before, when the order is made from its end
    uint32_t *waits;                // [group_count]
    uint32_t *ready;                // [group_count] last in, first out
    uint32_t ready_count;
    uint32_t *open; // [output_count] ends of an output that are not in the order yet
    pen_random_key key;
    uint64_t thrown;
} order_build;

static uint32_t order_end_count(const pen_problem *problem, uint32_t output) {
    return problem->readers.first[output + 1] - problem->readers.first[output] + 1;
}

// How much more would be in flight after `group`: outputs begun, less outputs ended.
static double order_growth(const order_build *build, uint32_t group) {
    const pen_problem *problem = build->problem;
    double growth = 0.0;
    for (uint32_t o = problem->own_first[group]; o < problem->own_first[group + 1]; o++) {
        if (build->open[o] == order_end_count(problem, o)) growth += problem->output_cost[o];
        if (build->open[o] == 1) growth -= problem->output_cost[o];
    }
    for (uint32_t r = problem->reads.first[group]; r < problem->reads.first[group + 1]; r++) {
        const uint32_t o = problem->reads.ids[r];
        if (build->open[o] == order_end_count(problem, o)) growth += problem->output_cost[o];
        if (build->open[o] == 1) growth -= problem->output_cost[o];
    }
    return growth;
}

static void order_close(order_build *build, uint32_t group) {
    const pen_problem *problem = build->problem;
    for (uint32_t o = problem->own_first[group]; o < problem->own_first[group + 1]; o++) {
        build->open[o] -= 1;
    }
    for (uint32_t r = problem->reads.first[group]; r < problem->reads.first[group + 1]; r++) {
        build->open[problem->reads.ids[r]] -= 1;
    }
}

static void order_shuffle_top(order_build *build, uint32_t count) {
    for (uint32_t i = count; i > 1; i--) {
        const uint32_t j = (uint32_t)pen_random_below(build->key, build->thrown++, i);
        uint32_t *a = &build->ready[build->ready_count - i];
        uint32_t *b = &build->ready[build->ready_count - i + j];
        const uint32_t kept = *a;
        *a = *b;
        *b = kept;
    }
}

static uint32_t order_take(order_build *build, bool is_greedy) {
    uint32_t best = build->ready_count - 1;
    if (is_greedy) {
        double least = order_growth(build, build->ready[best]);
        for (uint32_t looked = 1; looked < ORDER_LOOK_LIMIT && looked < build->ready_count;
             looked++) {
            const uint32_t at = build->ready_count - 1 - looked;
            const double growth = order_growth(build, build->ready[at]);
            if (growth >= least) continue;
            least = growth;
            best = at;
        }
    }
    const uint32_t group = build->ready[best];
    build->ready_count -= 1;
    for (uint32_t i = best; i < build->ready_count; i++)
        build->ready[i] = build->ready[i + 1];
    return group;
}

// Variants: from the front or from the back, by chains or by open values, and by chance.
pen_status pen_linear_order(const pen_problem *problem, uint64_t seed, uint32_t variant,
                            pen_arena *arena, uint32_t *out_order) {
    const uint32_t count = problem->group_count;
    const bool is_reversed = variant % 2 == 1;
    const bool is_greedy = variant % 4 >= 2;
    const bool is_random = variant >= 4;
    order_build build = {.problem = problem,
                         .after = is_reversed ? &problem->before : &problem->after,
                         .key = {seed, pen_random_stream("linear order", variant, 0)}};
    PEN_TRY(PEN_NEW(arena, count, &build.waits));
    PEN_TRY(PEN_NEW(arena, count, &build.ready));
    PEN_TRY(PEN_NEW(arena, problem->output_count, &build.open));
    for (uint32_t o = 0; o < problem->output_count; o++)
        build.open[o] = order_end_count(problem, o);
    for (uint32_t e = 0; e < build.after->first[count]; e++)
        build.waits[build.after->ids[e]] += 1;
    for (uint32_t g = count; g-- > 0;) {
        if (build.waits[g] == 0) build.ready[build.ready_count++] = g;
    }
    if (is_random) order_shuffle_top(&build, build.ready_count);
    uint32_t filled = 0;
    while (build.ready_count > 0) {
        const uint32_t group = order_take(&build, is_greedy);
        const uint32_t before = build.ready_count;
        out_order[is_reversed ? count - 1 - filled : filled] = group;
        filled += 1;
        order_close(&build, group);
        for (uint32_t e = build.after->first[group + 1]; e-- > build.after->first[group];) {
            const uint32_t next = build.after->ids[e];
            if (--build.waits[next] == 0) build.ready[build.ready_count++] = next;
        }
        if (is_random) order_shuffle_top(&build, build.ready_count - before);
    }
    PEN_ASSERT(filled == count);
    return PEN_OK;
}

// Nodes are met in topological order, and each brings its group.
pen_status pen_first_line(const pen_problem *problem, pen_arena *arena, uint32_t *out_line) {
    bool *is_listed;
    uint32_t filled = 0;
    if (problem->given.is_contiguous) return pen_linear_order(problem, 0, 0, arena, out_line);
    PEN_TRY(PEN_NEW(arena, problem->group_count, &is_listed));
    for (uint32_t i = 0; i < problem->given.node_count; i++) {
        const uint32_t g = problem->group_of_node[problem->node_order[i]];
        if (is_listed[g]) continue;
        is_listed[g] = true;
        out_line[filled++] = g;
    }
    return PEN_OK;
}
