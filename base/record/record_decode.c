#include <string.h>

#include "base/limits.h"
#include "base/record/record.h"

// What is read into, and with what.
typedef struct decode_target {
    const pen_record *record;
    pen_arena *arena;
    char *object;
} decode_target;

void pen_record_set_bits(const pen_record_field *field, void *at, uint64_t bits) {
    if (field->kind == PEN_RECORD_INDEX) bits -= 1;
    if (field->size == 8) {
        memcpy(at, &bits, 8);
    } else if (field->size == 4) {
        memcpy(at, &bits, 4);
    } else {
        if (field->size == 1) bits = bits != 0;
        memcpy(at, &bits, field->size);
    }
}

uint64_t pen_record_number_limit(const pen_record_field *field) {
    uint64_t count = 0;
    if (field->choices != NULL) {
        while (field->choices[count] != NULL)
            count++;
        return count - 1;
    }
    const uint64_t limit = field->list == PEN_RECORD_ONE ? field->limit : field->item_limit;
    if (limit != 0) return limit;
    if (field->size == 1) return 1; // a bool
    return field->size == 8 ? UINT64_MAX : ((uint64_t)1 << 8 * field->size) - 1;
}

static pen_status decode_store(const pen_record_field *field, const pen_protobuf_reader *reader,
                               uint64_t bits, void *at) {
    if (field->kind == PEN_RECORD_NUMBER || field->kind == PEN_RECORD_INDEX) {
        const uint64_t limit = pen_record_number_limit(field);
        if (bits > limit) {
            return pen_protobuf_error(reader, "field %u (%s) is %llu, at most %llu can be",
                                      field->number, field->name, (unsigned long long)bits,
                                      (unsigned long long)limit);
        }
    }
    pen_record_set_bits(field, at, bits);
    return PEN_OK;
}

// ---- one member

static pen_status decode_wire(const pen_record_field *field, const pen_protobuf_reader *reader,
                              const pen_protobuf_field *given, pen_protobuf_wire wire) {
    if (given->wire == wire) return PEN_OK;
    return pen_protobuf_error(reader, "field %u (%s) has wire type %u, expected %u", field->number,
                              field->name, (unsigned)given->wire, (unsigned)wire);
}

static pen_protobuf_wire decode_wire_of(const pen_record_field *field) {
    if (field->kind == PEN_RECORD_FIXED) {
        return field->size == 8 ? PEN_PROTOBUF_FIXED64 : PEN_PROTOBUF_FIXED32;
    }
    return field->kind <= PEN_RECORD_INDEX ? PEN_PROTOBUF_VARINT : PEN_PROTOBUF_BYTES;
}

static pen_status decode_length(const pen_record_field *field, const pen_protobuf_reader *reader,
                                const pen_protobuf_field *given, uint64_t limit) {
    if (given->length <= limit) return PEN_OK;
    return pen_protobuf_error(reader, "field %u (%s) has %zu bytes, at most %llu can be",
                              field->number, field->name, given->length, (unsigned long long)limit);
}

static pen_status decode_text(const pen_record_field *field, const pen_protobuf_reader *reader,
                              const pen_protobuf_field *given, char *at) {
    PEN_TRY(decode_length(field, reader, given, field->size - 1));
    if (memchr(given->bytes, 0, given->length) != NULL) {
        return pen_protobuf_error(reader, "field %u (%s) is a text with a zero byte", field->number,
                                  field->name);
    }
    memcpy(at, given->bytes, given->length);
    at[given->length] = '\0';
    return PEN_OK;
}

static pen_status decode_bytes(const decode_target *to, const pen_record_field *field,
                               const pen_protobuf_reader *reader, const pen_protobuf_field *given) {
    const uint64_t limit = field->limit != 0 ? field->limit : UINT64_MAX;
    PEN_TRY(decode_length(field, reader, given, limit));
    if (field->kind == PEN_RECORD_SPAN) {
        const pen_record_span span = {given->position, given->length};
        memcpy(to->object + field->offset, &span, sizeof span);
        return PEN_OK;
    }
    const void *bytes = given->bytes;
    memcpy(to->object + field->offset, &bytes, sizeof bytes);
    memcpy(to->object + field->count_offset, &given->length, sizeof given->length);
    return PEN_OK;
}

// The wire type is checked against the table first; then each kind is read in one way only.
static pen_status decode_one(const decode_target *to, const pen_record_field *field,
                             const pen_protobuf_reader *reader, const pen_protobuf_field *given,
                             char *at) {
    pen_protobuf_reader inner;
    const char *name;
    PEN_TRY(decode_wire(field, reader, given, decode_wire_of(field)));
    switch (field->kind) {
    case PEN_RECORD_TEXT:
        return decode_text(field, reader, given, at);
    case PEN_RECORD_NAME:
        PEN_TRY(pen_protobuf_name(reader, given, to->arena, &name));
        memcpy(at, &name, sizeof name);
        return PEN_OK;
    case PEN_RECORD_BYTES:
    case PEN_RECORD_SPAN:
        return decode_bytes(to, field, reader, given);
    case PEN_RECORD_MESSAGE:
        PEN_TRY(pen_protobuf_open(reader, given, &inner));
        return pen_record_read(field->record, &inner, to->arena, at);
    case PEN_RECORD_NUMBER:
    case PEN_RECORD_SIGNED:
    case PEN_RECORD_INDEX:
    case PEN_RECORD_FIXED:
        return decode_store(field, reader, given->integer, at);
    }
    PEN_NEVER("a kind of a field");
}

