// Events and actions of the protocol in words, for people. Numbers are not trusted.

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "scheduler/protocol/flight_dump.h"
#include "scheduler/protocol/flight_wire.h"

typedef struct flight_text {
    char *text; // [PEN_FLIGHT_LINE_BYTES]
    size_t length;
} flight_text;

PEN_PRINTF(2, 3) static void flight_print(flight_text *out, const char *format, ...) {
    va_list arguments;
    const size_t room = PEN_FLIGHT_LINE_BYTES - out->length;
    va_start(arguments, format);
    const int length = vsnprintf(out->text + out->length, room, format, arguments);
    va_end(arguments);
    if (length > 0) out->length += (size_t)length < room ? (size_t)length : room - 1;
}

static void flight_print_who(flight_text *out, const pen_flight_dump_file *dump, uint32_t worker) {
    if (worker == 0) {
        flight_print(out, "coordinator");
        return;
    }
    flight_print(out, "worker %" PRIu32, worker);
    if (worker > dump->table->worker_count || dump->worker_names[worker][0] == '\0') return;
    flight_print(out, " (%.64s)", dump->worker_names[worker]);
}

// "'relu_1' (channel 3), microbatch 2 of round 7"
static void flight_print_frame(flight_text *out, const pen_flight_dump_file *dump, uint32_t form,
                               uint32_t channel, uint64_t sequence) {
    const pen_run_table *table = dump->table;
    if (form >= table->form_count || channel >= table->forms[form].channel_count) {
        flight_print(out, "channel %" PRIu32 " of form %" PRIu32 ", which there is not", channel,
                     form);
        return;
    }
    const pen_run_form *run = &table->forms[form];
    const char *name = dump->channel_names[form][channel];
    const uint64_t slots = pen_run_slots(run, &run->channels[channel]);
    if (name[0] != '\0') flight_print(out, "'%.80s' ", name);
    flight_print(out, "(form %" PRIu32 ", channel %" PRIu32 ")", form, channel);
    if (!run->channels[channel].is_per_step) {
        flight_print(out, ", microbatch %" PRIu32,
                     pen_run_microbatch(run, &run->channels[channel], sequence));
    }
    flight_print(out, ", round %" PRIu64, sequence / slots);
}

static const char *flight_task_kind_name(pen_task_kind kind) {
    switch (kind) {
    case PEN_TASK_FORWARD:
        return "forward";
    case PEN_TASK_BACKWARD:
        return "backward";
    case PEN_TASK_BACKWARD_INPUT:
        return "backward (inputs)";
    case PEN_TASK_BACKWARD_WEIGHT:
        return "backward (weights)";
    case PEN_TASK_UPDATE:
        return "update";
    }
    return "task";
}

static void flight_print_task(flight_text *out, const pen_task *task) {
    flight_print(out, "%s of stage %" PRIu32, flight_task_kind_name(task->kind), task->stage);
    flight_print(out, task->kind == PEN_TASK_UPDATE ? ", phase %" PRIu32 : ", microbatch %" PRIu32,
                 task->microbatch);
}

// ---- events

// An event as a line of `diagnose`, with the names that the user knows.
static void flight_print_worker_event(flight_text *out, const pen_flight_dump_file *dump,
                                      const pen_worker_event *event) {
    flight_print(out, "%s", flight_worker_event_name((uint64_t)event->kind));
    switch (event->kind) {
    case PEN_WORKER_EVENT_ASSIGN:
    case PEN_WORKER_EVENT_LOADED:
    case PEN_WORKER_EVENT_START:
    case PEN_WORKER_EVENT_STOP:
        flight_print(out, " of generation %" PRIu64, event->generation);
        return;
    case PEN_WORKER_EVENT_ROUND:
        flight_print(out, " %" PRIu64 " of form %" PRIu32 ", %" PRIu32 " microbatches%s",
                     event->round, event->form, event->count, event->updates ? ", updates" : "");
        return;
    case PEN_WORKER_EVENT_GO:
        flight_print(out, " for round %" PRIu64, event->round);
        return;
    case PEN_WORKER_EVENT_FRAME:
    case PEN_WORKER_EVENT_CREDIT:
    case PEN_WORKER_EVENT_LET_GO:
    case PEN_WORKER_EVENT_READ:
        flight_print(out, event->kind == PEN_WORKER_EVENT_CREDIT ? " below " : " of ");
        flight_print_frame(out, dump, event->form, event->channel, event->sequence);
        return;
    case PEN_WORKER_EVENT_TASK_DONE:
        flight_print(out, " on device %" PRIu32, event->device);
        return;
    }
}

