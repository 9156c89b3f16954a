// A stretch of the line on a device of class c is worth
//     work · ratio_c - cut,
// work being what its groups cost where they are cheapest, ratio_c the least factor by which class
// c is dearer, and cut the transfers that the next device will pay for this end. All is time of the
// device, so limit - worth is what it wastes. Of the classes with devices left the one that wastes
// least takes its best stretch.

#include "partition/search/line_fill.h"

#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "base/random.h"
#include "partition/objective/segment_load.h"

#define LINE_FILL_CANDIDATES 12 // classes that are looked at for a stretch
#define LINE_FILL_HALVINGS_LIMIT 60
#define LINE_FILL_SHARE 1e-3 // of the limit found, for bounds that are hardly above 0
#define LINE_FILL_STEP_FIRST 0.01
#define LINE_FILL_STEP_LEAST 1e-9 // where the bound is 0
#define LINE_FILL_STEP_FACTOR 2.0
#define LINE_FILL_STEPS_LIMIT 130
#define LINE_FILL_LUCK 0.03

// A class that may take the next stretch.
typedef struct line_candidate {
    uint32_t class;
    bool is_done; // no longer stretch is possible
    uint32_t end; // of the best stretch, or its begin
    double worth;
    double load;
} line_candidate;

typedef struct line_fill {
    const pen_problem *problem;
    const pen_device_classes *classes;
    const uint32_t *line;
    pen_segment_load *segment;
    double *work;  // [group_count] least cost anywhere
    double *ratio; // [class_count]
    double limit;
    pen_random_key key;
    uint64_t thrown;
    uint32_t *used;         // [class_count] devices
    uint32_t *device_of_at; // [group_count] along the line
    double worst;
    line_candidate candidates[LINE_FILL_CANDIDATES];
    uint32_t candidate_count;
} line_fill;

// What a group costs at least on any device, for a guess at how far the line still has to be
// filled.
static pen_status line_fill_weigh(line_fill *fill, pen_arena *arena) {
    const pen_problem *problem = fill->problem;
    const pen_device_classes *classes = fill->classes;
    PEN_TRY(PEN_NEW(arena, problem->group_count, &fill->work));
    PEN_TRY(PEN_NEW(arena, classes->class_count, &fill->ratio));
    double *slowness; // [kind_count] least of the devices of a kind
    PEN_TRY(PEN_NEW(arena, problem->given.kind_count, &slowness));
    for (uint32_t k = 0; k < problem->given.kind_count; k++)
        slowness[k] = INFINITY;
    for (uint32_t c = 0; c < classes->class_count; c++) {
        const pen_device_class *class = &classes->classes[c];
        slowness[class->kind] = fmin(slowness[class->kind], class->slowness);
    }
    double *ratio; // [kind_count]
    PEN_TRY(PEN_NEW(arena, problem->given.kind_count, &ratio));
    for (uint32_t k = 0; k < problem->given.kind_count; k++)
        ratio[k] = INFINITY;
    for (uint32_t g = 0; g < problem->group_count; g++) {
        double least = INFINITY;
        for (uint32_t k = 0; k < problem->given.kind_count; k++) {
            if (slowness[k] == INFINITY) continue;
            least = fmin(least, problem->group_compute[(size_t)k * problem->group_count + g] *
                                    slowness[k]);
        }
        fill->work[g] = least;
        for (uint32_t k = 0; k < problem->given.kind_count && least > 0.0; k++) {
            ratio[k] = fmin(ratio[k],
                            problem->group_compute[(size_t)k * problem->group_count + g] / least);
        }
    }
    for (uint32_t c = 0; c < classes->class_count; c++) {
        const pen_device_class *class = &classes->classes[c];
        fill->ratio[c] = ratio[class->kind] < PEN_PROBLEM_COST_LIMIT
                             ? ratio[class->kind] * class->slowness
                             : class->slowness;
    }
    return PEN_OK;
}

