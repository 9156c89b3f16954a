#include "scheduler/schedule/auto_schedule.h"

#include <math.h>
#include <string.h>

#include "scheduler/schedule/order_search.h"
#include "scheduler/schedule/schedule_check.h"
#include "scheduler/schedule/stage_windows.h"

#define AUTO_KEPT_COUNT 3u // candidates that are improved
#define AUTO_LIST_WORK 4u  // of a list schedule, for each task, beside simulations

// A schedule that was found.
typedef struct auto_candidate {
    double seconds;
    pen_schedule *schedule; // NULL: none yet
    bool *is_halved;        // [stage_count]
} auto_candidate;

typedef struct auto_search {
    const pen_stage_index *index;
    const pen_auto_options *options;
    pen_arena *arena;                     // of the candidates
    pen_arena *scratch;                   // of one trial
    auto_candidate kept[AUTO_KEPT_COUNT]; // the fastest first
    pen_auto_report report;
    uint64_t work;
    const pen_list_key *keys[3];
    uint32_t *depth; // [stage_count]
} auto_search;

extern const pen_schedule_generator pen_schedule_auto;

static bool auto_is_over(const auto_search *search) {
    const pen_auto_options *options = search->options;
    if (search->work >= options->work_limit) return true;
    return options->is_over != NULL && options->is_over(options->context);
}

// ---- candidates

static bool auto_is_same(const pen_schedule *a, const pen_schedule *b) {
    if (a->task_count != b->task_count) return false;
    for (uint32_t t = 0; t < a->task_count; t++) {
        if (a->tasks[t].kind != b->tasks[t].kind || a->tasks[t].stage != b->tasks[t].stage ||
            a->tasks[t].microbatch != b->tasks[t].microbatch)
            return false;
    }
    return true;
}

static pen_status auto_copy(auto_search *search, const pen_schedule *schedule,
                            const bool *is_halved, pen_schedule **out_schedule) {
    PEN_TRY(pen_schedule_new(search->index, is_halved, search->arena, out_schedule));
    memcpy((*out_schedule)->tasks, schedule->tasks, schedule->task_count * sizeof *schedule->tasks);
    return PEN_OK;
}

// Simulates a schedule that fits, and keeps it if it is one of the fastest.
static pen_status auto_offer(auto_search *search, const pen_schedule *schedule,
                             double *out_seconds) {
    const uint32_t stage_count = search->index->graph->stage_count;
    pen_task_graph *graph;
    pen_task_run run;
    uint32_t *order;
    auto_candidate found = {0};
    PEN_TRY(PEN_NEW(search->arena, stage_count, &found.is_halved));
    pen_schedule_find_halved(schedule, stage_count, found.is_halved);
    PEN_TRY(pen_task_graph_new(search->index, found.is_halved, search->scratch, &graph));
    PEN_TRY(pen_task_run_new(graph, false, search->scratch, &run));
    PEN_TRY(PEN_NEW(search->scratch, schedule->task_count, &order));
    pen_task_graph_order(graph, schedule, order);
    pen_task_graph_run(graph, schedule->first_task, order, &run);
    search->work += schedule->task_count;
    found.seconds = run.step_seconds;
    *out_seconds = found.seconds;
    uint32_t at = 0;
    for (; at < AUTO_KEPT_COUNT && search->kept[at].schedule != NULL; at++) {
        if (auto_is_same(search->kept[at].schedule, schedule)) return PEN_OK;
        if (found.seconds < search->kept[at].seconds) break;
    }
    if (at == AUTO_KEPT_COUNT) return PEN_OK;
    PEN_TRY(auto_copy(search, schedule, found.is_halved, &found.schedule));
    for (uint32_t i = AUTO_KEPT_COUNT - 1; i > at; i--) {
        search->kept[i] = search->kept[i - 1];
    }
    search->kept[at] = found;
    return PEN_OK;
}

