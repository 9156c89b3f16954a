// The machines as a user writes them: `devices` and `links` of a job or of a cluster file.
//
//   devices:
//     - {name: a, memory: 12GiB, reserve: 1GiB, threads: 2}            # in this process
//     - {name: "n[01-16]/cpu0", host: "n[01-16]:7070", memory: 8GiB, flops: 80G}
//     - {name: t, per: task}                                           # t0, t1, … of tasks
//   links:
//     - {between: [a, "n[01-16]/cpu0"], bandwidth: 1Gbit/s, latency: 200us, send: 2GB/s}
//     - {from: a, to: n01/cpu0, bandwidth: 10Gbit/s}
//
// Names with ranges are expanded when read, those of `host` along with those of `name`. An entry
// `per: task` becomes a device of each task that Slurm, MPI or Kubernetes started. Devices of
// a link are given by name, by ranges, or by a pattern (partition/spec/name_match.h); later links
// win over earlier ones. pen_cluster_build (partition/costs/cluster.h) completes what is not said.
//
// Lifetime: a spec lives in the arena it was read into.
// Threads:  immutable once returned.
#ifndef PEN_PARTITION_SPEC_CLUSTER_SPEC_H
#define PEN_PARTITION_SPEC_CLUSTER_SPEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/option/option.h"
#include "base/status.h"

#define PEN_CLUSTER_DEVICE_LIMIT 4096 // devices of a cluster

typedef enum pen_cluster_device_kind {
    PEN_CLUSTER_CPU,
    PEN_CLUSTER_REFERENCE,
    PEN_CLUSTER_CUDA,
} pen_cluster_device_kind;

// How many devices an entry stands for.
typedef enum pen_cluster_per {
    PEN_CLUSTER_PER_JOB,  // itself, or those of its ranges
    PEN_CLUSTER_PER_TASK, // one of each task
} pen_cluster_per;

// "cpu", "reference", "cuda": as device_list names them.
const char *pen_cluster_device_kind_name(pen_cluster_device_kind kind);

typedef struct pen_cluster_device_spec {
    const char *name; // as written, with ranges; expanded: unique
    pen_cluster_device_kind kind;
    pen_cluster_per per;
    const char *host;        // "n1:7070"; NULL: in this process
    uint64_t memory_bytes;   // 0: not said
    uint64_t reserve_bytes;  // of the memory, not to be used
    int64_t threads;         // 0: not said
    int64_t gpu;             // CUDA: which GPU of the machine
    bool has_gpu;            // it was said
    const char *model;       // CUDA: "NVIDIA H200"; NULL: not said
    double flops;            // a second; 0: not said
    double memory_bandwidth; // bytes a second; 0: not said

    // Of expanded devices: the entry it comes from, for pen_cluster_spec_blame; NULL: of none.
    const struct pen_cluster_device_spec *written;
    uint32_t task; // PER_TASK: whose it is
} pen_cluster_device_spec;

// A task: a process that whoever owns the machines has started, one of several.
typedef struct pen_cluster_task {
    const char *host;      // where it takes links; NULL: it is this process
    uint64_t memory_bytes; // that it may use; 0: not known
    int64_t threads;       // likewise
} pen_cluster_task;

typedef struct pen_cluster_link_spec {
    pen_option_list between; // const char *: two, both directions; or none, and then
    const char *from;        // these, one direction
    const char *to;
    double bandwidth; // bytes a second
    double latency;   // seconds
    bool has_latency;
    double send;    // bytes a second of the sending device's time; 0: not said
    double receive; // likewise, of the receiving one's
    double message; // seconds of either for each message
    bool has_message;
} pen_cluster_link_spec;

typedef struct pen_cluster_spec {
    pen_option_list written_devices; // pen_cluster_device_spec, before expansion
    pen_option_list written_links;   // pen_cluster_link_spec
    const pen_cluster_task *tasks;   // [task_count], the reader's to set; none: one, this process
    uint32_t task_count;

    // set by pen_cluster_spec_complete
    const pen_cluster_device_spec *devices; // [device_count], expanded; at least one
    uint32_t device_count;
    bool uses_tls;        // between processes; the reader's to set, where it knows
    bool uses_grpc_alone; // also between processes of one host, which share memory else
    bool is_reduced;      // some were taken away: links may name them still
    bool is_mixed; // they and what is left are of several kinds, and values keep the plain layout
    const pen_option_source *source; // for pen_cluster_spec_blame; NULL: positions are not known
} pen_cluster_spec;

// The keys of a cluster file; fills pen_cluster_spec. Its fields are `devices` and `links`.
extern const pen_option_table pen_cluster_table;
// What one item of `devices`, and of `links`, is.
extern const pen_option_field pen_cluster_device_item;
extern const pen_option_field pen_cluster_link_item;

// Expands the ranges and tasks of a spec whose lists were read; without devices there is one,
// called "cpu". INVALID_INPUT with position: ranges, names twice, hosts; OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_cluster_spec_complete(pen_cluster_spec *spec,
                                                   const pen_option_source *source,
                                                   pen_arena *arena);

// Gives an expanded device that is of a task its host, and what nobody stated of memory and
// threads: an equal share of the task's, where several entries are `per: task`.
void pen_cluster_spec_set_task(const pen_cluster_spec *spec, const pen_cluster_task *task,
                               pen_cluster_device_spec *device);

// A device of another kind than the first: their numbers differ in the last bits. NULL: there is
// none.
const pen_cluster_device_spec *pen_cluster_spec_other_kind(const pen_cluster_spec *spec);
// Whether a device is of each task.
bool pen_cluster_spec_has_tasks(const pen_cluster_spec *spec);

// Reads a cluster file, and from memory, opening no other. INVALID_INPUT with position; NOT_FOUND,
// IO, OUT_OF_MEMORY.
PEN_NODISCARD pen_status pen_cluster_spec_read(const char *path, pen_arena *arena,
                                               const pen_cluster_spec **out_spec);
PEN_NODISCARD pen_status pen_cluster_spec_parse(const char *path, const char *bytes, size_t length,
                                                pen_arena *arena,
                                                const pen_cluster_spec **out_spec);

// Gives an error the position at which `field`, an address within an entry as written, stands:
// pen_cluster_spec_blame(spec, &spec->devices[0].written->memory_bytes, status).
PEN_NODISCARD pen_status pen_cluster_spec_blame(const pen_cluster_spec *spec, const void *field,
                                                pen_status status);

// The error that a device's reserve leaves nothing of `memory_bytes`.
PEN_NODISCARD pen_status pen_cluster_reserve_error(const pen_cluster_device_spec *device,
                                                   uint64_t memory_bytes);

#endif // PEN_PARTITION_SPEC_CLUSTER_SPEC_H
