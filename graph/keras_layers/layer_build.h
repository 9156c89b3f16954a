// The contract of what layers are built with: nodes, weights, layouts and activations.
//
// For the build functions of the table (graph/keras_layers/layer.h). Every node is named after the
// layer that is being built, "<layer>" or "<layer>/<suffix>", and has its source.
//
// Lifetime, threads: as the builder.
#ifndef PEN_GRAPH_KERAS_LAYERS_LAYER_BUILD_H
#define PEN_GRAPH_KERAS_LAYERS_LAYER_BUILD_H

#include "graph/attribute.h"
#include "graph/graph_types.h"
#include "graph/keras_layers/layer.h"
#include "graph/keras_layers/layer_choices.h"
#include "graph/node_parts.h"
#include "graph/tensor_type.h"

pen_graph *pen_layer_graph(const pen_layer_call *call);
pen_arena *pen_layer_arena(const pen_layer_call *call); // the graph's

// "[?,28,28,1]": a shape as the user sees it. Returns `out_text`.
const char *pen_layer_shape_format(const pen_shape *shape, char out_text[PEN_SHAPE_TEXT_BYTES]);

// One more result, after those there are. Always PEN_OK, to end a build function with.
pen_status pen_layer_give(pen_layer_result *result, pen_layer_tensor tensor);

// A float32 tensor of a shape, whose value lies as the user sees it.
pen_layer_tensor pen_layer_tensor_make(pen_value_id value, const pen_shape *shape);

// The numbers of an option that may be one for all, or `count` of them; none gives `fallback`'s.
// INVALID_INPUT names the option.
PEN_NODISCARD pen_status pen_layer_sizes(const pen_option_list *given, const char *option,
                                         uint32_t count, const int64_t *fallback,
                                         int64_t *out_sizes);

// Refuses what a layer within another one cannot have: an activity_regularizer. UNSUPPORTED
PEN_NODISCARD pen_status pen_layer_refuse_inner(const pen_layer_common *common);

// ---- nodes

// Adds a node of one output, called "<layer>/<suffix>", or as the layer where `suffix` is NULL.
PEN_NODISCARD pen_status pen_layer_add(const pen_layer_call *call, const char *op,
                                       const char *suffix, pen_node_inputs inputs,
                                       pen_node_attributes attributes, pen_value_id *out_value);
// The same of several outputs, [output_count].
typedef struct pen_layer_node {
    const char *op;
    const char *suffix;
    pen_node_inputs inputs;
    pen_node_attributes attributes;
    uint32_t output_count;
} pen_layer_node;
PEN_NODISCARD pen_status pen_layer_add_node(const pen_layer_call *call, const pen_layer_node *node,
                                            const pen_value_id **out_values);

// op(x), op(a, b), without attributes; inputs behind each other along `axis`.
PEN_NODISCARD pen_status pen_layer_map(const pen_layer_call *call, const char *op,
                                       const char *suffix, pen_value_id x, pen_value_id *out_value);
PEN_NODISCARD pen_status pen_layer_pair(const pen_layer_call *call, const char *op,
                                        const char *suffix, pen_value_id a, pen_value_id b,
                                        pen_value_id *out_value);
PEN_NODISCARD pen_status pen_layer_concat(const pen_layer_call *call, const char *suffix,
                                          pen_node_inputs inputs, int64_t axis,
                                          pen_value_id *out_value);

// Constants "<layer>/<suffix>".
PEN_NODISCARD pen_status pen_layer_number(const pen_layer_call *call, const char *suffix,
                                          double number, pen_value_id *out_value);
PEN_NODISCARD pen_status pen_layer_number_of(const pen_layer_call *call, const char *suffix,
                                             pen_element_type element, double number,
                                             pen_value_id *out_value);
PEN_NODISCARD pen_status pen_layer_cast(const pen_layer_call *call, pen_value_id value,
                                        const char *element, pen_value_id *out_value);
PEN_NODISCARD pen_status pen_layer_ints(const pen_layer_call *call, const char *suffix,
                                        uint32_t count, const int64_t *integers,
                                        pen_value_id *out_value);

// A float32 constant of zeros for the caller to fill. INVALID_INPUT: it is too large.
PEN_NODISCARD pen_status pen_layer_floats(const pen_layer_call *call, const char *suffix,
                                          const pen_shape *shape, float **out_numbers,
                                          pen_value_id *out_value);

// The value under another shape; a dimension of PEN_LAYER_BATCH in front stays the batch.
PEN_NODISCARD pen_status pen_layer_reshape(const pen_layer_call *call, pen_value_id value,
                                           const pen_shape *shape, const char *suffix,
                                           pen_value_id *out_value);
// Dimension i of the result is dimension axes[i] of `value`, which has `shape`. A view where only
// dimensions of 1 move.
PEN_NODISCARD pen_status pen_layer_transpose(const pen_layer_call *call, pen_value_id value,
                                             const pen_shape *shape, const int64_t *axes,
                                             pen_value_id *out_value);
// Elements [start, end) of an axis, every step-th.
typedef struct pen_layer_range {
    int64_t axis;
    int64_t start;
    int64_t end;
    int64_t step;
} pen_layer_range;
PEN_NODISCARD pen_status pen_layer_slice(const pen_layer_call *call, pen_value_id value,
                                         const char *suffix, pen_layer_range range,
                                         pen_value_id *out_value);

