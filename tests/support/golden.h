// Golden files: what a dump, a schema or a message must be, kept under tests/golden.
#ifndef PEN_TESTS_SUPPORT_GOLDEN_H
#define PEN_TESTS_SUPPORT_GOLDEN_H

// Fails the test, showing the first line that differs, unless the file tests/golden/`name` is
// `text`. With PEN_GOLDEN=1 in the environment, writes the file instead; the diff is then reviewed.
#define CHECK_GOLDEN(name, text) check_golden((name), (text), __FILE__, __LINE__)

void check_golden(const char *name, const char *text, const char *file, int line);

#endif // PEN_TESTS_SUPPORT_GOLDEN_H
