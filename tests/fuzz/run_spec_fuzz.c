// Fuzzes the reader of what workers are told of a run: any bytes give a description or an error
// with a message.
#include "scheduler/runtime/run/run_spec.h"
#include "scheduler/runtime/run/run_spec_wire.h"
#include "tests/fuzz/fuzz.h"

// Whether the parts of all devices of a worker are there: what was told to another has none.
static bool has_parts(const pen_run_spec *spec, uint32_t worker) {
    for (uint32_t f = 0; f < spec->table->form_count; f++) {
        for (uint32_t d = 0; d < spec->table->device_count; d++) {
            if (spec->table->forms[f].devices[d].worker != worker) continue;
            if (spec->forms[f].parts[d].part == NULL) return false;
        }
    }
    return true;
}

static void write_again(const pen_run_spec *spec, pen_arena *arena) {
    for (uint32_t w = 1; w <= spec->table->worker_count && w <= 4; w++) {
        const void *bytes;
        uint64_t byte_count;
        const pen_run_spec *read;
        if (!has_parts(spec, w)) continue;
        if (!fuzz_works(pen_run_spec_encode(spec, w, arena, &bytes, &byte_count))) return;
        if (!fuzz_works(pen_run_spec_decode(bytes, byte_count, arena, &read))) return;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    pen_arena *arena;
    const pen_run_spec *spec;
    if (!fuzz_works(pen_arena_create(&arena))) return 0;
    if (fuzz_reads(pen_run_spec_decode(data, size, arena, &spec))) write_again(spec, arena);
    pen_arena_destroy(arena);
    return 0;
}
