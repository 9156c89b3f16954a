#include <math.h>

#include "base/memory.h"
#include "graph/graph.h"
#include "scheduler/train/train.h"
#include "tests/support/check.h"
#include "tests/support/tiny_model.h"
#include "tests/support/training.h"

static const char *const devices[] = {"reference", "cpu"};
#define DEVICE_COUNT (sizeof devices / sizeof *devices)
#define EXAMPLES 13 // batches of 8 and 5: microbatches of 4, 4, 4 and 1

static const char *model_path, *data_path;

static int write_files(void **state) {
    (void)state;
    model_path = tiny_model_write(&(tiny_model){0}, "tiny.onnx");
    data_path = tiny_data_write("tiny", EXAMPLES, 3);
    return 0;
}

// A job on the tiny model; `train` are more keys of train.
static const pen_job *tiny_job(pen_arena *arena, const char *model, const char *device,
                               const char *train) {
    return training_job(arena,
                        "version: 1\n"
                        "model: {file: %s}\n"
                        "data: {train: {format: npy, inputs: {x: %s_x.npy}, labels: %s_y.npy}}\n"
                        "train: {loss: softmax_cross_entropy, %s}\n"
                        "devices: [{name: a, kind: %s, threads: 2}]\n",
                        model, data_path, data_path, train, device);
}

#define SGD "optimizer: {sgd: {lr: 0.3, momentum: 0.9}}"

// Trains to the end; returns all parameters, and the losses of the steps.
static float *train_whole(const pen_job *job, pen_arena *arena, uint64_t *out_count,
                          double *out_losses) {
    pen_trainer *trainer = training_start(job);
    const uint64_t step_count = pen_trainer_get_size(trainer).step_count;
    for (uint64_t step = 0; step < step_count; step++) {
        const pen_step_report report = training_step(trainer);
        assert_int_equal(report.step, step + 1);
        if (out_losses != NULL) out_losses[step] = report.loss;
    }
    pen_step_report report;
    bool more = true;
    CHECK_OK(pen_trainer_step(trainer, &report, &more));
    assert_false(more);
    float *parameters = training_read(pen_trainer_tensors(trainer), arena, out_count);
    pen_trainer_destroy(trainer);
    return parameters;
}

static void check_close(const float *found, const float *expected, uint64_t count,
                        const char *what) {
    for (uint64_t i = 0; i < count; i++) {
        CHECK(fabsf(found[i] - expected[i]) <= 2e-5f * (1 + fabsf(expected[i])),
              "%s: parameter %llu is %.9g, expected %.9g", what, (unsigned long long)i,
              (double)found[i], (double)expected[i]);
    }
}

// The whole batch at once, or in pieces, also uneven ones: the same up to rounding.
static void check_microbatches(const char *device, const char *optimizer) {
    static const int counts[] = {1, 2, 4, 8};
    pen_arena *arena = check_arena();
    uint64_t count = 0;
    float *whole = NULL;
    double losses[4][12];
    for (int i = 0; i < 4; i++) {
        char train[256];
        snprintf(train, sizeof train, "%s, batch: 8, epochs: 6, seed: 5, microbatches: %d",
                 optimizer, counts[i]);
        const pen_job *job = tiny_job(arena, model_path, device, train);
        float *parameters = train_whole(job, arena, &count, losses[i]);
        if (i == 0) whole = parameters;
        check_close(parameters, whole, count, device);
        for (int step = 0; step < 12; step++) {
            CHECK(fabs(losses[i][step] - losses[0][step]) <= 1e-5, "%s: step %d has %g, not %g",
                  device, step, losses[i][step], losses[0][step]);
        }
    }
    assert_true(losses[0][0] != losses[0][11]);
    pen_arena_destroy(arena);
}

static void microbatches_add_up_to_the_batch(void **state) {
    (void)state;
    for (size_t d = 0; d < DEVICE_COUNT; d++) {
        check_microbatches(devices[d], SGD);
        check_microbatches(devices[d], SGD ", clip_norm: 0.2");
        check_microbatches(devices[d], "optimizer: {adamw: {lr: 0.01, weight_decay: 0.1, "
                                       "epsilon: 0.001}}");
    }
}

