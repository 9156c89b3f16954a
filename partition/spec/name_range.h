// Names with ranges: "n[01-16]/cpu[0-1]" stands for 32 names, n01/cpu0, n01/cpu1, n02/cpu0, ...
//
// The last range runs fastest. A first number with a zero before it asks for as many digits in all.
// Brackets with anything but digits and '-' in them are part of the name.
//
// Threads: immutable once parsed.
#ifndef PEN_PARTITION_SPEC_NAME_RANGE_H
#define PEN_PARTITION_SPEC_NAME_RANGE_H

#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/status.h"

#define PEN_NAME_RANGE_LIMIT 4      // ranges in a name
#define PEN_NAME_RANGE_DIGITS 9     // of a number
#define PEN_NAME_RANGE_TOTAL 65536u // names that one stands for

typedef struct pen_name_range {
    size_t begin; // of "[01-16]" in the text
    size_t end;
    uint32_t first;
    uint32_t count; // at least 1
    int digits;     // at least so many are written
} pen_name_range;

typedef struct pen_name_ranges {
    const char *text; // borrowed
    uint32_t range_count;
    uint32_t total; // names that it stands for: 1 without ranges
    pen_name_range ranges[PEN_NAME_RANGE_LIMIT];
} pen_name_ranges;

// INVALID_INPUT: found "n[3-1]", expected ...
PEN_NODISCARD pen_status pen_name_ranges_parse(const char *text, pen_name_ranges *out_ranges);

// The name number `index`, below `total`, of `counted`, written in `text`'s ranges: its first range
// goes along with the first of `counted`, and so on. `text` has no more ranges than `counted`, of
// equal counts; for the name itself the two are the same. OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_name_ranges_format(const pen_name_ranges *text,
                                                const pen_name_ranges *counted, uint32_t index,
                                                pen_arena *arena, const char **out_name);

#endif // PEN_PARTITION_SPEC_NAME_RANGE_H
