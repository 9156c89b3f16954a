// What a pipeline was predicted to take, and took.

#include <math.h>
#include <string.h>
#include <unistd.h>

#include "base/integer.h"
#include "base/sets/order.h"
#include "scheduler/engine/pipeline_kinds.h"
#include "scheduler/engine/pipeline_state.h"
#include "scheduler/plan/planned_trace.h"
#include "scheduler/plan/saved_memory.h"
#include "scheduler/runtime/run/run_wire.h"

// ---- rounds that are done

static double report_clock(const pipeline_engine *p, uint32_t device) {
    return p->clocks[p->workers.worker_of_device[device]];
}

// Adds up what the devices did in a training round; steps are counted by their last round.
static void report_note_round(pipeline_engine *p, const coordinator_round_note *note) {
    double first = INFINITY, last = -INFINITY, busy = 0;
    uint32_t used = 0;
    for (uint32_t d = 0; d < p->plan->device_count; d++) {
        const pen_round_figures *figures = &p->figures[d];
        if (figures->busy_seconds <= 0) continue;
        first = fmin(first, figures->start_seconds + report_clock(p, d));
        last = fmax(last, figures->end_seconds + report_clock(p, d));
        busy += figures->busy_seconds;
        used++;
    }
    if (used == 0) return;
    if (note->is_counted) {
        for (uint32_t d = 0; d < p->plan->device_count; d++) {
            p->busy[d] += p->figures[d].busy_seconds;
        }
        // a round may begin before the one before it has ended: no time counts twice
        p->bubble_sum += 1 - busy / (used * (last - fmax(first, p->last_round_end)));
        p->bubble_count++;
        if (note->ends_step && p->last_end > 0) { // the end of the step before is known
            p->step_seconds[p->step_count++ % PIPELINE_STEPS_KEPT] = last - p->last_end;
        }
    }
    if (note->ends_step) p->last_end = last;
    p->last_round_end = last;
}

static double report_bubble(const pipeline_engine *p) {
    return p->bubble_count > 0 ? fmax(0, p->bubble_sum / (double)p->bubble_count) : -1;
}

void pen_pipeline_note_rounds(pipeline_engine *p) {
    while (p->figures_next < p->rounds_begun) {
        const coordinator_round_note note = p->notes[p->figures_next % PIPELINE_NOTES];
        if (!pen_coordinator_get_figures(p->coordinator, p->figures_next, p->figures)) {
            // not done yet, or so long ago that others have its place
            if (p->rounds_begun - p->figures_next <= PIPELINE_STEPS_AHEAD * 2) break;
        } else if (note.trains) {
            report_note_round(p, &note);
        }
        p->figures_next++;
    }
}

// Of the device that computed longest, the stage that was planned to take longest.
void pen_pipeline_pulse(const pen_engine *engine, pen_engine_pulse *out_pulse) {
    const pipeline_engine *p = (const pipeline_engine *)(const void *)engine;
    uint32_t slowest = 0;
    *out_pulse = (pen_engine_pulse){.bubble = report_bubble(p)};
    if (p->bubble_count == 0) return;
    for (uint32_t d = 1; d < p->plan->device_count; d++) {
        if (p->busy[d] > p->busy[slowest]) slowest = d;
    }
    double most = -1;
    for (uint32_t s = 0; s < p->plan->stages.stage_count; s++) {
        const pen_stage *stage = &p->plan->stages.stages[s];
        const double seconds = pen_stage_microbatch_seconds(stage);
        if (stage->device != slowest || seconds <= most) continue;
        most = seconds;
        out_pulse->has_slowest = true;
        out_pulse->slowest_stage = s;
        out_pulse->slowest_device = p->plan->devices[slowest].name;
    }
}

// ---- asking the workers

static pen_status report_inquire(pipeline_engine *p, uint32_t worker, pen_arena *arena,
                                 pen_run_inquiry_figures *out_figures,
                                 const pen_run_device_figures **out_devices, uint32_t *out_count) {
    const void *bytes;
    uint64_t count;
    PEN_TRY(pen_coordinator_inquire(p->coordinator, worker, PEN_RUN_INQUIRY_FIGURES, arena, &bytes,
                                    &count));
    return pen_status_add_context(
        pen_run_figures_decode(bytes, count, arena, out_figures, out_devices, out_count), "from %s",
        p->workers.list[worker].name);
}

