#include <math.h>
#include <png.h>
#include <turbojpeg.h>

#include "base/memory.h"
#include "scheduler/data/dataset.h"
#include "scheduler/data/image/image_decode.h"
#include "scheduler/data/image/image_resize.h"
#include "tests/support/check.h"
#include "tests/support/dice.h"
#include "tests/support/scratch.h"
#include "tests/support/taken_image.h"

typedef struct encoded {
    uint8_t *bytes;
    size_t size;
} encoded;

static encoded encode_png(const uint8_t *pixels, uint32_t width, uint32_t height, uint32_t format) {
    png_image png = {.version = PNG_IMAGE_VERSION};
    png.width = width;
    png.height = height;
    png.format = format;
    png_alloc_size_t size = 1 << 20;
    encoded file = {.bytes = malloc(size)};
    assert_true(png_image_write_to_memory(&png, file.bytes, &size, 0, pixels, 0, NULL));
    file.size = size;
    return file;
}

static encoded encode_jpeg(const uint8_t *pixels, int width, int height, int flags) {
    tjhandle encoder = tjInitCompress();
    unsigned char *bytes = NULL;
    unsigned long size = 0;
    assert_int_equal(tjCompress2(encoder, pixels, width, 0, height, TJPF_RGB, &bytes, &size,
                                 TJSAMP_444, 95, flags),
                     0);
    encoded file = {.bytes = malloc(size), .size = size};
    memcpy(file.bytes, bytes, size);
    tjFree(bytes);
    tjDestroy(encoder);
    return file;
}

// A smooth picture: JPEG keeps it nearly.
static void paint(uint8_t *pixels, int width, int height, int channels) {
    for (int y = 0; y < height; y++) {
        for (int x = 0; x < width; x++) {
            for (int c = 0; c < channels; c++) {
                pixels[(y * width + x) * channels + c] = (uint8_t)(40 + 5 * x + 3 * y + 30 * c);
            }
        }
    }
}

static pen_status decode_copy(encoded file, size_t size, taken_image *image) {
    uint8_t *copy = malloc(size + (size == 0));
    memcpy(copy, file.bytes, size);
    const pen_status status = taken_image_decode(copy, size, "cut", image);
    free(copy);
    return status;
}

static void decodes_png_of_all_kinds(void **state) {
    (void)state;
    static const uint32_t formats[] = {PNG_FORMAT_RGB, PNG_FORMAT_RGBA, PNG_FORMAT_GRAY,
                                       PNG_FORMAT_GA};
    for (size_t i = 0; i < 4; i++) {
        const int channels = (int)PNG_IMAGE_SAMPLE_CHANNELS(formats[i]);
        uint8_t pixels[12 * 9 * 4], found[12 * 9 * 3];
        paint(pixels, 12, 9, channels);
        const encoded file = encode_png(pixels, 12, 9, formats[i]);
        taken_image image = {.pixels = found};
        CHECK_OK(decode_copy(file, file.size, &image));
        assert_int_equal(image.size.width, 12);
        assert_int_equal(image.size.height, 9);
        for (int p = 0; p < 12 * 9; p++) {
            for (int c = 0; c < 3; c++) {
                assert_int_equal(found[p * 3 + c], pixels[p * channels + (channels > 2 ? c : 0)]);
            }
        }
        free(file.bytes);
    }
}

static void decodes_jpeg(void **state) {
    (void)state;
    uint8_t pixels[20 * 10 * 3], found[20 * 10 * 3];
    paint(pixels, 20, 10, 3);
    for (int progressive = 0; progressive < 2; progressive++) {
        const encoded file = encode_jpeg(pixels, 20, 10, progressive ? TJFLAG_PROGRESSIVE : 0);
        taken_image image = {.pixels = found};
        CHECK_OK(decode_copy(file, file.size, &image));
        assert_int_equal(image.size.width, 20);
        for (int i = 0; i < 20 * 10 * 3; i++) {
            CHECK(abs(found[i] - pixels[i]) <= 4, "byte %d is %d, was %d", i, found[i], pixels[i]);
        }
        free(file.bytes);
    }
}

