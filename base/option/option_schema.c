// What a table says to editors (JSON Schema) and to people (help).

#include "base/option/option.h"

#include <stdio.h>
#include <string.h>

#include "base/option/option_scalar.h"

#define SCHEMA_NAMES_LIMIT 128u // tables with a name

static void schema_write_field(const pen_option_field *field, pen_json_writer *json);

static void schema_write_range(const pen_option_field *field, pen_json_writer *json) {
    const pen_option_bound *minimum = &field->minimum;
    const pen_option_bound *maximum = &field->maximum;
    if (minimum->is_set) {
        pen_json_key_number(json, minimum->is_excluded ? "exclusiveMinimum" : "minimum",
                            minimum->value);
    }
    if (maximum->is_set) {
        pen_json_key_number(json, maximum->is_excluded ? "exclusiveMaximum" : "maximum",
                            maximum->value);
    }
}

static void schema_write_text(const char *pattern, pen_json_writer *json) {
    pen_json_key_text(json, "type", "string");
    if (pattern != NULL) {
        pen_json_key_text(json, "pattern", pattern);
    } else {
        pen_json_key_integer(json, "minLength", 1);
    }
}

static void schema_write_default(const pen_option_field *field, pen_json_writer *json) {
    const pen_option_field *scalar = field->kind == PEN_OPTION_LIST ? field->item : field;
    if (field->default_text == NULL) return;
    pen_json_key(json, "default");
    int64_t integer;
    double number;
    const bool is_integer = scalar->kind == PEN_OPTION_INTEGER || scalar->kind == PEN_OPTION_COUNT;
    if (is_integer && pen_integer_parse(field->default_text, &integer)) {
        pen_json_integer(json, integer);
    } else if (scalar->kind == PEN_OPTION_NUMBER &&
               pen_number_parse(field->default_text, &number)) {
        pen_json_number(json, number);
    } else if (scalar->kind == PEN_OPTION_BOOL) {
        pen_json_bool(json, strcmp(field->default_text, "true") == 0);
    } else {
        pen_json_text(json, field->default_text);
    }
}

static void schema_write_properties(const pen_option_table *table, pen_json_writer *json) {
    for (uint32_t i = 0; i < table->field_count; i++) {
        pen_json_key_object(json, table->fields[i].key);
        schema_write_field(&table->fields[i], json);
        pen_json_end_object(json);
    }
}

static void schema_write_required(const pen_option_table *table, pen_json_writer *json) {
    for (uint32_t i = 0; i < table->field_count; i++) {
        if (table->fields[i].is_required) pen_json_text(json, table->fields[i].key);
    }
}

// A mapping of the keys of `table` and, when there is one, of a variant that its tag chooses.
static void schema_write_mapping(const pen_option_table *table, const pen_option_field *variant,
                                 pen_json_writer *json) {
    pen_json_key_text(json, "type", "object");
    pen_json_key_bool(json, "additionalProperties", false);
    pen_json_key_object(json, "properties");
    if (variant != NULL) {
        pen_json_key_object(json, table->tag);
        pen_json_key_text(json, "description", table->tag_help);
        pen_json_key_text(json, "const", variant->key);
        pen_json_end_object(json);
    }
    schema_write_properties(table, json);
    if (variant != NULL) schema_write_properties(variant->table, json);
    pen_json_end_object(json);
    pen_json_key_array(json, "required");
    if (variant != NULL) pen_json_text(json, table->tag);
    schema_write_required(table, json);
    if (variant != NULL) schema_write_required(variant->table, json);
    pen_json_end_array(json);
}

// Forms are told apart by "if" and not listed in "oneOf", of which a validator can only say that no
// form fits: so it points at the key that is wrong.

// "if": the value has this type, "then": what follows, up to schema_begin_else.
static void schema_begin_if_type(const char *type, pen_json_writer *json) {
    pen_json_key_object(json, "if");
    pen_json_key_text(json, "type", type);
    pen_json_end_object(json);
    pen_json_key_object(json, "then");
}

static void schema_begin_else(pen_json_writer *json) {
    pen_json_end_object(json);
    pen_json_key_object(json, "else");
}

// By its tag: "if": the tag is that of the variant.
static void schema_write_variant(const pen_option_table *table, const pen_option_field *variant,
                                 pen_json_writer *json) {
    pen_json_begin_object(json);
    pen_json_key_object(json, "if");
    pen_json_key_object(json, "properties");
    pen_json_key_object(json, table->tag);
    pen_json_key_text(json, "const", variant->key);
    pen_json_end_object(json);
    pen_json_end_object(json);
    pen_json_end_object(json);
    pen_json_key_object(json, "then");
    pen_json_key_text(json, "description", variant->help);
    schema_write_mapping(table, variant, json);
    pen_json_end_object(json);
    pen_json_end_object(json);
}

