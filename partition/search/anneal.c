#include "partition/search/anneal.h"

#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "base/random.h"
#include "partition/search/anneal_state.h"

#define ANNEAL_MEAN_WEIGHT 0.1     // m of the energy
#define ANNEAL_EXCESS_WEIGHT 2.0   // of excess memory, against load
#define ANNEAL_EXCESS_MOST 0.5     // a device is never more over its memory than so much of it
#define ANNEAL_EXPONENTIALS 4096   // numbers drawn from the exponential distribution
#define ANNEAL_COOLING_STEPS 256   // between two looks at the temperature
#define ANNEAL_REFRESH_STEPS 65536 // between two sums of the loads anew

pen_status pen_anneal_new(const pen_problem *problem, const uint32_t *line, pen_arena *arena,
                          pen_anneal **out_anneal) {
    pen_anneal *anneal;
    const uint32_t device_count = problem->given.device_count;
    PEN_TRY(PEN_NEW(arena, 1, &anneal));
    anneal->problem = problem;
    anneal->line = line;
    PEN_TRY(PEN_NEW(arena, problem->group_count, &anneal->line_at));
    for (uint32_t i = 0; i < problem->group_count; i++)
        anneal->line_at[line[i]] = i;
    PEN_TRY(PEN_NEW(arena, device_count, &anneal->term));
    PEN_TRY(PEN_NEW(arena, device_count, &anneal->term_kept));
    PEN_TRY(PEN_NEW(arena, device_count, &anneal->load_kept));
    PEN_TRY(PEN_NEW(arena, device_count, &anneal->rank));
    PEN_TRY(PEN_NEW(arena, device_count, &anneal->bytes_inverse));
    for (uint32_t d = 0; d < device_count; d++) {
        const double limit = problem->given.devices[d].bytes_limit;
        anneal->bytes_inverse[d] = limit > 0.0 ? 1.0 / limit : PEN_PROBLEM_COST_LIMIT;
    }
    PEN_TRY(PEN_NEW(arena, problem->group_count, &anneal->best));
    PEN_TRY(PEN_NEW(arena, problem->group_count, &anneal->mark));
    PEN_TRY(PEN_NEW(arena, ANNEAL_EXPONENTIALS, &anneal->exponential));
    for (uint32_t i = 0; i < ANNEAL_EXPONENTIALS; i++) {
        anneal->exponential[i] = -log((i + 0.5) / ANNEAL_EXPONENTIALS);
    }
    PEN_TRY(pen_load_state_new(problem, anneal->best, arena, &anneal->state));
    *out_anneal = anneal;
    return PEN_OK;
}

// x^norm, which is 16 or 32.
static inline double anneal_power(const pen_anneal *anneal, double x) {
    x *= x;
    x *= x;
    x *= x;
    x *= x;
    return anneal->is_sharp ? x * x : x;
}

// How far a device that holds `bytes` is over its memory, as a share of that; 0: not at all.
static inline double anneal_excess(const pen_anneal *anneal, uint32_t device, double bytes) {
    const double over = bytes * anneal->bytes_inverse[device] - (1.0 + PEN_PROBLEM_MEMORY_SLACK);
    return over > 0.0 ? over : 0.0;
}

// What counts as the load of a device: one with excess memory counts as the fullest, and more. Were
// it only more than its load, devices with little to do would be a home for what fits nowhere.
static inline double anneal_weight(const pen_anneal *anneal, uint32_t device, double load,
                                   double bytes) {
    const double excess = anneal_excess(anneal, device, bytes);
    if (!(excess > 0.0)) return load;
    return fmax(load, anneal->scale) + ANNEAL_EXCESS_WEIGHT * anneal->scale * excess;
}

static inline double anneal_term(const pen_anneal *anneal, uint32_t device, double load,
                                 double bytes) {
    return anneal_power(anneal, anneal_weight(anneal, device, load, bytes) / anneal->scale);
}

static void anneal_find_worst(pen_anneal *anneal) {
    const pen_load_state *state = anneal->state;
    double most = -1.0;
    anneal->worst = -1.0;
    anneal->over_count = 0;
    for (uint32_t d = 0; d < state->device_count; d++) {
        const double weight = anneal_weight(anneal, d, state->load[d], state->bytes[d]);
        if (weight > state->load[d]) anneal->over_count += 1;
        if (state->load[d] > anneal->worst) anneal->worst = state->load[d];
        if (weight <= most) continue;
        most = weight;
        anneal->worst_device = d;
    }
}

// Everything that follows from the loads, anew.
static void anneal_sum(pen_anneal *anneal) {
    const pen_load_state *state = anneal->state;
    anneal->term_sum = 0.0;
    for (uint32_t d = 0; d < state->device_count; d++) {
        anneal->term[d] = anneal_term(anneal, d, state->load[d], state->bytes[d]);
        anneal->term_sum += anneal->term[d];
    }
    anneal_find_worst(anneal);
}