static void write_bytes(png_structp libpng, png_bytep bytes, size_t count) {
    encoded *file = png_get_io_ptr(libpng);
    memcpy(file->bytes + file->size, bytes, count);
    file->size += count;
}

// A PNG of one of the kinds that there are, of noise; the same for the same dice.
static encoded write_png(dice seeded, const int kind[2], uint32_t width, uint32_t height,
                         int interlace) {
    dice *d = &seeded;
    const int depth = kind[0], colours = kind[1];
    encoded file = {.bytes = malloc(1 << 20)};
    png_structp libpng = png_create_write_struct(PNG_LIBPNG_VER_STRING, NULL, NULL, NULL);
    png_infop info = png_create_info_struct(libpng);
    png_set_write_fn(libpng, &file, write_bytes, NULL);
    png_set_IHDR(libpng, info, width, height, depth, colours, interlace, 0, 0);
    const int64_t colour_count = (int64_t)1 << (depth < 8 ? depth : 8);
    if (colours == PNG_COLOR_TYPE_PALETTE) {
        png_color palette[256];
        for (int i = 0; i < 256; i++)
            palette[i] = (png_color){(png_byte)(7 * i), (png_byte)(255 - i), (png_byte)(3 * i)};
        png_set_PLTE(libpng, info, palette, (int)colour_count);
    }
    if ((colours & PNG_COLOR_MASK_ALPHA) == 0 && dice_between(d, 0, 1) == 0) {
        const png_byte alpha[2] = {0, 99};
        const png_color_16 see_through = {.red = 1, .green = 2, .blue = 3, .gray = 1};
        png_set_tRNS(libpng, info, alpha, colours == PNG_COLOR_TYPE_PALETTE ? 2 : 0, &see_through);
    }
    const int64_t gamma = dice_between(d, 0, 2);
    if (gamma == 1) png_set_gAMA_fixed(libpng, info, 100000);
    if (gamma == 2) png_set_sRGB(libpng, info, PNG_sRGB_INTENT_PERCEPTUAL);
    png_write_info(libpng, info);
    uint8_t row[32 * 8];
    for (int pass = png_set_interlace_handling(libpng); pass > 0; pass--) {
        dice rows = {.seed = width}; // the same in each pass
        for (uint32_t y = 0; y < height; y++) {
            for (size_t i = 0; i < sizeof row; i++)
                row[i] = (uint8_t)dice_between(&rows, 0, 255);
            png_write_row(libpng, row);
        }
    }
    png_write_end(libpng, info);
    png_destroy_write_struct(&libpng, &info);
    return file;
}

// libpng's simplified interface, which makes whole pictures, is the judge of all kinds of PNG. It
// gets none that is interlaced: some versions make other pixels of those with 16 bits.
static void rows_of_png_are_those_of_the_whole(void **state) {
    (void)state;
    static const int kinds[][2] = {{1, 0}, {2, 0}, {4, 0}, {8, 0}, {16, 0}, {8, 2}, {16, 2}, {1, 3},
                                   {2, 3}, {4, 3}, {8, 3}, {8, 4}, {16, 4}, {8, 6}, {16, 6}};
    static uint8_t expected[32 * 32 * 4], found[32 * 32 * 3];
    dice d = {.seed = 1};
    for (size_t i = 0; i < 40 * sizeof kinds / sizeof *kinds; i++) {
        const int *kind = kinds[i % (sizeof kinds / sizeof *kinds)];
        const uint32_t width = (uint32_t)dice_between(&d, 1, 32);
        const uint32_t height = (uint32_t)dice_between(&d, 1, 32);
        const dice seeded = {.seed = 100 + i};
        const encoded plain = write_png(seeded, kind, width, height, PNG_INTERLACE_NONE);
        png_image png = {.version = PNG_IMAGE_VERSION};
        assert_true(png_image_begin_read_from_memory(&png, plain.bytes, plain.size));
        const bool has_alpha = (png.format & PNG_FORMAT_FLAG_ALPHA) != 0;
        png.format = has_alpha ? PNG_FORMAT_RGBA : PNG_FORMAT_RGB;
        assert_true(png_image_finish_read(&png, NULL, expected, 0, NULL));
        const encoded laced = write_png(seeded, kind, width, height, PNG_INTERLACE_ADAM7);
        const encoded file = dice_between(&d, 0, 1) == 0 ? plain : laced;
        taken_image image = {.pixels = found};
        CHECK_OK(decode_copy(file, file.size, &image));
        for (size_t p = 0; p < (size_t)width * height; p++) {
            CHECK(memcmp(found + p * 3, expected + p * (has_alpha ? 4 : 3), 3) == 0,
                  "case %zu: %d bits of kind %d, pixel %zu", i, kind[0], kind[1], p);
        }
        free(plain.bytes);
        free(laced.bytes);
    }
}

