#include "tests/support/cut_models.h"

#include "graph/analysis/execution_order.h"
#include "graph/op.h"
#include "graph/passes/fuse/fuse_normalization.h"
#include "graph/passes/gradient/attach_loss.h"
#include "graph/passes/gradient/build_updates.h"
#include "graph/passes/gradient/split_backward.h"
#include "graph/passes/merge_duplicates.h"
#include "graph/passes/remove_dead.h"
#include "graph/verify.h"
#include "tests/support/loss_request.h"
#include "tests/support/random_case.h"
#include "tests/support/random_graph.h"

#define MODEL_BATCH 3
#define MODEL_PARAMETERS 32

typedef struct model_builder {
    pen_arena *arena;
    pen_graph *graph;
    random_case dice;
    uint32_t parameter_count;
    pen_value_id parameters[MODEL_PARAMETERS];
    bool is_frozen; // parameters from here on
} model_builder;

static const void *model_numbers(model_builder *b, const pen_tensor_type *type, double least) {
    float *numbers;
    const int64_t count = pen_shape_element_count(&type->shape);
    CHECK_OK(PEN_NEW(b->arena, (size_t)count, &numbers));
    for (int64_t i = 0; i < count; i++) {
        numbers[i] = (float)(least + (double)random_between(&b->dice, 0, 1000) / 1000.0);
    }
    return numbers;
}

static pen_value_id model_persistent(model_builder *b, const char *name, pen_value_kind kind,
                                     uint32_t rank, const int64_t *dims) {
    pen_value spec = {.name = name,
                      .kind = kind,
                      .type = pen_tensor_type_make(PEN_FLOAT32, rank, dims),
                      .trainable = kind == PEN_VALUE_PARAMETER && !b->is_frozen};
    spec.data = model_numbers(b, &spec.type, kind == PEN_VALUE_STATE ? 0.5 : -0.5);
    spec.data_bytes = pen_tensor_type_bytes(&spec.type);
    pen_value_id value;
    CHECK_OK(pen_graph_add_value(b->graph, &spec, &value));
    if (spec.trainable) b->parameters[b->parameter_count++] = value;
    CHECK(b->parameter_count < MODEL_PARAMETERS, "%u parameters", b->parameter_count);
    return value;
}

static pen_value_id model_apply(model_builder *b, const char *op, const char *name,
                                pen_value_id first, pen_value_id second) {
    return graph_apply(b->graph, op, name, first, second, PEN_VALUE_NONE);
}

static pen_value_id model_linear(model_builder *b, const char *name, pen_value_id x,
                                 int64_t width) {
    char text[64];
    const int64_t dims[2] = {pen_value_type(b->graph, x)->shape.dims[1], width};
    snprintf(text, sizeof text, "%s.weight", name);
    const pen_value_id weight = model_persistent(b, text, PEN_VALUE_PARAMETER, 2, dims);
    snprintf(text, sizeof text, "%s.bias", name);
    const pen_value_id bias = model_persistent(b, text, PEN_VALUE_PARAMETER, 1, &width);
    return model_apply(b, "add", name, model_apply(b, "matmul", name, x, weight), bias);
}

static pen_value_id model_dropout(model_builder *b, const char *name, pen_value_id x) {
    pen_node_spec spec = pen_node_spec_make("dropout", name);
    pen_value_id inputs[3] = {x};
    CHECK_OK(pen_graph_constant_number(b->graph, "ratio", PEN_FLOAT32, 0.3, &inputs[1]));
    CHECK_OK(pen_graph_constant_number(b->graph, "training", PEN_BOOL, 1, &inputs[2]));
    spec.inputs = inputs;
    spec.input_count = 3;
    spec.output_count = 2;
    pen_node_id node;
    CHECK_OK(pen_graph_add_node(b->graph, &spec, &node));
    return pen_graph_node(b->graph, node)->outputs[0];
}

static pen_value_id model_convolution(model_builder *b, const char *name, pen_value_id x,
                                      int64_t channels) {
    char text[64];
    const int64_t dims[4] = {channels, pen_value_type(b->graph, x)->shape.dims[1], 3, 3};
    const int64_t pads[4] = {1, 1, 1, 1};
    snprintf(text, sizeof text, "%s.weight", name);
    const pen_value_id operands[2] = {x, model_persistent(b, text, PEN_VALUE_PARAMETER, 4, dims)};
    const pen_attribute_given given = pen_attribute_ints("pads", 4, pads);
    pen_node_spec spec = pen_node_spec_make("conv", name);
    spec.inputs = operands;
    spec.input_count = 2;
    spec.attributes = &given;
    spec.attribute_count = 1;
    pen_value_id output;
    CHECK_OK(pen_graph_add_simple(b->graph, &spec, &output));
    return output;
}

