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

// Integers that result from a node's in one trial.
typedef struct pen_graphdef_evaluation {
    pen_graphdef_draft *draft;
    uint32_t trial;
    pen_graphdef_ints_known *out; // stays as it is, not known, where it cannot be told
} pen_graphdef_evaluation;

// Operand `input` there; NULL when it is not known.
static inline const pen_graphdef_ints_known *
pen_graphdef_known(const pen_graphdef_evaluation *evaluation, uint32_t input) {
    return pen_graphdef_operand_trial(evaluation->draft, input, evaluation->trial);
}

struct pen_graphdef_mapping {
    const char *op;      // of TensorFlow
    const char *op_name; // ours, for conversions that serve several; or NULL
    pen_status (*convert)(pen_graphdef_draft *draft);
    // NULL: integers are not followed.
    pen_status (*evaluate)(const pen_graphdef_evaluation *known);
    uint32_t statistics; // bit i: operand i is a running statistic
    bool is_truth;       // it makes bools
};

// NULL when the operator is not known.
const pen_graphdef_mapping *pen_graphdef_mapping_find(const char *op);

// The families of the table.
typedef struct pen_graphdef_family {
    const pen_graphdef_mapping *mappings;
    uint32_t count;
} pen_graphdef_family;
#define PEN_GRAPHDEF_FAMILY(name, table)                                                           \
    const pen_graphdef_family name = {.mappings = (table), .count = sizeof(table) / sizeof *(table)}
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
