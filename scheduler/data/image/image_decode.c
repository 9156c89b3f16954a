#include "scheduler/data/image/image_decode.h"

#include <inttypes.h>
#include <string.h>
#include <strings.h>

#include "base/limits.h"
#include "base/memory.h"
#include "scheduler/data/image/image_bmp.h"
#include "scheduler/data/image/image_jpeg.h"
#include "scheduler/data/image/image_png.h"
#include "scheduler/data/image/image_webp.h"

// The kinds there are. Those who add one name it in PEN_IMAGE_KINDS and PEN_IMAGE_ENDINGS, too.
static const pen_image_format *const image_formats[] = {
    &pen_image_format_jpeg, &pen_image_format_png, &pen_image_format_webp, &pen_image_format_bmp};
#define IMAGE_FORMAT_COUNT (sizeof image_formats / sizeof image_formats[0])

struct pen_image_decoder {
    void *readers[IMAGE_FORMAT_COUNT]; // of each kind
};

pen_status pen_image_decoder_create(pen_image_decoder **out_decoder) {
    pen_image_decoder *decoder = pen_memory_allocate(1, sizeof *decoder);
    if (decoder == NULL) return pen_error_out_of_memory();
    pen_status status = PEN_OK;
    for (size_t i = 0; i < IMAGE_FORMAT_COUNT && status == PEN_OK; i++)
        status = image_formats[i]->create(&decoder->readers[i]);
    if (status != PEN_OK) {
        pen_image_decoder_destroy(decoder);
        return status;
    }
    *out_decoder = decoder;
    return PEN_OK;
}

void pen_image_decoder_destroy(pen_image_decoder *decoder) {
    if (decoder == NULL) return;
    for (size_t i = 0; i < IMAGE_FORMAT_COUNT; i++)
        image_formats[i]->destroy(decoder->readers[i]);
    pen_memory_free(decoder);
}

// The place of a file's kind in the list, IMAGE_FORMAT_COUNT if it is of none.
static size_t image_find_format(const uint8_t *bytes, size_t size) {
    size_t i = 0;
    while (i < IMAGE_FORMAT_COUNT && !image_formats[i]->is(bytes, size))
        i++;
    return i;
}

bool pen_image_is(const uint8_t *bytes, size_t size) {
    return image_find_format(bytes, size) < IMAGE_FORMAT_COUNT;
}

bool pen_image_is_named(const char *name) {
    const char *ending = strrchr(name, '.');
    for (size_t i = 0; ending != NULL && i < IMAGE_FORMAT_COUNT; i++) {
        for (const char *const *known = image_formats[i]->endings; *known != NULL; known++) {
            if (strcasecmp(ending, *known) == 0) return true;
        }
    }
    return false;
}

// Before memory is taken: whether a picture is one that is read, and can be in a file of `bytes`.
static pen_status image_check(pen_image_size size, const pen_image_format *format, size_t bytes,
                              const char *path) {
    const uint64_t pixels = (uint64_t)size.width * size.height;
    if (size.width == 0 || size.height == 0 || size.width > PEN_IMAGE_SIDE_LIMIT ||
        size.height > PEN_IMAGE_SIDE_LIMIT || pixels > PEN_IMAGE_PIXELS_LIMIT) {
        return pen_error(PEN_UNSUPPORTED,
                         "'%s': the picture has %" PRIu32 " x %" PRIu32
                         " pixels, expected sides of 1 to %d and %u pixels at most",
                         path, size.width, size.height, PEN_IMAGE_SIDE_LIMIT,
                         PEN_IMAGE_PIXELS_LIMIT);
    }
    if (pixels <= format->pixels_of_few_bytes) return PEN_OK;
    const uint64_t others = pixels - format->pixels_of_few_bytes;
    if (others / format->pixels_per_byte <= bytes) return PEN_OK;
    if (format->pixels_of_few_bytes == 0) {
        return pen_error(PEN_CORRUPT,
                         "'%s': the picture announces %" PRIu32 " x %" PRIu32
                         " pixels, more than %zu bytes can hold",
                         path, size.width, size.height, bytes);
    }
    return pen_error(PEN_UNSUPPORTED,
                     "'%s': the picture announces %" PRIu32 " x %" PRIu32
                     " pixels, a %s of %zu bytes is read up to %" PRIu64,
                     path, size.width, size.height, format->name, bytes,
                     format->pixels_of_few_bytes + format->pixels_per_byte * bytes);
}

// A larger file is none that holds so few pixels; decoders would look through all of it.
static pen_status image_check_file(size_t size, const char *path) {
    if (size <= PEN_IMAGE_FILE_LIMIT) return PEN_OK;
    return pen_error(PEN_UNSUPPORTED, "'%s' has %zu bytes, a picture has at most %llu", path, size,
                     PEN_IMAGE_FILE_LIMIT);
}

static pen_status image_other(const uint8_t *bytes, size_t size, const char *path) {
    if (size < 8) {
        return pen_error(PEN_CORRUPT, "'%s' is not a picture: it has %zu bytes", path, size);
    }
    return pen_error(PEN_UNSUPPORTED,
                     "'%s' is no " PEN_IMAGE_KINDS " file: it begins with %02x %02x %02x %02x",
                     path, bytes[0], bytes[1], bytes[2], bytes[3]);
}

// Reads the head, and the rows if there is a taker. Whatever comes of it, the reader of the kind is
// ready for the next file.
static pen_status image_read(pen_image_decoder *decoder, const uint8_t *bytes, size_t size,
                             const char *path, const pen_image_taker *taker,
                             pen_image_size *out_size) {
    *out_size = (pen_image_size){0};
    PEN_TRY(image_check_file(size, path));
    const size_t place = image_find_format(bytes, size);
    if (place == IMAGE_FORMAT_COUNT) return image_other(bytes, size, path);
    const pen_image_format *format = image_formats[place];
    void *reader = decoder->readers[place];
    pen_status status = format->begin(reader, bytes, size, path, out_size);
    if (status == PEN_OK) status = image_check(*out_size, format, size, path);
    if (status == PEN_OK && taker != NULL) status = taker->begin(taker->context, *out_size);
    if (status == PEN_OK && taker != NULL) status = format->read(reader, taker);
    format->end(reader);
    return status;
}

pen_status pen_image_measure(pen_image_decoder *decoder, const uint8_t *bytes, size_t size,
                             const char *path, pen_image_size *out_size) {
    return image_read(decoder, bytes, size, path, NULL, out_size);
}

pen_status pen_image_decode(pen_image_decoder *decoder, const uint8_t *bytes, size_t size,
                            const char *path, const pen_image_taker *taker) {
    pen_image_size found;
    return image_read(decoder, bytes, size, path, taker, &found);
}
