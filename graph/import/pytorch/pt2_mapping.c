#include "graph/import/pytorch/pt2_mapping.h"

#include <string.h>

// In the order of the alphabet.
static const pen_pt2_family *const mapping_families[] = {
    &pen_pt2_activations,    &pen_pt2_adaptive_pools, &pen_pt2_attentions, &pen_pt2_cells,
    &pen_pt2_convolutions,   &pen_pt2_creations,      &pen_pt2_dropouts,   &pen_pt2_elementwise,
    &pen_pt2_indexings,      &pen_pt2_logic,          &pen_pt2_losses,     &pen_pt2_movements,
    &pen_pt2_normalizations, &pen_pt2_paddings,       &pen_pt2_pools,      &pen_pt2_products,
    &pen_pt2_randoms,        &pen_pt2_recurrents,     &pen_pt2_reductions, &pen_pt2_resizes,
    &pen_pt2_selections,     &pen_pt2_series,         &pen_pt2_slicings,   &pen_pt2_smooth_resizes,
    &pen_pt2_symbols,        &pen_pt2_windows,
};
#define MAPPING_FAMILY_COUNT (sizeof mapping_families / sizeof mapping_families[0])

const pen_pt2_mapping *pen_pt2_mapping_at(uint32_t index) {
    for (size_t f = 0; f < MAPPING_FAMILY_COUNT; f++) {
        if (index < mapping_families[f]->count) return &mapping_families[f]->mappings[index];
        index -= mapping_families[f]->count;
    }
    return NULL;
}

// The row called as `target` is, its byte `left_out` being passed over (SIZE_MAX: none).
static const pen_pt2_mapping *mapping_find(const char *target, size_t left_out) {
    for (size_t f = 0; f < MAPPING_FAMILY_COUNT; f++) {
        for (uint32_t i = 0; i < mapping_families[f]->count; i++) {
            const pen_pt2_mapping *row = &mapping_families[f]->mappings[i];
            if (left_out == SIZE_MAX && strcmp(row->target, target) == 0) return row;
            if (left_out == SIZE_MAX || strncmp(row->target, target, left_out) != 0) continue;
            if (strcmp(row->target + left_out, target + left_out + 1) == 0) return row;
        }
    }
    return NULL;
}

// Operators that work in place end on "_": "aten.add_.Tensor". "_operator.add" and
// "aten.__and__.Tensor" do not.
const pen_pt2_mapping *pen_pt2_mapping_find(const char *target, bool *out_in_place) {
    const char *dot = strchr(target, '.');
    const char *end = dot == NULL ? NULL : strchr(dot + 1, '.');
    const bool is_marked = end != NULL && end - dot > 2 && end[-1] == '_' && end[-2] != '_';
    *out_in_place = is_marked;
    const pen_pt2_mapping *row = mapping_find(target, SIZE_MAX);
    if (row != NULL || !is_marked) return row;
    return mapping_find(target, (size_t)(end - 1 - target));
}
