#include "graph/dump/dump_text.h"

#include <ctype.h>
#include <inttypes.h>
#include <string.h>

#include "base/integer.h"
#include "base/text.h"
#include "graph/graph.h"
#include "graph/op.h"

#define DUMP_CONSTANT_ELEMENTS 8

typedef struct text_dump {
    const pen_graph *graph;
    pen_text text;
} text_dump;

static bool dump_is_word(const char *name) {
    if (name[0] == '\0' || strcmp(name, "_") == 0) return false;
    for (const char *c = name; *c != '\0'; c++) {
        if (!isalnum((unsigned char)*c) && strchr("_./:-", *c) == NULL) return false;
    }
    return true;
}

// The name, or the name in quotes where it would not read as one word.
static void dump_name(pen_text *text, const char *name) {
    if (dump_is_word(name)) {
        pen_text_add(text, name);
        return;
    }
    pen_text_add(text, "\"");
    for (const char *c = name; *c != '\0'; c++) {
        const unsigned char byte = (unsigned char)*c;
        if (byte == '"' || byte == '\\') {
            pen_text_print(text, "\\%c", byte);
        } else if (byte < 0x20 || byte == 0x7f) {
            pen_text_print(text, "\\x%02x", byte);
        } else {
            pen_text_append(text, c, 1);
        }
    }
    pen_text_add(text, "\"");
}

// ": float32[batch,784]"; symbols by name.
static void dump_type(text_dump *dump, const pen_value *value) {
    const pen_tensor_type *type = &value->type;
    pen_text_add(&dump->text, ": ");
    if (type->element == PEN_ELEMENT_UNKNOWN) {
        pen_text_add(&dump->text, "unknown");
        return;
    }
    pen_text_print(&dump->text, "%s[", pen_element_name(type->element));
    for (uint32_t i = 0; i < type->shape.rank; i++) {
        const char *symbol = pen_graph_symbol_name(dump->graph, type->shape.dims[i]);
        if (i > 0) pen_text_add(&dump->text, ",");
        if (symbol != NULL) {
            dump_name(&dump->text, symbol);
        } else {
            pen_text_print(&dump->text, "%" PRId64, type->shape.dims[i]);
        }
    }
    pen_text_add(&dump->text, "]");
}

// Notes stand only where a value is not as most are, so that dumps stay short.
static void dump_value_notes(text_dump *dump, const pen_value *value) {
    dump_type(dump, value);
    if (value->layout != PEN_LAYOUT_PLAIN) pen_text_print(&dump->text, " layout %u", value->layout);
    switch (value->sharding) {
    case PEN_SHARDING_WHOLE:
        break;
    case PEN_SHARDING_SPLIT:
        pen_text_add(&dump->text, " split");
        break;
    case PEN_SHARDING_PARTIAL_SUM:
        pen_text_add(&dump->text, " partial sum");
        break;
    }
    if (value->kind == PEN_VALUE_PARAMETER && !value->trainable) {
        pen_text_add(&dump->text, " frozen");
    }
    if (value->slice != NULL) {
        pen_text_add(&dump->text, " slice of ");
        dump_name(&dump->text, value->slice->whole);
    }
    if (pen_value_is(value->replaces)) {
        pen_text_add(&dump->text, " replaces ");
        dump_name(&dump->text, pen_value_name(dump->graph, value->replaces));
    }
}

// One element of a constant; types whose bytes C cannot read show as bits.
static void dump_element(pen_text *text, const pen_value *value, int64_t index) {
    const pen_element_type element = value->type.element;
    if (pen_element_is_half(element)) {
        const int64_t bits = pen_element_read_int(PEN_UINT16, value->data, index);
        pen_text_print(text, "0x%04" PRIx64, (uint64_t)bits);
    } else if (pen_element_is_float(element)) {
        const double number = pen_element_read(element, value->data, index);
        pen_text_print(text, "%.*g", element == PEN_FLOAT32 ? 9 : 17, number);
    } else {
        const int64_t integer = pen_element_read_int(element, value->data, index);
        const bool is_large = element == PEN_UINT64 && integer < 0;
        pen_text_print(text, is_large ? "%" PRIu64 : "%" PRId64, integer);
    }
}

static void dump_constant_data(text_dump *dump, const pen_value *value) {
    if (value->type.element == PEN_ELEMENT_UNKNOWN) return;
    const int64_t count = pen_shape_element_count(&value->type.shape);
    if (value->data == NULL || count == 0) return;
    const int64_t shown = pen_min_i64(count, DUMP_CONSTANT_ELEMENTS);
    pen_text_add(&dump->text, " = ");
    for (int64_t i = 0; i < shown; i++) {
        if (i > 0) pen_text_add(&dump->text, ", ");
        dump_element(&dump->text, value, i);
    }
    if (shown < count) pen_text_add(&dump->text, ", …");
}

