// Exhaustive search, the oracle of small problems: groups one by one on every device, a branch
// ending where what it costs for good reaches the best value known. Of devices that are alike and
// empty only the first is tried, but for step time. What counts as spent, until all groups have a
// device:
//   throughput  loads: compute, and transfers between groups that both have a device
//   latency     the longest path, nodes that have no device yet at their cheapest; and the compute
//               of each device that is not parallel
//   step time   for each device, what it has to compute for all microbatches and the update, behind
//               the longest path of forward nodes that leads to it
//   traffic     transfers between groups that both have a device
// A contiguous branch ends where the devices wait for each other in a circle.

#include "partition/strategies/exhaustive.h"

#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "partition/bound/least_costs.h"
#include "partition/objective/latency.h"
#include "partition/objective/step_time.h"
#include "partition/problem/device_classes.h"
#include "partition/search/memory_blame.h"
#include "partition/search/region.h"
#include "partition/strategies/strategy.h"

#define EXHAUSTIVE_GROUP_LIMIT 24
#define EXHAUSTIVE_LOOK_VISITS 64 // between two looks at the clock

typedef struct exhaustive_search {
    const pen_problem *problem;
    const pen_problem *loads; // the problem as throughput: what devices compute
    const pen_device_classes *classes;
    uint32_t *device_of_group;
    uint32_t *best;
    double best_value;
    double *load;          // [group_count + 1][device_count]
    double *compute;       // [group_count + 1][device_count]
    double *traffic;       // [group_count + 1]
    double *bytes;         // [device_count]
    uint32_t *group_total; // [device_count]
    uint32_t *waits;       // [device_count][device_count] edges between groups that have a device
    uint32_t *stack;       // [device_count]
    uint32_t *mark;        // [device_count] number of the last walk that came there
    uint32_t mark_last;
    uint32_t used_count;
    pen_latency *latency;
    pen_step_time *step;
    double *least;     // [node_count]
    double *finish;    // [node_count]
    double *begin;     // [device_count]
    bool *has_forward; // [group_count]
    uint32_t *device_of_node;
    double *rank;
    uint64_t visits_left;
    double deadline;
    pen_status status;
} exhaustive_search;

// What moving output `o` from device `home` to `there` costs: `is_first` says that no other device
// reads it so far.
static void exhaustive_move(const exhaustive_search *search, uint32_t o, uint32_t home,
                            uint32_t there, bool is_first, uint32_t depth) {
    const pen_problem *problem = search->problem;
    const pen_problem_given *given = &problem->given;
    const double cost = problem->output_cost[o];
    double *load = search->load + (size_t)depth * given->device_count;
    search->traffic[depth] += cost;
    load[there] += cost * given->devices[there].receive;
    if (is_first) load[home] += cost * given->devices[home].send;
    if (given->link == NULL) return;
    const double moved = pen_problem_link_cost(problem, o, home, there);
    load[there] += moved;
    load[home] += moved;
}

// What putting `group` on `device` costs for good, at depth `group + 1`. Groups below it have a
// device.
static void exhaustive_charge(const exhaustive_search *search, uint32_t group, uint32_t device) {
    const pen_problem *problem = search->problem;
    const uint32_t device_count = problem->given.device_count;
    const uint32_t *device_of_group = search->device_of_group;
    const uint32_t depth = group + 1;
    search->load[(size_t)depth * device_count + device] +=
        pen_problem_compute(problem, group, device);
    search->compute[(size_t)depth * device_count + device] +=
        pen_problem_compute(search->loads, group, device);
    for (uint32_t o = problem->own_first[group]; o < problem->own_first[group + 1]; o++) {
        bool is_first = true;
        for (uint32_t d = 0; d < device_count; d++) {
            bool is_read = false;
            for (uint32_t r = problem->readers.first[o];
                 d != device && r < problem->readers.first[o + 1]; r++) {
                const uint32_t reader = problem->readers.ids[r];
                is_read = is_read || (reader < group && device_of_group[reader] == d);
            }
            if (!is_read) continue;
            exhaustive_move(search, o, device, d, is_first, depth);
            is_first = false;
        }
    }
    for (uint32_t i = problem->reads.first[group]; i < problem->reads.first[group + 1]; i++) {
        const uint32_t o = problem->reads.ids[i];
        const uint32_t owner = problem->output_owner[o];
        if (owner > group || device_of_group[owner] == device) continue;
        const uint32_t home = device_of_group[owner];
        bool is_read_here = false, is_sent = false;
        for (uint32_t r = problem->readers.first[o]; r < problem->readers.first[o + 1]; r++) {
            const uint32_t reader = problem->readers.ids[r];
            if (reader >= group) continue;
            is_read_here = is_read_here || device_of_group[reader] == device;
            is_sent = is_sent || device_of_group[reader] != home;
        }
        if (!is_read_here) exhaustive_move(search, o, home, device, !is_sent, depth);
    }
}

