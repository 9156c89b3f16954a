#include "partition/search/objective_anneal.h"

#include <math.h>
#include <string.h>

#include "partition/objective/reader_counts.h"
#include "partition/objective/step_time.h"
#include "partition/search/candidate.h"
#include "partition/search/weighed.h"

#define OBJECTIVE_PASSED_LIMIT 512 // groups of other devices between those of a stretch
#define OBJECTIVE_LOOK_TRAFFIC 256 // steps between two looks at the clock
#define OBJECTIVE_LOOK_STEP 4
#define OBJECTIVE_REFRESH_STEPS 65536 // between two sums of traffic anew
#define OBJECTIVE_MISFIT 1e6          // times the crowding: value of what no schedule fits

// Nominal times, a third above those of a common machine. A step takes the first two; weighing a
// step time takes those of stages besides, weighing traffic that of ties.
#define OBJECTIVE_STEP_SECONDS 120e-9
#define OBJECTIVE_GROUP_SECONDS 100e-9 // for each group moved
#define OBJECTIVE_TIE_SECONDS 15e-9    // for each output that a group makes or reads, on average
#define OBJECTIVE_STAGES_SECONDS 3e-6
#define OBJECTIVE_PART_SECONDS 12e-9 // for each node and edge
#define OBJECTIVE_TASK_SECONDS 80e-9 // for each stage, microbatch and kind of task
#define OBJECTIVE_TASK_KINDS 3

typedef struct objective_anneal {
    pen_candidate candidate;
    pen_step_time *step;       // or NULL
    pen_weighed weighed;       // placements, for step time
    const pen_problem *loads;  // the problem as throughput, for step time
    double *work;              // [device_count] compute of a step, likewise: no step takes less
    pen_reader_counts readers; // for traffic
    double traffic;
    uint32_t ranked[2];  // devices whose ranks this step changed,
    double rank_kept[2]; // and what they were
    uint32_t ranked_count;
    double value_new;        // of the change that is weighed
    bool fits_new;           // a schedule fits it
    uint32_t stage_count;    // that it has
    double seconds;          // nominal time of all steps so far
    double seconds_planned;  // and of all that there are to be
    double seconds_weighing; // of one that weighs, but for its stages
    pen_status status;
} objective_anneal;

// ---- the placement at hand

// What moving `group` does to the traffic: its own outputs, then what it reads.
static void objective_move_traffic(objective_anneal *anneal, uint32_t group, uint32_t from,
                                   uint32_t to) {
    const pen_problem *problem = anneal->candidate.problem;
    for (uint32_t o = problem->own_first[group]; o < problem->own_first[group + 1]; o++) {
        const double cost = problem->output_cost[o];
        if (pen_reader_counts_get(&anneal->readers, o, from) > 0) anneal->traffic += cost;
        if (pen_reader_counts_get(&anneal->readers, o, to) > 0) anneal->traffic -= cost;
    }
    for (uint32_t r = problem->reads.first[group]; r < problem->reads.first[group + 1]; r++) {
        const uint32_t o = problem->reads.ids[r];
        const uint32_t home = anneal->candidate.device_of_group[problem->output_owner[o]];
        const double cost = problem->output_cost[o];
        const bool ends = pen_reader_counts_remove(&anneal->readers, o, from) == 0;
        const bool begins = pen_reader_counts_add(&anneal->readers, o, to) == 0;
        if (ends && from != home) anneal->traffic -= cost;
        if (begins && to != home) anneal->traffic += cost;
    }
}

// What `group` computes on `device` in a step.
static double objective_work(const objective_anneal *anneal, uint32_t group, uint32_t device) {
    return pen_problem_compute(anneal->loads, group, device) *
           anneal->candidate.problem->given.microbatch_count;
}

static void objective_put(objective_anneal *anneal, uint32_t group, uint32_t device) {
    const uint32_t from = anneal->candidate.device_of_group[group];
    if (anneal->step == NULL) {
        objective_move_traffic(anneal, group, from, device);
    } else {
        anneal->work[from] -= objective_work(anneal, group, from);
        anneal->work[device] += objective_work(anneal, group, device);
    }
    pen_candidate_put(&anneal->candidate, group, device);
}

