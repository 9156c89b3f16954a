#include "scheduler/report/report_run.h"

#include <math.h>

#include "scheduler/plan/planned_trace.h"
#include "scheduler/report/run_figures.h"
#include "scheduler/report/run_report.h"
#include "scheduler/trace/trace_file.h"
#include "scheduler/trace/trace_levels.h"
#include "scheduler/trace/trace_summary.h"

#define RUN_STEP_LIMIT 12u // steps of a run that are shown

// A trace with all that is worked out from it.
typedef struct run_side {
    pen_trace trace;
    const pen_trace_summary *summary;
    const pen_trace_entry *entries;
    uint32_t entry_count;
    const pen_trace_level *levels;
    uint32_t level_count;
} run_side;

// Stages are reckoned one by one, devices as a whole, where stages share memory: what the stages of
// a device hold is shown as a share of what the device takes.
static double run_share(const pen_report *report, uint32_t device) {
    const double peak = report->timeline->bytes_peak[device];
    const double total = (double)report->plan->devices[device].memory.total;
    return peak > 0 && total > 0 ? total / peak : 1;
}

typedef struct run_writer {
    pen_json_writer *json;
    const pen_report *report;
    pen_arena *arena;
} run_writer;

static pen_status run_prepare(const pen_trace *trace, pen_arena *arena, run_side *side) {
    side->trace = *trace;
    PEN_TRY(pen_trace_merge(&side->trace, arena, &side->entries, &side->entry_count));
    PEN_TRY(pen_trace_levels(&side->trace, side->entries, side->entry_count, arena, &side->levels,
                             &side->level_count));
    PEN_TRY(pen_trace_summarize(&side->trace, arena, &side->summary));
    PEN_ASSERT(side->summary != NULL);
    return PEN_OK;
}

static void run_time(pen_json_writer *json, double seconds) {
    pen_json_integer(json, llround(fmax(-1e9, fmin(1e9, seconds)) * 1e9));
}

// ---- a step: flat lists of numbers, for they are many

typedef struct run_events {
    const pen_trace_event **events; // of one step, in order of their start
    uint32_t count;
} run_events;

static pen_status run_gather(const run_side *side, const pen_trace_step *step, pen_arena *arena,
                             run_events *out_events) {
    uint32_t count = 0, at = 0;
    for (int pass = 0; pass < 2; pass++) {
        for (uint32_t i = 0; i < side->entry_count; i++) {
            const pen_trace_event *event = &side->entries[i].event;
            if (event->form != 0 || event->round != step->round) continue;
            if (pass == 0) count += 1;
            if (pass == 1) out_events->events[at++] = event;
        }
        if (pass == 0) PEN_TRY(PEN_NEW(arena, count, &out_events->events));
    }
    out_events->count = count;
    return PEN_OK;
}

static void run_write_span(pen_json_writer *json, const pen_trace_event *event,
                           const pen_trace_step *step) {
    run_time(json, event->start_seconds - step->start_seconds);
    run_time(json, event->end_seconds - step->start_seconds);
}

static void run_write_events(pen_json_writer *json, const run_events *events,
                             const pen_trace_step *step, uint32_t device, pen_trace_kind kind) {
    for (uint32_t i = 0; i < events->count; i++) {
        const pen_trace_event *event = events->events[i];
        if (event->device != device || event->kind != kind) continue;
        if (kind == PEN_TRACE_TASK) {
            pen_json_unsigned(json, (uint64_t)event->task.kind);
            pen_json_unsigned(json, event->task.stage);
            pen_json_unsigned(json, event->task.microbatch);
        } else if (kind == PEN_TRACE_SEND) {
            pen_json_unsigned(json, event->channel);
            pen_json_unsigned(json, event->bytes);
        }
        run_write_span(json, event, step);
    }
}

// What the device holds from the step's start, or from before it, to its end.
static void run_write_levels(const run_writer *writer, const run_side *side,
                             const pen_trace_step *step, uint32_t device) {
    pen_json_writer *json = writer->json;
    const double share = run_share(writer->report, device);
    const pen_trace_level *before = NULL;
    for (uint32_t i = 0; i < side->level_count; i++) {
        const pen_trace_level *level = &side->levels[i];
        if (level->device != device) continue;
        if (level->seconds > step->end_seconds) break;
        if (level->seconds <= step->start_seconds) {
            before = level;
            continue;
        }
        const pen_trace_level *both[2] = {before, level};
        for (int b = 0; b < 2; b++) {
            if (both[b] == NULL) continue;
            run_time(json, fmax(0, both[b]->seconds - step->start_seconds));
            pen_json_integer(json, llround(both[b]->bytes * share));
            pen_json_unsigned(json, both[b]->in_flight);
        }
        before = NULL;
    }
}

