#include "graph/op.h"
#include "graph/ops/training/optimizer.h"
#include "tests/support/device_check.h"
#include "tests/support/random_case.h"

// Sizes on both sides of the threshold for a team, and of the blocks of squared_norm.
static pen_tensor_type optimizer_type(random_case *random) {
    if (random_chance(random, 80)) return random_type(random, 0, 3, 40, 2000);
    return op_type(PEN_FLOAT32, 1, (int)random_between(random, 4000, 40000));
}

static void sgd_equals_reference(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 120; seed++) {
        random_case random = {seed, 0};
        const pen_tensor_type type = optimizer_type(&random);
        const bool has_velocity = random_chance(&random, 60);
        op_case c = {.op = "sgd_update", .input_count = 4, .attribute_count = 3};
        c.inputs[0].type = c.inputs[1].type = c.inputs[2].type = type;
        c.inputs[2].is_absent = !has_velocity;
        c.inputs[3].type = op_type(random_chance(&random, 30) ? PEN_FLOAT64 : PEN_FLOAT32, 0);
        if (random_chance(&random, 50)) {
            c.input_count = 5;
            c.inputs[4].type = op_type(PEN_FLOAT32, 0);
        }
        c.output_count = has_velocity && random_chance(&random, 90) ? 2 : 1;
        c.attributes[0] = pen_attribute_float("momentum", has_velocity ? 0.9 : 0);
        c.attributes[1] = pen_attribute_int("nesterov", random_chance(&random, 50));
        c.attributes[2] = pen_attribute_float("weight_decay", random_chance(&random, 50) ? .01 : 0);
        op_check_device(&c, seed, 1e-6);
    }
}

static void adam_equals_reference(void **state) {
    (void)state;
    static const float steps[] = {1, 2, 100};
    for (uint64_t seed = 0; seed < 60; seed++) {
        random_case random = {seed, 0};
        const pen_tensor_type type = optimizer_type(&random);
        op_case c = {.op = "adam_update", .input_count = 6, .output_count = 3};
        for (int i = 0; i < 4; i++) {
            c.inputs[i].type = type;
        }
        c.inputs[3].low = 0.01;
        c.inputs[3].high = 1;
        c.inputs[4].type = op_type(PEN_FLOAT32, 0);
        c.inputs[4].low = 0.001;
        c.inputs[4].high = 0.1;
        c.inputs[5].type = op_type(PEN_FLOAT32, 0);
        c.inputs[5].data = &steps[random_between(&random, 0, 2)];
        if (random_chance(&random, 50)) {
            c.input_count = 7;
            c.inputs[6].type = op_type(PEN_FLOAT32, 0);
        }
        c.attribute_count = 2;
        c.attributes[0] = pen_attribute_float("weight_decay", random_chance(&random, 50) ? .01 : 0);
        c.attributes[1] = pen_attribute_int("decoupled", random_chance(&random, 50));
        op_check_device(&c, seed, 3e-6);
    }
}

static void rmsprop_equals_reference(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 80; seed++) {
        random_case random = {seed, 0};
        const pen_tensor_type type = optimizer_type(&random);
        const bool has_momentum = random_chance(&random, 50), centered = random_chance(&random, 50);
        op_case c = {.op = "rmsprop_update", .input_count = 6, .attribute_count = 4};
        for (int i = 0; i < 5; i++) {
            c.inputs[i].type = type;
        }
        c.inputs[2].low = 1.1; // more than the square of the gradients' average
        c.inputs[2].high = 2;
        c.inputs[3].is_absent = !has_momentum;
        c.inputs[4].is_absent = !centered;
        c.inputs[5].type = op_type(PEN_FLOAT32, 0);
        c.inputs[5].low = 0.001;
        c.inputs[5].high = 0.1;
        if (random_chance(&random, 50)) {
            c.input_count = 7;
            c.inputs[6].type = op_type(PEN_FLOAT32, 0);
        }
        c.output_count = centered ? 4 : has_momentum ? 3 : 2;
        c.absent_outputs = has_momentum ? 0 : 1u << 2;
        c.attributes[0] = pen_attribute_float("weight_decay", random_chance(&random, 50) ? .01 : 0);
        const double momentum = seed % 4 == 0 ? 1e-50 : 0.9; // the former is 0 as a float
        c.attributes[1] = pen_attribute_float("momentum", has_momentum ? momentum : 0);
        c.attributes[2] = pen_attribute_int("centered", centered);
        c.attributes[3] = pen_attribute_float("alpha", 0.9);
        op_check_device(&c, seed, 1e-5);
    }
}

