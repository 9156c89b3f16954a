#include "tests/support/dice.h"

static op_case pool_case(const char *op, pen_tensor_type x, const void *data) {
    return (op_case){.op = op, .input_count = 1, .inputs = {{.type = x, .data = data}}};
}

static void give(op_case *c, pen_attribute_given attribute) {
    c->attributes[c->attribute_count++] = attribute;
}

#define GIVE_INTS(c, name, ...)                                                                    \
    give((c), pen_attribute_ints((name), sizeof((const int64_t[]){__VA_ARGS__}) / 8,               \
                                 (const int64_t[]){__VA_ARGS__}))

static const double grid[] = {1, 9, 3, 4, 5, 6, 8, 7, 2};

static void max_pool_takes_the_largest(void **state) {
    (void)state;
    op_case c = pool_case("max_pool", op_type(PEN_FLOAT64, 4, 1, 1, 3, 3), grid);
    GIVE_INTS(&c, "kernel_shape", 2, 2);
    c.output_count = 2;
    op_check_values(&c, 0, (const double[]){9, 9, 8, 7}, 4, 0);
    op_check_values(&c, 1, (const double[]){1, 1, 6, 7}, 4, 0);
    GIVE_INTS(&c, "pads", 1, 1, 0, 0);
    op_check_values(&c, 0, (const double[]){1, 9, 9, 4, 9, 9, 8, 8, 7}, 9, 0);
}

// Indices count the whole of x, samples and channels too.
static void max_pool_indices_are_global(void **state) {
    (void)state;
    const double x[] = {1, 2, 4, 3, 5, 5, 8, 7};
    op_case c = pool_case("max_pool", op_type(PEN_FLOAT64, 3, 2, 2, 2), x);
    GIVE_INTS(&c, "kernel_shape", 2);
    c.output_count = 2;
    op_check_values(&c, 1, (const double[]){1, 2, 4, 6}, 4, 0);
}

static void max_pool_of_bytes(void **state) {
    (void)state;
    const int8_t x[] = {-100, -128, 3, -7};
    op_case c = pool_case("max_pool", op_type(PEN_INT8, 3, 1, 1, 4), x);
    GIVE_INTS(&c, "kernel_shape", 2);
    GIVE_INTS(&c, "strides", 2);
    op_check_values(&c, 0, (const double[]){-100, 3}, 2, 0);
}

static void average_pool_divides_by_what_is_there(void **state) {
    (void)state;
    const double x[] = {2, 4, 6, 8, 10};
    op_case c = pool_case("average_pool", op_type(PEN_FLOAT64, 3, 1, 1, 5), x);
    GIVE_INTS(&c, "kernel_shape", 3);
    GIVE_INTS(&c, "strides", 3);
    GIVE_INTS(&c, "pads", 1, 1);
    op_check_values(&c, 0, (const double[]){3, 8}, 2, 0);
    give(&c, pen_attribute_int("count_include_pad", 1));
    op_check_values(&c, 0, (const double[]){2, 8}, 2, 0);
}

// The last window reaches behind the pad: what lies there counts in no case.
static void ceil_mode_rounds_up(void **state) {
    (void)state;
    const double x[] = {2, 4, 6, 8};
    op_case c = pool_case("average_pool", op_type(PEN_FLOAT64, 3, 1, 1, 4), x);
    GIVE_INTS(&c, "kernel_shape", 3);
    GIVE_INTS(&c, "strides", 2);
    op_check_values(&c, 0, (const double[]){4}, 1, 0);
    give(&c, pen_attribute_int("ceil_mode", 1));
    op_check_values(&c, 0, (const double[]){4, 7}, 2, 0);
    give(&c, pen_attribute_int("count_include_pad", 1));
    op_check_values(&c, 0, (const double[]){4, 7}, 2, 0);
    // a second window would begin behind the input and its front pad
    op_case single = pool_case("max_pool", op_type(PEN_FLOAT64, 3, 1, 1, 3), x);
    GIVE_INTS(&single, "kernel_shape", 1);
    GIVE_INTS(&single, "strides", 4);
    give(&single, pen_attribute_int("ceil_mode", 1));
    op_check_values(&single, 0, (const double[]){2}, 1, 0);
}