// How full of stages the fullest device is, when no schedule fits: what to make smaller first.
static double objective_crowding(const objective_anneal *anneal, const pen_stage_graph *graph) {
    double most = 0.0;
    const uint32_t used_count = anneal->candidate.used_count;
    const uint32_t in_flight =
        graph->microbatch_count < used_count ? graph->microbatch_count : used_count;
    for (uint32_t s = 0; s < graph->stage_count; s++) {
        const pen_stage *stage = &graph->stages[s];
        const double bytes =
            stage->fixed_bytes + stage->workspace_bytes + stage->activation_bytes * in_flight;
        most = fmax(most, bytes / fmax(graph->bytes_limit[stage->device], 1.0));
    }
    return most;
}

// Finds out what the step of the placement at hand takes, unless that is above `most` for certain.
static pen_status objective_simulate(objective_anneal *anneal, double most,
                                     pen_weighed_value *known) {
    const pen_stage_graph *graph;
    const pen_step_prediction *prediction;
    PEN_TRY(pen_step_time_stages(anneal->step, anneal->candidate.device_of_node, &graph, NULL));
    known->stage_count = graph->stage_count;
    known->least = pen_step_time_least(anneal->step);
    known->is_formed = true;
    if (known->least > most) return PEN_OK;
    const pen_status status = pen_step_time_simulate(anneal->step, &prediction);
    if (status != PEN_OK && pen_status_get_code(status) != PEN_DOES_NOT_FIT) return status;
    known->fits = status == PEN_OK;
    known->value = known->fits ? pen_step_time_value(anneal->step)
                               : OBJECTIVE_MISFIT * (1.0 + objective_crowding(anneal, graph));
    known->is_known = true;
    pen_status_ignore(status, "the search goes on from what does not fit");
    return PEN_OK;
}

// The value of the placement at hand, and whether it fits. INFINITY where it is above `most` for
// certain.
static double objective_evaluate(objective_anneal *anneal, double most, bool *out_fits) {
    pen_weighed_value *known;
    *out_fits = true;
    if (anneal->step == NULL) return anneal->traffic;
    *out_fits = false;
    anneal->status = pen_weighed_find(&anneal->weighed, anneal->candidate.device_of_group, &known);
    if (anneal->status == PEN_OK && !known->is_known &&
        !(known->is_formed && known->least > most)) {
        anneal->status = objective_simulate(anneal, most, known);
    }
    if (anneal->status != PEN_OK) return INFINITY;
    anneal->stage_count = known->stage_count;
    if (known->least > most) return INFINITY;
    *out_fits = known->fits;
    if (!known->fits) anneal->seconds += anneal->seconds_weighing; // to see how crowded it is
    return known->value;
}

// Counts the readers of the placement at hand anew, and adds up the traffic.
static void objective_sum_traffic(objective_anneal *anneal) {
    const pen_problem *problem = anneal->candidate.problem;
    const uint32_t *device_of_group = anneal->candidate.device_of_group;
    pen_reader_counts_clear(&anneal->readers);
    anneal->traffic = 0.0;
    for (uint32_t o = 0; o < problem->output_count; o++) {
        const uint32_t home = device_of_group[problem->output_owner[o]];
        for (uint32_t r = problem->readers.first[o]; r < problem->readers.first[o + 1]; r++) {
            const uint32_t d = device_of_group[problem->readers.ids[r]];
            const bool is_first = pen_reader_counts_add(&anneal->readers, o, d) == 0;
            if (is_first && d != home) anneal->traffic += problem->output_cost[o];
        }
    }
}

static void objective_set_rank(objective_anneal *anneal, uint32_t device, double rank) {
    anneal->ranked[anneal->ranked_count] = device;
    anneal->rank_kept[anneal->ranked_count++] = anneal->candidate.region.rank[device];
    anneal->candidate.region.rank[device] = rank;
}