// What is said of an event beside channel and worker.
static void flight_print_details(flight_text *out, const pen_coordinator_event *event) {
    double loss;
    memcpy(&loss, &event->loss.value, sizeof loss);
    switch (event->kind) {
    case PEN_COORDINATOR_EVENT_LOSS:
        flight_print(out, " %.9g of stage %" PRIu32 ", microbatch %" PRIu32 ", round %" PRIu64,
                     loss, event->stage, event->microbatch, event->round);
        break;
    case PEN_COORDINATOR_EVENT_GRADIENT:
        flight_print(out, " of stage %" PRIu32 ", microbatch %" PRIu32 ", round %" PRIu64,
                     event->stage, event->microbatch, event->round);
        break;
    case PEN_COORDINATOR_EVENT_ROUND_DONE:
        flight_print(out, " %" PRIu64, event->round);
        break;
    case PEN_COORDINATOR_EVENT_BEGIN:
        flight_print(out, " form %" PRIu32 ", %" PRIu32 " microbatches%s", event->form,
                     event->count, event->updates ? ", updates" : "");
        break;
    case PEN_COORDINATOR_EVENT_SNAPPED:
    case PEN_COORDINATOR_EVENT_SAVE:
        flight_print(out, " of step %" PRIu64, event->step);
        break;
    case PEN_COORDINATOR_EVENT_SHARD:
    case PEN_COORDINATOR_EVENT_PUBLISHED:
        flight_print(out, " of step %" PRIu64, event->step);
        if (event->code != 0) flight_print(out, " fails with code %" PRIu32, event->code);
        break;
    case PEN_COORDINATOR_EVENT_FENCED:
        if (event->code != 0) flight_print(out, " fails with code %" PRIu32, event->code);
        break;
    case PEN_COORDINATOR_EVENT_COMPUTES:
        flight_print(out, " for %.3f s", (double)event->sequence * 1e-9);
        break;
    case PEN_COORDINATOR_EVENT_OWED:
        flight_print(out, ": %" PRIu32 " more, %" PRIu64 " fewer", event->count, event->sequence);
        break;
    case PEN_COORDINATOR_EVENT_HELLO:
    case PEN_COORDINATOR_EVENT_READY:
    case PEN_COORDINATOR_EVENT_CREDIT:
    case PEN_COORDINATOR_EVENT_HEARD:
    case PEN_COORDINATOR_EVENT_FAILED:
    case PEN_COORDINATOR_EVENT_LOST:
    case PEN_COORDINATOR_EVENT_LET_GO:
    case PEN_COORDINATOR_EVENT_TICK:
    case PEN_COORDINATOR_EVENT_STOP:
        break;
    }
}

static void flight_print_coordinator_event(flight_text *out, const pen_flight_dump_file *dump,
                                           const pen_coordinator_event *event) {
    flight_print(out, "%s", flight_coordinator_event_name((uint64_t)event->kind));
    flight_print_details(out, event);
    if (event->kind == PEN_COORDINATOR_EVENT_CREDIT ||
        event->kind == PEN_COORDINATOR_EVENT_LET_GO) {
        flight_print(out, event->kind == PEN_COORDINATOR_EVENT_CREDIT ? " below " : " of ");
        flight_print_frame(out, dump, event->form, event->channel, event->sequence);
    }
    if (event->worker == 0) return;
    flight_print(out, " from ");
    flight_print_who(out, dump, event->worker);
}

