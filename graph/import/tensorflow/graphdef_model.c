#include "graph/import/tensorflow/graphdef_model.h"

#include <string.h>

#include "base/limits.h"
#include "graph/import/tensorflow/graphdef_types.h"

// Field numbers.
enum {
    GRAPH_NODE = 1,
    GRAPH_LIBRARY = 2,
    GRAPH_VERSIONS = 4,
    LIBRARY_FUNCTION = 1,
    FUNCTION_SIGNATURE = 1,
    FUNCTION_NODE = 3,
    FUNCTION_RESULT = 4,
    SIGNATURE_NAME = 1,
    SIGNATURE_INPUT = 2,
    SIGNATURE_OUTPUT = 3,
    NODE_NAME = 1,
    NODE_OP = 2,
    NODE_INPUT = 3,
    NODE_DEVICE = 4,
    NODE_ATTRIBUTE = 5,
    VALUE_LIST = 1,
    VALUE_TEXT = 2,
    VALUE_INT = 3,
    VALUE_FLOAT = 4,
    VALUE_BOOL = 5,
    VALUE_TYPE = 6,
    VALUE_SHAPE = 7,
    VALUE_TENSOR = 8,
    VALUE_PLACEHOLDER = 9,
    VALUE_FUNCTION = 10,
    FIELDS_COUNTED = 8,
};

#define MODEL_INTS_LIMIT 64 // integers of an attribute: strides, pads, axes

// ---- attributes

// A string as a name; "" where it cannot be one.
static pen_status model_soft_text(const pen_protobuf_reader *reader,
                                  const pen_protobuf_field *field, pen_arena *arena,
                                  const char **out_text) {
    const uint8_t *bytes;
    size_t length;
    *out_text = "";
    PEN_TRY(pen_protobuf_bytes(reader, field, &bytes, &length));
    if (length > PEN_NAME_BYTES_LIMIT || memchr(bytes, 0, length) != NULL) return PEN_OK;
    return pen_arena_copy_text(arena, (const char *)bytes, length, out_text);
}

// The name in a NameAttrList.
static pen_status model_read_function_name(const pen_protobuf_reader *reader,
                                           const pen_protobuf_field *field, pen_arena *arena,
                                           const char **out_name) {
    pen_protobuf_reader list;
    PEN_TRY(pen_protobuf_open(reader, field, &list));
    while (true) {
        pen_protobuf_field part;
        PEN_TRY(pen_protobuf_next(&list, &part));
        if (part.number == 0) return PEN_OK;
        if (part.number == 1) PEN_TRY(pen_protobuf_name(&list, &part, arena, out_name));
    }
}

static pen_status model_read_message_value(const pen_protobuf_reader *reader,
                                           const pen_protobuf_field *field, pen_graphdef_kind kind,
                                           pen_graphdef_attribute *attribute) {
    attribute->kind = kind;
    return pen_protobuf_open(reader, field, &attribute->message);
}

// An AttrValue is one of many; the last field that is there counts, as in protobuf.
static pen_status model_read_value(const pen_protobuf_reader *reader,
                                   const pen_protobuf_field *field, pen_arena *arena,
                                   pen_graphdef_attribute *attribute) {
    switch (field->number) {
    case VALUE_LIST:
        return model_read_message_value(reader, field, PEN_GRAPHDEF_LIST, attribute);
    case VALUE_SHAPE:
        return model_read_message_value(reader, field, PEN_GRAPHDEF_SHAPE, attribute);
    case VALUE_TENSOR:
        return model_read_message_value(reader, field, PEN_GRAPHDEF_TENSOR, attribute);
    case VALUE_TEXT:
        attribute->kind = PEN_GRAPHDEF_TEXT;
        return model_soft_text(reader, field, arena, &attribute->text);
    case VALUE_PLACEHOLDER:
        attribute->kind = PEN_GRAPHDEF_PLACEHOLDER;
        return pen_protobuf_name(reader, field, arena, &attribute->text);
    case VALUE_FUNCTION:
        attribute->kind = PEN_GRAPHDEF_FUNCTION;
        return model_read_function_name(reader, field, arena, &attribute->text);
    case VALUE_FLOAT:
        attribute->kind = PEN_GRAPHDEF_FLOAT;
        return pen_protobuf_float(reader, field, &attribute->number);
    case VALUE_INT:
        attribute->kind = PEN_GRAPHDEF_INT;
        return pen_protobuf_int(reader, field, &attribute->integer);
    case VALUE_BOOL:
        attribute->kind = PEN_GRAPHDEF_BOOL;
        return pen_protobuf_int(reader, field, &attribute->integer);
    case VALUE_TYPE:
        attribute->kind = PEN_GRAPHDEF_TYPE;
        return pen_protobuf_int(reader, field, &attribute->integer);
    default:
        return PEN_OK;
    }
}

