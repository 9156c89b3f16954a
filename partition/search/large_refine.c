// Energy, with n devices and S = Σ exp(β · (load / scale - 1)):
//     n · ΔS / (β · S) + m · Σ Δload / scale,
// which is the change as a share of the load of one device that is as full as most. Loads may
// differ by about 1 / β for free: β begins so that this is as uneven as they are, and grows.

#include "partition/search/large_refine.h"

#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "base/random.h"
#include "partition/objective/load_state.h"
#include "partition/search/anneal.h"

#define REFINE_SHARPNESS_EVEN 1.5    // β at first, over the share of the loads that is not even
#define REFINE_SHARPNESS_MOST 1000.0 // at first
#define REFINE_SHARPNESS_LAST 5000.0
#define REFINE_ROUND_STEPS 60 // for each group
#define REFINE_ROUNDS_MOST 24
#define REFINE_ROUND_GAIN 0.0005 // less gained in a round, and it ends
#define REFINE_MEAN_WEIGHT 0.1
#define REFINE_REGION_LIMIT 64
#define REFINE_LOOK_STEPS 16384         // between two looks at clock and warmth
#define REFINE_REFRESH_STEPS (1u << 22) // between two sums of the loads anew

typedef struct large_refine {
    const pen_problem *problem;
    const uint32_t *line;
    uint32_t *line_at; // [group_count]
    pen_load_state *state;
    double *term; // [device_count] exp(β · (load / scale - 1))
    double term_sum;
    double scale;
    double sharpness;
    double warmth;
    uint64_t random;
    uint32_t *rank; // [device_count] when contiguous

    // a move of several groups: what they did to the loads
    uint32_t region[REFINE_REGION_LIMIT];
    uint32_t home[REFINE_REGION_LIMIT];
    uint32_t region_count;
    uint32_t *changed; // [device_count]
    double *load_kept; // [device_count] where changed
    bool *is_changed;  // [device_count]
    uint32_t changed_count;
} large_refine;

// xorshift64*, seeded from a named stream.
static inline uint32_t refine_random(large_refine *refine) {
    refine->random ^= refine->random >> 12;
    refine->random ^= refine->random << 25;
    refine->random ^= refine->random >> 27;
    return (uint32_t)((refine->random * 0x2545f4914f6cdd1du) >> 32);
}

static inline uint32_t refine_below(large_refine *refine, uint32_t limit) {
    return (uint32_t)(((uint64_t)refine_random(refine) * limit) >> 32);
}

static inline double refine_term(const large_refine *refine, double load) {
    return exp(refine->sharpness * (load / refine->scale - 1.0));
}

static void refine_sum(large_refine *refine) {
    refine->scale = fmax(pen_load_state_worst(refine->state), 1e-300);
    refine->term_sum = 0.0;
    for (uint32_t d = 0; d < refine->state->device_count; d++) {
        refine->term[d] = refine_term(refine, refine->state->load[d]);
        refine->term_sum += refine->term[d];
    }
}

static bool refine_accepts(large_refine *refine, double term_change, double load_change) {
    const double devices = refine->state->device_count;
    const double change = devices * term_change / (refine->sharpness * refine->term_sum) +
                          REFINE_MEAN_WEIGHT * load_change / refine->scale;
    if (change <= 0.0) return true;
    if (change > 12.0 * refine->warmth) return false;
    const double luck = (refine_random(refine) + 0.5) * 0x1p-32;
    return change < -refine->warmth * log(luck);
}

static bool refine_has_room(const large_refine *refine, uint32_t device, double bytes) {
    return refine->state->bytes[device] + bytes <= pen_problem_bytes_limit(refine->problem, device);
}

static void refine_try_move(large_refine *refine, uint32_t group, uint32_t device) {
    pen_load_state *state = refine->state;
    if (!pen_problem_allows(refine->problem, group, device) ||
        !refine_has_room(refine, device, pen_problem_bytes(refine->problem, group, device))) {
        return;
    }
    pen_load_state_weigh(state, group, device);
    double term_change = 0.0, load_change = 0.0;
    for (uint32_t i = 0; i < state->touched_count; i++) {
        const uint32_t d = state->touched[i];
        term_change += refine_term(refine, state->load[d] + state->change[d]) - refine->term[d];
        load_change += state->change[d];
    }
    if (!refine_accepts(refine, term_change, load_change)) return;
    pen_load_state_move(state, group, device);
    refine->term_sum += term_change;
    for (uint32_t i = 0; i < state->touched_count; i++) {
        const uint32_t d = state->touched[i];
        refine->term[d] = refine_term(refine, state->load[d]);
    }
}

