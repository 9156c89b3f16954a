// The C interface as a program uses it: jobs as text, arrays in memory, predictions, parameters,
// cancelling, messages, and structs of older and newer programs.

#include "scheduler/penstock.h"

#include <math.h>

#include "base/log.h"
#include "base/memory.h"
#include "base/system/file.h"
#include "tests/support/check.h"
#include "tests/support/scratch.h"
#include "tests/support/tiny_model.h"

#define EXAMPLES 13 // batches of 8 and 5

static const char *model_path, *data_path;
static float inputs[EXAMPLES * TINY_FEATURES];
static int64_t labels[EXAMPLES];
static const int64_t input_shape[] = {EXAMPLES, TINY_FEATURES}, label_shape[] = {EXAMPLES};

static void read_array(const char *end, void *out_data, size_t bytes) {
    pen_arena *arena = check_arena();
    const char *path, *file;
    size_t length;
    CHECK_OK(pen_arena_format(arena, &path, "%s_%s.npy", data_path, end));
    CHECK_OK(pen_file_read(path, 1 << 20, arena, &file, &length));
    memcpy(out_data, file + (length - bytes), bytes);
    pen_arena_destroy(arena);
}

static int write_files(void **state) {
    (void)state;
    model_path = tiny_model_write(&(tiny_model){0}, "tiny.onnx");
    data_path = tiny_data_write("tiny", EXAMPLES, 3);
    read_array("x", inputs, sizeof inputs);
    read_array("y", labels, sizeof labels);
    return 0;
}

static pen_array input_array(const char *name) {
    return (pen_array){.struct_size = sizeof(pen_array),
                       .name = name,
                       .element = PEN_ARRAY_FLOAT32,
                       .rank = 2,
                       .shape = input_shape,
                       .data = inputs};
}

static pen_array label_array(const char *name) {
    return (pen_array){.struct_size = sizeof(pen_array),
                       .name = name,
                       .element = PEN_ARRAY_INT64,
                       .rank = 1,
                       .shape = label_shape,
                       .data = labels};
}

#define ARRAYS "{format: arrays, inputs: {x: given x}, labels: given y}"

// The text of a job on the tiny model.
static char *job_text(const char *train, const char *eval, const char *devices) {
    static char text[2048];
    snprintf(text, sizeof text,
             "version: 1\n"
             "model: {file: %s}\n"
             "data: {train: %s%s%s}\n"
             "train: {loss: softmax_cross_entropy, optimizer: {sgd: {lr: 0.3}}, batch: 8,\n"
             "        microbatches: 2, epochs: 3, seed: 5}\n"
             "devices: [%s]\n",
             model_path, train, eval == NULL ? "" : ", eval: ", eval == NULL ? "" : eval,
             devices == NULL ? "{name: a, threads: 1}" : devices);
    return text;
}

static pen_training *open_job(const char *text, const pen_array *arrays, size_t count,
                              const volatile int *cancel) {
    const pen_training_options options = {.struct_size = sizeof options,
                                          .job_text = text,
                                          .arrays = arrays,
                                          .array_count = count,
                                          .cancel = cancel};
    pen_training *training;
    CHECK_OK(pen_training_open("program's job", &options, &training));
    return training;
}

static pen_training *open_arrays(const char *eval, const volatile int *cancel) {
    const pen_array arrays[] = {input_array("given x"), label_array("given y")};
    return open_job(job_text(ARRAYS, eval, NULL), arrays, 2, cancel);
}

// Trains to the end; returns how many steps, and their losses.
static uint64_t train_all(pen_training *training, double *out_losses) {
    uint64_t count = 0;
    for (bool more = true; more;) {
        pen_training_step_report step = {.struct_size = sizeof step};
        CHECK_OK(pen_training_step(training, &step, &more));
        if (!more) break;
        assert_int_equal(step.step, count + 1);
        assert_int_equal(step.ends_epoch, step.step % 2 == 0);
        out_losses[count++] = step.loss;
    }
    return count;
}