// One entry of the map of attributes.
static pen_status model_read_attribute(const pen_protobuf_reader *reader,
                                       const pen_protobuf_field *field, pen_arena *arena,
                                       pen_graphdef_attribute *out_attribute) {
    pen_protobuf_reader entry;
    *out_attribute = (pen_graphdef_attribute){.name = "", .text = ""};
    PEN_TRY(pen_protobuf_open(reader, field, &entry));
    while (true) {
        pen_protobuf_field part;
        pen_protobuf_reader value;
        PEN_TRY(pen_protobuf_next(&entry, &part));
        if (part.number == 0) return PEN_OK;
        if (part.number == 1) {
            PEN_TRY(pen_protobuf_name(&entry, &part, arena, &out_attribute->name));
        }
        if (part.number != 2) continue;
        PEN_TRY(pen_protobuf_open(&entry, &part, &value));
        out_attribute->bytes = part.bytes;
        out_attribute->length = part.length;
        while (true) {
            PEN_TRY(pen_protobuf_next(&value, &part));
            if (part.number == 0) break;
            PEN_TRY(model_read_value(&value, &part, arena, out_attribute));
        }
    }
}

// ---- nodes

// An output's name is there in functions only; without a number it is output 0.
pen_status pen_graphdef_input_parse(const char *text, bool in_function, pen_arena *arena,
                                    pen_graphdef_input *out_input) {
    pen_graphdef_input input = {.is_control = text[0] == '^'};
    const char *name = text + (input.is_control ? 1 : 0);
    const char *colon = input.is_control ? NULL : strchr(name, ':');
    const char *digits = colon == NULL ? "" : colon + 1;
    const char *second = colon == NULL ? NULL : strchr(colon + 1, ':');
    const size_t length = colon == NULL ? strlen(name) : (size_t)(colon - name);
    PEN_TRY(pen_arena_copy_text(arena, name, length, &input.node));
    if (second != NULL && in_function) {
        PEN_TRY(pen_arena_copy_text(arena, colon + 1, (size_t)(second - colon) - 1,
                                    &input.output_name));
        digits = second + 1;
    }
    for (; *digits >= '0' && *digits <= '9' && input.output <= PEN_NODE_ARITY_LIMIT; digits++) {
        input.output = input.output * 10 + (uint32_t)(*digits - '0');
    }
    if (*digits != '\0' || length == 0 || input.output > PEN_NODE_ARITY_LIMIT) {
        return pen_error(PEN_INVALID_INPUT, "'%.100s' names no output of a node", text);
    }
    *out_input = input;
    return PEN_OK;
}

