#include "tests/support/made_trace.h"

#include "tests/support/check.h"

#define MADE_EVENT_LIMIT 16u // of a step and worker
#define MADE_CLOCK 1000.0

typedef struct made_worker {
    pen_trace_event *events;
    uint32_t count;
    uint32_t device;
    double origin; // of the step
    uint64_t step;
} made_worker;

static void made_task(made_worker *worker, pen_trace_kind kind, pen_task_kind task,
                      uint32_t microbatch, double start, double end) {
    worker->events[worker->count++] = (pen_trace_event){
        .kind = kind,
        .task = {task, worker->device, microbatch},
        .device = worker->device,
        .channel = kind == PEN_TRACE_WAIT ? 1 - worker->device : PEN_TRACE_NO_CHANNEL,
        .round = worker->step,
        .step = worker->step + 1,
        .start_seconds = worker->origin + start,
        .end_seconds = worker->origin + end};
}

static void made_move(made_worker *worker, pen_trace_kind kind, uint32_t microbatch, double start,
                      double end) {
    const bool is_forward = (kind == PEN_TRACE_SEND) == (worker->device == 0);
    worker->events[worker->count++] = (pen_trace_event){.kind = kind,
                                                        .device = worker->device,
                                                        .channel = is_forward ? 0 : 1,
                                                        .round = worker->step,
                                                        .step = worker->step + 1,
                                                        .sequence = 2 * worker->step + microbatch,
                                                        .bytes = is_forward ? 64 : 32,
                                                        .start_seconds = worker->origin + start,
                                                        .end_seconds = worker->origin + end};
}

static void made_step(made_worker *a, made_worker *b) {
    const double late = a->step == 0 ? 2 : 0;
    made_task(a, PEN_TRACE_TASK, PEN_TASK_FORWARD, 0, 0, 1);
    made_task(a, PEN_TRACE_TASK, PEN_TASK_FORWARD, 1, 1, 2);
    made_task(a, PEN_TRACE_WAIT, PEN_TASK_BACKWARD, 0, 2, 5.5);
    made_task(a, PEN_TRACE_TASK, PEN_TASK_BACKWARD, 0, 5.5, 7.5);
    made_task(a, PEN_TRACE_TASK, PEN_TASK_BACKWARD, 1, 7.5, 9.5);
    made_task(a, PEN_TRACE_TASK, PEN_TASK_UPDATE, 0, 9.5 + late, 10 + late);
    made_task(b, PEN_TRACE_WAIT, PEN_TASK_FORWARD, 0, 0, 1.25);
    for (uint32_t m = 0; m < 2; m++) {
        made_task(b, PEN_TRACE_TASK, PEN_TASK_FORWARD, m, 1.25 + m, 2.25 + m);
        made_task(b, PEN_TRACE_TASK, PEN_TASK_BACKWARD, m, 3.25 + 2 * m, 5.25 + 2 * m);
        made_move(a, PEN_TRACE_SEND, m, 1 + m, 1.25 + m);
        made_move(b, PEN_TRACE_RECEIVE, m, 1.125 + m, 1.25 + m);
        made_move(b, PEN_TRACE_SEND, m, 5.25 + 2 * m, 5.5 + 2 * m);
        made_move(a, PEN_TRACE_RECEIVE, m, 5.375 + 2 * m, 5.5 + 2 * m);
    }
    made_task(b, PEN_TRACE_TASK, PEN_TASK_UPDATE, 0, 7.25, 7.75);
}

const pen_trace *made_trace(pen_arena *arena, uint32_t step_count) {
    static const char *const names[] = {"a", "b"};
    static const uint32_t worker_of_device[] = {0, 1};
    static const pen_trace_channel channels[] = {
        {.value = "activations", .target_device = 1, .bytes = 64},
        {.value = "gradients", .source_device = 1, .is_backward = true, .bytes = 32}};
    static const pen_trace_stage stages[] = {{.device = 0, .activation_bytes = 10},
                                             {.device = 1, .activation_bytes = 20}};
    static const double fixed[] = {100, 200};
    made_worker made[2] = {{.device = 0}, {.device = 1}};
    pen_trace_worker *workers;
    pen_trace *trace;
    CHECK_OK(PEN_NEW(arena, 2, &workers));
    CHECK_OK(PEN_NEW(arena, 1, &trace));
    for (int w = 0; w < 2; w++) {
        CHECK_OK(PEN_NEW(arena, (size_t)step_count * MADE_EVENT_LIMIT, &made[w].events));
    }
    for (uint32_t s = 0; s < step_count; s++) {
        for (int w = 0; w < 2; w++) {
            made[w].step = s;
            made[w].origin = 50 + 12.0 * s - (w == 1 ? MADE_CLOCK : 0);
        }
        made_step(&made[0], &made[1]);
    }
    for (uint32_t w = 0; w < 2; w++) {
        workers[w] = (pen_trace_worker){.name = w == 0 ? "worker 1" : "worker 2",
                                        .process = 100 + w,
                                        .clock_seconds = w == 1 ? MADE_CLOCK : 0,
                                        .events = made[w].events,
                                        .event_count = made[w].count};
    }
    *trace = (pen_trace){.worker_count = 2,
                         .workers = workers,
                         .device_count = 2,
                         .device_names = names,
                         .worker_of_device = worker_of_device,
                         .channel_count = 2,
                         .channels = channels,
                         .stage_count = 2,
                         .stages = stages,
                         .fixed_bytes = fixed};
    return trace;
}