// The same numbers, bit for bit, from memory and from files, and over two devices.
static void arrays_train_as_files_do(void **state) {
    (void)state;
    double losses[3][6];
    char files[256];
    snprintf(files, sizeof files, "{format: npy, inputs: {x: %s_x.npy}, labels: %s_y.npy}",
             data_path, data_path);
    const pen_array arrays[] = {input_array("given x"), label_array("given y")};
    pen_training *trainings[] = {
        open_job(job_text(files, NULL, NULL), NULL, 0, NULL),
        open_job(job_text(ARRAYS, NULL, NULL), arrays, 2, NULL),
        open_job(job_text(ARRAYS, NULL, "{name: a, threads: 1}, {name: b, threads: 1}"), arrays, 2,
                 NULL)};
    for (int i = 0; i < 3; i++) {
        assert_int_equal(pen_training_step_count(trainings[i]), 6);
        assert_int_equal(train_all(trainings[i], losses[i]), 6);
        pen_training_close(trainings[i]);
        assert_memory_equal(losses[i], losses[0], sizeof losses[0]);
    }
    assert_true(losses[0][5] < losses[0][0]);
}

// A model of layers that is in no file trains as the same job in a file does.
static void layers_may_be_text(void **state) {
    (void)state;
    static const char *const text =
        "version: 1\n"
        "model: {seed: 3, inputs: {x: {shape: [6]}}, layers: [dense: {units: 3}]}\n"
        "data: {train: " ARRAYS "}\n"
        "train: {loss: softmax_cross_entropy, optimizer: {sgd: {lr: 0.3}}, batch: 8, epochs: 3}\n";
    const pen_array arrays[] = {input_array("given x"), label_array("given y")};
    const char *path = scratch_path("layers.yaml");
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
    const pen_training_options options = {
        .struct_size = sizeof options, .arrays = arrays, .array_count = 2};
    pen_training *training;
    double losses[2][6];
    CHECK_OK(pen_training_open(path, &options, &training));
    train_all(training, losses[0]);
    pen_training_close(training);
    training = open_job(text, arrays, 2, NULL);
    train_all(training, losses[1]);
    CHECK_OK(pen_training_export(training, scratch_path("layers.onnx")));
    pen_training_close(training);
    assert_memory_equal(losses[0], losses[1], sizeof losses[0]);
}

static void arrays_are_checked(void **state) {
    (void)state;
    const char *text = job_text(ARRAYS, NULL, NULL);
    pen_array arrays[] = {input_array("given x"), label_array("given y")};
    pen_training_options options = {
        .struct_size = sizeof options, .job_text = text, .arrays = arrays, .array_count = 2};
    pen_training *training;
    options.array_count = 1;
    CHECK_ERROR(pen_training_open("j", &options, &training), PEN_NOT_FOUND,
                "j:3:15: error: no array 'given y' is given");
    assert_null(training);
    options.array_count = 2;
    const int64_t fewer[] = {EXAMPLES - 1}, negative[] = {-1}, huge[] = {INT64_MAX, 8};
    arrays[1].shape = fewer;
    CHECK_ERROR(pen_training_open("j", &options, &training), PEN_INVALID_INPUT,
                "'given y' has 12 labels, but 'given x' has 13 examples");
    arrays[1].shape = negative;
    CHECK_ERROR(pen_training_open("j", &options, &training), PEN_INVALID_INPUT,
                "array 'given y' has a dimension that is negative");
    arrays[1] = label_array("given y");
    arrays[0].shape = huge;
    CHECK_ERROR(pen_training_open("j", &options, &training), PEN_INVALID_INPUT, "too large");
    arrays[0] = input_array("given x");
    arrays[0].rank = 9;
    CHECK_ERROR(pen_training_open("j", &options, &training), PEN_INVALID_INPUT,
                "has 9 dimensions, expected 1 to 8");
    arrays[0] = input_array("given x");
    arrays[0].element = PEN_ARRAY_FLOAT16;
    CHECK_ERROR(pen_training_open("j", &options, &training), PEN_UNSUPPORTED,
                "array 'given x' has elements of float16");
    arrays[0].element = (pen_array_element)99;
    CHECK_ERROR(pen_training_open("j", &options, &training), PEN_INVALID_INPUT, "99 is none");
    arrays[0] = input_array("given x");
    arrays[0].data = NULL;
    CHECK_ERROR(pen_training_open("j", &options, &training), PEN_INVALID_INPUT, "has no data");
}

