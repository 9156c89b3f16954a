#include <string.h>

#include "graph/graph.h"
#include "graph/op.h"
#include "graph/verify.h"
#include "scheduler/compile/compile.h"
#include "scheduler/compile/compile_pass.h"
#include "tests/support/check.h"
#include "tests/support/loss_request.h"
#include "tests/support/tiny_model.h"

static const char *model_path, *fixed_path;

static int write_files(void **state) {
    (void)state;
    model_path = tiny_model_write(&(tiny_model){0}, "tiny.onnx");
    fixed_path = tiny_model_write(&(tiny_model){.fixed_batch = true}, "fixed.onnx");
    return 0;
}

static const int64_t features[1] = {TINY_FEATURES};
static const pen_compile_input tiny_input = {"x", 1, features};

static const pen_compile_loss tiny_loss = {.spec = PLAIN_LOSS(PEN_LOSS_SOFTMAX_CROSS_ENTROPY),
                                           .weight = 1};

static pen_compile_request tiny_request(pen_compile_mode mode) {
    return (pen_compile_request){.model_path = model_path,
                                 .mode = mode,
                                 .microbatch_size = 8,
                                 .inputs = &tiny_input,
                                 .input_count = 1,
                                 .losses = &tiny_loss,
                                 .loss_count = 1,
                                 .optimizer = {.kind = PEN_OPTIMIZER_SGD, .momentum = 0.9}};
}

static uint32_t count_role(const pen_program *program, pen_role role) {
    uint32_t count = 0;
    for (uint32_t p = 0; p < program->order_count; p++) {
        count += pen_graph_node(program->graph, program->order[p])->role == role;
    }
    return count;
}

static void training_has_everything(void **state) {
    (void)state;
    pen_compile_request request = tiny_request(PEN_COMPILE_TRAIN);
    const pen_program *program;
    CHECK_OK(pen_compile(&request, &program));
    CHECK_OK(pen_graph_verify(program->graph, &(pen_verify_options){.types = true}));
    assert_string_equal(program->batch_symbol, "batch");
    assert_int_equal(program->microbatch_size, 8);
    assert_int_equal(program->input_count, 1);
    assert_int_equal(program->output_count, 0);
    assert_int_equal(program->trainable_count, 5);
    assert_int_equal(program->warning_count, 1);
    assert_non_null(strstr(program->warnings[0], "the model has 2 outputs, "));
    assert_int_equal(program->loss_count, 1);
    assert_true(pen_value_is(program->losses[0].labels) && pen_value_is(program->loss) &&
                pen_value_is(program->accuracy) && pen_value_is(program->loss_weight) &&
                pen_value_is(program->learning_rate));
    assert_false(pen_value_is(program->step));
    assert_int_equal(program->update_first, program->order_count);
    assert_int_equal(count_role(program, PEN_ROLE_UPDATE), 5);
    const pen_tensor_type x = {PEN_FLOAT32, {2, {8, TINY_FEATURES}}};
    assert_true(pen_tensor_type_equal(pen_value_type(program->graph, program->inputs[0]), &x));
    pen_program_destroy(program);
    pen_program_destroy(NULL);
}

// Ends of a graph of TensorFlow that nobody called outputs are no outputs to train.
static void guessed_outputs_are_refused(void **state) {
    (void)state;
    const char *second = "Identity_1";
    const pen_compile_input input = {"x", 1, (const int64_t[]){8}};
    pen_compile_request request = tiny_request(PEN_COMPILE_TRAIN);
    const pen_program *program;
    request.model_path = "tests/reference/tensorflow/branches.pb";
    request.import.unfreeze = ".";
    request.inputs = &input;
    CHECK_ERROR(pen_compile(&request, &program), PEN_INVALID_INPUT,
                "which of its 2 nodes that no other reads is the output that is trained: "
                "model.outputs names it; there are Identity, Identity_1");
    request.import.outputs = &second;
    request.import.output_count = 1;
    const pen_status status = pen_compile(&request, &program);
    assert_null(strstr(status == PEN_OK ? "" : pen_status_message(status), "model.outputs"));
    if (status == PEN_OK) pen_program_destroy(program);
    pen_status_ignore(status, "what else the model may lack");
}

