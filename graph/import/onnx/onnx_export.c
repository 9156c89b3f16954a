#include "graph/import/onnx/onnx_export.h"

#include <string.h>

#include "base/format/protobuf_writer.h"
#include "base/integer.h"
#include "base/name_map.h"
#include "base/system/file.h"
#include "base/text.h"
#include "graph/import/onnx/onnx_constant.h"
#include "graph/import/onnx/onnx_initializer.h"
#include "graph/import/onnx/onnx_mapping.h"
#include "graph/import/onnx/onnx_place.h"
#include "graph/import/onnx/onnx_tensor.h"
#include "graph/import/onnx/onnx_value.h"
#include "graph/op.h"
#include "graph/ops/product/recurrent_geometry.h"
#include "graph/passes/fuse/spell_layers.h"

#define EXPORT_OPSET 17
#define EXPORT_IR_VERSION 8
#define EXPORT_INLINE_BYTES_LIMIT (INT32_MAX - (64 << 20)) // protobuf's, less room for the nodes
#define EXPORT_ALIGNMENT 64                                // of tensors in a file of their own
#define EXPORT_NAMES_SHOWN 3

typedef struct exporter {
    const pen_graph *graph;
    const pen_onnx_export_options *options;
    const char *data_name;               // of the file of contents; NULL: they are in the model
    const pen_node_place *const *places; // [node_count], or NULL
    bool *node_used;                     // [node_count]
    bool *value_used;                    // [value_count]
    uint64_t *offsets;                   // [value_count], in the file of contents
    const char **widened; // [value_count] what a Cast makes of an initializer of 16 bits; or NULL
} exporter;

static bool export_is_initializer(const pen_value *value) {
    return value->kind == PEN_VALUE_PARAMETER || value->kind == PEN_VALUE_STATE ||
           (value->kind == PEN_VALUE_CONSTANT && !pen_onnx_constant_is_node(value));
}

static bool export_is_output(const pen_graph *graph, uint32_t value) {
    for (uint32_t i = 0; i < pen_graph_output_count(graph); i++) {
        if (pen_graph_output(graph, i).index == value) return true;
    }
    return false;
}

static bool export_op_is(const pen_node *node, const char *op_name) {
    return strcmp(node->op->name, op_name) == 0;
}

// A reduction that takes its axes as an attribute in operator set 17: all but the sum.
static bool export_axes_are_attribute(const pen_node *node) {
    return strncmp(node->op->name, "reduce_", 7) == 0 && !export_op_is(node, "reduce_sum");
}

static uint32_t export_output_count(const exporter *export, const pen_node *node) {
    uint32_t count = node->output_count;
    if (export_op_is(node, "batch_normalization")) {
        const bool trains = !export->options->for_inference && pen_node_int(node, "training_mode");
        count = trains ? 3 : 1;
    }
    if (export_op_is(node, "lstm") && count > 3) count = 3; // the others are for the gradient
    if (export_op_is(node, "gru") && count > 2) count = 2;
    if (count > node->output_count) count = node->output_count;
    while (count > 0 && !pen_value_is(node->outputs[count - 1])) {
        count--;
    }
    return count;
}

static uint32_t export_input_count(const exporter *export, const pen_node *node) {
    uint32_t count = node->input_count;
    if (export_axes_are_attribute(node) && count > 1) count = 1;
    if (export_op_is(node, "dropout") && export->options->for_inference && count > 2) count = 2;
    while (count > 0 && !pen_value_is(node->inputs[count - 1])) {
        count--;
    }
    return count;
}

// ---- what is written

