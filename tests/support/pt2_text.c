#include "tests/support/pt2_text.h"

#include <stdlib.h>
#include <string.h>

#include "graph/import/stored_zip.h"

#define TEXT_HEADER_BYTES 30 // of a file, without its name
#define TEXT_ENTRY_BYTES 46  // of the same in the list at the end
#define TEXT_END_BYTES 22
#define TEXT_NAME_BYTES 64

typedef struct text_file {
    const char *name;
    const void *bytes;
    size_t length;
    size_t offset; // of its header
    uint32_t checksum;
} text_file;

static uint8_t *put(uint8_t *at, uint64_t number, size_t bytes) {
    for (size_t i = 0; i < bytes; i++) {
        at[i] = (uint8_t)(i < sizeof number ? number >> 8 * i : 0);
    }
    return at + bytes;
}

// What a file's header and its entry in the list share: from the version on to the name's length.
static uint8_t *put_facts(uint8_t *at, const text_file *file) {
    at = put(at, 20, 2);
    at = put(at, 0, 8); // flags, stored, no time
    at = put(at, file->checksum, 4);
    at = put(at, file->length, 4);
    at = put(at, file->length, 4);
    return put(at, strlen(file->name), 2);
}

static uint8_t *put_bytes(uint8_t *at, const void *bytes, size_t length) {
    if (length > 0) memcpy(at, bytes, length);
    return at + length;
}

static uint8_t *put_list(uint8_t *at, const text_file *files, size_t count) {
    for (size_t i = 0; i < count; i++) {
        at = put(at, 0x02014b50, 4);
        at = put(at, 20, 2);
        at = put_facts(at, &files[i]);
        at = put(at, 0, 12);
        at = put(at, files[i].offset, 4);
        at = put_bytes(at, files[i].name, strlen(files[i].name));
    }
    return at;
}

// Released with free. Contents of weights are not summed when they are read, so theirs may be
// wrong.
static uint8_t *make_archive(text_file *files, size_t count, size_t *out_length) {
    size_t room = TEXT_END_BYTES;
    for (size_t i = 0; i < count; i++) {
        room += files[i].length + TEXT_HEADER_BYTES + TEXT_ENTRY_BYTES + 2 * TEXT_NAME_BYTES;
    }
    uint8_t *archive = malloc(room), *at = archive;
    if (archive == NULL) return NULL;
    for (size_t i = 0; i < count; i++) {
        files[i].offset = (size_t)(at - archive);
        files[i].checksum = pen_stored_zip_checksum(0, files[i].bytes, files[i].length);
        at = put(at, 0x04034b50, 4);
        at = put_facts(at, &files[i]);
        at = put(at, 0, 2);
        at = put_bytes(at, files[i].name, strlen(files[i].name));
        at = put_bytes(at, files[i].bytes, files[i].length);
    }
    const size_t list = (size_t)(at - archive);
    at = put_list(at, files, count);
    const size_t list_bytes = (size_t)(at - archive) - list;
    at = put(at, 0x06054b50, 4);
    at = put(at, 0, 4);
    at = put(at, count << 16 | count, 4);
    at = put(at, list_bytes, 4);
    at = put(at, list, 4);
    at = put(at, 0, 2);
    *out_length = (size_t)(at - archive);
    return archive;
}

// The text up to the next NUL byte, or the end; "" of what is not there.
static text_file take_text(const char *name, const uint8_t **at, size_t *left) {
    const uint8_t *end = *left == 0 ? NULL : memchr(*at, 0, *left);
    const size_t length = end == NULL ? *left : (size_t)(end - *at);
    const text_file taken = {.name = name, .bytes = *at, .length = length};
    const size_t passed = length + (end != NULL);
    *at += passed;
    *left -= passed;
    return taken;
}

uint8_t *pt2_text_archive(const uint8_t *text, size_t length, size_t *out_length) {
    static const uint8_t numbers[1024] = {0, 0, 128, 63, 0, 0, 0, 64, 1, 2, 3};
    text_file files[] = {
        take_text("a/models/model.json", &text, &length),
        take_text("a/data/weights/model_weights_config.json", &text, &length),
        take_text("a/data/constants/model_constants_config.json", &text, &length),
        {.name = "a/archive_format", .bytes = "pt2", .length = 3},
        {.name = "a/byteorder", .bytes = "little", .length = 6},
        {.name = "a/data/weights/weight_0", .bytes = numbers, .length = sizeof numbers},
        {.name = "a/data/weights/weight_1", .bytes = numbers, .length = 16},
        {.name = "a/data/constants/tensor_0", .bytes = numbers, .length = 64},
    };
    static const char none[] = "{\"config\":{}}";
    for (size_t i = 1; i < 3; i++) {
        if (files[i].length > 0) continue;
        files[i].bytes = none;
        files[i].length = sizeof none - 1;
    }
    return make_archive(files, sizeof files / sizeof files[0], out_length);
}
