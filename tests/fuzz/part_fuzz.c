// Fuzzes the reader of parts: any bytes give a part whose graph is sound, and that reads back the
// same from what is written of it, or an error with a message.
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "graph/verify.h"
#include "graph/wire/part_wire.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void write_again(const pen_wired_part *part, pen_arena *arena) {
    const pen_wired_part *read;
    const void *bytes, *again;
    uint64_t count, again_count;
    const pen_verify_options options = {.types = true};
    if (pen_graph_verify(part->part.graph, &options) != PEN_OK) abort();
    if (pen_part_encode(part, arena, &bytes, &count) != PEN_OK) abort();
    if (pen_part_decode(bytes, count, arena, &read) != PEN_OK) abort();
    if (pen_part_encode(read, arena, &again, &again_count) != PEN_OK) abort();
    if (count != again_count || memcmp(bytes, again, count) != 0) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    pen_arena *arena;
    const pen_wired_part *part;
    if (pen_arena_create(&arena) != PEN_OK) abort();
    const pen_status status = pen_part_decode(data, size, arena, &part);
    if (status == PEN_OK) {
        write_again(part, arena);
    } else {
        char text[256];
        if (pen_status_get_code(status) != PEN_CORRUPT) abort();
        if (pen_status_format(status, text, sizeof text) == 0) abort();
        pen_status_ignore(status, "most inputs are wrong");
    }
    pen_arena_destroy(arena);
    return 0;
}