static void dump_value(text_dump *dump, const pen_value *value) {
    pen_text_print(&dump->text, "%s ", pen_value_kind_name(value->kind));
    dump_name(&dump->text, value->name);
    dump_value_notes(dump, value);
    if (value->kind == PEN_VALUE_CONSTANT) dump_constant_data(dump, value);
    pen_text_add(&dump->text, "\n");
}

static void dump_attribute(pen_text *text, const pen_attribute_schema *schema,
                           const pen_attribute_value *value) {
    const bool is_list = schema->kind == PEN_ATTRIBUTE_INTS || schema->kind == PEN_ATTRIBUTE_FLOATS;
    pen_text_print(text, " %s=%s", schema->name, is_list ? "[" : "");
    if (schema->kind == PEN_ATTRIBUTE_TEXT) dump_name(text, value->text);
    pen_attribute_add_numbers(text, schema->kind, value);
    if (is_list) pen_text_add(text, "]");
}

static void dump_operands(text_dump *dump, const pen_node *node) {
    pen_text_add(&dump->text, "(");
    for (uint32_t i = 0; i < node->input_count; i++) {
        if (i > 0) pen_text_add(&dump->text, ", ");
        if (pen_value_is(node->inputs[i])) {
            dump_name(&dump->text, pen_value_name(dump->graph, node->inputs[i]));
        } else {
            pen_text_add(&dump->text, "_");
        }
    }
    pen_text_add(&dump->text, ")");
}

// One line for the node and one for each output: diffs of golden files show what changed.
static void dump_node(text_dump *dump, const pen_node *node) {
    pen_text *text = &dump->text;
    pen_text_print(text, "%s ", pen_role_name(node->role));
    dump_name(text, node->name);
    pen_text_print(text, ": %s", node->op->name);
    dump_operands(dump, node);
    for (uint32_t i = 0; i < node->op->attribute_count; i++) {
        if (!node->attributes[i].present) continue;
        dump_attribute(text, &node->op->attributes[i], &node->attributes[i]);
    }
    if (node->accumulates) pen_text_add(text, " accumulates");
    if (pen_node_is(node->gradient_of)) {
        pen_text_add(text, " of ");
        dump_name(text, pen_node_name(dump->graph, node->gradient_of));
    }
    pen_text_add(text, "\n");
    for (uint32_t i = 0; i < node->output_count; i++) {
        pen_text_add(text, "  -> ");
        if (pen_value_is(node->outputs[i])) {
            const pen_value *output = pen_graph_value(dump->graph, node->outputs[i]);
            dump_name(text, output->name);
            dump_value_notes(dump, output);
            if (output->kind == PEN_VALUE_CONSTANT) dump_constant_data(dump, output);
        } else {
            pen_text_add(text, "_");
        }
        pen_text_add(text, "\n");
    }
}

// Symbols, values that no node makes, nodes with what they make, outputs: the order of ids, so that
// equal graphs have equal texts.
pen_status pen_dump_text(const pen_graph *graph, pen_arena *arena, const char **out_text) {
    text_dump dump = {.graph = graph};
    bool *made; // by a node: constants that were folded are shown where they were made
    PEN_TRY(PEN_NEW(arena, pen_graph_value_count(graph), &made));
    for (uint32_t n = 0; n < pen_graph_node_count(graph); n++) {
        const pen_node *node = pen_graph_node(graph, (pen_node_id){n});
        for (uint32_t i = 0; i < node->output_count; i++) {
            if (pen_value_is(node->outputs[i])) made[node->outputs[i].index] = true;
        }
    }
    pen_text_init(&dump.text, arena);
    pen_text_add(&dump.text, "graph ");
    dump_name(&dump.text, pen_graph_name(graph));
    pen_text_add(&dump.text, "\n");
    for (uint32_t i = 0; i < pen_graph_symbol_count(graph); i++) {
        pen_text_add(&dump.text, "symbol ");
        dump_name(&dump.text, pen_graph_symbol_name(graph, -(1 + (int64_t)i)));
        pen_text_add(&dump.text, "\n");
    }
    for (uint32_t i = 0; i < pen_graph_value_count(graph); i++) {
        if (!made[i]) dump_value(&dump, pen_graph_value(graph, (pen_value_id){i}));
    }
    for (uint32_t n = 0; n < pen_graph_node_count(graph); n++) {
        dump_node(&dump, pen_graph_node(graph, (pen_node_id){n}));
    }
    for (uint32_t i = 0; i < pen_graph_output_count(graph); i++) {
        pen_text_add(&dump.text, "output ");
        dump_name(&dump.text, pen_value_name(graph, pen_graph_output(graph, i)));
        pen_text_add(&dump.text, "\n");
    }
    return pen_text_finish(&dump.text, out_text);
}
