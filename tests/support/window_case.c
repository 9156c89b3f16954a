#include "tests/support/window_case.h"

#include <math.h>
#include <string.h>

#include "tests/support/random_case.h"

// Channels as they come: odd ones, and multiples of the blocks.
static int64_t conv_channels(random_case *random) {
    return random_chance(random, 40) ? 8 * random_between(random, 1, 5)
                                     : random_between(random, 1, 19);
}

static void conv_random_windows(conv_trial *trial, random_case *random, uint32_t rank,
                                pen_shape *x) {
    op_case *c = &trial->forward;
    static const char *const auto_pads[] = {"SAME_UPPER", "SAME_LOWER", "VALID"};
    const bool is_auto = random_chance(random, 20);
    for (uint32_t i = 0; i < rank; i++) {
        trial->kernel[i] = random_between(random, 1, rank == 3 ? 3 : 4);
        trial->strides[i] = random_between(random, 1, 3);
        trial->dilations[i] = random_chance(random, 75) ? 1 : random_between(random, 2, 3);
        const int64_t extent = (trial->kernel[i] - 1) * trial->dilations[i] + 1;
        trial->pads[i] = random_between(random, 0, trial->kernel[i] - 1);
        trial->pads[rank + i] = random_between(random, 0, trial->kernel[i] - 1);
        x->dims[2 + i] = extent + random_between(random, 0, rank == 3 ? 4 : 9);
    }
    c->attributes[0] = pen_attribute_ints("kernel_shape", rank, trial->kernel);
    c->attributes[1] = pen_attribute_ints("strides", rank, trial->strides);
    c->attributes[2] = pen_attribute_ints("dilations", rank, trial->dilations);
    c->attributes[3] = is_auto
                           ? pen_attribute_text("auto_pad", auto_pads[random_between(random, 0, 2)])
                           : pen_attribute_ints("pads", 2 * rank, trial->pads);
    c->attribute_count = 5;
}

void conv_random(conv_trial *trial, const char *op, uint64_t seed) {
    random_case random = {seed, 0};
    const bool is_transposed = strcmp(op, "conv_transpose") == 0;
    const bool is_depthwise = random_chance(&random, 10);
    const int64_t groups = is_depthwise                 ? conv_channels(&random)
                           : random_chance(&random, 70) ? 1
                                                        : random_between(&random, 2, 4);
    const int64_t in = is_depthwise ? 1 : conv_channels(&random);
    const int64_t out = is_depthwise ? random_between(&random, 1, 2) : conv_channels(&random);
    const uint32_t rank = random_chance(&random, 70) ? 2 : random_chance(&random, 50) ? 1 : 3;
    pen_shape x = {.rank = rank + 2, .dims = {random_between(&random, 1, 3), groups * in}};
    pen_shape w = {.rank = rank + 2, .dims = {groups * out, in}};
    if (is_transposed) w.dims[0] = groups * in, w.dims[1] = out;
    *trial = (conv_trial){.forward = {.op = op}};
    conv_random_windows(trial, &random, rank, &x);
    trial->forward.attributes[4] = pen_attribute_int("group", groups);
    for (uint32_t i = 0; i < rank; i++) {
        w.dims[2 + i] = trial->kernel[i];
    }
    trial->forward.inputs[0].type = (pen_tensor_type){PEN_FLOAT32, x};
    trial->forward.inputs[1].type = (pen_tensor_type){PEN_FLOAT32, w};
    trial->forward.inputs[2].type = op_type(PEN_FLOAT32, 1, (int)(groups * out));
    trial->forward.input_count = random_chance(&random, 50) ? 2 : 3;
}

void conv_random_backward(conv_trial *trial, uint64_t seed) {
    op_built built;
    conv_random(trial, "conv", seed);
    CHECK_OK(op_build(&trial->forward, &built));
    trial->y = *pen_value_type(built.graph, built.outputs[0]);
    CHECK_OK(pen_conv_geometry_of(built.graph, pen_graph_node(built.graph, built.node),
                                  &trial->geometry));
    pen_window_attributes_make(&trial->geometry, &trial->window);
    op_built_free(&built);
}

