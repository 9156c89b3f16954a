#include "tests/support/dice.h"

static const double counted[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};

// The numbers 0, 1, 2, … in a float64 tensor.
static op_case_input counting(uint32_t rank, const int64_t *dims) {
    return (op_case_input){.type = pen_tensor_type_make(PEN_FLOAT64, rank, dims), .data = counted};
}

static void concatenates(void **state) {
    (void)state;
    op_case c = {
        .op = "concat",
        .input_count = 3,
        .inputs = {counting(2, (const int64_t[]){2, 1}), counting(2, (const int64_t[]){2, 3}),
                   counting(2, (const int64_t[]){2, 0})},
        .attribute_count = 1,
        .attributes = {pen_attribute_int("axis", -1)},
    };
    op_check_values(&c, 0, (const double[]){0, 0, 1, 2, 1, 3, 4, 5}, 8, 0);
    c.attributes[0] = pen_attribute_int("axis", 0);
    op_check_error(&c, PEN_INVALID_INPUT,
                   "concat 'subject': input 1 has shape [2,3] and input 0 has [2,1]; they may "
                   "differ along axis 0 only");
    c.inputs[1].type.element = PEN_INT64;
    op_check_error(&c, PEN_INVALID_INPUT, "input 1 is int64, but input 0 is float64");
}

static void splits(void **state) {
    (void)state;
    op_case c = {
        .op = "split",
        .input_count = 2,
        .inputs = {counting(2, (const int64_t[]){2, 4}), constant_ints(2, (const int64_t[]){1, 3})},
        .output_count = 2,
        .attribute_count = 1,
        .attributes = {pen_attribute_int("axis", 1)},
    };
    op_check_values(&c, 0, (const double[]){0, 4}, 2, 0);
    op_check_values(&c, 1, (const double[]){1, 2, 3, 5, 6, 7}, 6, 0);
    c.inputs[1] = constant_ints(2, (const int64_t[]){1, 2});
    op_check_error(&c, PEN_INVALID_INPUT, "the sizes leave over 1 of 4 elements along axis 1");
    c.inputs[1] = constant_ints(2, (const int64_t[]){1, 4});
    op_check_error(&c, PEN_INVALID_INPUT, "size 4 of part 1 is outside of the 3 elements left");
    c.inputs[1] = constant_ints(1, (const int64_t[]){4});
    op_check_error(&c, PEN_INVALID_INPUT, "split has 1 sizes for 2 outputs");
    c.input_count = 1;
    op_check_values(&c, 1, (const double[]){2, 3, 6, 7}, 4, 0);
    c.output_count = 3;
    op_check_error(&c, PEN_INVALID_INPUT, "do not split into 3 equal parts");
}

static void transposes(void **state) {
    (void)state;
    op_case c = {
        .op = "transpose", .input_count = 1, .inputs = {counting(3, (const int64_t[]){1, 2, 3})}};
    op_check_values(&c, 0, (const double[]){0, 3, 1, 4, 2, 5}, 6, 0);
    c.attribute_count = 1;
    c.attributes[0] = pen_attribute_ints("perm", 3, (const int64_t[]){1, 0, 2});
    op_check_values(&c, 0, counted, 6, 0);
    c.attributes[0] = pen_attribute_ints("perm", 3, (const int64_t[]){1, 0, 1});
    op_check_error(&c, PEN_INVALID_INPUT,
                   "perm has 1 at position 2; it must hold each of 0 to 2 once");
    c.attributes[0] = pen_attribute_ints("perm", 2, (const int64_t[]){1, 0});
    op_check_error(&c, PEN_INVALID_INPUT, "perm has 2 numbers for 3 dimensions");
}

static void expands_and_tiles(void **state) {
    (void)state;
    op_case c = {
        .op = "expand",
        .input_count = 2,
        .inputs = {counting(2, (const int64_t[]){2, 1}),
                   constant_ints(3, (const int64_t[]){2, 1, 2})},
    };
    op_check_values(&c, 0, (const double[]){0, 0, 1, 1, 0, 0, 1, 1}, 8, 0);
    c.inputs[1] = constant_ints(2, (const int64_t[]){3, 4});
    op_check_error(&c, PEN_INVALID_INPUT,
                   "expand 'subject': shapes [2,1] and [3,4] do not broadcast");
    c.inputs[1] = constant_ints(2, (const int64_t[]){2, -4});
    op_check_error(&c, PEN_INVALID_INPUT, "dimension 1 of [2,?] is negative");
    c.op = "tile";
    c.inputs[1] = constant_ints(2, (const int64_t[]){2, 3});
    op_check_values(&c, 0, (const double[]){0, 0, 0, 1, 1, 1, 0, 0, 0, 1, 1, 1}, 12, 0);
    c.inputs[1] = constant_ints(2, (const int64_t[]){2, -1});
    op_check_error(&c, PEN_INVALID_INPUT, "dimension 1 cannot be repeated -1 times");
    c.inputs[1] = constant_ints(1, (const int64_t[]){2});
    op_check_error(&c, PEN_INVALID_INPUT, "repeats has 1 numbers for 2 dimensions");
}

