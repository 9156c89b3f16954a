// What a kind of picture files has: how it is told by its first bytes, and how it is decoded.
//
// A reader is created once and serves many files, one after another. A file is begun, then read,
// then ended, also after an error of these.
//
// Lifetime: the file's bytes and its path are borrowed until it is ended.
// Threads:  a reader belongs to one thread at a time.
#ifndef PEN_SCHEDULER_DATA_IMAGE_IMAGE_FORMAT_H
#define PEN_SCHEDULER_DATA_IMAGE_IMAGE_FORMAT_H

#include <stdbool.h>
#include <stddef.h>

#include "scheduler/data/image/image_rows.h"

// Pixels that a few bytes may have where the kind needs none for each, as of a picture that is all
// of one colour: as many as 2048 x 2048.
#define PEN_IMAGE_BLANK_PIXELS (1u << 22)

typedef struct pen_image_format {
    const char *name;             // "JPEG"
    const char *const *endings;   // of names of such files, ".jpg"; NULL behind the last
    uint64_t pixels_of_few_bytes; // that a file of any length may have, or 0
    uint64_t pixels_per_byte;     // that it has at most for each of its bytes, beside these

    // Whether bytes begin as such a file does.
    bool (*is)(const uint8_t *bytes, size_t size);
    // OUT_OF_MEMORY
    pen_status (*create)(void **out_reader);
    // Accepts NULL.
    void (*destroy)(void *reader);
    // Reads the head, and takes no memory for pixels. The size may be anything: the caller checks
    // it. CORRUPT, UNSUPPORTED, OUT_OF_MEMORY
    pen_status (*begin)(void *reader, const uint8_t *bytes, size_t size, const char *path,
                        pen_image_size *out_size);
    // Hands on all rows, from the top. CORRUPT, UNSUPPORTED, OUT_OF_MEMORY
    pen_status (*read)(void *reader, const pen_image_taker *taker);
    void (*end)(void *reader);
} pen_image_format;

#endif // PEN_SCHEDULER_DATA_IMAGE_IMAGE_FORMAT_H
