// Operators that formats lack are spelled in nodes that they have, and found again.
#include "graph/passes/fuse/spell_layers.h"

#include <math.h>
#include <string.h>

#include "base/random.h"
#include "device/reference/reference_evaluate.h"
#include "graph/import/import.h"
#include "graph/import/onnx/onnx_export.h"
#include "graph/import/onnx/onnx_mapping.h"
#include "graph/op.h"
#include "graph/passes/fuse/fuse_layers.h"
#include "graph/passes/infer_shapes.h"
#include "graph/passes/remove_dead.h"
#include "tests/support/check.h"
#include "tests/support/kept_arena.h"
#include "tests/support/run_graph.h"
#include "tests/support/scratch.h"

typedef struct spelled_case {
    const char *op;
    pen_tensor_type x;
    pen_tensor_type weights;
    uint32_t weight_count;
    uint32_t attribute_count;
    pen_attribute_given attributes[2];
    uint32_t node_count; // of the spelling
    bool is_found;       // again, by fuse_layers
} spelled_case;

#define STATES                                                                                     \
    {                                                                                              \
        PEN_FLOAT32, {                                                                             \
            3, {                                                                                   \
                2, 4, 6                                                                            \
            }                                                                                      \
        }                                                                                          \
    }
#define VECTOR(count)                                                                              \
    {                                                                                              \
        PEN_FLOAT32, {                                                                             \
            1, {                                                                                   \
                count                                                                              \
            }                                                                                      \
        }                                                                                          \
    }

static const spelled_case *all_cases(uint32_t *out_count) {
    static spelled_case cases[] = {
        {"gelu", STATES, VECTOR(1), 0, 0, {{0}}, 5, true},
        {"gelu", STATES, VECTOR(1), 0, 1, {{0}}, 8, true},
        {"swish", STATES, VECTOR(1), 0, 0, {{0}}, 2, true},
        {"swish", STATES, VECTOR(1), 0, 1, {{0}}, 3, true},
        {"mish", STATES, VECTOR(1), 0, 0, {{0}}, 3, false},
        {"log_sigmoid", STATES, VECTOR(1), 0, 0, {{0}}, 3, false},
        {"tanh_shrink", STATES, VECTOR(1), 0, 0, {{0}}, 2, false},
        {"rms_normalization", STATES, VECTOR(6), 1, 1, {{0}}, 6, true},
        {"rms_normalization", STATES, VECTOR(6), 0, 0, {{0}}, 5, true},
        {"rms_normalization", STATES, {PEN_FLOAT32, {2, {4, 6}}}, 1, 1, {{0}}, 6, true},
        {"layer_normalization", STATES, VECTOR(6), 0, 1, {{0}}, 7, true},
        {"layer_normalization", STATES, VECTOR(6), 2, 1, {{0}}, 1, true},
        {"group_normalization", STATES, VECTOR(4), 2, 2, {{0}}, 8, true},
        {"group_normalization", STATES, VECTOR(4), 0, 2, {{0}}, 4, true},
        {"group_normalization", STATES, VECTOR(2), 2, 2, {{0}}, 8, false},
    };
    cases[1].attributes[0] = pen_attribute_text("approximate", "tanh");
    cases[3].attributes[0] = pen_attribute_float("alpha", 1.5);
    cases[7].attributes[0] = pen_attribute_float("epsilon", 0.25);
    cases[9].attributes[0] = pen_attribute_int("axis", 1);
    cases[10].attributes[0] = pen_attribute_int("axis", 2);
    cases[11].attributes[0] = pen_attribute_int("axis", 2);
    for (uint32_t i = 12; i < 15; i++) {
        cases[i].attributes[0] = pen_attribute_int("num_groups", 2);
        cases[i].attributes[1] = pen_attribute_float("epsilon", 0.25);
    }
    *out_count = sizeof cases / sizeof *cases;
    return cases;
}

