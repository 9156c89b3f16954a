// Kinds of values that one word stands for: how each is told to people and editors, read and kept.
//
// Adding a kind is a row in the table of option_scalar.c.
#ifndef PEN_BASE_OPTION_OPTION_SCALAR_H
#define PEN_BASE_OPTION_OPTION_SCALAR_H

#include "base/option/option.h"

typedef struct pen_option_scalar {
    const char *expected;       // "an integer"; CHOICE: NULL, its field has the names
    size_t bytes;               // of the C value
    const char *schema_type;    // of JSON; CHOICE, SCALAR: NULL
    const char *schema_pattern; // of a string; NULL: any, but not empty
    bool is_quantity;
    pen_unit unit; // of a quantity
    // False, and *out_value as it was: the text is no such value, or out of the field's range.
    // NULL: any text.
    bool (*parse)(const pen_option_field *field, const char *text, void *out_value);
} pen_option_scalar;

// NULL: the kind has parts (lists, mappings).
const pen_option_scalar *pen_option_find_scalar(pen_option_kind kind);

#endif // PEN_BASE_OPTION_OPTION_SCALAR_H