// Gives an empty device a place beside that of `beside`.
static void objective_rank_beside(objective_anneal *anneal, uint32_t device, uint32_t beside) {
    const pen_region *region = &anneal->candidate.region;
    const double here = region->rank[beside];
    const bool is_behind = pen_random_next(region->random) & 1;
    double next = is_behind ? here + 2.0 : here - 2.0;
    for (uint32_t d = 0; d < region->problem->given.device_count; d++) {
        const double rank = region->rank[d];
        if (anneal->candidate.group_total[d] == 0) continue;
        if (is_behind ? rank > here && rank < next : rank < here && rank > next) next = rank;
    }
    objective_set_rank(anneal, device, (here + next) / 2.0);
}

// Whether the placement at hand uses neither too few devices nor too many.
static bool objective_counts_right(const objective_anneal *anneal) {
    const pen_problem_given *given = &anneal->candidate.problem->given;
    const uint32_t used_count = anneal->candidate.used_count;
    return used_count >= given->devices_used_minimum &&
           (given->devices_used_maximum == 0 || used_count <= given->devices_used_maximum);
}

// ---- choices

// Exchanges all groups of two devices, and their places in the order but where one was just given
// a place. Does nothing when there are too many groups.
static void objective_exchange(objective_anneal *anneal, uint32_t device, uint32_t other) {
    pen_region *region = &anneal->candidate.region;
    const uint32_t *group_total = anneal->candidate.group_total;
    if (group_total[device] + group_total[other] > PEN_REGION_LIMIT) return;
    for (uint32_t g = 0; g < region->problem->group_count; g++) {
        const uint32_t d = region->device_of_group[g];
        if (d == device) pen_region_add(region, g, other);
        if (d == other) pen_region_add(region, g, device);
    }
    if (region->problem->given.is_contiguous && anneal->ranked_count == 0) {
        const double rank = region->rank[device];
        objective_set_rank(anneal, device, region->rank[other]);
        objective_set_rank(anneal, other, rank);
    }
}

// Of 16 moves, one exchanges two groups and one two devices, three each are of one group and of a
// cluster, one of all that a device has along the line, and seven of stretches.
static void objective_choose(objective_anneal *anneal, uint32_t group, uint32_t device) {
    pen_region *region = &anneal->candidate.region;
    const uint32_t home = region->device_of_group[group];
    const uint32_t size = 2 + pen_region_below(region, 1u << (1 + pen_region_below(region, 7)));
    const uint32_t passed_limit = region->problem->given.is_contiguous ? OBJECTIVE_PASSED_LIMIT : 0;
    const uint32_t kind = pen_region_below(region, 16);
    if (kind == 0) {
        const uint32_t other = pen_region_below(region, region->problem->group_count);
        const uint32_t there = region->device_of_group[other];
        if (there == home) return;
        pen_region_add(region, group, there);
        pen_region_add(region, other, home);
    } else if (kind == 1) {
        objective_exchange(anneal, home, device);
    } else if (kind == 2) {
        pen_region_add_stretch(region, group, device, PEN_REGION_LIMIT, passed_limit);
    } else if (kind < 6) {
        pen_region_add(region, group, device);
    } else if (kind < 9) {
        pen_region_add_cluster(region, group, device, size < PEN_REGION_LIMIT ? size : 1);
    } else {
        pen_region_add_stretch(region, group, device, size, passed_limit);
    }
}

static void objective_restore_ranks(objective_anneal *anneal) {
    for (uint32_t i = anneal->ranked_count; i-- > 0;)
        anneal->candidate.region.rank[anneal->ranked[i]] = anneal->rank_kept[i];
}

static bool objective_propose(void *search) {
    objective_anneal *anneal = search;
    pen_region *region = &anneal->candidate.region;
    const uint32_t group = pen_region_below(region, region->problem->group_count);
    const uint32_t home = region->device_of_group[group];
    const uint32_t device = pen_region_device(region, group);
    pen_region_clear(region);
    anneal->ranked_count = 0;
    if (device != home) {
        if (region->problem->given.is_contiguous && anneal->candidate.group_total[device] == 0) {
            objective_rank_beside(anneal, device, home);
        }
        objective_choose(anneal, group, device);
    }
    anneal->seconds += OBJECTIVE_STEP_SECONDS + OBJECTIVE_GROUP_SECONDS * region->count;
    if (region->count == 0) objective_restore_ranks(anneal);
    return region->count > 0;
}

