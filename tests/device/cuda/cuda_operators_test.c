// Operators on an emulated GPU against the reference kernels: those that have kernels there, and
// some that run on the host inside the device. Threads of kernels run in every order.
#include <math.h>

#include "tests/support/cuda_check.h"
#include "tests/support/device_check.h"
#include "tests/support/product_case.h"
#include "tests/support/random_case.h"

static void products(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < PRODUCT_CASES; seed++) {
        const op_case c = product_case(seed);
        cuda_check(&c, seed, 1e-5);
    }
}

static void elements(void **state) {
    (void)state;
    static const char *const pairs[] = {"add", "sub", "mul", "div"};
    for (uint64_t seed = 0; seed < 12; seed++) {
        op_case c = {.op = pairs[seed % 4], .input_count = 2};
        c.inputs[0].type = op_type(PEN_FLOAT32, 3, 4, 7, 50);
        c.inputs[1].type = seed < 4   ? op_type(PEN_FLOAT32, 3, 4, 7, 50)
                           : seed < 8 ? op_type(PEN_FLOAT32, 1, 50)
                                      : op_type(PEN_FLOAT32, 3, 1, 7, 1);
        if (seed % 4 == 3) c.inputs[1].low = 0.5, c.inputs[1].high = 2;
        cuda_check(&c, seed, 1e-6);
    }
    op_case relu = {.op = "relu", .input_count = 1};
    relu.inputs[0].type = op_type(PEN_FLOAT32, 2, 30, 77);
    cuda_check(&relu, 1, 0);
    op_case backward = {.op = "relu_backward", .input_count = 2};
    backward.inputs[0].type = backward.inputs[1].type = op_type(PEN_FLOAT32, 2, 30, 77);
    cuda_check(&backward, 2, 0);
}

static void reductions(void **state) {
    (void)state;
    static const char *const ops[] = {"reduce_sum", "reduce_mean", "reduce_max", "reduce_min"};
    static const int64_t axes[4][2] = {{0, 0}, {1, 1}, {2, 2}, {0, 1}};
    for (uint64_t seed = 0; seed < 16; seed++) {
        const uint32_t count = seed % 4 == 3 ? 2 : 1;
        op_case c = {.op = ops[seed / 4], .input_count = 2, .attribute_count = 1};
        c.attributes[0] = pen_attribute_int("keepdims", seed % 3 == 0);
        c.inputs[0].type = op_type(PEN_FLOAT32, 3, 4, 70, 5);
        c.inputs[1] = (op_case_input){
            .type = op_type(PEN_INT64, 1, (int)count), .data = axes[seed % 4], .is_constant = true};
        cuda_check(&c, seed, 1e-5);
    }
}

// Lines of a thread, of a warp and of a block, whose sums wrap.
static void reductions_of_integers(void **state) {
    (void)state;
    static const char *const ops[] = {"reduce_sum", "reduce_max", "reduce_min", "reduce_prod"};
    static const int64_t axis = 1;
    static const int lengths[] = {5, 90, 1100};
    for (uint64_t seed = 0; seed < 24; seed++) {
        op_case c = {.op = ops[seed / 2 % 4], .input_count = 2};
        const double most = seed % 2 ? 2e9 : 9e18;
        c.inputs[0] = (op_case_input){
            .type = op_type(seed % 2 ? PEN_INT32 : PEN_INT64, 3, 2, lengths[seed / 8], 3),
            .low = -most / 3,
            .high = most};
        c.inputs[1] =
            (op_case_input){.type = op_type(PEN_INT64, 1, 1), .data = &axis, .is_constant = true};
        cuda_check(&c, seed, 0);
    }
}

