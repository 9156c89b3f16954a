#include "base/format/palette.h"

#include <stdio.h>
#include <string.h>

const pen_palette_color pen_palette[] = {
    // what things lie on, and the text on it
    {"ink", "#1d2329", "#e4e8ec"},
    {"soft", "#5b6570", "#9aa4af"},
    {"line", "#d9dde2", "#363e47"},
    {"paper", "#ffffff", "#1b2026"},
    {"ground", "#f4f5f7", "#14181d"},
    {"row", "#eceff2", "#262d35"},
    {"link", "#1b5fae", "#8ab8f2"},
    {"off", "#b14a00", "#ffab66"}, // a figure that is far from its plan
    {"field", "#b9c0c8", "#4a545f"},
    {"float", "#ffffffdd", "#1b2026e0"},
    {"area", "#3569ad40", "#6f9fdc55"},
    {"mark", "#3569ad", "#86b0e6"},
    {"warning", "#c62f2a", "#ff7a70"},
    // a drawn graph
    {"label", "#16191d", NULL}, // on boxes
    {"box", "#ffffff", "#ccd3da"},
    {"unplaced", "#e6e8eb", NULL},
    {"outline", "#5b636d", NULL},
    {"arrow", "#8d959e", NULL},
    {"arrow-far", "#c3c8ce", NULL},
    {"match", "#d0322d", NULL},
    {"from", "#2a7a3b", NULL},
    {"to", "#1b5fae", NULL},
    // tasks, and the digits on them
    {"digit", "#ffffff", NULL},
    {"forward", "#3569ad", NULL},
    {"backward", "#b85c00", NULL},
    {"backward-inputs", "#936f00", NULL},
    {"backward-weights", "#8e4a97", NULL},
    {"update", "#2f7d43", NULL},
    {"transfer", "#7d8792", NULL},
    // curves, as thin as lines are
    {"curve-0", "#3569ad", "#86b0e6"},
    {"curve-1", "#b85c00", "#f0a75e"},
    {"curve-2", "#2f7d43", "#7cc98f"},
    {"curve-3", "#8e4a97", "#d39adc"},
    {"curve-4", "#7d6000", "#d9b94a"},
    {"curve-5", "#0f6f75", "#5fc9cc"},
    // what memory is taken for
    {"memory-parameters", "#3b73b9", NULL},
    {"memory-gradients", "#6fa3dc", NULL},
    {"memory-optimizer-state", "#9d8bd0", NULL},
    {"memory-activations", "#e08a1e", NULL},
    {"memory-receive-buffers", "#e3c53f", NULL},
    {"memory-workspace", "#8a929c", NULL},
    {"memory-saved", "#4f9d8f", NULL},
};
const uint32_t pen_palette_count = sizeof pen_palette / sizeof *pen_palette;

static const char *const palette_series[] = {
    "#a9c9ec", "#f6c48f", "#a8d8a8", "#f2a7a5", "#cbb3e0", "#e3d27a",
    "#8fd5d5", "#eeb0d3", "#c9b59a", "#b9c2cc", "#c3e08a", "#9fb0f0",
};
const uint32_t pen_palette_series_count = sizeof palette_series / sizeof *palette_series;

// Past the chosen colours, hues are turned by the golden angle, so that neighbours stay far apart.
const char *pen_palette_series(uint32_t number, char out_color[PEN_PALETTE_TEXT_BYTES]) {
    if (number < pen_palette_series_count) {
        snprintf(out_color, PEN_PALETTE_TEXT_BYTES, "%s", palette_series[number]);
        return out_color;
    }
    const uint32_t turn = (uint32_t)((uint64_t)number * 137508 % 360000); // thousandths of a degree
    const uint32_t sector = turn / 60000;
    const uint32_t rising = 150 + turn % 60000 * 90 / 60000;
    const uint32_t falling = 240 - turn % 60000 * 90 / 60000;
    const uint32_t rgb[6][3] = {{240, rising, 150},  {falling, 240, 150}, {150, 240, rising},
                                {150, falling, 240}, {rising, 150, 240},  {240, 150, falling}};
    snprintf(out_color, PEN_PALETTE_TEXT_BYTES, "#%02x%02x%02x", rgb[sector][0] & 0xffu,
             rgb[sector][1] & 0xffu, rgb[sector][2] & 0xffu);
    return out_color;
}

// The light colour of the name that `text` begins with, up to its ")".
static const char *palette_find(const char *text) {
    for (uint32_t i = 0; i < pen_palette_count; i++) {
        const size_t length = strlen(pen_palette[i].name);
        if (strncmp(text, pen_palette[i].name, length) == 0 && text[length] == ')') {
            return pen_palette[i].light;
        }
    }
    return NULL;
}

void pen_palette_add(pen_text *text, const char *style) {
    static const char variable[] = "var(--";
    for (const char *at; (at = strstr(style, variable)) != NULL;) {
        const char *name = at + strlen(variable);
        const char *color = palette_find(name);
        PEN_ASSERT(color != NULL);
        pen_text_append(text, style, (size_t)(at - style));
        pen_text_add(text, color);
        style = strchr(name, ')') + 1;
    }
    pen_text_add(text, style);
}

void pen_palette_add_variables(pen_text *text) {
    pen_text_add(text, ":root {\n    color-scheme: light dark;\n");
    for (uint32_t i = 0; i < pen_palette_count; i++) {
        pen_text_print(text, "    --%s: %s;\n", pen_palette[i].name, pen_palette[i].light);
    }
    for (uint32_t i = 0; i < pen_palette_series_count; i++) {
        pen_text_print(text, "    --series-%u: %s;\n", i, palette_series[i]);
    }
    pen_text_add(text, "}\n@media (prefers-color-scheme: dark) {\n    :root {\n");
    for (uint32_t i = 0; i < pen_palette_count; i++) {
        if (pen_palette[i].dark == NULL) continue;
        pen_text_print(text, "        --%s: %s;\n", pen_palette[i].name, pen_palette[i].dark);
    }
    pen_text_add(text, "    }\n}\n");
}
