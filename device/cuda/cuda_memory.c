#include "device/cuda/cuda_memory.h"

#include <string.h>

#include "base/integer.h"
#include "base/memory.h"

#define MEMORY_ALIGNMENT 64u // of what lies in a slot

typedef struct cuda_buffer {
    pen_cuda_address address;
    uint64_t size;
    bool is_wrapped; // the memory is another's, or there is none of it
} cuda_buffer;

#define MEMORY_NOWHERE 64u // where a buffer of no bytes lies, which nobody reads

pen_status pen_cuda_check(const pen_cuda_memory *memory, pen_cuda_result result,
                          const char *doing) {
    if (result == 0) return PEN_OK;
    return pen_error(result == PEN_CUDA_OUT_OF_MEMORY ? PEN_OUT_OF_MEMORY : PEN_INTERNAL,
                     "device '%s': %s: the driver of GPU %d says %s", memory->budget.device, doing,
                     memory->gpu, pen_cuda_error_name(memory->driver, result));
}

pen_status pen_cuda_library_error(const pen_cuda_memory *memory, pen_status_code code,
                                  const char *library, const char *says, const char *doing) {
    static const char *const without = "`numerics: {libraries: none}` goes without it";
    const char *device = memory->budget.device;
    if (doing != NULL) {
        return pen_error(code, "device '%s': %s: %s of GPU %d says %s; %s", device, doing, library,
                         memory->gpu, says, without);
    }
    return pen_error(code,
                     "device '%s': while %s was opened: %s of GPU %d says %s; if its memory is "
                     "full, leave `reserve` for it",
                     device, library, library, memory->gpu, says);
}

pen_status pen_cuda_memory_enter(const pen_cuda_memory *memory) {
    return pen_cuda_check(memory, memory->driver->context_set(memory->context),
                          "while a thread begins to use it");
}

static pen_status memory_pin(const pen_cuda_memory *memory, size_t size, uint8_t **out_bytes) {
    void *bytes;
    PEN_TRY(pen_cuda_check(memory, memory->driver->host_allocate(&bytes, size, 0),
                           "while pinned memory was taken"));
    *out_bytes = bytes;
    return PEN_OK;
}

static pen_status memory_open_slots(const pen_cuda_memory *memory, pen_cuda_slot *slots,
                                    uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        PEN_TRY(memory_pin(memory, PEN_CUDA_SLOT_BYTES, &slots[i].bytes));
        PEN_TRY(pen_cuda_check(
            memory, memory->driver->event_create(&slots[i].event, PEN_CUDA_EVENT_NO_TIMING),
            "while an event was made"));
    }
    return PEN_OK;
}

static void memory_close_slots(const pen_cuda_driver *driver, const pen_cuda_slot *slots,
                               uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        if (slots[i].event != NULL) (void)driver->event_destroy(slots[i].event);
        if (slots[i].bytes != NULL) (void)driver->host_free(slots[i].bytes);
    }
}

// What was opened before an error is closed by pen_cuda_memory_close.
pen_status pen_cuda_memory_open(pen_cuda_memory *memory) {
    uint32_t count;
    PEN_TRY(pen_cuda_gpu_count(&count));
    if ((uint32_t)memory->gpu >= count) {
        return pen_error(PEN_UNSUPPORTED,
                         "device '%s': found no GPU %d, this machine has %u, from 0",
                         memory->budget.device, memory->gpu, count);
    }
    PEN_TRY(pen_cuda_driver_load(&memory->driver));
    PEN_TRY(pen_cuda_check(memory, memory->driver->device(&memory->handle, memory->gpu),
                           "while it was looked for"));
    PEN_TRY(pen_cuda_check(memory, memory->driver->context_retain(&memory->context, memory->handle),
                           "while its context was made"));
    PEN_TRY(pen_cuda_memory_enter(memory));
    PEN_TRY(pen_cuda_check(
        memory, memory->driver->stream_create(&memory->stream, PEN_CUDA_STREAM_NON_BLOCKING),
        "while a stream was made"));
    PEN_TRY(memory_pin(memory, PEN_CUDA_FETCH_BYTES, &memory->fetched));
    PEN_TRY(memory_open_slots(memory, memory->write_slots, PEN_CUDA_WRITE_SLOTS));
    return memory_open_slots(memory, memory->read_slots, PEN_CUDA_READ_SLOTS);
}

pen_status pen_cuda_memory_open_beside(pen_cuda_memory *memory) {
    PEN_ASSERT(memory->beside[0] == NULL);
    PEN_TRY(pen_cuda_memory_enter(memory));
    for (uint32_t i = 0; i < 2; i++) {
        PEN_TRY(pen_cuda_check(
            memory, memory->driver->stream_create(&memory->beside[i], PEN_CUDA_STREAM_NON_BLOCKING),
            "while a stream was made"));
    }
    return PEN_OK;
}

