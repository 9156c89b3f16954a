// Optimizers but SGD and Adam, and averages, on an emulated GPU against the reference kernels.
#include <stdlib.h>
#include <string.h>

#include "device/cuda/kernels/cuda_args.h"
#include "graph/op.h"
#include "graph/ops/training/optimizer.h"
#include "tests/support/cuda_check.h"
#include "tests/support/random_case.h"

// What every update has: clipping, a decay, and scales of which half say that nothing is applied.
static void add_options(op_case *c, const pen_op *op, uint64_t seed) {
    const pen_op_update *at = &op->update;
    static double steps[] = {1, 2, 7, 40, 5000};
    c->op = op->name;
    c->input_count = at->scale + 1;
    c->inputs[at->rate] =
        (op_case_input){.type = op_type(seed % 2 ? PEN_FLOAT64 : PEN_FLOAT32, 0), .high = 0.1};
    c->inputs[at->rate].low = 0.001;
    c->inputs[at->scale].type = op_type(seed % 3 ? PEN_FLOAT64 : PEN_FLOAT32, 0);
    c->inputs[at->scale].is_absent = seed / 3 % 2 == 0;
    if (at->step > 0) {
        c->inputs[at->step] =
            (op_case_input){.type = op_type(PEN_FLOAT64, 0), .data = &steps[seed % 5]};
    }
    c->attributes[c->attribute_count++] = pen_attribute_float("weight_decay", seed % 2 ? 0.01 : 0);
    c->attributes[c->attribute_count++] = pen_attribute_float("clip_value", seed % 4 > 1 ? 0.3 : 0);
    c->attributes[c->attribute_count++] = pen_attribute_float("lr_scale", seed % 3 ? 0.3 : 1);
}

static void updates_of_elements(void **state) {
    (void)state;
    static const char *const ops[] = {"adagrad_update", "adadelta_update", "adamax_update",
                                      "nadam_update",   "radam_update",    "lion_update",
                                      "lamb_update"};
    for (uint64_t seed = 0; seed < 84; seed++) {
        const pen_op *op;
        CHECK_OK(pen_op_find(ops[seed % 7], &op));
        op_case c = {.output_count = 1 + op->update.rate - op->update.state};
        add_options(&c, op, seed / 7);
        for (uint32_t i = 0; i < op->update.rate; i++) {
            c.inputs[i].type =
                seed % 3 == 2 ? op_type(PEN_FLOAT32, 1, 9500) : op_type(PEN_FLOAT32, 2, 9, 91);
            if (i > op->update.state) c.inputs[i].low = 0.01, c.inputs[i].high = 1; // squares
        }
        if (seed % 7 < 2) c.inputs[2].low = 0.01, c.inputs[2].high = 1;
        if (seed % 7 == 3 || seed % 7 == 4)
            c.attributes[c.attribute_count++] = pen_attribute_int("decoupled", seed / 7 % 2);
        if (seed % 7 == 0) c.attributes[c.attribute_count++] = pen_attribute_float("lr_decay", 0.1);
        cuda_check(&c, seed, 1e-5);
    }
}

static void updates_by_rmsprop(void **state) {
    (void)state;
    const pen_op *op;
    CHECK_OK(pen_op_find("rmsprop_update", &op));
    for (uint64_t seed = 0; seed < 16; seed++) {
        const bool has_momentum = seed % 2, centered = seed / 2 % 2;
        op_case c = {.output_count = centered       ? 4
                                     : has_momentum ? 3
                                                    : 2,
                     .absent_outputs = has_momentum ? 0 : 1u << 2};
        add_options(&c, op, seed / 2);
        for (uint32_t i = 0; i < 5; i++)
            c.inputs[i].type = op_type(PEN_FLOAT32, 2, 9, 91);
        c.inputs[2].low = 1.1, c.inputs[2].high = 2; // more than the square of the average
        c.inputs[3].is_absent = !has_momentum;
        c.inputs[4].is_absent = !centered;
        c.attributes[c.attribute_count++] = pen_attribute_float("momentum", has_momentum ? 0.9 : 0);
        c.attributes[c.attribute_count++] = pen_attribute_int("centered", centered);
        c.attributes[c.attribute_count++] = pen_attribute_float("alpha", 0.9);
        cuda_check(&c, seed, 1e-5);
    }
}

