// Models of layers as they are written: names, branches, and what is said of mistakes.

#include <math.h>

#include "graph/graph.h"
#include "graph/keras_layers/layer_model.h"
#include "graph/op.h"
#include "tests/support/check.h"

static pen_status build(pen_arena *arena, const char *text, pen_graph **out_graph,
                        pen_layer_builder **out_builder) {
    const pen_yaml_node *root;
    const pen_option_source *source;
    const pen_option_settings settings = {.file = "m.yaml"};
    pen_layer_model model = {.seed = 0};
    PEN_TRY(pen_yaml_parse("m.yaml", text, strlen(text), arena, &root));
    PEN_TRY(pen_option_read(&pen_layer_model_table, root, &settings, arena, &model, &source));
    PEN_TRY(pen_graph_create(arena, "m", out_graph));
    return pen_layer_model_build(&model, source, *out_graph, out_builder);
}

static void layers_get_keras_names(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    pen_graph *graph;
    pen_layer_builder *builder;
    CHECK_OK(build(arena,
                   "inputs: {x: {shape: [8, 8, 1]}}\n"
                   "layers:\n"
                   "  - conv2d: {filters: 2, kernel_size: 3}\n"
                   "  - conv2d: {filters: 2, kernel_size: 3}\n"
                   "  - conv2d: {filters: 2, kernel_size: 3, name: last}\n",
                   &graph, &builder));
    static const char *const names[][2] = {{"conv2d", "kernel"},   {"conv2d", "bias"},
                                           {"conv2d_1", "kernel"}, {"conv2d_1", "bias"},
                                           {"last", "kernel"},     {"last", "bias"}};
    assert_int_equal(pen_layer_weight_count(builder), 6);
    for (uint32_t i = 0; i < 6; i++) {
        const pen_layer_weight *weight = pen_layer_weight_at(builder, i);
        assert_string_equal(weight->layer, names[i][0]);
        assert_string_equal(weight->name, names[i][1]);
    }
    assert_string_equal(pen_value_name(graph, pen_graph_output(graph, 0)), "last");
    const pen_shape *shape = &pen_layer_output_types(builder)[0].shape;
    assert_int_equal(shape->rank, 4);
    assert_int_equal(pen_shape_count(shape, 1, 4), 8);
    assert_string_equal(pen_graph_symbol_name(graph, shape->dims[0]), "batch");
    pen_arena_destroy(arena);
}

static uint32_t count_ops(const pen_graph *graph, const char *op) {
    uint32_t count = 0;
    for (uint32_t n = 0; n < pen_graph_node_count(graph); n++) {
        count += strcmp(pen_graph_node(graph, (pen_node_id){n})->op->name, op) == 0;
    }
    return count;
}

static void convolutions_in_a_row_need_no_transposes(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    pen_graph *graph;
    pen_layer_builder *builder;
    CHECK_OK(build(arena,
                   "inputs: {x: {shape: [8, 8, 3]}}\n"
                   "layers:\n"
                   "  - conv2d: {filters: 4, kernel_size: 3, name: a}\n"
                   "  - batch_normalization\n"
                   "  - activation: {activation: relu}\n"
                   "  - conv2d: {filters: 4, kernel_size: 3, padding: same, name: b}\n"
                   "  - add: {from: [a, b]}\n"
                   "  - concatenate: {from: [add, a]}\n"
                   "  - max_pooling2d\n"
                   "  - global_average_pooling2d\n"
                   "  - dense: {units: 2}\n",
                   &graph, &builder));
    assert_int_equal(count_ops(graph, "transpose"), 1); // of the input
    pen_arena_destroy(arena);
}

static void weights_depend_on_seed_and_name_alone(void **state) {
    (void)state;
    static const char *const texts[] = {
        "inputs: {x: {shape: [8]}}\nlayers: [dense: {units: 8, name: a}]\n",
        ("inputs: {x: {shape: [8]}}\n"
         "layers: [dense: {units: 8, name: b}, dense: {units: 8, name: a}]\n"),
        "seed: 1\ninputs: {x: {shape: [8]}}\nlayers: [dense: {units: 8, name: a}]\n"};
    pen_arena *arena = check_arena();
    const float *kernels[3];
    for (uint32_t i = 0; i < 3; i++) {
        pen_graph *graph;
        pen_layer_builder *builder;
        pen_value_id value;
        CHECK_OK(build(arena, texts[i], &graph, &builder));
        CHECK_OK(pen_graph_find_value(graph, "a/kernel", &value));
        kernels[i] = pen_graph_value(graph, value)->data;
    }
    assert_memory_equal(kernels[0], kernels[1], 64 * sizeof(float));
    assert_memory_not_equal(kernels[0], kernels[2], 64 * sizeof(float));
    pen_arena_destroy(arena);
}

