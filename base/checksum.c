#include "base/checksum.h"

#include <pthread.h>
#include <string.h>

#include "base/checksum_product.h"

// CRCs are linear: the register behind A and then B is shift(register behind A, length of B) xor
// the register behind B begun from 0. So three lanes are computed at once, since the instruction
// takes three cycles but one may start each cycle, and put together by tables of shift.
//
// Gopal et al.: "Fast CRC computation for iSCSI polynomial using CRC32 instruction", Intel, 2011.

#define CHECKSUM_POLYNOMIAL 0x82f63b78u // reflected
// Memory is fetched ahead along streams that are long, or lie side by side: lanes of 512 to 16384
// bytes are half as fast from memory, and equal from cache.
#define CHECKSUM_LONG_LANE 65536
#define CHECKSUM_SHORT_LANE 256
#define CHECKSUM_PRODUCT_LEAST 1024 // shorter ones are not worth putting sums together

typedef struct checksum_shift { // by a fixed count of bytes
    uint32_t of_byte[4][256];
} checksum_shift;

static struct {
    pthread_once_t once;
    uint32_t slices[8][256]; // of a byte that 0 to 7 zero bytes follow
    checksum_shift long_lane, short_lane;
    pen_checksum_fn best;
} checksum = {.once = PTHREAD_ONCE_INIT};

static uint32_t checksum_shift_apply(const checksum_shift *shift, uint32_t crc) {
    return shift->of_byte[0][crc & 0xff] ^ shift->of_byte[1][crc >> 8 & 0xff] ^
           shift->of_byte[2][crc >> 16 & 0xff] ^ shift->of_byte[3][crc >> 24];
}

static void checksum_shift_init(checksum_shift *shift, uint32_t zero_count) {
    uint32_t of_bit[32];
    for (uint32_t bit = 0; bit < 32; bit++) {
        uint32_t crc = 1u << bit;
        for (uint32_t i = 0; i < zero_count; i++)
            crc = crc >> 8 ^ checksum.slices[0][crc & 0xff];
        of_bit[bit] = crc;
    }
    for (uint32_t byte = 0; byte < 4; byte++) {
        for (uint32_t value = 0; value < 256; value++) {
            uint32_t crc = 0;
            for (uint32_t bit = 0; bit < 8; bit++) {
                if ((value >> bit & 1) != 0) crc ^= of_bit[byte * 8 + bit];
            }
            shift->of_byte[byte][value] = crc;
        }
    }
}

