#include "scheduler/data/image/image_jpeg.h"

// jpeglib.h needs FILE and size_t
#include <stdio.h>

#include <jerror.h>
#include <jpeglib.h>
#include <setjmp.h>
#include <stdbool.h>
#include <string.h>

#include "base/memory.h"
#include "scheduler/data/image/image_room.h"

#define JPEG_ROWS 64         // that are decoded at once; libjpeg makes a row of blocks at a time
#define JPEG_SCANS_LIMIT 500 // of a progressive picture: a small file may ask for very many

// A bit at least for each block of 8 x 8 of the finest component (one that is coded arithmetically
// may do with less, if it is blank: such are refused).
#define JPEG_PIXELS_PER_BYTE (64u * 8)

typedef struct image_jpeg {
    struct jpeg_decompress_struct libjpeg;
    struct jpeg_error_mgr errors;
    struct jpeg_progress_mgr progress;
    jmp_buf back; // where a step that fails goes
    char text[JMSG_LENGTH_MAX];
    bool is_out_of_memory;
    pen_image_room rows;
    const uint8_t *bytes;
    size_t size;
    const char *path;
    const pen_image_taker *taker;
} image_jpeg;

// ---- what libjpeg calls

static void jpeg_leave(j_common_ptr common) {
    image_jpeg *jpeg = common->client_data;
    jpeg->is_out_of_memory = common->err->msg_code == JERR_OUT_OF_MEMORY;
    common->err->format_message(common, jpeg->text);
    longjmp(jpeg->back, 1);
}

// Bytes between the markers are written by many cameras. All other warnings mean that pixels are
// missing, which libjpeg makes up.
static void jpeg_hear(j_common_ptr common, int level) {
    if (level < 0 && common->err->msg_code != JWRN_EXTRANEOUS_DATA) jpeg_leave(common);
}

static void jpeg_advance(j_common_ptr common) {
    image_jpeg *jpeg = common->client_data;
    if (jpeg->libjpeg.input_scan_number <= JPEG_SCANS_LIMIT) return;
    snprintf(jpeg->text, sizeof jpeg->text, "it has more than %d scans", JPEG_SCANS_LIMIT);
    longjmp(jpeg->back, 1);
}

static void jpeg_keep_quiet(j_common_ptr common) {
    (void)common;
}

// ---- steps

// Runs one step of libjpeg, which owns nothing but what libjpeg does.
static pen_status jpeg_run(image_jpeg *jpeg, void (*step)(image_jpeg *jpeg)) {
    jpeg->is_out_of_memory = false;
    if (setjmp(jpeg->back) == 0) {
        step(jpeg);
        return PEN_OK;
    }
    if (jpeg->is_out_of_memory) return pen_error_out_of_memory();
    return pen_error(PEN_CORRUPT, "'%s': the JPEG picture cannot be decoded: %s", jpeg->path,
                     jpeg->text);
}

// Made anew: libjpeg keeps the tables of the picture before, and would take them for a picture that
// has none. To forget them alone would have it keep their memory, picture after picture.
static void jpeg_read_head(image_jpeg *jpeg) {
    jpeg_destroy_decompress(&jpeg->libjpeg);
    jpeg_create_decompress(&jpeg->libjpeg);
    jpeg->libjpeg.progress = &jpeg->progress;
    jpeg_mem_src(&jpeg->libjpeg, jpeg->bytes, jpeg->size);
    (void)jpeg_read_header(&jpeg->libjpeg, FALSE); // no error if there are tables alone
}

static bool jpeg_has_inks(const image_jpeg *jpeg) {
    const J_COLOR_SPACE space = jpeg->libjpeg.jpeg_color_space;
    return space == JCS_CMYK || space == JCS_YCCK;
}

// 255 - a - b + a b / 255 for inks a and b, rounded as other programs do.
static uint8_t jpeg_mix_inks(uint8_t ink, uint8_t black) {
    const uint32_t product = (255u - ink) * black + 128;
    return (uint8_t)(black - (((product >> 8) + product) >> 8));
}

// Four inks become three colours, in place. Files have the light that inks leave, as Adobe's
// programs write it.
static void jpeg_turn_inks(uint8_t *row, size_t width) {
    for (size_t x = 0; x < width; x++) {
        const uint8_t inks[4] = {row[4 * x], row[4 * x + 1], row[4 * x + 2], row[4 * x + 3]};
        for (size_t c = 0; c < 3; c++)
            row[3 * x + c] = jpeg_mix_inks(inks[c], inks[3]);
    }
}