// Dimensions that do not lie beside each other, and sums of what elements become.
static void other_reductions(void **state) {
    (void)state;
    static const char *const ops[] = {"reduce_l1", "reduce_l2", "reduce_sum_square",
                                      "reduce_log_sum", "reduce_log_sum_exp"};
    static const int64_t axes[3] = {0, 2, 4}, axis[3] = {1, 2, 0};
    static const int64_t whole[] = {3, 4, 5, 2, 6};
    for (uint64_t seed = 0; seed < 4; seed++) {
        op_case c = {.op = seed % 2 ? "reduce_mean" : "reduce_sum", .input_count = 2};
        c.attributes[c.attribute_count++] = pen_attribute_int("keepdims", seed > 1);
        c.inputs[0].type = op_type(PEN_FLOAT32, 5, 3, 4, 5, 2, 6);
        c.inputs[1] =
            (op_case_input){.type = op_type(PEN_INT64, 1, 3), .data = axes, .is_constant = true};
        cuda_check(&c, seed, 1e-5);
        op_case back = {.op = "reduce_sum_backward", .input_count = 1, .attribute_count = 2};
        back.attributes[0] = pen_attribute_ints("shape", 5, whole);
        back.attributes[1] = pen_attribute_float("scale", 0.25);
        back.inputs[0].type = op_type(PEN_FLOAT32, 5, 1, 4, 1, 2, 1);
        cuda_check(&back, seed, 1e-6);
    }
    for (uint64_t seed = 0; seed < 15; seed++) {
        op_case c = {.op = ops[seed % 5], .input_count = 2, .attribute_count = 1};
        c.attributes[0] = pen_attribute_int("keepdims", 1);
        c.inputs[0] = (op_case_input){
            .type = op_type(PEN_FLOAT32, 3, 4, 70, 5), .low = seed % 5 == 3 ? 0.1 : -2, .high = 2};
        c.inputs[1] = (op_case_input){
            .type = op_type(PEN_INT64, 1, 1), .data = &axis[seed / 5], .is_constant = true};
        cuda_check(&c, seed, 1e-5);
        if (seed % 5 == 3) continue; // its gradient is that of a sum and of a logarithm
        char backward[40];
        snprintf(backward, sizeof backward, "%s_backward", ops[seed % 5]);
        op_case b = {.op = backward, .input_count = seed % 5 == 1 || seed % 5 == 4 ? 3 : 2};
        b.inputs[1] = c.inputs[0];
        b.inputs[0].type = c.inputs[0].type;
        b.inputs[0].type.shape.dims[axis[seed / 5]] = 1;
        b.inputs[2] = (op_case_input){.type = b.inputs[0].type, .low = 3, .high = 5};
        cuda_check(&b, seed, 1e-6);
    }
}

// Of lines of a thread, of several, of a warp and of a block, some of which have a zero, or two;
// and one of 400 numbers, whose product is beyond float32 on the way.
static void products_over_dimensions(void **state) {
    (void)state;
    static const int64_t axes[2] = {0, 1};
    static const int lengths[] = {5, 40, 400, 1500};
    static float x[2][2 * 1500 * 3];
    for (uint32_t i = 0; i < 2 * 1500 * 3; i++) {
        x[0][i] = (i % 7 < 3 ? -1.0f : 1.0f) * (1.0f + (float)(i * i % 11) / 8192);
        x[1][i] = i % 1200 < 600 ? 1.5f : 1 / 1.5f;
    }
    x[0][7] = x[0][1] = x[0][4] = 0.0f;
    for (uint64_t seed = 0; seed < 12; seed++) {
        const int length = lengths[seed % 4];
        const bool is_row = seed / 4 == 1;
        op_case c = {.op = "reduce_prod", .input_count = 2, .attribute_count = 1};
        c.attributes[0] = pen_attribute_int("keepdims", 1);
        c.inputs[0] = (op_case_input){.type = is_row ? op_type(PEN_FLOAT32, 2, 6, length)
                                                     : op_type(PEN_FLOAT32, 3, 2, length, 3),
                                      .data = x[seed / 8]};
        c.inputs[1] = (op_case_input){
            .type = op_type(PEN_INT64, 1, 1), .data = &axes[1], .is_constant = true};
        cuda_check(&c, seed, 1e-6);
        op_case b = {.op = "reduce_prod_backward", .input_count = 2};
        b.inputs[0].type =
            is_row ? op_type(PEN_FLOAT32, 2, 6, 1) : op_type(PEN_FLOAT32, 3, 2, 1, 3);
        b.inputs[1] = c.inputs[0];
        cuda_check(&b, seed, 1e-6);
    }
    op_case c = {.op = "reduce_prod", .input_count = 2};
    c.inputs[0].type = op_type(PEN_FLOAT32, 3, 0, 4, 2);
    c.inputs[1] =
        (op_case_input){.type = op_type(PEN_INT64, 1, 1), .data = &axes[0], .is_constant = true};
    cuda_check(&c, 0, 1e-6);
}

