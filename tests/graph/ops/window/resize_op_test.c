#include "graph/ops/window/resize_geometry.h"

#include <math.h>

#include "tests/support/dice.h"

static const double plane[] = {1, 2, 3, 4};
static const double twice[] = {2, 2};

static op_case resize_case(const char *mode, const char *coordinate) {
    return (op_case){
        .op = "resize",
        .input_count = 3,
        .inputs = {{.type = op_type(PEN_FLOAT64, 2, 2, 2), .data = plane},
                   {.is_absent = true},
                   {.type = op_type(PEN_FLOAT64, 1, 2), .data = twice, .is_constant = true}},
        .attribute_count = 2,
        .attributes = {pen_attribute_text("mode", mode),
                       pen_attribute_text("coordinate_transformation_mode", coordinate)}};
}

static void resizes(void **state) {
    (void)state;
    op_case c = resize_case("nearest", "half_pixel");
    op_check_values(&c, 0, (const double[]){1, 1, 2, 2, 1, 1, 2, 2, 3, 3, 4, 4, 3, 3, 4, 4}, 16, 0);
    c = resize_case("linear", "align_corners");
    const double third = 1.0 / 3;
    op_check_values(&c, 0,
                    (const double[]){1, 1 + third, 2 - third, 2, 1 + 2 * third, 2, 3 - 2 * third,
                                     3 - third, 2 + third, 3 - third, 3, 3 + third, 3, 3 + third,
                                     4 - third, 4},
                    16, 1e-9);
    c = resize_case("linear", "half_pixel");
    op_check_values(&c, 0,
                    (const double[]){1, 1.25, 1.75, 2, 1.5, 1.75, 2.25, 2.5, 2.5, 2.75, 3.25, 3.5,
                                     3, 3.25, 3.75, 4},
                    16, 1e-9);
    static const int64_t sizes[] = {1, 3};
    c = resize_case("nearest", "asymmetric");
    c.input_count = 4;
    c.inputs[2] = (op_case_input){.is_absent = true};
    c.inputs[3] =
        (op_case_input){.type = op_type(PEN_INT64, 1, 2), .data = sizes, .is_constant = true};
    op_check_values(&c, 0, (const double[]){1, 2, 2}, 3, 0);
}

// A quotient of sizes that is rounded to float32, up or down, makes the size that was meant, and
// the places that it has.
static void rounded_scales_are_whole(void **state) {
    (void)state;
    static const double row[] = {0, 1, 2, 3, 4, 5};
    static const double places[] = {0, 0, 1, 1, 2, 3, 3, 4, 4, 5}; // floor(i * 6 / 10)
    for (int up = 0; up < 2; up++) {
        const double scale = (double)nextafterf(10.0F / 6, up ? 3.0F : 0.0F);
        op_case c = resize_case("nearest", "asymmetric");
        c.inputs[0] = (op_case_input){.type = op_type(PEN_FLOAT64, 1, 6), .data = row};
        c.inputs[2] = (op_case_input){
            .type = op_type(PEN_FLOAT64, 1, 1), .data = &scale, .is_constant = true};
        c.attribute_count = 3;
        c.attributes[2] = pen_attribute_text("nearest_mode", "floor");
        op_check_values(&c, 0, places, 10, 0);
    }
}

static void refuses_bad_geometry(void **state) {
    (void)state;
    op_case c = resize_case("square", "half_pixel");
    op_check_error(&c, PEN_INVALID_INPUT, "mode is 'square'; there are nearest, linear, cubic");
    c = resize_case("linear", "somewhere");
    op_check_error(&c, PEN_INVALID_INPUT, "coordinate_transformation_mode is 'somewhere'");
    c = resize_case("linear", "half_pixel");
    static const double bad[] = {2, -1};
    c.inputs[2].data = bad;
    op_check_error(&c, PEN_INVALID_INPUT, "scale 1 is -1, it must be above 0");
    c.inputs[2].type.shape.dims[0] = 1;
    op_check_error(&c, PEN_INVALID_INPUT, "scales has 1 numbers, it must have 2");
    c.inputs[2].is_absent = true;
    op_check_error(&c, PEN_INVALID_INPUT, "sizes has 0 numbers, it must have 2");
}

