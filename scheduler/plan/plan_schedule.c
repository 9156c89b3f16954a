#include "scheduler/plan/plan_schedule.h"

#include <string.h>

#include "base/text.h"
#include "scheduler/schedule/schedule_check.h"

#define PLAN_NAMES_SHOWN 16 // devices, in a message

static const char schedule_letters[PEN_TASK_KIND_COUNT + 1] = "FBIWU";

pen_status pen_schedule_format_device(const pen_schedule *schedule, uint32_t device,
                                      pen_arena *arena, const char **out_text) {
    pen_text text;
    pen_text_init(&text, arena);
    for (uint32_t t = schedule->first_task[device]; t < schedule->first_task[device + 1]; t++) {
        const pen_task task = schedule->tasks[t];
        pen_text_print(&text, "%s%c%u.%u", t > schedule->first_task[device] ? " " : "",
                       schedule_letters[task.kind], task.stage, task.microbatch);
    }
    return pen_text_finish(&text, out_text);
}

// A number below a million, or no number.
static bool parse_number(const char **cursor, uint32_t *out_number) {
    const char *start = *cursor;
    *out_number = 0;
    while (**cursor >= '0' && **cursor <= '9' && *cursor - start < 6) {
        *out_number = *out_number * 10 + (uint32_t)(**cursor - '0');
        *cursor += 1;
    }
    return *cursor > start;
}

static bool parse_task(const char **cursor, pen_task *out_task) {
    const char *letter = **cursor == '\0' ? NULL : strchr(schedule_letters, **cursor);
    if (letter == NULL) return false;
    out_task->kind = (pen_task_kind)(letter - schedule_letters);
    *cursor += 1;
    if (!parse_number(cursor, &out_task->stage) || **cursor != '.') return false;
    *cursor += 1;
    if (!parse_number(cursor, &out_task->microbatch)) return false;
    return **cursor == ' ' || **cursor == '\0';
}

// Tasks as a plan's file has them, "F0.1 B0.1 U0": people edit it, so errors say where.
static pen_status parse_device(const char *text, uint32_t device, pen_schedule *schedule) {
    const char *cursor = text;
    while (*cursor == ' ') {
        cursor++;
    }
    while (*cursor != '\0') {
        const char *start = cursor;
        if (!parse_task(&cursor, &schedule->tasks[schedule->task_count])) {
            return pen_error(PEN_INVALID_INPUT,
                             "tasks of device %u: found '%.12s' at %zu, expected F, B, I, W or U, "
                             "then stage.microbatch",
                             device, start, (size_t)(start - text));
        }
        schedule->task_count += 1;
        while (*cursor == ' ') {
            cursor++;
        }
    }
    return PEN_OK;
}

// Lengths of the texts bound the number of tasks, so memory is taken once.
pen_status pen_schedule_parse(const char *const *texts, uint32_t device_count, pen_arena *arena,
                              const pen_schedule **out_schedule) {
    pen_schedule *schedule;
    size_t most = 1;
    for (uint32_t d = 0; d < device_count; d++) {
        most += strlen(texts[d]) / 4 + 1; // "F0.0"
    }
    if (most > PEN_PLAN_TASK_LIMIT + (size_t)device_count + 1) {
        return pen_error(PEN_INVALID_INPUT, "a schedule lists more than %u tasks",
                         PEN_PLAN_TASK_LIMIT);
    }
    PEN_TRY(PEN_NEW(arena, 1, &schedule));
    PEN_TRY(PEN_NEW(arena, (size_t)device_count + 1, &schedule->first_task));
    PEN_TRY(PEN_NEW(arena, most, &schedule->tasks));
    schedule->device_count = device_count;
    for (uint32_t d = 0; d < device_count; d++) {
        PEN_TRY(parse_device(texts[d], d, schedule));
        schedule->first_task[d + 1] = schedule->task_count;
    }
    *out_schedule = schedule;
    return PEN_OK;
}

// Gives an error about the tasks that a plan lists the place of the first list, and says which
// device each number stands for.
static pen_status plan_schedule_blame(const pen_plan *plan, pen_arena *arena, pen_status status) {
    pen_text text;
    const char *whole;
    uint32_t first = PEN_ID_NONE;
    if (status == PEN_OK) return PEN_OK;
    pen_text_init(&text, arena);
    for (uint32_t d = 0; d < plan->device_count; d++) {
        if (plan->devices[d].tasks == NULL) continue;
        if (first == PEN_ID_NONE) first = d;
        if (d < PLAN_NAMES_SHOWN) {
            pen_text_print(&text, "%s device %u is '%.64s'", d > first ? "," : "", d,
                           plan->devices[d].name);
        }
    }
    if (first == PEN_ID_NONE) return status;
    const pen_status finished = pen_text_finish(&text, &whole);
    if (finished != PEN_OK) return pen_status_join(status, finished);
    const pen_plan_device *device = &plan->devices[first];
    if (device->tasks_file != NULL) {
        status = pen_status_at_position(status, device->tasks_file, device->tasks_line, 0);
    }
    return pen_status_add_context(status, "in the tasks that the plan lists:%s", whole);
}

static pen_status plan_schedule_make(const pen_plan *plan, pen_arena *arena,
                                     const pen_schedule **out_schedule) {
    const pen_schedule_generator *generator;
    const char **texts;
    bool has_tasks = false;
    PEN_TRY(pen_schedule_generator_find(plan->schedule, arena, &generator));
    PEN_TRY(PEN_NEW(arena, plan->device_count, &texts));
    for (uint32_t d = 0; d < plan->device_count; d++) {
        has_tasks = has_tasks || plan->devices[d].tasks != NULL;
        texts[d] = plan->devices[d].tasks == NULL ? "" : plan->devices[d].tasks;
    }
    if (has_tasks) return pen_schedule_parse(texts, plan->device_count, arena, out_schedule);
    return generator->generate(&plan->stages, arena, out_schedule);
}

pen_status pen_plan_schedule(const pen_plan *plan, pen_arena *arena,
                             const pen_schedule **out_schedule) {
    const pen_schedule *schedule = NULL;
    PEN_TRY(plan_schedule_blame(plan, arena, plan_schedule_make(plan, arena, &schedule)));
    PEN_TRY(plan_schedule_blame(plan, arena, pen_schedule_check(&plan->stages, schedule, arena)));
    *out_schedule = schedule;
    return PEN_OK;
}