// The generators that have a name. A refusal for want of memory is kept in *out_refusal.
static pen_status auto_try_named(auto_search *search, pen_status *out_refusal) {
    search->report.best_named_seconds = INFINITY;
    for (size_t i = 0; pen_schedule_generators[i] != NULL; i++) {
        const pen_schedule_generator *generator = pen_schedule_generators[i];
        const pen_schedule *schedule;
        double seconds;
        if (generator == &pen_schedule_auto) continue;
        pen_arena_reset(search->scratch);
        const pen_status status =
            generator->generate(search->index->graph, search->scratch, &schedule);
        if (pen_status_get_code(status) == PEN_DOES_NOT_FIT) {
            if (*out_refusal == PEN_OK) {
                *out_refusal = status;
            } else {
                pen_status_ignore(status, "the first says it");
            }
            continue;
        }
        PEN_TRY(status);
        PEN_TRY(auto_offer(search, schedule, &seconds));
        if (seconds >= search->report.best_named_seconds) continue;
        search->report.best_named_seconds = seconds;
    }
    return PEN_OK;
}

// A schedule that was found for these stages before, or for others.
static pen_status auto_try_given(auto_search *search) {
    double seconds;
    if (search->options->given == NULL) return PEN_OK;
    pen_arena_reset(search->scratch);
    const pen_status status =
        pen_schedule_check(search->index->graph, search->options->given, search->scratch);
    const pen_status_code code = pen_status_get_code(status);
    if (code == PEN_INVALID_INPUT || code == PEN_DOES_NOT_FIT) {
        pen_status_ignore(status, "it is one of other stages");
        return PEN_OK;
    }
    PEN_TRY(status);
    return auto_offer(search, search->options->given, &seconds);
}

// ---- list schedules

// Which stages run their halves apart.
typedef enum auto_halves {
    AUTO_HALVES_NONE,
    AUTO_HALVES_AWAITED, // those for whose input half others wait
    AUTO_HALVES_ALL,     // those that have a weight half
} auto_halves;
#define AUTO_HALVES_COUNT 3

// How many microbatches stages may hold, before memory shrinks it.
typedef enum auto_hold {
    AUTO_HOLD_USUAL, // as 1f1b, as zero_bubble
    AUTO_HOLD_TWICE,
    AUTO_HOLD_ALL,
} auto_hold;
#define AUTO_HOLD_COUNT 3

static void auto_set_halves(const auto_search *search, auto_halves halves, bool *is_halved) {
    const pen_stage_graph *graph = search->index->graph;
    pen_stage_index_find_halves(search->index, is_halved);
    for (uint32_t s = 0; s < graph->stage_count; s++) {
        const pen_stage *stage = &graph->stages[s];
        if (halves == AUTO_HALVES_NONE) is_halved[s] = false;
        if (halves == AUTO_HALVES_ALL) {
            is_halved[s] =
                stage->has_backward && !stage->is_recomputed && stage->backward_weight_seconds > 0;
        }
    }
}

static void auto_set_windows(const auto_search *search, auto_hold hold,
                             pen_stage_windows *windows) {
    const pen_stage_graph *graph = search->index->graph;
    for (uint32_t s = 0; s < graph->stage_count; s++) {
        const uint32_t most = pen_stage_microbatches(graph, &graph->stages[s]);
        if (!graph->stages[s].has_backward) continue;
        uint32_t window = windows->window[s];
        uint32_t held = window + (windows->is_halved[s] ? search->depth[s] : 0);
        if (hold == AUTO_HOLD_TWICE) {
            window *= 2;
            held *= 2;
        }
        if (hold == AUTO_HOLD_ALL || window > most) window = most;
        if (hold == AUTO_HOLD_ALL || held > most) held = most;
        windows->window[s] = window;
        windows->hold[s] = held;
        windows->halved[s] = held;
    }
}

// One rule of list scheduling. One that does not fit costs work too, so that the count stays the
// same on every machine.
static pen_status auto_try_list(auto_search *search, auto_halves halves, auto_hold hold,
                                const pen_list_scheduling *options) {
    pen_stage_windows windows;
    const pen_schedule *schedule;
    double seconds;
    pen_arena_reset(search->scratch);
    PEN_TRY(pen_stage_windows_new(search->index, search->scratch, &windows));
    auto_set_halves(search, halves, windows.is_halved);
    auto_set_windows(search, hold, &windows);
    const pen_status status =
        pen_stage_windows_schedule(search->index, options, &windows, search->scratch, &schedule);
    if (pen_status_get_code(status) == PEN_DOES_NOT_FIT) {
        pen_status_ignore(status, "others may fit");
        search->work += AUTO_LIST_WORK * search->index->graph->stage_count *
                        (uint64_t)search->index->graph->microbatch_count;
        return PEN_OK;
    }
    PEN_TRY(status);
    search->work += AUTO_LIST_WORK * (uint64_t)schedule->task_count;
    return auto_offer(search, schedule, &seconds);
}