// ---- what is spent

static double exhaustive_most(const double *amount, uint32_t count) {
    double most = 0.0;
    for (uint32_t i = 0; i < count; i++)
        most = fmax(most, amount[i]);
    return most;
}

// The longest path when groups below `depth` are placed.
static double exhaustive_longest_path(exhaustive_search *search, uint32_t depth) {
    const pen_problem *problem = search->problem;
    const pen_problem_given *given = &problem->given;
    double longest = 0.0;
    for (uint32_t i = 0; i < given->node_count; i++) {
        const uint32_t v = problem->node_order[i], g = problem->group_of_node[v];
        double begin = 0.0, cost = search->least[v];
        if (g < depth) {
            const pen_problem_device *device = &given->devices[search->device_of_group[g]];
            cost =
                given->compute[(uint64_t)device->kind * given->node_count + v] * device->slowness;
        }
        for (uint32_t e = problem->predecessors.first[v]; e < problem->predecessors.first[v + 1];
             e++) {
            begin = fmax(begin, search->finish[problem->predecessors.ids[e]]);
        }
        search->finish[v] = begin + cost;
        longest = fmax(longest, search->finish[v]);
    }
    return longest;
}

// Seconds from the end of forward node `u` to the begin of `v`, which reads it, if both are placed.
static double exhaustive_wait(const exhaustive_search *search, uint32_t u, uint32_t v,
                              uint32_t depth) {
    const pen_problem_given *given = &search->problem->given;
    const uint32_t owner = search->problem->group_of_node[u];
    const uint32_t reader = search->problem->group_of_node[v];
    const double transfer = given->nodes[u].transfer;
    if (owner >= depth || reader >= depth || transfer == 0.0) return 0.0;
    const uint32_t from = search->device_of_group[owner], to = search->device_of_group[reader];
    if (from == to) return 0.0;
    const double ends = transfer * (given->devices[from].send + given->devices[to].receive);
    if (given->link == NULL) return ends;
    const size_t at = (size_t)from * given->device_count + to;
    return ends + transfer * given->link[at] +
           (given->link_latency != NULL ? given->link_latency[at] : 0.0);
}

// When each device may begin, at the earliest, with groups below `depth`. A device of a contiguous
// placement is one stage, which waits for all inputs; another may be several, the first of which
// waits for the least.
static void exhaustive_find_begins(exhaustive_search *search, uint32_t depth) {
    const pen_problem *problem = search->problem;
    const pen_problem_given *given = &problem->given;
    const bool is_contiguous = given->is_contiguous;
    for (uint32_t d = 0; d < given->device_count; d++)
        search->begin[d] = is_contiguous ? 0.0 : INFINITY;
    for (uint32_t i = 0; i < given->node_count; i++) {
        const uint32_t v = problem->node_order[i], g = problem->group_of_node[v];
        const bool is_placed = g < depth;
        const uint32_t d = is_placed ? search->device_of_group[g] : 0;
        double begin = 0.0, cost = search->least[v];
        if (!pen_problem_is_forward(given, v)) {
            if (is_placed && !search->has_forward[g]) search->begin[d] = 0.0;
            continue;
        }
        if (is_placed) {
            const uint64_t row = (uint64_t)given->devices[d].kind * given->node_count;
            cost = given->compute[row + v] * given->devices[d].slowness;
        }
        double begin_stage = 0.0; // what is not placed yet may be of the same stage
        for (uint32_t e = problem->predecessors.first[v]; e < problem->predecessors.first[v + 1];
             e++) {
            const uint32_t u = problem->predecessors.ids[e], h = problem->group_of_node[u];
            if (!pen_problem_is_forward(given, u)) continue;
            const double ready = search->finish[u] + exhaustive_wait(search, u, v, depth);
            begin = fmax(begin, ready);
            const bool is_elsewhere = h < depth && search->device_of_group[h] != d;
            if (is_elsewhere) begin_stage = fmax(begin_stage, ready);
        }
        search->finish[v] = begin + cost;
        if (!is_placed) continue;
        search->begin[d] = is_contiguous ? fmax(search->begin[d], begin_stage)
                                         : fmin(search->begin[d], begin_stage);
    }
}

