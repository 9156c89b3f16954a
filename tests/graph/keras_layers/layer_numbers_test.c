// Every layer of the table against Keras: tests/reference/layers/layers.json, made by the script
// beside it, has models of layers with weights, inputs, and what Keras computes.

#include "graph/keras_layers/layer.h"

#include <math.h>

#include "base/format/json_reader.h"
#include "base/system/file.h"
#include "device/reference/reference_evaluate.h"
#include "graph/keras_layers/layer_model.h"
#include "graph/passes/gradient/attach_loss.h"
#include "graph/passes/gradient/build_gradients.h"
#include "graph/passes/infer_shapes.h"
#include "graph/passes/set_inference.h"
#include "graph/verify.h"
#include "tests/support/check.h"
#include "tests/support/loss_request.h"
#include "tests/support/run_graph.h"

#define NUMBERS_TOLERANCE 2e-5

typedef struct numbers_model {
    pen_graph *graph;
    pen_layer_builder *builder;
    const char *penalty;
    const char *const *masks;
} numbers_model;

static json_t *read_cases(void) {
    pen_mapping file;
    json_t *cases = NULL;
    CHECK_OK(pen_mapping_open("tests/reference/layers/layers.json", &file));
    CHECK_OK(pen_json_load("layers.json", file.bytes, file.length, PEN_CORRUPT, &cases));
    pen_mapping_close(&file);
    return cases;
}

static const char *text_of(const json_t *object, const char *key) {
    const char *text = json_string_value(json_object_get(object, key));
    CHECK(text != NULL, "%s is no text", key);
    return text;
}

// The numbers of a case's array, which must be as many.
static float *floats_of(pen_arena *arena, const json_t *object, int64_t count) {
    const json_t *data = json_object_get(object, "data");
    float *numbers = NULL;
    assert_int_equal(json_array_size(data), count);
    CHECK_OK(PEN_NEW(arena, (size_t)count + 1, &numbers));
    for (int64_t i = 0; i < count; i++) {
        numbers[i] = (float)json_number_value(json_array_get(data, (size_t)i));
    }
    return numbers;
}

// The text of a model: the case's layers as a list.
static numbers_model build_model(pen_arena *arena, const json_t *test) {
    const json_t *layers = json_object_get(test, "layers");
    pen_text text;
    const char *whole;
    const pen_yaml_node *root;
    const pen_option_source *source;
    pen_layer_model model = {.seed = 0};
    numbers_model made = {.graph = NULL};
    pen_text_init(&text, arena);
    pen_text_add(&text, "layers:\n");
    for (size_t i = 0; i < json_array_size(layers); i++) {
        pen_text_print(&text, "  - %s\n", json_string_value(json_array_get(layers, i)));
    }
    CHECK_OK(pen_text_finish(&text, &whole));
    CHECK_OK(pen_yaml_parse(text_of(test, "name"), whole, strlen(whole), arena, &root));
    const pen_option_settings settings = {.file = "test"};
    CHECK_OK(pen_option_read(&pen_layer_model_table, root, &settings, arena, &model, &source));
    CHECK_OK(pen_graph_create(arena, "test", &made.graph));
    CHECK_OK(pen_layer_model_build(&model, source, made.graph, &made.builder));
    CHECK_OK(pen_layer_builder_finish(made.builder, &made.penalty, &made.masks));
    return made;
}

static void fill_weights(pen_arena *arena, const json_t *test, const numbers_model *model) {
    const json_t *weights = json_object_get(test, "weights");
    assert_int_equal(json_array_size(weights), pen_layer_weight_count(model->builder));
    for (uint32_t i = 0; i < pen_layer_weight_count(model->builder); i++) {
        const json_t *expected = json_array_get(weights, i);
        const pen_layer_weight *weight = pen_layer_weight_at(model->builder, i);
        const json_t *shape = json_object_get(expected, "shape");
        const char *last = strrchr(weight->name, '/');
        assert_string_equal(last == NULL ? weight->name : last + 1, text_of(expected, "name"));
        assert_int_equal(json_array_size(shape), weight->shape.rank);
        for (uint32_t d = 0; d < weight->shape.rank; d++) {
            assert_int_equal(json_integer_value(json_array_get(shape, d)), weight->shape.dims[d]);
        }
        const int64_t count = pen_shape_element_count(&weight->shape);
        pen_layer_weight_fill(model->builder, weight, floats_of(arena, expected, count));
    }
}