// Marks what the outputs depend on; producers stand before readers.
static pen_status export_mark(exporter *export, pen_arena *arena) {
    const pen_graph *graph = export->graph;
    PEN_TRY(PEN_NEW(arena, pen_graph_node_count(graph), &export->node_used));
    PEN_TRY(PEN_NEW(arena, pen_graph_value_count(graph), &export->value_used));
    PEN_TRY(PEN_NEW(arena, pen_graph_value_count(graph), &export->offsets));
    for (uint32_t i = 0; i < pen_graph_output_count(graph); i++) {
        export->value_used[pen_graph_output(graph, i).index] = true;
    }
    for (uint32_t n = pen_graph_node_count(graph); n-- > 0;) {
        const pen_node *node = pen_graph_node(graph, (pen_node_id){n});
        bool used = false;
        for (uint32_t i = 0; i < node->output_count; i++) {
            const pen_value_id output = node->outputs[i];
            if (!pen_value_is(output)) continue;
            const bool is_computed = pen_graph_value(graph, output)->kind == PEN_VALUE_COMPUTED;
            used = used || (is_computed && export->value_used[output.index]);
        }
        if (!used) continue;
        export->node_used[n] = true;
        for (uint32_t i = 0; i < export_input_count(export, node); i++) {
            if (pen_value_is(node->inputs[i])) export->value_used[node->inputs[i].index] = true;
        }
    }
    return PEN_OK;
}

// Attributes of ours that operator set 17 does not have. At their default they are left out.
static bool export_is_own(const pen_node *node, const char *attribute) {
    static const char *const own[][2] = {
        {"average_pool", "dilations"}, {"batch_normalization", "unbiased"},
        {"matmul", "transA"},          {"matmul", "transB"},
        {"scatter_nd", "batch_dims"},  {"space_to_depth", "mode"},
    };
    for (size_t i = 0; i < sizeof own / sizeof own[0]; i++) {
        if (export_op_is(node, own[i][0]) && strcmp(own[i][1], attribute) == 0) return true;
    }
    return export_axes_are_attribute(node) && strcmp(attribute, "noop_with_empty_axes") == 0;
}

static bool export_attribute_is_default(const pen_attribute_schema *schema,
                                        const pen_attribute_value *value) {
    if (strcmp(schema->name, "dilations") == 0) {
        uint32_t ones = 0;
        while (ones < value->count && value->integers[ones] == 1) {
            ones++;
        }
        return ones == value->count;
    }
    if (!schema->has_default) return false;
    if (schema->kind == PEN_ATTRIBUTE_INT) return value->integer == schema->integer;
    if (schema->kind == PEN_ATTRIBUTE_TEXT) return strcmp(value->text, schema->text) == 0;
    return value->number == schema->number;
}

static bool export_attributes_fit(const pen_node *node) {
    for (uint32_t i = 0; i < node->op->attribute_count; i++) {
        const pen_attribute_schema *schema = &node->op->attributes[i];
        if (!node->attributes[i].present || !export_is_own(node, schema->name)) continue;
        if (strcmp(schema->name, "unbiased") == 0) continue; // told for the whole model
        if (!export_attribute_is_default(schema, &node->attributes[i])) return false;
    }
    return true;
}

static bool export_node_fits(const exporter *export, const pen_node *node) {
    if (node->role != PEN_ROLE_FORWARD) return false;
    const pen_onnx_mapping *mapping = pen_onnx_mapping_of_op(node->op->name);
    if (mapping == NULL || mapping->opset_first > EXPORT_OPSET) return false;
    if (!export_attributes_fit(node)) return false;
    if (!export_axes_are_attribute(node) || node->input_count < 2) return true;
    const pen_value_id axes = node->inputs[1];
    return !pen_value_is(axes) || pen_graph_value(export->graph, axes)->kind == PEN_VALUE_CONSTANT;
}

static pen_status export_check(const exporter *export, pen_arena *arena) {
    pen_text text;
    pen_text_init(&text, arena);
    uint32_t count = 0;
    for (uint32_t n = 0; n < pen_graph_node_count(export->graph); n++) {
        const pen_node *node = pen_graph_node(export->graph, (pen_node_id){n});
        if (!export->node_used[n] || export_node_fits(export, node)) continue;
        count++;
        if (count > EXPORT_NAMES_SHOWN) continue;
        pen_text_print(&text, "%s%s '%s'", count > 1 ? ", " : "", node->op->name, node->name);
    }
    if (count == 0) return PEN_OK;
    const char *names;
    PEN_TRY(pen_text_finish(&text, &names));
    return pen_error(PEN_UNSUPPORTED,
                     "operator set %d of ONNX has no form for %u of the nodes, as they are: %s%s",
                     EXPORT_OPSET, count, names, count > EXPORT_NAMES_SHOWN ? ", …" : "");
}

