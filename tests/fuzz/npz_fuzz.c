// Fuzzes the reader of NPZ archives: any bytes give arrays that are as large as they say, or an
// error with a message. Bytes that begin as no archive does are put into one, as two members, so
// that checksums do not keep them from what reads the arrays.
#include <stdlib.h>
#include <string.h>

#include "graph/import/npz_file.h"
#include "tests/fuzz/fuzz.h"

#define ARCHIVE_HEADER_BYTES 30 // of a member, without its name
#define ARCHIVE_ENTRY_BYTES 46  // of the same in the list at the end
#define ARCHIVE_END_BYTES 22
#define ARCHIVE_NAME "a.npy"
#define ARCHIVE_NAME_BYTES 5

static uint32_t archive_checksum(const uint8_t *bytes, size_t length) {
    uint32_t sum = ~0u;
    for (size_t i = 0; i < length; i++) {
        sum ^= bytes[i];
        for (int bit = 0; bit < 8; bit++)
            sum = sum >> 1 ^ (sum & 1 ? 0xedb88320u : 0);
    }
    return ~sum;
}

static uint8_t *put(uint8_t *at, uint64_t number, size_t bytes) {
    for (size_t i = 0; i < bytes; i++)
        at[i] = (uint8_t)(i < sizeof number ? number >> 8 * i : 0);
    return at + bytes;
}

// What a member's header and its entry in the list share: from the version on to the name's length.
static uint8_t *put_facts(uint8_t *at, const uint8_t *bytes, size_t length) {
    at = put(at, 20, 2);
    at = put(at, 0, 8); // flags, stored, no time
    at = put(at, archive_checksum(bytes, length), 4);
    at = put(at, length, 4);
    at = put(at, length, 4);
    return put(at, ARCHIVE_NAME_BYTES, 2);
}

static uint8_t *put_name(uint8_t *at, char first) {
    memcpy(at, ARCHIVE_NAME, ARCHIVE_NAME_BYTES);
    *at = (uint8_t)first;
    return at + ARCHIVE_NAME_BYTES;
}

// An archive of two members: the bytes up to `split`, and the others. Released with free.
static uint8_t *make_archive(const uint8_t *bytes, size_t size, size_t split, size_t *out_length) {
    const size_t starts[3] = {0, split, size};
    size_t offsets[2];
    uint8_t *archive =
        malloc(size + 2 * (ARCHIVE_HEADER_BYTES + ARCHIVE_ENTRY_BYTES + 2 * ARCHIVE_NAME_BYTES) +
               ARCHIVE_END_BYTES);
    uint8_t *at = archive;
    fuzz_must(archive != NULL);
    for (int i = 0; i < 2; i++) {
        const size_t length = starts[i + 1] - starts[i];
        offsets[i] = (size_t)(at - archive);
        at = put(at, 0x04034b50, 4);
        at = put_facts(at, bytes + starts[i], length);
        at = put(at, 0, 2);
        at = put_name(at, (char)('a' + i));
        memcpy(at, bytes + starts[i], length);
        at += length;
    }
    const size_t list = (size_t)(at - archive);
    for (int i = 0; i < 2; i++) {
        at = put(at, 0x02014b50, 4);
        at = put(at, 20, 2);
        at = put_facts(at, bytes + starts[i], starts[i + 1] - starts[i]);
        at = put(at, 0, 12);
        at = put(at, offsets[i], 4);
        at = put_name(at, (char)('a' + i));
    }
    const size_t list_bytes = (size_t)(at - archive) - list;
    at = put(at, 0x06054b50, 4);
    at = put(at, 0, 4);
    at = put(at, 2 << 16 | 2, 4);
    at = put(at, list_bytes, 4);
    at = put(at, list, 4);
    at = put(at, 0, 2);
    *out_length = (size_t)(at - archive);
    return archive;
}

static void use_arrays(const pen_npz *npz, pen_arena *arena, size_t size) {
    uint64_t sum = 0, bytes = 0;
    for (uint32_t i = 0; i < npz->count; i++) {
        const pen_npz_array *array = &npz->arrays[i];
        const uint64_t length = pen_tensor_type_bytes(&array->type);
        const void *data;
        fuzz_must(array->name[0] != '\0');
        if (!fuzz_reads(pen_npz_read(npz, i, arena, &data))) continue;
        const uint8_t *first = data;
        for (uint64_t b = 0; b < length; b++)
            sum += first[b];
        bytes += length;
    }
    fuzz_must(bytes / 1100 <= size && sum <= bytes * 255);
}

static void read_archive(const uint8_t *data, size_t size) {
    pen_arena *arena;
    pen_npz npz;
    if (!fuzz_works(pen_arena_create(&arena))) return;
    if (fuzz_reads(pen_npz_open("fuzz", data, size, arena, &npz))) {
        use_arrays(&npz, arena, size);
        pen_npz_close(&npz);
    }
    pen_arena_destroy(arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    size_t length;
    if (size < 1 || data[0] == 'P') {
        read_archive(data, size);
        return 0;
    }
    const size_t rest = size - 1;
    const size_t split = data[0] < rest ? data[0] : rest;
    uint8_t *archive = make_archive(data + 1, rest, split, &length);
    read_archive(archive, length);
    free(archive);
    return 0;
}