// Gradients of rows: some of the parameter's, some of them several times.
static void rows_equal_reference(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 80; seed++) {
        random_case random = {seed, 0};
        const int row_count = (int)random_between(&random, 1, seed % 10 == 0 ? 900 : 30);
        const int length = (int)random_between(&random, 1, 40);
        const bool is_adam = random_chance(&random, 50), has_velocity = random_chance(&random, 50);
        op_case c = {.op = is_adam ? "adam_update" : "sgd_update"};
        const uint32_t rows = is_adam ? 7 : 5;
        c.input_count = rows + 1;
        c.output_count = is_adam ? 3 : has_velocity ? 2 : 1;
        for (uint32_t i = 0; i < rows; i++) {
            const bool is_scalar = i >= (is_adam ? 4 : 3);
            c.inputs[i].type =
                is_scalar ? op_type(PEN_FLOAT32, 0) : op_type(PEN_FLOAT32, 2, row_count, length);
        }
        c.inputs[rows - 1].is_absent = random_chance(&random, 50); // the scale
        c.inputs[2].is_absent = !is_adam && !has_velocity;
        c.inputs[rows].type = random_type(&random, 0, 2, 8, 30);
        c.inputs[rows].type.element = random_chance(&random, 50) ? PEN_INT64 : PEN_INT32;
        c.inputs[rows].low = -row_count;
        c.inputs[rows].high = row_count;
        c.inputs[1].type.shape = c.inputs[rows].type.shape;
        c.inputs[1].type.shape.dims[c.inputs[1].type.shape.rank++] = length;
        static const float step = 3;
        if (is_adam) {
            c.inputs[5].data = &step;
            c.inputs[3].low = 0.01;
            c.inputs[3].high = 1;
        }
        c.attributes[0] = pen_attribute_float("weight_decay", random_chance(&random, 50) ? .01 : 0);
        c.attribute_count = 1;
        if (has_velocity && !is_adam) {
            c.attributes[c.attribute_count++] = pen_attribute_float("momentum", 0.9);
        }
        op_check_device(&c, seed, 3e-6);
    }
}

// Every optimizer, with gradients of elements or of rows, clipped or not. Scales are in [-1, 1]: of
// half of them nothing is applied.
static void every_optimizer_equals_reference(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 300; seed++) {
        random_case random = {seed, 0};
        const pen_op *op = pen_optimizer_op((pen_optimizer_kind)(seed % PEN_OPTIMIZER_COUNT));
        const pen_op_update *at = &op->update;
        const int row_count = (int)random_between(&random, 1, seed % 7 == 0 ? 900 : 30);
        const int length = (int)random_between(&random, 1, 40);
        const float step = (float)random_between(&random, 1, 20);
        const bool has_rows = random_chance(&random, 40);
        op_case c = {.op = op->name, .input_count = has_rows ? at->rows + 1 : at->scale + 1};
        const bool is_factored = strcmp(op->name, "adafactor_update") == 0; // rows and columns
        const bool has_one = strcmp(op->name, "rmsprop_update") == 0;
        c.output_count = has_one ? 2 : is_factored ? 3 : 1 + at->rate - at->state;
        for (uint32_t i = 0; i <= at->scale; i++) {
            c.inputs[i].type = i >= at->rate ? op_type(PEN_FLOAT32, 0)
                                             : op_type(PEN_FLOAT32, 2, row_count, length);
            if (i < at->state || i >= at->rate) continue;
            c.inputs[i].low = 0.01; // all but the first are means of squares
            c.inputs[i].high = 1;
            c.inputs[i].is_absent = i - at->state + 2 > c.output_count;
        }
        if (is_factored) {
            c.inputs[at->state].type.shape.dims[1] = c.inputs[at->state + 1].type.shape.dims[0] = 1;
        }
        if (at->step != 0) c.inputs[at->step].data = &step;
        c.inputs[at->rate].low = 0.001;
        c.inputs[at->rate].high = 0.1;
        c.inputs[at->scale].is_absent = random_chance(&random, 50);
        if (has_rows) {
            c.inputs[at->rows].type = random_type(&random, 0, 2, 8, 30);
            c.inputs[at->rows].type.element = random_chance(&random, 50) ? PEN_INT64 : PEN_INT32;
            c.inputs[at->rows].low = -row_count;
            c.inputs[at->rows].high = row_count;
            c.inputs[1].type.shape = c.inputs[at->rows].type.shape;
            c.inputs[1].type.shape.dims[c.inputs[1].type.shape.rank++] = length;
        }
        c.attribute_count = 3;
        c.attributes[0] = pen_attribute_float("weight_decay", random_chance(&random, 50) ? .01 : 0);
        c.attributes[1] = pen_attribute_float("clip_value", random_chance(&random, 50) ? 0.3 : 0);
        c.attributes[2] = pen_attribute_float("lr_scale", random_chance(&random, 50) ? 0.3 : 1);
        op_check_device(&c, seed, 1e-5);
    }
}