// ---- tensors

// Gives what nodes read in the place of initializers of 16 bits a name. Outputs of the graph stay
// what they are.
static pen_status export_widen(exporter *export, pen_arena *arena) {
    const pen_graph *graph = export->graph;
    pen_name_map names;
    PEN_TRY(PEN_NEW(arena, pen_graph_value_count(graph), &export->widened));
    if (!export->options->contents.keeps_halves) return PEN_OK;
    pen_name_map_init(&names, arena);
    for (uint32_t v = 0; v < pen_graph_value_count(graph); v++) {
        PEN_TRY(pen_name_map_add(&names, pen_value_name(graph, (pen_value_id){v}), v));
    }
    for (uint32_t v = 0; v < pen_graph_value_count(graph); v++) {
        const pen_value *value = pen_graph_value(graph, (pen_value_id){v});
        const bool is_half = export_is_initializer(value) && pen_element_is_half(value->stored);
        const char *name = value->name;
        if (!is_half || !export->value_used[v] || export_is_output(graph, v)) continue;
        do {
            PEN_TRY(pen_arena_format(arena, &name, "%s_%s", name,
                                     pen_element_name(value->type.element)));
        } while (pen_name_map_find(&names, name) != PEN_NAME_MAP_NONE);
        PEN_TRY(pen_name_map_add(&names, name, v));
        export->widened[v] = name;
    }
    return PEN_OK;
}

static pen_onnx_initializer export_initializer(const exporter *export, pen_value_id id) {
    pen_export_contents contents = export->options->contents;
    contents.keeps_halves = export->widened[id.index] != NULL;
    return (pen_onnx_initializer){.name = pen_value_name(export->graph, id),
                                  .tensor =
                                      pen_export_contents_tensor(&contents, export->graph, id),
                                  .data_name = export->data_name,
                                  .offset = export->offsets[id.index]};
}

// What a node reads.
static const char *export_input_name(const exporter *export, pen_value_id input) {
    if (!pen_value_is(input)) return "";
    const char *widened = export->widened[input.index];
    return widened != NULL ? widened : pen_value_name(export->graph, input);
}

static void export_write_widenings(pen_protobuf_writer *writer, const exporter *export) {
    for (uint32_t v = 0; v < pen_graph_value_count(export->graph); v++) {
        const pen_value *value = pen_graph_value(export->graph, (pen_value_id){v});
        const pen_onnx_widening widening = {value->name, export->widened[v], value->type.element};
        if (widening.output == NULL) continue;
        pen_protobuf_write_message(writer, 1, pen_onnx_widening_write, &widening);
    }
}

// ---- attributes

// AttributeProto.type
enum {
    EXPORT_FLOAT = 1,
    EXPORT_INT,
    EXPORT_STRING,
    EXPORT_TENSOR,
    EXPORT_FLOATS = 6,
    EXPORT_INTS,
    EXPORT_STRINGS
};

typedef struct export_attribute {
    const char *name;
    pen_attribute_kind kind;
    const pen_attribute_value *value;
} export_attribute;

// One attribute of ours, whose kinds are also ONNX's.
static void export_write_attribute(pen_protobuf_writer *writer, const void *context) {
    const export_attribute *attribute = context;
    const pen_attribute_value *value = attribute->value;
    int64_t type = EXPORT_INT;
    pen_protobuf_write_text(writer, 1, attribute->name);
    switch (attribute->kind) {
    case PEN_ATTRIBUTE_INT:
        pen_protobuf_write_int(writer, 3, value->integer);
        break;
    case PEN_ATTRIBUTE_FLOAT:
        type = EXPORT_FLOAT;
        pen_protobuf_write_float(writer, 2, (float)value->number);
        break;
    case PEN_ATTRIBUTE_TEXT:
        type = EXPORT_STRING;
        pen_protobuf_write_text(writer, 4, value->text);
        break;
    case PEN_ATTRIBUTE_INTS:
        type = EXPORT_INTS;
        for (uint32_t i = 0; i < value->count; i++) {
            pen_protobuf_write_int(writer, 8, value->integers[i]);
        }
        break;
    case PEN_ATTRIBUTE_FLOATS:
        type = EXPORT_FLOATS;
        for (uint32_t i = 0; i < value->count; i++) {
            pen_protobuf_write_float(writer, 7, (float)value->numbers[i]);
        }
        break;
    }
    pen_protobuf_write_int(writer, 20, type);
}

