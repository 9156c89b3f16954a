// PyTorch's `.pt2` files in: what torch.export.save writes. See import.h for what comes out.

#include "graph/import/import.h"
#include "graph/import/model_format.h"

#include <string.h>

#include "graph/import/pytorch/pt2_export.h"
#include "graph/import/pytorch/pt2_importer.h"

#define IMPORT_OPEN_BATCH "dynamic_shapes=({0: torch.export.Dim.DYNAMIC},)"
#define IMPORT_RECIPE                                                                              \
    "torch.export.save(torch.export.export(model.train(), args, " IMPORT_OPEN_BATCH "), "          \
    "'net.pt2')"

#define IMPORT_PICKLE_MARK 0x80 // PROTO, with which pickles begin

// ---- the archive

// Text of a small file of the archive; "" when there is none.
static pen_status import_note_of(const pen_stored_zip *archive, const char *name, pen_arena *arena,
                                 const char **out_text) {
    const pen_stored_zip_entry *entry = pen_stored_zip_find(archive, name);
    *out_text = "";
    if (entry == NULL || entry->length > 64) return PEN_OK;
    return pen_arena_copy_text(arena, (const char *)archive->bytes + entry->offset, entry->length,
                               out_text);
}

static pen_status import_refuse_pickle(const char *path, bool is_script) {
    return pen_model_advise_export(
        pen_error(PEN_UNSUPPORTED,
                  "it is what %s writes: a pickle, which is a program and is never read. "
                  "torch.export.save writes a model",
                  is_script ? "torch.jit.save" : "torch.save"),
        path, is_script);
}

// Other files of PyTorch's end on ".pt", too, and some are no archive, or one that is compressed.
static bool import_is_old_pickle(const pen_model_input *input) {
    return input->length > 0 && input->bytes[0] == IMPORT_PICKLE_MARK;
}

static bool import_is_script(const pen_model_input *input) {
    static const char folder[] = "/code/__torch__";
    return memmem(input->bytes, input->length, folder, sizeof folder - 1) != NULL;
}

static pen_status import_read_archive(const pen_model_input *input, const char *path,
                                      pen_arena *arena, pen_stored_zip *out_archive) {
    if (import_is_old_pickle(input)) return import_refuse_pickle(path, false);
    const pen_status status = pen_stored_zip_read(input->bytes, input->length, arena, out_archive);
    if (pen_status_get_code(status) != PEN_UNSUPPORTED || !import_is_script(input)) return status;
    pen_status_ignore(status, "it is no archive of ours, and said to be TorchScript");
    return import_refuse_pickle(path, true);
}

// Most others are zip archives that are stored, as ours are; small TorchScript, too.
static pen_status import_check_archive(const pen_stored_zip *archive, const char *path,
                                       pen_arena *arena) {
    const char *format, *order;
    if (pen_stored_zip_find(archive, "data.pkl") != NULL) {
        return import_refuse_pickle(path, pen_stored_zip_find(archive, "constants.pkl") != NULL);
    }
    if (pen_stored_zip_find(archive, "serialized_exported_program.json") != NULL) {
        return pen_error(PEN_UNSUPPORTED, "it was written by a PyTorch before 2.8: export the "
                                          "model again with a later one");
    }
    PEN_TRY(import_note_of(archive, "archive_format", arena, &format));
    if (strcmp(format, "pt2") != 0) {
        return pen_error(PEN_UNSUPPORTED,
                         "its archive_format is '%.20s', expected: 'pt2'. A model is exported "
                         "by " IMPORT_RECIPE,
                         format);
    }
    PEN_TRY(import_note_of(archive, "byteorder", arena, &order));
    if (order[0] == '\0' || strcmp(order, "little") == 0) return PEN_OK;
    return pen_error(PEN_UNSUPPORTED, "its byteorder is '%.20s', expected: 'little'", order);
}

// ---- outputs

static pen_status import_output_name(const pen_pt2_importer *import, const char *path,
                                     const char **out_name) {
    *out_name = path;
    if (path[0] == '\0') *out_name = "output";
    if (path[0] < '0' || path[0] > '9') return PEN_OK;
    return pen_arena_format(import->arena, out_name, "output.%s", path);
}

static bool import_is_output(const pen_graph *graph, pen_value_id value) {
    for (uint32_t i = 0; i < pen_graph_output_count(graph); i++) {
        if (pen_value_same(pen_graph_output(graph, i), value)) return true;
    }
    return false;
}