// Inputs and attributes go into lists that were counted before.
static pen_status model_read_node_fields(pen_protobuf_reader *reader, bool in_function,
                                         pen_arena *arena, pen_graphdef_node *node) {
    const char *text;
    while (true) {
        pen_protobuf_field field;
        PEN_TRY(pen_protobuf_next(reader, &field));
        switch (field.number) {
        case 0:
            return PEN_OK;
        case NODE_NAME:
            PEN_TRY(pen_protobuf_name(reader, &field, arena, &node->name));
            break;
        case NODE_OP:
            PEN_TRY(pen_protobuf_name(reader, &field, arena, &node->op));
            break;
        case NODE_DEVICE:
            PEN_TRY(pen_protobuf_name(reader, &field, arena, &node->device));
            break;
        case NODE_INPUT:
            PEN_TRY(pen_protobuf_name(reader, &field, arena, &text));
            PEN_TRY(pen_graphdef_input_parse(text, in_function, arena,
                                             &node->inputs[node->input_count++]));
            break;
        case NODE_ATTRIBUTE:
            PEN_TRY(model_read_attribute(reader, &field, arena,
                                         &node->attributes[node->attribute_count++]));
            break;
        default:
            break;
        }
    }
}

// Counts are checked before memory is taken.
static pen_status model_read_node(const pen_protobuf_reader *reader,
                                  const pen_protobuf_field *field, bool in_function,
                                  pen_arena *arena, pen_graphdef_node *node) {
    pen_protobuf_reader message;
    uint32_t counts[FIELDS_COUNTED] = {0};
    node->name = node->op = node->device = "";
    PEN_TRY(pen_protobuf_open(reader, field, &message));
    PEN_TRY(pen_protobuf_count(&message, FIELDS_COUNTED, counts));
    if (counts[NODE_INPUT] > PEN_NODE_ARITY_LIMIT ||
        counts[NODE_ATTRIBUTE] > PEN_NODE_ATTRIBUTES_LIMIT) {
        return pen_error(PEN_INVALID_INPUT,
                         "node %u has %u inputs and %u attributes; at most %d and %d are possible",
                         node->position, counts[NODE_INPUT], counts[NODE_ATTRIBUTE],
                         PEN_NODE_ARITY_LIMIT, PEN_NODE_ATTRIBUTES_LIMIT);
    }
    PEN_TRY(PEN_NEW(arena, counts[NODE_INPUT], &node->inputs));
    PEN_TRY(PEN_NEW(arena, counts[NODE_ATTRIBUTE], &node->attributes));
    return pen_status_add_context(model_read_node_fields(&message, in_function, arena, node),
                                  "in node %u, '%.100s'", node->position, node->name);
}

// ---- functions

// Name and type of an ArgDef.
static pen_status model_read_argument(const pen_protobuf_reader *reader,
                                      const pen_protobuf_field *field, pen_arena *arena,
                                      const char **out_name, int64_t *out_type) {
    pen_protobuf_reader message;
    PEN_TRY(pen_protobuf_open(reader, field, &message));
    *out_name = "";
    *out_type = 0;
    while (true) {
        pen_protobuf_field part;
        PEN_TRY(pen_protobuf_next(&message, &part));
        if (part.number == 0) return PEN_OK;
        if (part.number == 1) PEN_TRY(pen_protobuf_name(&message, &part, arena, out_name));
        if (part.number == 3) PEN_TRY(pen_protobuf_int(&message, &part, out_type));
    }
}

