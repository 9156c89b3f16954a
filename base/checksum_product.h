// CRC32C of long memory by products without carries, 256 bytes at a time: what processors with
// AVX-512 and VPCLMULQDQ do about twice as fast as their CRC instruction.
//
// Threads: any.
#ifndef PEN_BASE_CHECKSUM_PRODUCT_H
#define PEN_BASE_CHECKSUM_PRODUCT_H

#include <stdbool.h>
#include <stdint.h>

#define PEN_CHECKSUM_PRODUCT_BYTES 64u // what is left of memory

bool pen_checksum_product_is_there(void);

// Folds the first of `count` bytes, at least 256, into `out_left`: the checksum's register behind
// these, begun from 0, is that behind what was folded, begun from `crc`. Returns how many were.
uint64_t pen_checksum_product_fold(uint32_t crc, const uint8_t *bytes, uint64_t count,
                                   uint8_t out_left[PEN_CHECKSUM_PRODUCT_BYTES]);

#endif // PEN_BASE_CHECKSUM_PRODUCT_H
