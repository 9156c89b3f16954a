// Makes a cluster of what was written, measured and found.
#ifndef PEN_PARTITION_COSTS_CLUSTER_BUILD_H
#define PEN_PARTITION_COSTS_CLUSTER_BUILD_H

#include "base/system/machine.h"
#include "partition/costs/cluster.h"

// What is assumed where nobody measured or said: of the order of a core that runs vector kernels,
// of a memory bus that several share, of copies within a process, of sockets on one machine, and of
// a common network. A plan marks what rests on them.
#define PEN_ASSUMED_FLOPS_PER_THREAD 25e9 // operations a second, float32
#define PEN_ASSUMED_REFERENCE_FLOPS 0.5e9 // of the reference device
#define PEN_ASSUMED_MEMORY_BANDWIDTH 10e9 // bytes a second, of a device
#define PEN_ASSUMED_GPU_FLOPS 10e12       // of a GPU whose model is not known (gpu_models.h)
#define PEN_ASSUMED_GPU_BANDWIDTH 500e9

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

// "assumed", "stated", "measured".
const char *pen_figure_source_name(pen_figure_source source);

// Completes a spec with what is not said in it.
//   memory    stated, or what the system grants this machine's processes (cgroup included) less
//             what other devices of it state, shared equally; less the reserve. Devices on other
//             hosts state theirs
//   threads   stated, or an equal share of the cores that are left of those this process may use;
//             on other hosts as many cores as there are here
//   rates     of `costs` for host, kind and threads, of a GPU for host and model; else stated; else
//             assumed: as `costs` has them for this machine, or a default, of a GPU what its maker
//             says of the model
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

#endif // PEN_PARTITION_COSTS_CLUSTER_BUILD_H