// The one number of constant_of_shape, as a tensor of one element.
static void export_write_number(pen_protobuf_writer *writer, const void *context) {
    const pen_node *node = context;
    const double number = pen_node_float(node, "value");
    pen_element_type element = PEN_FLOAT32;
    pen_status_ignore(pen_element_find(pen_node_text(node, "element"), &element),
                      "the op's shape rule has checked it");
    pen_protobuf_write_int(writer, 1, 1);
    pen_protobuf_write_int(writer, 2, pen_onnx_data_type(element));
    uint8_t bytes[sizeof(double)]; // of the widest element
    pen_element_write(element, bytes, 0, number);
    pen_protobuf_write_bytes(writer, 9, bytes, pen_element_bytes(element));
}

static void export_write_number_attribute(pen_protobuf_writer *writer, const void *context) {
    pen_protobuf_write_text(writer, 1, "value");
    pen_protobuf_write_message(writer, 5, export_write_number, context);
    pen_protobuf_write_int(writer, 20, EXPORT_TENSOR);
}

// ---- nodes

typedef struct export_node {
    const exporter *export;
    const pen_node *node;
    const pen_node_place *place; // or NULL
} export_node;

static void export_write_element(pen_protobuf_writer *writer, const char *name, const char *text) {
    pen_element_type element = PEN_ELEMENT_UNKNOWN;
    pen_status_ignore(pen_element_find(text, &element), "the op's shape rule has checked it");
    const pen_attribute_value value = {.integer = pen_onnx_data_type(element)};
    const export_attribute attribute = {name, PEN_ATTRIBUTE_INT, &value};
    pen_protobuf_write_message(writer, 5, export_write_attribute, &attribute);
}

// Axes of a reduction, back to an attribute. A reduction over nothing in particular has none.
static void export_write_axes(pen_protobuf_writer *writer, const export_node *written) {
    const pen_node *node = written->node;
    uint32_t count = 0;
    const int64_t *axes = NULL;
    if (node->input_count < 2 || !pen_value_is(node->inputs[1])) return;
    const pen_status status =
        pen_value_read_ints(written->export->graph, node->inputs[1], &count, &axes);
    if (status != PEN_OK) {
        writer->failed = true; // only memory can be out here
        pen_status_ignore(status, "the writer reports it");
        return;
    }
    if (count == 0) return;
    const pen_attribute_value value = {.count = count, .integers = axes};
    const export_attribute attribute = {"axes", PEN_ATTRIBUTE_INTS, &value};
    pen_protobuf_write_message(writer, 5, export_write_attribute, &attribute);
}

// The words of a text, as a list of strings; activations by the names that they have in ONNX.
static void export_write_words(pen_protobuf_writer *writer, const void *context) {
    const export_attribute *attribute = context;
    pen_protobuf_write_text(writer, 1, attribute->name);
    const char *word = attribute->value->text + strspn(attribute->value->text, " ");
    while (*word != '\0') {
        const char *name = pen_recurrent_activation_name(word); // the shape rule has checked it
        pen_protobuf_write_text(writer, 9, name != NULL ? name : "");
        word += strcspn(word, " ");
        word += strspn(word, " ");
    }
    pen_protobuf_write_int(writer, 20, EXPORT_STRINGS);
}