// ---- several groups

static void refine_step_group(large_refine *refine, uint32_t group, uint32_t device) {
    pen_load_state *state = refine->state;
    pen_load_state_weigh(state, group, device);
    for (uint32_t i = 0; i < state->touched_count; i++) {
        const uint32_t d = state->touched[i];
        if (refine->is_changed[d]) continue;
        refine->is_changed[d] = true;
        refine->load_kept[d] = state->load[d];
        refine->changed[refine->changed_count++] = d;
    }
    pen_load_state_move(state, group, device);
}

// Accepts the groups' new homes, or takes them back.
static void refine_settle(large_refine *refine) {
    pen_load_state *state = refine->state;
    double term_change = 0.0, load_change = 0.0;
    for (uint32_t i = 0; i < refine->changed_count; i++) {
        const uint32_t d = refine->changed[i];
        term_change += refine_term(refine, state->load[d]) - refine->term[d];
        load_change += state->load[d] - refine->load_kept[d];
    }
    const bool is_accepted = refine_accepts(refine, term_change, load_change);
    for (uint32_t i = refine->region_count; i-- > 0 && !is_accepted;) {
        const uint32_t group = refine->region[i];
        if (state->device_of_group[group] == refine->home[i]) continue;
        pen_load_state_weigh(state, group, refine->home[i]);
        pen_load_state_move(state, group, refine->home[i]);
    }
    for (uint32_t i = 0; i < refine->changed_count; i++) {
        const uint32_t d = refine->changed[i];
        refine->is_changed[d] = false;
        if (is_accepted) {
            refine->term[d] = refine_term(refine, state->load[d]);
        } else {
            state->load[d] = refine->load_kept[d];
        }
    }
    refine->changed_count = 0;
    if (is_accepted) refine->term_sum += term_change;
}

static void refine_try_region(large_refine *refine, uint32_t device) {
    double bytes = 0.0;
    for (uint32_t i = 0; i < refine->region_count; i++) {
        const uint32_t group = refine->region[i];
        if (!pen_problem_allows(refine->problem, group, device)) return;
        refine->home[i] = refine->state->device_of_group[group];
        if (refine->home[i] != device) bytes += pen_problem_bytes(refine->problem, group, device);
    }
    if (!refine_has_room(refine, device, bytes)) return;
    for (uint32_t i = 0; i < refine->region_count; i++) {
        if (refine->home[i] != device) refine_step_group(refine, refine->region[i], device);
    }
    refine_settle(refine);
}

static void refine_try_swap(large_refine *refine, uint32_t group, uint32_t other) {
    const pen_problem *problem = refine->problem;
    const uint32_t here = refine->state->device_of_group[group];
    const uint32_t there = refine->state->device_of_group[other];
    if (here == there || !pen_problem_allows(problem, group, there) ||
        !pen_problem_allows(problem, other, here)) {
        return;
    }
    const double more_there =
        pen_problem_bytes(problem, group, there) - pen_problem_bytes(problem, other, there);
    const double more_here =
        pen_problem_bytes(problem, other, here) - pen_problem_bytes(problem, group, here);
    if (!refine_has_room(refine, there, more_there) || !refine_has_room(refine, here, more_here)) {
        return;
    }
    refine->region[0] = group;
    refine->home[0] = here;
    refine->region[1] = other;
    refine->home[1] = there;
    refine->region_count = 2;
    refine_step_group(refine, group, there);
    refine_step_group(refine, other, here);
    refine_settle(refine);
}

// ---- choices

// A group that `group` reads from or is read by, or itself.
static uint32_t refine_pick_neighbour(large_refine *refine, uint32_t group) {
    const pen_problem *problem = refine->problem;
    const uint32_t own_count = problem->own_first[group + 1] - problem->own_first[group];
    const uint32_t read_count = problem->reads.first[group + 1] - problem->reads.first[group];
    if (own_count + read_count == 0) return group;
    const uint32_t i = refine_below(refine, own_count + read_count);
    if (i >= own_count) {
        const uint32_t o = problem->reads.ids[problem->reads.first[group] + i - own_count];
        return problem->output_owner[o];
    }
    const uint32_t o = problem->own_first[group] + i;
    const uint32_t first = problem->readers.first[o];
    return problem->readers
        .ids[first + refine_below(refine, problem->readers.first[o + 1] - first)];
}

