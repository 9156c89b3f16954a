// CRC32C (Castagnoli) of memory, as fast as memory can be read.
//
// Threads: any. Nothing is allocated.
#ifndef PEN_BASE_CHECKSUM_H
#define PEN_BASE_CHECKSUM_H

#include <stdint.h>

// Of `count` bytes: pen_checksum("123456789", 9) is 0xe3069283.
uint32_t pen_checksum(const void *bytes, uint64_t count);
// Of bytes whose checksum is `before` (0: of none), and of `count` more behind them.
uint32_t pen_checksum_continue(uint32_t before, const void *bytes, uint64_t count);

// What large contents are checked by: a checksum for each chunk, the last of which may be short.
#define PEN_CHECKSUM_CHUNK_BYTES ((uint64_t)1 << 20)

// out_checksums [count / PEN_CHECKSUM_CHUNK_BYTES, rounded up].
void pen_checksum_chunks(const void *bytes, uint64_t count, uint32_t *out_checksums);

// One number of the checksums of all chunks, in order: what is known of whole contents.
uint64_t pen_checksum_join(const uint32_t *checksums, uint64_t count); // of so many bytes
// The same of contents of `count` bytes.
uint64_t pen_checksum_whole(const void *bytes, uint64_t count);

// The first chunk that has another checksum than `checksums` says; the count of chunks when all
// are as they should be.
uint32_t pen_checksum_find_difference(const void *bytes, uint64_t count, const uint32_t *checksums);

// The ways to compute one; NULL: not on this processor. For tests and benchmarks.
typedef uint32_t (*pen_checksum_fn)(uint32_t before, const void *bytes, uint64_t count);
pen_checksum_fn pen_checksum_by_table(void);
pen_checksum_fn pen_checksum_by_instruction(void);
pen_checksum_fn pen_checksum_by_product(void); // of long memory, by products without carries

#endif // PEN_BASE_CHECKSUM_H
