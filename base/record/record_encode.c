#include <string.h>

#include "base/format/protobuf_writer.h"
#include "base/record/record.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "members are copied as they lie");

uint64_t pen_record_get_bits(const pen_record_field *field, const void *at) {
    uint64_t bits = 0;
    if (field->size == 8) { // sizes that are known are copied without a call
        memcpy(&bits, at, 8);
    } else if (field->size == 4) {
        memcpy(&bits, at, 4);
    } else {
        memcpy(&bits, at, field->size);
    }
    return field->kind == PEN_RECORD_INDEX ? (uint32_t)(bits + 1) : bits;
}

const char *pen_record_find_items(const pen_record_field *field, const void *object,
                                  uint32_t *out_count) {
    const char *member = (const char *)object + field->offset, *items = member;
    *out_count = 1;
    if (field->list == PEN_RECORD_ONE) return member;
    memcpy(out_count, (const char *)object + field->count_offset, sizeof *out_count);
    if (field->list == PEN_RECORD_ITEMS) memcpy(&items, member, sizeof items);
    return items;
}

// ---- writing

typedef struct encode_item {
    const pen_record *record;
    const void *object;
} encode_item;

static void encode_record(pen_protobuf_writer *writer, const void *context);

static void encode_bits(pen_protobuf_writer *writer, const pen_record_field *field, uint64_t bits) {
    if (field->kind != PEN_RECORD_FIXED) {
        pen_protobuf_write_int(writer, field->number, (int64_t)bits);
        return;
    }
    pen_protobuf_write_fixed(writer, field->number, bits, field->size);
}

static void encode_bytes(pen_protobuf_writer *writer, const pen_record_field *field,
                         const void *object) {
    const void *bytes;
    size_t count;
    memcpy(&bytes, (const char *)object + field->offset, sizeof bytes);
    memcpy(&count, (const char *)object + field->count_offset, sizeof count);
    if (count == 0 && !field->is_always) return;
    pen_protobuf_write_bytes(writer, field->number, bytes, count);
}

// A member, or an item of a list, by its kind. A number that is 0 is written only where it counts:
// in a list, or where its row says so.
static void encode_one(pen_protobuf_writer *writer, const pen_record_field *field,
                       const char *object, const char *at) {
    const char *name;
    pen_record_span span;
    switch (field->kind) {
    case PEN_RECORD_NUMBER:
    case PEN_RECORD_SIGNED:
    case PEN_RECORD_INDEX:
    case PEN_RECORD_FIXED: {
        const uint64_t bits = pen_record_get_bits(field, at);
        const bool is_always = field->is_always || field->list != PEN_RECORD_ONE;
        if (bits != 0 || is_always) encode_bits(writer, field, bits);
        break;
    }
    case PEN_RECORD_TEXT:
        if (at[0] == '\0') break;
        pen_protobuf_write_bytes(writer, field->number, at, strnlen(at, field->size - 1));
        break;
    case PEN_RECORD_NAME:
        memcpy(&name, at, sizeof name);
        if (name != NULL) pen_protobuf_write_text(writer, field->number, name);
        break;
    case PEN_RECORD_BYTES:
        encode_bytes(writer, field, object);
        break;
    case PEN_RECORD_SPAN:
        memcpy(&span, at, sizeof span);
        pen_protobuf_write_hole(writer, field->number, span.count);
        break;
    case PEN_RECORD_MESSAGE:
        pen_protobuf_write_message(writer, field->number, encode_record,
                                   &(encode_item){field->record, at});
        break;
    }
}

// Numbers of a list, one behind the other in one field.
static void encode_packed(pen_protobuf_writer *writer, const void *context) {
    const encode_item *item = context;
    const pen_record_field *field = item->record->fields;
    uint32_t count;
    const char *items = pen_record_find_items(field, item->object, &count);
    for (uint32_t i = 0; i < count; i++) {
        pen_protobuf_write_varint(writer, pen_record_get_bits(field, items + i * field->size));
    }
}

// In the order of the table, so that equal records have equal bytes.
static void encode_record(pen_protobuf_writer *writer, const void *context) {
    const encode_item *item = context;
    uint32_t chosen;
    memcpy(&chosen, (const char *)item->object + item->record->chosen_offset, sizeof chosen);
    for (uint32_t f = 0; f < item->record->field_count; f++) {
        const pen_record_field *field = &item->record->fields[f];
        uint32_t count;
        if (field->is_choice && field->chosen != chosen) continue;
        if (!pen_record_is_present(field, item->object)) continue;
        const char *items = pen_record_find_items(field, item->object, &count);
        if (field->is_packed) {
            const pen_record alone = {.fields = field, .field_count = 1};
            if (count == 0) continue;
            pen_protobuf_write_message(writer, field->number, encode_packed,
                                       &(encode_item){&alone, item->object});
            continue;
        }
        for (uint32_t i = 0; i < count; i++) {
            encode_one(writer, field, item->object, items + i * field->size);
        }
    }
}

size_t pen_record_encode(const pen_record *record, const void *object, void *out_bytes,
                         size_t size) {
    pen_protobuf_writer writer;
    pen_protobuf_writer_init_bytes(&writer, out_bytes, size);
    encode_record(&writer, &(encode_item){record, object});
    return writer.length;
}

pen_status pen_record_encode_new(const pen_record *record, const void *object, pen_arena *arena,
                                 const void **out_bytes, uint64_t *out_count) {
    char *bytes;
    const size_t count = pen_record_encode(record, object, NULL, 0);
    PEN_TRY(PEN_NEW(arena, count, &bytes));
    *out_count = pen_record_encode(record, object, bytes, count);
    *out_bytes = bytes;
    return PEN_OK;
}
