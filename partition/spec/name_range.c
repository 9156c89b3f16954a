#include "partition/spec/name_range.h"

#include <stdbool.h>
#include <string.h>

#include "base/text.h"

// Digits at `*at`, and how many; false when there are none or too many.
static bool range_read_number(const char **at, uint32_t *out_number, int *out_digits) {
    uint32_t number = 0;
    int digits = 0;
    while (**at >= '0' && **at <= '9') {
        if (digits == PEN_NAME_RANGE_DIGITS) return false;
        number = 10 * number + (uint32_t)(**at - '0');
        digits += 1;
        *at += 1;
    }
    *out_number = number;
    *out_digits = digits;
    return digits > 0;
}

static pen_status range_refuse(const char *text, const char *expected) {
    return pen_error(PEN_INVALID_INPUT, "found \"%.100s\", expected %s", text, expected);
}

// A range that begins with the bracket at `open`.
static pen_status range_read(const char *text, const char *open, pen_name_range *out_range) {
    const char *at = open + 1;
    uint32_t first;
    uint32_t last;
    int first_digits;
    int last_digits;
    bool good = range_read_number(&at, &first, &first_digits);
    good = good && *at++ == '-' && range_read_number(&at, &last, &last_digits) && *at++ == ']';
    if (!good) return range_refuse(text, "ranges like [1-16] or [01-16], of at most 9 digits");
    if (last < first) return range_refuse(text, "a range that begins with its smaller number");
    if (last - first >= PEN_NAME_RANGE_TOTAL) {
        return range_refuse(text, "ranges that stand for at most 65536 names");
    }
    *out_range = (pen_name_range){
        .begin = (size_t)(open - text),
        .end = (size_t)(at - text),
        .first = first,
        .count = last - first + 1,
        .digits = open[1] == '0' ? first_digits : 1,
    };
    return PEN_OK;
}

// A bracket that holds anything but digits and a dash is an ordinary sign: patterns and names of
// other programs have such.
pen_status pen_name_ranges_parse(const char *text, pen_name_ranges *out_ranges) {
    pen_name_ranges ranges = {.text = text, .total = 1};
    const char *at = text;
    while ((at = strchr(at, '[')) != NULL) {
        const size_t inside = strspn(at + 1, "0123456789-");
        if (inside > 0 && at[1 + inside] == '\0') {
            return range_refuse(text, "a \"]\" that ends the range, as in [1-16]");
        }
        if (inside == 0 || at[1 + inside] != ']') {
            at += 1;
            continue;
        }
        if (ranges.range_count == PEN_NAME_RANGE_LIMIT) {
            return range_refuse(text, "at most 4 ranges");
        }
        pen_name_range *range = &ranges.ranges[ranges.range_count++];
        PEN_TRY(range_read(text, at, range));
        if ((uint64_t)ranges.total * range->count > PEN_NAME_RANGE_TOTAL) {
            return range_refuse(text, "ranges that stand for at most 65536 names");
        }
        ranges.total *= range->count;
        at = text + range->end;
    }
    *out_ranges = ranges;
    return PEN_OK;
}

pen_status pen_name_ranges_format(const pen_name_ranges *text, const pen_name_ranges *counted,
                                  uint32_t index, pen_arena *arena, const char **out_name) {
    uint32_t steps[PEN_NAME_RANGE_LIMIT] = {0};
    for (uint32_t i = counted->range_count; i-- > 0;) {
        steps[i] = index % counted->ranges[i].count;
        index /= counted->ranges[i].count;
    }
    pen_text name;
    pen_text_init(&name, arena);
    size_t done = 0;
    for (uint32_t i = 0; i < text->range_count; i++) {
        const pen_name_range *range = &text->ranges[i];
        pen_text_append(&name, text->text + done, range->begin - done);
        pen_text_print(&name, "%0*u", range->digits, range->first + steps[i]);
        done = range->end;
    }
    pen_text_add(&name, text->text + done);
    return pen_text_finish(&name, out_name);
}
