#include "scheduler/protocol/admission.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "scheduler/protocol/coordinator_core.h"
#include "scheduler/protocol/run_table_check.h"
#include "scheduler/protocol/worker_core.h"

#define ADMISSION_GENERATION 1
#define ADMISSION_ROUNDS_A_FORM 5

// An event under way to a worker, or to the coordinator (0).
typedef struct admission_event {
    uint32_t to;
    pen_worker_event worker;
    pen_coordinator_event coordinator;
} admission_event;

typedef struct admission {
    const pen_run_table *table;
    const pen_admission_names *names;
    pen_arena *arena;
    pen_coordinator_core *coordinator;
    pen_worker_core **workers; // [worker_count + 1], from 1
    pen_coordinator_action *coordinator_actions;
    pen_worker_action *worker_actions;
    admission_event *queue; // a ring
    uint32_t queue_first;
    uint32_t queue_count;
    uint32_t queue_limit;
    uint32_t begun_count; // rounds
    uint32_t done_count;
    bool failed; // a core said what it should not
} admission;

static pen_status admission_push(admission *a, const admission_event *event) {
    if (a->queue_count == a->queue_limit) {
        admission_event *queue;
        const uint32_t limit = a->queue_limit * 2 + 64;
        PEN_TRY(PEN_NEW(a->arena, limit, &queue));
        for (uint32_t i = 0; i < a->queue_count; i++) {
            queue[i] = a->queue[(a->queue_first + i) % a->queue_limit];
        }
        a->queue = queue;
        a->queue_limit = limit;
        a->queue_first = 0;
    }
    a->queue[(a->queue_first + a->queue_count) % a->queue_limit] = *event;
    a->queue_count += 1;
    return PEN_OK;
}

static pen_status admission_tell_worker(admission *a, uint32_t to, pen_worker_event event) {
    event.generation = ADMISSION_GENERATION;
    return admission_push(a, &(admission_event){.to = to, .worker = event});
}

static pen_status admission_tell_coordinator(admission *a, uint32_t from,
                                             pen_coordinator_event event) {
    event.generation = ADMISSION_GENERATION;
    event.worker = from;
    event.incarnation = from;
    return admission_push(a, &(admission_event){.coordinator = event});
}

// ---- what actions lead to

// Plays the network: what one core sends, the other gets in its queue, and computing takes no time.
static pen_status admission_do_worker(admission *a, uint32_t worker,
                                      const pen_worker_action *action) {
    const pen_run_form *form = &a->table->forms[action->form];
    const pen_run_channel *channel = &form->channels[action->channel];
    switch (action->kind) {
    case PEN_WORKER_ACTION_LOAD:
        return admission_tell_worker(a, worker,
                                     (pen_worker_event){.kind = PEN_WORKER_EVENT_LOADED});
    case PEN_WORKER_ACTION_READY:
        return admission_tell_coordinator(
            a, worker, (pen_coordinator_event){.kind = PEN_COORDINATOR_EVENT_READY});
    case PEN_WORKER_ACTION_RUN:
        return admission_tell_worker(
            a, worker,
            (pen_worker_event){.kind = PEN_WORKER_EVENT_TASK_DONE, .device = action->device});
    case PEN_WORKER_ACTION_SEND: {
        pen_worker_event event = {.kind = PEN_WORKER_EVENT_FRAME,
                                  .form = action->form,
                                  .channel = action->channel,
                                  .sequence = action->sequence};
        PEN_TRY(admission_tell_worker(a, channel->target_worker, event));
        event.kind = PEN_WORKER_EVENT_LET_GO;
        return admission_tell_worker(a, worker, event);
    }
    case PEN_WORKER_ACTION_GRANT:
        if (channel->source_worker == 0) {
            return admission_tell_coordinator(
                a, worker,
                (pen_coordinator_event){.kind = PEN_COORDINATOR_EVENT_CREDIT,
                                        .form = action->form,
                                        .channel = action->channel,
                                        .sequence = action->sequence});
        }
        return admission_tell_worker(a, channel->source_worker,
                                     (pen_worker_event){.kind = PEN_WORKER_EVENT_CREDIT,
                                                        .form = action->form,
                                                        .channel = action->channel,
                                                        .sequence = action->sequence});
    case PEN_WORKER_ACTION_LOSS:
    case PEN_WORKER_ACTION_GRADIENT: {
        const pen_task *task = &form->tasks[action->task].task;
        const bool is_loss = action->kind == PEN_WORKER_ACTION_LOSS;
        return admission_tell_coordinator(
            a, worker,
            (pen_coordinator_event){.kind = is_loss ? PEN_COORDINATOR_EVENT_LOSS
                                                    : PEN_COORDINATOR_EVENT_GRADIENT,
                                    .round = action->round,
                                    .microbatch = task->microbatch,
                                    .stage = task->stage});
    }
    case PEN_WORKER_ACTION_ROUND_DONE:
        return admission_tell_coordinator(
            a, worker,
            (pen_coordinator_event){.kind = PEN_COORDINATOR_EVENT_ROUND_DONE,
                                    .round = action->round});
    case PEN_WORKER_ACTION_READ:
        return admission_tell_worker(a, worker,
                                     (pen_worker_event){.kind = PEN_WORKER_EVENT_READ,
                                                        .form = action->form,
                                                        .channel = action->channel,
                                                        .sequence = action->sequence});
    case PEN_WORKER_ACTION_STOPPED:
        return PEN_OK;
    }
    PEN_NEVER("an action of a worker");
}