// The first weight of a dense layer of 64 by 32, made by an initialiser.
static const float *initialized(pen_arena *arena, const char *initializer) {
    pen_graph *graph;
    pen_layer_builder *builder;
    const char *text;
    CHECK_OK(pen_arena_format(arena, &text,
                              "inputs: {x: {shape: [64]}}\nseed: 3\n"
                              "layers: [dense: {units: 32, kernel_initializer: %s}]",
                              initializer));
    CHECK_OK(build(arena, text, &graph, &builder));
    return pen_graph_value(graph, pen_layer_weight_at(builder, 0)->value)->data;
}

typedef struct initializer_case {
    const char *text;
    double mean, deviation;
    double least, most; // of all numbers
} initializer_case;

static void initializers_take_arguments(void **state) {
    (void)state;
    static const initializer_case cases[] = {
        {"{constant: {value: 0.25}}", 0.25, 0, 0.25, 0.25},
        {"{random_normal: {mean: 1, stddev: 0.5}}", 1, 0.5, -2, 4},
        {"{truncated_normal: {stddev: 0.02}}", 0, 0.0176, -0.04, 0.04},
        {"{random_uniform: {minval: 1, maxval: 3}}", 2, 0.577, 1, 3},
        {"{variance_scaling: {scale: 2, mode: fan_out, distribution: uniform}}", 0, 0.25, -0.434,
         0.434},
        {"{variance_scaling: {mode: fan_avg}}", 0, 0.1443, -0.4, 0.4},
        {"{variance_scaling: {distribution: untruncated_normal}}", 0, 0.125, -0.7, 0.7},
        {"{orthogonal: {gain: 2}}", 0, 0.25, -1, 1},
        {"uniform", 0, 0.0289, -0.05, 0.05},
        {"normal", 0, 0.05, -0.3, 0.3},
        {"he_normal", 0, 0.1768, -0.41, 0.41},
        {"lecun_uniform", 0, 0.125, -0.2166, 0.2166},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        pen_arena *arena = check_arena();
        const float *numbers = initialized(arena, cases[i].text);
        double sum = 0, squares = 0;
        for (size_t n = 0; n < 2048; n++) {
            const double number = (double)numbers[n];
            CHECK(number >= cases[i].least - 1e-6 && number <= cases[i].most + 1e-6, "%s has %g",
                  cases[i].text, number);
            sum += number;
            squares += number * number;
        }
        const double mean = sum / 2048;
        const double deviation = sqrt(fmax(squares / 2048 - mean * mean, 0));
        CHECK(fabs(mean - cases[i].mean) < 0.1 * cases[i].deviation + 1e-6, "%s: mean %g",
              cases[i].text, mean);
        CHECK(fabs(deviation - cases[i].deviation) < 0.05 * cases[i].deviation + 1e-4,
              "%s: deviation %g", cases[i].text, deviation);
        pen_arena_destroy(arena);
    }
}

static void a_seed_of_an_initializer_takes_the_place_of_the_models(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    const float *plain = initialized(arena, "he_normal");
    const float *same = initialized(arena, "{he_normal: {seed: 3}}");
    const float *other = initialized(arena, "{he_normal: {seed: 4}}");
    assert_memory_equal(plain, same, 2048 * sizeof(float));
    assert_memory_not_equal(plain, other, 2048 * sizeof(float));
    pen_arena_destroy(arena);
}