// Likewise turbojpeg, for all ways to sample colours.
static void rows_of_jpeg_are_those_of_the_whole(void **state) {
    (void)state;
    static const int samplings[] = {TJSAMP_444,  TJSAMP_422, TJSAMP_420,
                                    TJSAMP_GRAY, TJSAMP_440, TJSAMP_411};
    static uint8_t pixels[70 * 50 * 3], expected[70 * 50 * 3], found[70 * 50 * 3];
    dice d = {.seed = 2};
    for (size_t i = 0; i < sizeof pixels; i++)
        pixels[i] = (uint8_t)(i / 9 + (size_t)dice_between(&d, 0, 60));
    for (size_t i = 0; i < 2 * sizeof samplings / sizeof *samplings; i++) {
        tjhandle encoder = tjInitCompress(), judge = tjInitDecompress();
        unsigned char *bytes = NULL;
        unsigned long size = 0;
        CHECK(tjCompress2(encoder, pixels, 67, 70 * 3, 49, TJPF_RGB, &bytes, &size,
                          samplings[i / 2], 80, i % 2 == 0 ? 0 : TJFLAG_PROGRESSIVE) == 0,
              "%s", tjGetErrorStr2(encoder));
        CHECK(tjDecompress2(judge, bytes, size, expected, 67, 0, 49, TJPF_RGB, 0) == 0, "%s",
              tjGetErrorStr2(judge));
        taken_image image = {.pixels = found};
        CHECK_OK(decode_copy((encoded){bytes, size}, size, &image));
        CHECK(memcmp(found, expected, (size_t)67 * 49 * 3) == 0, "sampling %zu", i);
        tjFree(bytes);
        tjDestroy(encoder);
        tjDestroy(judge);
    }
}

static void every_truncation_is_an_error(void **state) {
    (void)state;
    uint8_t pixels[16 * 16 * 3];
    paint(pixels, 16, 16, 3);
    const encoded files[] = {encode_png(pixels, 16, 16, PNG_FORMAT_RGB),
                             encode_jpeg(pixels, 16, 16, 0),
                             encode_jpeg(pixels, 16, 16, TJFLAG_PROGRESSIVE)};
    for (int i = 0; i < 3; i++) {
        // a PNG without its last chunk, and a JPEG without its last marker, have all pixels
        const size_t whole = files[i].size - (i == 0 ? 12 : 2);
        for (size_t size = 0; size < files[i].size; size++) {
            taken_image image = {0};
            const pen_status status = decode_copy(files[i], size, &image);
            CHECK(status != PEN_OK || size >= whole, "file %d is read from %zu of %zu bytes", i,
                  size, files[i].size);
            if (status != PEN_OK) {
                CHECK(pen_status_get_code(status) == PEN_CORRUPT, "file %d, %zu of %zu bytes: %s",
                      i, size, files[i].size, pen_status_message(status));
            }
            pen_status_ignore(status, "as expected");
        }
        free(files[i].bytes);
    }
}

