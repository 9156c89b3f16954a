#include "partition/search/reduced_problem.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/sets/order.h"

// Computing for nothing and paying for what is received makes a sum of segments a sum of traffic.
static pen_status reduced_for_traffic(const pen_problem *problem, pen_arena *arena,
                                      const pen_problem **out_problem) {
    const pen_problem_given *given = &problem->given;
    const size_t cells = (size_t)given->kind_count * given->node_count;
    const size_t group_cells = (size_t)given->kind_count * problem->group_count;
    pen_problem *other;
    pen_problem_device *devices;
    double *compute;
    PEN_TRY(PEN_NEW(arena, 1, &other));
    PEN_TRY(PEN_NEW(arena, given->device_count, &devices));
    PEN_TRY(PEN_NEW(arena, cells, &compute));
    *other = *problem;
    PEN_TRY(PEN_NEW(arena, group_cells, &other->group_compute));
    for (size_t i = 0; i < cells; i++)
        compute[i] = given->compute[i] < PEN_PROBLEM_COST_LIMIT ? 0.0 : INFINITY;
    for (size_t i = 0; i < group_cells; i++) {
        other->group_compute[i] =
            problem->group_compute[i] < PEN_PROBLEM_COST_LIMIT ? 0.0 : INFINITY;
    }
    for (uint32_t d = 0; d < given->device_count; d++) {
        devices[d] = given->devices[d];
        devices[d].slowness = 1.0;
        devices[d].send = 0.0;
        devices[d].receive = 1.0;
        devices[d].is_parallel = false;
    }
    other->given.objective = PEN_OBJECTIVE_LATENCY;
    other->given.devices = devices;
    other->given.compute = compute;
    other->given.link = NULL;
    other->given.link_latency = NULL;
    other->given.handling = NULL;
    other->given.link_load = NULL;
    *out_problem = other;
    return PEN_OK;
}

pen_status pen_reduced_problem_new(const pen_problem *problem, pen_arena *arena,
                                   const pen_problem **out_problem) {
    switch (problem->given.objective) {
    case PEN_OBJECTIVE_THROUGHPUT:
    case PEN_OBJECTIVE_LATENCY:
        *out_problem = problem;
        return PEN_OK;
    case PEN_OBJECTIVE_STEP_TIME:
        return pen_problem_as_throughput(problem, arena, out_problem);
    case PEN_OBJECTIVE_TRAFFIC:
        return reduced_for_traffic(problem, arena, out_problem);
    }
    PEN_NEVER("an objective is one of the enum");
}

// ---- some devices

static pen_status reduced_cut(const double *square, uint32_t side, const uint32_t *rows,
                              uint32_t count, pen_arena *arena, const double **out_square) {
    double *cut;
    *out_square = NULL;
    if (square == NULL) return PEN_OK;
    PEN_TRY(PEN_NEW(arena, (size_t)count * count, &cut));
    for (uint32_t i = 0; i < count; i++) {
        for (uint32_t j = 0; j < count; j++)
            cut[(size_t)i * count + j] = square[(size_t)rows[i] * side + rows[j]];
    }
    *out_square = cut;
    return PEN_OK;
}

// What links take of the devices that are left, and where these are, by new numbers.
static pen_status reduced_seats(const pen_problem_given *given, const uint32_t *devices,
                                uint32_t count, pen_arena *arena, pen_problem *other) {
    if (given->handling != NULL) {
        uint32_t *cut;
        PEN_TRY(PEN_NEW(arena, (size_t)count * count, &cut));
        for (size_t i = 0; i < (size_t)count * count; i++) {
            cut[i] = given->handling_of_pair[(size_t)devices[i / count] * given->device_count +
                                             devices[i % count]];
        }
        other->given.handling_of_pair = cut;
    }
    if (given->seats == NULL) return PEN_OK;
    pen_device_seat *seats;
    uint32_t *first; // device of a host, then of a process, that is left: it gives the number
    PEN_TRY(PEN_NEW(arena, count, &seats));
    PEN_TRY(PEN_NEW(arena, 2 * (size_t)given->device_count, &first));
    memset(first, 0xff, 2 * (size_t)given->device_count * sizeof *first);
    for (uint32_t i = 0; i < count; i++) {
        seats[i] = given->seats[devices[i]];
        uint32_t *host = &first[seats[i].host];
        uint32_t *process = &first[given->device_count + seats[i].process];
        if (*host == UINT32_MAX) *host = i;
        if (*process == UINT32_MAX) *process = i;
        seats[i].host = *host;
        seats[i].process = *process;
    }
    other->given.seats = seats;
    return PEN_OK;
}

