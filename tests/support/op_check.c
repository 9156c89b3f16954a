#include "tests/support/op_check.h"

#include <math.h>

#include "base/random.h"
#include "graph/passes/gradient/build_gradients.h"

pen_tensor_type op_type(pen_element_type element, uint32_t rank, ...) {
    pen_tensor_type type = {.element = element, .shape = {.rank = rank}};
    va_list dims;
    va_start(dims, rank);
    for (uint32_t i = 0; i < rank; i++) {
        type.shape.dims[i] = va_arg(dims, int);
    }
    va_end(dims);
    return type;
}

static pen_status op_build_in(const op_case *c, op_built *built) {
    PEN_TRY(pen_graph_create(built->arena, "case", &built->graph));
    for (uint32_t i = 0; i < c->input_count; i++) {
        const op_case_input *input = &c->inputs[i];
        built->inputs[i] = PEN_VALUE_NONE;
        if (input->is_absent) continue;
        char name[24];
        snprintf(name, sizeof name, "input_%u", i);
        if (input->is_constant) {
            PEN_TRY(pen_graph_constant(built->graph, name, &input->type, input->data,
                                       &built->inputs[i]));
            continue;
        }
        const pen_value value = {.name = name, .kind = PEN_VALUE_INPUT, .type = input->type};
        PEN_TRY(pen_graph_add_value(built->graph, &value, &built->inputs[i]));
    }
    pen_node_spec spec = pen_node_spec_make(c->op, "subject");
    spec.inputs = built->inputs;
    spec.input_count = c->input_count;
    spec.output_count = c->output_count == 0 ? 1 : c->output_count;
    static const char *const all[OP_CASE_OUTPUTS] = {"y0", "y1", "y2", "y3",
                                                     "y4", "y5", "y6", "y7"};
    const char *names[OP_CASE_OUTPUTS];
    for (uint32_t i = 0; i < OP_CASE_OUTPUTS; i++) {
        names[i] = (c->absent_outputs >> i & 1) != 0 ? NULL : all[i];
    }
    if (c->absent_outputs != 0) spec.output_names = names;
    spec.attributes = c->attributes;
    spec.attribute_count = c->attribute_count;
    PEN_TRY(pen_graph_add_node(built->graph, &spec, &built->node));
    const pen_node *node = pen_graph_node(built->graph, built->node);
    for (uint32_t i = 0; i < spec.output_count; i++) {
        built->outputs[i] = node->outputs[i];
    }
    return PEN_OK;
}

pen_status op_build(const op_case *c, op_built *out_built) {
    *out_built = (op_built){.arena = check_arena()};
    return op_build_in(c, out_built);
}

void op_built_free(op_built *built) {
    pen_arena_destroy(built->arena);
}

void op_fill(const op_case *c, const op_built *built, uint64_t seed, run_graph *run) {
    for (uint32_t i = 0; i < c->input_count; i++) {
        const op_case_input *input = &c->inputs[i];
        if (input->is_absent || input->is_constant) continue;
        pen_tensor *tensor = &run->tensors[built->inputs[i].index];
        if (input->data != NULL) {
            memcpy(tensor->data, input->data, pen_tensor_type_bytes(&input->type));
            continue;
        }
        const bool is_default = input->low == 0 && input->high == 0;
        const double low = is_default ? -1 : input->low;
        const double high = is_default ? 1 : input->high;
        const pen_random_key key = {seed, pen_random_stream("op_check", i, 0)};
        for (int64_t k = 0; k < pen_tensor_count(tensor); k++) {
            double number = low + (high - low) * (double)pen_random_uniform(key, (uint64_t)k);
            if (!pen_element_is_float(input->type.element)) number = floor(number);
            pen_tensor_set(tensor, k, number);
        }
    }
}

void op_check_error(const op_case *c, pen_status_code code, const char *text) {
    op_built built;
    CHECK_ERROR(op_build(c, &built), code, text);
    op_built_free(&built);
}

void op_check_values(const op_case *c, uint32_t output, const double *expected, uint32_t count,
                     double tolerance) {
    op_built built;
    run_graph run;
    CHECK_OK(op_build(c, &built));
    CHECK_OK(run_graph_init(&run, built.graph, built.arena));
    op_fill(c, &built, 1, &run);
    CHECK_OK(run_graph_all(&run));
    const pen_tensor *tensor = &run.tensors[built.outputs[output].index];
    CHECK(pen_tensor_count(tensor) == count, "%s gives %lld elements, expected %u", c->op,
          (long long)pen_tensor_count(tensor), count);
    for (uint32_t k = 0; k < count; k++) {
        const double found = pen_tensor_get(tensor, k);
        const bool same = found == expected[k] || (isnan(found) && isnan(expected[k])) ||
                          fabs(found - expected[k]) <= tolerance * (1 + fabs(expected[k]));
        CHECK(same, "%s: element %u is %.17g, expected %.17g", c->op, k, found, expected[k]);
    }
    op_built_free(&built);
}

