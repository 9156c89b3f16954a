#include "scheduler/protocol/run_table_order.h"

#include <inttypes.h>

#include "base/arena.h"

// What is known of a channel's frames while the tasks are walked: how many microbatches are made,
// received and released so far. Since they come in order, a number says it all.
typedef struct table_frames {
    uint32_t made;
    uint32_t received;
    uint32_t released;
    bool is_made_by_update;
    bool is_read_by_others; // than updates
    bool is_read;
} table_frames;

// Microbatches of the tasks of a kind and stage so far.
typedef struct table_turns {
    uint32_t first;
    uint32_t next; // 0: none yet
} table_turns;

typedef struct table_check {
    const pen_run_form *form;
    uint32_t form_number;
    uint32_t device;
    const pen_run_task *task;
    table_frames *frames; // [channel_count]
} table_check;

static pen_status table_refuse(const table_check *check, uint32_t channel, const char *what) {
    return pen_error(PEN_CORRUPT,
                     "run table, form %" PRIu32 ", device %" PRIu32 ", %s of stage %" PRIu32
                     ", %s %" PRIu32 ": channel %" PRIu32 " %s",
                     check->form_number, check->device, pen_task_kind_name(check->task->task.kind),
                     check->task->task.stage,
                     check->task->task.kind == PEN_TASK_UPDATE ? "phase" : "microbatch",
                     check->task->task.microbatch, channel, what);
}

// The number that a channel's frame has at this task, counted from the first of its range: of
// per-step channels always 0. Below the first it is very large.
static uint32_t table_turn(const table_check *check, uint32_t channel) {
    const pen_run_channel *carries = &check->form->channels[channel];
    return carries->is_per_step ? 0 : check->task->task.microbatch - carries->first_microbatch;
}

// The channel carries a frame of the task's microbatch, or of its round.
static pen_status table_check_carried(const table_check *check, uint32_t channel) {
    const pen_run_channel *carries = &check->form->channels[channel];
    if (check->task->task.kind == PEN_TASK_UPDATE && !carries->is_per_step) {
        return table_refuse(check, channel, "is not per step");
    }
    if (table_turn(check, channel) >= pen_run_slots(check->form, carries)) {
        return table_refuse(check, channel, "carries no such microbatch");
    }
    return PEN_OK;
}

// What a task waits for was made and is not let go, and what it sends is sent in order: places are
// reused by microbatch, so a frame out of turn would be written over one that is still read.
static pen_status table_check_task(const table_check *check) {
    const pen_run_form *form = check->form;
    const pen_run_task *task = check->task;
    const bool is_update = task->task.kind == PEN_TASK_UPDATE;
    for (uint32_t i = task->receive_first; i < task->receive_end; i++) {
        const uint32_t channel = form->refs[i];
        const uint32_t turn = table_turn(check, channel);
        table_frames *frames = &check->frames[channel];
        PEN_TRY(table_check_carried(check, channel));
        if (turn < frames->released) return table_refuse(check, channel, "was released before");
        if (turn > frames->received) return table_refuse(check, channel, "is read out of order");
        if (turn == frames->received) frames->received += 1;
        frames->is_read = true;
        if (!is_update) frames->is_read_by_others = true;
    }
    for (uint32_t i = task->send_first; i < task->send_end; i++) {
        const uint32_t channel = form->refs[i];
        table_frames *frames = &check->frames[channel];
        PEN_TRY(table_check_carried(check, channel));
        if (table_turn(check, channel) != frames->made) {
            return table_refuse(check, channel, "is made out of order, or twice");
        }
        if (!is_update && form->channels[channel].is_per_step && task->task.microbatch > 0) {
            return table_refuse(check, channel, "is per step: short rounds would lack it");
        }
        frames->made += 1;
        frames->is_made_by_update = is_update;
    }
    for (uint32_t i = task->release_first; i < task->release_end; i++) {
        const uint32_t channel = form->refs[i];
        table_frames *frames = &check->frames[channel];
        if (table_turn(check, channel) != frames->released ||
            frames->released == frames->received) {
            return table_refuse(check, channel, "is released out of order, or was not read");
        }
        frames->released += 1;
    }
    return PEN_OK;
}