// Models without batch statistics: four microbatches of two examples.
static void microbatches_of_images_and_sequences_add_up(void **state) {
    (void)state;
    static const char *const models[] = {"branching_cnn", "lenet", "recurrent"};
    for (size_t m = 0; m < sizeof models / sizeof *models; m++) {
        pen_arena *arena = check_arena();
        float *whole = NULL;
        uint64_t count;
        for (int microbatches = 1; microbatches <= 4; microbatches *= 4) {
            const pen_job *job = training_job(
                arena,
                "version: 1\n"
                "model: {file: tests/reference/%s/model.onnx}\n"
                "data: {train: {format: npy, inputs: {input: tests/reference/%s/inputs.npy}, "
                "labels: tests/reference/%s/labels.npy}}\n"
                "train: {loss: softmax_cross_entropy, optimizer: {sgd: {lr: 0.01}}, batch: 8, "
                "microbatches: %d, steps: 2}\n",
                models[m], models[m], models[m], microbatches);
            float *parameters = train_whole(job, arena, &count, NULL);
            if (whole == NULL) whole = parameters;
            check_close(parameters, whole, count, models[m]);
        }
        pen_arena_destroy(arena);
    }
}

// The loss of an epoch's short last batch is the mean over its own examples.
static void reports_say_what_happened(void **state) {
    (void)state;
    for (size_t d = 0; d < DEVICE_COUNT; d++) {
        pen_arena *arena = check_arena();
        const pen_job *job =
            tiny_job(arena, model_path, devices[d], SGD ", batch: 8, microbatches: 2, epochs: 2");
        pen_trainer *trainer = training_start(job);
        const pen_training_size size = pen_trainer_get_size(trainer);
        assert_int_equal(size.example_count, EXAMPLES);
        assert_int_equal(size.epoch_steps, 2);
        assert_int_equal(size.step_count, 4);
        assert_int_equal(size.trainable_count, 5); // the loss is not of aux.weight
        for (int step = 0; step < 4; step++) {
            const pen_step_report report = training_step(trainer);
            assert_int_equal(report.example_count, step % 2 == 0 ? 8 : 5);
            assert_int_equal(report.target_count, report.example_count);
            assert_true(report.correct_count <= report.target_count);
            assert_int_equal(report.epoch, step / 2 + 1);
            assert_int_equal(report.ends_epoch, step % 2 == 1);
            assert_true(report.learning_rate == 0.3);
            assert_true(report.seconds > 0 && report.wait_seconds >= 0);
        }
        pen_trainer_destroy(trainer);
        pen_arena_destroy(arena);
    }
}

// Reference kernels take scratch memory when they run first: those for the short last batch in the
// second step.
static void check_no_heap_calls(const pen_job *job, const char *what) {
    pen_trainer *trainer = training_start(job);
    training_step(trainer);
    training_step(trainer);
    const uint64_t before = pen_memory_call_count();
    for (int step = 0; step < 8; step++) {
        training_step(trainer);
    }
    const uint64_t calls = pen_memory_call_count() - before;
    CHECK(calls == 0, "%s: %llu calls in eight steps", what, (unsigned long long)calls);
    pen_trainer_destroy(trainer);
}

static void steps_make_no_heap_calls(void **state) {
    (void)state;
    for (size_t d = 0; d < DEVICE_COUNT; d++) {
        pen_arena *arena = check_arena();
        static const char *const trains[] = {
            SGD ", batch: 8, epochs: 5",
            SGD ", batch: 8, epochs: 5, microbatches: 4, clip_norm: 1",
            "optimizer: {adam: {}}, batch: 4, epochs: 5, shuffle: false",
        };
        for (size_t t = 0; t < sizeof trains / sizeof *trains; t++) {
            check_no_heap_calls(tiny_job(arena, model_path, devices[d], trains[t]), devices[d]);
        }
        const pen_job *images = training_job(
            arena,
            "version: 1\n"
            "model: {file: tests/reference/batchnorm_cnn/model.onnx}\n"
            "data: {train: {format: npy, inputs: {input: tests/reference/batchnorm_cnn/inputs.npy},"
            " labels: tests/reference/batchnorm_cnn/labels.npy}}\n"
            "train: {loss: softmax_cross_entropy, optimizer: {sgd: {lr: 0.01, momentum: 0.9}}, "
            "batch: 4, microbatches: 2, epochs: 1}\n"
            "devices: [{name: a, kind: %s}]\n",
            devices[d]);
        check_no_heap_calls(images, devices[d]);
        pen_arena_destroy(arena);
    }
}