// Fills the region with groups of one device that follow each other on the line, from `group` on.
static void refine_take_stretch(large_refine *refine, uint32_t group, uint32_t size, bool is_up) {
    const uint32_t device = refine->state->device_of_group[group];
    const uint32_t count = refine->problem->group_count;
    refine->region_count = 0;
    for (uint32_t at = refine->line_at[group]; at < count && refine->region_count < size;
         at += is_up ? 1 : UINT32_MAX) {
        const uint32_t next = refine->line[at];
        if (refine->state->device_of_group[next] != device) break;
        refine->region[refine->region_count++] = next;
    }
}

static bool refine_is_in_region(const large_refine *refine, uint32_t group) {
    for (uint32_t i = 0; i < refine->region_count; i++) {
        if (refine->region[i] == group) return true;
    }
    return false;
}

// Fills the region with `group` and all that must come along to `device` for the order of devices
// to stay. False when too many.
static bool refine_close_region(large_refine *refine, uint32_t group, uint32_t device) {
    const pen_problem *problem = refine->problem;
    const uint32_t *device_of_group = refine->state->device_of_group;
    const uint32_t there = refine->rank[device];
    const bool is_down = there < refine->rank[device_of_group[group]];
    const pen_problem_lists *lists = is_down ? &problem->before : &problem->after;
    refine->region[0] = group;
    refine->region_count = 1;
    for (uint32_t i = 0; i < refine->region_count; i++) {
        const uint32_t g = refine->region[i];
        for (uint32_t e = lists->first[g]; e < lists->first[g + 1]; e++) {
            const uint32_t next = lists->ids[e];
            const uint32_t rank = refine->rank[device_of_group[next]];
            if ((is_down ? rank <= there : rank >= there) || refine_is_in_region(refine, next)) {
                continue;
            }
            if (refine->region_count == REFINE_REGION_LIMIT) return false;
            refine->region[refine->region_count++] = next;
        }
    }
    return true;
}

static void refine_step(large_refine *refine) {
    const uint32_t group = refine_below(refine, refine->problem->group_count);
    const uint32_t other = refine_pick_neighbour(refine, group);
    const uint32_t device = refine->state->device_of_group[other];
    if (refine->state->device_of_group[group] == device) return;
    if (refine->problem->given.is_contiguous) {
        if (!refine_close_region(refine, group, device)) return;
        if (refine->region_count == 1) {
            refine_try_move(refine, group, device);
        } else {
            refine_try_region(refine, device);
        }
        return;
    }
    const uint32_t kind = refine_below(refine, 16);
    if (kind < 9) {
        refine_try_move(refine, group, device);
    } else if (kind < 11) {
        refine_try_swap(refine, group, other);
    } else {
        const uint32_t size = 2 + refine_below(refine, 1u << (1 + refine_below(refine, 5)));
        refine_take_stretch(refine, group, size, refine_random(refine) & 1);
        refine_try_region(refine, device);
    }
}

// ---- the run

static void refine_keep(const large_refine *refine, uint32_t *device_of_group, double *out_value) {
    *out_value = pen_load_state_worst(refine->state);
    memcpy(device_of_group, refine->state->device_of_group,
           refine->problem->group_count * sizeof *device_of_group);
}

// Ranks devices in the order in which the line meets them, if that is one; else any order.
static bool refine_rank(const large_refine *refine, const uint32_t *device_of_group) {
    const pen_problem *problem = refine->problem;
    const uint32_t device_count = problem->given.device_count;
    uint32_t next = 0;
    memset(refine->rank, 0xff, device_count * sizeof *refine->rank);
    for (uint32_t i = 0; i < problem->group_count; i++) {
        uint32_t *rank = &refine->rank[device_of_group[refine->line[i]]];
        if (*rank == UINT32_MAX) *rank = next++;
    }
    for (uint32_t d = 0; d < device_count; d++) {
        if (refine->rank[d] == UINT32_MAX) refine->rank[d] = next++;
    }
    for (uint32_t g = 0; g < problem->group_count; g++) {
        for (uint32_t e = problem->after.first[g]; e < problem->after.first[g + 1]; e++) {
            if (refine->rank[device_of_group[problem->after.ids[e]]] <
                refine->rank[device_of_group[g]]) {
                return pen_rank_devices(problem, device_of_group, refine->rank);
            }
        }
    }
    return true;
}

