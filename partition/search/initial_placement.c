#include "partition/search/initial_placement.h"

#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "base/sets/order.h"
#include "partition/bound/bounds.h"
#include "partition/problem/problem_build.h"
#include "partition/search/coarsen.h"
#include "partition/search/fitting.h"
#include "partition/search/line_fill.h"
#include "partition/search/linear_orders.h"
#include "partition/search/memory_blame.h"
#include "partition/search/segment_plan.h"

// ---- segments

// A contiguous problem whose groups all have a place in the order.
typedef struct initial_line {
    const pen_problem *problem; // the caller's
    const pen_problem *chained; // contiguous, all groups ordered
    const pen_device_classes *classes;
    uint32_t *orders; // [order_count][chained->group_count]
    uint32_t order_count;
    uint32_t best_order;
    uint32_t *device_of_chained; // [chained->group_count] best so far
    double value;
    double *work; // nominal seconds left, or NULL
} initial_line;

// Whether groups that were put together can be nowhere: too large, or pinned to two devices.
static bool initial_is_impossible(pen_status status) {
    const pen_status_code code = pen_status_get_code(status);
    return code == PEN_DOES_NOT_FIT || code == PEN_INVALID_INPUT;
}

// The merged problem, or NULL when some of its groups could be nowhere.
static pen_status initial_merge(const pen_problem *chained, const uint32_t *class, pen_arena *arena,
                                pen_problem **out_merged) {
    *out_merged = NULL;
    const pen_status status = pen_problem_merge(chained, class, true, arena, out_merged);
    if (!initial_is_impossible(status)) return status;
    pen_status_ignore(status, "the problem is used as it is");
    return PEN_OK;
}

#define INITIAL_GROUP_LIMIT 6000 // beyond, stretches of one order become groups
#define INITIAL_CHUNKS_MINIMUM 2048
#define INITIAL_CHUNKS_PER_DEVICE 32

// Of very many groups, makes some thousands: stretches of an order with about equal cost and
// memory.
static pen_status initial_chunk(const pen_problem *chained, pen_arena *arena,
                                const pen_problem **out_chunked) {
    const uint32_t count = chained->group_count;
    uint32_t *order, *class;
    double compute_total = 0.0, bytes_total = 0.0;
    *out_chunked = chained;
    if (count <= INITIAL_GROUP_LIMIT) return PEN_OK;
    PEN_TRY(PEN_NEW(arena, count, &order));
    PEN_TRY(PEN_NEW(arena, count, &class));
    PEN_TRY(pen_linear_order(chained, 0, 2, arena, order));
    const double chunk_count = fmax(INITIAL_CHUNKS_MINIMUM, (double)INITIAL_CHUNKS_PER_DEVICE *
                                                                chained->given.device_count);
    for (uint32_t g = 0; g < count; g++) {
        if (chained->group_compute[g] < INFINITY) compute_total += chained->group_compute[g];
        bytes_total += pen_problem_bytes(chained, g, 0);
    }
    double filled = 0.0; // of a chunk
    uint32_t first = order[0];
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t g = order[i];
        const double compute = chained->group_compute[g] < INFINITY ? chained->group_compute[g] : 0;
        const double part =
            (compute_total > 0.0 ? 0.5 * compute / compute_total : 0.0) +
            (bytes_total > 0.0 ? 0.5 * pen_problem_bytes(chained, g, 0) / bytes_total : 0.0);
        filled += part * chunk_count + 0.1 * chunk_count / count;
        if (filled > 1.0 || chained->group_pin[g] != PEN_PROBLEM_ANY) {
            filled = 0.0;
            first = g;
        }
        class[g] = first;
        if (chained->group_pin[g] != PEN_PROBLEM_ANY) filled = 1.0;
    }
    pen_problem *chunked;
    PEN_TRY(initial_merge(chained, class, arena, &chunked));
    if (chunked != NULL) *out_chunked = chunked;
    return PEN_OK;
}

// Groups that no forward edge orders, such as those of updates alone, would be anywhere on a line.
pen_status pen_initial_chain(const pen_problem *problem, pen_arena *arena,
                             const pen_problem **out_chained) {
    const pen_problem *chained = problem;
    uint32_t *class, joined;
    PEN_TRY(PEN_NEW(arena, problem->group_count, &class));
    if (!problem->given.is_contiguous) {
        pen_problem *contiguous;
        for (uint32_t g = 0; g < problem->group_count; g++)
            class[g] = g;
        PEN_TRY(pen_problem_merge(problem, class, true, arena, &contiguous));
        chained = contiguous;
    }
    PEN_TRY(pen_coarsen_unordered(chained, arena, class, &joined));
    if (joined > 0) {
        pen_problem *merged;
        PEN_TRY(initial_merge(chained, class, arena, &merged));
        if (merged != NULL) chained = merged;
    }
    *out_chained = chained;
    return PEN_OK;
}

