// Fuzzes the reader of gzip data. The first byte says how much is read at a time. However much that
// is, the same bytes come of it, and never more than may be made of so few.
#include <string.h>

#include "base/format/unpack.h"
#include "scheduler/data/gzip_reader.h"
#include "tests/fuzz/fuzz.h"

#define FUZZ_MADE_LIMIT ((uint64_t)1 << 16) // more is slow, and no different

// How it ended, what came before that, and a sum of it.
typedef struct fuzz_made {
    bool is_whole;
    uint64_t count;
    uint64_t sum;
} fuzz_made;

static bool make(const uint8_t *data, size_t size, size_t step, fuzz_made *made) {
    static uint8_t bytes[1 << 16];
    pen_gzip_reader *reader;
    size_t count = step;
    *made = (fuzz_made){.is_whole = true};
    if (!fuzz_works(pen_gzip_reader_open(data, size, "fuzz", &reader))) return false;
    while (made->is_whole && count == step && made->count < FUZZ_MADE_LIMIT) {
        made->is_whole = fuzz_reads(pen_gzip_reader_read(reader, bytes, step, &count));
        if (!made->is_whole) break;
        fuzz_must(count <= step);
        for (size_t i = 0; i < count; i++)
            made->sum = made->sum * 31 + bytes[i];
        made->count += count;
    }
    fuzz_must(made->count <= pen_unpack_limit(size));
    pen_gzip_reader_close(reader);
    return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    fuzz_made whole, pieces;
    if (size < 1) return 0;
    if (!make(data + 1, size - 1, 1 << 16, &whole)) return 0;
    if (whole.count >= FUZZ_MADE_LIMIT || !make(data + 1, size - 1, data[0] + 1u, &pieces))
        return 0;
    if (fuzz_memory_fails || pieces.count >= FUZZ_MADE_LIMIT) return 0;
    fuzz_must(whole.is_whole == pieces.is_whole);
    if (whole.is_whole) fuzz_must(whole.count == pieces.count && whole.sum == pieces.sum);
    return 0;
}
