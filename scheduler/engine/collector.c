#include "scheduler/engine/collector.h"

#include <math.h>
#include <string.h>

#include "graph/graph.h"
#include "partition/plan/stage_assign.h"

static pen_status collector_add_stage(const pen_stage_graph *given, pen_arena *arena,
                                      pen_stage_graph *out_graph) {
    pen_stage *stages;
    double *limits;
    PEN_TRY(PEN_NEW(arena, (size_t)given->stage_count + 1, &stages));
    PEN_TRY(PEN_NEW(arena, (size_t)given->device_count + 1, &limits));
    memcpy(stages, given->stages, given->stage_count * sizeof *stages);
    memcpy(limits, given->bytes_limit, given->device_count * sizeof *limits);
    stages[given->stage_count] = (pen_stage){.device = given->device_count};
    limits[given->device_count] = INFINITY;
    *out_graph = *given;
    out_graph->stage_count += 1;
    out_graph->device_count += 1;
    out_graph->stages = stages;
    out_graph->bytes_limit = limits;
    out_graph->seats = NULL;
    return PEN_OK;
}

// A forward task for each microbatch.
static pen_status collector_add_tasks(const pen_schedule *given, const pen_stage_graph *stages,
                                      pen_arena *arena, const pen_schedule **out_schedule) {
    const uint32_t count = stages->microbatch_count;
    pen_schedule *schedule;
    PEN_TRY(PEN_NEW(arena, 1, &schedule));
    *schedule = *given;
    PEN_TRY(PEN_NEW(arena, (size_t)given->device_count + 2, &schedule->first_task));
    PEN_TRY(PEN_NEW(arena, (size_t)given->task_count + count, &schedule->tasks));
    memcpy(schedule->first_task, given->first_task,
           ((size_t)given->device_count + 1) * sizeof *schedule->first_task);
    memcpy(schedule->tasks, given->tasks, given->task_count * sizeof *schedule->tasks);
    for (uint32_t m = 0; m < count; m++) {
        schedule->tasks[schedule->task_count++] =
            (pen_task){PEN_TASK_FORWARD, stages->stage_count - 1, m};
    }
    schedule->device_count += 1;
    schedule->first_task[schedule->device_count] = schedule->task_count;
    *out_schedule = schedule;
    return PEN_OK;
}

pen_status pen_collector_add(const pen_plan *plan, const pen_schedule *schedule, pen_arena *arena,
                             const pen_plan **out_plan, const pen_schedule **out_schedule) {
    pen_plan *extended;
    pen_plan_device *devices;
    PEN_TRY(PEN_NEW(arena, 1, &extended));
    PEN_TRY(PEN_NEW(arena, (size_t)plan->device_count + 1, &devices));
    memcpy(devices, plan->devices, plan->device_count * sizeof *devices);
    devices[plan->device_count] = (pen_plan_device){.name = PEN_COLLECTOR_NAME};
    *extended = *plan;
    extended->device_count += 1;
    extended->devices = devices;
    PEN_TRY(collector_add_stage(&plan->stages, arena, &extended->stages));
    *out_plan = extended;
    return collector_add_tasks(schedule, &extended->stages, arena, out_schedule);
}

pen_status pen_collector_cut(const pen_program *program, const pen_plan *plan,
                             const pen_schedule *schedule, pen_arena *arena,
                             pen_program_parts *out_parts) {
    const uint32_t node_count = pen_graph_node_count(program->graph);
    const uint32_t *assigned;
    uint32_t *stage_of_node;
    PEN_TRY(pen_stage_assign(program->graph, plan, arena, &assigned));
    PEN_TRY(PEN_NEW(arena, node_count, &stage_of_node));
    memcpy(stage_of_node, assigned, node_count * sizeof *stage_of_node);
    for (uint32_t i = 0; i < program->output_count; i++) {
        const pen_node_id copy = pen_graph_value(program->graph, program->outputs[i])->producer;
        stage_of_node[copy.index] = plan->stages.stage_count - 1;
    }
    *out_parts = (pen_program_parts){.graph = program->graph};
    return pen_program_cut_stages(program, &plan->stages, schedule, stage_of_node, arena,
                                  &out_parts->cut);
}
