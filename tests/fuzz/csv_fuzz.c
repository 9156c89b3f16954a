// Fuzzes the reader of tables. The first byte chooses the options.
#include <math.h>

#include "scheduler/data/csv_reader.h"
#include "tests/fuzz/fuzz.h"

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
    if (!fuzz_works(pen_arena_create(&arena))) return 0;
    if (fuzz_reads(pen_csv_read(data + 1, size - 1, "fuzz", &options, arena, &table))) {
        fuzz_must(table.row_count > 0 && table.column_count > 0);
        for (uint64_t i = 0; i < table.row_count * table.column_count; i++) {
            fuzz_must(isfinite(table.values[i]));
        }
    }
    pen_csv_table_free(&table);
    pen_arena_destroy(arena);
    return 0;
}