static pen_graph *build(const spelled_case *c) {
    pen_graph *graph;
    pen_value_id inputs[3], y;
    CHECK_OK(pen_graph_create(keep_arena(), "test", &graph));
    for (uint32_t i = 0; i <= c->weight_count; i++) {
        static const char *const names[] = {"x", "scale", "bias"};
        const pen_value value = {.name = names[i],
                                 .kind = i == 0 ? PEN_VALUE_INPUT : PEN_VALUE_PARAMETER,
                                 .type = i == 0 ? c->x : c->weights,
                                 .trainable = i > 0};
        CHECK_OK(pen_graph_add_value(graph, &value, &inputs[i]));
    }
    pen_node_spec spec = pen_node_spec_make(c->op, "layer");
    const char *const output = "y";
    spec.inputs = inputs;
    spec.input_count = 1 + c->weight_count;
    spec.attributes = c->attributes;
    spec.attribute_count = c->attribute_count;
    spec.output_count = 1;
    spec.output_names = &output;
    CHECK_OK(pen_graph_add_simple(graph, &spec, &y));
    CHECK_OK(pen_graph_add_output(graph, y));
    return graph;
}

static void run(run_graph *r, const pen_graph *graph) {
    CHECK_OK(run_graph_init(r, graph, pen_graph_arena(graph)));
    for (uint32_t v = 0; v < pen_graph_value_count(graph); v++) {
        const pen_value *value = pen_graph_value(graph, (pen_value_id){v});
        if (value->kind != PEN_VALUE_INPUT && value->kind != PEN_VALUE_PARAMETER) continue;
        const pen_random_key key = {1, pen_random_stream(value->name, 0, 0)};
        for (int64_t k = 0; k < pen_tensor_count(&r->tensors[v]); k++) {
            pen_tensor_set(&r->tensors[v], k, 2 * pen_random_normal(key, (uint64_t)k));
        }
    }
    CHECK_OK(run_graph_all(r));
}

static void check_same_result(const pen_graph *a, const pen_graph *b) {
    run_graph first, second;
    run(&first, a);
    run(&second, b);
    for (uint32_t i = 0; i < pen_graph_output_count(a); i++) {
        const pen_value_id y = pen_graph_output(a, i), z = pen_graph_output(b, i);
        assert_string_equal(pen_value_name(a, y), pen_value_name(b, z));
        for (int64_t k = 0; k < pen_tensor_count(&first.tensors[y.index]); k++) {
            const double p = pen_tensor_get(&first.tensors[y.index], k);
            const double q = pen_tensor_get(&second.tensors[z.index], k);
            CHECK(fabs(p - q) <= 2e-6 * (1 + fabs(p)), "%s: element %lld is %g, expected %g",
                  pen_value_name(a, y), (long long)k, q, p);
        }
    }
}

static void spellings_say_the_same(void **state) {
    (void)state;
    uint32_t count;
    const spelled_case *cases = all_cases(&count);
    const pen_infer_options options = {.evaluate = pen_reference_evaluate};
    for (uint32_t i = 0; i < count; i++) {
        pen_graph *graph = build(&cases[i]), *fused, *tidy;
        const pen_graph *spelled;
        CHECK_OK(pen_spell_layers(graph, pen_onnx_spellings, pen_onnx_spelling_count, &spelled));
        CHECK((spelled == graph) == (cases[i].node_count == 1), "case %u", i);
        CHECK(pen_graph_node_count(spelled) == cases[i].node_count, "case %u: %u nodes", i,
              pen_graph_node_count(spelled));
        if (spelled == graph) continue;
        const pen_value_id *map;
        pen_graph *writable;
        memcpy(&writable, &spelled, sizeof writable); // it was made here
        CHECK_OK(pen_infer_shapes(writable, &options));
        check_same_result(graph, spelled);
        CHECK_OK(pen_fuse_layers(writable, 0, NULL, &fused, &map));
        CHECK_OK(pen_remove_dead(fused, 0, NULL, &tidy, &map));
        CHECK((pen_graph_node_count(tidy) == 1) == cases[i].is_found, "case %u: %u nodes", i,
              pen_graph_node_count(tidy));
        if (!cases[i].is_found) continue;
        const pen_node *node = pen_graph_node(tidy, (pen_node_id){0});
        assert_string_equal(node->op->name, cases[i].op);
        assert_int_equal(node->input_count, 1 + cases[i].weight_count);
        check_same_result(graph, tidy);
    }
}

