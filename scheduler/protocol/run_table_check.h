// What must hold of a run table, wherever it came from, so that the cores need not look.
//
// Threads: any.
#ifndef PEN_SCHEDULER_PROTOCOL_RUN_TABLE_CHECK_H
#define PEN_SCHEDULER_PROTOCOL_RUN_TABLE_CHECK_H

#include "base/status.h"
#include "scheduler/protocol/run_table.h"

// Whether all numbers are within their ranges: workers, devices, channels, lists in order, places;
// and pen_run_table_check_order. CORRUPT names what is not. OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_run_table_check(const pen_run_table *table);

#endif // PEN_SCHEDULER_PROTOCOL_RUN_TABLE_CHECK_H
