// The order that the cores rely on in a run table.
//
// Threads: any.
#ifndef PEN_SCHEDULER_PROTOCOL_RUN_TABLE_ORDER_H
#define PEN_SCHEDULER_PROTOCOL_RUN_TABLE_ORDER_H

#include "base/status.h"
#include "scheduler/protocol/run_table.h"

#define PEN_RUN_STAGES_LIMIT (1u << 14) // numbers of stages in a table are below

// What the cores rely on besides: each frame made by one task and read by tasks of the target until
// it is released; tasks of a kind and stage in microbatch order, and so the frames of each channel;
// what updates make is read by updates alone; as many reports of losses from each microbatch. The
// numbers are within their ranges. CORRUPT names form, device, task and channel. OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_run_table_check_order(const pen_run_table *table);

#endif // PEN_SCHEDULER_PROTOCOL_RUN_TABLE_ORDER_H
