// What is wrong with a job, its model or its data is said clearly, and no refused allocation does
// more than end the training.
#include <math.h>

#include "base/memory.h"
#include "scheduler/train/train.h"
#include "tests/support/check.h"
#include "tests/support/tiny_model.h"
#include "tests/support/training.h"

static const char *model_path, *data_path;

static int write_files(void **state) {
    (void)state;
    model_path = tiny_model_write(&(tiny_model){0}, "tiny.onnx");
    data_path = tiny_data_write("tiny", 13, 3);
    return 0;
}

// Parts of a job that are replaced one at a time; NULL: as they should be.
typedef struct job_parts {
    const char *model;
    const char *input; // name
    const char *inputs;
    const char *labels; // with its key, or ""
    const char *loss;
    const char *train;
    const char *devices;
} job_parts;

static const char *part(const char *given, const char *usual) {
    return given != NULL ? given : usual;
}

// The memory of the job is the test's own: faults are counted from the trainer on.
static pen_status try_parts_failing(const job_parts *parts, uint64_t fail_call, int persistent,
                                    uint64_t *out_calls) {
    pen_arena *arena = check_arena();
    const char *inputs, *labels;
    CHECK_OK(pen_arena_format(arena, &inputs, "%s_x.npy", data_path));
    CHECK_OK(pen_arena_format(arena, &labels, ", labels: %s_y.npy", data_path));
    const pen_job *job = training_job(
        arena,
        "version: 1\n"
        "model: {file: %s}\n"
        "data: {train: {format: npy, inputs: {%s: %s}%s}}\n"
        "train: {loss: %s, optimizer: {sgd: {lr: 0.1}}, %s}\n"
        "devices: %s\n",
        part(parts->model, model_path), part(parts->input, "x"), part(parts->inputs, inputs),
        part(parts->labels, labels), part(parts->loss, "softmax_cross_entropy"),
        part(parts->train, "batch: 8"), part(parts->devices, "[{name: a}]"));
    pen_trainer *trainer = NULL;
    const uint64_t before = pen_memory_call_count();
    pen_memory_fail_at(fail_call, persistent);
    pen_status status = pen_trainer_create(job, &(pen_trainer_options){0}, &trainer);
    pen_step_report report;
    bool more = true;
    while (status == PEN_OK && more) {
        status = pen_trainer_step(trainer, &report, &more);
    }
    pen_trainer_destroy(trainer);
    pen_memory_fail_at(0, 0);
    *out_calls = pen_memory_call_count() - before;
    pen_arena_destroy(arena);
    return status;
}

static pen_status try_parts(const job_parts *parts) {
    uint64_t calls;
    return try_parts_failing(parts, 0, 0, &calls);
}

static void the_usual_parts_train(void **state) {
    (void)state;
    CHECK_OK(try_parts(&(job_parts){0}));
}

static void data_must_suit_the_model(void **state) {
    (void)state;
    CHECK_ERROR(try_parts(&(job_parts){.input = "y"}), PEN_INVALID_INPUT, "'x'");
    const char *wide = tiny_npy_write("wide.npy", true, 2, (int64_t[]){13, 7});
    CHECK_ERROR(try_parts(&(job_parts){.inputs = wide}), PEN_INVALID_INPUT,
                "the shape [7], but the model's input 'x' takes examples of [6]");
    const char *integers = tiny_npy_write("integers.npy", false, 2, (int64_t[]){13, 6});
    CHECK_ERROR(try_parts(&(job_parts){.inputs = integers}), PEN_INVALID_INPUT, "int64");
    CHECK_ERROR(try_parts(&(job_parts){.inputs = "nowhere.npy"}), PEN_NOT_FOUND, "nowhere.npy");
    CHECK_ERROR(try_parts(&(job_parts){.model = "nowhere.onnx"}), PEN_NOT_FOUND, "nowhere.onnx");
    // another order of the same numbers is no error: 2x3 is 6
    const char *folded = tiny_npy_write("folded.npy", true, 3, (int64_t[]){13, 2, 3});
    CHECK_OK(try_parts(&(job_parts){.inputs = folded}));
}

static const char *labels_of(const char *name, bool is_float, uint32_t rank, const int64_t *dims) {
    static char text[512];
    snprintf(text, sizeof text, ", labels: %s", tiny_npy_write(name, is_float, rank, dims));
    return text;
}

