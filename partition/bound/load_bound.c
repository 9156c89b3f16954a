#include "partition/bound/load_bound.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "partition/problem/device_classes.h"

static double load_bound_compute(const pen_problem *problem, const pen_device_class *class,
                                 uint32_t g) {
    return problem->group_compute[(size_t) class->kind * problem->group_count + g] *
           class->slowness;
}

// A group in a problem with two classes of devices: cost on each.
typedef struct load_bound_item {
    double first;
    double second;
} load_bound_item;

// What the first class needs for each unit of the second; what costs nothing there comes first.
static double load_bound_rate(const load_bound_item *item) {
    return item->second > 0.0 ? item->first / item->second : INFINITY;
}

// Those that the second class takes at the best rate come first.
static int load_bound_compare(const void *left, const void *right) {
    const double x = load_bound_rate(left), y = load_bound_rate(right);
    return x > y ? -1 : x < y;
}

// Whether divisible groups fit below `load` on the devices of two classes: the second class is
// filled with what it takes at the best rate.
static bool load_bound_two_fit(const load_bound_item *items, uint32_t count,
                               const pen_device_classes *classes, double load) {
    double room = load * classes->classes[1].device_count;
    double left = 0.0; // for the first class
    for (uint32_t i = 0; i < count; i++) {
        double part = 1.0; // that the second class takes
        if (items[i].second > 0.0 && items[i].second > room) {
            part = fmax(room, 0.0) / items[i].second; // rounding may leave less than no room
        }
        if (items[i].first >= PEN_PROBLEM_COST_LIMIT && part < 1.0) return false;
        if (items[i].second < PEN_PROBLEM_COST_LIMIT) room -= part * items[i].second;
        if (part < 1.0) left += (1.0 - part) * items[i].first;
    }
    return left <= load * classes->classes[0].device_count;
}

// With two classes of devices the relaxed problem is a knapsack: sorted by how much each class is
// better at a group, it is solved exactly, and the bound found by halving.
static pen_status load_bound_two(const pen_problem *problem, const pen_device_classes *classes,
                                 double high, pen_arena *arena, double *out_bound) {
    load_bound_item *items;
    double low = 0.0;
    PEN_TRY(PEN_NEW(arena, problem->group_count, &items));
    for (uint32_t g = 0; g < problem->group_count; g++) {
        items[g].first = load_bound_compute(problem, &classes->classes[0], g);
        items[g].second = load_bound_compute(problem, &classes->classes[1], g);
    }
    if (problem->group_count > 1) {
        qsort(items, problem->group_count, sizeof *items, load_bound_compare);
    }
    // `low` never fits, so it is a bound whatever rounding did to `high`
    for (int i = 0; i < 60; i++) {
        const double middle = (low + high) / 2.0;
        if (load_bound_two_fit(items, problem->group_count, classes, middle)) {
            high = middle;
        } else {
            low = middle;
        }
    }
    *out_bound = low;
    return PEN_OK;
}

// ---- any number of classes, with memory
//
// Whatever a placement is, for each class c of n devices with memory M, largest load L, and all
// groups g there: Σ compute <= L · n and Σ bytes <= n · M. Weighing the inequalities of all classes
// by any time[c] >= 0 and room[c] >= 0 and adding them up gives
//     L · Σ time[c] · n >= Σ over g of min over c (time[c] · compute + room[c] · bytes)
//                          - Σ room[c] · n · M
// since a group is somewhere. So all weights give a bound; good ones are climbed to.

typedef struct load_bound_dual {
    const pen_problem *problem;
    const pen_device_classes *classes;
    double *time;    // [class_count] scaled so that Σ time · n is 1
    double *room;    // [class_count]
    double *compute; // [class_count] Σ of the groups that are cheapest there
    double *bytes;   // [class_count] likewise
} load_bound_dual;

static void load_bound_scale(load_bound_dual *dual) {
    double total = 0.0;
    for (uint32_t c = 0; c < dual->classes->class_count; c++)
        total += dual->time[c] * dual->classes->classes[c].device_count;
    for (uint32_t c = 0; c < dual->classes->class_count; c++)
        dual->time[c] /= total;
}

// The bound of the weights at hand; fills compute and bytes. A group that can run nowhere is an
// error of whoever built the problem, not ours.
static double load_bound_weigh(load_bound_dual *dual) {
    const pen_problem *problem = dual->problem;
    const uint32_t class_count = dual->classes->class_count;
    double bound = 0.0;
    memset(dual->compute, 0, class_count * sizeof *dual->compute);
    memset(dual->bytes, 0, class_count * sizeof *dual->bytes);
    for (uint32_t g = 0; g < problem->group_count; g++) {
        double least = INFINITY;
        uint32_t cheapest = 0;
        for (uint32_t c = 0; c < class_count; c++) {
            const pen_device_class *class = &dual->classes->classes[c];
            const uint32_t device = class->devices[0];
            if (!pen_problem_allows(problem, g, device)) continue;
            const double weight = dual->time[c] * load_bound_compute(problem, class, g) +
                                  dual->room[c] * pen_problem_bytes(problem, g, device);
            if (weight >= least) continue;
            least = weight;
            cheapest = c;
        }
        if (!(least < INFINITY)) continue;
        const pen_device_class *class = &dual->classes->classes[cheapest];
        bound += least;
        dual->compute[cheapest] += load_bound_compute(problem, class, g);
        dual->bytes[cheapest] += pen_problem_bytes(problem, g, class->devices[0]);
    }
    for (uint32_t c = 0; c < class_count; c++) {
        const pen_device_class *class = &dual->classes->classes[c];
        if (dual->room[c] > 0.0) bound -= dual->room[c] * class->device_count * class->bytes_limit;
    }
    return bound;
}