// What an older program has, and what a newer one may ask for.
static void structs_may_grow(void **state) {
    (void)state;
    struct {
        pen_training_options options;
        uint64_t added;
    } newer = {.options = {.struct_size = sizeof newer}, .added = 1};
    pen_training *training;
    CHECK_ERROR(pen_training_open("none.yaml", &newer.options, &training), PEN_UNSUPPORTED,
                "sets a member that version");
    newer.added = 0;
    CHECK_ERROR(pen_training_open("none.yaml", &newer.options, &training), PEN_NOT_FOUND, "");
    pen_training_options options = {0};
    CHECK_ERROR(pen_training_open("none.yaml", &options, &training), PEN_INVALID_INPUT,
                "struct_size is 0, expected sizeof(pen_training_options)");
    options = (pen_training_options){
        .struct_size = sizeof options, .continues = true, .overwrites = true};
    CHECK_ERROR(pen_training_open("none.yaml", &options, &training), PEN_INVALID_INPUT,
                "both `continues` and `overwrites`");
    options.struct_size = offsetof(pen_training_options, continues); // which it does not know
    CHECK_ERROR(pen_training_open("none.yaml", &options, &training), PEN_NOT_FOUND, "");

    training = open_arrays(NULL, NULL);
    bool more;
    struct {
        pen_training_step_report report;
        uint64_t added;
    } step = {.report = {.struct_size = sizeof step}, .added = 7};
    CHECK_OK(pen_training_step(training, &step.report, &more));
    assert_true(more && step.report.step == 1 && step.added == 0);
    memset(&step, 0xff, sizeof step);
    step.report.struct_size = offsetof(pen_training_step_report, loss);
    CHECK_OK(pen_training_step(training, &step.report, &more));
    assert_int_equal(step.report.step, 2);
    assert_int_equal(step.report.example_count, UINT64_MAX); // as it was
    step.report.struct_size = SIZE_MAX;
    CHECK_ERROR(pen_training_step(training, &step.report, &more), PEN_INVALID_INPUT,
                "pen_training_step_report: struct_size is");
    pen_training_close(training);
}

static float *predict(pen_training *training, const char *output, const pen_array *given,
                      pen_tensor_info *out_info) {
    out_info->struct_size = sizeof *out_info;
    CHECK_OK(pen_training_describe_output(training, output, given, given != NULL, out_info));
    float *rows = pen_memory_allocate(out_info->bytes, 1);
    CHECK_OK(pen_training_predict(training, output, given, given != NULL, rows, out_info->bytes));
    return rows;
}

