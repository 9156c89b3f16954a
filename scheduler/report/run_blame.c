#include "scheduler/report/run_blame.h"

#include <math.h>

#include "base/text.h"
#include "scheduler/plan/plan_schedule.h"
#include "scheduler/report/run_figures.h"
#include "scheduler/schedule/schedule_simulate.h"
#include "scheduler/trace/trace_seen.h"

static pen_status blame_simulate(const pen_plan *plan, const pen_stage_graph *stages,
                                 pen_arena *arena, double *out_seconds) {
    const pen_schedule *schedule;
    const pen_timeline *timeline;
    PEN_TRY(pen_plan_schedule(plan, arena, &schedule));
    PEN_TRY(pen_schedule_simulate(stages, schedule, arena, &timeline));
    *out_seconds = timeline->step_seconds;
    return PEN_OK;
}

static void blame_delay(const pen_seen_link *link, pen_stage_handling *io_handling) {
    if (link == NULL) return;
    const double later = link->seconds - link->planned_seconds;
    io_handling->latency_seconds = fmax(0, io_handling->latency_seconds + later);
}

// The edges with what a run says of how late values come, link by link.
static pen_status blame_delay_edges(const pen_trace_seen *seen, pen_stage_graph *io_stages,
                                    pen_arena *arena) {
    pen_stage_edge *edges;
    pen_stage_step_edge *step_edges;
    PEN_TRY(PEN_NEW(arena, io_stages->edge_count, &edges));
    PEN_TRY(PEN_NEW(arena, io_stages->step_edge_count, &step_edges));
    for (uint32_t e = 0; e < io_stages->edge_count; e++) {
        edges[e] = io_stages->edges[e];
        const uint32_t source = io_stages->stages[edges[e].source].device;
        const uint32_t target = io_stages->stages[edges[e].target].device;
        blame_delay(pen_trace_seen_find(seen, source, target, false), &edges[e].forward_handling);
        blame_delay(pen_trace_seen_find(seen, target, source, false), &edges[e].backward_handling);
    }
    for (uint32_t e = 0; e < io_stages->step_edge_count; e++) {
        step_edges[e] = io_stages->step_edges[e];
        const uint32_t source = io_stages->stages[step_edges[e].source].device;
        const uint32_t target = io_stages->stages[step_edges[e].target].device;
        blame_delay(pen_trace_seen_find(seen, source, target, true), &step_edges[e].handling);
    }
    io_stages->edges = edges;
    io_stages->step_edges = step_edges;
    return PEN_OK;
}

// The way on which values are late most: a slow link, which no figure of a device shows.
static void blame_find_way(const pen_plan *plan, const pen_trace_seen *seen, pen_run_blame *blame) {
    double most = 0;
    for (uint32_t i = 0; i < seen->link_count; i++) {
        const pen_seen_link *link = &seen->links[i];
        const double late = (link->seconds - link->planned_seconds) * (double)link->count;
        if (link->is_per_step || late <= most) continue;
        most = late;
        blame->source = plan->devices[link->source].name;
        blame->target = plan->devices[link->target].name;
        blame->way_seconds = link->seconds;
        blame->way_predicted = link->planned_seconds;
    }
}

// The plan's step with computing as measured, then with transfers as measured.
static pen_status blame_by_trace(const pen_plan *plan, const pen_trace *trace, pen_arena *arena,
                                 pen_run_blame *blame) {
    const pen_trace_summary *summary;
    pen_trace_seen seen;
    pen_stage_graph stages;
    double computed, moved;
    PEN_TRY(pen_run_check_trace(plan, trace));
    PEN_TRY(pen_trace_summarize(trace, arena, &summary));
    if (summary->step_count == 0) return PEN_OK;
    PEN_TRY(pen_trace_see(trace, arena, &seen));
    PEN_TRY(pen_run_measured_stages(&plan->stages, summary, arena, &stages));
    PEN_TRY(blame_simulate(plan, &stages, arena, &computed));
    blame_find_way(plan, &seen, blame);
    PEN_TRY(blame_delay_edges(&seen, &stages, arena));
    PEN_TRY(blame_simulate(plan, &stages, arena, &moved));
    blame->has_transfers = true;
    blame->compute_seconds = computed - plan->step_seconds;
    blame->transfer_seconds = moved - computed;
    blame->waiting_seconds = blame->measured_seconds - moved;
    return PEN_OK;
}

// By figures of whole steps: what the busiest device computes more, and the rest.
static void blame_by_figures(const pen_engine_report *report, pen_run_blame *blame) {
    double busiest = 0, busiest_predicted = 0, most = 0;
    for (uint32_t d = 0; d < report->device_count; d++) {
        const pen_engine_device_report *device = &report->devices[d];
        if (device->busy_seconds < 0 || !(device->busy_seconds_predicted > 0)) continue;
        const double off = fabs(device->busy_seconds - device->busy_seconds_predicted);
        busiest = fmax(busiest, device->busy_seconds);
        busiest_predicted = fmax(busiest_predicted, device->busy_seconds_predicted);
        if (off < most) continue;
        most = off;
        blame->device = device->name;
        blame->device_ratio = device->busy_seconds / device->busy_seconds_predicted;
    }
    blame->compute_seconds = busiest - busiest_predicted;
    blame->waiting_seconds =
        blame->measured_seconds - blame->predicted_seconds - blame->compute_seconds;
}

