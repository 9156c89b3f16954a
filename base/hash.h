// FNV-1a, 64 bits: tells contents apart that nobody made to be taken for each other.
//
// Threads: any. Nothing is allocated.
#ifndef PEN_BASE_HASH_H
#define PEN_BASE_HASH_H

#include <stdint.h>

#define PEN_HASH_START 0xcbf29ce484222325u // of nothing

// Of what has the hash `before`, and of `count` bytes behind it.
uint64_t pen_hash_bytes(uint64_t before, const void *bytes, uint64_t count);

#endif // PEN_BASE_HASH_H
