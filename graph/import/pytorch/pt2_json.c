#include "graph/import/pytorch/pt2_json.h"

#include <math.h>
#include <string.h>

#include "base/integer.h"
#include "base/limits.h"
#include "graph/import/import.h"

#define JSON_LAYOUT_STRIDED 7 // PyTorch's number of tensors that have strides

static const char *json_type_name(const json_t *value) {
    static const char *const names[] = {
        [JSON_OBJECT] = "an object",   [JSON_ARRAY] = "a list",  [JSON_STRING] = "a text",
        [JSON_INTEGER] = "an integer", [JSON_REAL] = "a number", [JSON_TRUE] = "true",
        [JSON_FALSE] = "false",        [JSON_NULL] = "null"};
    return value == NULL ? "nothing" : names[json_typeof(value)];
}

static pen_status json_expected(const json_t *found, const char *key, const char *expected) {
    return pen_error(PEN_CORRUPT, "\"%.40s\" is %s, expected: %s", key, json_type_name(found),
                     expected);
}

pen_status pen_pt2_json_get(const json_t *from, const char *key, json_type type,
                            const json_t **out_value) {
    static const char *const expected[] = {[JSON_OBJECT] = "an object",
                                           [JSON_ARRAY] = "a list",
                                           [JSON_STRING] = "a text",
                                           [JSON_INTEGER] = "an integer"};
    const json_t *value = json_object_get(from, key);
    if (value == NULL || json_typeof(value) != type) {
        return json_expected(value, key, expected[type]);
    }
    *out_value = value;
    return PEN_OK;
}

pen_status pen_pt2_json_union(const json_t *from, const char **out_key, const json_t **out_value) {
    json_t *whole = (json_t *)(uintptr_t)from;
    void *first = json_object_iter(whole);
    if (first == NULL || json_object_size(from) != 1) {
        return pen_error(PEN_CORRUPT, "found %s, expected an object of one member",
                         json_type_name(from));
    }
    *out_key = json_object_iter_key(first);
    *out_value = json_object_iter_value(first);
    return PEN_OK;
}

pen_status pen_pt2_json_text(const json_t *value, pen_arena *arena, const char **out_text) {
    if (!json_is_string(value) || json_string_length(value) > PEN_NAME_BYTES_LIMIT) {
        return pen_error(PEN_CORRUPT, "found %s, expected a text of at most %u bytes",
                         json_type_name(value), PEN_NAME_BYTES_LIMIT);
    }
    return pen_arena_copy_text(arena, json_string_value(value), json_string_length(value),
                               out_text);
}

pen_status pen_pt2_json_name(const json_t *from, const char *key, pen_arena *arena,
                             const char **out_text) {
    return pen_status_add_context(pen_pt2_json_text(json_object_get(from, key), arena, out_text),
                                  "in \"%s\"", key);
}

// ---- tensors

// {"as_int": 4}, or {"as_expr": {"expr_str": "Symbol('s0')", …}}.
static pen_status json_size(const json_t *from, pen_arena *arena, int64_t *out_size,
                            const char **out_formula) {
    const char *key;
    const json_t *value;
    PEN_TRY(pen_pt2_json_union(from, &key, &value));
    if (strcmp(key, "as_int") == 0 && json_is_integer(value)) {
        *out_size = json_integer_value(value);
        *out_formula = NULL;
        return PEN_OK;
    }
    if (strcmp(key, "as_expr") != 0) return json_expected(value, key, "a size");
    *out_size = PEN_DIMENSION_UNKNOWN;
    return pen_pt2_json_name(value, "expr_str", arena, out_formula);
}

// Whether elements lie row by row: each stride is the product of the sizes behind it. Dimensions
// of one element may have any stride. What is not known by number is taken to be so, and a tensor
// without elements is.
static bool json_is_contiguous(const pen_pt2_tensor_meta *meta) {
    int64_t expected = 1;
    for (uint32_t d = meta->shape.rank; d-- > 0;) {
        const int64_t size = meta->shape.dims[d];
        if (size == 0) return true;
        if (size == 1) continue;
        if (expected >= 0 && meta->strides[d] >= 0 && meta->strides[d] != expected) return false;
        if (meta->strides[d] >= 0) expected = meta->strides[d];
        if (size < 0 || expected < 0) {
            expected = PEN_DIMENSION_UNKNOWN;
        } else if (!pen_i64_mul(expected, size, &expected)) {
            return false;
        }
    }
    return true;
}

