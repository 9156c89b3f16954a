// Fuzzes the reader of a cache's manifest: what it takes has shapes whose sizes can be computed.
#include <string.h>

#include "scheduler/data/cache/array_cache.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    pen_arena *arena;
    pen_array_cache cache;
    if (!fuzz_works(pen_arena_create(&arena))) return 0;
    if (fuzz_reads(pen_array_cache_parse("fuzz", data, size, "request", arena, &cache))) {
        fuzz_must(cache.row_count > 0 && cache.field_count > 0);
        fuzz_must(cache.field_count <= PEN_CACHE_FIELDS_LIMIT);
        for (uint32_t i = 0; i < cache.field_count; i++) {
            uint64_t count = 1;
            fuzz_must(strlen(cache.fields[i].name) < size);
            for (uint32_t d = 0; d < cache.fields[i].rank; d++) {
                fuzz_must(cache.fields[i].shape[d] > 0);
                count *= (uint64_t)cache.fields[i].shape[d];
                fuzz_must(count <= PEN_TENSOR_BYTES_LIMIT);
            }
        }
    }
    pen_arena_destroy(arena);
    return 0;
}
