#include "scheduler/data/image/image_decode.h"

#include <inttypes.h>
#include <string.h>

#include "base/limits.h"
#include "base/memory.h"
#include "scheduler/data/image/image_jpeg.h"
#include "scheduler/data/image/image_png.h"

// A PNG holds at most 1032 times its bytes (deflate); an eighth of that in pixels of one bit, and
// some for headers. A JPEG has a bit at least for each block of 8 x 8 of its finest component (one
// that is coded arithmetically may do with less, if it is blank: such are refused).
#define IMAGE_PNG_PIXELS_PER_BYTE (1032u * 8)
#define IMAGE_JPEG_PIXELS_PER_BYTE (64u * 8)

struct pen_image_decoder {
    pen_image_jpeg *jpeg;
    pen_image_png *png;
};

typedef enum image_kind { IMAGE_JPEG, IMAGE_PNG, IMAGE_OTHER } image_kind;

pen_status pen_image_decoder_create(pen_image_decoder **out_decoder) {
    pen_image_decoder *decoder = pen_memory_allocate(1, sizeof *decoder);
    if (decoder == NULL) return pen_error_out_of_memory();
    pen_status status = pen_image_jpeg_create(&decoder->jpeg);
    if (status == PEN_OK) status = pen_image_png_create(&decoder->png);
    if (status != PEN_OK) {
        pen_image_decoder_destroy(decoder);
        return status;
    }
    *out_decoder = decoder;
    return PEN_OK;
}

void pen_image_decoder_destroy(pen_image_decoder *decoder) {
    if (decoder == NULL) return;
    pen_image_jpeg_destroy(decoder->jpeg);
    pen_image_png_destroy(decoder->png);
    pen_memory_free(decoder);
}

static image_kind image_find_kind(const uint8_t *bytes, size_t size) {
    static const uint8_t png[8] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};
    static const uint8_t jpeg[3] = {0xff, 0xd8, 0xff};
    if (size >= sizeof png && memcmp(bytes, png, sizeof png) == 0) return IMAGE_PNG;
    if (size >= sizeof jpeg && memcmp(bytes, jpeg, sizeof jpeg) == 0) return IMAGE_JPEG;
    return IMAGE_OTHER;
}

bool pen_image_is(const uint8_t *bytes, size_t size) {
    return image_find_kind(bytes, size) != IMAGE_OTHER;
}

// Before memory is taken: whether a picture is one that is read, and can be in a file of `bytes`.
static pen_status image_check(pen_image_size size, uint64_t pixels_per_byte, size_t bytes,
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
    if (pixels / pixels_per_byte <= bytes) return PEN_OK;
    return pen_error(PEN_CORRUPT,
                     "'%s': the picture announces %" PRIu32 " x %" PRIu32
                     " pixels, more than %zu bytes can hold",
                     path, size.width, size.height, bytes);
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
                     "'%s' is neither JPEG nor PNG: it begins with %02x %02x %02x %02x", path,
                     bytes[0], bytes[1], bytes[2], bytes[3]);
}

// Reads the head, and the rows if there is a taker. Whatever comes of it, the reader of the kind is
// ready for the next file.
static pen_status image_read_jpeg(pen_image_jpeg *jpeg, const uint8_t *bytes, size_t size,
                                  const char *path, const pen_image_taker *taker,
                                  pen_image_size *out_size) {
    pen_status status = pen_image_jpeg_begin(jpeg, bytes, size, path, out_size);
    if (status == PEN_OK) status = image_check(*out_size, IMAGE_JPEG_PIXELS_PER_BYTE, size, path);
    if (status == PEN_OK && taker != NULL) status = taker->begin(taker->context, *out_size);
    if (status == PEN_OK && taker != NULL) status = pen_image_jpeg_read(jpeg, taker);
    pen_image_jpeg_end(jpeg);
    return status;
}

static pen_status image_read_png(pen_image_png *png, const uint8_t *bytes, size_t size,
                                 const char *path, const pen_image_taker *taker,
                                 pen_image_size *out_size) {
    pen_status status = pen_image_png_begin(png, bytes, size, path, out_size);
    if (status == PEN_OK) status = image_check(*out_size, IMAGE_PNG_PIXELS_PER_BYTE, size, path);
    if (status == PEN_OK && taker != NULL) status = taker->begin(taker->context, *out_size);
    if (status == PEN_OK && taker != NULL) status = pen_image_png_read(png, taker);
    pen_image_png_end(png);
    return status;
}

static pen_status image_read(pen_image_decoder *decoder, const uint8_t *bytes, size_t size,
                             const char *path, const pen_image_taker *taker,
                             pen_image_size *out_size) {
    *out_size = (pen_image_size){0};
    PEN_TRY(image_check_file(size, path));
    switch (image_find_kind(bytes, size)) {
    case IMAGE_JPEG:
        return image_read_jpeg(decoder->jpeg, bytes, size, path, taker, out_size);
    case IMAGE_PNG:
        return image_read_png(decoder->png, bytes, size, path, taker, out_size);
    case IMAGE_OTHER:
        break;
    }
    return image_other(bytes, size, path);
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
