// The contract of kernels of the cuda device: which operators have one, and with what it is
// launched. What has no entry runs on the host's kernels, inside the device.
//
// An entry belongs to one operator: a file of kernels/ has those of a family, and ends in its
// table.
#ifndef PEN_DEVICE_CUDA_CUDA_KERNEL_H
#define PEN_DEVICE_CUDA_CUDA_KERNEL_H

#include <stdbool.h>
#include <stdint.h>

#include "device/cuda/cuda_driver.h"
#include "device/cuda/kernels/cuda_args.h"
#include "device/device.h"
#include "graph/graph.h"
#include "graph/op.h"

// Each kernel of the text by its place in the list.
#define PEN_CUDA_NUMBER(name) PEN_CUDA_KERNEL_##name,
typedef enum pen_cuda_kernel_number {
    PEN_CUDA_KERNELS(PEN_CUDA_NUMBER) PEN_CUDA_KERNEL_COUNT
} pen_cuda_kernel_number;

// One launch of a kernel.
typedef struct pen_cuda_step {
    pen_cuda_kernel_number kernel;
    pen_cuda_kernel_number many; // that does the same for the tensors of a table; 0: there is none
    uint32_t many_bytes;         // of the argument, which the table has
    uint32_t grid[3];
    bool only_sets; // also where the node adds: another launch reads what this one makes
    union {
        uint32_t adds; // the first member of each
        struct cuda_adapt_args adapt;
        struct cuda_average_args average;
        struct cuda_border_args border;
        struct cuda_broadcast_args broadcast;
        struct cuda_shares_args shares;
        struct cuda_elements_args elements;
        struct cuda_parts_args parts;
        struct cuda_resize_args resize;
        struct cuda_running_sum_args running_sum;
        struct cuda_stack_args stack;
        struct cuda_triangle_args triangle;
        struct cuda_product_args product;
        struct cuda_pair_args pair;
        struct cuda_sum_args sum;
        struct cuda_whole_args whole;
        struct cuda_loss_args loss;
        struct cuda_pair_loss_args pair_loss;
        struct cuda_total_args total;
        struct cuda_sgd_args sgd;
        struct cuda_adam_args adam;
        struct cuda_norm_args norm;
        struct cuda_function_args function;
        struct cuda_fill_args fill;
        struct cuda_softmax_args softmax;
        struct cuda_layer_norm_args layer_norm;
        struct cuda_move_args move;
        struct cuda_nd_args nd;
        struct cuda_choice_args choice;
        struct cuda_one_hot_args one_hot;
        struct cuda_constant_args constant;
        struct cuda_gather_args gather;
        struct cuda_magnitude_args magnitude;
        struct cuda_dropout_args dropout;
        struct cuda_drawn_args drawn;
        struct cuda_classes_args classes;
        struct cuda_attention_args attention;
        struct cuda_recurrent_args recurrent;
        struct cuda_clip_scale_args clip_scale;
        struct cuda_cast_args cast;
        struct cuda_conv_args conv;
        struct cuda_pool_args pool;
        struct cuda_plane_args plane;
        struct cuda_batch_norm_args batch_norm;
        struct cuda_lrn_args lrn;
        struct cuda_clip_args clip;
        struct cuda_many_args many;
        struct cuda_look_args look;
    } args;
} pen_cuda_step;

// The members of a step whose kernel is a KERNEL_OF_MANY (kernels/common.cuh): steps of one list
// that do not depend on each other become one launch.
#define PEN_CUDA_OF_MANY(name, argument)                                                           \
    .kernel = PEN_CUDA_KERNEL_##name, .many = PEN_CUDA_KERNEL_##name##_many,                       \
    .many_bytes = sizeof(struct argument)

#define PEN_CUDA_STEPS 8u // of a node

