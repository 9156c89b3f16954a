// Exhaustive search, the oracle of small problems: groups one by one on every device, a branch
// ending where its load alone reaches the best value known. Of devices that are alike and empty
// only the first is tried. Loads count what no later group takes away: costs, and transfers between
// groups that both have a device.

#include <math.h>
#include <string.h>

#include "partition/anneal.h"
#include "partition/device_classes.h"
#include "partition/latency.h"
#include "partition/strategies/exhaustive.h"
#include "partition/strategies/strategies.h"

#define EXHAUSTIVE_GROUP_LIMIT 24

typedef struct exhaustive_search {
    const pen_problem *problem;
    const pen_device_classes *classes;
    uint32_t *device_of_group;
    uint32_t *best;
    double best_value;
    double *load;          // [group_count + 1][device_count]
    double *bytes;         // [device_count]
    uint32_t *group_total; // [device_count]
    pen_latency *latency;
    uint32_t *device_of_node;
    uint32_t *rank;
    uint64_t visits_left;
} exhaustive_search;

// Adds to `load` what putting `group` on `device` costs for good.
static void exhaustive_charge(const exhaustive_search *search, uint32_t group, uint32_t device,
                              double *load) {
    const pen_problem *problem = search->problem;
    const pen_problem_given *given = &problem->given;
    const uint32_t *device_of_group = search->device_of_group;
    load[device] += pen_problem_compute(problem, group, device);
    for (uint32_t o = problem->own_first[group]; o < problem->own_first[group + 1]; o++) {
        const double cost = problem->output_cost[o];
        bool is_sent = false;
        for (uint32_t d = 0; d < given->device_count; d++) {
            if (d == device) continue;
            bool is_read = false;
            for (uint32_t r = problem->readers.first[o]; r < problem->readers.first[o + 1]; r++) {
                const uint32_t reader = problem->readers.ids[r];
                is_read = is_read || (reader < group && device_of_group[reader] == d);
            }
            if (!is_read) continue;
            is_sent = true;
            load[d] += cost * given->devices[d].receive;
            if (given->link == NULL) continue;
            load[d] += cost * given->link[(size_t)device * given->device_count + d];
            load[device] += cost * given->link[(size_t)device * given->device_count + d];
        }
        if (is_sent) load[device] += cost * given->devices[device].send;
    }
    for (uint32_t i = problem->reads.first[group]; i < problem->reads.first[group + 1]; i++) {
        const uint32_t o = problem->reads.ids[i];
        const uint32_t owner = problem->output_owner[o];
        const double cost = problem->output_cost[o];
        if (owner > group || device_of_group[owner] == device) continue;
        const uint32_t home = device_of_group[owner];
        bool is_read_here = false, is_sent = false;
        for (uint32_t r = problem->readers.first[o]; r < problem->readers.first[o + 1]; r++) {
            const uint32_t reader = problem->readers.ids[r];
            if (reader >= group) continue;
            is_read_here = is_read_here || device_of_group[reader] == device;
            is_sent = is_sent || device_of_group[reader] != home;
        }
        if (!is_sent) load[home] += cost * given->devices[home].send;
        if (is_read_here) continue;
        load[device] += cost * given->devices[device].receive;
        if (given->link == NULL) continue;
        load[device] += cost * given->link[(size_t)home * given->device_count + device];
        load[home] += cost * given->link[(size_t)home * given->device_count + device];
    }
}

// A complete placement: notes it when it is right and better.
static void exhaustive_note(exhaustive_search *search, const double *load) {
    const pen_problem *problem = search->problem;
    double value = 0.0;
    if (search->latency != NULL) {
        for (uint32_t v = 0; v < problem->given.node_count; v++) {
            search->device_of_node[v] = search->device_of_group[problem->group_of_node[v]];
        }
        value = pen_latency_evaluate(search->latency, search->device_of_node, NULL);
    } else {
        for (uint32_t d = 0; d < problem->given.device_count; d++)
            value = fmax(value, load[d]);
    }
    if (value >= search->best_value) return;
    if (problem->given.is_contiguous &&
        !pen_rank_devices(problem, search->device_of_group, search->rank)) {
        return;
    }
    search->best_value = value;
    memcpy(search->best, search->device_of_group, problem->group_count * sizeof *search->best);
}

// Whether an empty device like `device` was tried before it.
static bool exhaustive_is_twin(const exhaustive_search *search, uint32_t device) {
    if (search->group_total[device] > 0) return false;
    for (uint32_t d = 0; d < device; d++) {
        if (search->group_total[d] == 0 &&
            search->classes->class_of_device[d] == search->classes->class_of_device[device]) {
            return true;
        }
    }
    return false;
}

