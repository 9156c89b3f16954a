#include "graph/import/tensorflow/graphdef_export.h"

#include <stdio.h>
#include <string.h>

#include "base/format/protobuf_writer.h"
#include "base/limits.h"
#include "base/system/file.h"
#include "graph/graph.h"
#include "graph/import/tensorflow/graphdef_block.h"
#include "graph/import/tensorflow/graphdef_coverage.h"
#include "graph/import/tensorflow/graphdef_import.h"
#include "graph/import/tensorflow/graphdef_tensor.h"

#define EXPORT_BYTES_LIMIT ((uint64_t)(INT32_MAX - (64 << 20))) // protobuf's, less the nodes
#define EXPORT_PRODUCER 1395                                    // of graphs that say none
#define EXPORT_TYPE_INT32 3
#define EXPORT_DEVICE_BYTES 256

typedef struct exporter {
    const pen_model *model;
    const pen_graphdef_origin *origin;
    const pen_graphdef_export_options *options;
    bool *written; // [flat's count]
} exporter;

static bool export_is(const pen_graphdef_node *node, const char *op) {
    return strcmp(node->op, op) == 0;
}

// ---- nodes that fall away

// The data type that an attribute names; 0 when it names none.
static int64_t export_type(const pen_graphdef_node *node, const char *name) {
    const pen_graphdef_attribute *attribute = pen_graphdef_attribute_find(node, name);
    return attribute == NULL || attribute->kind != PEN_GRAPHDEF_TYPE ? 0 : attribute->integer;
}

// The input that stands for output `output` of the node; NULL: the node itself is written.
static const pen_graphdef_input *export_stand_in(const exporter *export, uint32_t n,
                                                 uint32_t output) {
    const pen_graphdef_node *node = &export->origin->flat->nodes[n];
    const uint32_t count = pen_graphdef_data_inputs(node);
    const uint32_t merged = export->origin->order.merged[n];
    if (merged != UINT32_MAX) return &node->inputs[merged];
    if (export_is(node, "IdentityN")) return output < count ? &node->inputs[output] : NULL;
    if (count == 0) return NULL;
    if (pen_graphdef_reads_first(node)) return &node->inputs[0];
    const bool is_typed = export_type(node, "T") != 0;
    const bool is_resource = export_type(node, "T") == PEN_GRAPHDEF_RESOURCE;
    return export_is(node, "Identity") && (!is_typed || is_resource) ? &node->inputs[0] : NULL;
}

static const pen_graphdef_input *export_follow(const exporter *export,
                                               const pen_graphdef_input *input) {
    for (uint32_t steps = 0; steps < export->origin->flat->count; steps++) {
        const uint32_t n = pen_graphdef_flat_find(export->origin->flat, input->node);
        const pen_graphdef_input *next =
            n == UINT32_MAX ? NULL : export_stand_in(export, n, input->output);
        if (next == NULL) return input;
        input = next;
    }
    return input;
}

// ---- attributes

typedef struct export_pair { // an entry of the map of attributes
    const char *key;
    pen_protobuf_body body;
    const void *context;
} export_pair;

static void export_write_pair(pen_protobuf_writer *writer, const void *context) {
    const export_pair *pair = context;
    pen_protobuf_write_text(writer, 1, pair->key);
    pen_protobuf_write_message(writer, 2, pair->body, pair->context);
}

static void export_write_raw_pair(pen_protobuf_writer *writer, const void *context) {
    const pen_graphdef_attribute *attribute = context;
    pen_protobuf_write_text(writer, 1, attribute->name);
    pen_protobuf_write_bytes(writer, 2, attribute->bytes, attribute->length);
}

static void export_write_type_value(pen_protobuf_writer *writer, const void *context) {
    pen_protobuf_write_int(writer, 6, *(const int64_t *)context);
}

static void export_write_type(pen_protobuf_writer *writer, const char *key, int64_t type) {
    const export_pair pair = {key, export_write_type_value, &type};
    pen_protobuf_write_message(writer, 5, export_write_pair, &pair);
}

// ---- tensors

typedef struct export_tensor {
    int64_t data_type;
    pen_export_tensor contents;
} export_tensor;

