// Reading a YAML mapping into the struct that a table describes.

#include "base/option/option.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/option/option_places.h"
#include "base/reserve.h"
#include "base/system/file.h"

#define OPTION_NAMES_SHOWN 40 // possible keys in an error

#define OPTION_DEPTH_LIMIT 64 // keys and indices of one path; tables are far shallower

// Where a value was written, by the address it went to. Values lie within each other or apart.
typedef struct option_record {
    uintptr_t address;
    size_t bytes;    // of the value
    uint32_t number; // later ones are more exact about the same bytes
    uint32_t around; // sorted: the record that this one is the next smaller within, or OPTION_NONE
    const pen_yaml_node *node;
} option_record;

#define OPTION_NONE UINT32_MAX

struct pen_option_source {
    option_record *records; // [count]
    uint32_t count;
    uint32_t capacity;
    bool is_sorted; // by address, what is around first: all has been read
};

typedef struct option_step {
    const char *key; // NULL: an index
    uint32_t index;
} option_step;

typedef struct option_reader {
    const pen_option_table *root;
    const pen_option_settings *settings;
    pen_arena *arena;
    pen_option_source *source;
    uint32_t depth;
    option_step steps[OPTION_DEPTH_LIMIT]; // the path to what is being read
} option_reader;

static pen_status option_read_value(option_reader *reader, const pen_option_field *field,
                                    const pen_yaml_node *node, void *out_value);
static pen_status option_read_table(option_reader *reader, const pen_option_table *table,
                                    const pen_yaml_node *node, void *out_object);

static void option_push(option_reader *reader, const char *key, uint32_t index) {
    PEN_ASSERT(reader->depth < OPTION_DEPTH_LIMIT);
    reader->steps[reader->depth++] = (option_step){.key = key, .index = index};
}

static void option_pop(option_reader *reader) {
    reader->depth -= 1;
}

static pen_status option_record_node(option_reader *reader, const void *value, size_t bytes,
                                     const pen_yaml_node *node) {
    pen_option_source *source = reader->source;
    PEN_TRY(PEN_RESERVE(reader->arena, &source->records, source->count, &source->capacity, 64));
    source->records[source->count] = (option_record){
        .address = (uintptr_t)value, .bytes = bytes, .number = source->count, .node = node};
    source->count += 1;
    return PEN_OK;
}

static bool option_record_has(const option_record *record, uintptr_t address) {
    return record->address <= address && address - record->address < record->bytes;
}

static int option_record_compare(const void *left, const void *right) {
    const option_record *a = left, *b = right;
    if (a->address != b->address) return a->address < b->address ? -1 : 1;
    if (a->bytes != b->bytes) return a->bytes > b->bytes ? -1 : 1;
    return a->number < b->number ? -1 : a->number > b->number;
}

// A file of many layers is asked where each was written: then one look must not go through all.
static void option_sort_records(pen_option_source *source) {
    if (source->count == 0) return;
    qsort(source->records, source->count, sizeof *source->records, option_record_compare);
    uint32_t around = OPTION_NONE;
    for (uint32_t i = 0; i < source->count; i++) {
        option_record *record = &source->records[i];
        while (around != OPTION_NONE &&
               !option_record_has(&source->records[around], record->address))
            around = source->records[around].around;
        record->around = around;
        around = i;
    }
    source->is_sorted = true;
}

// The last record that does not begin after `address`; OPTION_NONE: all do.
static uint32_t option_find_last(const pen_option_source *source, uintptr_t address) {
    uint32_t first = 0, end = source->count;
    while (first < end) {
        const uint32_t middle = first + (end - first) / 2;
        if (source->records[middle].address <= address) first = middle + 1;
        if (source->records[middle].address > address) end = middle;
    }
    return first == 0 ? OPTION_NONE : first - 1;
}

