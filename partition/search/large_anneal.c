// Energy, with n devices and S = Σ exp(β · (load / scale - 1)):
//     n · ΔS / (β · S) + m · Σ Δload / scale,
// which is the change as a share of the load of one device that is as full as most. Loads may
// differ by about 1 / β for free: β begins so that this is as uneven as they are, and grows.

#include "partition/search/large_anneal.h"

#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "partition/objective/load_state.h"
#include "partition/search/region.h"

#define LARGE_SHARPNESS_EVEN 1.5    // β at first, over the share of the loads that is not even
#define LARGE_SHARPNESS_MOST 1000.0 // at first
#define LARGE_SHARPNESS_LAST 5000.0
#define LARGE_ROUND_STEPS 60 // for each group
#define LARGE_ROUNDS_MOST 24
#define LARGE_ROUND_GAIN 0.0005 // less gained in a round, and it ends
#define LARGE_MEAN_WEIGHT 0.1
#define LARGE_CLOSURE_LIMIT 64         // groups that move together to keep the order of devices
#define LARGE_LOOK_STEPS 16384         // between two looks at clock and warmth
#define LARGE_REFRESH_STEPS (1u << 22) // between two sums of the loads anew

typedef struct large_anneal {
    const pen_problem *problem;
    pen_annealing annealing;
    pen_region region;
    pen_load_state *state;
    double *term; // [device_count] exp(β · (load / scale - 1))
    double term_sum;
    double term_change; // of the move that was weighed
    double scale;
    double sharpness; // β
    double sharpness_first;
    uint32_t *best; // [group_count] the caller's
    double best_value;
} large_anneal;

static inline double large_term(const large_anneal *anneal, double load) {
    return exp(anneal->sharpness * (load / anneal->scale - 1.0));
}

static void large_sum(large_anneal *anneal) {
    anneal->scale = fmax(pen_load_state_worst(anneal->state), 1e-300);
    anneal->term_sum = 0.0;
    for (uint32_t d = 0; d < anneal->state->device_count; d++) {
        anneal->term[d] = large_term(anneal, anneal->state->load[d]);
        anneal->term_sum += anneal->term[d];
    }
}

// ---- choices

static void large_choose(large_anneal *anneal, uint32_t group, uint32_t other, uint32_t device) {
    pen_region *region = &anneal->region;
    if (anneal->problem->given.is_contiguous) {
        if (!pen_region_close(region, group, device, LARGE_CLOSURE_LIMIT)) pen_region_clear(region);
        return;
    }
    const uint32_t kind = pen_region_below(region, 16);
    if (kind < 11) pen_region_add(region, group, device);
    if (kind < 9) return;
    if (kind < 11) {
        pen_region_add(region, other, region->device_of_group[group]);
    } else {
        const uint32_t size = 2 + pen_region_below(region, 1u << (1 + pen_region_below(region, 5)));
        pen_region_add_stretch(region, group, device, size, 0);
    }
}

// Whether devices may run the region's groups, and have room for what comes less what goes.
static bool large_fits(const large_anneal *anneal) {
    const pen_problem *problem = anneal->problem;
    const pen_region *region = &anneal->region;
    for (uint32_t i = 0; i < region->count; i++) {
        const uint32_t device = region->goal[i];
        double bytes = anneal->state->bytes[device];
        if (!pen_problem_allows(problem, region->group[i], device)) return false;
        if (i > 0 && device == region->goal[i - 1]) continue;
        for (uint32_t j = 0; j < region->count; j++) {
            const uint32_t g = region->group[j];
            if (region->home[j] == device) bytes -= pen_problem_bytes(problem, g, device);
            if (region->goal[j] == device) bytes += pen_problem_bytes(problem, g, device);
        }
        if (bytes > pen_problem_bytes_limit(problem, device)) return false;
    }
    return true;
}

static bool large_propose(void *search) {
    large_anneal *anneal = search;
    pen_region *region = &anneal->region;
    const uint32_t group = pen_region_below(region, anneal->problem->group_count);
    const uint32_t other = pen_region_neighbour(region, group);
    const uint32_t device = region->device_of_group[other];
    if (region->device_of_group[group] == device) return false;
    pen_region_clear(region);
    large_choose(anneal, group, other, device);
    return region->count > 0 && large_fits(anneal);
}

// ---- weighing

static double large_weigh(void *search, double bearable) {
    large_anneal *anneal = search;
    pen_load_state *state = anneal->state;
    const pen_region *region = &anneal->region;
    double load_change = 0.0;
    (void)bearable;
    anneal->term_change = 0.0;
    pen_load_state_try(state, region->group, region->goal, region->count);
    for (uint32_t i = 0; i < state->changed_count; i++) {
        const uint32_t d = state->changed[i];
        const double load = pen_load_state_after(state, d);
        anneal->term_change += large_term(anneal, load) - anneal->term[d];
        load_change += load - pen_load_state_before(state, d);
    }
    return state->device_count * anneal->term_change / (anneal->sharpness * anneal->term_sum) +
           LARGE_MEAN_WEIGHT * load_change / anneal->scale;
}

static void large_keep(void *search) {
    large_anneal *anneal = search;
    pen_load_state *state = anneal->state;
    pen_load_state_keep(state, anneal->region.group, anneal->region.goal);
    anneal->term_sum += anneal->term_change;
    for (uint32_t i = 0; i < state->changed_count; i++)
        anneal->term[state->changed[i]] = large_term(anneal, state->load[state->changed[i]]);
}