// A decoder serves many pictures: none is decoded with the tables of the one before it.
static void tables_are_the_pictures_own(void **state) {
    (void)state;
    uint8_t pixels[16 * 16 * 3];
    paint(pixels, 16, 16, 3);
    const encoded file = encode_jpeg(pixels, 16, 16, 0);
    encoded bare = {.bytes = malloc(file.size), .size = 2};
    memcpy(bare.bytes, file.bytes, 2);
    for (size_t i = 2; i < file.size;) { // without its segments DQT
        const bool is_scan = file.bytes[i + 1] == 0xda;
        const size_t bytes =
            is_scan ? file.size - i : (size_t)2 + file.bytes[i + 2] * 256 + file.bytes[i + 3];
        if (file.bytes[i + 1] != 0xdb) {
            memcpy(bare.bytes + bare.size, file.bytes + i, bytes);
            bare.size += bytes;
        }
        i += bytes;
    }
    assert_true(bare.size < file.size);
    pen_image_decoder *decoder;
    taken_image image = {0};
    const pen_image_taker taker = taken_image_taker(&image);
    CHECK_OK(pen_image_decoder_create(&decoder));
    for (int i = 0; i < 2; i++) {
        CHECK_OK(pen_image_decode(decoder, file.bytes, file.size, "whole", &taker));
        CHECK_ERROR(pen_image_decode(decoder, bare.bytes, bare.size, "bare", &taker), PEN_CORRUPT,
                    "'bare': the JPEG picture cannot be decoded: Quantization table");
    }
    pen_image_decoder_destroy(decoder);
    free(bare.bytes);
    free(file.bytes);
}

static void refuses_other_and_absurd_files(void **state) {
    (void)state;
    taken_image image = {0};
    const encoded gif = {(uint8_t *)(uintptr_t) "GIF89a......", 12};
    CHECK_ERROR(decode_copy(gif, 12, &image), PEN_UNSUPPORTED, "no JPEG, PNG, WebP or BMP file");
    uint8_t pixels[3] = {0};
    const encoded png = encode_png(pixels, 1, 1, PNG_FORMAT_RGB);
    png.bytes[16 + 1] = 1; // the width becomes 65537, and the checksum wrong
    CHECK_ERROR(decode_copy(png, png.size, &image), PEN_CORRUPT, "PNG");
    free(png.bytes);
    uint8_t wide[24 * 3] = {0};
    const encoded jpeg = encode_jpeg(wide, 8, 3, 0);
    for (size_t i = 0; i + 8 < jpeg.size; i++) {
        if (jpeg.bytes[i] != 0xff || jpeg.bytes[i + 1] != 0xc0) continue;
        jpeg.bytes[i + 5] = 0xff; // height
        break;
    }
    CHECK_ERROR(decode_copy(jpeg, jpeg.size, &image), PEN_UNSUPPORTED,
                "expected sides of 1 to 16384");
    free(jpeg.bytes);
}

