#include "partition/stage_assign.h"

#include "partition/plan_place.h"
#include "tests/support/check.h"
#include "tests/support/planned.h"

// The stages of the solution that a plan was written from are those that are read from it.
static void plans_say_the_stage_of_every_node(void **state) {
    (void)state;
    for (size_t m = 0; planned_models[m] != NULL; m++) {
        pen_arena *arena = check_arena();
        pen_plan_job *plan_job = planned_start(
            planned_reference(arena, planned_models[m], 3,
                              PLANNED_FOUR_DEVICES "placement: {strategy: round_robin}\n"));
        const pen_program *program = pen_plan_job_program(plan_job);
        const pen_plan *plan = planned_place(plan_job, arena);
        const uint32_t *stages;
        CHECK_OK(pen_stage_assign(program->graph, plan, arena, &stages));
        uint32_t seen = 0;
        for (uint32_t i = 0; i < plan->node_count; i++) {
            pen_node_id node;
            CHECK_OK(pen_graph_find_node(program->graph, plan->nodes[i].name, &node));
            assert_int_equal(stages[node.index], plan->nodes[i].stage);
            seen |= 1u << plan->nodes[i].stage % 32;
        }
        assert_true(seen > 1);
        for (uint32_t p = 0; p < program->order_count; p++) {
            assert_true(stages[program->order[p].index] < plan->stages.stage_count);
        }
        pen_plan short_plan = *plan;
        short_plan.node_count -= 1;
        CHECK_ERROR(pen_stage_assign(program->graph, &short_plan, arena, &stages),
                    PEN_INVALID_INPUT, plan->nodes[short_plan.node_count].name);
        pen_plan_job_destroy(plan_job);
        pen_arena_destroy(arena);
    }
}

PEN_TEST_MAIN(cmocka_unit_test(plans_say_the_stage_of_every_node))
