// The files that a verb leaves: no two may be one, and none may take the place of what an earlier
// training learned.
#ifndef PEN_CLI_LEFT_FILES_H
#define PEN_CLI_LEFT_FILES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"

typedef struct pen_left_file {
    const char *name, *path; // the option or key that asks for it; path NULL: nobody does
    bool is_trained;         // what was learned is in it
} pen_left_file;

// INVALID_INPUT: names both
PEN_NODISCARD pen_status pen_left_files_check_apart(const pen_left_file *files, uint32_t count);

// What another training learned is only replaced by somebody who says so: it may have taken days,
// and no program can make it again. INVALID_INPUT: names the file and what keeps both, among that
// --continue if there `are_checkpoints`
PEN_NODISCARD pen_status pen_left_files_check_earlier(const pen_left_file *files, uint32_t count,
                                                      bool are_checkpoints);

#endif // PEN_CLI_LEFT_FILES_H