// Expected: PyTorch's interpolate, mode bilinear, antialias, align_corners false.
static void resizes_as_pytorch_does(void **state) {
    (void)state;
    static const float to_2x3[] = {92.5064926f, 126.082901f, 115.931831f,
                                   146.76622f,  92.2540054f, 140.207794f};
    static const float to_5x3[] = {31.714283f,  111.0f,      190.285706f, 94.9999924f, 169.941193f,
                                   73.8571625f, 158.285706f, 78.2941208f, 84.0714264f, 166.714279f,
                                   75.8823547f, 133.428574f, 120.285706f, 112.176476f, 198.5f};
    static const float to_1x1[] = {116.635834f};
    // the first two rows of the larger picture
    static const float to_9x11[] = {0.0f,        16.818182f,  40.3636322f, 63.9090919f, 87.4545364f,
                                    111.0f,      134.545456f, 158.090897f, 181.636368f, 205.181824f,
                                    222.0f,      19.6666698f, 37.2424278f, 61.848484f,  86.4545517f,
                                    111.0606f,   135.666672f, 160.272736f, 161.606079f, 131.909088f,
                                    148.757568f, 166.333313f};
    static const struct {
        uint32_t height, width, count;
        const float *expected;
    } cases[] = {{2, 3, 6, to_2x3}, {5, 3, 15, to_5x3}, {1, 1, 1, to_1x1}, {9, 11, 22, to_9x11}};
    uint8_t pixels[5 * 7 * 3];
    for (int y = 0; y < 5; y++) {
        for (int x = 0; x < 7; x++) {
            memset(pixels + (y * 7 + x) * 3, (x * 37 + y * 59 + (x * y) % 11 * 5) % 256, 3);
        }
    }
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        for (uint32_t channels = 1; channels <= 3; channels += 2) {
            pen_image_resizer *resizer;
            float found[3 * 9 * 11];
            const size_t plane = cases[i].height * cases[i].width;
            CHECK_OK(pen_image_resizer_create(cases[i].width, cases[i].height, channels, &resizer));
            CHECK_OK(pen_image_resizer_begin(resizer, (pen_image_size){7, 5}, found));
            for (size_t y = 0; y < 5; y++)
                pen_image_resizer_add(resizer, pixels + y * 7 * 3);
            for (size_t k = 0; k < cases[i].count; k++) {
                const float value = found[(channels - 1) * plane + k];
                CHECK(fabsf(value - cases[i].expected[k]) < 1e-3f, "case %zu: %zu is %g", i, k,
                      (double)value);
            }
            pen_image_resizer_destroy(resizer);
        }
    }
}

// A picture of random colours, and one for each of them that has it three times: its gray is exact.
static void colours_resize_as_if_each_were_alone(void **state) {
    (void)state;
    static const pen_image_size sizes[] = {{1, 1}, {2, 5}, {13, 3}, {64, 48}, {333, 40}};
    dice d = {.seed = 5};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        const size_t width = sizes[i].width;
        uint8_t row[333 * 3], alone[333 * 3];
        float found[3 * 21 * 17], expected[3][21 * 17];
        pen_image_resizer *colours, *grays[3];
        CHECK_OK(pen_image_resizer_create(21, 17, 3, &colours));
        CHECK_OK(pen_image_resizer_begin(colours, sizes[i], found));
        for (size_t c = 0; c < 3; c++) {
            CHECK_OK(pen_image_resizer_create(21, 17, 1, &grays[c]));
            CHECK_OK(pen_image_resizer_begin(grays[c], sizes[i], expected[c]));
        }
        for (uint32_t y = 0; y < sizes[i].height; y++) {
            for (size_t k = 0; k < width * 3; k++)
                row[k] = (uint8_t)dice_between(&d, 0, 255);
            pen_image_resizer_add(colours, row);
            for (size_t c = 0; c < 3; c++) {
                for (size_t x = 0; x < width; x++)
                    memset(alone + x * 3, row[x * 3 + c], 3);
                pen_image_resizer_add(grays[c], alone);
            }
        }
        assert_memory_equal(found, expected, sizeof found);
        pen_image_resizer_destroy(colours);
        for (size_t c = 0; c < 3; c++)
            pen_image_resizer_destroy(grays[c]);
    }
}

static const char *make_folder(const char *root) {
    static const struct {
        const char *name;
        uint8_t value;
    } files[] = {{"dogs/b.png", 60},
                 {"dogs/a.PNG", 50},
                 {"cats/z.png", 20},
                 {".cache/x", 0},
                 {"ants/1.png", 10}};
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        uint8_t pixels[4 * 4 * 3];
        for (int p = 0; p < 16; p++) {
            for (int c = 0; c < 3; c++)
                pixels[p * 3 + c] = (uint8_t)(files[i].value + c);
        }
        const encoded file = encode_png(pixels, 4, 4, PNG_FORMAT_RGB);
        char name[128];
        snprintf(name, sizeof name, "%s/%s", root, files[i].name);
        scratch_file(name, file.bytes, file.size);
        free(file.bytes);
    }
    return scratch_path(root);
}