// As for workers. An action that a trial has no need for means that the run would fail.
static pen_status admission_do_coordinator(admission *a, const pen_coordinator_action *action) {
    switch (action->kind) {
    case PEN_COORDINATOR_ACTION_ASSIGN:
        return admission_tell_worker(a, action->worker,
                                     (pen_worker_event){.kind = PEN_WORKER_EVENT_ASSIGN});
    case PEN_COORDINATOR_ACTION_START:
        return admission_tell_worker(a, action->worker,
                                     (pen_worker_event){.kind = PEN_WORKER_EVENT_START});
    case PEN_COORDINATOR_ACTION_ROUND:
        return admission_tell_worker(a, action->worker,
                                     (pen_worker_event){.kind = PEN_WORKER_EVENT_ROUND,
                                                        .round = action->round,
                                                        .form = action->form,
                                                        .count = action->count,
                                                        .updates = action->updates});
    case PEN_COORDINATOR_ACTION_GO:
        return admission_tell_worker(
            a, action->worker,
            (pen_worker_event){.kind = PEN_WORKER_EVENT_GO, .round = action->round});
    case PEN_COORDINATOR_ACTION_FEED:
        PEN_TRY(admission_tell_worker(a, action->worker,
                                      (pen_worker_event){.kind = PEN_WORKER_EVENT_FRAME,
                                                         .form = action->form,
                                                         .channel = action->channel,
                                                         .sequence = action->sequence}));
        return admission_tell_coordinator(
            a, 0,
            (pen_coordinator_event){.kind = PEN_COORDINATOR_EVENT_LET_GO,
                                    .form = action->form,
                                    .channel = action->channel,
                                    .sequence = action->sequence});
    case PEN_COORDINATOR_ACTION_ROUND_DONE:
        a->done_count += 1;
        return PEN_OK;
    case PEN_COORDINATOR_ACTION_RUNNING:
    case PEN_COORDINATOR_ACTION_LOSSES:
    case PEN_COORDINATOR_ACTION_STOP:
        return PEN_OK;
    case PEN_COORDINATOR_ACTION_FENCE: // none is needed, and nothing is saved
    case PEN_COORDINATOR_ACTION_SNAPSHOT:
    case PEN_COORDINATOR_ACTION_SNAPPED:
    case PEN_COORDINATOR_ACTION_PUBLISH:
    case PEN_COORDINATOR_ACTION_COMMITTED:
    case PEN_COORDINATOR_ACTION_SAVE_FAILED:
    case PEN_COORDINATOR_ACTION_NOT_FINITE:
    case PEN_COORDINATOR_ACTION_REFUSE:
    case PEN_COORDINATOR_ACTION_FAIL:
        a->failed = true;
        return PEN_OK;
    }
    PEN_NEVER("an action of the coordinator");
}

static pen_status admission_step_coordinator(admission *a, const pen_coordinator_event *event) {
    uint32_t count;
    pen_coordinator_core_step(a->coordinator, event, a->coordinator_actions, &count);
    for (uint32_t i = 0; i < count; i++) {
        PEN_TRY(admission_do_coordinator(a, &a->coordinator_actions[i]));
    }
    return PEN_OK;
}