static void a_second_application_shares_weights(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    pen_graph *graph;
    pen_layer_builder *builder;
    pen_layer_tensor x;
    const pen_layer *layer;
    const void *options;
    const pen_yaml_node *root;
    const pen_shape shape = {1, {4}};
    CHECK_OK(pen_graph_create(arena, "g", &graph));
    CHECK_OK(pen_layer_builder_new(graph, 0, &builder));
    CHECK_OK(
        pen_layer_add_input(builder, "x", PEN_FLOAT32, &shape, (pen_source){.file = NULL}, &x));
    CHECK_OK(pen_layer_find_class("Dense", &layer));
    CHECK_OK(pen_yaml_parse("o", "{units: 4}", 10, arena, &root));
    CHECK_OK(pen_layer_read_options(layer, root, arena, &options));
    pen_layer_call call = {
        .layer = layer, .name = "d", .options = options, .inputs = &x, .input_count = 1};
    pen_layer_result first, second, third;
    CHECK_OK(pen_layer_apply(builder, &call, &first));
    call.inputs = &first.tensors[0];
    CHECK_OK(pen_layer_apply(builder, &call, &second));
    assert_int_equal(pen_layer_weight_count(builder), 2);
    call.inputs = &second.tensors[0];
    CHECK_OK(pen_layer_find_class("Flatten", &call.layer));
    CHECK_ERROR(pen_layer_apply(builder, &call, &third), PEN_INVALID_INPUT,
                "flatten 'd': a layer of this name is a dense");
    pen_arena_destroy(arena);
}

typedef struct mistake {
    const char *text;
    const char *message;
} mistake;