// Several microbatches: updates come after all of them, and read sums.
static void accumulation_sets_updates_apart(void **state) {
    (void)state;
    pen_compile_request request = tiny_request(PEN_COMPILE_TRAIN);
    request.accumulate = true;
    request.optimizer = (pen_optimizer){.kind = PEN_OPTIMIZER_ADAM, .beta1 = 0.9, .beta2 = 0.99};
    const pen_program *program;
    CHECK_OK(pen_compile(&request, &program));
    CHECK_OK(pen_graph_verify(program->graph, &(pen_verify_options){.types = true}));
    assert_true(pen_value_is(program->step));
    assert_true(program->update_first < program->order_count);
    uint32_t sums = 0;
    for (uint32_t p = 0; p < program->order_count; p++) {
        const pen_node *node = pen_graph_node(program->graph, program->order[p]);
        assert_int_equal(node->role == PEN_ROLE_UPDATE, p >= program->update_first);
        sums += node->accumulates;
    }
    assert_int_equal(sums, 6); // `twice` is used twice
    pen_program_destroy(program);
}

static void inference_has_no_more_than_it_needs(void **state) {
    (void)state;
    pen_compile_request request = tiny_request(PEN_COMPILE_EVALUATE);
    const pen_program *program;
    CHECK_OK(pen_compile(&request, &program));
    assert_true(pen_value_is(program->loss) && pen_value_is(program->losses[0].labels));
    assert_false(pen_value_is(program->learning_rate) || pen_value_is(program->loss_weight));
    assert_int_equal(count_role(program, PEN_ROLE_FORWARD), program->order_count);
    pen_program_destroy(program);
    request = tiny_request(PEN_COMPILE_PREDICT);
    CHECK_OK(pen_compile(&request, &program));
    assert_false(pen_value_is(program->loss) || program->loss_count > 0);
    assert_int_equal(program->output_count, 2);
    assert_int_equal(program->kept_count, 2);
    const pen_tensor_type y = {PEN_FLOAT32, {2, {8, TINY_CLASSES}}};
    assert_true(pen_tensor_type_equal(pen_value_type(program->graph, program->outputs[0]), &y));
    pen_program_destroy(program);
}

static void frozen_parameters_are_not_updated(void **state) {
    (void)state;
    pen_compile_request request = tiny_request(PEN_COMPILE_TRAIN);
    request.freeze = "^(fc1|twice)";
    const pen_program *program;
    CHECK_OK(pen_compile(&request, &program));
    assert_int_equal(program->trainable_count, 2);
    assert_int_equal(count_role(program, PEN_ROLE_UPDATE), 2);
    // of the loss its own; of the sum nothing but a sum; of fc2 one for the weight
    const uint32_t backward = count_role(program, PEN_ROLE_BACKWARD_INPUT) +
                              count_role(program, PEN_ROLE_BACKWARD_WEIGHT);
    CHECK(backward <= 3, "%u backward nodes", backward);
    pen_program_destroy(program);
}

static void models_of_fixed_batch_are_cut_to_size(void **state) {
    (void)state;
    pen_compile_request request = tiny_request(PEN_COMPILE_TRAIN);
    request.model_path = fixed_path;
    const pen_program *program;
    CHECK_OK(pen_compile(&request, &program));
    assert_null(program->batch_symbol);
    assert_int_equal(pen_value_type(program->graph, program->inputs[0])->shape.dims[0], 8);
    pen_program_destroy(program);
}