// Weighs classes more that are asked for too much.
static void load_bound_climb(load_bound_dual *dual, double bound, double stride) {
    for (uint32_t c = 0; c < dual->classes->class_count; c++) {
        const pen_device_class *class = &dual->classes->classes[c];
        const double excess = dual->compute[c] / class->device_count / bound - 1.0;
        dual->time[c] *= exp(stride * fmax(-1.0, fmin(1.0, excess)));
        const double memory = class->bytes_limit * class->device_count;
        if (!(memory > 0.0 && memory < INFINITY)) continue;
        const double over = fmax(-1.0, fmin(1.0, dual->bytes[c] / memory - 1.0));
        dual->room[c] = fmax(0.0, dual->room[c] + stride * over * bound / memory);
    }
    load_bound_scale(dual);
}

#define LOAD_BOUND_ROUNDS 160
#define LOAD_BOUND_WORK 1500000.0 // groups times classes over all rounds: milliseconds

// Weights of the classes' times make a linear relaxation; any weights give a bound, and climbing
// finds better ones.
static pen_status load_bound_classes(const pen_problem *problem, const pen_device_classes *classes,
                                     const double *ratio, pen_arena *arena, double *io_bound) {
    load_bound_dual dual = {.problem = problem, .classes = classes};
    const double work = (double)problem->group_count * classes->class_count;
    const double rounds = fmin(LOAD_BOUND_ROUNDS, LOAD_BOUND_WORK / (work + 1.0));
    if (classes->class_count < 2 || !(*io_bound > 0.0)) return PEN_OK;
    PEN_TRY(PEN_NEW(arena, classes->class_count, &dual.time));
    PEN_TRY(PEN_NEW(arena, classes->class_count, &dual.room));
    PEN_TRY(PEN_NEW(arena, classes->class_count, &dual.compute));
    PEN_TRY(PEN_NEW(arena, classes->class_count, &dual.bytes));
    for (uint32_t c = 0; c < classes->class_count; c++) {
        dual.time[c] = ratio[c] < INFINITY ? fmax(1.0 / ratio[c], 1e-6) : 1.0;
    }
    load_bound_scale(&dual);
    for (int i = 0; i < (int)rounds; i++) {
        const double bound = load_bound_weigh(&dual);
        *io_bound = fmax(*io_bound, bound * (1.0 - 1e-9)); // for rounding
        load_bound_climb(&dual, *io_bound, 0.5 / (1.0 + 0.1 * i));
    }
    return PEN_OK;
}

// ---- each class at its best

// What the devices do together in a unit of time, of what costs 1 where it is cheapest.
static double load_bound_capacity(const pen_problem *problem, const pen_device_classes *classes,
                                  const double *ratio) {
    const uint32_t most = problem->given.devices_used_maximum;
    uint32_t left = most > 0 ? most : problem->given.device_count;
    double last = 0.0; // ratio of the class before
    double capacity = 0.0;
    while (left > 0) { // classes in ascending order of ratio; equal ones together
        double next = INFINITY;
        uint32_t count = 0;
        for (uint32_t c = 0; c < classes->class_count; c++) {
            if (ratio[c] > last && ratio[c] < next) next = ratio[c];
        }
        if (next == INFINITY) break;
        for (uint32_t c = 0; c < classes->class_count; c++) {
            if (ratio[c] == next) count += classes->classes[c].device_count;
        }
        if (count > left) count = left;
        capacity += count / next;
        left -= count;
        last = next;
    }
    return capacity;
}

// The largest of several bounds: all work shared out evenly by speed, two classes solved exactly,
// the hardest group alone, and the relaxation with weights.
pen_status pen_load_bound(const pen_problem *problem, pen_arena *arena, double *out_bound) {
    pen_device_classes *classes;
    double *ratio; // of each class: least cost there for each unit of the cheapest
    double total = 0.0, hardest = 0.0;
    PEN_TRY(pen_device_classes_new(problem, 0, arena, &classes));
    PEN_TRY(PEN_NEW(arena, classes->class_count, &ratio));
    for (uint32_t c = 0; c < classes->class_count; c++)
        ratio[c] = INFINITY;
    for (uint32_t g = 0; g < problem->group_count; g++) {
        double least = INFINITY, least_allowed = INFINITY;
        for (uint32_t c = 0; c < classes->class_count; c++) {
            const pen_device_class *class = &classes->classes[c];
            const uint32_t device = class->devices[0];
            const double cost = load_bound_compute(problem, class, g);
            least = fmin(least, cost);
            if (pen_problem_allows(problem, g, device) &&
                pen_problem_bytes(problem, g, device) <= class->bytes_limit) {
                least_allowed = fmin(least_allowed, cost);
            }
        }
        for (uint32_t c = 0; c < classes->class_count && least > 0.0; c++) {
            const double cost = load_bound_compute(problem, &classes->classes[c], g);
            ratio[c] = fmin(ratio[c], cost / least);
        }
        total += least;
        hardest = fmax(hardest, least_allowed);
    }
    const double capacity = load_bound_capacity(problem, classes, ratio);
    double bound = capacity > 0.0 ? total / capacity : 0.0;
    if (classes->class_count == 2) {
        double two;
        PEN_TRY(load_bound_two(problem, classes, total, arena, &two));
        bound = fmax(bound, two);
    }
    bound = fmax(bound, hardest);
    PEN_TRY(load_bound_classes(problem, classes, ratio, arena, &bound));
    *out_bound = bound;
    return PEN_OK;
}