// ---- layouts

// The tensor with its value as the user sees it.
PEN_NODISCARD pen_status pen_layer_plain(const pen_layer_call *call, const pen_layer_tensor *tensor,
                                         pen_layer_tensor *out_tensor);

// A tensor as kernels want it: (batch, channels, spatial…).
typedef struct pen_layer_spatial {
    pen_value_id value;
    int64_t channels;
    uint32_t rank; // of `sizes`
    int64_t sizes[PEN_LAYER_SPATIAL_LIMIT];
} pen_layer_spatial;

PEN_NODISCARD pen_status pen_layer_take_spatial(const pen_layer_call *call,
                                                const pen_layer_tensor *tensor,
                                                pen_layer_format format,
                                                pen_layer_spatial *out_spatial);
// The way back: no node is made.
pen_layer_tensor pen_layer_give_spatial(const pen_layer_spatial *spatial, pen_layer_format format);

// ---- activations

// Suffixes are the activation's name. PEN_LAYER_LINEAR adds nothing.
PEN_NODISCARD pen_status pen_layer_activate(const pen_layer_call *call,
                                            pen_layer_activation activation,
                                            const pen_layer_tensor *tensor,
                                            pen_layer_tensor *out_tensor);

// Drops elements of a value in training. A rate of 0 adds nothing.
PEN_NODISCARD pen_status pen_layer_add_dropout(const pen_layer_call *call, const char *suffix,
                                               double rate, pen_value_id *io_value);

// Makes a value of length 1 along some of its axes.
PEN_NODISCARD pen_status pen_layer_add_unit(const pen_layer_call *call, uint32_t count,
                                            const int64_t *axes, pen_value_id *io_value);

// (batch, sizes…) of ones, with as many examples as `like`.
PEN_NODISCARD pen_status pen_layer_add_ones(const pen_layer_call *call, pen_value_id like,
                                            uint32_t count, const int64_t *sizes,
                                            pen_value_id *out_value);

// ---- weights

typedef struct pen_layer_contents {
    pen_layer_weight_options options;
    bool is_state;  // a running statistic
    bool is_forget; // a bias of lstm: ones for the forget gate, whatever the initialiser
} pen_layer_contents;

// A weight that is the whole of its parameter. `axes` says where each dimension of Keras' shape
// stands in the parameter's; NULL: where it stands in Keras'.
typedef struct pen_layer_whole_weight {
    const char *name;
    pen_shape shape; // Keras'
    const uint32_t *axes;
    pen_layer_contents contents;
} pen_layer_whole_weight;

PEN_NODISCARD pen_status pen_layer_add_whole_weight(const pen_layer_call *call,
                                                    const pen_layer_whole_weight *spec,
                                                    pen_value_id *out_value);

// The vector "bias" of `count` elements; PEN_VALUE_NONE where `options` is NULL.
PEN_NODISCARD pen_status pen_layer_add_bias(const pen_layer_call *call,
                                            const pen_layer_weight_options *options, int64_t count,
                                            pen_value_id *out_value);

// A weight that is part of a parameter of shape `stored`. `weight` is copied; its layer and value
// are set here. *io_value is the parameter, or PEN_VALUE_NONE to make it. A weight that the layer
// has from an earlier application is found again.
PEN_NODISCARD pen_status pen_layer_add_weight(const pen_layer_call *call,
                                              const pen_layer_weight *weight,
                                              const pen_layer_contents *contents,
                                              const pen_shape *stored, pen_value_id *io_value);

// Writes first contents, in Keras' order. `stream` names the numbers.
//   INVALID_INPUT  the initialiser does not suit the shape
PEN_NODISCARD pen_status pen_layer_initialize(const pen_layer_initializer *initializer,
                                              uint64_t seed, const char *stream,
                                              const pen_shape *shape, float *out_numbers);

// ---- what the loss has besides (layer_penalty.c)

// Adds l1 * sum |x| + l2 * sum x^2 of a parameter, `name` being its weight's.
PEN_NODISCARD pen_status pen_layer_penalize_weight(const pen_layer_call *call, const char *name,
                                                   const pen_layer_regularizer *regularizer,
                                                   pen_value_id parameter);
// The same of what a layer gives: the mean over the batch of the sums of its examples.
PEN_NODISCARD pen_status pen_layer_penalize_result(const pen_layer_call *call,
                                                   const pen_layer_regularizer *regularizer,
                                                   const pen_layer_tensor *result);

// ---- masks (layer_mask.c)

// Sets the masks of a layer's results: those that the layer passes on.
PEN_NODISCARD pen_status pen_layer_pass_masks(const pen_layer_call *call,
                                              pen_layer_result *io_result);
// Gives a tensor the mask that holds where those of all inputs do.
//   INVALID_INPUT  they are of different ranks
PEN_NODISCARD pen_status pen_layer_join_masks(const pen_layer_call *call,
                                              pen_layer_tensor *io_tensor);
// (batch, steps) as (batch, steps, 1, …) of `rank` dimensions, of numbers.
PEN_NODISCARD pen_status pen_layer_mask_column(const pen_layer_call *call,
                                               const pen_layer_tensor *tensor, uint32_t rank,
                                               pen_value_id *out_value);

#endif // PEN_GRAPH_KERAS_LAYERS_LAYER_BUILD_H
