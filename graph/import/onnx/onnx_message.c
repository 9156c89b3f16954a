#include "graph/import/onnx/onnx_model.h"

#include <inttypes.h>
#include <string.h>

#include "graph/import/onnx/onnx_origin.h"
#include "graph/import/onnx/onnx_value_reader.h"

#define MODEL_FIELD_LIMIT 32 // field numbers that are counted

// ---- attributes

// Twice through the message, to count and to fill: lists may be packed or not, or both.
static pen_status attribute_read_list(const pen_protobuf_reader *message, uint32_t number,
                                      pen_arena *arena, pen_onnx_attribute *attribute) {
    const pen_protobuf_wire wire = number == 8 ? PEN_PROTOBUF_VARINT : PEN_PROTOBUF_FIXED32;
    int64_t *integers = NULL;
    double *numbers = NULL;
    uint64_t count = 0;
    for (int pass = 0; pass < 2; pass++) { // counts, then fills
        pen_protobuf_reader reader = *message;
        if (pass == 1 && wire == PEN_PROTOBUF_VARINT) PEN_TRY(PEN_NEW(arena, count, &integers));
        if (pass == 1 && wire == PEN_PROTOBUF_FIXED32) PEN_TRY(PEN_NEW(arena, count, &numbers));
        count = 0;
        pen_protobuf_field field;
        PEN_TRY(pen_protobuf_next(&reader, &field));
        while (field.number != 0) {
            pen_protobuf_scalars list = {.reader = {0}};
            if (field.number == number) {
                PEN_TRY(pen_protobuf_scalars_open(&reader, &field, wire, &list));
            }
            while (field.number == number) {
                uint64_t bits;
                bool more;
                PEN_TRY(pen_protobuf_scalars_next(&list, &bits, &more));
                if (!more) break;
                float single;
                memcpy(&single, &bits, sizeof single);
                if (integers != NULL) memcpy(&integers[count], &bits, sizeof bits);
                if (numbers != NULL) numbers[count] = (double)single;
                count++;
            }
            PEN_TRY(pen_protobuf_next(&reader, &field));
        }
    }
    if (count > UINT32_MAX) return pen_protobuf_error(message, "an attribute's list is too long");
    attribute->count = (uint32_t)count;
    attribute->integers = integers;
    attribute->numbers = numbers;
    return PEN_OK;
}

// The strings of a list; those too long for a name are errors.
static pen_status attribute_read_texts(const pen_protobuf_reader *message, uint32_t count,
                                       pen_arena *arena, pen_onnx_attribute *attribute) {
    pen_protobuf_reader reader = *message;
    PEN_TRY(PEN_NEW(arena, count, &attribute->texts));
    while (true) {
        pen_protobuf_field field;
        PEN_TRY(pen_protobuf_next(&reader, &field));
        if (field.number == 0) return PEN_OK;
        if (field.number != 9 || attribute->count == count) continue;
        PEN_TRY(pen_protobuf_name(&reader, &field, arena, &attribute->texts[attribute->count++]));
    }
}

// What we map nothing of is passed over; lists are read later, when the type is known.
static pen_status attribute_read_field(const pen_protobuf_reader *reader,
                                       const pen_protobuf_field *field, pen_arena *arena,
                                       pen_onnx_attribute *attribute) {
    float single;
    switch (field->number) {
    case 1:
        return pen_protobuf_name(reader, field, arena, &attribute->name);
    case 2:
        PEN_TRY(pen_protobuf_float(reader, field, &single));
        attribute->number = (double)single;
        return PEN_OK;
    case 3:
        return pen_protobuf_int(reader, field, &attribute->integer);
    case 4: // text that is too long or binary stays ""; nothing we map has such
        if (field->length > PEN_NAME_BYTES_LIMIT) return PEN_OK;
        return pen_arena_copy_text(arena, field->bytes == NULL ? "" : (const char *)field->bytes,
                                   field->length, &attribute->text);
    case 5:
        return pen_protobuf_open(reader, field, &attribute->tensor);
    case 6:
        return pen_protobuf_open(reader, field, &attribute->graph);
    case 21:
        return pen_protobuf_name(reader, field, arena, &attribute->reference);
    default:
        return PEN_OK;
    }
}

