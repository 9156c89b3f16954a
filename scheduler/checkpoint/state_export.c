#include "scheduler/checkpoint/state_export.h"

#include "base/arena.h"
#include "graph/import/pytorch/pt2_export.h"
#include "scheduler/store/safetensors.h"

// The entries of the file.
typedef struct state_entries {
    uint32_t count;
    const char **names;
    pen_export_tensor *tensors;
} state_entries;

// A piece has whole elements: the writer's pieces begin at multiples of more than any width.
static pen_status state_read(void *context, uint32_t index, uint64_t first, void *out_data,
                             uint64_t bytes) {
    const state_entries *entries = context;
    pen_export_tensor_copy(&entries->tensors[index], first, out_data, bytes);
    return PEN_OK;
}

static pen_status state_reserve(state_entries *entries, uint32_t count, pen_arena *arena) {
    PEN_TRY(PEN_NEW(arena, count, &entries->names));
    return PEN_NEW(arena, count, &entries->tensors);
}

static void state_add(state_entries *entries, const char *name, const pen_export_tensor *tensor) {
    entries->names[entries->count] = name;
    entries->tensors[entries->count++] = *tensor;
}

// ---- of a model of PyTorch

// What was trained or loaded, which has the first of tied names, or what the file has.
static pen_status state_find(const pen_model *model, const pen_export_contents *contents,
                             pen_pt2_weight weight, pen_arena *arena,
                             pen_export_tensor *out_tensor) {
    const pen_pt2_origin *origin = model->pytorch;
    const bool keeps = contents->keeps_halves || !pen_element_is_half(weight.stored.element);
    pen_value_id id;
    const pen_status status =
        pen_graph_find_value(model->graph, origin->weights.entries[weight.same_as].name, &id);
    const bool is_there =
        status == PEN_OK && pen_tensor_type_equal(pen_value_type(model->graph, id), &weight.type);
    pen_status_ignore(status, "the graph does not read it: the file has it");
    *out_tensor = (pen_export_tensor){.from = weight.stored.element};
    if (is_there) *out_tensor = pen_export_contents_tensor(contents, model->graph, id);
    out_tensor->type = keeps ? weight.stored : weight.type;
    if (out_tensor->data != NULL) return PEN_OK;
    out_tensor->from = weight.stored.element;
    return pen_pt2_weights_data(&origin->archive, &weight, arena, &out_tensor->data);
}

static pen_status state_list_dict(const pen_model *model, const pen_export_contents *contents,
                                  pen_arena *arena, state_entries *entries) {
    const pen_pt2_weights *weights = &model->pytorch->weights;
    PEN_TRY(state_reserve(entries, weights->count, arena));
    for (uint32_t i = 0; i < weights->count; i++) {
        const pen_pt2_weight *weight = &weights->entries[i];
        pen_export_tensor tensor;
        if (weight->is_constant) continue; // buffers that are not saved, and what code made
        PEN_TRY(state_find(model, contents, *weight, arena, &tensor));
        state_add(entries, weight->name, &tensor);
    }
    return PEN_OK;
}

// ---- of any other

static pen_status state_list_values(const pen_graph *graph, const pen_export_contents *contents,
                                    pen_arena *arena, state_entries *entries) {
    PEN_TRY(state_reserve(entries, pen_graph_value_count(graph), arena));
    for (uint32_t v = 0; v < pen_graph_value_count(graph); v++) {
        const pen_value_id id = {v};
        const pen_value *value = pen_graph_value(graph, id);
        if (value->kind != PEN_VALUE_PARAMETER && value->kind != PEN_VALUE_STATE) continue;
        const pen_export_tensor tensor = pen_export_contents_tensor(contents, graph, id);
        state_add(entries, value->name, &tensor);
    }
    return PEN_OK;
}

// All entries first, then the file: its header has the places of all.
static pen_status state_write(const pen_model *model, const pen_export_contents *contents,
                              const char *path, pen_arena *arena) {
    state_entries entries = {0};
    const pen_tensor_type **types;
    PEN_TRY(model->pytorch != NULL ? state_list_dict(model, contents, arena, &entries)
                                   : state_list_values(model->graph, contents, arena, &entries));
    PEN_TRY(PEN_NEW(arena, entries.count, &types));
    for (uint32_t i = 0; i < entries.count; i++) {
        types[i] = &entries.tensors[i].type;
    }
    const pen_safetensors_source source = {.count = entries.count,
                                           .names = entries.names,
                                           .types = types,
                                           .read = state_read,
                                           .context = &entries};
    return pen_safetensors_save(path, &source);
}

pen_status pen_state_export(const pen_model *model, const pen_export_contents *contents,
                            const char *path) {
    pen_arena *arena;
    if (path == NULL) return PEN_OK;
    PEN_TRY(pen_arena_create(&arena));
    const pen_status status = state_write(model, contents, path, arena);
    pen_arena_destroy(arena);
    return status;
}
