// Fuzzes the reading of what is said in a `.pt2` file: any text in the place of its model.json, and
// of its list of weights, gives a graph or an error.

#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/fuzz_json.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length) {
    fuzz_read_pt2_text(bytes, length);
    return 0;
}

static const char *const fuzz_values[] = {
    "null",        "true",        "{}",     "[]",           "\"\"",  "\"as_none\"",
    "0",           "-1",          "1e308",  "2147483648",   "[[]]",  "9223372036854775807",
    "\"x\"",       "1.5",         "[null]", "{\"name\":1}", "false", "-9223372036854775808",
    "\"\\u0000\"", "\"\\u007f\"", NULL};

size_t LLVMFuzzerCustomMutator(uint8_t *bytes, size_t length, size_t limit, unsigned seed) {
    static const fuzz_json_scope everything = {.values = fuzz_values};
    return fuzz_change_json(bytes, length, limit, seed, &everything);
}
