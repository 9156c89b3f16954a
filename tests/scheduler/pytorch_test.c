// Training has PyTorch's numbers: every reference model with every optimizer, against float64.
//
// Bounds, as tests/reference/README.md derives them: a tensor after 1 step 1e-5, a loss 1e-4, or
// twice what PyTorch's float32 errs itself, whichever is larger. Tensors after 20 steps, where the
// errors of steps have fed on each other, are held to 1e-4, or four times PyTorch's.

#include <math.h>

#include "tests/support/check.h"
#include "tests/support/reference_model.h"
#include "tests/support/training.h"

#define PYTORCH_STEPS 20

typedef struct pytorch_optimizer {
    const char *name;
    const char *spec;
    bool divides; // by the size of gradients, so that rounding decides where these are noise
} pytorch_optimizer;

static const pytorch_optimizer optimizers[] = {
    {"sgd", "{sgd: {lr: 0.05, momentum: 0.9}}", false},
    {"nesterov", "{sgd: {lr: 0.05, momentum: 0.9, nesterov: true, weight_decay: 0.0005}}", false},
    {"adam", "{adam: {lr: 0.001}}", true},
    {"adamw", "{adamw: {lr: 0.001, weight_decay: 0.05}}", true},
};

// Whose tensors are averages.
#define PYTORCH_AVERAGE "average"

// As make_training_references.py has them. The first that matches counts.
#define PYTORCH_GROUPS                                                                             \
    "groups: [{match: '^layers.0.bias$', freeze: true}, "                                          \
    "{match: 'bias$', lr_scale: 0.2, weight_decay: 0}, {match: '^layers.2', lr_scale: 4}]"

// Of one model.
static const pytorch_optimizer more_optimizers[] = {
    {"rmsprop", "{rmsprop: {lr: 0.001, alpha: 0.9, weight_decay: 0.0005, momentum: 0.9}}", true},
    {"rmsprop_centered", "{rmsprop: {lr: 0.001, alpha: 0.9, centered: true}}", true},
    {"adagrad", "{adagrad: {lr: 0.01, lr_decay: 0.01, weight_decay: 0.0005}}", true},
    {"adadelta", "{adadelta: {weight_decay: 0.0005}}", true},
    {"adamax", "{adamax: {weight_decay: 0.0005}}", true},
    {"nadam", "{nadam: {weight_decay: 0.0005}}", true},
    {"radam", "{radam: {weight_decay: 0.05, decoupled: true}}", true},
    {"lion", "{lion: {weight_decay: 0.05}}", true},
    {"lamb", "{lamb: {weight_decay: 0.01}}", true},
    {"clip_value", "{sgd: {lr: 0.05, momentum: 0.9}}, clip_value: 0.01", false},
    {"adafactor", "{adafactor: {weight_decay: 0.05}}", true},
    {PYTORCH_AVERAGE, "{sgd: {lr: 0.05, momentum: 0.9}}, average: {decay: 0.9, from: 2 steps}",
     false},
    {"adamw_groups", "{adamw: {lr: 0.001, weight_decay: 0.05}}, " PYTORCH_GROUPS, true},
    {"rmsprop_groups",
     "{rmsprop: {lr: 0.0002, alpha: 0.9, weight_decay: 0.0005, momentum: 0.9}}, " PYTORCH_GROUPS,
     true},
};

// One training beside its reference.
typedef struct pytorch_case {
    const char *model_name;
    const char *device;
    const pytorch_optimizer *optimizer;
    reference_model model;
    pen_arena *arena;
    const bool *kept; // [parameter_elements], compared under Adam
    uint64_t left_out;
    double worst_error; // of a tensor after 1 step, relative to its bound
    double worst_error_value;
    double worst_bound;
} pytorch_case;

static const char *case_file(const pytorch_case *c, const char *name) {
    const char *path;
    CHECK_OK(pen_arena_format(c->arena, &path, "%s/%s", c->optimizer->name, name));
    return path;
}