// Name, arguments and results of a function. Types that an attribute of the call decides are 0.
static pen_status model_read_signature(const pen_protobuf_reader *reader,
                                       const pen_protobuf_field *field, pen_arena *arena,
                                       pen_graphdef_function *function) {
    pen_protobuf_reader message;
    uint32_t counts[FIELDS_COUNTED] = {0};
    int64_t type;
    PEN_TRY(pen_protobuf_open(reader, field, &message));
    PEN_TRY(pen_protobuf_count(&message, FIELDS_COUNTED, counts));
    if (counts[SIGNATURE_INPUT] > PEN_NODE_ARITY_LIMIT ||
        counts[SIGNATURE_OUTPUT] > PEN_NODE_ARITY_LIMIT || function->arguments != NULL) {
        return pen_error(PEN_INVALID_INPUT,
                         "a function has several signatures, or more than %d arguments or results",
                         PEN_NODE_ARITY_LIMIT);
    }
    PEN_TRY(PEN_NEW(arena, counts[SIGNATURE_INPUT] + 1, &function->arguments));
    PEN_TRY(PEN_NEW(arena, counts[SIGNATURE_INPUT], &function->argument_types));
    PEN_TRY(PEN_NEW(arena, counts[SIGNATURE_OUTPUT], &function->results));
    PEN_TRY(PEN_NEW(arena, counts[SIGNATURE_OUTPUT], &function->values));
    while (true) {
        pen_protobuf_field part;
        PEN_TRY(pen_protobuf_next(&message, &part));
        if (part.number == 0) return PEN_OK;
        if (part.number == SIGNATURE_NAME) {
            PEN_TRY(pen_protobuf_name(&message, &part, arena, &function->name));
        } else if (part.number == SIGNATURE_INPUT) {
            const uint32_t a = function->argument_count++;
            PEN_TRY(model_read_argument(&message, &part, arena, &function->arguments[a],
                                        &function->argument_types[a]));
        } else if (part.number == SIGNATURE_OUTPUT) {
            const uint32_t r = function->result_count++;
            PEN_TRY(model_read_argument(&message, &part, arena, &function->results[r], &type));
        }
    }
}

// One entry of the map from results to what is returned.
static pen_status model_read_result(const pen_protobuf_reader *reader,
                                    const pen_protobuf_field *field, pen_arena *arena,
                                    pen_graphdef_function *function) {
    pen_protobuf_reader entry;
    const char *key = "", *value = "";
    PEN_TRY(pen_protobuf_open(reader, field, &entry));
    while (true) {
        pen_protobuf_field part;
        PEN_TRY(pen_protobuf_next(&entry, &part));
        if (part.number == 0) break;
        if (part.number == 1) PEN_TRY(pen_protobuf_name(&entry, &part, arena, &key));
        if (part.number == 2) PEN_TRY(pen_protobuf_name(&entry, &part, arena, &value));
    }
    for (uint32_t r = 0; r < function->result_count; r++) {
        if (strcmp(function->results[r], key) != 0) continue;
        return pen_graphdef_input_parse(value, true, arena, &function->values[r]);
    }
    return PEN_OK;
}

// The results are read last: they name outputs of the signature, which may stand behind them.
static pen_status model_read_function(const pen_protobuf_reader *reader,
                                      const pen_protobuf_field *field, pen_arena *arena,
                                      pen_graphdef_function *function) {
    pen_protobuf_reader message, again;
    uint32_t counts[FIELDS_COUNTED] = {0};
    function->name = "";
    PEN_TRY(pen_protobuf_open(reader, field, &message));
    PEN_TRY(pen_protobuf_count(&message, FIELDS_COUNTED, counts));
    PEN_TRY(PEN_NEW(arena, counts[FUNCTION_NODE], &function->nodes));
    again = message;
    while (true) {
        pen_protobuf_field part;
        PEN_TRY(pen_protobuf_next(&message, &part));
        if (part.number == 0) break;
        if (part.number == FUNCTION_SIGNATURE) {
            PEN_TRY(model_read_signature(&message, &part, arena, function));
        } else if (part.number == FUNCTION_NODE) {
            pen_graphdef_node *node = &function->nodes[function->node_count];
            node->position = function->node_count++;
            PEN_TRY(model_read_node(&message, &part, true, arena, node));
        }
    }
    while (true) { // the results, now that their names are known
        pen_protobuf_field part;
        PEN_TRY(pen_protobuf_next(&again, &part));
        if (part.number == 0) break;
        if (part.number != FUNCTION_RESULT) continue;
        PEN_TRY(model_read_result(&again, &part, arena, function));
    }
    for (uint32_t r = 0; r < function->result_count; r++) {
        if (function->values[r].node != NULL) continue;
        return pen_error(PEN_CORRUPT, "function '%s' returns nothing as its result '%s'",
                         function->name, function->results[r]);
    }
    return PEN_OK;
}

