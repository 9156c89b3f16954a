#include "partition/search/coarsen.h"

#include "base/random.h"
#include "base/sets/disjoint_sets.h"

// Each group's class becomes the number of the lowest group in it.
static void coarsen_finish(pen_disjoint_sets *classes) {
    for (uint32_t g = 0; g < classes->count; g++)
        classes->parent[g] = pen_disjoint_sets_find(classes, g);
}

// ---- groups without order

static bool coarsen_has_forward(const pen_problem *problem, uint32_t group) {
    for (uint32_t m = problem->members.first[group]; m < problem->members.first[group + 1]; m++) {
        if (pen_problem_is_forward(&problem->given, problem->members.ids[m])) return true;
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
        const double weight = bond->weight[g];
        if (weight > most || (weight == most && g < partner)) {
            most = weight;
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
    pen_disjoint_sets classes = pen_disjoint_sets_in(problem->group_count, out_class);
    *out_count = 0;
    for (uint32_t g = 0; g < problem->group_count; g++) {
        if (coarsen_has_forward(problem, g)) continue;
        if (pen_disjoint_sets_join(&classes, g, coarsen_partner(problem, g, &bond)))
            *out_count += 1;
    }
    coarsen_finish(&classes);
    return PEN_OK;
}

// ---- pairs

typedef struct coarsen_pairing {
    const pen_problem *problem;
    const uint32_t *device_of_group;
    double compute_limit;
    double compute_mean;
    double *least;  // [group_count] compute cost where it is cheapest
    bool *is_taken; // [group_count]
    pen_random_key key;
    coarsen_bond bond;
} coarsen_pairing;

static bool coarsen_may_pair(const coarsen_pairing *pairing, uint32_t a, uint32_t b) {
    const pen_problem *problem = pairing->problem;
    return !pairing->is_taken[b] && pairing->device_of_group[a] == pairing->device_of_group[b] &&
           pairing->least[a] + pairing->least[b] <= pairing->compute_limit &&
           problem->group_pin[a] == problem->group_pin[b];
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

// Each group, in an order drawn by chance, is joined with the one that its ties weigh most with,
// measured by their work.
pen_status pen_coarsen_pairs(const pen_problem *problem, const pen_coarsen_options *options,
                             pen_arena *arena, uint32_t *out_class, uint32_t *out_count) {
    const uint32_t count = problem->group_count;
    coarsen_pairing pairing = {
        .problem = problem,
        .device_of_group = options->device_of_group,
        .compute_limit = options->compute_limit,
        .key = {options->seed, pen_random_stream("coarsen pairs", count, 0)}};
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
    pen_disjoint_sets classes = pen_disjoint_sets_in(problem->group_count, out_class);
    *out_count = 0;
    for (uint32_t i = count; i > 0; i--) { // in random order
        const uint32_t j = (uint32_t)pen_random_below(pairing.key, i, i);
        const uint32_t group = order[j];
        order[j] = order[i - 1];
        if (pairing.is_taken[group]) continue;
        const uint32_t mate = coarsen_mate(&pairing, group);
        if (mate == group) continue;
        pairing.is_taken[group] = pairing.is_taken[mate] = true;
        pen_disjoint_sets_join(&classes, group, mate);
        *out_count += 1;
    }
    coarsen_finish(&classes);
    return PEN_OK;
}
