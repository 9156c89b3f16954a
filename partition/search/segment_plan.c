// Over sets I and states s (which devices are in use), with S = J \ I:
//     best[J][s + class] = min over I ⊂ J of max(best[I][s], load of S on the class)
// For each I the sets J are visited depth first along links, growing S by one group at a time; a
// branch ends when the part of the load that no growth takes away reaches the limit. Pairs are
// never stored. A state is dropped when what is left to place exceeds what its free devices could
// take below the limit.

#include "partition/search/segment_plan.h"

#include <math.h>

#include "base/clock.h"
#include "partition/objective/segment_load.h"

#define PLAN_CLOSE_SECONDS 100e-9 // nominal time of a segment that is weighed: this,
#define PLAN_STATE_SECONDS 8e-9   // and this for each state it may follow

// How the best value of a set and state came about.
typedef struct plan_step {
    uint32_t set;
    uint32_t state;
    uint32_t class;
} plan_step;

typedef struct plan_frame {
    uint32_t set;
    uint32_t link; // next one to try
} plan_frame;

typedef struct plan_search {
    const pen_problem *problem;
    const pen_device_classes *classes;
    const pen_down_sets *sets;
    pen_segment_load *segment;
    double limit;
    bool is_sum;         // latency
    bool repeats;        // as pen_segment_plan_options.repeats_parallel
    double *best;        // [set][state]
    plan_step *step;     // [set][state]
    double *rest;        // [set] least compute cost of what is not in the set
    double *capacity;    // [state] how much of that its free devices take below the limit
    uint32_t *seen_from; // [set] 1 + the set it was last reached from
    plan_frame *stack;   // [group_count + 1]
    uint32_t *active;    // [state] states of the set at hand that are worth going on from
    uint32_t active_count;
    uint32_t prefix;       // the set that the segment's prefix is
    uint32_t *path;        // [group_count] scratch
    uint64_t closed_count; // segments weighed
} plan_search;

// The least that group g costs anywhere.
static double plan_base_cost(const plan_search *search, uint32_t g) {
    double least = INFINITY;
    for (uint32_t c = 0; c < search->classes->class_count; c++) {
        const pen_device_class *class = &search->classes->classes[c];
        const double cost =
            search->problem
                ->group_compute[(size_t) class->kind * search->problem->group_count + g] *
            class->slowness;
        if (cost < least) least = cost;
    }
    return least;
}

// A lower bound for what is left in each set, and what the devices left can take: together they cut
// most of the search.
static pen_status plan_weigh_rest(plan_search *search, pen_arena *arena) {
    const pen_problem *problem = search->problem;
    const pen_device_classes *classes = search->classes;
    double *base, *ratio; // of each class: least cost there for each unit of base cost
    double total = 0.0;
    PEN_TRY(PEN_NEW(arena, problem->group_count, &base));
    PEN_TRY(PEN_NEW(arena, classes->class_count, &ratio));
    for (uint32_t c = 0; c < classes->class_count; c++)
        ratio[c] = INFINITY;
    for (uint32_t g = 0; g < problem->group_count; g++) {
        base[g] = plan_base_cost(search, g);
        total += base[g];
        for (uint32_t c = 0; c < classes->class_count; c++) {
            const pen_device_class *class = &classes->classes[c];
            const double cost =
                problem->group_compute[(size_t) class->kind * problem->group_count + g] *
                class->slowness;
            if (base[g] > 0.0) ratio[c] = fmin(ratio[c], cost / base[g]);
        }
    }
    for (uint32_t s = 0; s < search->sets->count; s++) {
        search->rest[s] =
            s == 0 ? total : search->rest[search->sets->parent[s]] - base[search->sets->last[s]];
    }
    for (uint32_t s = 0; s < classes->state_count; s++) {
        double capacity = 1e-9 * total;
        uint32_t radix_left = s;
        for (uint32_t c = 0; c < classes->class_count && !classes->is_sequence; c++) {
            const uint32_t radix = classes->classes[c].device_count + 1;
            capacity += (radix - 1 - radix_left % radix) / ratio[c] * search->limit;
            radix_left /= radix;
        }
        for (uint32_t i = s; classes->is_sequence && i + 1 < classes->state_count; i++) {
            capacity += search->limit / ratio[classes->class_of_device[classes->sequence[i]]];
        }
        search->capacity[s] = search->is_sum || isnan(capacity) ? INFINITY : capacity;
    }
    return PEN_OK;
}

