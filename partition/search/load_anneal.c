#include "partition/search/load_anneal.h"

#include <math.h>
#include <string.h>

#include "partition/objective/load_state.h"
#include "partition/search/region.h"

#define LOAD_NORM 32.0           // p of the energy
#define LOAD_MEAN_WEIGHT 0.1     // m of the energy
#define LOAD_EXCESS_WEIGHT 2.0   // of excess memory, against load
#define LOAD_EXCESS_MOST 0.5     // a device is never more over its memory than so much of it
#define LOAD_LOOK_STEPS 256      // between two looks at clock and warmth
#define LOAD_REFRESH_STEPS 65536 // between two sums of the loads anew
#define LOAD_PICK_TRIES 12

typedef struct load_anneal {
    const pen_problem *problem;
    pen_annealing annealing;
    pen_region region;
    pen_load_state *state;
    double *term; // [device_count] (load / scale)^p
    double term_sum;
    double scale;
    double worst; // largest load
    uint32_t worst_device;
    double *bytes_inverse; // [device_count] 1 / limit
    uint32_t over_count;   // devices over their memory

    double term_change; // of the move that was weighed

    uint32_t *best; // [group_count] best placement of the run
    double best_worst;
} load_anneal;

// ---- the energy

// x^LOAD_NORM
static inline double load_power(double x) {
    x *= x;
    x *= x;
    x *= x;
    x *= x;
    return x * x;
}

// How far a device that holds `bytes` is over its memory, as a share of that; 0: not at all.
static inline double load_excess(const load_anneal *anneal, uint32_t device, double bytes) {
    const double over = bytes * anneal->bytes_inverse[device] - (1.0 + PEN_PROBLEM_MEMORY_SLACK);
    return over > 0.0 ? over : 0.0;
}

// What counts as the load of a device: one with excess memory counts as the fullest, and more. Were
// it only more than its load, devices with little to do would be a home for what fits nowhere.
static inline double load_weight(const load_anneal *anneal, uint32_t device, double load,
                                 double bytes) {
    const double excess = load_excess(anneal, device, bytes);
    if (!(excess > 0.0)) return load;
    return fmax(load, anneal->scale) + LOAD_EXCESS_WEIGHT * anneal->scale * excess;
}

static inline double load_term(const load_anneal *anneal, uint32_t device, double load,
                               double bytes) {
    return load_power(load_weight(anneal, device, load, bytes) / anneal->scale);
}

// Whether `device` may hold `bytes` for a while.
static inline bool load_bears(const load_anneal *anneal, uint32_t device, double bytes) {
    return load_excess(anneal, device, bytes) <= LOAD_EXCESS_MOST;
}

static void load_find_worst(load_anneal *anneal) {
    const pen_load_state *state = anneal->state;
    double most = -1.0;
    anneal->worst = -1.0;
    anneal->over_count = 0;
    for (uint32_t d = 0; d < state->device_count; d++) {
        const double weight = load_weight(anneal, d, state->load[d], state->bytes[d]);
        if (weight > state->load[d]) anneal->over_count += 1;
        if (state->load[d] > anneal->worst) anneal->worst = state->load[d];
        if (weight <= most) continue;
        most = weight;
        anneal->worst_device = d;
    }
}

// Everything that follows from the loads, anew.
static void load_sum(load_anneal *anneal) {
    const pen_load_state *state = anneal->state;
    anneal->term_sum = 0.0;
    for (uint32_t d = 0; d < state->device_count; d++) {
        anneal->term[d] = load_term(anneal, d, state->load[d], state->bytes[d]);
        anneal->term_sum += anneal->term[d];
    }
    load_find_worst(anneal);
}

// ---- moves along the line, which makes runs: stretches of one device

static uint32_t load_on_line(const load_anneal *anneal, uint32_t at) {
    return anneal->state->device_of_group[anneal->region.line[at]];
}

// First position of the run that holds position `at`.
static uint32_t load_run_begin(const load_anneal *anneal, uint32_t at) {
    const uint32_t device = load_on_line(anneal, at);
    while (at > 0 && load_on_line(anneal, at - 1) == device)
        at--;
    return at;
}

