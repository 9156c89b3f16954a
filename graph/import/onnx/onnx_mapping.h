// The contract of mappings and conversions: how one operator of ONNX becomes operators of ours.
//
// Most map one to one: same operands, same attributes. For the others a conversion edits a draft
// of the node before it is added (an attribute of an older operator set becomes an operand, say),
// or adds nodes of its own.
//
// Lifetime: mappings are static; a draft lives for one node's conversion.
// Threads:  one thread at a time.
#ifndef PEN_GRAPH_IMPORT_ONNX_ONNX_MAPPING_H
#define PEN_GRAPH_IMPORT_ONNX_ONNX_MAPPING_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "graph/graph.h"
#include "graph/import/import.h"
#include "graph/import/onnx/onnx_model.h"
#include "graph/import/onnx/onnx_weights.h"
#include "graph/node_parts.h"
#include "graph/passes/fuse/spell_layers.h"

#define PEN_ONNX_DRAFT_ROOM 8 // operands and attributes that a conversion may add

// A node about to be added.
typedef struct pen_onnx_draft {
    pen_graph *graph;
    const pen_onnx_model *model;
    const pen_import_options *options;
    pen_external_files *files;
    pen_onnx_weights *weights;
    const pen_onnx_node *node;
    const char *name; // the node's; made up when it has none
    pen_source source;
    const char *op_name;
    pen_value_id *inputs; // room for PEN_ONNX_DRAFT_ROOM more
    uint32_t input_count;
    pen_attribute_given *attributes; // room for PEN_ONNX_DRAFT_ROOM more
    uint32_t attribute_count;
    const char **output_names; // room for PEN_ONNX_DRAFT_ROOM more
    uint32_t output_count;
    bool is_value;        // nothing is to be added: the first output is `value`
    pen_value_id value;   // made by the conversion
    uint32_t value_count; // 0, or: nothing is to be added, the outputs are `values`
    pen_value_id *values; // [value_count], made by the conversion
} pen_onnx_draft;

typedef struct pen_onnx_mapping {
    const char *op_type;
    const char *domain;   // NULL: ONNX's own
    const char *op_name;  // ours
    uint32_t opset_first; // the oldest form that is read rightly
    // Attributes that are not simply passed on, separated by spaces. "axes" is read by `convert`,
    // or means nothing to us; of "storage_order=0" only that value is possible.
    const char *taken;
    uint32_t state_inputs;    // bit i: input i is a running statistic
    uint32_t constant_inputs; // bit i: input i is no weight, though it may be floating; those that
                              // our op declares need not be repeated
    bool own_arity;           // `convert` changes the number of operands
    bool is_several;          // it becomes several nodes: `op_name` is exported as another operator
    pen_status (*convert)(pen_onnx_draft *draft); // NULL: as it is
} pen_onnx_mapping;

// NULL when the operator is not known.
const pen_onnx_mapping *pen_onnx_mapping_find(const char *op_type);
// The same for a node: its domain must be the operator's.
const pen_onnx_mapping *pen_onnx_mapping_of_node(const pen_onnx_node *node);

// Entry `index` of the table; NULL behind its end.
const pen_onnx_mapping *pen_onnx_mapping_at(uint32_t index);

// What is known of an operator of ours by its ONNX name, for export. NULL as above.
const pen_onnx_mapping *pen_onnx_mapping_of_op(const char *op_name);

// Ops that ONNX lacks, or has only behind the operator set that is written.
extern const pen_spelling pen_onnx_spellings[]; // [pen_onnx_spelling_count]
extern const uint32_t pen_onnx_spelling_count;

// ---- for conversions
const pen_onnx_attribute *pen_onnx_draft_attribute(const pen_onnx_draft *draft, const char *name);
int64_t pen_onnx_draft_int(const pen_onnx_draft *draft, const char *name, int64_t fallback);
double pen_onnx_draft_float(const pen_onnx_draft *draft, const char *name, double fallback);
// Whether operand `input` is given.
bool pen_onnx_draft_has(const pen_onnx_draft *draft, uint32_t input);
// The rank of operand `input`, when it is known already.
bool pen_onnx_draft_rank(const pen_onnx_draft *draft, uint32_t input, uint32_t *out_rank);
void pen_onnx_draft_set_input(pen_onnx_draft *draft, uint32_t input, pen_value_id value);
void pen_onnx_draft_add_attribute(pen_onnx_draft *draft, pen_attribute_given attribute);
// Operand `input` becomes a constant, called "<node>/<suffix>".
PEN_NODISCARD pen_status pen_onnx_draft_ints(pen_onnx_draft *draft, uint32_t input,
                                             const char *suffix, uint32_t count,
                                             const int64_t *integers);