static double exhaustive_spent_on_steps(exhaustive_search *search, uint32_t depth) {
    const pen_problem_given *given = &search->problem->given;
    const double *compute = search->compute + (size_t)depth * given->device_count;
    double spent = 0.0;
    exhaustive_find_begins(search, depth);
    for (uint32_t d = 0; d < given->device_count; d++) {
        const double begin = search->begin[d] < INFINITY ? search->begin[d] : 0.0;
        spent = fmax(spent, begin + compute[d] * given->microbatch_count);
    }
    return spent;
}

// A lower bound for everything that begins like this: at or above the best, nothing behind it need
// be visited.
static double exhaustive_spent(exhaustive_search *search, uint32_t depth) {
    const pen_problem_given *given = &search->problem->given;
    const double *compute = search->compute + (size_t)depth * given->device_count;
    double spent = 0.0;
    switch (given->objective) {
    case PEN_OBJECTIVE_THROUGHPUT:
        return exhaustive_most(search->load + (size_t)depth * given->device_count,
                               given->device_count);
    case PEN_OBJECTIVE_LATENCY:
        for (uint32_t d = 0; d < given->device_count; d++) {
            if (!given->devices[d].is_parallel) spent = fmax(spent, compute[d]);
        }
        spent = fmax(spent, exhaustive_longest_path(search, depth));
        break;
    case PEN_OBJECTIVE_STEP_TIME:
        spent = exhaustive_most(compute, given->device_count) * given->microbatch_count;
        if (spent < search->best_value) spent = exhaustive_spent_on_steps(search, depth);
        break;
    case PEN_OBJECTIVE_TRAFFIC:
        return search->traffic[depth];
    }
    return spent * (1.0 - 1e-12); // sums in another order may differ
}

// ---- complete placements

// The true value of a whole placement; one that does not fit counts as infinite.
static double exhaustive_value(exhaustive_search *search) {
    const pen_problem *problem = search->problem;
    const pen_step_prediction *prediction;
    if (search->latency == NULL && search->step == NULL) {
        return exhaustive_spent(search, problem->group_count);
    }
    pen_problem_place_nodes(problem, search->device_of_group, search->device_of_node);
    if (search->latency != NULL) {
        return pen_latency_evaluate(search->latency, search->device_of_node, NULL);
    }
    const pen_status status =
        pen_step_time_evaluate(search->step, search->device_of_node, &prediction);
    if (status == PEN_OK) return pen_step_time_value(search->step);
    if (pen_status_get_code(status) == PEN_DOES_NOT_FIT) {
        pen_status_ignore(status, "other placements may fit");
    } else {
        search->status = status;
        search->visits_left = 0;
    }
    return INFINITY;
}

// A complete placement: notes it when it is right and better.
static void exhaustive_note(exhaustive_search *search) {
    const pen_problem *problem = search->problem;
    const double value = exhaustive_value(search);
    if (!(value < search->best_value)) return;
    if (problem->given.is_contiguous &&
        !pen_rank_devices(problem, search->device_of_group, search->rank)) {
        return;
    }
    search->best_value = value;
    memcpy(search->best, search->device_of_group, problem->group_count * sizeof *search->best);
}

// ---- the tree

// Adds `sign` times what `group`, on `device`, waits for and is waited for.
static void exhaustive_tie(exhaustive_search *search, uint32_t group, uint32_t device,
                           uint32_t sign) {
    const pen_problem *problem = search->problem;
    const size_t device_count = problem->given.device_count;
    for (uint32_t e = problem->before.first[group]; e < problem->before.first[group + 1]; e++) {
        const uint32_t other = problem->before.ids[e];
        if (other >= group) continue;
        search->waits[search->device_of_group[other] * device_count + device] += sign;
    }
    for (uint32_t e = problem->after.first[group]; e < problem->after.first[group + 1]; e++) {
        const uint32_t other = problem->after.ids[e];
        if (other >= group) continue;
        search->waits[device * device_count + search->device_of_group[other]] += sign;
    }
}

