// Fuzzes the readers of texts and of files of tokens: the first byte says which, and of what
// element, the rest is the file.
#include "base/memory.h"
#include "scheduler/data/token_source.h"
#include "tests/fuzz/fuzz.h"

#define FUZZ_TOKENS_LIMIT 4096

static void fuzz_copy_ends(const pen_token_source *source) {
    static int64_t tokens[FUZZ_TOKENS_LIMIT];
    const uint64_t count = source->count < FUZZ_TOKENS_LIMIT ? source->count : FUZZ_TOKENS_LIMIT;
    const uint64_t firsts[2] = {0, source->count - count};
    for (int i = 0; i < 2; i++) {
        if (!fuzz_reads(pen_token_source_copy(source, firsts[i], count, tokens))) continue;
        for (uint64_t t = 0; t < count; t++)
            fuzz_must(tokens[t] >= 0);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    pen_token_source source;
    void *inflated = NULL;
    if (size == 0) return 0;
    const uint32_t choice = data[0] % (PEN_TOKEN_INT64 + 2);
    if (choice <= PEN_TOKEN_INT64) {
        if (fuzz_reads(pen_token_source_read_tokens(data + 1, size - 1, "fuzz",
                                                    (pen_token_element)choice, &source))) {
            fuzz_copy_ends(&source);
        }
    } else if (fuzz_reads(
                   pen_token_source_read_text(data + 1, size - 1, "fuzz", &source, &inflated))) {
        fuzz_copy_ends(&source);
    }
    pen_memory_free(inflated);
    return 0;
}
