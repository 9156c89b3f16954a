// The colours of every picture, each under a name that says what it is for.
//
// The report's page has them as variables of its style sheet, for light and for dark screens. SVG
// files, which are always on white, have the light ones. Text keeps a contrast of at least 4.5 to 1
// with what is behind it (WCAG 2.1, 1.4.3).
//
// Threads: immutable.
#ifndef PEN_BASE_FORMAT_PALETTE_H
#define PEN_BASE_FORMAT_PALETTE_H

#include <stdint.h>

#include "base/text.h"

typedef struct pen_palette_color {
    const char *name;
    const char *light; // "#rrggbb", or "#rrggbbaa"
    const char *dark;  // NULL: as on light
} pen_palette_color;

extern const pen_palette_color pen_palette[];
extern const uint32_t pen_palette_count;

// Colour `number` of a series of any length (devices, kinds of operators): light ones of equal
// weight, under text in the colour "label". Returns `out_color`.
#define PEN_PALETTE_TEXT_BYTES 8
const char *pen_palette_series(uint32_t number, char out_color[PEN_PALETTE_TEXT_BYTES]);
extern const uint32_t pen_palette_series_count; // that are chosen by hand; the page has these

// Adds text, most often of a style sheet, in which `var(--name)` becomes the light colour of that
// name.
void pen_palette_add(pen_text *text, const char *style);

// Adds the rules that set all colours as variables: `--name`, and `--series-0` and so on.
void pen_palette_add_variables(pen_text *text);

#endif // PEN_BASE_FORMAT_PALETTE_H
