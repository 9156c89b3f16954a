// Orders tasks as they would come about: whenever a device is free, it takes the best task that is
// ready by then. The generators differ in how many microbatches a stage may hold, in whether the
// halves of backward tasks run apart, and in which of several tasks is the best.
//
// A stage may always hold one microbatch, so this never gets stuck: of the lowest microbatch that
// is not done with, every stage either has run it or may.
#ifndef PEN_SCHEDULER_SCHEDULE_LIST_SCHEDULING_H
#define PEN_SCHEDULER_SCHEDULE_LIST_SCHEDULING_H

#include <stdbool.h>

#include "scheduler/schedule/schedule.h"
#include "scheduler/schedule/stage_index.h"

// Which of the tasks that could start at one time goes first: the one with the lowest key,
//   base + group_step · (microbatch / group) + step · (microbatch mod group)
typedef struct pen_list_key {
    double base;
    double group_step;
    double step;
} pen_list_key;

// Kinds that lists tell apart; PEN_LIST_INPUT stands for whole backward tasks too.
typedef enum pen_list_kind {
    PEN_LIST_FORWARD,
    PEN_LIST_INPUT,
    PEN_LIST_WEIGHT,
} pen_list_kind;
#define PEN_LIST_KIND_COUNT 3

typedef struct pen_list_scheduling {
    // [stage_count] each, at least 1. Stages without a backward pass hold nothing.
    const uint32_t *window; // microbatches between a stage's forward and its input half
    const uint32_t *hold;   // between its forward and its weight half; NULL: as `window`
    const uint32_t *halved; // between its halves; NULL: any number
    const bool *is_halved;  // backward tasks run in halves; NULL: none do
    // [device_count] of all the stages of a device, between forward and input half; a stage that
    // holds none may still take one. NULL: any number
    const uint32_t *device_window;
    bool forwards_first; // a device begins backward tasks only after all its forward tasks
    // [PEN_LIST_KIND_COUNT][stage_count]; NULL: backward before forward before weight halves, then
    // the lower microbatch, then the later stage
    const pen_list_key *keys;
    uint32_t group; // microbatches of a group; 0: no groups
    // A weight half begins only if this share of it is over before the next task that is known to
    // come. 0: whenever the device would wait. One that keeps a forward task from its place begins
    // at once
    double patience;
} pen_list_scheduling;

// Keys by the rank of the kind (lower first), then the lower microbatch, then the later stage.
// OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_list_keys_new(const pen_stage_graph *graph,
                                           const double rank[PEN_LIST_KIND_COUNT], pen_arena *arena,
                                           const pen_list_key **out_keys);

// Updates come last on their device, or as the graph's exchange says (exchange_order.h).
// OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_list_schedule(const pen_stage_index *index,
                                           const pen_list_scheduling *options, pen_arena *arena,
                                           const pen_schedule **out_schedule);

// A schedule with room for all tasks of the graph, none there yet. `is_halved` [stage_count] or
// NULL. OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_schedule_new(const pen_stage_index *index, const bool *is_halved,
                                          pen_arena *arena, pen_schedule **out_schedule);

// Which stages gain from running halves apart: their weight half takes time, and somebody waits for
// their input half. Recomputed ones cannot. out_is_halved: [stage_count].
void pen_stage_index_find_halves(const pen_stage_index *index, bool *out_is_halved);

#endif // PEN_SCHEDULER_SCHEDULE_LIST_SCHEDULING_H