// Each device of a form belongs to the worker that it has in all forms.
static pen_status table_check_kinds(const table_check *check, const pen_run_table *table) {
    const pen_run_form *form = check->form;
    const pen_run_device *device = &form->devices[check->device];
    const uint32_t worker = table->forms[0].devices[check->device].worker;
    if (device->worker != worker) {
        return pen_error(PEN_CORRUPT,
                         "run table, form %" PRIu32 ": device %" PRIu32 " is of worker %" PRIu32
                         ", in form 0 of %" PRIu32,
                         check->form_number, check->device, device->worker, worker);
    }
    for (uint32_t i = device->task_first; i < device->task_end; i++) {
        const pen_run_task *task = &form->tasks[i];
        const uint32_t kind = (uint32_t)task->task.kind;
        const bool can_lose = kind == PEN_TASK_FORWARD && task->list != PEN_RUN_LIST_NONE;
        const bool can_tell = kind == PEN_TASK_BACKWARD || kind == PEN_TASK_BACKWARD_WEIGHT;
        if (kind < PEN_TASK_KIND_COUNT && (form->trains || kind == PEN_TASK_FORWARD) &&
            (can_lose || !task->makes_loss) && (can_tell || !task->makes_gradient) &&
            task->task.stage < PEN_RUN_STAGES_LIMIT) {
            continue;
        }
        return pen_error(PEN_CORRUPT,
                         "run table, form %" PRIu32 ": task %" PRIu32 " of kind %" PRIu32
                         " and stage %" PRIu32 "%s%s in a form that %s",
                         check->form_number, i, kind, task->task.stage,
                         task->makes_loss ? ", with a loss," : "",
                         task->makes_gradient ? ", with a gradient," : "",
                         form->trains ? "trains" : "does not train");
    }
    return PEN_OK;
}

static pen_status table_refuse_turn(const table_check *check, const pen_task *task,
                                    uint32_t expected) {
    return pen_error(PEN_CORRUPT,
                     "run table, form %" PRIu32 ", device %" PRIu32 ": %s of stage %" PRIu32
                     " runs %s %" PRIu32 " where %" PRIu32 " was expected",
                     check->form_number, check->device, pen_task_kind_name(task->kind), task->stage,
                     task->kind == PEN_TASK_UPDATE ? "phase" : "microbatch", task->microbatch,
                     expected);
}

// Of a stage each kind of task, updates aside, runs the same microbatches.
static pen_status table_check_range(const table_check *check, uint32_t stage,
                                    const table_turns *turns) {
    const table_turns *known = NULL;
    for (uint32_t kind = 0; kind < PEN_TASK_UPDATE; kind++) {
        const table_turns *own = &turns[stage * PEN_TASK_KIND_COUNT + kind];
        if (own->next == 0) continue; // there are none
        if (known == NULL) known = own;
        if (own->first == known->first && own->next == known->next) continue;
        return pen_error(PEN_CORRUPT,
                         "run table, form %" PRIu32 ", device %" PRIu32 ": of stage %" PRIu32
                         " %s tasks are of microbatches %" PRIu32 " to %" PRIu32
                         ", others of %" PRIu32 " to %" PRIu32,
                         check->form_number, check->device, stage,
                         pen_task_kind_name((pen_task_kind)kind), own->first, own->next - 1,
                         known->first, known->next - 1);
    }
    return PEN_OK;
}

// An update has the gradients of all the stage's microbatches: its forward tasks are known by then.
static pen_status table_check_update(const table_check *check, uint32_t stage,
                                     const table_turns *turns) {
    const table_turns *of_stage = &turns[stage * PEN_TASK_KIND_COUNT];
    const pen_task_kind kinds[] = {PEN_TASK_BACKWARD, PEN_TASK_BACKWARD_WEIGHT};
    const table_turns *forward = &of_stage[PEN_TASK_FORWARD];
    for (uint32_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        const table_turns *own = &of_stage[kinds[i]];
        if (own->next == 0 || (own->first == forward->first && own->next == forward->next)) {
            continue;
        }
        return pen_error(PEN_CORRUPT,
                         "run table, form %" PRIu32 ", device %" PRIu32 ": update of stage %" PRIu32
                         " comes after the backward passes of %" PRIu32 " of %" PRIu32
                         " microbatches",
                         check->form_number, check->device, stage, own->next - own->first,
                         forward->next - forward->first);
    }
    return PEN_OK;
}

