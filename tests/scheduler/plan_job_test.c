// Plans of whole jobs: every node once, memory as the executor takes it, mistakes told.

#include "scheduler/plan_job.h"

#include "partition/plan_dump.h"
#include "tests/support/check.h"
#include "tests/support/training.h"

static const char *const models[] = {"mlp", "lenet", "branching_cnn", "batchnorm_cnn", "resnet18"};
#define MODEL_COUNT (sizeof models / sizeof *models)

// A job on a reference model with one step of 12 examples.
static const pen_job *reference_job(pen_arena *arena, const char *model, uint32_t microbatches,
                                    const char *rest) {
    return training_job(arena,
                        "version: 1\n"
                        "model: {file: tests/reference/%s/model.onnx}\n"
                        "data: {train: {format: npy, inputs: {input: "
                        "tests/reference/%s/inputs.npy}, labels: tests/reference/%s/labels.npy}}\n"
                        "train: {loss: softmax_cross_entropy, optimizer: {adam: {lr: 0.001}}, "
                        "batch: 12, microbatches: %u, steps: 1}\n%s",
                        model, model, model, microbatches, rest);
}

static const pen_plan_job_options as_in_job = {.objective = -1, .seed = -1};

static pen_plan_job *plan_start_job(const pen_job *job) {
    pen_plan_job *plan_job;
    CHECK_OK(pen_plan_job_create(job, &as_in_job, &plan_job));
    return plan_job;
}

// One device that runs everything: what is predicted is what the executor takes.
static void memory_of_one_device_is_the_executors(void **state) {
    (void)state;
    for (size_t m = 0; m < MODEL_COUNT; m++) {
        for (uint32_t microbatches = 1; microbatches <= 3; microbatches += 2) {
            pen_arena *arena = check_arena();
            const pen_job *job = reference_job(arena, models[m], microbatches,
                                               "devices: [{name: a, threads: 2, memory: 1GiB}]\n");
            pen_plan_job *plan_job = plan_start_job(job);
            pen_plan *plan;
            CHECK_OK(pen_plan_job_place(plan_job, arena, &plan));
            pen_trainer *trainer = training_start(job);
            const pen_executor_memory memory =
                pen_executor_get_memory(pen_trainer_form(trainer)->executor);
            const double measured = (double)(memory.persistent_bytes + memory.arena_bytes);
            const double predicted = (double)plan->devices[0].memory.total;
            CHECK(predicted >= 0.98 * measured && predicted <= 1.02 * measured,
                  "%s, %u microbatches: predicted %.0f bytes, taken %.0f", models[m], microbatches,
                  predicted, measured);
            pen_trainer_destroy(trainer);
            pen_plan_job_destroy(plan_job);
            pen_arena_destroy(arena);
        }
    }
}

PEN_TEST_MAIN(cmocka_unit_test(memory_of_one_device_is_the_executors))