void pen_flight_event_format(const pen_flight_dump_file *dump, const pen_flight_event *event,
                             char out_text[PEN_FLIGHT_LINE_BYTES]) {
    flight_text out = {.text = out_text};
    out_text[0] = '\0';
    switch (event->kind) {
    case PEN_FLIGHT_WORKER:
        flight_print_worker_event(&out, dump, &event->event.worker);
        break;
    case PEN_FLIGHT_COORDINATOR:
        flight_print_coordinator_event(&out, dump, &event->event.coordinator);
        break;
    case PEN_FLIGHT_NOTE:
        flight_print(&out, "%s", event->event.note);
        break;
    }
}

// ---- actions

// The task of an action. Numbers may come from a damaged dump, so tables are looked up only within
// their bounds.
static void flight_print_listed(flight_text *out, const pen_run_table *table,
                                const pen_worker_action *action) {
    if (action->form >= table->form_count) return;
    const pen_run_form *form = &table->forms[action->form];
    if (action->task < form->task_count) flight_print_task(out, &form->tasks[action->task].task);
}

// An action as a line of `diagnose`, with the names that the user knows.
void pen_flight_worker_action_format(const pen_flight_dump_file *dump,
                                     const pen_worker_action *action,
                                     char out_text[PEN_FLIGHT_LINE_BYTES]) {
    flight_text out = {.text = out_text};
    const pen_run_table *table = dump->table;
    out_text[0] = '\0';
    switch (action->kind) {
    case PEN_WORKER_ACTION_LOAD:
        flight_print(&out, "load for generation %" PRIu64, action->generation);
        break;
    case PEN_WORKER_ACTION_READY:
        flight_print(&out, "say that it is ready");
        break;
    case PEN_WORKER_ACTION_RUN:
    case PEN_WORKER_ACTION_LOSS:
        flight_print(&out, action->kind == PEN_WORKER_ACTION_RUN ? "run " : "report the loss of ");
        flight_print_listed(&out, table, action);
        flight_print(&out, ", round %" PRIu64 ", on device %" PRIu32, action->round,
                     action->device);
        break;
    case PEN_WORKER_ACTION_GRADIENT:
        flight_print(&out, "tell of the gradient of ");
        flight_print_listed(&out, table, action);
        flight_print(&out, ", round %" PRIu64, action->round);
        break;
    case PEN_WORKER_ACTION_SEND:
    case PEN_WORKER_ACTION_GRANT:
        flight_print(&out, action->kind == PEN_WORKER_ACTION_SEND ? "send " : "give credit below ");
        flight_print_frame(&out, dump, action->form, action->channel, action->sequence);
        break;
    case PEN_WORKER_ACTION_ROUND_DONE:
        flight_print(&out, "say that round %" PRIu64 " is done", action->round);
        break;
    case PEN_WORKER_ACTION_STOPPED:
        flight_print(&out, "stop");
        break;
    case PEN_WORKER_ACTION_READ:
        flight_print(&out, "read ");
        flight_print_frame(&out, dump, action->form, action->channel, action->sequence);
        break;
    }
}

// A dump of another version may have actions that this one does not know.
static const char *flight_coordinator_action_name(uint64_t kind) {
    static const char *const names[] = {
        [PEN_COORDINATOR_ACTION_REFUSE] = "refuse",
        [PEN_COORDINATOR_ACTION_ASSIGN] = "assign",
        [PEN_COORDINATOR_ACTION_START] = "start",
        [PEN_COORDINATOR_ACTION_ROUND] = "announce",
        [PEN_COORDINATOR_ACTION_GO] = "say go",
        [PEN_COORDINATOR_ACTION_FEED] = "feed",
        [PEN_COORDINATOR_ACTION_RUNNING] = "running",
        [PEN_COORDINATOR_ACTION_LOSSES] = "all losses are here",
        [PEN_COORDINATOR_ACTION_NOT_FINITE] = "a loss is not finite",
        [PEN_COORDINATOR_ACTION_ROUND_DONE] = "round done",
        [PEN_COORDINATOR_ACTION_FENCE] = "fence the generation",
        [PEN_COORDINATOR_ACTION_SNAPSHOT] = "have tensors copied",
        [PEN_COORDINATOR_ACTION_SNAPPED] = "all tensors are copied",
        [PEN_COORDINATOR_ACTION_PUBLISH] = "publish the manifest",
        [PEN_COORDINATOR_ACTION_COMMITTED] = "say that it is committed",
        [PEN_COORDINATOR_ACTION_SAVE_FAILED] = "give the save up",
        [PEN_COORDINATOR_ACTION_STOP] = "stop",
        [PEN_COORDINATOR_ACTION_FAIL] = "fail",
    };
    const char *name = kind < sizeof names / sizeof *names ? names[kind] : NULL;
    return name == NULL ? "another action" : name;
}