// ---- lists

static pen_status decode_too_many(const pen_record_field *field, const pen_protobuf_reader *reader,
                                  uint64_t limit) {
    return pen_protobuf_error(reader, "field %u (%s) has more than %llu items", field->number,
                              field->name, (unsigned long long)limit);
}

// The next place of a list; NULL: an array is full.
static char *decode_next_item(const decode_target *to, const pen_record_field *field) {
    uint32_t count;
    char *member = to->object + field->offset, *items = member;
    memcpy(&count, to->object + field->count_offset, sizeof count);
    if (field->list == PEN_RECORD_ARRAY && count == field->limit) return NULL;
    if (field->list == PEN_RECORD_ITEMS) memcpy(&items, member, sizeof items);
    const uint32_t more = count + 1;
    memcpy(to->object + field->count_offset, &more, sizeof more);
    return items + count * field->size;
}

// One item, or numbers that are packed.
static pen_status decode_items(const decode_target *to, const pen_record_field *field,
                               const pen_protobuf_reader *reader, const pen_protobuf_field *given) {
    pen_protobuf_scalars scalars;
    if (field->kind > PEN_RECORD_FIXED) {
        char *at = decode_next_item(to, field);
        if (at == NULL) return decode_too_many(field, reader, field->limit);
        return decode_one(to, field, reader, given, at);
    }
    PEN_TRY(pen_protobuf_scalars_open(reader, given, decode_wire_of(field), &scalars));
    for (;;) {
        uint64_t bits;
        bool more;
        PEN_TRY(pen_protobuf_scalars_next(&scalars, &bits, &more));
        if (!more) return PEN_OK;
        char *at = decode_next_item(to, field);
        if (at == NULL) return decode_too_many(field, reader, field->limit);
        PEN_TRY(decode_store(field, reader, bits, at));
    }
}

// Bytes that a record has at least: those of its required names.
static size_t decode_least(const pen_record *record) {
    size_t least = 0;
    for (uint32_t f = 0; record != NULL && f < record->field_count; f++) {
        least += record->fields[f].is_required ? 3 : 0;
    }
    return least;
}

// How many items a field adds to its list. Each has to have some bytes, so that what is taken for
// them stays in proportion to what has come.
static pen_status decode_count_items(const pen_record_field *field,
                                     const pen_protobuf_reader *reader,
                                     const pen_protobuf_field *given, uint64_t *out_count) {
    pen_protobuf_scalars scalars;
    *out_count = 1;
    if (field->kind <= PEN_RECORD_FIXED) {
        PEN_TRY(pen_protobuf_scalars_open(reader, given, decode_wire_of(field), &scalars));
        return pen_protobuf_scalars_count(&scalars, out_count);
    }
    const size_t least = decode_least(field->record);
    if (given->length >= least) return PEN_OK;
    return pen_protobuf_error(reader, "field %u (%s) has %zu bytes, at least %zu are expected",
                              field->number, field->name, given->length, least);
}

static const pen_record_field *decode_find(const pen_record *record, uint32_t number,
                                           uint32_t *next) {
    for (uint32_t i = 0; i < record->field_count; i++) {
        const uint32_t f =
            *next + i < record->field_count ? *next + i : *next + i - record->field_count;
        if (record->fields[f].number != number) continue;
        *next = record->fields[f].list != PEN_RECORD_ONE ? f : (f + 1) % record->field_count;
        return &record->fields[f];
    }
    return NULL;
}

// Counts the items of all lists, which their counts then say, and begins them empty in memory for
// as many.
static pen_status decode_make_lists(const decode_target *to, pen_protobuf_reader reader) {
    uint32_t next = 0, count;
    for (;;) {
        pen_protobuf_field given;
        uint64_t more;
        PEN_TRY(pen_protobuf_next(&reader, &given));
        if (given.number == 0) break;
        const pen_record_field *field = decode_find(to->record, given.number, &next);
        if (field == NULL || field->list != PEN_RECORD_ITEMS) continue;
        PEN_TRY(decode_count_items(field, &reader, &given, &more));
        memcpy(&count, to->object + field->count_offset, sizeof count);
        const uint64_t limit = field->limit != 0 ? field->limit : PEN_VALUE_COUNT_LIMIT;
        if (more > limit - count) return decode_too_many(field, &reader, limit);
        count += (uint32_t)more;
        memcpy(to->object + field->count_offset, &count, sizeof count);
    }
    for (uint32_t f = 0; f < to->record->field_count; f++) {
        const pen_record_field *field = &to->record->fields[f];
        if (field->list != PEN_RECORD_ITEMS) continue;
        memcpy(&count, to->object + field->count_offset, sizeof count);
        void *items = pen_arena_allocate(to->arena, count, field->size, alignof(max_align_t));
        if (items == NULL) return pen_error_out_of_memory();
        memcpy(to->object + field->offset, &items, sizeof items);
        memset(to->object + field->count_offset, 0, sizeof count);
    }
    return PEN_OK;
}

