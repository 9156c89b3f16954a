#include "tests/support/record_bytes.h"

#include "tests/support/check.h"
#include "tests/support/golden.h"

#define SHOWN_BYTES 160

void record_bytes_add(pen_text *text, const char *name, const void *bytes, uint64_t count) {
    const uint8_t *at = bytes;
    uint64_t hash = 0xcbf29ce484222325u; // FNV-1a
    for (uint64_t i = 0; i < count; i++) {
        hash = (hash ^ at[i]) * 0x100000001b3u;
    }
    pen_text_print(text, "%s: %llu bytes, %016llx", name, (unsigned long long)count,
                   (unsigned long long)hash);
    for (uint64_t i = 0; i < count && count <= SHOWN_BYTES; i++) {
        pen_text_print(text, i % 4 == 0 ? " %02x" : "%02x", at[i]);
    }
    pen_text_add(text, "\n");
}

void record_bytes_check(pen_text *text, const char *name) {
    const char *lines;
    CHECK_OK(pen_text_finish(text, &lines));
    check_golden(name, lines, __FILE__, __LINE__);
}
