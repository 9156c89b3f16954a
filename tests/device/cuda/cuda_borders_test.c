// Borders, repetitions, triangles, running sums, blocks of channels, and resized planes on an
// emulated GPU against the reference.
#include "tests/support/cuda_check.h"
#include "tests/support/random_case.h"

static op_case_input constant_ints(uint32_t count, const int64_t *data) {
    return (op_case_input){
        .type = op_type(PEN_INT64, 1, (int)count), .data = data, .is_constant = true};
}

static void borders(void **state) {
    (void)state;
    static const char *const modes[] = {"constant", "edge", "reflect"};
    static const int64_t pads[4][6] = {
        {0, 1, 2, 0, 3, 4}, {2, -1, 9, 0, 2, -2}, {1, -2, -3, 0, -1, 11}, {0, 7, 0, 1, 0, 0}};
    static const int64_t shape[] = {1, 4, 6};
    for (uint64_t seed = 0; seed < 24; seed++) {
        const int64_t *p = pads[seed / 3 % 4];
        const bool is_backward = seed >= 12;
        if (is_backward && seed % 3 == 0) continue; // has none: it is a pad by what is below 0
        op_case c = {.op = is_backward ? "pad_backward" : "pad", .input_count = 2};
        const pen_element_type element = !is_backward && seed % 2 ? PEN_INT64 : PEN_FLOAT32;
        c.attributes[c.attribute_count++] = pen_attribute_text("mode", modes[seed % 3]);
        c.inputs[0].type = op_type(element, 3, 1, 4, 6);
        c.inputs[0].high = 9;
        c.inputs[1] = constant_ints(6, p);
        if (is_backward) {
            c.attributes[c.attribute_count++] = pen_attribute_ints("shape", 3, shape);
            for (uint32_t d = 0; d < 3; d++)
                c.inputs[0].type.shape.dims[d] += p[d] + p[3 + d];
        } else if (seed % 3 == 0) {
            c.input_count = 3;
            c.inputs[2] = (op_case_input){.type = op_type(element, 0), .high = 9};
            c.inputs[2].is_absent = seed % 4 == 0;
        }
        cuda_check(&c, seed, 1e-6);
    }
}

// A mirror that is as long as its line goes to and fro.
static void borders_that_go_to_and_fro(void **state) {
    (void)state;
    static const int64_t pads[] = {7, 11}, shape[] = {3};
    for (uint64_t seed = 0; seed < 2; seed++) {
        op_case c = {.op = seed ? "pad_backward" : "pad", .input_count = 2, .attribute_count = 1};
        c.attributes[0] = pen_attribute_text("mode", "reflect");
        c.attributes[1] = pen_attribute_ints("shape", 1, shape);
        c.attribute_count += seed ? 1 : 0;
        c.inputs[0].type = op_type(PEN_FLOAT32, 1, seed ? 21 : 3);
        c.inputs[1] = constant_ints(2, pads);
        cuda_check(&c, seed, 1e-6);
    }
}

static void repetitions(void **state) {
    (void)state;
    static const int64_t repeats[] = {2, 1, 3}, shape[] = {3, 4, 5};
    for (uint64_t seed = 0; seed < 6; seed++) {
        const bool is_backward = seed % 2;
        op_case c = {.op = is_backward ? "tile_backward" : "tile",
                     .input_count = is_backward ? 1 : 2};
        c.inputs[0].type =
            is_backward ? op_type(PEN_FLOAT32, 3, 6, 4, 15) : op_type(PEN_FLOAT32, 3, 3, 4, 5);
        if (seed == 4) c.inputs[0].type.element = PEN_BOOL;
        if (seed == 4) c.inputs[0].high = 2;
        c.inputs[1] = constant_ints(3, repeats);
        if (is_backward) c.attributes[c.attribute_count++] = pen_attribute_ints("shape", 3, shape);
        cuda_check(&c, seed, 1e-6);
    }
}

static void triangles(void **state) {
    (void)state;
    static const int64_t diagonals[] = {0, 2, -3, 100};
    static const pen_element_type types[] = {PEN_FLOAT32, PEN_BOOL, PEN_INT64};
    for (uint64_t seed = 0; seed < 24; seed++) {
        op_case c = {.op = "trilu", .input_count = 2, .attribute_count = 1};
        c.attributes[0] = pen_attribute_int("upper", seed % 2);
        c.inputs[0] = (op_case_input){.type = op_type(types[seed % 3], 3, 2, 9, 7), .high = 2};
        c.inputs[1] = (op_case_input){
            .type = op_type(PEN_INT64, 0), .data = &diagonals[seed / 6], .is_constant = true};
        cuda_check(&c, seed, 1e-6);
    }
}

static void running_sums(void **state) {
    (void)state;
    static const int64_t axes[] = {0, 1, -1};
    static const pen_element_type types[] = {PEN_FLOAT32, PEN_INT64, PEN_INT32};
    for (uint64_t seed = 0; seed < 36; seed++) {
        op_case c = {.op = "cum_sum", .input_count = 2, .attribute_count = 2};
        c.attributes[0] = pen_attribute_int("exclusive", seed / 9 % 2);
        c.attributes[1] = pen_attribute_int("reverse", seed >= 18);
        c.inputs[0] =
            (op_case_input){.type = op_type(types[seed % 3], 3, 5, 9, 7), .low = -9, .high = 9};
        c.inputs[1] = (op_case_input){
            .type = op_type(PEN_INT64, 0), .data = &axes[seed / 3 % 3], .is_constant = true};
        cuda_check(&c, seed, 1e-6);
    }
}

