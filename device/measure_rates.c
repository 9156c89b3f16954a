// What a device can do at most, by measuring two operators that nothing else can slow down.

#include "device/measure_op.h"
#include "graph/graph.h"
#include "graph/op.h"
#include "graph/op_known.h"

#define RATES_SIDE_FIRST 128
#define RATES_SIDE_LAST 2048
#define RATES_SECONDS 0.02    // a product that takes longer is large enough
#define RATES_COUNT_LAST 4096 // elements of the smallest arrays
#define RATES_ARRAYS 3        // two are read, one is written

typedef struct rates_run {
    pen_device *device;
    double cores;
    pen_arena *arena;
} rates_run;

static pen_status rates_add_input(pen_graph *graph, const char *name, pen_tensor_type type,
                                  pen_value_id *out_value) {
    const pen_value value = {.name = name, .kind = PEN_VALUE_INPUT, .type = type};
    return pen_graph_add_value(graph, &value, out_value);
}

// `op` of two inputs of `type`.
static pen_status rates_measure(const rates_run *run, const pen_op *op, pen_tensor_type type,
                                pen_op_measurement *out_measurement, double *out_flops) {
    pen_graph *graph;
    pen_value_id inputs[2];
    pen_node_id node;
    PEN_TRY(pen_graph_create(run->arena, "rates", &graph));
    PEN_TRY(rates_add_input(graph, "a", type, &inputs[0]));
    PEN_TRY(rates_add_input(graph, "b", type, &inputs[1]));
    pen_node_spec spec = pen_node_spec_of(op, op->name);
    spec.inputs = inputs;
    spec.input_count = 2;
    PEN_TRY(pen_graph_add_node(graph, &spec, &node));
    *out_flops = (double)pen_node_flops(graph, node);
    const pen_measure_options options = {
        .run_minimum = 5, .run_maximum = 15, .time_limit = 0.2, .cores = run->cores};
    return pen_measure_op(run->device, graph, node, &options, out_measurement);
}

// Three arrays of the size of the cache, or as large as the device's memory allows.
static pen_status rates_measure_sum(const rates_run *run, pen_device_rates *out) {
    pen_op_measurement measured;
    double flops;
    int64_t count = (int64_t)(pen_measure_cache_bytes() / sizeof(float));
    for (;;) {
        const pen_tensor_type type = pen_tensor_type_make(PEN_FLOAT32, 1, &count);
        const pen_status status = rates_measure(run, PEN_OP(add), type, &measured, &flops);
        if (pen_status_get_code(status) == PEN_DOES_NOT_FIT && count > RATES_COUNT_LAST) {
            pen_status_ignore(status, "tried again with less");
            count /= 2;
            continue;
        }
        PEN_TRY(status);
        break;
    }
    if (measured.seconds > 0) {
        out->memory_bandwidth = RATES_ARRAYS * (double)count * sizeof(float) / measured.seconds;
    }
    return PEN_OK;
}

// Larger and larger products until one takes long enough; the best rate counts, since smaller ones
// do not fill the machine.
static pen_status rates_measure_in(const rates_run *run, pen_device_rates *out) {
    pen_op_measurement measured = {0};
    double flops;
    for (int64_t side = RATES_SIDE_FIRST; side <= RATES_SIDE_LAST; side *= 2) {
        const pen_tensor_type type =
            pen_tensor_type_make(PEN_FLOAT32, 2, (const int64_t[]){side, side});
        const pen_status status = rates_measure(run, PEN_OP(matmul), type, &measured, &flops);
        if (pen_status_get_code(status) == PEN_DOES_NOT_FIT && out->flops > 0) {
            pen_status_ignore(status, "what fitted was measured");
            break;
        }
        PEN_TRY(status);
        if (measured.seconds > 0 && flops / measured.seconds > out->flops) {
            out->flops = flops / measured.seconds;
        }
        if (measured.seconds >= RATES_SECONDS) break;
    }
    PEN_TRY(rates_measure_sum(run, out));
    if (out->flops <= 0 || out->memory_bandwidth <= 0) {
        return pen_error(PEN_INTERNAL, "the clock does not move");
    }
    return PEN_OK;
}

pen_status pen_measure_rates(pen_device *device, double cores, pen_device_rates *out_rates) {
    rates_run run = {.device = device, .cores = cores};
    *out_rates = (pen_device_rates){0};
    PEN_TRY(pen_arena_create(&run.arena));
    const pen_status status = rates_measure_in(&run, out_rates);
    pen_arena_destroy(run.arena);
    return pen_status_add_context(status, "while measuring rates of a device");
}
