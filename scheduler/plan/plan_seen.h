// Planning again with what a run saw.
//
// Threads: pure.
#ifndef PEN_SCHEDULER_PLAN_PLAN_SEEN_H
#define PEN_SCHEDULER_PLAN_PLAN_SEEN_H

#include "partition/costs/cluster.h"
#include "partition/plan/plan.h"
#include "scheduler/trace/trace_seen.h"

// The cluster with the slowness of devices, and the latency of links, that the trace in the file
// `path` tells: what came later than planned, after bytes and lines were reckoned with, is latency.
// Devices are known by name; of others, and of links that nothing went over, all stays as it is.
//   NOT_FOUND, IO, OUT_OF_MEMORY; as pen_trace_file_read
//   INVALID_INPUT  it is a trace of other devices, or does not say what was planned
PEN_NODISCARD pen_status pen_cluster_see(const pen_cluster *cluster, const char *path,
                                         pen_arena *arena, const pen_cluster **out_cluster);
// The cluster with the slowness that a plan keeps of its devices. Latencies that a run told are not
// in plans. OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_cluster_slow(const pen_cluster *cluster, const pen_plan *plan,
                                          pen_arena *arena, const pen_cluster **out_cluster);

#endif // PEN_SCHEDULER_PLAN_PLAN_SEEN_H