static pen_status initial_try(initial_line *line, const pen_down_sets *sets, double deadline,
                              pen_arena *arena, bool *out_is_finished, bool *out_is_better) {
    pen_segment_plan plan;
    const pen_segment_plan_options options = {
        line->value, deadline, line->work, .repeats_parallel = !line->problem->given.is_contiguous};
    PEN_TRY(pen_segment_plan_find(line->chained, line->classes, sets, &options, arena, &plan));
    *out_is_finished = plan.is_finished;
    *out_is_better = plan.is_found;
    if (!plan.is_found) return PEN_OK;
    line->value = plan.value;
    memcpy(line->device_of_chained, plan.device_of_group,
           line->chained->group_count * sizeof *plan.device_of_group);
    return PEN_OK;
}

#define INITIAL_CLIMB_FIRST 1.05 // times the lower bound
#define INITIAL_CLIMB_FACTOR 1.6
#define INITIAL_CLIMB_TRIES 8

#define INITIAL_FILL_PRECISION 0.002

// The first line: a search below a limit is the faster the lower the limit. Filling the devices
// along it gives one; where it cannot, limits rise from the lower bound on until something is
// found.
static pen_status initial_climb(initial_line *line, const uint32_t *order,
                                const pen_down_sets *sets, pen_arena *arena, bool *out_is_better) {
    double limit;
    bool is_finished;
    if (line->problem->given.objective != PEN_OBJECTIVE_LATENCY) {
        const pen_line_fill_options options = {.classes = line->classes,
                                               .value_limit = INFINITY,
                                               .precision = INITIAL_FILL_PRECISION,
                                               .deadline = INFINITY};
        pen_line_fill_result fill;
        PEN_TRY(
            pen_line_fill(line->chained, order, &options, arena, line->device_of_chained, &fill));
        if (fill.is_found) {
            line->value = fill.value;
            *out_is_better = true;
            bool is_improved;
            return initial_try(line, sets, INFINITY, arena, &is_finished, &is_improved);
        }
    }
    PEN_TRY(pen_bound(line->chained, arena, &limit));
    limit *= INITIAL_CLIMB_FIRST;
    for (int i = 0; i < INITIAL_CLIMB_TRIES && limit > 0.0; i++) {
        line->value = limit;
        PEN_TRY(initial_try(line, sets, INFINITY, arena, &is_finished, out_is_better));
        if (*out_is_better) return PEN_OK;
        limit *= INITIAL_CLIMB_FACTOR;
    }
    line->value = INFINITY;
    return initial_try(line, sets, INFINITY, arena, &is_finished, out_is_better);
}

static bool initial_is_late(const pen_initial_options *options) {
    return pen_clock_seconds() >= options->deadline ||
           (options->work != NULL && *options->work <= 0.0);
}

// The first line is climbed, for a bound that cuts the others short; each is a plan of its own.
static pen_status initial_try_orders(initial_line *line, const pen_initial_options *options,
                                     pen_arena *arena) {
    const uint32_t count = line->chained->group_count;
    bool is_finished, is_better;
    PEN_TRY(PEN_NEW(arena, (size_t)options->order_count * count, &line->orders));
    for (uint32_t i = 0; i < options->order_count; i++) {
        if (i > 0 && initial_is_late(options)) break;
        uint32_t *order = line->orders + (size_t)i * count;
        pen_arena *scratch;
        pen_down_sets *sets;
        PEN_TRY(pen_linear_order(line->chained, options->seed, i, arena, order));
        PEN_TRY(pen_arena_create(&scratch));
        pen_status status = pen_down_sets_of_orders(line->chained, order, 1, scratch, &sets);
        if (status == PEN_OK && i == 0) {
            status = initial_climb(line, order, sets, scratch, &is_better);
        } else if (status == PEN_OK) {
            status = initial_try(line, sets, options->deadline, scratch, &is_finished, &is_better);
        }
        pen_arena_destroy(scratch);
        if (status != PEN_OK) return status;
        if (is_better) line->best_order = i;
        line->order_count = i + 1;
    }
    return PEN_OK;
}

