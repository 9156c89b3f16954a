// What the compiler is asked, and what it makes: plain data that compile.h and the passes share.
#ifndef PEN_SCHEDULER_COMPILE_COMPILE_REQUEST_H
#define PEN_SCHEDULER_COMPILE_COMPILE_REQUEST_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "device/device.h"
#include "graph/graph_types.h"
#include "graph/import/import.h"
#include "graph/passes/gradient/attach_loss.h"
#include "graph/passes/gradient/build_updates.h"
#include "graph/passes/infer_shapes.h"
#include "scheduler/compile/weight_file.h"
#include "scheduler/metric/metric_tally.h"

typedef enum pen_compile_mode {
    PEN_COMPILE_TRAIN,      // forward, loss, backward, update
    PEN_COMPILE_EVALUATE,   // forward in inference mode, loss
    PEN_COMPILE_PREDICT,    // forward in inference mode
    PEN_COMPILE_PREFILL,    // the same, and keeps what DECODE reads of earlier positions
    PEN_COMPILE_DECODE,     // of one position alone (graph/passes/decode/)
    PEN_COMPILE_LOOK,       // not to be run, only looked at: in inference mode, with shapes
    PEN_COMPILE_LOOK_FUSED, // likewise, as PREDICT would run it
} pen_compile_mode;

// What one example of a graph input looks like, from the data.
typedef struct pen_compile_input {
    const char *name; // "" stands for the model's only input
    uint32_t rank;    // without the batch dimension
    const int64_t *dims;
} pen_compile_input;

// What the user wrote that an error is about, for pen_compile_request.blame.
typedef enum pen_compile_part {
    PEN_COMPILE_PART_NONE,
    PEN_COMPILE_PART_MODEL,
    PEN_COMPILE_PART_WEIGHTS,
    PEN_COMPILE_PART_INPUTS, // the examples
    PEN_COMPILE_PART_SHAPES, // of the inputs, and the model that they do not suit
    PEN_COMPILE_PART_LOSS,
    PEN_COMPILE_PART_FREEZE,
    PEN_COMPILE_PART_SHARD,
    PEN_COMPILE_PART_GROUP, // of the optimizer's
    PEN_COMPILE_PART_METRICS,
    PEN_COMPILE_PART_ADAPT,
    PEN_COMPILE_PART_ADAPTERS, // that were saved
} pen_compile_part;

// Gives an error the position at which `part` was written, unless it has one.
// `index` says which of the losses, of what is sharded, or of the groups it is, else 0.
typedef pen_status (*pen_compile_blame_fn)(const void *context, pen_compile_part part,
                                           uint32_t index, pen_status status);

// A loss that is asked for. What is trained is the sum of all, each times its weight.
typedef struct pen_compile_loss {
    pen_loss_spec spec;
    const char *output; // name of the output that it is taken of; NULL: the first
    const char *labels; // name of the data's labels; NULL: the only ones
    double weight;
} pen_compile_loss;

// Nodes whose parameters are cut: graph/passes/shard/shard_layers.h.
typedef struct pen_compile_shard {
    const char *nodes; // a name, or a pattern of names
    uint32_t ways;
} pen_compile_shard;

// Nodes whose weights are adapted: graph/passes/adapt_weights.h.
typedef struct pen_compile_lora {
    const char *nodes; // a name, or a pattern of names
    uint32_t rank;
    double alpha;        // adapters count alpha / rank
    const char *weights; // file of first contents of all adapters; NULL: drawn, and zeros
    uint64_t seed;
} pen_compile_lora;

typedef struct pen_compile_pass pen_compile_pass; // compile_pass.h

// Is told of the graph after each pass. An error ends the compilation.
typedef pen_status (*pen_compile_watch_fn)(void *context, const pen_compile_pass *pass,
                                           const pen_graph *graph);