// Whether a way leads from `device` back to it.
static bool exhaustive_is_in_circle(exhaustive_search *search, uint32_t device) {
    const uint32_t device_count = search->problem->given.device_count;
    uint32_t depth = 0;
    search->stack[depth++] = device;
    search->mark_last += 1;
    while (depth > 0) {
        const uint32_t from = search->stack[--depth];
        const uint32_t *row = search->waits + (size_t)from * device_count;
        for (uint32_t d = 0; d < device_count; d++) {
            if (row[d] == 0 || d == from) continue;
            if (d == device) return true;
            if (search->mark[d] == search->mark_last) continue;
            search->mark[d] = search->mark_last;
            search->stack[depth++] = d;
        }
    }
    return false;
}

// Whether an empty device like `device` was tried before it. To a schedule no two devices need be
// alike, since their numbers may break its ties.
static bool exhaustive_is_twin(const exhaustive_search *search, uint32_t device) {
    if (search->group_total[device] > 0 || search->step != NULL) return false;
    for (uint32_t d = 0; d < device; d++) {
        if (search->group_total[d] == 0 &&
            search->classes->class_of_device[d] == search->classes->class_of_device[device]) {
            return true;
        }
    }
    return false;
}

// Whether as many devices can still be used as must be, and no more are than may be.
static bool exhaustive_count_is_right(const exhaustive_search *search, uint32_t groups_left) {
    const pen_problem_given *given = &search->problem->given;
    return search->used_count + groups_left >= given->devices_used_minimum &&
           (given->devices_used_maximum == 0 || search->used_count <= given->devices_used_maximum);
}

static bool exhaustive_take_visit(exhaustive_search *search) {
    if (search->visits_left == 0) return false;
    search->visits_left -= 1;
    if (search->visits_left % EXHAUSTIVE_LOOK_VISITS == 0 && search->deadline < INFINITY &&
        pen_clock_seconds() > search->deadline) {
        search->visits_left = 0;
    }
    return search->visits_left > 0;
}

static void exhaustive_visit(exhaustive_search *search, uint32_t group);

// Places, visits and takes back: what is added on the way down is subtracted on the way up.
static void exhaustive_try(exhaustive_search *search, uint32_t group, uint32_t device) {
    const pen_problem *problem = search->problem;
    const size_t device_count = problem->given.device_count;
    const bool is_contiguous = problem->given.is_contiguous;
    const size_t here = group * device_count, next = here + device_count;
    memcpy(search->load + next, search->load + here, device_count * sizeof *search->load);
    memcpy(search->compute + next, search->compute + here, device_count * sizeof *search->compute);
    search->traffic[group + 1] = search->traffic[group];
    search->device_of_group[group] = device;
    exhaustive_charge(search, group, device);
    if (exhaustive_spent(search, group + 1) >= search->best_value) return;
    search->bytes[device] += pen_problem_bytes(problem, group, device);
    if (search->group_total[device]++ == 0) search->used_count += 1;
    if (is_contiguous) exhaustive_tie(search, group, device, 1);
    if (exhaustive_count_is_right(search, problem->group_count - group - 1) &&
        !(is_contiguous && exhaustive_is_in_circle(search, device))) {
        exhaustive_visit(search, group + 1);
    }
    if (is_contiguous) exhaustive_tie(search, group, device, UINT32_MAX);
    if (--search->group_total[device] == 0) search->used_count -= 1;
    search->bytes[device] -= pen_problem_bytes(problem, group, device);
}

static void exhaustive_visit(exhaustive_search *search, uint32_t group) {
    const pen_problem *problem = search->problem;
    if (group == problem->group_count) {
        if (exhaustive_count_is_right(search, 0)) exhaustive_note(search);
        return;
    }
    for (uint32_t d = 0; d < problem->given.device_count; d++) {
        if (!pen_problem_allows(problem, group, d) || exhaustive_is_twin(search, d) ||
            search->bytes[d] + pen_problem_bytes(problem, group, d) >
                pen_problem_bytes_limit(problem, d)) {
            continue;
        }
        if (!exhaustive_take_visit(search)) return;
        exhaustive_try(search, group, d);
    }
}

static pen_status exhaustive_begin_steps(exhaustive_search *search, pen_arena *arena) {
    const pen_problem *problem = search->problem;
    PEN_TRY(PEN_NEW(arena, problem->given.node_count, &search->least));
    PEN_TRY(PEN_NEW(arena, problem->given.node_count, &search->finish));
    PEN_TRY(PEN_NEW(arena, problem->given.device_count, &search->begin));
    PEN_TRY(PEN_NEW(arena, problem->group_count, &search->has_forward));
    PEN_TRY(pen_bound_least_costs(problem, arena, search->least));
    for (uint32_t v = 0; v < problem->given.node_count; v++) {
        if (pen_problem_is_forward(&problem->given, v)) {
            search->has_forward[problem->group_of_node[v]] = true;
        }
    }
    return pen_step_time_new(problem, arena, &search->step);
}

