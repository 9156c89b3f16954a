// Asynchronous lanes: the formulas are at the top of graph/ops/training/version_op.c. Those that
// copy memory, or draw a few numbers, are what other devices run, too.

#include <math.h>
#include <string.h>

#include "device/reference/reference_kernel.h"
#include "graph/arrivals.h"
#include "graph/graph.h"
#include "graph/op.h"
#include "graph/ops/training/version_op.h"

static pen_status lane_parameter_run(const pen_reference_call *call) {
    const pen_tensor *newest = &call->inputs[PEN_LANE_NEWEST];
    const pen_tensor *kept = &call->inputs[PEN_LANE_KEPT];
    const bool has_begun = pen_tensor_get_int(&call->inputs[PEN_LANE_ARRIVALS], 0) != 0;
    const size_t bytes = (size_t)pen_tensor_type_bytes(&newest->type);
    if (call->lane >= kept->type.shape.dims[0]) {
        return pen_error(PEN_INTERNAL, "'%s' has no parameter for lane %u", call->node->name,
                         call->lane);
    }
    const char *own = (const char *)kept->data + call->lane * bytes;
    memcpy(call->outputs[0].data, has_begun ? own : newest->data, bytes);
    return PEN_OK;
}

static pen_status lane_stack_run(const pen_reference_call *call) {
    char *out = call->outputs[0].data;
    for (uint32_t i = 0; i < call->node->input_count; i++) {
        const size_t bytes = (size_t)pen_tensor_type_bytes(&call->inputs[i].type);
        memcpy(out, call->inputs[i].data, bytes);
        out += bytes;
    }
    return PEN_OK;
}

// What comes from a checkpoint, or with the word to update, may be damaged, which the core notices.
static pen_status lane_order_run(const pen_reference_call *call) {
    const pen_arrivals_options options = {.seed = call->seed,
                                          .step = call->step,
                                          .lanes = (uint32_t)pen_node_int(call->node, "lanes"),
                                          .count = call->lane_count,
                                          .staleness =
                                              (uint32_t)pen_node_int(call->node, "staleness"),
                                          .is_free = pen_node_int(call->node, "free") != 0,
                                          .order = call->order};
    pen_arrivals at;
    uint32_t version[PEN_ARRIVALS_LANES], count;
    if (options.count == 0 || options.count > options.lanes) {
        return pen_error(PEN_INTERNAL, "'%s': a step of %u lanes of %u", call->node->name,
                         options.count, options.lanes);
    }
    pen_arrivals_read(call->inputs[0].data, options.lanes, &at);
    pen_tensor_set_int(&call->outputs[0], options.lanes, (int64_t)at.version);
    if (!pen_arrivals_draw(&options, &at, version, &count)) {
        return pen_error(PEN_CORRUPT, "'%s': the arrivals before step %llu are of no training%s",
                         call->node->name, (unsigned long long)options.step,
                         options.is_free ? ", or its order is not of its lanes" : "");
    }
    for (uint32_t lane = 0; lane < options.lanes; lane++) {
        pen_tensor_set_int(&call->outputs[0], lane,
                           version[lane] == UINT32_MAX ? -1 : (int64_t)version[lane]);
    }
    pen_arrivals_write(&at, options.lanes, call->outputs[1].data);
    return PEN_OK;
}

// ---- the gradient of a version

typedef struct version_work {
    const pen_reference_call *call;
    int64_t count;                   // elements of the parameter
    uint32_t lanes;                  // that a whole step has
    uint32_t lane_count;             // that this one has
    uint32_t of[PEN_ARRIVALS_LANES]; // the version's lanes, by rising number
    uint32_t of_count;
    bool has_begun;
    double lambda;
} version_work;

// As the element type has it.
static double version_round(const version_work *work, double number) {
    const pen_tensor *parameter = &work->call->inputs[PEN_VERSION_PARAMETER];
    return parameter->type.element == PEN_FLOAT32 ? (double)(float)number : number;
}

static void version_begin(const pen_reference_call *call, version_work *work) {
    const pen_tensor *order = &call->inputs[PEN_VERSION_ORDER];
    const int64_t version = pen_node_int(call->node, "version");
    *work = (version_work){.call = call,
                           .count = pen_tensor_count(&call->inputs[PEN_VERSION_PARAMETER]),
                           .lanes = (uint32_t)order->type.shape.dims[0] - 1,
                           .lambda = pen_node_float(call->node, "lambda")};
    work->has_begun = pen_tensor_get_int(order, work->lanes) != 0;
    for (uint32_t lane = 0; lane < work->lanes; lane++) {
        const int64_t own = pen_tensor_get_int(order, lane);
        work->lane_count += own >= 0;
        if (own == version) work->of[work->of_count++] = lane;
    }
}

// The tree over numbers of the version's lanes, by their lanes' numbers.
static double version_tree(const version_work *work, const double *numbers) {
    double sum[PEN_ARRIVALS_LANES];
    bool is_there[PEN_ARRIVALS_LANES] = {false};
    for (uint32_t i = 0; i < work->of_count; i++) {
        sum[work->of[i]] = numbers[i];
        is_there[work->of[i]] = true;
    }
    for (uint32_t size = 1; size < work->lanes; size *= 2) {
        for (uint32_t left = 0; left + size < work->lanes; left += 2 * size) {
            const uint32_t right = left + size;
            if (!is_there[right]) continue;
            sum[left] = is_there[left] ? version_round(work, sum[left] + sum[right]) : sum[right];
            is_there[left] = true;
        }
    }
    return sum[0];
}

