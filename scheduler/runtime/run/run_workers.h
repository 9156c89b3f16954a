// Which workers the devices of a cluster make: a worker is a process.
//
// Workers are numbered by how far they are: this process, processes of this machine that are
// started for the run, others. The lower number calls the higher, so nobody has to call back here.
//
// Lifetime: in the arena it was made with; hosts are borrowed from the cluster.
// Threads:  plain data.
#ifndef PEN_SCHEDULER_RUNTIME_RUN_RUN_WORKERS_H
#define PEN_SCHEDULER_RUNTIME_RUN_RUN_WORKERS_H

#include "partition/costs/cluster.h"
#include "scheduler/runtime/run/run_spec.h"

typedef struct pen_run_workers {
    uint32_t count;             // without the coordinator
    uint32_t local;             // that is this process; 0: none is
    uint32_t *worker_of_device; // [device_count], and behind them, if one collects, that which does
    pen_run_spec_worker *list;  // [count + 1]: the coordinator, then the workers with the addresses
                                // that the cluster says. Names are set of the first and the local
} pen_run_workers;

// `collects`: this process is a worker whatever the cluster has, for one device more, which
// collects what the others make. OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_run_workers_number(const pen_cluster *cluster, bool collects,
                                                pen_arena *arena, pen_run_workers *out_workers);

// Names those that have none: "worker 2 (10.0.0.2:7070)". OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_run_workers_name(pen_run_workers *workers, pen_arena *arena);

// The host of a device that a worker elsewhere serves has a port; one on another machine is reached
// only where `is_protected`: the job has TLS, or the user does without. `index` is the device's in
// the spec. INVALID_INPUT with the position of its host
PEN_NODISCARD pen_status pen_run_workers_check_address(const pen_cluster_spec *spec, uint32_t index,
                                                       bool is_protected);

#endif // PEN_SCHEDULER_RUNTIME_RUN_RUN_WORKERS_H