// Position behind it.
static uint32_t load_run_end(const load_anneal *anneal, uint32_t at) {
    const uint32_t device = load_on_line(anneal, at);
    while (at < anneal->problem->group_count && load_on_line(anneal, at) == device)
        at++;
    return at;
}

static void load_join(load_anneal *anneal, uint32_t begin, uint32_t end, uint32_t device) {
    for (uint32_t at = begin; at < end; at++) {
        if (!pen_region_add(&anneal->region, anneal->region.line[at], device)) return;
    }
}

static uint32_t load_length(load_anneal *anneal) {
    return 1 + pen_region_below(&anneal->region, 1u << (1 + pen_region_below(&anneal->region, 6)));
}

// An end of a run moves: into the run, or into its neighbour.
static void load_move_border(load_anneal *anneal, uint32_t group) {
    const uint32_t count = anneal->problem->group_count;
    const uint32_t at = anneal->region.line_at[group];
    const uint32_t length = load_length(anneal);
    const uint32_t dice = pen_random_next(&anneal->annealing.random);
    const uint32_t border = dice & 1 ? load_run_end(anneal, at) : load_run_begin(anneal, at);
    if (border == 0 || border == count) return;
    const uint32_t below = load_on_line(anneal, border - 1), above = load_on_line(anneal, border);
    if (dice & 2) {
        const uint32_t end = load_run_end(anneal, border);
        load_join(anneal, border, end - border < length ? end : border + length, below);
    } else {
        const uint32_t begin = load_run_begin(anneal, border - 1);
        load_join(anneal, border - begin < length ? begin : border - length, border, above);
    }
}

// A whole run moves: to a device beside it or to any.
static void load_move_run(load_anneal *anneal, uint32_t group) {
    const uint32_t at = anneal->region.line_at[group];
    const uint32_t begin = load_run_begin(anneal, at), end = load_run_end(anneal, at);
    const uint32_t dice = pen_random_next(&anneal->annealing.random);
    uint32_t device = pen_region_below(&anneal->region, anneal->state->device_count);
    if ((dice & 3) == 0 && begin > 0) device = load_on_line(anneal, begin - 1);
    if ((dice & 3) == 1 && end < anneal->problem->group_count) device = load_on_line(anneal, end);
    if (device != load_on_line(anneal, at)) load_join(anneal, begin, end, device);
}

// Two runs exchange their devices.
static void load_swap_runs(load_anneal *anneal, uint32_t group) {
    const uint32_t other = pen_region_below(&anneal->region, anneal->problem->group_count);
    const uint32_t here = anneal->state->device_of_group[group];
    const uint32_t there = anneal->state->device_of_group[other];
    if (here == there) return;
    uint32_t at = anneal->region.line_at[group];
    load_join(anneal, load_run_begin(anneal, at), load_run_end(anneal, at), there);
    at = anneal->region.line_at[other];
    load_join(anneal, load_run_begin(anneal, at), load_run_end(anneal, at), here);
}

// In a stretch of the line two devices exchange what they have: around the group, or all of the
// line from it on, or up to it.
static void load_swap_window(load_anneal *anneal, uint32_t group, uint32_t device) {
    const uint32_t count = anneal->problem->group_count;
    const uint32_t here = anneal->state->device_of_group[group];
    const uint32_t at = anneal->region.line_at[group];
    const uint32_t dice = pen_random_next(&anneal->annealing.random);
    uint32_t begin = 0, end = count;
    if ((dice & 3) != 0) {
        const uint32_t length = 2 * load_length(anneal);
        begin = dice & 4 ? at : at > length ? at - length : 0;
        end = begin + length < count ? begin + length : count;
    } else if (dice & 4) {
        begin = at;
    } else {
        end = at + 1;
    }
    for (uint32_t i = begin; i < end && anneal->region.count < PEN_REGION_LIMIT; i++) {
        const uint32_t d = load_on_line(anneal, i);
        if (d == here || d == device) load_join(anneal, i, i + 1, d == here ? device : here);
    }
}

// ---- choices