static void pools_of_whole_channels(void **state) {
    (void)state;
    op_case c = pool_case("global_average_pool", op_type(PEN_FLOAT64, 4, 1, 1, 3, 3), grid);
    op_check_values(&c, 0, (const double[]){5}, 1, 1e-15);
    c.op = "global_max_pool";
    op_check_values(&c, 0, (const double[]){9}, 1, 0);
    const double x[] = {1, 2, 3, 4, 8, 6};
    c = pool_case("global_average_pool", op_type(PEN_FLOAT64, 3, 1, 2, 3), x);
    op_check_values(&c, 0, (const double[]){2, 6}, 2, 1e-15);
}

static void check_shape(const op_case *c, pen_tensor_type expected) {
    op_built built;
    char found[PEN_SHAPE_TEXT_BYTES], wanted[PEN_SHAPE_TEXT_BYTES];
    CHECK_OK(op_build(c, &built));
    assert_string_equal(
        pen_tensor_type_format(pen_value_type(built.graph, built.outputs[0]), found),
        pen_tensor_type_format(&expected, wanted));
    op_built_free(&built);
}

static void pool_shapes(void **state) {
    (void)state;
    op_case c = pool_case("max_pool", op_type(PEN_FLOAT32, 4, 8, 64, 112, 112), NULL);
    GIVE_INTS(&c, "kernel_shape", 3, 3);
    GIVE_INTS(&c, "strides", 2, 2);
    GIVE_INTS(&c, "pads", 1, 1, 1, 1);
    check_shape(&c, op_type(PEN_FLOAT32, 4, 8, 64, 56, 56));
    c.attributes[2] = pen_attribute_int("ceil_mode", 1);
    check_shape(&c, op_type(PEN_FLOAT32, 4, 8, 64, 56, 56));
    c.attributes[2] = pen_attribute_text("auto_pad", "VALID");
    check_shape(&c, op_type(PEN_FLOAT32, 4, 8, 64, 55, 55));
    c.attributes[2] = pen_attribute_text("auto_pad", "SAME_UPPER");
    check_shape(&c, op_type(PEN_FLOAT32, 4, 8, 64, 56, 56));
    c = pool_case("global_average_pool", op_type(PEN_FLOAT32, 5, 2, 3, 4, 5, 6), NULL);
    check_shape(&c, op_type(PEN_FLOAT32, 5, 2, 3, 1, 1, 1));
}

static void pools_refuse(void **state) {
    (void)state;
    op_case c = pool_case("max_pool", op_type(PEN_FLOAT32, 4, 1, 1, 3, 3), NULL);
    op_check_error(&c, PEN_INVALID_INPUT, "kernel_shape");
    GIVE_INTS(&c, "kernel_shape", 2, 2);
    give(&c, pen_attribute_int("storage_order", 1));
    op_check_error(&c, PEN_UNSUPPORTED, "max_pool 'subject': storage_order is not 0");
    c.attributes[1] = pen_attribute_ints("pads", 4, (const int64_t[]){0, 2, 0, 0});
    op_check_error(&c, PEN_INVALID_INPUT, "a pad of 2 is not below the window's extent of 2");
    c.attributes[1] = pen_attribute_ints("kernel_shape", 2, (const int64_t[]){4, 1});
    c.attributes[0] = c.attributes[1];
    c.attribute_count = 1;
    op_check_error(&c, PEN_INVALID_INPUT,
                   "a window of 4 does not fit the input's 3 with pads 0 and 0");
    c.inputs[0].type.element = PEN_INT32;
    op_check_error(&c, PEN_INVALID_INPUT, "input 0 ('input_0') is int32");
    c = pool_case("global_max_pool", op_type(PEN_FLOAT32, 1, 3), NULL);
    op_check_error(&c, PEN_INVALID_INPUT, "the input is [3]; expected a batch, channels");
    c = pool_case("average_pool", op_type(PEN_FLOAT32, 2, 3, 3), NULL);
    GIVE_INTS(&c, "kernel_shape", 2);
    op_check_error(&c, PEN_INVALID_INPUT, "1 to 3 spatial dimensions");
}

