#include "base/format/markup_writer.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void pen_markup_init(pen_markup_writer *markup, pen_text *text) {
    *markup = (pen_markup_writer){.text = text};
}

static void markup_end_tag(pen_markup_writer *markup) {
    if (markup->tag_is_open) pen_text_add(markup->text, ">");
    markup->tag_is_open = false;
}

void pen_markup_open(pen_markup_writer *markup, const char *element) {
    PEN_ASSERT(markup->depth < PEN_MARKUP_DEPTH_LIMIT);
    markup_end_tag(markup);
    markup->open[markup->depth++] = element;
    pen_text_add(markup->text, "<");
    pen_text_add(markup->text, element);
    markup->tag_is_open = true;
}

// Whether HTML has no end tag for it, or SVG needs none when it is empty.
static bool markup_may_be_empty(const char *element) {
    static const char *const names[] = {"rect", "line",  "path", "circle",
                                        "meta", "input", "br",   "polyline"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (strcmp(names[i], element) == 0) return true;
    }
    return false;
}

void pen_markup_close(pen_markup_writer *markup, const char *element) {
    PEN_ASSERT(markup->depth > 0 && strcmp(markup->open[markup->depth - 1], element) == 0);
    markup->depth -= 1;
    if (markup->tag_is_open && markup_may_be_empty(element)) {
        pen_text_add(markup->text, "/>");
        markup->tag_is_open = false;
        return;
    }
    markup_end_tag(markup);
    pen_text_add(markup->text, "</");
    pen_text_add(markup->text, element);
    pen_text_add(markup->text, ">");
}

// Names come from files and from the network: signs with a meaning in HTML and SVG are escaped, and
// control characters and invalid UTF-8 become the replacement character.
static void markup_add_escaped(pen_text *text, const char *string) {
    const unsigned char *bytes = (const unsigned char *)string;
    size_t left = strlen(string);
    while (left > 0) {
        const size_t length = pen_text_sequence_length(bytes, left);
        if (length == 0 || (*bytes < 0x20 && *bytes != '\n' && *bytes != '\t') || *bytes == 0x7f) {
            pen_text_add(text, "\xEF\xBF\xBD");
        } else if (*bytes == '&') {
            pen_text_add(text, "&amp;");
        } else if (*bytes == '<') {
            pen_text_add(text, "&lt;");
        } else if (*bytes == '>') {
            pen_text_add(text, "&gt;");
        } else if (*bytes == '"') {
            pen_text_add(text, "&quot;");
        } else if (*bytes == '\'') {
            pen_text_add(text, "&#39;");
        } else {
            pen_text_append(text, (const char *)bytes, length);
        }
        bytes += length > 0 ? length : 1;
        left -= length > 0 ? length : 1;
    }
}

void pen_markup_attribute(pen_markup_writer *markup, const char *name, const char *value) {
    PEN_ASSERT(markup->tag_is_open);
    pen_text_print(markup->text, " %s=\"", name);
    markup_add_escaped(markup->text, value);
    pen_text_add(markup->text, "\"");
}

void pen_markup_attribute_number(pen_markup_writer *markup, const char *name, double value) {
    PEN_ASSERT(markup->tag_is_open);
    pen_text_print(markup->text, " %s=\"%.6g\"", name, value);
}

void pen_markup_text(pen_markup_writer *markup, const char *text) {
    markup_end_tag(markup);
    markup_add_escaped(markup->text, text);
}

// Most texts fit into the small buffer; the others are formatted a second time, into the arena.
void pen_markup_print(pen_markup_writer *markup, const char *format, ...) {
    char small[256];
    va_list arguments;
    va_start(arguments, format);
    const int length = vsnprintf(small, sizeof small, format, arguments);
    va_end(arguments);
    if (length >= 0 && (size_t)length < sizeof small) {
        pen_markup_text(markup, small);
        return;
    }
    char *whole = NULL;
    if (length >= 0) whole = pen_arena_allocate(markup->text->arena, (size_t)length + 1, 1, 1);
    if (whole == NULL) {
        markup->text->failed = true;
        return;
    }
    va_start(arguments, format);
    vsnprintf(whole, (size_t)length + 1, format, arguments);
    va_end(arguments);
    pen_markup_text(markup, whole);
}

void pen_markup_line(pen_markup_writer *markup) {
    markup_end_tag(markup);
    pen_text_add(markup->text, "\n");
}

void pen_markup_element(pen_markup_writer *markup, const char *element, const char *text) {
    pen_markup_open(markup, element);
    pen_markup_text(markup, text);
    pen_markup_close(markup, element);
}

void pen_markup_raw(pen_markup_writer *markup, const char *raw) {
    PEN_ASSERT(strstr(raw, "</") == NULL);
    markup_end_tag(markup);
    pen_text_add(markup->text, raw);
}

void pen_markup_json(pen_markup_writer *markup, const char *json) {
    markup_end_tag(markup);
    for (const char *rest = json; *rest != '\0';) {
        const size_t length = strcspn(rest, "<");
        pen_text_append(markup->text, rest, length);
        rest += length;
        if (*rest == '\0') break;
        pen_text_add(markup->text, "\\u003c");
        rest += 1;
    }
}
