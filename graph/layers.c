// A model of layers as a C program builds it: kept as the text that a job has.

#include "graph/layers.h"

#include <inttypes.h>
#include <string.h>

#include "base/memory.h"
#include "base/name_map.h"
#include "base/reserve.h"
#include "base/system/file.h"
#include "base/text.h"
#include "graph/graph.h"
#include "graph/keras_layers/layer_model.h"

struct pen_layers {
    pen_arena *arena;
    uint32_t seed;
    pen_text inputs;     // lines of the mapping
    pen_text entries;    // items of the list
    pen_text outputs;    // names with commas
    pen_name_map names;  // of inputs and layers
    const char **listed; // [names.count] the same, as they were added
    uint32_t listed_capacity;
    pen_name_map output_names;
};

pen_status pen_layers_create(pen_layers **out_layers) {
    *out_layers = NULL;
    pen_layers *layers = pen_memory_allocate(1, sizeof *layers);
    if (layers == NULL) return pen_error_out_of_memory();
    const pen_status status = pen_arena_create(&layers->arena);
    if (status != PEN_OK) {
        pen_memory_free(layers);
        return status;
    }
    pen_text_init(&layers->inputs, layers->arena);
    pen_text_init(&layers->entries, layers->arena);
    pen_text_init(&layers->outputs, layers->arena);
    pen_name_map_init(&layers->names, layers->arena);
    pen_name_map_init(&layers->output_names, layers->arena);
    *out_layers = layers;
    return PEN_OK;
}

void pen_layers_destroy(pen_layers *layers) {
    if (layers == NULL) return;
    pen_arena_destroy(layers->arena);
    pen_memory_free(layers);
}

void pen_layers_set_seed(pen_layers *layers, uint32_t seed) {
    layers->seed = seed;
}

static pen_status layers_check_name(const char *name) {
    static const char *const allowed =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.";
    if (name[0] != '\0' && name[strspn(name, allowed)] == '\0') return PEN_OK;
    return pen_error(PEN_INVALID_INPUT,
                     "'%.100s' is no name: letters, digits, _, - and . are possible", name);
}

static pen_status layers_check_new(const pen_layers *layers, const char *name) {
    if (pen_name_map_find(&layers->names, name) == PEN_NAME_MAP_NONE) return PEN_OK;
    return pen_error(PEN_INVALID_INPUT, "the model has an input or a layer called '%.100s' already",
                     name);
}

static pen_status layers_add_name(pen_layers *layers, const char *name) {
    const uint32_t count = layers->names.count;
    const char *copy;
    PEN_TRY(pen_arena_copy_text(layers->arena, name, strlen(name), &copy));
    PEN_TRY(PEN_RESERVE(layers->arena, &layers->listed, count, &layers->listed_capacity, 16));
    layers->listed[count] = copy;
    return pen_name_map_add(&layers->names, copy, count);
}

// The C interface writes the YAML that a user would have written, so that one reader checks both
// and a model can be saved as it is.
static pen_status layers_input(pen_layers *layers, const char *name, uint32_t rank,
                               const int64_t *dims, const char *element) {
    PEN_TRY(layers_check_name(name));
    if (rank == 0) {
        return pen_error(PEN_INVALID_INPUT,
                         "input '%.100s': it has no dimension besides the batch, expected some",
                         name);
    }
    for (uint32_t i = 0; i < rank; i++) {
        if (dims[i] >= 1) continue;
        return pen_error(PEN_INVALID_INPUT,
                         "input '%.100s': dimension %u is %" PRId64 ", expected at least 1", name,
                         i, dims[i]);
    }
    PEN_TRY(layers_check_new(layers, name));
    PEN_TRY(layers_add_name(layers, name));
    pen_text_print(&layers->inputs, "\"%s\": {dtype: %s, shape: [", name, element);
    for (uint32_t i = 0; i < rank; i++) {
        pen_text_print(&layers->inputs, "%s%" PRId64, i > 0 ? ", " : "", dims[i]);
    }
    pen_text_add(&layers->inputs, "]}\n");
    return layers->inputs.failed ? pen_error_out_of_memory() : PEN_OK;
}

pen_status pen_layers_input(pen_layers *layers, const char *name, uint32_t rank,
                            const int64_t *dims) {
    return layers_input(layers, name, rank, dims, "float32");
}

pen_status pen_layers_input_indices(pen_layers *layers, const char *name, uint32_t rank,
                                    const int64_t *dims) {
    return layers_input(layers, name, rank, dims, "int64");
}

// The name that a layer gets when its options have none.
static pen_status layers_make_name(pen_layers *layers, const pen_layer *layer,
                                   const char **out_name) {
    *out_name = layer->name;
    for (uint32_t i = 1; pen_name_map_find(&layers->names, *out_name) != PEN_NAME_MAP_NONE; i++) {
        PEN_TRY(pen_arena_format(layers->arena, out_name, "%s_%" PRIu32, layer->name, i));
    }
    return PEN_OK;
}

static pen_status layers_take_name(pen_layers *layers, const pen_layer *layer, const char *name) {
    if (name == NULL) {
        PEN_TRY(layers_make_name(layers, layer, &name));
    } else {
        PEN_TRY(layers_check_new(layers, name));
    }
    return layers_add_name(layers, name);
}

