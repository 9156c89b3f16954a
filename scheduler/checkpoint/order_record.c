#include "scheduler/checkpoint/order_record.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/checksum.h"
#include "base/text.h"

#define ORDER_TITLE "penstock: order 1\n"
#define ORDER_WORD_DIGITS 8  // of a checksum
#define ORDER_LEAST_BYTES 13 // "1 0 01234567\n"
#define ORDER_HEAD_LINES 3
#define ORDER_BASE 16

static const char order_digits[] = "0123456789abcdef";

// ---- writing

static bool order_is_line(const char *text) {
    for (const char *at = text; *at != 0; at++) {
        if (*at < ' ' || *at > '~') return false;
    }
    return strlen(text) < PEN_ORDER_OF_BYTES;
}

pen_status pen_order_write_head(pen_order_writer *writer, const char *of, pen_arena *arena,
                                const char **out_text, size_t *out_count) {
    pen_text text;
    if (!order_is_line(of)) {
        return pen_error(PEN_INVALID_INPUT, "'%.64s' cannot be written into a record", of);
    }
    pen_text_init(&text, arena);
    pen_text_print(&text, ORDER_TITLE "of: %s\nchecksum: ", of);
    if (!text.failed) {
        pen_text_print(&text, "%08" PRIx32 "\n", pen_checksum(text.bytes, text.length));
    }
    PEN_TRY(pen_text_finish(&text, out_text));
    *out_count = text.length;
    *writer = (pen_order_writer){.checksum = pen_checksum(*out_text, text.length)};
    return PEN_OK;
}

size_t pen_order_write_step(pen_order_writer *writer, const pen_step_order *order,
                            char out_line[PEN_ORDER_LINE_BYTES]) {
    char digits[PEN_ARRIVALS_LANES + 1] = {0};
    PEN_ASSERT(order->count > 0 && pen_arrivals_order_is_whole(order->lanes, order->count));
    for (uint32_t place = 0; place < order->count; place++) {
        digits[place] = order_digits[pen_arrivals_order_lane(order->lanes, place)];
    }
    writer->step_count += 1;
    const int head =
        snprintf(out_line, PEN_ORDER_LINE_BYTES, "%" PRIu64 " %s ", writer->step_count, digits);
    PEN_ASSERT(head > 0 && head + ORDER_WORD_DIGITS + 2 < (int)PEN_ORDER_LINE_BYTES);
    const uint32_t checksum = pen_checksum_continue(writer->checksum, out_line, (uint64_t)head);
    const int tail =
        snprintf(out_line + head, PEN_ORDER_LINE_BYTES - (size_t)head, "%08" PRIx32 "\n", checksum);
    writer->checksum = pen_checksum_continue(checksum, out_line + head, (uint64_t)tail);
    return (size_t)head + (size_t)tail;
}

// ---- reading

typedef struct order_cursor {
    const char *bytes; // [count]
    uint64_t count;
    uint64_t at;
    const char *line; // [length] before `at`, without its end
    uint64_t length;
} order_cursor;

// The next line; false: it is not ended.
static bool order_next(order_cursor *cursor) {
    cursor->line = cursor->bytes + cursor->at;
    const char *end = memchr(cursor->line, '\n', cursor->count - cursor->at);
    if (end == NULL) return false;
    cursor->length = (uint64_t)(end - cursor->line);
    cursor->at += cursor->length + 1;
    return true;
}

static bool order_read_word(const char *digits, uint32_t *out_word) {
    *out_word = 0;
    for (uint32_t i = 0; i < ORDER_WORD_DIGITS; i++) {
        const char *found = memchr(order_digits, digits[i], ORDER_BASE);
        if (found == NULL) return false;
        *out_word = *out_word << 4 | (uint32_t)(found - order_digits);
    }
    return true;
}

// Whether the line ends with the checksum of all before it, of which `checksum` is that of the
// lines before; which then is that of this line, too.
static bool order_check(const order_cursor *cursor, uint32_t *checksum) {
    uint32_t said;
    if (cursor->length < ORDER_WORD_DIGITS) return false;
    const uint64_t head = cursor->length - ORDER_WORD_DIGITS;
    const uint32_t found = pen_checksum_continue(*checksum, cursor->line, head);
    if (!order_read_word(cursor->line + head, &said) || said != found) return false;
    *checksum = pen_checksum_continue(found, cursor->line + head, ORDER_WORD_DIGITS + 1);
    return true;
}

