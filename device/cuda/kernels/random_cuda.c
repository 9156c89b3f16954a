// Random tensors: kernels/random.cu.
#include <string.h>

#include "base/random.h"
#include "device/cuda/cuda_kernel.h"

static bool random_supports(const pen_graph *graph, const pen_node *node) {
    uint32_t type;
    const bool has_x = pen_cuda_rule(node) == PEN_CUDA_BERNOULLI;
    return pen_cuda_type(graph, node->outputs[0], &type) &&
           (!has_x || pen_cuda_type(graph, node->inputs[0], &type));
}

// What `low` and `width` are called depends on the distribution.
static uint32_t random_steps(const pen_cuda_call *call, pen_cuda_step *steps) {
    const pen_node *node = call->node;
    struct cuda_drawn_args args = {.what = pen_cuda_rule(node),
                                   .count = pen_cuda_count(call->graph, node->outputs[0]),
                                   .random = call->random,
                                   .y = call->outputs[0],
                                   .width = 1};
    (void)pen_cuda_type(call->graph, node->outputs[0], &args.type);
    if (args.count == 0) return 0;
    if (args.what == PEN_CUDA_UNIFORM) {
        args.low = pen_node_float(node, "low");
        args.width = pen_node_float(node, "high") - args.low;
    } else if (args.what == PEN_CUDA_NORMAL) {
        args.low = pen_node_float(node, "mean");
        args.width = pen_node_float(node, "scale");
    } else {
        args.x = call->inputs[0];
        (void)pen_cuda_type(call->graph, node->inputs[0], &args.x_type);
    }
    *steps = (pen_cuda_step){.kernel = PEN_CUDA_KERNEL_draw,
                             .grid = {pen_cuda_blocks_for(args.count), 1, 1},
                             .args.drawn = args};
    return 1;
}

static bool classes_supports(const pen_graph *graph, const pen_node *node) {
    uint32_t type;
    return pen_cuda_type(graph, node->inputs[0], &type);
}

static uint32_t classes_steps(const pen_cuda_call *call, pen_cuda_step *steps) {
    const pen_shape *x = &pen_value_type(call->graph, call->node->inputs[0])->shape;
    const pen_shape *y = &pen_value_type(call->graph, call->node->outputs[0])->shape;
    struct cuda_classes_args args = {.rows = (uint64_t)x->dims[0],
                                     .classes = (uint64_t)x->dims[1],
                                     .samples = (uint64_t)y->dims[1],
                                     .random = call->random,
                                     .x = call->inputs[0],
                                     .y = call->outputs[0]};
    (void)pen_cuda_type(call->graph, call->node->inputs[0], &args.x_type);
    (void)pen_cuda_type(call->graph, call->node->outputs[0], &args.type);
    if (args.rows == 0) return 0;
    *steps = (pen_cuda_step){.kernel = PEN_CUDA_KERNEL_draw_classes,
                             .grid = {pen_cuda_blocks(args.rows), 1, 1},
                             .args.classes = args};
    return 1;
}

// A seed of the node's own is a number of ONNX, whose bits are the seed.
static struct cuda_random random_draw(const pen_node *node, const pen_run_context *run) {
    uint64_t seed = run->seed;
    if (pen_node_has(node, "seed")) {
        const double given = pen_node_float(node, "seed");
        memcpy(&seed, &given, sizeof seed);
    }
    return (struct cuda_random){
        seed, pen_random_stream(pen_node_stream(node), run->step, run->microbatch)};
}

#define RANDOM_ENTRY(op, what)                                                                     \
    {                                                                                              \
        .op_name = (op), .supports = random_supports, .steps = random_steps, .draw = random_draw,  \
        .rule = (what)                                                                             \
    }
static const pen_cuda_entry random_entries[] = {
    RANDOM_ENTRY("random_uniform", PEN_CUDA_UNIFORM),
    RANDOM_ENTRY("random_uniform_like", PEN_CUDA_UNIFORM),
    RANDOM_ENTRY("random_normal", PEN_CUDA_NORMAL),
    RANDOM_ENTRY("random_normal_like", PEN_CUDA_NORMAL),
    RANDOM_ENTRY("bernoulli", PEN_CUDA_BERNOULLI),
    {.op_name = "multinomial",
     .supports = classes_supports,
     .steps = classes_steps,
     .draw = random_draw},
};

PEN_CUDA_FAMILY_OF(random);
