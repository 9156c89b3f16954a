// What the ops of asynchronous lanes make, and what they refuse. Expected numbers are NumPy's, in
// float64, from the formulas of DC-ASGD. That versions follow each other as they should:
// tests/end_to_end/async_test.sh.

#include <math.h>

#include "tests/support/op_check.h"

#define LANES 3
#define COUNT 2

static const double parameter[COUNT] = {0.5, -1.5};
static const double start[COUNT] = {9, 9};
static const double kept[LANES * COUNT] = {0.25, -1, 0.125, -2, 1, 1};
static const double square[COUNT] = {0.04, 0.01};
static const double sums[LANES * COUNT] = {0.1, -0.2, 0.3, 0.05, -0.4, 0.6};
static const double more[LANES * COUNT] = {0.02, 0.04, -0.06, 0.08, 0.1, -0.12};

static op_case_input of(pen_tensor_type type, const void *data) {
    return (op_case_input){.type = type, .data = data};
}

// Version 1 of a step whose lanes went into the versions that `order` says.
static op_case gradient_of(const int64_t *order, double lambda, bool is_adaptive) {
    const pen_tensor_type one = op_type(PEN_FLOAT64, 1, COUNT);
    const pen_tensor_type rows = op_type(PEN_FLOAT64, 2, LANES, COUNT);
    op_case c = {
        .op = "version_gradient",
        .input_count = 7,
        .inputs = {of(op_type(PEN_INT64, 1, LANES + 1), order), of(one, parameter), of(one, start),
                   of(rows, kept), of(one, square), of(rows, sums), of(rows, more)},
        .output_count = is_adaptive ? 4 : 3,
        .attribute_count = 3,
        .attributes = {pen_attribute_int("version", 1), pen_attribute_float("lambda", lambda),
                       pen_attribute_int("adaptive", is_adaptive)}};
    c.inputs[4].is_absent = !is_adaptive;
    return c;
}

static void a_version_is_the_mean_of_its_lanes(void **state) {
    (void)state;
    const int64_t order[] = {1, 0, 1, 8};
    const op_case c = gradient_of(order, 0, false);
    op_check_values(&c, 0, (const double[]){-0.27, 0.48}, COUNT, 1e-15);
    op_check_values(&c, 1, (const double[]){1}, 1, 0);
    op_check_values(&c, 2, (const double[]){10}, 1, 0);
}

static void delay_is_compensated(void **state) {
    (void)state;
    const int64_t order[] = {1, 0, 1, 8};
    op_case c = gradient_of(order, 0.5, false);
    op_check_values(&c, 0, (const double[]){-0.3631500000000001, -0.8447999999999998}, COUNT,
                    1e-14);
    c = gradient_of(order, 0.5, true);
    op_check_values(&c, 0, (const double[]){-0.5835551189219135, -3.40425506165703}, COUNT, 1e-14);
    op_check_values(&c, 3, (const double[]){0.08275600000000001, 0.123649}, COUNT, 1e-14);
    // before the first step all lanes have what the step began with
    const int64_t first[] = {1, 0, 1, 0};
    c = gradient_of(first, 0.5, false);
    op_check_values(&c, 0, (const double[]){-2.2666500000000007, -5.5680000000000005}, COUNT,
                    1e-14);
}

// Without lanes: nothing to apply, and the mean of squares stays.
static void a_version_may_be_of_no_lane(void **state) {
    (void)state;
    const int64_t order[] = {0, 0, -1, 8};
    const op_case c = gradient_of(order, 0.5, true);
    op_check_values(&c, 0, (const double[]){0, 0}, COUNT, 0);
    op_check_values(&c, 1, (const double[]){-1}, 1, 0);
    op_check_values(&c, 3, square, COUNT, 0);
}

// The scale of such a version: an update leaves the parameter and its states as they are.
static void updates_leave_all_as_it_is(void **state) {
    (void)state;
    const double rate = 0.1, nothing = -1, step = 3;
    const pen_tensor_type one = op_type(PEN_FLOAT64, 1, COUNT), scalar = op_type(PEN_FLOAT64, 0);
    const op_case sgd = {.op = "sgd_update",
                         .input_count = 5,
                         .inputs = {of(one, parameter), of(one, start), of(one, square),
                                    of(scalar, &rate), of(scalar, &nothing)},
                         .output_count = 2,
                         .attribute_count = 1,
                         .attributes = {pen_attribute_float("momentum", 0.9)}};
    op_check_values(&sgd, 0, parameter, COUNT, 0);
    op_check_values(&sgd, 1, square, COUNT, 0);
    const op_case adam = {.op = "adam_update",
                          .input_count = 7,
                          .inputs = {of(one, parameter), of(one, start), of(one, square),
                                     of(one, kept), of(scalar, &rate), of(scalar, &step),
                                     of(scalar, &nothing)},
                          .output_count = 3};
    op_check_values(&adam, 0, parameter, COUNT, 0);
    op_check_values(&adam, 2, kept, COUNT, 0);
}

