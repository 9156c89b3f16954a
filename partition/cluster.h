// The machines: devices with their memory and rates, and the links between them.
//
// What a cluster file or a job's `devices` and `links` say, completed: host ranges expanded, the
// default memory asked of the system, a bandwidth and a latency for every ordered pair. Where a
// figure comes from is kept beside it, since a plan says of each figure whether it was measured,
// stated or assumed.
//
// Lifetime: a cluster lives in the arena it was made with.
// Threads:  immutable once returned.
#ifndef PEN_PARTITION_CLUSTER_H
#define PEN_PARTITION_CLUSTER_H

#include <stdint.h>

#include "base/arena.h"
#include "base/status.h"

#define PEN_CLUSTER_DEVICE_LIMIT 4096

typedef enum pen_figure_source {
    PEN_FIGURE_ASSUMED,  // nobody said: a default, or an estimate from other figures
    PEN_FIGURE_STATED,   // by the user
    PEN_FIGURE_MEASURED, // by profile or probe, or asked of the system
} pen_figure_source;

// "assumed", "stated", "measured".
const char *pen_figure_source_name(pen_figure_source source);

typedef struct pen_cluster_device {
    const char *name;     // unique
    const char *kind;     // of device, as in device_list: "cpu"
    const char *host;     // "10.0.0.2:7070", "localhost"; NULL: a thread of this process
    uint64_t bytes_limit; // what a plan may use: memory less reserve
    pen_figure_source bytes_source;
    uint32_t threads; // of its kernel team, at least 1
    double flops;     // operations a second, > 0, for the roofline
    pen_figure_source flops_source;
    double memory_bandwidth; // bytes a second, > 0, for the roofline
    pen_figure_source memory_bandwidth_source;
} pen_cluster_device;

typedef struct pen_cluster_link {
    double bandwidth; // bytes a second, > 0; INFINITY from a device to itself
    double latency;   // seconds, >= 0
    pen_figure_source source;
} pen_cluster_link;

typedef struct pen_cluster {
    uint32_t device_count; // at least 1
    const pen_cluster_device *devices;
    const pen_cluster_link *links; // [device_count][device_count], from row to column
} pen_cluster;

static inline const pen_cluster_link *pen_cluster_link_at(const pen_cluster *cluster, uint32_t from,
                                                          uint32_t to) {
    return &cluster->links[(uint64_t)from * cluster->device_count + to];
}

#endif // PEN_PARTITION_CLUSTER_H