pen_status pen_run_blame_find(const pen_plan *plan, const pen_engine_report *report,
                              const pen_trace *trace, pen_arena *arena, pen_run_blame *out_blame) {
    *out_blame = (pen_run_blame){.predicted_seconds = report->step_seconds_predicted,
                                 .measured_seconds = report->step_seconds,
                                 .bubble_predicted = report->bubble_predicted,
                                 .bubble = report->bubble};
    if (!(report->step_seconds > 0) || !(report->step_seconds_predicted > 0)) return PEN_OK;
    const double off = report->step_seconds / report->step_seconds_predicted - 1;
    out_blame->is_known = true;
    out_blame->is_off = fabs(off) > PEN_RUN_BLAME_STEP ||
                        (report->bubble >= 0 &&
                         fabs(report->bubble - report->bubble_predicted) > PEN_RUN_BLAME_BUBBLE);
    blame_by_figures(report, out_blame);
    return trace == NULL ? PEN_OK : blame_by_trace(plan, trace, arena, out_blame);
}

// "+40 ms"
static void blame_add_seconds(pen_text *text, const char *what, double seconds) {
    char room[PEN_QUANTITY_TEXT_BYTES];
    pen_text_print(text, "%s %s%s", what, seconds < 0 ? "-" : "+",
                   pen_seconds_format(fabs(seconds), room));
}

// Where transfers are a tenth of the step or more, the way that is to blame.
static void blame_add_way(pen_text *text, const pen_run_blame *blame) {
    char found[PEN_QUANTITY_TEXT_BYTES], planned[PEN_QUANTITY_TEXT_BYTES];
    if (blame->source == NULL ||
        blame->transfer_seconds < PEN_RUN_BLAME_STEP * blame->measured_seconds) {
        return;
    }
    pen_text_print(text, " ('%s' to '%s' most: %s a microbatch, not %s)", blame->source,
                   blame->target, pen_seconds_format(blame->way_seconds, found),
                   pen_seconds_format(blame->way_predicted, planned));
}

// The term that is wrong most.
static const char *blame_term(const pen_run_blame *blame) {
    const double compute = fabs(blame->compute_seconds), waiting = fabs(blame->waiting_seconds);
    const double transfer = blame->has_transfers ? fabs(blame->transfer_seconds) : 0;
    if (compute >= transfer && compute >= waiting) return "computing";
    if (!blame->has_transfers) return "waiting";
    return transfer >= waiting ? "transfers" : "waiting";
}

// The term that is wrong most comes first, then all of them, then what can be done about it.
pen_status pen_run_blame_text(const pen_run_blame *blame, const char *trace, pen_arena *arena,
                              const char **out_text) {
    pen_text text;
    char first[PEN_QUANTITY_TEXT_BYTES], second[PEN_QUANTITY_TEXT_BYTES];
    pen_text_init(&text, arena);
    if (!blame->is_off) return pen_text_finish(&text, out_text);
    pen_text_print(&text, "the prediction was off, most by %s: a step took %s, not %s;",
                   blame_term(blame), pen_seconds_format(blame->measured_seconds, first),
                   pen_seconds_format(blame->predicted_seconds, second));
    blame_add_seconds(&text, " computing", blame->compute_seconds);
    if (blame->device != NULL && fabs(blame->device_ratio - 1) > PEN_RUN_BLAME_BUBBLE) {
        pen_text_print(&text, " ('%s' most: %.2f times as long)", blame->device,
                       blame->device_ratio);
    }
    if (blame->has_transfers) {
        blame_add_seconds(&text, ", transfers", blame->transfer_seconds);
        blame_add_way(&text, blame);
        blame_add_seconds(&text, ", waiting", blame->waiting_seconds);
    } else {
        blame_add_seconds(&text, ", transfers and waiting", blame->waiting_seconds);
    }
    if (blame->bubble >= 0) {
        pen_text_print(&text, "; bubble %.0f %%, not %.0f %%", 100 * blame->bubble,
                       100 * blame->bubble_predicted);
    }
    pen_text_print(
        &text,
        "\n`penstock plan JOB --from-run %s -o PLAN` plans with what was seen%s; `penstock "
        "train PLAN` trains by it\n",
        trace != NULL ? trace : "TRACE", trace != NULL ? "" : " by a training with --trace TRACE");
    return pen_text_finish(&text, out_text);
}

void pen_run_blame_json(pen_json_writer *json, const pen_run_blame *blame) {
    if (!blame->is_known) return;
    pen_json_key_object(json, "difference");
    pen_json_key_number(json, "compute_seconds", blame->compute_seconds);
    if (blame->has_transfers) {
        pen_json_key_number(json, "transfer_seconds", blame->transfer_seconds);
    }
    pen_json_key_number(json, "waiting_seconds", blame->waiting_seconds);
    pen_json_end_object(json);
}
