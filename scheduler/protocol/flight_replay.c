// Events of a dump, fed to a new core.

#include <inttypes.h>
#include <stdio.h>

#include "scheduler/protocol/flight_dump.h"
#include "scheduler/protocol/flight_outcome.h"
#include "scheduler/protocol/flight_wire.h"

typedef struct flight_replay {
    const pen_flight_dump_file *dump;
    const pen_flight_replay_options *options;
    pen_arena *arena;
    pen_flight_replay_result *result;
    pen_worker_core *worker;
    pen_worker_action *worker_actions;
    pen_coordinator_core *coordinator;
    pen_coordinator_action *coordinator_actions;
    pen_worker_fault fault; // of the last event
    uint32_t action_count;
} flight_replay;

// ---- feeding

static pen_status flight_start(flight_replay *replay) {
    const pen_flight_dump_file *dump = replay->dump;
    uint32_t limit;
    if (dump->worker == 0) {
        PEN_TRY(pen_coordinator_core_new(dump->table, dump->options, replay->arena,
                                         &replay->coordinator, &limit));
        return PEN_NEW(replay->arena, limit, &replay->coordinator_actions);
    }
    PEN_TRY(pen_worker_core_new(dump->table, dump->worker, replay->arena, &replay->worker, &limit));
    return PEN_NEW(replay->arena, limit, &replay->worker_actions);
}

// What drivers never hand to a core; cores rely on that.
static const char *flight_find_impossible(const flight_replay *replay,
                                          const pen_flight_event *event) {
    const pen_run_table *table = replay->dump->table;
    if (event->kind == PEN_FLIGHT_WORKER) {
        const pen_worker_event *worker = &event->event.worker;
        if (worker->kind == PEN_WORKER_EVENT_TASK_DONE) {
            const bool is_here =
                worker->device < table->device_count &&
                table->forms[0].devices[worker->device].worker == replay->dump->worker;
            if (!is_here) return "a task is done on a device that is not here";
        }
        const bool is_of_channel = worker->form < table->form_count &&
                                   worker->channel < table->forms[worker->form].channel_count;
        if (worker->kind == PEN_WORKER_EVENT_LET_GO && !is_of_channel) {
            return "memory of a channel is free that there is not";
        }
        if (worker->kind == PEN_WORKER_EVENT_READ &&
            !(is_of_channel &&
              pen_run_channel_is_read(&table->forms[worker->form].channels[worker->channel]))) {
            return "a channel is read that is not read here";
        }
        return NULL;
    }
    const pen_coordinator_event *event_of = &event->event.coordinator;
    uint64_t round;
    if (event_of->kind == PEN_COORDINATOR_EVENT_HELLO && event_of->identity == NULL) {
        return "a HELLO whose identity was not kept";
    }
    if (event_of->kind == PEN_COORDINATOR_EVENT_BEGIN) {
        if (!pen_coordinator_core_can_begin(replay->coordinator, &round)) {
            return "a round begins where none can";
        }
        if (event_of->form >= table->form_count || event_of->count == 0 ||
            event_of->count > table->forms[event_of->form].microbatch_count ||
            (event_of->updates && !table->forms[event_of->form].trains)) {
            return "a round begins that there is not";
        }
    }
    if (event_of->kind == PEN_COORDINATOR_EVENT_SAVE &&
        !pen_coordinator_core_can_save(replay->coordinator)) {
        return "a save begins where none can";
    }
    if (event_of->kind == PEN_COORDINATOR_EVENT_LET_GO &&
        (event_of->form >= table->form_count ||
         event_of->channel >= table->forms[event_of->form].channel_count)) {
        return "memory of a channel is free that there is not";
    }
    return NULL;
}

static uint64_t flight_step(flight_replay *replay, const pen_flight_event *event) {
    replay->action_count = 0;
    if (event->kind == PEN_FLIGHT_WORKER) {
        replay->fault = pen_worker_core_step(replay->worker, &event->event.worker,
                                             replay->worker_actions, &replay->action_count);
        if (replay->fault != PEN_WORKER_FAULT_NONE) replay->result->fault_count += 1;
        return pen_flight_worker_outcome(replay->fault, replay->worker_actions,
                                         replay->action_count);
    }
    pen_coordinator_core_step(replay->coordinator, &event->event.coordinator,
                              replay->coordinator_actions, &replay->action_count);
    return pen_flight_coordinator_outcome(replay->coordinator_actions, replay->action_count);
}

static void flight_tell_actions(const flight_replay *replay, const pen_flight_event *event) {
    const pen_flight_replay_options *options = replay->options;
    char text[PEN_FLIGHT_LINE_BYTES];
    if (options->on_action == NULL) return;
    if (event->kind == PEN_FLIGHT_WORKER && replay->fault != PEN_WORKER_FAULT_NONE) {
        snprintf(text, sizeof text, "fault: %s", pen_worker_fault_text(replay->fault));
        options->on_action(options->context, text);
    }
    for (uint32_t i = 0; i < replay->action_count; i++) {
        if (event->kind == PEN_FLIGHT_WORKER) {
            pen_flight_worker_action_format(replay->dump, &replay->worker_actions[i], text);
        } else {
            pen_flight_coordinator_action_format(replay->dump, &replay->coordinator_actions[i],
                                                 text);
        }
        options->on_action(options->context, text);
    }
}

