#include "base/checksum_product.h"

#include "base/status.h"

#ifdef __x86_64__
#include <immintrin.h>

// Bytes are a polynomial over bits, and a checksum its rest by the polynomial P. Moving 16 bytes
// `distance` bits on multiplies them by x^distance, so they may be added to those that lie there
// once multiplied by its rest: by x^(distance + 32) mod P for the first 8 bytes and x^(distance -
// 32) mod P for the last 8. Bits are reflected, which costs a shift by one.
//
// Gopal et al.: "Fast CRC Computation for Generic Polynomials Using PCLMULQDQ Instruction", Intel,
// 2009. The constants are x^n mod P for P = 0x11edc6f41.
#define PRODUCT_BY_2048_FIRST 0x0dcb17aa4 // x^(2048 + 32)
#define PRODUCT_BY_2048_LAST 0x0b9e02b86  // x^(2048 - 32)
#define PRODUCT_BY_512_FIRST 0x0740eef02  // x^(512 + 32)
#define PRODUCT_BY_512_LAST 0x09e4addf8   // x^(512 - 32)
#define PRODUCT_TARGET __attribute__((target("avx512f,avx512vl,vpclmulqdq,pclmul")))

bool pen_checksum_product_is_there(void) {
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
           __builtin_cpu_supports("vpclmulqdq");
}

PRODUCT_TARGET static inline __m512i product_move(__m512i bytes, __m512i by, __m512i to) {
    const __m512i first = _mm512_clmulepi64_epi128(bytes, by, 0x00);
    const __m512i last = _mm512_clmulepi64_epi128(bytes, by, 0x11);
    return _mm512_ternarylogic_epi64(first, last, to, 0x96); // all three added
}

PRODUCT_TARGET static inline __m512i product_load(const uint8_t *at) {
    return _mm512_loadu_si512(at);
}

// Four sums side by side, each of every fourth 64 bytes, since a product takes some cycles but one
// may start before it is done. They are joined at the end. As an array they would lie in memory:
// 50 GB/s, not 60.
PRODUCT_TARGET uint64_t pen_checksum_product_fold(uint32_t crc, const uint8_t *bytes,
                                                  uint64_t count,
                                                  uint8_t out_left[PEN_CHECKSUM_PRODUCT_BYTES]) {
    const __m512i by_2048 = _mm512_set4_epi64(PRODUCT_BY_2048_LAST, PRODUCT_BY_2048_FIRST,
                                              PRODUCT_BY_2048_LAST, PRODUCT_BY_2048_FIRST);
    const __m512i by_512 = _mm512_set4_epi64(PRODUCT_BY_512_LAST, PRODUCT_BY_512_FIRST,
                                             PRODUCT_BY_512_LAST, PRODUCT_BY_512_FIRST);
    const __m512i begun = _mm512_zextsi128_si512(_mm_cvtsi32_si128((int32_t)crc));
    PEN_ASSERT(count >= 256);
    __m512i first = _mm512_xor_si512(begun, product_load(bytes));
    __m512i second = product_load(bytes + 64), third = product_load(bytes + 128);
    __m512i fourth = product_load(bytes + 192);
    uint64_t at = 256;
    for (; count - at >= 256; at += 256) {
        first = product_move(first, by_2048, product_load(bytes + at));
        second = product_move(second, by_2048, product_load(bytes + at + 64));
        third = product_move(third, by_2048, product_load(bytes + at + 128));
        fourth = product_move(fourth, by_2048, product_load(bytes + at + 192));
    }
    second = product_move(first, by_512, second);
    third = product_move(second, by_512, third);
    _mm512_storeu_si512(out_left, product_move(third, by_512, fourth));
    return at;
}
#else
bool pen_checksum_product_is_there(void) {
    return false;
}

uint64_t pen_checksum_product_fold(uint32_t crc, const uint8_t *bytes, uint64_t count,
                                   uint8_t out_left[PEN_CHECKSUM_PRODUCT_BYTES]) {
    (void)crc, (void)bytes, (void)count, (void)out_left;
    PEN_NEVER("this processor has no such products");
}
#endif
