#include "tests/support/planned.h"

#include "graph/graph.h"
#include "tests/support/check.h"
#include "tests/support/tiny_model.h"
#include "tests/support/training.h"

const char *const planned_models[] = {"mlp",           "lenet",    "branching_cnn",
                                      "batchnorm_cnn", "resnet18", NULL};

#define PLANNED_TRAIN                                                                              \
    "train: {loss: softmax_cross_entropy, optimizer: {adam: {lr: 0.001}}, batch: 12, "             \
    "microbatches: %u, lanes: %u, steps: 1}\n"

const pen_job *planned_lanes(pen_arena *arena, const char *model, uint32_t microbatches,
                             uint32_t lanes, const char *rest) {
    return training_job(
        arena,
        "version: 1\n"
        "model: {file: tests/reference/%s/model.onnx}\n"
        "data: {train: {format: npy, inputs: {input: "
        "tests/reference/%s/inputs.npy}, labels: tests/reference/%s/labels.npy}}\n" PLANNED_TRAIN
        "%s",
        model, model, model, microbatches, lanes, rest);
}

const pen_job *planned_reference(pen_arena *arena, const char *model, uint32_t microbatches,
                                 const char *rest) {
    return planned_lanes(arena, model, microbatches, 1, rest);
}

const pen_job *planned_tiny(pen_arena *arena, uint32_t microbatches, const char *rest) {
    const char *model = tiny_model_write(&(tiny_model){0}, "tiny.onnx");
    const char *data = tiny_data_write("tiny", 12, 3);
    return training_job(
        arena,
        "version: 1\n"
        "model: {file: %s}\n"
        "data: {train: {format: npy, inputs: {x: %s_x.npy}, labels: %s_y.npy}}\n" PLANNED_TRAIN
        "%s",
        model, data, data, microbatches, 1, rest);
}

pen_plan_job *planned_start(const pen_job *job) {
    static const pen_plan_job_options as_in_job = {.objective = -1, .seed = -1};
    pen_plan_job *plan_job = NULL;
    CHECK_OK(pen_plan_job_create(job, &as_in_job, &plan_job));
    return plan_job;
}

pen_plan *planned_place(pen_plan_job *plan_job, pen_arena *arena) {
    pen_plan *plan = NULL;
    CHECK_OK(pen_plan_job_place(plan_job, arena, &plan));
    CHECK_OK(pen_plan_job_add_reasons(plan_job, plan, arena));
    return plan;
}

const pen_plan_request *planned_request(pen_plan_job *plan_job) {
    const pen_plan_request *request = NULL;
    CHECK_OK(pen_plan_job_get_request(plan_job, "1f1b", &request));
    return request;
}

pen_planner *planned_planner(pen_plan_job *plan_job, pen_arena *arena) {
    pen_planner *planner = NULL;
    pen_plan_request *request;
    CHECK_OK(PEN_NEW(arena, 1, &request));
    *request = *planned_request(plan_job);
    request->cut_seconds = 600; // searches do their work, however busy the machine is
    CHECK_OK(pen_planner_new(request, arena, &planner));
    return planner;
}

uint32_t planned_node(const pen_planner *planner, const char *name) {
    pen_node_id node = PEN_NODE_NONE;
    CHECK_OK(pen_graph_find_node(planner->owners->graph, name, &node));
    CHECK(planner->owners->is_listed[node.index], "'%s' is not listed", name);
    return node.index;
}
