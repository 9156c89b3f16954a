#include <math.h>

#include "device/reference/reference_compare.h"
#include "device/reference/reference_position.h"
#include "graph/graph.h"
#include "graph/op.h"
#include "graph/ops/reduction/reduction_axes.h"

// A reduction that takes in one element after the other.
typedef struct reduction_rule {
    double start;
    double (*step)(double sum, double x);
    double (*finish)(double sum, double count);      // NULL: the sum
    int64_t (*integer_step)(int64_t sum, int64_t x); // NULL: by way of double
} reduction_rule;

static double step_sum(double sum, double x) {
    return sum + x;
}
static double step_product(double sum, double x) {
    return sum * x;
}
static double step_absolute(double sum, double x) {
    return sum + fabs(x);
}
static double step_square(double sum, double x) {
    return sum + x * x;
}
static double finish_mean(double sum, double count) {
    return sum / count;
}
static double finish_root(double sum, double count) {
    (void)count;
    return sqrt(sum);
}
static double finish_log(double sum, double count) {
    (void)count;
    return log(sum);
}
// Integers wrap.
static int64_t integer_sum(int64_t sum, int64_t x) {
    return (int64_t)((uint64_t)sum + (uint64_t)x);
}
static int64_t integer_product(int64_t sum, int64_t x) {
    return (int64_t)((uint64_t)sum * (uint64_t)x);
}
static int64_t integer_square(int64_t sum, int64_t x) {
    return (int64_t)((uint64_t)sum + (uint64_t)x * (uint64_t)x);
}

static pen_status reduction_axes(const pen_reference_call *call, pen_reduction_axes *out_axes) {
    const bool has_axes = pen_reference_input(call, 1) != NULL;
    const int64_t count = has_axes ? pen_tensor_count(&call->inputs[1]) : 0;
    int64_t axes[PEN_RANK_LIMIT];
    PEN_ASSERT(count <= PEN_RANK_LIMIT); // the shape rule found none given twice
    for (int64_t i = 0; i < count; i++) {
        axes[i] = pen_tensor_get_int(&call->inputs[1], i);
    }
    return pen_reduction_axes_find(call->node, &call->inputs[0].type.shape, (uint32_t)count, axes,
                                   out_axes);
}

// Walks the elements of `shape`; index[0] is the element of the reduced tensor they belong to.
static void reduction_start(pen_broadcast_walk *walk, const pen_shape *shape,
                            const pen_shape *kept) {
    pen_broadcast_start(walk, shape, 1, &kept);
}

static void reduction_run_integer(const pen_reference_call *call, const reduction_rule *rule,
                                  const pen_reduction_axes *axes, int64_t *sums) {
    const pen_tensor *x = &call->inputs[0], *y = &call->outputs[0];
    for (int64_t k = 0; k < pen_tensor_count(y); k++) {
        sums[k] = (int64_t)rule->start;
    }
    pen_broadcast_walk walk;
    for (reduction_start(&walk, &x->type.shape, &axes->kept); pen_broadcast_more(&walk);
         pen_broadcast_next(&walk)) {
        int64_t *sum = &sums[walk.index[0]];
        *sum = rule->integer_step(*sum, pen_tensor_get_int(x, walk.position));
    }
    for (int64_t k = 0; k < pen_tensor_count(y); k++) {
        pen_tensor_set_int(y, k, sums[k]);
    }
}

