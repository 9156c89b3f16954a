#include <inttypes.h>
#include <string.h>

#include "base/record/record.h"

// By what the table says of the number: a choice has a word, bits have their digits, a flag is true
// or false.
static void text_add_number(const pen_record_field *field, uint64_t bits, pen_text *text) {
    double real;
    int64_t integer;
    if (field->choices != NULL) {
        pen_text_add(text, field->choices[bits]);
    } else if (field->is_real) {
        memcpy(&real, &bits, sizeof real);
        pen_text_print(text, "%.17g", real);
    } else if (field->kind == PEN_RECORD_FIXED) {
        pen_text_print(text, "%0*" PRIx64, (int)field->size * 2, bits);
    } else if (field->kind == PEN_RECORD_SIGNED) {
        memcpy(&integer, &bits, sizeof integer);
        pen_text_print(text, "%" PRId64, integer);
    } else if (field->size == 1) {
        pen_text_add(text, bits != 0 ? "true" : "false");
    } else if (field->kind == PEN_RECORD_INDEX && bits == 0) {
        pen_text_add(text, "none");
    } else {
        pen_text_print(text, "%" PRIu64, bits - (field->kind == PEN_RECORD_INDEX));
    }
}

// Bytes are told by their number alone, as nobody reads them in a line of text.
static void text_add_value(const pen_record_field *field, const char *object, const char *at,
                           pen_text *text) {
    const char *name;
    size_t count = 0;
    pen_record_span span;
    switch (field->kind) {
    case PEN_RECORD_NUMBER:
    case PEN_RECORD_SIGNED:
    case PEN_RECORD_INDEX:
    case PEN_RECORD_FIXED:
        text_add_number(field, pen_record_get_bits(field, at), text);
        return;
    case PEN_RECORD_NAME:
        memcpy(&name, at, sizeof name);
        pen_text_add(text, name != NULL ? name : "");
        return;
    case PEN_RECORD_TEXT:
        pen_text_append(text, at, strnlen(at, field->size));
        return;
    case PEN_RECORD_BYTES:
        memcpy(&count, object + field->count_offset, sizeof count);
        pen_text_print(text, "%zu bytes", count);
        return;
    case PEN_RECORD_SPAN:
        memcpy(&span, at, sizeof span);
        pen_text_print(text, "%" PRIu64 " bytes", span.count);
        return;
    case PEN_RECORD_MESSAGE:
        return;
    }
}

// For people, for golden files, and for the records of a commit log, which are read back line by
// line: every row is written, also zeros and empty texts. Only what is not there (an option that
// was not chosen, a part that is absent) is left out.
void pen_record_print(const pen_record *record, const void *object, uint32_t indent,
                      pen_text *text) {
    uint32_t chosen;
    memcpy(&chosen, (const char *)object + record->chosen_offset, sizeof chosen);
    for (uint32_t f = 0; f < record->field_count; f++) {
        const pen_record_field *field = &record->fields[f];
        uint32_t count;
        if (field->is_choice && field->chosen != chosen) continue;
        if (!pen_record_is_present(field, object)) continue;
        const char *items = pen_record_find_items(field, object, &count);
        for (uint32_t i = 0; i < count; i++) {
            const char *at = items + i * field->size;
            pen_text_print(text, "%*s%s: ", (int)indent, "", field->name);
            text_add_value(field, object, at, text);
            pen_text_add(text, "\n");
            if (field->kind == PEN_RECORD_MESSAGE) {
                pen_record_print(field->record, at, indent + 2, text);
            }
        }
    }
}