// Feeds the recorded events to a new core and compares what comes of them. An event that the core
// would not allow ends the replay instead of failing an assertion.
static void flight_feed(flight_replay *replay) {
    const pen_flight_replay_options *options = replay->options;
    pen_flight_replay_result *result = replay->result;
    for (uint32_t i = 0; i < replay->dump->event_count; i++) {
        const pen_flight_event *event = &replay->dump->events[i];
        bool is_same = true;
        if (event->kind == PEN_FLIGHT_NOTE) {
            if (options->on_event != NULL) options->on_event(options->context, event, true);
            continue;
        }
        if (event->number != i) {
            result->stopped = "an event is missing that was being recorded when the dump was made";
            return;
        }
        result->stopped = flight_find_impossible(replay, event);
        if (result->stopped != NULL) return;
        const uint64_t outcome = flight_step(replay, event);
        result->replayed += 1;
        if (event->has_outcome) {
            result->compared += 1;
            is_same = outcome == event->outcome;
            if (!is_same && result->different == 0) result->first_different = event->number;
            result->different += !is_same;
        }
        if (options->on_event != NULL) options->on_event(options->context, event, is_same);
        flight_tell_actions(replay, event);
    }
}

// ---- where it is at the end

static pen_status flight_tell_waits(flight_replay *replay, const char **lines, uint32_t *count) {
    const pen_run_table *table = replay->dump->table;
    char text[PEN_FLIGHT_LINE_BYTES];
    for (uint32_t d = 0; d < table->device_count; d++) {
        if (table->forms[0].devices[d].worker != replay->dump->worker) continue;
        const pen_worker_wait wait = pen_worker_core_get_wait(replay->worker, d);
        pen_flight_wait_format(replay->dump, d, &wait, text);
        PEN_TRY(pen_arena_format(replay->arena, &lines[*count], "%s", text));
        *count += 1;
    }
    return PEN_OK;
}

static const char *flight_state_name(pen_coordinator_state state) {
    switch (state) {
    case PEN_COORDINATOR_RECRUIT:
        return "waits for workers";
    case PEN_COORDINATOR_FENCE:
        return "makes its generation durable";
    case PEN_COORDINATOR_ASSIGN:
        return "waits until workers are ready";
    case PEN_COORDINATOR_RUN:
        return "runs";
    case PEN_COORDINATOR_DONE:
        return "is over";
    }
    return "";
}

static const char *flight_save_name(pen_coordinator_save_state state) {
    switch (state) {
    case PEN_COORDINATOR_SAVE_NONE:
        return "";
    case PEN_COORDINATOR_SAVE_SNAPPING:
        return "; saves, waits for copies of tensors";
    case PEN_COORDINATOR_SAVE_WRITING:
        return "; saves, waits for shards";
    case PEN_COORDINATOR_SAVE_PUBLISHING:
        return "; saves, publishes the manifest";
    }
    return "";
}

// How things stood when the dump was made, in lines.
static pen_status flight_tell_workers(flight_replay *replay, const char **lines, uint32_t *count) {
    const pen_flight_dump_file *dump = replay->dump;
    char text[PEN_FLIGHT_LINE_BYTES];
    uint64_t round, step;
    (void)pen_coordinator_core_can_begin(replay->coordinator, &round);
    const pen_coordinator_state state = pen_coordinator_core_state(replay->coordinator);
    const pen_coordinator_save_state save =
        pen_coordinator_core_save_state(replay->coordinator, &step);
    PEN_TRY(pen_arena_format(
        replay->arena, &lines[*count], "the coordinator %s; rounds below %" PRIu64 " begun, %s%s",
        flight_state_name(state), round,
        pen_coordinator_core_is_quiet(replay->coordinator) ? "none under way" : "some under way",
        flight_save_name(save)));
    *count += 1;
    for (uint32_t w = 1; w <= dump->table->worker_count; w++) {
        if (pen_coordinator_core_is_present(replay->coordinator, w)) continue;
        pen_flight_who_format(dump, w, text);
        PEN_TRY(pen_arena_format(replay->arena, &lines[*count], "%s is not there", text));
        *count += 1;
    }
    return PEN_OK;
}

static pen_status flight_tell_state(flight_replay *replay) {
    const pen_run_table *table = replay->dump->table;
    const char **lines;
    uint32_t count = 0;
    const size_t most = (size_t)table->device_count + table->worker_count + 1;
    PEN_TRY(PEN_NEW(replay->arena, most, &lines));
    if (replay->worker != NULL) {
        PEN_TRY(flight_tell_waits(replay, lines, &count));
    } else {
        PEN_TRY(flight_tell_workers(replay, lines, &count));
    }
    replay->result->state = lines;
    replay->result->state_count = count;
    return PEN_OK;
}

pen_status pen_flight_replay(const pen_flight_dump_file *dump,
                             const pen_flight_replay_options *options, pen_arena *arena,
                             pen_flight_replay_result *out_result) {
    flight_replay replay = {.dump = dump, .options = options, .arena = arena, .result = out_result};
    *out_result = (pen_flight_replay_result){0};
    out_result->is_whole = dump->event_count > 0 && dump->events[0].number == 0;
    if (!out_result->is_whole) return PEN_OK;
    PEN_TRY(flight_start(&replay));
    flight_feed(&replay);
    return flight_tell_state(&replay);
}
