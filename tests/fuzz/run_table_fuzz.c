// Fuzzes the reader of run tables: any bytes give a table within its ranges that reads back the
// same from what is written of it, or an error with a message.
#include <string.h>

#include "scheduler/protocol/run_table_wire.h"
#include "tests/fuzz/fuzz.h"

static void write_again(const pen_run_table *table, pen_arena *arena) {
    const pen_run_table *read;
    const void *bytes, *again;
    uint64_t count, again_count;
    if (!fuzz_works(pen_run_table_encode(table, arena, &bytes, &count))) return;
    if (!fuzz_works(pen_run_table_decode(bytes, count, arena, &read))) return;
    if (!fuzz_works(pen_run_table_encode(read, arena, &again, &again_count))) return;
    fuzz_must(count == again_count && memcmp(bytes, again, count) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    pen_arena *arena;
    const pen_run_table *table;
    if (!fuzz_works(pen_arena_create(&arena))) return 0;
    if (fuzz_reads(pen_run_table_decode(data, size, arena, &table))) write_again(table, arena);
    pen_arena_destroy(arena);
    return 0;
}