// Row by row, in pieces of any size, over one device and two: what evaluation data give.
static void predictions_are_rows(void **state) {
    (void)state;
    static const char *const devices[] = {NULL, "{name: a, threads: 1}, {name: b, threads: 1}"};
    for (int d = 0; d < 2; d++) {
        const pen_array arrays[] = {input_array("given x"), label_array("given y")};
        pen_training *training = open_job(job_text(ARRAYS, ARRAYS, devices[d]), arrays, 2, NULL);
        double losses[6];
        train_all(training, losses);
        pen_tensor_info whole, part;
        float *evaluated = predict(training, "fc2_bias:0", NULL, &whole);
        assert_true(whole.rank == 2 && whole.shape[0] == EXAMPLES &&
                    whole.element == PEN_ARRAY_FLOAT32);
        assert_string_equal(whole.name, "fc2_bias:0");
        for (int64_t count = 1; count <= EXAMPLES; count += 3) {
            const int64_t shape[] = {count, TINY_FEATURES};
            pen_array given = input_array("x");
            given.shape = shape;
            float *rows = predict(training, "fc2_bias:0", &given, &part);
            assert_int_equal(part.shape[0], count);
            for (int64_t i = 0; i < count * TINY_CLASSES; i++) {
                assert_true(fabsf(rows[i] - evaluated[i]) <= 1e-6f * (1 + fabsf(evaluated[i])));
            }
            pen_memory_free(rows);
        }
        pen_array unnamed = input_array(NULL);
        float *rows = predict(training, NULL, &unnamed, &part);
        assert_memory_equal(rows, evaluated, whole.bytes);
        pen_memory_free(rows);
        pen_memory_free(evaluated);
        pen_training_close(training);
    }
}

static void predictions_are_checked(void **state) {
    (void)state;
    pen_training *training = open_arrays(NULL, NULL);
    pen_tensor_info info = {.struct_size = sizeof info};
    const pen_array given = input_array("x"), other = input_array("z");
    float rows[EXAMPLES * TINY_CLASSES];
    CHECK_ERROR(pen_training_describe_output(training, "none", &given, 1, &info), PEN_NOT_FOUND,
                "no output 'none'; its first is '");
    CHECK_ERROR(pen_training_describe_output(training, "fc2_bias:0", &other, 1, &info),
                PEN_INVALID_INPUT, "nothing for the model's input 'x'");
    CHECK_ERROR(pen_training_describe_output(training, "fc2_bias:0", NULL, 0, &info), PEN_NOT_FOUND,
                "'eval' is missing");
    CHECK_ERROR(pen_training_predict(training, "fc2_bias:0", &given, 1, rows, sizeof rows - 1),
                PEN_INVALID_INPUT, "the rows take 156 bytes, found room for 155");
    CHECK_OK(pen_training_predict(training, "fc2_bias:0", &given, 1, rows, sizeof rows));
    pen_training_close(training);
}

// Parameters out of one training and into another: then it says the same.
static void parameters_go_round(void **state) {
    (void)state;
    static const char *const devices[] = {NULL, "{name: a, threads: 1}, {name: b, threads: 1}"};
    pen_training *trained = open_arrays(ARRAYS, NULL);
    double losses[6];
    train_all(trained, losses);
    pen_training_evaluation expected = {.struct_size = sizeof expected}, found = expected;
    CHECK_OK(pen_training_evaluate(trained, &expected));
    pen_tensor_info whole, again;
    float *rows = predict(trained, "fc2_bias:0", NULL, &whole);
    for (int d = 0; d < 2; d++) {
        const pen_array arrays[] = {input_array("given x"), label_array("given y")};
        pen_training *fresh = open_job(job_text(ARRAYS, ARRAYS, devices[d]), arrays, 2, NULL);
        pen_memory_free(predict(fresh, "fc2_bias:0", NULL, &again)); // so that a copy is there
        uint32_t count;
        CHECK_OK(pen_training_count_tensors(fresh, &count));
        assert_int_equal(count, 6);
        for (uint32_t i = 0; i < count; i++) {
            pen_tensor_info tensor = {.struct_size = sizeof tensor};
            CHECK_OK(pen_training_describe_tensor(trained, i, &tensor));
            void *data = pen_memory_allocate(tensor.bytes, 1);
            CHECK_OK(pen_training_read_tensor(trained, i, data, tensor.bytes));
            CHECK_ERROR(pen_training_write_tensor(fresh, i, data, tensor.bytes + 4),
                        PEN_INVALID_INPUT, "' has ");
            CHECK_OK(pen_training_write_tensor(fresh, i, data, tensor.bytes));
            pen_memory_free(data);
        }
        CHECK_ERROR(pen_training_read_tensor(fresh, count, rows, 4), PEN_NOT_FOUND, "no tensor 6");
        CHECK_OK(pen_training_evaluate(fresh, &found));
        assert_true(found.loss == expected.loss && found.correct_count == expected.correct_count);
        float *other = predict(fresh, "fc2_bias:0", NULL, &again);
        assert_memory_equal(other, rows, whole.bytes);
        pen_memory_free(other);
        pen_training_close(fresh);
    }
    pen_memory_free(rows);
    pen_training_close(trained);
}

