// Fuzzes the readers of figures that workers send: any bytes give figures or an error, and figures
// that were read are written as they were.
#include <string.h>

#include "scheduler/runtime/run/run_wire.h"
#include "tests/fuzz/fuzz.h"

static void read_rounds(const uint8_t *data, size_t size) {
    uint32_t count = 0;
    if (!fuzz_reads(pen_round_figures_count(size, &count))) return;
    for (uint32_t i = 0; i < count; i++) {
        unsigned char again[PEN_ROUND_FIGURES_BYTES];
        const pen_round_figures figures = pen_round_figures_decode(data, i);
        pen_round_figures_encode(&figures, 1, again);
        fuzz_must(memcmp(again, data + (size_t)i * sizeof again, sizeof again) == 0);
    }
}

static void read_run(const uint8_t *data, size_t size, pen_arena *arena) {
    pen_run_inquiry_figures figures;
    const pen_run_device_figures *devices;
    uint32_t count;
    const void *again;
    uint64_t again_count;
    if (!fuzz_reads(pen_run_figures_decode(data, size, arena, &figures, &devices, &count))) return;
    if (!fuzz_works(pen_run_figures_encode(&figures, devices, count, arena, &again, &again_count)))
        return;
    fuzz_must(again_count == size && memcmp(again, data, size) == 0);
}

static void read_sent(const uint8_t *data, size_t size, pen_arena *arena) {
    const pen_run_sent *sent;
    uint32_t count;
    const void *again;
    uint64_t again_count;
    if (!fuzz_reads(pen_run_sent_decode(data, size, arena, &sent, &count))) return;
    if (!fuzz_works(pen_run_sent_encode(sent, count, arena, &again, &again_count))) return;
    fuzz_must(again_count == size && memcmp(again, data, size) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    pen_arena *arena;
    read_rounds(data, size);
    if (!fuzz_works(pen_arena_create(&arena))) return 0;
    read_run(data, size, arena);
    read_sent(data, size, arena);
    pen_arena_destroy(arena);
    return 0;
}
