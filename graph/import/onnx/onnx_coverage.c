#include "graph/import/onnx/onnx_coverage.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/name_map.h"
#include "base/reserve.h"
#include "base/text.h"
#include "graph/import/onnx/onnx_importer.h"
#include "graph/import/onnx/onnx_mapping.h"
#include "graph/op.h"

#define COVERAGE_NAMES_SHOWN 3 // nodes listed for each kind of trouble
#define COVERAGE_TEXT_BYTES 256

typedef struct coverage_trouble {
    const char *what;
    uint32_t count;
    pen_text names;
} coverage_trouble;

typedef struct coverage {
    const pen_onnx_model *model;
    pen_arena *arena;
    pen_name_map kinds;
    coverage_trouble *troubles;
    uint32_t count, capacity;
} coverage;

// Troubles of a kind are counted together, with the first few places.
static pen_status coverage_add(coverage *list, const char *what, const char *where) {
    uint32_t index = pen_name_map_find(&list->kinds, what);
    if (index == PEN_NAME_MAP_NONE) {
        PEN_TRY(PEN_RESERVE(list->arena, &list->troubles, list->count, &list->capacity, 16));
        index = list->count++;
        coverage_trouble *trouble = &list->troubles[index];
        *trouble = (coverage_trouble){0};
        PEN_TRY(pen_arena_copy_text(list->arena, what, strlen(what), &trouble->what));
        pen_text_init(&trouble->names, list->arena);
        PEN_TRY(pen_name_map_add(&list->kinds, trouble->what, index));
    }
    coverage_trouble *trouble = &list->troubles[index];
    trouble->count += 1;
    if (trouble->count <= COVERAGE_NAMES_SHOWN) {
        pen_text_print(&trouble->names, "%s'%s'", trouble->count > 1 ? ", " : "", where);
    } else if (trouble->count == COVERAGE_NAMES_SHOWN + 1) {
        pen_text_add(&trouble->names, ", …");
    }
    return PEN_OK;
}

// ---- attributes

static void coverage_print_attribute(const pen_onnx_attribute *attribute,
                                     char out_text[COVERAGE_TEXT_BYTES]) {
    const char *name = attribute->name;
    if (attribute->type == PEN_ONNX_INT) {
        snprintf(out_text, COVERAGE_TEXT_BYTES, "%.128s=%" PRId64, name, attribute->integer);
    } else if (attribute->type == PEN_ONNX_FLOAT) {
        snprintf(out_text, COVERAGE_TEXT_BYTES, "%.128s=%g", name, attribute->number);
    } else if (attribute->type == PEN_ONNX_STRING) {
        snprintf(out_text, COVERAGE_TEXT_BYTES, "%.128s=%.64s", name, attribute->text);
    } else {
        snprintf(out_text, COVERAGE_TEXT_BYTES, "attribute %.128s", name);
    }
}

// Looks the attribute up in a mapping's `taken`. A word is its name, or its printed value.
static bool coverage_is_taken(const char *taken, const pen_onnx_attribute *attribute,
                              bool *out_named) {
    char printed[COVERAGE_TEXT_BYTES];
    coverage_print_attribute(attribute, printed);
    const size_t name_length = strlen(attribute->name);
    *out_named = false;
    for (const char *word = taken; word != NULL && *word != '\0';) {
        const size_t length = strcspn(word, " ");
        const size_t word_name = strcspn(word, "= ");
        if (word_name == name_length && strncmp(word, attribute->name, name_length) == 0) {
            *out_named = true;
            if (word_name == length) return true;
            if (strlen(printed) == length && strncmp(printed, word, length) == 0) return true;
        }
        word += length + strspn(word + length, " ");
    }
    return false;
}

