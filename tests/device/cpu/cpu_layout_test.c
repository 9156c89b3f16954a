#include "device/cpu/cpu_layout.h"

#include "device/cpu/onednn/onednn_layout.h"
#include "tests/support/layout_check.h"
#include "tests/support/random_case.h"

#define LAYOUT_CASES 200

static op_case elementwise_case(const char *op, uint32_t operand_count, random_case *random) {
    op_case c = {.op = op, .input_count = operand_count};
    const pen_tensor_type type =
        random_type(random, 3, 5, 40, random_chance(random, 20) ? 90000 : 3000);
    for (uint32_t i = 0; i < operand_count; i++) {
        c.inputs[i].type = type;
    }
    return c;
}

// Elementwise kernels on blocked operands: the lanes behind the last channel must stay zeros, or
// the reorder back to plain would be the only thing that is right.
static void elementwise_ops_work_on_blocks(void **state) {
    (void)state;
    static const struct {
        const char *op;
        uint32_t operand_count;
    } ops[] = {{"relu", 1}, {"add", 2},  {"mul", 2}, {"relu_backward", 2}, {"tanh", 1},
               {"sum", 3},  {"mean", 3}, {"sub", 2}, {"leaky_relu", 1},    {"hard_swish", 1}};
    for (uint64_t seed = 0; seed < LAYOUT_CASES; seed++) {
        random_case random = {seed, 0};
        const size_t which = seed % (sizeof ops / sizeof *ops);
        const op_case c = elementwise_case(ops[which].op, ops[which].operand_count, &random);
        const layout_wish wish = {(pen_layout)random_between(&random, 1, 2),
                                  (1u << c.input_count) - 1, 1};
        op_check_layout(&c, seed, 2e-6, &wish);
    }
}

// As of squeeze-and-excitation: one operand has a number for each channel of each sample.
static void channels_are_scaled_in_blocks(void **state) {
    (void)state;
    static const char *const ops[] = {"mul", "add"};
    for (uint64_t seed = 0; seed < LAYOUT_CASES; seed++) {
        random_case random = {seed, 0};
        op_case c = elementwise_case(ops[seed % 2], 2, &random);
        pen_shape *scale = &c.inputs[seed / 2 % 2].type.shape;
        for (uint32_t d = 2; d < scale->rank; d++) {
            scale->dims[d] = 1;
        }
        const layout_wish wish = {(pen_layout)random_between(&random, 1, 2), 3, 1};
        op_check_layout(&c, seed, 0, &wish);
    }
}

static void clip_works_on_blocks(void **state) {
    (void)state;
    static const float low = -0.25f, high = 0.5f;
    for (uint64_t seed = 0; seed < 40; seed++) {
        random_case random = {seed, 0};
        op_case c = elementwise_case("clip", 1, &random);
        c.input_count = 3;
        c.inputs[1] = (op_case_input){op_type(PEN_FLOAT32, 0), .data = &low, .is_constant = true};
        c.inputs[2] = (op_case_input){op_type(PEN_FLOAT32, 0), .data = &high, .is_constant = true};
        const layout_wish wish = {(pen_layout)random_between(&random, 1, 2), 1, 1};
        op_check_layout(&c, seed, 0, &wish);
    }
}

static void channels_join_and_split_in_blocks(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < LAYOUT_CASES; seed++) {
        random_case random = {seed, 0};
        const pen_layout layout = (pen_layout)random_between(&random, 1, 2);
        const int64_t block = pen_cpu_layout_block(layout);
        op_case concat =
            elementwise_case("concat", (uint32_t)random_between(&random, 1, 4), &random);
        int64_t sizes[4], total = 0;
        for (uint32_t i = 0; i < concat.input_count; i++) {
            sizes[i] = block * random_between(&random, 1, 3);
            concat.inputs[i].type.shape.dims[1] = sizes[i];
            total += sizes[i];
        }
        concat.attributes[0] = pen_attribute_int("axis", 1);
        concat.attribute_count = 1;
        const layout_wish wish = {layout, (1u << concat.input_count) - 1, 1};
        op_check_layout(&concat, seed, 0, &wish);
        op_case split = {.op = "split", .input_count = 2, .output_count = concat.input_count};
        split.inputs[0].type = concat.inputs[0].type;
        split.inputs[0].type.shape.dims[1] = total;
        split.inputs[1] = (op_case_input){.type = op_type(PEN_INT64, 1, (int)concat.input_count),
                                          .data = sizes,
                                          .is_constant = true};
        split.attributes[0] = pen_attribute_int("axis", 1);
        split.attribute_count = 1;
        const layout_wish split_wish = {layout, 1, (1u << split.output_count) - 1};
        op_check_layout(&split, seed, 0, &split_wish);
    }
}

// As a device passes on what came to it in blocks.
static void copies_keep_blocks(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 60; seed++) {
        random_case random = {seed, 0};
        const op_case c = elementwise_case("copy", 1, &random);
        const layout_wish wish = {(pen_layout)random_between(&random, 0, 3), 1, 1};
        op_check_layout(&c, seed, 0, &wish);
    }
}

static void bytes_count_whole_blocks(void **state) {
    (void)state;
    const pen_tensor_type type = op_type(PEN_FLOAT32, 4, 2, 17, 3, 5);
    CHECK(pen_cpu_layout_element_count(&type, PEN_CPU_LAYOUT_PLAIN) == 510, "plain");
    CHECK(pen_cpu_layout_element_count(&type, PEN_CPU_LAYOUT_BLOCKED_8) == 720, "8");
    CHECK(pen_cpu_layout_element_count(&type, PEN_CPU_LAYOUT_BLOCKED_16) == 960, "16");
    CHECK(pen_cpu_layout_element_count(&type, PEN_CPU_LAYOUT_CHANNELS_LAST) == 510, "last");
}

// As a part that came over the network may have them.
static void layouts_that_there_are_not_are_refused(void **state) {
    (void)state;
    const pen_tensor_type type = op_type(PEN_FLOAT32, 4, 2, 17, 3, 5);
    const pen_tensor_type flat = op_type(PEN_FLOAT32, 2, 2, 17);
    pen_onednn_tensor tensor;
    CHECK_OK(pen_onednn_layout_tensor(&type.shape, PEN_CPU_LAYOUT_BLOCKED_8, &tensor));
    CHECK_ERROR(pen_onednn_layout_tensor(&type.shape, 77, &tensor), PEN_UNSUPPORTED,
                "no layout 77");
    CHECK_ERROR(pen_onednn_layout_tensor(&flat.shape, PEN_CPU_LAYOUT_BLOCKED_8, &tensor),
                PEN_UNSUPPORTED, "of 2 dimensions");
}

PEN_TEST_MAIN(cmocka_unit_test(elementwise_ops_work_on_blocks),
              cmocka_unit_test(channels_are_scaled_in_blocks),
              cmocka_unit_test(clip_works_on_blocks),
              cmocka_unit_test(channels_join_and_split_in_blocks),
              cmocka_unit_test(copies_keep_blocks), cmocka_unit_test(bytes_count_whole_blocks),
              cmocka_unit_test(layouts_that_there_are_not_are_refused))