// Everything borrowed for the call.
typedef struct pen_compile_request {
    const char *model_path;
    pen_import_options
        import; // all zero: as the file says; dropout_trains and evaluate are not looked at
    const pen_weight_options *weights; // first contents from another file; NULL: the model's own
    pen_compile_mode mode;
    uint64_t microbatch_size;  // examples: what the first dimension of the inputs becomes; 0: the
                               // model's own
    bool accumulate;           // training: gradients add up over several microbatches a step
    uint32_t microbatches;     // training: of a step, at most; 0: not known
    uint64_t most_examples;    // of any of them
    uint32_t lanes;            // training: that they form; 0 is 1
    pen_asynchrony asynchrony; // training: of several lanes
    bool is_scaled;            // training: `loss_weight` is scaled, and `unscale` undoes it
    bool is_whole;             // training: the program runs on one device as it is, and is not cut
    const char *output;        // PREFILL, DECODE: the output that is asked for; NULL: the first
    bool collects; // PREDICT: outputs are copies that nothing else reads, to be placed elsewhere
    const pen_compile_input *inputs; // [input_count]; those not listed must have no unknown size
    uint32_t input_count;
    const pen_symbol_binding *sizes; // [size_count], of the model's dimensions by their names
    uint32_t size_count;
    const pen_compile_loss *losses; // [loss_count], at least one; not for PREDICT
    uint32_t loss_count;
    pen_metric_set metrics;          // EVALUATE: what their outputs are seen for; TRAIN: what
                                     // is told of steps, where the losses have all that it takes
    pen_optimizer optimizer;         // TRAIN
    const pen_compile_shard *shards; // [shard_count]; of two that mean a node the later counts
    uint32_t shard_count;
    const pen_compile_lora *lora; // NULL: none
    const char *freeze;           // POSIX extended regular expression of parameter names; or NULL
    pen_device *device;           // whose layouts are used; NULL: plain
    pen_compile_blame_fn blame;   // or NULL
    const void *blame_context;
    pen_compile_watch_fn watch; // or NULL
    void *watch_context;
} pen_compile_request;

// A form of a request: the same model in another mode or size. All fields count.
typedef struct pen_compile_form {
    pen_compile_mode mode;
    uint64_t microbatch_size;
    uint32_t microbatches;  // of a step of the training that it belongs to
    uint64_t most_examples; // of any of them
    bool accumulates;       // gradients, where it trains
    bool is_whole;          // one device of this process runs it
    const char *output;     // PREFILL, DECODE; or NULL
    pen_device *device;     // or NULL
} pen_compile_form;

// How all who plan or run a form have it compiled, so that what is planned is what runs.
pen_compile_request pen_compile_request_of(const pen_compile_request *request,
                                           const pen_compile_form *form);

// A loss of a program. Values may be PEN_VALUE_NONE.
typedef struct pen_program_loss {
    const char *name;       // in reports: of its output, and its kind where others have that, too
    const char *output;     // of the model
    const char *label_name; // of the data's labels; NULL: the only ones
    double weight;          // in the sum
    pen_value_id value;     // kept where there are several losses
    pen_value_id labels;    // an input, as the next
    pen_value_id scale;     // see graph/passes/gradient/attach_loss.h
    uint32_t class_count;   // that labels are indices of; 0 when the loss is over no classes
    pen_metric_loss seen;   // as metrics see it
} pen_program_loss;

// What metrics are counted from, of a program that is asked for some.
typedef struct pen_program_metrics {
    pen_metric_choice choice;
    pen_metric_output classes, numbers;         // where they are chosen
    pen_value_id values[PEN_METRIC_SEEN_COUNT]; // kept; NONE: not asked for
} pen_program_metrics;

// A metric of a training's steps, of what its losses read anyway.
#define PEN_PROGRAM_TOLD_LIMIT 14
typedef struct pen_program_told {
    pen_metric metric;
    // Kept. A `top` metric's targets an example; else the mean error or cross-entropy, with a mask
    // times the share of what counts.
    pen_value_id value;
} pen_program_told;

