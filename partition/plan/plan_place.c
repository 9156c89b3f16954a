#include "partition/plan/plan_place.h"

#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "partition/objective/step_time.h"
#include "partition/plan/memory_segments.h"
#include "partition/plan/plan.h"
#include "partition/plan/plan_memory_error.h"
#include "partition/plan/plan_value.h"
#include "partition/problem/problem_build.h"
#include "partition/strategies/gathering.h"
#include "partition/strategies/sparing_search.h"
#include "partition/strategies/strategies.h"

#define PLACE_ROUNDS 8
#define PLACE_FIRST_SHARE 0.7 // of the time limit
#define PLACE_OTHER_SHARE 0.1 //
#define PLACE_AFTER_LINES 0.5 // of the time limit, for others when contiguous ones are there
#define PLACE_CUT_SHARE 0.5   // of the time limit, that the clock leaves any search, if it is left
#define PLACE_LEAST_TIME 0.02 // of the time limit, that a search takes if there is no time left
#define PLACE_LEAST_SHARE 0.3 // for what fits by the memory model alone
#define PLACE_HELD_SHARE 0.1  // at least, which searches that found nothing leave
#define PLACE_FULL_SHARE 0.3  // for searches with as many in flight as there may be
#define PLACE_FITTED_ROUNDS 2
#define PLACE_FITTED_SHARE 0.2 // of the time limit, for each
#define PLACE_ESTIMATE_SLACK 1.000001
#define PLACE_MEMORY_SLACK 1.02 // more is taken away than was missing, so that rounds end
#define PLACE_RELAXED_ROUNDS 12
#define PLACE_SPARING 0.0075    // of a step, that a search which sends less may lose
#define PLACE_GATHERED 0.005    // of a step, that fewer devices may lose
#define PLACE_SENT_WORTH 0.1    // steps, that all of what is sent is worth: a tenth less for 1 %
#define PLACE_SPARING_SHARE 0.1 // of the time limit
#define PLACE_KEPT_LIMIT 32

// A solution that fits, to choose from.
typedef struct place_kept {
    pen_plan_placed placed;
    pen_placement *placement;
} place_kept;

// What rounds pass on.
typedef struct place_rounds {
    const pen_planner *planner;
    pen_arena *arena;
    const pen_strategy *strategy;
    uint32_t *microbatches; // [device_count], in flight
    double *bytes_limit;    // [device_count], what the problem's sums may use
    double time_limit;      // of a search
    double deadline;        // where the clock ends them all
    pen_objective objective;
    bool is_contiguous;
    const uint32_t *known;   // [node_count of the problem], to begin from; NULL
    pen_problem_given given; // of the last round
    pen_placement *placement;
    pen_plan_placed best; // solution.fits: a plan; else the one that misses least
    double best_excess;   // bytes, of one that does not fit
    pen_placement *best_placement;
    bool has_best;
    double line;   // the shortest step of lines of devices; INFINITY: none fits
    double proved; // by searches that nothing but the job restricted; 0: nothing
    bool is_cut;   // a round was
    place_kept kept[PLACE_KEPT_LIMIT];
    uint32_t kept_count;
} place_rounds;

static pen_status place_lower(place_rounds *rounds, const double *bytes_limit) {
    const pen_planner_wish wish = {.objective = rounds->objective,
                                   .is_contiguous = rounds->is_contiguous,
                                   .counts_devices = true,
                                   .bytes_limit = bytes_limit,
                                   .microbatches = rounds->microbatches};
    return pen_planner_lower(rounds->planner, &wish, rounds->arena, &rounds->given);
}

// Seconds after which the clock ends all searches.
static double place_cut(const pen_plan_request *request) {
    return request->cut_seconds > 0.0 ? request->cut_seconds
                                      : request->placement->time_limit_seconds;
}

// Seconds after which the clock ends a search: what it may do does not follow the clock.
static double place_time(const place_rounds *rounds) {
    const double limit = place_cut(rounds->planner->request);
    const bool is_fitting = rounds->has_best && rounds->best.solution.fits;
    const double held = is_fitting ? 0.0 : PLACE_HELD_SHARE * limit;
    const double left = rounds->deadline - pen_clock_seconds() - held;
    const double share = fmax(rounds->time_limit, PLACE_CUT_SHARE * limit);
    return fmax(PLACE_LEAST_TIME * limit, fmin(share, left));
}

