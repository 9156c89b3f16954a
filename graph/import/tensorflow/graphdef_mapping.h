// How one operator of TensorFlow becomes operators of ours.
//
// An entry of the table has a conversion, which adds nodes through this header. Everything is
// built three times at once: in the model's graph, and in two trials of it, in which every
// dimension that the model leaves open has a number, another in each. So ranks and shapes are
// known while converting, and integers that steer shapes are computed as we go: where both trials
// agree they do not depend on what is open, and the graph gets a constant.
//
// Images: TensorFlow keeps channels last, our operators want them first. A value of four
// dimensions is held in either form, or both: operators on images read and make the channels-first
// form, operators that do not care keep what they find, and all others get the form they expect,
// by a transpose that is made once.
//
// Lifetime: mappings are static; a draft lives for one node's conversion.
// Threads:  one thread at a time.
#ifndef PEN_GRAPH_IMPORT_TENSORFLOW_GRAPHDEF_MAPPING_H
#define PEN_GRAPH_IMPORT_TENSORFLOW_GRAPHDEF_MAPPING_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "graph/attribute.h"
#include "graph/graph_types.h"
#include "graph/import/tensorflow/graphdef_model.h"

#define PEN_GRAPHDEF_TRIALS 2
#define PEN_GRAPHDEF_COPIES 3      // the graph, and its trials
#define PEN_GRAPHDEF_INTS_LIMIT 64 // elements of what is computed while importing

// One value in the graph [0] and in the trials [1], [2]. PEN_VALUE_NONE in a trial: it could not
// be made there, and nothing is known of its shape.
typedef struct pen_graphdef_value {
    pen_value_id in[PEN_GRAPHDEF_COPIES];
} pen_graphdef_value;
#define PEN_GRAPHDEF_VALUE_NONE                                                                    \
    ((pen_graphdef_value){{PEN_VALUE_NONE, PEN_VALUE_NONE, PEN_VALUE_NONE}})

// Integers (or bools) known while importing, of a scalar or a list.
typedef struct pen_graphdef_ints_known {
    bool is_known;
    bool is_scalar;
    uint32_t count;
    int64_t integers[PEN_GRAPHDEF_INTS_LIMIT];
} pen_graphdef_ints_known;

typedef struct pen_graphdef_draft pen_graphdef_draft;

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

// ---- what is read
const pen_graphdef_node *pen_graphdef_draft_node(const pen_graphdef_draft *draft);
const pen_graphdef_mapping *pen_graphdef_draft_mapping(const pen_graphdef_draft *draft);
pen_arena *pen_graphdef_draft_arena(const pen_graphdef_draft *draft);
pen_graph *pen_graphdef_draft_graph(const pen_graphdef_draft *draft, uint32_t copy);
uint32_t pen_graphdef_draft_count(const pen_graphdef_draft *draft); // of operands
// INVALID_INPUT: the node has fewer than `count` operands.
PEN_NODISCARD pen_status pen_graphdef_draft_need(const pen_graphdef_draft *draft, uint32_t count);

// Operand `input`, as TensorFlow has it.
PEN_NODISCARD pen_status pen_graphdef_operand(pen_graphdef_draft *draft, uint32_t input,
                                              pen_graphdef_value *out_value);
// The same with channels first.
PEN_NODISCARD pen_status pen_graphdef_operand_first(pen_graphdef_draft *draft, uint32_t input,
                                                    pen_graphdef_value *out_value);
// Whether it is there in the channels-first form only.
bool pen_graphdef_operand_is_first(const pen_graphdef_draft *draft, uint32_t input);
// The rank of operand `input`, in TensorFlow's form. False: not known.
bool pen_graphdef_operand_rank(const pen_graphdef_draft *draft, uint32_t input, uint32_t *out_rank);
// Its type in a trial; NULL when it is not known.
const pen_tensor_type *pen_graphdef_value_type(const pen_graphdef_draft *draft,
                                               const pen_graphdef_value *value, uint32_t trial);
// Its shape, dimensions that the trials do not agree on being -1.
//   UNSUPPORTED  nothing is known of it
PEN_NODISCARD pen_status pen_graphdef_value_shape(const pen_graphdef_draft *draft,
                                                  const pen_graphdef_value *value,
                                                  pen_shape *out_shape);