// The smallest value that contains the address: itself when written, else its mapping.
const pen_yaml_node *pen_option_find_node(const pen_option_source *source, const void *field) {
    const uintptr_t address = (uintptr_t)field;
    if (source->is_sorted) {
        uint32_t at = option_find_last(source, address);
        while (at != OPTION_NONE && !option_record_has(&source->records[at], address))
            at = source->records[at].around;
        return at == OPTION_NONE ? NULL : source->records[at].node;
    }
    const option_record *best = NULL; // a table's check, while the file is read
    for (uint32_t i = source->count; i-- > 0;) {
        const option_record *record = &source->records[i];
        if (option_record_has(record, address) && (best == NULL || record->bytes < best->bytes)) {
            best = record;
        }
    }
    return best == NULL ? NULL : best->node;
}

pen_status pen_option_blame(const pen_option_source *source, const void *field, pen_status status) {
    if (status == PEN_OK) return PEN_OK;
    const pen_yaml_node *node = pen_option_find_node(source, field);
    return node == NULL ? status : pen_yaml_blame(node, status);
}

// Begins a message with the path: "train.devices[1].memory: ".
static void option_begin_message(const option_reader *reader, pen_text *message) {
    pen_text_init(message, reader->arena);
    for (uint32_t i = 0; i < reader->depth; i++) {
        if (reader->steps[i].key == NULL) {
            pen_text_print(message, "[%u]", reader->steps[i].index);
        } else {
            pen_text_print(message, "%s%.100s", i > 0 ? "." : "", reader->steps[i].key);
        }
    }
    if (reader->depth > 0) pen_text_add(message, ": ");
}

static pen_status option_end_message(pen_text *message, const pen_yaml_node *node) {
    return pen_yaml_blame(node, pen_text_error(message, PEN_INVALID_INPUT));
}

// `message` in place of that of `status`, where that is, or else at `node`.
static pen_status option_replace(pen_status status, pen_text *message, const pen_yaml_node *node) {
    uint32_t line, column;
    const char *place = pen_status_position(status, &line, &column);
    pen_status replaced = pen_text_error(message, pen_status_get_code(status));
    if (place != NULL) replaced = pen_status_at_position(replaced, place, line, column);
    pen_status_ignore(status, "its message is in the other");
    return pen_yaml_blame(node, replaced);
}

static void option_add_found(const pen_yaml_node *node, pen_text *message) {
    if (node->kind == PEN_YAML_LIST) {
        pen_text_add(message, "found a list");
    } else if (node->kind == PEN_YAML_MAPPING) {
        pen_text_add(message, "found a mapping");
    } else if (pen_yaml_is_nothing(node)) {
        pen_text_add(message, "found nothing");
    } else {
        pen_text_add(message, "found ");
        pen_text_add_quoted(message, node->text, strlen(node->text));
        if (node->is_quoted) pen_text_add(message, " in quotes");
    }
}

static pen_status option_refuse_kind(const option_reader *reader, const pen_option_field *field,
                                     const pen_yaml_node *node) {
    pen_text message;
    option_begin_message(reader, &message);
    option_add_found(node, &message);
    pen_text_add(&message, ", expected ");
    pen_option_describe(field, &message);
    if (field->may_be_file) pen_text_add(&message, ", or the path of a file with it");
    return option_end_message(&message, node);
}

// Whether a quoted scalar can stand for the kind: text in quotes is never a number.
static bool option_takes_quotes(pen_option_kind kind) {
    return kind != PEN_OPTION_INTEGER && kind != PEN_OPTION_COUNT && kind != PEN_OPTION_NUMBER &&
           kind != PEN_OPTION_BOOL;
}

