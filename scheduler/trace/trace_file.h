// The contract of trace_file.c and trace_file_read.c.
//
// A trace as a file in Chrome's trace event format, for ui.perfetto.dev and chrome://tracing, and
// back.
//
// A process for each worker; rows "a compute", "a send", "a receive" for each device 'a' (and
// "inputs send" for what the coordinator feeds), more than one where sends overlap; an arrow for
// each tensor, from its send to its receive; counters of the microbatches in flight and of memory.
// Times are microseconds since the first event, all on one clock, in sixteenths. Beside the events
// the file has an object "penstock" with the tables that the events' arguments refer to: what
// pen_trace_file_read needs.
#ifndef PEN_SCHEDULER_TRACE_TRACE_FILE_H
#define PEN_SCHEDULER_TRACE_TRACE_FILE_H

#include "base/format/json_writer.h"
#include "scheduler/trace/trace.h"

#define PEN_TRACE_FILE_BYTES_LIMIT (256u << 20)

// Writes it beside and renames it. CORRUPT (the trace), IO, NOT_FOUND (no such folder),
// OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_trace_file_write(const pen_trace *trace, const char *path,
                                              pen_arena *arena);

// The trace's channels as `"channels": […]` of an object.
void pen_trace_write_channels(pen_json_writer *json, const pen_trace *trace);

// What pen_trace_file_write wrote: a trace of the same tasks, waits, sends and receives. A file is
// not trusted.
//   NOT_FOUND, IO, OUT_OF_MEMORY
//   INVALID_INPUT  it is no JSON, or no trace of Penstock's
//   CORRUPT        it refers to what is not there
PEN_NODISCARD pen_status pen_trace_file_read(const char *path, pen_arena *arena,
                                             const pen_trace **out_trace);
// The same of bytes in memory; `name` for messages.
PEN_NODISCARD pen_status pen_trace_file_parse(const char *name, const char *bytes, size_t length,
                                              pen_arena *arena, const pen_trace **out_trace);

#endif // PEN_SCHEDULER_TRACE_TRACE_FILE_H