static void infer_model(const json_t *test, const numbers_model *model) {
    const json_t *inputs = json_object_get(test, "inputs");
    const int64_t batch =
        json_integer_value(json_array_get(json_object_get(json_array_get(inputs, 0), "shape"), 0));
    const pen_symbol_binding binding = {"batch", batch};
    const pen_infer_options options = {
        .bindings = &binding, .binding_count = 1, .evaluate = pen_reference_evaluate};
    CHECK_OK(pen_infer_shapes(model->graph, &options));
}

static void run_typed(pen_arena *arena, const json_t *test, const numbers_model *model,
                      run_graph *run) {
    const json_t *inputs = json_object_get(test, "inputs");
    CHECK_OK(run_graph_init(run, model->graph, arena));
    for (size_t i = 0; i < json_array_size(inputs); i++) {
        const json_t *input = json_array_get(inputs, i);
        pen_value_id value;
        CHECK_OK(pen_graph_find_value(model->graph, text_of(input, "name"), &value));
        const pen_tensor_type *type = pen_value_type(model->graph, value);
        const int64_t count = pen_shape_element_count(&type->shape);
        const float *numbers = floats_of(arena, input, count);
        for (int64_t e = 0; e < count; e++) {
            if (type->element == PEN_INT64) {
                ((int64_t *)run->tensors[value.index].data)[e] = (int64_t)numbers[e];
            } else {
                ((float *)run->tensors[value.index].data)[e] = numbers[e];
            }
        }
    }
}

static void run_model(pen_arena *arena, const json_t *test, const numbers_model *model,
                      run_graph *run) {
    infer_model(test, model);
    run_typed(arena, test, model, run);
    CHECK_OK(run_graph_all(run));
}

static void check_numbers(pen_arena *arena, const char *name, const json_t *expected,
                          const float *found, const pen_shape *shape) {
    const json_t *dims = json_object_get(expected, "shape");
    const int64_t count = pen_shape_element_count(shape);
    if (dims != NULL) {
        CHECK(json_array_size(dims) == shape->rank, "%s: rank %u", name, shape->rank);
        for (uint32_t d = 0; d < shape->rank; d++) {
            assert_int_equal(json_integer_value(json_array_get(dims, d)), shape->dims[d]);
        }
    }
    const float *numbers = floats_of(arena, expected, count);
    for (int64_t i = 0; i < count; i++) {
        const double difference = fabs((double)found[i] - (double)numbers[i]);
        CHECK(difference <= NUMBERS_TOLERANCE * (1 + fabs((double)numbers[i])),
              "%s: element %lld is %g, Keras has %g", name, (long long)i, (double)found[i],
              (double)numbers[i]);
    }
}

static void check_output(pen_arena *arena, const json_t *test, const char *key,
                         const numbers_model *model, const run_graph *run) {
    const pen_value_id output = pen_graph_output(model->graph, 0);
    const pen_tensor_type *type = pen_value_type(model->graph, output);
    const int64_t count = pen_shape_element_count(&type->shape);
    float *found = NULL;
    CHECK_OK(PEN_NEW(arena, (size_t)count + 1, &found));
    for (int64_t i = 0; i < count; i++) {
        found[i] = (float)pen_tensor_get(&run->tensors[output.index], i);
    }
    check_numbers(arena, text_of(test, "name"), json_object_get(test, key), found, &type->shape);
}

// The running statistics after a step.
static void check_states(pen_arena *arena, const json_t *test, const numbers_model *model,
                         const run_graph *run) {
    const json_t *states = json_object_get(test, "states");
    uint32_t found = 0;
    for (uint32_t v = 0; v < pen_graph_value_count(model->graph); v++) {
        const pen_value *value = pen_graph_value(model->graph, (pen_value_id){v});
        if (!pen_value_is(value->replaces)) continue;
        const char *name = strrchr(pen_value_name(model->graph, value->replaces), '/') + 1;
        for (size_t i = 0; i < json_array_size(states); i++) {
            const json_t *state = json_array_get(states, i);
            if (strcmp(text_of(state, "name"), name) != 0) continue;
            check_numbers(arena, name, state, run->tensors[v].data, &value->type.shape);
            found++;
        }
    }
    assert_int_equal(found, json_array_size(states));
}

