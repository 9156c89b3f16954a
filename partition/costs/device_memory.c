#include "partition/costs/device_memory.h"

#include <stddef.h>

#include "base/text.h"

#define DEVICE_MEMORY_KIND(member, text)                                                           \
    { #member, text, offsetof(pen_device_memory, member) }

const pen_device_memory_kind pen_device_memory_kinds[PEN_DEVICE_MEMORY_KINDS] = {
    DEVICE_MEMORY_KIND(parameters, "parameters"),
    DEVICE_MEMORY_KIND(gradients, "gradients"),
    DEVICE_MEMORY_KIND(optimizer_state, "optimizer state"),
    DEVICE_MEMORY_KIND(activations, "activations"),
    DEVICE_MEMORY_KIND(receive_buffers, "receive buffers"),
    DEVICE_MEMORY_KIND(workspace, "workspace"),
    DEVICE_MEMORY_KIND(saved, "copies for checkpoints"),
};

uint64_t pen_device_memory_at(const pen_device_memory *memory, uint32_t kind) {
    const char *start = (const char *)memory + pen_device_memory_kinds[kind].offset;
    return *(const uint64_t *)(const void *)start;
}

double pen_device_memory_sum(const pen_device_memory *memory) {
    double sum = 0.0;
    for (uint32_t k = 0; k < PEN_DEVICE_MEMORY_KINDS; k++)
        sum += (double)pen_device_memory_at(memory, k);
    return sum;
}

pen_status pen_device_memory_format(const pen_device_memory *memory, pen_arena *arena,
                                    const char **out_text) {
    pen_text text;
    const char *separator = "";
    pen_text_init(&text, arena);
    for (uint32_t k = 0; k < PEN_DEVICE_MEMORY_KINDS; k++) {
        char bytes[PEN_QUANTITY_TEXT_BYTES];
        const uint64_t taken = pen_device_memory_at(memory, k);
        if (taken == 0) continue;
        pen_text_print(&text, "%s%s %s", separator, pen_device_memory_kinds[k].name,
                       pen_bytes_format(taken, bytes));
        separator = ", ";
    }
    if (separator[0] == '\0') pen_text_add(&text, "nothing");
    return pen_text_finish(&text, out_text);
}

void pen_device_memory_write_json(const pen_device_memory *memory, pen_json_writer *json) {
    pen_json_begin_object(json);
    for (uint32_t k = 0; k < PEN_DEVICE_MEMORY_KINDS; k++)
        pen_json_key_unsigned(json, pen_device_memory_kinds[k].key,
                              pen_device_memory_at(memory, k));
    pen_json_key_unsigned(json, "total", memory->total);
    pen_json_end_object(json);
}
