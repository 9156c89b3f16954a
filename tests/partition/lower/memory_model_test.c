#include "graph/graph.h"
#include "partition/lower/memory_model.h"
#include "tests/support/check.h"
#include "tests/support/planned.h"
#include "tests/support/training.h"

// One device that runs everything: what is predicted is what the executor takes.
static void one_device_takes_what_the_executor_takes(void **state) {
    (void)state;
    for (size_t m = 0; planned_models[m] != NULL; m++) {
        for (uint32_t microbatches = 1; microbatches <= 3; microbatches += 2) {
            pen_arena *arena = check_arena();
            const pen_job *job =
                planned_reference(arena, planned_models[m], microbatches, PLANNED_ONE_DEVICE);
            pen_plan_job *plan_job = planned_start(job);
            const pen_plan *plan = planned_place(plan_job, arena);
            pen_trainer *trainer = training_start(job);
            pen_engine *engine = pen_trainer_engine(trainer);
            pen_engine_memory memory;
            CHECK_OK(engine->kind->memory(engine, &memory));
            const double measured = (double)(memory.persistent_bytes + memory.arena_bytes);
            const double predicted = (double)plan->devices[0].memory.total;
            CHECK(predicted >= 0.98 * measured && predicted <= 1.02 * measured,
                  "%s, %u microbatches: predicted %.0f bytes, taken %.0f", planned_models[m],
                  microbatches, predicted, measured);
            pen_trainer_destroy(trainer);
            pen_plan_job_destroy(plan_job);
            pen_arena_destroy(arena);
        }
    }
}

// Every node with its home on device n % 3 of its group, in runs.
static void place_in_thirds(const pen_planner *planner, uint32_t *device_of_node) {
    const uint32_t node_count = planner->owners->node_count;
    uint32_t forward_count = 0;
    for (uint32_t n = 0; n < node_count; n++) {
        forward_count += planner->owners->home[n] == n;
    }
    for (uint32_t n = 0; n < node_count; n++) {
        device_of_node[n] = 3 * planner->constraints.color[n] / (forward_count + 1);
        if (device_of_node[n] > 2) device_of_node[n] = 2;
    }
}

// Cutting a model into stages neither loses nor doubles what is persistent, and adds what is
// received.
static void stages_share_what_one_device_holds(void **state) {
    (void)state;
    for (size_t m = 0; planned_models[m] != NULL; m++) {
        pen_arena *arena = check_arena();
        pen_plan_job *plan_job =
            planned_start(planned_reference(arena, planned_models[m], 3, PLANNED_FOUR_DEVICES));
        const pen_planner *planner = planned_planner(plan_job, arena);
        uint32_t *devices;
        pen_plan_solution whole, cut;
        CHECK_OK(PEN_NEW(arena, planner->owners->node_count, &devices));
        CHECK_OK(pen_plan_solve(planner, devices, arena, &whole));
        uint32_t *thirds;
        CHECK_OK(PEN_NEW(arena, planner->owners->node_count, &thirds));
        place_in_thirds(planner, thirds);
        CHECK_OK(pen_plan_solve(planner, thirds, arena, &cut));
        CHECK(cut.split.stage_count >= 3, "%s: %u stages", planned_models[m],
              cut.split.stage_count);
        pen_stage_memory sum = {0};
        for (uint32_t s = 0; s < cut.split.stage_count; s++) {
            sum.parameters += cut.stage_memory[s].parameters;
            sum.gradients += cut.stage_memory[s].gradients;
            sum.optimizer_state += cut.stage_memory[s].optimizer_state;
            sum.received_kept += cut.stage_memory[s].received_kept;
        }
        const pen_stage_memory *one = &whole.stage_memory[0];
        // a parameter that two devices read is on both
        CHECK(sum.parameters >= one->parameters && sum.parameters <= 2 * one->parameters,
              "%s: %llu bytes of parameters, %llu on one", planned_models[m],
              (unsigned long long)sum.parameters, (unsigned long long)one->parameters);
        CHECK(sum.gradients == one->gradients, "%s", planned_models[m]);
        CHECK(sum.optimizer_state == one->optimizer_state, "%s", planned_models[m]);
        CHECK(sum.received_kept >= one->received_kept, "%s", planned_models[m]);
        pen_plan_job_destroy(plan_job);
        pen_arena_destroy(arena);
    }
}