// ---- the run

// Whether the devices of the region have more to compute than `limit`.
static bool objective_is_overworked(const objective_anneal *anneal, double limit) {
    const pen_region *region = &anneal->candidate.region;
    for (uint32_t i = 0; anneal->step != NULL && i < region->count; i++) {
        if (anneal->work[region->goal[i]] > limit) return true;
    }
    return false;
}

// Takes note of what weighing the placement at hand cost. A search for what sends less seldom
// simulates; any other is charged alike whether it did or not.
static void objective_charge(objective_anneal *anneal) {
    const bool is_sparing = anneal->candidate.problem->given.sparing != NULL;
    anneal->seconds += anneal->seconds_weighing;
    if (anneal->step == NULL || (is_sparing && !(anneal->value_new < INFINITY))) return;
    anneal->seconds += OBJECTIVE_TASK_SECONDS * OBJECTIVE_TASK_KINDS *
                       anneal->candidate.problem->given.microbatch_count * anneal->stage_count;
}

static double objective_weigh(void *search, double bearable) {
    objective_anneal *anneal = search;
    pen_candidate *candidate = &anneal->candidate;
    const pen_region *region = &candidate->region;
    const double scale =
        candidate->best_value < INFINITY ? candidate->best_value : candidate->value;
    for (uint32_t i = 0; i < region->count; i++)
        objective_put(anneal, region->group[i], region->goal[i]);
    const double most = candidate->value + bearable * scale;
    if (objective_is_overworked(anneal, most) || !objective_counts_right(anneal) ||
        !pen_candidate_is_right(candidate)) {
        return INFINITY;
    }
    anneal->value_new = objective_evaluate(anneal, most, &anneal->fits_new);
    objective_charge(anneal);
    if (anneal->status != PEN_OK) return INFINITY;
    return (anneal->value_new - candidate->value) / scale;
}

static void objective_keep(void *search) {
    objective_anneal *anneal = search;
    anneal->candidate.value = anneal->value_new;
    if (anneal->fits_new) pen_candidate_note(&anneal->candidate, anneal->value_new);
}

static void objective_refuse(void *search) {
    objective_anneal *anneal = search;
    const pen_region *region = &anneal->candidate.region;
    for (uint32_t i = region->count; i-- > 0;)
        objective_put(anneal, region->group[i], region->home[i]);
    objective_restore_ranks(anneal);
}

static double objective_weighing_seconds(const pen_problem *problem) {
    const pen_problem_given *given = &problem->given;
    const uint32_t groups = problem->group_count > 0 ? problem->group_count : 1;
    const double ties = problem->output_count + problem->reads.first[problem->group_count];
    if (given->objective == PEN_OBJECTIVE_TRAFFIC) return OBJECTIVE_TIE_SECONDS * ties / groups;
    return OBJECTIVE_STAGES_SECONDS +
           OBJECTIVE_PART_SECONDS *
               ((double)given->node_count + problem->successors.first[given->node_count]);
}

// The deadline ends the run and does not hurry it, whatever the options say.
static bool objective_look(void *search, uint64_t step) {
    objective_anneal *anneal = search;
    pen_candidate *candidate = &anneal->candidate;
    if (anneal->status != PEN_OK) return false;
    if (anneal->step == NULL && step > 0 && step % OBJECTIVE_REFRESH_STEPS == 0) {
        objective_sum_traffic(anneal); // rounding has piled up
        candidate->value = anneal->traffic;
    }
    return pen_annealing_cool(&candidate->annealing, anneal->seconds / anneal->seconds_planned,
                              candidate->best_value);
}

static const pen_annealing_objective objective_step_time = {.look_steps = OBJECTIVE_LOOK_STEP,
                                                            .look = objective_look,
                                                            .propose = objective_propose,
                                                            .weigh = objective_weigh,
                                                            .keep = objective_keep,
                                                            .refuse = objective_refuse};
static const pen_annealing_objective objective_traffic = {.look_steps = OBJECTIVE_LOOK_TRAFFIC,
                                                          .look = objective_look,
                                                          .propose = objective_propose,
                                                          .weigh = objective_weigh,
                                                          .keep = objective_keep,
                                                          .refuse = objective_refuse};

