#include "scheduler/data/image_decode.h"

#include <inttypes.h>
#include <png.h>
#include <string.h>
#include <turbojpeg.h>
#if __has_include(<jconfig.h>)
#include <jconfig.h> // turbojpeg does not tell its version otherwise
#endif

#include "base/limits.h"
#include "base/memory.h"

// A PNG holds at most 1032 times its bytes (deflate); an eighth of that in pixels of one bit, and
// some for headers. A JPEG has a bit at least for each block of 8 x 8 of its finest component (one
// that is coded arithmetically may do with less, if it is blank: such are refused).
#define IMAGE_PNG_PIXELS_PER_BYTE (1032u * 8)
#define IMAGE_JPEG_PIXELS_PER_BYTE (64u * 8)

struct pen_image_decoder {
    tjhandle jpeg;
    uint8_t *pixels;
    size_t capacity;
};

typedef enum image_kind { IMAGE_JPEG, IMAGE_PNG, IMAGE_OTHER } image_kind;

pen_status pen_image_decoder_create(pen_image_decoder **out_decoder) {
    pen_image_decoder *decoder = pen_memory_allocate(1, sizeof *decoder);
    if (decoder == NULL) return pen_error_out_of_memory();
    decoder->jpeg = tjInitDecompress();
    if (decoder->jpeg == NULL) {
        pen_image_decoder_destroy(decoder);
        return pen_error_out_of_memory();
    }
    *out_decoder = decoder;
    return PEN_OK;
}

