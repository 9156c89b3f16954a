// Every node and constant is written out as a text that tells it apart; texts are looked up.

#include "graph/passes/merge_duplicates.h"

#include <inttypes.h>
#include <string.h>

#include "base/name_map.h"
#include "base/text.h"
#include "graph/graph.h"
#include "graph/op.h"
#include "graph/passes/copy_graph.h"

// Larger constants are weights of the model, which are not compared.
#define MERGE_CONSTANT_BYTES_LIMIT 4096

typedef struct merger {
    pen_graph_copy copy;
    bool *named;        // [value count]: known by name, never merged away
    pen_name_map nodes; // texts of nodes to indices of old nodes
    uint32_t *standing; // [value count]: the constant that stands for a constant
    bool *left_out;     // [value count]: constants that another stands for
} merger;

// Numbers are written so that every bit counts, and texts with their length.
static void merge_add_attribute(pen_text *text, pen_attribute_kind kind,
                                const pen_attribute_value *value) {
    pen_text_print(text, "|%d%d", (int)value->present, (int)kind);
    if (!value->present) return;
    switch (kind) {
    case PEN_ATTRIBUTE_INT:
        pen_text_print(text, ":%" PRId64, value->integer);
        break;
    case PEN_ATTRIBUTE_FLOAT:
        pen_text_print(text, ":%a", value->number);
        break;
    case PEN_ATTRIBUTE_TEXT:
        pen_text_print(text, ":%zu:%s", strlen(value->text), value->text);
        break;
    case PEN_ATTRIBUTE_INTS:
        for (uint32_t i = 0; i < value->count; i++) {
            pen_text_print(text, ":%" PRId64, value->integers[i]);
        }
        break;
    case PEN_ATTRIBUTE_FLOATS:
        for (uint32_t i = 0; i < value->count; i++) {
            pen_text_print(text, ":%a", value->numbers[i]);
        }
        break;
    }
}

// Equal for nodes that compute the same: operands count as what stands for them in the copy.
static pen_status merge_node_text(const merger *m, const pen_node *node, const char **out_text) {
    pen_text text;
    pen_text_init(&text, pen_graph_arena(m->copy.from));
    pen_text_print(&text, "%s %d", node->op->name, (int)node->role);
    // parts of the gradient stay with the forward nodes that they are of, in whatever stages those
    // are
    if (pen_role_is_backward(node->role)) pen_text_print(&text, " of %u", node->gradient_of.index);
    for (uint32_t i = 0; i < node->input_count; i++) {
        const pen_value_id input = node->inputs[i];
        pen_text_print(&text, " %u",
                       pen_value_is(input) ? m->copy.values[input.index].index : PEN_ID_NONE);
    }
    for (uint32_t i = 0; i < node->output_count; i++) {
        pen_text_print(&text, ">%d", (int)pen_value_is(node->outputs[i]));
    }
    for (uint32_t i = 0; i < node->op->attribute_count; i++) {
        merge_add_attribute(&text, node->op->attributes[i].kind, &node->attributes[i]);
    }
    return pen_text_finish(&text, out_text);
}

static bool merge_is_pure(const merger *m, const pen_node *node) {
    if (node->op->is_random || node->accumulates) return false;
    for (uint32_t i = 0; i < node->output_count; i++) {
        if (!pen_value_is(node->outputs[i])) continue;
        const pen_value *value = pen_graph_value(m->copy.from, node->outputs[i]);
        if (pen_value_is(value->replaces)) return false;
    }
    return true;
}

static bool merge_is_named(const merger *m, const pen_node *node) {
    for (uint32_t i = 0; i < node->output_count; i++) {
        if (pen_value_is(node->outputs[i]) && m->named[node->outputs[i].index]) return true;
    }
    return false;
}