// Numbers that are large and small by turns, which a team's lanes take one kind of, and their
// gradients: products are 1, and infinite in double on the way. Ends: lines of 300 with what is
// infinite, not a number, below the least normal number, or 0.
static void products_of_large_and_small(void **state) {
    (void)state;
    static const int64_t axis = 1;
    static const int lengths[] = {64, 128, 600, 300};
    static const float sizes[] = {1e10f, 1e5f, 1e20f, 1e3f};
    static const float ends[] = {INFINITY, NAN, 1e-42f, 0};
    static float x[4][4 * 600];
    for (uint32_t k = 0; k < 4; k++) {
        const uint32_t length = (uint32_t)lengths[k], count = 4 * length;
        for (uint32_t i = 0; i < count; i++)
            x[k][i] = (i / length % 2 ? -1.0f : 1.0f) * (i % 2 ? sizes[k] : 1 / sizes[k]);
        for (uint32_t i = 0; i < 4 && k == 3; i++)
            x[k][i * length + 70] = ends[i];
    }
    for (uint32_t k = 0; k < 4; k++) {
        op_case c = {.op = "reduce_prod", .input_count = 2};
        c.inputs[0] = (op_case_input){.type = op_type(PEN_FLOAT32, 2, 4, lengths[k]), .data = x[k]};
        c.inputs[1] =
            (op_case_input){.type = op_type(PEN_INT64, 1, 1), .data = &axis, .is_constant = true};
        cuda_check(&c, k, 1e-6);
        op_case b = {.op = "reduce_prod_backward", .input_count = 2};
        b.inputs[0].type = op_type(PEN_FLOAT32, 2, 4, 1);
        b.inputs[1] = c.inputs[0];
        cuda_check(&b, k, 1e-6);
    }
}

// Where several are the largest they share the gradient.
static void gradients_of_reductions(void **state) {
    (void)state;
    static const int64_t shape[] = {5, 130, 6};
    for (uint64_t seed = 0; seed < 4; seed++) {
        op_case c = {.op = "reduce_sum_backward", .input_count = 1, .attribute_count = 2};
        c.attributes[0] = pen_attribute_ints("shape", 3, shape);
        c.attributes[1] = pen_attribute_float("scale", 0.25);
        c.inputs[0].type = seed == 0   ? op_type(PEN_FLOAT32, 3, 5, 1, 6)
                           : seed == 1 ? op_type(PEN_FLOAT32, 3, 1, 1, 6)
                           : seed == 2 ? op_type(PEN_FLOAT32, 0)
                                       : op_type(PEN_FLOAT32, 3, 5, 130, 6);
        cuda_check(&c, seed, 1e-6);
    }
    // columns of 300 numbers of which some are the largest, and the least, 2 and 0
    static float x[3 * 300 * 2], found[2][3 * 2];
    for (uint32_t i = 0; i < 3 * 300 * 2; i++)
        x[i] = (float)(i * i % 7 % 3);
    for (uint32_t i = 0; i < 3 * 2; i++)
        found[0][i] = 2;
    for (uint64_t seed = 0; seed < 2; seed++) {
        op_case c = {.op = seed == 0 ? "reduce_max_backward" : "reduce_min_backward"};
        c.input_count = 3;
        c.inputs[0].type = op_type(PEN_FLOAT32, 3, 3, 1, 2);
        c.inputs[1] = (op_case_input){.type = op_type(PEN_FLOAT32, 3, 3, 300, 2), .data = x};
        c.inputs[2] = (op_case_input){.type = c.inputs[0].type, .data = found[seed]};
        cuda_check(&c, seed, 1e-6);
    }
}

