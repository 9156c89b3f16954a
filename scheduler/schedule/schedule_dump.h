// The contract of schedule_dump.c and schedule_dump_svg.c.
//
// Time lines for people: as rows of text, and as a picture.
//
// Equal time lines give equal texts, which live in `arena`.
#ifndef PEN_SCHEDULER_SCHEDULE_SCHEDULE_DUMP_H
#define PEN_SCHEDULER_SCHEDULE_SCHEDULE_DUMP_H

#include "scheduler/schedule/schedule_simulate.h"

// Two rows a device: what it does (F forward, B backward, I and W its halves, U update, . nothing)
// and for which microbatch (last digit), each letter a share of the step; and what it holds. Then
// the links: what goes over each, and the share of the step in which it is busy.
// `device_names` [device_count], or NULL for numbers. OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_schedule_dump_text(const pen_timeline *timeline,
                                                const char *const *device_names, pen_arena *arena,
                                                const char **out_text);

// An SVG document that needs nothing else: a row a device with its tasks coloured by kind and
// numbered by microbatch, its sends in a thin row below; the bubble in the title. Whoever points at
// a task is told what it is. OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_schedule_dump_svg(const pen_timeline *timeline,
                                               const char *const *device_names, pen_arena *arena,
                                               const char **out_text);

#endif // PEN_SCHEDULER_SCHEDULE_SCHEDULE_DUMP_H
