// The contract of the executor_*.c of this folder among themselves.
//
// What an executor is made of: shared by executor_life.c (life, running) and executor_places.c
// (where its values lie).
//
// Threads: as in executor.h.
#ifndef PEN_SCHEDULER_RUNTIME_EXECUTOR_EXECUTOR_STATE_H
#define PEN_SCHEDULER_RUNTIME_EXECUTOR_EXECUTOR_STATE_H

#include "graph/analysis/memory_plan.h"
#include "scheduler/runtime/executor/executor.h"

// Where a value lies. Of copies, number c begins `stride` bytes after number c - 1; of a lent value
// each is a buffer of its own.
typedef struct executor_place {
    pen_buffer *buffer; // NULL: nowhere, or lent
    pen_buffer **lent;  // [copies]
    uint64_t offset;
    uint64_t stride;
    uint32_t copies; // 0: nowhere
} executor_place;

// A value whose memory this process does not see, copied.
typedef struct executor_copy {
    void *bytes;
    uint64_t size;
} executor_copy;

// A look of a device's list, and at what.
typedef struct executor_list_look {
    pen_look look; // first: a look is that of its executor
    const pen_executor *executor;
    pen_value_id value;
} executor_list_look;

// A list on a device that runs launches as one.
typedef struct executor_made {
    pen_launch_list **lists; // [count], by combination of places; NULL: not made yet
    uint32_t count;          // 0: launches are enqueued one by one
} executor_made;

struct pen_executor {
    pen_executor_spec spec; // what was borrowed for the call alone is NULL afterwards
    pen_arena *arena;
    pen_memory_list *lists; // [list_count]
    uint32_t list_count;
    pen_memory_plan *plan;
    uint64_t *bytes_of_value; // [value_count] as laid out on the device
    uint64_t input_bytes;     // of the persistent region: what is fed
    pen_buffer *persistent;
    pen_buffer *working; // copies, then the arena
    bool owns_working;   // false: it is the shared executor's
    uint64_t working_bytes;
    bool *is_lent;           // [value_count]; NULL: none
    executor_place *places;  // [value_count]
    pen_kernel **kernels;    // [order_count]; NULL for views
    uint32_t *launch_first;  // [order_count + 1] in `launches`: one for each combination of copies
    pen_launch **launches;   // NULL until bound
    executor_made *made;     // [list_count]; NULL: none yet
    pen_buffer *list_memory; // for what lists keep on the device; NULL: they keep nothing
    uint64_t list_own_bytes; // of that, what is not in the device's own room
    pen_list_memory *list_memory_of; // [list_count], of the first combination; NULL: there is none
    double *node_seconds;            // [order_count], added to; NULL: nobody wants to know
    struct executor_guards *guards;  // NULL: none
    bool is_guarded_here;            // by the host, between launches
    struct executor_copy *copy;      // where executor_look copies to
};

// The largest number that divides both.
uint64_t executor_common_divisor(uint64_t a, uint64_t b);

// The launch for this microbatch; NULL for views.
const pen_launch *executor_launch(const pen_executor *executor, uint32_t position,
                                  uint64_t microbatch);

// Where there are more combinations than this, launches are enqueued one by one.
#define EXECUTOR_LIST_COMBINATIONS 64u
// executor_list.c: takes that memory, once launches are bound. As buffer_create
PEN_NODISCARD pen_status executor_reserve_lists(pen_executor *executor);
// Whether lists run as one.
bool executor_has_lists(const pen_executor *executor);
// The list as one, for this microbatch, made when it is not there yet; NULL: its
// launches are enqueued one by one.
PEN_NODISCARD pen_status executor_find_list(pen_executor *executor, uint32_t list_index,
                                            uint64_t microbatch, pen_launch_list **out_list);
void executor_release_lists(pen_executor *executor);

// Guards of lists that a device runs as one (executor_guard.c): what is to be looked at, told by a
// call of `add` for each value, before the list runs, before the node at a position, or after it.
typedef struct executor_looker {
    void *context;
    pen_status (*add)(void *context, pen_value_id value);
} executor_looker;
PEN_NODISCARD pen_status executor_guard_looks_first(const pen_executor *executor,
                                                    const pen_memory_list *list,
                                                    const executor_looker *looker);
PEN_NODISCARD pen_status executor_guard_looks_before(const pen_executor *executor,
                                                     const pen_memory_list *list, uint32_t position,
                                                     const executor_looker *looker);
PEN_NODISCARD pen_status executor_guard_looks_after(const pen_executor *executor, uint32_t position,
                                                    const executor_looker *looker);
// What a look found. NOT_FINITE
PEN_NODISCARD pen_status executor_guard_found(const pen_executor *executor, const pen_look *look);

// Guards of others (executor_guard.c), where there are some. NOT_FINITE
PEN_NODISCARD pen_status executor_guard_list(const pen_executor *executor,
                                             const pen_memory_list *list, uint64_t microbatch,
                                             const pen_run_context *run);
PEN_NODISCARD pen_status executor_guard_before(const pen_executor *executor,
                                               const pen_memory_list *list, uint32_t position,
                                               uint64_t microbatch);
PEN_NODISCARD pen_status executor_guard_after(const pen_executor *executor, uint32_t position,
                                              uint64_t microbatch, const pen_run_context *run);

// Whether this process sees the memory in which the executor computes.
bool executor_is_seen(const pen_executor *executor);
// Whether elements of a value are here, and fill its memory.
bool executor_has_elements(const pen_executor *executor, pen_value_id value);
// The memory of a value, for looking at every element; NULL: it has none here, or cannot be copied.
// Where it is not seen it is copied, until the next look.
const void *executor_look(const pen_executor *executor, pen_value_id value, uint64_t microbatch,
                          uint64_t *out_bytes);

// Where a test plants a fault of hardware (failpoint "executor.node_run"): a bit of what the node
// has made is another.
void executor_spoil(const pen_executor *executor, uint32_t position, uint64_t microbatch);

// What an executor shares with its first (spec.shared): the value of that one's graph in whose
// place this one lies, if it has a place; NONE: it is no such value.
pen_value_id executor_find_shared(const pen_graph *graph, pen_value_id id, const pen_graph *first);
// Sizes of values, kernels (whose workspaces the plan needs) and the plan.
PEN_NODISCARD pen_status executor_plan(pen_executor *executor);
// Takes memory and writes first contents.
PEN_NODISCARD pen_status executor_place_values(pen_executor *executor);
// Views of lent values lie where these do, once it is known where.
void executor_place_views(pen_executor *executor);
void executor_release_values(pen_executor *executor);
// Where the value lies for this microbatch.
pen_operand executor_operand(const pen_executor *executor, pen_value_id value, uint64_t microbatch);

#endif // PEN_SCHEDULER_RUNTIME_EXECUTOR_EXECUTOR_STATE_H
