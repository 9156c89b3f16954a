// What a run says of itself: who waits for what, what computes, how much memory there is.

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "scheduler/runtime/worker/worker_device.h"
#include "scheduler/schedule/schedule.h"

#define FIGURES_WAITS_BYTES 8192

// A device whose memory the host does not see is a machine of its own: it may never end what it was
// given. It is named as the job does.
static int run_format_running(const pen_worker_run *run, const worker_device *device,
                              const char *task, char *text, size_t size) {
    const pen_run_spec_device *spec = &run->spec->devices[device->index];
    const double now = pen_clock_seconds();
    if (device->awaited_since > 0) {
        return snprintf(text, size,
                        "device '%s' (%s, gpu %u) has not ended %s, or what came before it there: "
                        "awaited for %.1f s\n",
                        spec->name, spec->kind, spec->gpu, task, now - device->awaited_since);
    }
    return snprintf(text, size, "device '%s' runs %s\n", spec->name, task);
}

static int run_format_sending(const pen_worker_run *run, const worker_device *device, char *text,
                              size_t size) {
    const pen_run_spec_device *spec = &run->spec->devices[device->index];
    const worker_send *send = &device->sending;
    return snprintf(text, size,
                    "device '%s' (%s, gpu %u) has not made '%s', or not copied it to the host: "
                    "awaited for %.1f s\n",
                    spec->name, spec->kind, spec->gpu,
                    run->spec->forms[send->form].channels[send->channel].value,
                    pen_clock_seconds() - device->sending_since);
}

// One line for a device: what it runs, or for what and for whom it waits, in the names that the
// user knows.
static int run_format_wait(const pen_worker_run *run, const worker_device *device,
                           const pen_worker_wait *wait, char *text, size_t size) {
    char task[PEN_TASK_TEXT_BYTES];
    const char *name = run->spec->devices[device->index].name;
    if (device->is_sending && !wait->is_running) { // its thread waits for no task
        return run_format_sending(run, device, text, size);
    }
    if (wait->is_idle) return snprintf(text, size, "device '%s' has nothing to do\n", name);
    pen_task_format(wait->task, task);
    if (wait->is_running) return run_format_running(run, device, task, text, size);
    if (wait->needs_go) {
        return snprintf(text, size, "device '%s' waits for the coordinator's word to run %s\n",
                        name, task);
    }
    if (wait->channel == UINT32_MAX) {
        return snprintf(text, size, "device '%s' is about to run %s\n", name, task);
    }
    const pen_run_channel *channel = &run->table->forms[wait->form].channels[wait->channel];
    const pen_run_spec_channel *spec = &run->spec->forms[wait->form].channels[wait->channel];
    if (!wait->needs_frame) {
        return snprintf(text, size, "device '%s' waits for '%s' to take '%s', to run %s\n", name,
                        run->spec->devices[channel->target_device].name, spec->value, task);
    }
    const char *source = channel->source_device == PEN_CHANNEL_HOST
                             ? "the coordinator"
                             : run->spec->devices[channel->source_device].name;
    return snprintf(text, size, "device '%s' waits for '%s' of '%s', to run %s\n", name,
                    spec->value, source, task);
}

void pen_worker_run_describe_waits(pen_worker_run *run, char *out_text, size_t size,
                                   bool *out_is_running) {
    size_t used = 0;
    *out_is_running = false;
    if (size > 0) out_text[0] = '\0';
    pen_mutex_lock(&run->lock);
    for (uint32_t i = 0; i < 2 * run->device_count; i++) { // twice: those that compute come first
        const bool is_first = i < run->device_count;
        const worker_device *device = &run->devices[is_first ? i : i - run->device_count];
        const pen_worker_wait wait = pen_worker_core_get_wait(run->core, device->index);
        const bool computes = wait.is_running || device->is_sending;
        if (computes) *out_is_running = true;
        if (computes != is_first) continue;
        const int length = run_format_wait(run, device, &wait, out_text + used, size - used);
        if (length < 0 || (size_t)length >= size - used) break;
        used += (size_t)length;
    }
    pen_mutex_unlock(&run->lock);
}

void pen_worker_run_note_waits(pen_worker_run *run, int64_t clock_offset_nanoseconds) {
    char text[FIGURES_WAITS_BYTES];
    bool is_running;
    pen_worker_run_describe_waits(run, text, sizeof text, &is_running);
    pen_mutex_lock(&run->lock);
    if (clock_offset_nanoseconds != INT64_MIN) {
        pen_flight_set_clock_offset(run->flight, (double)clock_offset_nanoseconds * 1e-9);
    }
    for (const char *line = text; *line != '\0';) {
        char note[PEN_FLIGHT_NOTE_BYTES];
        const size_t length = strcspn(line, "\n");
        snprintf(note, sizeof note, "waits: %.*s", (int)length, line);
        pen_flight_record_note(run->flight, note);
        line += length + (line[length] == '\n');
    }
    pen_mutex_unlock(&run->lock);
}

uint32_t pen_worker_run_device_count(const pen_worker_run *run) {
    return run->device_count;
}

uint32_t pen_worker_run_device_at(const pen_worker_run *run, uint32_t index) {
    return run->devices[index].index;
}

uint64_t pen_worker_run_device_bytes(const pen_worker_run *run, uint32_t device) {
    const worker_device *local = &run->devices[run->local_of_device[device]];
    uint64_t bytes = 0;
    for (uint32_t f = 0; f < run->table->form_count; f++) {
        bytes += pen_executor_get_memory(local->executors[f]).owned_bytes;
    }
    return bytes + local->saved_bytes + pen_device_own_bytes(local->device);
}

double pen_worker_run_wait_seconds(pen_worker_run *run, uint32_t device) {
    pen_mutex_lock(&run->lock);
    const double seconds = run->devices[run->local_of_device[device]].wait_seconds;
    pen_mutex_unlock(&run->lock);
    return seconds;
}

const pen_trace_recorder *pen_worker_run_trace(const pen_worker_run *run) {
    return run->recorder;
}

pen_run_pulse pen_worker_run_get_pulse(pen_worker_run *run) {
    const double now = pen_clock_seconds();
    pen_mutex_lock(&run->lock);
    pen_run_pulse pulse = run->pulse;
    for (uint32_t d = 0; d < run->device_count; d++) {
        const double since = run->devices[d].task_started;
        if (since > 0 && now - since > pulse.task_seconds) pulse.task_seconds = now - since;
    }
    pen_mutex_unlock(&run->lock);
    return pulse;
}