static bool coverage_kind_fits(pen_attribute_kind kind, const pen_onnx_attribute *attribute) {
    switch (kind) {
    case PEN_ATTRIBUTE_INT:
        return attribute->type == PEN_ONNX_INT;
    case PEN_ATTRIBUTE_FLOAT:
        return attribute->type == PEN_ONNX_FLOAT;
    case PEN_ATTRIBUTE_TEXT:
        return attribute->type == PEN_ONNX_STRING;
    case PEN_ATTRIBUTE_INTS:
        return attribute->type == PEN_ONNX_INTS;
    case PEN_ATTRIBUTE_FLOATS:
        return attribute->type == PEN_ONNX_FLOATS;
    }
    return false;
}

// A tensor of an element type that we do not have; writes which.
static bool coverage_tensor_fails(const pen_onnx_attribute *attribute, pen_arena *arena,
                                  char out_text[COVERAGE_TEXT_BYTES]) {
    pen_onnx_tensor tensor = {0};
    if (attribute->type != PEN_ONNX_TENSOR) return false;
    const pen_status status = pen_onnx_tensor_open(&attribute->tensor, arena, &tensor);
    if (status != PEN_OK) {
        pen_status_ignore(status, "reading the contents will say it again, at its place");
        return false;
    }
    if (tensor.type.element != PEN_ELEMENT_UNKNOWN) return false;
    snprintf(out_text, COVERAGE_TEXT_BYTES, "%.128s of element type %s", attribute->name,
             pen_onnx_data_type_name(tensor.data_type));
    return true;
}

static bool coverage_attribute_fits(const pen_onnx_mapping *mapping, const pen_op *op,
                                    const pen_onnx_attribute *attribute) {
    bool named;
    if (coverage_is_taken(mapping->taken, attribute, &named)) return true;
    if (named) return false;
    for (uint32_t i = 0; i < op->attribute_count; i++) {
        if (strcmp(op->attributes[i].name, attribute->name) != 0) continue;
        return coverage_kind_fits(op->attributes[i].kind, attribute);
    }
    return false;
}

// ---- nodes

static uint32_t coverage_used(uint32_t count, const char *const *names) {
    while (count > 0 && names[count - 1][0] == '\0') {
        count--;
    }
    return count;
}

// Writes what is wrong with a node whose operator is known; "" for nothing.
static void coverage_fault(const pen_onnx_node *node, const pen_onnx_mapping *mapping,
                           const pen_op *op, pen_arena *arena, char out_text[COVERAGE_TEXT_BYTES]) {
    out_text[0] = '\0';
    if (node->opset < mapping->opset_first) {
        snprintf(out_text, COVERAGE_TEXT_BYTES, "as it was before operator set %u",
                 mapping->opset_first);
        return;
    }
    for (uint32_t i = 0; i < node->attribute_count; i++) {
        const pen_onnx_attribute *attribute = &node->attributes[i];
        if (coverage_tensor_fails(attribute, arena, out_text)) return;
        if (coverage_attribute_fits(mapping, op, attribute)) continue;
        coverage_print_attribute(attribute, out_text);
        return;
    }
    if (mapping->own_arity) return;
    const uint32_t inputs = coverage_used(node->input_count, node->inputs);
    const uint32_t outputs = coverage_used(node->output_count, node->outputs);
    if (outputs > op->output_max) {
        snprintf(out_text, COVERAGE_TEXT_BYTES, "output %u", outputs - 1);
    } else if (inputs > op->input_max) {
        snprintf(out_text, COVERAGE_TEXT_BYTES, "input %u", inputs - 1);
    }
}

static const char *coverage_node_name(const pen_onnx_node *node, pen_arena *arena) {
    const char *name = node->name;
    if (name[0] != '\0') return name;
    const pen_status status = pen_arena_format(arena, &name, "node %u", node->position);
    if (status == PEN_OK) return name;
    pen_status_ignore(status, "memory is out, which the next allocation says");
    return "";
}

static pen_status coverage_node(coverage *list, const pen_onnx_node *node);

