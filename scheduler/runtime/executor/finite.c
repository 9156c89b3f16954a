#include "scheduler/runtime/executor/finite.h"

#include <math.h>
#include <string.h>

// Magnitudes of floating-point numbers compare as their bits without the sign do, as integers;
// those of infinities and of what is not a number are above all others.
#define FINITE_MASK INT32_C(0x7fffffff)
#define FINITE_INFINITE INT32_C(0x7f800000)
#define FINITE_LANES 8

typedef int32_t finite_lanes __attribute__((vector_size(4 * FINITE_LANES)));
#define FINITE_STREAMS 4 // that do not wait for each other

// The largest magnitude as bits: for floats without sign, the order of the bits is that of the
// numbers, with infinity and NaN above all. Several streams keep loads in flight.
static inline __attribute__((always_inline)) int32_t finite_scan(const char *at, uint64_t count) {
    finite_lanes most[FINITE_STREAMS];
    memset(most, 0, sizeof most);
    const uint64_t block = FINITE_STREAMS * FINITE_LANES;
    for (; count >= block; count -= block, at += block * 4) {
        for (uint32_t s = 0; s < FINITE_STREAMS; s++) {
            finite_lanes bits;
            memcpy(&bits, at + s * sizeof bits, sizeof bits);
            bits &= FINITE_MASK;
            const finite_lanes is_more = bits > most[s];
            most[s] = (bits & is_more) | (most[s] & ~is_more);
        }
    }
    int32_t best = 0;
    for (uint32_t s = 0; s < FINITE_STREAMS; s++) {
        for (uint32_t l = 0; l < FINITE_LANES; l++) {
            if (most[s][l] > best) best = most[s][l];
        }
    }
    for (; count > 0; count--, at += 4) {
        int32_t bits;
        memcpy(&bits, at, sizeof bits);
        bits &= FINITE_MASK;
        if (bits > best) best = bits;
    }
    return best;
}

#ifdef __x86_64__
__attribute__((target("avx2"))) static int32_t finite_scan_avx2(const char *at, uint64_t count) {
    return finite_scan(at, count);
}
#endif

static int32_t finite_most_bits(const char *at, uint64_t count) {
#ifdef __x86_64__
    if (__builtin_cpu_supports("avx2")) return finite_scan_avx2(at, count);
#endif
    return finite_scan(at, count);
}

static double finite_doubles(const char *at, uint64_t count) {
    double most = 0;
    for (uint64_t i = 0; i < count; i++) {
        double number;
        memcpy(&number, at + i * sizeof number, sizeof number);
        if (!isfinite(number)) return INFINITY;
        if (fabs(number) > most) most = fabs(number);
    }
    return most;
}

double pen_finite_magnitude(const void *memory, uint64_t bytes, pen_element_type element) {
    if (element == PEN_FLOAT64) return finite_doubles(memory, bytes / 8);
    if (element != PEN_FLOAT32) return 0;
    const int32_t bits = finite_most_bits(memory, bytes / 4);
    if (bits >= FINITE_INFINITE) return INFINITY;
    float magnitude;
    memcpy(&magnitude, &bits, sizeof magnitude);
    return (double)magnitude;
}

static void finite_add(pen_finite_summary *summary, double number) {
    const uint64_t bad = summary->nan_count + summary->infinite_count;
    const bool is_first = summary->count == bad;
    summary->count += 1;
    if (isnan(number)) {
        summary->nan_count += 1;
    } else if (isinf(number)) {
        summary->infinite_count += 1;
    } else {
        if (is_first || number < summary->minimum) summary->minimum = number;
        if (is_first || number > summary->maximum) summary->maximum = number;
    }
}

pen_finite_summary pen_finite_summarize(const void *memory, uint64_t bytes,
                                        pen_element_type element) {
    pen_finite_summary summary = {0};
    const uint64_t size = pen_element_is_trained(element) ? pen_element_bytes(element) : 0;
    for (uint64_t i = 0; size > 0 && i < bytes / size; i++) {
        finite_add(&summary, pen_element_read(element, memory, (int64_t)i));
    }
    return summary;
}

uint64_t pen_finite_hash(const void *memory, uint64_t bytes) {
    const char *at = memory;
    uint64_t hash = 0x9e3779b97f4a7c15u ^ bytes;
    while (bytes > 0) {
        uint64_t word = 0;
        const uint64_t count = bytes < sizeof word ? bytes : sizeof word;
        memcpy(&word, at, count);
        hash = (hash ^ word) * 0xff51afd7ed558ccdu;
        hash ^= hash >> 32;
        at += count;
        bytes -= count;
    }
    return hash;
}
