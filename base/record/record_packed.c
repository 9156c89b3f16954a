#include <string.h>

#include "base/record/record.h"

static size_t packed_field_size(const pen_record_field *field) {
    return field->packed_size != 0 ? field->packed_size : field->size;
}

size_t pen_record_packed_size(const pen_record *record) {
    size_t size = 0;
    for (uint32_t f = 0; f < record->field_count; f++) {
        size += packed_field_size(&record->fields[f]);
    }
    return size;
}

void pen_record_pack(const pen_record *record, const void *object, void *out_bytes) {
    char *to = out_bytes;
    for (uint32_t f = 0; f < record->field_count; f++) {
        const pen_record_field *field = &record->fields[f];
        const char *at = (const char *)object + field->offset;
        if (field->kind == PEN_RECORD_TEXT) {
            memcpy(to, at, field->size);
        } else {
            const uint64_t bits = pen_record_get_bits(field, at);
            memcpy(to, &bits, packed_field_size(field));
        }
        to += packed_field_size(field);
    }
}

static pen_status packed_check_number(const pen_record_field *field, uint64_t bits) {
    const uint64_t limit = pen_record_number_limit(field);
    if (bits <= limit) return PEN_OK;
    return pen_error(PEN_CORRUPT, "%s is %llu, at most %llu can be", field->name,
                     (unsigned long long)bits, (unsigned long long)limit);
}

// Numbers may travel wider than their members are, as whole words: what does not fit is refused
// rather than cut.
pen_status pen_record_unpack(const pen_record *record, const void *bytes, void *out_object) {
    const char *from = bytes;
    for (uint32_t f = 0; f < record->field_count; f++) {
        const pen_record_field *field = &record->fields[f];
        char *at = (char *)out_object + field->offset;
        uint64_t bits = 0;
        if (field->kind == PEN_RECORD_TEXT) {
            if (memchr(from, 0, field->size) == NULL) {
                return pen_error(PEN_CORRUPT, "%s is a text that does not end", field->name);
            }
            memcpy(at, from, field->size);
        } else {
            memcpy(&bits, from, packed_field_size(field));
            PEN_TRY(packed_check_number(field, bits));
            pen_record_set_bits(field, at, bits);
        }
        from += packed_field_size(field);
    }
    return PEN_OK;
}