// Step time is judged in two stages, a cheap sum of work before the whole evaluation; traffic has
// sums that moves keep up to date.
static pen_status objective_begin(objective_anneal *anneal, const pen_problem *problem,
                                  const uint32_t *line, uint32_t *device_of_group,
                                  pen_arena *arena) {
    pen_candidate *candidate = &anneal->candidate;
    bool fits;
    PEN_TRY(pen_candidate_init(candidate, problem, line, device_of_group, arena));
    if (problem->given.objective == PEN_OBJECTIVE_STEP_TIME) {
        PEN_TRY(pen_step_time_new(problem, arena, &anneal->step));
        PEN_TRY(pen_problem_as_throughput(problem, arena, &anneal->loads));
        PEN_TRY(PEN_NEW(arena, problem->given.device_count, &anneal->work));
        PEN_TRY(pen_weighed_init(&anneal->weighed, problem->group_count,
                                 candidate->annealing.options->step_count, arena));
        for (uint32_t g = 0; g < problem->group_count; g++) {
            const uint32_t d = device_of_group[g];
            anneal->work[d] += objective_work(anneal, g, d);
        }
    } else {
        PEN_TRY(pen_reader_counts_init(&anneal->readers, problem, PEN_READER_COUNTS_TABLE_LIMIT,
                                       arena));
        objective_sum_traffic(anneal);
    }
    anneal->seconds_weighing = objective_weighing_seconds(problem);
    candidate->value = objective_evaluate(anneal, INFINITY, &fits);
    if (fits) pen_candidate_note(candidate, candidate->value);
    return anneal->status;
}

static pen_status objective_run(objective_anneal *anneal, const pen_problem *problem,
                                const uint32_t *line, uint32_t *device_of_group, pen_arena *arena) {
    pen_candidate *candidate = &anneal->candidate;
    PEN_TRY(objective_begin(anneal, problem, line, device_of_group, arena));
    if (problem->group_count == 0 || problem->given.device_count < 2) return PEN_OK;
    if (anneal->step != NULL) {
        pen_annealing_run(&candidate->annealing, &objective_step_time, anneal);
    } else {
        pen_annealing_run(&candidate->annealing, &objective_traffic, anneal);
    }
    return anneal->status;
}

// Steps are counted by what they cost to judge, not by the clock.
pen_status pen_objective_anneal(const pen_problem *problem, const uint32_t *line,
                                const pen_annealing_options *options, uint32_t *device_of_group,
                                double *out_value) {
    objective_anneal anneal = {.seconds_planned = (double)options->step_count *
                                                  pen_objective_anneal_step_seconds(problem)};
    pen_candidate *candidate = &anneal.candidate;
    pen_annealing_options counted = *options;
    pen_arena *arena;
    counted.is_counted = true;
    PEN_TRY(pen_arena_create(&arena));
    pen_annealing_begin(&candidate->annealing, "judged search", &counted);
    const pen_status status = objective_run(&anneal, problem, line, device_of_group, arena);
    if (candidate->best != NULL) {
        memcpy(device_of_group, candidate->best, problem->group_count * sizeof *device_of_group);
    }
    if (status == PEN_OK && anneal.step == NULL) { // the traffic kept up to date has drifted
        objective_sum_traffic(&anneal);
        candidate->best_value = anneal.traffic;
    }
    *out_value = candidate->best_value;
    pen_arena_destroy(arena);
    return status;
}

double pen_objective_anneal_step_seconds(const pen_problem *problem) {
    const pen_problem_given *given = &problem->given;
    const double seconds = objective_weighing_seconds(problem) + OBJECTIVE_STEP_SECONDS;
    if (given->objective == PEN_OBJECTIVE_TRAFFIC) return seconds + OBJECTIVE_GROUP_SECONDS;
    const uint32_t groups = problem->group_count;
    const double stages = given->device_count < groups ? given->device_count : groups;
    return seconds +
           OBJECTIVE_TASK_SECONDS * OBJECTIVE_TASK_KINDS * given->microbatch_count * stages;
}