static void what_is_wrong_is_said(void **state) {
    (void)state;
    const pen_program *program;
    pen_compile_request request = tiny_request(PEN_COMPILE_TRAIN);
    request.model_path = "nowhere.onnx";
    CHECK_ERROR(pen_compile(&request, &program), PEN_NOT_FOUND, "while compiling nowhere.onnx");
    request = tiny_request(PEN_COMPILE_TRAIN);
    request.freeze = "(";
    CHECK_ERROR(pen_compile(&request, &program), PEN_INVALID_INPUT, "freeze: '('");
    request.freeze = "conv";
    CHECK_ERROR(pen_compile(&request, &program), PEN_NOT_FOUND, "one is called");
    request = tiny_request(PEN_COMPILE_TRAIN);
    pen_compile_loss loss = tiny_loss;
    loss.output = "y";
    request.losses = &loss;
    CHECK_ERROR(pen_compile(&request, &program), PEN_NOT_FOUND, "'y'");
    request = tiny_request(PEN_COMPILE_TRAIN);
    request.losses = LOSS_REQUEST(PEN_LOSS_OUTPUT);
    CHECK_ERROR(pen_compile(&request, &program), PEN_INVALID_INPUT, "while attaching the loss");
    request = tiny_request(PEN_COMPILE_TRAIN);
    const pen_compile_input other = {"z", 1, features};
    request.inputs = &other;
    CHECK_ERROR(pen_compile(&request, &program), PEN_INVALID_INPUT, "'x'");
    request = tiny_request(PEN_COMPILE_TRAIN);
    request.microbatch_size = 1ull << 50;
    CHECK_ERROR(pen_compile(&request, &program), PEN_INVALID_INPUT, "limit");
}

// What is told of the passes: which ran, and whether what each left is a sound graph. Before the
// shapes are known and what they left unread is gone, there is too little to prove.
typedef struct pass_watch {
    uint32_t next; // position in the list of those that may still run
    bool has_types;
    uint32_t count;
} pass_watch;

static pen_status watch_pass(void *context, const pen_compile_pass *pass, const pen_graph *graph) {
    pass_watch *watch = context;
    while (&pen_compile_passes[watch->next] != pass) {
        watch->next++;
        CHECK(watch->next < pen_compile_pass_count, "%s is out of order", pass->name);
    }
    watch->has_types = watch->has_types || strcmp(pass->name, "remove_unread") == 0;
    watch->count++;
    if (!watch->has_types) return PEN_OK;
    return pen_status_add_context(pen_graph_verify(graph, &(pen_verify_options){.types = true}),
                                  "after %s", pass->name);
}

static void every_pass_leaves_a_sound_graph(void **state) {
    (void)state;
    for (int mode = PEN_COMPILE_TRAIN; mode <= PEN_COMPILE_PREFILL; mode++) {
        pass_watch watch = {0};
        const pen_program *program;
        pen_compile_request request = tiny_request((pen_compile_mode)mode);
        request.watch = watch_pass;
        request.watch_context = &watch;
        CHECK_OK(pen_compile(&request, &program));
        pen_program_destroy(program);
        uint32_t expected = 0;
        for (uint32_t i = 0; i < pen_compile_pass_count; i++) {
            expected += pen_compile_pass_runs(&pen_compile_passes[i], &request);
        }
        assert_int_equal(watch.count, expected);
    }
}

static void every_pass_leaves_larger_models_sound(void **state) {
    (void)state;
    static const char *const paths[] = {
        "tests/reference/resnet18/model.onnx", "tests/reference/branching_cnn/model.onnx",
        "tests/reference/normed_mlp/model.onnx", "tests/reference/recurrent/model.onnx",
        "tests/reference/tensorflow/branches.pb"};
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        pass_watch watch = {0};
        const pen_program *program;
        const pen_compile_request request = {.model_path = paths[i],
                                             .mode = PEN_COMPILE_PREDICT,
                                             .microbatch_size = 2,
                                             .watch = watch_pass,
                                             .watch_context = &watch};
        CHECK_OK(pen_compile(&request, &program));
        pen_program_destroy(program);
    }
}

