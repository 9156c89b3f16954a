#include "base/memory.h"
#include "tests/support/device_check.h"
#include "tests/support/random_case.h"

#define MOVEMENT_CASES 200

// Mostly small, now and then large enough for a team; of every size of element.
static pen_tensor_type movement_type(random_case *random, int64_t rank_first) {
    static const pen_element_type elements[] = {PEN_FLOAT32, PEN_FLOAT64, PEN_INT64, PEN_FLOAT16,
                                                PEN_BOOL};
    const bool is_large = random_chance(random, 5);
    pen_tensor_type type =
        random_type(random, rank_first, 5, is_large ? 90 : 20, is_large ? 120000 : 3000);
    type.element = elements[random_chance(random, 60) ? 0 : random_between(random, 0, 4)];
    return type;
}

static void movement_input(op_case *c, uint32_t input, pen_tensor_type type) {
    c->inputs[input].type = type;
    if (type.element == PEN_INT64) {
        c->inputs[input].low = -100;
        c->inputs[input].high = 100;
    }
    if (c->input_count <= input) c->input_count = input + 1;
}

// A constant operand of integers; `integers` must outlive the case.
static void movement_constant(op_case *c, uint32_t input, const int64_t *integers, uint32_t count) {
    c->inputs[input].type = op_type(PEN_INT64, 1, (int)count);
    c->inputs[input].data = integers;
    c->inputs[input].is_constant = true;
    if (c->input_count <= input) c->input_count = input + 1;
}

static void transpose_equals_reference(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < MOVEMENT_CASES; seed++) {
        random_case random = {seed, 0};
        op_case c = {.op = "transpose"};
        movement_input(&c, 0, movement_type(&random, 0));
        const uint32_t rank = c.inputs[0].type.shape.rank;
        int64_t perm[PEN_RANK_LIMIT];
        for (uint32_t d = 0; d < rank; d++) {
            const int64_t other = random_between(&random, 0, d);
            perm[d] = perm[other];
            perm[other] = d;
        }
        c.attributes[0] = pen_attribute_ints("perm", rank, perm);
        c.attribute_count = random_chance(&random, 85) ? 1 : 0;
        op_check_device(&c, seed, 0);
    }
}

static void expand_and_tile_equal_reference(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < MOVEMENT_CASES; seed++) {
        random_case random = {seed, 0};
        const pen_tensor_type y = movement_type(&random, 1);
        op_case expand = {.op = "expand"};
        movement_input(&expand, 0, random_broadcast_of(&random, &y));
        movement_constant(&expand, 1, y.shape.dims, y.shape.rank);
        op_check_device(&expand, seed, 0);
        op_case tile = {.op = "tile"};
        int64_t repeats[PEN_RANK_LIMIT];
        movement_input(&tile, 0, random_type(&random, 1, 4, 7, 500));
        for (uint32_t d = 0; d < tile.inputs[0].type.shape.rank; d++) {
            repeats[d] = random_between(&random, 1, 3);
        }
        movement_constant(&tile, 1, repeats, tile.inputs[0].type.shape.rank);
        op_check_device(&tile, seed, 0);
    }
}

static void concat_and_split_equal_reference(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < MOVEMENT_CASES; seed++) {
        random_case random = {seed, 0};
        const pen_tensor_type type = movement_type(&random, 1);
        const uint32_t axis = (uint32_t)random_between(&random, 0, type.shape.rank - 1);
        const uint32_t parts = (uint32_t)random_between(&random, 1, 4);
        int64_t sizes[4], total = 0;
        op_case concat = {.op = "concat", .attribute_count = 1};
        concat.attributes[0] = pen_attribute_int("axis", (int64_t)axis - type.shape.rank);
        for (uint32_t i = 0; i < parts; i++) {
            pen_tensor_type part = type;
            part.shape.dims[axis] = sizes[i] = random_between(&random, 0, 9);
            total += sizes[i];
            movement_input(&concat, i, part);
        }
        op_check_device(&concat, seed, 0);
        op_case split = {.op = "split", .attribute_count = 1, .output_count = parts};
        split.attributes[0] = pen_attribute_int("axis", axis);
        pen_tensor_type whole = type;
        const bool equal = random_chance(&random, 30);
        whole.shape.dims[axis] = equal ? parts * 3 : total;
        movement_input(&split, 0, whole);
        if (!equal) movement_constant(&split, 1, sizes, parts);
        op_check_device(&split, seed, 0);
    }
}

static void slices_equal_reference(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < MOVEMENT_CASES; seed++) {
        random_case random = {seed, 0};
        const pen_tensor_type type = movement_type(&random, 1);
        int64_t integers[4][PEN_RANK_LIMIT];
        const uint32_t rank = type.shape.rank;
        for (uint32_t d = 0; d < rank; d++) {
            const int64_t dim = type.shape.dims[d];
            integers[0][d] = random_between(&random, -dim - 2, dim + 2);
            integers[1][d] = random_between(&random, -dim - 2, dim + 2);
            integers[2][d] = d;
            integers[3][d] = random_chance(&random, 60) ? 1 : random_between(&random, 1, 3);
            if (random_chance(&random, 20)) integers[3][d] = -integers[3][d];
        }
        op_case slice = {.op = "slice"};
        movement_input(&slice, 0, type);
        for (uint32_t i = 0; i < 4; i++) {
            movement_constant(&slice, i + 1, integers[i], rank);
        }
        op_check_device(&slice, seed, 0);
        op_built built;
        CHECK_OK(op_build(&slice, &built));
        const pen_tensor_type part = *pen_value_type(built.graph, built.outputs[0]);
        op_built_free(&built);
        if (!pen_element_is_float(part.element)) continue;
        op_case backward = {.op = "slice_backward", .attribute_count = 1};
        backward.attributes[0] = pen_attribute_ints("shape", rank, type.shape.dims);
        movement_input(&backward, 0, part);
        for (uint32_t i = 0; i < 4; i++) {
            movement_constant(&backward, i + 1, integers[i], rank);
        }
        op_check_device(&backward, seed, 1e-6);
    }
}

