#include "scheduler/runtime/worker/worker_sender.h"

#include <stdio.h>

#include "scheduler/protocol/run_table.h"

// ---- what is to be sent

// Of all forms, since rounds of one may begin while frames of another are on their way.
pen_status pen_worker_sender_prepare(worker_device *device) {
    const pen_run_table *table = device->run->table;
    uint32_t limit = 1;
    for (uint32_t f = 0; f < table->form_count; f++) {
        for (uint32_t c = 0; c < table->forms[f].channel_count; c++) {
            const pen_run_channel *channel = &table->forms[f].channels[c];
            if (channel->source_device == device->index) limit += channel->copies;
        }
    }
    device->send_limit = limit;
    return PEN_NEW(device->run->arena, limit, &device->sends);
}

void pen_worker_sender_add(pen_worker_run *run, const pen_worker_action *action) {
    const pen_run_channel *channel = &run->table->forms[action->form].channels[action->channel];
    worker_device *device = &run->devices[run->local_of_device[channel->source_device]];
    PEN_ASSERT(device->send_count < device->send_limit);
    const uint32_t last = (device->send_first + device->send_count) % device->send_limit;
    device->sends[last] = (worker_send){action->form, action->channel, action->sequence};
    device->send_count += 1;
    pen_condition_signal(device->sender == NULL ? &device->wake : &device->sends_wake);
}

static bool sender_take(worker_device *device, worker_send *out_send) {
    if (device->send_count == 0) return false;
    *out_send = device->sends[device->send_first];
    device->send_first = (device->send_first + 1) % device->send_limit;
    device->send_count -= 1;
    return true;
}

bool pen_worker_sender_take(worker_device *device, worker_send *out_send) {
    return device->sender == NULL && sender_take(device, out_send);
}

// ---- the thread of a device whose memory the host does not see

// Holds the lock, but while it sends.
static void sender_send(worker_device *device, const worker_send *send) {
    pen_worker_run *run = device->run;
    device->is_sending = true;
    device->sending = *send;
    pen_mutex_unlock(&run->lock);
    pen_status status = pen_worker_run_send(run, send);
    if (status != PEN_OK) {
        const char *name = run->spec->devices[device->index].name;
        pen_worker_run_fail(run, pen_status_add_context(status, "on device '%s'", name));
    }
    pen_mutex_lock(&run->lock);
    device->is_sending = false;
}

// Frames that are left when the run fails or is closed go nowhere.
static void sender_main(void *context) {
    worker_device *device = context;
    pen_worker_run *run = device->run;
    worker_send send;
    pen_mutex_lock(&run->lock);
    while (!run->is_closed) {
        if (!run->is_failed && sender_take(device, &send)) {
            sender_send(device, &send);
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
