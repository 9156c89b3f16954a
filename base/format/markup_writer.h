// XML and HTML written as it comes, into a growing text.
//
// Elements are opened, given attributes, filled, and closed again; what was not closed, or closed
// under another name, is our own mistake and asserted. Texts and attributes are escaped, so that no
// name from a file can end the element it stands in. Bytes that are no UTF-8, and the control
// characters that XML has no place for, become U+FFFD.
//
// Threads: a writer belongs to one thread at a time.
#ifndef PEN_BASE_FORMAT_MARKUP_WRITER_H
#define PEN_BASE_FORMAT_MARKUP_WRITER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/text.h"

#define PEN_MARKUP_DEPTH_LIMIT 32

typedef struct pen_markup_writer {
    pen_text *text;
    uint32_t depth;
    bool tag_is_open;                         // attributes may follow
    const char *open[PEN_MARKUP_DEPTH_LIMIT]; // names; borrowed
} pen_markup_writer;

void pen_markup_init(pen_markup_writer *markup, pen_text *text);

// Element names and attribute names are ours, and written as they are.
void pen_markup_open(pen_markup_writer *markup, const char *element);
void pen_markup_close(pen_markup_writer *markup, const char *element);

// Attributes of the element just opened. Numbers are written with six significant digits at most.
void pen_markup_attribute(pen_markup_writer *markup, const char *name, const char *value);
void pen_markup_attribute_number(pen_markup_writer *markup, const char *name, double value);

// Content.
void pen_markup_text(pen_markup_writer *markup, const char *text);
void pen_markup_print(pen_markup_writer *markup, const char *format, ...) PEN_PRINTF(2, 3);
void pen_markup_line(pen_markup_writer *markup); // begins a new line, for people who read it

// An element with nothing but text in it.
void pen_markup_element(pen_markup_writer *markup, const char *element, const char *text);

// Our own style sheets and scripts, as they are: they contain no "</".
void pen_markup_raw(pen_markup_writer *markup, const char *raw);

// JSON, as the content of a script element: "<" is written as an escape, which only strings need.
void pen_markup_json(pen_markup_writer *markup, const char *json);

#endif // PEN_BASE_FORMAT_MARKUP_WRITER_H