static uint64_t hash_after(const pen_job *job) {
    pen_trainer *trainer = training_start(job);
    const uint64_t step_count = pen_trainer_get_size(trainer).step_count;
    for (uint64_t step = 0; step < step_count; step++) {
        training_step(trainer);
    }
    uint64_t hash;
    CHECK_OK(pen_tensor_store_hash(pen_trainer_tensors(trainer), &hash));
    pen_trainer_destroy(trainer);
    return hash;
}

// Shuffling and dropout come from the seed: the same bits again, others with another one.
static void equal_seeds_have_equal_bits(void **state) {
    (void)state;
    const char *path = tiny_model_write(&(tiny_model){.has_dropout = true}, "dropout.onnx");
    for (size_t d = 0; d < DEVICE_COUNT; d++) {
        pen_arena *arena = check_arena();
        const char *train = SGD ", batch: 8, microbatches: 2, epochs: 3, seed: 11";
        const char *other = SGD ", batch: 8, microbatches: 2, epochs: 3, seed: 12";
        const uint64_t first = hash_after(tiny_job(arena, path, devices[d], train));
        const uint64_t again = hash_after(tiny_job(arena, path, devices[d], train));
        const uint64_t third = hash_after(tiny_job(arena, path, devices[d], other));
        assert_true(first == again);
        assert_true(first != third);
        pen_arena_destroy(arena);
    }
}

// Dropout alone, without shuffling, differs from step to step and from microbatch to microbatch:
// with a learning rate of almost 0, equal batches have different losses.
static void dropout_differs_between_steps(void **state) {
    (void)state;
    const char *path = tiny_model_write(&(tiny_model){.has_dropout = true}, "dropout2.onnx");
    pen_arena *arena = check_arena();
    double losses[8];
    const pen_job *job = tiny_job(arena, path, "cpu",
                                  "optimizer: {sgd: {lr: 1e-30}}, batch: 13, epochs: 8, "
                                  "shuffle: false");
    train_whole(job, arena, NULL, losses);
    for (int i = 1; i < 8; i++) {
        CHECK(losses[i] != losses[0], "step %d drops what step 1 did", i + 1);
    }
    pen_arena_destroy(arena);
}

static void frozen_parameters_stay(void **state) {
    (void)state;
    for (size_t d = 0; d < DEVICE_COUNT; d++) {
        pen_arena *arena = check_arena();
        const pen_job *job =
            tiny_job(arena, model_path, devices[d],
                     "optimizer: {adamw: {lr: 0.1, weight_decay: 0.5}}, batch: 8, microbatches: 2, "
                     "epochs: 3, freeze: \"^fc1|twice\"");
        pen_trainer *trainer = training_start(job);
        const pen_tensor_store *store = pen_trainer_tensors(trainer);
        assert_int_equal(pen_trainer_get_size(trainer).trainable_count, 2);
        float *before = training_read(store, arena, NULL);
        for (int step = 0; step < 6; step++) {
            training_step(trainer);
        }
        float *after = training_read(store, arena, NULL);
        uint64_t at = 0;
        for (uint32_t i = 0; i < pen_tensor_store_model_count(store); i++) {
            const pen_stored_tensor *tensor = &store->tensors[i];
            const bool trains = strncmp(tensor->name, "fc2", 3) == 0;
            const int difference = memcmp(before + at, after + at, tensor->bytes);
            CHECK((difference != 0) == trains, "%s: '%s' %s", devices[d], tensor->name,
                  trains ? "stayed" : "changed");
            at += tensor->bytes / sizeof(float);
        }
        const pen_graph *graph = pen_trainer_program(trainer)->graph;
        for (uint32_t n = 0; n < pen_graph_node_count(graph); n++) {
            const pen_node *node = pen_graph_node(graph, (pen_node_id){n});
            if (!pen_node_is(node->gradient_of)) continue;
            const char *of = pen_node_name(graph, node->gradient_of);
            CHECK(strstr(of, "twice") == NULL && strstr(of, "fc1") == NULL &&
                      strstr(of, "act") == NULL,
                  "'%s' runs backwards", of);
        }
        pen_trainer_destroy(trainer);
        pen_arena_destroy(arena);
    }
}

