// The folder in which tasks of a start find each other: `launched/VERB-START` in the folder of
// checkpoints, which all tasks see. Files are whole or not there, and durable when written.
//
//   task.0003     what task 3 says of itself
//   coordinator   who coordinates
//   end           that it is over, with the code that all end with
//   tls/          an authority and certificates, until the end
//
// Lifetime: in the arena it was opened with.
// Threads:  any; each call is by itself.
#ifndef PEN_SCHEDULER_LAUNCHED_TASK_FOLDER_H
#define PEN_SCHEDULER_LAUNCHED_TASK_FOLDER_H

#include <stdatomic.h>

#include "base/arena.h"
#include "scheduler/launched/task_record.h"
#include "scheduler/launched/task_watch.h"

typedef struct pen_task_folder {
    const char *path;      // "run1/launched/train-17.0"
    atomic_uint *said;     // [PEN_TASK_DAMAGES] of files that were damaged: checksums of those told
    pen_task_watch *watch; // that is told of each question; NULL: none
} pen_task_folder;
#define PEN_TASK_DAMAGES 64u

// Makes the folder where it is not there, for its owner alone. `start` NULL: starts cannot be told
// apart by name.
//   INVALID_INPUT  `must_be_private`, and others may enter it, or it is another user's
//   NOT_FOUND, IO  it cannot be made or written to
PEN_NODISCARD pen_status pen_task_folder_open(const char *checkpoints, const char *verb,
                                              const char *start, bool must_be_private,
                                              pen_arena *arena, pen_task_folder *out_folder);

#define PEN_TASK_FILE_BYTES 24
#define PEN_TASK_FILE_COORDINATOR "coordinator"
#define PEN_TASK_FILE_END "end"
// "task.0003"
const char *pen_task_folder_name(uint64_t rank, char out_name[PEN_TASK_FILE_BYTES]);

// IO, NOT_FOUND
PEN_NODISCARD pen_status pen_task_folder_write(const pen_task_folder *folder, const char *name,
                                               const pen_task_record *record);
// *out_is_there false: there is no such file, or it is damaged; of that a warning is given, once.
PEN_NODISCARD pen_status pen_task_folder_read(const pen_task_folder *folder, const char *name,
                                              pen_task_record *out_record, bool *out_is_there);
// Removes the keys, which nobody needs any more.
void pen_task_folder_forget_keys(const pen_task_folder *folder);

#endif // PEN_SCHEDULER_LAUNCHED_TASK_FOLDER_H