// Makes set `target` the prefix.
static void plan_move_prefix(plan_search *search, uint32_t target) {
    const pen_down_sets *sets = search->sets;
    uint32_t here = search->prefix, there = target, depth = 0;
    while (here != there) {
        if (sets->size[here] >= sets->size[there]) {
            pen_segment_load_retreat(search->segment, sets->last[here]);
            here = sets->parent[here];
        } else {
            search->path[depth++] = sets->last[there];
            there = sets->parent[there];
        }
    }
    while (depth > 0)
        pen_segment_load_advance(search->segment, search->path[--depth]);
    search->prefix = target;
}

// Ends the segment at set `target`, reached from `source`.
static void plan_close(plan_search *search, uint32_t source, uint32_t target) {
    const pen_device_classes *classes = search->classes;
    const size_t state_count = classes->state_count;
    for (uint32_t c = 0; c < classes->class_count; c++) {
        const pen_device_class *class = &classes->classes[c];
        if (!pen_segment_load_allows(search->segment, class)) continue;
        if (!pen_segment_load_fits(search->segment, class)) continue;
        const double load = pen_segment_load_on(search->segment, class);
        if (load >= search->limit) continue;
        for (uint32_t i = 0; i < search->active_count; i++) {
            const uint32_t state = search->active[i];
            const double before = search->best[source * state_count + state];
            uint32_t next = classes->next[(size_t)state * classes->class_count + c];
            double value = before > load ? before : load;
            if (search->is_sum) {
                value = before + load;
                if (class->is_parallel && search->repeats) next = state;
            }
            if (next == PEN_DEVICE_STATE_NONE) continue;
            double *best = &search->best[target * state_count + next];
            if (value >= *best || search->rest[target] > search->capacity[next]) continue;
            *best = value;
            search->step[target * state_count + next] = (plan_step){source, state, c};
        }
    }
}

// Whether a larger segment could still be below the limit.
static bool plan_may_grow(const plan_search *search) {
    for (uint32_t c = 0; c < search->classes->class_count; c++) {
        const pen_device_class *class = &search->classes->classes[c];
        if (pen_segment_load_allows(search->segment, class) &&
            pen_segment_load_fits(search->segment, class) &&
            pen_segment_load_bound(search->segment, class) < search->limit) {
            return true;
        }
    }
    return false;
}

// A segment grows group by group as a path of down-sets; its load is kept up to date on the way
// there and back.
static void plan_grow(plan_search *search, uint32_t source) {
    const pen_down_sets *sets = search->sets;
    uint32_t depth = 0;
    search->stack[0] = (plan_frame){source, sets->link_first[source]};
    for (;;) {
        plan_frame *frame = &search->stack[depth];
        if (frame->link == sets->link_first[frame->set + 1]) {
            if (depth == 0) return;
            depth--;
            pen_segment_load_remove(search->segment,
                                    sets->link_group[search->stack[depth].link - 1]);
            continue;
        }
        const uint32_t link = frame->link++;
        const uint32_t target = sets->link_target[link];
        if (search->seen_from[target] == source + 1) continue;
        search->seen_from[target] = source + 1;
        pen_segment_load_add(search->segment, sets->link_group[link]);
        plan_close(search, source, target);
        search->closed_count += 1;
        if (plan_may_grow(search)) {
            search->stack[++depth] = (plan_frame){target, sets->link_first[target]};
        } else {
            pen_segment_load_remove(search->segment, sets->link_group[link]);
        }
    }
}

static void plan_choose_active(plan_search *search, uint32_t set) {
    const pen_device_classes *classes = search->classes;
    double *best = search->best + (size_t)set * classes->state_count;
    search->active_count = 0;
    for (uint32_t s = 0; s < classes->state_count; s++) {
        if (classes->is_sequence && s > 0 && best[s - 1] < best[s]) { // leave a device out
            best[s] = best[s - 1];
            search->step[(size_t)set * classes->state_count + s] =
                (plan_step){set, s - 1, PEN_DEVICE_STATE_NONE};
        }
        if (best[s] < search->limit && search->rest[set] <= search->capacity[s]) {
            search->active[search->active_count++] = s;
        }
    }
}