// Reads the options alone, so that what is wrong is said now.
static pen_status layers_check_options(pen_layers *layers, const pen_layer *layer,
                                       const char *text) {
    pen_arena *arena = NULL;
    const pen_yaml_node *root;
    const void *options;
    PEN_TRY(pen_arena_create(&arena));
    pen_status status = pen_yaml_parse(layer->name, text, strlen(text), arena, &root);
    if (status == PEN_OK) status = pen_layer_read_options(layer, root, arena, &options);
    if (status == PEN_OK) {
        const pen_layer_common *common = options;
        status = layers_take_name(layers, layer, common->name);
    }
    pen_arena_destroy(arena);
    return status;
}

pen_status pen_layers_add(pen_layers *layers, const char *layer, const char *options) {
    const pen_layer *found;
    const char *text;
    PEN_TRY(pen_layer_find(layer, &found));
    PEN_TRY(pen_arena_format(layers->arena, &text, "{%s}", options == NULL ? "" : options));
    PEN_TRY(layers_check_options(layers, found, text));
    pen_text_print(&layers->entries, "- %s: %s\n", found->name, text);
    return layers->entries.failed ? pen_error_out_of_memory() : PEN_OK;
}

static pen_status layers_refuse_output(const pen_layers *layers, const char *name) {
    const char *possible;
    pen_text text;
    pen_text_init(&text, layers->arena);
    pen_text_add_names(&text, name, layers->listed, layers->names.count, 12);
    PEN_TRY(pen_text_finish(&text, &possible));
    return pen_error(PEN_NOT_FOUND, "no input or layer added so far is called '%.100s'%s%s", name,
                     layers->names.count > 0 ? "; possible: " : "", possible);
}

pen_status pen_layers_output(pen_layers *layers, const char *name) {
    PEN_TRY(layers_check_name(name));
    if (pen_name_map_find(&layers->names, name) == PEN_NAME_MAP_NONE) {
        return layers_refuse_output(layers, name);
    }
    if (pen_name_map_find(&layers->output_names, name) != PEN_NAME_MAP_NONE) {
        return pen_error(PEN_INVALID_INPUT, "'%.100s' is an output of the model already", name);
    }
    const char *known = layers->listed[pen_name_map_find(&layers->names, name)];
    PEN_TRY(pen_name_map_add(&layers->output_names, known, layers->output_names.count));
    pen_text_print(&layers->outputs, "%s\"%s\"", layers->outputs.length > 0 ? ", " : "", name);
    return layers->outputs.failed ? pen_error_out_of_memory() : PEN_OK;
}

// Adds the lines of `from`, indented.
static void layers_add_lines(pen_text *text, const char *indent, const pen_text *from) {
    const char *line = from->bytes;
    const char *end = line + from->length;
    while (line < end) {
        const char *stop = memchr(line, '\n', (size_t)(end - line));
        const size_t length = stop == NULL ? (size_t)(end - line) : (size_t)(stop - line) + 1;
        pen_text_add(text, indent);
        pen_text_append(text, line, length);
        line += length;
    }
}

// The model alone, or as part of a job, which indents it by one level more.
static pen_status layers_text(const pen_layers *layers, const char *job, pen_arena *arena,
                              const char **out_text) {
    const char *indent = job == NULL ? "  " : "    ";
    const char *outer = job == NULL ? "" : "  ";
    pen_text text;
    pen_text_init(&text, arena);
    if (job != NULL) pen_text_add(&text, "version: 1\nmodel:\n");
    pen_text_print(&text, "%sseed: %" PRIu32 "\n", outer, layers->seed);
    if (layers->inputs.length > 0) {
        pen_text_print(&text, "%sinputs:\n", outer);
        layers_add_lines(&text, indent, &layers->inputs);
    }
    if (layers->entries.length > 0) {
        pen_text_print(&text, "%slayers:\n", outer);
        layers_add_lines(&text, indent, &layers->entries);
    }
    if (layers->outputs.length > 0) {
        pen_text_print(&text, "%soutputs: [", outer);
        pen_text_append(&text, layers->outputs.bytes, layers->outputs.length);
        pen_text_add(&text, "]\n");
    }
    if (job != NULL) pen_text_add(&text, job);
    return pen_text_finish(&text, out_text);
}

static pen_status layers_build(const pen_layers *layers, pen_arena *arena) {
    const char *text;
    const pen_yaml_node *root;
    const pen_option_source *source;
    const pen_option_settings settings = {.file = "layers"};
    pen_layer_model model = {.seed = 0};
    pen_layer_builder *builder;
    pen_graph *graph;
    if (layers->entries.length == 0) {
        return pen_error(PEN_INVALID_INPUT, "the model has no layers: pen_layers_add adds one");
    }
    PEN_TRY(layers_text(layers, NULL, arena, &text));
    PEN_TRY(pen_yaml_parse("layers", text, strlen(text), arena, &root));
    PEN_TRY(pen_option_read(&pen_layer_model_table, root, &settings, arena, &model, &source));
    model.is_dry = true;
    PEN_TRY(pen_graph_create(arena, "layers", &graph));
    return pen_layer_model_build(&model, source, graph, &builder);
}

pen_status pen_layers_check(const pen_layers *layers) {
    pen_arena *arena = NULL;
    PEN_TRY(pen_arena_create(&arena));
    const pen_status status = layers_build(layers, arena);
    pen_arena_destroy(arena);
    return status;
}

pen_status pen_layers_save(const pen_layers *layers, const char *path, const char *job) {
    pen_arena *arena = NULL;
    const char *text = "";
    PEN_TRY(pen_layers_check(layers));
    PEN_TRY(pen_arena_create(&arena));
    pen_status status = layers_text(layers, job, arena, &text);
    if (status == PEN_OK) status = pen_file_write_text(path, text);
    pen_arena_destroy(arena);
    return status;
}
