// Numbers and quantities as a person writes them: 128, 0.05, 12GiB, 50us, 10Gbit/s, 80G.
//
// Nothing is guessed: hexadecimal, "inf", "nan", trailing text and numbers out of range are not
// numbers, and where there are units one must be given.
#ifndef PEN_BASE_FORMAT_QUANTITY_H
#define PEN_BASE_FORMAT_QUANTITY_H

#include <stdbool.h>
#include <stdint.h>

typedef enum pen_unit {
    PEN_UNIT_BYTES,     // bytes: "12GiB", "500 MB"
    PEN_UNIT_SECONDS,   // seconds: "50us", "1.5 min"
    PEN_UNIT_RATE,      // floating-point operations a second: "80G", "1.2 Tflop/s"
    PEN_UNIT_BANDWIDTH, // bytes a second: "10Gbit/s", "1.2 GB/s"
} pen_unit;

// Each returns false, and leaves *out_number as it was, when `text` is not exactly such a number.
bool pen_integer_parse(const char *text, int64_t *out_number);
bool pen_number_parse(const char *text, double *out_number);
// In the unit's base. Negative quantities do not parse.
bool pen_quantity_parse(const char *text, pen_unit unit, double *out_number);

// The units there are, for messages: "B, KiB, ...".
const char *pen_unit_names(pen_unit unit);

// A regular expression (ECMA) for the texts that pen_quantity_parse takes.
const char *pen_unit_pattern(pen_unit unit);

typedef enum pen_interval_unit {
    PEN_INTERVAL_STEPS,
    PEN_INTERVAL_EPOCHS,
} pen_interval_unit;

// A length of training: "100 steps", "3 epochs".
typedef struct pen_interval {
    uint64_t count;
    pen_interval_unit unit;
} pen_interval;

bool pen_interval_parse(const char *text, pen_interval *out_interval);
// Whether one ends with a step, of an epoch; both are counted from 1. Its count is at least 1.
bool pen_interval_is_due(const pen_interval *interval, uint64_t step, uint64_t epoch,
                         bool ends_epoch);

#endif // PEN_BASE_FORMAT_QUANTITY_H