static void labels_must_suit_the_loss(void **state) {
    (void)state;
    CHECK_ERROR(try_parts(&(job_parts){.labels = ""}), PEN_INVALID_INPUT, "labels");
    CHECK_ERROR(try_parts(&(job_parts){.labels = labels_of("l1.npy", true, 1, (int64_t[]){13})}),
                PEN_INVALID_INPUT, "float32");
    CHECK_ERROR(
        try_parts(&(job_parts){.labels = labels_of("l2.npy", false, 2, (int64_t[]){13, 2})}),
        PEN_INVALID_INPUT, "labels");
    CHECK_ERROR(try_parts(&(job_parts){.labels = labels_of("l3.npy", false, 1, (int64_t[]){12})}),
                PEN_INVALID_INPUT, "12");
    CHECK_ERROR(try_parts(&(job_parts){.loss = "mean_squared_error"}), PEN_INVALID_INPUT, "labels");
    CHECK_OK(try_parts(&(job_parts){.loss = "mean_squared_error",
                                    .labels = labels_of("l4.npy", true, 2, (int64_t[]){13, 3})}));
    int64_t wrong[13] = {0, 1, 2, 0, 1, 3};
    const char header[] = "l5.npy";
    const char *path = tiny_npy_write(header, false, 1, (int64_t[]){13});
    FILE *file = fopen(path, "r+b");
    assert_non_null(file);
    fseek(file, -(long)sizeof wrong, SEEK_END);
    fwrite(wrong, sizeof wrong, 1, file);
    fclose(file);
    char labels[512];
    snprintf(labels, sizeof labels, ", labels: %s", path);
    CHECK_ERROR(try_parts(&(job_parts){.labels = labels}), PEN_INVALID_INPUT, "3");
}

static void the_loss_must_suit_the_model(void **state) {
    (void)state;
    CHECK_ERROR(try_parts(&(job_parts){.loss = "output", .labels = ""}), PEN_INVALID_INPUT,
                "expected one element");
    CHECK_ERROR(try_parts(&(job_parts){.loss = "output, loss_output: nothing", .labels = ""}),
                PEN_NOT_FOUND, "'nothing'");
    const char *fixed = tiny_model_write(&(tiny_model){.fixed_batch = true}, "fixed.onnx");
    CHECK_OK(try_parts(&(job_parts){.model = fixed, .train = "batch: 4, drop_last: true"}));
}

#define ENTROPY "softmax_cross_entropy, "

// Weights of three classes in a file.
static const char *weights_of(const char *name, double first, double second, double third) {
    static char text[512];
    const float weights[] = {(float)first, (float)second, (float)third};
    const char *path = tiny_npy_write(name, true, 1, (int64_t[]){3});
    FILE *file = fopen(path, "r+b");
    assert_non_null(file);
    fseek(file, -(long)sizeof weights, SEEK_END);
    fwrite(weights, sizeof weights, 1, file);
    fclose(file);
    snprintf(text, sizeof text, ENTROPY "class_weights: %s", path);
    return text;
}

static void options_must_suit_the_loss(void **state) {
    (void)state;
    CHECK_OK(try_parts(&(job_parts){.loss = ENTROPY "class_weights: [0, 1, 2]"}));
    CHECK_OK(try_parts(&(job_parts){.loss = weights_of("w1.npy", 1, 0, 2)}));
    CHECK_OK(try_parts(&(job_parts){.loss = ENTROPY "ignore_index: 0, label_smoothing: 0.1"}));
    CHECK_ERROR(try_parts(&(job_parts){.loss = ENTROPY "class_weights: [1, 2]"}), PEN_INVALID_INPUT,
                "class_weights has 2 numbers, but output '");
    CHECK_ERROR(try_parts(&(job_parts){.loss = ENTROPY "class_weights: [0, 0, 0]"}),
                PEN_INVALID_INPUT, "found only 0");
    CHECK_ERROR(try_parts(&(job_parts){.loss = weights_of("w2.npy", 1, -2, 2)}), PEN_INVALID_INPUT,
                "w2.npy': the weight of class 1 is -2, expected a number of at least 0");
    CHECK_ERROR(try_parts(&(job_parts){.loss = weights_of("w3.npy", 1, (double)NAN, 2)}),
                PEN_INVALID_INPUT, "w3.npy': the weight of class 1 is");
    CHECK_ERROR(try_parts(&(job_parts){.loss = ENTROPY "class_weights: nowhere.npy"}),
                PEN_NOT_FOUND, "nowhere.npy");
    CHECK_ERROR(try_parts(&(job_parts){.loss = ENTROPY "class_axis: 2"}), PEN_INVALID_INPUT,
                "class_axis is 2, but output '");
    int64_t dims[] = {13};
    const char *all = labels_of("zeros.npy", false, 1, dims); // all are ignored
    CHECK_ERROR(try_parts(&(job_parts){.loss = ENTROPY "ignore_index: 0", .labels = all}),
                PEN_INVALID_INPUT, "zeros.npy': no target counts: all labels are ignore_index");
}

