// What changes places, and what reads where indices say, on an emulated GPU against the reference.
#include <math.h>

#include "tests/support/cuda_check.h"
#include "tests/support/random_case.h"

static op_case_input constant_ints(uint32_t count, const int64_t *data) {
    return (op_case_input){
        .type = op_type(PEN_INT64, 1, (int)count), .data = data, .is_constant = true};
}

static void transposes(void **state) {
    (void)state;
    static const int64_t perms[4][4] = {{0, 2, 1, 3}, {3, 1, 0, 2}, {0, 1, 3, 2}, {1, 0, 2, 3}};
    for (uint64_t seed = 0; seed < 8; seed++) {
        op_case c = {.op = "transpose", .input_count = 1, .attribute_count = seed < 7};
        c.attributes[0] = pen_attribute_ints("perm", 4, perms[seed % 4]);
        c.inputs[0] = (op_case_input){
            .type = op_type(seed < 4 ? PEN_FLOAT32 : PEN_INT64, 4, 3, 5, 4, 7), .high = 100};
        cuda_check(&c, seed, 1e-6);
    }
    op_case narrow = {.op = "transpose", .input_count = 1};
    narrow.inputs[0] = (op_case_input){.type = op_type(PEN_BOOL, 2, 30, 41), .high = 2};
    cuda_check(&narrow, 1, 0);
}

static void copies(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 4; seed++) {
        op_case c = {.op = seed < 2 ? "reorder" : "copy", .input_count = 1};
        c.inputs[0] = (op_case_input){
            .type = op_type(seed % 2 == 0 ? PEN_FLOAT32 : PEN_FLOAT64, 3, 5, 7, 31), .high = 9};
        if (seed < 2) {
            c.attribute_count = 2;
            c.attributes[0] = pen_attribute_int("from_layout", PEN_LAYOUT_PLAIN);
            c.attributes[1] = pen_attribute_int("to_layout", PEN_LAYOUT_PLAIN);
        }
        cuda_check(&c, seed, 1e-6);
    }
    op_case other = {.op = "reorder", .input_count = 1, .attribute_count = 2};
    other.inputs[0].type = op_type(PEN_FLOAT32, 4, 1, 16, 2, 2);
    other.attributes[0] = pen_attribute_int("from_layout", PEN_LAYOUT_PLAIN);
    other.attributes[1] = pen_attribute_int("to_layout", 1);
    cuda_check_place(&other, false);
}

static void expansions(void **state) {
    (void)state;
    static const int64_t shape[] = {4, 6, 5};
    for (uint64_t seed = 0; seed < 3; seed++) {
        op_case c = {.op = "expand", .input_count = 2};
        c.inputs[0].type = seed == 0   ? op_type(PEN_FLOAT32, 3, 4, 1, 5)
                           : seed == 1 ? op_type(PEN_FLOAT32, 1, 1)
                                       : op_type(PEN_FLOAT32, 2, 6, 1);
        c.inputs[1] = constant_ints(3, shape);
        cuda_check(&c, seed, 1e-6);
    }
}

static void parts(void **state) {
    (void)state;
    static const int64_t sizes[] = {2, 0, 7};
    for (uint64_t seed = 0; seed < 6; seed++) {
        const int axis = (int)(seed % 3);
        op_case whole = {.op = "concat", .input_count = 3, .attribute_count = 1};
        whole.attributes[0] = pen_attribute_int("axis", axis - 3);
        for (uint32_t i = 0; i < 3; i++) {
            int dims[] = {3, 4, 5};
            dims[axis] = (int)i + 1;
            whole.inputs[i].type = op_type(PEN_FLOAT32, 3, dims[0], dims[1], dims[2]);
        }
        cuda_check(&whole, seed, 1e-6);
        op_case split = {.op = "split", .input_count = seed < 3 ? 2 : 1, .output_count = 3};
        split.attribute_count = 1;
        split.attributes[0] = pen_attribute_int("axis", axis);
        split.inputs[0].type = op_type(PEN_FLOAT32, 3, 9, 9, 9);
        split.inputs[1] = constant_ints(3, sizes);
        if (seed == 5) split.absent_outputs = 2;
        cuda_check(&split, seed, 1e-6);
    }
    for (uint64_t seed = 0; seed < 3; seed++) {
        op_case many = {.op = "concat", .input_count = 15, .attribute_count = 1};
        many.attributes[0] = pen_attribute_int("axis", 1);
        for (uint32_t i = 0; i < many.input_count; i++)
            many.inputs[i].type = op_type(PEN_FLOAT32, 3, 3, (int)(i * i % 5), 4);
        cuda_check(&many, seed, 1e-6);
    }
}