static void exhaustive_visit(exhaustive_search *search, uint32_t group) {
    const pen_problem *problem = search->problem;
    const uint32_t device_count = problem->given.device_count;
    const double *load = search->load + (size_t)group * device_count;
    if (group == problem->group_count) {
        exhaustive_note(search, load);
        return;
    }
    double *next = search->load + (size_t)(group + 1) * device_count;
    for (uint32_t d = 0; d < device_count && search->visits_left > 0; d++) {
        const double bytes = problem->group_bytes[group];
        if (!pen_problem_allows(problem, group, d) || exhaustive_is_twin(search, d) ||
            search->bytes[d] + bytes > pen_problem_bytes_limit(problem, d)) {
            continue;
        }
        search->visits_left -= 1;
        memcpy(next, load, device_count * sizeof *next);
        exhaustive_charge(search, group, d, next);
        double worst = 0.0;
        for (uint32_t i = 0; i < device_count; i++)
            worst = fmax(worst, next[i]);
        if (search->latency == NULL && worst >= search->best_value) continue;
        search->device_of_group[group] = d;
        search->bytes[d] += bytes;
        search->group_total[d] += 1;
        exhaustive_visit(search, group + 1);
        search->bytes[d] -= bytes;
        search->group_total[d] -= 1;
    }
}

pen_status pen_exhaustive_search(const pen_problem *problem, uint64_t visit_limit, pen_arena *arena,
                                 uint32_t *device_of_group, double *io_value,
                                 bool *out_is_complete) {
    exhaustive_search search = {.problem = problem,
                                .best = device_of_group,
                                .best_value = *io_value,
                                .visits_left = visit_limit};
    pen_device_classes *classes;
    const uint32_t device_count = problem->given.device_count;
    *out_is_complete = false;
    if (problem->group_count > EXHAUSTIVE_GROUP_LIMIT) return PEN_OK;
    PEN_TRY(pen_device_classes_new(problem, 0, arena, &classes));
    search.classes = classes;
    PEN_TRY(PEN_NEW(arena, problem->group_count, &search.device_of_group));
    PEN_TRY(PEN_NEW(arena, (size_t)(problem->group_count + 1) * device_count, &search.load));
    PEN_TRY(PEN_NEW(arena, device_count, &search.bytes));
    PEN_TRY(PEN_NEW(arena, device_count, &search.group_total));
    PEN_TRY(PEN_NEW(arena, device_count, &search.rank));
    PEN_TRY(PEN_NEW(arena, problem->given.node_count, &search.device_of_node));
    if (problem->given.objective == PEN_OBJECTIVE_LATENCY) {
        PEN_TRY(pen_latency_new(problem, arena, &search.latency));
    }
    exhaustive_visit(&search, 0);
    *io_value = search.best_value;
    *out_is_complete = search.visits_left > 0;
    return PEN_OK;
}

#define EXHAUSTIVE_VISIT_LIMIT 2000000000ull

static pen_status exhaustive_place(const pen_problem *problem, const pen_strategy_options *options,
                                   pen_arena *arena, pen_strategy_result *out_result) {
    double value = INFINITY;
    bool is_complete;
    (void)options;
    if (problem->group_count > EXHAUSTIVE_GROUP_LIMIT) {
        return pen_error(PEN_UNSUPPORTED,
                         "%u groups of nodes are too many, at most %d can be tried",
                         problem->group_count, EXHAUSTIVE_GROUP_LIMIT);
    }
    PEN_TRY(pen_exhaustive_search(problem, EXHAUSTIVE_VISIT_LIMIT, arena,
                                  out_result->device_of_group, &value, &is_complete));
    if (!is_complete) {
        return pen_error(PEN_UNSUPPORTED, "gave up after %llu partial placements",
                         EXHAUSTIVE_VISIT_LIMIT);
    }
    if (!(value < INFINITY)) {
        return pen_error(PEN_DOES_NOT_FIT,
                         "of all placements none keeps the memory of all devices");
    }
    out_result->lower_bound = value * (1.0 - 1e-12);
    return PEN_OK;
}

extern const pen_strategy pen_strategy_exhaustive;
const pen_strategy pen_strategy_exhaustive = {
    .name = "exhaustive",
    .summary = "every placement of a small graph, the best of them",
    .place = exhaustive_place,
};