static void freezing_must_leave_something(void **state) {
    (void)state;
    CHECK_ERROR(try_parts(&(job_parts){.train = "batch: 8, freeze: conv"}), PEN_NOT_FOUND,
                "no parameter matches 'conv'");
    CHECK_ERROR(try_parts(&(job_parts){.train = "batch: 8, freeze: \".\""}), PEN_INVALID_INPUT,
                "nothing to train");
    // aux.weight is trainable, but the loss does not depend on it
    CHECK_ERROR(try_parts(&(job_parts){.train = "batch: 8, freeze: \"^(fc|twice)\""}),
                PEN_INVALID_INPUT, "nothing to train");
}

static void devices_must_have_room(void **state) {
    (void)state;
    static const char *const kinds[] = {"cpu", "reference"};
    for (int i = 0; i < 2; i++) {
        char devices[128];
        snprintf(devices, sizeof devices, "[{name: small, kind: %s, memory: 1KiB}]", kinds[i]);
        CHECK_ERROR(try_parts(&(job_parts){.devices = devices}), PEN_DOES_NOT_FIT, "small");
    }
}

static void batches_must_be_there(void **state) {
    (void)state;
    CHECK_ERROR(try_parts(&(job_parts){.train = "batch: 16, drop_last: true"}), PEN_INVALID_INPUT,
                "13 examples");
    CHECK_OK(try_parts(&(job_parts){.train = "batch: 16"}));
    CHECK_OK(try_parts(&(job_parts){.train = "batch: 1, steps: 3"}));
    CHECK_OK(try_parts(&(job_parts){.train = "batch: 26, microbatches: 2"})); // 13 and none
    CHECK_OK(try_parts(&(job_parts){.train = "batch: 20, microbatches: 2"})); // 10 and 3
}

// Every allocation of ours fails in turn, alone and with all after it: the training ends with an
// error, everything is given back (the address sanitizer looks), and the next one is as good as
// new.
static void check_sweep(const char *device, int persistent) {
    char devices[64];
    snprintf(devices, sizeof devices, "[{name: a, kind: %s, threads: 1}]", device);
    const job_parts parts = {.train = "batch: 8, microbatches: 2, steps: 2, clip_norm: 1",
                             .devices = devices};
    uint64_t calls, ignored;
    CHECK_OK(try_parts_failing(&parts, 0, 0, &calls));
    CHECK(calls > 30, "only %llu calls", (unsigned long long)calls);
    uint32_t refused = 0;
    const uint64_t stride = calls / 120 + 1;
    for (uint64_t call = 1; call <= calls; call += call < 60 ? 1 : stride) {
        pen_status status = try_parts_failing(&parts, call, persistent, &ignored);
        if (status == PEN_OK) continue; // something optional went without
        refused++;
        CHECK_ERROR(status, PEN_OUT_OF_MEMORY, "memory");
    }
    CHECK(refused > 30, "only %u refusals were seen", refused);
    CHECK_OK(try_parts(&parts));
}

static void refused_memory_ends_training(void **state) {
    (void)state;
    check_sweep("cpu", 0);
    check_sweep("cpu", 1);
    check_sweep("reference", 0);
    check_sweep("reference", 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_usual_parts_train),
        cmocka_unit_test(data_must_suit_the_model),
        cmocka_unit_test(labels_must_suit_the_loss),
        cmocka_unit_test(the_loss_must_suit_the_model),
        cmocka_unit_test(options_must_suit_the_loss),
        cmocka_unit_test(freezing_must_leave_something),
        cmocka_unit_test(devices_must_have_room),
        cmocka_unit_test(batches_must_be_there),
        cmocka_unit_test(refused_memory_ends_training),
    };
    return cmocka_run_group_tests(tests, write_files, NULL);
}