// All functions. One library a graph: a second one would be merged with it, which nobody writes.
static pen_status model_read_library(const pen_protobuf_reader *reader,
                                     const pen_protobuf_field *field, pen_arena *arena,
                                     pen_graphdef *graph) {
    pen_protobuf_reader message;
    uint32_t counts[FIELDS_COUNTED] = {0};
    PEN_TRY(pen_protobuf_open(reader, field, &message));
    PEN_TRY(pen_protobuf_count(&message, FIELDS_COUNTED, counts));
    if (counts[LIBRARY_FUNCTION] > PEN_FUNCTION_COUNT_LIMIT || graph->functions != NULL) {
        return pen_error(PEN_INVALID_INPUT,
                         "the graph has several libraries, or more than %d functions",
                         PEN_FUNCTION_COUNT_LIMIT);
    }
    PEN_TRY(PEN_NEW(arena, counts[LIBRARY_FUNCTION] + 1, &graph->functions));
    while (true) {
        pen_protobuf_field part;
        PEN_TRY(pen_protobuf_next(&message, &part));
        if (part.number == 0) return PEN_OK;
        if (part.number != LIBRARY_FUNCTION) continue;
        pen_graphdef_function *function = &graph->functions[graph->function_count++];
        PEN_TRY(pen_status_add_context(model_read_function(&message, &part, arena, function),
                                       "in function '%.100s'",
                                       function->name != NULL ? function->name : ""));
    }
}

// ---- the graph

static pen_status model_read_versions(const pen_protobuf_reader *reader,
                                      const pen_protobuf_field *field, pen_graphdef *graph) {
    pen_protobuf_reader message;
    PEN_TRY(pen_protobuf_open(reader, field, &message));
    while (true) {
        pen_protobuf_field part;
        PEN_TRY(pen_protobuf_next(&message, &part));
        if (part.number == 0) return PEN_OK;
        if (part.number == 1) PEN_TRY(pen_protobuf_int(&message, &part, &graph->producer));
    }
}

// Structure only: tensors stay where they lie until somebody reads them.
pen_status pen_graphdef_read(const pen_protobuf_reader *message, pen_arena *arena,
                             pen_graphdef *out_graph) {
    pen_graphdef graph = {0};
    pen_protobuf_reader reader = *message;
    uint32_t counts[FIELDS_COUNTED] = {0};
    PEN_TRY(pen_protobuf_count(&reader, FIELDS_COUNTED, counts));
    if (counts[GRAPH_NODE] > PEN_NODE_COUNT_LIMIT) {
        return pen_error(PEN_INVALID_INPUT, "the graph has more than %u nodes",
                         PEN_NODE_COUNT_LIMIT);
    }
    PEN_TRY(PEN_NEW(arena, (size_t)counts[GRAPH_NODE] + 1, &graph.nodes));
    while (true) {
        pen_protobuf_field field;
        PEN_TRY(pen_protobuf_next(&reader, &field));
        if (field.number == 0) break;
        if (field.number == GRAPH_NODE) {
            pen_graphdef_node *node = &graph.nodes[graph.node_count];
            node->position = graph.node_count++;
            PEN_TRY(model_read_node(&reader, &field, false, arena, node));
        } else if (field.number == GRAPH_LIBRARY) {
            PEN_TRY(model_read_library(&reader, &field, arena, &graph));
        } else if (field.number == GRAPH_VERSIONS) {
            PEN_TRY(model_read_versions(&reader, &field, &graph));
        }
    }
    *out_graph = graph;
    return PEN_OK;
}

// ---- attributes by name

const pen_graphdef_attribute *pen_graphdef_attribute_find(const pen_graphdef_node *node,
                                                          const char *name) {
    for (uint32_t i = 0; i < node->attribute_count; i++) {
        if (strcmp(node->attributes[i].name, name) == 0) return &node->attributes[i];
    }
    return NULL;
}

