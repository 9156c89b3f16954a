#include "scheduler/protocol/run_table.h"

bool pen_run_channel_is_for_updates(const pen_run_form *form, uint32_t channel) {
    for (uint32_t i = 0; i < form->task_count; i++) {
        const pen_run_task *task = &form->tasks[i];
        if (task->task.kind == PEN_TASK_UPDATE) continue;
        for (uint32_t r = task->receive_first; r < task->receive_end; r++) {
            if (form->refs[r] == channel) return false;
        }
        for (uint32_t r = task->send_first; r < task->send_end; r++) {
            if (form->refs[r] == channel) return false;
        }
    }
    return true;
}
