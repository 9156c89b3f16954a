#include "scheduler/schedule/schedule.h"

#include <stdio.h>
#include <string.h>

double pen_task_seconds(const pen_stage_graph *graph, pen_task task) {
    const pen_stage *stage = &graph->stages[task.stage];
    switch (task.kind) {
    case PEN_TASK_FORWARD:
        return stage->forward_seconds;
    case PEN_TASK_BACKWARD:
        return pen_stage_backward_input_seconds(stage) + stage->backward_weight_seconds;
    case PEN_TASK_BACKWARD_INPUT:
        return pen_stage_backward_input_seconds(stage);
    case PEN_TASK_BACKWARD_WEIGHT:
        return stage->backward_weight_seconds;
    case PEN_TASK_UPDATE:
        return task.microbatch == 0 ? stage->update_seconds : 0;
    }
    PEN_NEVER("a task has one of the kinds");
}

const char *pen_task_format(pen_task task, char out_text[PEN_TASK_TEXT_BYTES]) {
    if (task.kind == PEN_TASK_UPDATE && task.microbatch > 0) {
        snprintf(out_text, PEN_TASK_TEXT_BYTES, "update of stage %u, phase %u", task.stage,
                 task.microbatch);
    } else if (task.kind == PEN_TASK_UPDATE) {
        snprintf(out_text, PEN_TASK_TEXT_BYTES, "update of stage %u", task.stage);
    } else {
        snprintf(out_text, PEN_TASK_TEXT_BYTES, "%s of stage %u, microbatch %u",
                 pen_task_kind_name(task.kind), task.stage, task.microbatch);
    }
    return out_text;
}

void pen_schedule_find_halved(const pen_schedule *schedule, uint32_t stage_count,
                              bool *out_halved) {
    memset(out_halved, 0, stage_count * sizeof *out_halved);
    for (uint32_t t = 0; t < schedule->task_count; t++) {
        const pen_task *task = &schedule->tasks[t];
        if (task->stage >= stage_count) continue;
        if (task->kind == PEN_TASK_BACKWARD_INPUT) out_halved[task->stage] = true;
    }
}