// The sum of seed · output: the function whose gradient is taken.
static double op_scalar(const run_graph *run, pen_value_id output, pen_value_id seed) {
    double sum = 0;
    const pen_tensor *y = &run->tensors[output.index];
    const pen_tensor *s = &run->tensors[seed.index];
    for (int64_t k = 0; k < pen_tensor_count(y); k++) {
        sum += pen_tensor_get(y, k) * pen_tensor_get(s, k);
    }
    return sum;
}

// Compares the gradient of one input with difference quotients, element by element.
static void op_compare(const op_case *c, run_graph *run, uint32_t forward_count,
                       const pen_value_id ids[4], uint64_t case_seed) {
    const pen_value_id input = ids[0], gradient = ids[1], output = ids[2], seed = ids[3];
    const double step = c->step == 0 ? 1e-6 : c->step;
    const double tolerance = c->tolerance == 0 ? 1e-6 : c->tolerance;
    pen_tensor *x = &run->tensors[input.index];
    double difference = 0, norm = 0;
    for (int64_t k = 0; k < pen_tensor_count(x); k++) {
        const double old = pen_tensor_get(x, k);
        pen_tensor_set(x, k, old + step);
        CHECK_OK(run_graph_nodes(run, 0, forward_count));
        const double above = op_scalar(run, output, seed);
        pen_tensor_set(x, k, old - step);
        CHECK_OK(run_graph_nodes(run, 0, forward_count));
        const double below = op_scalar(run, output, seed);
        pen_tensor_set(x, k, old);
        const double numeric = (above - below) / (2 * step);
        const double symbolic =
            pen_value_is(gradient) ? pen_tensor_get(&run->tensors[gradient.index], k) : 0;
        difference += (numeric - symbolic) * (numeric - symbolic);
        norm += numeric * numeric;
    }
    CHECK(sqrt(difference) <= tolerance * (sqrt(norm) + 1),
          "%s, seed %llu: gradient of '%s' through '%s' is off by %g of %g", c->op,
          (unsigned long long)case_seed, pen_value_name(run->graph, input),
          pen_value_name(run->graph, output), sqrt(difference), sqrt(norm));
}

static void op_check_output(const op_case *c, uint64_t seed, uint32_t output) {
    op_built built;
    CHECK_OK(op_build(c, &built));
    pen_value seed_value = {.name = "seed",
                            .kind = PEN_VALUE_INPUT,
                            .type = *pen_value_type(built.graph, built.outputs[output])};
    pen_value_id seed_id;
    CHECK_OK(pen_graph_add_value(built.graph, &seed_value, &seed_id));
    pen_value_id wanted[OP_CASE_INPUTS];
    uint32_t wanted_count = 0;
    for (uint32_t i = 0; i < c->input_count; i++) {
        const op_case_input *input = &c->inputs[i];
        if (input->is_absent || input->is_constant || input->is_fixed) continue;
        if (pen_element_is_float(input->type.element)) wanted[wanted_count++] = built.inputs[i];
    }
    CHECK(wanted_count > 0, "%s: nothing to differentiate", c->op);
    const uint32_t forward_count = pen_graph_node_count(built.graph);
    pen_gradients *gradients;
    CHECK_OK(pen_build_gradients(built.graph, built.outputs[output], seed_id, wanted_count, wanted,
                                 &gradients));
    run_graph run;
    CHECK_OK(run_graph_init(&run, built.graph, built.arena));
    op_fill(c, &built, seed, &run);
    const pen_random_key key = {seed, pen_random_stream("op_check_seed", output, 0)};
    for (int64_t k = 0; k < pen_tensor_count(&run.tensors[seed_id.index]); k++) {
        pen_tensor_set(&run.tensors[seed_id.index], k, pen_random_normal(key, (uint64_t)k));
    }
    CHECK_OK(run_graph_all(&run));
    for (uint32_t i = 0; i < wanted_count; i++) {
        const pen_gradient *gradient = &gradients->items[i];
        CHECK(gradient->use_count <= 1, "%s: %u uses of one operand", c->op, gradient->use_count);
        const pen_value_id ids[4] = {wanted[i],
                                     gradient->use_count == 1 ? gradient->uses[0] : PEN_VALUE_NONE,
                                     built.outputs[output], seed_id};
        op_compare(c, &run, forward_count, ids, seed);
    }
    op_built_free(&built);
}

void op_check_gradient(const op_case *c, uint64_t seed) {
    const uint32_t output_count = c->output_count == 0 ? 1 : c->output_count;
    op_built built;
    CHECK_OK(op_build(c, &built));
    bool floating[OP_CASE_OUTPUTS];
    for (uint32_t i = 0; i < output_count; i++) {
        floating[i] = (c->output_mask >> i & 1) == 0 && pen_value_is(built.outputs[i]) &&
                      pen_element_is_float(pen_value_type(built.graph, built.outputs[i])->element);
    }
    op_built_free(&built);
    for (uint32_t i = 0; i < output_count; i++) {
        if (floating[i]) op_check_output(c, seed, i);
    }
}