// A list of strings becomes one text, its words separated by spaces; one that is too long stays "".
static pen_status attribute_read_words(const pen_protobuf_reader *message, pen_arena *arena,
                                       pen_onnx_attribute *attribute) {
    char words[PEN_NAME_BYTES_LIMIT + 1];
    uint64_t length = 0;
    pen_protobuf_reader reader = *message;
    pen_protobuf_field field;
    PEN_TRY(pen_protobuf_next(&reader, &field));
    while (field.number != 0) {
        if (field.number == 9 && field.length < PEN_NAME_BYTES_LIMIT - length) {
            if (length > 0) words[length++] = ' ';
            if (field.length > 0) memcpy(words + length, field.bytes, field.length);
            length += field.length;
        } else if (field.number == 9) {
            return PEN_OK; // nothing we map has such
        }
        PEN_TRY(pen_protobuf_next(&reader, &field));
    }
    return pen_arena_copy_text(arena, words, length, &attribute->text);
}

// The oldest files do not say the type; the fields that are there do.
static pen_onnx_attribute_type attribute_type(int64_t stated, const uint32_t *counts) {
    if (stated >= PEN_ONNX_FLOAT && stated <= PEN_ONNX_STRINGS) {
        return (pen_onnx_attribute_type)stated;
    }
    if (stated != 0) return PEN_ONNX_OTHER;
    if (counts[2] > 0) return PEN_ONNX_FLOAT;
    if (counts[3] > 0) return PEN_ONNX_INT;
    if (counts[4] > 0) return PEN_ONNX_STRING;
    if (counts[5] > 0) return PEN_ONNX_TENSOR;
    if (counts[6] > 0) return PEN_ONNX_GRAPH;
    if (counts[7] > 0) return PEN_ONNX_FLOATS;
    if (counts[8] > 0) return PEN_ONNX_INTS;
    if (counts[9] > 0) return PEN_ONNX_STRINGS;
    return PEN_ONNX_UNDEFINED;
}

// Old files leave the type out: then it follows from the fields that are there.
static pen_status attribute_read(const pen_protobuf_reader *message, pen_arena *arena,
                                 pen_onnx_attribute *out_attribute) {
    pen_onnx_attribute attribute = {.name = "", .text = ""};
    pen_protobuf_reader reader = *message;
    uint32_t counts[MODEL_FIELD_LIMIT];
    PEN_TRY(pen_protobuf_count(message, MODEL_FIELD_LIMIT, counts));
    int64_t stated = 0;
    while (true) {
        pen_protobuf_field field;
        PEN_TRY(pen_protobuf_next(&reader, &field));
        if (field.number == 0) break;
        if (field.number == 20) PEN_TRY(pen_protobuf_int(&reader, &field, &stated));
        PEN_TRY(attribute_read_field(&reader, &field, arena, &attribute));
    }
    attribute.type = attribute_type(stated, counts);
    if (attribute.type == PEN_ONNX_INTS) {
        PEN_TRY(attribute_read_list(message, 8, arena, &attribute));
    } else if (attribute.type == PEN_ONNX_FLOATS) {
        PEN_TRY(attribute_read_list(message, 7, arena, &attribute));
    } else if (attribute.type == PEN_ONNX_STRINGS && counts[9] <= PEN_NODE_ARITY_LIMIT &&
               strcmp(attribute.name, "xs") == 0) { // names of values
        PEN_TRY(attribute_read_texts(message, counts[9], arena, &attribute));
    } else if (attribute.type == PEN_ONNX_STRINGS) {
        attribute.count = counts[9];
        PEN_TRY(attribute_read_words(message, arena, &attribute));
    } else if (attribute.type == PEN_ONNX_GRAPH && counts[6] == 0) {
        attribute.type = PEN_ONNX_UNDEFINED;
    } else if (attribute.type == PEN_ONNX_TENSOR && counts[5] == 0) {
        attribute.tensor = (pen_protobuf_reader){.origin = message->origin,
                                                 .cursor = message->end,
                                                 .end = message->end,
                                                 .depth = message->depth + 1};
    }
    *out_attribute = attribute;
    return PEN_OK;
}

