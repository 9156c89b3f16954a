#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "base/system/file.h"
#include "scheduler/data/image/image_decode.h"
#include "tests/support/check.h"
#include "tests/support/taken_image.h"

#define BMP_WIDTH 21
#define BMP_HEIGHT 13

typedef struct picture_case {
    const char *names[32]; // sorted, as the script has them
    const char *kind;
    uint32_t width, height;
} picture_case;

static const picture_case bmp_case = {
    .names = {"down_1",    "down_24",  "down_4",   "down_8",    "few",      "gap",      "masks_555",
              "masks_565", "masks_v1", "masks_v3", "masks_v4",  "masks_v5", "os2_1",    "os2_24",
              "os2_4",     "os2_8",    "places_1", "places_4",  "places_8", "plain_16", "plain_24",
              "plain_32",  "rle4",     "rle8",     "rle8_jumps"},
    .kind = "bmp",
    .width = BMP_WIDTH,
    .height = BMP_HEIGHT,
};
static const picture_case webp_case = {
    .names = {"alpha", "alpha_lossless", "described", "few_colours", "lossless", "lossy",
              "lossy_fine"},
    .kind = "webp",
    .width = 37,
    .height = 29,
};

static pen_mapping open_seed(const char *kind, const char *name) {
    char path[128];
    pen_mapping file;
    snprintf(path, sizeof path, "tests/fuzz/corpus/%s/%s.%s", kind, name, kind);
    CHECK_OK(pen_mapping_open(path, &file));
    return file;
}

// Decodes a copy that ends where memory does, so that a sanitizer sees reads behind it.
static pen_status decode_copy(const uint8_t *bytes, size_t size, taken_image *image) {
    uint8_t *copy = malloc(size + (size == 0));
    memcpy(copy, bytes, size);
    const pen_status status = taken_image_decode(copy, size, "copy", image);
    free(copy);
    return status;
}

static void compare_with_pillow(const picture_case *of) {
    char path[128];
    pen_mapping expected;
    snprintf(path, sizeof path, "tests/reference/pictures/%s.npy", of->kind);
    CHECK_OK(pen_mapping_open(path, &expected));
    const size_t bytes = (size_t)of->width * of->height * 3;
    size_t count = 0;
    for (; of->names[count] != NULL; count++) {
        pen_mapping file = open_seed(of->kind, of->names[count]);
        taken_image image = {.pixels = malloc(bytes)};
        assert_true(pen_image_is(file.bytes, file.length));
        CHECK_OK(decode_copy(file.bytes, file.length, &image));
        assert_int_equal(image.size.width, of->width);
        assert_int_equal(image.size.height, of->height);
        assert_true(expected.length >= 128 + (count + 1) * bytes);
        const uint8_t *pixels = (const uint8_t *)expected.bytes + 128 + count * bytes;
        for (size_t i = 0; i < bytes; i++) {
            CHECK(image.pixels[i] == pixels[i], "%s, row %zu, byte %zu: %d, Pillow has %d",
                  of->names[count], i / (of->width * 3), i % (of->width * 3), image.pixels[i],
                  pixels[i]);
        }
        free(image.pixels);
        pen_mapping_close(&file);
    }
    assert_int_equal(expected.length, 128 + count * bytes);
    pen_mapping_close(&expected);
}

static void bmp_pixels_are_those_of_pillow(void **state) {
    (void)state;
    compare_with_pillow(&bmp_case);
}

static void webp_pixels_are_those_of_pillow(void **state) {
    (void)state;
    compare_with_pillow(&webp_case);
}

