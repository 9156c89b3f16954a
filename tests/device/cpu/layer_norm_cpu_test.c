// Layer, instance, group and root mean square normalisation on cpu, beside reference.
#include "tests/support/device_check.h"
#include "tests/support/random_case.h"

// Operands of a forward case: x, and up to `weights` more of type `weight`.
static void draw_forward(random_case *random, op_case *c, uint32_t weights,
                         const pen_tensor_type *weight) {
    c->input_count = 1 + (uint32_t)random_between(random, 0, weights);
    for (uint32_t i = 1; i < c->input_count; i++) {
        c->inputs[i].type = *weight;
    }
}

static void draw_backward(random_case *random, op_case *c, uint32_t weights,
                          const pen_tensor_type *weight) {
    c->inputs[1] = c->inputs[0];
    c->inputs[0].low = c->inputs[0].high = 0; // dy
    c->inputs[2].type = *weight;
    c->input_count = random_chance(random, 85) ? 3 : 2;
    c->output_count = c->input_count == 2 ? 1 : 1 + (uint32_t)random_between(random, 0, weights);
}

static void trailing_equals_reference(void **state) {
    (void)state;
    static const char *const ops[] = {"layer_normalization", "rms_normalization",
                                      "layer_normalization_backward", "rms_normalization_backward"};
    for (uint64_t seed = 0; seed < 240; seed++) {
        random_case random = {seed, 0};
        op_case c = {.op = ops[seed % 4], .attribute_count = 2};
        pen_tensor_type type = random_type(&random, 1, 4, 9, 600);
        if (random_chance(&random, 20)) {
            type = op_type(PEN_FLOAT32, 2, (int)random_between(&random, 1, 70),
                           (int)random_between(&random, 500, 5000));
        }
        const uint32_t axis = (uint32_t)random_between(&random, 0, type.shape.rank - 1);
        c.attributes[0] = pen_attribute_int("axis", axis);
        c.attributes[1] = pen_attribute_float("epsilon", 0.01);
        c.inputs[0].type = type;
        c.inputs[0].low = random_chance(&random, 30) ? 3 : -5;
        c.inputs[0].high = 5;
        pen_tensor_type weight = {PEN_FLOAT32, {0}};
        for (uint32_t d = axis; d < type.shape.rank; d++) {
            weight.shape.dims[weight.shape.rank++] = type.shape.dims[d];
        }
        const uint32_t weights = seed % 2 == 0 ? 2 : 1;
        if (seed % 4 < 2) {
            draw_forward(&random, &c, weights, &weight);
            if (weights == 2) c.output_count = (uint32_t)random_between(&random, 1, 3);
        } else {
            draw_backward(&random, &c, weights, &weight);
        }
        op_check_device(&c, seed, 3e-5);
    }
}

static void channels_equal_reference(void **state) {
    (void)state;
    static const char *const ops[] = {"instance_normalization", "group_normalization",
                                      "instance_normalization_backward",
                                      "group_normalization_backward"};
    for (uint64_t seed = 0; seed < 240; seed++) {
        random_case random = {seed, 0};
        op_case c = {.op = ops[seed % 4], .attribute_count = 1};
        const int64_t groups = random_between(&random, 1, 4);
        pen_tensor_type type = random_type(&random, 2, 4, 9, 600);
        type.shape.dims[1] = groups * random_between(&random, 1, 4);
        if (type.shape.rank > 2 && random_chance(&random, 10)) type.shape.dims[2] += 700;
        c.attributes[0] = pen_attribute_float("epsilon", 0.01);
        const bool by_group = seed % 2 == 1;
        if (by_group) c.attributes[c.attribute_count++] = pen_attribute_int("num_groups", groups);
        c.inputs[0].type = type;
        c.inputs[0].low = random_chance(&random, 30) ? 3 : -5;
        c.inputs[0].high = 5;
        const bool is_a_group = by_group && random_chance(&random, 30);
        const pen_tensor_type weight =
            op_type(PEN_FLOAT32, 1, is_a_group ? (int)groups : (int)type.shape.dims[1]);
        if (seed % 4 < 2) {
            draw_forward(&random, &c, 2, &weight);
        } else {
            draw_backward(&random, &c, 2, &weight);
        }
        op_check_device(&c, seed, 3e-5);
    }
}

PEN_TEST_MAIN(cmocka_unit_test(trailing_equals_reference),
              cmocka_unit_test(channels_equal_reference))