// Whether a search leaves out placements that the job allows: what it proves holds for the others
// alone. Step times follow from memory too, of which the search knows less than the memory model:
// nothing is proved of them but where all devices have room for everything.
static bool place_is_restricted(const place_rounds *rounds, const double *bytes_limit) {
    const pen_planner *planner = rounds->planner;
    const pen_plan_request *request = planner->request;
    const bool is_step_time = rounds->objective == PEN_OBJECTIVE_STEP_TIME;
    double all = 0.0; // bytes
    if (rounds->is_contiguous != request->placement->contiguous) return true;
    for (uint32_t n = 0; n < rounds->given.node_count && is_step_time; n++) {
        const pen_problem_node *node = &rounds->given.nodes[n];
        all += node->bytes + node->workspace_bytes +
               node->bytes_in_flight * request->planned->microbatch_count;
    }
    for (uint32_t d = 0; d < request->cluster->device_count; d++) {
        if (bytes_limit[d] < planner->bytes_limit[d]) return true;
        if (rounds->given.devices[d].bytes_limit < all) return true;
        if (!is_step_time && rounds->microbatches[d] > 1) return true;
    }
    return false;
}

// Places with the limits at hand and works out what comes of it.
static pen_status place_once(place_rounds *rounds, const double *bytes_limit,
                             pen_plan_placed *out_placed) {
    const pen_plan_request *request = rounds->planner->request;
    pen_problem *problem;
    PEN_TRY(place_lower(rounds, bytes_limit));
    PEN_TRY(pen_problem_build(&rounds->given, rounds->arena, &problem));
    const pen_strategy_options options = {.seed = (uint64_t)request->placement->seed,
                                          .time_limit_seconds = rounds->time_limit,
                                          .cut_seconds = place_time(rounds),
                                          .thread_count = request->thread_count,
                                          .known = rounds->known,
                                          .is_counted = true};
    PEN_TRY(pen_place(problem, rounds->strategy, &options, rounds->arena, &rounds->placement));
    PEN_TRY(pen_plan_solve(rounds->planner, rounds->placement->device_of_node, rounds->arena,
                           &out_placed->solution));
    rounds->is_cut = rounds->is_cut || rounds->placement->is_cut;
    out_placed->strategy = rounds->strategy->name;
    out_placed->value = rounds->placement->value;
    out_placed->lower_bound = 0.0; // until all rounds are over
    if (!place_is_restricted(rounds, bytes_limit)) {
        rounds->proved = fmax(rounds->proved, rounds->placement->lower_bound);
    }
    return PEN_OK;
}

static double place_excess(const pen_planner *planner, const pen_plan_solution *solution) {
    const uint32_t worst = solution->worst_device;
    return (double)solution->device_memory[worst].total - planner->bytes_limit[worst];
}

// What plans are compared by: of a step the prediction with the memory that it really takes, which
// is not the search's.
static double place_value(const place_rounds *rounds, const pen_plan_placed *placed) {
    return rounds->objective == PEN_OBJECTIVE_STEP_TIME ? placed->solution.prediction.step_seconds
                                                        : placed->value;
}

// Whether the placement is the best so far: one that fits beats all that do not.
static void place_remember(place_rounds *rounds, const pen_plan_placed *placed) {
    const pen_plan_solution *solution = &placed->solution;
    const double excess = place_excess(rounds->planner, solution);
    const pen_plan_solution *best = &rounds->best.solution;
    bool is_better = !rounds->has_best;
    if (solution->fits && rounds->kept_count < PLACE_KEPT_LIMIT) {
        rounds->kept[rounds->kept_count++] = (place_kept){*placed, rounds->placement};
    }
    if (rounds->has_best && solution->fits != best->fits) {
        is_better = solution->fits;
    } else if (rounds->has_best && solution->fits) {
        is_better = place_value(rounds, placed) < place_value(rounds, &rounds->best);
    } else if (rounds->has_best) {
        is_better = excess < rounds->best_excess;
    }
    if (!is_better) return;
    rounds->best = *placed;
    rounds->best_excess = excess;
    rounds->best_placement = rounds->placement;
    rounds->has_best = true;
}

