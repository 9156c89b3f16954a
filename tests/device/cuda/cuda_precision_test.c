// Operands of products in lower precisions on an emulated GPU: what is rounded, to what, and that
// nothing else is.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "device/device.h"
#include "tests/support/cuda_check.h"
#include "tests/support/cuda_rounding.h"
#include "tests/support/product_case.h"
#include "tests/support/random_case.h"
#include "tests/support/window_case.h"

// Times one: each kind of number, and those halfway between two that a precision has. NVIDIA's own
// libraries may round them otherwise, or not at all.
static void numbers(void **state) {
    (void)state;
    if (cuda_has_real_libraries()) skip();
    static const uint32_t bits[] = {
        0x00000000u, 0x80000000u, 0x7f800000u, 0xff800000u, 0x7fc00001u, 0x7f800001u, 0x00000001u,
        0x007fffffu, 0x80008000u, 0x00018000u, 0x3f800000u, 0x3f801000u, 0x3f803000u, 0x3f801001u,
        0x3f800fffu, 0x3f808000u, 0x3f818000u, 0x3f808001u, 0xbf807fffu, 0x3fffffffu, 0x7f7fffffu,
        0x477fe000u, 0x477fefffu, 0x477ff000u, 0xc77ff000u, 0x477ff001u, 0x33000000u, 0x33000001u,
        0x33800000u, 0xb3c00000u, 0x34200000u, 0x387fc000u, 0x387fe000u, 0x387fffffu, 0x38800000u,
    };
    enum { FIXED = sizeof bits / sizeof *bits, COUNT = FIXED + 2000 };
    static const float one = 1;
    static float x[COUNT];
    memcpy(x, bits, sizeof bits);
    srand(7);
    for (int i = FIXED; i < COUNT; i++) {
        const uint32_t drawn = (uint32_t)rand() << 9 ^ (uint32_t)rand();
        memcpy(&x[i], &drawn, sizeof drawn);
    }
    op_case c = {.op = "matmul", .input_count = 2};
    c.inputs[0] = (op_case_input){.type = op_type(PEN_FLOAT32, 2, COUNT, 1), .data = x};
    c.inputs[1] = (op_case_input){.type = op_type(PEN_FLOAT32, 2, 1, 1), .data = &one};
    for (int p = 0; p < PEN_PRECISION_COUNT; p++) {
        op_built built;
        run_graph run;
        CHECK_OK(op_build(&c, &built));
        CHECK_OK(run_graph_init(&run, built.graph, built.arena));
        op_fill(&c, &built, 1, &run);
        cuda_run(&built, (pen_precision)p, (uint64_t)p, &run);
        const float *y = run.tensors[built.outputs[0].index].data;
        for (int i = 0; i < COUNT; i++) {
            const float expected = cuda_nearest(x[i], (pen_precision)p);
            CHECK(y[i] == expected || (isnan(y[i]) && isnan(expected)),
                  "%s of %.9g (%a) is %.9g, expected %.9g", pen_precision_names[p], (double)x[i],
                  (double)x[i], (double)y[i], (double)expected);
        }
        op_built_free(&built);
    }
}

// What is added to a product is not rounded.
static void products(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 9; seed++) {
        const op_case c = product_case_long_matmul(seed), g = product_case_long_gemm(seed);
        cuda_check_rounding(&c, 2, seed);
        cuda_check_rounding(&g, 2, seed);
    }
}

// In tiles and without them, with biases, which are not rounded.
static void convolutions(void **state) {
    (void)state;
    static const char *const ops[] = {"conv", "conv_backward_input", "conv_backward_weight"};
    static const int64_t kernel[] = {3, 2}, pads[] = {1, 0, 1, 1};
    for (uint64_t seed = 0; seed < 18; seed++) {
        const bool is_narrow = seed >= 9;
        const int channels = is_narrow ? 6 : 17, rows = is_narrow ? 6 : 20,
                  group = is_narrow ? 3 : 1;
        const int64_t x[] = {2, channels, 11, 12};
        op_case c = {
            .op = ops[seed % 3], .input_count = seed % 3 == 0 ? 3 : 2, .attribute_count = 3};
        const pen_tensor_type y = op_type(PEN_FLOAT32, 4, 2, rows, 11, 12);
        c.inputs[0].type = seed % 3 == 1 ? y : op_type(PEN_FLOAT32, 4, 2, channels, 11, 12);
        c.inputs[1].type =
            seed % 3 == 2 ? y : op_type(PEN_FLOAT32, 4, rows, channels / group, 3, 2);
        c.inputs[2].type = op_type(PEN_FLOAT32, 1, rows);
        c.attributes[0] = pen_attribute_ints("kernel_shape", 2, kernel);
        c.attributes[1] = pen_attribute_ints("pads", 4, pads);
        c.attributes[2] = pen_attribute_int("group", group);
        if (seed % 3 == 1) {
            c.attributes[3] = pen_attribute_ints("input_shape", 4, x);
            c.attribute_count = 4;
        }
        cuda_check_rounding(&c, 2, seed / 3);
    }
}

// GPUs of two precisions are not of one class.
static void classes(void **state) {
    (void)state;
    const char *identity[PEN_PRECISION_COUNT];
    const pen_device_kind *kind;
    pen_arena *arena = check_arena();
    CHECK_OK(pen_device_kind_find("cuda", &kind));
    for (int p = 0; p < PEN_PRECISION_COUNT; p++) {
        pen_device *device;
        const pen_device_options options = {.name = "g", .precision = (pen_precision)p};
        CHECK_OK(kind->open(&options, &device));
        CHECK_OK(kind->identify(device, arena, &identity[p]));
        kind->close(device);
        CHECK(strstr(identity[p], pen_precision_names[p]) != NULL, "%s", identity[p]);
        CHECK(pen_device_kind_can(kind, (pen_precision)p), "%s", pen_precision_names[p]);
    }
    CHECK_OK(pen_device_kind_find("cpu", &kind));
    CHECK(pen_device_kind_can(kind, PEN_PRECISION_FLOAT32) &&
              !pen_device_kind_can(kind, PEN_PRECISION_BFLOAT16),
          "cpu");
    pen_arena_destroy(arena);
}

PEN_TEST_MAIN(cmocka_unit_test(numbers), cmocka_unit_test(products), cmocka_unit_test(convolutions),
              cmocka_unit_test(classes))
