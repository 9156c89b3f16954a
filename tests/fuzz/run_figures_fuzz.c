// Fuzzes the readers of figures that workers send: any bytes give figures or an error, and figures
// that were read are written as they were.
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "scheduler/runtime/run_wire.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_rounds(const uint8_t *data, size_t size) {
    uint32_t count = 0;
    const pen_status status = pen_round_figures_count(size, &count);
    if (status != PEN_OK) {
        pen_status_ignore(status, "most lengths are wrong");
        return;
    }
    for (uint32_t i = 0; i < count; i++) {
        unsigned char again[PEN_ROUND_FIGURES_BYTES];
        const pen_round_figures figures = pen_round_figures_decode(data, i);
        pen_round_figures_encode(&figures, 1, again);
        if (memcmp(again, data + (size_t)i * sizeof again, sizeof again) != 0) abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    pen_arena *arena;
    pen_run_inquiry_figures figures;
    const pen_run_device_figures *devices;
    uint32_t count;
    const void *again;
    uint64_t again_count;
    read_rounds(data, size);
    if (pen_arena_create(&arena) != PEN_OK) abort();
    const pen_status status = pen_run_figures_decode(data, size, arena, &figures, &devices, &count);
    if (status == PEN_OK) {
        if (pen_run_figures_encode(&figures, devices, count, arena, &again, &again_count) !=
            PEN_OK) {
            abort();
        }
        if (again_count != size || memcmp(again, data, size) != 0) abort();
    } else {
        pen_status_ignore(status, "most inputs are wrong");
    }
    pen_arena_destroy(arena);
    return 0;
}
