// Values that are given besides a file: "train.optimizer.sgd.lr=0.01" in the tree that it became.

#include "base/option/option.h"

#include <stdlib.h>
#include <string.h>

#include "base/system/file.h"

#define ASSIGN_DEPTH_LIMIT 32 // keys of a path
#define ASSIGN_NAMES_SHOWN 40 // possible ones in an error

typedef struct assigner {
    const pen_option_settings *settings;
    pen_arena *arena;
    const char *name;           // names the value in errors: "--set train.batch=7"
    const pen_yaml_node *value; // to put where the path leads
    const char *text;           // "train.batch=7"
    bool removes;               // the value is "null": the key is taken away
    uint32_t step_count;
    const char *steps[ASSIGN_DEPTH_LIMIT];
    const char *ends[ASSIGN_DEPTH_LIMIT]; // of each step, within the text
} assigner;

static pen_status assign_within(const assigner *a, const pen_option_field *field,
                                const pen_yaml_node *node, uint32_t depth,
                                const pen_yaml_node **out_node);

// An error about what the path names up to step `depth`.
static pen_status assign_refuse(const assigner *a, uint32_t depth, const char *found) {
    pen_text text;
    pen_text_init(&text, a->arena);
    const size_t length = depth == 0 ? 0 : (size_t)(a->ends[depth - 1] - a->text);
    pen_text_append(&text, a->text, length);
    pen_text_print(&text, "%s%s", length > 0 ? ": " : "", found);
    return pen_status_at_position(pen_text_error(&text, PEN_INVALID_INPUT), a->name, 0, 0);
}

static pen_status assign_new(const assigner *a, pen_yaml_kind kind, const char *scalar,
                             pen_yaml_node **out_node) {
    pen_yaml_node *node = NULL;
    PEN_TRY(PEN_NEW(a->arena, 1, &node));
    *node = (pen_yaml_node){.kind = kind, .file = a->name, .text = scalar};
    *out_node = node;
    return PEN_OK;
}

// The value as a tree of its own, whose nodes stand in no line of a file.
static pen_status assign_place(const assigner *a, const pen_yaml_node *node,
                               pen_yaml_node **out_node) {
    PEN_TRY(assign_new(a, node->kind, node->text, out_node));
    pen_yaml_node *last = NULL;
    (*out_node)->is_quoted = node->is_quoted;
    (*out_node)->count = node->count;
    for (const pen_yaml_node *member = node->first; member != NULL; member = member->next) {
        pen_yaml_node *copy, *key = NULL;
        PEN_TRY(assign_place(a, member, &copy));
        if (member->key != NULL) PEN_TRY(assign_place(a, member->key, &key));
        copy->key = key;
        if (last == NULL) (*out_node)->first = copy;
        if (last != NULL) last->next = copy;
        last = copy;
    }
    return PEN_OK;
}

// What the field of a key is; NULL: not known, which the reader will say.
static const pen_option_field *assign_find_field(const pen_option_field *field, const char *key) {
    if (field == NULL) return NULL;
    if (field->kind == PEN_OPTION_LIST || field->kind == PEN_OPTION_MAP) return field->item;
    const pen_option_table *table = field->table;
    for (uint32_t i = 0; table != NULL && i < table->field_count; i++) {
        if (strcmp(table->fields[i].key, key) == 0) return &table->fields[i];
    }
    for (uint32_t i = 0; table != NULL && i < table->variant_count; i++) {
        const pen_option_field *found = assign_find_field(&table->variants[i], key);
        if (found != NULL) return found;
    }
    return NULL;
}

// A mapping of one key; `member` NULL: a mapping without keys is its value.
static pen_status assign_wrap(const assigner *a, const pen_yaml_node *node, const char *key,
                              const pen_yaml_node *member, const pen_yaml_node **out_mapping) {
    pen_yaml_node *mapping, *copy, *name;
    PEN_TRY(assign_new(a, PEN_YAML_MAPPING, "", &mapping));
    PEN_TRY(assign_new(a, PEN_YAML_MAPPING, "", &copy));
    PEN_TRY(assign_new(a, PEN_YAML_SCALAR, key, &name));
    if (member != NULL) *copy = *member;
    mapping->file = copy->file = name->file = node->file;
    mapping->line = name->line = copy->line = node->line;
    mapping->column = name->column = copy->column = node->column;
    copy->key = name;
    copy->next = NULL;
    mapping->first = copy;
    mapping->count = 1;
    *out_mapping = mapping;
    return PEN_OK;
}