// Sizes and strides have one form; sizes come first, and say how many strides there are.
static pen_status json_sizes(const json_t *from, const char *key, pen_arena *arena,
                             pen_pt2_tensor_meta *meta) {
    const json_t *list;
    PEN_TRY(pen_pt2_json_get(from, key, JSON_ARRAY, &list));
    const size_t count = json_array_size(list);
    const bool is_shape = strcmp(key, "sizes") == 0;
    if (count > PEN_RANK_LIMIT) {
        return pen_error(PEN_UNSUPPORTED, "a tensor has %zu dimensions, at most %d are possible",
                         count, PEN_RANK_LIMIT);
    }
    if (is_shape) meta->shape.rank = (uint32_t)count;
    if (count != meta->shape.rank) {
        return pen_error(PEN_CORRUPT, "a tensor has %u sizes and %zu strides", meta->shape.rank,
                         count);
    }
    for (size_t i = 0; i < count; i++) {
        const char *formula = NULL;
        int64_t *to = is_shape ? &meta->shape.dims[i] : &meta->strides[i];
        PEN_TRY(json_size(json_array_get(list, i), arena, to, &formula));
        if (*to < 0 && formula == NULL) {
            return pen_error(PEN_CORRUPT, "\"%s\" has %lld, expected: 0 or more", key,
                             (long long)*to);
        }
        if (is_shape) meta->symbols[i] = formula;
    }
    return PEN_OK;
}

pen_status pen_pt2_json_tensor(const json_t *from, pen_arena *arena,
                               pen_pt2_tensor_meta *out_meta) {
    pen_pt2_tensor_meta meta = {0};
    const json_t *number;
    const char *formula;
    PEN_TRY(pen_pt2_json_get(from, "dtype", JSON_INTEGER, &number));
    meta.element_number = (int32_t)json_integer_value(number);
    meta.element = pen_pt2_element_of(json_integer_value(number), false);
    PEN_TRY(json_sizes(from, "sizes", arena, &meta));
    PEN_TRY(json_sizes(from, "strides", arena, &meta));
    PEN_TRY(
        json_size(json_object_get(from, "storage_offset"), arena, &meta.storage_offset, &formula));
    meta.requires_grad = json_is_true(json_object_get(from, "requires_grad"));
    meta.is_strided = json_integer_value(json_object_get(from, "layout")) == JSON_LAYOUT_STRIDED;
    meta.is_contiguous = json_is_contiguous(&meta);
    *out_meta = meta;
    return PEN_OK;
}

// ---- arguments

// The kinds of PyTorch's union `Argument`, of items and of lists of them.
typedef struct json_kind {
    const char *key;
    pen_pt2_kind kind;
    bool is_list;
} json_kind;

static const json_kind json_kinds[] = {
    {"as_none", PEN_PT2_NONE, false},
    {"as_tensor", PEN_PT2_TENSOR, false},
    {"as_tensors", PEN_PT2_TENSOR, true},
    {"as_int", PEN_PT2_INTEGER, false},
    {"as_ints", PEN_PT2_INTEGER, true},
    {"as_float", PEN_PT2_NUMBER, false},
    {"as_floats", PEN_PT2_NUMBER, true},
    {"as_string", PEN_PT2_TEXT, false},
    {"as_strings", PEN_PT2_TEXT, true},
    {"as_sym_int", PEN_PT2_SYMBOL, false},
    {"as_sym_ints", PEN_PT2_SYMBOL, true},
    {"as_sym_float", PEN_PT2_SYMBOL, false},
    {"as_sym_floats", PEN_PT2_SYMBOL, true},
    {"as_sym_bool", PEN_PT2_SYMBOL, false},
    {"as_sym_bools", PEN_PT2_SYMBOL, true},
    {"as_scalar_type", PEN_PT2_ELEMENT, false},
    {"as_bool", PEN_PT2_TRUTH, false},
    {"as_bools", PEN_PT2_TRUTH, true},
    {"as_graph", PEN_PT2_GRAPH, false},
    {"as_optional_tensor", PEN_PT2_TENSOR, false},
    {"as_optional_tensors", PEN_PT2_TENSOR, true},
};

static const json_kind *json_find_kind(const char *key) {
    static const json_kind other = {"", PEN_PT2_OTHER, false};
    for (size_t i = 0; i < sizeof json_kinds / sizeof json_kinds[0]; i++) {
        if (strcmp(json_kinds[i].key, key) == 0) return &json_kinds[i];
    }
    return &other;
}

