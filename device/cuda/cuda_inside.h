// The inside of the cuda device, for cuda_device.c and cuda_list.c.
//
// Threads: as in device/device.h.
#ifndef PEN_DEVICE_CUDA_CUDA_INSIDE_H
#define PEN_DEVICE_CUDA_CUDA_INSIDE_H

#include "device/cuda/cuda_clock.h"
#include "device/cuda/cuda_host.h"
#include "device/cuda/cuda_kernel.h"
#include "device/cuda/cuda_libraries.h"
#include "device/cuda/cuda_memory.h"
#include "device/cuda/cuda_queues.h"

// Words that kernels raise: the first is the largest magnitude of some value, the second the flag
// of looks, and each of the others says of a kernel that its data was wrong.
#define CUDA_WORDS 1024u
#define CUDA_WORDS_BYTES (CUDA_WORDS * sizeof(uint32_t))
#define CUDA_FLAG_WORD 1u
#define CUDA_FIRST_WORD 2u
// An open device has, in one piece: the words, a struct cuda_random, and room for what lists of
// launches keep in its memory. Those for which it is too small are given other memory.
#define CUDA_ALIGNMENT 256u
#define CUDA_ROOM_BYTES (256u << 10)
#define CUDA_OWN_BYTES (CUDA_WORDS_BYTES + CUDA_ALIGNMENT + CUDA_ROOM_BYTES)

typedef struct cuda_kernel {
    const pen_graph *graph;
    const pen_node *node;
    const pen_cuda_entry *entry; // NULL: it runs on the host
    pen_kernel *host;
    uint32_t word; // that it raises; 0: none
} cuda_kernel;

typedef struct cuda_device {
    pen_device base;
    pen_arena *arena;
    const char *name;
    bool only_sizes;
    pen_precision precision; // of operands of products
    pen_cuda_memory memory;
    pen_cuda_libraries libraries;
    pen_cuda_clock clock;
    pen_cuda_queues queues;
    pen_cuda_host host;
    pen_cuda_module *module;
    uint64_t text_hash; // of its kernels
    pen_cuda_function *functions[PEN_CUDA_KERNEL_COUNT];
    pen_cuda_address words;                 // [CUDA_WORDS], and what lies behind them
    uint32_t *words_here;                   // pinned
    const cuda_kernel *raisers[CUDA_WORDS]; // by word
    uint32_t next_word;
    bool may_be_raised; // a word, since they were copied last
    pen_launch_list *lists;
    uint64_t room_bytes;   // of the room, that were taken
    uint32_t room_takings; // of them, not given back yet
    uint32_t look_count;   // that were ever made: look k raises the flag to UINT32_MAX - k
    uint32_t found_number; // to which it was raised, and nobody was told yet; 0: it was not
} cuda_device;

typedef struct cuda_launch {
    const cuda_kernel *kernel;
    pen_cuda_call call; // where its operands are
    pen_cuda_step steps[PEN_CUDA_STEPS];
    uint32_t step_count;
    pen_cuda_host_launch *host;
} cuda_launch;

static inline pen_cuda_address cuda_word(const cuda_device *device, uint32_t word) {
    return device->words + word * sizeof(uint32_t);
}

// The key of random numbers of a launch that runs by itself.
static inline pen_cuda_address cuda_random_place(const cuda_device *device) {
    return cuda_word(device, CUDA_WORDS);
}

static inline pen_cuda_address cuda_room(const cuda_device *device) {
    return device->words + CUDA_OWN_BYTES - CUDA_ROOM_BYTES;
}

static inline pen_cuda_flag cuda_flag(const cuda_device *device) {
    return (pen_cuda_flag){cuda_word(device, CUDA_FLAG_WORD), device->words_here + CUDA_FLAG_WORD};
}

// cuda_device.c: the device, whose kind is asserted.
cuda_device *cuda_device_of(pen_device *device);
// Bytes of workspace of a kernel, on the GPU.
uint64_t cuda_kernel_workspace(const cuda_kernel *kernel);
// Enqueues a step as it is; or of a launch, with what differs from run to run.
PEN_NODISCARD pen_status cuda_launch_step(const cuda_device *device, const pen_cuda_step *step);
PEN_NODISCARD pen_status cuda_launch_step_of(const cuda_device *device, const cuda_launch *launch,
                                             const pen_cuda_step *step, const pen_run_context *run);

// Raises the flag where a kernel has raised its word: updates apply nothing then.
pen_cuda_step cuda_check_step(const cuda_device *device);

// cuda_list.c: members of the device's kind.
PEN_NODISCARD pen_status cuda_list_create(pen_device *base, const pen_list_item *items,
                                          uint32_t count, const pen_list_memory *memory,
                                          pen_launch_list **out_list);
PEN_NODISCARD pen_status cuda_list_reserve(pen_device *base, uint64_t bytes,
                                           pen_buffer **out_buffer, uint64_t *out_own_bytes);
// Of any buffer: if it is a part of the room, that is free.
void cuda_list_destroy_buffer(pen_device *base, pen_buffer *buffer);
uint64_t cuda_list_bytes(const pen_graph *graph, const pen_node_id *nodes, uint32_t count);
PEN_NODISCARD pen_status cuda_list_enqueue(pen_device *base, pen_launch_list *list,
                                           const pen_run_context *run);
void cuda_list_destroy(pen_device *base, pen_launch_list *list);
PEN_NODISCARD pen_status cuda_list_found(pen_device *base, const pen_look **out_look);

#endif // PEN_DEVICE_CUDA_CUDA_INSIDE_H
