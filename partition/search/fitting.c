// Groups one by one on every device that has room: pinned ones and large ones first or, where
// devices must have an order, along a topological order, so that a circle of devices shows as soon
// as it closes. Of unused devices that are alike only the first is tried.

#include "partition/search/fitting.h"

#include <stdlib.h>
#include <string.h>

#define FITTING_GROUP_LIMIT 1024 // also the depth of the search
#define FITTING_ORDERED_DEVICE_LIMIT 64

typedef struct fitting_search {
    const pen_problem *problem;
    uint32_t *order;           // [group_count]
    uint32_t *device_of_group; // [group_count] PEN_PROBLEM_ANY: not placed
    double *bytes;             // [device_count]
    uint32_t *group_total;     // [device_count]
    bool *is_pinned;           // [device_count] some group is pinned there
    uint64_t *leads_to;        // [group_count + 1][device_count] after so many groups, directly
    uint32_t used_count;
    uint64_t visits_left;
} fitting_search;

typedef struct fitting_item {
    double bytes;
    uint32_t group;
    bool is_pinned;
} fitting_item;

static int fitting_compare(const void *left, const void *right) {
    const fitting_item *a = left, *b = right;
    if (a->is_pinned != b->is_pinned) return a->is_pinned ? -1 : 1;
    if (a->bytes != b->bytes) return a->bytes > b->bytes ? -1 : 1;
    return a->group < b->group ? -1 : a->group > b->group;
}

static pen_status fitting_order_by_bytes(fitting_search *search, pen_arena *arena) {
    const pen_problem *problem = search->problem;
    fitting_item *items;
    PEN_TRY(PEN_NEW(arena, problem->group_count, &items));
    for (uint32_t g = 0; g < problem->group_count; g++) {
        const bool is_pinned = problem->group_pin[g] != PEN_PROBLEM_ANY;
        items[g] = (fitting_item){pen_problem_bytes(problem, g, 0), g, is_pinned};
    }
    if (problem->group_count > 1) {
        qsort(items, problem->group_count, sizeof *items, fitting_compare);
    }
    for (uint32_t i = 0; i < problem->group_count; i++)
        search->order[i] = items[i].group;
    return PEN_OK;
}

static pen_status fitting_order_topologically(fitting_search *search, pen_arena *arena) {
    const pen_problem *problem = search->problem;
    uint32_t *waits, filled = 0;
    PEN_TRY(PEN_NEW(arena, problem->group_count, &waits));
    for (uint32_t g = 0; g < problem->group_count; g++) {
        waits[g] = problem->before.first[g + 1] - problem->before.first[g];
        if (waits[g] == 0) search->order[filled++] = g;
    }
    for (uint32_t i = 0; i < filled; i++) {
        const uint32_t g = search->order[i];
        for (uint32_t e = problem->after.first[g]; e < problem->after.first[g + 1]; e++) {
            if (--waits[problem->after.ids[e]] == 0)
                search->order[filled++] = problem->after.ids[e];
        }
    }
    PEN_ASSERT(filled == problem->group_count);
    return PEN_OK;
}

// Whether an unused device like `device` comes before it.
static bool fitting_is_twin(const fitting_search *search, uint32_t device) {
    if (search->group_total[device] > 0 || search->is_pinned[device]) return false;
    const pen_problem_device *x = &search->problem->given.devices[device];
    for (uint32_t d = 0; d < device; d++) {
        const pen_problem_device *y = &search->problem->given.devices[d];
        if (search->group_total[d] == 0 && !search->is_pinned[d] && x->kind == y->kind &&
            x->slowness == y->slowness && x->bytes_limit == y->bytes_limit &&
            x->microbatches == y->microbatches) {
            return true;
        }
    }
    return false;
}

// Whether the devices that wait for `device` and those that it waits for have none in common.
static bool fitting_has_order(const fitting_search *search, const uint64_t *leads_to,
                              uint32_t device) {
    uint64_t reached = leads_to[device], grown = 0;
    while (grown != reached) {
        grown = reached;
        for (uint32_t d = 0; d < search->problem->given.device_count; d++) {
            if (grown >> d & 1) reached |= leads_to[d];
        }
    }
    return (reached >> device & 1) == 0;
}

