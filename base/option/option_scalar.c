#include "base/option/option_scalar.h"

#include <string.h>

#define OPTION_QUANTITY(base) .schema_type = "string", .is_quantity = true, .unit = (base)

static bool option_in_range(const pen_option_field *field, double value) {
    const pen_option_bound *minimum = &field->minimum;
    const pen_option_bound *maximum = &field->maximum;
    if (minimum->is_set && value < minimum->value) return false;
    if (minimum->is_set && minimum->is_excluded && value <= minimum->value) return false;
    if (maximum->is_set && value > maximum->value) return false;
    return !(maximum->is_set && maximum->is_excluded && value >= maximum->value);
}

static bool option_parse_choice(const pen_option_field *field, const char *text, void *out_value) {
    for (unsigned i = 0; field->choices[i] != NULL; i++) {
        if (strcmp(field->choices[i], text) != 0) continue;
        memcpy(out_value, &i, sizeof i);
        return true;
    }
    return false;
}

static bool option_parse_bool(const pen_option_field *field, const char *text, void *out_value) {
    const bool is_digit = field->takes_digits && (strcmp(text, "1") == 0 || strcmp(text, "0") == 0);
    const bool truth = is_digit ? text[0] == '1' : strcmp(text, "true") == 0;
    if (!truth && !is_digit && strcmp(text, "false") != 0) return false;
    memcpy(out_value, &truth, sizeof truth);
    return true;
}

static bool option_parse_bytes(const pen_option_field *field, const char *text, void *out_value) {
    double number;
    if (!pen_quantity_parse(text, PEN_UNIT_BYTES, &number)) return false;
    // 2^63 is past any machine, and keeps sums of a few sizes within 64 bits
    if (number >= 0x1p63 || !option_in_range(field, number)) return false;
    memcpy(out_value, &(uint64_t){(uint64_t)number}, sizeof(uint64_t));
    return true;
}

// A number, or a quantity in the base of its unit.
static bool option_parse_number(const pen_option_field *field, const char *text, void *out_value) {
    const pen_option_scalar *scalar = pen_option_find_scalar(field->kind);
    double number;
    const bool is_read = scalar->is_quantity ? pen_quantity_parse(text, scalar->unit, &number)
                                             : pen_number_parse(text, &number);
    if (!is_read || !option_in_range(field, number)) return false;
    memcpy(out_value, &number, sizeof number);
    return true;
}

static bool option_parse_integer(const pen_option_field *field, const char *text, void *out_value) {
    int64_t number;
    if (!pen_integer_parse(text, &number) || !option_in_range(field, (double)number)) return false;
    memcpy(out_value, &number, sizeof number);
    return true;
}

static bool option_parse_count(const pen_option_field *field, const char *text, void *out_value) {
    const int64_t automatic = 0;
    if (strcmp(text, "auto") != 0) return option_parse_integer(field, text, out_value);
    memcpy(out_value, &automatic, sizeof automatic);
    return true;
}

static bool option_parse_interval(const pen_option_field *field, const char *text,
                                  void *out_value) {
    pen_interval interval;
    if (!pen_interval_parse(text, &interval)) return false;
    if (!option_in_range(field, (double)interval.count)) return false;
    memcpy(out_value, &interval, sizeof interval);
    return true;
}

_Static_assert(PEN_OPTION_LIST == PEN_OPTION_CHOICE + 1,
               "kinds with parts stand behind the others");

static const pen_option_scalar option_scalars[] = {
    [PEN_OPTION_TEXT] = {.expected = "text", .bytes = sizeof(char *), .schema_type = "string"},
    [PEN_OPTION_SCALAR] = {.expected = "a value", .bytes = sizeof(char *)},
    [PEN_OPTION_PATH] = {.expected = "a path", .bytes = sizeof(char *), .schema_type = "string"},
    [PEN_OPTION_PATTERN] = {.expected = "a regular expression (POSIX extended) like \"^conv1\"",
                            .bytes = sizeof(char *),
                            .schema_type = "string"},
    [PEN_OPTION_INTEGER] = {.expected = "an integer",
                            .bytes = sizeof(int64_t),
                            .schema_type = "integer",
                            .parse = option_parse_integer},
    [PEN_OPTION_COUNT] = {.expected = "auto or an integer",
                          .bytes = sizeof(int64_t),
                          .schema_type = "integer",
                          .parse = option_parse_count},
    [PEN_OPTION_NUMBER] = {.expected = "a number",
                           .bytes = sizeof(double),
                           .schema_type = "number",
                           .parse = option_parse_number},
    [PEN_OPTION_BOOL] = {.expected = "true or false",
                         .bytes = sizeof(bool),
                         .schema_type = "boolean",
                         .parse = option_parse_bool},
    [PEN_OPTION_BYTES] = {.expected = "a size like 12GiB",
                          .bytes = sizeof(uint64_t),
                          OPTION_QUANTITY(PEN_UNIT_BYTES),
                          .parse = option_parse_bytes},
    [PEN_OPTION_SECONDS] = {.expected = "a duration like 5s",
                            .bytes = sizeof(double),
                            OPTION_QUANTITY(PEN_UNIT_SECONDS),
                            .parse = option_parse_number},
    [PEN_OPTION_RATE] = {.expected = "a rate like 80G",
                         .bytes = sizeof(double),
                         OPTION_QUANTITY(PEN_UNIT_RATE),
                         .parse = option_parse_number},
    [PEN_OPTION_BANDWIDTH] = {.expected = "a bandwidth like 10Gbit/s",
                              .bytes = sizeof(double),
                              OPTION_QUANTITY(PEN_UNIT_BANDWIDTH),
                              .parse = option_parse_number},
    [PEN_OPTION_INTERVAL] = {.expected = "a length like \"100 steps\" or \"3 epochs\"",
                             .bytes = sizeof(pen_interval),
                             .schema_type = "string",
                             .schema_pattern = "^[0-9]+ *(steps?|epochs?)$",
                             .parse = option_parse_interval},
    [PEN_OPTION_CHOICE] = {.bytes = sizeof(unsigned), .parse = option_parse_choice},
};

const pen_option_scalar *pen_option_find_scalar(pen_option_kind kind) {
    const bool is_scalar = (size_t)kind < sizeof option_scalars / sizeof *option_scalars;
    return is_scalar ? &option_scalars[kind] : NULL;
}
