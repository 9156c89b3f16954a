// What operators say of how positions read positions: one position, computed from what it is said
// to read, is that of the whole.
#include "graph/axis_link.h"

#include <string.h>

#include "tests/support/dice.h"

// Positions first … first + count - 1 along `axis` of a tensor, in memory of `arena`.
static op_case_input cut(const pen_tensor *tensor, uint32_t axis, int64_t first, int64_t count,
                         pen_arena *arena) {
    const pen_shape *shape = &tensor->type.shape;
    const size_t row = (size_t)pen_shape_count(shape, axis + 1, shape->rank) *
                       pen_element_bytes(tensor->type.element);
    const int64_t outer = pen_shape_count(shape, 0, axis), dim = shape->dims[axis];
    op_case_input input = {.type = tensor->type};
    char *bytes;
    CHECK_OK(PEN_NEW(arena, (size_t)(outer * count) * row, &bytes));
    for (int64_t i = 0; i < outer; i++) {
        memcpy(bytes + (size_t)(i * count) * row,
               (const char *)tensor->data + (size_t)(i * dim + first) * row, (size_t)count * row);
    }
    input.type.shape.dims[axis] = count;
    input.data = bytes;
    return input;
}

static void clear_causal(op_case *c) {
    for (uint32_t i = 0; i < c->attribute_count; i++) {
        if (strcmp(c->attributes[i].name, "causal") == 0) c->attributes[i].value.integer = 0;
    }
}

// The case with the operands that position `at` reads.
static op_case one_position(const op_case *c, const op_built *built, const run_graph *run,
                            const pen_axis_link *links, int64_t at) {
    op_case one = *c;
    for (uint32_t i = 0; i < c->input_count; i++) {
        const op_case_input *input = &c->inputs[i];
        if (input->is_absent || input->is_constant) continue;
        const pen_tensor *tensor = &run->tensors[built->inputs[i].index];
        if (links[i].reads == PEN_READS_ALL) {
            one.inputs[i].data = tensor->data;
        } else {
            const bool is_same = links[i].reads == PEN_READS_SAME;
            one.inputs[i] =
                cut(tensor, links[i].axis, is_same ? at : 0, is_same ? 1 : at + 1, run->arena);
            if (!is_same) clear_causal(&one);
        }
    }
    return one;
}

// The outputs of the operands that position `at` reads are the whole outputs at `at`, to the bit.
static void check_position(const op_case *c, const op_built *built, const run_graph *run,
                           const pen_axis_link *links, uint32_t axis, int64_t at) {
    const op_case one = one_position(c, built, run, links, at);
    const uint32_t output_count = c->output_count == 0 ? 1 : c->output_count;
    op_built alone;
    run_graph alone_run;
    CHECK_OK(op_build(&one, &alone));
    CHECK_OK(run_graph_init(&alone_run, alone.graph, alone.arena));
    op_fill(&one, &alone, 3, &alone_run);
    CHECK_OK(run_graph_all(&alone_run));
    for (uint32_t o = 0; o < output_count; o++) {
        const pen_tensor *found = &alone_run.tensors[alone.outputs[o].index];
        const op_case_input wanted =
            cut(&run->tensors[built->outputs[o].index], axis, at, 1, run->arena);
        assert_true(pen_tensor_type_equal(&found->type, &wanted.type));
        for (int64_t k = 0; k < pen_tensor_count(found); k++) {
            const double number = pen_element_read(found->type.element, wanted.data, k);
            CHECK(pen_tensor_get(found, k) == number, "%s axis %u position %lld: %g, not %g", c->op,
                  axis, (long long)at, pen_tensor_get(found, k), number);
        }
    }
    op_built_free(&alone);
}

// `known` has bit d where dimension d of the outputs is one of which all is said.
static void check_links(const op_case *c, unsigned known) {
    op_built built;
    run_graph run;
    CHECK_OK(op_build(c, &built));
    CHECK_OK(run_graph_init(&run, built.graph, built.arena));
    op_fill(c, &built, 3, &run);
    CHECK_OK(run_graph_all(&run));
    const pen_node *node = pen_graph_node(built.graph, built.node);
    const pen_shape shape = pen_value_type(built.graph, built.outputs[0])->shape;
    for (uint32_t axis = 0; axis < shape.rank; axis++) {
        pen_axis_link links[OP_CASE_INPUTS];
        bool is_known = true, is_cut = false;
        for (uint32_t i = 0; i < c->input_count; i++) {
            if (c->inputs[i].is_absent) continue;
            links[i] = pen_node_axis_link(built.graph, node, axis, i);
            is_known = is_known && links[i].reads != PEN_READS_UNKNOWN;
            is_cut = is_cut || links[i].reads == PEN_READS_SAME;
        }
        is_known = is_known && is_cut;
        CHECK(is_known == ((known >> axis & 1) != 0), "%s axis %u", c->op, axis);
        for (int64_t at = 0; is_known && at < shape.dims[axis]; at++) {
            check_position(c, &built, &run, links, axis, at);
        }
    }
    op_built_free(&built);
}

