#include "tests/fuzz/fuzz.h"

#include <stdio.h>
#include <stdlib.h>

bool fuzz_memory_fails;
pen_status_code fuzz_outcome;

void fuzz_must(bool holds) {
    if (!holds) abort();
}

static void fuzz_note(pen_status status) {
    if (fuzz_outcome == PEN_CODE_OK) fuzz_outcome = pen_status_get_code(status);
}

bool fuzz_reads(pen_status status) {
    char text[256];
    if (status == PEN_OK) return true;
    fuzz_note(status);
    fuzz_must(pen_status_format(status, text, sizeof text) > 0);
    if (pen_status_get_code(status) == PEN_INTERNAL) {
        fputs(text, stderr);
        abort();
    }
    pen_status_ignore(status, "most inputs are wrong");
    return false;
}

bool fuzz_works(pen_status status) {
    char text[1024];
    if (status == PEN_OK) return true;
    fuzz_note(status);
    if (!fuzz_memory_fails || pen_status_get_code(status) != PEN_OUT_OF_MEMORY) {
        pen_status_format(status, text, sizeof text);
        fputs(text, stderr);
        abort();
    }
    pen_status_ignore(status, "memory was refused");
    return false;
}
