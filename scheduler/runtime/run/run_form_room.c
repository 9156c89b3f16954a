#include "scheduler/runtime/run/run_form_room.h"

#include <string.h>

typedef enum room_state {
    ROOM_UNMADE,
    ROOM_MADE,
    ROOM_SENT,
    ROOM_CONSUMED,
} room_state;

typedef struct room_walk {
    const pen_run_form *form;
    uint32_t device_count;
    unsigned char *frames; // [channel_count][microbatch_count] a room_state
    uint32_t *next;        // [device_count] tasks
    uint32_t *moved;       // [channel_count] frames below it were sent
    // what may go on: channels from 0, then devices; each at most once
    uint32_t *waiting; // [channel_count + device_count]
    uint32_t waiting_count;
    bool *is_waiting; // [channel_count + device_count]
} room_walk;

static void room_wake(room_walk *walk, uint32_t item) {
    if (walk->is_waiting[item]) return;
    walk->is_waiting[item] = true;
    walk->waiting[walk->waiting_count++] = item;
}

static void room_wake_device(room_walk *walk, uint32_t device) {
    if (device < walk->device_count) room_wake(walk, walk->form->channel_count + device);
}

static unsigned char *room_frame(const room_walk *walk, uint32_t channel, uint32_t slot) {
    return &walk->frames[(size_t)channel * walk->form->microbatch_count + slot];
}

static uint32_t room_slot(const pen_run_channel *channel, const pen_run_task *task) {
    return channel->is_per_step ? 0 : task->task.microbatch - channel->first_microbatch;
}

// Whether all that lay in the same place before, of `places`, has come as far as `state`.
static bool room_is_free(const room_walk *walk, uint32_t channel, uint32_t slot, uint32_t places,
                         room_state state) {
    for (uint32_t s = slot % places; s < slot; s += places) {
        if (*room_frame(walk, channel, s) < state) return false;
    }
    return true;
}

// Moves what may be moved on a channel.
static void room_move(room_walk *walk, uint32_t c) {
    const pen_run_channel *channel = &walk->form->channels[c];
    const uint32_t slots = pen_run_slots(walk->form, channel), before = walk->moved[c];
    for (uint32_t s = before; s < slots; s++) {
        unsigned char *frame = room_frame(walk, c, s);
        if (channel->source_device == PEN_CHANNEL_HOST && *frame == ROOM_UNMADE) *frame = ROOM_MADE;
        if (*frame == ROOM_UNMADE) break;
        if (*frame == ROOM_MADE) {
            if (!room_is_free(walk, c, s, channel->capacity, ROOM_CONSUMED)) break;
            *frame = ROOM_SENT;
        }
        walk->moved[c] = s + 1;
    }
    if (walk->moved[c] == before) return;
    room_wake_device(walk, channel->source_device);
    room_wake_device(walk, channel->target_device);
}

static bool room_has_place(const room_walk *walk, uint32_t c, const pen_run_task *task) {
    const pen_run_channel *channel = &walk->form->channels[c];
    return room_is_free(walk, c, room_slot(channel, task), channel->copies,
                        channel->is_shared ? ROOM_CONSUMED : ROOM_SENT);
}

static bool room_is_ready(const room_walk *walk, const pen_run_task *task) {
    const pen_run_form *form = walk->form;
    for (uint32_t r = task->receive_first; r < task->receive_end; r++) {
        const uint32_t slot = room_slot(&form->channels[form->refs[r]], task);
        if (*room_frame(walk, form->refs[r], slot) < ROOM_SENT) return false;
    }
    for (uint32_t r = task->send_first; r < task->send_end; r++) {
        if (!room_has_place(walk, form->refs[r], task)) return false;
    }
    return true;
}

static void room_run(room_walk *walk, uint32_t device) {
    const pen_run_form *form = walk->form;
    while (walk->next[device] < form->devices[device].task_end) {
        const pen_run_task *task = &form->tasks[walk->next[device]];
        if (!room_is_ready(walk, task)) return;
        for (uint32_t r = task->send_first; r < task->send_end; r++) {
            const uint32_t c = form->refs[r];
            *room_frame(walk, c, room_slot(&form->channels[c], task)) = ROOM_MADE;
            room_wake(walk, c);
        }
        for (uint32_t r = task->release_first; r < task->release_end; r++) {
            const uint32_t c = form->refs[r];
            *room_frame(walk, c, room_slot(&form->channels[c], task)) = ROOM_CONSUMED;
            room_wake(walk, c);
            room_wake_device(walk, form->channels[c].source_device); // for a place they share
        }
        walk->next[device]++;
    }
}

// What a task that cannot start lacks places for.
static void room_blame(const room_walk *walk, const pen_run_task *task, bool *is_blocked) {
    for (uint32_t r = task->send_first; r < task->send_end; r++) {
        const uint32_t c = walk->form->refs[r];
        if (!room_has_place(walk, c, task)) is_blocked[c] = true;
    }
}

// What a task waits for is made, but has no place at the target.
static void room_blame_frames(const room_walk *walk, bool *is_blocked) {
    for (uint32_t c = 0; c < walk->form->channel_count; c++) {
        const uint32_t slots = pen_run_slots(walk->form, &walk->form->channels[c]);
        for (uint32_t s = 0; s < slots; s++) {
            if (*room_frame(walk, c, s) == ROOM_MADE) is_blocked[c] = true;
        }
    }
}

// Runs the form in no time with the places there are. Channels that stand in the way get more
// places, until it finishes.
pen_status pen_run_form_find_blocked(const pen_run_form *form, uint32_t device_count,
                                     pen_arena *arena, bool *is_blocked, bool *out_is_stuck) {
    room_walk walk = {.form = form, .device_count = device_count};
    const size_t frame_count = (size_t)form->channel_count * form->microbatch_count;
    PEN_TRY(PEN_NEW(arena, frame_count, &walk.frames));
    const size_t item_count = (size_t)form->channel_count + device_count;
    PEN_TRY(PEN_NEW(arena, device_count, &walk.next));
    PEN_TRY(PEN_NEW(arena, form->channel_count, &walk.moved));
    PEN_TRY(PEN_NEW(arena, item_count, &walk.waiting));
    PEN_TRY(PEN_NEW(arena, item_count, &walk.is_waiting));
    memset(is_blocked, 0, form->channel_count * sizeof *is_blocked);
    for (uint32_t d = 0; d < device_count; d++) {
        walk.next[d] = form->devices[d].task_first;
        room_wake_device(&walk, d);
    }
    for (uint32_t c = 0; c < form->channel_count; c++) {
        room_wake(&walk, c);
    }
    while (walk.waiting_count > 0) {
        const uint32_t item = walk.waiting[--walk.waiting_count];
        walk.is_waiting[item] = false;
        if (item < form->channel_count) {
            room_move(&walk, item);
        } else {
            room_run(&walk, item - form->channel_count);
        }
    }
    *out_is_stuck = false;
    for (uint32_t d = 0; d < device_count; d++) {
        if (walk.next[d] == form->devices[d].task_end) continue;
        *out_is_stuck = true;
        room_blame(&walk, &form->tasks[walk.next[d]], is_blocked);
    }
    if (*out_is_stuck) room_blame_frames(&walk, is_blocked);
    return PEN_OK;
}
