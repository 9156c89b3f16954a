#include "scheduler/protocol/run_table_check.h"

#include "base/limits.h"
#include "scheduler/protocol/run_table_order.h"

// Devices and workers must agree with each other; a shared channel has as many places on both
// sides.
static pen_status check_channel(const pen_run_table *table, const pen_run_form *form, uint32_t c) {
    const pen_run_channel *channel = &form->channels[c];
    const bool is_host = channel->source_device == PEN_CHANNEL_HOST;
    const bool has_source =
        is_host ? channel->source_worker == 0 || channel->source_worker == channel->target_worker
                : channel->source_device < table->device_count &&
                      channel->source_worker == form->devices[channel->source_device].worker;
    const bool has_target = channel->target_device < table->device_count &&
                            channel->target_worker == form->devices[channel->target_device].worker;
    if (!has_source || !has_target || channel->source_device == channel->target_device) {
        return pen_error(PEN_CORRUPT, "channel %u goes from device %u of worker %u to %u of %u", c,
                         channel->source_device, channel->source_worker, channel->target_device,
                         channel->target_worker);
    }
    const bool has_places = channel->capacity >= 1 && channel->capacity <= PEN_RUN_PLACES_LIMIT &&
                            channel->copies >= 1 && channel->copies <= PEN_RUN_PLACES_LIMIT;
    const bool is_one_place =
        channel->source_worker == channel->target_worker && channel->capacity == channel->copies;
    const bool has_range =
        channel->first_microbatch < form->microbatch_count &&
        channel->microbatch_count <= form->microbatch_count - channel->first_microbatch;
    if (!has_range || (channel->is_per_step &&
                       (channel->first_microbatch > 0 || channel->microbatch_count > 0))) {
        return pen_error(PEN_CORRUPT, "channel %u carries %u microbatches from %u on, of %u", c,
                         channel->microbatch_count, channel->first_microbatch,
                         form->microbatch_count);
    }
    const bool needs_one_place = channel->is_shared || pen_run_channel_is_read(channel);
    if (!has_places || (needs_one_place && !is_one_place) || (is_host && channel->is_shared)) {
        return pen_error(PEN_CORRUPT, "channel %u has %u and %u places for %llu bytes", c,
                         channel->copies, channel->capacity, (unsigned long long)channel->bytes);
    }
    return PEN_OK;
}

// A task may wait, release and send only at its own device's ends of channels.
static pen_status check_task(const pen_run_form *form, uint32_t device, uint32_t t) {
    const pen_run_task *task = &form->tasks[t];
    const bool is_ordered =
        task->receive_first <= task->receive_end && task->receive_end <= form->ref_count &&
        task->send_first <= task->send_end && task->send_end <= form->ref_count &&
        task->release_first <= task->release_end && task->release_end <= form->ref_count;
    const bool is_counted =
        task->task.kind == PEN_TASK_UPDATE || task->task.microbatch < form->microbatch_count;
    if (!is_ordered || !is_counted) {
        return pen_error(PEN_CORRUPT, "task %u is out of range", t);
    }
    for (uint32_t r = task->receive_first; r < task->receive_end; r++) {
        if (form->channels[form->refs[r]].target_device == device) continue;
        return pen_error(PEN_CORRUPT, "task %u waits for another device's channel", t);
    }
    for (uint32_t r = task->release_first; r < task->release_end; r++) {
        if (form->channels[form->refs[r]].target_device == device) continue;
        return pen_error(PEN_CORRUPT, "task %u releases another device's channel", t);
    }
    for (uint32_t r = task->send_first; r < task->send_end; r++) {
        if (form->channels[form->refs[r]].source_device == device) continue;
        return pen_error(PEN_CORRUPT, "task %u sends on another device's channel", t);
    }
    return PEN_OK;
}

static uint64_t check_span(uint32_t first, uint32_t end) {
    return first < end ? end - first : 0;
}

// Tasks of all devices fill the list without a gap, and each place of the lists belongs to one
// task.
static pen_status check_form(const pen_run_table *table, const pen_run_form *form) {
    if (form->microbatch_count == 0 || form->microbatch_count > PEN_RUN_MICROBATCH_LIMIT ||
        form->microbatch_size == 0) {
        return pen_error(PEN_CORRUPT, "a form of %u microbatches of %llu examples",
                         form->microbatch_count, (unsigned long long)form->microbatch_size);
    }
    uint32_t next = 0;
    for (uint32_t d = 0; d < table->device_count; d++) {
        const pen_run_device *device = &form->devices[d];
        const bool is_next = device->task_first == next && device->task_end >= next &&
                             device->task_end <= form->task_count;
        if (!is_next || device->worker == 0 || device->worker > table->worker_count) {
            return pen_error(PEN_CORRUPT, "device %u of worker %u has tasks %u to %u of %u", d,
                             device->worker, device->task_first, device->task_end,
                             form->task_count);
        }
        next = device->task_end;
    }
    if (next != form->task_count) return pen_error(PEN_CORRUPT, "tasks of no device");
    for (uint32_t r = 0; r < form->ref_count; r++) {
        if (form->refs[r] >= form->channel_count) {
            return pen_error(PEN_CORRUPT, "channel %u of %u", form->refs[r], form->channel_count);
        }
    }
    for (uint32_t c = 0; c < form->channel_count; c++) {
        PEN_TRY(check_channel(table, form, c));
    }
    uint64_t used = 0; // each ref is of one task, so that no few bytes ask for much work
    for (uint32_t t = 0; t < form->task_count; t++) {
        const pen_run_task *task = &form->tasks[t]; // its order is checked below
        used += check_span(task->receive_first, task->receive_end) +
                check_span(task->send_first, task->send_end) +
                check_span(task->release_first, task->release_end);
    }
    if (used > form->ref_count) return pen_error(PEN_CORRUPT, "tasks share channels' places");
    for (uint32_t d = 0; d < table->device_count; d++) {
        for (uint32_t t = form->devices[d].task_first; t < form->devices[d].task_end; t++) {
            PEN_TRY(check_task(form, d, t));
        }
    }
    return PEN_OK;
}

pen_status pen_run_table_check(const pen_run_table *table) {
    if (table->worker_count == 0 || table->worker_count > PEN_RUN_WORKERS_LIMIT ||
        table->device_count == 0 || table->device_count > PEN_RUN_DEVICES_LIMIT) {
        return pen_error(PEN_CORRUPT, "a run of %u workers with %u devices", table->worker_count,
                         table->device_count);
    }
    if (table->form_count == 0 || table->form_count > PEN_RUN_FORMS_LIMIT) {
        return pen_error(PEN_CORRUPT, "a run of %u forms, expected 1 to %u", table->form_count,
                         PEN_RUN_FORMS_LIMIT);
    }
    for (uint32_t f = 0; f < table->form_count; f++) {
        PEN_TRY(pen_status_add_context(check_form(table, &table->forms[f]), "in form %u", f));
    }
    return pen_run_table_check_order(table);
}