static void layers_compute_what_keras_computes(void **state) {
    (void)state;
    json_t *cases = read_cases();
    for (size_t i = 0; i < json_array_size(cases); i++) {
        const json_t *test = json_array_get(cases, i);
        pen_arena *arena = check_arena();
        run_graph run;
        numbers_model model = build_model(arena, test);
        fill_weights(arena, test, &model);
        CHECK_OK(pen_set_inference(model.graph));
        run_model(arena, test, &model, &run);
        check_output(arena, test, "output", &model, &run);
        pen_arena_destroy(arena);
    }
    json_decref(cases);
}

static void graphs_for_training_are_sound(void **state) {
    (void)state;
    json_t *cases = read_cases();
    for (size_t i = 0; i < json_array_size(cases); i++) {
        pen_arena *arena = check_arena();
        const pen_verify_options typed = {.types = true};
        const pen_symbol_binding binding = {"batch", 3};
        const pen_infer_options options = {
            .bindings = &binding, .binding_count = 1, .evaluate = pen_reference_evaluate};
        const numbers_model model = build_model(arena, json_array_get(cases, i));
        CHECK_OK(pen_infer_shapes(model.graph, &options));
        CHECK_OK(pen_graph_verify(model.graph, &typed));
        pen_arena_destroy(arena);
    }
    json_decref(cases);
}

static void batch_normalization_trains_as_in_keras(void **state) {
    (void)state;
    json_t *cases = read_cases();
    uint32_t count = 0;
    for (size_t i = 0; i < json_array_size(cases); i++) {
        const json_t *test = json_array_get(cases, i);
        if (json_object_get(test, "trained") == NULL) continue;
        pen_arena *arena = check_arena();
        run_graph run;
        numbers_model model = build_model(arena, test);
        fill_weights(arena, test, &model);
        run_model(arena, test, &model, &run);
        check_output(arena, test, "trained", &model, &run);
        check_states(arena, test, &model, &run);
        pen_arena_destroy(arena);
        count++;
    }
    CHECK(count >= 3, "%u cases train", count);
    json_decref(cases);
}

// ---- loss and gradients

#define GRADIENTS_WEIGHTS_LIMIT 32u

// The squared error to numbers from -1 to 1, and what regularizers add.
static pen_attached_loss attach_loss(const numbers_model *model) {
    const pen_value_id output = pen_graph_output(model->graph, 0);
    pen_value_id mask = PEN_VALUE_NONE, penalty;
    pen_attached_loss loss;
    if (model->masks != NULL && model->masks[0] != NULL) {
        CHECK_OK(pen_graph_find_value(model->graph, model->masks[0], &mask));
    }
    CHECK_OK(attach_plain_loss(model->graph, PEN_LOSS_MEAN_SQUARED_ERROR, output, mask, &loss));
    if (model->penalty != NULL) {
        CHECK_OK(pen_graph_find_value(model->graph, model->penalty, &penalty));
        CHECK_OK(pen_attach_penalty(model->graph, penalty, &loss.loss));
    }
    return loss;
}

static void fill_targets(const numbers_model *model, const pen_attached_loss *loss,
                         const run_graph *run) {
    const int64_t count =
        pen_shape_element_count(&pen_value_type(model->graph, loss->labels)->shape);
    for (int64_t i = 0; i < count; i++) {
        const double target = count > 1 ? -1 + 2.0 * (double)i / (double)(count - 1) : -1;
        pen_tensor_set(&run->tensors[loss->labels.index], i, target);
    }
}

// The gradient of element `position` of Keras' weight, the sum of those of its parameter's uses.
static double weight_gradient(const pen_layer_weight *weight, const int64_t *position,
                              const pen_gradient *gradient, const run_graph *run) {
    int64_t offset = weight->offset;
    double sum = 0;
    for (uint32_t d = 0; d < weight->shape.rank; d++) {
        int64_t at = position[d];
        if (weight->block_count > 1 && d == weight->block_axis) {
            const int64_t length = weight->shape.dims[d] / weight->block_count;
            at = weight->block_order[at / length] * length + at % length;
        }
        offset += at * weight->strides[d];
    }
    for (uint32_t u = 0; u < gradient->use_count; u++) {
        sum += pen_tensor_get(&run->tensors[gradient->uses[u].index], offset);
    }
    return sum;
}

