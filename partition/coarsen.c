#include "partition/coarsen.h"

#include <string.h>

#include "base/random.h"
#include "partition/device_classes.h"

static uint32_t coarsen_find(uint32_t *class, uint32_t group) {
    while (class[group] != group) {
        class[group] = class[class[group]];
        group = class[group];
    }
    return group;
}

// Joins the classes of a and b; the smaller number stays. Returns whether they were two.
static bool coarsen_join(uint32_t *class, uint32_t a, uint32_t b) {
    a = coarsen_find(class, a);
    b = coarsen_find(class, b);
    if (a == b) return false;
    if (a < b) {
        class[b] = a;
    } else {
        class[a] = b;
    }
    return true;
}

static void coarsen_begin(const pen_problem *problem, uint32_t *out_class) {
    for (uint32_t g = 0; g < problem->group_count; g++)
        out_class[g] = g;
}

static void coarsen_finish(const pen_problem *problem, uint32_t *out_class) {
    for (uint32_t g = 0; g < problem->group_count; g++)
        out_class[g] = coarsen_find(out_class, g);
}

// ---- groups without order

static bool coarsen_has_forward(const pen_problem *problem, uint32_t group) {
    for (uint32_t m = problem->members.first[group]; m < problem->members.first[group + 1]; m++) {
        if (!problem->given.nodes[problem->members.ids[m]].is_backward) return true;
    }
    return false;
}

typedef struct coarsen_bond {
    double *weight;    // [group_count] exchanged with the group at hand
    uint32_t *touched; // [group_count]
    uint32_t touched_count;
} coarsen_bond;

static void coarsen_tie(coarsen_bond *bond, uint32_t group, double weight) {
    if (bond->weight[group] == 0.0) bond->touched[bond->touched_count++] = group;
    bond->weight[group] += weight;
}

// Adds up what `group` exchanges with each other group.
static void coarsen_weigh(const pen_problem *problem, uint32_t group, coarsen_bond *bond) {
    for (uint32_t o = problem->own_first[group]; o < problem->own_first[group + 1]; o++) {
        const uint32_t count = problem->readers.first[o + 1] - problem->readers.first[o];
        for (uint32_t r = problem->readers.first[o]; r < problem->readers.first[o + 1]; r++) {
            coarsen_tie(bond, problem->readers.ids[r], problem->output_cost[o] / count);
        }
    }
    for (uint32_t r = problem->reads.first[group]; r < problem->reads.first[group + 1]; r++) {
        const uint32_t o = problem->reads.ids[r];
        const uint32_t count = problem->readers.first[o + 1] - problem->readers.first[o];
        coarsen_tie(bond, problem->output_owner[o], problem->output_cost[o] / count);
    }
}

static void coarsen_forget(coarsen_bond *bond) {
    for (uint32_t i = 0; i < bond->touched_count; i++)
        bond->weight[bond->touched[i]] = 0.0;
    bond->touched_count = 0;
}

// The group that `group` exchanges most with, or itself.
static uint32_t coarsen_partner(const pen_problem *problem, uint32_t group, coarsen_bond *bond) {
    uint32_t partner = group;
    double most = 0.0;
    coarsen_weigh(problem, group, bond);
    for (uint32_t i = 0; i < bond->touched_count; i++) {
        const uint32_t g = bond->touched[i];
        if (bond->weight[g] > most || (bond->weight[g] == most && g < partner)) {
            most = bond->weight[g];
            partner = g;
        }
    }
    coarsen_forget(bond);
    return partner;
}

pen_status pen_coarsen_unordered(const pen_problem *problem, pen_arena *arena, uint32_t *out_class,
                                 uint32_t *out_count) {
    coarsen_bond bond = {0};
    PEN_TRY(PEN_NEW(arena, problem->group_count, &bond.weight));
    PEN_TRY(PEN_NEW(arena, problem->group_count, &bond.touched));
    coarsen_begin(problem, out_class);
    *out_count = 0;
    for (uint32_t g = 0; g < problem->group_count; g++) {
        if (coarsen_has_forward(problem, g)) continue;
        if (coarsen_join(out_class, g, coarsen_partner(problem, g, &bond))) *out_count += 1;
    }
    coarsen_finish(problem, out_class);
    return PEN_OK;
}

// ---- ends that cannot be apart

