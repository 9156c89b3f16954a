// The table of TensorFlow's operators: how each becomes operators of ours.
//
// An entry has a conversion, which adds nodes through graphdef_convert.h, and, if integers that
// steer shapes come of it, an evaluation.
//
// Threads: immutable.
#ifndef PEN_GRAPH_IMPORT_TENSORFLOW_GRAPHDEF_MAPPING_H
#define PEN_GRAPH_IMPORT_TENSORFLOW_GRAPHDEF_MAPPING_H

#include <stdbool.h>
#include <stdint.h>

#include "graph/import/tensorflow/graphdef_convert.h"

typedef struct pen_graphdef_mapping {
    const char *op;      // of TensorFlow
    const char *op_name; // ours, for conversions that serve several; or NULL
    pen_status (*convert)(pen_graphdef_draft *draft);
    // Integers that result from integers, in one trial. NULL: they are not followed. Leaves
    // out_ints as it is where it cannot tell.
    pen_status (*evaluate)(pen_graphdef_draft *draft, uint32_t trial,
                           pen_graphdef_ints_known *out_ints);
    uint32_t statistics; // bit i: operand i is a running statistic
    bool is_truth;       // it makes bools
} pen_graphdef_mapping;

// NULL when the operator is not known.
const pen_graphdef_mapping *pen_graphdef_mapping_find(const char *op);

// The families of the table.
typedef struct pen_graphdef_family {
    const pen_graphdef_mapping *mappings;
    uint32_t count;
} pen_graphdef_family;
extern const pen_graphdef_family pen_graphdef_arithmetic; // graphdef_arithmetic.c
extern const pen_graphdef_family pen_graphdef_images;     // graphdef_image.c
extern const pen_graphdef_family pen_graphdef_lists;      // graphdef_list.c
extern const pen_graphdef_family pen_graphdef_losses;     // graphdef_loss.c
extern const pen_graphdef_family pen_graphdef_indices;    // graphdef_index.c
extern const pen_graphdef_family pen_graphdef_movement;   // graphdef_movement.c
extern const pen_graphdef_family pen_graphdef_norms;      // graphdef_norm.c
extern const pen_graphdef_family pen_graphdef_products;   // graphdef_product.c
extern const pen_graphdef_family pen_graphdef_randoms;    // graphdef_random.c
extern const pen_graphdef_family pen_graphdef_shapes;     // graphdef_shape.c
extern const pen_graphdef_family pen_graphdef_volumes;    // graphdef_volume.c

#endif // PEN_GRAPH_IMPORT_TENSORFLOW_GRAPHDEF_MAPPING_H
