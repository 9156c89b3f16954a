// The contract of kernels of the cpu device: one entry an op (or several that compete), one file a
// family in device/cpu/kernels/, and cpu_kernel_list.c, which has what they share. What has no
// entry here runs on the reference kernel.
//
// Files in kernels/ are compiled once for each kernel level (x86-64-v2, -v3, -v4); the family
// symbol carries the level, and cpu_device.c takes the families of the level it runs at.
//
// Threads: a kernel runs on the device's compute thread and may use its OpenMP team.
#ifndef PEN_DEVICE_CPU_CPU_KERNEL_H
#define PEN_DEVICE_CPU_CPU_KERNEL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/status.h"
#include "base/system/kernel_level.h"
#include "device/device.h"
#include "graph/graph_types.h"

#ifndef PEN_CPU_LEVEL
#define PEN_CPU_LEVEL base
#endif
#define PEN_CPU_JOIN_(a, b) a##_##b
#define PEN_CPU_JOIN(a, b) PEN_CPU_JOIN_(a, b)
// The symbol of a family at this level.
#define PEN_CPU_FAMILY(name) PEN_CPU_JOIN(pen_##name##_cpu, PEN_CPU_LEVEL)

// What a kernel is made from. Everything is borrowed for the call but `arena`.
typedef struct pen_cpu_request {
    pen_device *device;
    const pen_graph *graph;
    const pen_node *node;
    pen_node_id node_id;
    pen_arena *arena;      // for state
    uint32_t thread_count; // the calling thread's team has this size
    pen_kernel_level level;
    const void *rule; // the entry's, for its supports and prepare
} pen_cpu_request;

// Whether a value is float32 in the plain layout, or left out; the same of all values of the node.
bool pen_cpu_is_plain_float(const pen_cpu_request *request, pen_value_id value);
bool pen_cpu_is_all_plain_float(const pen_cpu_request *request);

typedef struct pen_cpu_call {
    const void *state;    // made by prepare
    void *const *inputs;  // NULL where left out
    void *const *outputs; // NULL where left out
    void *workspace;      // 64-byte aligned
    const pen_run_context *run;
    bool accumulate; // add to the outputs instead of setting them; only ever true for
                     // entries with can_accumulate
} pen_cpu_call;

typedef struct pen_cpu_kernel {
    const char *op_name;
    const char *name;    // tells competing entries of one op apart: "onednn", "gemm"
    bool can_accumulate; // else the device runs into workspace and adds (float32 and float64)
    // The kernel takes elements one by one in whatever order they lie: where its operands (but
    // those of one element) and outputs have one shape and one layout, that layout may be any
    // (device/cpu/cpu_layout.h), and it works on pen_cpu_layout_element_count elements. Where
    // shapes differ, all is plain.
    bool takes_any_layout;
    // Whether this entry can do the node (types, layouts, shapes). The first entry that can is
    // taken, but for `prefers`. NULL: any node of the op with float32 operands in the plain layout,
    // or in another as above.
    bool (*supports)(const pen_cpu_request *request);
    // Rule of thumb: among the entries that can do a node, one that
    // prefers it goes first. NULL: no preference.
    bool (*prefers)(const pen_cpu_request *request);
    // NULL: no state, no workspace.
    pen_status (*prepare)(const pen_cpu_request *request, void **out_state,
                          uint64_t *out_workspace_bytes);
    pen_status (*run)(const pen_cpu_call *call);
    void (*release)(void *state); // NULL: nothing held
    const void *rule; // what its functions need to know to be this entry, where they serve several
} pen_cpu_kernel;

// The members that most entries have, for a row {PEN_CPU_ENTRY("lrn", "tiles", …)}. The functions
// are supports, prepare and run; NULL as above.
#define PEN_CPU_ENTRY(op, title, supports_op, prepare_op, run_op)                                  \
    .op_name = (op), .name = (title), .supports = (supports_op), .prepare = (prepare_op),          \
    .run = (run_op)
// The address of a rule, for such a row.
#define PEN_CPU_RULE(type, ...) (&(const type){__VA_ARGS__})

typedef struct pen_cpu_family {
    const pen_cpu_kernel *kernels; // [kernel_count]
    uint32_t kernel_count;
} pen_cpu_family;

// Defines the family `name` of the table <name>_kernels, with which its file ends.
#define PEN_CPU_FAMILY_OF(name)                                                                    \
    extern const pen_cpu_family PEN_CPU_FAMILY(name);                                              \
    const pen_cpu_family PEN_CPU_FAMILY(name) = {name##_kernels,                                   \
                                                 sizeof name##_kernels / sizeof *name##_kernels}

#endif // PEN_DEVICE_CPU_CPU_KERNEL_H