// The gradient of x takes dy and w, that of w takes x and dy.
op_case conv_backward_case(conv_trial *trial, const char *op) {
    const bool is_input = strcmp(op, "conv_backward_input") == 0;
    op_case c = {.op = op, .input_count = 2};
    for (uint32_t i = 0; i < trial->window.count; i++) {
        c.attributes[c.attribute_count++] = trial->window.given[i];
    }
    c.attributes[c.attribute_count++] = pen_attribute_int("group", trial->geometry.group_count);
    c.inputs[0].type = is_input ? trial->y : trial->forward.inputs[0].type;
    c.inputs[1].type = is_input ? trial->forward.inputs[1].type : trial->y;
    if (!is_input) return c;
    const pen_shape *x = &trial->forward.inputs[0].type.shape;
    c.attributes[c.attribute_count++] = pen_attribute_ints("input_shape", x->rank, x->dims);
    return c;
}

bool conv_random_any(conv_trial *trial, uint64_t seed) {
    static const char *const ops[] = {"conv", "conv_transpose", "conv_backward_input",
                                      "conv_backward_weight"};
    const char *op = ops[seed % 4];
    op_built built;
    if (seed % 4 < 2) {
        conv_random(trial, op, seed);
    } else {
        conv_random_backward(trial, seed);
        trial->forward = conv_backward_case(trial, op);
    }
    const pen_status status = op_build(&trial->forward, &built);
    op_built_free(&built);
    if (status == PEN_OK) return true;
    pen_status_ignore(status, "windows that do not fit");
    return false;
}

void conv_of_many_tiles(conv_trial *trial, uint64_t seed) {
    static const char *const ops[] = {"conv", "conv_backward_input", "conv_backward_weight"};
    static const int64_t kernels[][2] = {{3, 3}, {1, 1}, {2, 5}};
    static const int64_t strides[][2] = {{1, 1}, {2, 2}, {3, 2}};
    static const int64_t dilations[][2] = {{1, 1}, {1, 1}, {2, 3}};
    static const int64_t pads[][4] = {{1, 1, 1, 1}, {0, 0, 0, 0}, {2, 1, 0, 3}};
    const uint64_t at = seed / 3;
    const int channels = at == 1 ? 66 : 17, rows = at == 0 ? 66 : 17;
    const int64_t *k = kernels[at], *s = strides[at], *d = dilations[at], *p = pads[at];
    const int64_t x[] = {2, channels, 25, 23};
    const int down = (int)((x[2] + p[0] + p[2] - (k[0] - 1) * d[0] - 1) / s[0]) + 1;
    const int across = (int)((x[3] + p[1] + p[3] - (k[1] - 1) * d[1] - 1) / s[1]) + 1;
    op_case *c = &trial->forward;
    *c = (op_case){.op = ops[seed % 3], .input_count = 2, .attribute_count = 4};
    const pen_tensor_type y = op_type(PEN_FLOAT32, 4, 2, rows, down, across);
    c->inputs[0].type = seed % 3 == 1 ? y : op_type(PEN_FLOAT32, 4, 2, channels, 25, 23);
    c->inputs[1].type =
        seed % 3 == 2 ? y : op_type(PEN_FLOAT32, 4, rows, channels, (int)k[0], (int)k[1]);
    c->attributes[0] = pen_attribute_ints("kernel_shape", 2, k);
    c->attributes[1] = pen_attribute_ints("strides", 2, s);
    c->attributes[2] = pen_attribute_ints("dilations", 2, d);
    c->attributes[3] = pen_attribute_ints("pads", 4, p);
    if (seed % 3 != 1) return;
    memcpy(trial->pads, x, sizeof x);
    c->attributes[4] = pen_attribute_ints("input_shape", 4, trial->pads);
    c->attribute_count = 5;
}