static void flops_are_counted(void **state) {
    (void)state;
    op_case c = pool_case("max_pool", op_type(PEN_FLOAT32, 4, 2, 3, 4, 4), NULL);
    GIVE_INTS(&c, "kernel_shape", 2, 2);
    GIVE_INTS(&c, "strides", 2, 2);
    op_built built;
    CHECK_OK(op_build(&c, &built));
    assert_int_equal(pen_node_flops(built.graph, built.node), 2 * 3 * 4 * 4);
    op_built_free(&built);
}

// Room for the attribute lists of one random case.
typedef struct random_lists {
    int64_t kernel[3], strides[3], dilations[3], pads[6];
} random_lists;

static op_case random_pool(dice *d, random_lists *lists) {
    const uint32_t spatial = (uint32_t)dice_between(d, 1, 3);
    const bool is_max = dice_between(d, 0, 1) == 0;
    op_case c = pool_case(is_max ? "max_pool" : "average_pool",
                          (pen_tensor_type){PEN_FLOAT64, {spatial + 2, {0}}}, NULL);
    c.inputs[0].type.shape.dims[0] = dice_between(d, 1, 2);
    c.inputs[0].type.shape.dims[1] = dice_between(d, 1, 3);
    for (uint32_t i = 0; i < spatial; i++) {
        c.inputs[0].type.shape.dims[2 + i] = dice_between(d, 5, spatial == 3 ? 5 : 8);
        lists->kernel[i] = dice_between(d, 1, 3);
        lists->strides[i] = dice_between(d, 1, 3);
        lists->dilations[i] = dice_between(d, 1, 2);
        lists->pads[i] = dice_between(d, 0, lists->kernel[i] - 1);
        lists->pads[spatial + i] = dice_between(d, 0, lists->kernel[i] - 1);
    }
    give(&c, pen_attribute_ints("kernel_shape", spatial, lists->kernel));
    give(&c, pen_attribute_int("ceil_mode", dice_between(d, 0, 1)));
    if (dice_between(d, 0, 3) != 0)
        give(&c, pen_attribute_ints("strides", spatial, lists->strides));
    if (dice_between(d, 0, 2) == 0) {
        give(&c, pen_attribute_ints("dilations", spatial, lists->dilations));
    }
    const char *const modes[] = {"NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"};
    const int64_t mode = dice_between(d, 0, 7);
    if (mode < 4) give(&c, pen_attribute_text("auto_pad", modes[mode]));
    if (mode >= 4) give(&c, pen_attribute_ints("pads", 2 * spatial, lists->pads));
    if (!is_max) give(&c, pen_attribute_int("count_include_pad", dice_between(d, 0, 1)));
    if (is_max) c.output_count = (uint32_t)dice_between(d, 1, 2);
    return c;
}

static void gradients_match_differences(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 200; seed++) {
        dice d = {.seed = seed};
        random_lists lists;
        const op_case c = random_pool(&d, &lists);
        op_check_gradient(&c, seed);
    }
}

static void gradients_of_whole_channels_match_differences(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 40; seed++) {
        dice d = {.seed = seed};
        op_case c = {.op = seed % 2 == 0 ? "global_average_pool" : "global_max_pool",
                     .input_count = 1};
        c.inputs[0] = dice_tensor(&d, (uint32_t)dice_between(&d, 2, 5), 4);
        op_check_gradient(&c, seed);
    }
}

PEN_TEST_MAIN(cmocka_unit_test(max_pool_takes_the_largest),
              cmocka_unit_test(max_pool_indices_are_global), cmocka_unit_test(max_pool_of_bytes),
              cmocka_unit_test(average_pool_divides_by_what_is_there),
              cmocka_unit_test(ceil_mode_rounds_up), cmocka_unit_test(pools_of_whole_channels),
              cmocka_unit_test(pool_shapes), cmocka_unit_test(pools_refuse),
              cmocka_unit_test(flops_are_counted), cmocka_unit_test(gradients_match_differences),
              cmocka_unit_test(gradients_of_whole_channels_match_differences))