// Branches and loops: what their bodies have.
static pen_status coverage_bodies(coverage *list, const pen_onnx_node *node) {
    for (uint32_t i = 0; i < node->attribute_count; i++) {
        pen_onnx_model body;
        if (node->attributes[i].type != PEN_ONNX_GRAPH) continue;
        PEN_TRY(pen_onnx_model_read_body(list->model, &node->attributes[i], list->arena, &body));
        for (uint32_t n = 0; n < body.node_count; n++) {
            PEN_TRY(coverage_node(list, &body.nodes[n]));
        }
    }
    return PEN_OK;
}

static pen_status coverage_node(coverage *list, const pen_onnx_node *node) {
    if (pen_onnx_is_control(node)) return coverage_bodies(list, node);
    char fault[COVERAGE_TEXT_BYTES] = "";
    char what[3 * COVERAGE_TEXT_BYTES];
    const pen_onnx_mapping *mapping = pen_onnx_mapping_of_node(node);
    const pen_op *op = NULL;
    if (mapping != NULL) {
        pen_status_ignore(pen_op_find(mapping->op_name, &op), "an op that is missing is listed");
    }
    if (op != NULL) {
        coverage_fault(node, mapping, op, list->arena, fault);
        if (fault[0] == '\0') return PEN_OK;
    }
    snprintf(what, sizeof what, "%.128s%s%.128s (operator set %" PRId64 ")%s%s", node->domain,
             node->domain[0] != '\0' ? "." : "", node->op_type, node->opset,
             fault[0] != '\0' ? ": " : "", fault);
    return coverage_add(list, what, coverage_node_name(node, list->arena));
}

// ---- types

// Types are looked at before anything is imported, to be told together with unknown operators.
static pen_status coverage_types(coverage *list, const pen_onnx_model *model) {
    char what[COVERAGE_TEXT_BYTES];
    for (uint32_t i = 0; i < model->tensor_count; i++) {
        const pen_onnx_tensor *tensor = &model->tensors[i];
        if (tensor->type.element != PEN_ELEMENT_UNKNOWN) continue;
        snprintf(what, sizeof what, "initializer of element type %s",
                 pen_onnx_data_type_name(tensor->data_type));
        PEN_TRY(coverage_add(list, what, tensor->name));
    }
    for (uint32_t i = 0; i < model->input_count; i++) {
        const pen_onnx_value *input = &model->inputs[i];
        const bool is_tensor = strcmp(input->kind, "tensor") == 0;
        if (!is_tensor) {
            snprintf(what, sizeof what, "input that is %s", input->kind);
        } else if (pen_onnx_element_type(input->data_type) == PEN_ELEMENT_UNKNOWN) {
            snprintf(what, sizeof what, "input of element type %s",
                     pen_onnx_data_type_name(input->data_type));
        } else if (!input->has_shape) {
            snprintf(what, sizeof what, "input without a shape");
        } else {
            continue;
        }
        PEN_TRY(coverage_add(list, what, input->name));
    }
    if (model->sparse_count == 0) return PEN_OK;
    return coverage_add(list, "sparse initializer", "");
}

// Everything that is not supported is told at once, not one thing a run.
pen_status pen_onnx_coverage_check(const pen_onnx_model *model, pen_arena *arena) {
    coverage list = {.model = model, .arena = arena};
    pen_name_map_init(&list.kinds, arena);
    for (uint32_t i = 0; i < model->node_count; i++) {
        PEN_TRY(coverage_node(&list, &model->nodes[i]));
    }
    PEN_TRY(coverage_types(&list, model));
    if (list.count == 0) return PEN_OK;
    pen_text text;
    pen_text_init(&text, arena);
    for (uint32_t i = 0; i < list.count; i++) {
        const char *names;
        PEN_TRY(pen_text_finish(&list.troubles[i].names, &names));
        pen_text_print(&text, "\n  %s: %u at %s", list.troubles[i].what, list.troubles[i].count,
                       names);
    }
    const char *lines;
    PEN_TRY(pen_text_finish(&text, &lines));
    return pen_error(PEN_UNSUPPORTED, "%u of the model's features %s not supported:%s", list.count,
                     list.count == 1 ? "is" : "are", lines);
}