static void passes_are_one_thing_each_under_a_name_of_their_own(void **state) {
    (void)state;
    for (uint32_t i = 0; i < pen_compile_pass_count; i++) {
        const pen_compile_pass *pass = &pen_compile_passes[i];
        const int ways = (pass->run != NULL) + (pass->change != NULL) + (pass->rewrite != NULL);
        CHECK(ways == 1 && pass->modes != 0, "%s", pass->name);
        for (uint32_t j = 0; j < i; j++) {
            CHECK(strcmp(pass->name, pen_compile_passes[j].name) != 0, "%s", pass->name);
        }
    }
}

// An error of who watches ends the compilation.
static pen_status refuse_pass(void *context, const pen_compile_pass *pass, const pen_graph *graph) {
    (void)context;
    (void)graph;
    return pen_error(PEN_CANCELLED, "seen enough after %s", pass->name);
}

static void who_watches_may_end_it(void **state) {
    (void)state;
    const pen_program *program;
    pen_compile_request request = tiny_request(PEN_COMPILE_TRAIN);
    request.watch = refuse_pass;
    CHECK_ERROR(pen_compile(&request, &program), PEN_CANCELLED, "seen enough after import");
}

PEN_NODISCARD static uint64_t hash_graph(const pen_graph *graph) {
    uint64_t hash = 0xcbf29ce484222325u;
    for (uint32_t n = 0; n < pen_graph_node_count(graph); n++) {
        const char *name = pen_node_name(graph, (pen_node_id){n});
        for (const char *c = name; *c != '\0'; c++) {
            hash = (hash ^ (unsigned char)*c) * 0x100000001b3u;
        }
    }
    return hash;
}

// The names of what persists do not depend on the size of the microbatch: not for one example,
// where biases need no sum, either.
static void all_sizes_share_what_persists(void **state) {
    (void)state;
    const pen_program *programs[3];
    static const uint64_t sizes[3] = {8, 3, 1};
    for (int i = 0; i < 3; i++) {
        pen_compile_request request = tiny_request(PEN_COMPILE_TRAIN);
        request.accumulate = true;
        request.microbatch_size = sizes[i];
        CHECK_OK(pen_compile(&request, &programs[i]));
    }
    assert_true(hash_graph(programs[0]->graph) == hash_graph(programs[1]->graph));
    for (uint32_t p = 0; p < programs[0]->order_count; p++) {
        const pen_node *node = pen_graph_node(programs[0]->graph, programs[0]->order[p]);
        if (!node->accumulates) continue;
        const char *name = pen_value_name(programs[0]->graph, node->outputs[0]);
        pen_value_id same;
        CHECK_OK(pen_graph_find_value(programs[2]->graph, name, &same));
        const pen_value *value = pen_graph_value(programs[2]->graph, same);
        assert_true(pen_graph_node(programs[2]->graph, value->producer)->accumulates);
    }
    for (int i = 0; i < 3; i++) {
        pen_program_destroy(programs[i]);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(training_has_everything),
        cmocka_unit_test(guessed_outputs_are_refused),
        cmocka_unit_test(accumulation_sets_updates_apart),
        cmocka_unit_test(inference_has_no_more_than_it_needs),
        cmocka_unit_test(frozen_parameters_are_not_updated),
        cmocka_unit_test(models_of_fixed_batch_are_cut_to_size),
        cmocka_unit_test(what_is_wrong_is_said),
        cmocka_unit_test(all_sizes_share_what_persists),
        cmocka_unit_test(every_pass_leaves_a_sound_graph),
        cmocka_unit_test(every_pass_leaves_larger_models_sound),
        cmocka_unit_test(passes_are_one_thing_each_under_a_name_of_their_own),
        cmocka_unit_test(who_watches_may_end_it),
    };
    return cmocka_run_group_tests(tests, write_files, NULL);
}