void pool_random(pool_trial *trial, const char *op, uint64_t seed) {
    random_case random = {seed, 0};
    const uint32_t rank = random_chance(&random, 70) ? 2 : random_chance(&random, 50) ? 1 : 3;
    const bool is_max = strcmp(op, "max_pool") == 0;
    pen_shape x = {.rank = rank + 2,
                   .dims = {random_between(&random, 1, 3), random_between(&random, 1, 35)}};
    *trial = (pool_trial){.forward = {.op = op, .input_count = 1}};
    for (uint32_t i = 0; i < rank; i++) {
        trial->kernel[i] = random_between(&random, 1, 4);
        trial->strides[i] = random_between(&random, 1, 3);
        trial->dilations[i] = random_chance(&random, 75) ? 1 : random_between(&random, 2, 3);
        trial->pads[i] = random_between(&random, 0, trial->kernel[i] - 1);
        trial->pads[rank + i] = random_between(&random, 0, trial->kernel[i] - 1);
        x.dims[2 + i] =
            (trial->kernel[i] - 1) * trial->dilations[i] + random_between(&random, 1, 7);
    }
    op_case *c = &trial->forward;
    c->inputs[0].type = (pen_tensor_type){PEN_FLOAT32, x};
    c->attributes[0] = pen_attribute_ints("kernel_shape", rank, trial->kernel);
    c->attributes[1] = pen_attribute_ints("strides", rank, trial->strides);
    c->attributes[2] = pen_attribute_ints("dilations", rank, trial->dilations);
    c->attributes[3] =
        random_chance(&random, 80)
            ? pen_attribute_ints("pads", 2 * rank, trial->pads)
            : pen_attribute_text("auto_pad",
                                 random_chance(&random, 50) ? "SAME_UPPER" : "SAME_LOWER");
    c->attributes[4] = pen_attribute_int("ceil_mode", random_between(&random, 0, 1));
    c->attribute_count = 5;
    if (is_max) return;
    c->attributes[5] = pen_attribute_int("count_include_pad", random_between(&random, 0, 1));
    c->attribute_count = 6;
}

// The resolved window of a trial's node, for its backward op.
static void pool_resolve(pool_trial *trial, const op_built *built, op_case *backward) {
    pen_conv_geometry geometry;
    const pen_node *node = pen_graph_node(built->graph, built->node);
    CHECK_OK(pen_pool_geometry(built->graph, node, &geometry));
    const bool is_notset = strcmp(pen_node_text(node, "auto_pad"), "NOTSET") == 0;
    pen_window_attributes_make(&geometry, &trial->window);
    for (uint32_t i = 0; i < trial->window.count; i++) {
        backward->attributes[backward->attribute_count++] = trial->window.given[i];
    }
    backward->attributes[backward->attribute_count++] =
        pen_attribute_int("ceil_mode", is_notset && pen_node_int(node, "ceil_mode") != 0 ? 1 : 0);
}

op_case pool_max_backward_case(pool_trial *trial, uint64_t seed, op_built *out_built) {
    run_graph run;
    CHECK_OK(op_build(&trial->forward, out_built));
    CHECK_OK(run_graph_init(&run, out_built->graph, out_built->arena));
    op_fill(&trial->forward, out_built, seed, &run);
    const pen_tensor *x = &run.tensors[out_built->inputs[0].index];
    for (int64_t k = 0; seed % 2 == 0 && k < pen_tensor_count(x); k++) {
        pen_tensor_set(x, k, floor(3 * pen_tensor_get(x, k))); // many equals
    }
    CHECK_OK(run_graph_all(&run));
    const pen_tensor *y = &run.tensors[out_built->outputs[0].index];
    op_case c = {.op = "max_pool_backward", .input_count = 3};
    pool_resolve(trial, out_built, &c);
    c.inputs[0].type = y->type;
    c.inputs[1] = (op_case_input){.type = x->type, .data = x->data};
    c.inputs[2] = (op_case_input){.type = y->type, .data = y->data};
    return c;
}

op_case pool_average_backward_case(pool_trial *trial, op_built *out_built) {
    CHECK_OK(op_build(&trial->forward, out_built));
    op_case c = {.op = "average_pool_backward", .input_count = 1};
    pool_resolve(trial, out_built, &c);
    const pen_shape *x = &trial->forward.inputs[0].type.shape;
    c.attributes[c.attribute_count++] = pen_attribute_ints("input_shape", x->rank, x->dims);
    c.attributes[c.attribute_count++] = trial->forward.attributes[5];
    c.inputs[0].type = *pen_value_type(out_built->graph, out_built->outputs[0]);
    return c;
}