static void slices(void **state) {
    (void)state;
    static const int64_t starts[3][2] = {{1, 2}, {-2, 100}, {0, 8}};
    static const int64_t ends[3][2] = {{4, 9}, {-9, -100}, {6, 1}};
    static const int64_t axes[3][2] = {{0, 1}, {0, 2}, {2, 1}};
    static const int64_t steps[3][2] = {{1, 3}, {-1, -2}, {2, -3}};
    for (uint64_t seed = 0; seed < 6; seed++) {
        const uint64_t at = seed / 2;
        const bool is_backward = seed % 2 == 1;
        static const int64_t whole[] = {6, 10, 7};
        static const int taken[3][3] = {{3, 3, 7}, {5, 10, 4}, {6, 3, 3}};
        op_case c = {.op = is_backward ? "slice_backward" : "slice", .input_count = 5};
        c.inputs[0].type = is_backward
                               ? op_type(PEN_FLOAT32, 3, taken[at][0], taken[at][1], taken[at][2])
                               : op_type(PEN_FLOAT32, 3, 6, 10, 7);
        c.inputs[1] = constant_ints(2, starts[at]);
        c.inputs[2] = constant_ints(2, ends[at]);
        c.inputs[3] = constant_ints(2, axes[at]);
        c.inputs[4] = constant_ints(2, steps[at]);
        c.attribute_count = is_backward;
        c.attributes[0] = pen_attribute_ints("shape", 3, whole);
        cuda_check(&c, seed, 1e-6);
    }
}

// Indices that come twice add up; they count from the end below 0.
static void gathers(void **state) {
    (void)state;
    static const int64_t shape[] = {3, 6, 7};
    for (uint64_t seed = 0; seed < 12; seed++) {
        const bool is_backward = seed % 2 == 1;
        const int axis = (int)(seed / 2 % 3);
        int dims[] = {3, 6, 7}, picked[] = {3, 6, 7, 0};
        const int dim = dims[axis];
        for (int d = 3; d > axis; d--)
            picked[d] = picked[d - 1];
        picked[axis] = 4, picked[axis + 1] = 5;
        op_case c = {.op = is_backward ? "gather_backward" : "gather", .attribute_count = 1};
        c.attributes[0] = pen_attribute_int("axis", axis);
        c.attributes[1] = pen_attribute_ints("shape", 3, shape);
        c.attribute_count += is_backward;
        c.input_count = is_backward && seed > 6 ? 3 : 2;
        c.inputs[0].type = is_backward
                               ? op_type(PEN_FLOAT32, 4, picked[0], picked[1], picked[2], picked[3])
                               : op_type(PEN_FLOAT32, 3, 3, 6, 7);
        c.inputs[1] =
            (op_case_input){.type = op_type(seed % 4 < 2 ? PEN_INT64 : PEN_INT32, 2, 4, 5),
                            .low = -dim,
                            .high = dim};
        c.inputs[2].type = op_type(PEN_FLOAT32, 3, 3, 6, 7);
        cuda_check(&c, seed, 1e-6);
    }
    for (uint64_t seed = 0; seed < 2; seed++) {
        op_case c = {.op = "gather", .input_count = 2};
        c.inputs[0] =
            (op_case_input){.type = op_type(seed ? PEN_INT64 : PEN_BOOL, 2, 9, 31), .high = 2};
        c.inputs[1] = (op_case_input){.type = op_type(PEN_INT64, 1, 40), .low = -9, .high = 9};
        cuda_check(&c, seed, 0);
    }
}