// What the problem thinks that each device takes, with the least in flight under the objective.
static pen_status place_estimate(place_rounds *rounds, const pen_plan_solution *solution,
                                 double *out_bytes) {
    const pen_planner *planner = rounds->planner;
    const uint32_t device_count = planner->request->cluster->device_count;
    const pen_problem_given *given = &rounds->given;
    double *workspace;
    for (uint32_t d = 0; d < device_count; d++)
        out_bytes[d] = (double)planner->request->cluster->devices[d].own_bytes;
    if (given->objective != PEN_OBJECTIVE_STEP_TIME) {
        for (uint32_t n = 0; n < planner->owners->node_count; n++) {
            const uint32_t d = solution->device_of_node[n];
            out_bytes[d] +=
                given->nodes[n].bytes + given->nodes[n].bytes_in_flight * rounds->microbatches[d];
        }
        return PEN_OK;
    }
    pen_step_time *step;
    const pen_stage_graph *stages;
    PEN_TRY(PEN_NEW(rounds->arena, device_count, &workspace));
    PEN_TRY(pen_step_time_new(planner->forming->problem, rounds->arena, &step));
    PEN_TRY(pen_step_time_stages(step, rounds->placement->device_of_node, &stages, NULL));
    for (uint32_t s = 0; s < stages->stage_count; s++) {
        const pen_stage *stage = &stages->stages[s];
        out_bytes[stage->device] += stage->fixed_bytes + stage->activation_bytes;
        workspace[stage->device] = fmax(workspace[stage->device], stage->workspace_bytes);
    }
    for (uint32_t d = 0; d < device_count; d++)
        out_bytes[d] += workspace[d];
    return PEN_OK;
}

// What the last solution found out: microbatches in flight by device, and by how much the problem's
// view falls short of what a device really takes. Returns whether that was anything new.
static pen_status place_learn(place_rounds *rounds, const pen_plan_solution *solution,
                              bool *out_is_new) {
    const uint32_t device_count = rounds->planner->request->cluster->device_count;
    const bool is_step_time = rounds->given.objective == PEN_OBJECTIVE_STEP_TIME;
    const uint32_t stage_count = solution->split.stage_count;
    double *estimate;
    uint32_t *in_flight;
    *out_is_new = false;
    PEN_TRY(PEN_NEW(rounds->arena, device_count, &estimate));
    PEN_TRY(PEN_NEW(rounds->arena, stage_count, &in_flight));
    for (uint32_t s = 0; s < stage_count; s++) {
        const uint32_t device = solution->split.device_of_stage[s];
        in_flight[s] = is_step_time ? 1 : solution->prediction.in_flight[s];
        if (in_flight[s] > rounds->microbatches[device]) {
            rounds->microbatches[device] = in_flight[s];
            *out_is_new = true;
        }
    }
    PEN_TRY(place_estimate(rounds, solution, estimate));
    for (uint32_t d = 0; d < device_count; d++) {
        const pen_device_memory memory =
            pen_memory_model_device(solution->stage_memory, &solution->split, in_flight, d);
        const double missing = ((double)memory.total - estimate[d]) * PLACE_MEMORY_SLACK;
        const double limit = fmax(0.0, rounds->planner->bytes_limit[d] - fmax(0.0, missing));
        if (memory.total == 0 || limit >= rounds->bytes_limit[d]) continue;
        rounds->bytes_limit[d] = limit;
        *out_is_new = true;
    }
    return PEN_OK;
}

// ---- when the search finds nothing

// Judges a placement of nodes, as if all devices had the memory.
static pen_status place_solve_nodes(place_rounds *rounds, const uint32_t *device_of_node,
                                    pen_plan_placed *out_placed) {
    const pen_planner *planner = rounds->planner;
    pen_problem *problem;
    PEN_TRY(place_lower(rounds, planner->no_limit));
    PEN_TRY(pen_problem_build(&rounds->given, rounds->arena, &problem));
    PEN_TRY(pen_placement_new(problem, device_of_node, rounds->arena, &rounds->placement));
    PEN_TRY(pen_plan_solve(planner, rounds->placement->device_of_node, rounds->arena,
                           &out_placed->solution));
    out_placed->strategy = rounds->strategy->name;
    out_placed->value = rounds->placement->value;
    out_placed->lower_bound = 0.0;
    return PEN_OK;
}