// Attributes that are ours, or have another form in ONNX. Returns whether `name` was one.
static bool export_write_special(pen_protobuf_writer *writer, const export_node *written,
                                 const char *name, const pen_attribute_value *value) {
    const pen_node *node = written->node;
    if (export_op_is(node, "constant_of_shape")) {
        if (strcmp(name, "value") == 0) {
            pen_protobuf_write_message(writer, 5, export_write_number_attribute, node);
        }
        return true;
    }
    if (strcmp(name, "to") == 0 || strcmp(name, "dtype") == 0 ||
        strcmp(name, "output_datatype") == 0) {
        export_write_element(writer, name, value->text);
        return true;
    }
    if (strcmp(name, "activations") == 0) {
        const export_attribute attribute = {name, PEN_ATTRIBUTE_TEXT, value};
        pen_protobuf_write_message(writer, 5, export_write_words, &attribute);
        return true;
    }
    if (strcmp(name, "training_mode") == 0 && written->export->options->for_inference) {
        const pen_attribute_value off = {.integer = 0};
        const export_attribute attribute = {name, PEN_ATTRIBUTE_INT, &off};
        pen_protobuf_write_message(writer, 5, export_write_attribute, &attribute);
        return true;
    }
    return export_is_own(node, name);
}

// Batch normalization by the batch's statistics, dropout that drops, and what stops gradients.
static bool export_trains(const exporter *export, const pen_node *node) {
    if (node->op->stops_gradient) return true;
    if (export_op_is(node, "batch_normalization")) return pen_node_int(node, "training_mode") != 0;
    if (!export_op_is(node, "dropout") || node->input_count < 3) return false;
    if (!pen_value_is(node->inputs[2])) return false;
    const pen_value *mode = pen_graph_value(export->graph, node->inputs[2]);
    return mode->kind != PEN_VALUE_CONSTANT || *(const uint8_t *)mode->data != 0;
}

// A node under the name and with the operands that ONNX has for it. Operands and outputs at the
// end that ONNX does not know are left out, other forms written as it wants them.
static void export_write_node(pen_protobuf_writer *writer, const void *context) {
    const export_node *written = context;
    const pen_node *node = written->node;
    const pen_graph *graph = written->export->graph;
    for (uint32_t i = 0; i < export_input_count(written->export, node); i++) {
        pen_protobuf_write_text(writer, 1, export_input_name(written->export, node->inputs[i]));
    }
    for (uint32_t i = 0; i < export_output_count(written->export, node); i++) {
        const pen_value_id output = node->outputs[i];
        pen_protobuf_write_text(writer, 2,
                                pen_value_is(output) ? pen_value_name(graph, output) : "");
    }
    pen_protobuf_write_text(writer, 3, node->name);
    // to the type of an operand, while that is not known
    const bool is_like = node->op->type_input != 0 && node->input_count > node->op->type_input;
    pen_protobuf_write_text(writer, 4,
                            is_like ? "CastLike" : pen_onnx_mapping_of_op(node->op->name)->op_type);
    for (uint32_t i = 0; i < node->op->attribute_count; i++) {
        const pen_attribute_schema *schema = &node->op->attributes[i];
        const pen_attribute_value *value = &node->attributes[i];
        if (!value->present) continue;
        if (export_write_special(writer, written, schema->name, value)) continue;
        const export_attribute attribute = {schema->name, schema->kind, value};
        pen_protobuf_write_message(writer, 5, export_write_attribute, &attribute);
    }
    if (export_axes_are_attribute(node)) export_write_axes(writer, written);
    pen_onnx_write_place(writer, written->place);
    const bool differs = written->export->options->for_inference || node->op->stops_gradient;
    if (differs && export_trains(written->export, node)) {
        const pen_onnx_pair entry = {PEN_ONNX_TRAINING_KEY, PEN_ONNX_TRAINING};
        pen_protobuf_write_message(writer, 9, pen_onnx_pair_write, &entry);
    }
}

// ---- the model

static const pen_tensor_type *export_output_type(const exporter *export, uint32_t index) {
    const pen_tensor_type *type =
        pen_value_type(export->graph, pen_graph_output(export->graph, index));
    if (type->element != PEN_ELEMENT_UNKNOWN || export->options->output_types == NULL) return type;
    return &export->options->output_types[index];
}