static void check_gradient(pen_arena *arena, const char *name, const json_t *expected,
                           const pen_layer_weight *weight, const pen_gradient *gradient,
                           const run_graph *run) {
    const int64_t count = pen_shape_element_count(&weight->shape);
    int64_t position[PEN_RANK_LIMIT] = {0};
    float *found = NULL;
    CHECK_OK(PEN_NEW(arena, (size_t)count + 1, &found));
    assert_int_equal(json_array_size(expected), count);
    for (int64_t i = 0; i < count; i++) {
        const double wanted = json_number_value(json_array_get(expected, (size_t)i));
        const double sum = weight_gradient(weight, position, gradient, run);
        CHECK(fabs(sum - wanted) <= NUMBERS_TOLERANCE * (1 + fabs(wanted)),
              "%s: the gradient of %s/%s [%lld] is %g, Keras has %g", name, weight->layer,
              weight->name, (long long)i, sum, wanted);
        for (uint32_t d = weight->shape.rank; d-- > 0;) {
            if (++position[d] < weight->shape.dims[d]) break;
            position[d] = 0;
        }
    }
}

static void check_gradients(pen_arena *arena, const json_t *test, numbers_model *model) {
    const json_t *expected = json_object_get(test, "gradients");
    const pen_layer_weight *weights[GRADIENTS_WEIGHTS_LIMIT];
    pen_value_id wanted[GRADIENTS_WEIGHTS_LIMIT], seed;
    uint32_t count = 0;
    pen_gradients *gradients;
    run_graph run;
    for (uint32_t i = 0; i < pen_layer_weight_count(model->builder); i++) {
        const pen_layer_weight *weight = pen_layer_weight_at(model->builder, i);
        if (!pen_graph_value(model->graph, weight->value)->trainable) continue;
        weights[count] = weight;
        wanted[count++] = weight->value;
    }
    assert_int_equal(json_array_size(expected), count);
    const pen_attached_loss loss = attach_loss(model);
    CHECK_OK(pen_graph_constant_number(model->graph, "seed", PEN_FLOAT32, 1, &seed));
    CHECK_OK(pen_build_gradients(model->graph, loss.loss, seed, count, wanted, &gradients));
    run_typed(arena, test, model, &run);
    fill_targets(model, &loss, &run);
    CHECK_OK(run_graph_all(&run));
    const double found = pen_tensor_get(&run.tensors[loss.loss.index], 0);
    const double whole = json_number_value(json_object_get(test, "loss"));
    CHECK(fabs(found - whole) <= NUMBERS_TOLERANCE * (1 + fabs(whole)),
          "%s: the loss is %g, Keras has %g", text_of(test, "name"), found, whole);
    for (uint32_t i = 0; i < count; i++) {
        check_gradient(arena, text_of(test, "name"), json_array_get(expected, i), weights[i],
                       &gradients->items[i], &run);
    }
}

static void masks_and_regularizers_train_as_in_keras(void **state) {
    (void)state;
    json_t *cases = read_cases();
    uint32_t count = 0;
    for (size_t i = 0; i < json_array_size(cases); i++) {
        const json_t *test = json_array_get(cases, i);
        if (json_object_get(test, "gradients") == NULL) continue;
        pen_arena *arena = check_arena();
        numbers_model model = build_model(arena, test);
        fill_weights(arena, test, &model);
        infer_model(test, &model);
        check_gradients(arena, test, &model);
        pen_arena_destroy(arena);
        count++;
    }
    CHECK(count >= 20, "%u cases have gradients", count);
    json_decref(cases);
}

static void every_layer_has_a_case(void **state) {
    (void)state;
    json_t *cases = read_cases();
    for (uint32_t l = 0; l < pen_layer_count(); l++) {
        bool found = false;
        char start[64];
        snprintf(start, sizeof start, "{%s:", pen_layer_at(l)->name);
        for (size_t i = 0; i < json_array_size(cases); i++) {
            const json_t *layers = json_object_get(json_array_get(cases, i), "layers");
            for (size_t e = 0; e < json_array_size(layers); e++) {
                const char *text = json_string_value(json_array_get(layers, e));
                found = found || strncmp(text, start, strlen(start)) == 0;
            }
        }
        CHECK(found, "no case has a layer %s", pen_layer_at(l)->name);
    }
    json_decref(cases);
}

PEN_TEST_MAIN(cmocka_unit_test(layers_compute_what_keras_computes),
              cmocka_unit_test(graphs_for_training_are_sound),
              cmocka_unit_test(batch_normalization_trains_as_in_keras),
              cmocka_unit_test(masks_and_regularizers_train_as_in_keras),
              cmocka_unit_test(every_layer_has_a_case))