// The task goes first that has the longest way to the end of its microbatch; a microbatch later is
// as much less as the busiest device takes for one.
static pen_status auto_way_keys(auto_search *search, const pen_list_key **out_keys) {
    const pen_stage_index *index = search->index;
    const pen_stage_graph *graph = index->graph;
    const uint32_t count = graph->stage_count;
    pen_list_key *keys;
    double *load, period = 0;
    PEN_TRY(PEN_NEW(search->arena, (size_t)PEN_LIST_KIND_COUNT * count, &keys));
    PEN_TRY(PEN_NEW(search->arena, graph->device_count, &load));
    for (uint32_t s = 0; s < count; s++) {
        load[graph->stages[s].device] += pen_stage_microbatch_seconds(&graph->stages[s]);
    }
    for (uint32_t e = 0; e < graph->edge_count; e++) {
        pen_stage_edge_add_handling(graph, &graph->edges[e], load);
    }
    for (uint32_t d = 0; d < graph->device_count; d++) {
        period = fmax(period, load[d]);
    }
    // bases are first the ways, below 0
    for (uint32_t s = 0; s < count; s++) {
        double way = 0;
        for (uint32_t i = index->first_input[s]; i < index->first_input[s + 1]; i++) {
            const uint32_t e = index->in_edges[i];
            const pen_stage_edge *edge = &graph->edges[e];
            if (!edge->has_gradient) continue;
            way = fmax(way, pen_route_seconds(&index->backward_route[e]) -
                                keys[count + edge->source].base);
        }
        const double weight = graph->stages[s].backward_weight_seconds;
        const double input = pen_stage_backward_input_seconds(&graph->stages[s]);
        keys[count + s] = (pen_list_key){-(input + fmax(way, weight)), 0, period};
        keys[2 * (size_t)count + s] = (pen_list_key){-weight, 0, period};
    }
    for (uint32_t s = count; s-- > 0;) {
        double way = -keys[count + s].base;
        for (uint32_t i = index->first_output[s]; i < index->first_output[s + 1]; i++) {
            const uint32_t e = index->out_edges[i];
            way = fmax(way, pen_route_seconds(&index->forward_route[e]) -
                                keys[graph->edges[e].target].base);
        }
        keys[s] = (pen_list_key){-(graph->stages[s].forward_seconds + way), 0, period};
    }
    *out_keys = keys;
    return PEN_OK;
}

// Nothing faster can be found, or nothing more may be tried.
static bool auto_is_settled(const auto_search *search) {
    const auto_candidate *best = &search->kept[0];
    if (auto_is_over(search)) return true;
    return best->schedule != NULL && best->seconds <= search->report.lower_bound;
}

static pen_status auto_try_rules(auto_search *search, auto_halves halves, auto_hold hold) {
    static const double patience[] = {0.5, 0, 1};
    const uint32_t patience_count = halves == AUTO_HALVES_NONE ? 1 : 3;
    for (uint32_t k = 0; k < 3; k++) {
        for (uint32_t p = 0; p < patience_count; p++) {
            const pen_list_scheduling options = {.keys = search->keys[k], .patience = patience[p]};
            if (auto_is_settled(search)) return PEN_OK;
            PEN_TRY(auto_try_list(search, halves, hold, &options));
        }
    }
    return PEN_OK;
}

static pen_status auto_try_lists(auto_search *search) {
    for (int hold = 0; hold < AUTO_HOLD_COUNT; hold++) {
        for (int halves = 0; halves < AUTO_HALVES_COUNT; halves++) {
            PEN_TRY(auto_try_rules(search, (auto_halves)halves, (auto_hold)hold));
        }
    }
    return PEN_OK;
}

// ---- the search

