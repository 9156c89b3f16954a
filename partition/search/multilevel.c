#include "partition/search/multilevel.h"

#include <math.h>

#include "base/clock.h"
#include "partition/problem/problem_build.h"
#include "partition/search/coarsen.h"
#include "partition/search/latency_anneal.h"
#include "partition/search/load_anneal.h"
#include "partition/search/objective_anneal.h"

#define MULTILEVEL_LEVEL_LIMIT 24
#define MULTILEVEL_COOLING 0.05      // last warmth of a coarse level, of its first
#define MULTILEVEL_SHRINK_LEAST 0.02 // of the groups must join, or coarsening ends

typedef struct multilevel_level {
    const pen_problem *problem;
    const uint32_t *line;
    uint32_t *device_of_group;
} multilevel_level;

typedef struct multilevel_cycle {
    const pen_multilevel_options *options;
    pen_arena *arena;
    multilevel_level levels[MULTILEVEL_LEVEL_LIMIT];
    uint32_t level_count;
} multilevel_cycle;

// The next coarser level's line, in the order in which the finer line meets its groups.
static pen_status multilevel_inherit(const multilevel_level *fine, const pen_problem *problem,
                                     pen_arena *arena, multilevel_level *out_level) {
    const pen_problem *finer = fine->problem;
    uint32_t *line;
    bool *is_met;
    uint32_t filled = 0;
    PEN_TRY(PEN_NEW(arena, problem->group_count, &line));
    PEN_TRY(PEN_NEW(arena, problem->group_count, &is_met));
    PEN_TRY(PEN_NEW(arena, problem->group_count, &out_level->device_of_group));
    for (uint32_t i = 0; i < finer->group_count; i++) {
        const uint32_t g = fine->line[i];
        const uint32_t coarse = problem->group_of_node[finer->members.ids[finer->members.first[g]]];
        out_level->device_of_group[coarse] = fine->device_of_group[g];
        if (is_met[coarse]) continue;
        is_met[coarse] = true;
        line[filled++] = coarse;
    }
    PEN_ASSERT(filled == problem->group_count);
    out_level->line = line;
    out_level->problem = problem;
    return PEN_OK;
}

static double multilevel_compute_limit(const pen_problem *problem) {
    double total = 0.0;
    for (uint32_t g = 0; g < problem->group_count; g++) {
        double least = PEN_PROBLEM_COST_LIMIT;
        for (uint32_t k = 0; k < problem->given.kind_count; k++) {
            least = fmin(least, problem->group_compute[(size_t)k * problem->group_count + g]);
        }
        total += least;
    }
    return total / (2.0 * problem->given.device_count);
}

// Ends when few groups are left or joining gains little.
static pen_status multilevel_coarsen(multilevel_cycle *cycle) {
    const double limit = multilevel_compute_limit(cycle->levels[0].problem);
    while (cycle->level_count < MULTILEVEL_LEVEL_LIMIT) {
        const multilevel_level *fine = &cycle->levels[cycle->level_count - 1];
        const uint32_t count = fine->problem->group_count;
        uint32_t *class, joined;
        pen_problem *problem;
        if (count <= cycle->options->group_target) return PEN_OK;
        PEN_TRY(PEN_NEW(cycle->arena, count, &class));
        const pen_coarsen_options pairs = {cycle->options->run.seed, fine->device_of_group, limit};
        PEN_TRY(pen_coarsen_pairs(fine->problem, &pairs, cycle->arena, class, &joined));
        if (joined <= MULTILEVEL_SHRINK_LEAST * count) return PEN_OK;
        PEN_TRY(pen_problem_merge(fine->problem, class, fine->problem->given.is_contiguous,
                                  cycle->arena, &problem));
        PEN_TRY(
            multilevel_inherit(fine, problem, cycle->arena, &cycle->levels[cycle->level_count]));
        cycle->level_count += 1;
    }
    return PEN_OK;
}

static pen_status multilevel_anneal(const multilevel_level *level, const pen_annealing_options *run,
                                    double *out_value) {
    switch (level->problem->given.objective) {
    case PEN_OBJECTIVE_THROUGHPUT:
        return pen_load_anneal(level->problem, level->line, run, level->device_of_group, out_value);
    case PEN_OBJECTIVE_LATENCY:
        return pen_latency_anneal(level->problem, level->line, run, level->device_of_group,
                                  out_value);
    case PEN_OBJECTIVE_STEP_TIME:
    case PEN_OBJECTIVE_TRAFFIC:
        return pen_objective_anneal(level->problem, level->line, run, level->device_of_group,
                                    out_value);
    }
    PEN_NEVER("an objective is one of the enum");
}

// From the coarsest level to the finest, each cooler than the one before: large moves first,
// details last.
static pen_status multilevel_refine(multilevel_cycle *cycle, double *out_value) {
    const pen_annealing_options *options = &cycle->options->run;
    for (uint32_t i = cycle->level_count; i-- > 0;) {
        multilevel_level *level = &cycle->levels[i];
        // a level gets its share of what is left: the finest as much as two others
        const double share = i == 0 ? 1.0 : 1.0 / (i + 2.0);
        const double now = options->deadline < INFINITY ? pen_clock_seconds() : 0.0;
        const double cooled = options->warmth_first * pow(0.5, cycle->level_count - 1 - i);
        pen_annealing_options run = *options;
        run.seed += i;
        run.step_count = options->step_count / (cycle->level_count + 1) * (i == 0 ? 2 : 1);
        if (options->deadline < INFINITY && !options->is_counted) {
            run.deadline = now + (options->deadline - now) * share;
        }
        run.warmth_first = fmax(cooled, cycle->options->warmth_least);
        if (i > 0) run.warmth_last = run.warmth_first * MULTILEVEL_COOLING;
        PEN_TRY(multilevel_anneal(level, &run, out_value));
        if (i == 0) return PEN_OK;
        multilevel_level *fine = &cycle->levels[i - 1];
        for (uint32_t g = 0; g < fine->problem->group_count; g++) {
            const uint32_t node = fine->problem->members.ids[fine->problem->members.first[g]];
            fine->device_of_group[g] = level->device_of_group[level->problem->group_of_node[node]];
        }
    }
    return PEN_OK;
}

pen_status pen_multilevel_cycle(const pen_problem *problem, const uint32_t *line,
                                const pen_multilevel_options *options, uint32_t *device_of_group,
                                double *out_value) {
    multilevel_cycle cycle = {.options = options, .level_count = 1};
    cycle.levels[0] = (multilevel_level){problem, line, device_of_group};
    pen_status status = pen_arena_create(&cycle.arena);
    if (status != PEN_OK) return status;
    status = multilevel_coarsen(&cycle);
    if (status == PEN_OK) status = multilevel_refine(&cycle, out_value);
    pen_arena_destroy(cycle.arena);
    return status;
}
