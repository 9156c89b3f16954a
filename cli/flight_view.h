// Dumps of flight recorders, for the command: found, read, and replayed in a process of their own,
// so that a core that fails its assertions there fails alone.
//
// Lifetime: in the arena they were read into. Threads: one.
#ifndef PEN_CLI_FLIGHT_VIEW_H
#define PEN_CLI_FLIGHT_VIEW_H

#include "base/arena.h"
#include "base/status.h"
#include "scheduler/protocol/flight_dump.h"

typedef enum pen_flight_line_kind {
    PEN_FLIGHT_LINE_EVENT = 'e',
    PEN_FLIGHT_LINE_OTHER = 'x', // an event that something else came of, then
    PEN_FLIGHT_LINE_ACTION = 'a',
    PEN_FLIGHT_LINE_STATE = 's',
    PEN_FLIGHT_LINE_VERDICT = 'v',
} pen_flight_line_kind;

typedef struct pen_flight_line {
    pen_flight_line_kind kind;
    const char *text;
} pen_flight_line;

typedef struct pen_flight_view {
    const char *path;
    pen_flight_dump_file dump;
    uint32_t line_count; // of its replay
    const pen_flight_line *lines;
} pen_flight_view;

// Reads files, and of folders all flight-*.bin in them, or in `flight` inside them. Sorted by
// generation and worker; a file that is named twice is read once.
//   NOT_FOUND  no such file, or none in a folder; IO; INVALID_INPUT, CORRUPT name the file
PEN_NODISCARD pen_status pen_flight_views_read(const char *const *paths, uint32_t path_count,
                                               pen_arena *arena, pen_flight_view **out_views,
                                               uint32_t *out_count);

// Fills in the lines: with `is_full` all events and actions, and then where the core stands and
// whether it did the same. IO, OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_flight_view_replay(pen_flight_view *view, bool is_full,
                                                pen_arena *arena);

#endif // PEN_CLI_FLIGHT_VIEW_H
