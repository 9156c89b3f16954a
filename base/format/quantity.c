#include "base/format/quantity.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define QUANTITY_NUMBER_BYTES 64 // no number worth writing is longer

typedef struct quantity_unit {
    const char *name;
    double factor;
    double divisor; // 0 for 1: 50us is 50 / 1e6, the double nearest to it, and 50 * 1e-6 is not
} quantity_unit;

typedef struct quantity_unit_list {
    const char *names;
    const char *pattern;
    const quantity_unit *units; // ended by a NULL name
} quantity_unit_list;

#define QUANTITY_NUMBER_PATTERN "^([0-9]+([.][0-9]*)?|[.][0-9]+)([eE][-+]?[0-9]+)? *"

static const quantity_unit quantity_bytes[] = {
    {"B", 1, 0},        {"bytes", 1, 0},    {"kB", 1e3, 0},     {"MB", 1e6, 0},
    {"GB", 1e9, 0},     {"TB", 1e12, 0},    {"KiB", 0x1p10, 0}, {"MiB", 0x1p20, 0},
    {"GiB", 0x1p30, 0}, {"TiB", 0x1p40, 0}, {NULL, 0, 0},
};
static const quantity_unit quantity_seconds[] = {
    {"ns", 1, 1e9}, {"us", 1, 1e6}, {"ms", 1, 1e3}, {"s", 1, 0},
    {"min", 60, 0}, {"h", 3600, 0}, {NULL, 0, 0},
};
static const quantity_unit quantity_rates[] = {
    {"M", 1e6, 0},        {"G", 1e9, 0},        {"T", 1e12, 0},
    {"P", 1e15, 0},       {"Mflop/s", 1e6, 0},  {"Gflop/s", 1e9, 0},
    {"Tflop/s", 1e12, 0}, {"Pflop/s", 1e15, 0}, {NULL, 0, 0},
};
static const quantity_unit quantity_bandwidths[] = {
    {"bit/s", 0.125, 0},     {"kbit/s", 0.125e3, 0}, {"Mbit/s", 0.125e6, 0}, {"Gbit/s", 0.125e9, 0},
    {"Tbit/s", 0.125e12, 0}, {"B/s", 1, 0},          {"kB/s", 1e3, 0},       {"MB/s", 1e6, 0},
    {"GB/s", 1e9, 0},        {"TB/s", 1e12, 0},      {"KiB/s", 0x1p10, 0},   {"MiB/s", 0x1p20, 0},
    {"GiB/s", 0x1p30, 0},    {NULL, 0, 0},
};

static const quantity_unit_list quantity_units[] = {
    [PEN_UNIT_BYTES] = {"B, kB, MB, GB, TB, KiB, MiB, GiB, TiB",
                        QUANTITY_NUMBER_PATTERN "(B|bytes|[kMGT]B|[KMGT]iB)$", quantity_bytes},
    [PEN_UNIT_SECONDS] = {"ns, us, ms, s, min, h", QUANTITY_NUMBER_PATTERN "([num]?s|min|h)$",
                          quantity_seconds},
    [PEN_UNIT_RATE] = {"M, G, T, P, Mflop/s, Gflop/s, Tflop/s, Pflop/s",
                       QUANTITY_NUMBER_PATTERN "[MGTP](flop/s)?$", quantity_rates},
    [PEN_UNIT_BANDWIDTH] = {"bit/s, kbit/s, Mbit/s, Gbit/s, Tbit/s, B/s, kB/s, MB/s, GB/s, TB/s, "
                            "KiB/s, MiB/s, GiB/s",
                            QUANTITY_NUMBER_PATTERN "([kMGT]?bit|[kMGT]?B|[KMG]iB)/s$",
                            quantity_bandwidths},
};

static size_t quantity_skip_digits(const char *text, size_t index) {
    while (isdigit((unsigned char)text[index])) {
        index += 1;
    }
    return index;
}