// The taps of each element add up to 1, also where elements outside are left out.
static void weights_add_up(void **state) {
    (void)state;
    static const char *const modes[] = {"nearest", "linear", "cubic"};
    for (size_t m = 0; m < 3; m++) {
        for (int64_t to = 1; to < 12; to++) {
            pen_resize resize = {.rank = 1,
                                 .mode = modes[m],
                                 .coordinate = "half_pixel",
                                 .nearest = "round_prefer_floor",
                                 .cubic_a = -0.75,
                                 .excludes_outside = to % 2 == 0};
            resize.axes[0] = (pen_resize_axis){
                .from = 5, .to = to, .scale = (double)to / 5, .width = (double)to, .roi_end = 1};
            for (int64_t i = 0; i < to; i++) {
                pen_resize_taps taps;
                double sum = 0;
                pen_resize_find_taps(&resize, 0, i, &taps);
                for (uint32_t t = 0; t < taps.count; t++) {
                    sum += taps.weight[t];
                    CHECK(taps.index[t] >= 0 && taps.index[t] < 5, "outside");
                }
                CHECK(sum > 1 - 1e-9 && sum < 1 + 1e-9, "%s: %g", modes[m], sum);
            }
        }
    }
}

static void gradients(void **state) {
    (void)state;
    static const char *const modes[] = {"nearest", "linear", "cubic"};
    static const char *const coordinates[] = {"half_pixel", "asymmetric", "align_corners",
                                              "pytorch_half_pixel"};
    static const double scales[] = {1, 1.7, 0.6};
    for (size_t m = 0; m < 3; m++) {
        for (size_t k = 0; k < 4; k++) {
            op_case c = resize_case(modes[m], coordinates[k]);
            c.inputs[0] = (op_case_input){.type = op_type(PEN_FLOAT64, 3, 2, 3, 5)};
            c.inputs[2].type = op_type(PEN_FLOAT64, 1, 3);
            c.inputs[2].data = scales;
            op_check_gradient(&c, m);
        }
    }
}

static void samples_a_grid(void **state) {
    (void)state;
    static const double grid[] = {-1, -1, 1, 1, 0, 0, 3, 0};
    op_case c = {
        .op = "grid_sample",
        .input_count = 2,
        .inputs = {{.type = op_type(PEN_FLOAT64, 4, 1, 1, 2, 2), .data = plane},
                   {.type = op_type(PEN_FLOAT64, 4, 1, 1, 4, 2), .data = grid, .is_fixed = true}},
        .attribute_count = 3,
        .attributes = {pen_attribute_int("align_corners", 1),
                       pen_attribute_text("mode", "bilinear"),
                       pen_attribute_text("padding_mode", "zeros")}};
    op_check_values(&c, 0, (const double[]){1, 4, 2.5, 0}, 4, 1e-9);
    static const char *const paddings[] = {"zeros", "border", "reflection"};
    static const char *const modes[] = {"bilinear", "nearest", "bicubic"};
    for (size_t i = 0; i < 9; i++) {
        c.attributes[0] = pen_attribute_int("align_corners", (int64_t)i % 2);
        c.attributes[1] = pen_attribute_text("mode", modes[i % 3]);
        c.attributes[2] = pen_attribute_text("padding_mode", paddings[i / 3]);
        op_check_gradient(&c, i);
    }
    c.attributes[2] = pen_attribute_text("padding_mode", "ones");
    op_check_error(&c, PEN_INVALID_INPUT, "there are zeros, border, reflection");
}

static void aligns_regions(void **state) {
    (void)state;
    static const double regions[] = {0, 0, 1, 1};
    static const int64_t batch = 0, wrong = 1;
    op_case c = {.op = "roi_align",
                 .input_count = 3,
                 .inputs = {{.type = op_type(PEN_FLOAT64, 4, 1, 1, 2, 2), .data = plane},
                            {.type = op_type(PEN_FLOAT64, 2, 1, 4), .data = regions},
                            {.type = op_type(PEN_INT64, 1, 1), .data = &batch}}};
    op_check_values(&c, 0, (const double[]){1}, 1, 1e-9);
    c.inputs[2].data = &wrong;
    op_built built;
    run_graph run;
    CHECK_OK(op_build(&c, &built));
    CHECK_OK(run_graph_init(&run, built.graph, built.arena));
    op_fill(&c, &built, 1, &run);
    CHECK_ERROR(run_graph_all(&run), PEN_INVALID_INPUT, "region 0 is of batch 1");
    op_built_free(&built);
}

PEN_TEST_MAIN(cmocka_unit_test(resizes), cmocka_unit_test(rounded_scales_are_whole),
              cmocka_unit_test(refuses_bad_geometry), cmocka_unit_test(weights_add_up),
              cmocka_unit_test(gradients), cmocka_unit_test(samples_a_grid),
              cmocka_unit_test(aligns_regions))