// The same of float32.
PEN_NODISCARD pen_status pen_onnx_draft_floats(pen_onnx_draft *draft, uint32_t input,
                                               const char *suffix, uint32_t count,
                                               const double *numbers);
// A scalar of the element type of operand 0, if that is known, else float32.
PEN_NODISCARD pen_status pen_onnx_draft_number(pen_onnx_draft *draft, uint32_t input,
                                               const char *suffix, double number);
// Adds a node "<node>/<suffix>" in front, of one output.
typedef struct pen_onnx_extra {
    const char *op_name;
    const char *suffix;
    pen_node_inputs inputs;
    pen_node_attributes attributes;
} pen_onnx_extra;
PEN_NODISCARD pen_status pen_onnx_draft_extra(pen_onnx_draft *draft, const pen_onnx_extra *extra,
                                              pen_value_id *out_value);
// A constant "<node>/<suffix>" in front, of integers.
PEN_NODISCARD pen_status pen_onnx_draft_list(pen_onnx_draft *draft, const char *suffix,
                                             uint32_t count, const int64_t *integers,
                                             pen_value_id *out_value);

// ---- the conversions, named by operator
pen_status pen_onnx_convert_adagrad(pen_onnx_draft *draft);
pen_status pen_onnx_convert_adam(pen_onnx_draft *draft);
pen_status pen_onnx_convert_conv_integer(pen_onnx_draft *draft);
pen_status pen_onnx_convert_matmul_integer(pen_onnx_draft *draft);
pen_status pen_onnx_convert_momentum(pen_onnx_draft *draft);
pen_status pen_onnx_convert_output_type(pen_onnx_draft *draft);
pen_status pen_onnx_convert_qlinear_conv(pen_onnx_draft *draft);
pen_status pen_onnx_convert_qlinear_matmul(pen_onnx_draft *draft);
pen_status pen_onnx_convert_attention(pen_onnx_draft *draft);
pen_status pen_onnx_convert_axes(pen_onnx_draft *draft); // attribute axes to operand 1
pen_status pen_onnx_convert_batch_normalization(pen_onnx_draft *draft);
pen_status pen_onnx_convert_broadcast(pen_onnx_draft *draft); // operator set 6
pen_status pen_onnx_convert_cast(pen_onnx_draft *draft);
pen_status pen_onnx_convert_cast_like(pen_onnx_draft *draft);
pen_status pen_onnx_convert_clip(pen_onnx_draft *draft);
pen_status pen_onnx_convert_constant(pen_onnx_draft *draft);
pen_status pen_onnx_convert_constant_of_shape(pen_onnx_draft *draft);
pen_status pen_onnx_convert_dft(pen_onnx_draft *draft);
pen_status pen_onnx_convert_dropout(pen_onnx_draft *draft);
pen_status pen_onnx_convert_gather(pen_onnx_draft *draft);
pen_status pen_onnx_convert_grid_sample(pen_onnx_draft *draft);
pen_status pen_onnx_convert_identity(pen_onnx_draft *draft);
pen_status pen_onnx_convert_lstm(pen_onnx_draft *draft);
pen_status pen_onnx_convert_gru(pen_onnx_draft *draft);
pen_status pen_onnx_convert_pad(pen_onnx_draft *draft);
pen_status pen_onnx_convert_pad_axes(pen_onnx_draft *draft); // operand 3 is axes
pen_status pen_onnx_convert_rnn(pen_onnx_draft *draft);
pen_status pen_onnx_convert_mean_variance(pen_onnx_draft *draft);
pen_status pen_onnx_convert_resize(pen_onnx_draft *draft);
pen_status pen_onnx_convert_roi_align(pen_onnx_draft *draft);
pen_status pen_onnx_convert_rotary(pen_onnx_draft *draft);
pen_status pen_onnx_convert_slice(pen_onnx_draft *draft);
pen_status pen_onnx_convert_softmax(pen_onnx_draft *draft);
pen_status pen_onnx_convert_split(pen_onnx_draft *draft);
pen_status pen_onnx_convert_top_k(pen_onnx_draft *draft);
pen_status pen_onnx_convert_upsample(pen_onnx_draft *draft);

#endif // PEN_GRAPH_IMPORT_ONNX_ONNX_MAPPING_H