static void json_plain(const json_t *value, pen_pt2_item *item) {
    if (json_is_integer(value)) item->kind = PEN_PT2_INTEGER;
    if (json_is_real(value)) item->kind = PEN_PT2_NUMBER;
    if (json_is_boolean(value)) item->kind = PEN_PT2_TRUTH;
    item->integer = json_is_boolean(value) ? json_is_true(value) : json_integer_value(value);
    item->number = json_is_real(value) ? json_real_value(value) : (double)item->integer;
}

// PyTorch writes what JSON has no number for as text.
static bool json_special(const json_t *value, double *out_number) {
    const char *text = json_string_value(value);
    if (text == NULL) return false;
    const bool is_negative = text[0] == '-';
    if (strcmp(text + is_negative, "Infinity") == 0) {
        *out_number = is_negative ? -(double)INFINITY : (double)INFINITY;
        return true;
    }
    *out_number = (double)NAN;
    return strcmp(text, "NaN") == 0;
}

static pen_status json_number(const json_t *value, pen_pt2_item *item) {
    if (json_special(value, &item->number)) {
        item->kind = PEN_PT2_NUMBER;
        return PEN_OK;
    }
    if (!json_is_number(value) && !json_is_boolean(value)) {
        return pen_error(PEN_CORRUPT, "found %s, expected a number", json_type_name(value));
    }
    json_plain(value, item);
    return PEN_OK;
}

// A tensor, or a symbol that may be a plain number: {"as_name": "s"} or {"as_int": 2}.
static pen_status json_named(const json_t *value, pen_pt2_kind kind, pen_arena *arena,
                             pen_pt2_item *item) {
    const char *key;
    const json_t *inner;
    if (json_object_get(value, "name") != NULL) {
        return pen_pt2_json_name(value, "name", arena, &item->text);
    }
    PEN_TRY(pen_pt2_json_union(value, &key, &inner));
    if (kind == PEN_PT2_SYMBOL && strcmp(key, "as_name") == 0) {
        return pen_pt2_json_text(inner, arena, &item->text);
    }
    item->kind = json_find_kind(key)->kind;
    if (item->kind == PEN_PT2_NONE) return PEN_OK; // None of a list is {"as_none": true}
    if (item->kind == PEN_PT2_TENSOR) return pen_pt2_json_name(inner, "name", arena, &item->text);
    return json_number(inner, item);
}

static pen_status json_nested(const json_t *value, pen_arena *arena, pen_pt2_item *item) {
    pen_pt2_graph_part *graph;
    PEN_TRY(PEN_NEW(arena, 1, &graph));
    item->graph = graph;
    return pen_pt2_json_graph(json_object_get(value, "graph"), arena, graph);
}

// Each kind has a form of its own; a number where another kind of number stands is taken.
static pen_status json_item(const json_t *value, pen_pt2_kind kind, pen_arena *arena,
                            pen_pt2_item *item) {
    *item = (pen_pt2_item){.kind = kind, .text = ""};
    switch (kind) {
    case PEN_PT2_NONE:
    case PEN_PT2_OTHER:
        return PEN_OK;
    case PEN_PT2_TENSOR:
    case PEN_PT2_SYMBOL:
        return json_named(value, kind, arena, item);
    case PEN_PT2_TEXT:
        return pen_pt2_json_text(value, arena, &item->text);
    case PEN_PT2_GRAPH:
        return json_nested(value, arena, item);
    case PEN_PT2_INTEGER:
    case PEN_PT2_NUMBER:
    case PEN_PT2_TRUTH:
    case PEN_PT2_ELEMENT:
        break;
    }
    PEN_TRY(json_number(value, item));
    if (kind == PEN_PT2_ELEMENT && item->kind == PEN_PT2_INTEGER) item->kind = kind;
    return PEN_OK;
}

// A single item counts as a list of one, so that readers need not tell.
pen_status pen_pt2_json_argument(const json_t *from, pen_arena *arena,
                                 pen_pt2_argument *out_argument) {
    const char *key;
    const json_t *value;
    pen_pt2_item *items;
    PEN_TRY(pen_pt2_json_union(from, &key, &value));
    const json_kind *kind = json_find_kind(key);
    if (kind->is_list && !json_is_array(value)) return json_expected(value, key, "a list");
    const size_t count = kind->is_list ? json_array_size(value) : 1;
    PEN_TRY(PEN_NEW(arena, count, &items));
    for (size_t i = 0; i < count; i++) {
        const json_t *item = kind->is_list ? json_array_get(value, i) : value;
        PEN_TRY(pen_status_add_context(json_item(item, kind->kind, arena, &items[i]),
                                       "in \"%.40s\"", key));
    }
    out_argument->is_list = kind->is_list;
    out_argument->count = (uint32_t)count;
    out_argument->items = items;
    return PEN_OK;
}
