#include "graph/dump/dump_svg.h"

#include <stdio.h>
#include <string.h>

#include "base/format/palette.h"
#include "base/format/svg_writer.h"
#include "base/text.h"

#define SVG_LEGEND 24.0 // pixels, a row of it
#define SVG_LETTER 6.2

typedef struct svg_graph_page {
    const pen_drawing *drawing;
    const pen_graph *graph;
    pen_markup_writer markup;
    double top; // where the drawing begins
} svg_graph_page;

static void svg_arrow(svg_graph_page *page, const pen_drawing_arrow *arrow) {
    const pen_drawing_point *points = &page->drawing->points[arrow->point_first];
    pen_text *text = page->markup.text;
    pen_markup_line(&page->markup);
    pen_markup_open(&page->markup, "path");
    pen_text_print(text, " d=\"M%.1f %.1f", points[0].x, points[0].y + page->top);
    for (uint32_t i = 1; i < arrow->point_count; i++) {
        const double middle = (points[i - 1].y + points[i].y) / 2 + page->top;
        pen_text_print(text, "C%.1f %.1f %.1f %.1f %.1f %.1f", points[i - 1].x, middle, points[i].x,
                       middle, points[i].x, points[i].y + page->top);
    }
    pen_text_add(text, "\"");
    pen_markup_close(&page->markup, "path");
}

// Cuts a name in its middle when it is longer than a box.
static void svg_fit(const char *name, double width, char out_name[64]) {
    const size_t length = strlen(name);
    const size_t room = (size_t)((width - 8) / SVG_LETTER);
    if (length <= room && length < 64) {
        snprintf(out_name, 64, "%s", name);
        return;
    }
    const int head = (int)(room < 60 ? room : 60) / 3;
    const int tail = (int)(room < 60 ? room : 60) - head - 2;
    snprintf(out_name, 64, "%.*s..%s", head, name, name + length - (size_t)tail);
}

static void svg_fill(svg_graph_page *page, uint32_t color) {
    char text[PEN_PALETTE_TEXT_BYTES];
    pen_markup_attribute(&page->markup, "fill", pen_palette_series(color, text));
}

// The label is cut to the box's width; the whole name stands in the title, which browsers show on
// hovering.
static void svg_box(svg_graph_page *page, const pen_drawing_box *box) {
    char label[64];
    const bool is_value = box->kind == PEN_DRAWING_INPUT || box->kind == PEN_DRAWING_OUTPUT;
    pen_markup_line(&page->markup);
    pen_markup_open(&page->markup, "g");
    pen_markup_open(&page->markup, "title");
    pen_markup_text(&page->markup, box->name);
    pen_markup_print(&page->markup, "\n%s %s", box->op, box->shape);
    for (uint32_t g = box->group; g != PEN_DRAWING_NONE; g = page->drawing->groups[g].parent) {
        pen_markup_text(&page->markup, "\n");
        pen_markup_text(&page->markup, page->drawing->groups[g].name);
    }
    pen_markup_close(&page->markup, "title");
    pen_svg_open_rect(&page->markup, box->x, box->y + page->top, box->width, box->height);
    if (is_value) {
        pen_markup_attribute(&page->markup, "class", "v");
    } else {
        svg_fill(page, pen_drawing_box_color(page->drawing, page->graph, box));
    }
    pen_markup_attribute_number(&page->markup, "rx", is_value ? box->height / 2 : 4);
    pen_markup_close(&page->markup, "rect");
    const double middle = box->x + box->width / 2;
    svg_fit(box->op, box->width, label);
    pen_svg_text(&page->markup, middle, box->y + page->top + 14, "o", label);
    svg_fit(box->name, box->width, label);
    pen_svg_text(&page->markup, middle, box->y + page->top + 27, NULL, label);
    pen_markup_close(&page->markup, "g");
}

// Groups without a parent, with their colours. Returns the height.
static double svg_legend(svg_graph_page *page, double width, bool is_drawn) {
    double x = 12;
    double y = 34;
    bool any = false;
    for (uint32_t g = 0; g < page->drawing->group_count; g++) {
        const pen_drawing_group *group = &page->drawing->groups[g];
        if (group->parent != PEN_DRAWING_NONE) continue;
        const double room = 34 + SVG_LETTER * (double)strlen(group->name);
        if (any && x + room > width) {
            x = 12;
            y += SVG_LEGEND;
        }
        any = true;
        if (is_drawn) {
            pen_svg_open_rect(&page->markup, x, y, 14, 14);
            svg_fill(page, group->color);
            pen_markup_close(&page->markup, "rect");
            pen_svg_text(&page->markup, x + 20, y + 11, "l", group->name);
        }
        x += room;
    }
    return any ? y + SVG_LEGEND : 30;
}

static void svg_arrow_head(svg_graph_page *page) {
    static const char *const attributes[][2] = {
        {"id", "a"},          {"viewBox", "0 0 8 8"}, {"refX", "7"},     {"refY", "4"},
        {"markerWidth", "7"}, {"markerHeight", "7"},  {"orient", "auto"}};
    pen_markup_open(&page->markup, "marker");
    for (size_t i = 0; i < sizeof attributes / sizeof *attributes; i++) {
        pen_markup_attribute(&page->markup, attributes[i][0], attributes[i][1]);
    }
    pen_markup_open(&page->markup, "path");
    pen_markup_attribute(&page->markup, "d", "M0 1 8 4 0 7z");
    pen_markup_close(&page->markup, "path");
    pen_markup_close(&page->markup, "marker");
}

// Arrows come before boxes, so that boxes lie on top of them. The legend is measured first, for it
// may take several lines.
pen_status pen_dump_svg(const pen_drawing *drawing, const pen_graph *graph, pen_arena *arena,
                        const char **out_text) {
    svg_graph_page page = {.drawing = drawing, .graph = graph};
    pen_text text;
    const double width = drawing->width < 260 ? 260 : drawing->width;
    page.top = svg_legend(&page, width, false);
    pen_text_init(&text, arena);
    pen_markup_init(&page.markup, &text);
    pen_svg_begin(&page.markup, width, drawing->height + page.top, drawing->title,
                  "text{font:10px sans-serif;fill:var(--label);text-anchor:middle}"
                  ".o{font-size:11px;font-weight:bold}.l{font-size:12px;text-anchor:start}"
                  ".h{font-size:14px;font-weight:bold;text-anchor:start}"
                  "path{fill:none;stroke:var(--arrow);stroke-width:1.1;marker-end:url(#a)}"
                  "#a path{fill:var(--arrow);stroke:none}"
                  "rect{stroke:var(--outline);stroke-width:.7}.v{fill:var(--box)}");
    svg_arrow_head(&page);
    pen_svg_text(&page.markup, 12, 20, "h", drawing->title);
    svg_legend(&page, width, true);
    for (uint32_t a = 0; a < drawing->arrow_count; a++) {
        svg_arrow(&page, &drawing->arrows[a]);
    }
    for (uint32_t b = 0; b < drawing->box_count; b++) {
        svg_box(&page, &drawing->boxes[b]);
    }
    pen_markup_line(&page.markup);
    pen_markup_close(&page.markup, "svg");
    pen_markup_line(&page.markup);
    return pen_text_finish(&text, out_text);
}
