// Digests of what came of events, by which a replay is told from the run that it repeats.
//
// Threads: any.
#ifndef PEN_SCHEDULER_PROTOCOL_FLIGHT_OUTCOME_H
#define PEN_SCHEDULER_PROTOCOL_FLIGHT_OUTCOME_H

#include "scheduler/protocol/coordinator_core.h"
#include "scheduler/protocol/worker_core.h"

// Of what came of an event: what pen_flight_add_… records, never 0.
uint64_t pen_flight_worker_outcome(pen_worker_fault fault, const pen_worker_action *actions,
                                   uint32_t action_count);
uint64_t pen_flight_coordinator_outcome(const pen_coordinator_action *actions,
                                        uint32_t action_count);

#endif // PEN_SCHEDULER_PROTOCOL_FLIGHT_OUTCOME_H
