// Fuzzes the reader of parts: any bytes give a part whose graph is sound, and that reads back the
// same from what is written of it, or an error with a message.
#include <string.h>

#include "graph/verify.h"
#include "graph/wire/part_wire.h"
#include "tests/fuzz/fuzz.h"

static void write_again(const pen_wired_part *part, pen_arena *arena) {
    const pen_wired_part *read;
    const void *bytes, *again;
    uint64_t count, again_count;
    const pen_verify_options options = {.types = true};
    if (!fuzz_works(pen_graph_verify(part->part.graph, &options))) return;
    if (!fuzz_works(pen_part_encode(part, arena, &bytes, &count))) return;
    if (!fuzz_works(pen_part_decode(bytes, count, arena, &read))) return;
    if (!fuzz_works(pen_part_encode(read, arena, &again, &again_count))) return;
    fuzz_must(count == again_count && memcmp(bytes, again, count) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    pen_arena *arena;
    const pen_wired_part *part;
    if (!fuzz_works(pen_arena_create(&arena))) return 0;
    const pen_status status = pen_part_decode(data, size, arena, &part);
    const pen_status_code code = pen_status_get_code(status);
    fuzz_must(code == PEN_CODE_OK || code == PEN_CORRUPT || code == PEN_OUT_OF_MEMORY);
    if (fuzz_reads(status)) write_again(part, arena);
    pen_arena_destroy(arena);
    return 0;
}
