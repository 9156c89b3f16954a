// Files that a test writes for itself.
//
// They lie in a folder of the process's own under /tmp, which is removed when it ends.
#ifndef PEN_TESTS_SUPPORT_SCRATCH_H
#define PEN_TESTS_SUPPORT_SCRATCH_H

#include <stddef.h>

// The path of a file with these bytes; `name` may have folders, which are made. The text lives
// until the process ends. Fails the test when the file cannot be written.
const char *scratch_file(const char *name, const void *bytes, size_t size);

// The path that `name` has in the scratch folder; nothing is made.
const char *scratch_path(const char *name);

#endif // PEN_TESTS_SUPPORT_SCRATCH_H
