#include "partition/coarsen.h"

#include <math.h>

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

// The group that `group` exchanges most with, or itself.
static uint32_t coarsen_partner(const pen_problem *problem, uint32_t group, coarsen_bond *bond) {
    for (uint32_t o = problem->own_first[group]; o < problem->own_first[group + 1]; o++) {
        for (uint32_t r = problem->readers.first[o]; r < problem->readers.first[o + 1]; r++) {
            coarsen_tie(bond, problem->readers.ids[r], problem->output_cost[o]);
        }
    }
    for (uint32_t r = problem->reads.first[group]; r < problem->reads.first[group + 1]; r++) {
        const uint32_t o = problem->reads.ids[r];
        coarsen_tie(bond, problem->output_owner[o], problem->output_cost[o]);
    }
    uint32_t partner = group;
    double most = 0.0;
    for (uint32_t i = 0; i < bond->touched_count; i++) {
        const uint32_t g = bond->touched[i];
        if (bond->weight[g] > most || (bond->weight[g] == most && g < partner)) {
            most = bond->weight[g];
            partner = g;
        }
        bond->weight[g] = 0.0;
    }
    bond->touched_count = 0;
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
