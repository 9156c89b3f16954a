// Changes of JSON texts for fuzzers whose reader wants more than bytes: a value takes the place of
// another one, or is left out, doubled, or becomes one that readers are known to stumble over.
//
// Texts may be several, with NUL bytes between them. They need not be right: what is no JSON is
// changed as far as it can be taken apart.
//
// Threads: any.
#ifndef PEN_TESTS_FUZZ_FUZZ_JSON_H
#define PEN_TESTS_FUZZ_FUZZ_JSON_H

#include <stddef.h>
#include <stdint.h>

// What may change.
typedef struct fuzz_json_scope {
    // Only members of these names, and all within them; ends with NULL. NULL: everything.
    const char *const *keys;
    // Texts of values that are put in; ends with NULL.
    const char *const *values;
    // A text that is put in for the value of member `key`, by a number drawn; NULL: of none.
    const char *(*value_of)(const char *key, uint32_t drawn);
} fuzz_json_scope;

// Makes one change. `bytes` has room for `limit`; returns the new length. For
// LLVMFuzzerCustomMutator, which the programs of `make fuzz` alone call.
size_t fuzz_change_json(uint8_t *bytes, size_t length, size_t limit, unsigned seed,
                        const fuzz_json_scope *scope);

#endif // PEN_TESTS_FUZZ_FUZZ_JSON_H