static pen_status merge_node(merger *m, pen_node_id id) {
    const pen_node *node = pen_graph_node(m->copy.from, id);
    if (!merge_is_pure(m, node)) return pen_graph_copy_node(&m->copy, id);
    const char *text;
    PEN_TRY(merge_node_text(m, node, &text));
    const uint32_t first = pen_name_map_find(&m->nodes, text);
    if (first == PEN_NAME_MAP_NONE) PEN_TRY(pen_name_map_add(&m->nodes, text, id.index));
    if (first == PEN_NAME_MAP_NONE || merge_is_named(m, node)) {
        return pen_graph_copy_node(&m->copy, id);
    }
    const pen_node *standing = pen_graph_node(m->copy.from, (pen_node_id){first});
    m->copy.nodes[id.index] = m->copy.nodes[first];
    for (uint32_t i = 0; i < node->output_count; i++) {
        if (!pen_value_is(node->outputs[i])) continue;
        m->copy.values[node->outputs[i].index] = m->copy.values[standing->outputs[i].index];
    }
    return PEN_OK;
}

// A constant's type and bytes in hexadecimal.
static pen_status merge_constant_text(const pen_value *value, pen_arena *arena,
                                      const char **out_text) {
    char type[PEN_SHAPE_TEXT_BYTES];
    pen_text text;
    pen_text_init(&text, arena);
    pen_text_print(&text, "%s %d ", pen_tensor_type_format(&value->type, type), (int)value->layout);
    const uint8_t *bytes = value->data;
    for (uint64_t i = 0; i < value->data_bytes; i++) {
        const char hex[] = "0123456789abcdef";
        const char digits[2] = {hex[bytes[i] >> 4], hex[bytes[i] & 15]};
        pen_text_append(&text, digits, sizeof digits);
    }
    return pen_text_finish(&text, out_text);
}

// Finds, for each constant, the first with the same bytes.
static pen_status merge_constants(merger *m, const pen_graph *graph) {
    pen_arena *arena = pen_graph_arena(graph);
    pen_name_map texts;
    pen_name_map_init(&texts, arena);
    for (uint32_t i = 0; i < pen_graph_value_count(graph); i++) {
        const pen_value *value = pen_graph_value(graph, (pen_value_id){i});
        m->standing[i] = i;
        if (value->kind != PEN_VALUE_CONSTANT || m->named[i]) continue;
        if (value->data_bytes > MERGE_CONSTANT_BYTES_LIMIT) continue;
        const char *text;
        PEN_TRY(merge_constant_text(value, arena, &text));
        const uint32_t first = pen_name_map_find(&texts, text);
        if (first == PEN_NAME_MAP_NONE) {
            PEN_TRY(pen_name_map_add(&texts, text, i));
            continue;
        }
        m->standing[i] = first;
        m->left_out[i] = true;
    }
    return PEN_OK;
}

static pen_status merge_start(merger *m, const pen_graph *graph) {
    const uint32_t value_count = pen_graph_value_count(graph);
    pen_arena *arena = pen_graph_arena(graph);
    pen_name_map_init(&m->nodes, arena);
    PEN_TRY(PEN_NEW(arena, value_count, &m->standing));
    PEN_TRY(PEN_NEW(arena, value_count, &m->left_out));
    PEN_TRY(merge_constants(m, graph));
    PEN_TRY(pen_graph_copy_begin_without(graph, m->left_out, &m->copy));
    for (uint32_t i = 0; i < value_count; i++) {
        if (m->left_out[i]) m->copy.values[i] = m->copy.values[m->standing[i]];
    }
    return PEN_OK;
}

// Values that somebody outside asks for by name stay, even if they are equal to others.
pen_status pen_merge_duplicates(const pen_graph *graph, uint32_t kept_count,
                                const pen_value_id *kept, pen_graph **out_graph,
                                const pen_value_id **out_values) {
    merger m;
    PEN_TRY(PEN_NEW(pen_graph_arena(graph), pen_graph_value_count(graph), &m.named));
    for (uint32_t i = 0; i < kept_count; i++) {
        m.named[kept[i].index] = true;
    }
    for (uint32_t i = 0; i < pen_graph_output_count(graph); i++) {
        m.named[pen_graph_output(graph, i).index] = true;
    }
    PEN_TRY(merge_start(&m, graph));
    for (uint32_t n = 0; n < pen_graph_node_count(graph); n++) {
        if (!pen_graph_copy_computes(graph, (pen_node_id){n})) continue;
        PEN_TRY(merge_node(&m, (pen_node_id){n}));
    }
    PEN_TRY(pen_graph_copy_end(&m.copy));
    *out_graph = m.copy.to;
    *out_values = m.copy.values;
    return PEN_OK;
}
