#include "partition/problem/problem.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

const char *pen_problem_node_name(const pen_problem_given *given, uint32_t node,
                                  char out_text[PEN_PROBLEM_NAME_BYTES]) {
    if (given->names != NULL) return given->names[node];
    snprintf(out_text, PEN_PROBLEM_NAME_BYTES, "%u", node);
    return out_text;
}

const char *pen_problem_device_name(const pen_problem_given *given, uint32_t device,
                                    char out_text[PEN_PROBLEM_NAME_BYTES]) {
    if (given->device_names != NULL) return given->device_names[device];
    snprintf(out_text, PEN_PROBLEM_NAME_BYTES, "%u", device);
    return out_text;
}

const char *const pen_objective_names[] = {"throughput", "latency", "step_time", "traffic", NULL};

// ---- forbidden nodes

// The nodes forbidden on each device, and the kinds that follow.
typedef struct adopt_bans {
    pen_problem_lists nodes;  // of devices
    uint32_t *kind_of_device; // [device_count]
    uint32_t *model;          // [kind_count + device_count] of a new kind: a device that has it
    uint32_t kind_count;
} adopt_bans;

static bool adopt_bans_same(const adopt_bans *bans, uint32_t a, uint32_t b) {
    const uint32_t *first = bans->nodes.first;
    const uint32_t count = first[a + 1] - first[a];
    return count == first[b + 1] - first[b] &&
           memcmp(bans->nodes.ids + first[a], bans->nodes.ids + first[b],
                  count * sizeof *bans->nodes.ids) == 0;
}

// Gives each device with something forbidden a kind of its own, or that of another device of the
// same kind for which the same is forbidden.
static pen_status adopt_bans_init(adopt_bans *bans, const pen_problem_given *given,
                                  pen_arena *arena) {
    pen_problem_edge *pairs; // device, node
    PEN_TRY(PEN_NEW(arena, given->forbidden_count, &pairs));
    for (uint32_t i = 0; i < given->forbidden_count; i++) {
        PEN_ASSERT(given->forbidden[i].node < given->node_count);
        PEN_ASSERT(given->forbidden[i].device < given->device_count);
        pairs[i] = (pen_problem_edge){given->forbidden[i].device, given->forbidden[i].node};
    }
    PEN_TRY(pen_problem_lists_build(given->device_count, pairs, given->forbidden_count, false,
                                    arena, &bans->nodes));
    PEN_TRY(PEN_NEW(arena, given->device_count, &bans->kind_of_device));
    PEN_TRY(PEN_NEW(arena, (size_t)given->kind_count + given->device_count, &bans->model));
    bans->kind_count = given->kind_count;
    for (uint32_t d = 0; d < given->device_count; d++) {
        bans->kind_of_device[d] = given->devices[d].kind;
        if (bans->nodes.first[d] == bans->nodes.first[d + 1]) continue;
        uint32_t k = given->kind_count;
        while (k < bans->kind_count &&
               !(given->devices[bans->model[k]].kind == given->devices[d].kind &&
                 adopt_bans_same(bans, bans->model[k], d))) {
            k++;
        }
        if (k == bans->kind_count) bans->model[bans->kind_count++] = d;
        bans->kind_of_device[d] = k;
    }
    return PEN_OK;
}

// A device that is forbidden to some nodes becomes a kind of its own on which they cost infinitely
// much: strategies need to know nothing of it.
static pen_status adopt_forbidden(const pen_problem_given *given, pen_arena *arena,
                                  pen_problem_device *devices, pen_problem_given *out_given) {
    adopt_bans bans;
    double *compute;
    const size_t count = given->node_count;
    PEN_TRY(adopt_bans_init(&bans, given, arena));
    PEN_TRY(PEN_NEW(arena, bans.kind_count * count, &compute));
    if (count > 0) memcpy(compute, given->compute, given->kind_count * count * sizeof *compute);
    for (uint32_t k = given->kind_count; k < bans.kind_count; k++) {
        const uint32_t model = bans.model[k];
        double *row = compute + k * count;
        memcpy(row, given->compute + given->devices[model].kind * count, count * sizeof *row);
        for (uint32_t i = bans.nodes.first[model]; i < bans.nodes.first[model + 1]; i++) {
            row[bans.nodes.ids[i]] = INFINITY;
        }
    }
    for (uint32_t d = 0; d < given->device_count; d++)
        devices[d].kind = bans.kind_of_device[d];
    out_given->compute = compute;
    out_given->kind_count = bans.kind_count;
    out_given->forbidden = NULL;
    out_given->forbidden_count = 0;
    return PEN_OK;
}

pen_status pen_problem_adopt(const pen_problem_given *given, pen_arena *arena,
                             pen_problem_given *out_given) {
    pen_problem_device *devices;
    PEN_TRY(PEN_NEW(arena, given->device_count, &devices));
    for (uint32_t d = 0; d < given->device_count; d++) {
        devices[d] = given->devices[d];
        if (devices[d].microbatches == 0) devices[d].microbatches = 1;
    }
    *out_given = *given;
    out_given->devices = devices;
    return given->forbidden_count == 0 ? PEN_OK : adopt_forbidden(given, arena, devices, out_given);
}

// ---- other objectives

// Updates run once a step and the rest once a microbatch, so their share of a microbatch is what a
// load counts.
pen_status pen_problem_as_throughput(const pen_problem *problem, pen_arena *arena,
                                     const pen_problem **out_problem) {
    const pen_problem_given *given = &problem->given;
    pen_problem *other;
    PEN_TRY(PEN_NEW(arena, 1, &other));
    *other = *problem;
    other->given.objective = PEN_OBJECTIVE_THROUGHPUT;
    *out_problem = other;
    if (given->objective == PEN_OBJECTIVE_STEP_TIME && given->handling != NULL) {
        other->given.link_latency = given->link_load;
    }
    if (given->objective != PEN_OBJECTIVE_STEP_TIME || given->microbatch_count == 1) return PEN_OK;
    double *compute;
    const size_t cells = (size_t)given->kind_count * given->node_count;
    const size_t group_cells = (size_t)given->kind_count * problem->group_count;
    PEN_TRY(PEN_NEW(arena, cells, &compute));
    PEN_TRY(PEN_NEW(arena, group_cells, &other->group_compute));
    for (uint32_t k = 0; k < given->kind_count; k++) {
        for (uint32_t v = 0; v < given->node_count; v++) {
            const size_t at = (size_t)k * given->node_count + v;
            const bool is_update = given->nodes[v].role == PEN_ROLE_UPDATE;
            compute[at] = given->compute[at] / (is_update ? given->microbatch_count : 1);
            other->group_compute[(size_t)k * problem->group_count + problem->group_of_node[v]] +=
                compute[at];
        }
    }
    other->given.compute = compute;
    return PEN_OK;
}
