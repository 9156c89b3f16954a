// Local search: cycles of multilevel annealing, each from the best placement so far.
//
// Cycles differ in how coarse they begin and how warm. All pair only groups that share a device in
// the best placement so far: cycles that paired anything were worse on every graph tried. Steps are
// counted from the time limit and a nominal rate, so the clock only matters on machines that are
// slower than that.

#include "partition/strategies/local_search.h"

#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "partition/search/initial_placement.h"
#include "partition/search/load_anneal.h"
#include "partition/search/multilevel.h"
#include "partition/search/objective_anneal.h"
#include "partition/search/objective_starts.h"
#include "partition/strategies/strategy.h"

#define LOCAL_STEP_SECONDS 120e-9       // nominal time of a step: this,
#define LOCAL_TIE_SECONDS 12e-9         // and this for each output that a group makes or reads
#define LOCAL_CLOSED_FACTOR 2.5         // contiguous: times as much, since groups come along
#define LOCAL_LATENCY_SECONDS 4e-7      // latency: a step takes this,
#define LOCAL_LATENCY_NODE_SECONDS 3e-9 // and this for each node and edge
#define LOCAL_STEPS_ENOUGH 60000        // for each group: more find little
#define LOCAL_WEIGHED_STEPS_ENOUGH 2000 // likewise, of steps that weigh step time or traffic
#define LOCAL_CYCLES_LIMIT 24           // of one run
#define LOCAL_FRESH_WARMTH_FIRST 0.01 // of a fresh cycle: warmer, and what was good is lost anyway
#define LOCAL_FRESH_WARMTH_LAST 0.00005

// How an objective is searched.
typedef struct local_way {
    double warmths[4];    // of cycles in turn
    bool is_afresh[4];    // such cycles start from the origin, not from the best so far
    double cycle_seconds; // a cycle is at least so long
    double warmth_least;
    double warmth_last;
    double step_seconds;
} local_way;

// Warmths differ between objectives; step_seconds turn time into a number of steps, so that results
// do not depend on the machine.
static local_way local_choose_way(const pen_problem *problem) {
    const pen_problem_given *given = &problem->given;
    const uint32_t groups = problem->group_count > 0 ? problem->group_count : 1;
    const double ties = problem->output_count + problem->reads.first[problem->group_count];
    switch (given->objective) {
    case PEN_OBJECTIVE_THROUGHPUT:
        return (local_way){.warmths = {0.03, 0.3, 0.005, 0.1},
                           .is_afresh = {[1] = true},
                           .cycle_seconds = 0.15,
                           .warmth_least = 0.01,
                           .warmth_last = 0.0003,
                           .step_seconds =
                               (given->is_contiguous ? LOCAL_CLOSED_FACTOR : 1.0) *
                               (LOCAL_STEP_SECONDS + LOCAL_TIE_SECONDS * ties / groups)};
    case PEN_OBJECTIVE_LATENCY:
        return (local_way){
            .warmths = {0.03, 0.2, 0.06, 0.015},
            .is_afresh = {[0] = true, [2] = true},
            .cycle_seconds = 0.08,
            .warmth_least = 0.002,
            .warmth_last = 0.00002,
            .step_seconds = LOCAL_LATENCY_SECONDS +
                            LOCAL_LATENCY_NODE_SECONDS *
                                (given->node_count + problem->successors.first[given->node_count])};
    case PEN_OBJECTIVE_STEP_TIME:
    case PEN_OBJECTIVE_TRAFFIC:
        return (local_way){.warmths = {0.02, 0.003, 0.08, 0.01},
                           .cycle_seconds = 0.14,
                           .warmth_least = 0.002,
                           .warmth_last = 0.00002,
                           .step_seconds = pen_objective_anneal_step_seconds(problem)};
    }
    PEN_NEVER("an objective is one of the enum");
}

bool pen_local_search_counts(const pen_problem *problem) {
    return problem->given.objective == PEN_OBJECTIVE_STEP_TIME ||
           problem->given.objective == PEN_OBJECTIVE_TRAFFIC;
}

double pen_local_search_enough_seconds(const pen_problem *problem) {
    const local_way way = local_choose_way(problem);
    const double steps =
        pen_local_search_counts(problem) ? LOCAL_WEIGHED_STEPS_ENOUGH : LOCAL_STEPS_ENOUGH;
    return steps * (problem->group_count + 1.0) * way.step_seconds;
}