static pen_value_id model_normalization(model_builder *b, const char *name, pen_value_id x) {
    static const char *const names[4] = {"scale", "bias", "mean", "variance"};
    const int64_t channels = pen_value_type(b->graph, x)->shape.dims[1];
    pen_value_id inputs[5] = {x};
    for (uint32_t i = 0; i < 4; i++) {
        char text[64];
        snprintf(text, sizeof text, "%s.%s", name, names[i]);
        inputs[i + 1] =
            model_persistent(b, text, i < 2 ? PEN_VALUE_PARAMETER : PEN_VALUE_STATE, 1, &channels);
    }
    const pen_attribute_given training = pen_attribute_int("training_mode", 1);
    pen_node_spec spec = pen_node_spec_make("batch_normalization", name);
    spec.inputs = inputs;
    spec.input_count = 5;
    spec.output_count = 5;
    spec.attributes = &training;
    spec.attribute_count = 1;
    pen_node_id node;
    CHECK_OK(pen_graph_add_node(b->graph, &spec, &node));
    const pen_value_id *outputs = pen_graph_node(b->graph, node)->outputs;
    pen_graph_set_replaces(b->graph, outputs[1], inputs[3]);
    pen_graph_set_replaces(b->graph, outputs[2], inputs[4]);
    return outputs[0];
}

static pen_value_id model_input(model_builder *b, const char *name, pen_element_type element,
                                uint32_t rank, const int64_t *dims) {
    const pen_tensor_type type = pen_tensor_type_make(element, rank, dims);
    return graph_value_of(b->graph, name, PEN_VALUE_INPUT, &type);
}

static pen_value_id model_perceptron(model_builder *b, bool freezes) {
    const int64_t dims[2] = {MODEL_BATCH, 4};
    pen_value_id x = model_input(b, "x", PEN_FLOAT32, 2, dims);
    b->is_frozen = freezes;
    for (int i = 0; i < 4; i++) {
        char name[16];
        snprintf(name, sizeof name, "fc%d", i);
        x = model_apply(b, "tanh", "tanh", model_linear(b, name, x, 4), PEN_VALUE_NONE);
        if (i == 1) b->is_frozen = false;
        if (i == 2) x = model_dropout(b, "dropout", x);
    }
    return model_linear(b, "head", x, 3);
}

static pen_value_id model_flatten(model_builder *b, pen_value_id x) {
    pen_value_id target;
    CHECK_OK(pen_graph_constant_ints(b->graph, "flat", 2, (int64_t[]){MODEL_BATCH, -1}, &target));
    return model_apply(b, "reshape", "flatten", x, target);
}

static pen_value_id model_branches(model_builder *b) {
    const int64_t dims[4] = {MODEL_BATCH, 2, 4, 4};
    const pen_value_id none = PEN_VALUE_NONE;
    const pen_value_id x = model_input(b, "x", PEN_FLOAT32, 4, dims);
    const pen_value_id stem =
        model_apply(b, "relu", "stem_relu",
                    model_normalization(b, "norm0", model_convolution(b, "c0", x, 3)), none);
    const pen_value_id left = model_normalization(b, "norm1", model_convolution(b, "c1", stem, 3));
    const pen_value_id right = model_dropout(
        b, "drop", model_apply(b, "tanh", "right", model_convolution(b, "c2", stem, 3), none));
    const pen_value_id sum =
        model_apply(b, "relu", "sum_relu", model_apply(b, "add", "sum", left, stem), none);
    const pen_value_id both = model_apply(b, "mul", "both", sum, right);
    return model_linear(b, "head", model_flatten(b, both), 3);
}

static pen_value_id model_tied(model_builder *b) {
    const int64_t dims[1] = {MODEL_BATCH}, table_dims[2] = {5, 4}, perm[2] = {1, 0};
    const pen_value_id none = PEN_VALUE_NONE;
    const pen_value_id words = model_input(b, "x", PEN_INT64, 1, dims);
    const pen_value_id table = model_persistent(b, "table", PEN_VALUE_PARAMETER, 2, table_dims);
    const pen_value_id same =
        model_apply(b, "neg", "back", model_apply(b, "neg", "forth", words, none), none);
    pen_value_id x = model_apply(b, "gather", "embed", table, same);
    x = model_apply(b, "add", "again", x, model_apply(b, "gather", "embed2", table, words));
    x = model_apply(b, "tanh", "tanh", model_linear(b, "middle", x, 4), none);
    const pen_attribute_given given = pen_attribute_ints("perm", 2, perm);
    pen_node_spec spec = pen_node_spec_make("transpose", "turned");
    spec.inputs = &table;
    spec.input_count = 1;
    spec.attributes = &given;
    spec.attribute_count = 1;
    pen_value_id turned;
    CHECK_OK(pen_graph_add_simple(b->graph, &spec, &turned));
    return model_apply(b, "matmul", "logits", x, turned);
}

