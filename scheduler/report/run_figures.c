#include "scheduler/report/run_figures.h"

#include <math.h>
#include <string.h>

// A trace of another run beside a plan would show differences that are none.
pen_status pen_run_check_trace(const pen_plan *plan, const pen_trace *trace) {
    if (trace->device_count != plan->device_count) {
        return pen_error(PEN_INVALID_INPUT, "the trace has %u devices, the plan %u",
                         trace->device_count, plan->device_count);
    }
    for (uint32_t d = 0; d < plan->device_count; d++) {
        if (strcmp(trace->device_names[d], plan->devices[d].name) == 0) continue;
        return pen_error(PEN_INVALID_INPUT,
                         "device %u is '%s' in the trace, and '%s' in the plan: it is a trace of "
                         "another run",
                         d, trace->device_names[d], plan->devices[d].name);
    }
    for (uint32_t w = 0; w < trace->worker_count; w++) {
        for (uint32_t i = 0; i < trace->workers[w].event_count; i++) {
            const pen_trace_event *event = &trace->workers[w].events[i];
            if (event->kind != PEN_TRACE_TASK || event->task.stage < plan->stages.stage_count) {
                continue;
            }
            return pen_error(PEN_INVALID_INPUT,
                             "the trace has tasks of stage %u, the plan has %u stages: it is a "
                             "trace of another run",
                             event->task.stage, plan->stages.stage_count);
        }
    }
    return PEN_OK;
}

// Figures that are not known are -1, and shown as a dash.
static void figures_of_plan(const pen_plan *plan, const pen_timeline *timeline,
                            pen_engine_device_report *devices) {
    for (uint32_t d = 0; d < plan->device_count; d++) {
        devices[d] = (pen_engine_device_report){
            .name = plan->devices[d].name,
            .worker = "",
            .busy_seconds_predicted = timeline->busy_seconds[d],
            .busy_seconds = -1,
            .wait_seconds = -1,
            .bytes_predicted = (double)plan->devices[d].memory.total,
            .bytes = -1,
            .process_bytes_predicted = -1,
            .process_bytes = -1,
            .sent_bytes = -1,
        };
    }
    for (uint32_t t = 0; t < plan->transfer_count; t++) {
        const pen_plan_transfer *transfer = &plan->transfers[t];
        const uint32_t source = plan->stages.stages[transfer->source].device;
        if (source == plan->stages.stages[transfer->target].device) continue;
        const pen_stage *stage = &plan->stages.stages[transfer->source];
        const double times =
            transfer->is_per_step ? 1 : pen_stage_microbatches(&plan->stages, stage);
        devices[source].sent_bytes_predicted += (double)transfer->bytes * times;
    }
}

// From a plan alone, or a plan and a trace; whoever has run it fills in bytes and processes.
pen_status pen_run_figures(const pen_plan *plan, const pen_timeline *timeline,
                           const pen_trace *trace, const pen_trace_summary *summary,
                           pen_arena *arena, pen_engine_report **out_report) {
    pen_engine_device_report *devices;
    pen_engine_report *report;
    PEN_TRY(PEN_NEW(arena, plan->device_count, &devices));
    PEN_TRY(PEN_NEW(arena, 1, &report));
    figures_of_plan(plan, timeline, devices);
    *report = (pen_engine_report){.device_count = plan->device_count,
                                  .devices = devices,
                                  .step_seconds_predicted = timeline->step_seconds,
                                  .step_seconds = -1,
                                  .bubble_predicted = timeline->bubble,
                                  .bubble = -1};
    *out_report = report;
    if (trace == NULL) return PEN_OK;
    PEN_TRY(pen_run_check_trace(plan, trace));
    const bool is_measured = summary != NULL && summary->step_count > 0;
    for (uint32_t d = 0; d < plan->device_count; d++) {
        devices[d].worker = trace->workers[trace->worker_of_device[d]].name;
        if (!is_measured) continue;
        devices[d].busy_seconds = summary->busy_seconds[d];
        devices[d].wait_seconds = summary->wait_seconds[d];
        devices[d].sent_bytes = summary->sent_bytes[d];
    }
    if (!is_measured) return PEN_OK;
    report->step_seconds = summary->step_seconds;
    report->bubble = summary->bubble;
    return PEN_OK;
}

// What the updates of a stage take in a step, over all phases; negative when there were none.
static double figures_measured_update(const pen_trace_summary *summary, uint32_t stage) {
    for (uint32_t i = 0; i < summary->cost_count; i++) {
        const pen_trace_cost *cost = &summary->costs[i];
        if (cost->kind != PEN_TASK_UPDATE || cost->stage != stage) continue;
        return cost->seconds * (double)cost->count / summary->step_count;
    }
    return -1;
}

// What both halves of a backward pass take, which may have run as one: shared out as planned.
static void figures_measured_backward(const pen_trace_summary *summary, uint32_t number,
                                      pen_stage *stage) {
    const double input = pen_trace_summary_cost(summary, PEN_TASK_BACKWARD_INPUT, number);
    const double weight = pen_trace_summary_cost(summary, PEN_TASK_BACKWARD_WEIGHT, number);
    const double both = pen_trace_summary_cost(summary, PEN_TASK_BACKWARD, number);
    const double again = stage->is_recomputed ? stage->forward_seconds : 0;
    if (input >= 0) stage->backward_input_seconds = fmax(0, input - again);
    if (weight >= 0) stage->backward_weight_seconds = weight;
    if (both < 0) return;
    const double planned = stage->backward_input_seconds + stage->backward_weight_seconds;
    const double share = planned > 0 ? stage->backward_input_seconds / planned : 0.5;
    stage->backward_input_seconds = fmax(0, both - again) * share;
    stage->backward_weight_seconds = fmax(0, both - again) * (1 - share);
}

pen_status pen_run_measured_stages(const pen_stage_graph *stages, const pen_trace_summary *summary,
                                   pen_arena *arena, pen_stage_graph *out_stages) {
    pen_stage *made;
    PEN_TRY(PEN_NEW(arena, stages->stage_count, &made));
    for (uint32_t s = 0; s < stages->stage_count; s++) {
        const double forward = pen_trace_summary_cost(summary, PEN_TASK_FORWARD, s);
        const double update = figures_measured_update(summary, s);
        made[s] = stages->stages[s];
        if (forward >= 0) made[s].forward_seconds = forward;
        if (update >= 0) made[s].update_seconds = update;
        figures_measured_backward(summary, s, &made[s]);
    }
    *out_stages = *stages;
    out_stages->stages = made;
    return PEN_OK;
}