static uint32_t local_cycle_count(const local_way *way, double span) {
    const double count = floor(span / way->cycle_seconds);
    return count < 1.0 ? 1 : count > LOCAL_CYCLES_LIMIT ? LOCAL_CYCLES_LIMIT : (uint32_t)count;
}

bool pen_local_search_has_fresh(const pen_problem *problem) {
    return problem->given.objective == PEN_OBJECTIVE_THROUGHPUT && !problem->given.is_contiguous;
}

// One run on single groups, from devices that are filled evenly and without regard to transfers. It
// finds what cycles from a line of segments do not, and they what it does not.
static pen_status local_search_afresh(const pen_problem *problem, const uint32_t *line,
                                      const pen_local_search_options *options, pen_arena *arena,
                                      uint32_t *tried, double *out_value) {
    const local_way way = local_choose_way(problem);
    const pen_annealing_options run = {.seed = options->seed * 1000,
                                       .step_count =
                                           1 + (uint64_t)(options->seconds / way.step_seconds),
                                       .deadline = options->deadline,
                                       .is_counted = options->is_counted,
                                       .warmth_first = LOCAL_FRESH_WARMTH_FIRST,
                                       .warmth_last = LOCAL_FRESH_WARMTH_LAST,
                                       .enough = options->enough,
                                       .stop = options->stop};
    for (uint32_t g = 0; g < problem->group_count; g++)
        tried[g] = PEN_PROBLEM_ANY;
    PEN_TRY(pen_initial_repair(problem, line, arena, tried));
    return pen_load_anneal(problem, line, &run, tried, out_value);
}

// Keeps what a fresh run finds where that is better; one that cannot begin finds nothing.
static pen_status local_search_run_fresh(const pen_problem *problem, const uint32_t *line,
                                         const pen_local_search_options *options,
                                         uint32_t *device_of_group, double *out_value) {
    pen_arena *arena;
    uint32_t *tried;
    double found = INFINITY;
    *out_value = options->value;
    PEN_TRY(pen_arena_create(&arena));
    pen_status status = PEN_NEW(arena, problem->group_count, &tried);
    if (status == PEN_OK) {
        status = local_search_afresh(problem, line, options, arena, tried, &found);
    }
    if (pen_status_get_code(status) == PEN_DOES_NOT_FIT) {
        pen_status_ignore(status, "other cycles begin from what is given");
        status = PEN_OK;
    }
    if (status == PEN_OK && found < options->value) {
        *out_value = found;
        memcpy(device_of_group, tried, problem->group_count * sizeof *tried);
    }
    pen_arena_destroy(arena);
    return status;
}

// Cycles of joining and refining differ in seed, warmth and coarseness, as no single setting is
// best for all problems.
pen_status pen_local_search_run(const pen_problem *problem, const uint32_t *line,
                                const pen_local_search_options *options, uint32_t *device_of_group,
                                double *out_value) {
    static const double targets[] = {3.5, 3.5, 2.5, 3.5, 5.0}; // groups a device, coarsest
    const local_way way = local_choose_way(problem);
    const double span = options->seconds;
    const uint32_t cycle_count = local_cycle_count(&way, span);
    pen_arena *arena;
    uint32_t *tried;
    double value = options->value;
    if (options->is_fresh) {
        return local_search_run_fresh(problem, line, options, device_of_group, out_value);
    }
    PEN_TRY(pen_arena_create(&arena));
    pen_status status = PEN_NEW(arena, problem->group_count, &tried);
    for (uint32_t i = 0; status == PEN_OK && i < cycle_count; i++) {
        const double now = pen_clock_seconds();
        const uint32_t variant = i + (uint32_t)(options->seed % 20);
        const double target = targets[variant % 5] * problem->given.device_count;
        const pen_multilevel_options cycle = {
            .run = {.seed = options->seed * 1000 + i,
                    .step_count = 1 + (uint64_t)(span / cycle_count / way.step_seconds),
                    .deadline = options->is_counted
                                    ? options->deadline
                                    : now + (options->deadline - now) / (cycle_count - i),
                    .is_counted = options->is_counted,
                    .warmth_first = way.warmths[variant % 4],
                    .warmth_last = way.warmth_last,
                    .enough = options->enough,
                    .stop = options->stop},
            .warmth_least = way.warmth_least,
            .group_target = (uint32_t)target,
        };
        if (i > 0 && (now >= options->deadline || value <= options->enough)) break;
        if (options->stop != NULL && atomic_load(options->stop)) break;
        double found;
        const bool is_afresh = options->origin != NULL && way.is_afresh[variant % 4];
        memcpy(tried, is_afresh ? options->origin : device_of_group,
               problem->group_count * sizeof *tried);
        status = pen_multilevel_cycle(problem, line, &cycle, tried, &found);
        if (status != PEN_OK || found >= value) continue;
        value = found;
        memcpy(device_of_group, tried, problem->group_count * sizeof *tried);
    }
    pen_arena_destroy(arena);
    *out_value = value;
    return status;
}