// The loss of a model that computes in float64 is read and weighed as such.
static void losses_may_be_double(void **state) {
    (void)state;
    const char *path = tiny_model_write(&(tiny_model){.in_double = true}, "double.onnx");
    for (size_t d = 0; d < DEVICE_COUNT; d++) {
        pen_arena *arena = check_arena();
        double single[4], twice[4];
        const char *train = SGD ", batch: 8, microbatches: 2, epochs: 2";
        train_whole(tiny_job(arena, model_path, devices[d], train), arena, NULL, single);
        pen_trainer *trainer = training_start(tiny_job(arena, path, devices[d], train));
        for (int step = 0; step < 4; step++) {
            twice[step] = training_step(trainer).loss;
            CHECK(fabs(twice[step] - single[step]) < 1e-5, "%g, not %g", twice[step], single[step]);
        }
        pen_trainer_destroy(trainer);
        pen_arena_destroy(arena);
    }
}

static void infinite_losses_stop_training(void **state) {
    (void)state;
    const char *path = tiny_model_write(&(tiny_model){.is_exploding = true}, "exploding.onnx");
    for (size_t d = 0; d < DEVICE_COUNT; d++) {
        for (int microbatches = 1; microbatches <= 2; microbatches++) {
            pen_arena *arena = check_arena();
            char train[128];
            snprintf(train, sizeof train, SGD ", batch: 8, epochs: 1, microbatches: %d",
                     microbatches);
            pen_trainer *trainer = training_start(tiny_job(arena, path, devices[d], train));
            uint64_t before, after;
            pen_step_report report;
            bool more;
            CHECK_OK(pen_tensor_store_hash(pen_trainer_tensors(trainer), &before));
            CHECK_ERROR(pen_trainer_step(trainer, &report, &more), PEN_NOT_FINITE,
                        "the loss of step 1 is");
            CHECK_OK(pen_tensor_store_hash(pen_trainer_tensors(trainer), &after));
            if (microbatches > 1) assert_true(before == after);
            pen_trainer_destroy(trainer);
            pen_arena_destroy(arena);
        }
    }
}

// A shorter training is the beginning of a longer one, where the learning rate is constant.
static void steps_can_be_limited(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    const pen_job *job = tiny_job(arena, model_path, "cpu", SGD ", batch: 8, epochs: 5");
    pen_trainer *trainer;
    CHECK_OK(pen_trainer_create(job, &(pen_trainer_options){.step_limit = 3}, &trainer));
    assert_int_equal(pen_trainer_get_size(trainer).step_count, 3);
    for (int i = 0; i < 3; i++) {
        training_step(trainer);
    }
    pen_step_report report;
    bool more;
    CHECK_OK(pen_trainer_step(trainer, &report, &more));
    assert_false(more);
    pen_trainer_destroy(trainer);
    pen_trainer_destroy(NULL);
    pen_arena_destroy(arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(microbatches_add_up_to_the_batch),
        cmocka_unit_test(microbatches_of_images_and_sequences_add_up),
        cmocka_unit_test(reports_say_what_happened),
        cmocka_unit_test(steps_make_no_heap_calls),
        cmocka_unit_test(equal_seeds_have_equal_bits),
        cmocka_unit_test(dropout_differs_between_steps),
        cmocka_unit_test(frozen_parameters_stay),
        cmocka_unit_test(losses_may_be_double),
        cmocka_unit_test(infinite_losses_stop_training),
        cmocka_unit_test(steps_can_be_limited),
    };
    return cmocka_run_group_tests(tests, write_files, NULL);
}