const pen_onnx_attribute *pen_onnx_attribute_find(const pen_onnx_node *node, const char *name) {
    for (uint32_t i = 0; i < node->attribute_count; i++) {
        if (strcmp(node->attributes[i].name, name) == 0) return &node->attributes[i];
    }
    return NULL;
}

// ---- nodes

static int64_t opset_version(const pen_onnx_opset *opsets, uint32_t count, const char *domain) {
    for (uint32_t i = 0; i < count; i++) {
        if (strcmp(opsets[i].domain, domain) == 0) return opsets[i].version;
    }
    return 0;
}

static const char *model_domain(const char *domain) {
    return strcmp(domain, "ai.onnx") == 0 ? "" : domain; // two names for one
}

// Fields are counted first, so that arrays are made once and limits hold before anything is
// allocated.
static pen_status node_read(const pen_protobuf_reader *message, pen_arena *arena,
                            pen_onnx_node *out_node) {
    pen_onnx_node node = {.name = "", .op_type = "", .domain = ""};
    uint32_t counts[MODEL_FIELD_LIMIT];
    PEN_TRY(pen_protobuf_count(message, MODEL_FIELD_LIMIT, counts));
    if (counts[1] > PEN_NODE_ARITY_LIMIT || counts[2] > PEN_NODE_ARITY_LIMIT) {
        return pen_protobuf_error(message, "a node has more than %d operands",
                                  PEN_NODE_ARITY_LIMIT);
    }
    if (counts[5] > PEN_NODE_ATTRIBUTES_LIMIT) {
        return pen_protobuf_error(message, "a node has more than %d attributes",
                                  PEN_NODE_ATTRIBUTES_LIMIT);
    }
    PEN_TRY(PEN_NEW(arena, counts[1], &node.inputs));
    PEN_TRY(PEN_NEW(arena, counts[2], &node.outputs));
    PEN_TRY(PEN_NEW(arena, counts[5], &node.attributes));
    pen_protobuf_reader reader = *message;
    while (true) {
        pen_protobuf_field field;
        pen_protobuf_reader inner;
        PEN_TRY(pen_protobuf_next(&reader, &field));
        if (field.number == 0) break;
        const char **name = NULL;
        if (field.number == 1) name = &node.inputs[node.input_count++];
        if (field.number == 2) name = &node.outputs[node.output_count++];
        if (field.number == 3) name = &node.name;
        if (field.number == 4) name = &node.op_type;
        if (field.number == 7) name = &node.domain;
        if (name != NULL) PEN_TRY(pen_protobuf_name(&reader, &field, arena, name));
        if (field.number != 5 && field.number != 9) continue;
        PEN_TRY(pen_protobuf_open(&reader, &field, &inner));
        if (field.number == 9) {
            pen_onnx_entry entry;
            PEN_TRY(pen_onnx_entry_read(&inner, &entry));
            pen_onnx_origin_read_padding(&entry, &node.has_padding, &node.padding_row);
            node.trains =
                node.trains || pen_onnx_entry_is(&entry, PEN_ONNX_TRAINING_KEY, PEN_ONNX_TRAINING);
            continue;
        }
        PEN_TRY(attribute_read(&inner, arena, &node.attributes[node.attribute_count]));
        node.attribute_count += 1;
    }
    node.domain = model_domain(node.domain);
    *out_node = node;
    return PEN_OK;
}

