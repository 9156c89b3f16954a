#include "base/hash.h"

#include <inttypes.h>
#include <string.h>

#include "tests/support/check.h"

// The numbers that the authors of FNV publish.
static void hashes_are_fnv(void **state) {
    (void)state;
    const struct {
        const char *text;
        uint64_t hash;
    } known[] = {
        {"", 0xcbf29ce484222325u}, {"a", 0xaf63dc4c8601ec8cu}, {"foobar", 0x85944171f73967e8u}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        const size_t length = strlen(known[i].text), half = length / 2;
        const uint64_t first = pen_hash_bytes(PEN_HASH_START, known[i].text, half);
        const uint64_t hash = pen_hash_bytes(first, known[i].text + half, length - half);
        CHECK(hash == known[i].hash, "'%s': %016" PRIx64, known[i].text, hash);
    }
}

PEN_TEST_MAIN(cmocka_unit_test(hashes_are_fnv))
