// Pictures in SVG: a page of paper with shapes and texts, in the colours of the palette.
//
// Threads: a writer belongs to one thread at a time.
#ifndef PEN_BASE_FORMAT_SVG_WRITER_H
#define PEN_BASE_FORMAT_SVG_WRITER_H

#include "base/format/markup_writer.h"

// Opens "svg", in pixels, with a style sheet whose colours are named: `fill:var(--ink)`. The
// picture lies on white. `title` is its name for those who hear it. Close the element to end it.
void pen_svg_begin(pen_markup_writer *svg, double width, double height, const char *title,
                   const char *style);

// Opens "rect": attributes may follow; to be closed.
void pen_svg_open_rect(pen_markup_writer *svg, double x, double y, double width, double height);

// Opens "text" at a point; class NULL: none. To be filled and closed.
void pen_svg_open_text(pen_markup_writer *svg, double x, double y, const char *class_name);
void pen_svg_text(pen_markup_writer *svg, double x, double y, const char *class_name,
                  const char *label);

#endif // PEN_BASE_FORMAT_SVG_WRITER_H
