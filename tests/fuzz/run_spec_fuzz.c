// Fuzzes the reader of what workers are told of a run: any bytes give a description or an error
// with a message.
#include <stdint.h>
#include <stdlib.h>

#include "scheduler/runtime/run_spec.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

// Whether the parts of all devices of a worker are there: what was told to another has none.
static int has_parts(const pen_run_spec *spec, uint32_t worker) {
    for (uint32_t f = 0; f < spec->table->form_count; f++) {
        for (uint32_t d = 0; d < spec->table->device_count; d++) {
            if (spec->table->forms[f].devices[d].worker != worker) continue;
            if (spec->forms[f].parts[d].part == NULL) return 0;
        }
    }
    return 1;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    pen_arena *arena;
    const pen_run_spec *spec;
    if (pen_arena_create(&arena) != PEN_OK) abort();
    const pen_status status = pen_run_spec_decode(data, size, arena, &spec);
    if (status == PEN_OK) {
        for (uint32_t w = 1; w <= spec->table->worker_count && w <= 4; w++) {
            const void *bytes;
            uint64_t byte_count;
            const pen_run_spec *read;
            if (!has_parts(spec, w)) continue;
            if (pen_run_spec_encode(spec, w, arena, &bytes, &byte_count) != PEN_OK) abort();
            if (pen_run_spec_decode(bytes, byte_count, arena, &read) != PEN_OK) abort();
        }
    } else {
        char text[256];
        if (pen_status_format(status, text, sizeof text) == 0) abort();
        pen_status_ignore(status, "most inputs are wrong");
    }
    pen_arena_destroy(arena);
    return 0;
}