// Integers are added as integers, everything else in double.
static pen_status reduction_run(const pen_reference_call *call) {
    const pen_tensor *x = &call->inputs[0], *y = &call->outputs[0];
    const reduction_rule *rule = call->rule;
    pen_reduction_axes axes;
    double *sums;
    PEN_TRY(reduction_axes(call, &axes));
    if (rule->integer_step != NULL && pen_element_is_integer(x->type.element)) {
        int64_t *integers;
        PEN_TRY(PEN_NEW(call->scratch, (size_t)pen_tensor_count(y), &integers));
        reduction_run_integer(call, rule, &axes, integers);
        return PEN_OK;
    }
    PEN_TRY(PEN_NEW(call->scratch, (size_t)pen_tensor_count(y), &sums));
    for (int64_t k = 0; k < pen_tensor_count(y); k++) {
        sums[k] = rule->start;
    }
    pen_broadcast_walk walk;
    for (reduction_start(&walk, &x->type.shape, &axes.kept); pen_broadcast_more(&walk);
         pen_broadcast_next(&walk)) {
        sums[walk.index[0]] = rule->step(sums[walk.index[0]], pen_tensor_get(x, walk.position));
    }
    for (int64_t k = 0; k < pen_tensor_count(y); k++) {
        const bool is_done = rule->finish == NULL;
        pen_tensor_set(y, k, is_done ? sums[k] : rule->finish(sums[k], (double)axes.count));
    }
    return PEN_OK;
}

// Writes, for each element of the output, the position in x of its extremum, -1 without any.
// Of equals the first, or the last.
static pen_status reduction_find_extrema(const pen_reference_call *call,
                                         const pen_reduction_axes *axes, bool largest, bool last,
                                         int64_t **out_best) {
    const pen_tensor *x = &call->inputs[0];
    const int64_t count = pen_shape_element_count(&axes->kept);
    int64_t *best;
    PEN_TRY(PEN_NEW(call->scratch, (size_t)count, &best));
    for (int64_t k = 0; k < count; k++) {
        best[k] = -1;
    }
    pen_broadcast_walk walk;
    for (reduction_start(&walk, &x->type.shape, &axes->kept); pen_broadcast_more(&walk);
         pen_broadcast_next(&walk)) {
        int64_t *place = &best[walk.index[0]];
        const bool wins =
            *place < 0 || reference_wins(largest, x, walk.position, x, *place) ||
            (last && reference_compare(x, walk.position, x, *place) == REFERENCE_EQUAL);
        if (wins) *place = walk.position;
    }
    *out_best = best;
    return PEN_OK;
}

// The rules of this and of argument_run say whether the largest is wanted, or the smallest.
static pen_status extremum_run(const pen_reference_call *call) {
    pen_reduction_axes axes;
    int64_t *best;
    PEN_TRY(reduction_axes(call, &axes));
    PEN_TRY(reduction_find_extrema(call, &axes, *(const bool *)call->rule, false, &best));
    for (int64_t k = 0; k < pen_tensor_count(&call->outputs[0]); k++) {
        reference_copy_element(&call->outputs[0], k, &call->inputs[0], best[k]);
    }
    return PEN_OK;
}

static pen_status argument_run(const pen_reference_call *call) {
    const pen_shape *shape = &call->inputs[0].type.shape;
    pen_reduction_axes axes = {.kept = *shape};
    uint32_t axis;
    int64_t *best;
    PEN_TRY(pen_shape_axis(shape->rank, pen_node_int(call->node, "axis"), &axis));
    axes.kept.dims[axis] = 1;
    const bool last = pen_node_int(call->node, "select_last_index") != 0;
    PEN_TRY(reduction_find_extrema(call, &axes, *(const bool *)call->rule, last, &best));
    for (int64_t k = 0; k < pen_tensor_count(&call->outputs[0]); k++) {
        int64_t at[PEN_RANK_LIMIT];
        reference_position_of(shape, best[k], at);
        pen_tensor_set_int(&call->outputs[0], k, at[axis]);
    }
    return PEN_OK;
}

