#include "scheduler/checkpoint/state_export.h"

#include <string.h>

#include "base/arena.h"
#include "graph/element.h"
#include "graph/import/pytorch/pt2_export.h"

// An entry of the state: contents as Penstock has them, and the type that they are written in.
typedef struct state_entry {
    const void *data;
    pen_element_type element; // of `data`
    pen_tensor_type type;
} state_entry;

// A piece has whole elements: the writer's pieces begin at multiples of more than any width.
static pen_status state_read(void *context, uint32_t index, uint64_t first, void *out_data,
                             uint64_t bytes) {
    const state_entry *entry = &((const state_entry *)context)[index];
    const pen_element_type to = entry->type.element;
    if (entry->element == to) {
        memcpy(out_data, (const uint8_t *)entry->data + first, bytes);
        return PEN_OK;
    }
    const size_t width = pen_element_bytes(to);
    const int64_t begin = (int64_t)(first / width), count = (int64_t)(bytes / width);
    for (int64_t i = 0; i < count; i++) {
        pen_element_write(to, out_data, i,
                          pen_element_read(entry->element, entry->data, begin + i));
    }
    return PEN_OK;
}

// What was trained, which has the first of tied names, or what the file has.
static pen_status state_find(const pen_pt2_origin *origin, pen_pt2_weight weight,
                             const pen_safetensors *tensors, pen_arena *arena,
                             state_entry *out_entry) {
    const char *first = origin->weights.entries[weight.same_as].name;
    const pen_safetensors_entry *found =
        tensors == NULL ? NULL : pen_safetensors_find(tensors, first);
    *out_entry = (state_entry){.element = weight.type.element, .type = weight.type};
    out_entry->type.element = weight.meta.element;
    if (found != NULL && pen_tensor_type_equal(&found->type, &weight.type)) {
        out_entry->data = found->data;
        return PEN_OK;
    }
    return pen_pt2_weights_data(&origin->archive, &weight, arena, &out_entry->data);
}

// All entries first, then the file: its header has the places of all.
static pen_status state_write(const pen_pt2_origin *origin, const pen_safetensors *tensors,
                              const char *path, pen_arena *arena) {
    const pen_pt2_weights *weights = &origin->weights;
    const char **names;
    const pen_tensor_type **types;
    state_entry *entries;
    uint32_t count = 0;
    PEN_TRY(PEN_NEW(arena, weights->count, &names));
    PEN_TRY(PEN_NEW(arena, weights->count, &types));
    PEN_TRY(PEN_NEW(arena, weights->count, &entries));
    for (uint32_t i = 0; i < weights->count; i++) {
        const pen_pt2_weight *weight = &weights->entries[i];
        if (weight->is_constant) continue; // buffers that are not saved, and what code made
        PEN_TRY(state_find(origin, *weight, tensors, arena, &entries[count]));
        names[count] = weight->name;
        types[count] = &entries[count].type;
        count++;
    }
    const pen_safetensors_source source = {
        .count = count, .names = names, .types = types, .read = state_read, .context = entries};
    return pen_safetensors_save(path, &source);
}

pen_status pen_state_export(const pen_model *model, const pen_safetensors *tensors,
                            const char *path) {
    if (model->pytorch == NULL) {
        return pen_error(PEN_UNSUPPORTED,
                         "%s is no .pt2 file; a state_dict() is written of what came as one",
                         model->path);
    }
    if (path == NULL) return PEN_OK;
    pen_arena *arena;
    PEN_TRY(pen_arena_create(&arena));
    const pen_status status = state_write(model->pytorch, tensors, path, arena);
    pen_arena_destroy(arena);
    return status;
}