// Notes which devices lead to that of the group at place `i`; false when they go round in a circle.
static bool fitting_link(fitting_search *search, uint32_t i, uint32_t device) {
    const pen_problem *problem = search->problem;
    const uint32_t device_count = problem->given.device_count, group = search->order[i];
    if (!problem->given.is_contiguous) return true;
    const uint64_t *before = search->leads_to + (size_t)i * device_count;
    uint64_t *after = search->leads_to + (size_t)(i + 1) * device_count;
    memcpy(after, before, device_count * sizeof *after);
    for (uint32_t e = problem->before.first[group]; e < problem->before.first[group + 1]; e++) {
        const uint32_t there = search->device_of_group[problem->before.ids[e]];
        if (there != device) after[there] |= (uint64_t)1 << device;
    }
    return fitting_has_order(search, after, device);
}

// Whether the count of devices used may end within its bounds.
static bool fitting_may_use(const fitting_search *search, uint32_t placed) {
    const pen_problem_given *given = &search->problem->given;
    if (given->devices_used_maximum > 0 && search->used_count > given->devices_used_maximum) {
        return false;
    }
    return search->used_count + (search->problem->group_count - placed) >=
           given->devices_used_minimum;
}

// Depth first with a limited number of visits. Devices that are alike are tried once, and what
// cannot succeed any more is cut.
static bool fitting_visit(fitting_search *search, uint32_t i) {
    const pen_problem *problem = search->problem;
    if (i == problem->group_count) return true;
    const uint32_t group = search->order[i];
    for (uint32_t d = 0; d < problem->given.device_count; d++) {
        const double bytes = pen_problem_bytes(problem, group, d);
        if (search->visits_left == 0) return false;
        if (!pen_problem_allows(problem, group, d) || fitting_is_twin(search, d) ||
            search->bytes[d] + bytes > pen_problem_bytes_limit(problem, d)) {
            continue;
        }
        search->visits_left -= 1;
        const double bytes_before = search->bytes[d];
        search->device_of_group[group] = d;
        search->bytes[d] += bytes;
        search->used_count += search->group_total[d]++ == 0;
        if (fitting_may_use(search, i + 1) && fitting_link(search, i, d) &&
            fitting_visit(search, i + 1)) {
            return true;
        }
        search->bytes[d] = bytes_before;
        search->used_count -= --search->group_total[d] == 0;
    }
    return false;
}

// For small problems on which other ways found nothing that fits.
pen_status pen_fitting_find(const pen_problem *problem, uint64_t visit_limit, pen_arena *arena,
                            uint32_t *device_of_group, pen_fitting *out_fitting) {
    fitting_search search = {.problem = problem, .visits_left = visit_limit};
    const uint32_t group_count = problem->group_count;
    const uint32_t device_count = problem->given.device_count;
    *out_fitting = (pen_fitting){0};
    if (group_count > FITTING_GROUP_LIMIT ||
        (problem->given.is_contiguous && device_count > FITTING_ORDERED_DEVICE_LIMIT)) {
        return PEN_OK;
    }
    PEN_TRY(PEN_NEW(arena, group_count, &search.order));
    PEN_TRY(PEN_NEW(arena, group_count, &search.device_of_group));
    PEN_TRY(PEN_NEW(arena, device_count, &search.bytes));
    PEN_TRY(PEN_NEW(arena, device_count, &search.group_total));
    PEN_TRY(PEN_NEW(arena, device_count, &search.is_pinned));
    if (problem->given.is_contiguous) {
        PEN_TRY(PEN_NEW(arena, (size_t)(group_count + 1) * device_count, &search.leads_to));
        PEN_TRY(fitting_order_topologically(&search, arena));
    } else {
        PEN_TRY(fitting_order_by_bytes(&search, arena));
    }
    for (uint32_t g = 0; g < group_count; g++) {
        if (problem->group_pin[g] != PEN_PROBLEM_ANY)
            search.is_pinned[problem->group_pin[g]] = true;
    }
    out_fitting->is_found = fitting_visit(&search, 0);
    out_fitting->is_complete = out_fitting->is_found || search.visits_left > 0;
    if (out_fitting->is_found && group_count > 0) {
        memcpy(device_of_group, search.device_of_group, group_count * sizeof *device_of_group);
    }
    return PEN_OK;
}
