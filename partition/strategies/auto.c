// The portfolio: what is small is searched whole; else segments along a few lines give a start, and
// then every thread searches from it, in rounds that all go on from the best placement so far. The
// first thread of a contiguous throughput problem tries for the exact answer instead; when it has
// it, all stop.
//
// Of a throughput problem that need not be contiguous, every other run of a thread begins afresh:
// such runs find placements that owe nothing to a line, and cycles from a line find those that no
// step of a group leads to.
//
// What is not counted is anytime: the time limit ends the search, whose cooling is planned to end
// there.

#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "base/thread.h"
#include "partition/bound/bounds.h"
#include "partition/objective/placement.h"
#include "partition/search/large_search.h"
#include "partition/search/linear_orders.h"
#include "partition/search/memory_blame.h"
#include "partition/strategies/exhaustive.h"
#include "partition/strategies/local_search.h"
#include "partition/strategies/metis_strategy.h"
#include "partition/strategies/objective_portfolio.h"
#include "partition/strategies/strategy.h"

#define AUTO_THREAD_LIMIT 16 // beyond, threads find the same

// What is looked at whole, since that proves the answer: all placements of few groups, and all
// down-sets of a contiguous problem that has few of them.
#define AUTO_GROUPS_EXHAUSTIVE 14
#define AUTO_VISITS 3000000 // of placements, tens of milliseconds
// nominal, of each: loads are kept up to date, other objectives are weighed whole
#define AUTO_VISIT_SECONDS 100e-9
#define AUTO_VISIT_SECONDS_WEIGHED 1e-6
#define AUTO_GROUPS_TINY 12   // up to so many groups it goes on as long as AUTO_TINY_SHARE allows
#define AUTO_SET_LIMIT 200000 // down-sets: what memory and the time of one thread bear

// Lines along which segments are tried: more of them close little of the gap, but the exact search
// bounds itself by the best of them.
#define AUTO_ORDERS_FIRST 8
#define AUTO_ORDERS_EXACT 32

#define AUTO_ROUND_SECONDS 2.5 // threads share what they found after about so long, at least so
#define AUTO_ROUNDS_LEAST 2    // often,
#define AUTO_ROUNDS_FRESH 3    // or so, where some rounds begin afresh
#define AUTO_CELLS 1000000     // groups times devices; beyond, the search is that of large problems

// Shares of the time limit, by the clock, measured so that the whole ends in time on a machine that
// others use too:
#define AUTO_TIME_SHARE 0.95       // all; the rest is for checking and for late threads
#define AUTO_LARGE_TIME_SHARE 0.9  // all of a large problem, which takes longer to check
#define AUTO_LARGE_START_SHARE 0.4 // its start, where the portfolio goes on from there
#define AUTO_START_SHARE 0.2       // the start of any other
#define AUTO_TINY_SHARE 0.8        // looking at all placements of a tiny problem
#define AUTO_EXACT_SHARE 0.7       // of what is left then, for the thread that tries down-sets

// Shares of the time limit in nominal seconds, for what is counted in steps and must end by itself
// well before the clock would end it.
#define AUTO_WORK_SHARE 0.05   // starts
#define AUTO_COUNTED_SHARE 0.3 // the search

typedef struct auto_worker {
    const pen_problem *problem;
    const uint32_t *line;
    uint32_t *device_of_group; // [group_count] own copy
    double value;
    double bound;
    pen_local_search_options search;
    bool is_exact; // tries for the exact answer first
    double work;   // nominal seconds for that, in counted steps
    bool is_cut;   // the clock ended it
    atomic_bool *stop;
    pen_status status;
} auto_worker;

// Contiguous problems: all lines together, then all down-sets.
static pen_status auto_work_exactly(auto_worker *worker) {
    pen_arena *arena;
    pen_initial_placement start;
    PEN_TRY(pen_arena_create(&arena));
    const pen_initial_options options = {
        .seed = worker->search.seed,
        .order_count = AUTO_ORDERS_EXACT,
        .deadline = worker->search.is_counted
                        ? worker->search.deadline
                        : worker->search.begin +
                              AUTO_EXACT_SHARE * (worker->search.deadline - worker->search.begin),
        .work = worker->search.is_counted ? &worker->work : NULL,
        .set_limit = AUTO_SET_LIMIT};
    const pen_status status =
        pen_initial_segments(worker->problem, &options, arena, &start, &worker->bound);
    if (status == PEN_OK && start.is_found && start.value < worker->value) {
        worker->value = start.value;
        memcpy(worker->device_of_group, start.device_of_group,
               worker->problem->group_count * sizeof *start.device_of_group);
    }
    worker->is_cut = status == PEN_OK && start.is_cut && !(worker->bound > 0.0);
    if (status == PEN_OK && worker->bound > 0.0) atomic_store(worker->stop, true);
    pen_arena_destroy(arena);
    return status;
}