// Each depth has loads of its own, so that going back costs nothing and sums do not drift.
static pen_status exhaustive_begin(exhaustive_search *search, pen_arena *arena) {
    const pen_problem *problem = search->problem;
    const size_t device_count = problem->given.device_count;
    const size_t cells = ((size_t)problem->group_count + 1) * device_count;
    pen_device_classes *classes;
    PEN_TRY(pen_device_classes_new(problem, 0, arena, &classes));
    search->classes = classes;
    PEN_TRY(pen_problem_as_throughput(problem, arena, &search->loads));
    PEN_TRY(PEN_NEW(arena, problem->group_count, &search->device_of_group));
    PEN_TRY(PEN_NEW(arena, cells, &search->load));
    PEN_TRY(PEN_NEW(arena, cells, &search->compute));
    PEN_TRY(PEN_NEW(arena, (size_t)problem->group_count + 1, &search->traffic));
    PEN_TRY(PEN_NEW(arena, device_count, &search->bytes));
    PEN_TRY(PEN_NEW(arena, device_count, &search->group_total));
    PEN_TRY(PEN_NEW(arena, device_count, &search->stack));
    PEN_TRY(PEN_NEW(arena, device_count, &search->mark));
    PEN_TRY(PEN_NEW(arena, device_count, &search->rank));
    PEN_TRY(PEN_NEW(arena, problem->given.node_count, &search->device_of_node));
    if (problem->given.is_contiguous) {
        PEN_TRY(PEN_NEW(arena, device_count * device_count, &search->waits));
    }
    if (problem->given.objective == PEN_OBJECTIVE_LATENCY) {
        PEN_TRY(pen_latency_new(problem, arena, &search->latency));
        PEN_TRY(PEN_NEW(arena, problem->given.node_count, &search->least));
        PEN_TRY(PEN_NEW(arena, problem->given.node_count, &search->finish));
        PEN_TRY(pen_bound_least_costs(problem, arena, search->least));
    }
    return problem->given.objective == PEN_OBJECTIVE_STEP_TIME
               ? exhaustive_begin_steps(search, arena)
               : PEN_OK;
}

pen_status pen_exhaustive_search(const pen_problem *problem, const pen_exhaustive_options *options,
                                 pen_arena *arena, uint32_t *device_of_group, double *io_value,
                                 bool *out_is_complete) {
    exhaustive_search search = {.problem = problem,
                                .best = device_of_group,
                                .best_value = *io_value,
                                .visits_left = options->visit_limit,
                                .deadline = options->deadline};
    *out_is_complete = false;
    if (problem->group_count > EXHAUSTIVE_GROUP_LIMIT) return PEN_OK;
    PEN_TRY(exhaustive_begin(&search, arena));
    exhaustive_visit(&search, 0);
    if (search.status != PEN_OK) return search.status;
    *io_value = search.best_value;
    *out_is_complete = search.visits_left > 0;
    return PEN_OK;
}

#define EXHAUSTIVE_VISIT_LIMIT 2000000000ull

// An answer of this strategy is proved, so a search that is not finished is no answer.
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
    const pen_exhaustive_options search = {.visit_limit = EXHAUSTIVE_VISIT_LIMIT,
                                           .deadline = INFINITY};
    PEN_TRY(pen_exhaustive_search(problem, &search, arena, out_result->device_of_group, &value,
                                  &is_complete));
    if (!is_complete) {
        return pen_error(PEN_UNSUPPORTED, "gave up after %llu partial placements",
                         EXHAUSTIVE_VISIT_LIMIT);
    }
    if (!(value < INFINITY)) {
        return pen_memory_blame(problem, "of all placements none is right", arena);
    }
    out_result->lower_bound = value * (1.0 - 1e-12);
    return PEN_OK;
}

extern const pen_strategy pen_strategy_exhaustive;
const pen_strategy pen_strategy_exhaustive = {
    .name = "exhaustive",
    .summary = "every placement of a small graph, the best of them",
    .place = exhaustive_place,
    .judges_all = true,
    .counts_devices = true,
};