// A scalar on the way is another spelling of a mapping: the path of a file with it, the name of its
// only key, or the value of one that may stand alone.
static pen_status assign_open_scalar(const assigner *a, const pen_option_field *field,
                                     const pen_yaml_node *node, uint32_t depth,
                                     const pen_yaml_node **out_node) {
    if (field != NULL && field->may_be_file) {
        const char *path;
        if (!a->settings->may_open_files) {
            return assign_refuse(a, depth, "is in a file of its own, which cannot be read here");
        }
        PEN_TRY(pen_path_beside(a->arena, a->settings->file, node->text, &path));
        return pen_yaml_blame(node, pen_yaml_read(path, a->arena, out_node));
    }
    const pen_option_field *alone = field != NULL && field->kind == PEN_OPTION_MAPPING
                                        ? pen_option_find_alone(field->table)
                                        : NULL;
    if (alone != NULL) return assign_wrap(a, node, alone->key, node, out_node);
    if (field != NULL && field->kind == PEN_OPTION_ONE_OF) {
        return assign_wrap(a, node, node->text, NULL, out_node);
    }
    if (field == NULL && strcmp(node->text, a->steps[depth]) == 0) {
        return assign_wrap(a, node, node->text, NULL, out_node);
    }
    pen_text found;
    const char *text;
    pen_text_init(&found, a->arena);
    pen_text_add(&found, "found ");
    pen_text_add_quoted(&found, node->text, strlen(node->text));
    pen_text_print(&found, ", expected a mapping or list with '%.60s' in it", a->steps[depth]);
    PEN_TRY(pen_text_finish(&found, &text));
    return assign_refuse(a, depth, text);
}

// The item of a list that a step names: by its `name`, or by its index, from 0.
static pen_status assign_find_item(const assigner *a, const pen_yaml_node *list, uint32_t depth,
                                   const pen_yaml_node **out_item) {
    const char *step = a->steps[depth];
    char *end;
    const unsigned long index = strtoul(step, &end, 10);
    const bool is_index = step[0] >= '0' && step[0] <= '9' && *end == '\0';
    const pen_yaml_node *at = NULL;
    unsigned long count = 0;
    pen_text found;
    const char *text;
    pen_text_init(&found, a->arena);
    pen_text_print(&found, "found no item '%.60s', possible: ", step);
    for (const pen_yaml_node *item = list->first; item != NULL; item = item->next, count++) {
        const pen_yaml_node *name =
            item->kind == PEN_YAML_MAPPING ? pen_yaml_find(item, "name") : NULL;
        if (is_index && count == index && at == NULL) at = item;
        if (name == NULL || name->kind != PEN_YAML_SCALAR) continue;
        if (strcmp(name->text, step) == 0) at = item;
        if (count >= ASSIGN_NAMES_SHOWN) continue;
        pen_text_print(&found, "%.60s, ", name->text);
    }
    *out_item = at;
    if (at != NULL) return PEN_OK;
    if (count > 0) pen_text_print(&found, "an index from 0 to %lu", count - 1);
    if (count == 0) pen_text_add(&found, "none, the list is empty");
    PEN_TRY(pen_text_finish(&found, &text));
    return assign_refuse(a, depth, text);
}

// A copy of the list or mapping with `made` in the place of `old`, or at its end for NULL. `made`
// NULL: without `old`, as if that had not been written.
static pen_status assign_rebuild(const assigner *a, const pen_yaml_node *node,
                                 const pen_yaml_node *old, const pen_yaml_node *made,
                                 const pen_yaml_node **out_node) {
    pen_yaml_node *whole, *last = NULL;
    PEN_TRY(PEN_NEW(a->arena, 1, &whole));
    *whole = *node;
    whole->first = NULL;
    whole->count = node->count + (old == NULL) - (made == NULL);
    const pen_yaml_node *member = node->first;
    for (uint32_t i = 0; i < whole->count; i++) {
        pen_yaml_node *copy;
        PEN_TRY(PEN_NEW(a->arena, 1, &copy));
        if (member != NULL && member == old && made == NULL) member = member->next;
        *copy = member == NULL || member == old ? *made : *member;
        if (member != NULL && member == old) copy->key = old->key;
        copy->next = NULL;
        if (last == NULL) whole->first = copy;
        if (last != NULL) last->next = copy;
        last = copy;
        if (member != NULL) member = member->next;
    }
    *out_node = whole;
    return PEN_OK;
}