static pen_optimizer model_optimizer(model_builder *b) {
    return (pen_optimizer){
        .kind = (pen_optimizer_kind)random_between(&b->dice, 0, 2),
        .momentum = random_chance(&b->dice, 50) ? 0.9 : 0,
        .nesterov = random_chance(&b->dice, 50),
        .weight_decay = random_chance(&b->dice, 50) ? 0.01 : 0,
        .beta1 = 0.9,
        .beta2 = 0.999,
        .epsilon = 1e-8,
        .clip_norm = random_chance(&b->dice, 50) ? 0.5 : 0,
    };
}

static void model_follow(cut_model *model, pen_graph *graph, const pen_value_id *map) {
    model->graph = graph;
    for (uint32_t i = 0; i < model->kept_count; i++) {
        model->kept[i] = map[model->kept[i].index];
    }
    for (uint32_t i = 0; i < model->fed_count; i++) {
        model->fed[i] = map[model->fed[i].index];
    }
}

// What the compiler does behind the updates.
static void model_finish(model_builder *b, cut_model *model, bool accumulate) {
    pen_graph *graph;
    const pen_value_id *map;
    const pen_value_id *kept = model->kept;
    CHECK_OK(pen_merge_duplicates(model->graph, model->kept_count, kept, &graph, &map));
    model_follow(model, graph, map);
    CHECK_OK(pen_remove_dead(model->graph, model->kept_count, kept, &graph, &map));
    model_follow(model, graph, map);
    CHECK_OK(pen_fuse_normalization(model->graph, model->kept_count, kept, &graph, &map));
    model_follow(model, graph, map);
    CHECK_OK(pen_split_backward(model->graph));
    CHECK_OK(pen_graph_verify(model->graph, &(pen_verify_options){.types = true}));
    pen_execution_order order;
    const pen_execution_options options = {
        .mix_updates = !accumulate, .kept = kept, .kept_count = model->kept_count};
    CHECK_OK(pen_execution_order_build(model->graph, &options, b->arena, &order));
    model->order = order.nodes;
    model->order_count = order.count;
    model->update_first = order.update_first;
}

static void model_random(model_builder *b, cut_model *model, uint64_t seed, bool accumulate) {
    random_graph random = random_graph_forward(b->arena, seed, PEN_FLOAT32,
                                               (uint32_t)random_between(&b->dice, 4, 40));
    random_graph_differentiate(&random);
    random_graph_update(&random, seed, accumulate);
    model->graph = random.graph;
    model->kept[model->kept_count++] = random.loss;
    for (uint32_t i = 0; i < RANDOM_GRAPH_INPUTS; i++) {
        model->fed[model->fed_count++] = random.inputs[i];
    }
}

static pen_value_id model_body(model_builder *b, cut_model_kind kind) {
    switch (kind) {
    case CUT_MODEL_BRANCHES:
        return model_branches(b);
    case CUT_MODEL_TIED:
        return model_tied(b);
    case CUT_MODEL_FROZEN:
        return model_perceptron(b, true);
    case CUT_MODEL_PERCEPTRON:
    case CUT_MODEL_RANDOM:
    case CUT_MODEL_COUNT:
        break;
    }
    return model_perceptron(b, false);
}

cut_model cut_model_make(pen_arena *arena, cut_model_kind kind, uint64_t seed, bool accumulate) {
    model_builder b = {.arena = arena, .dice = {.seed = seed + 1}};
    cut_model model = {0};
    if (kind == CUT_MODEL_RANDOM) {
        model_random(&b, &model, seed, accumulate);
        model_finish(&b, &model, accumulate);
        return model;
    }
    CHECK_OK(pen_graph_create(arena, "model", &b.graph));
    const pen_value_id output = model_body(&b, kind);
    CHECK_OK(pen_graph_add_output(b.graph, output));
    pen_attached_loss loss;
    CHECK_OK(
        attach_plain_loss(b.graph, PEN_LOSS_SOFTMAX_CROSS_ENTROPY, output, PEN_VALUE_NONE, &loss));
    const pen_value_id weight = graph_value_of(b.graph, "loss_weight", PEN_VALUE_SCALAR,
                                               pen_value_type(b.graph, loss.loss));
    pen_gradients *gradients;
    CHECK_OK(pen_build_gradients(b.graph, loss.loss, weight, b.parameter_count, b.parameters,
                                 &gradients));
    const pen_optimizer optimizer = model_optimizer(&b);
    pen_updates updates;
    CHECK_OK(pen_build_updates(b.graph, gradients, &optimizer, accumulate, NULL, &updates));
    model.graph = b.graph;
    model.kept[model.kept_count++] = loss.loss;
    model.kept[model.kept_count++] = loss.accuracy;
    for (uint32_t i = 0; i < pen_graph_input_count(b.graph); i++) {
        model.fed[model.fed_count++] = pen_graph_input(b.graph, i);
    }
    model_finish(&b, &model, accumulate);
    return model;
}