static uint32_t checksum_table(uint32_t before, const void *bytes, uint64_t count) {
    const uint8_t *at = bytes;
    uint32_t crc = ~before;
    for (; count >= 8; count -= 8, at += 8) {
        const uint32_t low = crc ^ ((uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 |
                                    (uint32_t)at[3] << 24);
        crc = checksum.slices[7][low & 0xff] ^ checksum.slices[6][low >> 8 & 0xff] ^
              checksum.slices[5][low >> 16 & 0xff] ^ checksum.slices[4][low >> 24] ^
              checksum.slices[3][at[4]] ^ checksum.slices[2][at[5]] ^ checksum.slices[1][at[6]] ^
              checksum.slices[0][at[7]];
    }
    for (; count != 0; count--, at++)
        crc = crc >> 8 ^ checksum.slices[0][(crc ^ *at) & 0xff];
    return ~crc;
}

#ifdef __x86_64__
static uint64_t checksum_word(const uint8_t *at) {
    uint64_t word;
    memcpy(&word, at, sizeof word);
    return word;
}

// Three lanes of `lane` bytes each, one behind the other.
__attribute__((target("sse4.2"))) static uint32_t
checksum_lanes(const uint8_t *at, uint32_t lane, const checksum_shift *shift, uint32_t crc) {
    uint64_t first = crc, second = 0, third = 0;
    for (uint32_t i = 0; i < lane; i += 8) {
        first = __builtin_ia32_crc32di(first, checksum_word(at + i));
        second = __builtin_ia32_crc32di(second, checksum_word(at + lane + i));
        third = __builtin_ia32_crc32di(third, checksum_word(at + 2 * (uint64_t)lane + i));
    }
    crc = checksum_shift_apply(shift, (uint32_t)first) ^ (uint32_t)second;
    return checksum_shift_apply(shift, crc) ^ (uint32_t)third;
}

// Goes on from the register behind what came before. The instruction takes three cycles but one can
// begin in each, so three lanes run side by side and are joined by tables: long lanes first, short
// ones for the rest.
__attribute__((target("sse4.2"))) static uint32_t checksum_go_on(uint32_t crc, const uint8_t *at,
                                                                 uint64_t count) {
    for (; count >= 3 * CHECKSUM_LONG_LANE; count -= 3 * CHECKSUM_LONG_LANE) {
        crc = checksum_lanes(at, CHECKSUM_LONG_LANE, &checksum.long_lane, crc);
        at += (size_t)3 * CHECKSUM_LONG_LANE;
    }
    for (; count >= 3 * CHECKSUM_SHORT_LANE; count -= 3 * CHECKSUM_SHORT_LANE) {
        crc = checksum_lanes(at, CHECKSUM_SHORT_LANE, &checksum.short_lane, crc);
        at += (size_t)3 * CHECKSUM_SHORT_LANE;
    }
    uint64_t wide = crc;
    for (; count >= 8; count -= 8, at += 8)
        wide = __builtin_ia32_crc32di(wide, checksum_word(at));
    crc = (uint32_t)wide;
    for (; count != 0; count--, at++)
        crc = __builtin_ia32_crc32qi(crc, *at);
    return crc;
}

static uint32_t checksum_instruction(uint32_t before, const void *bytes, uint64_t count) {
    return ~checksum_go_on(~before, bytes, count);
}

// What the products leave, and what is too short for them, is for the instruction.
static uint32_t checksum_product(uint32_t before, const void *bytes, uint64_t count) {
    uint8_t left[PEN_CHECKSUM_PRODUCT_BYTES];
    if (count < CHECKSUM_PRODUCT_LEAST) return checksum_instruction(before, bytes, count);
    const uint64_t folded = pen_checksum_product_fold(~before, bytes, count, left);
    const uint32_t crc = checksum_go_on(0, left, sizeof left);
    return ~checksum_go_on(crc, (const uint8_t *)bytes + folded, count - folded);
}

static pen_checksum_fn checksum_find_instruction(void) {
    return __builtin_cpu_supports("sse4.2") ? checksum_instruction : NULL;
}

static pen_checksum_fn checksum_find_product(void) {
    const bool is_there = checksum_find_instruction() != NULL && pen_checksum_product_is_there();
    return is_there ? checksum_product : NULL;
}
#else
static pen_checksum_fn checksum_find_instruction(void) {
    return NULL;
}

static pen_checksum_fn checksum_find_product(void) {
    return NULL;
}
#endif

// Tables first, which the other ways put sums together with; then the fastest way there is.
static void checksum_init(void) {
    for (uint32_t value = 0; value < 256; value++) {
        uint32_t crc = value;
        for (int bit = 0; bit < 8; bit++) {
            crc = crc >> 1 ^ ((crc & 1) != 0 ? CHECKSUM_POLYNOMIAL : 0);
        }
        checksum.slices[0][value] = crc;
    }
    for (uint32_t slice = 1; slice < 8; slice++) {
        for (uint32_t value = 0; value < 256; value++) {
            const uint32_t crc = checksum.slices[slice - 1][value];
            checksum.slices[slice][value] = crc >> 8 ^ checksum.slices[0][crc & 0xff];
        }
    }
    checksum_shift_init(&checksum.long_lane, CHECKSUM_LONG_LANE);
    checksum_shift_init(&checksum.short_lane, CHECKSUM_SHORT_LANE);
    const pen_checksum_fn instruction = checksum_find_instruction();
    const pen_checksum_fn product = checksum_find_product();
    checksum.best = instruction != NULL ? instruction : checksum_table;
    if (product != NULL) checksum.best = product;
}

pen_checksum_fn pen_checksum_by_table(void) {
    pthread_once(&checksum.once, checksum_init);
    return checksum_table;
}

pen_checksum_fn pen_checksum_by_instruction(void) {
    pthread_once(&checksum.once, checksum_init);
    return checksum_find_instruction();
}

pen_checksum_fn pen_checksum_by_product(void) {
    pthread_once(&checksum.once, checksum_init);
    return checksum_find_product();
}

uint32_t pen_checksum_continue(uint32_t before, const void *bytes, uint64_t count) {
    pthread_once(&checksum.once, checksum_init);
    return checksum.best(before, bytes, count);
}

uint32_t pen_checksum(const void *bytes, uint64_t count) {
    return pen_checksum_continue(0, bytes, count);
}

static uint32_t checksum_chunk_count(uint64_t count) {
    return (uint32_t)((count + PEN_CHECKSUM_CHUNK_BYTES - 1) / PEN_CHECKSUM_CHUNK_BYTES);
}

static uint64_t checksum_chunk_bytes(uint64_t count, uint32_t chunk) {
    const uint64_t left = count - chunk * PEN_CHECKSUM_CHUNK_BYTES;
    return left < PEN_CHECKSUM_CHUNK_BYTES ? left : PEN_CHECKSUM_CHUNK_BYTES;
}

static uint32_t checksum_of_chunk(const void *bytes, uint64_t count, uint32_t c) {
    return pen_checksum((const uint8_t *)bytes + c * PEN_CHECKSUM_CHUNK_BYTES,
                        checksum_chunk_bytes(count, c));
}

void pen_checksum_chunks(const void *bytes, uint64_t count, uint32_t *out_checksums) {
    for (uint32_t c = 0; c < checksum_chunk_count(count); c++) {
        out_checksums[c] = checksum_of_chunk(bytes, count, c);
    }
}

// FNV-1a over checksums of chunks, from `joined` on.
static uint64_t checksum_join(uint64_t joined, const uint32_t *checksums, uint32_t chunk_count) {
    for (uint32_t c = 0; c < chunk_count; c++) {
        joined = (joined ^ checksums[c]) * 0x100000001b3u;
    }
    return joined;
}
#define CHECKSUM_JOIN_BASIS 0xcbf29ce484222325u

uint64_t pen_checksum_join(const uint32_t *checksums, uint64_t count) {
    return checksum_join(CHECKSUM_JOIN_BASIS, checksums, checksum_chunk_count(count));
}

uint64_t pen_checksum_whole(const void *bytes, uint64_t count) {
    uint64_t joined = CHECKSUM_JOIN_BASIS;
    for (uint32_t c = 0; c < checksum_chunk_count(count); c++) {
        const uint32_t one = checksum_of_chunk(bytes, count, c);
        joined = checksum_join(joined, &one, 1);
    }
    return joined;
}

uint32_t pen_checksum_find_difference(const void *bytes, uint64_t count,
                                      const uint32_t *checksums) {
    const uint32_t chunk_count = checksum_chunk_count(count);
    for (uint32_t c = 0; c < chunk_count; c++) {
        if (checksum_of_chunk(bytes, count, c) != checksums[c]) return c;
    }
    return chunk_count;
}