// A group; every other time one of the worst device, if a few tries find one.
static uint32_t load_pick(load_anneal *anneal) {
    const uint32_t count = anneal->problem->group_count;
    uint32_t group = pen_region_below(&anneal->region, count);
    if (pen_random_next(&anneal->annealing.random) & 1) return group;
    for (int i = 0; i < LOAD_PICK_TRIES; i++) {
        if (anneal->state->device_of_group[group] == anneal->worst_device) break;
        group = pen_region_below(&anneal->region, count);
    }
    return group;
}

// Exchanges the group with one of `device`, if a few tries find one.
static void load_swap_with(load_anneal *anneal, uint32_t group, uint32_t device) {
    pen_region *region = &anneal->region;
    for (int i = 0; i < LOAD_PICK_TRIES; i++) {
        const uint32_t other = pen_region_below(region, anneal->problem->group_count);
        if (anneal->state->device_of_group[other] != device) continue;
        pen_region_add(region, group, device);
        pen_region_add(region, other, anneal->state->device_of_group[group]);
        return;
    }
}

// Of 64 moves, 43 are of one group; the others cross what no sequence of good small moves does.
static void load_choose_free(load_anneal *anneal) {
    pen_region *region = &anneal->region;
    const uint32_t group = load_pick(anneal);
    const uint32_t kind = pen_region_below(region, 64);
    if (kind < 2) {
        load_move_border(anneal, group);
        return;
    }
    if (kind < 3) {
        load_move_run(anneal, group);
        return;
    }
    if (kind < 4) {
        load_swap_runs(anneal, group);
        return;
    }
    const uint32_t device = pen_region_device(region, group);
    if (anneal->state->device_of_group[group] == device) return;
    if (kind < 5) {
        load_swap_window(anneal, group, device);
    } else if (kind < 48) {
        pen_region_add(region, group, device);
    } else if (kind < 52) {
        load_swap_with(anneal, group, device);
    } else {
        const uint32_t size = 2 + pen_region_below(region, 1u << (1 + pen_region_below(region, 5)));
        if (kind < 58) {
            pen_region_add_cluster(region, group, device, size);
        } else {
            pen_region_add_stretch(region, group, device, size, 0);
        }
    }
}

// Contiguous: devices have ranks, and no forward edge leads to a smaller one.
static void load_choose_contiguous(load_anneal *anneal) {
    const uint32_t group = load_pick(anneal);
    const uint32_t device = pen_region_device(&anneal->region, group);
    if (anneal->state->device_of_group[group] == device) return;
    if (pen_region_close(&anneal->region, group, device, PEN_REGION_LIMIT)) return;
    pen_region_clear(&anneal->region);
}

static bool load_propose(void *search) {
    load_anneal *anneal = search;
    pen_region *region = &anneal->region;
    pen_region_clear(region);
    if (anneal->problem->given.is_contiguous) {
        load_choose_contiguous(anneal);
    } else {
        load_choose_free(anneal);
    }
    for (uint32_t i = 0; i < region->count; i++) {
        if (!pen_problem_allows(anneal->problem, region->group[i], region->goal[i])) return false;
    }
    if (region->count != 1) return region->count > 0;
    const uint32_t goal = region->goal[0];
    const double bytes = pen_problem_bytes(anneal->problem, region->group[0], goal);
    return load_bears(anneal, goal, anneal->state->bytes[goal] + bytes);
}

// ---- weighing

static double load_weigh(void *search, double bearable) {
    load_anneal *anneal = search;
    pen_load_state *state = anneal->state;
    const pen_region *region = &anneal->region;
    double load_change = 0.0;
    (void)bearable;
    anneal->term_change = 0.0;
    pen_load_state_try(state, region->group, region->goal, region->count);
    for (uint32_t i = 0; i < state->changed_count; i++) {
        const uint32_t d = state->changed[i];
        const double load = pen_load_state_after(state, d);
        const double bytes = pen_load_state_bytes_after(state, d);
        if (state->is_made && !load_bears(anneal, d, bytes)) return INFINITY;
        anneal->term_change += load_term(anneal, d, load, bytes) - anneal->term[d];
        load_change += load - pen_load_state_before(state, d);
    }
    return anneal->term_change / (LOAD_NORM * anneal->term_sum) +
           LOAD_MEAN_WEIGHT * load_change / (anneal->scale * state->device_count);
}

