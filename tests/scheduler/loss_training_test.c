// Losses of every kind and option against PyTorch's, over whole steps: any number of microbatches,
// a short last step, one device and three.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/format/npy.h"
#include "base/system/file.h"
#include "device/cuda/cuda_device.h"
#include "device/on_host.h"
#include "scheduler/runner/evaluate.h"
#include "tests/support/check.h"
#include "tests/support/training.h"

#define LOSSES "tests/reference/losses/"
#define ONE "devices: [{name: a, threads: 1}]\n"
#define THREE                                                                                      \
    "devices: [{name: a, threads: 1}, {name: b, threads: 1}, {name: c, threads: 1}]\n"             \
    "placement: {strategy: round_robin}\n"                                                         \
    "pipeline: {schedule: gpipe}\n"
#define GPU "devices: [{name: g, kind: cuda, memory: 1GiB}]\n"
#define STEPS 3
#define FIGURES                                                                                    \
    (STEPS + 3) // before the parameters in a row: losses, one of all, right, of how many
#define TOLERANCE 1e-5

static const struct {
    const char *name;
    uint32_t count;
} parameters[] = {{"first.weight", 108}, {"first.bias", 6},  {"score.weight", 30},
                  {"score.bias", 5},     {"box.weight", 36}, {"box.bias", 6}};

typedef struct loss_case {
    const char *name;
    char train[768];
    char labels[256];
    const float *expected; // [row]
} loss_case;

// What a run gave.
typedef struct loss_run {
    double losses[STEPS];
    double terms[STEPS][PEN_TERMS_LIMIT];
    uint64_t parameters_hash;
} loss_run;

// `text` with LOSSES for each @.
static void expand(const char *text, size_t length, char *out, size_t size) {
    size_t at = 0;
    for (size_t i = 0; i < length; i++) {
        const char one[2] = {text[i], '\0'};
        const char *add = text[i] == '@' ? LOSSES : one;
        at += (size_t)snprintf(out + at, size - at, "%s", add);
        CHECK(at < size, "a case of more than %zu bytes", size);
    }
}

static pen_trainer *start(const loss_case *c, int microbatches, const char *devices,
                          pen_arena *arena, pen_dataset **out_evaluated) {
    const pen_job *job = training_job(
        arena,
        "version: 1\n"
        "model: {file: " LOSSES "model.onnx}\n"
        "data:\n"
        "  train: {format: npy, inputs: {x: " LOSSES "x.npy}, labels: %s}\n"
        "  eval: {format: npy, inputs: {x: " LOSSES "x.npy}, labels: %s}\n"
        "train: {%s, optimizer: {sgd: {lr: 0.2}}, batch: 4, microbatches: %d, steps: 3, "
        "shuffle: false}\n"
        "%s",
        c->labels, c->labels, c->train, microbatches, devices);
    pen_trainer *trainer = NULL;
    CHECK_OK(pen_job_open_dataset(job, PEN_DATASET_PART_EVAL, arena, out_evaluated));
    const pen_trainer_options options = {.evaluated = *out_evaluated};
    CHECK_OK(pen_trainer_create(job, &options, &trainer));
    return trainer;
}

static void check_near(const loss_case *c, const char *what, double found, double expected) {
    CHECK(fabs(found - expected) <= TOLERANCE * fmax(1, fabs(expected)),
          "%s: %s is %.9g, PyTorch's is %.9g", c->name, what, found, expected);
}

// Parameters that no loss of the case depends on are not there.
static void check_parameters(const loss_case *c, pen_trainer *trainer) {
    const pen_tensor_store *store = pen_trainer_tensors(trainer);
    const float *expected = c->expected + FIGURES;
    float found[128];
    for (size_t p = 0; p < sizeof parameters / sizeof parameters[0]; p++) {
        const uint32_t index = pen_tensor_store_find(store, parameters[p].name);
        if (index != PEN_TENSOR_NONE) {
            CHECK_OK(
                pen_tensor_store_read(store, index, found, parameters[p].count * sizeof *found));
            for (uint32_t i = 0; i < parameters[p].count; i++) {
                check_near(c, parameters[p].name, (double)found[i], (double)expected[i]);
            }
        }
        expected += parameters[p].count;
    }
}

// Each of several losses by itself; with their weights they are the sum.
static void check_terms(const loss_case *c, const pen_program *program, const double *terms,
                        double loss) {
    double sum = 0;
    for (uint32_t i = 0; i < program->term_count; i++) {
        sum += program->losses[i].weight * terms[i];
    }
    if (program->term_count > 0) check_near(c, "the sum of its losses", sum, loss);
}

// Batches of four: the last has two.
static void check_evaluation(const loss_case *c, pen_trainer *trainer, pen_dataset *dataset) {
    pen_engine *engine = pen_trainer_engine(trainer);
    pen_evaluation evaluation;
    CHECK_OK(engine->kind->evaluate(engine, dataset, 4, &evaluation));
    check_terms(c, engine->kind->program(engine), evaluation.terms, evaluation.loss);
    check_near(c, "the loss of all examples", evaluation.loss, (double)c->expected[STEPS]);
    assert_int_equal(evaluation.example_count, 10);
    if (c->expected[STEPS + 1] < 0) {
        assert_int_equal(evaluation.target_count, 0);
        return;
    }
    assert_int_equal(evaluation.correct_count, (uint64_t)c->expected[STEPS + 1]);
    assert_int_equal(evaluation.target_count, (uint64_t)c->expected[STEPS + 2]);
}