// Where the operands of a node are; 0: left out.
typedef struct pen_cuda_call {
    const pen_graph *graph;
    const pen_node *node;
    const pen_cuda_address *inputs;  // [input_count]
    const pen_cuda_address *outputs; // [output_count]
    pen_cuda_address workspace;
    pen_precision precision; // of operands of products
    bool has_cudnn;          // those that it can express are one step each, which it may take
    pen_cuda_address random; // a struct cuda_random
    pen_cuda_address flag;   // a word: updates apply nothing while it is raised
    pen_cuda_address error;  // a word that a kernel raises, if it can
} pen_cuda_call;

typedef struct pen_cuda_entry {
    const char *op_name;
    bool can_accumulate; // its kernels heed `adds`
    // Whether it can do the node. Operands are in the plain layout.
    bool (*supports)(const pen_graph *graph, const pen_node *node);
    uint64_t (*workspace_bytes)(const pen_graph *graph, const pen_node *node); // NULL: none
    // The launches of a node, in order; returns how many.
    uint32_t (*steps)(const pen_cuda_call *call, pen_cuda_step out_steps[PEN_CUDA_STEPS]);
    // The key of the random numbers of a run, which is at `random` of the call then. NULL: it draws
    // none. Nothing else differs from run to run, but for `adds`.
    struct cuda_random (*draw)(const pen_node *node, const pen_run_context *run);
    // The error that a raised word stands for. NULL: there is none.
    pen_status (*blame)(const pen_graph *graph, const pen_node *node, uint32_t word);
    // Whether the node's kernels can raise one. NULL: those that have `blame` can.
    bool (*can_raise)(const pen_graph *graph, const pen_node *node);
    uint32_t rule; // what tells it from others with the same functions
} pen_cuda_entry;

// NULL: none can do the node.
const pen_cuda_entry *pen_cuda_entry_find(const pen_graph *graph, const pen_node *node);
// Whether the entry's kernels can raise a word at the node.
bool pen_cuda_can_raise(const pen_cuda_entry *entry, const pen_graph *graph, const pen_node *node);
// The entry's rule, for its functions.
uint32_t pen_cuda_rule(const pen_node *node);

// ---- for entries
// Whether an operand, or result, is float32 or left out; whether all are.
bool pen_cuda_is_float(const pen_graph *graph, pen_value_id value);
bool pen_cuda_all_float(const pen_graph *graph, const pen_node *node);
// Whether input `i` is there.
bool pen_cuda_has(const pen_node *node, uint32_t i);
// Where an operand, or result, is; 0: it is left out.
pen_cuda_address pen_cuda_input(const pen_cuda_call *call, uint32_t i);
pen_cuda_address pen_cuda_output(const pen_cuda_call *call, uint32_t i);
uint64_t pen_cuda_count(const pen_graph *graph, pen_value_id value);
// The attribute `axis`, which the shape rule checked, as a dimension of the shape.
uint32_t pen_cuda_axis(const pen_node *node, const pen_shape *shape);
// Blocks of the grid of a kernel that goes over `count` elements, or over so many blocks.
uint32_t pen_cuda_blocks_for(uint64_t count);
uint32_t pen_cuda_blocks(uint64_t count);
// Blocks of a grid's second and third dimension, at most.
#define PEN_CUDA_GRID_MOST 65535u
// Sizes, pads and reaches of windows, at most, so that sums of them are 32 bits wide.
#define PEN_CUDA_WINDOW_MOST ((int64_t)1 << 28)
// Copies what is known of the windows' dimensions [PEN_SPATIAL_LIMIT], none of which is above.
void pen_cuda_copy_sizes(uint32_t *to, const int64_t *from);

// The kernels' word for a type of element (cuda_sequence_args.h); false: they have none.
bool pen_cuda_type(const pen_graph *graph, pen_value_id value, uint32_t *out_type);

// product_cuda.c: the launch of `count` products, a block for each of their tiles.
pen_cuda_step pen_cuda_product_step(const struct cuda_product_args *args, uint32_t count);
// product_cuda.c: the launch that adds beta c to the y of one product that has a c.
pen_cuda_step pen_cuda_product_addend(const struct cuda_product_args *args);
// convolution_cuda.c: the same for the bias of a convolution that has one.
pen_cuda_step pen_cuda_conv_addend(const struct cuda_conv_args *args);

