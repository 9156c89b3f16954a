#include "base/hash.h"

uint64_t pen_hash_bytes(uint64_t before, const void *bytes, uint64_t count) {
    const uint8_t *at = bytes;
    uint64_t hash = before;
    for (uint64_t i = 0; i < count; i++) {
        hash = (hash ^ at[i]) * 0x100000001b3u;
    }
    return hash;
}
