#include "scheduler/schedule/schedule_check.h"

#include "scheduler/schedule/schedule_inbox.h"
#include "scheduler/schedule/schedule_memory.h"
#include "scheduler/schedule/stage_index.h"
#include "scheduler/schedule/task_walk.h"

typedef struct check_state {
    const pen_stage_index *index;
    uint8_t *kinds_seen;                 // [stage_count][microbatch_count], a bit a kind
    bool *updates_seen;                  // [stage_count][phase_count]
    uint32_t *next[PEN_TASK_KIND_COUNT]; // [stage_count] microbatch that is due
} check_state;

static pen_status check_shape(const pen_stage_graph *graph, const pen_schedule *schedule) {
    if (schedule->device_count != graph->device_count) {
        return pen_error(PEN_INVALID_INPUT, "a schedule is for %u devices, the stages are on %u",
                         schedule->device_count, graph->device_count);
    }
    for (uint32_t d = 0; d < schedule->device_count; d++) {
        if (schedule->first_task[d] <= schedule->first_task[d + 1]) continue;
        return pen_error(PEN_INVALID_INPUT, "device %u has tasks %u to %u of a schedule", d,
                         schedule->first_task[d], schedule->first_task[d + 1]);
    }
    if (schedule->first_task[0] != 0 ||
        schedule->first_task[schedule->device_count] != schedule->task_count) {
        return pen_error(PEN_INVALID_INPUT, "devices have tasks %u to %u of a schedule of %u",
                         schedule->first_task[0], schedule->first_task[schedule->device_count],
                         schedule->task_count);
    }
    return PEN_OK;
}

// One task by itself: it exists, is needed, stands on its stage's device, and has not been seen.
static pen_status check_task(check_state *check, uint32_t device, pen_task task) {
    const pen_stage_index *index = check->index;
    const pen_stage_graph *graph = index->graph;
    char name[PEN_TASK_TEXT_BYTES];
    if ((unsigned)task.kind >= PEN_TASK_KIND_COUNT) {
        return pen_error(PEN_INVALID_INPUT, "device %u has a task of kind %d", device,
                         (int)task.kind);
    }
    const bool is_update = task.kind == PEN_TASK_UPDATE;
    const uint32_t count = is_update ? index->phase_count : graph->microbatch_count;
    if (task.stage >= graph->stage_count || task.microbatch >= count) {
        return pen_error(PEN_INVALID_INPUT,
                         "device %u has the task '%s', there are %u stages and %u %s", device,
                         pen_task_format(task, name), graph->stage_count, count,
                         is_update ? "phases of updates" : "microbatches");
    }
    const pen_stage *stage = &graph->stages[task.stage];
    if (!is_update && task.microbatch - stage->first_microbatch >= // below the first: very large
                          pen_stage_microbatches(graph, stage)) {
        return pen_error(PEN_INVALID_INPUT,
                         "the task '%s' is none of its stage's, which has microbatches %u to %u",
                         pen_task_format(task, name), stage->first_microbatch,
                         stage->first_microbatch + pen_stage_microbatches(graph, stage) - 1);
    }
    const bool is_wanted =
        task.kind == PEN_TASK_FORWARD ||
        (is_update ? index->has_update[task.stage] : index->has_backward[task.stage]);
    if (!is_wanted) {
        return pen_error(PEN_INVALID_INPUT, "the task '%s' is not needed",
                         pen_task_format(task, name));
    }
    if (graph->stages[task.stage].device != device) {
        return pen_error(PEN_INVALID_INPUT, "the task '%s' stands on device %u, its stage is on %u",
                         pen_task_format(task, name), device, graph->stages[task.stage].device);
    }
    bool is_twice;
    if (is_update) {
        bool *seen = &check->updates_seen[(size_t)task.stage * count + task.microbatch];
        is_twice = *seen;
        *seen = true;
    } else {
        uint8_t *seen = &check->kinds_seen[(size_t)task.stage * count + task.microbatch];
        is_twice = (*seen >> task.kind & 1) != 0;
        *seen = (uint8_t)(*seen | 1u << task.kind);
    }
    if (!is_twice) return PEN_OK;
    return pen_error(PEN_INVALID_INPUT, "the task '%s' is there twice",
                     pen_task_format(task, name));
}

