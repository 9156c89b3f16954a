#include "base/format/svg_writer.h"

#include <stdio.h>

#include "base/format/palette.h"

void pen_svg_begin(pen_markup_writer *svg, double width, double height, const char *title,
                   const char *style) {
    char view[96];
    snprintf(view, sizeof view, "0 0 %.6g %.6g", width, height);
    pen_markup_open(svg, "svg");
    pen_markup_attribute(svg, "xmlns", "http://www.w3.org/2000/svg");
    pen_markup_attribute_number(svg, "width", width);
    pen_markup_attribute_number(svg, "height", height);
    pen_markup_attribute(svg, "viewBox", view);
    pen_markup_attribute(svg, "role", "img");
    pen_markup_element(svg, "title", title);
    pen_markup_open(svg, "style");
    pen_markup_raw(svg, ".paper{fill:#fff;stroke:none}");
    pen_palette_add(svg->text, style);
    pen_markup_close(svg, "style");
    pen_svg_open_rect(svg, 0, 0, width, height);
    pen_markup_attribute(svg, "class", "paper");
    pen_markup_close(svg, "rect");
}

void pen_svg_open_rect(pen_markup_writer *svg, double x, double y, double width, double height) {
    pen_markup_open(svg, "rect");
    pen_markup_attribute_number(svg, "x", x);
    pen_markup_attribute_number(svg, "y", y);
    pen_markup_attribute_number(svg, "width", width);
    pen_markup_attribute_number(svg, "height", height);
}

void pen_svg_open_text(pen_markup_writer *svg, double x, double y, const char *class_name) {
    pen_markup_open(svg, "text");
    pen_markup_attribute_number(svg, "x", x);
    pen_markup_attribute_number(svg, "y", y);
    if (class_name != NULL) pen_markup_attribute(svg, "class", class_name);
}

void pen_svg_text(pen_markup_writer *svg, double x, double y, const char *class_name,
                  const char *label) {
    pen_svg_open_text(svg, x, y, class_name);
    pen_markup_text(svg, label);
    pen_markup_close(svg, "text");
}
