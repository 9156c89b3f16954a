// Fuzzes the reader and the writer of cost tables: any bytes give a table or an error with a
// message, and a table that was read is written as a text that reads back to the same text.
#include <string.h>

#include "partition/costs/cost_table.h"
#include "partition/costs/cost_table_file.h"
#include "tests/fuzz/fuzz.h"

static void write_and_read(const pen_cost_table *table, pen_arena *arena) {
    const char *first, *second;
    pen_cost_table *again;
    if (!fuzz_works(pen_cost_table_format(table, arena, &first))) return;
    if (!fuzz_works(pen_cost_table_parse("fuzz/own.yaml", first, strlen(first), arena, &again))) {
        return;
    }
    if (!fuzz_works(pen_cost_table_format(again, arena, &second))) return;
    fuzz_must(strcmp(first, second) == 0);
    fuzz_must(pen_cost_table_count(again) == pen_cost_table_count(table));
    for (uint32_t i = 0; i < pen_cost_table_count(table); i++) {
        const pen_cost_entry *entry = pen_cost_table_at(table, i);
        fuzz_must(pen_cost_table_find_at(again, entry->host, entry->op, entry->shape, entry->kind,
                                         entry->threads) != NULL);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    pen_arena *arena;
    pen_cost_table *table = NULL;
    if (!fuzz_works(pen_arena_create(&arena))) return 0;
    if (fuzz_reads(
            pen_cost_table_parse("fuzz/costs.yaml", (const char *)data, size, arena, &table))) {
        write_and_read(table, arena);
    }
    pen_arena_destroy(arena);
    return 0;
}