static double version_stacked(const version_work *work, uint32_t input, uint32_t lane, int64_t k) {
    return pen_tensor_get(&work->call->inputs[input], lane * work->count + k);
}

// What makes up for the delay, of all lanes; the mean of squares goes on.
static double version_compensate(const version_work *work, int64_t k) {
    const pen_reference_call *call = work->call;
    const bool is_adaptive = pen_reference_input(call, PEN_VERSION_SQUARE) != NULL;
    const double w = pen_tensor_get(&call->inputs[PEN_VERSION_PARAMETER], k);
    const double m = PEN_VERSION_SQUARE_DECAY, share = work->lane_count;
    double square = is_adaptive ? pen_tensor_get(&call->inputs[PEN_VERSION_SQUARE], k) : 0;
    double added[PEN_ARRIVALS_LANES];
    for (uint32_t i = 0; i < work->of_count; i++) {
        double s = 0, lambda = work->lambda;
        for (uint32_t input = PEN_VERSION_STACKS; input < call->node->input_count; input++) {
            s = version_round(work, s + version_stacked(work, input, work->of[i], k));
        }
        const double then = work->has_begun
                                ? version_stacked(work, PEN_VERSION_KEPT, work->of[i], k)
                                : pen_tensor_get(&call->inputs[PEN_VERSION_START], k);
        if (is_adaptive) {
            square = m * square + (1 - m) * (share * s) * (share * s);
            lambda = work->lambda / sqrt(square + PEN_VERSION_EPSILON);
        }
        added[i] = version_round(work, lambda * share * s * s * (w - then));
    }
    if (is_adaptive) pen_tensor_set(&call->outputs[PEN_VERSION_NEW_SQUARE], k, square);
    return version_tree(work, added);
}

// The mean over the version's lanes, of sums that are shares of the mean over the step's.
static double version_element(const version_work *work, int64_t k) {
    const uint32_t input_count = work->call->node->input_count;
    double gradient = 0, numbers[PEN_ARRIVALS_LANES];
    for (uint32_t input = PEN_VERSION_STACKS; input < input_count; input++) {
        for (uint32_t i = 0; i < work->of_count; i++) {
            numbers[i] = version_stacked(work, input, work->of[i], k);
        }
        const double total = version_tree(work, numbers);
        gradient = input == PEN_VERSION_STACKS ? total : version_round(work, gradient + total);
    }
    if (work->lambda != 0) {
        gradient = version_round(work, gradient + version_compensate(work, k));
    }
    return gradient * ((double)work->lane_count / work->of_count);
}

static pen_status version_gradient_run(const pen_reference_call *call) {
    version_work work;
    version_begin(call, &work);
    const pen_tensor *square = pen_reference_input(call, PEN_VERSION_SQUARE);
    const int64_t before = pen_tensor_get_int(&call->inputs[PEN_VERSION_ORDER], work.lanes);
    for (int64_t k = 0; k < work.count; k++) {
        const double gradient = work.of_count == 0 ? 0 : version_element(&work, k);
        pen_tensor_set(&call->outputs[PEN_VERSION_GRADIENT], k, gradient);
        if (square == NULL || (work.of_count > 0 && work.lambda != 0)) continue;
        pen_tensor_set(&call->outputs[PEN_VERSION_NEW_SQUARE], k, pen_tensor_get(square, k));
    }
    pen_tensor_set(&call->outputs[PEN_VERSION_SCALE], 0, work.of_count == 0 ? -1 : 1);
    pen_tensor_set(&call->outputs[PEN_VERSION_STEP], 0,
                   (double)(before + pen_node_int(call->node, "version") + 1));
    return PEN_OK;
}

static pen_status lane_keep_run(const pen_reference_call *call) {
    const pen_tensor *order = &call->inputs[PEN_KEEP_ORDER];
    const int64_t lanes = order->type.shape.dims[0] - 1;
    const size_t bytes = (size_t)pen_tensor_type_bytes(&call->inputs[PEN_KEEP_VERSIONS].type);
    for (int64_t lane = 0; lane < lanes; lane++) {
        const int64_t own = pen_tensor_get_int(order, lane);
        const int64_t version = 0 <= own && own < lanes ? own : lanes - 1;
        memcpy((char *)call->outputs[0].data + (size_t)lane * bytes,
               call->inputs[PEN_KEEP_VERSIONS + version].data, bytes);
    }
    return PEN_OK;
}

static const pen_reference_kernel version_kernels[] = {
    {"lane_parameter", lane_parameter_run, NULL}, {"lane_stack", lane_stack_run, NULL},
    {"lane_order", lane_order_run, NULL},         {"version_gradient", version_gradient_run, NULL},
    {"lane_keep", lane_keep_run, NULL},
};

PEN_REFERENCE_FAMILY(version);