// One by one, of tensors of which the indices have a part; updates of one place come in order.
static void elements(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 18; seed++) {
        const int axis = (int)(seed % 3);
        const bool puts = seed % 2, sums = seed % 4 == 3;
        op_case c = {.op = puts ? "scatter_elements" : "gather_elements", .attribute_count = 1};
        const pen_element_type element = seed < 12 || sums ? PEN_FLOAT32 : PEN_INT64;
        c.input_count = puts ? 3 : 2;
        c.attributes[0] = pen_attribute_int("axis", axis - (seed < 9 ? 3 : 0));
        if (puts) {
            c.attributes[1] = pen_attribute_text("reduction", sums ? "add" : "none");
            c.attribute_count = 2;
        }
        c.inputs[0] = (op_case_input){.type = op_type(element, 3, 5, 6, 7), .high = 9};
        const int count = axis == 0 ? 5 : axis == 1 ? 6 : 7;
        c.inputs[1] = (op_case_input){.type = op_type(seed % 5 ? PEN_INT64 : PEN_INT32, 3, 5, 4, 7),
                                      .low = -count,
                                      .high = count};
        c.inputs[1].type.shape.dims[axis] = 11;
        c.inputs[2] = (op_case_input){.type = c.inputs[1].type, .high = 9};
        c.inputs[2].type.element = element;
        cuda_check(&c, seed, 1e-6);
    }
}

// Updates are joined with what is there, as an operator's text says; integers, too.
static void elements_that_are_joined(void **state) {
    (void)state;
    static const char *const reductions[] = {"add", "mul", "max", "min"};
    for (uint64_t seed = 0; seed < 12; seed++) {
        const pen_element_type element = seed < 4 ? PEN_FLOAT32 : seed < 8 ? PEN_INT64 : PEN_INT32;
        op_case c = {.op = "scatter_elements", .input_count = 3, .attribute_count = 2};
        c.attributes[0] = pen_attribute_int("axis", 1);
        c.attributes[1] = pen_attribute_text("reduction", reductions[seed % 4]);
        c.inputs[0] = (op_case_input){.type = op_type(element, 2, 5, 6), .low = -9, .high = 9};
        c.inputs[1] = (op_case_input){.type = op_type(PEN_INT64, 2, 5, 11), .low = -6, .high = 6};
        c.inputs[2] = (op_case_input){.type = op_type(element, 2, 5, 11), .low = -9, .high = 9};
        cuda_check(&c, seed, 1e-5);
        c.op = "scatter_nd";
        c.attributes[0] = c.attributes[1];
        c.attribute_count = 1;
        c.inputs[1].type = op_type(PEN_INT64, 2, 40, 2);
        c.inputs[1].low = -5, c.inputs[1].high = 5;
        c.inputs[2].type = op_type(element, 1, 40);
        cuda_check(&c, seed, 1e-5);
    }
}

// Tuples of one index to all of them, in batches and without; rows that come twice are put in
// order.
static void tuples(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 24; seed++) {
        const bool puts = seed % 2, sums = seed % 4 == 3;
        const int batch = seed % 3 == 2, depth = (int)(seed / 2 % (uint64_t)(5 - batch));
        const pen_element_type element = sums || seed < 12 ? PEN_FLOAT32
                                         : seed < 18       ? PEN_BOOL
                                                           : PEN_INT64;
        op_case c = {.op = puts ? "scatter_nd" : "gather_nd", .attribute_count = 1};
        if (depth == 0) continue; // a tuple of nothing
        c.attributes[0] = pen_attribute_int("batch_dims", puts ? 0 : batch);
        if (puts)
            c.attributes[c.attribute_count++] =
                pen_attribute_text("reduction", sums ? "add" : "none");
        c.input_count = puts ? 3 : 2;
        c.inputs[0] = (op_case_input){.type = op_type(element, 4, 4, 5, 6, 7), .high = 2};
        c.inputs[1] =
            (op_case_input){.type = op_type(seed % 5 ? PEN_INT64 : PEN_INT32, 3, 4, 9, depth),
                            .low = -4,
                            .high = 4};
        if (puts) {
            c.inputs[2] = (op_case_input){.type = op_type(element, 0), .high = 2};
            c.inputs[2].type.shape = (pen_shape){.rank = 6 - (uint32_t)depth, .dims = {4, 9}};
            for (int d = depth; d < 4; d++)
                c.inputs[2].type.shape.dims[2 + d - depth] = 4 + d;
        }
        cuda_check(&c, seed, 1e-6);
    }
}

