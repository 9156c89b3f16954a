#include "scheduler/schedule/schedule_step_time.h"

#include <stdatomic.h>
#include <string.h>

#include "base/memory.h"
#include "scheduler/schedule/auto_schedule.h"
#include "scheduler/schedule/schedule.h"
#include "scheduler/schedule/schedule_memory.h"
#include "scheduler/schedule/schedule_simulate.h"

// A call takes an arena out of a slot, or makes one, and puts it into a free slot when done.
#define STEP_TIME_SLOT_COUNT 64

struct pen_schedule_step_time_context {
    const pen_schedule_generator *generator;
    const pen_schedule *given;   // NULL: none
    _Atomic(pen_arena *) *slots; // [STEP_TIME_SLOT_COUNT]
};

static pen_status step_time_take(const pen_schedule_step_time_context *context,
                                 pen_arena **out_arena) {
    for (size_t i = 0; i < STEP_TIME_SLOT_COUNT; i++) {
        pen_arena *arena = atomic_exchange(&context->slots[i], NULL);
        if (arena == NULL) continue;
        *out_arena = arena;
        return PEN_OK;
    }
    return pen_arena_create(out_arena);
}

static void step_time_put(const pen_schedule_step_time_context *context, pen_arena *arena) {
    pen_arena_reset(arena);
    for (size_t i = 0; i < STEP_TIME_SLOT_COUNT && arena != NULL; i++) {
        pen_arena *expected = NULL;
        if (atomic_compare_exchange_strong(&context->slots[i], &expected, arena)) arena = NULL;
    }
    pen_arena_destroy(arena);
}

// Slots for threads of the search: each keeps an arena there, so that thousands of evaluations take
// memory once.
pen_status pen_schedule_step_time_create(const char *schedule_name,
                                         pen_schedule_step_time_context **out_context) {
    pen_arena *arena = NULL;
    pen_schedule_step_time_context *context = NULL;
    pen_status status = pen_arena_create(&arena);
    if (status != PEN_OK) goto done;
    context = pen_memory_allocate(1, sizeof *context);
    if (context != NULL) *context = (pen_schedule_step_time_context){0};
    if (context != NULL) {
        context->slots = pen_memory_allocate(STEP_TIME_SLOT_COUNT, sizeof *context->slots);
    }
    if (context == NULL || context->slots == NULL) {
        status = pen_error_out_of_memory();
        goto done;
    }
    for (size_t i = 0; i < STEP_TIME_SLOT_COUNT; i++) {
        atomic_init(&context->slots[i], NULL);
    }
    status = pen_schedule_generator_find(schedule_name, arena, &context->generator);
    if (status != PEN_OK) goto done;
    *out_context = context;
    context = NULL;
done:
    pen_schedule_step_time_destroy(context);
    pen_arena_destroy(arena);
    return status;
}

void pen_schedule_step_time_destroy(pen_schedule_step_time_context *context) {
    if (context == NULL) return;
    for (size_t i = 0; i < STEP_TIME_SLOT_COUNT && context->slots != NULL; i++) {
        pen_arena_destroy(atomic_load(&context->slots[i]));
    }
    pen_memory_free(context->slots);
    pen_memory_free(context);
}

void pen_schedule_step_time_give(pen_schedule_step_time_context *context,
                                 const pen_schedule *schedule) {
    context->given = schedule;
}

// What a placement is judged by: the schedule that it would run under, simulated.
static pen_status step_time_predict(const pen_schedule_step_time_context *context,
                                    const pen_stage_graph *graph, pen_arena *arena,
                                    pen_step_prediction *out_prediction) {
    const pen_schedule *schedule;
    const pen_timeline *timeline;
    if (strcmp(context->generator->name, "auto") == 0) {
        const pen_auto_options options = {.given = context->given};
        PEN_TRY(pen_auto_schedule(graph, &options, arena, &schedule, NULL));
    } else {
        PEN_TRY(context->generator->generate(graph, arena, &schedule));
    }
    PEN_TRY(pen_schedule_simulate(graph, schedule, arena, &timeline)); // checks the tasks too
    PEN_TRY(pen_schedule_check_memory(graph, timeline->in_flight, timeline->bytes_peak));
    out_prediction->step_seconds = timeline->step_seconds;
    out_prediction->bubble = timeline->bubble;
    memcpy(out_prediction->in_flight, timeline->in_flight,
           graph->stage_count * sizeof *timeline->in_flight);
    if (out_prediction->halved != NULL) {
        memcpy(out_prediction->halved, timeline->halved,
               graph->stage_count * sizeof *timeline->halved);
    }
    memcpy(out_prediction->bytes_peak, timeline->bytes_peak,
           graph->device_count * sizeof *timeline->bytes_peak);
    return PEN_OK;
}

pen_status pen_schedule_step_time(const void *context, const pen_stage_graph *graph,
                                  pen_step_prediction *out_prediction) {
    const pen_schedule_step_time_context *own = context;
    pen_arena *arena;
    PEN_TRY(step_time_take(own, &arena));
    const pen_status status = step_time_predict(own, graph, arena, out_prediction);
    step_time_put(own, arena);
    return status;
}
