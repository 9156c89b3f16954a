#include "base/format/yaml_reader.h"

#include <stdlib.h>
#include <string.h>
#include <yaml.h>

#include "base/limits.h"
#include "base/system/file.h"

// A list or mapping that is open.
typedef struct yaml_level {
    pen_yaml_node *node;
    pen_yaml_node *last;      // its newest member
    const pen_yaml_node *key; // MAPPING: read, its value not yet
} yaml_level;

typedef struct yaml_builder {
    const char *file;
    pen_arena *arena;
    pen_yaml_node *root;
    uint32_t node_count;
    uint32_t node_limit;
    uint32_t depth;
    yaml_level levels[PEN_NESTING_LIMIT];
} yaml_builder;

static pen_status yaml_at_mark(const yaml_builder *builder, const yaml_mark_t *mark,
                               pen_status status) {
    return pen_status_at_position(status, builder->file, (uint32_t)mark->line + 1,
                                  (uint32_t)mark->column + 1);
}

static pen_status yaml_refuse(const yaml_builder *builder, const yaml_event_t *event,
                              const char *what) {
    return yaml_at_mark(builder, &event->start_mark, pen_error(PEN_INVALID_INPUT, "%s", what));
}

static int yaml_compare_keys(const void *a, const void *b) {
    const pen_yaml_node *const *left = a;
    const pen_yaml_node *const *right = b;
    const int order = strcmp((*left)->text, (*right)->text);
    if (order != 0) return order;
    if ((*left)->line != (*right)->line) return (*left)->line < (*right)->line ? -1 : 1;
    if ((*left)->column == (*right)->column) return 0;
    return (*left)->column < (*right)->column ? -1 : 1;
}

// Refuses a key that is there twice, naming the line of the first.
static pen_status yaml_check_keys(const yaml_builder *builder, const pen_yaml_node *mapping) {
    const pen_yaml_node **keys;
    if (mapping->count < 2) return PEN_OK;
    PEN_TRY(PEN_NEW(builder->arena, mapping->count, &keys));
    uint32_t count = 0;
    for (const pen_yaml_node *member = mapping->first; member != NULL; member = member->next) {
        keys[count++] = member->key;
    }
    qsort(keys, count, sizeof *keys, yaml_compare_keys);
    for (uint32_t i = 1; i < count; i++) {
        if (strcmp(keys[i - 1]->text, keys[i]->text) != 0) continue;
        return pen_yaml_blame(keys[i], pen_error(PEN_INVALID_INPUT,
                                                 "key \"%.100s\" is given twice, first on line %u",
                                                 keys[i]->text, keys[i - 1]->line));
    }
    return PEN_OK;
}

// Hangs `node` where the event stands: as the root, a key, or a member.
static pen_status yaml_attach(yaml_builder *builder, pen_yaml_node *node) {
    if (builder->depth == 0) {
        builder->root = node;
        return PEN_OK;
    }
    yaml_level *level = &builder->levels[builder->depth - 1];
    if (level->node->kind == PEN_YAML_MAPPING && level->key == NULL) {
        if (node->kind == PEN_YAML_SCALAR) {
            level->key = node;
            return PEN_OK;
        }
        return pen_yaml_blame(node,
                              pen_error(PEN_INVALID_INPUT, "found a %s as a key, expected text",
                                        node->kind == PEN_YAML_LIST ? "list" : "mapping"));
    }
    node->key = level->key;
    level->key = NULL;
    if (level->last == NULL) {
        level->node->first = node;
    } else {
        level->last->next = node;
    }
    level->last = node;
    level->node->count += 1;
    return PEN_OK;
}

// Every node knows its line and column, which messages name, and counts against the limit of a
// file.
static pen_status yaml_add_node(yaml_builder *builder, const yaml_event_t *event,
                                pen_yaml_kind kind, pen_yaml_node **out_node) {
    builder->node_count += 1;
    if (builder->node_count > builder->node_limit) {
        return yaml_at_mark(builder, &event->start_mark,
                            pen_error(PEN_INVALID_INPUT,
                                      "more than %u values and keys in one file, the most allowed",
                                      builder->node_limit));
    }
    pen_yaml_node *node;
    PEN_TRY(PEN_NEW(builder->arena, 1, &node));
    *node = (pen_yaml_node){
        .kind = kind,
        .file = builder->file,
        .line = (uint32_t)event->start_mark.line + 1,
        .column = (uint32_t)event->start_mark.column + 1,
        .text = "",
    };
    *out_node = node;
    return PEN_OK;
}

