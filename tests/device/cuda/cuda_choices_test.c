// What is picked by size, one-hot rows, constants and random tensors, on an emulated GPU against
// the reference.
#include <math.h>
#include <string.h>

#include "tests/support/cuda_check.h"

// Lines of a thread, of eight, of a warp and of a block; many numbers are equal, some are none.
static const int choice_lengths[] = {1, 9, 40, 300, 1100};
enum { CHOICE_LENGTHS = sizeof choice_lengths / sizeof *choice_lengths };
static const pen_element_type choice_types[] = {PEN_FLOAT32, PEN_INT64, PEN_INT32, PEN_FLOAT64};

// Of float32 the case's data, else numbers of a few values.
static op_case_input choice_numbers(pen_tensor_type type, uint64_t seed) {
    static float x[2 * 1100 * 3];
    for (uint32_t i = 0; i < sizeof x / sizeof *x; i++) {
        x[i] = (float)(i * i % 23) - 12;
        if (x[i] == 0 && i % 2) x[i] = -0.0f;
        if (seed % 2 && i % 97 == 5) x[i] = i % 2 ? NAN : -NAN;
        if (i % 101 == 7) x[i] = i % 3 ? INFINITY : -INFINITY;
    }
    const bool is_given = type.element == PEN_FLOAT32;
    return (op_case_input){.type = type, .low = -9, .high = 9, .data = is_given ? x : NULL};
}

static void places(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 8 * CHOICE_LENGTHS; seed++) {
        const int length = choice_lengths[seed / 8], inner = seed % 3 ? 1 : 3;
        op_case c = {.op = seed % 2 ? "arg_min" : "arg_max", .input_count = 1};
        c.attribute_count = 2;
        c.attributes[0] = pen_attribute_int("axis", 1);
        c.attributes[1] = pen_attribute_int("keepdims", seed % 3 == 1);
        const pen_tensor_type type = op_type(choice_types[seed / 2 % 4], 3, 2, length, inner);
        c.inputs[0] = choice_numbers(type, seed / 2);
        cuda_check(&c, seed, 0);
    }
    op_case last = {.op = "arg_max", .input_count = 1, .attribute_count = 1};
    last.attributes[0] = pen_attribute_int("select_last_index", 1);
    last.inputs[0].type = op_type(PEN_FLOAT32, 2, 3, 4);
    cuda_check_place(&last, false);
}

// None, one, some and all; so numbers are sorted, too.
static void tops(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 24; seed++) {
        const int length = choice_lengths[1 + seed / 2 % 3], inner = seed % 2 ? 1 : 3;
        const int64_t ks[] = {0, 1, 7, length};
        op_case c = {.op = "top_k", .input_count = 2, .output_count = 1 + (seed % 5 > 0)};
        c.attribute_count = 2;
        c.attributes[0] = pen_attribute_int("axis", inner == 1 ? -2 : 1);
        c.attributes[1] = pen_attribute_int("largest", seed / 2 % 2);
        const pen_tensor_type type =
            op_type(choice_types[(seed + seed / 6) % 4], 3, 2, length, inner);
        c.inputs[0] = choice_numbers(type, seed / 4);
        c.inputs[1] = (op_case_input){
            .type = op_type(PEN_INT64, 1, 1), .data = &ks[seed / 6], .is_constant = true};
        cuda_check(&c, seed, 0);
    }
    static const int64_t one = 1;
    op_case wide = {.op = "top_k", .input_count = 2, .output_count = 2};
    wide.inputs[0].type = op_type(PEN_FLOAT32, 1, 65537);
    wide.inputs[1] =
        (op_case_input){.type = op_type(PEN_INT64, 1, 1), .data = &one, .is_constant = true};
    cuda_check_place(&wide, false);
}

// Indices below 0 count from the end; some are outside, or between two positions.
static void one_hots(void **state) {
    (void)state;
    static const int64_t depth = 7;
    static float between[4 * 5];
    for (uint32_t i = 0; i < 4 * 5; i++)
        between[i] = (float)i / 2 - 5;
    for (uint64_t seed = 0; seed < 9; seed++) {
        op_case c = {.op = "one_hot", .input_count = 3, .attribute_count = 1};
        c.attributes[0] = pen_attribute_int("axis", (int)(seed % 3) - 1);
        const pen_element_type index = seed < 3 ? PEN_INT64 : seed < 6 ? PEN_INT32 : PEN_FLOAT32;
        const pen_element_type value = seed % 3 == 0   ? PEN_FLOAT32
                                       : seed % 3 == 1 ? PEN_INT64
                                                       : PEN_BOOL;
        c.inputs[0] = (op_case_input){.type = op_type(index, 2, 4, 5), .low = -9, .high = 9};
        if (seed >= 6) c.inputs[0].data = between;
        c.inputs[1] =
            (op_case_input){.type = op_type(PEN_INT64, 0), .data = &depth, .is_constant = true};
        static const float floats[] = {-1, 2};
        static const int64_t integers[] = {3, -4};
        static const bool truths[] = {true, false};
        c.inputs[2].type = op_type(value, 1, 2);
        c.inputs[2].data = seed % 3 == 0   ? (const void *)floats
                           : seed % 3 == 1 ? (const void *)integers
                                           : (const void *)truths;
        cuda_check(&c, seed, 0);
    }
}

