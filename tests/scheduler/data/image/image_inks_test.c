#include <stdlib.h>
#include <string.h>
#include <turbojpeg.h>

#include "base/system/file.h"
#include "tests/support/check.h"
#include "tests/support/taken_image.h"

// Four inks: as a file has them, and turned to brightness and differences of colour.
static void inks_become_the_colours_that_pillow_has(void **state) {
    (void)state;
    enum { WIDTH = 21, HEIGHT = 13 };
    pen_mapping jpeg, colours;
    uint8_t found[WIDTH * HEIGHT * 3], inks[WIDTH * HEIGHT * 4];
    taken_image image = {.pixels = found};
    CHECK_OK(pen_mapping_open("tests/reference/inks/inks.jpg", &jpeg));
    CHECK_OK(pen_mapping_open("tests/reference/inks/inks.npy", &colours));
    assert_int_equal(colours.length, 128 + sizeof found);
    CHECK_OK(taken_image_decode(jpeg.bytes, jpeg.length, "inks", &image));
    assert_int_equal(image.size.width, WIDTH);
    assert_memory_equal(found, colours.bytes + 128, sizeof found);
    pen_mapping_close(&jpeg);
    pen_mapping_close(&colours);

    tjhandle encoder = tjInitCompress();
    unsigned char *bytes = NULL;
    unsigned long size = 0;
    for (int i = 0; i < WIDTH * HEIGHT * 4; i++)
        inks[i] = (uint8_t)(60 + 5 * (i / 4 % WIDTH) + 4 * (i / 4 / WIDTH) + 10 * (i % 4));
    assert_int_equal(
        tjCompress2(encoder, inks, WIDTH, 0, HEIGHT, TJPF_CMYK, &bytes, &size, TJSAMP_444, 95, 0),
        0);
    CHECK_OK(taken_image_decode(bytes, size, "inks", &image));
    tjFree(bytes);
    tjDestroy(encoder);
    for (int i = 0; i < WIDTH * HEIGHT * 3; i++) {
        const uint8_t *pixel = inks + i / 3 * 4;
        const int expected = pixel[i % 3] * pixel[3] / 255;
        CHECK(abs(found[i] - expected) <= 6, "%d is %d, expected %d", i, found[i], expected);
    }
}

PEN_TEST_MAIN(cmocka_unit_test(inks_become_the_colours_that_pillow_has))