// What was planned, and what the workers say they took. The peak counts this process's part alone.
static pen_status report_memory(pipeline_engine *p, pen_arena *arena,
                                pen_engine_memory *out_memory) {
    *out_memory = (pen_engine_memory){.resident_bytes_peak = p->plan->process_bytes};
    for (uint32_t d = 0; d < p->plan->device_count; d++) {
        if (p->workers.worker_of_device[d] != p->workers.local) continue;
        out_memory->resident_bytes_peak = p->plan->devices[d].process_bytes;
    }
    for (uint32_t d = 0; d < p->plan->device_count; d++) {
        const pen_device_memory *memory = &p->plan->devices[d].memory;
        const uint64_t lasting = memory->parameters + memory->gradients + memory->optimizer_state;
        out_memory->persistent_bytes += lasting;
        out_memory->arena_bytes += memory->total - memory->saved - lasting;
    }
    for (uint32_t w = 1; w <= p->workers.count; w++) {
        pen_run_inquiry_figures figures;
        const pen_run_device_figures *devices;
        uint32_t count;
        PEN_TRY(report_inquire(p, w, arena, &figures, &devices, &count));
        for (uint32_t i = 0; i < count; i++) {
            out_memory->device_bytes += devices[i].bytes;
            if (w != p->workers.local) continue;
            if (pen_pipeline_has_own_memory(p, devices[i].device)) continue;
            out_memory->resident_bytes_peak += devices[i].bytes;
        }
    }
    return PEN_OK;
}

pen_status pen_pipeline_memory(pen_engine *engine, pen_engine_memory *out_memory) {
    pen_arena *arena;
    PEN_TRY(pen_arena_create(&arena));
    const pen_status status = report_memory(pipeline_of(engine), arena, out_memory);
    pen_arena_destroy(arena);
    return status;
}

// ---- the report

// Bytes that a device hands to others in a step, by the table and by the plan.
static void report_traffic(const pipeline_engine *p, uint32_t d, pen_engine_device_report *report) {
    const pen_run_form *form = &p->forms.spec->table->forms[0];
    report->sent_bytes = 0;
    for (uint32_t c = 0; c < form->channel_count; c++) {
        const pen_run_channel *channel = &form->channels[c];
        if (channel->source_device != d) continue;
        report->sent_bytes += (double)channel->bytes * pen_run_slots(form, channel);
    }
    report->sent_bytes_predicted = 0;
    for (uint32_t t = 0; t < p->plan->transfer_count; t++) {
        const pen_plan_transfer *transfer = &p->plan->transfers[t];
        const pen_stage *stages = p->plan->stages.stages;
        if (stages[transfer->source].device != d || stages[transfer->target].device == d) continue;
        report->sent_bytes_predicted +=
            (double)transfer->bytes *
            (transfer->is_per_step
                 ? 1
                 : pen_stage_microbatches(&p->plan->stages, &stages[transfer->source]));
    }
}

static double report_busy_predicted(const pipeline_engine *p, uint32_t d) {
    double seconds = 0;
    for (uint32_t s = 0; s < p->plan->stages.stage_count; s++) {
        const pen_stage *stage = &p->plan->stages.stages[s];
        if (stage->device != d) continue;
        seconds +=
            stage->update_seconds + pen_stage_microbatches(&p->plan->stages, stage) *
                                        (stage->forward_seconds + stage->backward_input_seconds +
                                         stage->backward_weight_seconds);
    }
    return seconds;
}

static pen_status report_median(const pipeline_engine *p, pen_arena *arena, double *out_seconds) {
    const uint64_t count =
        p->step_count < PIPELINE_STEPS_KEPT ? p->step_count : PIPELINE_STEPS_KEPT;
    double *sorted;
    *out_seconds = -1;
    if (count == 0) return PEN_OK;
    PEN_TRY(PEN_NEW(arena, count, &sorted));
    memcpy(sorted, p->step_seconds, count * sizeof *sorted);
    *out_seconds = pen_median(sorted, count);
    return PEN_OK;
}

