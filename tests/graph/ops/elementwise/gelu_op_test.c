// Gelu and swish.
#include "tests/support/device_check.h"
#include "tests/support/random_case.h"

static const double points[] = {-3, -1, 0, 0.5, 2};

static op_case gelu_case(const char *op, pen_attribute_given attribute) {
    return (op_case){.op = op,
                     .input_count = 1,
                     .inputs = {{.type = op_type(PEN_FLOAT64, 1, 5), .data = points}},
                     .attribute_count = 1,
                     .attributes = {attribute}};
}

static void values(void **state) {
    (void)state;
    op_case c = gelu_case("gelu", pen_attribute_text("approximate", "none"));
    const double exact[] = {-0.00404969409489031, -0.15865525393145707, 0, 0.34573123063700656,
                            1.9544997361036416};
    op_check_values(&c, 0, exact, 5, 1e-13);
    c.attribute_count = 0;
    op_check_values(&c, 0, exact, 5, 1e-13);
    c = gelu_case("gelu", pen_attribute_text("approximate", "tanh"));
    op_check_values(&c, 0,
                    (const double[]){-0.0036373920817729943, -0.15880800939172324, 0,
                                     0.34571400982514394, 1.954597694087775},
                    5, 1e-13);
    c = gelu_case("swish", pen_attribute_float("alpha", 1));
    op_check_values(&c, 0,
                    (const double[]){-0.14227761953270035, -0.2689414213699951, 0,
                                     0.3112296656009273, 1.7615941559557649},
                    5, 1e-13);
    c = gelu_case("swish", pen_attribute_float("alpha", 2));
    op_check_values(&c, 0,
                    (const double[]){-0.0074178694699043235, -0.11920292202211755, 0,
                                     0.36552928931500245, 1.9640275800758169},
                    5, 1e-13);
}

static pen_attribute_given draw_attribute(random_case *random, bool is_swish) {
    if (is_swish) return pen_attribute_float("alpha", (double)random_between(random, 1, 4) / 2);
    return pen_attribute_text("approximate", random_chance(random, 50) ? "none" : "tanh");
}

static void gradients(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 200; seed++) {
        random_case random = {.seed = seed};
        op_case c =
            gelu_case(seed % 2 == 0 ? "gelu" : "swish", draw_attribute(&random, seed % 2 == 1));
        c.inputs[0] = (op_case_input){.type = random_type(&random, 0, 4, 5, 60)};
        c.inputs[0].type.element = PEN_FLOAT64;
        c.inputs[0].low = -4;
        c.inputs[0].high = 4;
        op_check_gradient(&c, seed);
    }
}

static void devices_agree(void **state) {
    (void)state;
    static const char *const ops[] = {"gelu", "swish", "gelu_backward", "swish_backward"};
    for (uint64_t seed = 0; seed < 160; seed++) {
        random_case random = {.seed = seed};
        op_case c = gelu_case(ops[seed % 4], draw_attribute(&random, seed % 2 == 1));
        pen_tensor_type type = random_type(&random, 1, 4, 9, 600);
        if (random_chance(&random, 10)) type = op_type(PEN_FLOAT32, 2, 3, 20000);
        const double reach = random_chance(&random, 20) ? 200 : 5;
        const uint32_t x = seed % 4 < 2 ? 0 : 1;
        c.inputs[0] = (op_case_input){.type = type};
        c.inputs[x] = (op_case_input){.type = type, .low = -reach, .high = reach};
        c.input_count = x + 1;
        op_check_device(&c, seed, 2e-6);
    }
}

static void wrong_operands_are_refused(void **state) {
    (void)state;
    op_case c = gelu_case("gelu", pen_attribute_text("approximate", "sine"));
    op_check_error(&c, PEN_INVALID_INPUT,
                   "gelu 'subject': approximate is 'sine'; it may be 'none' or 'tanh'");
    c = gelu_case("swish", pen_attribute_float("alpha", 1));
    c.inputs[0].type.element = PEN_INT64;
    op_check_error(&c, PEN_INVALID_INPUT, "is int64; it may be");
}

PEN_TEST_MAIN(cmocka_unit_test(values), cmocka_unit_test(gradients),
              cmocka_unit_test(devices_agree), cmocka_unit_test(wrong_operands_are_refused))
