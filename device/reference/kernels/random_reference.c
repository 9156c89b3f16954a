// Random tensors, by counter.

#include <math.h>
#include <string.h>

#include "device/reference/reference_kernel.h"
#include "graph/op.h"

static pen_random_key random_key(const pen_reference_call *call) {
    uint64_t seed = call->seed;
    if (pen_node_has(call->node, "seed")) {
        const double given = pen_node_float(call->node, "seed");
        memcpy(&seed, &given, sizeof seed);
    }
    return (pen_random_key){
        seed, pen_random_stream(pen_node_stream(call->node), call->step, call->microbatch)};
}

static pen_status bernoulli_run(const pen_reference_call *call) {
    const pen_tensor *x = &call->inputs[0];
    const pen_random_key key = random_key(call);
    for (int64_t i = 0; i < pen_tensor_count(x); i++) {
        const double number = (double)pen_random_uniform(key, (uint64_t)i);
        pen_tensor_set(&call->outputs[0], i, number < pen_tensor_get(x, i) ? 1 : 0);
    }
    return PEN_OK;
}

// The class at which the running sum of shares passes `part` of the whole.
static int64_t multinomial_draw(const pen_tensor *x, int64_t first, int64_t count, double part) {
    double largest = -INFINITY, whole = 0, sum = 0;
    for (int64_t c = 0; c < count; c++) {
        largest = fmax(largest, pen_tensor_get(x, first + c));
    }
    for (int64_t c = 0; c < count; c++) {
        whole += exp(pen_tensor_get(x, first + c) - largest);
    }
    for (int64_t c = 0; c + 1 < count; c++) {
        sum += exp(pen_tensor_get(x, first + c) - largest);
        if (sum > part * whole) return c;
    }
    return count - 1;
}

static pen_status multinomial_run(const pen_reference_call *call) {
    const pen_tensor *x = &call->inputs[0], *y = &call->outputs[0];
    const int64_t classes = x->type.shape.dims[1], samples = y->type.shape.dims[1];
    const pen_random_key key = random_key(call);
    for (int64_t i = 0; i < pen_tensor_count(y); i++) {
        const double part = (double)pen_random_uniform(key, (uint64_t)i);
        pen_tensor_set_int(y, i, multinomial_draw(x, i / samples * classes, classes, part));
    }
    return PEN_OK;
}

static pen_status random_uniform_run(const pen_reference_call *call) {
    const pen_tensor *y = &call->outputs[0];
    const pen_random_key key = random_key(call);
    const double low = pen_node_float(call->node, "low");
    const double high = pen_node_float(call->node, "high");
    for (int64_t i = 0; i < pen_tensor_count(y); i++) {
        pen_tensor_set(y, i, low + (high - low) * (double)pen_random_uniform(key, (uint64_t)i));
    }
    return PEN_OK;
}

static pen_status random_normal_run(const pen_reference_call *call) {
    const pen_tensor *y = &call->outputs[0];
    const pen_random_key key = random_key(call);
    const double mean = pen_node_float(call->node, "mean");
    const double scale = pen_node_float(call->node, "scale");
    for (int64_t i = 0; i < pen_tensor_count(y); i++) {
        pen_tensor_set(y, i, mean + scale * pen_random_normal(key, (uint64_t)i));
    }
    return PEN_OK;
}

static const pen_reference_kernel random_kernels[] = {
    {"bernoulli", bernoulli_run, NULL},           {"multinomial", multinomial_run, NULL},
    {"random_uniform", random_uniform_run, NULL}, {"random_uniform_like", random_uniform_run, NULL},
    {"random_normal", random_normal_run, NULL},   {"random_normal_like", random_normal_run, NULL},
};

PEN_REFERENCE_FAMILY(random);