// Vectors, matrices, and several matrices at once. Of the first step nothing old is left: what
// floats lose there, where they take it away again, says nothing of a kernel.
static const double later[] = {2, 700};

static void updates_by_adafactor(void **state) {
    (void)state;
    static const int sizes[][3] = {{2, 5, 700}, {1, 300, 3}, {3, 70, 17}, {1, 1, 1}};
    const pen_op *op;
    CHECK_OK(pen_op_find("adafactor_update", &op));
    for (uint64_t seed = 0; seed < 24; seed++) {
        const int *s = sizes[seed % 4];
        const bool is_vector = seed % 3 == 0;
        op_case c = {.output_count = is_vector ? 4 : 3, .absent_outputs = is_vector ? 3u << 1 : 0};
        add_options(&c, op, seed / 2);
        c.inputs[op->update.step].data = &later[seed % 2];
        for (uint32_t i = 0; i < 5; i++) {
            c.inputs[i].type = is_vector ? op_type(PEN_FLOAT32, 1, s[1] * s[2])
                                         : op_type(PEN_FLOAT32, 3, s[0], s[1], s[2]);
            c.inputs[i].is_absent = i > 1 && (i == 4) != is_vector;
            if (i > 1) c.inputs[i].low = 0.01, c.inputs[i].high = 1;
        }
        if (!is_vector) c.inputs[2].type.shape.dims[2] = c.inputs[3].type.shape.dims[1] = 1;
        c.attributes[c.attribute_count++] = pen_attribute_float("clip_threshold", seed % 2 ? 1 : 3);
        cuda_check(&c, seed, 1e-5);
    }
}

static void averages(void **state) {
    (void)state;
    static const double steps[] = {1, 3, 4, 900};
    for (uint64_t seed = 0; seed < 16; seed++) {
        op_case c = {.op = "average_update", .input_count = 3, .attribute_count = 2};
        c.inputs[0].type = c.inputs[1].type = op_type(PEN_FLOAT32, 2, 9, 91);
        c.inputs[2] = (op_case_input){.type = op_type(PEN_FLOAT64, 0), .data = &steps[seed % 4]};
        c.attributes[0] = pen_attribute_float("decay", seed < 8 ? 0.9 : 0.2);
        c.attributes[1] = pen_attribute_int("from", 2);
        cuda_check(&c, seed, 1e-6);
        static const double scales[] = {-1, 0.25};
        static const float narrow[] = {-1, 0.25};
        c.input_count = 4;
        c.inputs[3] =
            (op_case_input){.type = op_type(PEN_FLOAT64, 0), .data = &scales[seed / 2 % 2]};
        if (seed % 2)
            c.inputs[3] =
                (op_case_input){.type = op_type(PEN_FLOAT32, 0), .data = &narrow[seed / 2 % 2]};
        cuda_check(&c, seed, 1e-6);
    }
}

