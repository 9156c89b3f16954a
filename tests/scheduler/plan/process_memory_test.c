#include "scheduler/plan/process_memory.h"

#include "tests/support/check.h"
#include "tests/support/planned.h"

static uint64_t estimate(const pen_process_memory_request *request) {
    pen_arena *arena = check_arena();
    uint64_t bytes = 0;
    CHECK_OK(pen_process_memory_estimate(request, arena, &bytes));
    pen_arena_destroy(arena);
    return bytes;
}

// More programs, data and convolutions take more; a program twice does not make its code twice.
static void estimates_grow_with_what_is_there(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    pen_plan_job *mlp = planned_start(planned_reference(arena, "mlp", 3, PLANNED_ONE_DEVICE));
    pen_plan_job *cnn =
        planned_start(planned_reference(arena, "branching_cnn", 3, PLANNED_ONE_DEVICE));
    const pen_program *programs[3] = {pen_plan_job_program(mlp), pen_plan_job_program(cnn),
                                      pen_plan_job_program(cnn)};
    const uint64_t none = estimate(&(pen_process_memory_request){0});
    const uint64_t one =
        estimate(&(pen_process_memory_request){.programs = programs, .program_count = 1});
    const uint64_t two =
        estimate(&(pen_process_memory_request){.programs = programs, .program_count = 2});
    const uint64_t three =
        estimate(&(pen_process_memory_request){.programs = programs, .program_count = 3});
    assert_true(none > 1u << 20 && none < one && one < two && two < three);
    assert_true(three - two < two - one);
    const pen_dataset_field fields[1] = {{.name = "x", .bytes = 1000}};
    const pen_dataset_info info = {.input_count = 1, .inputs = fields};
    const uint64_t with_data = estimate(&(pen_process_memory_request){
        .programs = programs, .program_count = 1, .info = &info, .batch = 50});
    assert_int_equal(with_data - one, 2 * 50 * 1000);
    const uint64_t evaluated = estimate(&(pen_process_memory_request){
        .programs = programs, .program_count = 1, .evaluation_count = 2});
    assert_true(evaluated > one);
    const uint64_t exported = estimate(
        &(pen_process_memory_request){.programs = programs, .program_count = 1, .exports = true});
    const uint64_t exported_twice = estimate(
        &(pen_process_memory_request){.programs = programs, .program_count = 3, .exports = true});
    assert_true(exported > one && exported_twice > three);
    const uint64_t buffered = estimate(&(pen_process_memory_request){
        .programs = programs, .program_count = 1, .buffer_bytes = 16000});
    assert_int_equal(buffered - one, 1000);
    pen_program drawn = *programs[0];
    drawn.held_bytes += 5 << 20; // weights that a file of layers starts with
    const pen_program *with_weights = &drawn;
    const uint64_t held =
        estimate(&(pen_process_memory_request){.programs = &with_weights, .program_count = 1});
    assert_true(held > one + (4 << 20) && held <= one + (5 << 20));
    pen_plan_job_destroy(mlp);
    pen_plan_job_destroy(cnn);
    pen_arena_destroy(arena);
}

// A worker takes more for what it runs and holds, and less where the coordinator has it already.
static void workers_grow_with_what_they_run(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    pen_plan_job *mlp = planned_start(planned_reference(arena, "mlp", 3, PLANNED_ONE_DEVICE));
    pen_plan_job *cnn =
        planned_start(planned_reference(arena, "branching_cnn", 3, PLANNED_ONE_DEVICE));
    const pen_program *program = pen_plan_job_program(mlp);
    const pen_graph *graphs[2] = {program->graph, pen_plan_job_program(cnn)->graph};
    uint64_t bytes[5];
    const pen_worker_memory_request requests[5] = {
        {0},
        {.graphs = graphs, .graph_count = 1},
        {.graphs = graphs, .graph_count = 2},
        {.graphs = graphs, .graph_count = 2, .buffer_bytes = 100 << 20},
        {.graphs = graphs, .graph_count = 2, .buffer_bytes = 100 << 20, .is_within = true}};
    for (int i = 0; i < 5; i++) {
        CHECK_OK(pen_worker_memory_estimate(&requests[i], arena, &bytes[i]));
    }
    assert_true(bytes[0] > 1u << 20 && bytes[0] < bytes[1] && bytes[1] < bytes[2]);
    assert_true(bytes[2] < bytes[3] && bytes[4] < bytes[3]);
    const pen_process_memory_request alone = {.programs = &program, .program_count = 1};
    pen_process_memory_request leading = alone;
    leading.is_coordinator = true;
    const uint64_t within = estimate(&leading);
    leading.is_networked = true;
    assert_true(within > 1u << 20 && within != estimate(&alone) && estimate(&leading) > within);
    pen_plan_job_destroy(mlp);
    pen_plan_job_destroy(cnn);
    pen_arena_destroy(arena);
}

PEN_TEST_MAIN(cmocka_unit_test(workers_grow_with_what_they_run),
              cmocka_unit_test(estimates_grow_with_what_is_there))