// Each kept candidate is improved with a seed of its own, so that they do not all walk the same
// way.
static pen_status auto_improve(auto_search *search, uint32_t which, uint64_t work) {
    auto_candidate *candidate = &search->kept[which];
    pen_task_graph *graph;
    uint32_t *order;
    const pen_order_search options = {.seed = search->options->seed + which,
                                      .work_limit = work,
                                      .lower_bound = search->report.lower_bound,
                                      .is_over = search->options->is_over,
                                      .context = search->options->context};
    pen_schedule *schedule = candidate->schedule;
    pen_arena_reset(search->scratch);
    PEN_TRY(pen_task_graph_new(search->index, candidate->is_halved, search->scratch, &graph));
    PEN_TRY(PEN_NEW(search->scratch, schedule->task_count, &order));
    pen_task_graph_order(graph, schedule, order);
    PEN_TRY(pen_order_search_run(graph, &options, schedule->first_task, order, search->scratch,
                                 &candidate->seconds));
    for (uint32_t t = 0; t < schedule->task_count; t++) {
        schedule->tasks[t] = graph->tasks[order[t]];
    }
    return PEN_OK;
}

// Half of the work that is left for the fastest, the rest for the others.
static pen_status auto_improve_all(auto_search *search) {
    if (auto_is_over(search)) return PEN_OK;
    const uint64_t left = search->options->work_limit - search->work;
    uint32_t best = 0;
    for (uint32_t i = 0; i < AUTO_KEPT_COUNT && search->kept[i].schedule != NULL; i++) {
        if (search->kept[best].seconds <= search->report.lower_bound) break;
        PEN_TRY(auto_improve(search, i, i == 0 ? left / 2 : left / 4));
        if (search->kept[i].seconds < search->kept[best].seconds) best = i;
    }
    search->kept[0] = search->kept[best];
    return PEN_OK;
}

// What bounds are made from.
typedef struct auto_bounds {
    double *forward;  // [stage_count] when its first forward task can end, at the earliest
    double *backward; // [stage_count] when its first backward task can
    double *first;    // [device_count] before which the device has nothing to do
    double *busy;     // [device_count] what it has to do then, up to its last task
} auto_bounds;

// The way of one microbatch up. A device may have to receive before its first task.
static void auto_bound_forward(const pen_stage_index *index, auto_bounds *bounds) {
    const pen_stage_graph *graph = index->graph;
    for (uint32_t s = 0; s < graph->stage_count; s++) {
        const pen_stage *stage = &graph->stages[s];
        double start = 0, arrival = INFINITY;
        for (uint32_t i = index->first_input[s]; i < index->first_input[s + 1]; i++) {
            const uint32_t e = index->in_edges[i];
            const pen_route *route = &index->forward_route[e];
            const double there = bounds->forward[graph->edges[e].source] + pen_route_seconds(route);
            start = fmax(start, there);
            arrival = fmin(arrival, bounds->forward[graph->edges[e].source] +
                                        route->handling.latency_seconds);
        }
        bounds->forward[s] = start + stage->forward_seconds;
        bounds->first[stage->device] = fmin(bounds->first[stage->device], fmin(arrival, start));
        bounds->busy[stage->device] +=
            stage->update_seconds +
            pen_stage_microbatches(graph, stage) * pen_stage_microbatch_seconds(stage);
    }
}

// What devices compute for transfers, but for what the last task of each makes: sent after it.
static void auto_bound_handling(const pen_stage_index *index, const double *most_sent,
                                double *handled, auto_bounds *bounds) {
    const pen_stage_graph *graph = index->graph;
    for (uint32_t e = 0; e < graph->edge_count; e++) {
        pen_stage_edge_add_handling(graph, &graph->edges[e], handled);
    }
    for (uint32_t d = 0; d < graph->device_count; d++) {
        uint32_t count = graph->microbatch_count; // that a stage of the device runs, at least
        for (uint32_t i = index->first_stage[d]; i < index->first_stage[d + 1]; i++) {
            const pen_stage *stage = &graph->stages[index->device_stages[i]];
            const uint32_t own = pen_stage_microbatches(graph, stage);
            if (own < count) count = own;
        }
        const double seconds = count * handled[d] - most_sent[d];
        bounds->busy[d] += fmax(seconds, 0);
    }
}

