#include "device/host_buffer.h"

#include <string.h>
#include <sys/mman.h>

#include "base/memory.h"

pen_status pen_host_buffer_allocate(void *context, pen_host_buffer *buffer) {
    (void)context;
    buffer->bytes = pen_memory_allocate(buffer->size == 0 ? 1 : buffer->size, 1);
    return buffer->bytes == NULL ? pen_error_out_of_memory() : PEN_OK;
}

pen_status pen_host_buffer_create(pen_memory_budget *budget, uint64_t bytes,
                                  pen_host_buffer_fill fill, void *context,
                                  pen_buffer **out_buffer) {
    PEN_TRY(pen_memory_budget_check(budget, bytes));
    pen_host_buffer *buffer = pen_memory_allocate(1, sizeof *buffer);
    if (buffer == NULL) return pen_error_out_of_memory();
    *buffer = (pen_host_buffer){.size = bytes};
    const pen_status status = fill(context, buffer);
    if (status != PEN_OK) {
        pen_memory_free(buffer);
        return status;
    }
    budget->bytes_in_use += bytes;
    *out_buffer = (pen_buffer *)buffer;
    return PEN_OK;
}

void pen_host_buffer_destroy(pen_memory_budget *budget, pen_buffer *handle) {
    pen_host_buffer *buffer = (pen_host_buffer *)handle;
    if (buffer == NULL) return;
    if (!buffer->is_wrapped) {
        budget->bytes_in_use -= buffer->size;
        if (buffer->mapping != NULL) {
            munmap(buffer->mapping, buffer->mapping_size);
        } else {
            pen_memory_free(buffer->bytes);
        }
    }
    pen_memory_free(buffer);
}

pen_status pen_host_buffer_wrap(pen_device *device, pen_memory_place place, uint64_t bytes,
                                pen_buffer **out_buffer) {
    void *host;
    (void)device;
    PEN_TRY(pen_memory_place_reach(place, &host));
    pen_host_buffer *buffer = pen_memory_allocate(1, sizeof *buffer);
    if (buffer == NULL) return pen_error_out_of_memory();
    *buffer = (pen_host_buffer){.bytes = host, .size = bytes, .is_wrapped = true};
    *out_buffer = (pen_buffer *)buffer;
    return PEN_OK;
}

void *pen_host_buffer_address(pen_operand operand) {
    const pen_host_buffer *buffer = (const pen_host_buffer *)operand.buffer;
    return buffer == NULL ? NULL : buffer->bytes + operand.offset;
}

pen_memory_place pen_host_buffer_place(pen_device *device, pen_operand operand) {
    (void)device;
    return pen_memory_place_at(pen_host_buffer_address(operand));
}

static void *host_buffer_range(pen_operand operand, uint64_t bytes) {
    const pen_host_buffer *buffer = (const pen_host_buffer *)operand.buffer;
    PEN_ASSERT(buffer != NULL);
    PEN_ASSERT(operand.offset <= buffer->size && bytes <= buffer->size - operand.offset);
    return buffer->bytes + operand.offset;
}

pen_status pen_host_buffer_write(pen_device *device, pen_operand to, const void *host,
                                 uint64_t bytes) {
    (void)device;
    void *address = host_buffer_range(to, bytes);
    if (bytes > 0) memcpy(address, host, bytes);
    return PEN_OK;
}

pen_status pen_host_buffer_read(pen_device *device, pen_operand from, void *host, uint64_t bytes) {
    (void)device;
    const void *address = host_buffer_range(from, bytes);
    if (bytes > 0) memcpy(host, address, bytes);
    return PEN_OK;
}

pen_status pen_host_buffer_synchronize(pen_device *device) {
    (void)device;
    return PEN_OK;
}
