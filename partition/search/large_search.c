#include "partition/search/large_search.h"

#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "base/thread.h"
#include "partition/bound/bounds.h"
#include "partition/objective/load_state.h"
#include "partition/search/large_anneal.h"
#include "partition/search/line_fill.h"
#include "partition/search/linear_orders.h"

#define LARGE_GROUPS 20000
#define LARGE_GROUPS_LATENCY 100000
#define LARGE_CELLS 50000 // groups times devices
#define LARGE_LINES 4     // the first variants of pen_linear_order
#define LARGE_FILLS_LIMIT 48
#define LARGE_PARTITION_FACTOR 1.5 // of the best start's value, at most
#define LARGE_PRECISION 0.0005

// Nominal seconds for each group: what is done is planned by them.
#define LARGE_FILL_SECONDS 2.5e-6 // all passes along one line
#define LARGE_PARTITION_SECONDS 10e-6
#define LARGE_STEP_SECONDS 0.3e-6 // of the local search

// Shares of the time.
#define LARGE_FILL_SHARE 0.35
#define LARGE_FILL_SHARE_MOST 0.6 // on a slow machine
#define LARGE_PARTITION_SHARE 0.2

#define LARGE_WARMTH_FIRST 0.0003
#define LARGE_WARMTH_LAST 0.00001

bool pen_problem_is_large(const pen_problem *problem) {
    const uint64_t cells = (uint64_t)problem->group_count * problem->given.device_count;
    switch (problem->given.objective) {
    case PEN_OBJECTIVE_THROUGHPUT:
    case PEN_OBJECTIVE_STEP_TIME:
    case PEN_OBJECTIVE_TRAFFIC:
        return problem->group_count > LARGE_GROUPS || cells > LARGE_CELLS;
    case PEN_OBJECTIVE_LATENCY: // loads say little about it
        return problem->group_count > LARGE_GROUPS_LATENCY;
    }
    PEN_NEVER("an objective is one of the enum");
}

typedef struct large_search large_search;

typedef struct large_worker {
    const large_search *search;
    uint32_t index;
    uint32_t *device_of_group; // [group_count] of the problem
    uint32_t *line;            // [group_count]
    double value;
    bool is_cut; // by the clock
    pen_status status;
} large_worker;

struct large_search {
    const pen_problem *problem;
    const pen_problem *chained; // contiguous, all its groups have a place in an order
    const pen_problem *filled;  // the same; pins and impossible homes may be overlooked
    const pen_large_search_options *options;
    pen_device_classes *classes;
    double bound;
    double span; // seconds that the work is planned for
    double cut;  // by pen_clock_seconds, the end of all
    uint32_t fill_count;
    uint32_t *partition; // [group_count] the caller's, made right; or NULL
    double partition_value;
    double fill_deadline; // no line is begun after
    uint32_t worker_count;
    large_worker workers[PEN_LARGE_THREAD_LIMIT];
};

// ---- threads

static pen_status large_run(large_search *search, void (*work)(void *context)) {
    pen_thread *threads[PEN_LARGE_THREAD_LIMIT] = {NULL};
    pen_status status = PEN_OK;
    for (uint32_t i = 0; i < search->worker_count; i++)
        search->workers[i].status = PEN_OK;
    for (uint32_t i = 1; i < search->worker_count; i++) {
        const pen_status refused =
            pen_thread_create("search", work, &search->workers[i], &threads[i]);
        if (refused == PEN_OK) continue;
        pen_status_ignore(refused, "its work is done here");
        work(&search->workers[i]);
    }
    work(&search->workers[0]);
    for (uint32_t i = 0; i < search->worker_count; i++) {
        pen_thread_join(threads[i]);
        status = pen_status_join(status, search->workers[i].status);
    }
    return status;
}

// ---- the start

