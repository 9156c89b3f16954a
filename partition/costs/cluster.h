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
#include "base/system/machine.h"
#include "partition/costs/cost_table.h"
#include "partition/costs/link_ends.h"
#include "partition/spec/cluster_spec.h"

// What is assumed where nobody measured or said: of the order of a core that runs vector kernels,
// of a memory bus that several share, of copies within a process, of sockets on one machine, and of
// a common network. A plan marks what rests on them.
#define PEN_ASSUMED_FLOPS_PER_THREAD 25e9 // operations a second, float32
#define PEN_ASSUMED_REFERENCE_FLOPS 0.5e9 // of the reference device
#define PEN_ASSUMED_MEMORY_BANDWIDTH 10e9 // bytes a second, of a device

// What carries tensors from one device to another.
typedef enum pen_carrier {
    PEN_CARRIER_MEMORY,       // of one process: values stay where they are
    PEN_CARRIER_RING,         // shared memory between processes of one host
    PEN_CARRIER_LOOPBACK,     // gRPC between processes of one host,
    PEN_CARRIER_LOOPBACK_TLS, // over TLS
    PEN_CARRIER_NETWORK,      // gRPC between hosts,
    PEN_CARRIER_NETWORK_TLS,  // over TLS
} pen_carrier;

// What is assumed of a link of a kind (docs/decisions/what-transfers-take.md).
typedef struct pen_assumed_link {
    double bandwidth;    // bytes a second
    double latency;      // seconds, where the devices take all cores of their hosts,
    double latency_idle; // and where one is left
    double send;         // bytes for each second of the sending device; 0: it computes nothing
    double receive;      // likewise, of the receiving one
    double message;      // seconds of either
} pen_assumed_link;
pen_assumed_link pen_cluster_assumed_link(pen_carrier carrier);

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
    const char *host;     // "10.0.0.2:7070"; "localhost": a process that is started for it; NULL:
                          // a thread of this process
    uint32_t process;     // devices of one process have one number; 0: of this one
    uint32_t host_index;  // devices of one host have one number; 0: of this one
    uint64_t bytes_limit; // what a plan may use: memory less reserve
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

// Completes a spec with what is not said in it.
//   memory    stated, or what the system grants this machine's processes (cgroup included) less
//             what other devices of it state, shared equally; less the reserve. Devices on other
//             hosts state theirs
//   threads   stated, or an equal share of the cores that are left of those this process may use;
//             on other hosts as many cores as there are here
//   rates     of `costs` for host, kind and threads; else stated; else assumed: as `costs` has them
//             for this machine, or a default
//   links     of `costs` by names of devices where both are of this machine; else stated; else of
//             `costs`; else assumed from where the two are: devices with equal `host`, or without,
//             are in one process; with equal names of hosts on one host. `localhost` without a
//             port is a process of its own for each device. What is not said of a link that is
//             stated or measured is assumed likewise
// `costs` may be NULL.
//   INVALID_INPUT  with position: a reserve above the memory, memory not stated
//   NOT_FOUND      a link's device matches none; near names are listed
//   DOES_NOT_FIT   the devices' stated memory leaves none for the others
//   OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_cluster_build(const pen_cluster_spec *spec,
                                           const pen_cost_table *costs, pen_arena *arena,
                                           const pen_cluster **out_cluster);

// The same for a machine that was asked before.
PEN_NODISCARD pen_status pen_cluster_build_on(const pen_machine *machine,
                                              const pen_cluster_spec *spec,
                                              const pen_cost_table *costs, pen_arena *arena,
                                              const pen_cluster **out_cluster);

#endif // PEN_PARTITION_COSTS_CLUSTER_H
