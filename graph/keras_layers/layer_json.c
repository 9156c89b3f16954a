#include "graph/keras_layers/layer_json.h"

#include <string.h>

#include "base/limits.h"

typedef struct json_nodes {
    pen_arena *arena;
    const char *file;
} json_nodes;

static pen_status json_node_make(json_nodes *nodes, const json_t *value, uint32_t depth,
                                 pen_yaml_node **out_node);

static pen_status json_node_text(json_nodes *nodes, const char *text, size_t length,
                                 pen_yaml_node **out_node) {
    pen_yaml_node *node = NULL;
    PEN_TRY(PEN_NEW(nodes->arena, 1, &node));
    *node = (pen_yaml_node){.kind = PEN_YAML_SCALAR, .file = nodes->file, .is_quoted = true};
    PEN_TRY(pen_arena_copy_text(nodes->arena, text, length, &node->text));
    *out_node = node;
    return PEN_OK;
}

// A model in JSON is read by the reader of options, so that a number becomes text as it would stand
// in YAML.
static pen_status json_node_scalar(json_nodes *nodes, const json_t *value,
                                   pen_yaml_node **out_node) {
    const char *text = "";
    switch (json_typeof(value)) {
    case JSON_STRING:
        return json_node_text(nodes, json_string_value(value), json_string_length(value), out_node);
    case JSON_INTEGER:
        PEN_TRY(pen_arena_format(nodes->arena, &text, "%" JSON_INTEGER_FORMAT,
                                 json_integer_value(value)));
        break;
    case JSON_REAL:
        PEN_TRY(pen_arena_format(nodes->arena, &text, "%.17g", json_real_value(value)));
        break;
    case JSON_TRUE:
        text = "true";
        break;
    case JSON_FALSE:
        text = "false";
        break;
    case JSON_NULL:
    case JSON_OBJECT:
    case JSON_ARRAY:
        break;
    }
    PEN_TRY(json_node_text(nodes, text, strlen(text), out_node));
    (*out_node)->is_quoted = false;
    return PEN_OK;
}

static void json_node_append(pen_yaml_node *whole, pen_yaml_node **last, pen_yaml_node *member) {
    if (*last == NULL) {
        whole->first = member;
    } else {
        (*last)->next = member;
    }
    *last = member;
    whole->count += 1;
}

static pen_status json_node_object(json_nodes *nodes, const json_t *value, uint32_t depth,
                                   pen_yaml_node *whole) {
    pen_yaml_node *last = NULL;
    const char *key;
    json_t *item;
    json_object_foreach((json_t *)(uintptr_t)value, key, item) {
        if (json_is_null(item)) continue;
        pen_yaml_node *member = NULL;
        pen_yaml_node *name = NULL;
        PEN_TRY(json_node_text(nodes, key, strlen(key), &name));
        PEN_TRY(json_node_make(nodes, item, depth + 1, &member));
        member->key = name;
        json_node_append(whole, &last, member);
    }
    return PEN_OK;
}

static pen_status json_node_array(json_nodes *nodes, const json_t *value, uint32_t depth,
                                  pen_yaml_node *whole) {
    pen_yaml_node *last = NULL;
    for (size_t i = 0; i < json_array_size(value); i++) {
        pen_yaml_node *member = NULL;
        PEN_TRY(json_node_make(nodes, json_array_get(value, i), depth + 1, &member));
        json_node_append(whole, &last, member);
    }
    return PEN_OK;
}

// The depth is limited, since the file comes from somebody else and this calls itself.
static pen_status json_node_make(json_nodes *nodes, const json_t *value, uint32_t depth,
                                 pen_yaml_node **out_node) {
    if (!json_is_object(value) && !json_is_array(value)) {
        return json_node_scalar(nodes, value, out_node);
    }
    if (depth >= PEN_NESTING_LIMIT) {
        return pen_status_at_position(pen_error(PEN_INVALID_INPUT,
                                                "lists and objects are nested more than %d deep",
                                                PEN_NESTING_LIMIT),
                                      nodes->file, 0, 0);
    }
    pen_yaml_node *node = NULL;
    PEN_TRY(PEN_NEW(nodes->arena, 1, &node));
    *node = (pen_yaml_node){.kind = json_is_object(value) ? PEN_YAML_MAPPING : PEN_YAML_LIST,
                            .file = nodes->file,
                            .text = ""};
    *out_node = node;
    return json_is_object(value) ? json_node_object(nodes, value, depth, node)
                                 : json_node_array(nodes, value, depth, node);
}

pen_status pen_layer_node_from_json(const json_t *value, const char *file, pen_arena *arena,
                                    const pen_yaml_node **out_node) {
    json_nodes nodes = {.arena = arena};
    pen_yaml_node *node = NULL;
    PEN_TRY(pen_arena_copy_text(arena, file, strlen(file), &nodes.file));
    PEN_TRY(json_node_make(&nodes, value, 0, &node));
    *out_node = node;
    return PEN_OK;
}