// Bytes of all devices: as planned, but for the copies of checkpoints. A plan may have been made
// for a training without them, or with them.
static pen_status report_predict(const pipeline_engine *p, pen_arena *arena,
                                 const uint64_t **out_bytes) {
    const uint32_t device_count = p->plan->device_count;
    pen_saved_memory_device *devices;
    uint64_t *bytes, *saved;
    PEN_TRY(PEN_NEW(arena, device_count, &devices));
    PEN_TRY(PEN_NEW(arena, device_count, &bytes));
    PEN_TRY(PEN_NEW(arena, device_count, &saved));
    for (uint32_t d = 0; d < device_count; d++) {
        const pen_device_memory *memory = &p->plan->devices[d].memory;
        bytes[d] = memory->total - pen_min_u64(memory->saved, memory->total);
        const bool is_unlimited = p->options.no_memory_check || pen_pipeline_has_own_memory(p, d);
        devices[d] =
            (pen_saved_memory_device){p->workers.worker_of_device[d], (double)bytes[d],
                                      is_unlimited ? INFINITY : p->plan->stages.bytes_limit[d]};
    }
    if (p->options.log != NULL) {
        PEN_TRY(pen_saved_memory_find(p->forms.forms[0].parts.cut, devices, saved));
    }
    for (uint32_t d = 0; d < device_count; d++) {
        if (!pen_pipeline_has_own_memory(p, d)) bytes[d] += saved[d];
    }
    *out_bytes = bytes;
    return PEN_OK;
}

// Its buffers of all devices but GPUs, and what a process takes besides.
static double report_process_predicted(const pipeline_engine *p, uint32_t worker,
                                       const uint64_t *predicted, uint64_t buffer_bytes) {
    uint64_t bytes = 0, besides = 0;
    for (uint32_t d = 0; d < p->plan->device_count; d++) {
        if (p->workers.worker_of_device[d] != worker) continue;
        besides = p->plan->devices[d].process_bytes;
        if (!pen_pipeline_has_own_memory(p, d)) bytes += predicted[d];
    }
    return besides == 0 ? -1 : (double)(pen_max_u64(bytes, buffer_bytes) + besides);
}

// What a device did and held, and where it is.
static void report_describe_device(const pipeline_engine *p, uint32_t d,
                                   const pen_run_inquiry_figures *process,
                                   const pen_run_device_figures *figures,
                                   pen_engine_device_report *report) {
    const uint32_t worker = p->workers.worker_of_device[d];
    const double steps = p->step_count > 0 ? (double)p->step_count : -1;
    *report = (pen_engine_device_report){
        .name = p->plan->devices[d].name,
        .worker = worker == p->workers.local ? p->workers.list[worker].name
                                             : p->workers.list[worker].address,
        .busy_seconds_predicted = report_busy_predicted(p, d),
        .busy_seconds = steps > 0 ? p->busy[d] / steps : -1,
        .wait_seconds = steps > 0 ? figures->wait_seconds / steps : -1,
        .bytes = (double)figures->bytes,
        .process_bytes = (double)process->process_bytes};
    report_traffic(p, d, report);
}

// Asked of each worker. What its evaluations hold besides counts for its process.
static pen_status report_devices(pipeline_engine *p, pen_arena *arena,
                                 pen_engine_device_report *reports) {
    const uint64_t *predicted;
    PEN_TRY(report_predict(p, arena, &predicted));
    for (uint32_t w = 1; w <= p->workers.count; w++) {
        pen_run_inquiry_figures process;
        const pen_run_device_figures *figures;
        uint32_t count;
        PEN_TRY(report_inquire(p, w, arena, &process, &figures, &count));
        uint64_t buffer_bytes = 0; // with those of evaluations
        for (uint32_t i = 0; i < count; i++) {
            if (pen_pipeline_has_own_memory(p, figures[i].device)) continue;
            buffer_bytes += figures[i].bytes;
        }
        for (uint32_t i = 0; i < count; i++) {
            if (figures[i].device >= p->plan->device_count) continue;
            const uint32_t d = (uint32_t)figures[i].device;
            report_describe_device(p, d, &process, &figures[i], &reports[d]);
            reports[d].bytes_predicted = (double)predicted[d];
            reports[d].process_bytes_predicted =
                report_process_predicted(p, w, predicted, buffer_bytes);
        }
    }
    return PEN_OK;
}

pen_status pen_pipeline_report(pen_engine *engine, pen_arena *arena,
                               const pen_engine_report **out_report) {
    pipeline_engine *p = pipeline_of(engine);
    pen_engine_report *report;
    pen_engine_device_report *devices;
    PEN_TRY(pen_pipeline_await_quiet(p));
    pen_pipeline_note_rounds(p);
    PEN_TRY(PEN_NEW(arena, 1, &report));
    PEN_TRY(PEN_NEW(arena, p->plan->device_count, &devices));
    PEN_TRY(report_devices(p, arena, devices));
    *report = (pen_engine_report){.device_count = p->plan->device_count,
                                  .devices = devices,
                                  .step_seconds_predicted = p->plan->step_seconds,
                                  .bubble_predicted = p->plan->bubble,
                                  .bubble = report_bubble(p)};
    PEN_TRY(report_median(p, arena, &report->step_seconds));
    *out_report = report;
    return PEN_OK;
}