static pen_status export_check_outputs(const exporter *export) {
    for (uint32_t i = 0; i < pen_graph_output_count(export->graph); i++) {
        if (export_output_type(export, i)->element != PEN_ELEMENT_UNKNOWN) continue;
        const pen_value_id output = pen_graph_output(export->graph, i);
        return pen_error(PEN_INVALID_INPUT,
                         "the type of output '%s' is not known: neither inferred nor given",
                         pen_value_name(export->graph, output));
    }
    return PEN_OK;
}

// In the order of the message's fields: constants that are nodes, nodes, initializers, inputs,
// outputs. Only what the outputs depend on.
static void export_write_graph(pen_protobuf_writer *writer, const void *context) {
    const exporter *export = context;
    const pen_graph *graph = export->graph;
    for (uint32_t v = 0; v < pen_graph_value_count(graph); v++) {
        const pen_value *value = pen_graph_value(graph, (pen_value_id){v});
        if (!export->value_used[v] || !pen_onnx_constant_is_node(value)) continue;
        pen_protobuf_write_message(writer, 1, pen_onnx_constant_write, value);
    }
    export_write_widenings(writer, export);
    for (uint32_t n = 0; n < pen_graph_node_count(graph); n++) {
        if (!export->node_used[n]) continue;
        const export_node node = {export, pen_graph_node(graph, (pen_node_id){n}),
                                  export->places != NULL ? export->places[n] : NULL};
        pen_protobuf_write_message(writer, 1, export_write_node, &node);
    }
    const char *name = pen_graph_name(graph);
    pen_protobuf_write_text(writer, 2, name[0] != '\0' ? name : "penstock");
    for (uint32_t v = 0; v < pen_graph_value_count(graph); v++) {
        const pen_value_id id = {v};
        if (!export->value_used[v] || !export_is_initializer(pen_graph_value(graph, id))) continue;
        const pen_onnx_initializer initializer = export_initializer(export, id);
        pen_protobuf_write_message(writer, 5, pen_onnx_initializer_write, &initializer);
    }
    for (uint32_t i = 0; i < pen_graph_input_count(graph); i++) {
        const pen_value_id id = pen_graph_input(graph, i);
        const pen_value *input = pen_graph_value(graph, id);
        if (input->kind != PEN_VALUE_INPUT || !export->value_used[id.index]) continue;
        const pen_onnx_value_text value = {graph, input->name, &input->type};
        pen_protobuf_write_message(writer, 11, pen_onnx_value_write, &value);
    }
    for (uint32_t i = 0; i < pen_graph_output_count(graph); i++) {
        const pen_onnx_value_text value = {graph, pen_value_name(graph, pen_graph_output(graph, i)),
                                           export_output_type(export, i)};
        pen_protobuf_write_message(writer, 12, pen_onnx_value_write, &value);
    }
}

static void export_write_opset(pen_protobuf_writer *writer, const void *context) {
    (void)context;
    pen_protobuf_write_text(writer, 1, "");
    pen_protobuf_write_int(writer, 2, EXPORT_OPSET);
}

// ONNX's running variance divides by the count; whether ours is that of PyTorch is kept beside it.
static bool export_is_unbiased(const exporter *export) {
    for (uint32_t n = 0; n < pen_graph_node_count(export->graph); n++) {
        const pen_node *node = pen_graph_node(export->graph, (pen_node_id){n});
        if (!export->node_used[n] || !export_op_is(node, "batch_normalization")) continue;
        if (pen_node_int(node, "unbiased") != 0) return true;
    }
    return false;
}