// The tag's values are said apart from the variants: a wrong one is then the only error.
static void schema_write_table(const pen_option_table *table, pen_json_writer *json) {
    if (table->tag == NULL) {
        schema_write_mapping(table, NULL, json);
        return;
    }
    pen_json_key_text(json, "type", "object");
    pen_json_key_object(json, "properties");
    pen_json_key_object(json, table->tag);
    pen_json_key_array(json, "enum");
    for (uint32_t i = 0; i < table->variant_count; i++) {
        pen_json_text(json, table->variants[i].key);
    }
    pen_json_end_array(json);
    pen_json_end_object(json);
    pen_json_end_object(json);
    pen_json_key_array(json, "required");
    pen_json_text(json, table->tag);
    pen_json_end_array(json);
    pen_json_key_array(json, "allOf");
    for (uint32_t i = 0; i < table->variant_count; i++) {
        schema_write_variant(table, &table->variants[i], json);
    }
    pen_json_end_array(json);
}

static bool schema_has_required(const pen_option_table *table) {
    for (uint32_t i = 0; i < table->field_count; i++) {
        if (table->fields[i].is_required) return true;
    }
    return false;
}

// Two forms: the name alone, for those that need nothing, or a mapping with exactly one of the
// keys.
static void schema_write_one_of(const pen_option_table *table, pen_json_writer *json) {
    schema_begin_if_type("string", json);
    pen_json_key_array(json, "enum");
    for (uint32_t i = 0; i < table->field_count; i++) {
        const pen_option_field *field = &table->fields[i];
        if (field->kind == PEN_OPTION_MAPPING && !schema_has_required(field->table)) {
            pen_json_text(json, field->key);
        }
    }
    pen_json_end_array(json);
    schema_begin_else(json);
    pen_json_key_text(json, "type", "object");
    pen_json_key_bool(json, "additionalProperties", false);
    pen_json_key_integer(json, "minProperties", 1);
    pen_json_key_integer(json, "maxProperties", 1);
    pen_json_key_object(json, "properties");
    schema_write_properties(table, json);
    pen_json_end_object(json);
    pen_json_end_object(json);
}

static void schema_write_whole(const pen_option_table *table, pen_option_kind kind,
                               pen_json_writer *json) {
    if (kind == PEN_OPTION_ONE_OF) {
        schema_write_one_of(table, json);
    } else {
        schema_write_table(table, json);
    }
}

// A table with a name stands once, under $defs.
static void schema_write_part(const pen_option_field *field, pen_json_writer *json) {
    char reference[64];
    const pen_option_field *alone = pen_option_find_alone(field->table);
    if (alone != NULL) {
        const pen_option_table *table = field->table;
        PEN_ASSERT(table->name != NULL);
        schema_begin_if_type("object", json);
        (void)snprintf(reference, sizeof reference, "#/$defs/%s", table->name);
        pen_json_key_text(json, "$ref", reference);
        schema_begin_else(json);
        schema_write_field(alone, json);
        pen_json_end_object(json);
        return;
    }
    if (field->table->name == NULL) {
        schema_write_whole(field->table, field->kind, json);
        return;
    }
    (void)snprintf(reference, sizeof reference, "#/$defs/%s", field->table->name);
    pen_json_key_text(json, "$ref", reference);
}

static void schema_write_list(const pen_option_field *field, pen_json_writer *json) {
    pen_json_key_text(json, "type", "array");
    if (field->count_minimum > 0) pen_json_key_integer(json, "minItems", field->count_minimum);
    if (field->count_maximum > 0) pen_json_key_integer(json, "maxItems", field->count_maximum);
    pen_json_key_object(json, "items");
    schema_write_field(field->item, json);
    pen_json_end_object(json);
}