int64_t pen_graphdef_int(const pen_graphdef_node *node, const char *name, int64_t fallback) {
    const pen_graphdef_attribute *attribute = pen_graphdef_attribute_find(node, name);
    if (attribute == NULL) return fallback;
    const bool is_int = attribute->kind == PEN_GRAPHDEF_INT || attribute->kind == PEN_GRAPHDEF_BOOL;
    return is_int ? attribute->integer : fallback;
}

double pen_graphdef_float(const pen_graphdef_node *node, const char *name, double fallback) {
    const pen_graphdef_attribute *attribute = pen_graphdef_attribute_find(node, name);
    if (attribute == NULL || attribute->kind != PEN_GRAPHDEF_FLOAT) return fallback;
    return (double)attribute->number;
}

const char *pen_graphdef_text(const pen_graphdef_node *node, const char *name,
                              const char *fallback) {
    const pen_graphdef_attribute *attribute = pen_graphdef_attribute_find(node, name);
    if (attribute == NULL) return fallback;
    const bool is_text =
        attribute->kind == PEN_GRAPHDEF_TEXT || attribute->kind == PEN_GRAPHDEF_FUNCTION;
    return is_text ? attribute->text : fallback;
}

pen_element_type pen_graphdef_type(const pen_graphdef_node *node, const char *name,
                                   pen_element_type fallback) {
    const pen_graphdef_attribute *attribute = pen_graphdef_attribute_find(node, name);
    if (attribute == NULL || attribute->kind != PEN_GRAPHDEF_TYPE) return fallback;
    return pen_graphdef_element_type(attribute->integer);
}

// The integers of a list attribute, packed or not.
pen_status pen_graphdef_ints(const pen_graphdef_node *node, const char *name, pen_arena *arena,
                             uint32_t *out_count, int64_t **out_integers) {
    const pen_graphdef_attribute *attribute = pen_graphdef_attribute_find(node, name);
    *out_count = 0;
    *out_integers = NULL;
    if (attribute == NULL || attribute->kind != PEN_GRAPHDEF_LIST) return PEN_OK;
    pen_protobuf_reader reader = attribute->message;
    PEN_TRY(PEN_NEW(arena, MODEL_INTS_LIMIT, out_integers));
    while (true) {
        pen_protobuf_field field;
        pen_protobuf_scalars list;
        PEN_TRY(pen_protobuf_next(&reader, &field));
        if (field.number == 0) return PEN_OK;
        if (field.number != VALUE_INT) continue;
        PEN_TRY(pen_protobuf_scalars_open(&reader, &field, PEN_PROTOBUF_VARINT, &list));
        while (true) {
            uint64_t bits;
            bool more;
            PEN_TRY(pen_protobuf_scalars_next(&list, &bits, &more));
            if (!more) break;
            if (*out_count == MODEL_INTS_LIMIT) {
                return pen_error(PEN_INVALID_INPUT, "attribute '%s' has more than %d integers",
                                 name, MODEL_INTS_LIMIT);
            }
            memcpy(&(*out_integers)[(*out_count)++], &bits, sizeof bits);
        }
    }
}

// Twice over the fields: the first walk counts.
pen_status pen_graphdef_texts(const pen_protobuf_reader *message, uint32_t number, pen_arena *arena,
                              uint32_t *out_count, const char ***out_texts) {
    pen_protobuf_reader reader = *message;
    uint32_t count = 0;
    for (int pass = 0; pass < 2; pass++) {
        if (pass == 1) PEN_TRY(PEN_NEW(arena, (size_t)count + 1, out_texts));
        count = 0;
        reader = *message;
        while (true) {
            pen_protobuf_field field;
            PEN_TRY(pen_protobuf_next(&reader, &field));
            if (field.number == 0) break;
            if (field.number != number) continue;
            if (pass == 1) PEN_TRY(model_soft_text(&reader, &field, arena, &(*out_texts)[count]));
            count++;
        }
    }
    *out_count = count;
    return PEN_OK;
}
