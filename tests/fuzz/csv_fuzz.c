// libFuzzer: tables. The first byte chooses the options.
#include <math.h>
#include <stdlib.h>

#include "scheduler/training/csv_reader.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const char *const columns[] = {NULL, "0", "-1", "label"};
    static const char delimiters[] = {0, ';', '\t', ' '};
    if (size == 0) return 0;
    const pen_dataset_options options = {
        .header = (pen_dataset_header)(data[0] % 3),
        .label_column = columns[data[0] / 3 % 4],
        .delimiter = delimiters[data[0] / 12 % 4],
    };
    pen_arena *arena;
    pen_csv_table table;
    if (pen_arena_create(&arena) != PEN_OK) abort();
    const pen_status status = pen_csv_read(data + 1, size - 1, "fuzz", &options, arena, &table);
    if (status == PEN_OK) {
        if (table.row_count == 0 || table.column_count == 0) abort();
        for (uint64_t i = 0; i < table.row_count * table.column_count; i++) {
            if (!isfinite(table.values[i])) abort();
        }
    }
    pen_status_ignore(status, "most inputs are wrong");
    pen_csv_table_free(&table);
    pen_arena_destroy(arena);
    return 0;
}