static void every_truncation_is_an_error(void **state) {
    (void)state;
    static const picture_case *const cases[] = {&bmp_case, &webp_case};
    for (size_t k = 0; k < 2; k++) {
        for (size_t n = 0; cases[k]->names[n] != NULL; n++) {
            pen_mapping file = open_seed(cases[k]->kind, cases[k]->names[n]);
            // the last row may lack its filling, packed rows what says that they end
            const size_t whole = file.length - (k == 0 ? 6 : 0);
            for (size_t size = 0; size < file.length; size++) {
                taken_image image = {0};
                const pen_status status = decode_copy(file.bytes, size, &image);
                CHECK(status != PEN_OK || size >= whole, "%s is read from %zu of %zu bytes",
                      cases[k]->names[n], size, file.length);
                CHECK(status == PEN_OK || pen_status_get_code(status) == PEN_CORRUPT || size < 20,
                      "%s, %zu of %zu bytes: %s", cases[k]->names[n], size, file.length,
                      pen_status_message(status));
                pen_status_ignore(status, "as expected");
            }
            pen_mapping_close(&file);
        }
    }
}

// A file of which some bytes are others.
static pen_status decode_changed(const char *name, size_t at, const char *bytes, size_t count) {
    pen_mapping file = open_seed("bmp", name);
    uint8_t *copy = malloc(file.length);
    taken_image image = {0};
    memcpy(copy, file.bytes, file.length);
    memcpy(copy + at, bytes, count);
    const pen_status status = decode_copy(copy, file.length, &image);
    free(copy);
    pen_mapping_close(&file);
    return status;
}

static void other_bmp_files_are_refused_by_name(void **state) {
    (void)state;
    CHECK_ERROR(decode_changed("places_8", 14, "\x30", 1), PEN_UNSUPPORTED,
                "'copy': the BMP picture has a header of 48 bytes, expected 12, 16, 40");
    CHECK_ERROR(decode_changed("places_8", 0, "MB", 2), PEN_UNSUPPORTED,
                "'copy' is no JPEG, PNG, WebP or BMP file: it begins with 4d 42");
    CHECK_ERROR(decode_changed("plain_24", 30, "\4", 1), PEN_UNSUPPORTED, "holds a JPEG");
    CHECK_ERROR(decode_changed("plain_24", 30, "\5", 1), PEN_UNSUPPORTED, "holds a PNG");
    CHECK_ERROR(decode_changed("gap", 30, "\3", 1), PEN_UNSUPPORTED, "Huffman");
    CHECK_ERROR(decode_changed("gap", 30, "\4", 1), PEN_UNSUPPORTED, "RLE24");
    CHECK_ERROR(decode_changed("plain_24", 30, "\7", 1), PEN_UNSUPPORTED, "packed in the way 7");
    CHECK_ERROR(decode_changed("plain_24", 30, "\1", 1), PEN_UNSUPPORTED,
                "24 bits a pixel, packed in the way 1");
    CHECK_ERROR(decode_changed("plain_24", 28, "\2", 1), PEN_UNSUPPORTED, "2 bits a pixel");
    CHECK_ERROR(decode_changed("rle8", 22, "\xf3\xff\xff\xff", 4), PEN_UNSUPPORTED, "top down");
    CHECK_ERROR(decode_changed("masks_565", 54, "\x01\xf0", 2), PEN_UNSUPPORTED,
                "mask 0x0000f001 in pixels of 16 bits");
    CHECK_ERROR(decode_changed("masks_565", 54, "\0\0\1", 3), PEN_UNSUPPORTED, "mask 0x00010000");
}