// The lines before those of steps. *out_line: which is wrong.
static pen_status order_read_head(order_cursor *cursor, pen_order_record *record,
                                  uint32_t *out_line, uint32_t *out_checksum) {
    static const char title[] = ORDER_TITLE, of[] = "of: ", last[] = "checksum: ";
    *out_line = 1;
    if (!order_next(cursor) || cursor->length + 1 != sizeof title - 1 ||
        memcmp(cursor->line, title, cursor->length) != 0) {
        return pen_error(PEN_CORRUPT, "not a record of the order of lanes: expected '%.*s'",
                         (int)sizeof title - 2, title);
    }
    *out_line = 2;
    if (!order_next(cursor) || cursor->length < sizeof of - 1 ||
        memcmp(cursor->line, of, sizeof of - 1) != 0 ||
        cursor->length - (sizeof of - 1) >= PEN_ORDER_OF_BYTES) {
        return pen_error(PEN_CORRUPT, "the record does not say what it is of");
    }
    memcpy(record->of, cursor->line + sizeof of - 1, cursor->length - (sizeof of - 1));
    *out_checksum = pen_checksum(cursor->bytes, cursor->at);
    *out_line = ORDER_HEAD_LINES;
    if (!order_next(cursor) || cursor->length != sizeof last - 1 + ORDER_WORD_DIGITS ||
        memcmp(cursor->line, last, sizeof last - 1) != 0 || !order_check(cursor, out_checksum) ||
        !order_is_line(record->of)) {
        return pen_error(PEN_CORRUPT, "the checksum of the record's beginning is wrong");
    }
    return PEN_OK;
}

// "17 0213 " of a line whose checksum is right. False: it is not of step `step`.
static bool order_read_step(const order_cursor *cursor, uint64_t step, pen_step_order *out_order) {
    char number[24];
    const int digits = snprintf(number, sizeof number, "%" PRIu64 " ", step);
    const uint64_t around = (uint64_t)digits + 1 + ORDER_WORD_DIGITS;
    if (cursor->length <= around || cursor->length > around + PEN_ARRIVALS_LANES ||
        memcmp(cursor->line, number, (size_t)digits) != 0 ||
        cursor->line[cursor->length - ORDER_WORD_DIGITS - 1] != ' ') {
        return false;
    }
    *out_order = (pen_step_order){.count = (uint32_t)(cursor->length - around)};
    for (uint32_t place = 0; place < out_order->count; place++) {
        const char *found = memchr(order_digits, cursor->line[digits + (int)place], ORDER_BASE);
        if (found == NULL) return false;
        out_order->lanes =
            pen_arrivals_order_add(out_order->lanes, place, (uint32_t)(found - order_digits));
    }
    return pen_arrivals_order_is_whole(out_order->lanes, out_order->count);
}

// Of steps all that are whole are taken: a machine that lost its power may have cut the last off.
pen_status pen_order_record_decode(const char *bytes, uint64_t count, pen_arena *arena,
                                   pen_order_record *out_record, uint32_t *out_line) {
    order_cursor cursor = {.bytes = bytes, .count = count};
    pen_step_order *steps;
    uint32_t checksum = 0;
    *out_record = (pen_order_record){0};
    PEN_TRY(order_read_head(&cursor, out_record, out_line, &checksum));
    PEN_TRY(PEN_NEW(arena, (count - cursor.at) / ORDER_LEAST_BYTES, &steps));
    while (cursor.at < count && out_record->damage == NULL) {
        const uint64_t step = out_record->step_count + 1;
        if (!order_next(&cursor)) {
            out_record->damage = "the line is cut off";
        } else if (!order_check(&cursor, &checksum)) {
            out_record->damage = "the checksum of the line is wrong";
        } else if (!order_read_step(&cursor, step, &steps[step - 1])) {
            out_record->damage = "the line is not the order of the next step";
        } else {
            out_record->step_count = step;
        }
    }
    out_record->steps = steps;
    return PEN_OK;
}
