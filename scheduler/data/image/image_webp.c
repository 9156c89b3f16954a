#include "scheduler/data/image/image_webp.h"

#include <stdio.h>
#include <string.h>
#include <webp/decode.h>

#include "base/memory.h"
#include "scheduler/data/image/image_room.h"

#define WEBP_CHANNELS 3
#define WEBP_ROOM_KEPT (3u << 20) // bytes that stay for the next picture
// As of a PNG, whose packing is alike: the lossless form may take no bit at all for a pixel.
#define WEBP_PIXELS_PER_BYTE (1032u * 8)

typedef struct image_webp {
    const uint8_t *bytes;
    size_t size;
    const char *path;
    pen_image_size picture;
    pen_image_room room;
} image_webp;

static const char *const webp_endings[] = {".webp", NULL};

static bool webp_is(const uint8_t *bytes, size_t size) {
    return size >= 12 && memcmp(bytes, "RIFF", 4) == 0 && memcmp(bytes + 8, "WEBP", 4) == 0;
}

static pen_status webp_create_reader(void **out_reader) {
    image_webp *webp = pen_memory_allocate(1, sizeof *webp);
    if (webp == NULL) return pen_error_out_of_memory();
    *out_reader = webp;
    return PEN_OK;
}

static void webp_destroy_reader(void *reader) {
    image_webp *webp = reader;
    if (webp == NULL) return;
    pen_image_room_clear(&webp->room);
    pen_memory_free(webp);
}

static const char *webp_explain(VP8StatusCode code) {
    switch (code) {
    case VP8_STATUS_NOT_ENOUGH_DATA:
    case VP8_STATUS_SUSPENDED:
        return "it is cut short";
    case VP8_STATUS_UNSUPPORTED_FEATURE:
        return "it is coded in a way that libwebp does not know";
    default:
        return "its bytes are damaged";
    }
}

static pen_status webp_error(const image_webp *webp, VP8StatusCode code) {
    if (code == VP8_STATUS_OUT_OF_MEMORY) return pen_error_out_of_memory();
    return pen_error(code == VP8_STATUS_UNSUPPORTED_FEATURE ? PEN_UNSUPPORTED : PEN_CORRUPT,
                     "'%s': the WebP picture cannot be decoded: %s", webp->path,
                     webp_explain(code));
}

static pen_status webp_begin(void *reader, const uint8_t *bytes, size_t size, const char *path,
                             pen_image_size *out_size) {
    image_webp *webp = reader;
    WebPBitstreamFeatures features;
    webp->bytes = bytes;
    webp->size = size;
    webp->path = path;
    const VP8StatusCode code = WebPGetFeatures(bytes, size, &features);
    if (code != VP8_STATUS_OK) return webp_error(webp, code);
    if (features.has_animation != 0) {
        return pen_error(PEN_UNSUPPORTED,
                         "'%s' is an animated WebP, expected a still picture: save one of its "
                         "frames",
                         path);
    }
    webp->picture = (pen_image_size){(uint32_t)features.width, (uint32_t)features.height};
    *out_size = webp->picture;
    return PEN_OK;
}

// libwebp only makes whole pictures. Without an alpha channel asked for, what is transparent keeps
// its colour. It decodes within this thread: pictures are spread over threads, not their parts.
static pen_status webp_read(void *reader, const pen_image_taker *taker) {
    image_webp *webp = reader;
    const size_t row_bytes = (size_t)webp->picture.width * WEBP_CHANNELS;
    const size_t wanted = row_bytes * webp->picture.height;
    WebPDecoderConfig config;
    if (WebPInitDecoderConfig(&config) == 0) {
        return pen_error(PEN_UNSUPPORTED, "libwebp %s is not one that this build can use",
                         pen_libwebp_version());
    }
    PEN_TRY(pen_image_room_reserve(&webp->room, wanted));
    config.output.colorspace = MODE_RGB;
    config.output.is_external_memory = 1;
    config.output.u.RGBA =
        (WebPRGBABuffer){.rgba = webp->room.bytes, .stride = (int)row_bytes, .size = wanted};
    const VP8StatusCode code = WebPDecode(webp->bytes, webp->size, &config);
    if (code != VP8_STATUS_OK) return webp_error(webp, code);
    for (uint32_t y = 0; y < webp->picture.height; y++)
        taker->row(taker->context, webp->room.bytes + y * row_bytes);
    return PEN_OK;
}

static void webp_end(void *reader) {
    image_webp *webp = reader;
    if (webp->room.capacity > WEBP_ROOM_KEPT) pen_image_room_clear(&webp->room);
}

const pen_image_format pen_image_format_webp = {
    .name = "WebP",
    .endings = webp_endings,
    .pixels_of_few_bytes = PEN_IMAGE_BLANK_PIXELS,
    .pixels_per_byte = WEBP_PIXELS_PER_BYTE,
    .is = webp_is,
    .create = webp_create_reader,
    .destroy = webp_destroy_reader,
    .begin = webp_begin,
    .read = webp_read,
    .end = webp_end,
};

const char *pen_libwebp_version(void) {
    static _Thread_local char text[24];
    const unsigned version = (unsigned)WebPGetDecoderVersion();
    snprintf(text, sizeof text, "%u.%u.%u", version >> 16 & 255, version >> 8 & 255, version & 255);
    return text;
}