// Outputs are computed values, each once; what is none gets a node.
static pen_status import_output_value(pen_pt2_importer *import, const char *name,
                                      pen_value_id *value) {
    pen_graph *graph = import->graph;
    const pen_value *found = pen_graph_value(graph, *value);
    if (found->kind == PEN_VALUE_COMPUTED && !pen_value_is(found->replaces) &&
        !import_is_output(graph, *value)) {
        return PEN_OK;
    }
    pen_node_spec spec = pen_node_spec_make("identity", name);
    spec.output_count = 1;
    pen_node_spec_fill(&spec, PEN_INPUTS(*value), PEN_NO_ATTRIBUTES);
    return pen_graph_add_simple(graph, &spec, value);
}

static void import_output_type(const pen_pt2_importer *import, const pen_pt2_tensor_meta *meta,
                               pen_tensor_type *out_type) {
    if (meta == NULL) return; // the element stays unknown
    *out_type = (pen_tensor_type){pen_pt2_element_of(meta->element_number, true), meta->shape};
    for (uint32_t d = 0; d < meta->shape.rank; d++) {
        if (meta->shape.dims[d] >= 0) continue;
        out_type->shape.dims[d] = pen_pt2_sources_dimension(import, meta->symbols[d]);
    }
}

static pen_status import_read_output(pen_pt2_importer *import, uint32_t i,
                                     pen_value_id *out_value) {
    const pen_pt2_item *item = &import->model->graph.outputs[i];
    pen_pt2_slot *slot = pen_pt2_scope_find(&import->top, item->text);
    if (slot != NULL) return pen_pt2_slot_read(import, slot, out_value);
    return pen_error(PEN_INVALID_INPUT, "output '%.100s' is made by no node", item->text);
}

// The new contents of a buffer, which are an output of graphs that change nothing in place.
static pen_status import_output_buffer(pen_pt2_importer *import, uint32_t i) {
    const char *buffer = import->model->output_buffers[i];
    pen_value_id value = PEN_VALUE_NONE;
    PEN_TRY(import_read_output(import, i, &value));
    for (uint32_t p = 0; p < import->model->graph.input_count; p++) {
        const pen_pt2_port *port = &import->model->ports[p];
        if (port->role != PEN_PT2_BUFFER || strcmp(port->name, buffer) != 0) continue;
        return pen_pt2_slot_write(import, import->ports[p], value);
    }
    return pen_error(PEN_CORRUPT, "there is no buffer '%.100s', which an output is for", buffer);
}

// What is no tensor, None or a number, is no output here.
static pen_status import_outputs(pen_pt2_importer *import, pen_model *model) {
    const pen_pt2_graph_part *graph = &import->model->graph;
    pen_tensor_type *types;
    PEN_TRY(PEN_NEW(import->arena, graph->output_count, &types));
    for (uint32_t i = 0; i < graph->output_count; i++) {
        pen_value_id value;
        const char *name;
        if (graph->outputs[i].kind != PEN_PT2_TENSOR) continue; // None, or a number
        if (import->model->output_names[i] == NULL) {
            PEN_TRY(import_output_buffer(import, i));
            continue;
        }
        PEN_TRY(import_output_name(import, import->model->output_names[i], &name));
        PEN_TRY(import_read_output(import, i, &value));
        PEN_TRY(import_output_value(import, name, &value));
        PEN_TRY(pen_graph_rename_value(import->graph, value, name));
        import_output_type(import, pen_pt2_graph_tensor(graph, graph->outputs[i].text),
                           &types[pen_graph_output_count(import->graph)]);
        PEN_TRY(pen_graph_add_output(import->graph, value));
    }
    model->output_types = types;
    if (pen_graph_output_count(import->graph) > 0) return PEN_OK;
    return pen_error(PEN_INVALID_INPUT, "the model gives no tensor");
}

// ---- all of it

static void import_batch(const pen_pt2_importer *import, pen_model *model) {
    if (pen_graph_input_count(import->graph) == 0) return;
    const pen_value_id first = pen_graph_input(import->graph, 0);
    const pen_shape *shape = &pen_value_type(import->graph, first)->shape;
    if (shape->rank == 0) return;
    model->batch_symbol = pen_graph_symbol_name(import->graph, shape->dims[0]);
}

// Sizes below 3 are open wherever PyTorch says 2: it takes a size of 1 to be one that is broadcast,
// and computes with it all the same.
static pen_status import_ranges(const pen_pt2_importer *import, pen_model *model) {
    pen_model_range *ranges;
    PEN_TRY(PEN_NEW(import->arena, import->model->range_count, &ranges));
    for (uint32_t i = 0; i < import->model->range_count; i++) {
        const pen_pt2_range *range = &import->model->ranges[i];
        ranges[i] = (pen_model_range){.symbol = pen_pt2_sources_symbol(import, range->symbol),
                                      .least = range->least > 2 ? range->least : 0,
                                      .most = range->most};
    }
    model->ranges = ranges;
    model->range_count = import->model->range_count;
    return PEN_OK;
}

