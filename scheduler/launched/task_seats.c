#include "scheduler/launched/task_seats.h"

#include <string.h>

#include "base/clock.h"
#include "base/integer.h"
#include "base/log.h"

#define SEATS_LOOK_SECONDS 0.2
#define SEATS_OWN_SHARE 16 // of a task's memory, one part is left to the process itself

// Nobody listens there, and each is another: for tasks that have not said where they are.
static pen_status seats_name_nowhere(pen_task_seats *seats, uint32_t rank) {
    return pen_arena_format(seats->arena, &seats->tasks[rank].host, "127.255.%u.%u:1", rank / 250,
                            rank % 250 + 1);
}

// How many tasks of a node share what it grants.
static uint64_t seats_sharing(const pen_task_seats *seats, const pen_task_record *record) {
    uint64_t count = 0;
    for (uint32_t r = 0; r < seats->count; r++) {
        count +=
            seats->records[r].incarnation != 0 && strcmp(seats->records[r].node, record->node) == 0;
    }
    return count > 0 ? count : 1;
}

static void seats_set(pen_task_seats *seats, uint32_t rank) {
    const pen_task_record *record = &seats->records[rank];
    pen_cluster_task *task = &seats->tasks[rank];
    const uint64_t sharing = seats_sharing(seats, record);
    const uint64_t bytes = record->memory_bytes / (record->shares_memory ? sharing : 1);
    const uint64_t cores = record->cores / (record->shares_cores ? sharing : 1);
    task->memory_bytes = bytes - bytes / SEATS_OWN_SHARE;
    task->threads = (int64_t)pen_max_u64(cores, 1);
}

// Those that say nothing are taken to be like another.
static void seats_guess(pen_task_seats *seats) {
    const pen_cluster_task *like = NULL;
    for (uint32_t r = 0; r < seats->count; r++) {
        if (seats->records[r].incarnation == 0) continue;
        seats_set(seats, r);
        if (like == NULL) like = &seats->tasks[r];
    }
    for (uint32_t r = 0; like != NULL && r < seats->count; r++) {
        if (seats->records[r].incarnation != 0) continue;
        seats->tasks[r].memory_bytes = like->memory_bytes;
        seats->tasks[r].threads = like->threads;
    }
}

// A file that cannot be read at the moment leaves what was known.
static pen_status seats_read(pen_task_seats *seats, uint32_t rank) {
    pen_task_record record;
    char name[PEN_TASK_FILE_BYTES];
    bool is_there;
    PEN_TRY(
        pen_task_folder_read(seats->folder, pen_task_folder_name(rank, name), &record, &is_there));
    if (!is_there || record.rank != rank || record.size != seats->count) return PEN_OK;
    const bool is_new = record.incarnation != seats->records[rank].incarnation;
    if (is_new) {
        PEN_TRY(pen_arena_copy_text(seats->arena, record.address, strlen(record.address),
                                    &seats->tasks[rank].host));
    }
    seats->records[rank] = record;
    return PEN_OK;
}

void pen_task_seats_look(pen_task_seats *seats) {
    const double now = pen_clock_seconds();
    if (now < seats->looked_at + SEATS_LOOK_SECONDS) return;
    for (uint32_t r = 0; r < seats->count; r++) {
        const pen_status status = seats_read(seats, r);
        if (status != PEN_OK) pen_log(PEN_LOG_WARNING, "%s", pen_status_message(status));
        pen_status_ignore(status, "said; what was known stays");
    }
    seats_guess(seats);
    seats->looked_at = now;
}

uint32_t pen_task_seats_missing(const pen_task_seats *seats, uint32_t *out_first) {
    uint32_t count = 0;
    for (uint32_t r = seats->count; r-- > 0;) {
        if (seats->records[r].incarnation != 0) continue;
        *out_first = r;
        count += 1;
    }
    return count;
}

static void seats_look(void *context) {
    pen_task_seats_look(context);
}

static bool seats_has_come(void *context, uint32_t task) {
    const pen_task_seats *seats = context;
    PEN_ASSERT(task < seats->count);
    return seats->records[task].incarnation != 0;
}

static const pen_cluster_task *seats_find(void *context, uint32_t task) {
    const pen_task_seats *seats = context;
    PEN_ASSERT(task < seats->count);
    return &seats->tasks[task];
}

pen_status pen_task_seats_new(const pen_task_folder *folder, uint32_t count, double waited_since,
                              pen_arena *arena, pen_task_seats **out_seats) {
    pen_task_seats *seats;
    PEN_TRY(PEN_NEW(arena, 1, &seats));
    *seats = (pen_task_seats){.folder = folder, .arena = arena, .count = count, .looked_at = -1};
    PEN_TRY(PEN_NEW(arena, count, &seats->records));
    PEN_TRY(PEN_NEW(arena, count, &seats->tasks));
    for (uint32_t r = 0; r < count; r++) {
        PEN_TRY(seats_name_nowhere(seats, r));
    }
    seats->of_engine =
        (pen_engine_tasks){seats, waited_since, seats_look, seats_has_come, seats_find};
    *out_seats = seats;
    return PEN_OK;
}