// Lists of rows, some of which come twice, in place of gradients: of every optimizer, and of a
// norm.
static void gradients_of_rows(void **state) {
    (void)state;
    static const int64_t shape[] = {9, 11};
    for (uint64_t seed = 0; seed < 3 * PEN_OPTIMIZER_COUNT; seed++) {
        const pen_op *op = pen_optimizer_op((pen_optimizer_kind)(seed % PEN_OPTIMIZER_COUNT));
        const pen_op_update *at = &op->update;
        const bool is_factored = strcmp(op->name, "adafactor_update") == 0;
        const bool has_one = strcmp(op->name, "rmsprop_update") == 0;
        op_case c = {.output_count = has_one ? 2 : is_factored ? 3 : 1 + at->rate - at->state};
        add_options(&c, op, seed / 2);
        for (uint32_t i = 0; i < at->rate; i++) {
            c.inputs[i].type = op_type(PEN_FLOAT32, 2, 9, 11);
            if (i < at->state) continue;
            c.inputs[i].low = 0.01, c.inputs[i].high = 1;
            c.inputs[i].is_absent = i - at->state + 2 > c.output_count;
        }
        if (is_factored) c.inputs[at->step].data = &later[seed % 2];
        if (is_factored)
            c.inputs[at->state].type.shape.dims[1] = c.inputs[at->state + 1].type.shape.dims[0] = 1;
        c.input_count = at->rows + 1;
        c.inputs[1].type = op_type(PEN_FLOAT32, 3, 2, 4, 11);
        c.inputs[at->rows] = (op_case_input){
            .type = op_type(seed % 2 ? PEN_INT32 : PEN_INT64, 2, 2, 4), .low = -9, .high = 9};
        if (seed == 5) // a step without rows
            c.inputs[1].type.shape.dims[0] = c.inputs[at->rows].type.shape.dims[0] = 0;
        cuda_check(&c, seed, 1e-5);
        op_case norm = {.op = "squared_norm", .input_count = 2, .attribute_count = 1};
        norm.attributes[0] = pen_attribute_ints("shape", 2, shape);
        norm.inputs[0] = c.inputs[1];
        norm.inputs[1] = c.inputs[at->rows];
        cuda_check(&norm, seed, 1e-6);
    }
}

// Of more blocks than a block has threads, the last of which have other numbers: sums of whole
// numbers are exact, whatever their order.
static void norms_of_many_blocks(void **state) {
    (void)state;
    enum { WHOLE = PEN_CUDA_BLOCK * PEN_CUDA_NORM_BLOCK, COUNT = WHOLE + PEN_CUDA_NORM_BLOCK + 3 };
    float *x = malloc(COUNT * sizeof *x);
    double expected = 0;
    for (int i = 0; i < COUNT; i++) {
        x[i] = i < WHOLE ? (float)(i % 3) : (float)(i % 5 + 1);
        expected += (double)x[i] * (double)x[i];
    }
    op_case c = {.op = "squared_norm", .input_count = 1};
    c.inputs[0] = (op_case_input){.type = op_type(PEN_FLOAT32, 1, COUNT), .data = x};
    op_built built;
    run_graph run;
    CHECK_OK(op_build(&c, &built));
    CHECK_OK(run_graph_init(&run, built.graph, built.arena));
    op_fill(&c, &built, 1, &run);
    cuda_run(&built, PEN_PRECISION_FLOAT32, 1, &run);
    const float found = *(const float *)run.tensors[built.outputs[0].index].data;
    CHECK(found == (float)expected, "the norm is %.9g, expected %.9g", (double)found, expected);
    op_built_free(&built);
    free(x);
}

// Rows of a microbatch, the first and none, in a list that has room for three of them.
static void rows_of_microbatches(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 6; seed++) {
        op_case c = {.op = "stack_rows", .input_count = 1, .attribute_count = 4};
        c.attributes[0] = pen_attribute_int("tail", seed % 2);
        c.attributes[1] = pen_attribute_int("each", 5);
        c.attributes[2] = pen_attribute_int("capacity", 15);
        c.attributes[3] = pen_attribute_int("first", 0);
        c.inputs[0].type = seed % 2 ? op_type(PEN_FLOAT32, 3, 2, 2, 7) : op_type(PEN_INT64, 1, 4);
        c.inputs[0].high = 90;
        cuda_check(&c, seed, 1e-6);
    }
}

PEN_TEST_MAIN(cmocka_unit_test(updates_of_elements), cmocka_unit_test(updates_by_rmsprop),
              cmocka_unit_test(updates_by_adafactor), cmocka_unit_test(averages),
              cmocka_unit_test(gradients_of_rows), cmocka_unit_test(norms_of_many_blocks),
              cmocka_unit_test(rows_of_microbatches))