static void reads_a_folder_of_classes(void **state) {
    (void)state;
    const double mean[] = {1, 2, 3};
    const pen_dataset_options options = {.format = "images",
                                         .path = make_folder(__func__),
                                         .image_height = 2,
                                         .image_width = 3,
                                         .scale = 1,
                                         .mean = mean,
                                         .mean_count = 3,
                                         .class_count = 3};
    pen_dataset *dataset;
    CHECK_OK(pen_dataset_open(&options, &dataset));
    const pen_dataset_info *info = pen_dataset_get_info(dataset);
    assert_int_equal(info->example_count, 4);
    assert_int_equal(info->class_count, 3);
    assert_int_equal(info->inputs[0].shape[0], 3);
    assert_int_equal(info->inputs[0].shape[1], 2);
    assert_int_equal(info->inputs[0].shape[2], 3);
    float planes[4][3][6];
    int64_t labels[4];
    CHECK_OK(pen_dataset_read(dataset, (uint64_t[]){3, 0, 2, 1}, 4, (void *[]){planes},
                              (void *[]){labels}));
    static const int64_t expected_labels[] = {2, 0, 2, 1};
    static const float expected_values[] = {60, 10, 50, 20};
    for (int i = 0; i < 4; i++) {
        assert_int_equal(labels[i], expected_labels[i]);
        for (int c = 0; c < 3; c++) {
            for (int p = 0; p < 6; p++) {
                const float expected = expected_values[i] + (float)c - (float)mean[c];
                CHECK(fabsf(planes[i][c][p] - expected) < 1e-4f, "%d %d %d is %g", i, c, p,
                      (double)planes[i][c][p]);
            }
        }
    }
    pen_dataset_close(dataset);
}

static void other_files_are_left_out_and_counted(void **state) {
    (void)state;
    const pen_dataset_options options = {.format = "images", .path = make_folder(__func__)};
    pen_dataset *dataset;
    CHECK_OK(pen_dataset_open(&options, &dataset));
    const uint64_t count = pen_dataset_get_info(dataset)->example_count;
    assert_int_equal(pen_dataset_get_info(dataset)->skipped_count, 0);
    assert_null(pen_dataset_get_info(dataset)->skipped_path);
    pen_dataset_close(dataset);
    scratch_file("other_files_are_left_out_and_counted/cats/notes.txt", "", 0);
    scratch_file("other_files_are_left_out_and_counted/readme", "", 0);
    CHECK_OK(pen_dataset_open(&options, &dataset));
    const pen_dataset_info *info = pen_dataset_get_info(dataset);
    assert_int_equal(info->example_count, count);
    assert_int_equal(info->skipped_count, 2);
    assert_non_null(strstr(info->skipped_path, "/readme"));
    pen_dataset_close(dataset);
}

static void says_what_is_wrong_in_a_folder(void **state) {
    (void)state;
    pen_dataset *dataset;
    pen_dataset_options options = {.format = "images", .path = make_folder(__func__)};
    CHECK_OK(pen_dataset_open(&options, &dataset));
    scratch_file("says_what_is_wrong_in_a_folder/cats/z.png", "\x89PNG\r\n\x1a\nbroken", 14);
    float *planes = malloc(sizeof(float) * 3 * 224 * 224);
    CHECK_ERROR(pen_dataset_read(dataset, (uint64_t[]){1}, 1, (void *[]){planes}, NULL),
                PEN_CORRUPT, "folder/cats/z.png'");
    free(planes);
    pen_dataset_close(dataset);
    options.class_count = 2;
    CHECK_ERROR(pen_dataset_open(&options, &dataset), PEN_INVALID_INPUT, "has the class 2");
    options.class_count = 0;
    options.image_channels = 2;
    CHECK_ERROR(pen_dataset_open(&options, &dataset), PEN_INVALID_INPUT, "2 channels");
    options.image_channels = 0;
    options.image_height = 20000;
    CHECK_ERROR(pen_dataset_open(&options, &dataset), PEN_INVALID_INPUT, "1 to 16384");
    options.image_height = 0;
    scratch_file("says_what_is_wrong_in_a_folder/cats/more/1.png", "", 0);
    CHECK_ERROR(pen_dataset_open(&options, &dataset), PEN_UNSUPPORTED, "cats/more' is a folder");
    scratch_file("empty/cats/.hidden", "", 0);
    options.path = scratch_path("empty");
    CHECK_ERROR(pen_dataset_open(&options, &dataset), PEN_INVALID_INPUT, "has no pictures");
    scratch_file("flat/1.png", "", 0);
    options.path = scratch_path("flat");
    CHECK_ERROR(pen_dataset_open(&options, &dataset), PEN_INVALID_INPUT,
                "flat/1.png' is not in the folder of a class");
    scratch_file("strays/readme.txt", "", 0);
    options.path = scratch_path("strays");
    CHECK_ERROR(pen_dataset_open(&options, &dataset), PEN_INVALID_INPUT, "has 0 class folders");
    options.path = scratch_path("absent");
    CHECK_ERROR(pen_dataset_open(&options, &dataset), PEN_NOT_FOUND, "absent");
}