// The length of the decimal number at the start of `text`, without its sign; 0 when there is none.
static size_t quantity_number_length(const char *text) {
    size_t index = quantity_skip_digits(text, 0);
    size_t digits = index;
    if (text[index] == '.') {
        const size_t start = index + 1;
        index = quantity_skip_digits(text, start);
        digits += index - start;
    }
    if (digits == 0) return 0;
    if (text[index] == 'e' || text[index] == 'E') {
        const size_t sign = index + 1;
        const size_t start = text[sign] == '+' || text[sign] == '-' ? sign + 1 : sign;
        const size_t end = quantity_skip_digits(text, start);
        if (end > start) index = end;
    }
    return index;
}

// Converts `length` bytes that quantity_number_length measured.
static bool quantity_convert(const char *text, size_t length, double *out_number) {
    char copy[QUANTITY_NUMBER_BYTES];
    if (length == 0 || length >= sizeof copy) return false;
    memcpy(copy, text, length);
    copy[length] = '\0';
    const double number = strtod(copy, NULL);
    if (!isfinite(number)) return false;
    *out_number = number;
    return true;
}

bool pen_integer_parse(const char *text, int64_t *out_number) {
    const size_t start = text[0] == '-' || text[0] == '+' ? 1 : 0;
    const size_t end = quantity_skip_digits(text, start);
    if (end == start || text[end] != '\0') return false;
    errno = 0;
    const long long number = strtoll(text, NULL, 10);
    if (errno != 0) return false;
    *out_number = (int64_t)number;
    return true;
}

bool pen_number_parse(const char *text, double *out_number) {
    const size_t start = text[0] == '-' || text[0] == '+' ? 1 : 0;
    const size_t length = quantity_number_length(text + start);
    double number;
    if (text[start + length] != '\0') return false;
    if (!quantity_convert(text + start, length, &number)) return false;
    *out_number = text[0] == '-' ? -number : number;
    return true;
}

bool pen_quantity_parse(const char *text, pen_unit unit, double *out_number) {
    double number;
    const size_t length = quantity_number_length(text);
    if (!quantity_convert(text, length, &number)) return false;
    const char *name = text + length;
    while (*name == ' ') {
        name += 1;
    }
    for (const quantity_unit *known = quantity_units[unit].units; known->name != NULL; known++) {
        if (strcmp(known->name, name) != 0) continue;
        number *= known->factor;
        if (known->divisor > 0) number /= known->divisor;
        if (!isfinite(number)) return false;
        *out_number = number;
        return true;
    }
    return false;
}

const char *pen_unit_names(pen_unit unit) {
    return quantity_units[unit].names;
}

const char *pen_unit_pattern(pen_unit unit) {
    return quantity_units[unit].pattern;
}

// "100 steps", "3 epochs": the unit must be said, since a bare number could mean either.
bool pen_interval_parse(const char *text, pen_interval *out_interval) {
    static const struct {
        const char *name;
        pen_interval_unit unit;
    } units[] = {
        {"step", PEN_INTERVAL_STEPS},
        {"steps", PEN_INTERVAL_STEPS},
        {"epoch", PEN_INTERVAL_EPOCHS},
        {"epochs", PEN_INTERVAL_EPOCHS},
    };
    const size_t length = quantity_skip_digits(text, 0);
    char digits[20]; // 19 digits are below 2^64
    if (length == 0 || length >= sizeof digits) return false;
    memcpy(digits, text, length);
    digits[length] = '\0';
    const char *name = text + length;
    while (*name == ' ') {
        name += 1;
    }
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        if (strcmp(units[i].name, name) != 0) continue;
        *out_interval = (pen_interval){.count = strtoull(digits, NULL, 10), .unit = units[i].unit};
        return true;
    }
    return false;
}

bool pen_interval_is_due(const pen_interval *interval, uint64_t step, uint64_t epoch,
                         bool ends_epoch) {
    switch (interval->unit) {
    case PEN_INTERVAL_STEPS:
        return step % interval->count == 0;
    case PEN_INTERVAL_EPOCHS:
        return ends_epoch && epoch % interval->count == 0;
    }
    return false;
}
