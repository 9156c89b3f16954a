// Scalars as the YAML reader reads them back, for files that programs write and people edit.
//
// Threads: those of the text.
#ifndef PEN_BASE_FORMAT_YAML_WRITER_H
#define PEN_BASE_FORMAT_YAML_WRITER_H

#include <stdbool.h>

#include "base/format/quantity.h"
#include "base/text.h"

// Adds a text in double quotes. Bytes that are not UTF-8 become U+FFFD.
void pen_yaml_add_text(pen_text *text, const char *value);

// Adds a quantity in the unit that suits its size, with five digits, rounded such that what is read
// back is written the same: "1.5ms". Not negative, finite.
void pen_yaml_add_quantity(pen_text *text, double number, pen_unit unit);

// What is read back of a quantity that was written (not of bytes, which are exact), and by how much
// of it that is off, at most: half of the fifth digit.
#define PEN_YAML_ROUNDING 5e-5
double pen_yaml_round(double number, pen_unit unit);

#endif // PEN_BASE_FORMAT_YAML_WRITER_H