static pen_status yaml_open(yaml_builder *builder, const yaml_event_t *event, pen_yaml_kind kind) {
    pen_yaml_node *node;
    PEN_TRY(yaml_add_node(builder, event, kind, &node));
    PEN_TRY(yaml_attach(builder, node));
    if (builder->depth == PEN_NESTING_LIMIT) {
        return pen_yaml_blame(node, pen_error(PEN_INVALID_INPUT,
                                              "nested more than %d deep, the most allowed",
                                              PEN_NESTING_LIMIT));
    }
    builder->levels[builder->depth++] = (yaml_level){.node = node};
    return PEN_OK;
}

static pen_status yaml_add_scalar(yaml_builder *builder, const yaml_event_t *event) {
    const char *text = (const char *)event->data.scalar.value;
    const size_t length = event->data.scalar.length;
    if (memchr(text, '\0', length) != NULL) {
        return yaml_refuse(builder, event, "a zero character (\\0) in text");
    }
    pen_yaml_node *node;
    PEN_TRY(yaml_add_node(builder, event, PEN_YAML_SCALAR, &node));
    node->is_quoted = event->data.scalar.style != YAML_PLAIN_SCALAR_STYLE;
    PEN_TRY(pen_arena_copy_text(builder->arena, text, length, &node->text));
    return yaml_attach(builder, node);
}

static bool yaml_has_tag(const yaml_event_t *event) {
    if (event->type == YAML_SCALAR_EVENT) return event->data.scalar.tag != NULL;
    if (event->type == YAML_SEQUENCE_START_EVENT) return event->data.sequence_start.tag != NULL;
    return event->type == YAML_MAPPING_START_EVENT && event->data.mapping_start.tag != NULL;
}

static bool yaml_has_anchor(const yaml_event_t *event) {
    if (event->type == YAML_SCALAR_EVENT) return event->data.scalar.anchor != NULL;
    if (event->type == YAML_SEQUENCE_START_EVENT) return event->data.sequence_start.anchor != NULL;
    return event->type == YAML_MAPPING_START_EVENT && event->data.mapping_start.anchor != NULL;
}

// One event of libyaml. Tags, anchors and aliases are refused: a job needs none, and aliases let a
// small file grow without bound.
static pen_status yaml_take_event(yaml_builder *builder, const yaml_event_t *event) {
    if (yaml_has_tag(event)) return yaml_refuse(builder, event, "tags (!...) are not supported");
    if (yaml_has_anchor(event) || event->type == YAML_ALIAS_EVENT) {
        return yaml_refuse(builder, event, "anchors and aliases (&..., *...) are not supported");
    }
    switch (event->type) {
    case YAML_DOCUMENT_START_EVENT:
        if (builder->root == NULL) return PEN_OK;
        return yaml_refuse(builder, event, "a second document, expected one in a file");
    case YAML_SCALAR_EVENT:
        return yaml_add_scalar(builder, event);
    case YAML_SEQUENCE_START_EVENT:
        return yaml_open(builder, event, PEN_YAML_LIST);
    case YAML_MAPPING_START_EVENT:
        return yaml_open(builder, event, PEN_YAML_MAPPING);
    case YAML_MAPPING_END_EVENT:
    case YAML_SEQUENCE_END_EVENT:
        builder->depth -= 1;
        if (event->type == YAML_SEQUENCE_END_EVENT) return PEN_OK;
        return yaml_check_keys(builder, builder->levels[builder->depth].node);
    case YAML_NO_EVENT:
    case YAML_STREAM_START_EVENT:
    case YAML_STREAM_END_EVENT:
    case YAML_DOCUMENT_END_EVENT:
    case YAML_ALIAS_EVENT:
        return PEN_OK;
    }
    return PEN_OK;
}