// What the devices need at least if groups could be divided: Σ work / Σ 1 / ratio.
static double line_fill_bound(const line_fill *fill) {
    double work = 0.0, capacity = 0.0;
    for (uint32_t g = 0; g < fill->problem->group_count; g++)
        work += fill->work[g];
    for (uint32_t c = 0; c < fill->classes->class_count; c++)
        capacity += fill->classes->classes[c].device_count / fill->ratio[c];
    return work < PEN_PROBLEM_COST_LIMIT && capacity > 0.0 ? work / capacity : 0.0;
}

static void line_fill_add_candidate(line_fill *fill, uint32_t class, uint32_t begin) {
    for (uint32_t i = 0; i < fill->candidate_count; i++) {
        if (fill->candidates[i].class == class) return;
    }
    if (fill->used[class] == fill->classes->classes[class].device_count) return;
    fill->candidates[fill->candidate_count++] =
        (line_candidate){.class = class, .end = begin, .worth = -INFINITY};
}

// The classes with most devices left, and the one that the next group is pinned to.
static void line_fill_choose_candidates(line_fill *fill, uint32_t begin) {
    const pen_device_classes *classes = fill->classes;
    const uint32_t pin = fill->problem->group_pin[fill->line[begin]];
    fill->candidate_count = 0;
    if (pin != PEN_PROBLEM_ANY) {
        line_fill_add_candidate(fill, classes->class_of_device[pin], begin);
        return;
    }
    uint32_t most = 0;
    for (uint32_t c = 0; c < classes->class_count; c++) {
        const uint32_t left = classes->classes[c].device_count - fill->used[c];
        most = left > most ? left : most;
    }
    // alike where there are very many classes: begin where luck says, so that all have their turn
    const uint32_t first =
        fill->key.seed == 0 || classes->class_count <= LINE_FILL_CANDIDATES
            ? 0
            : (uint32_t)pen_random_below(fill->key, fill->thrown++, classes->class_count);
    for (uint32_t left = most; left > 0; left /= 2) {
        for (uint32_t i = 0; i < classes->class_count; i++) {
            const uint32_t c = (first + i) % classes->class_count;
            if (fill->candidate_count == LINE_FILL_CANDIDATES) return;
            if (classes->classes[c].device_count - fill->used[c] < left) continue;
            line_fill_add_candidate(fill, c, begin);
        }
    }
}

// Lengthens the stretch until no candidate bears it, and notes the best end for each.
static void line_fill_scan(line_fill *fill, uint32_t begin) {
    pen_segment_load *segment = fill->segment;
    const uint32_t count = fill->problem->group_count;
    double work = 0.0;
    uint32_t end = begin, open = fill->candidate_count;
    while (end < count && open > 0) {
        work += fill->work[fill->line[end]];
        pen_segment_load_add(segment, fill->line[end++]);
        const double cut = end == count ? 0.0
                                        : segment->sent - segment->sent_fixed + segment->received -
                                              segment->received_fixed;
        for (uint32_t i = 0; i < fill->candidate_count; i++) {
            line_candidate *candidate = &fill->candidates[i];
            const pen_device_class *class = &fill->classes->classes[candidate->class];
            if (candidate->is_done) continue;
            if (!pen_segment_load_allows(segment, class) ||
                !pen_segment_load_fits(segment, class) ||
                pen_segment_load_bound(segment, class) > fill->limit) {
                candidate->is_done = true;
                open -= 1;
                continue;
            }
            const double load = pen_segment_load_on(segment, class);
            const double worth = work * fill->ratio[candidate->class] - cut;
            if (load > fill->limit || worth < candidate->worth) continue;
            candidate->worth = worth;
            candidate->end = end;
            candidate->load = load;
        }
    }
    while (end > begin)
        pen_segment_load_remove(segment, fill->line[--end]);
}

// The candidate that wastes least, or NULL.
static const line_candidate *line_fill_choose(line_fill *fill, uint32_t begin) {
    const line_candidate *best = NULL;
    double most = -INFINITY;
    for (uint32_t i = 0; i < fill->candidate_count; i++) {
        const line_candidate *candidate = &fill->candidates[i];
        if (candidate->end == begin) continue;
        double worth = candidate->worth;
        if (fill->key.seed != 0) {
            worth += LINE_FILL_LUCK * fill->limit *
                     (double)pen_random_uniform(fill->key, fill->thrown++);
        }
        // the last stretch goes to what is left that bears it
        if (candidate->end == fill->problem->group_count) worth += 2.0 * fill->limit;
        if (worth <= most) continue;
        most = worth;
        best = candidate;
    }
    return best;
}

