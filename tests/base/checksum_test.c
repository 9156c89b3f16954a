// CRC32C against a version that goes bit by bit, at every length and alignment that is special.
#include "base/checksum.h"

#include "base/random.h"
#include "scheduler/transport/transport.h"
#include "tests/support/check.h"

static uint32_t bitwise(const uint8_t *bytes, uint64_t count) {
    uint32_t crc = UINT32_MAX;
    for (uint64_t i = 0; i < count; i++) {
        crc ^= bytes[i];
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ ((crc & 1) != 0 ? 0x82f63b78u : 0);
    }
    return ~crc;
}

static uint8_t *random_bytes(uint64_t count) {
    const pen_random_key key = {7, pen_random_stream("checksum", 0, 0)};
    uint8_t *bytes = malloc(count + 16);
    for (uint64_t i = 0; i < count + 16; i++)
        bytes[i] = (uint8_t)pen_random_below(key, i, 256);
    return bytes;
}

static void gives_the_published_values(void **state) {
    (void)state;
    uint8_t bytes[32] = {0};
    assert_int_equal(pen_checksum("123456789", 9), 0xe3069283);
    assert_int_equal(pen_checksum("", 0), 0);
    assert_int_equal(pen_checksum(bytes, 32), 0x8a9136aa); // RFC 3720, B.4
    memset(bytes, 0xff, 32);
    assert_int_equal(pen_checksum(bytes, 32), 0x62a8ab43);
    for (uint8_t i = 0; i < 32; i++)
        bytes[i] = i;
    assert_int_equal(pen_checksum(bytes, 32), 0x46dd794e);
}

static void equals_the_bitwise_one(void **state) {
    (void)state;
    const uint64_t most = 3 * 65536 * 2 + 3000;
    uint8_t *bytes = random_bytes(most);
    const pen_checksum_fn ways[] = {pen_checksum_continue, pen_checksum_by_table(),
                                    pen_checksum_by_instruction(), pen_checksum_by_product()};
    const pen_random_key key = {8, pen_random_stream("lengths", 0, 0)};
    for (uint64_t trial = 0; trial < 860; trial++) {
        uint64_t count = trial; // each short one, then random ones up to some lanes
        if (trial >= 800) count = pen_random_below(key, 2 * trial, most);
        const uint64_t offset = pen_random_below(key, 2 * trial + 1, 9);
        const uint32_t expected = bitwise(bytes + offset, count);
        for (size_t way = 0; way < sizeof ways / sizeof *ways; way++) {
            if (ways[way] == NULL) continue;
            CHECK(ways[way](0, bytes + offset, count) == expected, "way %zu, %d bytes at %d", way,
                  (int)count, (int)offset);
            const uint64_t first = pen_random_below(key, trial + 5000, count + 1);
            const uint32_t before = ways[way](0, bytes + offset, first);
            CHECK(ways[way](before, bytes + offset + first, count - first) == expected,
                  "way %zu, %d bytes and then %d", way, (int)first, (int)(count - first));
        }
    }
    free(bytes);
}

static void finds_the_chunk_with_a_flipped_bit(void **state) {
    (void)state;
    const uint64_t count = 2 * PEN_TRANSPORT_CHUNK_BYTES + 77;
    uint8_t *bytes = random_bytes(count);
    uint32_t checksums[3];
    assert_int_equal(pen_frame_chunk_count(count), 3);
    pen_checksum_chunks(bytes, count, checksums);
    assert_int_equal(checksums[2], bitwise(bytes + 2 * PEN_TRANSPORT_CHUNK_BYTES, 77));
    assert_int_equal(pen_checksum_find_difference(bytes, count, checksums), 3);
    const pen_random_key key = {9, pen_random_stream("flips", 0, 0)};
    for (uint64_t trial = 0; trial < 50; trial++) {
        const uint64_t at = trial == 0 ? count - 1 : pen_random_below(key, 2 * trial, count);
        const uint8_t mask = (uint8_t)(1u << pen_random_below(key, 2 * trial + 1, 8));
        bytes[at] ^= mask;
        assert_int_equal(pen_checksum_find_difference(bytes, count, checksums),
                         at / PEN_TRANSPORT_CHUNK_BYTES);
        bytes[at] ^= mask;
    }
    assert_int_equal(pen_checksum_find_difference(bytes, 0, NULL), 0);
    free(bytes);
}

PEN_TEST_MAIN(cmocka_unit_test(gives_the_published_values),
              cmocka_unit_test(equals_the_bitwise_one),
              cmocka_unit_test(finds_the_chunk_with_a_flipped_bit))
