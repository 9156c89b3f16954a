// A SavedModel of TensorFlow: a folder with a graph, its signatures, and variables in a bundle.
//
// Which tensor of the bundle belongs to which variable is what the graph's own restoring says: an
// assignment to the variable of an output of RestoreV2, whose names are a constant. With functions
// put in the place of their calls, that holds for both generations of TensorFlow.

#include <string.h>

#include "base/limits.h"
#include "base/text.h"
#include "graph/import/import.h"
#include "graph/import/model_format.h"
#include "graph/import/tensorflow/bundle_table.h"
#include "graph/import/tensorflow/graphdef_coverage.h"
#include "graph/import/tensorflow/graphdef_format.h"
#include "graph/import/tensorflow/graphdef_tensor.h"

// Field numbers.
enum {
    SAVED_META_GRAPH = 2,
    META_INFO = 1,
    META_GRAPH = 2,
    META_SIGNATURE = 5,
    META_OBJECTS = 7,
    INFO_TAG = 4,
    SIGNATURE_INPUT = 1,
    SIGNATURE_OUTPUT = 2,
    OBJECTS_NODE = 1,
    OBJECT_VARIABLE = 7,
    VARIABLE_TRAINABLE = 3,
    VARIABLE_NAME = 6,
};

#define SAVED_MODEL_FILE "saved_model.pb"
#define SAVED_MODEL_VARIABLES "variables/variables"
#define SAVED_MODEL_STEPS_LIMIT 64 // nodes between an assignment and its variable

typedef struct saved_model {
    pen_arena *arena;
    const pen_model_input *input;
    pen_protobuf_reader meta; // the graph that is read
    pen_protobuf_reader signature;
    const char *signature_name;
    pen_graphdef graph;
    pen_graphdef_flat *flat;
    pen_bundle bundle;
    bool has_bundle;
    const char **keys;        // [flat's count], of variables: their name in the bundle, or NULL
    pen_name_map not_trained; // names of variables
} saved_model;

// ---- the messages

// Which of a MetaGraphDef's tags is "serve".
static pen_status saved_serves(const pen_protobuf_reader *meta, pen_arena *arena,
                               bool *out_serves) {
    pen_protobuf_reader reader = *meta;
    *out_serves = false;
    while (true) {
        pen_protobuf_reader info;
        const char **tags;
        uint32_t count;
        bool more;
        PEN_TRY(pen_protobuf_next_message(&reader, META_INFO, &info, &more));
        if (!more) return PEN_OK;
        PEN_TRY(pen_graphdef_texts(&info, INFO_TAG, arena, &count, &tags));
        for (uint32_t i = 0; i < count; i++) {
            *out_serves = *out_serves || strcmp(tags[i], "serve") == 0;
        }
    }
}

// The graph for serving, or else the first.
static pen_status saved_find_meta(saved_model *saved, const uint8_t *bytes, size_t length) {
    pen_protobuf_reader reader;
    bool has_any = false, serves = false;
    pen_protobuf_init(&reader, bytes, length);
    while (!serves) {
        pen_protobuf_reader meta;
        bool more;
        PEN_TRY(pen_protobuf_next_message(&reader, SAVED_META_GRAPH, &meta, &more));
        if (!more) break;
        PEN_TRY(saved_serves(&meta, saved->arena, &serves));
        if (!has_any || serves) saved->meta = meta;
        has_any = true;
    }
    if (has_any) return PEN_OK;
    return pen_error(PEN_INVALID_INPUT, "it has no graph: is it a SavedModel?");
}

// Key and message of one entry of a map.
static pen_status saved_read_entry(const pen_protobuf_reader *reader,
                                   const pen_protobuf_field *field, pen_arena *arena,
                                   const char **out_key, pen_protobuf_reader *out_value) {
    pen_protobuf_reader entry;
    *out_key = "";
    PEN_TRY(pen_protobuf_open(reader, field, &entry));
    pen_protobuf_init(out_value, entry.end, 0);
    while (true) {
        pen_protobuf_field part;
        PEN_TRY(pen_protobuf_next(&entry, &part));
        if (part.number == 0) return PEN_OK;
        if (part.number == 1) PEN_TRY(pen_protobuf_name(&entry, &part, arena, out_key));
        if (part.number == 2) PEN_TRY(pen_protobuf_open(&entry, &part, out_value));
    }
}