static pen_status admission_step(admission *a) {
    const admission_event event = a->queue[a->queue_first];
    a->queue_first = (a->queue_first + 1) % a->queue_limit;
    a->queue_count -= 1;
    if (event.to == 0) return admission_step_coordinator(a, &event.coordinator);
    uint32_t count;
    const pen_worker_fault fault =
        pen_worker_core_step(a->workers[event.to], &event.worker, a->worker_actions, &count);
    a->failed = a->failed || fault != PEN_WORKER_FAULT_NONE;
    for (uint32_t i = 0; i < count; i++) {
        PEN_TRY(admission_do_worker(a, event.to, &a->worker_actions[i]));
    }
    return PEN_OK;
}

// ---- the rounds

// Of each form: whole, whole, half, one microbatch, whole; all but the half one with updates.
static pen_status admission_begin(admission *a) {
    uint64_t round;
    while (a->begun_count < a->table->form_count * ADMISSION_ROUNDS_A_FORM &&
           pen_coordinator_core_can_begin(a->coordinator, &round)) {
        const uint32_t number = a->begun_count % ADMISSION_ROUNDS_A_FORM;
        const uint32_t form_number = a->begun_count / ADMISSION_ROUNDS_A_FORM;
        const pen_run_form *form = &a->table->forms[form_number];
        const pen_coordinator_event event = {.kind = PEN_COORDINATOR_EVENT_BEGIN,
                                             .form = form_number,
                                             .count = number == 2 ? (form->microbatch_count + 1) / 2
                                                      : number == 3 ? 1
                                                                    : form->microbatch_count,
                                             .updates = form->trains && number != 2};
        a->begun_count += 1;
        PEN_TRY(admission_step_coordinator(a, &event));
    }
    return PEN_OK;
}

static pen_status admission_new(admission *a) {
    const pen_run_table *table = a->table;
    const pen_coordinator_options options = {.generation = ADMISSION_GENERATION};
    uint32_t limit, most = 0;
    PEN_TRY(pen_coordinator_core_new(table, &options, a->arena, &a->coordinator, &limit));
    PEN_TRY(PEN_NEW(a->arena, limit, &a->coordinator_actions));
    PEN_TRY(PEN_NEW(a->arena, (size_t)table->worker_count + 1, &a->workers));
    for (uint32_t i = 1; i <= table->worker_count; i++) {
        PEN_TRY(pen_worker_core_new(table, i, a->arena, &a->workers[i], &limit));
        if (limit > most) most = limit;
    }
    return PEN_NEW(a->arena, most, &a->worker_actions);
}

// ---- why it does not finish

static const char *admission_device(const admission *a, uint32_t device, char room[64]) {
    if (a->names != NULL && a->names->devices != NULL) {
        snprintf(room, 64, "device '%s'", a->names->devices[device]);
    } else {
        snprintf(room, 64, "device %" PRIu32, device);
    }
    return room;
}

static const char *admission_channel(const admission *a, uint32_t form, uint32_t channel,
                                     char room[128]) {
    if (a->names != NULL && a->names->channels != NULL) {
        snprintf(room, 128, "'%s'", a->names->channels[form][channel]);
    } else {
        snprintf(room, 128, "channel %" PRIu32, channel);
    }
    return room;
}

static pen_worker_wait admission_wait(const admission *a, uint32_t device) {
    const uint32_t worker = a->table->forms[0].devices[device].worker;
    return pen_worker_core_get_wait(a->workers[worker], device);
}

// A device whose loss of the round, or of one before, is not here; UINT32_MAX: none.
static uint32_t admission_loss_device(const admission *a, uint64_t round, uint32_t form_number) {
    const pen_run_form *form = &a->table->forms[form_number];
    for (uint32_t d = 0; d < a->table->device_count; d++) {
        for (uint32_t t = form->devices[d].task_first; t < form->devices[d].task_end; t++) {
            const pen_run_task *task = &form->tasks[t];
            if (task->makes_loss && admission_wait(a, d).round <= round &&
                pen_coordinator_core_find_loss(a->coordinator, round, task->task.microbatch,
                                               task->task.stage) == NULL) {
                return d;
            }
        }
    }
    return UINT32_MAX;
}