// Some rows at a time, which libjpeg may have ready together.
static void jpeg_read_rows(image_jpeg *jpeg) {
    struct jpeg_decompress_struct *libjpeg = &jpeg->libjpeg;
    const bool has_inks = jpeg_has_inks(jpeg);
    const size_t row_bytes = (size_t)libjpeg->image_width * (has_inks ? 4 : 3);
    JSAMPROW rows[JPEG_ROWS];
    for (size_t i = 0; i < JPEG_ROWS; i++)
        rows[i] = jpeg->rows.bytes + i * row_bytes;
    libjpeg->out_color_space = has_inks ? JCS_CMYK : JCS_RGB;
    (void)jpeg_start_decompress(libjpeg);
    while (libjpeg->output_scanline < libjpeg->output_height) {
        JDIMENSION count = 0;
        while (count < JPEG_ROWS && libjpeg->output_scanline < libjpeg->output_height)
            count += jpeg_read_scanlines(libjpeg, rows + count, JPEG_ROWS - count);
        for (JDIMENSION i = 0; i < count; i++) {
            if (has_inks) jpeg_turn_inks(rows[i], libjpeg->image_width);
            jpeg->taker->row(jpeg->taker->context, rows[i]);
        }
    }
    (void)jpeg_finish_decompress(libjpeg);
}

// ---- the reader

static const char *const jpeg_endings[] = {".jpg", ".jpeg", NULL};

static bool jpeg_is(const uint8_t *bytes, size_t size) {
    static const uint8_t mark[3] = {0xff, 0xd8, 0xff};
    return size >= sizeof mark && memcmp(bytes, mark, sizeof mark) == 0;
}

static pen_status jpeg_create_reader(void **out_reader) {
    image_jpeg *jpeg = pen_memory_allocate(1, sizeof *jpeg);
    if (jpeg == NULL) return pen_error_out_of_memory();
    jpeg->libjpeg.err = jpeg_std_error(&jpeg->errors);
    jpeg->libjpeg.client_data = jpeg;
    jpeg->errors.error_exit = jpeg_leave;
    jpeg->errors.emit_message = jpeg_hear;
    jpeg->errors.output_message = jpeg_keep_quiet;
    jpeg->progress.progress_monitor = jpeg_advance;
    jpeg->path = "";
    *out_reader = jpeg;
    return PEN_OK;
}

static void jpeg_destroy_reader(void *reader) {
    image_jpeg *jpeg = reader;
    if (jpeg == NULL) return;
    jpeg_destroy_decompress(&jpeg->libjpeg);
    pen_image_room_clear(&jpeg->rows);
    pen_memory_free(jpeg);
}

static pen_status jpeg_begin(void *reader, const uint8_t *bytes, size_t size, const char *path,
                             pen_image_size *out_size) {
    image_jpeg *jpeg = reader;
    const struct jpeg_decompress_struct *libjpeg = &jpeg->libjpeg;
    jpeg->bytes = bytes;
    jpeg->size = size;
    jpeg->path = path;
    PEN_TRY(jpeg_run(jpeg, jpeg_read_head));
    if (libjpeg->image_width == 0 || libjpeg->image_height == 0) {
        return pen_error(PEN_CORRUPT, "'%s': the JPEG file has no picture", path);
    }
    *out_size = (pen_image_size){libjpeg->image_width, libjpeg->image_height};
    return PEN_OK;
}

static pen_status jpeg_read(void *reader, const pen_image_taker *taker) {
    image_jpeg *jpeg = reader;
    const size_t wanted =
        (size_t)jpeg->libjpeg.image_width * (jpeg_has_inks(jpeg) ? 4 : 3) * JPEG_ROWS;
    PEN_TRY(pen_image_room_reserve(&jpeg->rows, wanted));
    jpeg->taker = taker;
    return jpeg_run(jpeg, jpeg_read_rows);
}

// Gives back what libjpeg took for the file.
static void jpeg_end(void *reader) {
    image_jpeg *jpeg = reader;
    jpeg_abort_decompress(&jpeg->libjpeg);
}

const pen_image_format pen_image_format_jpeg = {
    .name = "JPEG",
    .endings = jpeg_endings,
    .pixels_per_byte = JPEG_PIXELS_PER_BYTE,
    .is = jpeg_is,
    .create = jpeg_create_reader,
    .destroy = jpeg_destroy_reader,
    .begin = jpeg_begin,
    .read = jpeg_read,
    .end = jpeg_end,
};

const char *pen_libjpeg_version(void) {
#ifdef LIBJPEG_TURBO_VERSION
#define JPEG_TEXT(macro) JPEG_QUOTE(macro)
#define JPEG_QUOTE(text) #text
    return JPEG_TEXT(LIBJPEG_TURBO_VERSION);
#else
    return "of unknown version";
#endif
}
