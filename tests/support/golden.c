#include "tests/support/golden.h"

#include "tests/support/check.h"

#include "base/system/file.h"

#define GOLDEN_BYTES_LIMIT (16u << 20)

void check_golden(const char *name, const char *text, const char *file, int line) {
    char path[256];
    snprintf(path, sizeof path, "tests/golden/%s", name);
    if (getenv("PEN_GOLDEN") != NULL) {
        check_ok(pen_file_write_text(path, text), "pen_file_write_text", file, line);
        return;
    }
    pen_arena *arena = check_arena();
    const char *expected;
    size_t length;
    check_ok(pen_file_read(path, GOLDEN_BYTES_LIMIT, arena, &expected, &length), "pen_file_read",
             file, line);
    size_t at = 0;
    size_t line_start = 0;
    unsigned line_number = 1;
    while (text[at] != '\0' && text[at] == expected[at]) {
        if (text[at] == '\n') {
            line_number += 1;
            line_start = at + 1;
        }
        at += 1;
    }
    if (text[at] != expected[at]) {
        print_error("%s:%u differs\nfound    %.*s\nexpected %.*s\n", path, line_number,
                    (int)strcspn(text + line_start, "\n"), text + line_start,
                    (int)strcspn(expected + line_start, "\n"), expected + line_start);
        pen_arena_destroy(arena);
        _fail(file, line);
    }
    pen_arena_destroy(arena);
}