#define F32(...)                                                                                   \
    { .type = op_type(PEN_FLOAT32, __VA_ARGS__) }

// Matrices by matrices and vectors, with dimensions before them that broadcast, and turned.
static void products(void **state) {
    (void)state;
    check_links(
        &(op_case){.op = "matmul", .input_count = 2, .inputs = {F32(3, 2, 3, 4), F32(2, 4, 5)}}, 7);
    check_links(&(op_case){.op = "matmul",
                           .input_count = 2,
                           .inputs = {F32(4, 1, 2, 3, 4), F32(4, 3, 2, 4, 5)}},
                15);
    check_links(
        &(op_case){.op = "matmul", .input_count = 2, .inputs = {F32(1, 4), F32(3, 2, 4, 5)}}, 3);
    check_links(
        &(op_case){.op = "matmul", .input_count = 2, .inputs = {F32(3, 2, 3, 4), F32(1, 4)}}, 3);
    op_case turned = {
        .op = "matmul",
        .input_count = 2,
        .inputs = {F32(3, 2, 4, 3), F32(3, 2, 5, 4)},
        .attribute_count = 2,
        .attributes = {pen_attribute_int("transA", 1), pen_attribute_int("transB", 1)}};
    check_links(&turned, 7);
    op_case gemm = {.op = "gemm",
                    .input_count = 3,
                    .inputs = {F32(2, 3, 4), F32(2, 5, 4), F32(1, 5)},
                    .attribute_count = 1,
                    .attributes = {pen_attribute_int("transB", 1)}};
    check_links(&gemm, 3);
    gemm.inputs[2] = (op_case_input)F32(2, 3, 1);
    check_links(&gemm, 3);
}

static void elementwise(void **state) {
    (void)state;
    check_links(
        &(op_case){.op = "add", .input_count = 2, .inputs = {F32(3, 2, 3, 4), F32(2, 3, 1)}}, 7);
    check_links(&(op_case){.op = "less", .input_count = 2, .inputs = {F32(2, 3, 4), F32(1, 4)}}, 3);
    check_links(&(op_case){.op = "gelu", .input_count = 1, .inputs = {F32(2, 3, 4)}}, 3);
    op_case cast = {.op = "cast",
                    .input_count = 1,
                    .inputs = {F32(2, 3, 4)},
                    .attribute_count = 1,
                    .attributes = {pen_attribute_text("to", "float64")}};
    check_links(&cast, 3);
    check_links(
        &(op_case){
            .op = "where",
            .input_count = 3,
            .inputs = {{.type = op_type(PEN_BOOL, 2, 3, 4), .high = 2}, F32(2, 3, 4), F32(0)}},
        3);
}

static void rows(void **state) {
    (void)state;
    static const int64_t axes[] = {-1};
    check_links(&(op_case){.op = "softmax", .input_count = 1, .inputs = {F32(3, 2, 3, 4)}}, 3);
    check_links(&(op_case){.op = "layer_normalization",
                           .input_count = 3,
                           .inputs = {F32(3, 2, 3, 4), F32(1, 4), F32(1, 4)}},
                3);
    check_links(&(op_case){.op = "rms_normalization",
                           .input_count = 2,
                           .inputs = {F32(3, 2, 3, 4), F32(1, 4)}},
                3);
    op_case sum = {
        .op = "reduce_sum", .input_count = 2, .inputs = {F32(3, 2, 3, 4), constant_ints(1, axes)}};
    check_links(&sum, 3);
    sum.attribute_count = 1;
    sum.attributes[0] = pen_attribute_int("keepdims", 0);
    check_links(&sum, 3);
}

