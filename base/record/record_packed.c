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
        const uint64_t bits = pen_record_get_bits(field, (const char *)object + field->offset);
        memcpy(to, &bits, packed_field_size(field));
        to += packed_field_size(field);
    }
}

void pen_record_unpack(const pen_record *record, const void *bytes, void *out_object) {
    const char *from = bytes;
    for (uint32_t f = 0; f < record->field_count; f++) {
        const pen_record_field *field = &record->fields[f];
        uint64_t bits = 0;
        memcpy(&bits, from, packed_field_size(field));
        pen_record_set_bits(field, (char *)out_object + field->offset, bits);
        from += packed_field_size(field);
    }
}