static void auto_work(void *context) {
    auto_worker *worker = context;
    if (worker->is_exact) {
        worker->status = auto_work_exactly(worker);
        if (worker->status != PEN_OK) return;
        worker->search.begin = pen_clock_seconds();
        if (atomic_load(worker->stop)) return;
        worker->is_cut = worker->is_cut || worker->search.begin >= worker->search.deadline;
        if (worker->is_cut) return;
        if (!worker->search.is_counted) {
            worker->search.seconds = worker->search.deadline - worker->search.begin;
        }
    }
    double value;
    worker->status = pen_local_search_run(worker->problem, worker->line, &worker->search,
                                          worker->device_of_group, &value);
    if (worker->status == PEN_OK && value < worker->value) worker->value = value;
}

// Runs all workers, the first on this thread; a thread that cannot be had is done without.
static pen_status auto_run(auto_worker *workers, uint32_t count) {
    pen_thread *threads[AUTO_THREAD_LIMIT] = {NULL};
    pen_status status = PEN_OK;
    uint32_t started = 1;
    for (; started < count; started++) {
        const pen_status refused =
            pen_thread_create("search", auto_work, &workers[started], &threads[started]);
        if (refused == PEN_OK) continue;
        pen_status_ignore(refused, "the search goes on with fewer threads");
        break;
    }
    auto_work(&workers[0]);
    for (uint32_t i = 0; i < started; i++) {
        pen_thread_join(threads[i]);
        status = pen_status_join(status, workers[i].status);
    }
    return status;
}

typedef struct auto_search {
    const pen_problem *problem;
    const pen_strategy_options *options;
    pen_arena *arena;
    pen_initial_placement start;
    uint32_t *origin; // [group_count] placement of the start
    uint32_t *plain;  // [group_count] where `local_search` starts, in counted steps; NULL: nowhere
    double begin;
    double deadline;
    double bound;      // proved
    double work;       // nominal seconds that starts may take in counted steps
    double seconds;    // likewise, of a round
    bool is_counted;   // nothing follows the clock
    bool has_fresh;    // every other run of a worker begins afresh
    bool is_cut;       // but it did, or it ended something
    bool is_answered;  // the start is what there is to answer
    pen_status missed; // why there was no start
    atomic_bool stop;  // all workers: the exact answer is there
    uint32_t round_count;
    uint32_t worker_count;
    auto_worker workers[AUTO_THREAD_LIMIT];
} auto_search;