static pen_status export_write_model(const exporter *export, const char *path) {
    pen_file *file = NULL;
    pen_protobuf_writer writer;
    pen_status status = pen_file_create_beside(path, &file);
    if (status != PEN_OK) return status;
    pen_protobuf_writer_init(&writer, pen_file_stream(file));
    pen_protobuf_write_int(&writer, 1, EXPORT_IR_VERSION);
    pen_protobuf_write_text(&writer, 2, "penstock");
    pen_protobuf_write_text(&writer, 3, PEN_VERSION);
    pen_protobuf_write_message(&writer, 7, export_write_graph, export);
    pen_protobuf_write_message(&writer, 8, export_write_opset, NULL);
    if (export_is_unbiased(export)) {
        const pen_onnx_pair entry = {PEN_ONNX_VARIANCE_KEY, PEN_ONNX_VARIANCE_UNBIASED};
        pen_protobuf_write_message(&writer, 14, pen_onnx_pair_write, &entry);
    }
    status = pen_protobuf_writer_finish(&writer);
    if (status == PEN_OK) status = pen_file_commit(file);
    return pen_status_join(status, pen_file_close(file));
}

// ---- contents in a file of their own

// Contents one behind the other, aligned so that readers can map them.
static pen_status export_fill_data(exporter *export, pen_file *file) {
    static const char zeros[EXPORT_ALIGNMENT];
    uint64_t offset = 0;
    for (uint32_t v = 0; v < pen_graph_value_count(export->graph); v++) {
        const pen_value_id id = {v};
        const pen_value *value = pen_graph_value(export->graph, id);
        if (!export->value_used[v] || !export_is_initializer(value)) continue;
        const uint64_t aligned = pen_align_up(offset, EXPORT_ALIGNMENT);
        const pen_onnx_initializer initializer = export_initializer(export, id);
        PEN_TRY(pen_file_write(file, zeros, aligned - offset));
        PEN_TRY(pen_export_tensor_write(&initializer.tensor, file));
        export->offsets[v] = aligned;
        offset = aligned + pen_tensor_type_bytes(&initializer.tensor.type);
    }
    return PEN_OK;
}

static pen_status export_write_data(exporter *export, const char *path, pen_arena *arena) {
    const char *data_path;
    pen_file *file = NULL;
    PEN_TRY(pen_arena_format(arena, &data_path, "%s.data", path));
    export->data_name = pen_path_name(data_path);
    PEN_TRY(pen_file_create_beside(data_path, &file));
    pen_status status = export_fill_data(export, file);
    if (status == PEN_OK) status = pen_file_commit(file);
    return pen_status_join(status, pen_file_close(file));
}

static uint64_t export_contents_bytes(const exporter *export) {
    uint64_t bytes = 0;
    for (uint32_t v = 0; v < pen_graph_value_count(export->graph); v++) {
        const pen_value_id id = {v};
        const pen_value *value = pen_graph_value(export->graph, id);
        if (!export->value_used[v] || !export_is_initializer(value)) continue;
        const pen_onnx_initializer initializer = export_initializer(export, id);
        bytes += pen_tensor_type_bytes(&initializer.tensor.type);
    }
    return bytes;
}

static pen_status export_all(exporter *export, const char *path, pen_arena *arena) {
    PEN_TRY(export_mark(export, arena));
    PEN_TRY(export_check(export, arena));
    PEN_TRY(export_check_outputs(export));
    if (path == NULL) return PEN_OK;
    PEN_TRY(export_widen(export, arena));
    if (export->options->places != NULL) {
        PEN_TRY(pen_node_places_resolve(export->options->places, export->graph, arena,
                                        &export->places));
    }
    const uint64_t stated = export->options->inline_bytes_limit;
    const uint64_t limit = stated != 0 ? stated : (uint64_t)EXPORT_INLINE_BYTES_LIMIT;
    if (export_contents_bytes(export) > limit) PEN_TRY(export_write_data(export, path, arena));
    return export_write_model(export, path);
}

pen_status pen_onnx_export(const pen_graph *graph, const pen_onnx_export_options *options,
                           const char *path) {
    static const pen_onnx_export_options plain;
    pen_arena *arena = NULL;
    PEN_TRY(pen_arena_create(&arena));
    exporter export = {.options = options != NULL ? options : &plain};
    pen_status status =
        pen_spell_layers(graph, pen_onnx_spellings, pen_onnx_spelling_count, &export.graph);
    if (status == PEN_OK) status = export_all(&export, path, arena);
    pen_arena_destroy(arena);
    return path == NULL ? status : pen_status_add_context(status, "while writing '%s'", path);
}
