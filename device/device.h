// The contract of devices: how one operator runs, and where its tensors live.
//
// A device has its own memory and a queue. Buffers are handles, copies between host and device are
// explicit, kernels are prepared once, bound to memory once, and then enqueued any number of
// times; work on one device runs in the order enqueued. A device whose queue is the calling
// thread (reference, cpu) does the work inside pen_device_enqueue.
//
// Lifetime: pen_device_open to pen_device_close; everything made by a device dies before it.
// Threads:  a device is used by one thread at a time, as a rule its compute thread.
#ifndef PEN_DEVICE_DEVICE_H
#define PEN_DEVICE_DEVICE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/libraries.h"
#include "base/memory_place.h"
#include "base/precision.h"
#include "base/status.h"
#include "base/system/kernel_level.h"
#include "device/device_types.h"
#include "graph/graph_types.h"
#include "graph/passes/assign_layouts.h"

typedef struct pen_device_options {
    const char *name;        // the user's: "a"
    uint32_t thread_count;   // kernel team; 0: all cores the process may use
    uint64_t memory_bytes;   // buffers may not exceed it; 0: no limit
    pen_kernel_level level;  // cpu: of its kernels
    uint32_t gpu;            // cuda: which GPU of this machine, from 0
    bool only_sizes;         // kernels are prepared for what they take, and never run
    pen_precision precision; // cuda: of operands of products
    pen_libraries libraries; // cuda: of NVIDIA's, that do products instead of its own kernels
} pen_device_options;

// Why devices of one kind are refused in one training that do not identify themselves alike.
#define PEN_DEVICE_UNLIKE                                                                          \
    "results would differ in their last bits; a job's GPUs must be of one model with one driver, " \
    "and use the same libraries, or none: `numerics: {libraries: none}`"