// The signature that is asked for, "serving_default", or the first there is.
static pen_status saved_find_signature(saved_model *saved) {
    const char *wanted = saved->input->options->signature;
    const char *preferred = wanted != NULL ? wanted : "serving_default";
    pen_protobuf_reader reader = saved->meta;
    pen_text names;
    pen_text_init(&names, saved->arena);
    while (true) {
        pen_protobuf_field field;
        pen_protobuf_reader value;
        const char *key;
        PEN_TRY(pen_protobuf_next(&reader, &field));
        if (field.number == 0) break;
        if (field.number != META_SIGNATURE) continue;
        PEN_TRY(saved_read_entry(&reader, &field, saved->arena, &key, &value));
        if (strncmp(key, "__saved_model", 13) == 0) continue; // its initialization
        pen_text_print(&names, " '%.100s'", key);
        const bool is_preferred = strcmp(key, preferred) == 0;
        const bool is_taken = is_preferred || (wanted == NULL && saved->signature_name == NULL);
        if (is_taken) {
            saved->signature_name = key;
            saved->signature = value;
        }
        if (is_preferred) return PEN_OK;
    }
    if (saved->signature_name != NULL) return PEN_OK;
    const char *list;
    PEN_TRY(pen_text_finish(&names, &list));
    return pen_error(PEN_NOT_FOUND, "it has no signature '%.100s'; it has%s", preferred,
                     list[0] == '\0' ? " none" : list);
}

// Name and tensor of one input or output of the signature.
static pen_status saved_read_port(saved_model *saved, const pen_protobuf_field *field,
                                  pen_graphdef_port *out_port) {
    pen_protobuf_reader info;
    const char *tensor = "";
    PEN_TRY(saved_read_entry(&saved->signature, field, saved->arena, &out_port->name, &info));
    while (true) {
        pen_protobuf_field part;
        PEN_TRY(pen_protobuf_next(&info, &part));
        if (part.number == 0) break;
        if (part.number == 1) PEN_TRY(pen_protobuf_name(&info, &part, saved->arena, &tensor));
    }
    if (tensor[0] == '\0') {
        return pen_error(PEN_UNSUPPORTED, "'%.100s' of the signature is no dense tensor",
                         out_port->name);
    }
    return pen_graphdef_input_parse(tensor, false, saved->arena, &out_port->at);
}

static int saved_compare_ports(const void *left, const void *right) {
    const pen_graphdef_port *a = left, *b = right;
    return strcmp(a->name, b->name);
}

// The map is in no order in the file: here it is by name.
static void saved_sort_ports(pen_graphdef_port *ports, uint32_t count) {
    for (uint32_t i = 1; i < count; i++) {
        const pen_graphdef_port port = ports[i];
        uint32_t at = i;
        for (; at > 0 && saved_compare_ports(&ports[at - 1], &port) > 0; at--) {
            ports[at] = ports[at - 1];
        }
        ports[at] = port;
    }
}