// Loads are judged by the problem itself, once for each line.
static pen_status large_weigh(const pen_problem *problem, const uint32_t *device_of_group,
                              pen_arena *arena, double *out_value) {
    pen_load_state *state;
    PEN_TRY(pen_load_state_new(problem, device_of_group, arena, &state));
    *out_value = pen_load_state_worst(state);
    return PEN_OK;
}

// One line, filled once; the worker keeps the best.
static pen_status large_fill(large_worker *worker, uint32_t try, pen_arena *arena) {
    const large_search *search = worker->search;
    const pen_problem *problem = search->problem;
    uint32_t *order, *device_of_chained, *line, *device_of_group;
    const double now = pen_clock_seconds();
    PEN_TRY(PEN_NEW(arena, search->chained->group_count, &order));
    PEN_TRY(PEN_NEW(arena, search->chained->group_count, &device_of_chained));
    PEN_TRY(PEN_NEW(arena, problem->group_count, &line));
    PEN_TRY(PEN_NEW(arena, problem->group_count, &device_of_group));
    PEN_TRY(
        pen_linear_order(search->chained, search->options->seed, try % LARGE_LINES, arena, order));
    const pen_line_fill_options fill = {
        .classes = search->classes,
        .seed = try < LARGE_LINES ? 0 : search->options->seed * 1000 + try,
        .bound = search->bound,
        .value_limit = INFINITY,
        .precision = LARGE_PRECISION,
        .deadline = now + 0.7 * (search->cut - now)};
    pen_line_fill_result result;
    PEN_TRY(pen_line_fill(search->filled, order, &fill, arena, device_of_chained, &result));
    worker->is_cut = worker->is_cut || pen_clock_seconds() >= fill.deadline;
    if (!result.is_found) return PEN_OK;
    double value = result.value;
    pen_initial_placement tried = {.line = line, .device_of_group = device_of_group};
    PEN_TRY(pen_initial_unchain(problem, search->chained, order, device_of_chained, arena, &tried));
    if (search->filled != search->chained) {
        PEN_TRY(pen_initial_repair(problem, line, arena, device_of_group));
    }
    if (search->filled != search->chained || problem->given.link != NULL) {
        PEN_TRY(large_weigh(problem, device_of_group, arena, &value));
    }
    if (value >= worker->value) return PEN_OK;
    worker->value = value;
    memcpy(worker->line, line, problem->group_count * sizeof *line);
    memcpy(worker->device_of_group, device_of_group,
           problem->group_count * sizeof *device_of_group);
    return PEN_OK;
}

static void large_work_fills(void *context) {
    large_worker *worker = context;
    const large_search *search = worker->search;
    for (uint32_t try = worker->index; try < search->fill_count; try += search->worker_count) {
        pen_arena *arena;
        worker->status = pen_arena_create(&arena);
        if (worker->status != PEN_OK) return;
        worker->status = large_fill(worker, try, arena);
        pen_arena_destroy(arena);
        if (worker->status != PEN_OK) return;
        if (pen_clock_seconds() > search->fill_deadline) {
            worker->is_cut = worker->is_cut || try + search->worker_count < search->fill_count;
            return;
        }
    }
}

// Where nothing asks for an order of devices, pins and homes that cannot be are left to the repair
// of the start: on a line they would cut it to pieces.
static pen_status large_overlook(const pen_problem *chained, pen_arena *arena,
                                 const pen_problem **out_filled) {
    const size_t kind_count = chained->given.kind_count, count = chained->group_count;
    pen_problem *filled;
    bool is_bound = false;
    PEN_TRY(PEN_NEW(arena, 1, &filled));
    *filled = *chained;
    PEN_TRY(PEN_NEW(arena, count, &filled->group_pin));
    PEN_TRY(PEN_NEW(arena, kind_count * count, &filled->group_compute));
    for (size_t g = 0; g < count; g++) {
        double least = INFINITY;
        for (size_t k = 0; k < kind_count; k++)
            least = fmin(least, chained->group_compute[k * count + g]);
        for (size_t k = 0; k < kind_count; k++) {
            const double cost = chained->group_compute[k * count + g];
            filled->group_compute[k * count + g] = cost < PEN_PROBLEM_COST_LIMIT ? cost : least;
            is_bound = is_bound || !(cost < PEN_PROBLEM_COST_LIMIT);
        }
        is_bound = is_bound || chained->group_pin[g] != PEN_PROBLEM_ANY;
        filled->group_pin[g] = PEN_PROBLEM_ANY;
    }
    *out_filled = is_bound ? filled : chained;
    return PEN_OK;
}