#define INITIAL_FEW_SETS 4096 // tried before as many as are allowed

// Over all lines at once, then over all down-sets.
static pen_status initial_try_families(initial_line *line, const pen_initial_options *options,
                                       pen_arena *arena, double *out_bound) {
    pen_down_sets *sets;
    bool is_finished, is_better;
    if (line->order_count > 1 && !initial_is_late(options)) {
        PEN_TRY(
            pen_down_sets_of_orders(line->chained, line->orders, line->order_count, arena, &sets));
        PEN_TRY(initial_try(line, sets, options->deadline, arena, &is_finished, &is_better));
    }
    if (options->set_limit == 0 || initial_is_late(options)) return PEN_OK;
    sets = NULL;
    for (uint32_t limit = INITIAL_FEW_SETS; sets == NULL; limit = options->set_limit) {
        limit = limit < options->set_limit ? limit : options->set_limit;
        PEN_TRY(pen_down_sets_all(line->chained, &line->chained->after, limit, arena, &sets));
        if (limit == options->set_limit) break;
    }
    if (sets == NULL) return PEN_OK;
    PEN_TRY(initial_try(line, sets, options->deadline, arena, &is_finished, &is_better));
    const bool is_exact = is_finished && line->chained == line->problem &&
                          line->problem->given.link == NULL && !line->classes->is_sequence &&
                          line->problem->given.objective == PEN_OBJECTIVE_THROUGHPUT;
    if (is_exact) *out_bound = line->value;
    return PEN_OK;
}

// Chained groups hold several groups of the problem, whose places on the line are those of their
// first nodes.
pen_status pen_initial_unchain(const pen_problem *problem, const pen_problem *chained,
                               const uint32_t *order, const uint32_t *device_of_chained,
                               pen_arena *arena, pen_initial_placement *io_placement) {
    bool *is_met;
    uint32_t filled = 0;
    PEN_TRY(PEN_NEW(arena, problem->group_count, &is_met));
    for (uint32_t i = 0; i < chained->group_count; i++) {
        const uint32_t c = order[i];
        for (uint32_t m = chained->members.first[c]; m < chained->members.first[c + 1]; m++) {
            const uint32_t g = problem->group_of_node[chained->members.ids[m]];
            io_placement->device_of_group[g] = device_of_chained[c];
            if (is_met[g]) continue;
            is_met[g] = true;
            io_placement->line[filled++] = g;
        }
    }
    PEN_ASSERT(filled == problem->group_count);
    return PEN_OK;
}

// Segments along lines give a start even of a problem that need not be contiguous: such placements
// are good, and searches go on from there.
pen_status pen_initial_segments(const pen_problem *problem, const pen_initial_options *options,
                                pen_arena *arena, pen_initial_placement *out_start,
                                double *out_bound) {
    initial_line line = {.problem = problem, .value = INFINITY, .work = options->work};
    pen_device_classes *classes;
    *out_bound = 0.0;
    *out_start = (pen_initial_placement){.value = INFINITY};
    PEN_TRY(PEN_NEW(arena, problem->group_count, &out_start->line));
    PEN_TRY(PEN_NEW(arena, problem->group_count, &out_start->device_of_group));
    const pen_status status = pen_initial_chain(problem, arena, &line.chained);
    if (initial_is_impossible(status) && !problem->given.is_contiguous) {
        // a cycle of groups can be on no device, which does not matter here
        pen_status_ignore(status, "other ways of starting need no order");
        for (uint32_t g = 0; g < problem->group_count; g++)
            out_start->line[g] = g;
        return PEN_OK;
    }
    if (status != PEN_OK) return status;
    PEN_TRY(initial_chunk(line.chained, arena, &line.chained));
    PEN_TRY(pen_device_classes_new(line.chained, 0, arena, &classes));
    line.classes = classes;
    PEN_TRY(PEN_NEW(arena, line.chained->group_count, &line.device_of_chained));
    PEN_TRY(initial_try_orders(&line, options, arena));
    PEN_TRY(initial_try_families(&line, options, arena, out_bound));
    const uint32_t *order = line.orders + (size_t)line.best_order * line.chained->group_count;
    PEN_TRY(pen_initial_unchain(problem, line.chained, order, line.device_of_chained, arena,
                                out_start));
    out_start->value = line.value;
    out_start->is_found = line.value < INFINITY;
    out_start->is_cut = pen_clock_seconds() >= options->deadline;
    return PEN_OK;
}