static bool check_has(uint8_t seen, pen_task_kind kind) {
    return (seen >> kind & 1) != 0;
}

// That no task of a stage is missing, and none is there both whole and in halves; `first` is what
// is there for the stage's first microbatch.
static pen_status check_cell(const pen_stage_index *index, uint8_t seen, uint8_t first,
                             pen_task cell) {
    const uint32_t s = cell.stage;
    pen_task task = {PEN_TASK_FORWARD, s, cell.microbatch};
    char name[PEN_TASK_TEXT_BYTES];
    bool is_missing = !check_has(seen, PEN_TASK_FORWARD);
    const bool has_whole = check_has(seen, PEN_TASK_BACKWARD);
    const bool has_input = check_has(seen, PEN_TASK_BACKWARD_INPUT);
    const bool has_weight = check_has(seen, PEN_TASK_BACKWARD_WEIGHT);
    if (!is_missing && index->has_backward[s]) {
        task.kind = PEN_TASK_BACKWARD;
        if (has_whole && (has_input || has_weight)) {
            return pen_error(
                PEN_INVALID_INPUT, "the task '%s' is there, and its half '%s' too",
                pen_task_format(task, name),
                pen_task_kind_name(has_input ? PEN_TASK_BACKWARD_INPUT : PEN_TASK_BACKWARD_WEIGHT));
        }
        if (has_weight) task.kind = PEN_TASK_BACKWARD_INPUT;
        if (has_input) task.kind = PEN_TASK_BACKWARD_WEIGHT;
        is_missing = !has_whole && !(has_input && has_weight);
        if (!is_missing && has_whole != check_has(first, PEN_TASK_BACKWARD)) {
            return pen_error(PEN_INVALID_INPUT,
                             "stage %u has backward tasks whole for some microbatches and in "
                             "halves for others",
                             s);
        }
        if (!is_missing && !has_whole && index->graph->stages[s].is_recomputed) {
            return pen_error(PEN_INVALID_INPUT,
                             "stage %u is recomputed, but its backward tasks are in halves", s);
        }
    }
    if (!is_missing) return PEN_OK;
    return pen_error(PEN_INVALID_INPUT, "the task '%s' is missing", pen_task_format(task, name));
}

// That microbatch order is kept. Weight gradients are added by whole tasks and by weight halves.
static pen_status check_order(check_state *check, pen_task task) {
    uint32_t *next = &check->next[task.kind][task.stage];
    bool is_due = task.microbatch >= *next;
    *next = task.microbatch + 1;
    if (task.kind == PEN_TASK_BACKWARD || task.kind == PEN_TASK_BACKWARD_WEIGHT) {
        uint32_t *weight_next = &check->next[PEN_TASK_UPDATE][task.stage];
        is_due = is_due && task.microbatch >= *weight_next;
        *weight_next = task.microbatch + 1;
    }
    if (is_due) return PEN_OK;
    char name[PEN_TASK_TEXT_BYTES];
    return pen_error(PEN_INVALID_INPUT, "the task '%s' comes after that of a higher microbatch",
                     pen_task_format(task, name));
}

// That the updates of a stage come after its other tasks, in the order of phases.
static pen_status check_updates(const pen_schedule *schedule, uint32_t device, pen_task *last) {
    char name[PEN_TASK_TEXT_BYTES];
    char before[PEN_TASK_TEXT_BYTES];
    for (uint32_t t = schedule->first_task[device]; t < schedule->first_task[device + 1]; t++) {
        const pen_task task = schedule->tasks[t];
        const pen_task earlier = last[task.stage];
        last[task.stage] = task;
        if (earlier.kind != PEN_TASK_UPDATE) continue;
        if (task.kind == PEN_TASK_UPDATE && task.microbatch >= earlier.microbatch) continue;
        return pen_error(PEN_INVALID_INPUT,
                         "device %u: the task '%s' comes after '%s': updates of a stage come last, "
                         "in the order of phases",
                         device, pen_task_format(task, name), pen_task_format(earlier, before));
    }
    return PEN_OK;
}