// ---- records

// What a table asks for, beside reading field by field.
typedef struct decode_needs {
    bool lists;    // items are to be counted first
    bool required; // something has to be there at the end
} decode_needs;

// Sets members to what they are when they are left out.
static decode_needs decode_begin(const decode_target *to, const pen_protobuf_reader *reader) {
    static const char *const empty = "";
    decode_needs needs = {.lists = false};
    for (uint32_t f = 0; f < to->record->field_count; f++) {
        const pen_record_field *field = &to->record->fields[f];
        if (field->is_choice) continue; // a record is one of many: their rows ask for nothing
        needs.lists = needs.lists || field->list == PEN_RECORD_ITEMS;
        needs.required = needs.required || field->is_required;
        if (field->list != PEN_RECORD_ONE) continue;
        char *at = to->object + field->offset;
        if (field->kind == PEN_RECORD_INDEX) pen_record_set_bits(field, at, 0);
        if (field->kind == PEN_RECORD_NAME) memcpy(at, &empty, sizeof empty);
    }
    if (to->record->chosen_offset != 0 || to->record->chosen_none != 0) {
        memcpy(to->object + to->record->chosen_offset, &to->record->chosen_none, sizeof(uint32_t));
    }
    if (to->record->position_offset != 0) {
        const size_t position = pen_protobuf_position(reader);
        memcpy(to->object + to->record->position_offset, &position, sizeof position);
    }
    return needs;
}

static const char *decode_find_chosen(const pen_record *record, uint32_t chosen) {
    for (uint32_t f = 0; f < record->field_count; f++) {
        const pen_record_field *field = &record->fields[f];
        if (field->is_choice && field->chosen == chosen) return field->name;
    }
    PEN_NEVER("one of the rows was chosen");
}

static pen_status decode_choose(const decode_target *to, const pen_record_field *field,
                                const pen_protobuf_reader *reader) {
    char *at = to->object + to->record->chosen_offset;
    uint32_t chosen;
    memcpy(&chosen, at, sizeof chosen);
    if (chosen != to->record->chosen_none) {
        return pen_protobuf_error(reader, "%s is %s and %s", to->record->name,
                                  decode_find_chosen(to->record, chosen), field->name);
    }
    memcpy(at, &field->chosen, sizeof field->chosen);
    return PEN_OK;
}

static pen_status decode_field(const decode_target *to, const pen_record_field *field,
                               const pen_protobuf_reader *reader, const pen_protobuf_field *given) {
    if (field->is_choice) PEN_TRY(decode_choose(to, field, reader));
    if (field->present != 0) *((bool *)to->object + field->present - 1) = true;
    if (field->list != PEN_RECORD_ONE) return decode_items(to, field, reader, given);
    return decode_one(to, field, reader, given, to->object + field->offset);
}

static pen_status decode_check_required(const decode_target *to,
                                        const pen_protobuf_reader *reader) {
    for (uint32_t f = 0; f < to->record->field_count; f++) {
        const pen_record_field *field = &to->record->fields[f];
        const char *name;
        if (!field->is_required) continue;
        memcpy(&name, to->object + field->offset, sizeof name);
        if (name[0] != '\0') continue;
        return pen_protobuf_error(reader, "%s without field %u (%s)", to->record->name,
                                  field->number, field->name);
    }
    return PEN_OK;
}

pen_status pen_record_read(const pen_record *record, pen_protobuf_reader *reader, pen_arena *arena,
                           void *out_object) {
    const decode_target to = {.record = record, .arena = arena, .object = out_object};
    uint32_t next = 0;
    const decode_needs needs = decode_begin(&to, reader);
    if (needs.lists) PEN_TRY(decode_make_lists(&to, *reader));
    for (;;) {
        pen_protobuf_field given;
        PEN_TRY(pen_protobuf_next(reader, &given));
        if (given.number == 0) return needs.required ? decode_check_required(&to, reader) : PEN_OK;
        const pen_record_field *field = decode_find(record, given.number, &next);
        if (field != NULL) PEN_TRY(decode_field(&to, field, reader, &given));
    }
}

pen_status pen_record_decode(const pen_record *record, const void *bytes, size_t count,
                             pen_arena *arena, void *out_object) {
    pen_protobuf_reader reader;
    pen_protobuf_init(&reader, bytes, count);
    return pen_record_read(record, &reader, arena, out_object);
}