// Times relative to the step's beginning, as the page draws them.
static pen_status run_write_step(const run_writer *writer, const run_side *side,
                                 const pen_trace_step *step) {
    pen_json_writer *json = writer->json;
    run_events events;
    PEN_TRY(run_gather(side, step, writer->arena, &events));
    pen_json_begin_object(json);
    pen_json_key_unsigned(json, "step", step->step);
    pen_json_key(json, "length");
    run_time(json, step->end_seconds - step->start_seconds);
    pen_json_key_number(json, "bubble", step->bubble);
    pen_json_key_array(json, "devices");
    for (uint32_t d = 0; d < side->trace.device_count; d++) {
        pen_json_begin_object(json);
        pen_json_key_array(json, "tasks");
        run_write_events(json, &events, step, d, PEN_TRACE_TASK);
        pen_json_end_array(json);
        pen_json_key_array(json, "sends");
        run_write_events(json, &events, step, d, PEN_TRACE_SEND);
        pen_json_end_array(json);
        pen_json_key_array(json, "levels");
        run_write_levels(writer, side, step, d);
        pen_json_end_array(json);
        pen_json_end_object(json);
    }
    pen_json_end_array(json);
    pen_json_end_object(json);
    return PEN_OK;
}

// The step whose length is nearest to the median: the one to look at first.
static uint32_t run_typical(const pen_trace_summary *summary) {
    uint32_t best = 0;
    double best_distance = INFINITY;
    for (uint32_t s = 0; s < summary->step_count; s++) {
        const pen_trace_step *step = &summary->steps[s];
        const double distance =
            fabs(step->end_seconds - step->start_seconds - summary->step_seconds);
        if (distance >= best_distance) continue;
        best = s;
        best_distance = distance;
    }
    return best;
}

// A long training has more steps than a page can hold: every n-th is shown, and always the one that
// took the median time.
static pen_status run_write_side(const run_writer *writer, const run_side *side, const char *key) {
    pen_json_writer *json = writer->json;
    const pen_trace_summary *summary = side->summary;
    const uint32_t typical = run_typical(summary);
    pen_json_key_object(json, key);
    pen_json_key_number(json, "step_seconds", summary->step_seconds);
    pen_json_key_number(json, "bubble", summary->bubble);
    pen_json_key_unsigned(json, "step_count", summary->step_count);
    pen_json_key_unsigned(json, "lost", summary->lost_count);
    if (summary->has_slowest) {
        pen_json_key_unsigned(json, "slowest_stage", summary->slowest_stage);
    }
    pen_trace_write_channels(json, &side->trace);
    pen_json_key_array(json, "steps");
    const uint32_t stride = summary->step_count / RUN_STEP_LIMIT + 1;
    uint32_t shown = 0, typical_shown = 0;
    for (uint32_t s = 0; s < summary->step_count; s++) {
        if (s == typical) typical_shown = shown;
        if (s != typical && s % stride != 0) continue;
        PEN_TRY(run_write_step(writer, side, &summary->steps[s]));
        shown += 1;
    }
    pen_json_end_array(json);
    pen_json_key_unsigned(json, "typical", typical_shown);
    pen_json_end_object(json);
    return PEN_OK;
}

// ---- links

static const pen_trace_link *run_find_link(const run_side *side, uint32_t source, uint32_t target) {
    for (uint32_t i = 0; side != NULL && i < side->summary->link_count; i++) {
        const pen_trace_link *link = &side->summary->links[i];
        if (link->source == source && link->target == target) return link;
    }
    return NULL;
}

static void run_write_link(pen_json_writer *json, const pen_trace_link *planned,
                           const pen_trace_link *measured) {
    const pen_trace_link *either = planned != NULL ? planned : measured;
    pen_json_begin_object(json);
    if (either->source != PEN_TRACE_HOST) pen_json_key_unsigned(json, "from", either->source);
    if (either->target != PEN_TRACE_HOST) pen_json_key_unsigned(json, "to", either->target);
    for (int side = 0; side < 2; side++) {
        const pen_trace_link *link = side == 0 ? planned : measured;
        if (link == NULL) continue;
        pen_json_key_object(json, side == 0 ? "planned" : "measured");
        pen_json_key_number(json, "bytes", link->bytes);
        pen_json_key_number(json, "frames", link->frames);
        pen_json_key_number(json, "seconds", link->seconds);
        pen_json_end_object(json);
    }
    pen_json_end_object(json);
}

static void run_write_links(pen_json_writer *json, const run_side *planned,
                            const run_side *measured) {
    pen_json_key_array(json, "links");
    for (uint32_t i = 0; i < planned->summary->link_count; i++) {
        const pen_trace_link *link = &planned->summary->links[i];
        run_write_link(json, link, run_find_link(measured, link->source, link->target));
    }
    for (uint32_t i = 0; measured != NULL && i < measured->summary->link_count; i++) {
        const pen_trace_link *link = &measured->summary->links[i];
        if (run_find_link(planned, link->source, link->target) == NULL) {
            run_write_link(json, NULL, link);
        }
    }
    pen_json_end_array(json);
}

// ---- what tasks take

