// Models in: a file becomes a graph.
//
// The kind of file is told by its name and contents: model_format.h has the list. A model owns its
// graph's memory and keeps the file mapped: weights are never copied as a whole, so a model larger
// than memory can be looked at and cut up.
//
// What comes out is canonical: operators are those of ONNX operator set 17, in our spelling, and
// older forms were converted. Inputs, parameters and constants have types, computed values get
// theirs from pen_infer_shapes, after symbols are bound.
//   Floating initializers are trainable parameters under their own names, or constants, as
//   onnx/onnx_weights.h says; those that no operator reads but as an operand that must be constant
//   (a bound of clip, the value of pad), and all of integer or bool type, are constants. Means and
//   variances of batch normalization are states.
//   An initializer that a model passes through `Identity` under another name becomes a parameter
//   of its own: exporters merge equal weights so, and training must not tie them.
//   Dimensions without a number are symbols: their own name, or "<input>_<axis>".
//
// Lifetime: pen_model_open to pen_model_destroy; the graph and all it points to go with it.
// Threads:  one thread opens and destroys; in between as pen_graph.
#ifndef PEN_GRAPH_IMPORT_IMPORT_H
#define PEN_GRAPH_IMPORT_IMPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/option/option.h"
#include "base/status.h"
#include "graph/graph_types.h"
#include "graph/passes/infer_shapes.h"
#include "graph/tensor_type.h"

// A dimension of a declared output type of which nothing is known.
#define PEN_DIMENSION_UNKNOWN INT64_MIN

// Contents for an input of the model.
typedef struct pen_import_fixed_input {
    const char *name;
    pen_tensor_type type;
    const void *data;  // borrowed until the model is destroyed
    bool where_needed; // only if some operator needs it constant; else it stays an input
} pen_import_fixed_input;

// The shape of an input of the model.
typedef struct pen_import_input_shape {
    const char *name;
    pen_option_list sizes; // of int64_t, without the batch
} pen_import_input_shape;

// What keeps all that a PyTorch model has, for those who are told that their file does not.
#define PEN_MODEL_RECIPE                                                                           \
    "torch.export.save(torch.export.export(model.train(), inputs), \"model.pt2\") keeps all of a " \
    "model; torch.onnx.export(model.train(), inputs, \"model.onnx\", optimize=False) all that "    \
    "ONNX "                                                                                        \
    "has"

typedef struct pen_import_options {
    // Dropouts of operator sets before 12 do not say whether they train: whether they do.
    bool dropout_trains;
    // Inputs that become constants of the given type and contents.
    const pen_import_fixed_input *fixed_inputs;
    uint32_t fixed_input_count;
    // ONNX, TensorFlow: floating constants whose names match this regular expression become
    // trainable parameters. NULL: none.
    const char *unfreeze;
    // TensorFlow: names of outputs, "dense/Relu" or "Split:1". None: what no other node reads, or
    // what the signature says.
    const char *const *outputs; // [output_count]
    uint32_t output_count;
    bool use_device_strings; // what nodes say of their devices goes into the model's pins
    // ONNX, TensorFlow: batch normalization whose scale or offset is trained is in training mode:
    // it takes the batch's statistics, and updates the running ones, which keep so much of
    // themselves (in ONNX as much as the node says).
    bool train_batch_norm;
    double batch_norm_momentum; // 0 to 1
    bool widens_halves; // ONNX: a model whose weights are float16 or bfloat16 is read as float32
    bool widens_inputs; // ONNX: inputs of bool and of other integers are int64, which data are,
                        // with a cast behind them
    bool train_what_is_left; // ONNX: a file that has lost parameters may be trained as it is
    // TensorFlow: nodes that the rounds of loops may lead to. 0: PEN_INLINED_NODES_LIMIT.
    uint32_t round_nodes_limit;
    const char *signature; // of a SavedModel; NULL: "serving_default", or the first there is
    // Keras: sizes of inputs whose file does not say all.
    const pen_import_input_shape *input_shapes; // [input_shape_count]
    uint32_t input_shape_count;
    // Layers in YAML that were read: then the path only names them, and is not opened. Borrowed for
    // the call; NULL: none
    const pen_yaml_node *layers;
    // Computes what conditions of branches and lengths of loops are, which must be known when the
    // model is read. NULL: only those that stand in the model as constants are.
    pen_evaluate_fn evaluate;
    void *evaluate_context;
} pen_import_options;

typedef struct pen_model_files pen_model_files;