static void lanes_go_on_with_their_version(void **state) {
    (void)state;
    const int64_t order[] = {1, 0, -1, 8}; // of the last lane there was nothing in the step
    const pen_tensor_type one = op_type(PEN_FLOAT64, 1, COUNT);
    const double versions[3][COUNT] = {{1, 2}, {3, 4}, {5, 6}};
    op_case c = {.op = "lane_keep",
                 .input_count = 4,
                 .inputs = {of(op_type(PEN_INT64, 1, LANES + 1), order), of(one, versions[0]),
                            of(one, versions[1]), of(one, versions[2])}};
    op_check_values(&c, 0, (const double[]){3, 4, 1, 2, 5, 6}, LANES * COUNT, 0);
    c.input_count = 3;
    op_check_error(&c, PEN_INVALID_INPUT, "found 2 versions of 3 lanes, expected as many");
}

static void stacks_lie_behind_each_other(void **state) {
    (void)state;
    const int64_t bounds[] = {0, 1, 3};
    op_case c = {.op = "lane_stack",
                 .input_count = 2,
                 .inputs = {of(op_type(PEN_FLOAT64, 2, 1, COUNT), start),
                            of(op_type(PEN_FLOAT64, 2, 2, COUNT), sums)},
                 .attribute_count = 1,
                 .attributes = {pen_attribute_ints("bounds", 3, bounds)}};
    op_check_values(&c, 0, (const double[]){9, 9, 0.1, -0.2, 0.3, 0.05}, LANES * COUNT, 0);
    c.inputs[1].type = op_type(PEN_FLOAT64, 2, 3, COUNT);
    c.inputs[1].data = NULL;
    op_check_error(&c, PEN_INVALID_INPUT,
                   "the sum of lanes is float64[3,2], expected float64[2,2]");
    const int64_t far[] = {0, INT64_MIN, 3};
    c.attributes[0] = pen_attribute_ints("bounds", 3, far);
    op_check_error(&c, PEN_INVALID_INPUT, "lanes, expected 1 to 16");
    c.attributes[0] = pen_attribute_ints("bounds", 2, bounds);
    op_check_error(&c, PEN_INVALID_INPUT, "found 2 bounds of lanes for sums of 2 replicas");
}

static void what_does_not_fit_is_refused(void **state) {
    (void)state;
    const int64_t order[] = {1, 0, 1, 8};
    op_case c = gradient_of(order, 0.5, false);
    c.input_count = 5;
    op_check_error(&c, PEN_INVALID_INPUT, "there are no sums of lanes");
    c = gradient_of(order, 0.5, false);
    c.attributes[2] = pen_attribute_int("adaptive", 1);
    op_check_error(&c, PEN_INVALID_INPUT, "the mean of squares is needed");
    c = gradient_of(order, 0.5, false);
    c.attributes[0] = pen_attribute_int("version", INT64_MAX);
    op_check_error(&c, PEN_INVALID_INPUT, "of 3 lanes, expected one below");
    c = gradient_of(order, 0.5, false);
    c.inputs[3].type = op_type(PEN_FLOAT64, 2, 2, COUNT);
    c.inputs[3].data = NULL;
    op_check_error(&c, PEN_INVALID_INPUT,
                   "the parameter of the lanes is float64[2,2], expected float64[3,2]");
    c = gradient_of(order, 0.5, false);
    c.inputs[0].type = op_type(PEN_INT64, 1, 18);
    c.inputs[0].data = NULL;
    op_check_error(&c, PEN_INVALID_INPUT, "found 17 lanes, expected 1 to 16");
    op_case draw = {
        .op = "lane_order",
        .input_count = 1,
        .inputs = {{.type = op_type(PEN_INT64, 1, 6 + 2 * LANES)}},
        .output_count = 2,
        .attribute_count = 2,
        .attributes = {pen_attribute_int("lanes", LANES), pen_attribute_int("staleness", -1)}};
    op_check_error(&draw, PEN_INVALID_INPUT, "found a staleness of -1, expected 0 to 65535");
    draw.attributes[1] = pen_attribute_int("staleness", 2);
    draw.inputs[0].type = op_type(PEN_INT64, 1, 7);
    op_check_error(&draw, PEN_INVALID_INPUT, "the arrivals is int64[7], expected int64[12]");
    op_case read = {.op = "lane_parameter",
                    .input_count = 3,
                    .inputs = {{.type = op_type(PEN_FLOAT32, 1, COUNT)},
                               {.type = op_type(PEN_FLOAT32, 2, LANES, COUNT)},
                               {.type = op_type(PEN_INT64, 1, 7)}}};
    op_check_error(&read, PEN_INVALID_INPUT, "input 2 is int64[7], expected a vector of int64");
}

PEN_TEST_MAIN(cmocka_unit_test(a_version_is_the_mean_of_its_lanes),
              cmocka_unit_test(delay_is_compensated), cmocka_unit_test(a_version_may_be_of_no_lane),
              cmocka_unit_test(updates_leave_all_as_it_is),
              cmocka_unit_test(lanes_go_on_with_their_version),
              cmocka_unit_test(stacks_lie_behind_each_other),
              cmocka_unit_test(what_does_not_fit_is_refused))
