#include "partition/search/memory_blame.h"

#include <math.h>

#include "base/sets/order.h"

// ---- packing

typedef struct pack_state {
    const pen_problem *problem;
    uint32_t *device_of_group;
    double *bytes; // [device_count]
} pack_state;

// By how many bytes device `d` would be over its memory with `more` on it.
static double pack_excess(const pack_state *state, uint32_t d, double more) {
    return state->bytes[d] + more - pen_problem_bytes_limit(state->problem, d);
}

static void pack_put(pack_state *state, uint32_t group, uint32_t device) {
    state->device_of_group[group] = device;
    state->bytes[device] += pen_problem_bytes(state->problem, group, device);
}

static void pack_move(pack_state *state, uint32_t group, uint32_t device) {
    const uint32_t home = state->device_of_group[group];
    state->bytes[home] -= pen_problem_bytes(state->problem, group, home);
    pack_put(state, group, device);
}

// The tightest device with room, else the one that is least over.
static uint32_t pack_choose(const pack_state *state, uint32_t group) {
    const pen_problem *problem = state->problem;
    uint32_t best = PEN_PROBLEM_ANY;
    double best_excess = INFINITY;
    for (uint32_t d = 0; d < problem->given.device_count; d++) {
        if (!pen_problem_allows(problem, group, d)) continue;
        const double excess = pack_excess(state, d, pen_problem_bytes(problem, group, d));
        const bool is_better =
            best_excess <= 0.0 ? excess <= 0.0 && excess > best_excess : excess < best_excess;
        if (best != PEN_PROBLEM_ANY && !is_better) continue;
        best = d;
        best_excess = excess;
    }
    return best;
}

static uint32_t pack_worst(const pack_state *state) {
    uint32_t worst = 0;
    for (uint32_t d = 1; d < state->problem->given.device_count; d++) {
        if (pack_excess(state, d, 0.0) > pack_excess(state, worst, 0.0)) worst = d;
    }
    return worst;
}

// Moves a group off device `worst`, or exchanges it for another, so that both devices concerned are
// less over than `worst` is. Returns whether there was one.
static bool pack_relieve(pack_state *state, uint32_t worst, bool may_swap) {
    const pen_problem *problem = state->problem;
    double least = pack_excess(state, worst, 0.0) * (1.0 - 1e-12);
    uint32_t group = PEN_PROBLEM_ANY, other = PEN_PROBLEM_ANY, device = 0;
    for (uint32_t g = 0; g < problem->group_count; g++) {
        if (state->device_of_group[g] != worst) continue;
        const double here = pen_problem_bytes(problem, g, worst);
        for (uint32_t d = 0; d < problem->given.device_count; d++) {
            if (d == worst || here == 0.0 || !pen_problem_allows(problem, g, d)) continue;
            const double excess = fmax(pack_excess(state, worst, -here),
                                       pack_excess(state, d, pen_problem_bytes(problem, g, d)));
            if (excess >= least) continue;
            least = excess;
            group = g;
            other = PEN_PROBLEM_ANY;
            device = d;
        }
        for (uint32_t h = 0; may_swap && h < problem->group_count; h++) {
            const uint32_t d = state->device_of_group[h];
            if (d == worst || !pen_problem_allows(problem, g, d) ||
                !pen_problem_allows(problem, h, worst)) {
                continue;
            }
            const double excess = fmax(
                pack_excess(state, worst, pen_problem_bytes(problem, h, worst) - here),
                pack_excess(state, d,
                            pen_problem_bytes(problem, g, d) - pen_problem_bytes(problem, h, d)));
            if (excess >= least) continue;
            least = excess;
            group = g;
            other = h;
            device = d;
        }
    }
    if (group == PEN_PROBLEM_ANY) return false;
    pack_move(state, group, device);
    if (other != PEN_PROBLEM_ANY) pack_move(state, other, worst);
    return true;
}

#define PACK_ROUNDS 400
#define PACK_SWAP_GROUPS 1500 // beyond, swaps are too many
#define PACK_WORK 4e7