void pen_cuda_memory_rest(const pen_cuda_memory *memory) {
    (void)memory->driver->context_set(memory->context);
    if (memory->stream != NULL) (void)memory->driver->stream_wait(memory->stream);
    for (uint32_t i = 0; i < 2; i++)
        if (memory->beside[i] != NULL) (void)memory->driver->stream_wait(memory->beside[i]);
}

// What the driver says is not heard: after an error of a kernel, it says that of all.
void pen_cuda_memory_close(pen_cuda_memory *memory) {
    const pen_cuda_driver *driver = memory->driver;
    if (driver == NULL || memory->context == NULL) return;
    pen_cuda_memory_rest(memory);
    memory_close_slots(driver, memory->write_slots, PEN_CUDA_WRITE_SLOTS);
    memory_close_slots(driver, memory->read_slots, PEN_CUDA_READ_SLOTS);
    if (memory->fetched != NULL) (void)driver->host_free(memory->fetched);
    if (memory->stream != NULL) (void)driver->stream_destroy(memory->stream);
    for (uint32_t i = 0; i < 2; i++)
        if (memory->beside[i] != NULL) (void)driver->stream_destroy(memory->beside[i]);
    (void)driver->context_release(memory->handle);
    memory->driver = NULL;
}

pen_status pen_cuda_memory_wait(pen_cuda_memory *memory) {
    PEN_TRY(pen_cuda_check(memory, memory->driver->stream_wait(memory->stream),
                           "while its work was awaited"));
    for (uint32_t i = 0; i < memory->fetch_count; i++) {
        const pen_cuda_fetch *fetch = &memory->fetches[i];
        memcpy(fetch->host, memory->fetched + fetch->at, fetch->bytes);
    }
    memory->fetch_count = 0;
    memory->fetched_bytes = 0;
    return PEN_OK;
}

// ---- buffers

// It is zeros once the stream comes to it.
pen_status pen_cuda_buffer_create(pen_cuda_memory *memory, uint64_t bytes,
                                  pen_buffer **out_buffer) {
    PEN_TRY(pen_memory_budget_check(&memory->budget, bytes));
    PEN_TRY(pen_cuda_memory_enter(memory));
    cuda_buffer *buffer = pen_memory_allocate(1, sizeof *buffer);
    if (buffer == NULL) return pen_error_out_of_memory();
    if (bytes == 0) {
        *buffer = (cuda_buffer){.address = MEMORY_NOWHERE, .is_wrapped = true};
        *out_buffer = (pen_buffer *)buffer;
        return PEN_OK;
    }
    buffer->size = bytes;
    pen_status status =
        pen_cuda_check(memory, memory->driver->allocate(&buffer->address, (size_t)bytes),
                       "while memory was taken");
    if (status == PEN_OK) {
        status = pen_cuda_check(
            memory, memory->driver->fill(buffer->address, 0, (size_t)bytes, memory->stream),
            "while memory was set to zeros");
    }
    if (status != PEN_OK) {
        if (buffer->address != 0) (void)memory->driver->free(buffer->address);
        pen_memory_free(buffer);
        return status;
    }
    memory->budget.bytes_in_use += bytes;
    *out_buffer = (pen_buffer *)buffer;
    return PEN_OK;
}

// Work that uses it is awaited first.
void pen_cuda_buffer_destroy(pen_cuda_memory *memory, pen_buffer *handle) {
    cuda_buffer *buffer = (cuda_buffer *)handle;
    if (buffer == NULL) return;
    if (!buffer->is_wrapped) {
        pen_cuda_memory_rest(memory);
        (void)memory->driver->free(buffer->address);
        memory->budget.bytes_in_use -= buffer->size;
    }
    pen_memory_free(buffer);
}

pen_status pen_cuda_buffer_wrap(const pen_cuda_memory *memory, pen_memory_place place,
                                uint64_t bytes, pen_buffer **out_buffer) {
    if (place.domain != &memory->domain) {
        return pen_error(PEN_UNSUPPORTED, "memory of %s cannot be reached by device '%s'",
                         place.domain->name, memory->budget.device);
    }
    cuda_buffer *buffer = pen_memory_allocate(1, sizeof *buffer);
    if (buffer == NULL) return pen_error_out_of_memory();
    *buffer = (cuda_buffer){.address = place.offset, .size = bytes, .is_wrapped = true};
    *out_buffer = (pen_buffer *)buffer;
    return PEN_OK;
}

pen_cuda_address pen_cuda_address_of(pen_operand operand) {
    const cuda_buffer *buffer = (const cuda_buffer *)operand.buffer;
    return buffer == NULL ? 0 : buffer->address + operand.offset;
}

void pen_cuda_check_range(pen_operand operand, uint64_t bytes) {
    const cuda_buffer *buffer = (const cuda_buffer *)operand.buffer;
    PEN_ASSERT(buffer != NULL);
    PEN_ASSERT(operand.offset <= buffer->size && bytes <= buffer->size - operand.offset);
}

// ---- copies