// Pins by the new numbers, `number_of` [device_count].
static pen_status reduced_pin(pen_problem *other, const uint32_t *number_of, pen_arena *arena) {
    const uint32_t *group_pin = other->group_pin;
    pen_problem_node *nodes;
    PEN_TRY(PEN_NEW(arena, other->group_count, &other->group_pin));
    PEN_TRY(PEN_NEW(arena, other->given.node_count, &nodes));
    for (uint32_t g = 0; g < other->group_count; g++) {
        other->group_pin[g] = group_pin[g];
        if (group_pin[g] == PEN_PROBLEM_ANY) continue;
        other->group_pin[g] = number_of[group_pin[g]];
        PEN_ASSERT(other->group_pin[g] != PEN_PROBLEM_ANY);
    }
    for (uint32_t v = 0; v < other->given.node_count; v++) {
        nodes[v] = other->given.nodes[v];
        if (nodes[v].pin != PEN_PROBLEM_ANY) nodes[v].pin = number_of[nodes[v].pin];
    }
    other->given.nodes = nodes;
    return PEN_OK;
}

// Rows and columns of links are cut out, and pins get the new numbers of their devices.
pen_status pen_reduced_problem_on(const pen_problem *problem, const uint32_t *devices,
                                  uint32_t count, pen_arena *arena,
                                  const pen_problem **out_problem) {
    const pen_problem_given *given = &problem->given;
    pen_problem *other;
    pen_problem_device *chosen;
    const char **names = NULL;
    uint32_t *number_of;
    PEN_TRY(PEN_NEW(arena, 1, &other));
    PEN_TRY(PEN_NEW(arena, count, &chosen));
    PEN_TRY(PEN_NEW(arena, given->device_count, &number_of));
    if (given->device_names != NULL) PEN_TRY(PEN_NEW(arena, count, &names));
    memset(number_of, 0xff, given->device_count * sizeof *number_of);
    for (uint32_t i = 0; i < count; i++) {
        chosen[i] = given->devices[devices[i]];
        number_of[devices[i]] = i;
        if (names != NULL) names[i] = given->device_names[devices[i]];
    }
    *other = *problem;
    other->given.devices = chosen;
    other->given.device_names = names;
    other->given.device_count = count;
    other->given.devices_used_maximum = 0;
    if (other->given.devices_used_minimum > count) other->given.devices_used_minimum = count;
    PEN_TRY(
        reduced_cut(given->link, given->device_count, devices, count, arena, &other->given.link));
    PEN_TRY(reduced_cut(given->link_latency, given->device_count, devices, count, arena,
                        &other->given.link_latency));
    PEN_TRY(reduced_cut(given->link_load, given->device_count, devices, count, arena,
                        &other->given.link_load));
    PEN_TRY(reduced_seats(given, devices, count, arena, other));
    PEN_TRY(reduced_pin(other, number_of, arena));
    *out_problem = other;
    return PEN_OK;
}

typedef struct reduced_device {
    bool is_pinned;
    double cost; // the smaller, the sooner it is taken
    double next; // where that is equal
    uint32_t device;
} reduced_device;