static void damaged_bmp_files_are_errors(void **state) {
    (void)state;
    static const char huge[] = "\0\x40\0\0\0\x40\0\0"; // 16384 x 16384
    CHECK_ERROR(decode_changed("plain_24", 18, huge, 8), PEN_CORRUPT,
                "announces 16384 x 16384 pixels, more than 886 bytes can hold");
    CHECK_ERROR(decode_changed("rle8", 18, huge, 8), PEN_UNSUPPORTED, "pixels at most");
    CHECK_ERROR(decode_changed("rle8", 18, "\0\x20\0\0\0\x20\0\0", 8), PEN_UNSUPPORTED,
                "announces 8192 x 8192 pixels, a BMP of 1368 bytes is read up to 15488512");
    CHECK_ERROR(decode_changed("plain_24", 18, "\xff\xff\xff\xff\xff\xff\xff\x7f", 8), PEN_CORRUPT,
                "more than 886 bytes");
    CHECK_ERROR(decode_changed("plain_24", 18, "\0\0", 2), PEN_UNSUPPORTED, "0 x 13 pixels");
    CHECK_ERROR(decode_changed("plain_24", 22, "\0\0\0\x80", 4), PEN_CORRUPT, "more than");
    CHECK_ERROR(decode_changed("plain_24", 10, "\x20", 1), PEN_CORRUPT, "within its header");
    CHECK_ERROR(decode_changed("plain_24", 10, "\0\xff", 2), PEN_CORRUPT, "behind its end");
    CHECK_ERROR(decode_changed("few", 14 + 32, "\5", 1), PEN_CORRUPT, "its palette has 5 colours");
    CHECK_ERROR(decode_changed("rle8_jumps", 14 + 40 + 160 + 24, "\0\2\0\xff", 4), PEN_CORRUPT,
                "lead out of it");
}

static void refuses_other_webp_files(void **state) {
    (void)state;
    // a lossless picture of one colour takes no bit a pixel: 16 bits of width and height, then
    // codes
    static const uint8_t blank[] = {'R',  'I',  'F',  'F', 24,  0,  0, 0, 'W', 'E',  'B',
                                    'P',  'V',  'P',  '8', 'L', 11, 0, 0, 0,   0x2f, 0xff,
                                    0xdf, 0xff, 0x07, 0,   0,   0,  0, 0, 0,   0};
    taken_image image = {0};
    pen_mapping film = open_seed("webp", "animated");
    CHECK_ERROR(decode_copy(film.bytes, film.length, &image), PEN_UNSUPPORTED,
                "'copy' is an animated WebP, expected a still picture");
    pen_mapping_close(&film);
    CHECK_ERROR(decode_copy(blank, sizeof blank, &image), PEN_UNSUPPORTED,
                "announces 8192 x 8192 pixels, a WebP of 32 bytes is read up to 4458496");

    pen_mapping file = open_seed("webp", "lossy");
    uint8_t *copy = malloc(file.length);
    memcpy(copy, file.bytes, file.length);
    memset(copy + 30, 0xa5, 8); // behind the size of the picture
    copy[23] ^= 0xff;           // what a key frame begins with
    CHECK_ERROR(decode_copy(copy, file.length, &image), PEN_CORRUPT,
                "'copy': the WebP picture cannot be decoded: its bytes are damaged");
    memcpy(copy, file.bytes, file.length);
    copy[27] = copy[29] = 0x3f; // 16000 and some pixels a side
    CHECK_ERROR(decode_copy(copy, file.length, &image), PEN_UNSUPPORTED, "pixels");
    free(copy);
    pen_mapping_close(&file);
}

// A BMP that no program wrote: 5 x 3 pixels, four bits each, packed, with a header of 40 bytes.
static pen_status decode_rle4(const char *rows, size_t size, uint8_t *out_reds) {
    uint8_t file[128] = "BM", pixels[5 * 3 * 3];
    static const uint8_t header[] = {40, 0, 0, 0, 5, 0, 0, 0, 3, 0, 0, 0, 1, 0, 4, 0, 2};
    taken_image image = {.pixels = pixels};
    file[10] = 54 + 16;
    memcpy(file + 14, header, sizeof header);
    file[46] = 4; // colours: of red 0, 10, 20 and 30
    for (uint8_t i = 0; i < 4; i++)
        file[54 + 4 * i + 2] = (uint8_t)(10 * i);
    memcpy(file + 70, rows, size);
    const pen_status status = decode_copy(file, 70 + size, &image);
    for (size_t i = 0; i < 15 && status == PEN_OK; i++)
        out_reds[i] = pixels[3 * i] / 10;
    return status;
}