// Operand `input` as integers of a trial; NULL when they are not known.
const pen_graphdef_ints_known *pen_graphdef_operand_trial(const pen_graphdef_draft *draft,
                                                          uint32_t input, uint32_t trial);
// Operand `input` as integers that do not depend on what the model leaves open.
//   UNSUPPORTED  they do, or on data
PEN_NODISCARD pen_status pen_graphdef_operand_ints(const pen_graphdef_draft *draft, uint32_t input,
                                                   const pen_graphdef_ints_known **out_ints);
PEN_NODISCARD pen_status pen_graphdef_operand_int(const pen_graphdef_draft *draft, uint32_t input,
                                                  int64_t *out_integer);
// Operand `input` as int64 for an operator that wants such integers: a constant where possible.
PEN_NODISCARD pen_status pen_graphdef_operand_int64s(pen_graphdef_draft *draft, uint32_t input,
                                                     pen_graphdef_value *out_value);

// ---- what is added
// Constants "<node>/<suffix>".
PEN_NODISCARD pen_status pen_graphdef_ints_value(pen_graphdef_draft *draft, const char *suffix,
                                                 uint32_t count, const int64_t *integers,
                                                 pen_graphdef_value *out_value);
PEN_NODISCARD pen_status pen_graphdef_number_value(pen_graphdef_draft *draft, const char *suffix,
                                                   pen_element_type element, double number,
                                                   pen_graphdef_value *out_value);

typedef struct pen_graphdef_emission {
    const char *op_name;
    const char *suffix; // of a node in between; NULL: it is the node itself
    const pen_graphdef_value *inputs;
    uint32_t input_count;
    const pen_attribute_given *attributes;
    uint32_t attribute_count;
    uint32_t output_count; // 0 stands for 1
    bool is_first;         // its outputs have channels first
} pen_graphdef_emission;
// Adds a node; writes output_count values.
PEN_NODISCARD pen_status pen_graphdef_emit(pen_graphdef_draft *draft,
                                           const pen_graphdef_emission *emission,
                                           pen_graphdef_value *out_values);
// The same, of a node of one output, which is the first of `draft`.
PEN_NODISCARD pen_status pen_graphdef_emit_set(pen_graphdef_draft *draft,
                                               const pen_graphdef_emission *emission);
// A node in between of one or two operands and no attributes.
PEN_NODISCARD pen_status pen_graphdef_emit_simple(pen_graphdef_draft *draft, const char *op_name,
                                                  const char *suffix, pen_graphdef_value a,
                                                  const pen_graphdef_value *b,
                                                  pen_graphdef_value *out_value);
typedef struct pen_graphdef_integers {
    uint32_t count;
    const int64_t *values; // [count]
} pen_graphdef_integers;
// The same with an operand of int64, as reshape, squeeze and unsqueeze have it.
PEN_NODISCARD pen_status pen_graphdef_emit_with_ints(pen_graphdef_draft *draft, const char *op_name,
                                                     const char *suffix, pen_graphdef_value a,
                                                     pen_graphdef_integers integers,
                                                     pen_graphdef_value *out_value);
PEN_NODISCARD pen_status pen_graphdef_emit_transpose(pen_graphdef_draft *draft, const char *suffix,
                                                     pen_graphdef_value a, uint32_t rank,
                                                     const int64_t *permutation,
                                                     pen_graphdef_value *out_value);

// ---- what results
// Output `output` of the node, as TensorFlow has it, or with channels first. Nothing happens for
// outputs that nobody reads.
void pen_graphdef_set(pen_graphdef_draft *draft, uint32_t output, pen_graphdef_value value);
void pen_graphdef_set_first(pen_graphdef_draft *draft, uint32_t output, pen_graphdef_value value);
// Output `output` is operand `input`, which is there, in all its forms.
void pen_graphdef_pass(pen_graphdef_draft *draft, uint32_t output, uint32_t input);

#endif // PEN_GRAPH_IMPORT_TENSORFLOW_GRAPHDEF_MAPPING_H
