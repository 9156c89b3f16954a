// A GPU that is open: its context, its streams, and its memory. Work goes on one stream in order;
// two more take copies in and out beside it, where somebody asked for them. Copies of what the host
// wants back at once go through pinned memory, and an event says when a piece of that is free.
//
// Threads: one at a time.
#ifndef PEN_DEVICE_CUDA_CUDA_MEMORY_H
#define PEN_DEVICE_CUDA_CUDA_MEMORY_H

#include "base/memory_place.h"
#include "device/cuda/cuda_driver.h"
#include "device/device.h"
#include "device/memory_budget.h"

// Small copies lie behind each other in a slot, so that none waits for those of the step before.
#define PEN_CUDA_WRITE_SLOTS 4u
#define PEN_CUDA_READ_SLOTS 2u
#define PEN_CUDA_SLOT_BYTES (1u << 20)
// What is fetched, until work is awaited.
#define PEN_CUDA_FETCHES 1024u
#define PEN_CUDA_FETCH_BYTES (1u << 16)
// Pinned memory of an open GPU.
#define PEN_CUDA_PINNED_BYTES                                                                      \
    ((PEN_CUDA_WRITE_SLOTS + PEN_CUDA_READ_SLOTS) * PEN_CUDA_SLOT_BYTES + PEN_CUDA_FETCH_BYTES)

typedef struct pen_cuda_slot {
    uint8_t *bytes; // pinned
    size_t end;     // of those that are taken
    pen_cuda_event *event;
    bool is_used; // until the event
} pen_cuda_slot;

typedef struct pen_cuda_fetch {
    void *host;
    size_t at, bytes;
} pen_cuda_fetch;

typedef struct pen_cuda_memory {
    const pen_cuda_driver *driver; // NULL: nothing is open
    int gpu;
    int handle; // of the driver, of the GPU
    pen_cuda_context *context;
    pen_cuda_stream *stream;
    pen_cuda_stream *beside[2]; // copies in, and out (cuda_queues.h); NULL: nobody asked for them
    pen_cuda_slot write_slots[PEN_CUDA_WRITE_SLOTS];
    uint32_t write_turn;
    pen_cuda_slot read_slots[PEN_CUDA_READ_SLOTS];
    uint32_t read_turn;
    uint8_t *fetched; // [PEN_CUDA_FETCH_BYTES] pinned
    size_t fetched_bytes;
    pen_cuda_fetch fetches[PEN_CUDA_FETCHES];
    uint32_t fetch_count;
    pen_memory_budget budget;
    pen_memory_domain domain;
} pen_cuda_memory;

// A status of what the driver said.
//   OUT_OF_MEMORY  the GPU has no more
//   INTERNAL       all else; what a kernel did wrong is told by any later call
PEN_NODISCARD pen_status pen_cuda_check(const pen_cuda_memory *memory, pen_cuda_result result,
                                        const char *doing);

// An error of `library`, "cuDNN", which says `says`, the name of its status. `doing` is "while a
// convolution was enqueued". NULL: it does not begin; then the error says what to do if that is for
// want of memory, since what a library takes for itself is in no plan.
PEN_NODISCARD pen_status pen_cuda_library_error(const pen_cuda_memory *memory, pen_status_code code,
                                                const char *library, const char *says,
                                                const char *doing);

// Opens GPU `memory->gpu`; close releases what was opened, also after an error.
PEN_NODISCARD pen_status pen_cuda_memory_open(pen_cuda_memory *memory);
void pen_cuda_memory_close(pen_cuda_memory *memory);

// Makes the context that of the calling thread.
PEN_NODISCARD pen_status pen_cuda_memory_enter(const pen_cuda_memory *memory);
// Waits for all streams, and hears no error: for who gives back what they may use.
void pen_cuda_memory_rest(const pen_cuda_memory *memory);
// Waits for the stream of work; what was fetched is where it was wanted then.
PEN_NODISCARD pen_status pen_cuda_memory_wait(pen_cuda_memory *memory);

// As pen_device_kind's members of these names. Zero bytes have an address, too, and take nothing.
PEN_NODISCARD pen_status pen_cuda_buffer_create(pen_cuda_memory *memory, uint64_t bytes,
                                                pen_buffer **out_buffer);
void pen_cuda_buffer_destroy(pen_cuda_memory *memory, pen_buffer *buffer);
PEN_NODISCARD pen_status pen_cuda_buffer_wrap(const pen_cuda_memory *memory, pen_memory_place place,
                                              uint64_t bytes, pen_buffer **out_buffer);
// 0: there is no buffer.
pen_cuda_address pen_cuda_address_of(pen_operand operand);
PEN_NODISCARD pen_status pen_cuda_write(pen_cuda_memory *memory, pen_operand to, const void *host,
                                        uint64_t bytes);
// The same to an address that the driver gave.
PEN_NODISCARD pen_status pen_cuda_write_at(pen_cuda_memory *memory, pen_cuda_address to,
                                           const void *host, uint64_t bytes);
// Streams for copies beside the work: once. What was opened is released by pen_cuda_memory_close,
// also after an error.
PEN_NODISCARD pen_status pen_cuda_memory_open_beside(pen_cuda_memory *memory);
// The operand has so many bytes.
void pen_cuda_check_range(pen_operand operand, uint64_t bytes);
PEN_NODISCARD pen_status pen_cuda_read(pen_cuda_memory *memory, pen_operand from, void *host,
                                       uint64_t bytes);
// Large values, and many, are read.
PEN_NODISCARD pen_status pen_cuda_fetch_value(pen_cuda_memory *memory, pen_operand from, void *host,
                                              uint64_t bytes);

#endif // PEN_DEVICE_CUDA_CUDA_MEMORY_H
