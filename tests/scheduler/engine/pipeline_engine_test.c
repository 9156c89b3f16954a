
#include <string.h>

#include "base/memory.h"
#include "scheduler/plan/plan_forms.h"
#include "tests/support/check.h"
#include "tests/support/tiny_model.h"
#include "tests/support/training.h"

#define STEPS 5
#define TENSORS_LIMIT 64

// What a training came to.
typedef struct numbers {
    double losses[STEPS];
    uint64_t correct[STEPS];
    uint32_t tensor_count;
    const char *names[TENSORS_LIMIT];
    unsigned char *bytes[TENSORS_LIMIT];
    uint64_t sizes[TENSORS_LIMIT];
    pen_evaluation evaluation;
} numbers;

typedef struct plan_case {
    tiny_model model;
    uint32_t device_count;
    const char *strategy;
    const char *schedule;
    const char *train; // more of `train`
} plan_case;

static const pen_job *case_job(const plan_case *given, pen_arena *arena) {
    static const char *const devices[] = {
        "", "[{name: a, threads: 1}]", "[{name: a, threads: 1}, {name: b, threads: 1}]",
        "[{name: a, threads: 1}, {name: b, threads: 1}, {name: c, threads: 1}]",
        ("[{name: a, threads: 1}, {name: b, threads: 1}, {name: c, threads: 1}, "
         "{name: d, threads: 1}]")};
    const char *model = tiny_model_write(&given->model, "tiny.onnx");
    const char *data = tiny_data_write("tiny", 21, 3);
    return training_job(arena,
                        "version: 1\n"
                        "model: {file: %s}\n"
                        "data: {train: {format: npy, inputs: {x: %s_x.npy}, labels: %s_y.npy},\n"
                        "       eval: {format: npy, inputs: {x: %s_x.npy}, labels: %s_y.npy}}\n"
                        "train: {loss: softmax_cross_entropy, batch: 8, epochs: 30, %s}\n"
                        "devices: %s\n"
                        "placement: {strategy: %s, seed: 5}\n"
                        "pipeline: {schedule: %s}\n",
                        model, data, data, data, data, given->train, devices[given->device_count],
                        given->strategy, given->schedule);
}

static pen_trainer *case_start(const pen_job *job, pen_dataset *evaluated) {
    const pen_trainer_options options = {
        .step_limit = STEPS, .evaluated = evaluated, .runs_ahead = true};
    pen_trainer *trainer;
    CHECK_OK(pen_trainer_create(job, &options, &trainer));
    return trainer;
}

static void case_read(pen_trainer *trainer, pen_arena *arena, numbers *out_numbers) {
    const pen_tensor_store *store = pen_trainer_tensors(trainer);
    assert_true(store->count <= TENSORS_LIMIT);
    out_numbers->tensor_count = store->count;
    for (uint32_t t = 0; t < store->count; t++) {
        const pen_stored_tensor *tensor = &store->tensors[t];
        CHECK_OK(PEN_NEW(arena, tensor->bytes, &out_numbers->bytes[t]));
        CHECK_OK(pen_tensor_store_read(store, t, out_numbers->bytes[t], tensor->bytes));
        CHECK_OK(
            pen_arena_copy_text(arena, tensor->name, strlen(tensor->name), &out_numbers->names[t]));
        out_numbers->sizes[t] = tensor->bytes;
    }
}

static void case_train(const plan_case *given, pen_arena *arena, numbers *out_numbers) {
    const pen_job *job = case_job(given, arena);
    pen_dataset *evaluated;
    *out_numbers = (numbers){0};
    CHECK_OK(pen_job_open_dataset(job, PEN_DATASET_PART_EVAL, arena, &evaluated));
    pen_trainer *trainer = case_start(job, evaluated);
    for (uint32_t s = 0; s < STEPS; s++) {
        const pen_step_report report = training_step(trainer);
        out_numbers->losses[s] = report.loss;
        out_numbers->correct[s] = report.correct_count;
    }
    case_read(trainer, arena, out_numbers);
    pen_engine *engine = pen_trainer_engine(trainer);
    const uint64_t batch = pen_plan_evaluation_batch(job, pen_dataset_get_info(evaluated));
    CHECK_OK(engine->kind->evaluate(engine, evaluated, batch, &out_numbers->evaluation));
    assert_string_equal(engine->kind->name, given->device_count == 1 ? "local" : "pipeline");
    pen_trainer_destroy(trainer);
    pen_dataset_close(evaluated);
}

static void case_compare(const numbers *expected, const numbers *found) {
    assert_memory_equal(expected->losses, found->losses, sizeof expected->losses);
    assert_memory_equal(expected->correct, found->correct, sizeof expected->correct);
    assert_int_equal(expected->tensor_count, found->tensor_count);
    for (uint32_t t = 0; t < expected->tensor_count; t++) {
        assert_string_equal(expected->names[t], found->names[t]);
        assert_int_equal(expected->sizes[t], found->sizes[t]);
        assert_memory_equal(expected->bytes[t], found->bytes[t], expected->sizes[t]);
    }
    assert_memory_equal(&expected->evaluation.loss, &found->evaluation.loss, sizeof(double));
    assert_int_equal(expected->evaluation.correct_count, found->evaluation.correct_count);
    assert_int_equal(expected->evaluation.example_count, found->evaluation.example_count);
    assert_int_equal(expected->evaluation.target_count, found->evaluation.target_count);
}