// A floating tensor of an ONNX file that may be trained, and what it became.
typedef struct pen_model_weight {
    const char *name;
    bool is_trained;    // a parameter; else a constant
    const char *reason; // "the file marks it as a parameter"
    const char *of;     // the parameter that the exporter made it of; NULL: none
} pen_model_weight;

// A tensor that the model had when it was exported, and the file has no more.
typedef struct pen_model_lost {
    const char *name;
    const char *what; // "folded into 'val_7'"
} pen_model_lost;

// A node of the graph that the model's file wants on some device.
typedef struct pen_model_pin {
    const char *node;
    const char *device; // as in the file: "/job:worker/task:1"
} pen_model_pin;

// What sizes a symbol of the inputs may have.
typedef struct pen_model_range {
    const char *symbol;
    int64_t least, most; // INT64_MAX: any
} pen_model_range;

typedef struct pen_model {
    pen_graph *graph;
    const char *path;                    // as given
    const char *format;                  // what kind of file it is: "onnx"
    const char *producer;                // "pytorch"; "" when the file does not say
    int64_t opset;                       // of ONNX; 0 for other formats
    const char *batch_symbol;            // first dimension of the first input; NULL: it is a number
    const pen_tensor_type *output_types; // [pen_graph_output_count], as the file declares them:
                                         // element unknown, symbols and PEN_DIMENSION_UNKNOWN
                                         // are possible
    const char *compiled;            // Keras: loss and optimizer that it was trained with, as a job
                                     // would say them; NULL for other formats, and without any
    const char *penalty;             // value that the loss has besides: regularizers'; NULL: none
    const char *const *output_masks; // [pen_graph_output_count] values of bool, which targets
                                     // count; NULL, here and there: all
    bool guesses_outputs; // the file does not say which outputs it has, and the options do not:
                          // they are what no other node reads
    const pen_model_pin *pins; // [pin_count], if they were asked for
    uint32_t pin_count;
    bool hides_frozen; // its kind of file has no word for parameters that the model had frozen
    const char *const *warnings; // [warning_count], what a user should know of the file
    uint32_t warning_count;
    const pen_model_range *ranges; // [range_count]; symbols without one may have any size
    uint32_t range_count;
    const char *batch_recipe; // how the model is exported with an open batch, of files in which a
                              // batch that is a number cannot be another; NULL: it may be tried
    const pen_model_weight *weights; // [weight_count], ONNX
    uint32_t weight_count;
    const pen_model_lost *lost; // [lost_count], ONNX: training is not that of the model
    uint32_t lost_count;
    const struct pen_graphdef_origin *tensorflow; // the graph it came from; NULL for other formats
    const struct pen_pt2_origin *pytorch;         // the .pt2 file; NULL for other formats
    const struct pen_keras_origin *keras;         // the .keras or .h5 file; likewise
    struct pen_layer_builder *layers;             // that made it; NULL for other formats
    bool is_reloaded; // the graph's contents are not those of the file: other weights were loaded
    pen_arena *arena; // of the graph; more may be put there
    pen_model_files *files; // what is mapped
} pen_model;

// Opens a model file. `options` may be NULL. Errors carry the file and the node.
//   NOT_FOUND, IO, OUT_OF_MEMORY
//   CORRUPT        the file contradicts itself
//   INVALID_INPUT  it is no model, or one that is wrong
//   UNSUPPORTED    lists everything in it that Penstock cannot do, once each, with count and nodes
PEN_NODISCARD pen_status pen_model_open(const char *path, const pen_import_options *options,
                                        pen_model **out_model);

// The same for a file in memory, of the kind that `name` ends as (ONNX when it tells none), which
// is borrowed until the model is destroyed. `name` stands for the file in errors. No other file is
// opened: external data is refused.
PEN_NODISCARD pen_status pen_model_open_bytes(const void *bytes, size_t length, const char *name,
                                              const pen_import_options *options,
                                              pen_model **out_model);

// Whether a name ends as that of a model, and of nothing else: YAML may be a job, too.
bool pen_model_is_named(const char *path);

// Lets the system drop from memory what was read of the model's files: after its tensors were
// copied to a device, say. They stay readable.
void pen_model_forget(const pen_model *model);

// Whether `path` is a file that the model is read from: its own, or one of external data.
bool pen_model_reads(const pen_model *model, const char *path);

// The name of the mask of an output, or of the first one for NULL; NULL: all its targets count.
const char *pen_model_find_mask(const pen_model *model, const char *output);

// Accepts NULL.
void pen_model_destroy(pen_model *model);

#endif // PEN_GRAPH_IMPORT_IMPORT_H
