// Plans written as text files, which plan_file.h reads again.
#ifndef PEN_PARTITION_PLAN_PLAN_WRITER_H
#define PEN_PARTITION_PLAN_PLAN_WRITER_H

#include "partition/plan/plan.h"

// Written beside and renamed. Paths in it are relative to its folder where they lie in it, else
// absolute. Equal plans give equal files. IO, NOT_FOUND (no such folder), OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_plan_write(const pen_plan *plan, const char *path, pen_arena *arena);
// The text of the file, with paths as they are. OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_plan_format(const pen_plan *plan, pen_arena *arena,
                                         const char **out_text);

#endif // PEN_PARTITION_PLAN_PLAN_WRITER_H
