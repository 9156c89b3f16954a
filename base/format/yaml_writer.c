#include "base/format/yaml_writer.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct yaml_unit {
    const char *name;
    double factor; // of the base unit
} yaml_unit;

// Each from the largest down; the last is taken for what is smaller.
static const yaml_unit yaml_seconds[] = {{"s", 1}, {"ms", 1e3}, {"us", 1e6}, {"ns", 1e9}};
static const yaml_unit yaml_rates[] = {{"T", 1e-12}, {"G", 1e-9}, {"M", 1e-6}};
static const yaml_unit yaml_bandwidths[] = {
    {"TB/s", 1e-12}, {"GB/s", 1e-9}, {"MB/s", 1e-6}, {"kB/s", 1e-3}, {"B/s", 1}};
static const yaml_unit yaml_bytes[] = {{"B", 1}};

#define YAML_UNITS(array)                                                                          \
    { (array), sizeof(array) / sizeof *(array) }

static const struct {
    const yaml_unit *units;
    size_t count;
} yaml_units[] = {
    [PEN_UNIT_BYTES] = YAML_UNITS(yaml_bytes),
    [PEN_UNIT_SECONDS] = YAML_UNITS(yaml_seconds),
    [PEN_UNIT_RATE] = YAML_UNITS(yaml_rates),
    [PEN_UNIT_BANDWIDTH] = YAML_UNITS(yaml_bandwidths),
};

// Room for a number with five digits and its unit.
#define YAML_QUANTITY_BYTES 32

static void yaml_format_quantity(char out_text[YAML_QUANTITY_BYTES], double number, pen_unit unit) {
    char rounded_text[32];
    snprintf(rounded_text, sizeof rounded_text, "%.4e", number);
    const double rounded = strtod(rounded_text, NULL);
    const yaml_unit *units = yaml_units[unit].units;
    size_t at = rounded > 0 ? 0 : yaml_units[unit].count;
    while (at + 1 < yaml_units[unit].count && rounded * units[at].factor < 0.99999) {
        at += 1;
    }
    if (at == yaml_units[unit].count) at = 0;
    snprintf(out_text, YAML_QUANTITY_BYTES, "%.5g%s", rounded * units[at].factor, units[at].name);
}

void pen_yaml_add_quantity(pen_text *text, double number, pen_unit unit) {
    char quantity[YAML_QUANTITY_BYTES];
    if (unit == PEN_UNIT_BYTES) {
        pen_text_print(text, "%.0fB", number); // sizes are exact
        return;
    }
    yaml_format_quantity(quantity, number, unit);
    pen_text_add(text, quantity);
}

double pen_yaml_round(double number, pen_unit unit) {
    char quantity[YAML_QUANTITY_BYTES];
    double rounded = number;
    yaml_format_quantity(quantity, number, unit);
    return pen_quantity_parse(quantity, unit, &rounded) ? rounded : number;
}

// The code point that starts at `bytes`, and its length; anything that is not UTF-8 counts as one
// byte, U+FFFD.
static uint32_t yaml_decode(const unsigned char *bytes, size_t *out_length) {
    const unsigned char lead = bytes[0];
    const size_t length = lead < 0x80 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
    uint32_t point = length == 1 ? lead : lead & (0x7fu >> length);
    *out_length = 1;
    if (lead >= 0x80 && (lead < 0xc2 || lead > 0xf4)) return 0xfffd;
    for (size_t i = 1; i < length; i++) {
        if ((bytes[i] & 0xc0) != 0x80) return 0xfffd;
        point = point << 6 | (bytes[i] & 0x3f);
    }
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    if (point < least[length] || point > 0x10ffff) return 0xfffd;
    if (point >= 0xd800 && point <= 0xdfff) return 0xfffd;
    *out_length = length;
    return point;
}

// Whether a code point may stand in YAML as it is, and comes back the same.
static bool yaml_is_plain(uint32_t point) {
    if (point < 0x20 || point == '"' || point == '\\' || point == 0x7f) return false;
    if (point >= 0x80 && point < 0xa0) return false;
    return point != 0x2028 && point != 0x2029 && point != 0xfeff && point != 0xfffd &&
           point != 0xfffe && point != 0xffff;
}

void pen_yaml_add_text(pen_text *text, const char *value) {
    const unsigned char *bytes = (const unsigned char *)value;
    pen_text_add(text, "\"");
    while (*bytes != '\0') {
        size_t length;
        const uint32_t point = yaml_decode(bytes, &length);
        if (yaml_is_plain(point)) {
            pen_text_append(text, (const char *)bytes, length);
        } else if (point == '"' || point == '\\') {
            pen_text_print(text, "\\%c", (int)point);
        } else {
            pen_text_print(text, "\\u%04" PRIx32, point);
        }
        bytes += length;
    }
    pen_text_add(text, "\"");
}