// What is evaluated, predicted and saved is the average, but before the first step.
static void averages_take_their_place(void **state) {
    (void)state;
    static const char *const devices[] = {NULL, "{name: a, threads: 1}, {name: b, threads: 1}"};
    const pen_array arrays[] = {input_array("given x"), label_array("given y")};
    for (int d = 0; d < 2; d++) {
        char averaged[2048];
        const char *plain = job_text(ARRAYS, ARRAYS, devices[d]);
        const size_t end = (size_t)(strstr(plain, "seed: 5") - plain);
        snprintf(averaged, sizeof averaged, "%.*saverage: {decay: 0.75}, %s", (int)end, plain,
                 plain + end);
        pen_training *training = open_job(averaged, arrays, 2, NULL);
        pen_training *other = open_job(job_text(ARRAYS, ARRAYS, devices[d]), arrays, 2, NULL);
        pen_training_evaluation first = {.struct_size = sizeof first}, found = first, last = first;
        double losses[6];
        CHECK_OK(pen_training_evaluate(other, &first));
        CHECK_OK(pen_training_evaluate(training, &found));
        assert_true(found.loss == first.loss);
        assert_int_equal(train_all(training, losses), 6);
        train_all(other, losses);
        CHECK_OK(pen_training_evaluate(training, &found));
        CHECK_OK(pen_training_evaluate(other, &last));
        assert_true(found.loss != last.loss && found.loss != first.loss);
        pen_training_close(other);
        CHECK_OK(pen_training_save(training, scratch_path("averaged.safetensors")));
        pen_tensor_info info;
        float *rows = predict(training, "fc2_bias:0", NULL, &info);
        const pen_training_options options = {.struct_size = sizeof options,
                                              .job_text = job_text(ARRAYS, ARRAYS, NULL),
                                              .arrays = arrays,
                                              .array_count = 2,
                                              .parameters = scratch_path("averaged.safetensors")};
        CHECK_OK(pen_training_open("saved", &options, &other));
        CHECK_OK(pen_training_evaluate(other, &last));
        float *saved = predict(other, "fc2_bias:0", NULL, &info);
        assert_true(last.loss == found.loss);
        assert_memory_equal(rows, saved, info.bytes);
        pen_memory_free(saved);
        pen_memory_free(rows);
        pen_training_close(other);
        pen_training_close(training);
    }
}