static void large_refuse(void *search) {
    large_anneal *anneal = search;
    const pen_region *region = &anneal->region;
    pen_load_state_undo(anneal->state, region->group, region->home, region->count);
}

// ---- the run

static void large_note(large_anneal *anneal, double value) {
    if (value >= anneal->best_value) return;
    anneal->best_value = value;
    memcpy(anneal->best, anneal->state->device_of_group,
           anneal->problem->group_count * sizeof *anneal->best);
}

// The best is looked for here only: between two looks few steps make the largest load smaller, and
// finding it takes a look at all devices.
static bool large_look(void *search, uint64_t step) {
    large_anneal *anneal = search;
    pen_annealing *annealing = &anneal->annealing;
    const double done = (double)step / (double)annealing->options->step_count;
    if (!pen_annealing_cool(annealing, done, anneal->best_value)) return false;
    if (step % LARGE_REFRESH_STEPS == 0) pen_load_state_refresh(anneal->state);
    const double growth = log(LARGE_SHARPNESS_LAST / anneal->sharpness_first);
    anneal->sharpness = anneal->sharpness_first * exp(growth * annealing->progress);
    large_sum(anneal);
    large_note(anneal, anneal->scale);
    return true;
}

static const pen_annealing_objective large_objective = {.look_steps = LARGE_LOOK_STEPS,
                                                        .look = large_look,
                                                        .propose = large_propose,
                                                        .weigh = large_weigh,
                                                        .keep = large_keep,
                                                        .refuse = large_refuse};

// Ranks devices in the order in which the line meets them, if that is one; else in any order.
static bool large_rank(large_anneal *anneal, const uint32_t *device_of_group) {
    const pen_problem *problem = anneal->problem;
    const uint32_t device_count = problem->given.device_count;
    double *rank = anneal->region.rank;
    uint32_t next = 0;
    for (uint32_t d = 0; d < device_count; d++)
        rank[d] = -1.0;
    for (uint32_t i = 0; i < problem->group_count; i++) {
        double *place = &rank[device_of_group[anneal->region.line[i]]];
        if (*place < 0.0) *place = next++;
    }
    for (uint32_t d = 0; d < device_count; d++) {
        if (rank[d] < 0.0) rank[d] = next++;
    }
    for (uint32_t g = 0; g < problem->group_count; g++) {
        for (uint32_t e = problem->after.first[g]; e < problem->after.first[g + 1]; e++) {
            if (rank[device_of_group[problem->after.ids[e]]] < rank[device_of_group[g]]) {
                return pen_region_rank(&anneal->region);
            }
        }
    }
    return true;
}

static double large_sharpness(const pen_load_state *state) {
    double total = 0.0;
    for (uint32_t d = 0; d < state->device_count; d++)
        total += state->load[d];
    const double even = total / state->device_count / pen_load_state_worst(state);
    return fmin(LARGE_SHARPNESS_EVEN / (1.0 - even + 1e-9), LARGE_SHARPNESS_MOST);
}

// Sums kept up to date drift over many steps, so a round begins and ends with fresh ones.
static pen_status large_round(const pen_problem *problem, const uint32_t *line,
                              const pen_annealing_options *options, pen_arena *arena,
                              uint32_t *device_of_group, double *out_value) {
    large_anneal anneal = {.problem = problem, .best = device_of_group};
    PEN_TRY(pen_load_state_new(problem, device_of_group, arena, &anneal.state));
    PEN_TRY(PEN_NEW(arena, problem->given.device_count, &anneal.term));
    PEN_TRY(pen_region_init(&anneal.region, problem, line, anneal.state->device_of_group,
                            &anneal.annealing.random, arena));
    anneal.region.ties = PEN_REGION_OWNERS;
    *out_value = anneal.best_value = pen_load_state_worst(anneal.state);
    if (!(*out_value > 0.0) || problem->group_count == 0 || problem->given.device_count < 2 ||
        (problem->given.is_contiguous && !large_rank(&anneal, device_of_group))) {
        return PEN_OK;
    }
    anneal.sharpness_first = large_sharpness(anneal.state);
    pen_annealing_begin(&anneal.annealing, "large refine", options);
    pen_annealing_run(&anneal.annealing, &large_objective, &anneal);
    pen_load_state_refresh(anneal.state);
    large_note(&anneal, pen_load_state_worst(anneal.state));
    *out_value = anneal.best_value;
    return PEN_OK;
}

// Rounds of counted steps, until one gains next to nothing: so the result does not depend on the
// machine's speed.
pen_status pen_large_anneal(const pen_problem *problem, const uint32_t *line,
                            const pen_annealing_options *options, uint32_t *device_of_group,
                            double *out_value) {
    const uint64_t round_steps = 1 + (uint64_t)LARGE_ROUND_STEPS * problem->group_count;
    const uint64_t wished = 1 + options->step_count / round_steps;
    const uint64_t round_count = wished < LARGE_ROUNDS_MOST ? wished : LARGE_ROUNDS_MOST;
    pen_arena *arena;
    pen_status status = pen_arena_create(&arena);
    double before = INFINITY;
    pen_annealing_options again = *options;
    again.step_count = round_steps;
    again.is_counted = true;
    for (uint64_t round = 0; status == PEN_OK && round < round_count; round++) {
        pen_arena_reset(arena);
        again.seed = pen_random_stream("large refine round", options->seed, round);
        status = large_round(problem, line, &again, arena, device_of_group, out_value);
        if (*out_value > (1.0 - LARGE_ROUND_GAIN) * before) break;
        if (pen_clock_seconds() > options->deadline) break;
        before = *out_value;
    }
    pen_arena_destroy(arena);
    return status;
}
