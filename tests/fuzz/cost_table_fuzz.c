// Fuzzes the reader and the writer of cost tables: any bytes give a table or an error with a
// message, and a table that was read is written as a text that reads back to the same text.
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/status.h"
#include "partition/cost_table.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void write_and_read(const pen_cost_table *table, pen_arena *arena) {
    const char *first, *second;
    pen_cost_table *again;
    if (pen_cost_table_format(table, arena, &first) != PEN_OK) abort();
    if (pen_cost_table_parse("fuzz/own.yaml", first, strlen(first), arena, &again) != PEN_OK) {
        abort();
    }
    if (pen_cost_table_format(again, arena, &second) != PEN_OK) abort();
    if (strcmp(first, second) != 0) abort();
    if (pen_cost_table_count(again) != pen_cost_table_count(table)) abort();
    for (uint32_t i = 0; i < pen_cost_table_count(table); i++) {
        const pen_cost_entry *entry = pen_cost_table_at(table, i);
        if (pen_cost_table_find(again, entry->op, entry->shape, entry->kind, entry->threads) ==
            NULL) {
            abort();
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    pen_arena *arena = NULL;
    if (pen_arena_create(&arena) != PEN_OK) return 0;
    pen_cost_table *table = NULL;
    const pen_status status =
        pen_cost_table_parse("fuzz/costs.yaml", (const char *)data, size, arena, &table);
    if (status == PEN_OK) {
        write_and_read(table, arena);
    } else {
        char text[256];
        if (pen_status_format(status, text, sizeof text) == 0) abort();
    }
    pen_status_ignore(status, "any input may be wrong");
    pen_arena_destroy(arena);
    return 0;
}