// The action, and what belongs to it: a frame, a reason, a round, a step.
void pen_flight_coordinator_action_format(const pen_flight_dump_file *dump,
                                          const pen_coordinator_action *action,
                                          char out_text[PEN_FLIGHT_LINE_BYTES]) {
    flight_text out = {.text = out_text};
    out_text[0] = '\0';
    flight_print(&out, "%s", flight_coordinator_action_name((uint64_t)action->kind));
    if (action->kind == PEN_COORDINATOR_ACTION_FEED) {
        flight_print(&out, " ");
        flight_print_frame(&out, dump, action->form, action->channel, action->sequence);
        return;
    }
    if (action->kind == PEN_COORDINATOR_ACTION_FAIL) {
        flight_print(&out, ": %s", pen_coordinator_reason_text(action->reason));
    }
    const bool is_of_round = action->kind == PEN_COORDINATOR_ACTION_ROUND ||
                             action->kind == PEN_COORDINATOR_ACTION_GO ||
                             action->kind == PEN_COORDINATOR_ACTION_LOSSES ||
                             action->kind == PEN_COORDINATOR_ACTION_NOT_FINITE ||
                             action->kind == PEN_COORDINATOR_ACTION_ROUND_DONE;
    if (is_of_round) flight_print(&out, ", round %" PRIu64, action->round);
    if (action->kind == PEN_COORDINATOR_ACTION_NOT_FINITE) {
        flight_print(&out, ", microbatch %" PRIu32 " of stage %" PRIu32, action->microbatch,
                     action->stage);
    }
    const bool is_of_save = action->kind >= PEN_COORDINATOR_ACTION_SNAPSHOT &&
                            action->kind <= PEN_COORDINATOR_ACTION_SAVE_FAILED;
    if (is_of_save) flight_print(&out, ", step %" PRIu64, action->step);
    if (action->worker == 0) return;
    flight_print(&out, ", ");
    flight_print_who(&out, dump, action->worker);
}

void pen_flight_who_format(const pen_flight_dump_file *dump, uint32_t worker,
                           char out_text[PEN_FLIGHT_LINE_BYTES]) {
    flight_text out = {.text = out_text};
    out_text[0] = '\0';
    flight_print_who(&out, dump, worker);
}

// ---- waits

// What a device waits for and from whom: the line that explains a training that stands still.
void pen_flight_wait_format(const pen_flight_dump_file *dump, uint32_t device,
                            const pen_worker_wait *wait, char out_text[PEN_FLIGHT_LINE_BYTES]) {
    flight_text out = {.text = out_text};
    out_text[0] = '\0';
    flight_print(&out, "device %" PRIu32 " ", device);
    if (wait->is_idle) {
        flight_print(&out, "has nothing to do");
        return;
    }
    if (!wait->is_running) {
        if (wait->needs_go) {
            flight_print(&out, "waits for the coordinator's word");
        } else if (wait->channel == UINT32_MAX) {
            flight_print(&out, "is not running");
        } else {
            const pen_run_channel *channel =
                &dump->table->forms[wait->form].channels[wait->channel];
            flight_print(&out, "waits for ");
            flight_print_who(&out, dump,
                             wait->needs_frame ? channel->source_worker : channel->target_worker);
            flight_print(&out, wait->needs_frame ? " to send " : " to take ");
            flight_print_frame(&out, dump, wait->form, wait->channel, wait->sequence);
        }
        flight_print(&out, ", to run ");
    } else {
        flight_print(&out, "runs ");
    }
    flight_print_task(&out, &wait->task);
    flight_print(&out, " of round %" PRIu64, wait->round);
}