static pen_status refine_begin(large_refine *refine, const uint32_t *device_of_group,
                               pen_arena *arena) {
    const pen_problem *problem = refine->problem;
    const uint32_t device_count = problem->given.device_count;
    PEN_TRY(PEN_NEW(arena, problem->group_count, &refine->line_at));
    PEN_TRY(PEN_NEW(arena, device_count, &refine->term));
    PEN_TRY(PEN_NEW(arena, device_count, &refine->rank));
    PEN_TRY(PEN_NEW(arena, device_count, &refine->changed));
    PEN_TRY(PEN_NEW(arena, device_count, &refine->load_kept));
    PEN_TRY(PEN_NEW(arena, device_count, &refine->is_changed));
    for (uint32_t i = 0; i < problem->group_count; i++)
        refine->line_at[refine->line[i]] = i;
    return pen_load_state_new(problem, device_of_group, arena, &refine->state);
}

static double refine_sharpness(const pen_load_state *state) {
    double total = 0.0;
    for (uint32_t d = 0; d < state->device_count; d++)
        total += state->load[d];
    const double even = total / state->device_count / pen_load_state_worst(state);
    return fmin(REFINE_SHARPNESS_EVEN / (1.0 - even + 1e-9), REFINE_SHARPNESS_MOST);
}

static pen_status refine_round(const pen_problem *problem, const uint32_t *line,
                               const pen_large_refine_options *options, pen_arena *arena,
                               uint32_t *device_of_group, double *out_value) {
    large_refine refine = {.problem = problem, .line = line};
    const uint64_t steps = 1 + (uint64_t)REFINE_ROUND_STEPS * problem->group_count;
    PEN_TRY(refine_begin(&refine, device_of_group, arena));
    *out_value = pen_load_state_worst(refine.state);
    if (!(*out_value > 0.0) || problem->group_count == 0 || problem->given.device_count < 2) {
        return PEN_OK;
    }
    if (problem->given.is_contiguous && !refine_rank(&refine, device_of_group)) return PEN_OK;
    refine.random = pen_random_stream("large refine", options->seed, 0) | 1;
    const double decay = log(options->warmth_last / options->warmth_first);
    const double sharpness = refine_sharpness(refine.state);
    const double growth = log(REFINE_SHARPNESS_LAST / sharpness);
    for (uint64_t step = 0; step < steps; step++) {
        if (step % REFINE_LOOK_STEPS == 0) {
            if (pen_clock_seconds() > options->deadline) break;
            if (step % REFINE_REFRESH_STEPS == 0) pen_load_state_refresh(refine.state);
            const double progress = (double)step / (double)steps;
            refine.warmth = options->warmth_first * exp(decay * progress);
            refine.sharpness = sharpness * exp(growth * progress);
            refine_sum(&refine);
            if (refine.scale < *out_value) refine_keep(&refine, device_of_group, out_value);
        }
        refine_step(&refine);
    }
    pen_load_state_refresh(refine.state);
    if (pen_load_state_worst(refine.state) < *out_value) {
        refine_keep(&refine, device_of_group, out_value);
    }
    return PEN_OK;
}

pen_status pen_large_refine(const pen_problem *problem, const uint32_t *line,
                            const pen_large_refine_options *options, uint32_t *device_of_group,
                            double *out_value) {
    const uint64_t round_steps = 1 + (uint64_t)REFINE_ROUND_STEPS * problem->group_count;
    const uint64_t wished = 1 + options->step_count / round_steps;
    const uint64_t round_count = wished < REFINE_ROUNDS_MOST ? wished : REFINE_ROUNDS_MOST;
    pen_arena *arena;
    pen_status status = pen_arena_create(&arena);
    double before = INFINITY;
    pen_large_refine_options again = *options;
    for (uint64_t round = 0; status == PEN_OK && round < round_count; round++) {
        pen_arena_reset(arena);
        again.seed = pen_random_stream("large refine round", options->seed, round);
        status = refine_round(problem, line, &again, arena, device_of_group, out_value);
        if (*out_value > (1.0 - REFINE_ROUND_GAIN) * before) break;
        if (pen_clock_seconds() > options->deadline) break;
        before = *out_value;
    }
    pen_arena_destroy(arena);
    return status;
}
