#include "partition/bound/traffic_bound.h"

#include <math.h>

#include "base/sets/disjoint_sets.h"
#include "base/sets/order.h"
#include "partition/problem/problem_lists.h"

// Groups of a problem, in parts.
typedef struct traffic_parts {
    const pen_problem *problem;
    uint32_t *part_of_group;   // [group_count]
    pen_problem_lists members; // of parts: groups
    uint32_t part_count;
    double *limits;  // [device_count] of bytes, descending
    uint32_t *asked; // [device_count] 1 + the last part with a group pinned there
} traffic_parts;

// Parts of the graph between which nothing flows: they may be on different devices for nothing.
pen_status pen_traffic_parts(const pen_problem *problem, pen_arena *arena,
                             uint32_t *out_part_of_group, uint32_t *out_part_count) {
    const uint32_t count = problem->group_count;
    pen_disjoint_sets sets;
    PEN_TRY(pen_disjoint_sets_new(count, arena, &sets));
    for (uint32_t o = 0; o < problem->output_count; o++) {
        for (uint32_t r = problem->readers.first[o]; r < problem->readers.first[o + 1]; r++)
            pen_disjoint_sets_join(&sets, problem->output_owner[o], problem->readers.ids[r]);
    }
    *out_part_count = 0;
    for (uint32_t g = 0; g < count; g++) {
        const uint32_t root = pen_disjoint_sets_find(&sets, g);
        out_part_of_group[g] = root == g ? (*out_part_count)++ : out_part_of_group[root];
    }
    return PEN_OK;
}

static pen_status traffic_find_parts(traffic_parts *parts, pen_arena *arena) {
    const pen_problem *problem = parts->problem;
    const uint32_t count = problem->group_count;
    pen_problem_edge *pairs;
    PEN_TRY(PEN_NEW(arena, count, &pairs));
    PEN_TRY(PEN_NEW(arena, count, &parts->part_of_group));
    PEN_TRY(pen_traffic_parts(problem, arena, parts->part_of_group, &parts->part_count));
    for (uint32_t g = 0; g < count; g++)
        pairs[g] = (pen_problem_edge){parts->part_of_group[g], g};
    PEN_TRY(PEN_NEW(arena, problem->given.device_count, &parts->asked));
    PEN_TRY(PEN_NEW(arena, problem->given.device_count, &parts->limits));
    for (uint32_t d = 0; d < problem->given.device_count; d++)
        parts->limits[d] = pen_problem_bytes_limit(problem, d);
    pen_sort_numbers_down(parts->limits, problem->given.device_count);
    return pen_problem_lists_build(parts->part_count, pairs, count, false, arena, &parts->members);
}

// Whether some device can run every group of the part.
static bool traffic_is_runnable(const traffic_parts *parts, uint32_t part) {
    const pen_problem *problem = parts->problem;
    for (uint32_t d = 0; d < problem->given.device_count; d++) {
        bool is_able = true;
        for (uint32_t m = parts->members.first[part]; is_able && m < parts->members.first[part + 1];
             m++) {
            is_able = pen_problem_allows(problem, parts->members.ids[m], d);
        }
        if (is_able) return true;
    }
    return false;
}

// How many devices the part needs at least.
static uint32_t traffic_count_devices(traffic_parts *parts, uint32_t part) {
    const pen_problem *problem = parts->problem;
    const uint32_t device_count = problem->given.device_count;
    double bytes = 0.0;
    uint32_t pins = 0, lean = 0, fitting = 0;
    for (uint32_t d = 1; d < device_count; d++) {
        if (problem->given.devices[d].microbatches < problem->given.devices[lean].microbatches) {
            lean = d;
        }
    }
    for (uint32_t m = parts->members.first[part]; m < parts->members.first[part + 1]; m++) {
        const uint32_t g = parts->members.ids[m];
        const uint32_t pin = problem->group_pin[g];
        bytes += pen_problem_bytes(problem, g, lean);
        if (pin == PEN_PROBLEM_ANY || parts->asked[pin] == part + 1) continue;
        parts->asked[pin] = part + 1;
        pins += 1;
    }
    for (double room = 0.0; fitting < device_count && room < bytes * (1.0 - 1e-9); fitting++)
        room += parts->limits[fitting];
    uint32_t count = pins > fitting ? pins : fitting;
    if (count < 2 && !traffic_is_runnable(parts, part)) count = 2;
    return count;
}

// The least that `moves` moves of the part's outputs to devices can cost.
static pen_status traffic_sum_cheapest(const traffic_parts *parts, uint32_t part, uint32_t moves,
                                       pen_arena *arena, double *out_sum) {
    const pen_problem *problem = parts->problem;
    const uint32_t first = parts->members.first[part], end = parts->members.first[part + 1];
    size_t count = 0;
    double *costs; // of moves
    for (uint32_t m = first; m < end; m++) {
        const uint32_t g = parts->members.ids[m];
        if (problem->own_first[g + 1] == problem->own_first[g]) continue;
        count += problem->readers.first[problem->own_first[g + 1]] -
                 problem->readers.first[problem->own_first[g]];
    }
    PEN_TRY(PEN_NEW(arena, count, &costs));
    count = 0;
    for (uint32_t m = first; m < end; m++) {
        const uint32_t g = parts->members.ids[m];
        for (uint32_t o = problem->own_first[g]; o < problem->own_first[g + 1]; o++) {
            for (uint32_t r = problem->readers.first[o]; r < problem->readers.first[o + 1]; r++)
                costs[count++] = problem->output_cost[o];
        }
    }
    pen_sort_numbers_down(costs, count);
    *out_sum = 0.0;
    for (size_t i = 0; i < count && i < moves; i++)
        *out_sum += costs[count - 1 - i];
    return PEN_OK;
}

// A part whose pins lie on several devices must be cut at least once less than these; and when more
// devices must be used than there are parts, something has to be cut.
pen_status pen_traffic_bound(const pen_problem *problem, pen_arena *arena, double *out_bound) {
    traffic_parts parts = {.problem = problem};
    const uint32_t least = problem->given.devices_used_minimum;
    double forced = 0.0, cheapest = INFINITY;
    PEN_TRY(traffic_find_parts(&parts, arena));
    for (uint32_t p = 0; p < parts.part_count; p++) {
        const uint32_t count = traffic_count_devices(&parts, p);
        double sum;
        if (count < 2) continue;
        PEN_TRY(traffic_sum_cheapest(&parts, p, count - 1, arena, &sum));
        forced += sum;
    }
    for (uint32_t o = 0; o < problem->output_count; o++)
        cheapest = fmin(cheapest, problem->output_cost[o]);
    if (least > parts.part_count && cheapest < INFINITY) {
        forced = fmax(forced, cheapest * (least - parts.part_count));
    }
    *out_bound = forced * (1.0 - 1e-12);
    return PEN_OK;
}