// What stands at a step of the path, changed, in a copy of what it stands in. Of several keys of
// which one is possible, the one that is set replaces the other.
static pen_status assign_step(const assigner *a, const pen_option_field *field,
                              const pen_yaml_node *node, uint32_t depth,
                              const pen_yaml_node **out_node) {
    const char *step = a->steps[depth];
    const pen_yaml_node *old = NULL, *inner = a->value;
    pen_yaml_node *made, *key;
    const pen_option_field *within = assign_find_field(field, step);
    if (node->kind == PEN_YAML_LIST) {
        PEN_TRY(assign_find_item(a, node, depth, &old));
    } else {
        old = pen_yaml_find(node, step);
    }
    // an unknown key goes on, for the reader to say so
    if (a->removes && depth + 1 == a->step_count && node->kind == PEN_YAML_MAPPING &&
        within != NULL) {
        *out_node = node;
        return old == NULL ? PEN_OK : assign_rebuild(a, node, old, NULL, out_node);
    }
    PEN_TRY(assign_within(a, within, old, depth + 1, &inner));
    PEN_ASSERT(inner != NULL);
    PEN_TRY(PEN_NEW(a->arena, 1, &made));
    *made = *inner;
    if (old == NULL) {
        PEN_TRY(assign_new(a, PEN_YAML_SCALAR, step, &key));
        made->key = key;
    }
    if (old == NULL && field != NULL && field->kind == PEN_OPTION_ONE_OF) {
        pen_yaml_node *whole;
        PEN_TRY(assign_new(a, PEN_YAML_MAPPING, "", &whole));
        made->next = NULL;
        whole->first = made;
        whole->count = 1;
        *out_node = whole;
        return PEN_OK;
    }
    return assign_rebuild(a, node, old, made, out_node);
}

// `node` with the value in it, from step `depth` on; NULL: there was nothing, and there will be.
static pen_status assign_within(const assigner *a, const pen_option_field *field,
                                const pen_yaml_node *node, uint32_t depth,
                                const pen_yaml_node **out_node) {
    if (depth == a->step_count) {
        *out_node = a->value;
        return PEN_OK;
    }
    if (node == NULL || pen_yaml_is_nothing(node)) {
        pen_yaml_node *mapping;
        PEN_TRY(assign_new(a, PEN_YAML_MAPPING, "", &mapping));
        node = mapping;
    }
    if (node->kind == PEN_YAML_SCALAR) {
        PEN_TRY(assign_open_scalar(a, field, node, depth, &node));
        if (node->kind == PEN_YAML_SCALAR)
            return assign_refuse(a, depth, "is a file with a text alone in it");
    }
    return assign_step(a, field, node, depth, out_node);
}

// The steps of "a.b[2].\"c.d\"=": keys, names and indices. *out_value is what follows '='.
static pen_status assign_read_path(assigner *a, const char **out_value) {
    const char *at = a->text;
    while (a->step_count < ASSIGN_DEPTH_LIMIT) {
        const bool is_quoted = *at == '"';
        const char *from = at + is_quoted;
        const size_t length = strcspn(from, is_quoted ? "\"" : ".[]=");
        at = from + length;
        if (is_quoted && *at++ != '"') break;
        if (length == 0) break;
        PEN_TRY(pen_arena_copy_text(a->arena, from, length, &a->steps[a->step_count]));
        if (*at == ']') at++;
        a->ends[a->step_count++] = at;
        if (*at == '=') {
            *out_value = at + 1;
            return PEN_OK;
        }
        if (*at != '.' && *at != '[') break;
        at++;
    }
    return pen_error(PEN_INVALID_INPUT,
                     "found \"%.100s\", expected PATH=VALUE, such as train.batch=64 or "
                     "devices.a.memory=2GiB",
                     a->text);
}

// The value as YAML. Its own lines mean nothing to who wrote it on a command line.
static pen_status assign_parse(const assigner *a, const char *value, pen_yaml_node **out_node) {
    const pen_yaml_node *read = NULL;
    if (value[0] == '\0') return assign_new(a, PEN_YAML_SCALAR, "", out_node);
    const pen_status status = pen_yaml_parse(a->name, value, strlen(value), a->arena, &read);
    if (pen_status_get_code(status) == PEN_INVALID_INPUT) {
        const pen_status refused = pen_error(PEN_INVALID_INPUT, "%s", pen_status_message(status));
        pen_status_ignore(status, "its message is in the other");
        return pen_status_at_position(refused, a->name, 0, 0);
    }
    return status != PEN_OK ? status : assign_place(a, read, out_node);
}

pen_status pen_option_assign(const pen_option_table *table, const pen_yaml_node *root,
                             const char *text, const pen_option_settings *settings,
                             pen_arena *arena, const pen_yaml_node **out_root) {
    assigner a = {.settings = settings, .arena = arena, .text = text};
    const pen_option_field whole = {.kind = PEN_OPTION_MAPPING, .table = table};
    pen_yaml_node *placed = NULL;
    const char *value = "";
    PEN_TRY(pen_arena_format(arena, &a.name, "--set %.200s", text));
    PEN_TRY(pen_status_at_position(assign_read_path(&a, &value), "--set", 0, 0));
    PEN_TRY(assign_parse(&a, value, &placed));
    a.value = placed;
    a.removes = value[0] != '\0' && pen_yaml_is_nothing(placed);
    return assign_within(&a, &whole, root, 0, out_root);
}