// The largest groups first, then rounds that relieve the fullest device by moves and swaps.
pen_status pen_memory_pack(const pen_problem *problem, pen_arena *arena, uint32_t *device_of_group,
                           double *out_excess) {
    const uint32_t count = problem->group_count, device_count = problem->given.device_count;
    pack_state state = {.problem = problem, .device_of_group = device_of_group};
    pen_ranked *items;
    PEN_TRY(PEN_NEW(arena, device_count, &state.bytes));
    PEN_TRY(PEN_NEW(arena, count, &items));
    for (uint32_t g = 0; g < count; g++) {
        items[g].id = g;
        for (uint32_t d = 0; d < device_count; d++) {
            if (!pen_problem_allows(problem, g, d)) continue;
            items[g].key = fmax(items[g].key, pen_problem_bytes(problem, g, d));
            if (problem->group_bytes_in_flight == NULL) break;
        }
    }
    pen_ranked_sort_down(items, count);
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t device = pack_choose(&state, items[i].id);
        if (device == PEN_PROBLEM_ANY) {
            device_of_group[items[i].id] = device;
            *out_excess = INFINITY;
            return PEN_OK;
        }
        pack_put(&state, items[i].id, device);
    }
    const bool may_swap = count <= PACK_SWAP_GROUPS;
    const double round_work = (double)count * (device_count + (may_swap ? count / 2.0 : 0.0));
    for (int i = 0; i < PACK_ROUNDS && i * round_work < PACK_WORK; i++) {
        const uint32_t worst = pack_worst(&state);
        if (pack_excess(&state, worst, 0.0) <= 0.0) break;
        if (!pack_relieve(&state, worst, may_swap)) break;
    }
    *out_excess = pack_excess(&state, pack_worst(&state), 0.0);
    return PEN_OK;
}

// ---- proofs

// What the nodes need together where they take least, and what the devices that may be used have.
static pen_status blame_sums(const pen_problem *problem, pen_arena *arena, double *out_need,
                             double *out_room, uint32_t *out_used) {
    const pen_problem_given *given = &problem->given;
    double *limits;
    uint32_t lean = 0;
    PEN_TRY(PEN_NEW(arena, given->device_count, &limits));
    for (uint32_t d = 0; d < given->device_count; d++) {
        limits[d] = given->devices[d].bytes_limit;
        if (given->devices[d].microbatches < given->devices[lean].microbatches) lean = d;
    }
    pen_sort_numbers_down(limits, given->device_count);
    const uint32_t most = given->devices_used_maximum;
    *out_used = most > 0 && most < given->device_count ? most : given->device_count;
    *out_need = *out_room = 0.0;
    for (uint32_t i = 0; i < *out_used; i++)
        *out_room += limits[i];
    for (uint32_t g = 0; g < problem->group_count; g++)
        *out_need += pen_problem_bytes(problem, g, lean);
    return PEN_OK;
}

// A device that is over its memory with what is pinned to it, or PEN_PROBLEM_ANY.
static pen_status blame_pins(const pen_problem *problem, pen_arena *arena, uint32_t *out_device,
                             double *out_need) {
    const pen_problem_given *given = &problem->given;
    double *pinned;
    PEN_TRY(PEN_NEW(arena, given->device_count, &pinned));
    for (uint32_t g = 0; g < problem->group_count; g++) {
        const uint32_t pin = problem->group_pin[g];
        if (pin != PEN_PROBLEM_ANY) pinned[pin] += pen_problem_bytes(problem, g, pin);
    }
    *out_device = PEN_PROBLEM_ANY;
    for (uint32_t d = 0; d < given->device_count; d++) {
        if (pinned[d] <= pen_problem_bytes_limit(problem, d)) continue;
        *out_device = d;
        *out_need = pinned[d];
        return PEN_OK;
    }
    return PEN_OK;
}

// ---- the nearest miss

#define BLAME_NAMES 3 // of nodes