// The problem made ready for lines. Not for one whose cycles fit on no device.
static pen_status large_chain(large_search *search, pen_arena *arena) {
    const pen_status status = pen_initial_chain(search->problem, arena, &search->chained);
    const pen_status_code code = pen_status_get_code(status);
    const bool is_impossible = code == PEN_DOES_NOT_FIT || code == PEN_INVALID_INPUT; // if merged
    if (is_impossible && !search->problem->given.is_contiguous) {
        pen_status_ignore(status, "other ways of starting need no order");
        search->fill_count = 0;
        return PEN_OK;
    }
    PEN_TRY(status);
    search->filled = search->chained;
    if (!search->problem->given.is_contiguous) {
        PEN_TRY(large_overlook(search->chained, arena, &search->filled));
    }
    return pen_device_classes_new(search->filled, 0, arena, &search->classes);
}

// Tries the partition that the caller brings.
static pen_status large_try_partition(large_search *search, pen_arena *arena) {
    const pen_problem *problem = search->problem;
    uint32_t *device_of_group;
    if (search->options->partition == NULL || problem->given.is_contiguous ||
        LARGE_PARTITION_SECONDS * problem->group_count > LARGE_PARTITION_SHARE * search->span) {
        return PEN_OK;
    }
    PEN_TRY(PEN_NEW(arena, problem->group_count, &device_of_group));
    pen_status status =
        search->options->partition(problem, search->options->seed, arena, device_of_group);
    if (status == PEN_OK)
        status = pen_initial_repair(problem, search->workers[0].line, arena, device_of_group);
    const pen_status_code code = pen_status_get_code(status);
    if (code == PEN_UNSUPPORTED || code == PEN_DOES_NOT_FIT) {
        pen_status_ignore(status, "it is one start of several");
        return PEN_OK;
    }
    PEN_TRY(status);
    PEN_TRY(large_weigh(problem, device_of_group, arena, &search->partition_value));
    search->partition = device_of_group;
    return PEN_OK;
}

// The last worker goes on from the partition unless that is much worse; alone, when it is better.
static void large_take_partition(large_search *search) {
    large_worker *worker = &search->workers[search->worker_count - 1];
    const double factor = search->worker_count > 1 ? LARGE_PARTITION_FACTOR : 1.0;
    if (search->partition == NULL || search->partition_value >= factor * worker->value) return;
    worker->value = search->partition_value;
    memcpy(worker->device_of_group, search->partition,
           search->problem->group_count * sizeof *search->partition);
}

// All workers go on from the best.
static void large_share_best(large_search *search) {
    const size_t bytes = search->problem->group_count * sizeof(uint32_t);
    const large_worker *best = &search->workers[0];
    for (uint32_t i = 1; i < search->worker_count; i++) {
        if (search->workers[i].value < best->value) best = &search->workers[i];
    }
    for (uint32_t i = 0; i < search->worker_count; i++) {
        large_worker *worker = &search->workers[i];
        if (worker == best) continue;
        memcpy(worker->line, best->line, bytes);
        memcpy(worker->device_of_group, best->device_of_group, bytes);
        worker->value = best->value;
    }
}