// Workers begin from the same start with seeds of their own. If one proves its result, what the
// others found does not count, for that is a matter of time.
static pen_status auto_run_round(auto_search *search, uint32_t round) {
    const pen_problem *problem = search->problem;
    const double now = pen_clock_seconds();
    const bool is_exact =
        problem->given.is_contiguous && problem->given.objective == PEN_OBJECTIVE_THROUGHPUT;
    const double deadline = is_exact || search->is_counted
                                ? search->deadline
                                : now + (search->deadline - now) / (search->round_count - round);
    atomic_store(&search->stop, false);
    for (uint32_t i = 0; i < search->worker_count; i++) {
        auto_worker *worker = &search->workers[i];
        worker->problem = problem;
        worker->line = search->start.line;
        worker->value = search->start.value;
        worker->bound = 0.0;
        worker->work = search->seconds;
        worker->is_cut = false;
        worker->stop = &search->stop;
        worker->status = PEN_OK;
        worker->is_exact = is_exact && i == 0 && round == 0;
        worker->search = (pen_local_search_options){
            .seed = search->options->seed * 100 + round * AUTO_THREAD_LIMIT + i,
            .begin = now,
            .deadline = deadline,
            .seconds = search->is_counted ? search->seconds : deadline - now,
            .is_counted = search->is_counted,
            .is_fresh = search->has_fresh && (round + i) % 2 == 1,
            .value = search->start.value,
            .origin = search->origin,
            .enough = search->bound,
            .stop = &search->stop,
        };
        memcpy(worker->device_of_group, search->start.device_of_group,
               problem->group_count * sizeof *worker->device_of_group);
    }
    PEN_TRY(auto_run(search->workers, search->worker_count));
    const bool is_proved = is_exact && search->workers[0].bound > 0.0;
    if (!is_proved && (!search->is_counted || pen_clock_seconds() >= deadline)) {
        search->is_cut = true;
    }
    // what others had found when the answer was there is a matter of time
    const uint32_t heard_count = is_proved ? 1 : search->worker_count;
    for (uint32_t i = 0; i < heard_count; i++) {
        const auto_worker *worker = &search->workers[i];
        search->is_cut = search->is_cut || worker->is_cut;
        search->bound = fmax(search->bound, worker->bound);
        if (worker->value >= search->start.value) continue;
        search->start.value = worker->value;
        memcpy(search->start.device_of_group, worker->device_of_group,
               problem->group_count * sizeof *worker->device_of_group);
    }
    return PEN_OK;
}

// The value of the start by the objective; a plan's is only a sum of segments for latency.
static pen_status auto_weigh_start(auto_search *search) {
    const pen_problem *problem = search->problem;
    if (pen_local_search_counts(problem)) { // its value is known
        PEN_TRY(pen_bound(problem, search->arena, &search->bound));
        if (search->start.value <= search->bound) return PEN_OK;
        search->work = fmax(search->work, AUTO_WORK_SHARE * search->options->time_limit_seconds);
        const pen_status status =
            pen_objective_portfolio(problem, search->options, search->deadline, &search->work,
                                    search->arena, &search->start);
        search->is_cut = search->is_cut || search->start.is_cut;
        return status;
    }
    return pen_placement_weigh(problem, search->start.device_of_group, search->arena,
                               &search->start.value);
}

// In counted steps: what `local_search` does, so that this never finds less. The better start of
// the portfolio may lead to a worse end.
static pen_status auto_search_plainly(auto_search *search) {
    const pen_problem *problem = search->problem;
    const double now = pen_clock_seconds();
    const pen_local_search_options plain = {
        .seed = search->options->seed,
        .begin = now,
        .deadline = search->deadline,
        .seconds = pen_local_search_seconds(problem, search->options->time_limit_seconds),
        .is_counted = true,
        .value = INFINITY,
        .enough = search->bound,
    };
    double value;
    if (search->plain == NULL || search->start.value <= search->bound) return PEN_OK;
    search->is_cut = search->is_cut || now >= search->deadline;
    if (search->is_cut) return PEN_OK;
    PEN_TRY(pen_local_search_run(problem, search->start.line, &plain, search->plain, &value));
    search->is_cut = pen_clock_seconds() >= search->deadline;
    if (value >= search->start.value) return PEN_OK;
    search->start.value = value;
    memcpy(search->start.device_of_group, search->plain,
           problem->group_count * sizeof *search->plain);
    return PEN_OK;
}

// Rounds let the workers go on from the best that any of them found.
static pen_status auto_search_long(auto_search *search) {
    const uint32_t wished = search->options->thread_count;
    search->worker_count = wished < AUTO_THREAD_LIMIT ? wished : AUTO_THREAD_LIMIT;
    for (uint32_t i = 0; i < search->worker_count; i++) {
        PEN_TRY(PEN_NEW(search->arena, search->problem->group_count,
                        &search->workers[i].device_of_group));
    }
    PEN_TRY(PEN_NEW(search->arena, search->problem->group_count, &search->origin));
    memcpy(search->origin, search->start.device_of_group,
           search->problem->group_count * sizeof *search->origin);
    const double rounds = search->options->time_limit_seconds / AUTO_ROUND_SECONDS;
    const double share =
        search->options->work_share > 0.0 ? search->options->work_share : AUTO_COUNTED_SHARE;
    search->has_fresh =
        search->options->begins_afresh && pen_local_search_has_fresh(search->problem);
    const uint32_t least = search->has_fresh ? AUTO_ROUNDS_FRESH : AUTO_ROUNDS_LEAST;
    search->round_count = rounds < least ? least : rounds > 1000.0 ? 1000 : (uint32_t)rounds;
    search->seconds = fmin(share * search->options->time_limit_seconds,
                           pen_local_search_enough_seconds(search->problem)) /
                      search->round_count;
    for (uint32_t round = 0; round < search->round_count; round++) {
        if (search->start.value <= search->bound) break;
        if (round > 0 && pen_clock_seconds() >= search->deadline) {
            search->is_cut = true;
            break;
        }
        PEN_TRY(auto_run_round(search, round));
    }
    return auto_search_plainly(search);
}