static void export_write_dimension(pen_protobuf_writer *writer, const void *context) {
    pen_protobuf_write_int(writer, 1, *(const int64_t *)context);
}

static void export_write_shape(pen_protobuf_writer *writer, const void *context) {
    const pen_shape *shape = context;
    for (uint32_t d = 0; d < shape->rank; d++) {
        pen_protobuf_write_message(writer, 2, export_write_dimension, &shape->dims[d]);
    }
}

static void export_make(const void *context, uint64_t first, void *bytes, uint64_t count) {
    pen_export_tensor_copy(context, first, bytes, count);
}

static void export_write_tensor(pen_protobuf_writer *writer, const void *context) {
    const export_tensor *tensor = context;
    const pen_export_tensor *contents = &tensor->contents;
    const uint64_t bytes = pen_tensor_type_bytes(&contents->type);
    pen_protobuf_write_int(writer, 1, tensor->data_type);
    pen_protobuf_write_message(writer, 2, export_write_shape, &contents->type.shape);
    if (contents->from == contents->type.element) {
        pen_protobuf_write_bytes(writer, 4, contents->data, bytes);
    } else {
        pen_protobuf_write_made(writer, 4, bytes, export_make, contents);
    }
}

static void export_write_tensor_value(pen_protobuf_writer *writer, const void *context) {
    pen_protobuf_write_message(writer, 8, export_write_tensor, context);
}

static void export_write_constant(pen_protobuf_writer *writer, const export_tensor *tensor) {
    const export_pair value = {"value", export_write_tensor_value, tensor};
    export_write_type(writer, "dtype", tensor->data_type);
    pen_protobuf_write_message(writer, 5, export_write_pair, &value);
}

// The value of the graph that a node became, if it has contents.
static const pen_value *export_value(const exporter *export, uint32_t n, pen_value_id *out_id) {
    const char *name = export->origin->value_names[n];
    if (name == NULL) return NULL;
    const pen_status status = pen_graph_find_value(export->model->graph, name, out_id);
    if (status != PEN_OK) {
        pen_status_ignore(status, "the node is written as it was");
        return NULL;
    }
    const pen_value *value = pen_graph_value(export->model->graph, *out_id);
    return value->kind == PEN_VALUE_INPUT || value->kind == PEN_VALUE_COMPUTED ? NULL : value;
}

static export_tensor export_contents(const exporter *export, const pen_value *value,
                                     pen_value_id id) {
    return (export_tensor){.data_type = pen_graphdef_data_type(value->type.element),
                           .contents = pen_export_contents_tensor(&export->options->contents,
                                                                  export->model->graph, id)};
}

// ---- nodes

typedef struct export_node {
    const exporter *export;
    uint32_t n;
} export_node;

static void export_write_input(pen_protobuf_writer *writer, const exporter *export,
                               const pen_graphdef_input *input) {
    char text[PEN_NAME_BYTES_LIMIT + 16];
    const pen_graphdef_input *from = export_follow(export, input);
    if (from->output == 0) {
        pen_protobuf_write_text(writer, 3, from->node);
        return;
    }
    snprintf(text, sizeof text, "%s:%u", from->node, from->output);
    pen_protobuf_write_text(writer, 3, text);
}

