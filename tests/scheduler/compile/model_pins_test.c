// Devices that a TensorFlow graph names, read as pins.

#include "scheduler/compile/model_pins.h"

#include "graph/import/import.h"
#include "graph/import/tensorflow/graphdef_export.h"
#include "scheduler/plan/plan_job.h"
#include "tests/support/check.h"
#include "tests/support/scratch.h"
#include "tests/support/training.h"

#define MODELS "tests/reference/tensorflow/"

static void devices_are_found_by_name_and_by_number(void **state) {
    (void)state;
    static const struct {
        const char *text;
        uint32_t device;
    } cases[] = {
        {"b", 1},
        {"worker1", 2},
        {"/job:worker/task:1", 2},
        {"/job:worker/replica:0/task:1/device:CPU:0", 2},
        {"/job:a", 0},
        {"/job:b/task:0/device:GPU:7", 1},
        {"/job:somebody/task:1", 1},
        {"/device:GPU:2", 2},
        {"/GPU:1", 1},
        {"/gpu:0", 0},
        {"/job:n_1_cpu", 3},
    };
    const pen_cluster_device devices[] = {
        {.name = "a"}, {.name = "b"}, {.name = "worker1"}, {.name = "n.1/cpu"}};
    const pen_cluster cluster = {.devices = devices, .device_count = 4};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        uint32_t device = 99;
        CHECK_OK(pen_model_pin_device(cases[i].text, &cluster, &device));
        CHECK(device == cases[i].device, "'%s' is device %u", cases[i].text, device);
    }
    static const char *const strange[] = {
        "/job:ps/task:4",           "/job:ps", "/device:GPU:4", "", "c", "/job:/task:-1", ":::",
        "/GPU:99999999999999999999"};
    for (size_t i = 0; i < sizeof strange / sizeof strange[0]; i++) {
        uint32_t device;
        CHECK_ERROR(pen_model_pin_device(strange[i], &cluster, &device), PEN_NOT_FOUND,
                    "the cluster has 4 devices: a, b, worker1, n.1/cpu");
    }
}

static const char *device_of(void *context, const char *node) {
    (void)context;
    return strstr(node, "MatMul") != NULL || strstr(node, "add_1") != NULL ? "/job:b/task:0" : "a";
}

// Written with devices, read back, and planned: each node is where it was said to be.
static void a_plan_keeps_to_the_devices(void **state) {
    (void)state;
    const char *path = scratch_path("placed.pb");
    pen_arena *arena = check_arena();
    pen_model *model = NULL;
    CHECK_OK(pen_model_open(MODELS "classifier", NULL, &model));
    CHECK_OK(pen_graphdef_export(model, &(pen_graphdef_export_options){.device = device_of}, path));
    pen_model_destroy(model);
    const pen_job *job = training_job(
        arena,
        "version: 1\n"
        "model: {file: %s, unfreeze: '^(conv|dense|norm)/', use_device_strings: true, outputs: "
        "[StatefulPartitionedCall]}\n"
        "data: {train: {format: npy, inputs: {serving_default_image: " MODELS
        "classifier.input_0.npy}, labels: " MODELS "classifier.labels.npy}}\n"
        "train: {loss: softmax_cross_entropy, optimizer: {sgd: {lr: 0.1}}, batch: 8}\n"
        "devices: [{name: a}, {name: b}]\n",
        path);
    pen_plan_job *plan_job;
    pen_plan *plan;
    const pen_plan_job_options options = {.objective = -1, .seed = -1};
    CHECK_OK(pen_plan_job_create(job, &options, &plan_job));
    CHECK_OK(pen_plan_job_place(plan_job, arena, &plan));
    uint32_t on_b = 0;
    for (uint32_t n = 0; n < plan->node_count; n++) {
        const uint32_t device = plan->stages.stages[plan->nodes[n].stage].device;
        if (strstr(plan->nodes[n].name, "MatMul") == NULL) continue;
        assert_string_equal(plan->devices[device].name, "b");
        on_b++;
    }
    assert_true(on_b > 0);
    pen_plan_job_destroy(plan_job);
    pen_arena_destroy(arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(devices_are_found_by_name_and_by_number),
        cmocka_unit_test(a_plan_keeps_to_the_devices),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