// Lets searches begin from the best placement, which fits, even where they reckon that it does not.
static pen_status place_begin_from_best(place_rounds *rounds) {
    const uint32_t device_count = rounds->planner->request->cluster->device_count;
    double *estimate;
    PEN_TRY(PEN_NEW(rounds->arena, device_count, &estimate));
    rounds->placement = rounds->best_placement;
    rounds->known = rounds->placement->device_of_node;
    PEN_TRY(place_estimate(rounds, &rounds->best.solution, estimate));
    for (uint32_t d = 0; d < device_count; d++) {
        rounds->bytes_limit[d] =
            fmax(rounds->planner->bytes_limit[d], PLACE_ESTIMATE_SLACK * estimate[d]);
    }
    return PEN_OK;
}

// Looks for what fits by the memory model alone. Returns whether it remembered something.
static pen_status place_by_memory(place_rounds *rounds, bool *out_is_found) {
    const pen_planner *planner = rounds->planner;
    const double limit = place_cut(planner->request);
    place_rounds lines = *rounds;
    pen_problem *problem;
    pen_plan_placed placed;
    uint32_t *device_of_group, *device_of_node;
    double fullness;
    lines.objective = PEN_OBJECTIVE_THROUGHPUT;
    lines.is_contiguous = true;
    PEN_TRY(place_lower(&lines, planner->no_limit));
    PEN_TRY(pen_problem_build(&lines.given, rounds->arena, &problem));
    PEN_TRY(PEN_NEW(rounds->arena, problem->group_count, &device_of_group));
    const double now = pen_clock_seconds();
    const double deadline = fmax(fmin(now + PLACE_LEAST_SHARE * limit, rounds->deadline),
                                 now + PLACE_HELD_SHARE * limit);
    PEN_TRY(pen_memory_segments_find(planner, problem, deadline, rounds->arena, device_of_group,
                                     &fullness));
    rounds->is_cut = rounds->is_cut || pen_clock_seconds() >= deadline;
    *out_is_found = fullness < INFINITY;
    if (!*out_is_found) return PEN_OK;
    PEN_TRY(PEN_NEW(rounds->arena, problem->given.node_count, &device_of_node));
    pen_problem_place_nodes(problem, device_of_group, device_of_node);
    PEN_TRY(place_solve_nodes(rounds, device_of_node, &placed));
    place_remember(rounds, &placed);
    return PEN_OK;
}

// Searches from the best placement, which fits.
static pen_status place_go_on(place_rounds *rounds, double share) {
    PEN_TRY(place_begin_from_best(rounds));
    rounds->time_limit = share * rounds->planner->request->placement->time_limit_seconds;
    for (uint32_t round = 0; round < PLACE_FITTED_ROUNDS; round++) {
        pen_plan_placed placed;
        bool is_new;
        const pen_status status = place_once(rounds, rounds->bytes_limit, &placed);
        if (pen_status_get_code(status) == PEN_DOES_NOT_FIT) {
            pen_status_ignore(status, "there is a placement that fits");
            return PEN_OK;
        }
        PEN_TRY(status);
        place_remember(rounds, &placed);
        if (placed.solution.fits) return PEN_OK;
        PEN_TRY(place_learn(rounds, &placed.solution, &is_new));
        if (!is_new) return PEN_OK;
    }
    return PEN_OK;
}

// ---- of steps that are alike

// Of all whose steps are alike, the best becomes the one whose longer step is outweighed by what it
// sends less than `sent_seconds`.
static void place_take_sparing(place_rounds *rounds, double shortest, double sent_seconds) {
    double least = INFINITY;
    for (uint32_t i = 0; i < rounds->kept_count; i++) {
        const place_kept *kept = &rounds->kept[i];
        const double seconds = kept->placed.solution.prediction.step_seconds;
        const double sent = pen_stage_graph_sent_seconds(&kept->placed.solution.stages);
        const double weight =
            seconds / shortest + (sent_seconds > 0 ? PLACE_SENT_WORTH * sent / sent_seconds : 0);
        if (seconds > shortest * (1.0 + PEN_PLAN_ALIKE) || weight >= least) continue;
        if (seconds > rounds->line) continue; // all can have that
        least = weight;
        rounds->best = kept->placed;
        rounds->best_placement = kept->placement;
    }
}