// A step with all examples finds before its update what an evaluation found just before.
static void step_metrics_are_those_of_evaluations(void **state) {
    (void)state;
    static const char *const devices[] = {NULL, "{name: a, threads: 1}, {name: b, threads: 1}"};
    static const char *const names[] = {"top_2", "perplexity"};
    const pen_array arrays[] = {input_array("given x"), label_array("given y")};
    for (int d = 0; d < 2; d++) {
        char text[4096];
        snprintf(text, sizeof text,
                 "%sevaluation: {every: 99 steps, metrics: [perplexity, top_2]}\n",
                 job_text(ARRAYS, ARRAYS, devices[d]));
        memcpy(strstr(text, "batch: 8,\n"), "batch: 14,", strlen("batch: 14,"));
        pen_training *training = open_job(text, arrays, 2, NULL);
        pen_training_step_report step = {.struct_size = sizeof step};
        pen_training_evaluation before = {.struct_size = sizeof before};
        double value, expected[2];
        bool more;
        assert_null(pen_training_get_step_metric(training, 0, &value));
        for (int s = 0; s < 2; s++) { // an evaluation follows the third
            CHECK_OK(pen_training_evaluate(training, &before));
            for (uint32_t i = 0; i < 2; i++) {
                assert_string_equal(pen_training_get_metric(training, i, &expected[i]), names[i]);
            }
            CHECK_OK(pen_training_step(training, &step, &more));
            assert_true(more && !step.is_evaluated);
            for (uint32_t i = 0; i < 2; i++) {
                assert_string_equal(pen_training_get_step_metric(training, i, &value), names[i]);
                CHECK(fabs(value - expected[i]) <= (i == 0 ? 0 : 1e-5 * expected[i]),
                      "step %d: %s is %.9g, expected %.9g", s, names[i], value, expected[i]);
            }
            assert_null(pen_training_get_step_metric(training, 2, &value));
            assert_true(value == 0 && step.losses[0] == 0);
        }
        pen_training_close(training);
    }
}

// Without training data: parameters from a file, evaluated and predicted with.
static void inference_needs_no_training_data(void **state) {
    (void)state;
    pen_training *trained = open_arrays(ARRAYS, NULL), *training;
    double losses[6];
    train_all(trained, losses);
    pen_training_evaluation expected = {.struct_size = sizeof expected}, found = expected;
    CHECK_OK(pen_training_evaluate(trained, &expected));
    const char *file = scratch_path("trained.safetensors");
    CHECK_OK(pen_training_save(trained, file));
    pen_training_close(trained);

    const pen_array arrays[] = {input_array("given x"), label_array("given y")};
    const char *text = job_text("{format: npy, inputs: {x: none.npy}}", ARRAYS, NULL);
    const pen_training_options options = {.struct_size = sizeof options,
                                          .job_text = text,
                                          .arrays = arrays,
                                          .array_count = 2,
                                          .parameters = file,
                                          .inference = true};
    CHECK_OK(pen_training_open("j", &options, &training));
    CHECK_OK(pen_training_evaluate(training, &found));
    assert_true(found.loss == expected.loss && found.example_count == EXAMPLES);
    pen_training_step_report step = {.struct_size = sizeof step};
    bool more;
    CHECK_ERROR(pen_training_step(training, &step, &more), PEN_UNSUPPORTED, "it has no steps");
    uint32_t count;
    CHECK_OK(pen_training_count_tensors(training, &count));
    assert_int_equal(count, 6);
    pen_training_close(training);
}

// A wish ends what is asked for, and what was done before it is whole.
static void wishes_to_stop_are_heard(void **state) {
    (void)state;
    volatile int cancel = 0;
    pen_training *training = open_arrays(ARRAYS, &cancel);
    pen_training_step_report step = {.struct_size = sizeof step};
    pen_training_evaluation evaluation = {.struct_size = sizeof evaluation};
    const pen_array given = input_array("x");
    float rows[EXAMPLES * TINY_CLASSES];
    bool more;
    CHECK_OK(pen_training_step(training, &step, &more));
    cancel = 1;
    CHECK_ERROR(pen_training_step(training, &step, &more), PEN_CANCELLED, "stopped after step 1");
    assert_true(step.step == 0 && !more);
    CHECK_ERROR(pen_training_evaluate(training, &evaluation), PEN_CANCELLED, "stopped");
    CHECK_ERROR(pen_training_predict(training, "fc2_bias:0", &given, 1, rows, sizeof rows),
                PEN_CANCELLED, "stopped");
    cancel = 0;
    CHECK_OK(pen_training_step(training, &step, &more));
    assert_int_equal(step.step, 2);
    CHECK_OK(pen_training_evaluate(training, &evaluation));
    assert_int_equal(evaluation.example_count, EXAMPLES);
    pen_training_close(training);
}