static pen_status opset_read(const pen_protobuf_reader *message, pen_arena *arena,
                             pen_onnx_opset *out_opset) {
    pen_onnx_opset opset = {.domain = ""};
    pen_protobuf_reader reader = *message;
    while (true) {
        pen_protobuf_field field;
        PEN_TRY(pen_protobuf_next(&reader, &field));
        if (field.number == 0) break;
        if (field.number == 1) PEN_TRY(pen_protobuf_name(&reader, &field, arena, &opset.domain));
        if (field.number == 2) PEN_TRY(pen_protobuf_int(&reader, &field, &opset.version));
    }
    opset.domain = model_domain(opset.domain);
    *out_opset = opset;
    return PEN_OK;
}

// ---- functions, graph and model

// Room for the lists was made by function_read, which counted the fields.
static pen_status function_read_field(const pen_protobuf_reader *reader,
                                      const pen_protobuf_field *field, pen_arena *arena,
                                      pen_onnx_function *function) {
    pen_protobuf_reader inner;
    switch (field->number) {
    case 1:
        return pen_protobuf_name(reader, field, arena, &function->name);
    case 4:
        return pen_protobuf_name(reader, field, arena, &function->inputs[function->input_count++]);
    case 5:
        return pen_protobuf_name(reader, field, arena,
                                 &function->outputs[function->output_count++]);
    case 7:
        PEN_TRY(pen_protobuf_open(reader, field, &inner));
        return node_read(&inner, arena, &function->nodes[function->node_count++]);
    case 10:
        return pen_protobuf_name(reader, field, arena, &function->domain);
    default:
        return PEN_OK;
    }
}

// Nodes get their versions at the end, for the list of operator sets may follow them.
static pen_status function_read(const pen_protobuf_reader *message, pen_arena *arena,
                                pen_onnx_function *out_function) {
    pen_onnx_function function = {.name = "", .domain = ""};
    uint32_t counts[MODEL_FIELD_LIMIT];
    PEN_TRY(pen_protobuf_count(message, MODEL_FIELD_LIMIT, counts));
    pen_onnx_opset *opsets;
    uint32_t opset_count = 0;
    if (counts[9] > PEN_OPSET_COUNT_LIMIT || counts[4] > PEN_NODE_ARITY_LIMIT ||
        counts[5] > PEN_NODE_ARITY_LIMIT) {
        return pen_protobuf_error(message,
                                  "a function has more than %d operator sets, or %d "
                                  "operands",
                                  PEN_OPSET_COUNT_LIMIT, PEN_NODE_ARITY_LIMIT);
    }
    PEN_TRY(PEN_NEW(arena, counts[4], &function.inputs));
    PEN_TRY(PEN_NEW(arena, counts[5], &function.outputs));
    PEN_TRY(PEN_NEW(arena, counts[7], &function.nodes));
    PEN_TRY(PEN_NEW(arena, counts[9], &opsets));
    pen_protobuf_reader reader = *message;
    while (true) {
        pen_protobuf_field field;
        pen_protobuf_reader inner;
        PEN_TRY(pen_protobuf_next(&reader, &field));
        if (field.number == 0) break;
        PEN_TRY(function_read_field(&reader, &field, arena, &function));
        if (field.number != 9) continue;
        PEN_TRY(pen_protobuf_open(&reader, &field, &inner));
        PEN_TRY(opset_read(&inner, arena, &opsets[opset_count++]));
    }
    for (uint32_t i = 0; i < function.node_count; i++) {
        function.nodes[i].opset = opset_version(opsets, opset_count, function.nodes[i].domain);
    }
    function.domain = model_domain(function.domain);
    if (counts[11] > 0)
        function.name = ""; // attributes with defaults: nothing calls it, so that
                            // its callers are listed as unsupported
    *out_function = function;
    return PEN_OK;
}