// The message of a value that is refused begins with the path of keys to it. Paths are made
// relative to the file that names them.
static pen_status option_read_scalar(option_reader *reader, const pen_option_field *field,
                                     const pen_yaml_node *node, void *out_value) {
    if (node->kind != PEN_YAML_SCALAR || pen_yaml_is_nothing(node) ||
        (node->is_quoted && !option_takes_quotes(field->kind))) {
        return option_refuse_kind(reader, field, node);
    }
    const pen_status status = pen_option_parse(field, node->text, reader->arena, out_value);
    if (pen_status_get_code(status) == PEN_INVALID_INPUT) {
        pen_text message;
        option_begin_message(reader, &message);
        pen_text_add(&message, pen_status_message(status));
        return option_replace(status, &message, node);
    }
    if (status != PEN_OK || field->kind != PEN_OPTION_PATH) return status;
    const char *path;
    PEN_TRY(pen_path_beside(reader->arena, reader->settings->file, node->text, &path));
    memcpy(out_value, &path, sizeof(path));
    return PEN_OK;
}

static pen_status option_check_count(const option_reader *reader, const pen_option_field *field,
                                     const pen_yaml_node *node) {
    const bool few = node->count < field->count_minimum;
    const bool many = field->count_maximum > 0 && node->count > field->count_maximum;
    if (!few && !many) return PEN_OK;
    pen_text message;
    option_begin_message(reader, &message);
    pen_text_print(&message, "found %u %s, expected at %s %u", node->count,
                   node->count == 1 ? "item" : "items", few ? "least" : "most",
                   few ? field->count_minimum : field->count_maximum);
    return option_end_message(&message, node);
}

// Items lie one after another in the arena. Where the table allows it, one value stands for a list
// of it.
static pen_status option_read_list(option_reader *reader, const pen_option_field *field,
                                   const pen_yaml_node *node, pen_option_list *out_list) {
    const size_t item_bytes = pen_option_value_bytes(field->item);
    const bool is_single = field->is_list_optional && node->kind == PEN_YAML_SCALAR;
    if (node->kind != PEN_YAML_LIST && !is_single) return option_refuse_kind(reader, field, node);
    if (!is_single) PEN_TRY(option_check_count(reader, field, node));
    pen_option_list list = {.count = is_single ? 1 : node->count};
    unsigned char *items = pen_arena_allocate(reader->arena, list.count, item_bytes, 16);
    if (items == NULL) return pen_error_out_of_memory();
    list.items = items;
    if (is_single) {
        PEN_TRY(option_read_value(reader, field->item, node, items));
    } else {
        uint32_t index = 0;
        for (const pen_yaml_node *item = node->first; item != NULL; item = item->next) {
            option_push(reader, NULL, index);
            PEN_TRY(option_read_value(reader, field->item, item, items + index * item_bytes));
            option_pop(reader);
            index += 1;
        }
    }
    *out_list = list;
    return PEN_OK;
}

static pen_status option_read_map(option_reader *reader, const pen_option_field *field,
                                  const pen_yaml_node *node, pen_option_list *out_list) {
    if (node->kind != PEN_YAML_MAPPING) return option_refuse_kind(reader, field, node);
    PEN_TRY(option_check_count(reader, field, node));
    unsigned char *entries = pen_arena_allocate(reader->arena, node->count, field->entry_bytes, 16);
    if (entries == NULL) return pen_error_out_of_memory();
    unsigned char *entry = entries;
    for (const pen_yaml_node *member = node->first; member != NULL; member = member->next) {
        option_push(reader, member->key->text, 0);
        memcpy(entry, &member->key->text, sizeof(member->key->text));
        PEN_TRY(option_record_node(reader, entry, sizeof(const char *), member->key));
        PEN_TRY(option_read_value(reader, field->item, member, entry + field->item->offset));
        option_pop(reader);
        entry += field->entry_bytes;
    }
    *out_list = (pen_option_list){.items = entries, .count = node->count};
    return PEN_OK;
}

static void option_add_place(pen_text *message, const char *before, const pen_text *place) {
    pen_text_add(message, before);
    pen_text_append(message, place->bytes, place->length);
}