typedef struct coarsen_state {
    const pen_problem *problem;
    const pen_device_classes *classes;
    double limit;
    double emphasis;
    uint32_t *class; // [group_count]
    double *compute; // [kind_count][group_count] of joined groups
    double *bytes;   // [group_count]
    uint32_t *pin;   // [group_count]
} coarsen_state;

static double coarsen_compute(const coarsen_state *state, uint32_t group,
                              const pen_device_class *class) {
    return state->compute[(size_t) class->kind * state->problem->group_count + group] *
           class->slowness;
}

// Whether some two devices could hold `owner` and `reader` of an output that costs `cost`.
static bool coarsen_can_part(const coarsen_state *state, uint32_t owner, uint32_t reader,
                             double cost) {
    const pen_device_classes *classes = state->classes;
    cost *= state->emphasis;
    for (uint32_t a = 0; a < classes->class_count; a++) {
        const pen_device_class *there = &classes->classes[a];
        if (coarsen_compute(state, owner, there) + cost * there->send >= state->limit) continue;
        for (uint32_t b = 0; b < classes->class_count; b++) {
            const pen_device_class *here = &classes->classes[b];
            if (a == b && here->device_count == 1) continue;
            if (coarsen_compute(state, reader, here) + cost * here->receive < state->limit) {
                return true;
            }
        }
    }
    return false;
}

// Whether one device could hold both.
static bool coarsen_can_join(const coarsen_state *state, uint32_t a, uint32_t b) {
    if (state->pin[a] != PEN_PROBLEM_ANY && state->pin[b] != PEN_PROBLEM_ANY &&
        state->pin[a] != state->pin[b]) {
        return false;
    }
    for (uint32_t c = 0; c < state->classes->class_count; c++) {
        const pen_device_class *class = &state->classes->classes[c];
        if (state->bytes[a] + state->bytes[b] <= class->bytes_limit &&
            coarsen_compute(state, a, class) + coarsen_compute(state, b, class) < state->limit) {
            return true;
        }
    }
    return false;
}

static bool coarsen_join_ends(coarsen_state *state, uint32_t owner, uint32_t reader, double cost) {
    const uint32_t a = coarsen_find(state->class, owner), b = coarsen_find(state->class, reader);
    if (a == b || coarsen_can_part(state, a, b, cost) || !coarsen_can_join(state, a, b)) {
        return false;
    }
    const uint32_t kept = a < b ? a : b, gone = a < b ? b : a;
    coarsen_join(state->class, a, b);
    state->bytes[kept] += state->bytes[gone];
    if (state->pin[kept] == PEN_PROBLEM_ANY) state->pin[kept] = state->pin[gone];
    for (uint32_t k = 0; k < state->problem->given.kind_count; k++) {
        const size_t row = (size_t)k * state->problem->group_count;
        state->compute[row + kept] += state->compute[row + gone];
    }
    return true;
}

pen_status pen_coarsen_below(const pen_problem *problem, double limit, double emphasis,
                             pen_arena *arena, uint32_t *out_class, uint32_t *out_count) {
    pen_device_classes *classes;
    coarsen_state state = {
        .problem = problem, .limit = limit, .emphasis = emphasis, .class = out_class};
    const size_t count = problem->group_count;
    PEN_TRY(pen_device_classes_new(problem, 0, arena, &classes));
    state.classes = classes;
    PEN_TRY(PEN_NEW(arena, count * problem->given.kind_count, &state.compute));
    PEN_TRY(PEN_NEW(arena, count, &state.bytes));
    PEN_TRY(PEN_NEW(arena, count, &state.pin));
    memcpy(state.compute, problem->group_compute,
           count * problem->given.kind_count * sizeof *state.compute);
    memcpy(state.bytes, problem->group_bytes, count * sizeof *state.bytes);
    memcpy(state.pin, problem->group_pin, count * sizeof *state.pin);
    coarsen_begin(problem, out_class);
    *out_count = 0;
    for (bool is_changed = true; is_changed;) {
        is_changed = false;
        for (uint32_t o = 0; o < problem->output_count; o++) {
            for (uint32_t r = problem->readers.first[o]; r < problem->readers.first[o + 1]; r++) {
                if (!coarsen_join_ends(&state, problem->output_owner[o], problem->readers.ids[r],
                                       problem->output_cost[o])) {
                    continue;
                }
                is_changed = true;
                *out_count += 1;
            }
        }
    }
    coarsen_finish(problem, out_class);
    return PEN_OK;
}

