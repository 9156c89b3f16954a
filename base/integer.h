// Checked arithmetic for sizes, and a few integer helpers.
#ifndef PEN_BASE_INTEGER_H
#define PEN_BASE_INTEGER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Each returns false, and leaves *out_result unspecified, when the result does not fit.
static inline bool pen_size_mul(size_t a, size_t b, size_t *out_result) {
    return !__builtin_mul_overflow(a, b, out_result);
}
static inline bool pen_size_add(size_t a, size_t b, size_t *out_result) {
    return !__builtin_add_overflow(a, b, out_result);
}
static inline bool pen_u64_mul(uint64_t a, uint64_t b, uint64_t *out_result) {
    return !__builtin_mul_overflow(a, b, out_result);
}
static inline bool pen_u64_add(uint64_t a, uint64_t b, uint64_t *out_result) {
    return !__builtin_add_overflow(a, b, out_result);
}
static inline bool pen_i64_mul(int64_t a, int64_t b, int64_t *out_result) {
    return !__builtin_mul_overflow(a, b, out_result);
}
static inline bool pen_i64_add(int64_t a, int64_t b, int64_t *out_result) {
    return !__builtin_add_overflow(a, b, out_result);
}

static inline uint64_t pen_min_u64(uint64_t a, uint64_t b) {
    return a < b ? a : b;
}
static inline uint64_t pen_max_u64(uint64_t a, uint64_t b) {
    return a > b ? a : b;
}
static inline int64_t pen_min_i64(int64_t a, int64_t b) {
    return a < b ? a : b;
}
static inline int64_t pen_max_i64(int64_t a, int64_t b) {
    return a > b ? a : b;
}

// `value` rounded up to a multiple of `alignment`, a power of two. The caller knows that it fits.
static inline uint64_t pen_align_up(uint64_t value, uint64_t alignment) {
    return (value + alignment - 1) & ~(alignment - 1);
}

#endif // PEN_BASE_INTEGER_H
