// Fuzzes the reader of PostgreSQL's binary values. The first byte chooses the type.
#include "base/memory.h"
#include "scheduler/data/sql/postgres_value.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const uint32_t types[] = {16,   17,   20,   21,   23,   700, 701,
                                     1000, 1005, 1007, 1016, 1021, 1022};
    pen_postgres_scratch scratch = {0};
    pen_sql_value value;
    if (size == 0) return 0;
    const pen_postgres_type *type =
        pen_postgres_type_find(types[data[0] % (sizeof types / sizeof *types)]);
    fuzz_must(type != NULL && type->cast[0] == '\0');
    if (fuzz_reads(pen_postgres_value_read(type, data + 1, size - 1, &scratch, &value))) {
        uint64_t bytes = 0;
        for (uint64_t i = 0; i < value.bytes; i++)
            bytes += ((const uint8_t *)value.data)[i]; // all of it may be read
        fuzz_must(bytes <= value.bytes * 255 && value.rank <= PEN_RANK_LIMIT);
        bytes = value.kind == PEN_SQL_BYTES ? value.bytes : pen_npy_element_bytes(value.element);
        for (uint32_t d = 0; d < value.rank; d++)
            bytes *= (uint64_t)value.shape[d];
        fuzz_must(bytes == value.bytes);
    }
    pen_memory_free(scratch.memory);
    return 0;
}