static void pads_equal_reference(void **state) {
    (void)state;
    static const char *const modes[] = {"constant", "reflect", "edge"};
    for (uint64_t seed = 0; seed < MOVEMENT_CASES; seed++) {
        random_case random = {seed, 0};
        op_case c = {.op = "pad", .attribute_count = 1};
        const char *mode = modes[random_chance(&random, 80) ? 0 : random_between(&random, 1, 2)];
        c.attributes[0] = pen_attribute_text("mode", mode);
        pen_tensor_type type = random_type(&random, 1, 4, 12, 2000);
        int64_t pads[2 * PEN_RANK_LIMIT];
        const uint32_t rank = type.shape.rank;
        for (uint32_t d = 0; d < rank; d++) {
            type.shape.dims[d] += 3;
            pads[d] = random_between(&random, mode[0] == 'c' ? -2 : 0, 2);
            pads[rank + d] = random_between(&random, mode[0] == 'c' ? -1 : 0, 2);
        }
        movement_input(&c, 0, type);
        movement_constant(&c, 1, pads, 2 * rank);
        if (mode[0] == 'c' && random_chance(&random, 50)) {
            movement_input(&c, 2, op_type(PEN_FLOAT32, 0));
        }
        op_check_device(&c, seed, 0);
    }
}

static void gathers_equal_reference(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < MOVEMENT_CASES; seed++) {
        random_case random = {seed, 0};
        const pen_tensor_type data = movement_type(&random, 1);
        const uint32_t axis = (uint32_t)random_between(&random, 0, data.shape.rank - 1);
        op_case c = {.op = "gather", .attribute_count = 1};
        c.attributes[0] = pen_attribute_int("axis", axis);
        movement_input(&c, 0, data);
        pen_tensor_type indices = random_type(&random, 0, 2, 6, 20);
        indices.element = random_chance(&random, 50) ? PEN_INT64 : PEN_INT32;
        movement_input(&c, 1, indices);
        c.inputs[1].low = -(double)data.shape.dims[axis];
        c.inputs[1].high = (double)data.shape.dims[axis];
        if (data.shape.rank + indices.shape.rank > PEN_RANK_LIMIT) continue;
        op_check_device(&c, seed, 0);
        if (data.element != PEN_FLOAT32 && data.element != PEN_FLOAT64) continue;
        op_built built;
        CHECK_OK(op_build(&c, &built));
        op_case backward = {.op = "gather_backward", .attribute_count = 2};
        backward.attributes[0] = pen_attribute_int("axis", axis);
        backward.attributes[1] = pen_attribute_ints("shape", data.shape.rank, data.shape.dims);
        movement_input(&backward, 0, *pen_value_type(built.graph, built.outputs[0]));
        op_built_free(&built);
        backward.inputs[1] = c.inputs[1];
        backward.input_count = 2;
        op_check_device(&backward, seed, 1e-5);
        movement_input(&backward, 2, data); // a sum to add to
        op_check_device(&backward, seed, 1e-5);
    }
}

static void stacks_equal_reference(void **state) {
    (void)state;
    static const pen_element_type elements[] = {PEN_FLOAT32, PEN_INT32, PEN_INT64, PEN_FLOAT64};
    for (uint64_t seed = 0; seed < 24; seed++) {
        random_case random = {seed, 0};
        op_case c = {.op = "stack_rows", .input_count = 1, .attribute_count = 3};
        c.inputs[0].type = random_type(&random, 1, 4, 6, 200);
        c.inputs[0].type.element = elements[seed % 4];
        c.inputs[0].low = -9;
        c.inputs[0].high = 9;
        const pen_shape *shape = &c.inputs[0].type.shape;
        const uint32_t tail = (uint32_t)random_between(&random, 0, shape->rank);
        const int64_t rows = pen_shape_count(shape, 0, shape->rank - tail);
        const int64_t each = rows + random_between(&random, 0, 3);
        c.attributes[0] = pen_attribute_int("tail", tail);
        c.attributes[1] = pen_attribute_int("each", each);
        c.attributes[2] = pen_attribute_int("capacity", each * random_between(&random, 2, 3));
        op_check_device(&c, seed, 1e-6);
    }
}

PEN_TEST_MAIN(cmocka_unit_test(stacks_equal_reference),
              cmocka_unit_test(transpose_equals_reference),
              cmocka_unit_test(expand_and_tile_equal_reference),
              cmocka_unit_test(concat_and_split_equal_reference),
              cmocka_unit_test(slices_equal_reference), cmocka_unit_test(pads_equal_reference),
              cmocka_unit_test(gathers_equal_reference))