static void indices_that_are_outside_are_told(void **state) {
    (void)state;
    static const int64_t indices[] = {0, -3, 1, 3, 7};
    op_case c = {.op = "gather", .input_count = 2};
    c.inputs[0].type = op_type(PEN_FLOAT32, 2, 3, 4);
    c.inputs[1] = (op_case_input){.type = op_type(PEN_INT64, 1, 5), .data = indices};
    static const int64_t right[] = {0, -3, 1, 2, -1};
    cuda_check_refuses(&c, indices, right, sizeof indices,
                       "the index at position 3 is outside of [-3, 3)");
    static const int64_t pairs[] = {0, 3, -3, -4, 1, 4, 3, 0},
                         right_pairs[] = {0, 3, -3, -4, 1, 2, 2, 0};
    op_case nd = {.op = "gather_nd", .input_count = 2};
    nd.inputs[0] = c.inputs[0];
    nd.inputs[1] = (op_case_input){.type = op_type(PEN_INT64, 2, 4, 2), .data = pairs};
    cuda_check_refuses(&nd, pairs, right_pairs, sizeof pairs,
                       "the index at position 5 is outside of [-4, 4)");
}

// What an index outside picks, or puts, makes the result not a number: on other devices, too, the
// loss is none then, and nobody updates.
static void what_is_outside_is_not_a_number(void **state) {
    (void)state;
    static const int64_t wrong[] = {0, 1, 7, 2};
    static const char *const ops[] = {"gather_nd", "scatter_nd", "gather_elements",
                                      "scatter_elements"};
    for (uint64_t op = 0; op < 4; op++) {
        const bool puts = op % 2 == 1, are_tuples = op < 2;
        op_case c = {.op = ops[op], .input_count = puts ? 3 : 2};
        op_built built;
        run_graph run;
        uint32_t lost = 0;
        c.inputs[0].type = are_tuples ? op_type(PEN_FLOAT32, 2, 5, 3) : op_type(PEN_FLOAT32, 1, 5);
        c.inputs[1] = (op_case_input){.type = are_tuples ? op_type(PEN_INT64, 2, 4, 1)
                                                         : op_type(PEN_INT64, 1, 4),
                                      .data = wrong};
        c.inputs[2].type = are_tuples ? op_type(PEN_FLOAT32, 2, 4, 3) : op_type(PEN_FLOAT32, 1, 4);
        CHECK_OK(op_build(&c, &built));
        CHECK_OK(run_graph_init(&run, built.graph, built.arena));
        op_fill(&c, &built, op, &run);
        cuda_run(&built, PEN_PRECISION_FLOAT32, op, &run);
        const pen_value_id result = pen_graph_node(built.graph, built.node)->outputs[0];
        const pen_tensor *found = &run.tensors[result.index];
        for (int64_t k = 0; k < pen_tensor_count(found); k++)
            lost += isnan(pen_tensor_get(found, k)) ? 1 : 0;
        CHECK(lost > 0, "%s has a number everywhere", c.op);
        op_built_free(&built);
    }
}

PEN_TEST_MAIN(cmocka_unit_test(transposes), cmocka_unit_test(copies), cmocka_unit_test(expansions),
              cmocka_unit_test(parts), cmocka_unit_test(slices), cmocka_unit_test(gathers),
              cmocka_unit_test(elements), cmocka_unit_test(elements_that_are_joined),
              cmocka_unit_test(tuples), cmocka_unit_test(indices_that_are_outside_are_told),
              cmocka_unit_test(what_is_outside_is_not_a_number))