static void case_choose_elements(pytorch_case *c) {
    uint64_t count = 0;
    const float *gradient = reference_floats(&c->model, "gradient_1.npy", c->arena, &count);
    CHECK(gradient != NULL && count == c->model.parameter_elements, "%s: %llu gradients",
          c->model_name, (unsigned long long)count);
    float largest = 0;
    for (uint64_t i = 0; i < count; i++) {
        largest = fmaxf(largest, fabsf(gradient[i]));
    }
    bool *kept;
    CHECK_OK(PEN_NEW(c->arena, count, &kept));
    for (uint64_t i = 0; i < count; i++) {
        // 0 is none, as of taps that lie in the padding alone: such an element does not move
        kept[i] =
            !c->optimizer->divides || gradient[i] == 0 || fabsf(gradient[i]) >= 1e-5f * largest;
        c->left_out += !kept[i];
    }
    c->kept = kept;
}

// ‖found − expected‖ / ‖expected‖ over the elements that count.
static double case_error(const pytorch_case *c, const reference_array *array, const float *found,
                         const float *expected) {
    double difference = 0, norm = 0;
    const bool is_parameter = strcmp(array->kind, "parameter") == 0;
    for (uint64_t i = 0; i < array->count; i++) {
        if (is_parameter && !c->kept[array->offset + i]) continue;
        const double a = (double)found[i], b = (double)expected[i];
        difference += (a - b) * (a - b);
        norm += b * b;
    }
    return norm == 0 ? sqrt(difference) : sqrt(difference / norm);
}

static const char *case_tensor(const pytorch_case *c, const reference_array *array) {
    const char *name;
    if (strcmp(c->optimizer->name, PYTORCH_AVERAGE) != 0) return array->name;
    CHECK_OK(pen_arena_format(c->arena, &name, "%s/average", array->name));
    return name;
}

// Compares all tensors after `steps` updates with a file of the reference.
static void case_compare(pytorch_case *c, const pen_tensor_store *store, int steps) {
    char name[32], column[32];
    uint64_t count;
    uint32_t row_count;
    snprintf(name, sizeof name, "parameters_%d.npy", steps);
    snprintf(column, sizeof column, "error_%d_kept", steps);
    const float *expected = reference_floats(&c->model, case_file(c, name), c->arena, &count);
    if (expected == NULL) return; // kept for some optimizers only
    const double *errors =
        reference_column(&c->model, case_file(c, "errors.csv"), column, c->arena, &row_count);
    CHECK(row_count == c->model.array_count, "%u rows", row_count);
    for (uint32_t i = 0; i < c->model.array_count; i++) {
        const reference_array *array = &c->model.arrays[i];
        if (strcmp(array->kind, "running_biased") == 0) continue; // PyTorch's models: not biased
        float *found;
        CHECK_OK(PEN_NEW(c->arena, array->count, &found));
        CHECK_OK(pen_tensor_store_read(store, training_find(store, case_tensor(c, array)), found,
                                       array->count * sizeof *found));
        const double error = case_error(c, array, found, expected + array->offset);
        const double bound = steps == 1 ? fmax(1e-5, 2 * errors[i]) : fmax(1e-4, 4 * errors[i]);
        CHECK(error <= bound, "%s %s %s: '%s' is off by %g after %d steps, bound %g", c->model_name,
              c->optimizer->name, c->device, array->name, error, steps, bound);
        if (steps == 1 && error / bound >= c->worst_error) {
            c->worst_error = error / bound;
            c->worst_error_value = error;
            c->worst_bound = bound;
        }
    }
}

static double case_train(pytorch_case *c, double *out_bound) {
    const char *folder = c->model.folder;
    const pen_job *job = training_job(
        c->arena,
        "version: 1\n"
        "model: {file: %s/model.onnx}\n"
        "data: {train: {format: npy, inputs: {input: %s/inputs.npy}, labels: %s/labels.npy}}\n"
        "train: {loss: softmax_cross_entropy, optimizer: %s, batch: 8, epochs: 100, steps: %d, "
        "shuffle: false}\n"
        "devices: [{name: a, kind: %s, threads: 2, memory: 1GiB}]\n",
        folder, folder, folder, c->optimizer->spec, PYTORCH_STEPS + 1, c->device);
    uint32_t row_count;
    const char *losses = case_file(c, "losses.csv");
    const double *expected = reference_column(&c->model, losses, "float64", c->arena, &row_count);
    const double *errors =
        reference_column(&c->model, losses, "relative_error", c->arena, &row_count);
    CHECK(row_count == PYTORCH_STEPS + 1, "%u losses", row_count);
    pen_trainer *trainer = training_start(job);
    double error = 0;
    for (int step = 0; step <= PYTORCH_STEPS; step++) {
        const pen_step_report report = training_step(trainer);
        *out_bound = fmax(1e-4, 2 * errors[step]);
        error = fabs(report.loss - expected[step]) / fabs(expected[step]);
        CHECK(error <= *out_bound, "%s %s %s: loss after %d updates is %.9g, expected %.9g",
              c->model_name, c->optimizer->name, c->device, step, report.loss, expected[step]);
        if (step == 0) case_compare(c, pen_trainer_tensors(trainer), 1);
        if (step == PYTORCH_STEPS - 1) case_compare(c, pen_trainer_tensors(trainer), step + 1);
    }
    pen_trainer_destroy(trainer);
    return error;
}