static void blocks_of_channels(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 4; seed++) {
        const bool to_depth = seed % 2;
        op_case c = {.op = to_depth ? "space_to_depth" : "depth_to_space", .input_count = 1};
        c.attributes[c.attribute_count++] = pen_attribute_int("blocksize", 3);
        c.attributes[c.attribute_count++] = pen_attribute_text("mode", seed < 2 ? "DCR" : "CRD");
        c.inputs[0].type =
            to_depth ? op_type(PEN_FLOAT32, 4, 2, 4, 6, 15) : op_type(PEN_FLOAT32, 4, 2, 36, 2, 5);
        cuda_check(&c, seed, 1e-6);
    }
}

// Every mode, larger and smaller, of planes, of volumes, and of channels that come last.
static void resized_planes(void **state) {
    (void)state;
    static const char *const modes[] = {"nearest", "linear", "cubic"};
    static const char *const coordinates[] = {"half_pixel", "asymmetric", "align_corners",
                                              "pytorch_half_pixel", "tf_half_pixel_for_nn"};
    static const char *const nearests[] = {"round_prefer_floor", "round_prefer_ceil", "floor",
                                           "ceil"};
    static const int64_t sizes[4][5] = {
        {2, 3, 10, 14, 1}, {2, 3, 3, 2, 1}, {2, 7, 5, 7, 3}, {2, 4, 9, 3, 3}};
    static const int64_t wholes[2][5] = {{2, 3, 5, 7, 1}, {2, 3, 5, 7, 3}};
    for (uint64_t seed = 0; seed < 120; seed++) {
        const int64_t *to = sizes[seed / 2 % 4], *from = wholes[seed / 2 % 4 > 1];
        const bool is_backward = seed % 2;
        op_case c = {.op = is_backward ? "resize_backward" : "resize", .input_count = 4};
        c.attributes[c.attribute_count++] = pen_attribute_text("mode", modes[seed / 2 % 3]);
        c.attributes[c.attribute_count++] =
            pen_attribute_text("coordinate_transformation_mode", coordinates[seed / 6 % 5]);
        c.attributes[c.attribute_count++] =
            pen_attribute_text("nearest_mode", nearests[seed / 8 % 4]);
        c.attributes[c.attribute_count++] = pen_attribute_int("exclude_outside", seed / 30 % 2);
        c.inputs[0].type = op_type(PEN_FLOAT32, 5, 1, 1, 1, 1, 1);
        for (uint32_t d = 0; d < 5; d++)
            c.inputs[0].type.shape.dims[d] = is_backward ? to[d] : from[d];
        c.inputs[1].is_absent = c.inputs[2].is_absent = true;
        c.inputs[3] = constant_ints(5, to);
        if (is_backward) c.attributes[c.attribute_count++] = pen_attribute_ints("shape", 5, from);
        cuda_check(&c, seed, 3e-6);
    }
    static const int64_t all[] = {4, 5, 6, 7};
    op_case c = {.op = "resize", .input_count = 4};
    c.inputs[0].type = op_type(PEN_FLOAT32, 4, 2, 3, 4, 5);
    c.inputs[1].is_absent = c.inputs[2].is_absent = true;
    c.inputs[3] = constant_ints(4, all);
    cuda_check_place(&c, false);
}

// A weight for each channel, or group, of which a block of threads takes one.
static void groups_and_instances(void **state) {
    (void)state;
    static const char *const ops[] = {"group_normalization", "group_normalization_backward",
                                      "instance_normalization", "instance_normalization_backward"};
    for (uint64_t seed = 0; seed < 16; seed++) {
        const bool is_backward = seed % 2, by_group = seed % 4 < 2;
        const uint32_t x = is_backward;
        op_case c = {.op = ops[seed % 4], .input_count = x + (is_backward ? 2 : 3)};
        c.attributes[c.attribute_count++] = pen_attribute_float("epsilon", 1e-3);
        if (by_group) c.attributes[c.attribute_count++] = pen_attribute_int("num_groups", 3);
        c.output_count = is_backward ? 3 : 1;
        c.inputs[0].type =
            seed < 8 ? op_type(PEN_FLOAT32, 4, 4, 6, 9, 11) : op_type(PEN_FLOAT32, 3, 5, 6, 400);
        c.inputs[x] = (op_case_input){.type = c.inputs[0].type, .low = 2, .high = 5};
        const int weights = by_group && seed % 8 < 4 ? 3 : 6;
        c.inputs[x + 1].type = c.inputs[x + 2].type = op_type(PEN_FLOAT32, 1, weights);
        cuda_check(&c, seed, 2e-5);
    }
}

PEN_TEST_MAIN(cmocka_unit_test(borders), cmocka_unit_test(borders_that_go_to_and_fro),
              cmocka_unit_test(repetitions), cmocka_unit_test(triangles),
              cmocka_unit_test(running_sums), cmocka_unit_test(blocks_of_channels),
              cmocka_unit_test(resized_planes), cmocka_unit_test(groups_and_instances))
