#include "scheduler/protocol/run_table.h"

static bool run_has_ref(const pen_run_form *form, uint32_t first, uint32_t end, uint32_t channel) {
    for (uint32_t r = first; r < end; r++) {
        if (form->refs[r] == channel) return true;
    }
    return false;
}

static bool run_is_of_task(const pen_run_form *form, const pen_run_task *task, uint32_t channel) {
    return run_has_ref(form, task->receive_first, task->receive_end, channel) ||
           run_has_ref(form, task->send_first, task->send_end, channel);
}

bool pen_run_channel_is_idle(const pen_run_form *form, uint32_t channel) {
    for (uint32_t i = 0; i < form->task_count; i++) {
        if (run_is_of_task(form, &form->tasks[i], channel)) return false;
    }
    return true;
}

bool pen_run_channel_is_for_updates(const pen_run_form *form, uint32_t channel) {
    for (uint32_t i = 0; i < form->task_count; i++) {
        const pen_run_task *task = &form->tasks[i];
        const bool is_update = task->task.kind == PEN_TASK_UPDATE;
        if (!is_update && run_is_of_task(form, task, channel)) return false;
    }
    return true;
}

bool pen_run_task_is_last(const pen_run_form *form, uint32_t device, const pen_run_task *task,
                          uint32_t count, bool updates) {
    const pen_run_task *end = form->tasks + form->devices[device].task_end;
    for (const pen_run_task *later = task + 1; later < end; later++) {
        if (pen_run_task_is_skipped(later, count, updates)) continue;
        if (later->list == PEN_RUN_LIST_NONE) continue;
        if (task->task.kind != PEN_TASK_UPDATE || later->task.kind == PEN_TASK_UPDATE) return false;
    }
    return true;
}
