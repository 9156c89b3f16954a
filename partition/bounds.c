#include "partition/bounds.h"

#include <math.h>
#include <stdlib.h>

#include "partition/device_classes.h"

static double bound_compute(const pen_problem *problem, const pen_device_class *class, uint32_t g) {
    return problem->group_compute[(size_t) class->kind * problem->group_count + g] *
           class->slowness;
}

// A group in a problem with two classes of devices: cost on each.
typedef struct bound_item {
    double first;
    double second;
} bound_item;

// Those that the second class takes at the best rate come first.
static int bound_compare(const void *left, const void *right) {
    const bound_item *a = left, *b = right;
    const double x = a->first * b->second, y = b->first * a->second;
    if (isnan(x) || isnan(y)) return 0;
    return x > y ? -1 : x < y;
}

// Whether divisible groups fit below `load` on the devices of two classes: the second class is
// filled with what it takes at the best rate.
static bool bound_two_fit(const bound_item *items, uint32_t count,
                          const pen_device_classes *classes, double load) {
    double room = load * classes->classes[1].device_count;
    double left = 0.0; // for the first class
    for (uint32_t i = 0; i < count; i++) {
        double part = 1.0; // that the second class takes
        if (items[i].second > room) part = room / items[i].second;
        if (items[i].first >= PEN_PROBLEM_COST_LIMIT && part < 1.0) return false;
        if (items[i].second < PEN_PROBLEM_COST_LIMIT) room -= part * items[i].second;
        if (part < 1.0) left += (1.0 - part) * items[i].first;
    }
    return left <= load * classes->classes[0].device_count;
}

static pen_status bound_two(const pen_problem *problem, const pen_device_classes *classes,
                            double high, pen_arena *arena, double *out_bound) {
    bound_item *items;
    double low = 0.0;
    PEN_TRY(PEN_NEW(arena, problem->group_count, &items));
    for (uint32_t g = 0; g < problem->group_count; g++) {
        items[g].first = bound_compute(problem, &classes->classes[0], g);
        items[g].second = bound_compute(problem, &classes->classes[1], g);
    }
    if (problem->group_count > 1) {
        qsort(items, problem->group_count, sizeof *items, bound_compare);
    }
    // `low` never fits, so it is a bound whatever rounding did to `high`
    for (int i = 0; i < 60; i++) {
        const double middle = (low + high) / 2.0;
        if (bound_two_fit(items, problem->group_count, classes, middle)) {
            high = middle;
        } else {
            low = middle;
        }
    }
    *out_bound = low;
    return PEN_OK;
}

static pen_status bound_throughput(const pen_problem *problem, pen_arena *arena,
                                   double *out_bound) {
    pen_device_classes *classes;
    double *ratio; // of each class: least cost there for each unit of the cheapest
    double total = 0.0, hardest = 0.0, capacity = 0.0;
    PEN_TRY(pen_device_classes_new(problem, 0, arena, &classes));
    PEN_TRY(PEN_NEW(arena, classes->class_count, &ratio));
    for (uint32_t c = 0; c < classes->class_count; c++)
        ratio[c] = INFINITY;
    for (uint32_t g = 0; g < problem->group_count; g++) {
        double least = INFINITY, least_allowed = INFINITY;
        for (uint32_t c = 0; c < classes->class_count; c++) {
            const pen_device_class *class = &classes->classes[c];
            const double cost = bound_compute(problem, class, g);
            least = fmin(least, cost);
            if (pen_problem_allows(problem, g, class->devices[0]) &&
                pen_problem_bytes(problem, g, class->devices[0]) <= class->bytes_limit) {
                least_allowed = fmin(least_allowed, cost);
            }
        }
        for (uint32_t c = 0; c < classes->class_count && least > 0.0; c++) {
            ratio[c] = fmin(ratio[c], bound_compute(problem, &classes->classes[c], g) / least);
        }
        total += least;
        hardest = fmax(hardest, least_allowed);
    }
    for (uint32_t c = 0; c < classes->class_count; c++) {
        capacity += classes->classes[c].device_count / ratio[c];
    }
    double bound = capacity > 0.0 ? total / capacity : 0.0;
    if (classes->class_count == 2) {
        double two;
        PEN_TRY(bound_two(problem, classes, total, arena, &two));
        bound = fmax(bound, two);
    }
    *out_bound = fmax(bound, hardest);
    return PEN_OK;
}

static pen_status bound_latency(const pen_problem *problem, pen_arena *arena, double *out_bound) {
    const pen_problem_given *given = &problem->given;
    double *finish, longest = 0.0;
    PEN_TRY(PEN_NEW(arena, given->node_count, &finish));
    for (uint32_t i = 0; i < given->node_count; i++) {
        const uint32_t v = problem->node_order[i];
        double least = INFINITY, ready = 0.0;
        for (uint32_t d = 0; d < given->device_count; d++) {
            const uint64_t row = (uint64_t)given->devices[d].kind * given->node_count;
            least = fmin(least, given->compute[row + v] * given->devices[d].slowness);
        }
        for (uint32_t e = problem->predecessors.first[v]; e < problem->predecessors.first[v + 1];
             e++) {
            ready = fmax(ready, finish[problem->predecessors.ids[e]]);
        }
        finish[v] = ready + least;
        longest = fmax(longest, finish[v]);
    }
    *out_bound = longest;
    return PEN_OK;
}

pen_status pen_bound(const pen_problem *problem, pen_arena *arena, double *out_bound) {
    switch (problem->given.objective) {
    case PEN_OBJECTIVE_THROUGHPUT:
        return bound_throughput(problem, arena, out_bound);
    case PEN_OBJECTIVE_LATENCY:
        return bound_latency(problem, arena, out_bound);
    case PEN_OBJECTIVE_STEP_TIME:
    case PEN_OBJECTIVE_TRAFFIC:
        *out_bound = 0.0;
        return PEN_OK;
    }
    PEN_NEVER("an objective is one of the enum");
}
