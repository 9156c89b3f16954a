#include "scheduler/data/image/image_png.h"

#include <png.h>
#include <setjmp.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "scheduler/data/image/image_room.h"

#define PNG_TEXT_BYTES 128
#define PNG_CHANNELS_LIMIT 4

// A PNG holds at most 1032 times its bytes (deflate); an eighth of that in pixels of one bit, and
// some for headers.
#define PNG_PIXELS_PER_BYTE (1032u * 8)

typedef struct image_png {
    png_structp libpng; // of the file that was begun
    png_infop info;
    jmp_buf back; // where a step that fails goes
    char text[PNG_TEXT_BYTES];
    pen_image_room rows;
    const uint8_t *bytes; // not read yet
    size_t left;
    const char *path;
    const pen_image_taker *taker;
    pen_image_size size;
    bool has_alpha;
    int pass_count;
} image_png;

// ---- what libpng calls

static void png_leave(png_structp libpng, png_const_charp text) {
    image_png *png = png_get_error_ptr(libpng);
    snprintf(png->text, sizeof png->text, "%s", text);
    longjmp(png->back, 1);
}

// Warnings are about colour profiles and the like; missing pixels are errors.
static void png_keep_quiet(png_structp libpng, png_const_charp text) {
    (void)libpng;
    (void)text;
}

static void png_take_bytes(png_structp libpng, png_bytep out_bytes, size_t count) {
    image_png *png = png_get_io_ptr(libpng);
    if (count > png->left) png_error(libpng, "it is cut short");
    memcpy(out_bytes, png->bytes, count);
    png->bytes += count;
    png->left -= count;
}

// ---- steps

// Runs one step of libpng, which owns nothing but what libpng does.
static pen_status png_run(image_png *png, void (*step)(image_png *png)) {
    if (setjmp(png->back) == 0) {
        step(png);
        return PEN_OK;
    }
    if (strcmp(png->text, "Out of memory") == 0) return pen_error_out_of_memory();
    return pen_error(PEN_CORRUPT, "'%s': the PNG picture cannot be decoded: %s", png->path,
                     png->text);
}

// Errors of chunks that do not matter for the pixels are none.
static void png_decode_head(image_png *png) {
    png_set_read_fn(png->libpng, png, png_take_bytes);
    png_set_benign_errors(png->libpng, 1);
    png_read_info(png->libpng, png->info);
}

// Eight bits, red, green and blue, and transparency where there is any; in sRGB, from what the file
// says that it is in: 16 bits without a word of it are linear. The same, in the same order, as
// libpng's simplified interface does, which only makes whole pictures.
static void png_choose_form(image_png *png) {
    const int colours = png_get_color_type(png->libpng, png->info);
    const bool is_wide = png_get_bit_depth(png->libpng, png->info) == 16;
    png->has_alpha = (colours & PNG_COLOR_MASK_ALPHA) != 0 ||
                     png_get_valid(png->libpng, png->info, PNG_INFO_tRNS) != 0;
    png_set_expand(png->libpng);
    if ((colours & PNG_COLOR_MASK_COLOR) == 0) png_set_gray_to_rgb(png->libpng);
    png_set_alpha_mode_fixed(png->libpng, PNG_ALPHA_PNG,
                             is_wide ? PNG_GAMMA_LINEAR : PNG_DEFAULT_sRGB);
    if (is_wide) png_set_scale_16(png->libpng);
    png_set_alpha_mode_fixed(png->libpng, PNG_ALPHA_PNG, PNG_DEFAULT_sRGB);
    png->pass_count = png_set_interlace_handling(png->libpng);
    png_read_update_info(png->libpng, png->info);
    const size_t expected = (size_t)png->size.width * (png->has_alpha ? 4 : 3);
    if (png_get_rowbytes(png->libpng, png->info) != expected) {
        png_error(png->libpng, "its rows are of another length");
    }
}