// ---- repair

typedef struct initial_repair {
    const pen_problem *problem;
    uint32_t *device_of_group;
    double *bytes; // [device_count]
    double *load;  // [device_count] compute alone
} initial_repair;

static void initial_put(initial_repair *repair, uint32_t group, uint32_t device, double sign) {
    repair->bytes[device] += sign * pen_problem_bytes(repair->problem, group, device);
    repair->load[device] += sign * pen_problem_compute(repair->problem, group, device);
}

// The device with room where `group` adds least to the load, or PEN_PROBLEM_ANY.
static uint32_t initial_find_room(const initial_repair *repair, uint32_t group) {
    uint32_t best = PEN_PROBLEM_ANY;
    double least = INFINITY;
    for (uint32_t d = 0; d < repair->problem->given.device_count; d++) {
        if (!pen_problem_allows(repair->problem, group, d)) continue;
        if (repair->bytes[d] + pen_problem_bytes(repair->problem, group, d) >
            pen_problem_bytes_limit(repair->problem, d)) {
            continue;
        }
        const double load = repair->load[d] + pen_problem_compute(repair->problem, group, d);
        if (load >= least) continue;
        least = load;
        best = d;
    }
    return best;
}

// Packs everything anew: largest first where that fits, else for memory alone.
static pen_status initial_pack(initial_repair *repair, pen_ranked *items, pen_arena *arena) {
    const uint32_t count = repair->problem->group_count;
    double excess;
    for (uint32_t g = 0; g < count; g++) {
        items[g] = (pen_ranked){pen_problem_bytes(repair->problem, g, 0), g};
    }
    pen_ranked_sort_down(items, count);
    memset(repair->bytes, 0, repair->problem->given.device_count * sizeof *repair->bytes);
    memset(repair->load, 0, repair->problem->given.device_count * sizeof *repair->load);
    uint32_t placed = 0;
    for (; placed < count; placed++) {
        const uint32_t group = items[placed].id;
        const uint32_t device = initial_find_room(repair, group);
        if (device == PEN_PROBLEM_ANY) break;
        repair->device_of_group[group] = device;
        initial_put(repair, group, device, 1.0);
    }
    if (placed == count) return PEN_OK;
    PEN_TRY(pen_memory_pack(repair->problem, arena, repair->device_of_group, &excess));
    return excess <= 0.0 ? PEN_OK
                         : pen_memory_blame(repair->problem, "the memory does not suffice", arena);
}

// Whether each group is where it may be and no memory is exceeded, all added up anew.
static bool initial_is_right(const initial_repair *repair) {
    const pen_problem *problem = repair->problem;
    memset(repair->bytes, 0, problem->given.device_count * sizeof *repair->bytes);
    for (uint32_t g = 0; g < problem->group_count; g++) {
        const uint32_t d = repair->device_of_group[g];
        if (!pen_problem_allows(problem, g, d)) return false;
        repair->bytes[d] += pen_problem_bytes(problem, g, d);
    }
    for (uint32_t d = 0; d < problem->given.device_count; d++) {
        if (repair->bytes[d] > pen_problem_bytes_limit(problem, d)) return false;
    }
    return true;
}

// Moves groups off devices that may not run them or are too full, largest first.
static pen_status initial_unload(initial_repair *repair, pen_arena *arena) {
    const pen_problem *problem = repair->problem;
    pen_ranked *items;
    uint32_t homeless = 0;
    PEN_TRY(PEN_NEW(arena, problem->group_count, &items));
    for (uint32_t g = 0; g < problem->group_count; g++) {
        const uint32_t d = repair->device_of_group[g];
        if (d < problem->given.device_count && pen_problem_allows(problem, g, d)) {
            initial_put(repair, g, d, 1.0);
        } else {
            items[homeless++] = (pen_ranked){pen_problem_bytes(problem, g, 0), g};
        }
    }
    for (uint32_t g = problem->group_count; g-- > 0;) { // the last come off first
        const uint32_t d = repair->device_of_group[g];
        if (d >= problem->given.device_count || !pen_problem_allows(problem, g, d)) continue;
        if (repair->bytes[d] <= pen_problem_bytes_limit(problem, d)) continue;
        if (pen_problem_bytes(problem, g, d) == 0.0) continue;
        initial_put(repair, g, d, -1.0);
        items[homeless++] = (pen_ranked){pen_problem_bytes(problem, g, 0), g};
    }
    pen_ranked_sort_down(items, homeless);
    for (uint32_t i = 0; i < homeless; i++) {
        const uint32_t device = initial_find_room(repair, items[i].id);
        if (device == PEN_PROBLEM_ANY) return initial_pack(repair, items, arena);
        repair->device_of_group[items[i].id] = device;
        initial_put(repair, items[i].id, device, 1.0);
    }
    // what was small beside a group that left is lost in the sums
    return initial_is_right(repair) ? PEN_OK : initial_pack(repair, items, arena);
}