// Notes the placement when it is right and the best so far.
static void anneal_note(pen_anneal *anneal) {
    if (anneal->worst >= anneal->best_worst || anneal->over_count > 0) return;
    anneal->best_worst = anneal->worst;
    memcpy(anneal->best, anneal->state->device_of_group,
           anneal->problem->group_count * sizeof *anneal->best);
}

static inline bool anneal_accepts(pen_anneal *anneal, double term_change, double load_change) {
    const double loss =
        term_change / (anneal->norm * anneal->term_sum) +
        ANNEAL_MEAN_WEIGHT * load_change / (anneal->scale * anneal->state->device_count);
    if (loss <= 0.0) return true;
    return loss <
           anneal->warmth * anneal->exponential[pen_anneal_below(anneal, ANNEAL_EXPONENTIALS)];
}

// Whether `device` may hold `bytes` for a while.
static inline bool anneal_bears(const pen_anneal *anneal, uint32_t device, double bytes) {
    return anneal_excess(anneal, device, bytes) <= ANNEAL_EXCESS_MOST;
}

// ---- one group

bool pen_anneal_try_move(pen_anneal *anneal, uint32_t group, uint32_t device) {
    pen_load_state *state = anneal->state;
    const uint32_t home = state->device_of_group[group];
    const double bytes = pen_problem_bytes(anneal->problem, group, device);
    const double bytes_home = pen_problem_bytes(anneal->problem, group, home);
    if (!pen_problem_allows(anneal->problem, group, device) ||
        !anneal_bears(anneal, device, state->bytes[device] + bytes)) {
        return false;
    }
    pen_load_state_weigh(state, group, device);
    double term_change = 0.0, load_change = 0.0;
    double term_new[8];
    const uint32_t touched_count = state->touched_count;
    for (uint32_t i = 0; i < touched_count; i++) {
        const uint32_t d = state->touched[i];
        const double held = state->bytes[d] + (d == device ? bytes : d == home ? -bytes_home : 0.0);
        const double term = anneal_term(anneal, d, state->load[d] + state->change[d], held);
        if (i < 8) term_new[i] = term;
        term_change += term - anneal->term[d];
        load_change += state->change[d];
    }
    if (!anneal_accepts(anneal, term_change, load_change)) return false;
    pen_load_state_move(state, group, device);
    anneal->term_sum += term_change;
    for (uint32_t i = 0; i < touched_count; i++) {
        const uint32_t d = state->touched[i];
        anneal->term[d] =
            i < 8 ? term_new[i] : anneal_term(anneal, d, state->load[d], state->bytes[d]);
    }
    anneal_find_worst(anneal);
    anneal_note(anneal);
    return true;
}

// ---- several groups at once: made, weighed, and taken back if it was no good

static void anneal_step_group(pen_anneal *anneal, uint32_t group, uint32_t device) {
    pen_load_state_weigh(anneal->state, group, device);
    pen_load_state_move(anneal->state, group, device);
}

static void anneal_keep(pen_anneal *anneal) {
    const size_t bytes = anneal->state->device_count * sizeof(double);
    memcpy(anneal->load_kept, anneal->state->load, bytes);
    memcpy(anneal->term_kept, anneal->term, bytes);
}

// Whether the loads as they are now are accepted in place of those kept.
static bool anneal_settle(pen_anneal *anneal) {
    const pen_load_state *state = anneal->state;
    double term_change = 0.0, load_change = 0.0;
    for (uint32_t d = 0; d < state->device_count; d++) {
        anneal->term[d] = anneal_term(anneal, d, state->load[d], state->bytes[d]);
        term_change += anneal->term[d] - anneal->term_kept[d];
        load_change += state->load[d] - anneal->load_kept[d];
    }
    if (!anneal_accepts(anneal, term_change, load_change)) return false;
    anneal->term_sum += term_change;
    anneal_find_worst(anneal);
    anneal_note(anneal);
    return true;
}

static void anneal_restore(pen_anneal *anneal) {
    const size_t bytes = anneal->state->device_count * sizeof(double);
    memcpy(anneal->state->load, anneal->load_kept, bytes);
    memcpy(anneal->term, anneal->term_kept, bytes);
}

// Whether every group may run where it goes, and no device gets too full.
static bool anneal_region_fits(const pen_anneal *anneal) {
    for (uint32_t i = 0; i < anneal->region_count; i++) {
        if (!pen_problem_allows(anneal->problem, anneal->region[i], anneal->goal[i])) return false;
    }
    return true;
}

// Moves every group of the region to its goal.
bool pen_anneal_try_goals(pen_anneal *anneal) {
    const pen_load_state *state = anneal->state;
    if (!anneal_region_fits(anneal)) return false;
    anneal_keep(anneal);
    for (uint32_t i = 0; i < anneal->region_count; i++) {
        const uint32_t group = anneal->region[i];
        anneal->home[i] = state->device_of_group[group];
        if (anneal->home[i] != anneal->goal[i]) anneal_step_group(anneal, group, anneal->goal[i]);
    }
    bool bears = true;
    for (uint32_t d = 0; d < state->device_count && bears; d++)
        bears = anneal_bears(anneal, d, state->bytes[d]);
    if (bears && anneal_settle(anneal)) return true;
    for (uint32_t i = anneal->region_count; i-- > 0;) {
        if (anneal->home[i] == anneal->goal[i]) continue;
        anneal_step_group(anneal, anneal->region[i], anneal->home[i]);
    }
    anneal_restore(anneal);
    return false;
}

