#include "graph/task.h"

const char *pen_task_kind_name(pen_task_kind kind) {
    static const char *const names[PEN_TASK_KIND_COUNT] = {
        [PEN_TASK_FORWARD] = "forward",
        [PEN_TASK_BACKWARD] = "backward",
        [PEN_TASK_BACKWARD_INPUT] = "backward_input",
        [PEN_TASK_BACKWARD_WEIGHT] = "backward_weight",
        [PEN_TASK_UPDATE] = "update",
    };
    return names[kind];
}
