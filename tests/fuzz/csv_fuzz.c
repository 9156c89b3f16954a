// Fuzzes the reader of tables. The first byte chooses the options.
#include <math.h>

#include "scheduler/data/csv/csv_reader.h"
#include "scheduler/data/csv/csv_weights.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const char *const columns[] = {NULL, "0", "-1", "label"};
    static const char delimiters[] = {0, ';', '\t', ' '};
    if (size == 0) return 0;
    const pen_dataset_options options = {
        .header = (pen_dataset_header)(data[0] % 3),
        .label_column = columns[data[0] / 3 % 4],
        .delimiter = delimiters[data[0] / 12 % 4],
        .categories = (pen_dataset_categories)(data[0] / 48 % 3),
        .unknown_is_own = data[0] % 2 == 1,
        .missing = (pen_dataset_missing)(data[0] / 3 % 3),
        .words_path = "known",
    };
    pen_arena *arena;
    pen_csv_table table;
    if (!fuzz_works(pen_arena_create(&arena))) return 0;
    if (fuzz_reads(pen_csv_read(&(pen_csv_text){data + 1, size - 1, "fuzz"}, &options, NULL, arena,
                                &table))) {
        fuzz_must(table.row_count > 0 && table.column_count > 0);
        for (uint64_t i = 0; i < table.row_count * table.column_count; i++) {
            fuzz_must(isfinite(table.values[i]));
        }
    }
    pen_csv_table_free(&table);
    // the second half by the words of the first
    pen_csv_columns known;
    const size_t half = (size - 1) / 2;
    if (fuzz_reads(pen_csv_read_columns(&(pen_csv_text){data + 1, half, "known"}, &options, arena,
                                        &known)) &&
        fuzz_reads(pen_csv_read(&(pen_csv_text){data + 1 + half, size - 1 - half, "fuzz"}, &options,
                                &known, arena, &table))) {
        fuzz_must(table.row_count > 0);
    }
    pen_csv_table_free(&table);
    // as names and weights
    pen_csv_weights weights;
    if (fuzz_reads(
            pen_csv_weights_read(&(pen_csv_text){data + 1, size - 1, "fuzz"}, arena, &weights))) {
        for (uint64_t i = 0; i < weights.count; i++) {
            const pen_csv_weight *item = &weights.items[i];
            fuzz_must(item->weight >= 0 && isfinite(item->weight) && item->name[0] != '\0');
            fuzz_must(pen_csv_weights_find(&weights, item->name) == item);
        }
    }
    pen_arena_destroy(arena);
    return 0;
}