// ---- the trace

static pen_status trace_add_worker(pipeline_engine *p, uint32_t worker, pen_arena *arena,
                                   pen_trace_worker *out_worker) {
    pen_run_inquiry_figures figures;
    const pen_run_device_figures *devices;
    const void *bytes;
    uint64_t byte_count;
    uint32_t count;
    PEN_TRY(report_inquire(p, worker, arena, &figures, &devices, &count));
    PEN_TRY(pen_coordinator_inquire(p->coordinator, worker, PEN_RUN_INQUIRY_TRACE, arena, &bytes,
                                    &byte_count));
    *out_worker = (pen_trace_worker){.name = p->workers.list[worker].name,
                                     .process = (uint32_t)figures.process,
                                     .clock_seconds = p->clocks[worker],
                                     .lost_count = figures.trace_lost};
    return pen_trace_decode(bytes, byte_count, arena, &out_worker->events,
                            &out_worker->event_count);
}

// With what the plan says of them: by the tasks that they leave with.
static pen_status trace_add_channels(const pipeline_engine *p, pen_arena *arena, pen_trace *trace) {
    const pen_cut *cut = p->forms.forms[0].parts.cut;
    const pen_run_form *form = &p->forms.spec->table->forms[0];
    pen_trace_channel *channels;
    pen_task *tasks;
    PEN_TRY(PEN_NEW(arena, cut->channel_count, &channels));
    PEN_TRY(PEN_NEW(arena, cut->channel_count, &tasks));
    for (uint32_t c = 0; c < cut->channel_count; c++) {
        channels[c] = (pen_trace_channel){.value = cut->channels[c].value,
                                          .source_device = cut->channels[c].source,
                                          .target_device = cut->channels[c].target,
                                          .is_backward = cut->channels[c].is_backward,
                                          .is_per_step = cut->channels[c].is_per_step,
                                          .bytes = form->channels[c].bytes};
        if (cut->channels[c].source == PEN_CHANNEL_HOST) continue;
        const pen_part_list *list =
            &cut->parts[cut->channels[c].source].lists[cut->channels[c].source_list];
        tasks[c] = (pen_task){list->kind, list->stage, list->phase};
    }
    trace->channel_count = cut->channel_count;
    trace->channels = channels;
    return pen_planned_expect(p->plan, tasks, arena, channels, trace);
}

static pen_status trace_add_stages(const pipeline_engine *p, pen_arena *arena, pen_trace *trace) {
    trace->stage_count = p->plan->stages.stage_count;
    return pen_planned_memory(&p->plan->stages, arena, &trace->stages, &trace->fixed_bytes);
}

// Workers are asked when nothing runs, so that their rings do not change while they are read.
pen_status pen_pipeline_trace(pen_engine *engine, pen_arena *arena, const pen_trace **out_trace) {
    pipeline_engine *p = pipeline_of(engine);
    pen_trace *trace;
    pen_trace_worker *workers;
    const char **names;
    uint32_t *worker_of_device;
    *out_trace = NULL;
    if (!p->options.trace) return PEN_OK;
    PEN_TRY(pen_pipeline_await_quiet(p));
    PEN_TRY(PEN_NEW(arena, 1, &trace));
    PEN_TRY(PEN_NEW(arena, p->workers.count, &workers));
    PEN_TRY(PEN_NEW(arena, p->plan->device_count, &names));
    PEN_TRY(PEN_NEW(arena, p->plan->device_count, &worker_of_device));
    for (uint32_t w = 1; w <= p->workers.count; w++) {
        PEN_TRY(trace_add_worker(p, w, arena, &workers[w - 1]));
    }
    for (uint32_t d = 0; d < p->plan->device_count; d++) {
        names[d] = p->plan->devices[d].name;
        worker_of_device[d] = p->workers.worker_of_device[d] - 1;
    }
    *trace = (pen_trace){.worker_count = p->workers.count,
                         .workers = workers,
                         .device_count = p->plan->device_count,
                         .device_names = names,
                         .worker_of_device = worker_of_device};
    PEN_TRY(trace_add_channels(p, arena, trace));
    PEN_TRY(trace_add_stages(p, arena, trace));
    *out_trace = trace;
    return PEN_OK;
}
