// The machines: devices with their memory and rates, and the links between them.
//
// What a cluster file or a job's `devices` and `links` say, completed: host ranges expanded, the
// default memory asked of the system, a bandwidth and a latency for every ordered pair. Where a
// figure comes from is kept beside it, since a plan says of each figure whether it was measured,
// stated or assumed.
//
// Lifetime: a cluster lives in the arena it was made with.
// Threads:  immutable once returned.
#ifndef PEN_PARTITION_COSTS_CLUSTER_H
#define PEN_PARTITION_COSTS_CLUSTER_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/arena.h"
#include "base/status.h"
#include "partition/costs/cost_table.h"
#include "partition/costs/link_ends.h"
#include "partition/spec/cluster_spec.h"

typedef enum pen_figure_source {
    PEN_FIGURE_ASSUMED,  // nobody said: a default, or an estimate from other figures
    PEN_FIGURE_STATED,   // by the user
    PEN_FIGURE_MEASURED, // by profile or probe, or asked of the system
} pen_figure_source;

typedef struct pen_cluster_device {
    const char *name;      // unique
    const char *kind;      // of device, as in device_list: "cpu"
    uint32_t gpu;          // of kind cuda: which of its machine
    const char *model;     // of kind cuda: "NVIDIA H200"; NULL: not said
    const char *cost_kind; // then "cuda NVIDIA H200", by which a cost table has it; NULL: `kind`
    const char *host;      // "10.0.0.2:7070"; "localhost": a process that is started for it; NULL:
                           // a thread of this process
    uint32_t process;      // devices of one process have one number; 0: of this one
    uint32_t host_index;   // devices of one host have one number; 0: of this one
    uint64_t bytes_limit;  // what a plan may use: memory less reserve
    uint64_t own_bytes;    // of them, that no stage can have; 0 until a plan asks the device
    pen_figure_source bytes_source;
    const char *host_name;   // "10.0.0.2"; "": this host
    bool is_remote;          // on another host than the one that plans
    uint32_t threads;        // of its kernel team, at least 1
    uint32_t threads_stated; // by the user; 0: not
    double flops;            // operations a second, > 0, for the roofline
    pen_figure_source flops_source;
    double memory_bandwidth; // bytes a second, > 0, for the roofline
    pen_figure_source memory_bandwidth_source;
    double slowness;     // of its computing: times as long as costs say; 0 stands for 1
    double flops_stated; // by the user, also where measured ones are used; 0: not
    double memory_bandwidth_stated;
} pen_cluster_device;

typedef struct pen_cluster_link {
    double bandwidth;         // bytes a second, > 0; INFINITY from a device to itself
    double latency;           // seconds, >= 0, while one end computes
    double send;              // seconds of the sending device for each byte, >= 0
    double receive;           // of the receiving one
    double message;           // of either for each message
    pen_figure_source source; // of the bandwidth
    pen_figure_source latency_source;
    double bandwidth_stated; // by the user, also where measured ones are used; 0: not
    double latency_stated;
    double send_stated;    // seconds for each byte; 0: not
    double receive_stated; // likewise
    double message_stated; // seconds; 0: not, or nothing
} pen_cluster_link;

// What plans look up for pairs of devices again and again, worked out once. Tables are
// [device_count][device_count], from row to column; 0 from a device to itself.
typedef struct pen_cluster_tables {
    const double *byte_seconds;    // 1 / bandwidth
    const double *latency;         // seconds
    const double *message_load;    // seconds of either end for one result, besides its bytes
    const pen_device_seat *seats;  // [device_count]
    const pen_link_handling *ends; // [link_count]
    uint64_t hash;                 // pen_cluster_hash
} pen_cluster_tables;

// Of 4,096 devices there are 16 million pairs, but their links differ in a few ways only: each way
// is kept once, and a pair has its number.
typedef struct pen_cluster {
    uint32_t device_count; // at least 1
    uint32_t link_count;
    const pen_cluster_device *devices;
    const pen_cluster_link *links; // [link_count]
    const uint32_t *link_of_pair;  // [device_count][device_count], from row to column
    pen_cluster_tables tables;
} pen_cluster;

// By which kind, and how many threads, a cost table has figures of a device. A GPU is what its
// model is, whatever threads of the host stand beside it.
static inline const char *pen_cluster_cost_kind(const pen_cluster_device *device) {
    return device->cost_kind != NULL ? device->cost_kind : device->kind;
}
static inline uint32_t pen_cluster_cost_threads(const pen_cluster_device *device) {
    return device->cost_kind != NULL ? 1 : device->threads;
}

// Whether a device's host ("" or NULL: none) stands for a process that is started for it alone:
// "localhost" without a port.
static inline bool pen_host_is_started(const char *host) {
    return host != NULL && strcmp(host, "localhost") == 0;
}

static inline const pen_cluster_link *pen_cluster_link_at(const pen_cluster *cluster, uint32_t from,
                                                          uint32_t to) {
    return &cluster->links[cluster->link_of_pair[(uint64_t)from * cluster->device_count + to]];
}

// What the ends of a link compute for what goes over it.
static inline pen_link_handling pen_link_ends(const pen_cluster_link *link) {
    return (pen_link_handling){link->send, link->receive, link->message};
}

#endif // PEN_PARTITION_COSTS_CLUSTER_H
