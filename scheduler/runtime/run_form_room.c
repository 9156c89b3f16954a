#include "scheduler/runtime/run_form_room.h"

#include <string.h>

#include "graph/passes/cut_stages.h"

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
} room_walk;

static unsigned char *room_frame(const room_walk *walk, uint32_t channel, uint32_t slot) {
    return &walk->frames[(size_t)channel * walk->form->microbatch_count + slot];
}

static uint32_t room_slot(const pen_run_channel *channel, const pen_run_task *task) {
    return channel->is_per_step ? 0 : task->task.microbatch;
}

// Whether all that lay in the same place before, of `places`, has come as far as `state`.
static bool room_is_free(const room_walk *walk, uint32_t channel, uint32_t slot, uint32_t places,
                         room_state state) {
    for (uint32_t s = slot % places; s < slot; s += places) {
        if (*room_frame(walk, channel, s) < state) return false;
    }
    return true;
}

// Moves what may be moved on a channel. True: something was.
static bool room_move(room_walk *walk, uint32_t c) {
    const pen_run_channel *channel = &walk->form->channels[c];
    const uint32_t slots = pen_run_slots(walk->form, channel);
    bool moved = false;
    for (uint32_t s = 0; s < slots; s++) {
        unsigned char *frame = room_frame(walk, c, s);
        if (channel->source_device == PEN_CHANNEL_HOST && *frame == ROOM_UNMADE) *frame = ROOM_MADE;
        if (*frame == ROOM_UNMADE) return moved;
        if (*frame != ROOM_MADE) continue;
        if (!room_is_free(walk, c, s, channel->capacity, ROOM_CONSUMED)) return moved;
        *frame = ROOM_SENT;
        moved = true;
    }
    return moved;
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

static bool room_run(room_walk *walk, uint32_t device) {
    const pen_run_form *form = walk->form;
    bool ran = false;
    while (walk->next[device] < form->devices[device].task_end) {
        const pen_run_task *task = &form->tasks[walk->next[device]];
        if (!room_is_ready(walk, task)) return ran;
        for (uint32_t r = task->send_first; r < task->send_end; r++) {
            const uint32_t c = form->refs[r];
            *room_frame(walk, c, room_slot(&form->channels[c], task)) = ROOM_MADE;
        }
        for (uint32_t r = task->release_first; r < task->release_end; r++) {
            const uint32_t c = form->refs[r];
            *room_frame(walk, c, room_slot(&form->channels[c], task)) = ROOM_CONSUMED;
        }
        walk->next[device]++;
        ran = true;
    }
    return ran;
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

pen_status pen_run_form_find_blocked(const pen_run_form *form, uint32_t device_count,
                                     pen_arena *arena, bool *is_blocked, bool *out_is_stuck) {
    room_walk walk = {.form = form, .device_count = device_count};
    const size_t frame_count = (size_t)form->channel_count * form->microbatch_count;
    PEN_TRY(PEN_NEW(arena, frame_count, &walk.frames));
    PEN_TRY(PEN_NEW(arena, device_count, &walk.next));
    memset(is_blocked, 0, form->channel_count * sizeof *is_blocked);
    for (uint32_t d = 0; d < device_count; d++) {
        walk.next[d] = form->devices[d].task_first;
    }
    bool moved = true;
    while (moved) {
        moved = false;
        for (uint32_t c = 0; c < form->channel_count; c++) {
            moved = room_move(&walk, c) || moved;
        }
        for (uint32_t d = 0; d < device_count; d++) {
            moved = room_run(&walk, d) || moved;
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