static void constants(void **state) {
    (void)state;
    static const int64_t shape[] = {3, 271};
    static const char *const names[] = {"float32", "float64", "int32", "int64", "bool", "uint8"};
    for (uint64_t seed = 0; seed < sizeof names / sizeof *names; seed++) {
        op_case c = {.op = "constant_of_shape", .input_count = 1, .attribute_count = 2};
        c.attributes[0] = pen_attribute_float("value", seed < 2 ? -0.3 : 7);
        c.attributes[1] = pen_attribute_text("element", names[seed]);
        c.inputs[0] =
            (op_case_input){.type = op_type(PEN_INT64, 1, 2), .data = shape, .is_constant = true};
        cuda_check(&c, seed, 0);
    }
}

// Element by element what every device draws, of the job's seed or of the node's.
static void random_tensors(void **state) {
    (void)state;
    static const int64_t shape[] = {7, 311};
    static const char *const ops[] = {"random_uniform", "random_normal", "random_uniform_like",
                                      "random_normal_like", "bernoulli"};
    for (uint64_t seed = 0; seed < 20; seed++) {
        const uint64_t which = seed % 5;
        op_case c = {.op = ops[which], .attribute_count = 1};
        c.attributes[0] = pen_attribute_text("stream", "draws");
        const char *element = seed / 5 % 2 ? "float64" : "float32";
        if (which == 4) element = seed < 10 ? "float32" : seed < 15 ? "bool" : "int64";
        c.attributes[c.attribute_count++] = pen_attribute_text("dtype", element);
        if (seed >= 10) c.attributes[c.attribute_count++] = pen_attribute_float("seed", 3.25);
        if (which < 4) {
            c.attributes[c.attribute_count++] = pen_attribute_float(which % 2 ? "mean" : "low", -3);
            c.attributes[c.attribute_count++] =
                pen_attribute_float(which % 2 ? "scale" : "high", 2);
        }
        if (which < 2) c.attributes[c.attribute_count++] = pen_attribute_ints("shape", 2, shape);
        c.input_count = which >= 2;
        c.inputs[0] = (op_case_input){.type = op_type(PEN_FLOAT32, 2, 7, 311), .high = 1};
        cuda_check(&c, seed, strcmp(element, "float64") == 0 ? 1e-13 : 1e-6);
    }
}

// Of a few classes, of more than a block has threads, and of many; some have no share, or such a
// small one that only double has it, and one line has no largest.
static void random_classes(void **state) {
    (void)state;
    static const int classes[] = {1, 7, 300, 5000};
    static float x[3 * 5000];
    static double wide[3 * 5000];
    for (uint64_t seed = 0; seed < 16; seed++) {
        const int count = classes[seed % 4];
        op_case c = {.op = "multinomial", .input_count = 1, .attribute_count = 3};
        c.attributes[0] = pen_attribute_text("stream", "draws");
        c.attributes[1] = pen_attribute_text("dtype", seed % 3 ? "int32" : "int64");
        c.attributes[2] = pen_attribute_int("sample_size", seed < 8 ? 40 : 700);
        for (int i = 0; i < 3 * count; i++) {
            x[i] =
                i % 5 == 3 ? -(float)INFINITY : (float)(i * 7919 % 97) / 24 - (float)(i % 11) * 9;
            if (seed >= 12 && i >= count) x[i] = i < 2 * count ? -(float)INFINITY : x[i] - 300.0f;
            wide[i] = (double)x[i] + 1e-9;
        }
        c.inputs[0].type = op_type(seed % 2 ? PEN_FLOAT64 : PEN_FLOAT32, 2, 3, count);
        c.inputs[0].data = seed % 2 ? (const void *)wide : x;
        cuda_check(&c, seed, 0);
    }
}

PEN_TEST_MAIN(cmocka_unit_test(places), cmocka_unit_test(tops), cmocka_unit_test(one_hots),
              cmocka_unit_test(constants), cmocka_unit_test(random_tensors),
              cmocka_unit_test(random_classes))