// Goes on from the best: to what sends less within `sparing`, or (NULL) to fewer devices.
static pen_status place_improve(place_rounds *rounds, const pen_problem_sparing *sparing,
                                pen_plan_placed *out_placed) {
    const pen_plan_request *request = rounds->planner->request;
    pen_problem *problem;
    uint32_t *device_of_node;
    PEN_TRY(place_begin_from_best(rounds));
    PEN_TRY(place_lower(rounds, rounds->bytes_limit));
    rounds->given.sparing = sparing;
    PEN_TRY(pen_problem_build(&rounds->given, rounds->arena, &problem));
    PEN_TRY(PEN_NEW(rounds->arena, rounds->given.node_count, &device_of_node));
    memcpy(device_of_node, rounds->known, rounds->given.node_count * sizeof *device_of_node);
    if (sparing == NULL) {
        PEN_TRY(pen_gathering_run(problem, PLACE_GATHERED, rounds->arena, device_of_node));
    } else {
        const pen_sparing_options options = {.seed = (uint64_t)request->placement->seed,
                                             .seconds = PLACE_SPARING_SHARE *
                                                        request->placement->time_limit_seconds,
                                             .deadline = rounds->deadline};
        PEN_TRY(pen_sparing_search(problem, &options, device_of_node));
    }
    PEN_TRY(pen_placement_new(problem, device_of_node, rounds->arena, &rounds->placement));
    PEN_TRY(pen_plan_solve(rounds->planner, device_of_node, rounds->arena, &out_placed->solution));
    out_placed->strategy = rounds->strategy->name;
    out_placed->value = out_placed->solution.prediction.step_seconds;
    rounds->is_cut = rounds->is_cut || pen_clock_seconds() >= rounds->deadline;
    return PEN_OK;
}

// A prediction cannot tell steps apart that are nearly as long, but what sends less has less that
// may come late. So of these one that sends much less is the best, and searched on from.
static pen_status place_spare(place_rounds *rounds) {
    const double shortest = place_value(rounds, &rounds->best);
    pen_problem_sparing *sparing;
    pen_plan_placed placed = {0};
    const double sent = pen_stage_graph_sent_seconds(&rounds->best.solution.stages);
    place_take_sparing(rounds, shortest, sent);
    PEN_TRY(PEN_NEW(rounds->arena, 1, &sparing));
    sparing->step_seconds = shortest * (1.0 + PLACE_SPARING);
    sparing->sent_seconds = pen_stage_graph_sent_seconds(&rounds->best.solution.stages);
    if (!(sparing->sent_seconds > 0.0) || pen_clock_seconds() >= rounds->deadline) return PEN_OK;
    PEN_TRY(place_improve(rounds, sparing, &placed));
    place_remember(rounds, &placed);
    place_take_sparing(rounds, shortest, sent);
    return PEN_OK;
}

// Uses fewer devices where the step is alike, whatever the schedule becomes.
static pen_status place_gather(place_rounds *rounds) {
    const double now = place_value(rounds, &rounds->best);
    pen_plan_placed placed = {0};
    if (pen_clock_seconds() >= rounds->deadline) return PEN_OK;
    PEN_TRY(place_improve(rounds, NULL, &placed));
    const double most = fmin(now * (1.0 + PEN_PLAN_ALIKE), fmax(now, rounds->line));
    if (!placed.solution.fits || place_value(rounds, &placed) > most) return PEN_OK;
    rounds->best = placed;
    rounds->best_placement = rounds->placement;
    return PEN_OK;
}

// Nothing that the search found fits: something may nevertheless, and be searched on from.
static pen_status place_fit(place_rounds *rounds) {
    const uint32_t device_count = rounds->planner->request->cluster->device_count;
    bool is_found;
    if (strcmp(rounds->strategy->name, "manual") == 0) return PEN_OK;
    for (uint32_t d = 0; d < device_count; d++)
        rounds->microbatches[d] = 1;
    PEN_TRY(place_by_memory(rounds, &is_found));
    if (!is_found || !rounds->best.solution.fits) return PEN_OK;
    return place_go_on(rounds, PLACE_FITTED_SHARE);
}

// ---- nothing fits