// Every node has a kernel on the GPU.
static void check_kernels(const loss_case *c, const pen_program *program, pen_arena *arena) {
    const pen_device_options options = {.name = "g", .only_sizes = true};
    pen_device *device;
    pen_on_host found;
    CHECK_OK(pen_cuda_device_kind.open(&options, &device));
    CHECK_OK(pen_on_host_find(device, program->graph, program->order, program->order_count, arena,
                              &found));
    CHECK(found.count == 0, "%s: %s run on the host", c->name, found.list);
    pen_cuda_device_kind.close(device);
}

static loss_run run(const loss_case *c, int microbatches, const char *devices) {
    pen_arena *arena = check_arena();
    pen_dataset *dataset;
    loss_run made = {.parameters_hash = 0};
    pen_trainer *trainer = start(c, microbatches, devices, arena, &dataset);
    if (strcmp(devices, GPU) == 0) check_kernels(c, pen_trainer_program(trainer), arena);
    for (int s = 0; s < STEPS; s++) {
        const pen_step_report step = training_step(trainer);
        made.losses[s] = step.loss;
        memcpy(made.terms[s], step.terms, sizeof step.terms);
        check_terms(c, pen_trainer_program(trainer), step.terms, step.loss);
        check_near(c, "the loss of a step", made.losses[s], (double)c->expected[s]);
    }
    check_parameters(c, trainer);
    check_evaluation(c, trainer, dataset);
    made.parameters_hash = training_hash(trainer);
    pen_trainer_destroy(trainer);
    pen_dataset_close(dataset);
    pen_arena_destroy(arena);
    return made;
}

// What `two` tells of the first step is what PyTorch says of its losses, each alone.
static void check_alone(const loss_case *c, const loss_run *made, double alone[2]) {
    if (strcmp(c->name, "ignored") == 0) alone[0] = (double)c->expected[0];
    if (strcmp(c->name, "smooth_l1") == 0) alone[1] = (double)c->expected[0];
    if (strcmp(c->name, "two") != 0) return;
    check_near(c, "its first loss", made->terms[0][0], alone[0]);
    check_near(c, "its second loss", made->terms[0][1], alone[1]);
}

// On an emulated GPU, where all of it has kernels; to the same bits in another order of threads.
static void check_gpu(const loss_case *c) {
    setenv("FAKE_CUDA", "order=0", 1);
    const loss_run made = run(c, 2, GPU);
    setenv("FAKE_CUDA", "order=2 late=20", 1);
    const loss_run again = run(c, 2, GPU);
    CHECK(made.parameters_hash == again.parameters_hash, "%s: other bits in another order",
          c->name);
}

static void check_case(const loss_case *c, double alone[2]) {
    loss_run one = {0};
    check_gpu(c);
    for (int microbatches = 1; microbatches <= 4; microbatches *= 2) {
        const loss_run made = run(c, microbatches, ONE);
        if (microbatches == 2) one = made;
    }
    const loss_run three = run(c, 2, THREE);
    assert_memory_equal(three.losses, one.losses, sizeof one.losses);
    assert_memory_equal(three.terms, one.terms, sizeof one.terms);
    check_alone(c, &one, alone);
    CHECK(three.parameters_hash == one.parameters_hash, "%s: three devices differ", c->name);
}

static void losses_are_pytorchs(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    pen_mapping text, numbers;
    pen_npy_header header;
    double alone[2] = {NAN, NAN};
    CHECK_OK(pen_mapping_open(LOSSES "cases.txt", &text));
    CHECK_OK(pen_mapping_open(LOSSES "expected.npy", &numbers));
    CHECK_OK(pen_npy_read_header(numbers.bytes, numbers.length, "expected.npy", &header));
    const char *at = (const char *)text.bytes;
    for (int64_t row = 0; row < header.shape[0]; row++) {
        const char *train = strchr(at, '\t') + 1, *labels = strchr(train, '\t') + 1;
        const char *end = memchr(labels, '\n', 256);
        char name[32];
        float expected[256];
        snprintf(name, sizeof name, "%.*s", (int)(train - 1 - at), at);
        memcpy(expected,
               numbers.bytes + header.data_offset +
                   (uint64_t)(row * header.shape[1]) * sizeof *expected,
               (uint64_t)header.shape[1] * sizeof *expected);
        loss_case c = {.name = name, .expected = expected};
        expand(train, (size_t)(labels - 1 - train), c.train, sizeof c.train);
        expand(labels, (size_t)(end - labels), c.labels, sizeof c.labels);
        check_case(&c, alone);
        at = end + 1;
    }
    pen_mapping_close(&numbers);
    pen_mapping_close(&text);
    pen_arena_destroy(arena);
}

PEN_TEST_MAIN(cmocka_unit_test(losses_are_pytorchs))