// Inputs and outputs of the signature, in the order of their names: maps have none in protobuf.
static pen_status saved_read_signature(saved_model *saved, pen_graphdef_request *request) {
    uint32_t counts[3] = {0};
    pen_graphdef_port *inputs, *outputs;
    PEN_TRY(pen_protobuf_count(&saved->signature, 3, counts));
    if (counts[SIGNATURE_INPUT] > PEN_MODEL_OUTPUTS_LIMIT ||
        counts[SIGNATURE_OUTPUT] > PEN_MODEL_OUTPUTS_LIMIT) {
        return pen_error(PEN_INVALID_INPUT, "it has more than %d inputs or outputs",
                         PEN_MODEL_OUTPUTS_LIMIT);
    }
    PEN_TRY(PEN_NEW(saved->arena, (size_t)counts[SIGNATURE_INPUT] + 1, &inputs));
    PEN_TRY(PEN_NEW(saved->arena, (size_t)counts[SIGNATURE_OUTPUT] + 1, &outputs));
    while (true) {
        pen_protobuf_field field;
        PEN_TRY(pen_protobuf_next(&saved->signature, &field));
        if (field.number == 0) break;
        if (field.number == SIGNATURE_INPUT) {
            PEN_TRY(saved_read_port(saved, &field, &inputs[request->input_count++]));
        } else if (field.number == SIGNATURE_OUTPUT) {
            PEN_TRY(saved_read_port(saved, &field, &outputs[request->output_count++]));
        }
    }
    saved_sort_ports(inputs, request->input_count);
    saved_sort_ports(outputs, request->output_count);
    request->inputs = inputs;
    request->outputs = outputs;
    return PEN_OK;
}

// ---- variables that are not trained, by the list of objects

// A variable of the object graph that says it is not trained.
static pen_status saved_read_variable(saved_model *saved, const pen_protobuf_reader *object,
                                      const pen_protobuf_field *field) {
    pen_protobuf_reader variable;
    int64_t trainable = 0;
    const char *name = "";
    PEN_TRY(pen_protobuf_open(object, field, &variable));
    while (true) {
        pen_protobuf_field part;
        PEN_TRY(pen_protobuf_next(&variable, &part));
        if (part.number == 0) break;
        if (part.number == VARIABLE_TRAINABLE) {
            PEN_TRY(pen_protobuf_int(&variable, &part, &trainable));
        } else if (part.number == VARIABLE_NAME) {
            PEN_TRY(pen_protobuf_name(&variable, &part, saved->arena, &name));
        }
    }
    if (trainable != 0 || name[0] == '\0') return PEN_OK;
    if (pen_name_map_find(&saved->not_trained, name) != PEN_NAME_MAP_NONE) return PEN_OK;
    return pen_name_map_add(&saved->not_trained, name, 0);
}

static pen_status saved_read_objects(saved_model *saved, const pen_protobuf_reader *meta,
                                     const pen_protobuf_field *field) {
    pen_protobuf_reader objects;
    PEN_TRY(pen_protobuf_open(meta, field, &objects));
    while (true) {
        pen_protobuf_field node;
        pen_protobuf_reader object;
        PEN_TRY(pen_protobuf_next(&objects, &node));
        if (node.number == 0) return PEN_OK;
        if (node.number != OBJECTS_NODE) continue;
        PEN_TRY(pen_protobuf_open(&objects, &node, &object));
        while (true) {
            pen_protobuf_field part;
            PEN_TRY(pen_protobuf_next(&object, &part));
            if (part.number == 0) break;
            if (part.number == OBJECT_VARIABLE) PEN_TRY(saved_read_variable(saved, &object, &part));
        }
    }
}

static pen_status saved_read_meta(saved_model *saved) {
    pen_protobuf_reader reader = saved->meta;
    while (true) {
        pen_protobuf_field field;
        pen_protobuf_reader graph;
        PEN_TRY(pen_protobuf_next(&reader, &field));
        if (field.number == 0) return PEN_OK;
        if (field.number == META_GRAPH) {
            PEN_TRY(pen_protobuf_open(&reader, &field, &graph));
            PEN_TRY(pen_graphdef_read(&graph, saved->arena, &saved->graph));
        } else if (field.number == META_OBJECTS) {
            PEN_TRY(saved_read_objects(saved, &reader, &field));
        }
    }
}

// ---- which tensor of the bundle is which variable's