// A parameter that stages on A, B and A again read is on A once.
static void devices_hold_a_parameter_once(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    pen_plan_job *plan_job = planned_start(
        planned_tiny(arena, 3, PLANNED_FOUR_DEVICES "placement: {time_limit: 100ms}\n"));
    const pen_planner *planner = planned_planner(plan_job, arena);
    const pen_forward_owners *owners = planner->owners;
    uint32_t devices[3] = {0, 0, 0};
    pen_value_id twice;
    pen_stage_split split = {.stage_count = 3, .device_of_stage = devices};
    pen_stage_memory *one, *two;
    CHECK_OK(pen_graph_find_value(owners->graph, "twice", &twice));
    CHECK_OK(PEN_NEW(arena, owners->node_count, &split.stage_of_node));
    for (uint32_t n = 0; n < owners->node_count; n++) {
        if (pen_graph_node(owners->graph, (pen_node_id){n})->role != PEN_ROLE_FORWARD) {
            split.stage_of_node[n] = 2;
        }
    }
    for (uint32_t u = owners->user_first[twice.index]; u < owners->user_first[twice.index + 1];
         u++) {
        const uint32_t user = owners->user_nodes[u];
        if (split.stage_of_node[user] == 0) {
            split.stage_of_node[user] = 1;
            break;
        }
    }
    const pen_planned_graph *planned = planner->request->planned;
    CHECK_OK(pen_memory_model_stages(planned, owners, &split, arena, &one));
    devices[1] = 1;
    CHECK_OK(pen_memory_model_stages(planned, owners, &split, arena, &two));
    assert_true(two[1].parameters > 0);
    CHECK(two[0].parameters + two[2].parameters <=
              one[0].parameters + one[1].parameters + one[2].parameters,
          "%llu and %llu bytes, %llu of all", (unsigned long long)two[0].parameters,
          (unsigned long long)two[2].parameters,
          (unsigned long long)(one[0].parameters + one[1].parameters + one[2].parameters));
    pen_plan_job_destroy(plan_job);
    pen_arena_destroy(arena);
}

// What is kept grows with the microbatches in flight, and nothing else does.
static void microbatches_in_flight_multiply_what_is_kept(void **state) {
    (void)state;
    const pen_stage_memory stages[2] = {{.parameters = 1,
                                         .gradients = 10,
                                         .optimizer_state = 100,
                                         .activations = 1000,
                                         .received_kept = 10000,
                                         .received_passing = 100000,
                                         .workspace = 1000000},
                                        {.parameters = 1, .activations = 1000, .workspace = 3}};
    uint32_t devices[2] = {1, 1};
    const pen_stage_split split = {.stage_count = 2, .device_of_stage = devices};
    const pen_device_memory memory =
        pen_memory_model_device(stages, &split, (const uint32_t[]){3, 2}, 1);
    assert_int_equal(memory.parameters, 2);
    assert_int_equal(memory.gradients, 10);
    assert_int_equal(memory.optimizer_state, 100);
    assert_int_equal(memory.activations, 5000);
    assert_int_equal(memory.receive_buffers, 130000);
    assert_int_equal(memory.workspace, 1000000); // the larger of the two
    assert_int_equal(memory.total, 1135112);
    assert_int_equal(pen_memory_model_device(stages, &split, (const uint32_t[]){3, 2}, 0).total, 0);
}

PEN_TEST_MAIN(cmocka_unit_test(devices_hold_a_parameter_once),
              cmocka_unit_test(one_device_takes_what_the_executor_takes),
              cmocka_unit_test(stages_share_what_one_device_holds),
              cmocka_unit_test(microbatches_in_flight_multiply_what_is_kept))