static void load_refuse(void *search) {
    load_anneal *anneal = search;
    const pen_region *region = &anneal->region;
    pen_load_state_undo(anneal->state, region->group, region->home, region->count);
}

// A kept move changes the terms of the devices that it touched, and no others.
static void load_keep(void *search) {
    load_anneal *anneal = search;
    pen_load_state *state = anneal->state;
    pen_load_state_keep(state, anneal->region.group, anneal->region.goal);
    anneal->term_sum += anneal->term_change;
    for (uint32_t i = 0; i < state->changed_count; i++) {
        const uint32_t d = state->changed[i];
        anneal->term[d] = load_term(anneal, d, state->load[d], state->bytes[d]);
    }
    load_find_worst(anneal);
    if (anneal->worst >= anneal->best_worst || anneal->over_count > 0) return;
    anneal->best_worst = anneal->worst;
    memcpy(anneal->best, state->device_of_group,
           anneal->problem->group_count * sizeof *anneal->best);
}

// ---- the run

static bool load_look(void *search, uint64_t step) {
    load_anneal *anneal = search;
    const double done = (double)step / (double)anneal->annealing.options->step_count;
    if (step % LOAD_REFRESH_STEPS == 0 && step > 0) {
        pen_load_state_refresh(anneal->state);
        anneal->scale = anneal->best_worst;
        load_sum(anneal);
    }
    return pen_annealing_cool(&anneal->annealing, done, anneal->best_worst);
}

static const pen_annealing_objective load_objective = {.look_steps = LOAD_LOOK_STEPS,
                                                       .look = load_look,
                                                       .propose = load_propose,
                                                       .weigh = load_weigh,
                                                       .keep = load_keep,
                                                       .refuse = load_refuse};

static pen_status load_begin(load_anneal *anneal, const uint32_t *line,
                             const uint32_t *device_of_group, pen_arena *arena) {
    const pen_problem *problem = anneal->problem;
    const uint32_t device_count = problem->given.device_count;
    PEN_TRY(PEN_NEW(arena, device_count, &anneal->term));
    PEN_TRY(PEN_NEW(arena, device_count, &anneal->bytes_inverse));
    for (uint32_t d = 0; d < device_count; d++) {
        const double limit = problem->given.devices[d].bytes_limit;
        anneal->bytes_inverse[d] = limit > 0.0 ? 1.0 / limit : PEN_PROBLEM_COST_LIMIT;
    }
    PEN_TRY(PEN_NEW(arena, problem->group_count, &anneal->best));
    memcpy(anneal->best, device_of_group, problem->group_count * sizeof *anneal->best);
    PEN_TRY(pen_load_state_new(problem, device_of_group, arena, &anneal->state));
    anneal->best_worst = anneal->scale = pen_load_state_worst(anneal->state);
    return pen_region_init(&anneal->region, problem, line, anneal->state->device_of_group,
                           &anneal->annealing.random, arena);
}

pen_status pen_load_anneal(const pen_problem *problem, const uint32_t *line,
                           const pen_annealing_options *options, uint32_t *device_of_group,
                           double *out_value) {
    load_anneal anneal = {.problem = problem};
    pen_arena *arena;
    PEN_TRY(pen_arena_create(&arena));
    pen_annealing_begin(&anneal.annealing, "anneal", options);
    const pen_status status = load_begin(&anneal, line, device_of_group, arena);
    if (status == PEN_OK && anneal.scale > 0.0 && problem->given.device_count > 1 &&
        (!problem->given.is_contiguous || pen_region_rank(&anneal.region))) {
        load_sum(&anneal);
        pen_annealing_run(&anneal.annealing, &load_objective, &anneal);
        memcpy(device_of_group, anneal.best, problem->group_count * sizeof *anneal.best);
        pen_load_state_set(anneal.state, device_of_group);
    }
    if (status == PEN_OK) *out_value = pen_load_state_worst(anneal.state);
    pen_arena_destroy(arena);
    return status;
}