// What libyaml has to say, in one line.
static pen_status yaml_parser_error(const yaml_builder *builder, const yaml_parser_t *parser) {
    if (parser->error == YAML_MEMORY_ERROR) return pen_error_out_of_memory();
    const char *problem = parser->problem != NULL ? parser->problem : "not readable";
    if (parser->error == YAML_READER_ERROR) {
        // the mark is somewhere before; only the byte is known
        return pen_status_at_position(pen_error(PEN_INVALID_INPUT,
                                                "not YAML: %s (byte %zu of the file)", problem,
                                                parser->problem_offset),
                                      builder->file, (uint32_t)parser->mark.line + 1, 0);
    }
    const pen_status status =
        parser->context != NULL
            ? pen_error(PEN_INVALID_INPUT, "not YAML: %s %s", problem, parser->context)
            : pen_error(PEN_INVALID_INPUT, "not YAML: %s", problem);
    return yaml_at_mark(builder, &parser->problem_mark, status);
}

static pen_status yaml_run(yaml_parser_t *parser, yaml_builder *builder) {
    for (bool done = false; !done;) {
        yaml_event_t event;
        if (yaml_parser_parse(parser, &event) == 0) return yaml_parser_error(builder, parser);
        const pen_status status = yaml_take_event(builder, &event);
        done = event.type == YAML_STREAM_END_EVENT;
        yaml_event_delete(&event);
        if (status != PEN_OK) return status;
    }
    if (builder->root == NULL) {
        return pen_status_at_position(
            pen_error(PEN_INVALID_INPUT, "the file is empty, expected YAML"), builder->file, 1, 1);
    }
    return PEN_OK;
}

pen_status pen_yaml_parse(const char *file, const char *bytes, size_t length, pen_arena *arena,
                          const pen_yaml_node **out_root) {
    const pen_yaml_limits limits = {.bytes = PEN_SPEC_BYTES_LIMIT, .nodes = PEN_SPEC_NODES_LIMIT};
    return pen_yaml_parse_within(file, bytes, length, limits, arena, out_root);
}

pen_status pen_yaml_parse_within(const char *file, const char *bytes, size_t length,
                                 pen_yaml_limits limits, pen_arena *arena,
                                 const pen_yaml_node **out_root) {
    yaml_builder builder = {.arena = arena, .node_limit = limits.nodes};
    if (length > limits.bytes) {
        return pen_error(PEN_INVALID_INPUT, "'%s' has %zu bytes, a YAML file may have %zu", file,
                         length, limits.bytes);
    }
    PEN_TRY(pen_arena_copy_text(arena, file, strlen(file), &builder.file));
    yaml_parser_t parser;
    if (yaml_parser_initialize(&parser) == 0) return pen_error_out_of_memory();
    yaml_parser_set_encoding(&parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&parser, (const unsigned char *)bytes, length);
    const pen_status status = yaml_run(&parser, &builder);
    yaml_parser_delete(&parser);
    if (status == PEN_OK) *out_root = builder.root;
    return status;
}

pen_status pen_yaml_read(const char *path, pen_arena *arena, const pen_yaml_node **out_root) {
    const char *bytes;
    size_t length;
    PEN_TRY(pen_file_read(path, PEN_SPEC_BYTES_LIMIT, arena, &bytes, &length));
    return pen_yaml_parse(path, bytes, length, arena, out_root);
}

const pen_yaml_node *pen_yaml_find(const pen_yaml_node *mapping, const char *key) {
    for (const pen_yaml_node *member = mapping->first; member != NULL; member = member->next) {
        if (member->key != NULL && strcmp(member->key->text, key) == 0) return member;
    }
    return NULL;
}

bool pen_yaml_is_nothing(const pen_yaml_node *node) {
    if (node->kind != PEN_YAML_SCALAR || node->is_quoted) return false;
    return node->text[0] == '\0' || strcmp(node->text, "~") == 0 || strcmp(node->text, "null") == 0;
}

pen_status pen_yaml_blame(const pen_yaml_node *node, pen_status status) {
    return pen_status_at_position(status, node->file, node->line, node->column);
}

const char *pen_yaml_version(void) {
    return yaml_get_version_string();
}
