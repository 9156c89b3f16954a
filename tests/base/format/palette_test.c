#include "base/format/palette.h"

#include <math.h>
#include <stdlib.h>

#include "tests/support/check.h"

#define CONTRAST_MINIMUM 4.5

// WCAG 2.1: the relative luminance of sRGB.
static double luminance(const char *color) {
    static const double weights[] = {0.2126, 0.7152, 0.0722};
    const unsigned long rgb = strtoul(color + 1, NULL, 16) >> (strlen(color) == 9 ? 8 : 0);
    double sum = 0;
    for (int i = 0; i < 3; i++) {
        const double part = (double)(rgb >> (16 - 8 * i) & 0xffu) / 255;
        sum += weights[i] * (part <= 0.03928 ? part / 12.92 : pow((part + 0.055) / 1.055, 2.4));
    }
    return sum;
}

static void check_contrast(const char *what, const char *text, const char *ground) {
    const double a = luminance(text), b = luminance(ground);
    const double contrast = (fmax(a, b) + 0.05) / (fmin(a, b) + 0.05);
    CHECK(contrast >= CONTRAST_MINIMUM, "%s: %s on %s has a contrast of %.2f", what, text, ground,
          contrast);
}

static const char *find(const char *name, bool is_dark) {
    for (uint32_t i = 0; i < pen_palette_count; i++) {
        const pen_palette_color *color = &pen_palette[i];
        if (strcmp(color->name, name) != 0) continue;
        return is_dark && color->dark != NULL ? color->dark : color->light;
    }
    CHECK(false, "no colour '%s'", name);
    return NULL;
}

static void knows_contrasts(void **state) {
    (void)state;
    CHECK(fabs(luminance("#ffffff") - 1) < 1e-9 && luminance("#000000") < 1e-9, "the ends");
    CHECK(fabs(luminance("#808080") - 0.2159) < 1e-4, "grey: %f", luminance("#808080"));
}

static void digits_are_read_on_tasks(void **state) {
    (void)state;
    static const char *const tasks[] = {"forward", "backward", "backward-inputs",
                                        "backward-weights", "update"};
    for (int dark = 0; dark < 2; dark++) {
        for (size_t i = 0; i < sizeof tasks / sizeof *tasks; i++) {
            check_contrast(tasks[i], find("digit", dark), find(tasks[i], dark));
        }
    }
}

static void curves_are_seen_on_paper(void **state) {
    (void)state;
    static const char *const curves[] = {"curve-0", "curve-1", "curve-2",
                                         "curve-3", "curve-4", "curve-5"};
    for (int dark = 0; dark < 2; dark++) {
        for (size_t i = 0; i < sizeof curves / sizeof *curves; i++) {
            check_contrast(curves[i], find(curves[i], dark), find("paper", dark));
        }
    }
}

static void labels_are_read_on_boxes(void **state) {
    (void)state;
    char color[PEN_PALETTE_TEXT_BYTES];
    for (int dark = 0; dark < 2; dark++) {
        check_contrast("box", find("label", dark), find("box", dark));
        check_contrast("unplaced", find("label", dark), find("unplaced", dark));
        for (uint32_t number = 0; number < 5000; number++) {
            const char *text = pen_palette_series(number, color);
            CHECK(strlen(text) == 7 && text[0] == '#' && strspn(text + 1, "0123456789abcdef") == 6,
                  "%u: %s", number, text);
            check_contrast("series", find("label", dark), text);
        }
    }
}

static void texts_are_read_on_what_they_lie_on(void **state) {
    (void)state;
    static const char *const texts[] = {"ink", "soft", "link", "off"};
    static const char *const grounds[] = {"paper", "ground", "row"};
    for (int dark = 0; dark < 2; dark++) {
        for (size_t t = 0; t < sizeof texts / sizeof *texts; t++) {
            for (size_t g = 0; g < sizeof grounds / sizeof *grounds; g++) {
                check_contrast(texts[t], find(texts[t], dark), find(grounds[g], dark));
            }
        }
        check_contrast("a pressed tab", find("paper", dark), find("mark", dark));
    }
}

static void puts_colors_into_a_style(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    pen_text text;
    const char *whole;
    pen_text_init(&text, arena);
    pen_palette_add(&text, "a{fill:var(--ink);stroke:var(--backward-inputs)}b{fill:var(--row)}");
    CHECK_OK(pen_text_finish(&text, &whole));
    CHECK(strcmp(whole, "a{fill:#1d2329;stroke:#936f00}b{fill:#eceff2}") == 0, "%s", whole);
    pen_arena_destroy(arena);
}

PEN_TEST_MAIN(cmocka_unit_test(knows_contrasts), cmocka_unit_test(digits_are_read_on_tasks),
              cmocka_unit_test(curves_are_seen_on_paper),
              cmocka_unit_test(labels_are_read_on_boxes),
              cmocka_unit_test(texts_are_read_on_what_they_lie_on),
              cmocka_unit_test(puts_colors_into_a_style))