// How many nodes, dropouts and batch normalizations, train, and how many only evaluate.
typedef struct import_modes {
    uint32_t training, evaluating;
} import_modes;

static void import_count_modes(const pen_pt2_graph_part *graph, import_modes *modes) {
    for (uint32_t n = 0; n < graph->node_count; n++) {
        const pen_pt2_node *node = &graph->nodes[n];
        bool in_place;
        const pen_pt2_mapping *row = pen_pt2_mapping_find(node->target, &in_place);
        if (row == NULL || row->trains_by == NULL) continue;
        const pen_pt2_argument *argument = pen_pt2_node_argument(node, row->trains_by);
        if (argument == NULL || argument->count != 1) continue;
        modes->training += argument->items[0].integer != 0;
        modes->evaluating += argument->items[0].integer == 0;
    }
}

// What the file has lost, or never had, that training would want.
static pen_status import_warnings(const pen_pt2_importer *import, pen_model *model) {
    const char **warnings;
    import_modes modes = {0};
    const uint32_t widened_count = import->weights->widened_count;
    import_count_modes(&import->model->graph, &modes);
    PEN_TRY(PEN_NEW(import->arena, 3, &warnings));
    model->warnings = warnings;
    if (import->model->is_decomposed) {
        warnings[model->warning_count++] =
            "the model was exported with run_decompositions, which forgets what stands under "
            "no_grad: it is trained, too. Leave that call out, if the model has such parts";
    }
    if (widened_count > 0) {
        PEN_TRY(pen_arena_format(import->arena, &warnings[model->warning_count++],
                                 "%u tensor%s of the model %s float16 or bfloat16, and %s as "
                                 "float32",
                                 widened_count, widened_count == 1 ? "" : "s",
                                 widened_count == 1 ? "is" : "are",
                                 widened_count == 1 ? "is read" : "are read"));
    }
    if (modes.evaluating == 0 || modes.training > 0) return PEN_OK;
    return pen_arena_format(import->arena, &warnings[model->warning_count++],
                            "the model was exported as it evaluates: its %u dropouts and batch "
                            "normalizations do not train. Call model.train() before "
                            "torch.export.export",
                            modes.evaluating);
}

static pen_status import_graph(pen_pt2_importer *import, pen_model *model) {
    PEN_TRY(pen_pt2_coverage_check(import->model, import->arena));
    PEN_TRY(pen_graph_create(import->arena, "pytorch", &import->graph));
    PEN_TRY(pen_pt2_scope_init(&import->top, &import->model->graph, import->arena));
    PEN_TRY(pen_pt2_sources_make(import));
    PEN_TRY(pen_pt2_importer_walk(import, &import->top));
    PEN_TRY(import_outputs(import, model));
    PEN_TRY(pen_pt2_sources_finish(import));
    model->graph = import->graph;
    model->batch_recipe = IMPORT_OPEN_BATCH;
    import_batch(import, model);
    PEN_TRY(import_ranges(import, model));
    PEN_TRY(import_warnings(import, model));
    return pen_arena_format(import->arena, &model->producer, "pytorch %s",
                            import->model->torch_version);
}

// The way of a file: archive, JSON, list of weights, then the graph.
static pen_status import_model(const pen_model_input *input, pen_model *model) {
    pen_pt2_origin *origin;
    pen_pt2_model read;
    const pen_stored_zip_entry *entry;
    PEN_TRY(PEN_NEW(model->arena, 1, &origin));
    PEN_TRY(import_read_archive(input, model->path, model->arena, &origin->archive));
    PEN_TRY(import_check_archive(&origin->archive, model->path, model->arena));
    PEN_TRY(pen_stored_zip_open(&origin->archive, "models/model.json", &entry));
    PEN_TRY(pen_status_add_context(
        pen_pt2_model_read(input->bytes + entry->offset, entry->length, model->arena, &read),
        "in file 'models/model.json' of the archive"));
    PEN_TRY(pen_pt2_weights_read(&origin->archive, model->arena, &origin->weights));
    model->pytorch = origin;
    pen_pt2_importer import = {.arena = model->arena,
                               .path = model->path,
                               .options = input->options,
                               .archive = &origin->archive,
                               .model = &read,
                               .weights = &origin->weights};
    return import_graph(&import, model);
}

const pen_model_format pen_model_format_pt2 = {
    .name = "pt2",
    .summary = "a PyTorch export",
    .suffixes = ".pt2 .pt",
    .passes_weights = true,
    .import = import_model,
};