static void casts(void **state) {
    (void)state;
    static const pen_element_type types[] = {PEN_FLOAT32, PEN_FLOAT64, PEN_INT32, PEN_INT64,
                                             PEN_BOOL};
    for (uint64_t seed = 0; seed < 25; seed++) {
        const pen_element_type from = types[seed % 5];
        op_case c = {.op = "cast", .input_count = 1, .attribute_count = 1};
        c.attributes[0] = pen_attribute_text("to", pen_element_name(types[seed / 5]));
        c.inputs[0].type = op_type(from, 2, 9, 71);
        c.inputs[0].low = from == PEN_BOOL ? 0 : -3;
        c.inputs[0].high = from == PEN_BOOL ? 2 : 3;
        cuda_check(&c, seed, 1e-6);
    }
    op_case small = {.op = "cast", .input_count = 1, .attribute_count = 1};
    small.attributes[0] = pen_attribute_text("to", "float16");
    small.inputs[0].type = op_type(PEN_FLOAT32, 1, 5);
    cuda_check_place(&small, false);
}

// Among equal scores the first counts.
static void accuracies(void **state) {
    (void)state;
    static float scores[2 * 300 * 5];
    for (uint32_t i = 0; i < 2 * 300 * 5; i++)
        scores[i] = i == 77 ? NAN : (float)(i * i % 11);
    for (uint64_t seed = 0; seed < 6; seed++) {
        op_case c = {
            .op = "accuracy_count", .input_count = 2, .attribute_count = (uint32_t)seed % 3};
        c.attributes[0] = pen_attribute_int("top", 2 + (int)seed);
        c.attributes[1] = pen_attribute_int("ignore_index", 1);
        const bool is_flat = seed < 4;
        c.inputs[0] = (op_case_input){.type = is_flat ? op_type(PEN_FLOAT32, 2, 40, 75)
                                                      : op_type(PEN_FLOAT32, 3, 2, 300, 5),
                                      .data = scores};
        c.inputs[1].type = is_flat ? op_type(seed < 2 ? PEN_INT64 : PEN_INT32, 1, 40)
                                   : op_type(PEN_INT64, 2, 2, 5);
        c.inputs[1].high = is_flat ? 75 : 300;
        cuda_check(&c, seed, 0);
    }
}

static void scales_of_clipping(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 6; seed++) {
        op_case c = {.op = "clip_scale", .input_count = 1 + 3 * (uint32_t)seed};
        c.attribute_count = 1;
        c.attributes[0] = pen_attribute_float("limit", seed == 3 ? 100 : 0.5);
        for (uint32_t i = 0; i < c.input_count; i++) {
            const bool is_wide = seed % 2 == 1 && i % 3 == 1;
            c.inputs[i].type = op_type(is_wide ? PEN_FLOAT64 : PEN_FLOAT32, 0);
            c.inputs[i].high = 2;
        }
        cuda_check(&c, seed, 1e-6);
        c.attributes[c.attribute_count++] = pen_attribute_int("skips", 1);
        cuda_check(&c, seed, 1e-6);
        static const float lost[] = {(float)NAN, (float)INFINITY};
        c.inputs[c.input_count - 1] =
            (op_case_input){.type = op_type(PEN_FLOAT32, 0), .data = &lost[seed % 2]};
        cuda_check(&c, seed, 1e-6);
    }
}

static op_case loss_case(bool is_backward, const char *reduction, const pen_tensor_type *scores,
                         const int64_t *labels) {
    const uint32_t first = is_backward;
    op_case c = {.op = is_backward ? "softmax_cross_entropy_loss_backward"
                                   : "softmax_cross_entropy_loss",
                 .input_count = first + 2,
                 .output_count = is_backward ? 1 : 2,
                 .attribute_count = 1};
    pen_tensor_type targets = {PEN_INT64, {.rank = scores->shape.rank - 1}};
    targets.shape.dims[0] = scores->shape.dims[0];
    for (uint32_t d = 1; d < targets.shape.rank; d++)
        targets.shape.dims[d] = scores->shape.dims[d + 1];
    c.attributes[0] = pen_attribute_text("reduction", reduction);
    const bool each = strcmp(reduction, "none") == 0;
    c.inputs[0].type = each ? targets : op_type(PEN_FLOAT32, 0);
    c.inputs[0].type.element = PEN_FLOAT32;
    c.inputs[first] = (op_case_input){.type = *scores, .low = -20, .high = 20};
    c.inputs[first + 1] =
        (op_case_input){.type = targets, .high = (double)scores->shape.dims[1], .data = labels};
    return c;
}