static void moves_blocks(void **state) {
    (void)state;
    op_case c = {
        .op = "depth_to_space",
        .input_count = 1,
        .inputs = {counting(4, (const int64_t[]){1, 8, 1, 1})},
        .attribute_count = 2,
        .attributes = {pen_attribute_int("blocksize", 2), pen_attribute_text("mode", "DCR")},
    };
    op_check_values(&c, 0, (const double[]){0, 2, 4, 6, 1, 3, 5, 7}, 8, 0);
    c.attributes[1] = pen_attribute_text("mode", "CRD");
    op_check_values(&c, 0, counted, 8, 0);
    c.attributes[1] = pen_attribute_text("mode", "XYZ");
    op_check_error(&c, PEN_INVALID_INPUT, "mode is 'XYZ'; there are DCR, CRD");
    c.attributes[1] = pen_attribute_text("mode", "DCR");
    c.attributes[0] = pen_attribute_int("blocksize", 3);
    op_check_error(&c, PEN_INVALID_INPUT, "the channels of [1,8,1,1] cannot be divided");
    c.op = "space_to_depth";
    c.attributes[0] = pen_attribute_int("blocksize", 2);
    c.inputs[0] = counting(4, (const int64_t[]){1, 2, 2, 2});
    op_check_values(&c, 0, (const double[]){0, 4, 1, 5, 2, 6, 3, 7}, 8, 0);
    c.attributes[0] = pen_attribute_int("blocksize", 0);
    op_check_error(&c, PEN_INVALID_INPUT, "blocksize is 0");
}

static void make_concat(dice *d, op_case *c) {
    const uint32_t rank = (uint32_t)dice_between(d, 1, 3);
    const int64_t axis = dice_between(d, 0, rank - 1);
    c->op = "concat";
    c->input_count = (uint32_t)dice_between(d, 1, 3);
    c->inputs[0] = dice_tensor(d, rank, 3);
    for (uint32_t i = 1; i < c->input_count; i++) {
        c->inputs[i] = c->inputs[0];
        c->inputs[i].type.shape.dims[axis] = dice_between(d, 0, 3);
        c->inputs[i].is_fixed = dice_between(d, 0, 3) == 0;
    }
    c->attributes[c->attribute_count++] = pen_attribute_int("axis", axis - rank);
}

static void make_split(dice *d, op_case *c, int64_t *integers) {
    c->op = "split";
    c->inputs[0] = dice_tensor(d, 2, 3);
    c->output_count = (uint32_t)dice_between(d, 1, 3);
    int64_t *dim = &c->inputs[0].type.shape.dims[1];
    c->attributes[c->attribute_count++] = pen_attribute_int("axis", 1);
    if (dice_between(d, 0, 1) == 0) {
        *dim *= c->output_count;
        return;
    }
    *dim = 0;
    for (uint32_t i = 0; i < c->output_count; i++) {
        integers[i] = dice_between(d, 0, 3);
        *dim += integers[i];
    }
    if (*dim == 0) *dim = integers[0] = 1;
    c->inputs[c->input_count++] = constant_ints(c->output_count, integers);
}

static void make_transpose(dice *d, op_case *c, int64_t *integers) {
    const uint32_t rank = (uint32_t)dice_between(d, 1, 4);
    c->op = "transpose";
    c->inputs[0] = dice_tensor(d, rank, 3);
    for (uint32_t i = 0; i < rank; i++) { // shuffled from the inside out
        const int64_t at = dice_between(d, 0, i);
        integers[i] = integers[at];
        integers[at] = i;
    }
    if (dice_between(d, 0, 3) > 0) {
        c->attributes[c->attribute_count++] = pen_attribute_ints("perm", rank, integers);
    }
}

static void make_repeat(dice *d, op_case *c, int64_t *integers, bool is_tile) {
    const uint32_t rank = (uint32_t)dice_between(d, 1, 3);
    c->op = is_tile ? "tile" : "expand";
    c->inputs[0] = dice_tensor(d, rank, is_tile ? 3 : 1);
    for (uint32_t i = 0; i < rank; i++) {
        integers[i] = dice_between(d, 1, 3);
    }
    if (!is_tile) c->inputs[0].type.shape.dims[0] = integers[0];
    c->inputs[c->input_count++] = constant_ints(rank, integers);
}

static void make_space(dice *d, op_case *c) {
    const bool to_depth = dice_between(d, 0, 1) == 1;
    const int64_t block = dice_between(d, 1, 3);
    c->op = to_depth ? "space_to_depth" : "depth_to_space";
    c->inputs[0] = dice_tensor(d, 4, 2);
    int64_t *dims = c->inputs[0].type.shape.dims;
    dims[1] *= to_depth ? 1 : block * block;
    dims[2] *= to_depth ? block : 1;
    dims[3] *= to_depth ? block : 1;
    c->attributes[c->attribute_count++] = pen_attribute_int("blocksize", block);
    c->attributes[c->attribute_count++] =
        pen_attribute_text("mode", dice_between(d, 0, 1) == 1 ? "DCR" : "CRD");
}

static void gradients(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 240; seed++) {
        dice d = {.seed = seed};
        op_case c = {.input_count = 1};
        int64_t integers[PEN_RANK_LIMIT] = {0};
        switch (seed % 6) {
        case 0:
            make_concat(&d, &c);
            break;
        case 1:
            make_split(&d, &c, integers);
            break;
        case 2:
            make_transpose(&d, &c, integers);
            break;
        case 3:
            make_repeat(&d, &c, integers, true);
            break;
        case 4:
            make_repeat(&d, &c, integers, false);
            break;
        case 5:
            make_space(&d, &c);
            break;
        }
        op_check_gradient(&c, seed);
    }
}

PEN_TEST_MAIN(cmocka_unit_test(concatenates), cmocka_unit_test(splits),
              cmocka_unit_test(transposes), cmocka_unit_test(expands_and_tiles),
              cmocka_unit_test(moves_blocks), cmocka_unit_test(gradients))