// The busiest device, from when its first task can begin; and the way of one microbatch.
static pen_status auto_bound(auto_search *search) {
    const pen_stage_index *index = search->index;
    const pen_stage_graph *graph = index->graph;
    auto_bounds bounds;
    double *sent, *handled; // [device_count] by one device for a microbatch
    PEN_TRY(PEN_NEW(search->arena, graph->stage_count, &bounds.forward));
    PEN_TRY(PEN_NEW(search->arena, graph->stage_count, &bounds.backward));
    PEN_TRY(PEN_NEW(search->arena, graph->device_count, &bounds.busy));
    PEN_TRY(PEN_NEW(search->arena, graph->device_count, &bounds.first));
    PEN_TRY(PEN_NEW(search->arena, graph->device_count, &sent));
    PEN_TRY(PEN_NEW(search->arena, graph->device_count, &handled));
    for (uint32_t d = 0; d < graph->device_count; d++) {
        bounds.first[d] = INFINITY;
    }
    for (uint32_t e = 0; e < graph->edge_count; e++) {
        const pen_stage_edge *edge = &graph->edges[e];
        sent[graph->stages[edge->source].device] += index->forward_route[e].handling.send_seconds;
        sent[graph->stages[edge->target].device] += index->backward_route[e].handling.send_seconds;
    }
    auto_bound_forward(index, &bounds);
    auto_bound_handling(index, sent, handled, &bounds);
    double bound = 0;
    for (uint32_t s = graph->stage_count; s-- > 0;) {
        double start = bounds.forward[s];
        for (uint32_t i = index->first_output[s]; i < index->first_output[s + 1]; i++) {
            const uint32_t e = index->out_edges[i];
            const pen_stage_edge *edge = &graph->edges[e];
            if (!edge->has_gradient) continue;
            start = fmax(start, bounds.backward[edge->target] +
                                    pen_route_seconds(&index->backward_route[e]));
        }
        const pen_stage *stage = &graph->stages[s];
        bounds.backward[s] = start + pen_stage_backward_input_seconds(stage);
        bound = fmax(bound,
                     bounds.backward[s] + stage->backward_weight_seconds + stage->update_seconds);
    }
    for (uint32_t d = 0; d < graph->device_count; d++) {
        if (bounds.busy[d] > 0) bound = fmax(bound, bounds.first[d] + bounds.busy[d]);
    }
    // sums are rounded in another order
    search->report.lower_bound = bound * (1 - 1e-12);
    return PEN_OK;
}

static pen_status auto_run(auto_search *search, pen_status *out_refusal) {
    static const double backward_first[PEN_LIST_KIND_COUNT] = {1, 0, 2};
    static const double forward_first[PEN_LIST_KIND_COUNT] = {0, 1, 2};
    const pen_stage_graph *graph = search->index->graph;
    PEN_TRY(auto_bound(search));
    PEN_TRY(PEN_NEW(search->arena, graph->stage_count, &search->depth));
    pen_stage_index_depths(search->index, search->depth);
    PEN_TRY(pen_list_keys_new(graph, forward_first, search->arena, &search->keys[0]));
    PEN_TRY(pen_list_keys_new(graph, backward_first, search->arena, &search->keys[1]));
    PEN_TRY(auto_way_keys(search, &search->keys[2]));
    PEN_TRY(auto_try_named(search, out_refusal));
    PEN_TRY(auto_try_given(search));
    PEN_TRY(auto_try_lists(search));
    return auto_improve_all(search);
}

pen_status pen_auto_schedule(const pen_stage_graph *graph, const pen_auto_options *options,
                             pen_arena *arena, const pen_schedule **out_schedule,
                             pen_auto_report *out_report) {
    auto_search search = {.options = options, .arena = arena};
    pen_status refusal = PEN_OK;
    PEN_TRY(pen_stage_index_new(graph, arena, &search.index));
    PEN_TRY(pen_arena_create_within(arena, &search.scratch));
    const pen_status status = auto_run(&search, &refusal);
    if (status != PEN_OK || search.kept[0].schedule != NULL) {
        pen_status_ignore(refusal, "another fits, or worse happened");
        PEN_TRY(status);
        search.report.seconds = search.kept[0].seconds;
        *out_schedule = search.kept[0].schedule;
        if (out_report != NULL) *out_report = search.report;
        return PEN_OK;
    }
    return refusal;
}

static pen_status auto_generate(const pen_stage_graph *graph, pen_arena *arena,
                                const pen_schedule **out_schedule) {
    const pen_auto_options options = {.seed = PEN_AUTO_SEED, .work_limit = PEN_AUTO_WORK};
    return pen_auto_schedule(graph, &options, arena, out_schedule, NULL);
}

const pen_schedule_generator pen_schedule_auto = {
    .name = "auto",
    .summary = "the fastest that a limited search finds, never slower than the others",
    .generate = auto_generate,
};