// Waits until what the slot held is gone.
static pen_status memory_empty_slot(const pen_cuda_memory *memory, pen_cuda_slot *slot) {
    if (slot->is_used) {
        PEN_TRY(pen_cuda_check(memory, memory->driver->event_wait(slot->event),
                               "while a copy was awaited"));
    }
    slot->is_used = false;
    slot->end = 0;
    return PEN_OK;
}

static pen_status memory_mark_slot(const pen_cuda_memory *memory, pen_cuda_slot *slot) {
    slot->is_used = true;
    return pen_cuda_check(memory, memory->driver->event_record(slot->event, memory->stream),
                          "while a copy was marked");
}

// The slot that has room for so many bytes. One that is full is marked: it is free when all that
// was enqueued until then is done.
static pen_status memory_take_room(pen_cuda_memory *memory, size_t bytes,
                                   pen_cuda_slot **out_slot) {
    pen_cuda_slot *slot = &memory->write_slots[memory->write_turn % PEN_CUDA_WRITE_SLOTS];
    if (slot->end + bytes > PEN_CUDA_SLOT_BYTES) {
        PEN_TRY(memory_mark_slot(memory, slot));
        memory->write_turn += 1;
        slot = &memory->write_slots[memory->write_turn % PEN_CUDA_WRITE_SLOTS];
        PEN_TRY(memory_empty_slot(memory, slot));
    }
    *out_slot = slot;
    return PEN_OK;
}

pen_status pen_cuda_write_at(pen_cuda_memory *memory, pen_cuda_address to, const void *host,
                             uint64_t bytes) {
    PEN_TRY(pen_cuda_memory_enter(memory));
    for (uint64_t at = 0; at < bytes; at += PEN_CUDA_SLOT_BYTES) {
        const size_t piece = (size_t)pen_min_u64(bytes - at, PEN_CUDA_SLOT_BYTES);
        pen_cuda_slot *slot;
        PEN_TRY(memory_take_room(memory, piece, &slot));
        uint8_t *room = slot->bytes + slot->end;
        slot->end = pen_align_up(slot->end + piece, MEMORY_ALIGNMENT);
        memcpy(room, (const uint8_t *)host + at, piece);
        PEN_TRY(pen_cuda_check(memory, memory->driver->write(to + at, room, piece, memory->stream),
                               "while bytes were copied to it"));
    }
    return PEN_OK;
}

pen_status pen_cuda_write(pen_cuda_memory *memory, pen_operand to, const void *host,
                          uint64_t bytes) {
    pen_cuda_check_range(to, bytes);
    return pen_cuda_write_at(memory, pen_cuda_address_of(to), host, bytes);
}

// One piece is copied out of pinned memory while the next one comes.
pen_status pen_cuda_read(pen_cuda_memory *memory, pen_operand from, void *host, uint64_t bytes) {
    pen_cuda_slot *before = NULL;
    size_t piece_before = 0;
    uint8_t *to = host;
    pen_cuda_check_range(from, bytes);
    PEN_TRY(pen_cuda_memory_enter(memory));
    for (uint64_t at = 0; at < bytes || before != NULL; at += PEN_CUDA_SLOT_BYTES) {
        pen_cuda_slot *slot = NULL;
        size_t piece = 0;
        if (at < bytes) {
            piece = (size_t)pen_min_u64(bytes - at, PEN_CUDA_SLOT_BYTES);
            slot = &memory->read_slots[memory->read_turn++ % PEN_CUDA_READ_SLOTS];
            PEN_TRY(memory_empty_slot(memory, slot));
            PEN_TRY(pen_cuda_check(memory,
                                   memory->driver->read(slot->bytes, pen_cuda_address_of(from) + at,
                                                        piece, memory->stream),
                                   "while bytes were copied from it"));
            PEN_TRY(memory_mark_slot(memory, slot));
        }
        if (before != NULL) {
            PEN_TRY(pen_cuda_check(memory, memory->driver->event_wait(before->event),
                                   "while its work was awaited"));
            before->is_used = false;
            memcpy(to, before->bytes, piece_before);
            to += piece_before;
        }
        before = slot;
        piece_before = piece;
    }
    return PEN_OK;
}

pen_status pen_cuda_fetch_value(pen_cuda_memory *memory, pen_operand from, void *host,
                                uint64_t bytes) {
    pen_cuda_check_range(from, bytes);
    if (memory->fetch_count == PEN_CUDA_FETCHES ||
        bytes > PEN_CUDA_FETCH_BYTES - memory->fetched_bytes) {
        return pen_cuda_read(memory, from, host, bytes);
    }
    if (bytes == 0) return PEN_OK;
    const size_t at = memory->fetched_bytes;
    PEN_TRY(pen_cuda_memory_enter(memory));
    PEN_TRY(pen_cuda_check(memory,
                           memory->driver->read(memory->fetched + at, pen_cuda_address_of(from),
                                                (size_t)bytes, memory->stream),
                           "while bytes were copied from it"));
    memory->fetches[memory->fetch_count++] = (pen_cuda_fetch){host, at, (size_t)bytes};
    memory->fetched_bytes = pen_align_up(at + bytes, MEMORY_ALIGNMENT);
    return PEN_OK;
}