static pen_status plan_begin(plan_search *search, pen_arena *arena) {
    const size_t state_count = search->classes->state_count;
    const size_t cells = search->sets->count * state_count;
    PEN_TRY(pen_segment_load_new(search->problem, arena, &search->segment));
    PEN_TRY(PEN_NEW(arena, cells, &search->best));
    PEN_TRY(PEN_NEW(arena, cells, &search->step));
    PEN_TRY(PEN_NEW(arena, search->sets->count, &search->rest));
    PEN_TRY(PEN_NEW(arena, search->sets->count, &search->seen_from));
    PEN_TRY(PEN_NEW(arena, state_count, &search->capacity));
    PEN_TRY(PEN_NEW(arena, state_count, &search->active));
    PEN_TRY(PEN_NEW(arena, (size_t)search->problem->group_count + 1, &search->stack));
    PEN_TRY(PEN_NEW(arena, search->problem->group_count, &search->path));
    for (size_t i = 0; i < cells; i++)
        search->best[i] = INFINITY;
    search->best[0] = 0.0;
    return plan_weigh_rest(search, arena);
}

// Follows the steps back from the whole.
static void plan_read(const plan_search *search, uint32_t state, uint32_t *out_device_of_group) {
    const pen_down_sets *sets = search->sets;
    const pen_device_classes *classes = search->classes;
    for (uint32_t g = 0; g < search->problem->group_count; g++) {
        out_device_of_group[g] = PEN_PROBLEM_ANY;
    }
    uint32_t set = sets->count - 1;
    while (set != 0) {
        const plan_step step = search->step[(size_t)set * classes->state_count + state];
        if (step.class == PEN_DEVICE_STATE_NONE) {
            state = step.state;
            continue;
        }
        const pen_device_class *class = &classes->classes[step.class];
        uint32_t device;
        if (classes->is_sequence) {
            device = search->repeats && class->is_parallel ? class->devices[0]
                                                           : classes->sequence[step.state];
        } else {
            uint32_t used = step.state; // of this class, before the step
            for (uint32_t c = 0; c < step.class; c++)
                used /= classes->classes[c].device_count + 1;
            used %= class->device_count + 1;
            device = class->devices[used < class->device_count ? used : 0];
        }
        // what is in `set` and not in step.set: all of set, then those of step.set come later and
        // overwrite
        for (uint32_t s = set; s != 0; s = sets->parent[s])
            out_device_of_group[sets->last[s]] = device;
        set = step.set;
        state = step.state;
    }
}

// Dynamic programming over down-sets: the best way to place each, by the devices used up.
pen_status pen_segment_plan_find(const pen_problem *problem, const pen_device_classes *classes,
                                 const pen_down_sets *sets, const pen_segment_plan_options *options,
                                 pen_arena *arena, pen_segment_plan *out_plan) {
    plan_search search = {.problem = problem,
                          .classes = classes,
                          .sets = sets,
                          .limit = options->value_limit,
                          .is_sum = problem->given.objective == PEN_OBJECTIVE_LATENCY,
                          .repeats = options->repeats_parallel &&
                                     problem->given.objective == PEN_OBJECTIVE_LATENCY};
    PEN_TRY(plan_begin(&search, arena));
    pen_segment_plan plan = {.is_finished = true, .value = INFINITY};
    for (uint32_t set = 0; set + 1 < sets->count; set++) {
        plan_choose_active(&search, set);
        if (search.active_count == 0) continue;
        const bool is_late =
            options->deadline < INFINITY && (pen_clock_seconds() > options->deadline ||
                                             (options->work != NULL && *options->work <= 0.0));
        if (is_late) {
            plan.is_finished = false;
            break;
        }
        plan_move_prefix(&search, set);
        const uint64_t closed_before = search.closed_count;
        plan_grow(&search, set);
        if (options->work != NULL) {
            *options->work -= (double)(search.closed_count - closed_before) *
                              (PLAN_CLOSE_SECONDS + PLAN_STATE_SECONDS * search.active_count);
        }
    }
    uint32_t state_best = 0;
    const double *last = search.best + (size_t)(sets->count - 1) * classes->state_count;
    for (uint32_t s = 0; s < classes->state_count; s++) {
        if (last[s] >= plan.value) continue;
        plan.value = last[s];
        state_best = s;
    }
    if (plan.value < options->value_limit) {
        plan.is_found = true;
        PEN_TRY(PEN_NEW(arena, problem->group_count, &plan.device_of_group));
        plan_read(&search, state_best, plan.device_of_group);
    }
    *out_plan = plan;
    return PEN_OK;
}
