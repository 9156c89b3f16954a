// Fuzzes the reader of run tables: any bytes give a table within its ranges that reads back the
// same from what is written of it, or an error with a message.
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "scheduler/protocol/run_table_wire.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    pen_arena *arena;
    const pen_run_table *table, *read;
    const void *bytes, *again;
    uint64_t count, again_count;
    if (pen_arena_create(&arena) != PEN_OK) abort();
    const pen_status status = pen_run_table_decode(data, size, arena, &table);
    if (status == PEN_OK) {
        if (pen_run_table_encode(table, arena, &bytes, &count) != PEN_OK) abort();
        if (pen_run_table_decode(bytes, count, arena, &read) != PEN_OK) abort();
        if (pen_run_table_encode(read, arena, &again, &again_count) != PEN_OK) abort();
        if (count != again_count || memcmp(bytes, again, count) != 0) abort();
    } else {
        char text[256];
        if (pen_status_format(status, text, sizeof text) == 0) abort();
        pen_status_ignore(status, "most inputs are wrong");
    }
    pen_arena_destroy(arena);
    return 0;
}