// Room for the lists was made by graph_read, which counted the fields.
static pen_status graph_read_field(const pen_protobuf_reader *reader,
                                   const pen_protobuf_field *field, pen_arena *arena,
                                   pen_onnx_model *model) {
    pen_protobuf_reader inner;
    pen_onnx_node *node;
    switch (field->number) {
    case 1:
        PEN_TRY(pen_protobuf_open(reader, field, &inner));
        node = &model->nodes[model->node_count];
        PEN_TRY(pen_status_add_context(node_read(&inner, arena, node), "in node %u",
                                       model->node_count));
        node->opset = opset_version(model->opsets, model->opset_count, node->domain);
        node->position = model->node_count++;
        return PEN_OK;
    case 2:
        return pen_protobuf_name(reader, field, arena, &model->graph_name);
    case 5:
        PEN_TRY(pen_protobuf_open(reader, field, &inner));
        return pen_onnx_tensor_open(&inner, arena, &model->tensors[model->tensor_count++]);
    case 11:
        PEN_TRY(pen_protobuf_open(reader, field, &inner));
        return pen_onnx_value_read(&inner, arena, &model->inputs[model->input_count++]);
    case 12:
        PEN_TRY(pen_protobuf_open(reader, field, &inner));
        return pen_onnx_value_read(&inner, arena, &model->outputs[model->output_count++]);
    default:
        return PEN_OK;
    }
}

// Counts, then reads: limits hold before anything is allocated.
static pen_status graph_read(const pen_protobuf_reader *message, pen_arena *arena,
                             pen_onnx_model *model) {
    uint32_t counts[MODEL_FIELD_LIMIT];
    PEN_TRY(pen_protobuf_count(message, MODEL_FIELD_LIMIT, counts));
    if (counts[1] > PEN_NODE_COUNT_LIMIT) {
        return pen_protobuf_error(message, "the graph has more than %u nodes",
                                  PEN_NODE_COUNT_LIMIT);
    }
    if (counts[12] > PEN_MODEL_OUTPUTS_LIMIT) {
        return pen_protobuf_error(message, "the graph has more than %d outputs",
                                  PEN_MODEL_OUTPUTS_LIMIT);
    }
    PEN_TRY(PEN_NEW(arena, counts[1], &model->nodes));
    PEN_TRY(PEN_NEW(arena, counts[5], &model->tensors));
    PEN_TRY(PEN_NEW(arena, counts[11], &model->inputs));
    PEN_TRY(PEN_NEW(arena, counts[12], &model->outputs));
    model->sparse_count = counts[15];
    pen_protobuf_reader reader = *message;
    while (true) {
        pen_protobuf_field field;
        PEN_TRY(pen_protobuf_next(&reader, &field));
        if (field.number == 0) return PEN_OK;
        PEN_TRY(graph_read_field(&reader, &field, arena, model));
    }
}

pen_status pen_onnx_model_read_body(const pen_onnx_model *model,
                                    const pen_onnx_attribute *attribute, pen_arena *arena,
                                    pen_onnx_model *out_body) {
    pen_onnx_model body = {.producer = model->producer,
                           .is_unbiased = model->is_unbiased,
                           .widens = model->widens,
                           .graph_name = "",
                           .opset = model->opset,
                           .opset_count = model->opset_count,
                           .opsets = model->opsets};
    PEN_ASSERT(attribute->type == PEN_ONNX_GRAPH);
    PEN_TRY(graph_read(&attribute->graph, arena, &body));
    body.graph = attribute->graph;
    *out_body = body;
    return PEN_OK;
}