// Lines that are filled, and a partition by METIS: each worker starts from the best of them.
static pen_status large_find_start(large_search *search, pen_arena *arena) {
    large_worker *first = &search->workers[0];
    const double fills = LARGE_FILL_SHARE * search->span * search->worker_count /
                         (LARGE_FILL_SECONDS * (search->problem->group_count + 1.0));
    search->fill_count = fills < 1.0                 ? 1
                         : fills > LARGE_FILLS_LIMIT ? LARGE_FILLS_LIMIT
                                                     : (uint32_t)fills;
    search->fill_deadline =
        search->options->begin + LARGE_FILL_SHARE_MOST * (search->cut - search->options->begin);
    PEN_TRY(large_chain(search, arena));
    PEN_TRY(large_try_partition(search, arena));
    PEN_TRY(large_run(search, large_work_fills));
    large_share_best(search);
    large_take_partition(search);
    if (first->value < INFINITY) return PEN_OK;
    if (search->partition != NULL) {
        large_share_best(search);
        return PEN_OK;
    }
    // no line can be filled: anything that fits
    if (search->problem->given.is_contiguous) {
        PEN_TRY(pen_linear_order(search->problem, 0, 0, arena, first->line));
    }
    for (uint32_t g = 0; g < search->problem->group_count; g++)
        first->device_of_group[g] = PEN_PROBLEM_ANY;
    PEN_TRY(pen_initial_repair(search->problem, first->line, arena, first->device_of_group));
    PEN_TRY(large_weigh(search->problem, first->device_of_group, arena, &first->value));
    large_share_best(search);
    return PEN_OK;
}

// ---- the search

static void large_work_search(void *context) {
    large_worker *worker = context;
    const large_search *search = worker->search;
    const double left = search->span * (1.0 - LARGE_FILL_SHARE - LARGE_PARTITION_SHARE);
    const pen_annealing_options refine = {.seed = search->options->seed * 100 + worker->index,
                                          .step_count = (uint64_t)(left / LARGE_STEP_SECONDS),
                                          .deadline = search->cut,
                                          .warmth_first = LARGE_WARMTH_FIRST,
                                          .warmth_last = LARGE_WARMTH_LAST};
    worker->status = pen_large_anneal(search->problem, worker->line, &refine,
                                      worker->device_of_group, &worker->value);
    worker->is_cut = worker->is_cut || pen_clock_seconds() >= search->cut;
}

// Workers have seeds of their own and share what they found after the fills and at the end, so that
// their number alone decides the result.
pen_status pen_large_search(const pen_problem *problem, const pen_large_search_options *options,
                            pen_arena *arena, pen_initial_placement *out_start) {
    large_search search = {.problem = problem, .options = options};
    const uint32_t wished = options->thread_count;
    // whole microseconds: the same, whenever it begins
    search.span = fmax(round((options->deadline - options->begin) * 1e6) * 1e-6, 0.0);
    search.cut = options->cut > 0.0 ? options->cut : options->deadline;
    search.worker_count = wished < 1                        ? 1
                          : wished < PEN_LARGE_THREAD_LIMIT ? wished
                                                            : PEN_LARGE_THREAD_LIMIT;
    PEN_TRY(pen_bound(problem, arena, &search.bound));
    for (uint32_t i = 0; i < search.worker_count; i++) {
        large_worker *worker = &search.workers[i];
        *worker = (large_worker){.search = &search, .index = i, .value = INFINITY};
        PEN_TRY(PEN_NEW(arena, problem->group_count, &worker->device_of_group));
        PEN_TRY(PEN_NEW(arena, problem->group_count, &worker->line));
        for (uint32_t g = 0; g < problem->group_count; g++)
            worker->line[g] = g;
    }
    PEN_TRY(large_find_start(&search, arena));
    if (search.workers[0].value > search.bound) {
        PEN_TRY(large_run(&search, large_work_search));
    }
    large_share_best(&search);
    *out_start = (pen_initial_placement){.device_of_group = search.workers[0].device_of_group,
                                         .line = search.workers[0].line,
                                         .value = search.workers[0].value,
                                         .is_found = true};
    for (uint32_t i = 0; i < search.worker_count; i++)
        out_start->is_cut = out_start->is_cut || search.workers[i].is_cut;
    return PEN_OK;
}