// Numbers of a spelling are no weights to who reads the model.
static void exported_constants_are_no_weights(void **state) {
    (void)state;
    uint32_t count;
    const spelled_case *cases = all_cases(&count);
    for (uint32_t i = 0; i < count; i++) {
        const char *path = scratch_path("layer.onnx");
        CHECK_OK(pen_onnx_export(build(&cases[i]), NULL, path));
        pen_model *model;
        CHECK_OK(pen_model_open(path, NULL, &model));
        uint32_t weights = 0;
        for (uint32_t v = 0; v < pen_graph_value_count(model->graph); v++) {
            weights +=
                pen_graph_value(model->graph, (pen_value_id){v})->kind == PEN_VALUE_PARAMETER;
        }
        CHECK(weights == cases[i].weight_count, "case %u: %u weights", i, weights);
        pen_model_destroy(model);
    }
}

static pen_value_id add_state(pen_graph *graph, const char *name, int64_t a, int64_t b, int64_t c) {
    const int64_t dims[] = {a, b, c};
    const pen_value value = {
        .name = name, .kind = PEN_VALUE_INPUT, .type = pen_tensor_type_make(PEN_FLOAT32, 3, dims)};
    pen_value_id made;
    CHECK_OK(pen_graph_add_value(graph, &value, &made));
    return made;
}

// Examples first becomes time first, between transposes; the results keep names and values.
static void recurrent_nets_have_time_first(void **state) {
    (void)state;
    static const char *const outputs[] = {"y", "h", "c"};
    const pen_infer_options options = {.evaluate = pen_reference_evaluate};
    pen_graph *graph, *writable;
    CHECK_OK(pen_graph_create(check_arena(), "test", &graph));
    const pen_value_id inputs[] = {add_state(graph, "x", 2, 5, 3),
                                   add_state(graph, "w", 2, 16, 3),
                                   add_state(graph, "r", 2, 16, 4),
                                   PEN_VALUE_NONE,
                                   PEN_VALUE_NONE,
                                   add_state(graph, "h0", 2, 2, 4),
                                   add_state(graph, "c0", 2, 2, 4)};
    const pen_attribute_given attributes[] = {pen_attribute_int("layout", 1),
                                              pen_attribute_int("hidden_size", 4),
                                              pen_attribute_text("direction", "bidirectional")};
    pen_node_spec spec = pen_node_spec_make("lstm", "layer");
    spec.inputs = inputs;
    spec.input_count = 7;
    spec.output_count = 3;
    spec.output_names = outputs;
    spec.attributes = attributes;
    spec.attribute_count = 3;
    pen_node_id node;
    CHECK_OK(pen_graph_add_node(graph, &spec, &node));
    for (uint32_t i = 0; i < 3; i++) {
        CHECK_OK(pen_graph_add_output(graph, pen_graph_node(graph, node)->outputs[i]));
    }
    CHECK_OK(pen_infer_shapes(graph, &options));
    const pen_graph *spelled;
    CHECK_OK(pen_spell_layers(graph, pen_onnx_spellings, pen_onnx_spelling_count, &spelled));
    memcpy(&writable, &spelled, sizeof writable); // it was made here
    CHECK_OK(pen_infer_shapes(writable, &options));
    assert_int_equal(pen_graph_node_count(spelled), 7);
    for (uint32_t n = 0; n < 7; n++) {
        const pen_node *made = pen_graph_node(spelled, (pen_node_id){n});
        if (strcmp(made->op->name, "lstm") == 0) assert_int_equal(pen_node_int(made, "layout"), 0);
    }
    check_same_result(graph, spelled);
    pen_arena_destroy(pen_graph_arena(graph));
}

PEN_TEST_MAIN(cmocka_unit_test(recurrent_nets_have_time_first),
              cmocka_unit_test(spellings_say_the_same),
              cmocka_unit_test(exported_constants_are_no_weights))