// Whom a device waits for, UINT32_MAX: nobody. Writes ", which waits for …" about it.
static uint32_t admission_next(const admission *a, uint32_t device, const pen_worker_wait *wait,
                               char *out_text, size_t size) {
    char other[64], value[128];
    if (wait->needs_go) {
        const uint32_t next = admission_loss_device(a, wait->round, wait->form);
        snprintf(out_text, size, " waits to update until all losses are there, as of %s",
                 next == UINT32_MAX ? "nobody" : admission_device(a, next, other));
        return next;
    }
    const uint32_t microbatch = wait->task.kind == PEN_TASK_UPDATE ? 0 : wait->task.microbatch;
    const pen_run_channel *channel = &a->table->forms[wait->form].channels[wait->channel];
    admission_channel(a, wait->form, wait->channel, value);
    if (!wait->needs_frame) {
        snprintf(out_text, size,
                 " waits for a place for %s of microbatch %" PRIu32 " (%" PRIu32 " here, %" PRIu32
                 " there), until it is consumed by %s",
                 value, microbatch, channel->copies, channel->capacity,
                 admission_device(a, channel->target_device, other));
        return channel->target_device;
    }
    const bool is_fed = channel->source_device == PEN_CHANNEL_HOST;
    snprintf(out_text, size, " waits for %s of microbatch %" PRIu32 " from %s", value, microbatch,
             is_fed ? "the host, which waits for a place for it at"
                    : admission_device(a, channel->source_device, other));
    if (!is_fed) return channel->source_device;
    const size_t length = strnlen(out_text, size);
    snprintf(out_text + length, size - length, " %s", admission_device(a, device, other));
    return device;
}

// "device a waits for 'x' of microbatch 1 from device b, which waits …, which waits … device a"
static pen_status admission_refuse(const admission *a) {
    uint32_t device = 0;
    while (device < a->table->device_count && admission_wait(a, device).is_idle) {
        device++;
    }
    if (device == a->table->device_count) {
        return pen_error(PEN_INTERNAL, "the plan does not finish, and no device waits");
    }
    bool *seen;
    PEN_TRY(PEN_NEW(a->arena, a->table->device_count, &seen));
    uint32_t walk = device;
    char line[512];
    while (walk != UINT32_MAX && !seen[walk]) { // to a device of the circle
        seen[walk] = true;
        device = walk;
        const pen_worker_wait wait = admission_wait(a, walk);
        walk = wait.is_idle ? UINT32_MAX : admission_next(a, walk, &wait, line, sizeof line);
    }
    const uint32_t first = walk == UINT32_MAX ? device : walk;
    const char *text;
    char name[64];
    PEN_TRY(pen_arena_format(a->arena, &text, "%s", admission_device(a, first, name)));
    for (walk = first; walk != UINT32_MAX;) {
        const pen_worker_wait wait = admission_wait(a, walk);
        if (wait.is_idle) break;
        const uint32_t next = admission_next(a, walk, &wait, line, sizeof line);
        PEN_TRY(pen_arena_format(a->arena, &text, "%s%s%s", text, walk == first ? "" : ", which",
                                 line));
        walk = next == first ? UINT32_MAX : next;
    }
    return pen_error(PEN_INVALID_INPUT, "the plan does not finish: %s", text);
}

static pen_status admission_run(admission *a) {
    PEN_TRY(admission_new(a));
    const uint32_t round_count = a->table->form_count * ADMISSION_ROUNDS_A_FORM;
    const pen_coordinator_identity identity = {0};
    for (uint32_t i = 1; i <= a->table->worker_count; i++) {
        PEN_TRY(admission_tell_coordinator(
            a, i,
            (pen_coordinator_event){.kind = PEN_COORDINATOR_EVENT_HELLO, .identity = &identity}));
    }
    while (a->queue_count > 0) {
        PEN_TRY(admission_step(a));
        PEN_TRY(admission_begin(a));
        if (a->failed) {
            return pen_error(PEN_INTERNAL, "the cores contradict each other over the plan");
        }
    }
    return a->done_count == round_count ? PEN_OK : admission_refuse(a);
}

pen_status pen_run_table_admit(const pen_run_table *table, const pen_admission_names *names) {
    PEN_TRY(pen_run_table_check(table));
    admission a = {.table = table, .names = names};
    pen_status status = pen_arena_create(&a.arena);
    if (status == PEN_OK) status = admission_run(&a);
    pen_arena_destroy(a.arena);
    return status;
}
