#include "partition/costs/cost_key.h"

#include <inttypes.h>
#include <string.h>

#include "base/hash.h"
#include "base/text.h"
#include "graph/graph.h"
#include "graph/op.h"

#define COST_KEY_ELEMENTS 16   // of a constant that are written; others are hashed
#define COST_KEY_HASH_BYTES 20 // room for "...#0123456789abcdef"

// Contents of a constant: numbers where they are few and integers, else a hash of the bytes.
static void cost_key_add_contents(pen_text *text, const pen_value *value) {
    const uint64_t size = pen_element_bytes(value->type.element);
    const uint64_t count = size == 0 ? 0 : value->data_bytes / size;
    const bool is_listed = value->type.element == PEN_INT64 && count <= COST_KEY_ELEMENTS;
    pen_text_add(text, "=");
    if (!is_listed) {
        pen_text_print(text, "#%016" PRIx64,
                       pen_hash_bytes(PEN_HASH_START, value->data, value->data_bytes));
        return;
    }
    for (uint64_t i = 0; i < count; i++) {
        int64_t integer;
        memcpy(&integer, (const unsigned char *)value->data + i * size, sizeof integer);
        pen_text_print(text, "%s%" PRId64, i > 0 ? "," : "", integer);
    }
}

// A constant of one element may choose the kernel (a power of 2), and those that steer shapes do.
static bool cost_key_shows_contents(const pen_node *node, uint32_t input, const pen_value *value) {
    if (value->kind != PEN_VALUE_CONSTANT || value->data == NULL) return false;
    if (input < 64 && (node->op->constant_inputs >> input & 1) != 0) return true;
    return pen_shape_element_count(&value->type.shape) == 1;
}

static void cost_key_add_operand(pen_text *text, const pen_graph *graph, pen_value_id id) {
    char type[PEN_SHAPE_TEXT_BYTES];
    if (!pen_value_is(id)) {
        pen_text_add(text, "-");
        return;
    }
    const pen_value *value = pen_graph_value(graph, id);
    pen_text_add(text, pen_tensor_type_format(&value->type, type));
    if (value->layout != PEN_LAYOUT_PLAIN) pen_text_print(text, "@%u", (unsigned)value->layout);
}

static void cost_key_add_letters(pen_text *text, const char *letters) {
    for (const char *c = letters; *c != '\0'; c++) {
        const unsigned char letter = (unsigned char)*c;
        if (letter >= 0x20 && letter < 0x7f) {
            pen_text_append(text, c, 1);
        } else {
            pen_text_print(text, "\\x%02x", letter);
        }
    }
}

// Attributes choose kernels and work, so they are part of the key.
static void cost_key_add_attribute(pen_text *text, const pen_attribute_schema *schema,
                                   const pen_attribute_value *value) {
    pen_text_print(text, " %s=", schema->name);
    if (schema->kind == PEN_ATTRIBUTE_TEXT) cost_key_add_letters(text, value->text);
    pen_attribute_add_numbers(text, schema->kind, value);
}

static pen_status cost_key_cut(const char *whole, pen_arena *arena, const char **out_shape) {
    const size_t length = strlen(whole);
    const size_t kept = PEN_COST_KEY_BYTES_LIMIT - COST_KEY_HASH_BYTES;
    if (length <= PEN_COST_KEY_BYTES_LIMIT) {
        *out_shape = whole;
        return PEN_OK;
    }
    return pen_arena_format(arena, out_shape, "%.*s...#%016" PRIx64, (int)kept, whole,
                            pen_hash_bytes(PEN_HASH_START, whole + kept, length - kept));
}

// Two nodes with equal keys take the same time: types, sizes, layouts, accumulating, attributes,
// and constants that steer the operator.
pen_status pen_cost_key(const pen_graph *graph, pen_node_id id, pen_arena *arena,
                        const char **out_shape) {
    const pen_node *node = pen_graph_node(graph, id);
    const char *whole;
    pen_text text;
    pen_text_init(&text, arena);
    for (uint32_t i = 0; i < node->input_count; i++) {
        if (i > 0) pen_text_add(&text, " ");
        cost_key_add_operand(&text, graph, node->inputs[i]);
        if (!pen_value_is(node->inputs[i])) continue;
        const pen_value *value = pen_graph_value(graph, node->inputs[i]);
        if (cost_key_shows_contents(node, i, value)) cost_key_add_contents(&text, value);
    }
    pen_text_add(&text, node->input_count > 0 ? " ->" : "->");
    for (uint32_t i = 0; i < node->output_count; i++) {
        pen_text_add(&text, " ");
        cost_key_add_operand(&text, graph, node->outputs[i]);
    }
    if (node->accumulates) pen_text_add(&text, " +=");
    bool is_first = true;
    for (uint32_t i = 0; i < node->op->attribute_count; i++) {
        if (!node->attributes[i].present) continue;
        if (is_first) pen_text_add(&text, ";");
        is_first = false;
        cost_key_add_attribute(&text, &node->op->attributes[i], &node->attributes[i]);
    }
    PEN_TRY(pen_text_finish(&text, &whole));
    return cost_key_cut(whole, arena, out_shape);
}