// Says that `key` is none of the keys of the tables (the second may be NULL), nearest name first.
// Where it is known what was meant, no near name is offered: a reason, or a place that has the key.
// A name that is one letter off is likelier than a place, and both are told.
static pen_status option_refuse_key(const option_reader *reader, const pen_yaml_node *key,
                                    const pen_option_table *table, const pen_option_table *second) {
    const char **names;
    size_t count = 0;
    const size_t second_count = second != NULL ? second->field_count : 0;
    PEN_TRY(PEN_NEW(reader->arena, table->field_count + second_count + 1, &names));
    if (table->tag != NULL) names[count++] = table->tag;
    for (size_t i = 0; i < table->field_count; i++) {
        names[count++] = table->fields[i].key;
    }
    for (size_t i = 0; i < second_count; i++) {
        names[count++] = second->fields[i].key;
    }
    pen_text message;
    option_begin_message(reader, &message);
    pen_text_add(&message, "unknown key ");
    pen_text_add_quoted(&message, key->text, strlen(key->text));
    const char *why = pen_text_find_word(table->words, key->text);
    if (why == NULL && table->explain != NULL) why = table->explain(key->text);
    if (why != NULL) pen_text_print(&message, ": %s", why);
    pen_text place;
    pen_text_init(&place, reader->arena);
    const bool has_place =
        why == NULL && pen_option_add_places(reader->root, table, key->text, &place);
    const size_t near = pen_text_nearest(key->text, names, count);
    const bool is_slip = near < count && pen_text_distance(key->text, names[near]) <= 1;
    const bool is_known = why != NULL || (has_place && !is_slip);
    if (has_place && is_known) option_add_place(&message, ", which ", &place);
    pen_text_add(&message, is_known ? "; possible: " : ", possible: ");
    pen_text_add_names(&message, is_known ? "" : key->text, names, count, OPTION_NAMES_SHOWN);
    if (has_place && !is_known) {
        pen_text_add(&message, " (");
        pen_text_add_quoted(&message, key->text, strlen(key->text));
        option_add_place(&message, " ", &place);
        pen_text_add(&message, ")");
    }
    return option_end_message(&message, key);
}

static bool option_table_has(const pen_option_table *table, const char *key) {
    if (table->tag != NULL && strcmp(table->tag, key) == 0) return true;
    for (uint32_t i = 0; i < table->field_count; i++) {
        if (strcmp(table->fields[i].key, key) == 0) return true;
    }
    return false;
}

static pen_status option_check_keys(const option_reader *reader, const pen_yaml_node *node,
                                    const pen_option_table *table, const pen_option_table *second) {
    for (const pen_yaml_node *member = node->first; member != NULL; member = member->next) {
        const bool known = option_table_has(table, member->key->text) ||
                           (second != NULL && option_table_has(second, member->key->text));
        if (!known) return option_refuse_key(reader, member->key, table, second);
    }
    return PEN_OK;
}

static pen_status option_refuse_missing(const option_reader *reader, const pen_option_field *field,
                                        const pen_yaml_node *node) {
    pen_text message;
    option_begin_message(reader, &message);
    pen_text_print(&message, "'%s' is missing, expected ", field->key);
    pen_option_describe(field, &message);
    return option_end_message(&message, node);
}

