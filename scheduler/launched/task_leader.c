// Who coordinates, and who is next.

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/format/quantity.h"
#include "scheduler/launched/task_inside.h"
#include "scheduler/launched/task_system.h"
#include "scheduler/transport/grpc/address_answer.h"

#define LEADER_ANSWER_SECONDS 0.3
#define LEADER_ASK_SECONDS 1.0  // between two questions, while this task's worker is served
#define LEADER_REFUSALS 2       // in a row: its process has ended
#define LEADER_TURN_SECONDS 5.0 // that a lower task which is alive has to begin
#define LEADER_END_SECONDS 2.0  // for a process that is about to end

// Asks rarely while all seems well, and again at once where it does not.
static void leader_ask(task_life *task, bool is_served) {
    task_leader *leader = &task->leader;
    const double now = pen_clock_seconds();
    if (is_served && leader->refusal_count == 0 && now < leader->asked_at + LEADER_ASK_SECONDS) {
        return;
    }
    leader->asked_at = now;
    const pen_address_answer answer =
        pen_address_ask(leader->record.address, LEADER_ANSWER_SECONDS);
    const bool is_nobody = answer == PEN_ADDRESS_REFUSES || answer == PEN_ADDRESS_WRONG;
    leader->refusal_count = is_nobody ? leader->refusal_count + 1 : 0;
}

// Alive is whose beat goes on, or who serves this task's worker; not whose address refuses.
pen_status pen_task_look(task_life *task, bool *out_is_led) {
    task_leader *leader = &task->leader;
    const bool is_served = pen_worker_is_led(task->worker);
    pen_task_record now;
    bool is_there;
    *out_is_led = false;
    PEN_TRY(pen_task_folder_read(&task->folder, PEN_TASK_FILE_COORDINATOR, &now, &is_there));
    is_there = is_there && now.incarnation != task->own.incarnation && now.size == task->own.size;
    leader->is_there = is_there;
    if (is_there) {
        const bool is_other = now.incarnation != leader->record.incarnation;
        if (is_other) leader->refusal_count = 0;
        if (is_other || now.beat != leader->record.beat) leader->seen_at = pen_clock_seconds();
        leader->record = now;
        leader_ask(task, is_served);
        const double silent = pen_clock_seconds() - leader->seen_at;
        *out_is_led = leader->refusal_count < LEADER_REFUSALS &&
                      (is_served || silent < task->options->lease_seconds);
    }
    if (*out_is_led) {
        task->quiet_since = 0;
    } else if (task->quiet_since == 0) {
        task->quiet_since = pen_clock_seconds();
    }
    return PEN_OK;
}

// The lowest that is alive: those below are gone, never coordinate, or have had their time.
pen_status pen_task_is_next(task_life *task, bool *out_is_next) {
    const double now = pen_clock_seconds();
    uint32_t alive_count = 0;
    *out_is_next = false;
    if (task->options->is_worker) return PEN_OK;
    for (uint32_t r = 0; r < task->own.rank; r++) {
        char name[PEN_TASK_FILE_BYTES];
        pen_task_record record;
        bool is_there;
        PEN_TRY(
            pen_task_folder_read(&task->folder, pen_task_folder_name(r, name), &record, &is_there));
        is_there = is_there && record.size == task->own.size;
        if (!is_there && now < task->began + task->options->wait_seconds) return PEN_OK;
        if (!is_there || record.is_worker || record.is_leaving) continue;
        if (!pen_address_answers(record.address, LEADER_ANSWER_SECONDS)) {
            if (now < task->began + LIFE_START_SECONDS) return PEN_OK; // it may just start again
            continue;
        }
        alive_count += 1;
        if (now < task->quiet_since + alive_count * LEADER_TURN_SECONDS) return PEN_OK;
    }
    *out_is_next = true;
    return PEN_OK;
}

bool pen_task_is_alive(const pen_task_record *record) {
    const double deadline = pen_clock_seconds() + LEADER_END_SECONDS;
    char system[PEN_TASK_NODE_BYTES];
    pen_task_system_name(system);
    const bool is_here = strcmp(system, record->system) == 0;
    for (;;) {
        const bool is_alive = is_here ? pen_task_system_has(record->process, record->began)
                                      : pen_address_answers(record->address, LEADER_ANSWER_SECONDS);
        if (!is_alive || pen_clock_seconds() >= deadline) return is_alive;
        pen_clock_pause(LIFE_LOOK_SECONDS);
    }
}