// Follows what passes a value on to the node that makes it; UINT32_MAX where that is not there.
static uint32_t saved_follow(const pen_graphdef_flat *flat, const pen_graphdef_input *input,
                             uint32_t *out_output) {
    for (uint32_t steps = 0; steps < SAVED_MODEL_STEPS_LIMIT; steps++) {
        const uint32_t n = pen_graphdef_flat_find(flat, input->node);
        if (n == UINT32_MAX) return n;
        const pen_graphdef_node *node = &flat->nodes[n];
        const bool is_many = strcmp(node->op, "IdentityN") == 0;
        *out_output = input->output;
        if (!is_many && strcmp(node->op, "Identity") != 0) return n;
        const uint32_t next = is_many ? input->output : 0;
        if (next >= node->input_count) return UINT32_MAX;
        input = &node->inputs[next];
    }
    return UINT32_MAX;
}

// The names that a RestoreV2 restores, by its second operand.
static pen_status saved_restored_names(saved_model *saved, const pen_graphdef_node *restore,
                                       uint32_t *out_count, const char ***out_names) {
    uint32_t output;
    *out_count = 0;
    if (restore->input_count < 2) return PEN_OK;
    const uint32_t n = saved_follow(saved->flat, &restore->inputs[1], &output);
    if (n == UINT32_MAX || strcmp(saved->flat->nodes[n].op, "Const") != 0) return PEN_OK;
    const pen_graphdef_attribute *value =
        pen_graphdef_attribute_find(&saved->flat->nodes[n], "value");
    if (value == NULL || value->kind != PEN_GRAPHDEF_TENSOR) return PEN_OK;
    return pen_graphdef_tensor_texts(&value->message, saved->arena, out_count, out_names);
}

static pen_status saved_note_assignment(saved_model *saved, const pen_graphdef_node *node,
                                        const uint32_t *counts, const char ***names) {
    uint32_t output;
    if (node->input_count < 2) return PEN_OK;
    const uint32_t variable = saved_follow(saved->flat, &node->inputs[0], &output);
    const uint32_t restore = saved_follow(saved->flat, &node->inputs[1], &output);
    if (variable == UINT32_MAX || restore == UINT32_MAX) return PEN_OK;
    if (!pen_graphdef_is_variable(&saved->flat->nodes[variable])) return PEN_OK;
    if (output < counts[restore]) saved->keys[variable] = names[restore][output];
    return PEN_OK;
}

static pen_status saved_find_keys(saved_model *saved) {
    const pen_graphdef_flat *flat = saved->flat;
    const char ***names;
    uint32_t *counts;
    PEN_TRY(PEN_NEW(saved->arena, (size_t)flat->count + 1, &saved->keys));
    PEN_TRY(PEN_NEW(saved->arena, (size_t)flat->count + 1, &names));
    PEN_TRY(PEN_NEW(saved->arena, (size_t)flat->count + 1, &counts));
    for (uint32_t n = 0; n < flat->count; n++) {
        if (strcmp(flat->nodes[n].op, "RestoreV2") != 0) continue;
        PEN_TRY(saved_restored_names(saved, &flat->nodes[n], &counts[n], &names[n]));
    }
    for (uint32_t n = 0; n < flat->count; n++) {
        const bool assigns = strcmp(flat->nodes[n].op, "Assign") == 0 ||
                             strcmp(flat->nodes[n].op, "AssignVariableOp") == 0;
        if (assigns) PEN_TRY(saved_note_assignment(saved, &flat->nodes[n], counts, names));
    }
    return PEN_OK;
}

static pen_status saved_find_variable(void *context, const pen_graphdef_node *node,
                                      pen_graphdef_contents *out_contents) {
    saved_model *saved = context;
    const uint32_t n = pen_graphdef_flat_find(saved->flat, node->name);
    const char *shared = pen_graphdef_text(node, "shared_name", "");
    const char *name = shared[0] != '\0' ? shared : node->name;
    const pen_bundle_entry *entry = NULL;
    *out_contents = (pen_graphdef_contents){.name = name};
    if (!saved->has_bundle) return PEN_OK;
    if (n != UINT32_MAX && saved->keys[n] != NULL) {
        entry = pen_bundle_find(&saved->bundle, saved->keys[n]);
    }
    if (entry == NULL) entry = pen_bundle_find(&saved->bundle, name);
    if (entry == NULL) return PEN_OK;
    out_contents->type = entry->type;
    out_contents->is_frozen = pen_name_map_find(&saved->not_trained, name) != PEN_NAME_MAP_NONE;
    return pen_bundle_contents(&saved->bundle, entry, saved->input->files, SAVED_MODEL_VARIABLES,
                               &out_contents->data);
}