// Defaults are texts in the table and go through the same parser as the user's, so that the list of
// keys shows what is really used.
static pen_status option_set_default(const pen_option_field *field, pen_arena *arena,
                                     void *out_value) {
    if (field->kind == PEN_OPTION_MAPPING) {
        return pen_option_set_defaults(field->table, arena, out_value);
    }
    if (field->kind == PEN_OPTION_MAP || field->default_text == NULL) return PEN_OK;
    if (field->kind == PEN_OPTION_LIST) {
        void *item = pen_arena_allocate(arena, 1, pen_option_value_bytes(field->item), 16);
        if (item == NULL) return pen_error_out_of_memory();
        const pen_option_list list = {.items = item, .count = 1};
        memcpy(out_value, &list, sizeof list);
        return pen_option_parse(field->item, field->default_text, arena, item);
    }
    if (field->kind != PEN_OPTION_ONE_OF) {
        return pen_option_parse(field, field->default_text, arena, out_value);
    }
    for (unsigned i = 0; i < field->table->field_count; i++) {
        const pen_option_field *alternative = &field->table->fields[i];
        if (strcmp(alternative->key, field->default_text) != 0) continue;
        unsigned char *object = out_value;
        memcpy(object + field->table->chosen_offset, &i, sizeof i);
        return option_set_default(alternative, arena, object + alternative->offset);
    }
    return pen_error(PEN_INTERNAL, "the default of '%s' is none of its keys", field->key);
}

pen_status pen_option_set_defaults(const pen_option_table *table, pen_arena *arena,
                                   void *out_object) {
    for (uint32_t i = 0; i < table->field_count; i++) {
        const pen_option_field *field = &table->fields[i];
        PEN_TRY(option_set_default(field, arena, (unsigned char *)out_object + field->offset));
    }
    return PEN_OK;
}

// Reads the keys of `table` out of a mapping that may have others.
static pen_status option_read_fields(option_reader *reader, const pen_option_table *table,
                                     const pen_yaml_node *node, void *out_object) {
    unsigned char *object = out_object;
    for (uint32_t i = 0; i < table->field_count; i++) {
        const pen_option_field *field = &table->fields[i];
        const pen_yaml_node *member = pen_yaml_find(node, field->key);
        if (member == NULL) {
            if (field->is_required) return option_refuse_missing(reader, field, node);
            PEN_TRY(option_set_default(field, reader->arena, object + field->offset));
            continue;
        }
        option_push(reader, field->key, 0);
        PEN_TRY(option_read_value(reader, field, member, object + field->offset));
        option_pop(reader);
        const bool present = true;
        if (field->present_offset != 0) {
            memcpy(object + field->present_offset, &present, sizeof present);
        }
    }
    return PEN_OK;
}

// Finds the variant that the tag names.
static pen_status option_choose_variant(option_reader *reader, const pen_option_table *table,
                                        const pen_yaml_node *node, unsigned *out_chosen) {
    const char **names;
    PEN_TRY(PEN_NEW(reader->arena, table->variant_count + 1, &names));
    for (uint32_t i = 0; i < table->variant_count; i++) {
        names[i] = table->variants[i].key;
    }
    const pen_option_field tag = {
        .key = table->tag, .kind = PEN_OPTION_CHOICE, .choices = names, .words = table->tag_words};
    const pen_yaml_node *member = pen_yaml_find(node, table->tag);
    if (member == NULL) return option_refuse_missing(reader, &tag, node);
    option_push(reader, table->tag, 0);
    PEN_TRY(option_read_scalar(reader, &tag, member, out_chosen));
    option_pop(reader);
    return PEN_OK;
}

static pen_status option_read_table(option_reader *reader, const pen_option_table *table,
                                    const pen_yaml_node *node, void *out_object) {
    unsigned char *object = out_object;
    const pen_option_field *variant = NULL;
    if (table->tag != NULL) {
        unsigned chosen = 0;
        PEN_TRY(option_choose_variant(reader, table, node, &chosen));
        memcpy(object + table->chosen_offset, &chosen, sizeof chosen);
        variant = &table->variants[chosen];
    }
    PEN_TRY(option_check_keys(reader, node, table, variant != NULL ? variant->table : NULL));
    PEN_TRY(option_read_fields(reader, table, node, object));
    if (variant != NULL) {
        const pen_option_table *more = variant->table;
        PEN_TRY(option_read_fields(reader, more, node, object + variant->offset));
        if (more->check != NULL) PEN_TRY(more->check(object + variant->offset, reader->source));
    }
    return table->check == NULL ? PEN_OK : table->check(object, reader->source);
}