// "a, b and c": the largest groups of a device, by their first nodes.
static pen_status blame_name(const pen_problem *problem, const uint32_t *device_of_group,
                             uint32_t device, pen_arena *arena, const char **out_text) {
    pen_ranked largest[BLAME_NAMES];
    uint32_t count = 0;
    for (uint32_t g = 0; g < problem->group_count; g++) {
        if (device_of_group[g] != device) continue;
        pen_ranked item = {pen_problem_bytes(problem, g, device), g};
        for (uint32_t i = 0; i < count; i++) {
            if (item.key <= largest[i].key) continue;
            const pen_ranked smaller = largest[i];
            largest[i] = item;
            item = smaller;
        }
        if (count < BLAME_NAMES) largest[count++] = item;
    }
    const char *text = "";
    for (uint32_t i = 0; i < count; i++) {
        char name[PEN_PROBLEM_NAME_BYTES];
        const uint32_t node = problem->members.ids[problem->members.first[largest[i].id]];
        const uint32_t others =
            problem->members.first[largest[i].id + 1] - problem->members.first[largest[i].id] - 1;
        const char *separator = i == 0 ? "" : i + 1 == count ? " and " : ", ";
        const char *shown = pen_problem_node_name(&problem->given, node, name);
        if (others == 0) {
            PEN_TRY(pen_arena_format(arena, &text, "%s%s%s (%.15g)", text, separator, shown,
                                     largest[i].key));
        } else {
            PEN_TRY(pen_arena_format(arena, &text, "%s%s%s with %u that must be with it (%.15g)",
                                     text, separator, shown, others, largest[i].key));
        }
    }
    *out_text = text;
    return PEN_OK;
}

// Without a proof the message says how near packing by memory alone came.
static pen_status blame_nearest(const pen_problem *problem, const char *what, pen_arena *arena) {
    const pen_problem_given *given = &problem->given;
    uint32_t *device_of_group;
    double excess;
    PEN_TRY(PEN_NEW(arena, problem->group_count, &device_of_group));
    PEN_TRY(pen_memory_pack(problem, arena, device_of_group, &excess));
    if (excess <= 0.0) {
        const bool is_counted = given->devices_used_minimum > 0 || given->devices_used_maximum > 0;
        return pen_error(PEN_DOES_NOT_FIT,
                         "%s, though memory alone has room for all nodes: %s%s%s stands in the way",
                         what, given->is_contiguous ? "the order that the devices must have" : "",
                         given->is_contiguous && is_counted ? " or " : "",
                         is_counted             ? "how many devices may be used"
                         : given->is_contiguous ? ""
                                                : "the schedule");
    }
    uint32_t worst = 0;
    double over = -INFINITY, held = 0.0;
    for (uint32_t d = 0; d < given->device_count; d++) {
        double bytes = 0.0;
        for (uint32_t g = 0; g < problem->group_count; g++) {
            if (device_of_group[g] == d) bytes += pen_problem_bytes(problem, g, d);
        }
        if (bytes - given->devices[d].bytes_limit <= over) continue;
        over = bytes - given->devices[d].bytes_limit;
        held = bytes;
        worst = d;
    }
    char name[PEN_PROBLEM_NAME_BYTES];
    const char *nodes;
    PEN_TRY(blame_name(problem, device_of_group, worst, arena, &nodes));
    return pen_error(
        PEN_DOES_NOT_FIT,
        "%s: the smallest memory found is %.15g bytes on device %s, %.15g more than it "
        "has; the largest nodes there are %s",
        what, held, pen_problem_device_name(given, worst, name), over, nodes);
}

// Proofs first, since they tell what has to change: too little in all, or what is pinned to one.
pen_status pen_memory_blame(const pen_problem *problem, const char *what, pen_arena *arena) {
    char name[PEN_PROBLEM_NAME_BYTES];
    double need, room;
    uint32_t used, device;
    PEN_TRY(blame_sums(problem, arena, &need, &room, &used));
    if (need > room * (1.0 + PEN_PROBLEM_MEMORY_SLACK)) {
        return pen_error(PEN_DOES_NOT_FIT,
                         "%s: nothing fits, all nodes need %.15g bytes and the %u devices that may "
                         "be used have %.15g together",
                         what, need, used, room);
    }
    PEN_TRY(blame_pins(problem, arena, &device, &need));
    if (device != PEN_PROBLEM_ANY) {
        return pen_error(PEN_DOES_NOT_FIT,
                         "%s: nothing fits, the nodes pinned to device %s need %.15g bytes, it has "
                         "%.15g",
                         what, pen_problem_device_name(&problem->given, device, name), need,
                         problem->given.devices[device].bytes_limit);
    }
    for (uint32_t g = 0; g < problem->group_count; g++) {
        uint32_t d = 0;
        while (d < problem->given.device_count && !pen_problem_allows(problem, g, d))
            d++;
        if (d < problem->given.device_count) continue;
        return pen_error(PEN_DOES_NOT_FIT, "%s: none of the devices chosen can run node %s", what,
                         pen_problem_node_name(&problem->given,
                                               problem->members.ids[problem->members.first[g]],
                                               name));
    }
    return blame_nearest(problem, what, arena);
}