// What is too large for the start of the portfolio, and perhaps for all of it.
static pen_status auto_search_large(auto_search *search) {
    const pen_problem *problem = search->problem;
    const pen_strategy_options *options = search->options;
    const bool is_searched_on =
        (uint64_t)problem->group_count * problem->given.device_count <= AUTO_CELLS;
    const double share = is_searched_on ? AUTO_LARGE_START_SHARE : AUTO_LARGE_TIME_SHARE;
    const pen_large_search_options large = {
        .seed = options->seed,
        .begin = search->begin,
        .deadline = search->begin + share * options->time_limit_seconds,
        .cut = options->is_counted && options->cut_seconds > 0.0
                   ? search->begin + share * options->cut_seconds
                   : 0.0,
        .thread_count = options->thread_count,
        .partition = pen_metis_partition,
    };
    PEN_TRY(pen_large_search(problem, &large, search->arena, &search->start));
    search->is_cut = search->start.is_cut;
    search->is_answered = true;
    if (!is_searched_on) return PEN_OK;
    PEN_TRY(auto_weigh_start(search));
    return auto_search_long(search);
}

// A small problem: looks at all placements, if the time suffices.
static pen_status auto_search_all(auto_search *search, bool *out_is_complete) {
    const uint32_t group_count = search->problem->group_count;
    const bool is_tiny = group_count <= AUTO_GROUPS_TINY;
    const double seconds = AUTO_TINY_SHARE * search->options->time_limit_seconds;
    const double visit = search->problem->given.objective == PEN_OBJECTIVE_THROUGHPUT
                             ? AUTO_VISIT_SECONDS
                             : AUTO_VISIT_SECONDS_WEIGHED;
    // a visit of a step's time takes as long as its schedule: there the clock ends it
    const bool is_visited = search->is_counted && search->options->work_share > 0.0;
    const pen_exhaustive_options all = {.visit_limit = !is_tiny     ? AUTO_VISITS
                                                       : is_visited ? (uint64_t)(seconds / visit)
                                                                    : UINT64_MAX,
                                        .deadline = is_visited ? search->deadline
                                                               : search->begin + seconds};
    if (search->start.device_of_group == NULL) {
        PEN_TRY(PEN_NEW(search->arena, group_count, &search->start.device_of_group));
    }
    PEN_TRY(pen_exhaustive_search(search->problem, &all, search->arena,
                                  search->start.device_of_group, &search->start.value,
                                  out_is_complete));
    if (!*out_is_complete && pen_clock_seconds() >= all.deadline) search->is_cut = true;
    return PEN_OK;
}

// Begins from what the caller knows, where it is right and better than the start.
static pen_status auto_take_known(auto_search *search) {
    const pen_problem *problem = search->problem;
    const uint32_t *known = search->options->known;
    pen_initial_placement *start = &search->start;
    pen_placement *placement;
    if (known == NULL) return PEN_OK;
    pen_status status = pen_placement_new(problem, known, search->arena, &placement);
    if (status == PEN_OK) status = pen_placement_check(problem, placement);
    if (pen_status_get_code(status) == PEN_DOES_NOT_FIT ||
        pen_status_get_code(status) == PEN_INVALID_INPUT) {
        pen_status_ignore(status, "what is known need not be right");
        return PEN_OK;
    }
    if (status != PEN_OK) return status;
    if (start->is_found && placement->value >= start->value) return PEN_OK;
    if (!start->is_found) {
        PEN_TRY(PEN_NEW(search->arena, problem->group_count, &start->line));
        PEN_TRY(PEN_NEW(search->arena, problem->group_count, &start->device_of_group));
        PEN_TRY(pen_first_line(problem, search->arena, start->line));
    }
    for (uint32_t v = 0; v < problem->given.node_count; v++)
        start->device_of_group[problem->group_of_node[v]] = known[v];
    start->is_found = true;
    start->value = placement->value;
    return PEN_OK;
}