// Nobody is there: waiting for it ends as soon as that is wished.
static void waiting_for_workers_may_end(void **state) {
    (void)state;
    volatile int cancel = 1;
    const pen_array arrays[] = {input_array("given x"), label_array("given y")};
    const char *text =
        job_text(ARRAYS, NULL, "{name: a, threads: 1}, {name: b, threads: 1, host: '127.0.0.1:1'}");
    const pen_training_options options = {.struct_size = sizeof options,
                                          .job_text = text,
                                          .arrays = arrays,
                                          .array_count = 2,
                                          .cancel = &cancel};
    pen_training *training;
    CHECK_ERROR(pen_training_open("j", &options, &training), PEN_CANCELLED,
                "stopped while waiting for workers");
}

static void count_message(void *context, const char *kind, const char *text) {
    int *counts = context;
    counts[strcmp(kind, "warning") == 0] += 1;
    assert_null(strchr(text, '\n'));
}

static void messages_go_where_they_are_wanted(void **state) {
    (void)state;
    int counts[2] = {0};
    pen_messages_redirect(count_message, counts);
    pen_log(PEN_LOG_WARNING, "one");
    pen_log(PEN_LOG_NOTE, "another");
    pen_messages_redirect(NULL, NULL);
    assert_true(counts[0] == 1 && counts[1] == 1);
}

static void plans_are_told(void **state) {
    (void)state;
    const pen_array arrays[] = {input_array("given x"), label_array("given y")};
    const char *text =
        job_text(ARRAYS, NULL, "{name: a, threads: 1, memory: 1GiB}, {name: b, threads: 1}");
    pen_training_options options = {
        .struct_size = sizeof options, .job_text = text, .arrays = arrays, .array_count = 2};
    char *plan;
    CHECK_OK(pen_plan_describe("j", &options, &plan));
    assert_true(plan[0] == '{' && strstr(plan, "\"stages\"") != NULL);
    pen_plan_text_destroy(plan);
    options.job_text = "model: 3\n";
    CHECK_ERROR(pen_plan_describe("j", &options, &plan), PEN_INVALID_INPUT, "j:1:");
    assert_null(plan);
}

// Positions are told apart, for programs that show them in a way of their own.
static void errors_have_positions(void **state) {
    (void)state;
    const pen_training_options options = {.struct_size = sizeof options,
                                          .job_text = "version: 1\nmodell: {file: a}\n"};
    pen_training *training;
    uint32_t line, column;
    const pen_status status = pen_training_open("folder/j", &options, &training);
    assert_string_equal(pen_status_position(status, &line, &column), "folder/j");
    assert_true(line == 2 && column == 1);
    pen_status_ignore(status, "looked at");
    assert_null(pen_status_position(PEN_OK, &line, &column));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(arrays_train_as_files_do),
        cmocka_unit_test(layers_may_be_text),
        cmocka_unit_test(arrays_are_checked),
        cmocka_unit_test(structs_may_grow),
        cmocka_unit_test(predictions_are_rows),
        cmocka_unit_test(predictions_are_checked),
        cmocka_unit_test(averages_take_their_place),
        cmocka_unit_test(parameters_go_round),
        cmocka_unit_test(step_metrics_are_those_of_evaluations),
        cmocka_unit_test(inference_needs_no_training_data),
        cmocka_unit_test(wishes_to_stop_are_heard),
        cmocka_unit_test(waiting_for_workers_may_end),
        cmocka_unit_test(messages_go_where_they_are_wanted),
        cmocka_unit_test(plans_are_told),
        cmocka_unit_test(errors_have_positions),
    };
    cmocka_set_test_filter(getenv("PEN_TEST_FILTER"));
    return cmocka_run_group_tests(tests, write_files, NULL);
}
