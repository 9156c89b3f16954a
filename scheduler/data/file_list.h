// Files that are named by patterns: "shards/train-*.tar", where `*`, `?` and `[…]` stand for what
// matches in the last part of a path.
//
// Threads: functions share nothing.
#ifndef PEN_SCHEDULER_DATA_FILE_LIST_H
#define PEN_SCHEDULER_DATA_FILE_LIST_H

#include <stdint.h>

#include "base/arena.h"
#include "scheduler/data/dataset.h"

// Puts in place of each file whose path is a pattern those that match, in the order of their names
// (bytes compared), each under the name of the input it is for. A file that is called as the
// pattern is taken itself, and a path without a pattern stays, whether the file is there or not.
// What is listed lives in the arena.
//   NOT_FOUND      nothing matches, or there is no such folder
//   INVALID_INPUT  more than PEN_DATA_FILES_LIMIT files; a pattern in the name of a folder
//   IO, OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_file_list_expand(const pen_dataset_input *files, uint32_t count,
                                              pen_arena *arena, const pen_dataset_input **out_files,
                                              uint32_t *out_count);

#endif // PEN_SCHEDULER_DATA_FILE_LIST_H