// Everything around the graph, which needs the opsets and may stand before them.
static pen_status model_read_frame(const pen_protobuf_reader *message, pen_arena *arena,
                                   pen_onnx_model *model, pen_protobuf_field *out_graph) {
    pen_protobuf_reader reader = *message;
    while (true) {
        pen_protobuf_field field;
        pen_protobuf_reader inner;
        PEN_TRY(pen_protobuf_next(&reader, &field));
        if (field.number == 0) return PEN_OK;
        if (field.number == 2) {
            PEN_TRY(pen_protobuf_name(&reader, &field, arena, &model->producer));
            if (strcmp(model->producer, "pytorch") == 0) model->is_unbiased = true;
        } else if (field.number == 14) {
            pen_onnx_entry entry;
            PEN_TRY(pen_protobuf_open(&reader, &field, &inner));
            PEN_TRY(pen_onnx_entry_read(&inner, &entry));
            model->is_unbiased =
                model->is_unbiased ||
                pen_onnx_entry_is(&entry, PEN_ONNX_VARIANCE_KEY, PEN_ONNX_VARIANCE_UNBIASED);
        } else if (field.number == 7) {
            *out_graph = field;
        } else if (field.number == 8) {
            PEN_TRY(pen_protobuf_open(&reader, &field, &inner));
            PEN_TRY(opset_read(&inner, arena, &model->opsets[model->opset_count++]));
        } else if (field.number == 25) {
            PEN_TRY(pen_protobuf_open(&reader, &field, &inner));
            PEN_TRY(function_read(&inner, arena, &model->functions[model->function_count++]));
        }
    }
}

static pen_status model_check_opset(pen_onnx_model *model) {
    model->opset = opset_version(model->opsets, model->opset_count, "");
    if (model->opset_count == 0) {
        return pen_error(PEN_INVALID_INPUT, "the model names no operator set; is it ONNX?");
    }
    const bool in_range =
        model->opset >= PEN_ONNX_OPSET_FIRST && model->opset <= PEN_ONNX_OPSET_LAST;
    if (model->opset == 0 || in_range) return PEN_OK; // 0: only operators of other domains
    return pen_error(PEN_UNSUPPORTED,
                     "the model is of operator set %" PRId64 "; %d to %d are possible",
                     model->opset, PEN_ONNX_OPSET_FIRST, PEN_ONNX_OPSET_LAST);
}

// Operator sets and functions are read before the graph, whose nodes depend on them and may stand
// before them.
pen_status pen_onnx_model_read(const void *bytes, size_t length, pen_arena *arena,
                               pen_onnx_model *out_model) {
    pen_onnx_model model = {.producer = "", .graph_name = ""};
    pen_protobuf_reader message, graph;
    if (length == 0) return pen_error(PEN_INVALID_INPUT, "the file is empty; is it ONNX?");
    pen_protobuf_init(&message, bytes, length);
    uint32_t counts[MODEL_FIELD_LIMIT];
    PEN_TRY(pen_protobuf_count(&message, MODEL_FIELD_LIMIT, counts));
    if (counts[7] != 1) {
        return pen_error(PEN_INVALID_INPUT, "the file has %u graphs, expected one; is it ONNX?",
                         counts[7]);
    }
    if (counts[8] > PEN_OPSET_COUNT_LIMIT || counts[25] > PEN_FUNCTION_COUNT_LIMIT) {
        return pen_error(PEN_INVALID_INPUT,
                         "the model has %u operator sets and %u functions, at most %d and %d are "
                         "possible",
                         counts[8], counts[25], PEN_OPSET_COUNT_LIMIT, PEN_FUNCTION_COUNT_LIMIT);
    }
    PEN_TRY(PEN_NEW(arena, counts[8], &model.opsets));
    PEN_TRY(PEN_NEW(arena, counts[25], &model.functions));
    pen_protobuf_field field = {0};
    PEN_TRY(model_read_frame(&message, arena, &model, &field));
    PEN_TRY(model_check_opset(&model));
    PEN_TRY(pen_protobuf_open(&message, &field, &graph));
    PEN_TRY(graph_read(&graph, arena, &model));
    model.graph = graph;
    *out_model = model;
    return PEN_OK;
}