// A start by segments, or what is known where that is better; none and `missed` where nothing fits.
static pen_status auto_find_start(auto_search *search) {
    const pen_strategy_options *options = search->options;
    search->work = AUTO_WORK_SHARE * options->time_limit_seconds;
    const pen_initial_options start_options = {
        .seed = options->seed,
        .order_count = AUTO_ORDERS_FIRST,
        .deadline = search->is_counted
                        ? search->deadline
                        : search->begin + AUTO_START_SHARE * options->time_limit_seconds,
        .work = search->is_counted ? &search->work : NULL};
    const pen_status status = pen_local_search_start(search->problem, &start_options, search->arena,
                                                     &search->start, &search->bound);
    if (pen_status_get_code(status) == PEN_DOES_NOT_FIT) {
        search->missed = status;
        search->start = (pen_initial_placement){.value = INFINITY};
    } else if (status != PEN_OK) {
        return status;
    }
    search->is_cut = search->start.is_cut;
    if (search->start.is_found && pen_local_search_counts(search->problem)) {
        PEN_TRY(PEN_NEW(search->arena, search->problem->group_count, &search->plain));
        memcpy(search->plain, search->start.device_of_group,
               search->problem->group_count * sizeof *search->plain);
    }
    PEN_TRY(auto_take_known(search));
    return search->start.is_found ? auto_weigh_start(search) : PEN_OK;
}

// A start, then all placements of a small problem, or a search as long as there is time.
static pen_status auto_search_from_start(auto_search *search) {
    const bool is_small = search->problem->group_count <= AUTO_GROUPS_EXHAUSTIVE;
    bool is_complete = false;
    PEN_TRY(auto_find_start(search));
    if (!is_small && !search->start.is_found) return PEN_OK;
    if (is_small) PEN_TRY(auto_search_all(search, &is_complete));
    if (!(search->start.value < INFINITY)) {
        if (search->missed != PEN_OK) return PEN_OK;
        if (is_complete) {
            return pen_memory_blame(search->problem, "of all placements none is right",
                                    search->arena);
        }
    }
    search->is_answered = true;
    if (!is_complete) return auto_search_long(search);
    search->bound = search->start.value * (1.0 - 1e-12);
    search->is_cut = false; // however it came there, it is the best
    return PEN_OK;
}

// Large problems have a search of their own, whose steps cost less per node.
static pen_status auto_place(const pen_problem *problem, const pen_strategy_options *options,
                             pen_arena *arena, pen_strategy_result *out_result) {
    auto_search search = {.problem = problem,
                          .options = options,
                          .arena = arena,
                          .is_counted = options->is_counted || pen_local_search_counts(problem),
                          .begin = pen_clock_seconds()};
    const bool has_cut = search.is_counted && options->cut_seconds > 0.0;
    search.deadline = search.begin + AUTO_TIME_SHARE * (has_cut ? options->cut_seconds
                                                                : options->time_limit_seconds);
    const bool is_large =
        pen_problem_is_large(problem) && problem->given.objective != PEN_OBJECTIVE_TRAFFIC;
    const pen_status status =
        is_large ? auto_search_large(&search) : auto_search_from_start(&search);
    if (status != PEN_OK || !search.is_answered) return pen_status_join(search.missed, status);
    pen_status_ignore(search.missed, "there is a placement although the start found none");
    PEN_ASSERT(search.start.device_of_group != NULL);
    memcpy(out_result->device_of_group, search.start.device_of_group,
           problem->group_count * sizeof *out_result->device_of_group);
    out_result->lower_bound = search.bound;
    out_result->is_cut = search.is_cut;
    return PEN_OK;
}

extern const pen_strategy pen_strategy_auto;
const pen_strategy pen_strategy_auto = {
    .name = "auto",
    .summary = "all that helps, within the time limit",
    .judges_all = true,
    .tries_all_small = true,
    .place = auto_place,
};
