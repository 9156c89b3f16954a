// Regular expressions (POSIX extended) that pick nodes and parameters by name.
//
// Patterns come from users' files, so they are bounded before the C library sees them: its
// compiler needs memory, and its matcher time, that grows without bound in nested repetitions.
//
// Threads: a pattern may be matched by one thread at a time.
#ifndef PEN_BASE_PATTERN_H
#define PEN_BASE_PATTERN_H

#include <stdbool.h>

#include "base/status.h"

#define PEN_PATTERN_BYTES_LIMIT 512 // length of a pattern
#define PEN_PATTERN_DEPTH_LIMIT 8   // parentheses within each other
#define PEN_PATTERN_SIZE_LIMIT 2000 // its length with every repetition written out

typedef struct pen_pattern pen_pattern;

// INVALID_INPUT with what is wrong with the pattern, OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_pattern_create(const char *text, pen_pattern **out_pattern);
// Accepts NULL.
void pen_pattern_destroy(pen_pattern *pattern);

// Whether the pattern is found anywhere in `name`.
bool pen_pattern_matches(const pen_pattern *pattern, const char *name);

#endif // PEN_BASE_PATTERN_H