const pen_option_field *pen_option_find_alone(const pen_option_table *table) {
    const pen_option_field *found = NULL;
    if (!table->may_stand_alone) return NULL;
    for (uint32_t i = 0; i < table->field_count; i++) {
        if (!table->fields[i].is_required) continue;
        if (found != NULL) return NULL;
        found = &table->fields[i];
    }
    return found;
}

// A mapping of the one key whose value `node` is.
static pen_status option_wrap_alone(option_reader *reader, const pen_option_table *table,
                                    const pen_yaml_node *node, const pen_yaml_node **out_node) {
    const pen_option_field *alone = pen_option_find_alone(table);
    *out_node = node;
    if (alone == NULL || node->kind == PEN_YAML_MAPPING || pen_yaml_is_nothing(node)) return PEN_OK;
    pen_yaml_node *nodes;
    PEN_TRY(PEN_NEW(reader->arena, 3, &nodes));
    nodes[0] = *node; // the mapping
    nodes[0].kind = PEN_YAML_MAPPING;
    nodes[0].first = &nodes[1];
    nodes[0].count = 1;
    nodes[1] = *node; // the value
    nodes[1].key = &nodes[2];
    nodes[1].next = NULL;
    nodes[2] = *node; // its key
    nodes[2].kind = PEN_YAML_SCALAR;
    nodes[2].text = alone->key;
    nodes[2].first = NULL;
    nodes[2].count = 0;
    *out_node = &nodes[0];
    return PEN_OK;
}

// A mapping without keys, where `node` stands.
static pen_status option_empty_mapping(option_reader *reader, const pen_yaml_node *node,
                                       const pen_yaml_node **out_mapping) {
    pen_yaml_node *mapping;
    PEN_TRY(PEN_NEW(reader->arena, 1, &mapping));
    *mapping = *node;
    mapping->kind = PEN_YAML_MAPPING;
    *out_mapping = mapping;
    return PEN_OK;
}

// One key of several, such as `optimizer: {sgd: {...}}`. The name alone means that one with all its
// defaults.
static pen_status option_read_one_of(option_reader *reader, const pen_option_field *field,
                                     const pen_yaml_node *node, void *out_object) {
    const pen_option_table *table = field->table;
    const bool is_name = node->kind == PEN_YAML_SCALAR && !pen_yaml_is_nothing(node);
    if (!is_name && (node->kind != PEN_YAML_MAPPING || node->count == 0)) {
        return option_refuse_kind(reader, field, node);
    }
    if (!is_name) PEN_TRY(option_check_keys(reader, node, table, NULL));
    if (!is_name && node->count > 1) {
        pen_text message;
        option_begin_message(reader, &message);
        pen_text_print(&message, "found both %s and %s, expected one", node->first->key->text,
                       node->first->next->key->text);
        return option_end_message(&message, node->first->next->key);
    }
    const pen_yaml_node *chosen_name = is_name ? node : node->first->key;
    for (unsigned i = 0; i < table->field_count; i++) {
        const pen_option_field *alternative = &table->fields[i];
        if (strcmp(alternative->key, chosen_name->text) != 0) continue;
        unsigned char *object = out_object;
        memcpy(object + table->chosen_offset, &i, sizeof i);
        const pen_yaml_node *value = node->first;
        if (is_name) PEN_TRY(option_empty_mapping(reader, node, &value));
        option_push(reader, alternative->key, 0);
        PEN_TRY(option_read_value(reader, alternative, value, object + alternative->offset));
        option_pop(reader);
        return PEN_OK;
    }
    return option_refuse_key(reader, chosen_name, table, NULL);
}