static void channels_last_are_the_same_pictures_turned(void **state) {
    (void)state;
    pen_dataset_options options = {.format = "images",
                                   .path = make_folder(__func__),
                                   .image_height = 5,
                                   .image_width = 4,
                                   .mean = (const double[]){0.1, 0.2, 0.3},
                                   .mean_count = 3};
    float pictures[2][60];
    for (uint32_t last = 0; last < 2; last++) {
        pen_dataset *dataset;
        options.channels_last = last == 1;
        CHECK_OK(pen_dataset_open(&options, &dataset));
        CHECK_OK(pen_dataset_read(dataset, (uint64_t[]){0}, 1, (void *[]){pictures[last]}, NULL));
        assert_int_equal(pen_dataset_get_info(dataset)->inputs[0].shape[last == 1 ? 2 : 0], 3);
        assert_int_equal(pen_dataset_get_info(dataset)->inputs[0].shape[last == 1 ? 0 : 1], 5);
        pen_dataset_close(dataset);
    }
    for (uint32_t c = 0; c < 3; c++) {
        for (uint32_t p = 0; p < 20; p++) {
            assert_true(pictures[1][p * 3 + c] == pictures[0][c * 20 + p]);
        }
    }
}

static void every_failed_allocation_is_an_error(void **state) {
    (void)state;
    const pen_dataset_options options = {
        .format = "images", .path = make_folder(__func__), .image_height = 5, .image_channels = 1};
    bool read = false;
    for (uint64_t call = 1; !read; call++) {
        pen_dataset *dataset = NULL;
        float planes[25];
        pen_memory_fail_at(call, 0);
        pen_status status = pen_dataset_open(&options, &dataset);
        if (status == PEN_OK) {
            status = pen_dataset_read(dataset, (uint64_t[]){0}, 1, (void *[]){planes}, NULL);
        }
        pen_memory_fail_at(0, 0);
        read = status == PEN_OK;
        if (!read) CHECK_ERROR(status, PEN_OUT_OF_MEMORY, "memory");
        assert_true(!read || call > 10);
        pen_dataset_close(dataset);
    }
}

PEN_TEST_MAIN(cmocka_unit_test(decodes_png_of_all_kinds), cmocka_unit_test(decodes_jpeg),
              cmocka_unit_test(rows_of_png_are_those_of_the_whole),
              cmocka_unit_test(rows_of_jpeg_are_those_of_the_whole),
              cmocka_unit_test(every_truncation_is_an_error),
              cmocka_unit_test(tables_are_the_pictures_own),
              cmocka_unit_test(refuses_other_and_absurd_files),
              cmocka_unit_test(resizes_as_pytorch_does),
              cmocka_unit_test(colours_resize_as_if_each_were_alone),
              cmocka_unit_test(reads_a_folder_of_classes),
              cmocka_unit_test(other_files_are_left_out_and_counted),
              cmocka_unit_test(says_what_is_wrong_in_a_folder),
              cmocka_unit_test(channels_last_are_the_same_pictures_turned),
              cmocka_unit_test(every_failed_allocation_is_an_error))
