// Models of layers in YAML files: files of their own, and jobs, whose model they are.

#include <string.h>

#include "base/integer.h"
#include "base/system/file.h"
#include "graph/graph.h"
#include "graph/import/import.h"
#include "graph/import/model_format.h"
#include "graph/keras_layers/layer_model.h"

#define LAYER_IMPORT_OPSET 17 // that of the operators that layers become

// The mapping that has the layers: what is under `model`, or everything.
static pen_status layers_find(const pen_model_input *input, const pen_yaml_node *root,
                              pen_arena *arena, const pen_yaml_node **out_node) {
    const pen_yaml_node *model = pen_yaml_find(root, "model");
    *out_node = root;
    if (model == NULL) return PEN_OK;
    *out_node = model;
    if (model->kind != PEN_YAML_SCALAR || pen_yaml_is_nothing(model)) return PEN_OK;
    const char *path;
    if (input->files->folder == NULL) {
        return pen_yaml_blame(model,
                              pen_error(PEN_INVALID_INPUT, "no other file can be read from here"));
    }
    PEN_TRY(pen_path_beside(arena, input->path, model->text, &path));
    return pen_yaml_blame(model, pen_yaml_read(path, arena, out_node));
}

// A mapping of those members alone that a model of layers has: a job's has others beside.
static pen_status layers_filter(const pen_yaml_node *node, pen_arena *arena,
                                const pen_yaml_node **out_node) {
    pen_yaml_node *whole = NULL;
    pen_yaml_node *last = NULL;
    PEN_TRY(PEN_NEW(arena, 1, &whole));
    *whole = *node;
    whole->first = NULL;
    whole->count = 0;
    for (const pen_yaml_node *member = node->first; member != NULL; member = member->next) {
        bool is_ours = false;
        for (uint32_t i = 0; i < pen_layer_model_table.field_count; i++) {
            is_ours =
                is_ours || strcmp(pen_layer_model_table.fields[i].key, member->key->text) == 0;
        }
        if (!is_ours) continue;
        pen_yaml_node *copy = NULL;
        PEN_TRY(PEN_NEW(arena, 1, &copy));
        *copy = *member;
        copy->next = NULL;
        if (last == NULL) {
            whole->first = copy;
        } else {
            last->next = copy;
        }
        last = copy;
        whole->count += 1;
    }
    *out_node = whole;
    return PEN_OK;
}

// A file of layers alone, or a job, whose other parts are passed over: `inspect job.yaml` works.
static pen_status layers_read(const pen_model_input *input, pen_arena *arena,
                              pen_layer_model *out_layers, const pen_option_source **out_source) {
    const pen_yaml_node *root = input->options->layers;
    const pen_yaml_node *node;
    const pen_option_settings settings = {.file = input->path};
    if (root == NULL) {
        PEN_TRY(
            pen_yaml_parse(input->path, (const char *)input->bytes, input->length, arena, &root));
    }
    if (root->kind != PEN_YAML_MAPPING) {
        return pen_yaml_blame(
            root, pen_error(PEN_INVALID_INPUT, "expected a mapping with 'layers', a list"));
    }
    PEN_TRY(layers_find(input, root, arena, &node));
    if (node->kind == PEN_YAML_MAPPING && pen_yaml_find(node, "layers") == NULL) {
        return pen_yaml_blame(
            node, pen_error(PEN_INVALID_INPUT, "there is no model of layers: 'layers' is missing"));
    }
    if (node != root && node->kind == PEN_YAML_MAPPING) {
        PEN_TRY(layers_filter(node, arena, &node));
    }
    return pen_option_read(&pen_layer_model_table, node, &settings, arena, out_layers, out_source);
}

static pen_status layers_import(const pen_model_input *input, pen_model *model) {
    pen_layer_model layers = {.seed = 0};
    const pen_option_source *source = NULL;
    pen_layer_builder *builder = NULL;
    PEN_TRY(layers_read(input, model->arena, &layers, &source));
    PEN_TRY(pen_graph_create(model->arena, pen_path_name(input->path), &model->graph));
    PEN_TRY(pen_layer_model_build(&layers, source, model->graph, &builder));
    model->layers = builder;
    PEN_TRY(pen_layer_builder_finish(builder, &model->penalty, &model->output_masks));
    model->output_types = pen_layer_output_types(builder);
    model->opset = LAYER_IMPORT_OPSET;
    model->batch_symbol = pen_graph_symbol_count(model->graph) > 0 ? "batch" : NULL;
    return PEN_OK;
}

const pen_model_format pen_model_format_layers = {
    .name = "layers",
    .summary = "layers in YAML",
    .suffixes = ".yaml .yml",
    .import = layers_import,
};