bool pen_anneal_try_swap(pen_anneal *anneal, uint32_t group, uint32_t other) {
    pen_load_state *state = anneal->state;
    const pen_problem *problem = anneal->problem;
    const uint32_t here = state->device_of_group[group], there = state->device_of_group[other];
    if (here == there) return false;
    const double growth =
        pen_problem_bytes(problem, group, there) - pen_problem_bytes(problem, other, there);
    const double shrinkage =
        pen_problem_bytes(problem, group, here) - pen_problem_bytes(problem, other, here);
    if (!pen_problem_allows(problem, group, there) || !pen_problem_allows(problem, other, here) ||
        !anneal_bears(anneal, there, state->bytes[there] + growth) ||
        !anneal_bears(anneal, here, state->bytes[here] - shrinkage)) {
        return false;
    }
    anneal_keep(anneal);
    anneal_step_group(anneal, group, there);
    anneal_step_group(anneal, other, here);
    if (anneal_settle(anneal)) return true;
    anneal_step_group(anneal, other, there);
    anneal_step_group(anneal, group, here);
    anneal_restore(anneal);
    return false;
}

bool pen_rank_devices(const pen_problem *problem, const uint32_t *device_of_group,
                      uint32_t *out_rank) {
    const uint32_t device_count = problem->given.device_count;
    for (uint32_t d = 0; d < device_count; d++)
        out_rank[d] = 0;
    // lengths of longest paths, in steps of device_count: as many rounds as devices settle them, if
    // there is no cycle
    bool is_changed = true;
    for (uint32_t round = 0; is_changed && round <= device_count; round++) {
        is_changed = false;
        for (uint32_t g = 0; g < problem->group_count; g++) {
            const uint32_t from = device_of_group[g];
            for (uint32_t e = problem->after.first[g]; e < problem->after.first[g + 1]; e++) {
                const uint32_t to = device_of_group[problem->after.ids[e]];
                if (from == to || out_rank[to] >= out_rank[from] + device_count) continue;
                out_rank[to] = out_rank[from] + device_count;
                is_changed = true;
            }
        }
    }
    for (uint32_t d = 0; d < device_count; d++)
        out_rank[d] += d; // ties: the smaller device first
    return !is_changed;
}

// ---- the run

static double anneal_progress(const pen_anneal_options *options, uint64_t step, double begin) {
    double progress = (double)step / (double)options->step_count;
    if (options->deadline < INFINITY) {
        const double span = options->deadline - begin;
        const double spent = span > 0.0 ? (pen_clock_seconds() - begin) / span : 1.0;
        if (spent > progress && (!options->is_counted || spent >= 1.0)) progress = spent;
    }
    return progress;
}

double pen_anneal_run(pen_anneal *anneal, const pen_anneal_options *options,
                      uint32_t *device_of_group) {
    const pen_problem *problem = anneal->problem;
    const double begin = options->deadline < INFINITY ? pen_clock_seconds() : 0.0;
    const bool is_contiguous = problem->given.is_contiguous;
    pen_load_state_set(anneal->state, device_of_group);
    anneal->scale = pen_load_state_worst(anneal->state);
    anneal->best_worst = anneal->scale;
    memcpy(anneal->best, device_of_group, problem->group_count * sizeof *anneal->best);
    if (!(anneal->scale > 0.0) || problem->group_count == 0 || problem->given.device_count < 2 ||
        (is_contiguous && !pen_rank_devices(problem, device_of_group, anneal->rank))) {
        return anneal->best_worst;
    }
    anneal->is_sharp = options->is_sharp;
    anneal->norm = options->is_sharp ? 32.0 : 16.0;
    anneal_sum(anneal);
    anneal->random = pen_random_stream("anneal", options->seed, 0) | 1;
    const double decay = log(options->warmth_last / options->warmth_first);
    for (uint64_t step = 0; step < options->step_count; step++) {
        if (step % ANNEAL_COOLING_STEPS == 0) {
            const double progress = anneal_progress(options, step, begin);
            if (progress >= 1.0 || anneal->best_worst <= options->enough) break;
            if (options->stop != NULL &&
                atomic_load_explicit(options->stop, memory_order_relaxed)) {
                break;
            }
            anneal->warmth = options->warmth_first * exp(decay * progress);
        }
        if (step % ANNEAL_REFRESH_STEPS == ANNEAL_REFRESH_STEPS - 1) {
            pen_load_state_refresh(anneal->state);
            anneal->scale = anneal->best_worst;
            anneal_sum(anneal);
        }
        pen_anneal_step(anneal);
    }
    memcpy(device_of_group, anneal->best, problem->group_count * sizeof *anneal->best);
    pen_load_state_set(anneal->state, device_of_group);
    return pen_load_state_worst(anneal->state);
}