static pen_status saved_open_bundle(saved_model *saved) {
    const pen_mapping *index;
    if (saved->input->files->folder == NULL) return PEN_OK;
    const pen_status status =
        pen_external_files_open(saved->input->files, SAVED_MODEL_VARIABLES ".index", &index);
    if (pen_status_get_code(status) == PEN_NOT_FOUND) {
        pen_status_ignore(status, "a model without variables has none; else it is said of them");
        return PEN_OK;
    }
    PEN_TRY(status);
    saved->has_bundle = true;
    PEN_TRY(pen_status_add_context(
        pen_bundle_read(index->bytes, index->length, saved->arena, &saved->bundle), "in '%s'",
        SAVED_MODEL_VARIABLES ".index"));
    return pen_bundle_open_shards(&saved->bundle, saved->input->files, SAVED_MODEL_VARIABLES);
}

// ---- the format

static bool saved_recognize(const pen_model_input *input) {
    static const uint8_t beginning[] = {0x08, 0x01, 0x12}; // version 1, then graphs
    if (input->bytes != NULL) {
        return input->length >= sizeof beginning &&
               memcmp(input->bytes, beginning, sizeof beginning) == 0;
    }
    const pen_mapping *mapping;
    const pen_status status = pen_external_files_open(input->files, SAVED_MODEL_FILE, &mapping);
    const bool is_one = status == PEN_OK;
    if (!is_one) pen_status_ignore(status, "then it is none");
    return is_one;
}

// The way of a SavedModel: which graph, which signature, flattened, and whose variable has which
// contents.
static pen_status saved_import(const pen_model_input *input, pen_model *model) {
    saved_model *saved;
    const uint8_t *bytes = input->bytes;
    size_t length = input->length;
    PEN_TRY(PEN_NEW(model->arena, 1, &saved));
    PEN_TRY(PEN_NEW(model->arena, 1, &saved->flat));
    saved->arena = model->arena;
    saved->input = input;
    pen_name_map_init(&saved->not_trained, model->arena);
    if (bytes == NULL) {
        const pen_mapping *mapping;
        PEN_TRY(pen_external_files_open(input->files, SAVED_MODEL_FILE, &mapping));
        bytes = mapping->bytes;
        length = mapping->length;
    }
    PEN_TRY(saved_find_meta(saved, bytes, length));
    PEN_TRY(saved_read_meta(saved));
    PEN_TRY(saved_find_signature(saved));
    PEN_TRY(pen_graphdef_flatten(&saved->graph, saved->arena, saved->flat));
    PEN_TRY(saved_open_bundle(saved));
    PEN_TRY(saved_find_keys(saved));
    pen_graphdef_request request = {.flat = saved->flat,
                                    .find_variable = saved_find_variable,
                                    .variable_context = saved,
                                    .options = input->options};
    PEN_TRY(saved_read_signature(saved, &request));
    if (input->options->output_count > 0) {
        pen_graphdef_port *outputs;
        PEN_TRY(pen_graphdef_choose_outputs(saved->flat, input->options, &request.output_count,
                                            &outputs));
        request.outputs = outputs;
    }
    model->producer = "TensorFlow";
    return pen_status_add_context(pen_graphdef_import(&request, model), "in signature '%.100s'",
                                  saved->signature_name);
}

const pen_model_format pen_model_format_saved_model = {
    .name = "saved_model",
    .summary = "a SavedModel of TensorFlow, a folder",
    .suffixes = ".pb",
    .is_folder = true,
    .is_tensorflow = true,
    .recognize = saved_recognize,
    .import = saved_import,
};
