#include "graph/import/tensorflow/graphdef_mapping.h"

#include <string.h>

static const pen_graphdef_family *const mapping_families[] = {
    &pen_graphdef_arithmetic, &pen_graphdef_images,  &pen_graphdef_lists,    &pen_graphdef_losses,
    &pen_graphdef_randoms,    &pen_graphdef_volumes, &pen_graphdef_movement, &pen_graphdef_norms,
    &pen_graphdef_products,   &pen_graphdef_shapes,  &pen_graphdef_indices,
};
#define MAPPING_FAMILY_COUNT (sizeof mapping_families / sizeof mapping_families[0])

const pen_graphdef_mapping *pen_graphdef_mapping_find(const char *op) {
    for (size_t f = 0; f < MAPPING_FAMILY_COUNT; f++) {
        const pen_graphdef_family *family = mapping_families[f];
        for (uint32_t i = 0; i < family->count; i++) {
            if (strcmp(family->mappings[i].op, op) == 0) return &family->mappings[i];
        }
    }
    return NULL;
}