// Devices in the order of the mean position of their groups; along the line, a group moves up to
// the device of the latest of those it waits for.
static pen_status initial_straighten(const pen_problem *problem, const uint32_t *line,
                                     pen_arena *arena, uint32_t *device_of_group) {
    const uint32_t device_count = problem->given.device_count;
    pen_ranked *ranks; // by the mean position of its groups on the line
    uint32_t *rank_of_device, *total;
    PEN_TRY(PEN_NEW(arena, device_count, &ranks));
    PEN_TRY(PEN_NEW(arena, device_count, &rank_of_device));
    PEN_TRY(PEN_NEW(arena, device_count, &total));
    for (uint32_t d = 0; d < device_count; d++)
        ranks[d].id = d;
    for (uint32_t i = 0; i < problem->group_count; i++) {
        const uint32_t d = device_of_group[line[i]];
        ranks[d].key += i;
        total[d] += 1;
    }
    for (uint32_t d = 0; d < device_count; d++)
        ranks[d].key /= total[d] > 0 ? total[d] : 1;
    pen_ranked_sort_up(ranks, device_count);
    for (uint32_t i = 0; i < device_count; i++)
        rank_of_device[ranks[i].id] = i;
    for (uint32_t i = 0; i < problem->group_count; i++) {
        const uint32_t g = line[i];
        for (uint32_t e = problem->before.first[g]; e < problem->before.first[g + 1]; e++) {
            const uint32_t there = device_of_group[problem->before.ids[e]];
            if (rank_of_device[there] > rank_of_device[device_of_group[g]]) {
                device_of_group[g] = there;
            }
        }
    }
    return PEN_OK;
}

#define INITIAL_REPAIR_ORDERS 16

// From cheap to dear: unload what is too full, put the devices in order, begin anew by segments.
static pen_status initial_repair_step_by_step(const pen_problem *problem, const uint32_t *line,
                                              pen_arena *arena, uint32_t *device_of_group) {
    initial_repair repair = {.problem = problem, .device_of_group = device_of_group};
    PEN_TRY(PEN_NEW(arena, problem->given.device_count, &repair.bytes));
    PEN_TRY(PEN_NEW(arena, problem->given.device_count, &repair.load));
    PEN_TRY(initial_unload(&repair, arena));
    if (!problem->given.is_contiguous) return PEN_OK;
    PEN_TRY(initial_straighten(problem, line, arena, device_of_group));
    if (initial_is_right(&repair)) return PEN_OK;
    pen_initial_placement start;
    double bound;
    const pen_initial_options options = {
        .seed = 1, .order_count = INITIAL_REPAIR_ORDERS, .deadline = INFINITY, .set_limit = 20000};
    PEN_TRY(pen_initial_segments(problem, &options, arena, &start, &bound));
    if (!start.is_found) {
        return pen_memory_blame(problem,
                                "no order of the devices was found that keeps their memory", arena);
    }
    memcpy(device_of_group, start.device_of_group, problem->group_count * sizeof *device_of_group);
    return PEN_OK;
}

#define INITIAL_FITTING_VISITS 100000 // some milliseconds

pen_status pen_initial_repair(const pen_problem *problem, const uint32_t *line, pen_arena *arena,
                              uint32_t *device_of_group) {
    const pen_status status = initial_repair_step_by_step(problem, line, arena, device_of_group);
    if (pen_status_get_code(status) != PEN_DOES_NOT_FIT) return status;
    pen_fitting fitting;
    const pen_status searched =
        pen_fitting_find(problem, INITIAL_FITTING_VISITS, arena, device_of_group, &fitting);
    if (searched != PEN_OK) return pen_status_join(status, searched);
    if (!fitting.is_found) return status;
    pen_status_ignore(status, "what no step by step did, a search did");
    return PEN_OK;
}
