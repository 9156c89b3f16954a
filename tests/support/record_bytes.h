// Bytes of records as lines of a golden file: a name, how many bytes, their hash, and the bytes
// themselves where they are few.
#ifndef PEN_TESTS_SUPPORT_RECORD_BYTES_H
#define PEN_TESTS_SUPPORT_RECORD_BYTES_H

#include <stdint.h>

#include "base/text.h"

void record_bytes_add(pen_text *text, const char *name, const void *bytes, uint64_t count);

// Compares the lines with tests/golden/`name`.
void record_bytes_check(pen_text *text, const char *name);

#endif // PEN_TESTS_SUPPORT_RECORD_BYTES_H
