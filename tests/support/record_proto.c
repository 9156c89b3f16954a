#include "tests/support/record_proto.h"

#include "base/system/file.h"
#include "tests/support/check.h"

#define RECORDS_LIMIT 64

typedef struct proto_writer {
    pen_text text;
    const pen_record *records[RECORDS_LIMIT]; // that are written, or to be
    uint32_t count;
} proto_writer;

static void proto_add_record(proto_writer *writer, const pen_record *record) {
    for (uint32_t i = 0; i < writer->count; i++) {
        if (strcmp(writer->records[i]->name, record->name) == 0) return;
    }
    CHECK(writer->count < RECORDS_LIMIT, "more than %d records", RECORDS_LIMIT);
    writer->records[writer->count++] = record;
}

static const char *proto_type(const pen_record_field *field) {
    const bool is_wide = field->size == 8;
    switch (field->kind) {
    case PEN_RECORD_NUMBER:
        if (field->choices_name != NULL) return field->choices_name;
        return field->size == 1 ? "bool" : is_wide ? "uint64" : "uint32";
    case PEN_RECORD_SIGNED:
        return "int64";
    case PEN_RECORD_INDEX:
        return "uint32";
    case PEN_RECORD_FIXED:
        return field->is_real ? "double" : is_wide ? "fixed64" : "fixed32";
    case PEN_RECORD_TEXT:
    case PEN_RECORD_NAME:
        return "string";
    case PEN_RECORD_BYTES:
    case PEN_RECORD_SPAN:
        return field->is_text ? "string" : "bytes";
    case PEN_RECORD_MESSAGE:
        return field->record->name;
    }
    PEN_NEVER("a kind of a field");
}

// Lines of words as a comment.
static void proto_add_words(pen_text *text, const char *words, const char *indent) {
    while (words != NULL && *words != '\0') {
        const size_t length = strcspn(words, "\n");
        pen_text_print(text, "%s// %.*s\n", indent, (int)length, words);
        words += length + (words[length] == '\n');
    }
}

static void proto_add_field(proto_writer *writer, const pen_record_field *field) {
    const char *indent = field->is_choice ? "    " : "  ";
    const bool is_long = field->help != NULL && strchr(field->help, '\n') != NULL;
    if (is_long) proto_add_words(&writer->text, field->help, indent);
    pen_text_print(&writer->text, "%s%s%s %s = %u;", indent,
                   field->list != PEN_RECORD_ONE ? "repeated " : "", proto_type(field), field->name,
                   field->number);
    if (field->help != NULL && !is_long) pen_text_print(&writer->text, "  // %s", field->help);
    pen_text_add(&writer->text, "\n");
    if (field->kind == PEN_RECORD_MESSAGE) proto_add_record(writer, field->record);
}

static void proto_add_choices(pen_text *text, const pen_record_field *field) {
    if (field->choices == NULL) return;
    pen_text_print(text, "\n  enum %s {\n", field->choices_name);
    for (uint32_t i = 0; field->choices[i] != NULL; i++) {
        pen_text_print(text, "    %s = %u;\n", field->choices[i], i);
    }
    pen_text_add(text, "  }\n");
}

static void proto_add_message(proto_writer *writer, const pen_record *record) {
    bool has_choice = false;
    pen_text_add(&writer->text, "\n");
    proto_add_words(&writer->text, record->help, "");
    pen_text_print(&writer->text, "message %s {\n", record->name);
    for (uint32_t f = 0; f < record->field_count; f++) {
        has_choice = has_choice || record->fields[f].is_choice;
        if (!record->fields[f].is_choice) proto_add_field(writer, &record->fields[f]);
    }
    if (has_choice) pen_text_add(&writer->text, "  oneof content {\n");
    for (uint32_t f = 0; f < record->field_count; f++) {
        if (record->fields[f].is_choice) proto_add_field(writer, &record->fields[f]);
    }
    if (has_choice) pen_text_add(&writer->text, "  }\n");
    for (uint32_t f = 0; f < record->field_count; f++) {
        proto_add_choices(&writer->text, &record->fields[f]);
    }
    pen_text_add(&writer->text, "}\n");
}

void record_proto_check(const char *path, const pen_record *const *records, uint32_t count) {
    pen_arena *arena = check_arena();
    proto_writer writer = {.count = 0};
    const char *before, *text;
    size_t length;
    CHECK_OK(pen_file_read(path, 1 << 20, arena, &before, &length));
    const char *mark = strstr(before, RECORD_PROTO_MARK);
    CHECK(mark != NULL, "%s has no line '%s'", path, RECORD_PROTO_MARK);
    pen_text_init(&writer.text, arena);
    pen_text_append(&writer.text, before, (size_t)(mark - before));
    pen_text_add(&writer.text, RECORD_PROTO_MARK);
    for (uint32_t r = 0; r < count; r++) {
        proto_add_record(&writer, records[r]);
        for (uint32_t i = writer.count - 1; i < writer.count; i++) {
            proto_add_message(&writer, writer.records[i]);
        }
    }
    CHECK_OK(pen_text_finish(&writer.text, &text));
    if (getenv("PEN_GOLDEN") != NULL) CHECK_OK(pen_file_write_text(path, text));
    if (getenv("PEN_GOLDEN") == NULL) assert_string_equal(text, before);
    pen_arena_destroy(arena);
}
