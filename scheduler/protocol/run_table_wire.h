// A run table as bytes, for the workers, and back (protobuf; RunTable in transport/penstock.proto).
// Bytes are not trusted: a table that is returned has every number within its range, so that the
// cores need not look.
//
// Threads: any.
#ifndef PEN_SCHEDULER_PROTOCOL_RUN_TABLE_WIRE_H
#define PEN_SCHEDULER_PROTOCOL_RUN_TABLE_WIRE_H

#include "base/arena.h"
#include "base/status.h"
#include "scheduler/protocol/run_table.h"

#define PEN_RUN_STAGES_LIMIT (1u << 14) // numbers of stages in a table are below

// In `arena`. OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_run_table_encode(const pen_run_table *table, pen_arena *arena,
                                              const void **out_bytes, uint64_t *out_byte_count);
// CORRUPT says what; OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_run_table_decode(const void *bytes, uint64_t byte_count,
                                              pen_arena *arena, const pen_run_table **out_table);

// Whether all numbers are within their ranges: workers, devices, channels, lists in order, places;
// and pen_run_table_check_order. CORRUPT names what is not. OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_run_table_check(const pen_run_table *table);

// What the cores rely on besides: each frame made by one task and read by tasks of the target until
// it is released; tasks of a kind and stage in microbatch order, and so the frames of each channel;
// what updates make is read by updates alone; as many reports of losses from each microbatch. The
// numbers are within their ranges. CORRUPT names form, device, task and channel. OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_run_table_check_order(const pen_run_table *table);

#endif // PEN_SCHEDULER_PROTOCOL_RUN_TABLE_WIRE_H