// Along the dimension that they work on, concat, split and slice say nothing.
static void moves(void **state) {
    (void)state;
    static const int64_t perm[] = {2, 0, 1}, zeros[] = {0, 1}, ends[] = {9, 3}, axes[] = {0, 2};
    op_case turn = {.op = "transpose",
                    .input_count = 1,
                    .inputs = {F32(3, 2, 3, 4)},
                    .attribute_count = 1,
                    .attributes = {pen_attribute_ints("perm", 3, perm)}};
    check_links(&turn, 7);
    op_case join = {.op = "concat",
                    .input_count = 2,
                    .inputs = {F32(3, 2, 3, 4), F32(3, 2, 3, 2)},
                    .attribute_count = 1,
                    .attributes = {pen_attribute_int("axis", -1)}};
    check_links(&join, 3);
    op_case part = {.op = "split",
                    .input_count = 1,
                    .inputs = {F32(3, 2, 3, 4)},
                    .output_count = 2,
                    .attribute_count = 1,
                    .attributes = {pen_attribute_int("axis", 2)}};
    check_links(&part, 3);
    check_links(&(op_case){.op = "slice",
                           .input_count = 4,
                           .inputs = {F32(3, 2, 3, 4), constant_ints(2, zeros),
                                      constant_ints(2, ends), constant_ints(2, axes)}},
                3);
    op_case_input indices = {.type = op_type(PEN_INT64, 2, 2, 3), .high = 4};
    op_case pick = {.op = "gather",
                    .input_count = 2,
                    .inputs = {F32(3, 2, 4, 3), indices},
                    .attribute_count = 1,
                    .attributes = {pen_attribute_int("axis", 1)}};
    check_links(&pick, 15);
    indices.type = op_type(PEN_INT64, 2, 2, 3);
    op_case each = {.op = "gather_elements",
                    .input_count = 2,
                    .inputs = {F32(2, 2, 4), indices},
                    .attribute_count = 1,
                    .attributes = {pen_attribute_int("axis", 1)}};
    check_links(&each, 3);
}

// Rows of y stand at different places where heads and rows are swapped.
static void attentions(void **state) {
    (void)state;
    op_case c = {.op = "attention",
                 .input_count = 3,
                 .inputs = {F32(4, 1, 2, 5, 4), F32(4, 1, 2, 5, 4), F32(4, 1, 2, 5, 3)},
                 .attribute_count = 3,
                 .attributes = {pen_attribute_int("causal", 1), pen_attribute_int("k_by_row", 0),
                                pen_attribute_int("y_by_row", 0)}};
    check_links(&c, 4);
    c.inputs[1] = (op_case_input)F32(4, 1, 5, 2, 4);
    c.attributes[1] = pen_attribute_int("k_by_row", 1);
    c.attributes[2] = pen_attribute_int("y_by_row", 1);
    check_links(&c, 2);
    c.input_count = 4;
    c.inputs[3] = (op_case_input)F32(2, 5, 1);
    check_links(&c, 2);
    op_built built;
    c.attributes[0] = pen_attribute_int("causal", 0);
    CHECK_OK(op_build(&c, &built));
    const pen_node *node = pen_graph_node(built.graph, built.node);
    assert_int_equal(pen_node_axis_link(built.graph, node, 1, 1).reads, PEN_READS_ALL);
    op_built_free(&built);
}

// A constant mask hides later rows, or it does not.
static void masks(void **state) {
    (void)state;
    enum { N = 4 };
    float added[N][N];
    bool seen[N][N];
    for (int i = 0; i < N; i++) {
        for (int j = 0; j < N; j++) {
            added[i][j] = j > i ? -1e9f : (float)(i - j);
            seen[i][j] = j <= i;
        }
    }
    op_case c = {.op = "attention",
                 .input_count = 4,
                 .inputs = {F32(3, 2, N, 4), F32(3, 2, N, 4), F32(3, 2, N, 3), F32(2, N, N)}};
    for (int round = 0; round < 5; round++) {
        op_built built;
        c.inputs[3].is_constant = true;
        c.inputs[3].data = round < 2 ? (const void *)added : (const void *)seen;
        c.inputs[3].type.element = round < 2 ? PEN_FLOAT32 : PEN_BOOL;
        if (round == 1) added[1][2] = -5;   // a later row counts a little
        if (round == 3) seen[0][0] = false; // a row sees nothing
        if (round == 4) seen[0][0] = seen[2][3] = true;
        CHECK_OK(op_build(&c, &built));
        const pen_node *node = pen_graph_node(built.graph, built.node);
        const pen_axis_reads reads = pen_node_axis_link(built.graph, node, 1, 1).reads;
        CHECK(reads == (round == 0 || round == 2 ? PEN_READS_EARLIER : PEN_READS_ALL), "%d", round);
        op_built_free(&built);
    }
}

static void random_numbers_have_no_positions(void **state) {
    (void)state;
    op_built built;
    const op_case c = {.op = "bernoulli", .input_count = 1, .inputs = {F32(2, 3, 4)}};
    CHECK_OK(op_build(&c, &built));
    const pen_node *node = pen_graph_node(built.graph, built.node);
    assert_int_equal(pen_node_axis_link(built.graph, node, 0, 0).reads, PEN_READS_UNKNOWN);
    op_built_free(&built);
}

PEN_TEST_MAIN(cmocka_unit_test(products), cmocka_unit_test(elementwise), cmocka_unit_test(rows),
              cmocka_unit_test(moves), cmocka_unit_test(attentions), cmocka_unit_test(masks),
              cmocka_unit_test(random_numbers_have_no_positions))