pen_status pen_local_search_start(const pen_problem *problem, const pen_initial_options *options,
                                  pen_arena *arena, pen_initial_placement *out_start,
                                  double *out_bound) {
    if (pen_local_search_counts(problem)) {
        *out_bound = 0.0;
        return pen_objective_start(problem, options, arena, out_start);
    }
    PEN_TRY(pen_initial_segments(problem, options, arena, out_start, out_bound));
    if (out_start->is_found) return PEN_OK;
    for (uint32_t g = 0; g < problem->group_count; g++) {
        out_start->device_of_group[g] = PEN_PROBLEM_ANY;
    }
    PEN_TRY(pen_initial_repair(problem, out_start->line, arena, out_start->device_of_group));
    out_start->is_found = true;
    return PEN_OK;
}

#define LOCAL_ORDER_COUNT 8
#define LOCAL_START_SHARE 0.05      // nominal, of the time limit, for starts: in counted steps,
#define LOCAL_TIMED_START_SHARE 0.2 // and by the clock
#define LOCAL_COUNTED_SHARE 0.45    // likewise, for the search in counted steps

double pen_local_search_seconds(const pen_problem *problem, double time_limit_seconds) {
    return fmin(LOCAL_COUNTED_SHARE * time_limit_seconds, pen_local_search_enough_seconds(problem));
}

// Counted searches do a fixed amount of work, timed ones go on until the deadline.
static pen_status local_search_place(const pen_problem *problem,
                                     const pen_strategy_options *options, pen_arena *arena,
                                     pen_strategy_result *out_result) {
    const bool is_counted = options->is_counted || pen_local_search_counts(problem);
    const double begin = pen_clock_seconds();
    const double deadline =
        begin + (is_counted && options->cut_seconds > 0.0 ? options->cut_seconds
                                                          : options->time_limit_seconds);
    pen_initial_placement start;
    double value;
    double work = LOCAL_START_SHARE * options->time_limit_seconds;
    const pen_initial_options start_options = {
        .seed = options->seed,
        .order_count = LOCAL_ORDER_COUNT,
        .deadline =
            is_counted ? deadline : begin + LOCAL_TIMED_START_SHARE * options->time_limit_seconds,
        .work = is_counted ? &work : NULL};
    PEN_TRY(
        pen_local_search_start(problem, &start_options, arena, &start, &out_result->lower_bound));
    memcpy(out_result->device_of_group, start.device_of_group,
           problem->group_count * sizeof *start.device_of_group);
    const double now = pen_clock_seconds();
    const double seconds = options->work_share > 0.0
                               ? fmin(options->work_share * options->time_limit_seconds,
                                      pen_local_search_enough_seconds(problem))
                               : pen_local_search_seconds(problem, options->time_limit_seconds);
    const pen_local_search_options search = {.seed = options->seed,
                                             .begin = now,
                                             .deadline = deadline,
                                             .seconds = is_counted ? seconds : deadline - now,
                                             .is_counted = is_counted,
                                             .value = INFINITY};
    PEN_TRY(
        pen_local_search_run(problem, start.line, &search, out_result->device_of_group, &value));
    out_result->is_cut = !is_counted || start.is_cut || pen_clock_seconds() >= deadline;
    return PEN_OK;
}

extern const pen_strategy pen_strategy_local_search;
const pen_strategy pen_strategy_local_search = {
    .name = "local_search",
    .summary = "moves, swaps and regions, annealed on coarser and finer groups",
    .judges_all = true,
    .place = local_search_place,
};