// Each task once, none missing, in microbatch order where sums depend on it, updates last.
static pen_status check_tasks(const pen_stage_index *index, const pen_schedule *schedule,
                              pen_arena *arena) {
    const pen_stage_graph *graph = index->graph;
    check_state check = {.index = index};
    PEN_TRY(check_shape(graph, schedule));
    PEN_TRY(
        PEN_NEW(arena, (size_t)graph->stage_count * graph->microbatch_count, &check.kinds_seen));
    PEN_TRY(PEN_NEW(arena, (size_t)graph->stage_count * index->phase_count, &check.updates_seen));
    for (int kind = 0; kind < PEN_TASK_KIND_COUNT; kind++) {
        PEN_TRY(PEN_NEW(arena, graph->stage_count, &check.next[kind]));
    }
    for (uint32_t d = 0; d < schedule->device_count; d++) {
        for (uint32_t t = schedule->first_task[d]; t < schedule->first_task[d + 1]; t++) {
            PEN_TRY(check_task(&check, d, schedule->tasks[t]));
        }
    }
    for (uint32_t s = 0; s < graph->stage_count; s++) {
        const uint8_t *seen = &check.kinds_seen[(size_t)s * graph->microbatch_count];
        const uint32_t first = graph->stages[s].first_microbatch;
        const uint32_t count = pen_stage_microbatches(graph, &graph->stages[s]);
        for (uint32_t m = first; m < first + count; m++) {
            // cppcheck-suppress objectIndex; an array of the arena
            PEN_TRY(
                check_cell(index, seen[m], seen[first], (pen_task){.stage = s, .microbatch = m}));
        }
        for (uint32_t p = 0; p < index->phase_count && index->has_update[s]; p++) {
            if (check.updates_seen[(size_t)s * index->phase_count + p]) continue;
            char name[PEN_TASK_TEXT_BYTES];
            return pen_error(PEN_INVALID_INPUT, "the task '%s' is missing",
                             pen_task_format((pen_task){PEN_TASK_UPDATE, s, p}, name));
        }
    }
    for (uint32_t t = 0; t < schedule->task_count; t++) {
        if (schedule->tasks[t].kind == PEN_TASK_UPDATE) continue;
        PEN_TRY(check_order(&check, schedule->tasks[t]));
    }
    pen_task *last; // of each stage; of those without a task yet a forward task
    PEN_TRY(PEN_NEW(arena, graph->stage_count, &last));
    for (uint32_t d = 0; d < schedule->device_count; d++) {
        PEN_TRY(check_updates(schedule, d, last));
    }
    return PEN_OK;
}

pen_status pen_schedule_check_tasks(const pen_stage_graph *graph, const pen_schedule *schedule,
                                    pen_arena *arena) {
    const pen_stage_index *index;
    PEN_TRY(pen_stage_index_new(graph, arena, &index));
    return check_tasks(index, schedule, arena);
}

pen_status pen_schedule_check(const pen_stage_graph *graph, const pen_schedule *schedule,
                              pen_arena *arena) {
    const pen_stage_index *index;
    pen_task_times times;
    uint32_t *in_flight;
    double *bytes_peak;
    pen_schedule_inboxes inboxes;
    PEN_TRY(pen_stage_index_new(graph, arena, &index));
    PEN_TRY(check_tasks(index, schedule, arena));
    PEN_TRY(pen_task_walk(index, schedule, arena, &times));
    PEN_TRY(PEN_NEW(arena, graph->stage_count, &in_flight));
    PEN_TRY(PEN_NEW(arena, graph->device_count, &bytes_peak));
    PEN_TRY(pen_schedule_memory(graph, schedule, arena, in_flight, NULL, bytes_peak));
    PEN_TRY(pen_schedule_inboxes_find(index, schedule, in_flight, arena, &inboxes));
    return pen_schedule_check_memory(graph, in_flight, bytes_peak);
}