static void losses(void **state) {
    (void)state;
    static const char *const reductions[] = {"mean", "sum", "none"};
    const pen_tensor_type flat = op_type(PEN_FLOAT32, 2, 33, 10);
    const pen_tensor_type wide = op_type(PEN_FLOAT32, 3, 2, 700, 2);
    for (uint64_t seed = 0; seed < 12; seed++) {
        const op_case c = loss_case(seed % 2, reductions[seed % 3], seed < 6 ? &flat : &wide, NULL);
        cuda_check(&c, seed, 1e-5);
    }
}

// As the device is used: what was wrong is told when work is awaited, and once.
static void labels_that_are_no_class_are_told(void **state) {
    (void)state;
    static const int64_t labels[4] = {1, 0, 3, -1};
    const pen_tensor_type scores = op_type(PEN_FLOAT32, 2, 4, 3);
    const op_case c = loss_case(false, "mean", &scores, labels);
    static const int64_t right[4] = {1, 0, 1, 0};
    cuda_check_refuses(&c, labels, right, sizeof labels,
                       "the label of target 2 is not one of 3 classes, 0 to 2");
}

static void updates(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 12; seed++) {
        const bool has_velocity = seed % 2;
        op_case c = {.op = "sgd_update", .input_count = 5, .attribute_count = 5};
        c.output_count = has_velocity ? 2 : 1;
        c.attributes[0] = pen_attribute_float("momentum", has_velocity ? 0.9 : 0);
        c.attributes[1] = pen_attribute_int("nesterov", seed % 4 == 3);
        c.attributes[2] = pen_attribute_float("weight_decay", seed % 3 == 0 ? 0.1 : 0);
        c.attributes[3] = pen_attribute_float("clip_value", seed % 5 == 0 ? 0.25 : 0);
        c.attributes[4] = pen_attribute_float("lr_scale", 0.3);
        c.inputs[0].type = c.inputs[1].type = c.inputs[2].type = op_type(PEN_FLOAT32, 2, 9, 91);
        c.inputs[2].is_absent = !has_velocity;
        c.inputs[3].type = op_type(PEN_FLOAT32, 0);
        c.inputs[4].type = op_type(seed % 2 ? PEN_FLOAT64 : PEN_FLOAT32, 0);
        c.inputs[4].is_absent = seed % 3 == 1;
        cuda_check(&c, seed, 1e-6);
    }
}

// Without a kernel on the GPU the host's runs, in place and adding, too.
static void what_has_no_kernel_runs_on_the_host(void **state) {
    (void)state;
    static const char *const maps[] = {"exp", "tan", "acosh"};
    for (uint64_t seed = 0; seed < 3; seed++) {
        op_case c = {.op = maps[seed], .input_count = 1};
        c.inputs[0].type = op_type(PEN_FLOAT64, 2, 300, 700); // more than a piece of staging
        c.inputs[0].low = seed < 2 ? 0.1 : 1.1, c.inputs[0].high = 2;
        cuda_check_place(&c, false);
        op_check_device(&c, seed, 1e-5);
    }
    op_case c = {.op = "reverse_sequence", .input_count = 2};
    c.inputs[0] = (op_case_input){.type = op_type(PEN_INT64, 2, 50, 7), .high = 99};
    c.inputs[1] = (op_case_input){.type = op_type(PEN_INT64, 1, 7), .high = 50};
    cuda_check_place(&c, false);
    op_check_device(&c, 5, 0);
}

PEN_TEST_MAIN(cmocka_unit_test(products), cmocka_unit_test(elements), cmocka_unit_test(reductions),
              cmocka_unit_test(gradients_of_reductions), cmocka_unit_test(other_reductions),
              cmocka_unit_test(reductions_of_integers), cmocka_unit_test(products_over_dimensions),
              cmocka_unit_test(products_of_large_and_small), cmocka_unit_test(casts),
              cmocka_unit_test(accuracies), cmocka_unit_test(scales_of_clipping),
              cmocka_unit_test(losses), cmocka_unit_test(labels_that_are_no_class_are_told),
              cmocka_unit_test(updates), cmocka_unit_test(what_has_no_kernel_runs_on_the_host))