// Where a mask decides what counts: shares of it, which are known once the outputs are.
typedef enum pen_program_share {
    PEN_PROGRAM_SHARE_TARGETS, // of the loss that right answers are counted of
    PEN_PROGRAM_SHARE_NUMBERS, // of the loss that errors are told of
    PEN_PROGRAM_SHARE_COUNT,
} pen_program_share;
_Static_assert(PEN_LOSSES_LIMIT + PEN_PROGRAM_TOLD_LIMIT + PEN_PROGRAM_SHARE_COUNT <=
                   PEN_TERMS_LIMIT,
               "a step has room for all that is told of it");

typedef struct pen_program {
    const pen_graph *graph;
    const pen_model_pin *pins; // [pin_count], what the model's file wants; some of the nodes may
                               // be gone
    uint32_t pin_count;
    const char *batch_symbol; // name of the model's batch dimension; NULL: it was a number
    uint64_t microbatch_size;
    uint32_t input_count;
    const pen_value_id *inputs; // [fed_count], the model's, and behind them those of the losses
    uint32_t fed_count;
    uint32_t output_count;
    const pen_value_id *outputs; // [output_count], the model's; kept
    // PREFILL: values that DECODE reads of earlier positions; DECODE: the states that have them
    const pen_value_id *cached; // [cached_count]
    uint32_t cached_count;
    pen_value_id position;     // DECODE: the input that says which position it is
    const char *cache_refusal; // PREFILL: why there can be no DECODE; NULL: there can
    uint32_t loss_count;
    const pen_program_loss *losses; // [loss_count], as asked for
    uint32_t term_count;            // losses that are told one by one: all, or 0 of a single one
    uint32_t told_count;            // metrics, behind the losses among the `terms` of a step. Of
                                    // EVALUATE only what a mask makes hard to count
    pen_program_told told[PEN_PROGRAM_TOLD_LIMIT]; // [told_count]
    pen_value_id shares[PEN_PROGRAM_SHARE_COUNT];  // kept; NONE: no mask, or nobody asks
    pen_value_id loss;                             // their sum, kept; NONE: none is asked for
    pen_value_id accuracy;       // of the first loss over classes, kept; NONE: there is none
    uint32_t accuracy_loss;      // that loss
    pen_program_metrics metrics; // EVALUATE
    pen_value_id loss_weight;    // scalar: share of the step's examples in this microbatch
    pen_value_id unscale;        // scalars: see graph/passes/gradient/build_updates.h
    pen_value_id applied;        // kept
    pen_value_id learning_rate;  // scalar
    pen_value_id step;           // scalar, counted from 1
    const pen_node_id *order;    // [order_count], what runs for a microbatch, then what updates
    uint32_t order_count;
    uint32_t update_first;    // position in `order`; equal to order_count when updates are inside
    const pen_value_id *kept; // [kept_count]
    uint32_t kept_count;
    uint32_t trainable_count;    // parameters that are updated
    uint64_t trainable_elements; // in all of them
    const char *note;            // what a user should know of the training; NULL: nothing
    const char *const *warnings; // [warning_count], for the user
    uint32_t warning_count;
    uint64_t held_bytes; // by the model and all that was made of it, without files that are mapped
} pen_program;

// Numbers that a step has besides the sum of its losses: losses one by one, then metrics, then
// shares where there are some.
uint32_t pen_program_term_count(const pen_program *program);
// One of them. NONE: a share that the program does not have.
pen_value_id pen_program_term(const pen_program *program, uint32_t index);
// What counts of all, by the terms of a step; 1 where there is no mask.
double pen_program_get_share(const pen_program *program, pen_program_share share,
                             const double *terms);
// The same of what a metric is told from.
double pen_program_get_told_share(const pen_program *program, uint32_t told, const double *terms);
// What a metric is told from, by the terms of a step: a mean over what counts. Not of classes,
// which are counted.
double pen_program_get_mean(const pen_program *program, uint32_t told, const double *terms);

#endif // PEN_SCHEDULER_COMPILE_COMPILE_REQUEST_H