// A device's own name in TensorFlow's form, "/job:name": what a job cannot have becomes '_'.
static void export_device_form(const char *device, char out_text[EXPORT_DEVICE_BYTES]) {
    snprintf(out_text, EXPORT_DEVICE_BYTES, "/job:%.200s", device);
    for (char *c = out_text + strlen("/job:"); *c != '\0'; c++) {
        const bool fits = (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') ||
                          (*c >= '0' && *c <= '9') || *c == '_';
        if (!fits) *c = '_';
    }
}

static void export_write_device(pen_protobuf_writer *writer, const exporter *export,
                                const pen_graphdef_node *node) {
    const char *device = NULL;
    if (export->options->device != NULL) {
        device = export->options->device(export->options->device_context, node->name);
    }
    char job[EXPORT_DEVICE_BYTES];
    if (device == NULL) device = node->device;
    if (device[0] == '\0') return;
    export_device_form(device, job);
    pen_protobuf_write_text(writer, 4, device[0] == '/' ? device : job);
}

static void export_write_attributes(pen_protobuf_writer *writer, const pen_graphdef_node *node) {
    for (uint32_t i = 0; i < node->attribute_count; i++) {
        const pen_graphdef_attribute *attribute = &node->attributes[i];
        if (attribute->name[0] == '_') continue; // hints, some of them of nodes that are gone
        pen_protobuf_write_message(writer, 5, export_write_raw_pair, attribute);
    }
}

// A variable, read; or gathered from.
static bool export_write_read(pen_protobuf_writer *writer, const pen_graphdef_node *node) {
    if (export_is(node, "ReadVariableOp")) {
        export_write_type(writer, "T", export_type(node, "dtype"));
        return true;
    }
    if (!export_is(node, "ResourceGather")) return false;
    export_write_type(writer, "Tparams", export_type(node, "dtype"));
    export_write_type(writer, "Tindices", export_type(node, "Tindices"));
    export_write_type(writer, "Taxis", EXPORT_TYPE_INT32);
    return true;
}

static const char *export_op(const pen_graphdef_node *node) {
    if (pen_graphdef_is_variable(node)) return "Const";
    if (export_is(node, "ReadVariableOp")) return "Identity";
    if (export_is(node, "ResourceGather")) return "GatherV2";
    return node->op;
}

static void export_axis_name(const pen_graphdef_node *node, char *out_text, size_t size) {
    snprintf(out_text, size, "%s/axis", node->name);
}

// A node that stands for a trained value is written as a constant; the rest as it was read.
static void export_write_node(pen_protobuf_writer *writer, const void *context) {
    const export_node *written = context;
    const exporter *export = written->export;
    const pen_graphdef_node *node = &export->origin->flat->nodes[written->n];
    pen_value_id id;
    pen_protobuf_write_text(writer, 1, node->name);
    pen_protobuf_write_text(writer, 2, export_op(node));
    for (uint32_t i = 0; i < pen_graphdef_data_inputs(node); i++) {
        export_write_input(writer, export, &node->inputs[i]);
    }
    if (export_is(node, "ResourceGather")) {
        char axis[PEN_NAME_BYTES_LIMIT + 16];
        export_axis_name(node, axis, sizeof axis);
        pen_protobuf_write_text(writer, 3, axis);
    }
    export_write_device(writer, export, node);
    const pen_value *value = export_value(export, written->n, &id);
    if (value != NULL) {
        const export_tensor tensor = export_contents(export, value, id);
        export_write_constant(writer, &tensor);
    } else if (!export_write_read(writer, node)) {
        export_write_attributes(writer, node);
    }
}

// The axis, 0, that GatherV2 reads and ResourceGather does not.
static void export_write_axis(pen_protobuf_writer *writer, const void *context) {
    static const int32_t zero = 0;
    char name[PEN_NAME_BYTES_LIMIT + 16];
    const export_tensor tensor = {EXPORT_TYPE_INT32, {{.element = PEN_INT32}, &zero, PEN_INT32}};
    export_axis_name(context, name, sizeof name);
    pen_protobuf_write_text(writer, 1, name);
    pen_protobuf_write_text(writer, 2, "Const");
    export_write_constant(writer, &tensor);
}

// ---- outputs whose nodes fall away

typedef struct export_output {
    const exporter *export;
    uint32_t index;
} export_output;

static void export_write_output(pen_protobuf_writer *writer, const void *context) {
    const export_output *output = context;
    const exporter *export = output->export;
    const pen_graphdef_port *port = &export->origin->outputs[output->index];
    const pen_value_id id = pen_graph_output(export->model->graph, output->index);
    pen_element_type element = export->model->output_types[output->index].element;
    char name[PEN_NAME_BYTES_LIMIT + 16];
    if (element == PEN_ELEMENT_UNKNOWN) element = pen_value_type(export->model->graph, id)->element;
    snprintf(name, sizeof name, port->at.output == 0 ? "%s" : "%s_%u", port->at.node,
             port->at.output);
    pen_protobuf_write_text(writer, 1, name);
    pen_protobuf_write_text(writer, 2, "Identity");
    export_write_input(writer, export, &port->at);
    export_write_type(writer, "T", pen_graphdef_data_type(element));
}

// ---- the graph

static void export_write_versions(pen_protobuf_writer *writer, const void *context) {
    const int64_t producer = *(const int64_t *)context;
    pen_protobuf_write_int(writer, 1, producer > 0 ? producer : EXPORT_PRODUCER);
}

static void export_write_graph(pen_protobuf_writer *writer, const exporter *export) {
    const pen_graphdef_origin *origin = export->origin;
    for (uint32_t i = 0; i < origin->order.count; i++) {
        const export_node node = {export, origin->order.nodes[i]};
        const pen_graphdef_node *from = &origin->flat->nodes[node.n];
        if (!export->written[node.n]) continue;
        if (export_is(from, "ResourceGather")) {
            pen_protobuf_write_message(writer, 1, export_write_axis, from);
        }
        pen_protobuf_write_message(writer, 1, export_write_node, &node);
    }
    for (uint32_t i = 0; i < origin->output_count; i++) {
        const export_output output = {export, i};
        const uint32_t n = pen_graphdef_flat_find(origin->flat, origin->outputs[i].at.node);
        if (n != UINT32_MAX && export->written[n]) continue;
        pen_protobuf_write_message(writer, 1, export_write_output, &output);
    }
    pen_protobuf_write_message(writer, 4, export_write_versions, &origin->producer);
}

// Which nodes are written: those that an input or output, as written, names.
static pen_status export_mark(exporter *export, pen_arena *arena) {
    const pen_graphdef_origin *origin = export->origin;
    uint64_t bytes = 0;
    PEN_TRY(PEN_NEW(arena, (size_t)origin->flat->count + 1, &export->written));
    for (uint32_t i = 0; i < origin->order.count; i++) {
        const uint32_t n = origin->order.nodes[i];
        pen_value_id id;
        const pen_value *value = export_value(export, n, &id);
        export->written[n] = export_stand_in(export, n, 0) == NULL;
        if (pen_graphdef_is_control(&origin->flat->nodes[n])) {
            return pen_error(PEN_UNSUPPORTED,
                             "'%.100s' is a loop or conditional, which Penstock puts its rounds in "
                             "the place of; write the model as ONNX (.onnx)",
                             origin->flat->nodes[n].name);
        }
        if (value != NULL) bytes += pen_tensor_type_bytes(&value->type);
    }
    if (bytes <= EXPORT_BYTES_LIMIT) return PEN_OK;
    return pen_error(PEN_INVALID_INPUT,
                     "a TensorFlow graph holds at most 2 GiB, the parameters are %llu bytes; "
                     "ONNX (.onnx) takes more",
                     (unsigned long long)bytes);
}

static pen_status export_all(exporter *export, const char *path, pen_arena *arena) {
    pen_file *file = NULL;
    pen_protobuf_writer writer;
    PEN_TRY(export_mark(export, arena));
    if (path == NULL) return PEN_OK;
    pen_status status = pen_file_create_beside(path, &file);
    if (status != PEN_OK) return status;
    pen_protobuf_writer_init(&writer, pen_file_stream(file));
    export_write_graph(&writer, export);
    status = pen_protobuf_writer_finish(&writer);
    if (status == PEN_OK) status = pen_file_commit(file);
    return pen_status_join(status, pen_file_close(file));
}

pen_status pen_graphdef_export(const pen_model *model, const pen_graphdef_export_options *options,
                               const char *path) {
    static const pen_graphdef_export_options plain;
    if (model->tensorflow == NULL) {
        return pen_error(
            PEN_UNSUPPORTED,
            "the model's format is %s; only one that came from TensorFlow is written as a "
            "TensorFlow graph (.pb), every model as ONNX (.onnx)",
            model->format);
    }
    pen_arena *arena;
    exporter export = {
        .model = model, .origin = model->tensorflow, .options = options != NULL ? options : &plain};
    PEN_TRY(pen_arena_create(&arena));
    const pen_status status = export_all(&export, path, arena);
    pen_arena_destroy(arena);
    return path == NULL ? status : pen_status_add_context(status, "while writing '%s'", path);
}