// Only tasks that one of the two sides has.
static void run_write_costs(pen_json_writer *json, const run_side *planned,
                            const run_side *measured, uint32_t stage_count) {
    pen_json_key_array(json, "costs");
    for (uint32_t s = 0; s < stage_count; s++) {
        for (int kind = 0; kind < PEN_TASK_KIND_COUNT; kind++) {
            const pen_task_kind task = (pen_task_kind)kind;
            const double cost = pen_trace_summary_cost(planned->summary, task, s);
            const double really =
                measured != NULL ? pen_trace_summary_cost(measured->summary, task, s) : -1;
            if (cost < 0 && really < 0) continue;
            pen_json_begin_object(json);
            pen_json_key_unsigned(json, "stage", s);
            pen_json_key_integer(json, "kind", kind);
            if (cost >= 0) pen_json_key_number(json, "planned", cost);
            if (really >= 0) pen_json_key_number(json, "measured", really);
            pen_json_end_object(json);
        }
    }
    pen_json_end_array(json);
}

static void run_write_edges(pen_json_writer *json, const pen_stage_graph *graph) {
    pen_json_key_array(json, "edges");
    for (uint32_t e = 0; e < graph->edge_count; e++) {
        const pen_stage_edge *edge = &graph->edges[e];
        pen_json_begin_object(json);
        pen_json_key_unsigned(json, "from", edge->source);
        pen_json_key_unsigned(json, "to", edge->target);
        pen_json_key_number(json, "forward_bytes", edge->forward_bytes);
        pen_json_key_number(json, "backward_bytes", edge->backward_bytes);
        pen_json_end_object(json);
    }
    pen_json_end_array(json);
}

// ---- all of it

// With the plan's costs wrong and the rest as planned, the step would have taken this.
static pen_status run_write_again(const run_writer *writer, const run_side *measured) {
    pen_stage_graph stages;
    const pen_timeline *timeline;
    PEN_TRY(pen_run_measured_stages(writer->report->timeline->graph, measured->summary,
                                    writer->arena, &stages));
    PEN_TRY(pen_schedule_simulate(&stages, writer->report->timeline->schedule, writer->arena,
                                  &timeline));
    pen_json_key_object(writer->json, "with_measured_costs");
    pen_json_key_number(writer->json, "step_seconds", timeline->step_seconds);
    pen_json_key_number(writer->json, "bubble", timeline->bubble);
    pen_json_end_object(writer->json);
    return PEN_OK;
}

static void run_write_figures(pen_json_writer *json, const pen_engine_report *figures) {
    static const char *const keys[] = {"predicted_figures", "measured_figures"};
    for (int side = 0; side < 2; side++) {
        pen_json_key_object(json, keys[side]);
        pen_run_report_json(json, figures, (pen_run_report_side)side);
        pen_json_end_object(json);
    }
}

static pen_status run_measured(const run_writer *writer, const pen_trace *planned, run_side *side) {
    pen_trace trace = *writer->report->trace;
    PEN_TRY(pen_run_check_trace(writer->report->plan, &trace));
    // what is held is told by the plan
    trace.stage_count = planned->stage_count;
    trace.stages = planned->stages;
    trace.fixed_bytes = planned->fixed_bytes;
    return run_prepare(&trace, writer->arena, side);
}

// The plan's side needs no run; with one, the plan's schedule is also simulated with the measured
// times, which tells wrong costs from waiting.
pen_status pen_report_run_json(pen_json_writer *json, const pen_report *report, pen_arena *arena) {
    const run_writer writer = {json, report, arena};
    const pen_engine_report *figures = report->figures;
    const pen_trace *trace;
    run_side planned = {0}, measured = {0};
    const bool is_run = report->trace != NULL;
    if (report->plan == NULL || report->timeline == NULL) return PEN_OK;
    PEN_TRY(pen_planned_trace(report->plan, report->timeline, arena, &trace));
    PEN_TRY(run_prepare(trace, arena, &planned));
    if (is_run) PEN_TRY(run_measured(&writer, trace, &measured));
    if (figures == NULL) {
        pen_engine_report *made;
        PEN_TRY(pen_run_figures(report->plan, report->timeline, report->trace, measured.summary,
                                arena, &made));
        figures = made;
    }
    const bool has_steps = measured.summary != NULL && measured.summary->step_count > 0;
    const run_side *shown = has_steps ? &measured : NULL;
    pen_json_key_object(json, "run");
    PEN_TRY(run_write_side(&writer, &planned, "planned"));
    if (has_steps) {
        PEN_TRY(run_write_side(&writer, &measured, "measured"));
        PEN_TRY(run_write_again(&writer, &measured));
    }
    pen_json_key_array(json, "reserved");
    for (uint32_t d = 0; d < report->plan->device_count; d++) {
        pen_json_integer(json, llround(report->timeline->bytes_peak[d] * run_share(report, d)));
    }
    pen_json_end_array(json);
    run_write_edges(json, report->timeline->graph);
    run_write_links(json, &planned, shown);
    run_write_costs(json, &planned, shown, report->plan->stages.stage_count);
    run_write_figures(json, figures);
    pen_json_end_object(json);
    return PEN_OK;
}