// Four bytes a pixel become three; what was transparent keeps its colour.
static void png_drop_alpha(uint8_t *pixels, size_t count) {
    for (size_t i = 0; i < count; i++) {
        for (size_t c = 0; c < 3; c++)
            pixels[i * 3 + c] = pixels[i * 4 + c];
    }
}

static void png_hand_on(const image_png *png, uint8_t *row) {
    if (png->has_alpha) png_drop_alpha(row, png->size.width);
    png->taker->row(png->taker->context, row);
}

// An interlaced picture comes in passes over all of it.
static void png_decode_rows(image_png *png) {
    const size_t row_bytes = (size_t)png->size.width * (png->has_alpha ? 4 : 3);
    if (png->pass_count == 1) {
        for (uint32_t y = 0; y < png->size.height; y++) {
            png_read_row(png->libpng, png->rows.bytes, NULL);
            png_hand_on(png, png->rows.bytes);
        }
        return;
    }
    for (int pass = 0; pass < png->pass_count; pass++) {
        for (uint32_t y = 0; y < png->size.height; y++)
            png_read_row(png->libpng, png->rows.bytes + y * row_bytes, NULL);
    }
    for (uint32_t y = 0; y < png->size.height; y++)
        png_hand_on(png, png->rows.bytes + y * row_bytes);
}

// ---- the reader

static const char *const png_endings[] = {".png", NULL};

static bool png_is(const uint8_t *bytes, size_t size) {
    static const uint8_t mark[8] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};
    return size >= sizeof mark && memcmp(bytes, mark, sizeof mark) == 0;
}

static pen_status png_create_reader(void **out_reader) {
    image_png *png = pen_memory_allocate(1, sizeof *png);
    if (png == NULL) return pen_error_out_of_memory();
    *out_reader = png;
    return PEN_OK;
}

// The room of a whole picture is given back, that of a row is kept.
static void png_end(void *reader) {
    image_png *png = reader;
    png_destroy_read_struct(&png->libpng, &png->info, NULL);
    if (png->pass_count > 1) pen_image_room_clear(&png->rows);
    png->pass_count = 0;
}

static void png_destroy_reader(void *reader) {
    image_png *png = reader;
    if (png == NULL) return;
    png_end(png);
    pen_image_room_clear(&png->rows);
    pen_memory_free(png);
}

static pen_status png_begin(void *reader, const uint8_t *bytes, size_t size, const char *path,
                            pen_image_size *out_size) {
    image_png *png = reader;
    png->bytes = bytes;
    png->left = size;
    png->path = path;
    png->libpng = png_create_read_struct(PNG_LIBPNG_VER_STRING, png, png_leave, png_keep_quiet);
    if (png->libpng != NULL) png->info = png_create_info_struct(png->libpng);
    if (png->info == NULL) return pen_error_out_of_memory();
    PEN_TRY(png_run(png, png_decode_head));
    png->size = (pen_image_size){png_get_image_width(png->libpng, png->info),
                                 png_get_image_height(png->libpng, png->info)};
    *out_size = png->size;
    return PEN_OK;
}

// A row, or all of an interlaced picture.
static pen_status png_make_room(image_png *png) {
    const size_t row_bytes = (size_t)png->size.width * PNG_CHANNELS_LIMIT;
    const size_t wanted = png->pass_count == 1 ? row_bytes : row_bytes * png->size.height;
    return pen_image_room_reserve(&png->rows, wanted);
}

static pen_status png_read(void *reader, const pen_image_taker *taker) {
    image_png *png = reader;
    png->taker = taker;
    PEN_TRY(png_run(png, png_choose_form));
    PEN_TRY(png_make_room(png));
    return png_run(png, png_decode_rows);
}

const pen_image_format pen_image_format_png = {
    .name = "PNG",
    .endings = png_endings,
    .pixels_per_byte = PNG_PIXELS_PER_BYTE,
    .is = png_is,
    .create = png_create_reader,
    .destroy = png_destroy_reader,
    .begin = png_begin,
    .read = png_read,
    .end = png_end,
};

const char *pen_png_version(void) {
    return png_get_libpng_ver(NULL);
}