// Expected: by hand.
static void packed_rows_may_leave_pixels_out(void **state) {
    (void)state;
    uint8_t found[15];
    static const uint8_t early[15] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 1, 2, 1};
    CHECK_OK(decode_rle4("\5\x12\0\0\0\1", 6, found));
    assert_memory_equal(found, early, 15);
    // an empty row, a run that is too long, and a move up to the right within the picture
    static const uint8_t moved[15] = {0, 0, 0, 3, 3, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0};
    CHECK_OK(decode_rle4("\0\0\1\x20\0\2\2\1\xff\x33\0\1", 12, found));
    assert_memory_equal(found, moved, 15);
    // a run that is too long does not reach into the next row
    static const uint8_t overlong[15] = {0, 0, 0, 0, 0, 2, 2, 0, 0, 0, 1, 1, 1, 1, 1};
    CHECK_OK(decode_rle4("\x09\x11\0\0\2\x22\0\1", 8, found));
    assert_memory_equal(found, overlong, 15);
    CHECK_ERROR(decode_rle4("\5\x12\0\0", 4, found), PEN_CORRUPT, "cut short");
    CHECK_ERROR(decode_rle4("\5\x17\0\0\0\1", 6, found), PEN_CORRUPT, "a pixel of colour 7");
}

// Some programs do not say where pixels begin, or forget the palette: they follow what is before
// them.
static void pixels_without_a_place_follow_the_head(void **state) {
    (void)state;
    static const char *const names[] = {"masks_565", "masks_v4", "plain_24", "places_4", "os2_8"};
    static const uint8_t headers[] = {40, 108, 40, 40, 12};
    for (size_t i = 0; i < 5; i++) {
        uint8_t pixels[2][BMP_WIDTH * BMP_HEIGHT * 3], copy[2048];
        pen_mapping file = open_seed("bmp", names[i]);
        taken_image image = {.pixels = pixels[0]};
        assert_true(file.length <= sizeof copy);
        memcpy(copy, file.bytes, file.length);
        CHECK_OK(decode_copy(copy, file.length, &image));
        for (int place = 0; place < (i < 3 ? 1 : 2); place++) {
            memset(copy + 10, 0, 4);
            if (place == 1) copy[10] = (uint8_t)(14 + headers[i]);
            image.pixels = pixels[1];
            CHECK_OK(decode_copy(copy, file.length, &image));
            CHECK(memcmp(pixels[0], pixels[1], sizeof pixels[0]) == 0, "%s, %d", names[i], place);
        }
        pen_mapping_close(&file);
    }
}

// Those who add a kind say it where users read.
static void kinds_and_endings_are_in_messages(void **state) {
    (void)state;
    static const char *const names[] = {"a.jpg", "a.b.JPEG", "a.png", "a.WebP", "a.bmp"};
    for (size_t i = 0; i < 5; i++) {
        char ending[8];
        assert_true(pen_image_is_named(names[i]));
        snprintf(ending, sizeof ending, "%s", strrchr(names[i], '.'));
        for (char *at = ending; *at != '\0'; at++)
            *at = (char)(*at | 0x20);
        ending[0] = '.';
        assert_non_null(strstr(PEN_IMAGE_ENDINGS, ending));
    }
    assert_false(pen_image_is_named("bmp"));
    assert_false(pen_image_is_named("a.gif"));
    assert_false(pen_image_is((const uint8_t *)"BM, 1990: a text of two letters", 31));
    assert_false(pen_image_is((const uint8_t *)"RIFF....WAVEfmt ", 16));
}

PEN_TEST_MAIN(cmocka_unit_test(bmp_pixels_are_those_of_pillow),
              cmocka_unit_test(webp_pixels_are_those_of_pillow),
              cmocka_unit_test(every_truncation_is_an_error),
              cmocka_unit_test(other_bmp_files_are_refused_by_name),
              cmocka_unit_test(damaged_bmp_files_are_errors),
              cmocka_unit_test(refuses_other_webp_files),
              cmocka_unit_test(packed_rows_may_leave_pixels_out),
              cmocka_unit_test(pixels_without_a_place_follow_the_head),
              cmocka_unit_test(kinds_and_endings_are_in_messages))