static const mistake mistakes[] = {
    {"{}", "the model has neither `inputs` nor `layers`"},
    {"layers: [dense: {units: 3}]", "m.yaml:1:10: error: the model has no input"},
    {"inputs: {x: {shape: [4]}}\nlayers: [dens: {units: 3}]",
     "m.yaml:2:10: error: layers[0]: unknown key \"dens\", possible: dense, "},
    {"inputs: {x: {shape: [4]}}\nlayers: [dense: {units: 0}]",
     "layers[0].dense.units: found \"0\""},
    {"inputs: {x: {shape: [4]}}\nlayers: [dense: {unit: 3}]", "possible: units"},
    {"inputs: {x: {shape: [4]}}\nlayers:\n  - conv2d: {filters: 2, kernel_size: 3, name: c}",
     "m.yaml:3:5: error: conv2d 'c': its input is [?,4], expected 4 dimensions"},
    {"inputs: {x: {shape: [4, 4, 1]}}\nlayers:\n  - conv2d: {filters: 2, kernel_size: 5}",
     "conv2d 'conv2d': a window of 5 does not fit into 4 elements"},
    {"inputs: {x: {shape: [4, 4, 1]}}\nlayers:\n  - conv2d: {filters: 2, kernel_size: [1, 1, "
     "1]}",
     "kernel_size has 3 numbers, expected one, or 2"},
    {"inputs: {x: {shape: [4]}}\nlayers:\n  - dense: {units: 2, from: y}",
     "no input or layer before is called 'y'; possible: x"},
    {"inputs: {x: {shape: [4]}}\nlayers:\n  - dense: {units: 2, name: x}",
     "two inputs or layers are called 'x'"},
    {"inputs: {x: {shape: [4]}}\nlayers: [flatten]\noutputs: [z]",
     "m.yaml:3:11: error: no input or layer before is called 'z'"},
    {"inputs: {x: {shape: [4]}}\nlayers: [flatten]\noutputs: [x, flatten, x]",
     "outputs: 'x' is there twice"},
    {"inputs: {a: {shape: [4]}, b: {shape: [3]}}\nlayers:\n  - add: {from: [a, b]}",
     "add 'add': input 1 is [?,3], which does not go with [?,4]"},
    {"inputs: {a: {shape: [4]}}\nlayers: [add]", "it reads 1, expected at least 2"},
    {"inputs: {a: {shape: [6]}}\nlayers: [reshape: {target_shape: [4, -1]}]",
     "its input is [?,6], whose 6 elements cannot become [4,?]"},
    {"inputs: {a: {shape: [6]}}\nlayers: [lstm: {units: 2}]",
     "lstm 'lstm': its input is [?,6], expected (batch, steps, features)"},
    {"inputs: {a: {shape: [5, 6]}}\nlayers: [lstm: {units: 2, dropout: 1.5}]",
     "layers[0].lstm.dropout: found \"1.5\", expected a number of at least 0 and below 1"},
    {"inputs: {a: {shape: [5000, 6]}}\nlayers: [lstm: {units: 2, recurrent_dropout: 0.5}]",
     "with recurrent_dropout, at most 1024 steps are possible"},
    {"inputs: {a: {shape: [5, 6]}}\nlayers: [lstm: {units: 2, stateful: true}]",
     "unknown key \"stateful\": a state does not go on into the next batch; possible: "},
    {"inputs: {a: {shape: [6]}}\nlayers: [dense: {units: 2, kernel_constraint: non_neg}]",
     "unknown key \"kernel_constraint\": weights cannot be held to constraints; possible: "},
    {"inputs: {a: {shape: [6]}}\nlayers: [dense: {units: 2, input_shape: [6]}]",
     "unknown key \"input_shape\": the model's 'inputs' say it"},
    {"inputs: {a: {shape: [6]}}\nlayers: [lambda: {}]",
     "unknown key \"lambda\": code of Python cannot be run"},
    {"inputs: {a: {shape: [2, 6]}}\nlayers: [time_distributed: {layer: {lambda: {}}}]",
     "layers[0].time_distributed.layer: unknown key \"lambda\": code of Python cannot be run"},
    {"inputs: {a: {shape: [6]}}\nlayers: [dense: {units: 2, name: d}, shared: {layer: e}]",
     "no layer before is called 'e'; possible: d"},
    {"inputs: {a: {shape: [6]}}\nlayers: [dense: relu]",
     "layers[0].dense.units: found \"relu\", expected an integer from 1 to 1000000000"},
    {"inputs: {a: {shape: [6]}}\nlayers: [dense: {units: 2, name: d}, shared: d]",
     "dense 'd': it is applied a second time, and its kernel would have to be [2,2], but is "
     "[6,2]"},
    {"inputs: {a: {shape: [6]}}\nlayers: [conv_lstm2d: {filters: 3}]",
     "unknown key \"conv_lstm2d\": recurrent convolutions are not there"},
    {"inputs: {a: {shape: [6]}}\nlayers: [dense: {units: 2, kernel_initializer: he}]",
     "layers[0].dense.kernel_initializer: unknown key \"he\", possible: "},
    {"inputs: {a: {shape: [6]}}\n"
     "layers: [dense: {units: 2, kernel_initializer: {random_normal: {std: 1}}}]",
     "layers[0].dense.kernel_initializer.random_normal: unknown key \"std\", possible: stddev"},
    {"inputs: {a: {shape: [6]}}\nlayers: [dense: {units: 2, kernel_regularizer: {l2: -1}}]",
     "layers[0].dense.kernel_regularizer.l2: found \"-1\", expected a number of at least 0"},
    {"inputs: {a: {shape: [6]}}\nlayers: [dense: {units: 2, kernel_regularizer: l2}]",
     "layers[0].dense.kernel_regularizer: found \"l2\", expected a mapping"},
    {"inputs: {a: {shape: [4, 4, 1]}}\nlayers: [up_sampling2d: {interpolation: bicubic}]",
     "layers[0].up_sampling2d.interpolation: found \"bicubic\", expected one of nearest, "
     "bilinear"},
    {"inputs: {a: {shape: [4], dtype: int64}}\nlayers:\n"
     "  - embedding: {input_dim: 3, output_dim: 2, mask_zero: true}\n  - softmax",
     "softmax 'softmax': its input has a mask"},
    {"inputs: {a: {shape: [4], dtype: int64}}\nlayers:\n"
     "  - embedding: {input_dim: 3, output_dim: 2, mask_zero: true}\n  - batch_normalization",
     "batch_normalization 'batch_normalization': its input has a mask"},
    {"inputs: {a: {shape: [65536, 65536]}}\nlayers: [flatten]", "input 'a': dimension 1 is 65536"},
    {"inputs: {a: {shape: [1000000]}}\nlayers: [repeat_vector: {n: 1000000}]",
     "its result is [?,1000000,1000000], expected at most"},
};

static void mistakes_are_named(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof mistakes / sizeof mistakes[0]; i++) {
        pen_arena *arena = check_arena();
        pen_graph *graph;
        pen_layer_builder *builder;

        const pen_status status = build(arena, mistakes[i].text, &graph, &builder);
        char text[4096];
        pen_status_format(status, text, sizeof text);
        CHECK(strstr(text, mistakes[i].message) != NULL, "'%s' is not in: %s", mistakes[i].message,
              text);
        pen_status_ignore(status, "looked at");
        pen_arena_destroy(arena);
    }
}

PEN_TEST_MAIN(cmocka_unit_test(layers_get_keras_names),
              cmocka_unit_test(convolutions_in_a_row_need_no_transposes),
              cmocka_unit_test(weights_depend_on_seed_and_name_alone),
              cmocka_unit_test(a_second_application_shares_weights),
              cmocka_unit_test(initializers_take_arguments),
              cmocka_unit_test(a_seed_of_an_initializer_takes_the_place_of_the_models),
              cmocka_unit_test(mistakes_are_named))