// The node itself, or the root of the file that it names: few mean one by `devices: 2`.
static pen_status option_open_part(option_reader *reader, const pen_option_field *field,
                                   const pen_yaml_node *node, const pen_yaml_node **out_node) {
    *out_node = node;
    const bool is_file = field->may_be_file && node->kind == PEN_YAML_SCALAR &&
                         node->text[0] != '\0' && !pen_yaml_is_nothing(node);
    if (!is_file) return PEN_OK;
    pen_text message;
    if (!reader->settings->may_open_files) {
        option_begin_message(reader, &message);
        option_add_found(node, &message);
        pen_text_add(&message, ", but no other file can be read from here");
        return option_end_message(&message, node);
    }
    const char *path;
    PEN_TRY(pen_path_beside(reader->arena, reader->settings->file, node->text, &path));
    const pen_status status = pen_yaml_read(path, reader->arena, out_node);
    if (status == PEN_OK) return PEN_OK;
    option_begin_message(reader, &message);
    pen_text_print(&message, "%s; expected ", pen_status_message(status));
    pen_option_describe(field, &message);
    pen_text_add(&message, ", or the path of a file with it");
    return option_replace(status, &message, node);
}

// Whether a path stands where a list or map may.
static bool option_is_path(const pen_option_field *field, const pen_yaml_node *node) {
    return field->path_offset != 0 && node->kind == PEN_YAML_SCALAR && !pen_yaml_is_nothing(node);
}

// The path, or the text where items are texts, goes to a member of its own; errors about either are
// about the same text.
static pen_status option_read_path(option_reader *reader, const pen_option_field *field,
                                   const pen_yaml_node *node, void *out_value) {
    const pen_option_field *item = field->item;
    while (item->kind == PEN_OPTION_LIST)
        item = item->item;
    const bool is_text = item->kind == PEN_OPTION_TEXT;
    const pen_option_field path = {.key = field->key,
                                   .kind = is_text ? PEN_OPTION_TEXT : PEN_OPTION_PATH};
    unsigned char *object = (unsigned char *)out_value - field->offset;
    PEN_TRY(option_record_node(reader, object + field->path_offset, pen_option_value_bytes(&path),
                               node));
    return option_read_scalar(reader, &path, node, object + field->path_offset);
}

// Notes where each value was read from before it reads it: pen_option_blame finds the line of any
// field by this.
static pen_status option_read_value(option_reader *reader, const pen_option_field *field,
                                    const pen_yaml_node *node, void *out_value) {
    PEN_TRY(option_open_part(reader, field, node, &node));
    PEN_TRY(option_record_node(reader, out_value, pen_option_value_bytes(field), node));
    if (option_is_path(field, node)) return option_read_path(reader, field, node, out_value);
    if (field->kind == PEN_OPTION_LIST) return option_read_list(reader, field, node, out_value);
    if (field->kind == PEN_OPTION_MAP) return option_read_map(reader, field, node, out_value);
    if (field->kind == PEN_OPTION_ONE_OF) return option_read_one_of(reader, field, node, out_value);
    if (field->kind == PEN_OPTION_MAPPING) {
        PEN_TRY(option_wrap_alone(reader, field->table, node, &node));
        if (node->kind != PEN_YAML_MAPPING) return option_refuse_kind(reader, field, node);
        return option_read_table(reader, field->table, node, out_value);
    }
    return option_read_scalar(reader, field, node, out_value);
}

pen_status pen_option_read(const pen_option_table *table, const pen_yaml_node *root,
                           const pen_option_settings *settings, pen_arena *arena, void *out_object,
                           const pen_option_source **out_source) {
    option_reader reader = {.root = table, .settings = settings, .arena = arena};
    const pen_option_field whole = {.kind = PEN_OPTION_MAPPING, .table = table};
    PEN_TRY(PEN_NEW(arena, 1, &reader.source));
    PEN_TRY(option_read_value(&reader, &whole, root, out_object));
    option_sort_records(reader.source);
    *out_source = reader.source;
    return PEN_OK;
}