// ---- pairs

typedef struct coarsen_pairing {
    const pen_problem *problem;
    const uint32_t *device_of_group; // or NULL
    double compute_limit;
    double compute_mean;
    double *least;  // [group_count] compute cost where it is cheapest
    bool *is_taken; // [group_count]
    pen_random_key key;
    coarsen_bond bond;
} coarsen_pairing;

static bool coarsen_may_pair(const coarsen_pairing *pairing, uint32_t a, uint32_t b) {
    const pen_problem *problem = pairing->problem;
    const uint32_t *device_of_group = pairing->device_of_group;
    if (pairing->is_taken[b] || pairing->least[a] + pairing->least[b] > pairing->compute_limit) {
        return false;
    }
    if (problem->group_pin[a] != problem->group_pin[b]) return false;
    if (device_of_group != NULL) return device_of_group[a] == device_of_group[b];
    for (uint32_t d = 0; d < problem->given.device_count; d++) {
        if (pen_problem_allows(problem, a, d) && pen_problem_allows(problem, b, d) &&
            problem->group_bytes[a] + problem->group_bytes[b] <=
                0.25 * pen_problem_bytes_limit(problem, d)) {
            return true;
        }
    }
    return false;
}

// The group that `group` had best be paired with, or itself.
static uint32_t coarsen_mate(coarsen_pairing *pairing, uint32_t group) {
    coarsen_bond *bond = &pairing->bond;
    uint32_t mate = group;
    double most = 0.0;
    coarsen_weigh(pairing->problem, group, bond);
    for (uint32_t i = 0; i < bond->touched_count; i++) {
        const uint32_t g = bond->touched[i];
        if (!coarsen_may_pair(pairing, group, g)) continue;
        const double luck = 0.7 + 0.6 * pen_random_uniform(pairing->key, (uint64_t)group << 32 | g);
        const double rating = luck * bond->weight[g] /
                              (pairing->least[group] + pairing->least[g] + pairing->compute_mean);
        if (rating <= most) continue;
        most = rating;
        mate = g;
    }
    coarsen_forget(bond);
    return mate;
}

pen_status pen_coarsen_pairs(const pen_problem *problem, uint64_t seed,
                             const uint32_t *device_of_group, double compute_limit,
                             pen_arena *arena, uint32_t *out_class, uint32_t *out_count) {
    const uint32_t count = problem->group_count;
    coarsen_pairing pairing = {.problem = problem,
                               .device_of_group = device_of_group,
                               .compute_limit = compute_limit,
                               .key = {seed, pen_random_stream("coarsen pairs", count, 0)}};
    uint32_t *order;
    PEN_TRY(PEN_NEW(arena, count, &order));
    PEN_TRY(PEN_NEW(arena, count, &pairing.least));
    PEN_TRY(PEN_NEW(arena, count, &pairing.is_taken));
    PEN_TRY(PEN_NEW(arena, count, &pairing.bond.weight));
    PEN_TRY(PEN_NEW(arena, count, &pairing.bond.touched));
    double total = 0.0;
    for (uint32_t g = 0; g < count; g++) {
        double least = PEN_PROBLEM_COST_LIMIT;
        for (uint32_t k = 0; k < problem->given.kind_count; k++) {
            const double cost = problem->group_compute[(size_t)k * count + g];
            if (cost < least) least = cost;
        }
        pairing.least[g] = least;
        total += least;
        order[g] = g;
    }
    pairing.compute_mean = total / (count + 1.0);
    coarsen_begin(problem, out_class);
    *out_count = 0;
    for (uint32_t i = count; i > 0; i--) { // in random order
        const uint32_t j = (uint32_t)pen_random_below(pairing.key, i, i);
        const uint32_t group = order[j];
        order[j] = order[i - 1];
        if (pairing.is_taken[group]) continue;
        const uint32_t mate = coarsen_mate(&pairing, group);
        if (mate == group) continue;
        pairing.is_taken[group] = pairing.is_taken[mate] = true;
        coarsen_join(out_class, group, mate);
        *out_count += 1;
    }
    coarsen_finish(problem, out_class);
    return PEN_OK;
}