static int reduced_compare(const void *left, const void *right) {
    const reduced_device *a = left, *b = right;
    if (a->is_pinned != b->is_pinned) return a->is_pinned ? -1 : 1;
    if (a->cost != b->cost) return a->cost < b->cost ? -1 : 1;
    if (a->next != b->next) return a->next < b->next ? -1 : 1;
    return a->device < b->device ? -1 : a->device > b->device;
}

// Time for all groups; what a kind cannot run counts as the dearest of all.
static pen_status reduced_kind_times(const pen_problem *problem, pen_arena *arena,
                                     double **out_time) {
    double *time;
    PEN_TRY(PEN_NEW(arena, problem->given.kind_count, &time));
    for (uint32_t g = 0; g < problem->group_count; g++) {
        double dearest = 0.0;
        for (uint32_t k = 0; k < problem->given.kind_count; k++) {
            const double cost = problem->group_compute[(size_t)k * problem->group_count + g];
            if (cost < PEN_PROBLEM_COST_LIMIT) dearest = fmax(dearest, cost);
        }
        for (uint32_t k = 0; k < problem->given.kind_count; k++) {
            const double cost = problem->group_compute[(size_t)k * problem->group_count + g];
            time[k] += cost < PEN_PROBLEM_COST_LIMIT ? cost : 10.0 * dearest;
        }
    }
    *out_time = time;
    return PEN_OK;
}

// Pinned devices come first, then by taste; the answer is ascending, so that equal choices look so.
pen_status pen_reduced_problem_choose(const pen_problem *problem, uint32_t count,
                                      pen_device_taste taste, pen_arena *arena,
                                      uint32_t *out_devices, bool *out_is_possible) {
    const pen_problem_given *given = &problem->given;
    reduced_device *order;
    double *kind_time;
    PEN_ASSERT(count <= given->device_count);
    PEN_TRY(PEN_NEW(arena, given->device_count, &order));
    PEN_TRY(reduced_kind_times(problem, arena, &kind_time));
    for (uint32_t d = 0; d < given->device_count; d++) {
        const pen_problem_device *device = &given->devices[d];
        const double time = kind_time[device->kind] * device->slowness;
        const double bytes = fmin(device->bytes_limit, 1e300);
        order[d] = (reduced_device){.device = d, .cost = time, .next = -bytes};
        if (taste == PEN_DEVICE_TASTE_LARGE) {
            order[d].cost = -bytes;
            order[d].next = time;
        }
        if (taste == PEN_DEVICE_TASTE_BALANCED) order[d].cost = time / (bytes + 1.0);
    }
    uint32_t pinned_count = 0;
    for (uint32_t g = 0; g < problem->group_count; g++) {
        const uint32_t pin = problem->group_pin[g];
        if (pin == PEN_PROBLEM_ANY || order[pin].is_pinned) continue;
        order[pin].is_pinned = true;
        pinned_count += 1;
    }
    *out_is_possible = pinned_count <= count;
    qsort(order, given->device_count, sizeof *order, reduced_compare);
    for (uint32_t i = 0; i < count; i++)
        out_devices[i] = order[i].device;
    pen_sort_ids(out_devices, count);
    return PEN_OK;
}

pen_status pen_reduced_problem_choices(const pen_problem *problem, uint32_t count, pen_arena *arena,
                                       uint32_t *out_devices, uint32_t *out_choice_count) {
    const size_t bytes = count * sizeof *out_devices;
    *out_choice_count = 0;
    for (int taste = 0; taste < PEN_DEVICE_TASTE_COUNT; taste++) {
        uint32_t *devices = out_devices + (size_t)*out_choice_count * count;
        bool is_possible, is_known = false;
        PEN_TRY(pen_reduced_problem_choose(problem, count, (pen_device_taste)taste, arena, devices,
                                           &is_possible));
        if (!is_possible) return PEN_OK;
        for (uint32_t *other = out_devices; other < devices; other += count)
            is_known = is_known || memcmp(other, devices, bytes) == 0;
        if (!is_known) *out_choice_count += 1;
    }
    return PEN_OK;
}