// log(sum of exp(x)) = m + log(sum of exp(x - m)), with the largest x for m.
static pen_status reduction_log_sum_exp(const pen_reference_call *call) {
    const pen_tensor *x = &call->inputs[0], *y = &call->outputs[0];
    const size_t count = (size_t)pen_tensor_count(y);
    pen_reduction_axes axes;
    int64_t *best;
    double *sums, *largest;
    PEN_TRY(reduction_axes(call, &axes));
    PEN_TRY(reduction_find_extrema(call, &axes, true, false, &best));
    PEN_TRY(PEN_NEW(call->scratch, count, &sums));
    PEN_TRY(PEN_NEW(call->scratch, count, &largest));
    for (size_t k = 0; k < count; k++) {
        const double found = best[k] < 0 ? 0 : pen_tensor_get(x, best[k]);
        largest[k] = isfinite(found) ? found : 0;
    }
    pen_broadcast_walk walk;
    for (reduction_start(&walk, &x->type.shape, &axes.kept); pen_broadcast_more(&walk);
         pen_broadcast_next(&walk)) {
        const int64_t k = walk.index[0];
        sums[k] += exp(pen_tensor_get(x, walk.position) - largest[k]);
    }
    for (size_t k = 0; k < count; k++) {
        pen_tensor_set(y, (int64_t)k, largest[k] + log(sums[k]));
    }
    return PEN_OK;
}

static pen_status reduction_sum_backward(const pen_reference_call *call) {
    const pen_tensor *dy = &call->inputs[0], *dx = &call->outputs[0];
    const double scale = pen_node_float(call->node, "scale");
    pen_broadcast_walk walk;
    for (reduction_start(&walk, &dx->type.shape, &dy->type.shape); pen_broadcast_more(&walk);
         pen_broadcast_next(&walk)) {
        pen_tensor_set(dx, walk.position, scale * pen_tensor_get(dy, walk.index[0]));
    }
    return PEN_OK;
}

typedef struct reduction_gradient {
    double (*of)(double dy, double x, double y);
} reduction_gradient;

// dx = f(dy, x, y) at each position of x, to which dy and y broadcast; y is 0 where not given.
static pen_status reduction_backward(const pen_reference_call *call) {
    const reduction_gradient *gradient = call->rule;
    const pen_tensor *in = call->inputs, *dx = &call->outputs[0];
    const bool has_y = call->node->input_count > 2;
    pen_broadcast_walk walk;
    for (reduction_start(&walk, &dx->type.shape, &in[0].type.shape); pen_broadcast_more(&walk);
         pen_broadcast_next(&walk)) {
        pen_tensor_set(dx, walk.position,
                       gradient->of(pen_tensor_get(&in[0], walk.index[0]),
                                    pen_tensor_get(&in[1], walk.position),
                                    has_y ? pen_tensor_get(&in[2], walk.index[0]) : 0));
    }
    return PEN_OK;
}

static double gradient_l1(double dy, double x, double y) {
    (void)y;
    return dy * ((x > 0) - (x < 0));
}
static double gradient_l2(double dy, double x, double y) {
    return y == 0 ? 0 : dy * x / y;
}
static double gradient_sum_square(double dy, double x, double y) {
    (void)y;
    return dy * 2 * x;
}
static double gradient_log_sum_exp(double dy, double x, double y) {
    return dy * exp(x - y);
}

static pen_status reduction_extremum_backward(const pen_reference_call *call) {
    const pen_tensor *dy = &call->inputs[0], *x = &call->inputs[1], *y = &call->inputs[2];
    const pen_tensor *dx = &call->outputs[0];
    double *ties;
    PEN_TRY(PEN_NEW(call->scratch, (size_t)pen_tensor_count(y), &ties));
    pen_broadcast_walk walk;
    for (reduction_start(&walk, &x->type.shape, &y->type.shape); pen_broadcast_more(&walk);
         pen_broadcast_next(&walk)) {
        ties[walk.index[0]] += pen_tensor_get(x, walk.position) == pen_tensor_get(y, walk.index[0]);
    }
    for (reduction_start(&walk, &x->type.shape, &y->type.shape); pen_broadcast_more(&walk);
         pen_broadcast_next(&walk)) {
        const int64_t k = walk.index[0];
        const bool among = pen_tensor_get(x, walk.position) == pen_tensor_get(y, k);
        pen_tensor_set(dx, walk.position, among ? pen_tensor_get(dy, k) / ties[k] : 0);
    }
    return PEN_OK;
}