// One pass. Whether all groups found a place below the limit.
static bool line_fill_pass(line_fill *fill, double limit) {
    const uint32_t count = fill->problem->group_count;
    uint32_t begin = 0;
    fill->limit = limit;
    fill->worst = 0.0;
    fill->thrown = 0;
    memset(fill->used, 0, fill->classes->class_count * sizeof *fill->used);
    while (begin < count) {
        line_fill_choose_candidates(fill, begin);
        line_fill_scan(fill, begin);
        const line_candidate *best = line_fill_choose(fill, begin);
        if (best == NULL) break;
        const pen_device_class *class = &fill->classes->classes[best->class];
        const uint32_t device = class->devices[fill->used[best->class]++];
        fill->worst = fmax(fill->worst, best->load);
        for (; begin < best->end; begin++) {
            fill->device_of_at[begin] = device;
            pen_segment_load_advance(fill->segment, fill->line[begin]);
        }
    }
    for (uint32_t i = begin; i-- > 0;)
        pen_segment_load_retreat(fill->segment, fill->line[i]);
    return begin == count;
}

static void line_fill_keep(const line_fill *fill, uint32_t *device_of_group,
                           pen_line_fill_result *result) {
    if (fill->worst >= result->value) return;
    result->is_found = true;
    result->value = fill->worst;
    for (uint32_t i = 0; i < fill->problem->group_count; i++)
        device_of_group[fill->line[i]] = fill->device_of_at[i];
}

// Looks for the smallest load at which filling devices along the line uses up all groups: upwards
// in growing steps, then by halving.
pen_status pen_line_fill(const pen_problem *problem, const uint32_t *line,
                         const pen_line_fill_options *options, pen_arena *arena,
                         uint32_t *device_of_group, pen_line_fill_result *out_result) {
    line_fill fill = {.problem = problem,
                      .classes = options->classes,
                      .line = line,
                      .key = {options->seed, pen_random_stream("line fill", options->seed, 0)}};
    pen_line_fill_result result = {.value = options->value_limit};
    PEN_TRY(line_fill_weigh(&fill, arena));
    PEN_TRY(PEN_NEW(arena, options->classes->class_count, &fill.used));
    PEN_TRY(PEN_NEW(arena, problem->group_count, &fill.device_of_at));
    PEN_TRY(pen_segment_load_new(problem, arena, &fill.segment));
    const double bound = options->bound > 0.0 ? options->bound : line_fill_bound(&fill);
    double low = bound, high = options->value_limit;
    // upwards until something is found, each step larger than the one before
    double step = fmax(LINE_FILL_STEP_FIRST * bound, LINE_FILL_STEP_LEAST);
    for (int i = 0; i < LINE_FILL_STEPS_LIMIT && !result.is_found; i++) {
        const double limit = bound + step;
        if (limit >= options->value_limit || (i > 0 && pen_clock_seconds() > options->deadline)) {
            break;
        }
        if (line_fill_pass(&fill, limit)) {
            line_fill_keep(&fill, device_of_group, &result);
            high = result.value;
        } else {
            low = limit;
        }
        step *= LINE_FILL_STEP_FACTOR;
    }
    for (int i = 0; i < LINE_FILL_HALVINGS_LIMIT && result.is_found; i++) {
        // a bound of 0 asks for no precision
        if (high - low <= options->precision * fmax(bound, LINE_FILL_SHARE * high)) break;
        if (pen_clock_seconds() > options->deadline) break;
        const double middle = (low + high) / 2.0;
        if (line_fill_pass(&fill, middle)) {
            line_fill_keep(&fill, device_of_group, &result);
            high = fmin(middle, result.value);
        } else {
            low = middle;
        }
    }
    *out_result = result;
    return PEN_OK;
}