static void check_case(const char *model_name, const char *device,
                       const pytorch_optimizer *optimizer) {
    pytorch_case c = {
        .model_name = model_name, .device = device, .optimizer = optimizer, .arena = check_arena()};
    const char *folder;
    CHECK_OK(pen_arena_format(c.arena, &folder, "tests/reference/%s", model_name));
    c.model = reference_model_open(folder, c.arena);
    case_choose_elements(&c);
    double loss_bound = 0;
    const double loss_error = case_train(&c, &loss_bound);
    printf("%-14s %-9s %-9s  %9.2e of %7.1e  %9.2e of %7.1e  %llu of %llu\n", model_name,
           optimizer->name, device, c.worst_error_value, c.worst_bound, loss_error, loss_bound,
           (unsigned long long)c.left_out, (unsigned long long)c.model.parameter_elements);
    // what is left out is noise, never a good part of the model
    CHECK(c.left_out * 5 <= c.model.parameter_elements, "%llu left out",
          (unsigned long long)c.left_out);
    pen_arena_destroy(c.arena);
}

// `stride` 2: every other optimizer; as many as there are: the first.
static void check_models(const char *device, const char *const *models, uint32_t model_count,
                         uint32_t stride) {
    printf("%-14s %-9s %-9s  %-20s  %-20s  %s\n", "model", "optimizer", "device",
           "worst tensor, 1 step", "loss, 20 steps", "left out");
    for (uint32_t m = 0; m < model_count; m++) {
        for (uint32_t o = 0; o < sizeof optimizers / sizeof *optimizers; o += stride) {
            check_case(models[m], device, &optimizers[o]);
        }
    }
}

static void cpu_has_the_numbers(void **state) {
    (void)state;
    static const char *const models[] = {"mlp",           "lenet",      "branching_cnn",
                                         "batchnorm_cnn", "normed_mlp", "normed_cnn",
                                         "recurrent",     "resnet18"};
    check_models("cpu", models, sizeof models / sizeof *models, 1);
}

static void reference_has_the_numbers(void **state) {
    (void)state;
    static const char *const models[] = {"mlp", "lenet", "recurrent"};
    check_models("reference", models, sizeof models / sizeof *models, 2);
}

// On an emulated GPU, which is slow.
static void cuda_has_the_numbers(void **state) {
    (void)state;
    static const char *const models[] = {"mlp",        "lenet",      "recurrent",
                                         "normed_mlp", "normed_cnn", "branching_cnn"};
    static const char *const residual[] = {"resnet18_32"};
    check_models("cuda", models, sizeof models / sizeof *models, 2);
    check_models("cuda", residual, 1, sizeof optimizers / sizeof *optimizers);
}

static void every_optimizer_has_the_numbers(void **state) {
    (void)state;
    for (uint32_t i = 0; i < sizeof more_optimizers / sizeof *more_optimizers; i++) {
        check_case("mlp", "cpu", &more_optimizers[i]);
        check_case("mlp", "reference", &more_optimizers[i]);
        check_case("mlp", "cuda", &more_optimizers[i]);
    }
}

PEN_TEST_MAIN(cmocka_unit_test(every_optimizer_has_the_numbers),
              cmocka_unit_test(cpu_has_the_numbers), cmocka_unit_test(cuda_has_the_numbers),
              cmocka_unit_test(reference_has_the_numbers))