// map_cuda.c: the launch of y = factor times the first operand, which is repeated; returns how
// many.
uint32_t pen_cuda_spread(const pen_cuda_call *call, float factor, pen_cuda_step *out_step);
// map_cuda.c: those of a clip of integers, of which one limit is there at least.
uint32_t pen_cuda_clip_whole(const pen_cuda_call *call, pen_cuda_step *out_steps);
// map_cuda.c: that of a PEN_CUDA_SIZE, PEN_CUDA_SIGN_OF, PEN_CUDA_MAX with 0 or PEN_CUDA_SUB from 0
// of integers; returns how many.
uint32_t pen_cuda_function_whole(const pen_cuda_call *call, uint32_t what, pen_cuda_step *out_step);
bool pen_cuda_is_whole(const pen_graph *graph, pen_value_id value); // int32 or int64

// move_cuda.c: the launch that copies the first operand; returns how many. And how a scatter puts
// what it does: a PEN_CUDA_PUT of elements of a type; false: no kernel does it.
uint32_t pen_cuda_copy_steps(const pen_cuda_call *call, pen_cuda_step *out_step);
bool pen_cuda_put_find(const pen_graph *graph, const pen_node *node, uint32_t *out_put,
                       uint32_t *out_type);

// update_cuda.c: whether an update's operands are such as the kernels take, and which of its
// scalars are float64.
uint64_t pen_cuda_update_workspace_bytes(const pen_graph *graph, const pen_node *node);
bool pen_cuda_update_supports(const pen_graph *graph, const pen_node *node);
uint32_t pen_cuda_update_wide(const pen_cuda_call *call);

// rows_cuda.c: for operators whose operand `gradient` is a list of rows, where operand `rows` is
// there; their table is the parameter of an update, or of the attribute `shape`.
typedef uint32_t pen_cuda_steps_of(const pen_cuda_call *call, pen_cuda_step *out_steps);
bool pen_cuda_rows_supported(const pen_graph *graph, const pen_node *node, uint32_t rows);
// Elements of the table, or of the gradient without rows.
uint64_t pen_cuda_rows_count(const pen_graph *graph, const pen_node *node, uint32_t rows,
                             uint32_t gradient);
// The table's share of the workspace; 0 without rows.
uint64_t pen_cuda_rows_bytes(const pen_graph *graph, const pen_node *node, uint32_t rows);
// Launches that make the table, and `rest`, to whom it is the gradient, and whose workspace lies
// behind it.
uint32_t pen_cuda_rows_steps(const pen_cuda_call *call, uint32_t rows, uint32_t gradient,
                             pen_cuda_steps_of *rest, pen_cuda_step *out_steps);

// An entry with no workspace and no blame, which can accumulate.
#define PEN_CUDA_ENTRY(op, supports_op, steps_op, rule_op)                                         \
    {                                                                                              \
        .op_name = (op), .can_accumulate = true, .supports = (supports_op), .steps = (steps_op),   \
        .rule = (rule_op)                                                                          \
    }

typedef struct pen_cuda_family {
    const pen_cuda_entry *entries; // [entry_count]
    uint32_t entry_count;
} pen_cuda_family;
#define PEN_CUDA_FAMILY_OF(name)                                                                   \
    const pen_cuda_family pen_##name##_cuda = {name##_entries,                                     \
                                               sizeof name##_entries / sizeof *name##_entries}
// clang-format off
#define PEN_CUDA_FAMILIES(X)                                                                       \
    X(product) X(map) X(function) X(move) X(reduction) X(softmax) X(layer_norm) X(loss) X(update)  \
    X(dropout) X(attention) X(recurrent) X(cast) X(convolution) X(pool) X(batch_norm) X(pair_loss) \
    X(adapt) X(border) X(resize) X(rows) X(index) X(choice) X(random) X(lrn)
// clang-format on
#define PEN_CUDA_DECLARE(name) extern const pen_cuda_family pen_##name##_cuda;
PEN_CUDA_FAMILIES(PEN_CUDA_DECLARE)

#endif // PEN_DEVICE_CUDA_CUDA_KERNEL_H
