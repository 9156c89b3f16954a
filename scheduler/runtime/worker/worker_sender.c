#include "scheduler/runtime/worker/worker_sender.h"

#include <stdio.h>

#include "base/clock.h"
#include "base/integer.h"
#include "scheduler/protocol/run_table.h"
#include "scheduler/runtime/worker/worker_staging.h"
#include "scheduler/runtime/worker/worker_task.h"

// ---- what is due

// Of all forms, since rounds of one may begin while frames of another are on their way. Of a
// channel there are at most as many frames and credits as it has places.
pen_status pen_worker_sender_prepare(worker_device *device) {
    const pen_run_table *table = device->run->table;
    uint32_t limit = 1;
    for (uint32_t f = 0; f < table->form_count; f++) {
        for (uint32_t c = 0; c < table->forms[f].channel_count; c++) {
            const pen_run_channel *channel = &table->forms[f].channels[c];
            if (channel->source_device == device->index) limit += channel->copies;
            if (channel->target_device == device->index) limit += channel->capacity;
        }
    }
    device->send_limit = limit;
    return PEN_NEW(device->run->arena, limit, &device->sends);
}

bool pen_worker_sender_takes(const pen_worker_run *run, const pen_worker_action *action) {
    if (action->kind == PEN_WORKER_ACTION_SEND) return true;
    return action->kind == PEN_WORKER_ACTION_GRANT &&
           pen_worker_staging_holds(run, action->form, action->channel);
}

void pen_worker_sender_add(pen_worker_run *run, const pen_worker_action *action) {
    const pen_run_channel *channel = &run->table->forms[action->form].channels[action->channel];
    const bool is_credit = action->kind == PEN_WORKER_ACTION_GRANT;
    const uint32_t whose = is_credit ? channel->target_device : channel->source_device;
    worker_device *device = &run->devices[run->local_of_device[whose]];
    PEN_ASSERT(device->send_count < device->send_limit);
    const uint32_t last = (device->send_first + device->send_count) % device->send_limit;
    device->sends[last] =
        (worker_due){{action->form, action->channel, action->sequence}, .is_credit = is_credit};
    device->send_count += 1;
    pen_condition_signal(device->sender == NULL ? &device->wake : &device->sends_wake);
}

static worker_due *sender_at(worker_device *device, uint32_t i) {
    return &device->sends[(device->send_first + i) % device->send_limit];
}

// Credits go first: what came was copied before the task that read it, and a frame waits for one
// that may compute for long. Each kind is in order by itself.
static bool sender_take(worker_device *device, worker_due *out_due) {
    uint32_t taken = 0;
    if (device->send_count == 0) return false;
    while (taken < device->send_count && !sender_at(device, taken)->is_credit)
        taken++;
    if (taken == device->send_count) taken = 0;
    *out_due = *sender_at(device, taken);
    for (; taken > 0; taken--)
        *sender_at(device, taken) = *sender_at(device, taken - 1);
    device->send_first = (device->send_first + 1) % device->send_limit;
    device->send_count -= 1;
    return true;
}

bool pen_worker_sender_take(worker_device *device, worker_due *out_due) {
    return device->sender == NULL && sender_take(device, out_due);
}

// Frames that were read were copied by the device's thread; their places are free when that is
// done.
static pen_status sender_grant(pen_worker_run *run, const worker_send *end) {
    const pen_run_channel *channel = &run->table->forms[end->form].channels[end->channel];
    worker_channel *ends = &run->channels[end->form][end->channel];
    worker_send frame = *end;
    const uint64_t most = pen_min_u64(channel->capacity, end->sequence);
    frame.sequence = pen_max_u64(ends->granted, end->sequence - most);
    for (; frame.sequence < end->sequence; frame.sequence++)
        PEN_TRY(pen_worker_staging_await_in(run, &frame));
    ends->granted = end->sequence;
    run->options.events.credit(run->options.events.context, channel->source_worker, end->form,
                               end->channel, end->sequence);
    return PEN_OK;
}

pen_status pen_worker_sender_do(worker_device *device, const worker_due *due) {
    return due->is_credit ? sender_grant(device->run, &due->frame)
                          : pen_worker_run_send(device->run, &due->frame);
}

// ---- the thread of a device whose memory the host does not see

// Holds the lock, but while it waits and sends.
static void sender_do(worker_device *device, const worker_due *due) {
    pen_worker_run *run = device->run;
    device->is_sending = true;
    device->sending_since = pen_clock_seconds();
    device->sending = due->frame;
    pen_mutex_unlock(&run->lock);
    pen_status status = pen_worker_sender_do(device, due);
    if (status != PEN_OK) {
        const char *name = run->spec->devices[device->index].name;
        pen_worker_run_fail(run, pen_status_add_context(status, "on device '%s'", name));
    }
    pen_mutex_lock(&run->lock);
    device->is_sending = false;
}

// What is left when the run fails or is closed is not done.
static void sender_main(void *context) {
    worker_device *device = context;
    pen_worker_run *run = device->run;
    worker_due due;
    pen_mutex_lock(&run->lock);
    while (!run->is_closed) {
        if (!run->is_failed && sender_take(device, &due)) {
            sender_do(device, &due);
        } else {
            pen_condition_wait(&device->sends_wake, &run->lock);
        }
    }
    pen_mutex_unlock(&run->lock);
}

pen_status pen_worker_sender_start(worker_device *device) {
    char name[16];
    if (!device->is_staged) return PEN_OK;
    snprintf(name, sizeof name, "sends-%u", device->index);
    return pen_thread_create(name, sender_main, device, &device->sender);
}

void pen_worker_sender_stop(worker_device *device) {
    pen_thread_join(device->sender);
}
