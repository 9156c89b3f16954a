#include <string.h>

#include "base/text.h"
#include "device/cpu/cpu_device.h"
#include "device/cuda/cuda_device.h"
#include "device/device.h"
#include "device/reference/reference_device.h"

static const pen_device_kind *const device_kinds[] = {
    &pen_cpu_device_kind,
    &pen_reference_device_kind,
    &pen_cuda_device_kind,
};

uint32_t pen_device_kind_count(void) {
    return sizeof device_kinds / sizeof *device_kinds;
}

const pen_device_kind *pen_device_kind_at(uint32_t index) {
    PEN_ASSERT(index < pen_device_kind_count());
    return device_kinds[index];
}

static pen_status device_kind_unknown(const char *name, pen_arena *arena) {
    const char *names[sizeof device_kinds / sizeof *device_kinds];
    for (uint32_t i = 0; i < pen_device_kind_count(); i++) {
        names[i] = device_kinds[i]->name;
    }
    pen_text text;
    const char *list;
    pen_text_init(&text, arena);
    pen_text_add_names(&text, name, names, pen_device_kind_count(), 10);
    PEN_TRY(pen_text_finish(&text, &list));
    return pen_error(PEN_NOT_FOUND, "no kind of device is called '%s'; there are %s", name, list);
}

// NULL: there is none.
static const pen_device_kind *device_kind_called(const char *name) {
    for (uint32_t i = 0; i < pen_device_kind_count(); i++) {
        if (strcmp(device_kinds[i]->name, name) == 0) return device_kinds[i];
    }
    return NULL;
}

bool pen_device_kind_has_own_memory(const char *name) {
    const pen_device_kind *kind = device_kind_called(name);
    return kind != NULL && kind->has_own_memory;
}

const char *pen_device_lacks(pen_device *device) {
    return device->kind->lacks == NULL ? NULL : device->kind->lacks(device);
}

uint64_t pen_device_own_bytes(pen_device *device) {
    return device->kind->own_bytes == NULL ? 0 : device->kind->own_bytes(device);
}

pen_status pen_device_pinned_bytes(pen_device *device, const pen_graph *graph,
                                   const pen_node_id *order, uint32_t order_count,
                                   uint64_t *out_bytes) {
    *out_bytes = 0;
    if (device->kind->pinned_bytes == NULL) return PEN_OK;
    return device->kind->pinned_bytes(device, graph, order, order_count, out_bytes);
}

bool pen_device_kind_can(const pen_device_kind *kind, pen_precision precision) {
    return precision == PEN_PRECISION_FLOAT32 ||
           (kind->precisions & PEN_PRECISION_BIT(precision)) != 0;
}

pen_status pen_device_kind_find(const char *name, const pen_device_kind **out_kind) {
    *out_kind = device_kind_called(name);
    if (*out_kind != NULL) return PEN_OK;
    pen_arena *arena;
    PEN_TRY(pen_arena_create(&arena));
    const pen_status status = device_kind_unknown(name, arena);
    pen_arena_destroy(arena);
    return status;
}