// 21 examples in batches of 8: the last batch of an epoch has 5, a whole microbatch of 4 and one
// that is short. The model's weight `twice` is read at two places.
static void devices_have_the_numbers_of_one(void **unused) {
    (void)unused;
    static const char *const trains[] = {
        "optimizer: {sgd: {lr: 0.1, momentum: 0.9}}, microbatches: 2",
        "optimizer: adamw, microbatches: 4, clip_norm: 0.5",
        "optimizer: {sgd: {lr: 0.1}}, microbatches: 1, clip_norm: 0.1",
        "optimizer: adam, microbatches: 2, freeze: \"^fc1\"",
        "optimizer: adam, microbatches: 8",
    };
    static const char *const strategies[] = {"round_robin", "random", "greedy"};
    static const char *const schedules[] = {"gpipe", "1f1b", "zero_bubble", "auto"};
    uint32_t case_number = 0;
    for (size_t t = 0; t < sizeof trains / sizeof *trains; t++) {
        for (uint32_t dropout = 0; dropout < 2; dropout++) {
            pen_arena *arena = check_arena();
            plan_case given = {.model = {.has_dropout = dropout == 1},
                               .device_count = 1,
                               .strategy = "round_robin",
                               .schedule = "gpipe",
                               .train = trains[t]};
            numbers expected, found;
            case_train(&given, arena, &expected);
            for (given.device_count = 2; given.device_count <= 4; given.device_count++) {
                given.strategy = strategies[case_number % 3];
                given.schedule = schedules[case_number++ % 4];
                case_train(&given, arena, &found);
                case_compare(&expected, &found);
            }
            pen_arena_destroy(arena);
        }
    }
}

// A loss that is not finite: nothing is updated, and what the devices hold can still be read.
static void losses_that_are_not_finite_update_nothing(void **unused) {
    (void)unused;
    pen_arena *arena = check_arena();
    const plan_case given = {.model = {.is_exploding = true},
                             .device_count = 3,
                             .strategy = "round_robin",
                             .schedule = "1f1b",
                             .train = "optimizer: adam, microbatches: 2"};
    const pen_job *job = case_job(&given, arena);
    pen_trainer *trainer = case_start(job, NULL);
    pen_step_report report;
    bool more;
    numbers before = {0}, after = {0};
    case_read(trainer, arena, &before);
    CHECK_ERROR(pen_trainer_step(trainer, &report, &more), PEN_NOT_FINITE, "the loss of step 1");
    pen_trainer_destroy(trainer);
    const plan_case one = {.model = {.is_exploding = true},
                           .device_count = 1,
                           .strategy = "round_robin",
                           .schedule = "1f1b",
                           .train = "optimizer: adam, microbatches: 2"};
    trainer = case_start(case_job(&one, arena), NULL);
    case_read(trainer, arena, &after);
    pen_trainer_destroy(trainer);
    for (uint32_t t = 0; t < before.tensor_count; t++) {
        assert_memory_equal(before.bytes[t], after.bytes[t], before.sizes[t]);
    }
    pen_arena_destroy(arena);
}

// Steps allocate nothing of ours once all that is kept for the next time is there.
static void steps_allocate_nothing(void **unused) {
    (void)unused;
    pen_arena *arena = check_arena();
    const plan_case given = {.device_count = 3,
                             .strategy = "round_robin",
                             .schedule = "1f1b",
                             .train = "optimizer: adam, microbatches: 2"};
    const pen_trainer_options options = {.step_limit = 60};
    pen_trainer *trainer;
    CHECK_OK(pen_trainer_create(case_job(&given, arena), &options, &trainer));
    for (uint32_t s = 0; s < 40; s++) {
        (void)training_step(trainer);
    }
    const uint64_t before = pen_memory_call_count();
    for (uint32_t s = 0; s < 20; s++) {
        (void)training_step(trainer);
    }
    // what the links keep for the next time may still grow, when more is under way than before
    assert_true(pen_memory_call_count() - before < 20 / 2);
    pen_trainer_destroy(trainer);
    pen_arena_destroy(arena);
}

// Engines end while devices compute, and read what others have made.
static void ends_while_devices_compute(void **unused) {
    (void)unused;
    for (uint64_t steps = 0; steps < 12; steps++) {
        pen_arena *arena = check_arena();
        const plan_case given = {.device_count = 4,
                                 .strategy = "round_robin",
                                 .schedule = "1f1b",
                                 .train = "optimizer: adam, microbatches: 8"};
        const pen_trainer_options options = {.step_limit = 60};
        pen_trainer *trainer;
        CHECK_OK(pen_trainer_create(case_job(&given, arena), &options, &trainer));
        for (uint64_t s = 0; s < steps % 4; s++) {
            (void)training_step(trainer);
        }
        pen_trainer_destroy(trainer);
        pen_arena_destroy(arena);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(devices_have_the_numbers_of_one),
        cmocka_unit_test(losses_that_are_not_finite_update_nothing),
        cmocka_unit_test(steps_allocate_nothing),
        cmocka_unit_test(ends_while_devices_compute),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
