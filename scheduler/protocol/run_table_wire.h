// A run table as bytes, for the workers, and back (protobuf; RunTable in run_table.proto).
// Bytes are not trusted: a table that is returned has every number within its range, so that the
// cores need not look.
//
// Threads: any.
#ifndef PEN_SCHEDULER_PROTOCOL_RUN_TABLE_WIRE_H
#define PEN_SCHEDULER_PROTOCOL_RUN_TABLE_WIRE_H

#include "base/arena.h"
#include "base/record/record.h"
#include "base/status.h"
#include "scheduler/protocol/run_table.h"

extern const pen_record pen_run_table_record;

// In `arena`. OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_run_table_encode(const pen_run_table *table, pen_arena *arena,
                                              const void **out_bytes, uint64_t *out_byte_count);
// CORRUPT says what; OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_run_table_decode(const void *bytes, uint64_t byte_count,
                                              pen_arena *arena, const pen_run_table **out_table);

#endif // PEN_SCHEDULER_PROTOCOL_RUN_TABLE_WIRE_H
