#include "graph/passes/fuse/lower_einsum.h"

#include <math.h>

#include "tests/support/dice.h"

// Letters name sizes: each has its own, "1" stands for a dimension that is repeated.
static op_case_input letters_tensor(const char *letters) {
    op_case_input input = {.type = {.element = PEN_FLOAT64}};
    for (const char *c = letters; *c != '\0'; c++) {
        input.type.shape.dims[input.type.shape.rank++] = *c == '1' ? 1 : 2 + (*c - 'a') % 3;
    }
    return input;
}

static bool graph_has(const pen_graph *graph, const char *op_name) {
    for (uint32_t n = 0; n < pen_graph_node_count(graph); n++) {
        if (strcmp(pen_graph_node(graph, (pen_node_id){n})->op->name, op_name) == 0) return true;
    }
    return false;
}

// Lowers the case; the numbers stay. Checks whether an einsum is left, and whether there is a
// matrix product.
static void check_lowered(const op_case *c, bool is_left, bool has_product) {
    op_built built;
    run_graph before, after;
    pen_graph *graph;
    const pen_value_id *map;
    const char *equation = c->attributes[0].value.text;
    CHECK_OK(op_build(c, &built));
    CHECK_OK(pen_graph_add_output(built.graph, built.outputs[0]));
    CHECK_OK(pen_lower_einsum(built.graph, &graph, &map));
    CHECK(graph_has(graph, "einsum") == is_left, "%s: einsum", equation);
    CHECK(graph_has(graph, "matmul") == has_product, "%s: matmul", equation);
    CHECK_OK(run_graph_init(&before, built.graph, built.arena));
    CHECK_OK(run_graph_init(&after, graph, built.arena));
    op_fill(c, &built, 7, &before);
    for (uint32_t i = 0; i < c->input_count; i++) {
        const pen_tensor *from = &before.tensors[built.inputs[i].index];
        memcpy(after.tensors[map[built.inputs[i].index].index].data, from->data,
               pen_tensor_type_bytes(&from->type));
    }
    CHECK_OK(run_graph_all(&before));
    CHECK_OK(run_graph_all(&after));
    const pen_value_id output = map[built.outputs[0].index];
    assert_string_equal(pen_value_name(graph, output),
                        pen_value_name(built.graph, built.outputs[0]));
    const pen_tensor *expected = &before.tensors[built.outputs[0].index];
    const pen_tensor *found = &after.tensors[output.index];
    CHECK(pen_tensor_type_equal(&expected->type, &found->type), "%s: another type", equation);
    for (int64_t k = 0; k < pen_tensor_count(expected); k++) {
        const double error = fabs(pen_tensor_get(expected, k) - pen_tensor_get(found, k));
        CHECK(error < 1e-9, "%s: element %lld is off by %g", equation, (long long)k, error);
    }
    op_built_free(&built);
}

static void keeps_numbers(void **state) {
    (void)state;
    static const struct {
        const char *equation;
        const char *operands[3];
        bool is_left, has_product;
    } cases[] = {
        {"ab,bc->ac", {"ab", "bc"}, false, true},
        {"abcd,abed->abce", {"abcd", "abed"}, false, true},
        {"bhqk,bkhd->bqhd", {"bhqk", "bkhd"}, false, true},
        {"ab,cd->cb", {"ab", "cd"}, false, false},
        {"a,b->ab", {"a", "b"}, false, false},
        {"abc->ca", {"abc"}, false, false},
        {"ab,ab->", {"ab", "ab"}, false, true},
        {"ab,ab->ba", {"ab", "ab"}, false, false},
        {"ab,bc,cd->da", {"ab", "bc", "cd"}, false, true},
        {"...ab,...bc->...ac", {"eab", "bc"}, false, true},
        {"ab,ab->ab", {"a1", "ab"}, false, false},
        {"ab,bc->ac", {"a1", "bc"}, false, false},
        {"aab,bc->ac", {"aab", "bc"}, true, false},
        {"ab->ab", {"ab"}, true, false},
        {"abcd,efgh->abcdefgh", {"abcd", "efgh"}, false, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        op_case c = {.op = "einsum",
                     .attribute_count = 1,
                     .attributes = {pen_attribute_text("equation", cases[i].equation)}};
        while (c.input_count < 3 && cases[i].operands[c.input_count] != NULL) {
            c.inputs[c.input_count] = letters_tensor(cases[i].operands[c.input_count]);
            c.input_count++;
        }
        check_lowered(&c, cases[i].is_left, cases[i].has_product);
    }
}

static void leaves_graphs_without_einsum(void **state) {
    (void)state;
    op_case c = {.op = "exp", .input_count = 1, .inputs = {letters_tensor("ab")}};
    op_built built;
    pen_graph *graph;
    const pen_value_id *map;
    CHECK_OK(op_build(&c, &built));
    CHECK_OK(pen_lower_einsum(built.graph, &graph, &map));
    CHECK(graph == built.graph && map == NULL, "a graph was made");
    op_built_free(&built);
}

PEN_TEST_MAIN(cmocka_unit_test(keeps_numbers), cmocka_unit_test(leaves_graphs_without_einsum))