void pen_image_decoder_destroy(pen_image_decoder *decoder) {
    if (decoder == NULL) return;
    if (decoder->jpeg != NULL) tjDestroy(decoder->jpeg);
    pen_memory_free(decoder->pixels);
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

static pen_status image_check_sides(uint32_t width, uint32_t height, const char *path) {
    if (width > 0 && height > 0 && width <= PEN_IMAGE_SIDE_LIMIT &&
        height <= PEN_IMAGE_SIDE_LIMIT && (uint64_t)width * height <= PEN_IMAGE_PIXELS_LIMIT) {
        return PEN_OK;
    }
    return pen_error(PEN_UNSUPPORTED,
                     "'%s': the picture has %" PRIu32 " x %" PRIu32
                     " pixels, expected sides of 1 to %d and %u pixels at most",
                     path, width, height, PEN_IMAGE_SIDE_LIMIT, PEN_IMAGE_PIXELS_LIMIT);
}

// Before memory is taken for the pixels: whether so many can be in a file of `size` bytes.
static pen_status image_check_size(const pen_image *image, uint64_t pixels_per_byte, size_t size,
                                   const char *path) {
    if ((uint64_t)image->width * image->height / pixels_per_byte <= size) return PEN_OK;
    return pen_error(PEN_CORRUPT,
                     "'%s': the picture announces %" PRIu32 " x %" PRIu32
                     " pixels, more than %zu bytes can hold",
                     path, image->width, image->height, size);
}

// A larger file is none that holds so few pixels; decoders would look through all of it.
static pen_status image_check_file(size_t size, const char *path) {
    if (size <= PEN_IMAGE_FILE_LIMIT) return PEN_OK;
    return pen_error(PEN_UNSUPPORTED, "'%s' has %zu bytes, a picture has at most %llu", path, size,
                     PEN_IMAGE_FILE_LIMIT);
}

static pen_status image_reserve(pen_image_decoder *decoder, size_t size) {
    if (size <= decoder->capacity) return PEN_OK;
    pen_memory_free(decoder->pixels);
    decoder->capacity = 0;
    decoder->pixels = pen_memory_allocate_lazily(size, 1); // a file may announce what it lacks
    if (decoder->pixels == NULL) return pen_error_out_of_memory();
    decoder->capacity = size;
    return PEN_OK;
}

static pen_status image_jpeg_error(const pen_image_decoder *decoder, const char *path) {
    return pen_error(PEN_CORRUPT, "'%s': the JPEG picture cannot be decoded: %s", path,
                     tjGetErrorStr2(decoder->jpeg));
}

// Whether decoding failed by no more than a warning about bytes between the markers, which many
// cameras write. All other warnings mean that pixels are missing.
static bool image_jpeg_is_whole(const pen_image_decoder *decoder) {
    return tjGetErrorCode(decoder->jpeg) == TJERR_WARNING &&
           strstr(tjGetErrorStr2(decoder->jpeg), "extraneous bytes") != NULL;
}

static pen_status image_measure_jpeg(const pen_image_decoder *decoder, const uint8_t *bytes,
                                     size_t size, const char *path, pen_image *image) {
    int width = 0, height = 0, subsampling = 0, colours = 0; // untouched if there are tables alone
    if (tjDecompressHeader3(decoder->jpeg, bytes, size, &width, &height, &subsampling, &colours) !=
        0) {
        return image_jpeg_error(decoder, path);
    }
    if (colours == TJCS_CMYK || colours == TJCS_YCCK) {
        return pen_error(PEN_UNSUPPORTED,
                         "'%s': a JPEG of four inks (CMYK), expected gray or colour", path);
    }
    if (width <= 0 || height <= 0) {
        return pen_error(PEN_CORRUPT, "'%s': the JPEG file has no picture", path);
    }
    image->width = (uint32_t)width;
    image->height = (uint32_t)height;
    PEN_TRY(image_check_sides(image->width, image->height, path));
    return image_check_size(image, IMAGE_JPEG_PIXELS_PER_BYTE, size, path);
}

static pen_status image_decode_jpeg(pen_image_decoder *decoder, const uint8_t *bytes, size_t size,
                                    const char *path, pen_image *image) {
    PEN_TRY(image_measure_jpeg(decoder, bytes, size, path, image));
    PEN_TRY(image_reserve(decoder, (size_t)image->width * image->height * 3));
    if (tjDecompress2(decoder->jpeg, bytes, size, decoder->pixels, (int)image->width, 0,
                      (int)image->height, TJPF_RGB, TJFLAG_LIMITSCANS) != 0 &&
        !image_jpeg_is_whole(decoder)) {
        return image_jpeg_error(decoder, path);
    }
    image->pixels = decoder->pixels;
    return PEN_OK;
}

static pen_status image_png_error(const png_image *png, const char *path) {
    return pen_error(PEN_CORRUPT, "'%s': the PNG picture cannot be decoded: %s", path,
                     png->message);
}

// Leaves `png` begun on success: png_image_free is the caller's.
static pen_status image_begin_png(const uint8_t *bytes, size_t size, const char *path,
                                  png_image *png, pen_image *image) {
    *png = (png_image){.version = PNG_IMAGE_VERSION};
    if (!png_image_begin_read_from_memory(png, bytes, size)) return image_png_error(png, path);
    image->width = png->width;
    image->height = png->height;
    pen_status status = image_check_sides(image->width, image->height, path);
    if (status == PEN_OK) status = image_check_size(image, IMAGE_PNG_PIXELS_PER_BYTE, size, path);
    if (status != PEN_OK) png_image_free(png);
    return status;
}

// Four bytes a pixel become three; what was transparent keeps its colour.
static void image_drop_transparency(uint8_t *pixels, size_t count) {
    for (size_t i = 0; i < count; i++) {
        for (size_t c = 0; c < 3; c++)
            pixels[i * 3 + c] = pixels[i * 4 + c];
    }
}

static pen_status image_decode_png(pen_image_decoder *decoder, const uint8_t *bytes, size_t size,
                                   const char *path, pen_image *image) {
    png_image png;
    PEN_TRY(image_begin_png(bytes, size, path, &png, image));
    const bool alpha = (png.format & PNG_FORMAT_FLAG_ALPHA) != 0;
    const size_t count = (size_t)image->width * image->height;
    png.format = alpha ? PNG_FORMAT_RGBA : PNG_FORMAT_RGB;
    pen_status status = image_reserve(decoder, count * (alpha ? 4 : 3));
    // warnings are about colour profiles and the like; missing pixels are errors
    if (status == PEN_OK && !png_image_finish_read(&png, NULL, decoder->pixels, 0, NULL)) {
        status = image_png_error(&png, path);
    }
    png_image_free(&png);
    if (status != PEN_OK) return status;
    if (alpha) image_drop_transparency(decoder->pixels, count);
    image->pixels = decoder->pixels;
    return PEN_OK;
}

static pen_status image_other(const uint8_t *bytes, size_t size, const char *path) {
    if (size < 8) {
        return pen_error(PEN_CORRUPT, "'%s' is not a picture: it has %zu bytes", path, size);
    }
    return pen_error(PEN_UNSUPPORTED,
                     "'%s' is neither JPEG nor PNG: it begins with %02x %02x %02x %02x", path,
                     bytes[0], bytes[1], bytes[2], bytes[3]);
}

pen_status pen_image_measure(pen_image_decoder *decoder, const uint8_t *bytes, size_t size,
                             const char *path, pen_image *out_image) {
    png_image png;
    *out_image = (pen_image){0};
    PEN_TRY(image_check_file(size, path));
    switch (image_find_kind(bytes, size)) {
    case IMAGE_JPEG:
        return image_measure_jpeg(decoder, bytes, size, path, out_image);
    case IMAGE_PNG:
        PEN_TRY(image_begin_png(bytes, size, path, &png, out_image));
        png_image_free(&png);
        return PEN_OK;
    case IMAGE_OTHER:
        break;
    }
    return image_other(bytes, size, path);
}

pen_status pen_image_decode(pen_image_decoder *decoder, const uint8_t *bytes, size_t size,
                            const char *path, pen_image *out_image) {
    *out_image = (pen_image){0};
    PEN_TRY(image_check_file(size, path));
    switch (image_find_kind(bytes, size)) {
    case IMAGE_JPEG:
        return image_decode_jpeg(decoder, bytes, size, path, out_image);
    case IMAGE_PNG:
        return image_decode_png(decoder, bytes, size, path, out_image);
    case IMAGE_OTHER:
        break;
    }
    return image_other(bytes, size, path);
}

const char *pen_png_version(void) {
    return png_get_libpng_ver(NULL);
}

const char *pen_turbojpeg_version(void) {
#ifdef LIBJPEG_TURBO_VERSION
#define IMAGE_TEXT(macro) IMAGE_QUOTE(macro)
#define IMAGE_QUOTE(text) #text
    return IMAGE_TEXT(LIBJPEG_TURBO_VERSION);
#else
    return "of unknown version";
#endif
}