typedef struct pen_device_kind {
    const char *name;    // "cpu"
    const char *summary; // one line
    bool has_own_memory; // the host does not see it: values come and go by copies
    uint32_t precisions; // PEN_PRECISION_BITs that it can, besides float32
    const char *library; // that it may use, for plans; NULL: none

    // UNSUPPORTED: this machine has no such device; says what is missing.
    PEN_NODISCARD pen_status (*open)(const pen_device_options *options, pen_device **out_device);
    void (*close)(pen_device *device);
    // One line for people: cores, instruction set, libraries. In `arena`.
    PEN_NODISCARD pen_status (*describe)(pen_device *device, pen_arena *arena,
                                         const char **out_text);

    // On what its bits depend besides the process's build and kernel level, such as the precision
    // it was opened with: devices with equal texts are of one class, and give equal bits. In
    // `arena`. NULL member: on nothing else.
    PEN_NODISCARD pen_status (*identify)(pen_device *device, pen_arena *arena,
                                         const char **out_text);
    // What the open device could not take into use, though its options let it and the machine has
    // it, and why: a line for people each, which names the device. Its bits are of the class that
    // it says. The device's; NULL, or NULL member: nothing.
    const char *(*lacks)(pen_device *device);

    // Zeroed memory. DOES_NOT_FIT above memory_bytes; OUT_OF_MEMORY.
    PEN_NODISCARD pen_status (*buffer_create)(pen_device *device, uint64_t bytes,
                                              pen_buffer **out_buffer);
    void (*buffer_destroy)(pen_device *device, pen_buffer *buffer);
    // Memory of a device of the same domain, 64-byte aligned, as a buffer: borrowed, not counted,
    // destroyed as others. UNSUPPORTED: of another domain.
    PEN_NODISCARD pen_status (*buffer_wrap)(pen_device *device, pen_memory_place place,
                                            uint64_t bytes, pen_buffer **out_buffer);
    // Enqueued. `host` is the caller's own again when it returns.
    PEN_NODISCARD pen_status (*write)(pen_device *device, pen_operand to, const void *host,
                                      uint64_t bytes);
    // Waits for work enqueued before.
    PEN_NODISCARD pen_status (*read)(pen_device *device, pen_operand from, void *host,
                                     uint64_t bytes);
    // Enqueued. `host` has it when pen_device_synchronize returns.
    PEN_NODISCARD pen_status (*fetch)(pen_device *device, pen_operand from, void *host,
                                      uint64_t bytes);
    PEN_NODISCARD pen_status (*synchronize)(pen_device *device);
    // Where an operand lies. Lets a loader or transport that reaches its domain fill tensors
    // without a copy.
    pen_memory_place (*place)(pen_device *device, pen_operand operand);

    // The largest magnitude of `bytes` of float32, infinite when one is infinite or not a number;
    // waits for work enqueued before. NULL member: the host sees the device's memory.
    PEN_NODISCARD pen_status (*magnitude)(pen_device *device, pen_operand of, uint64_t bytes,
                                          double *out_magnitude);

    // Bytes of its memory that an open device takes besides buffers; they count for memory_bytes.
    // NULL member: none.
    uint64_t (*own_bytes)(pen_device *device);
    // Bytes of the host's memory that it takes besides, for its copies, where these nodes run: at
    // most, since operands that share a place are counted each. NULL member: none.
    PEN_NODISCARD pen_status (*pinned_bytes)(pen_device *device, const pen_graph *graph,
                                             const pen_node_id *order, uint32_t order_count,
                                             uint64_t *out_bytes);

    // Bytes a value takes here in its layout. NULL member: as in the plain layout.
    uint64_t (*value_bytes)(pen_device *device, const pen_graph *graph, pen_value_id value);
    // Which layouts nodes want. NULL member: plain everywhere.
    const pen_layout_rules *(*layout_rules)(pen_device *device);
    // Whether the device has a kernel for the node's op.
    bool (*supports)(pen_device *device, const pen_graph *graph, pen_node_id node);

    // Whether the node runs on the host, within the device: there is no kernel for where its memory
    // is. NULL member: none does.
    bool (*runs_on_host)(pen_device *device, const pen_graph *graph, pen_node_id node);

    // Kernel, and its state in `arena`, for a node of a typed graph whose layouts are final.
    // UNSUPPORTED names the node.
    PEN_NODISCARD pen_status (*prepare)(pen_device *device, const pen_graph *graph,
                                        pen_node_id node, pen_arena *arena,
                                        pen_kernel **out_kernel);
    uint64_t (*workspace_bytes)(const pen_kernel *kernel);
    PEN_NODISCARD pen_status (*bind)(pen_device *device, const pen_kernel *kernel,
                                     const pen_binding *binding, pen_arena *arena,
                                     pen_launch **out_launch);
    // No heap call of ours. Errors are of the data: an index out of range, say; a device with a
    // queue of its own reports them at the next synchronize.
    PEN_NODISCARD pen_status (*enqueue)(pen_device *device, const pen_launch *launch,
                                        const pen_run_context *run);
    // Releases what libraries hold for a kernel. The kernel's memory is its arena's.
    void (*release)(pen_device *device, pen_kernel *kernel);

    // Launches that run as one, and looks, in any order that changes no bit. They outlive the list,
    // which is destroyed before the device is closed. NULL members: launches are enqueued one by
    // one, and who wants to look does so.
    PEN_NODISCARD pen_status (*list_create)(pen_device *device, const pen_list_item *items,
                                            uint32_t count, const pen_list_memory *memory,
                                            pen_launch_list **out_list);
    // Bytes that a list of these nodes keeps on the device, at most: with a look at what each
    // update applies, and at each scalar. A multiple of the alignment of buffers.
    uint64_t (*list_bytes)(const pen_graph *graph, const pen_node_id *nodes, uint32_t count);
    uint64_t list_room_bytes; // that own_bytes has for lists
    // Memory for what all lists of one user keep, `bytes`, which is not 0: of the device's room
    // where that has as much left, in the order of these calls, else as buffer_create. It is given
    // back by buffer_destroy. `out_own_bytes`: what it takes beside the room, as pen_list_room_take
    // says.
    PEN_NODISCARD pen_status (*list_reserve)(pen_device *device, uint64_t bytes,
                                             pen_buffer **out_buffer, uint64_t *out_own_bytes);
    // As `enqueue` for each of them. Waits for nothing but kernels that run on the host.
    PEN_NODISCARD pen_status (*list_enqueue)(pen_device *device, pen_launch_list *list,
                                             const pen_run_context *run);
    // Accepts NULL.
    void (*list_destroy)(pen_device *device, pen_launch_list *list);
    // The first look that found what is not finite in work that was awaited; NULL: none did. It is
    // told once, and then updates are applied again.
    PEN_NODISCARD pen_status (*found)(pen_device *device, const pen_look **out_look);

    // Copies beside the work, of a device whose memory the host does not see; NULL members: of
    // others. Each queue is in order by itself; between them, nothing is in order but by fences,
    // which are numbers from 0 on. Buffers are zeros, and written, on the queue of work.
    //
    // Memory of the host for copies. The caller gives it back by host_free, on this device and
    // before it is closed, when no copy uses it any more. OUT_OF_MEMORY
    PEN_NODISCARD pen_status (*host_allocate)(pen_device *device, uint64_t bytes,
                                              void **out_memory);
    void (*host_free)(pen_device *device, void *memory); // accepts NULL
    // Makes fences 0 to count - 1, and the queues of copies; once, before any is set. They are the
    // device's, until it is closed. OUT_OF_MEMORY
    PEN_NODISCARD pen_status (*fence_reserve)(pen_device *device, uint32_t count);
    // Enqueued on PEN_QUEUE_IN, from memory of host_allocate, of any device of the kind. It stays
    // as it is until the copy is done.
    PEN_NODISCARD pen_status (*copy_in)(pen_device *device, pen_operand to, const void *host,
                                        uint64_t bytes);
    // Enqueued on PEN_QUEUE_OUT, to memory of this device's host_allocate.
    PEN_NODISCARD pen_status (*copy_out)(pen_device *device, pen_operand from, void *host,
                                         uint64_t bytes);
    // Whether the device can copy from another of its kind without the host; it is prepared to.
    PEN_NODISCARD pen_status (*reach)(pen_device *device, pen_device *other, bool *out_reaches);
    // The same of GPUs of this machine by their numbers, none of which need be open: false where
    // nobody knows. NULL member: none does.
    bool (*may_reach)(uint32_t gpu, uint32_t other);
    // Enqueued on PEN_QUEUE_IN, from a device that it reaches.
    PEN_NODISCARD pen_status (*copy_across)(pen_device *device, pen_operand to, pen_device *other,
                                            pen_operand from, uint64_t bytes);
    // Enqueued: the fence is reached when all before it in the queue is done.
    PEN_NODISCARD pen_status (*fence_set)(pen_device *device, pen_queue queue, uint32_t fence);
    // Enqueued: what comes after it in the queue waits until the fence of a device of the same kind
    // is reached, as it was set last; one that never was is no hindrance. Nobody sets it meanwhile.
    PEN_NODISCARD pen_status (*fence_pass)(pen_device *device, pen_queue queue, pen_device *of,
                                           uint32_t fence);
    // The calling thread waits until the fence is reached, as it was set last; not at all if it
    // never was. Any thread, while nobody sets it. Errors of the work before it are told here.
    PEN_NODISCARD pen_status (*fence_wait)(pen_device *of, uint32_t fence);

    // Times by the device's own clock. NULL members: work is done when it was enqueued, and the
    // host's clock tells of it. Enqueued: the queue comes to the mark when all before it is done.
    // Marks are numbers from 0 on, used again and again; only numbers that are new take memory.
    PEN_NODISCARD pen_status (*mark)(pen_device *device, uint32_t mark);
    // When the queue came to mark `from`, and how long it took from there to `to`, which was made
    // after it. To be asked when all work was awaited and before more is enqueued.
    PEN_NODISCARD pen_status (*marked)(pen_device *device, uint32_t from, uint32_t to,
                                       pen_span *out_span);
    double mark_seconds; // how finely that is told
} pen_device_kind;