// Tasks of a kind and stage in the order of their microbatches, each once and without a gap: looked
// up from task to task through the one before, since stages are not numbered within the form.
static pen_status table_check_order(const table_check *check, table_turns *turns) {
    const pen_run_device *device = &check->form->devices[check->device];
    // of the stages that the device has alone: there may be many more
    for (uint32_t i = device->task_first; i < device->task_end; i++) {
        const uint32_t stage = check->form->tasks[i].task.stage;
        for (uint32_t kind = 0; kind < PEN_TASK_KIND_COUNT; kind++)
            turns[stage * PEN_TASK_KIND_COUNT + kind] = (table_turns){0};
    }
    for (uint32_t i = device->task_first; i < device->task_end; i++) {
        const pen_task *task = &check->form->tasks[i].task;
        table_turns *turn = &turns[task->stage * PEN_TASK_KIND_COUNT + (uint32_t)task->kind];
        const bool is_update = task->kind == PEN_TASK_UPDATE; // phases may be left out
        const bool is_first = turn->next == 0;
        if (is_update ? task->microbatch < turn->next
                      : !is_first && task->microbatch != turn->next) {
            return table_refuse_turn(check, task, turn->next);
        }
        if (is_first) turn->first = task->microbatch;
        turn->next = task->microbatch + 1;
        if (is_update) PEN_TRY(table_check_update(check, task->stage, turns));
    }
    for (uint32_t i = device->task_first; i < device->task_end; i++) {
        PEN_TRY(table_check_range(check, check->form->tasks[i].task.stage, turns));
    }
    return PEN_OK;
}

// A frame that is not made or not read in some microbatch would leave its channel waiting for ever.
static pen_status table_check_ends(const table_check *check) {
    const pen_run_form *form = check->form;
    for (uint32_t i = 0; i < form->channel_count; i++) {
        const pen_run_channel *channel = &form->channels[i];
        const table_frames *frames = &check->frames[i];
        const uint32_t slots = pen_run_slots(form, channel);
        const bool is_fed = channel->source_device == PEN_CHANNEL_HOST;
        const char *wrong = NULL;
        if (frames->made == 0 && frames->received == 0 && pen_run_channel_is_idle(form, i))
            continue;
        if (!is_fed && frames->made != slots) {
            wrong = "is not made in every microbatch";
        } else if (frames->is_read && frames->received != slots) {
            wrong = "is not read in every microbatch";
        } else if (frames->is_made_by_update && frames->is_read_by_others) {
            wrong = "is made by an update and read by other tasks";
        }
        if (wrong == NULL) continue;
        return pen_error(PEN_CORRUPT, "run table, form %" PRIu32 ": channel %" PRIu32 " %s",
                         check->form_number, i, wrong);
    }
    return PEN_OK;
}

// Each microbatch has reports of losses, or none has. How many may differ: a replica may have the
// loss and the hits in one stage, another in two.
static pen_status table_check_losses(const table_check *check, pen_arena *arena) {
    const pen_run_form *form = check->form;
    uint32_t *counts;
    PEN_TRY(PEN_NEW(arena, form->microbatch_count, &counts));
    for (uint32_t i = 0; i < form->task_count; i++) {
        if (form->tasks[i].makes_loss) counts[form->tasks[i].task.microbatch] += 1;
    }
    for (uint32_t i = 0; i < form->microbatch_count; i++) {
        if ((counts[i] > 0) == (counts[0] > 0)) continue;
        return pen_error(PEN_CORRUPT,
                         "run table, form %" PRIu32 ": the loss of microbatch %" PRIu32
                         " is made by %" PRIu32 " tasks, that of 0 by %" PRIu32,
                         check->form_number, i, counts[i], counts[0]);
    }
    return PEN_OK;
}

// Walks a form device by device, as each runs it. Arrays are as large as the tasks ask for.
static pen_status table_check_form(const pen_run_table *table, uint32_t number, pen_arena *arena) {
    const pen_run_form *form = &table->forms[number];
    table_check check = {.form = form, .form_number = number};
    PEN_TRY(PEN_NEW(arena, form->channel_count, &check.frames));
    for (check.device = 0; check.device < table->device_count; check.device++) {
        PEN_TRY(table_check_kinds(&check, table));
    }
    uint32_t stage_count = 0;
    for (uint32_t i = 0; i < form->task_count; i++) {
        if (form->tasks[i].task.stage >= stage_count) stage_count = form->tasks[i].task.stage + 1;
    }
    table_turns *turns;
    PEN_TRY(PEN_NEW(arena, (size_t)stage_count * PEN_TASK_KIND_COUNT, &turns));
    for (check.device = 0; check.device < table->device_count; check.device++) {
        PEN_TRY(table_check_order(&check, turns));
        const pen_run_device *device = &form->devices[check.device];
        for (uint32_t i = device->task_first; i < device->task_end; i++) {
            check.task = &form->tasks[i];
            PEN_TRY(table_check_task(&check));
        }
    }
    PEN_TRY(table_check_ends(&check));
    return table_check_losses(&check, arena);
}

pen_status pen_run_table_check_order(const pen_run_table *table) {
    pen_arena *arena;
    pen_status status = pen_arena_create(&arena);
    if (status != PEN_OK) return status;
    for (uint32_t i = 0; i < table->form_count && status == PEN_OK; i++) {
        status = table_check_form(table, i, arena);
    }
    pen_arena_destroy(arena);
    return status;
}