// Finds a placement for devices that all had more memory, as little more as it can. `refusal` is
// why there was none; it is returned when even that does not help.
static pen_status place_relaxed(place_rounds *rounds, pen_status refusal) {
    const uint32_t device_count = rounds->planner->request->cluster->device_count;
    double low = 1.0, high = INFINITY;
    double *limit;
    PEN_TRY(PEN_NEW(rounds->arena, device_count, &limit));
    for (uint32_t d = 0; d < device_count; d++)
        rounds->microbatches[d] = 1;
    rounds->time_limit = 0.05;
    for (uint32_t round = 0; round < PLACE_RELAXED_ROUNDS; round++) {
        const double factor = high == INFINITY ? low * 2.0 : 0.5 * (low + high);
        for (uint32_t d = 0; d < device_count; d++)
            limit[d] = rounds->planner->bytes_limit[d] * factor;
        pen_plan_placed placed;
        const pen_status status = place_once(rounds, limit, &placed);
        if (status == PEN_OK) {
            place_remember(rounds, &placed);
            high = factor;
        } else if (pen_status_get_code(status) == PEN_DOES_NOT_FIT) {
            pen_status_ignore(status, "the next round gives more memory");
            low = factor;
        } else {
            return pen_status_join(refusal, status);
        }
        if (rounds->has_best && pen_clock_seconds() > rounds->deadline) break;
    }
    if (!rounds->has_best) return refusal;
    pen_status_ignore(refusal, "told with more detail");
    return PEN_OK;
}

static pen_status place_refuse(place_rounds *rounds, pen_status refusal) {
    if (!rounds->has_best) PEN_TRY(place_relaxed(rounds, refusal));
    if (rounds->best.solution.fits) return PEN_OK;
    return pen_status_add_context(
        pen_plan_error_memory(rounds->planner, &rounds->best.solution, rounds->arena),
        "that is the least memory of all placements tried; more devices, more memory, smaller "
        "microbatches, or a large layer in slices (train.shard) would help");
}

// Limits and microbatches in flight as they are before anything is learned: `microbatches`, but
// not more than there are.
static void place_reset(place_rounds *rounds, uint32_t microbatches) {
    const pen_plan_request *request = rounds->planner->request;
    const uint32_t most = request->planned->microbatch_count;
    for (uint32_t d = 0; d < request->cluster->device_count; d++) {
        rounds->microbatches[d] = microbatches < most ? microbatches : most;
        rounds->bytes_limit[d] = rounds->planner->bytes_limit[d];
    }
}

static pen_status place_init(place_rounds *rounds, const pen_planner *planner, pen_arena *arena) {
    const pen_plan_request *request = planner->request;
    const uint32_t device_count = request->cluster->device_count;
    *rounds = (place_rounds){.planner = planner,
                             .arena = arena,
                             .deadline = pen_clock_seconds() + place_cut(request),
                             .line = INFINITY,
                             .objective = request->placement->objective,
                             .is_contiguous = request->placement->contiguous};
    PEN_TRY(pen_strategy_find(request->placement->strategy, arena, &rounds->strategy));
    PEN_TRY(PEN_NEW(arena, device_count, &rounds->microbatches));
    PEN_TRY(PEN_NEW(arena, device_count, &rounds->bytes_limit));
    place_reset(rounds, 1);
    return PEN_OK;
}

// Searches, and searches again with what was learned of memory. *out_refusal is why no more was
// found, or PEN_OK. It takes a share of the time limit.
static pen_status place_search(place_rounds *rounds, double share, pen_status *out_refusal) {
    const double time_limit = share * rounds->planner->request->placement->time_limit_seconds;
    for (uint32_t round = 0; round < PLACE_ROUNDS; round++) {
        pen_plan_placed placed;
        bool is_new;
        rounds->time_limit = time_limit * (round == 0 ? PLACE_FIRST_SHARE : PLACE_OTHER_SHARE);
        const pen_status status = place_once(rounds, rounds->bytes_limit, &placed);
        if (pen_status_get_code(status) == PEN_DOES_NOT_FIT) {
            *out_refusal = status;
            return PEN_OK;
        }
        PEN_TRY(status);
        place_remember(rounds, &placed);
        if (placed.solution.fits) return PEN_OK;
        if (pen_clock_seconds() > rounds->deadline) {
            rounds->is_cut = true;
            return PEN_OK;
        }
        PEN_TRY(place_learn(rounds, &placed.solution, &is_new));
        if (!is_new) return PEN_OK; // the next round would be the same
    }
    return PEN_OK;
}