// The product of the others: of all that are not 0, divided by x, if none of the others is 0.
static pen_status reduction_prod_backward(const pen_reference_call *call) {
    const pen_tensor *dy = &call->inputs[0], *x = &call->inputs[1], *dx = &call->outputs[0];
    const size_t count = (size_t)pen_tensor_count(dy);
    double *products, *zeros;
    PEN_TRY(PEN_NEW(call->scratch, count, &products));
    PEN_TRY(PEN_NEW(call->scratch, count, &zeros));
    for (size_t k = 0; k < count; k++) {
        products[k] = 1;
    }
    pen_broadcast_walk walk;
    for (reduction_start(&walk, &x->type.shape, &dy->type.shape); pen_broadcast_more(&walk);
         pen_broadcast_next(&walk)) {
        const double at = pen_tensor_get(x, walk.position);
        if (at == 0) {
            zeros[walk.index[0]] += 1;
        } else {
            products[walk.index[0]] *= at;
        }
    }
    for (reduction_start(&walk, &x->type.shape, &dy->type.shape); pen_broadcast_more(&walk);
         pen_broadcast_next(&walk)) {
        const int64_t k = walk.index[0];
        const double at = pen_tensor_get(x, walk.position);
        const double others_zero = zeros[k] - (at == 0);
        const double others = others_zero > 0 ? 0 : at == 0 ? products[k] : products[k] / at;
        pen_tensor_set(dx, walk.position, pen_tensor_get(dy, k) * others);
    }
    return PEN_OK;
}

#define REDUCTION(...) reduction_run, PEN_REFERENCE_RULE(reduction_rule, __VA_ARGS__)
#define REDUCTION_GRADIENT(of) reduction_backward, PEN_REFERENCE_RULE(reduction_gradient, of)
#define REDUCTION_LARGEST PEN_REFERENCE_RULE(bool, true)
#define REDUCTION_SMALLEST PEN_REFERENCE_RULE(bool, false)

static const pen_reference_kernel reduction_kernels[] = {
    {"reduce_sum", REDUCTION(.step = step_sum, .integer_step = integer_sum)},
    {"reduce_mean", REDUCTION(.step = step_sum, .finish = finish_mean)},
    {"reduce_max", extremum_run, REDUCTION_LARGEST},
    {"reduce_min", extremum_run, REDUCTION_SMALLEST},
    {"reduce_prod", REDUCTION(.start = 1, .step = step_product, .integer_step = integer_product)},
    {"reduce_l1", REDUCTION(.step = step_absolute)},
    {"reduce_l2", REDUCTION(.step = step_square, .finish = finish_root)},
    {"reduce_sum_square", REDUCTION(.step = step_square, .integer_step = integer_square)},
    {"reduce_log_sum", REDUCTION(.step = step_sum, .finish = finish_log)},
    {"reduce_log_sum_exp", reduction_log_sum_exp, NULL},
    {"arg_max", argument_run, REDUCTION_LARGEST},
    {"arg_min", argument_run, REDUCTION_SMALLEST},
    {"reduce_sum_backward", reduction_sum_backward, NULL},
    {"reduce_max_backward", reduction_extremum_backward, NULL},
    {"reduce_min_backward", reduction_extremum_backward, NULL},
    {"reduce_prod_backward", reduction_prod_backward, NULL},
    {"reduce_l1_backward", REDUCTION_GRADIENT(gradient_l1)},
    {"reduce_l2_backward", REDUCTION_GRADIENT(gradient_l2)},
    {"reduce_sum_square_backward", REDUCTION_GRADIENT(gradient_sum_square)},
    {"reduce_log_sum_exp_backward", REDUCTION_GRADIENT(gradient_log_sum_exp)},
};

PEN_REFERENCE_FAMILY(reduction);