// What JSON Schema can say of a word: quantities are texts with a pattern, since JSON has no units.
static void schema_write_scalar(const pen_option_field *field, const pen_option_scalar *scalar,
                                pen_json_writer *json) {
    if (field->kind == PEN_OPTION_CHOICE) {
        pen_json_key_array(json, "enum");
        for (size_t i = 0; field->choices[i] != NULL; i++) {
            pen_json_text(json, field->choices[i]);
        }
        pen_json_end_array(json);
    } else if (field->kind == PEN_OPTION_SCALAR) {
        pen_json_key_array(json, "type");
        pen_json_text(json, "string");
        pen_json_text(json, "number");
        pen_json_text(json, "boolean");
        pen_json_end_array(json);
    } else if (strcmp(scalar->schema_type, "string") == 0) {
        schema_write_text(
            scalar->is_quantity ? pen_unit_pattern(scalar->unit) : scalar->schema_pattern, json);
        if (field->kind == PEN_OPTION_PATTERN) pen_json_key_text(json, "format", "regex");
    } else if (field->takes_digits) {
        pen_json_key_array(json, "enum");
        pen_json_bool(json, true);
        pen_json_bool(json, false);
        pen_json_integer(json, 1);
        pen_json_integer(json, 0);
        pen_json_end_array(json);
    } else if (field->kind == PEN_OPTION_COUNT) {
        pen_json_key_array(json, "type");
        pen_json_text(json, "integer");
        pen_json_text(json, "string");
        pen_json_end_array(json);
        pen_json_key_text(json, "pattern", "^auto$"); // of a string alone
        schema_write_range(field, json);
    } else {
        pen_json_key_text(json, "type", scalar->schema_type);
        schema_write_range(field, json);
    }
}

static void schema_write_kind(const pen_option_field *field, pen_json_writer *json) {
    const pen_option_scalar *scalar = pen_option_find_scalar(field->kind);
    if (scalar != NULL) {
        schema_write_scalar(field, scalar, json);
    } else if (field->kind == PEN_OPTION_LIST) {
        schema_write_list(field, json);
    } else if (field->kind == PEN_OPTION_MAP) {
        pen_json_key_text(json, "type", "object");
        if (field->count_minimum > 0) {
            pen_json_key_integer(json, "minProperties", field->count_minimum);
        }
        pen_json_key_object(json, "additionalProperties");
        schema_write_field(field->item, json);
        pen_json_end_object(json);
    } else {
        schema_write_part(field, json);
    }
}

// A field may have a second form: one value for a list of one, or the path of a file that holds the
// part, or stands in its place.
static void schema_write_field(const pen_option_field *field, pen_json_writer *json) {
    if (field->help != NULL) pen_json_key_text(json, "description", field->help);
    schema_write_default(field, json);
    if (field->kind == PEN_OPTION_LIST && field->is_list_optional) {
        schema_begin_if_type("array", json);
        schema_write_kind(field, json);
        schema_begin_else(json);
        schema_write_field(field->item, json);
        pen_json_end_object(json);
    } else if (field->may_be_file || field->path_offset != 0) {
        schema_begin_if_type("string", json);
        if (field->may_be_file) {
            pen_json_key_text(json, "description", "path of a file that holds this part");
        }
        schema_write_text(NULL, json);
        schema_begin_else(json);
        schema_write_kind(field, json);
        pen_json_end_object(json);
    } else {
        schema_write_kind(field, json);
    }
}

typedef struct schema_names {
    const pen_option_field *fields[SCHEMA_NAMES_LIMIT]; // the first of each table with a name
    uint32_t count;
} schema_names;

// Tables with a name become definitions, which others refer to: layers hold layers, so that writing
// them out would never end.
static void schema_find_names(const pen_option_table *table, schema_names *names) {
    const uint32_t count = table->field_count + table->variant_count;
    for (uint32_t i = 0; i < count; i++) {
        const bool is_field = i < table->field_count;
        const pen_option_field *field =
            is_field ? &table->fields[i] : &table->variants[i - table->field_count];
        while (field->table == NULL && field->item != NULL) {
            field = field->item;
        }
        if (field->table == NULL) continue;
        bool is_new = true;
        for (uint32_t n = 0; n < names->count; n++) {
            is_new = is_new && names->fields[n]->table != field->table;
        }
        if (field->table->name != NULL && is_new) {
            PEN_ASSERT(names->count < SCHEMA_NAMES_LIMIT);
            names->fields[names->count++] = field;
        }
        if (is_new) schema_find_names(field->table, names);
    }
}

static void schema_write_names(const pen_option_table *table, pen_json_writer *json) {
    schema_names names = {.count = 0};
    schema_find_names(table, &names);
    if (names.count == 0) return;
    pen_json_key_object(json, "$defs");
    for (uint32_t i = 0; i < names.count; i++) {
        pen_json_key_object(json, names.fields[i]->table->name);
        schema_write_whole(names.fields[i]->table, names.fields[i]->kind, json);
        pen_json_end_object(json);
    }
    pen_json_end_object(json);
}

void pen_option_write_schema(const pen_option_table *table, const char *title,
                             pen_json_writer *json) {
    pen_json_begin_object(json);
    pen_json_key_text(json, "$schema", "https://json-schema.org/draft/2020-12/schema");
    pen_json_key_text(json, "title", title);
    if (table->help != NULL) pen_json_key_text(json, "description", table->help);
    schema_write_table(table, json);
    schema_write_names(table, json);
    pen_json_end_object(json);
}