// Every device starts with this.
struct pen_device {
    const pen_device_kind *kind;
};

// What is taken of a room for lists of so many bytes, in which `*taken` are taken, raised by what
// is put there. Returns what is taken beside it: all or nothing.
static inline uint64_t pen_list_room_take(const pen_device_kind *kind, uint64_t *taken,
                                          uint64_t bytes) {
    if (bytes > kind->list_room_bytes - *taken) return bytes;
    *taken += bytes;
    return 0;
}

// device_list.c: NOT_FOUND lists the kinds there are.
PEN_NODISCARD pen_status pen_device_kind_find(const char *name, const pen_device_kind **out_kind);
// Of the kind of that name, its `has_own_memory`; false: there is none.
bool pen_device_kind_has_own_memory(const char *name);
// The member of this name; NULL where there is none.
const char *pen_device_lacks(pen_device *device);
// The members of these names; 0 where there is none.
uint64_t pen_device_own_bytes(pen_device *device);
PEN_NODISCARD pen_status pen_device_pinned_bytes(pen_device *device, const pen_graph *graph,
                                                 const pen_node_id *order, uint32_t order_count,
                                                 uint64_t *out_bytes);
// Whether operands of its products can have the precision.
bool pen_device_kind_can(const pen_device_kind *kind, pen_precision precision);
uint32_t pen_device_kind_count(void);
const pen_device_kind *pen_device_kind_at(uint32_t index);

#endif // PEN_DEVICE_DEVICE_H