// Where memory is short and the schedule takes more than one microbatch in flight, reckoning with
// as many as there may be from the start can lead elsewhere.
static pen_status place_search_full(place_rounds *rounds) {
    const uint32_t device_count = rounds->planner->request->cluster->device_count;
    pen_status refusal = PEN_OK;
    if (!rounds->has_best) return PEN_OK; // not even with one
    bool is_learned = !rounds->best.solution.fits;
    for (uint32_t d = 0; d < device_count && !is_learned; d++) {
        is_learned =
            rounds->microbatches[d] > 1 || rounds->bytes_limit[d] < rounds->planner->bytes_limit[d];
    }
    if (!is_learned || rounds->objective == PEN_OBJECTIVE_STEP_TIME) return PEN_OK;
    place_reset(rounds, device_count);
    PEN_TRY(place_search(rounds, PLACE_FULL_SHARE, &refusal));
    pen_status_ignore(refusal, "what was found before, or why nothing was, says more");
    return PEN_OK;
}

// The line that was found before, judged as any other.
static pen_status place_take_line(place_rounds *rounds) {
    pen_plan_placed placed;
    PEN_TRY(place_solve_nodes(rounds, rounds->planner->line, &placed));
    place_remember(rounds, &placed);
    return PEN_OK;
}

// Contiguous placements are found sooner: where others are asked for, the search begins from one.
// They get all the time that they would get if they were asked for, of which counted steps take
// less than half.
static pen_status place_lines_first(place_rounds *rounds) {
    pen_status refusal = PEN_OK;
    if (rounds->planner->line != NULL) {
        PEN_TRY(place_take_line(rounds));
    } else {
        rounds->is_contiguous = true;
        PEN_TRY(place_search(rounds, 1.0, &refusal));
        pen_status_ignore(refusal, "others may fit");
        rounds->is_contiguous = false;
        place_reset(rounds, 1);
    }
    if (rounds->has_best && rounds->best.solution.fits) {
        rounds->line = place_value(rounds, &rounds->best);
    }
    return PEN_OK;
}

// Placement and memory depend on each other: how many microbatches are in flight follows from the
// schedule, and that from the placement. So there are rounds: place, work out the memory, place
// again within it. Lines of devices come first with strategies that search: they are cheap to
// judge, send little, and are among what is compared at the end.
pen_status pen_plan_place(const pen_planner *planner, pen_arena *arena,
                          pen_plan_placed *out_placed) {
    place_rounds rounds;
    pen_status refusal = PEN_OK;
    PEN_TRY(place_init(&rounds, planner, arena));
    const bool is_judged =
        rounds.objective == PEN_OBJECTIVE_STEP_TIME || rounds.objective == PEN_OBJECTIVE_TRAFFIC;
    const bool has_lines = is_judged && !rounds.is_contiguous &&
                           planner->request->cluster->device_count > 1 &&
                           rounds.strategy->judges_all;
    if (has_lines) PEN_TRY(place_lines_first(&rounds));
    PEN_TRY(place_search(&rounds, has_lines ? PLACE_AFTER_LINES : 1.0, &refusal));
    const pen_status again = place_search_full(&rounds);
    if (again != PEN_OK) return pen_status_join(refusal, again);
    if (has_lines && rounds.has_best && rounds.best.solution.fits) {
        PEN_TRY(place_go_on(&rounds, PLACE_OTHER_SHARE));
    }
    if (!rounds.has_best || !rounds.best.solution.fits) {
        const pen_status status = place_fit(&rounds);
        if (status != PEN_OK) return pen_status_join(refusal, status);
    }
    if (!rounds.has_best) {
        PEN_TRY(place_refuse(&rounds, refusal));
    } else {
        pen_status_ignore(refusal, "what was found says more");
        if (has_lines && planner->request->is_final &&
            rounds.objective == PEN_OBJECTIVE_STEP_TIME && rounds.best.solution.fits) {
            PEN_TRY(place_spare(&rounds));
        }
        if (has_lines && rounds.objective == PEN_OBJECTIVE_STEP_TIME && rounds.best.solution.fits) {
            PEN_TRY(place_gather(&rounds));
        }
        if (!rounds.best.solution.fits) PEN_TRY(place_refuse(&rounds, PEN_OK));
    }
    *out_placed = rounds.best;
    out_placed->is_cut = rounds.is_cut;
    return pen_plan_bound(planner, place_value(&rounds, &rounds.best), rounds.proved, arena,
                          &out_placed->lower_bound);
}