// Vectors, whose variance is not factored, and several matrices.
static void adafactor_equals_reference(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 60; seed++) {
        random_case random = {seed, 0};
        const bool is_vector = seed % 3 == 0;
        const float step = (float)random_between(&random, 1, 20);
        op_case c = {.op = "adafactor_update", .input_count = 8, .output_count = is_vector ? 4 : 3};
        const pen_tensor_type type =
            is_vector ? op_type(PEN_FLOAT32, 1, (int)random_between(&random, 1, 20000))
                      : op_type(PEN_FLOAT32, 4, 2, (int)random_between(&random, 1, 3),
                                (int)random_between(&random, 1, 60),
                                (int)random_between(&random, 1, seed % 5 == 0 ? 600 : 60));
        for (uint32_t i = 0; i < 5; i++) {
            c.inputs[i].type = type;
            c.inputs[i].is_absent = i > 1 && (i == 4) != is_vector;
            if (i > 1) c.inputs[i].low = 0.01, c.inputs[i].high = 1;
        }
        if (!is_vector) c.inputs[2].type.shape.dims[3] = c.inputs[3].type.shape.dims[2] = 1;
        c.absent_outputs = is_vector ? 3u << 1 : 0;
        for (uint32_t i = 5; i < 8; i++) {
            c.inputs[i].type = op_type(PEN_FLOAT32, 0);
        }
        c.inputs[5].low = 0.001;
        c.inputs[5].high = 0.9;
        c.inputs[6].data = &step;
        c.attribute_count = 2;
        c.attributes[0] = pen_attribute_float("weight_decay", random_chance(&random, 50) ? .01 : 0);
        c.attributes[1] = pen_attribute_float("clip_threshold", random_chance(&random, 50) ? 1 : 3);
        op_check_device(&c, seed, 1e-5);
    }
}

static void averages_equal_reference(void **state) {
    (void)state;
    static const float steps[] = {1, 2, 100};
    for (uint64_t seed = 0; seed < 40; seed++) {
        random_case random = {seed, 0};
        op_case c = {.op = "average_update", .input_count = 3, .output_count = 1};
        c.inputs[0].type = c.inputs[1].type = optimizer_type(&random);
        c.inputs[2].type = op_type(PEN_FLOAT32, 0);
        c.inputs[2].data = &steps[random_between(&random, 0, 2)];
        c.attribute_count = 2;
        c.attributes[0] = pen_attribute_float("decay", random_chance(&random, 50) ? 0.999 : 0.3);
        c.attributes[1] = pen_attribute_int("from", random_chance(&random, 50));
        op_check_device(&c, seed, 1e-6);
        static const float scales[] = {-1, 0.25};
        c.input_count = 4;
        c.inputs[3] = (op_case_input){.type = op_type(PEN_FLOAT32, 0), .data = &scales[seed % 2]};
        op_check_device(&c, seed, 1e-6);
    }
}

static void norms_equal_reference(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 40; seed++) {
        random_case random = {seed, 0};
        op_case c = {.op = "squared_norm", .input_count = 1};
        c.inputs[0].type = optimizer_type(&random);
        op_check_device(&c, seed, 1e-6);
    }
}

static void norms_of_rows_equal_reference(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 40; seed++) {
        random_case random = {seed, 0};
        const int64_t shape[2] = {random_between(&random, 1, 900),
                                  random_between(&random, 1, seed % 8 == 0 ? 9000 : 40)};
        op_case c = {.op = "squared_norm", .input_count = 2, .attribute_count = 1};
        c.attributes[0] = pen_attribute_ints("shape", 2, shape);
        c.inputs[1].type = random_type(&random, 0, 2, 8, 30);
        c.inputs[1].type.element = random_chance(&random, 50) ? PEN_INT64 : PEN_INT32;
        c.inputs[1].low = (double)-shape[0];
        c.inputs[1].high = (double)shape[0];
        c.inputs[0].type = (pen_tensor_type){PEN_FLOAT32, c.inputs[1].type.shape};
        c.inputs[0].type.shape.dims[c.inputs[0].type.shape.rank++] = shape[1];
        op_check_device(&c, seed, 1e-6);
    }
}

PEN_TEST_MAIN(cmocka_unit_test(sgd_equals_reference), cmocka_unit_test(adam_equals_reference),
              cmocka_unit_test(rmsprop_equals_reference), cmocka_unit_test(rows_equal_reference),
              cmocka_unit_test(every_optimizer_equals_reference),
              cmocka_unit_test(norms_equal_reference), cmocka_unit_test(averages_equal_reference),
              cmocka_unit_test(adafactor_equals_reference),
              cmocka_unit_test(norms_of_rows_equal_reference))
