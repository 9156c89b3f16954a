// Loads of all devices under a placement, kept up to date as groups move: a move costs about as
// much as the group has inputs and outputs.
//
// For each output and device the state counts the readers there, so it knows without looking at
// others whether a move begins or ends a transfer. Sums of fractions drift; pen_load_state_refresh
// adds everything up anew.
//
// Lifetime: lives in the arena it was made with, and borrows the problem.
// Threads:  a state belongs to one thread at a time.
#ifndef PEN_PARTITION_OBJECTIVE_LOAD_STATE_H
#define PEN_PARTITION_OBJECTIVE_LOAD_STATE_H

#include "partition/objective/reader_counts.h"

typedef struct pen_load_state {
    const pen_problem *problem;
    uint32_t device_count;
    uint32_t *device_of_group; // [group_count]
    double *load;              // [device_count]
    double *bytes;             // [device_count]
    uint32_t *group_total;     // [device_count] groups there
    pen_reader_counts readers; // of each output and device
    uint32_t *away_total;      // [output_count] devices other than the owner's that read it

    // the move that was last weighed: loads change by change[touched[i]]
    double *change;    // [device_count], 0 where untouched
    uint32_t *touched; // [device_count]
    bool *is_touched;  // [device_count]
    uint32_t touched_count;

    // the change that was last tried: a move of one group is weighed, of several it is made
    bool is_made;
    uint32_t home, goal;           // of the one group
    double home_bytes, goal_bytes; // that it takes there
    double *load_kept;             // [device_count] before, of changed[i], when made
    uint32_t *changed;             // [device_count] devices whose loads change
    bool *is_changed;              // [device_count]
    uint32_t changed_count;
} pen_load_state;

// A state with all groups placed as in `device_of_group`. OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_load_state_new(const pen_problem *problem,
                                            const uint32_t *device_of_group, pen_arena *arena,
                                            pen_load_state **out_state);

// Places all groups anew; `device_of_group` may be the state's own.
void pen_load_state_set(pen_load_state *state, const uint32_t *device_of_group);

// Adds up loads and bytes anew from the counts.
void pen_load_state_refresh(pen_load_state *state);

// What moving `group` to `device`, another than its own, would do to the loads: fills change,
// touched and touched_count, and changes nothing else. The group must be able to run there.
void pen_load_state_weigh(pen_load_state *state, uint32_t group, uint32_t device);

// Makes the move that was weighed just before.
void pen_load_state_move(pen_load_state *state, uint32_t group, uint32_t device);

// Tries a change: groups [count], each once, go to their goals. It is kept or undone after that,
// `homes` being where they come from.
void pen_load_state_try(pen_load_state *state, const uint32_t *groups, const uint32_t *goals,
                        uint32_t count);
void pen_load_state_keep(pen_load_state *state, const uint32_t *groups, const uint32_t *goals);
void pen_load_state_undo(pen_load_state *state, const uint32_t *groups, const uint32_t *homes,
                         uint32_t count);

// The load of a device before and after the change that is tried, and its bytes after it.
static inline double pen_load_state_before(const pen_load_state *state, uint32_t device) {
    return state->is_made ? state->load_kept[device] : state->load[device];
}
static inline double pen_load_state_after(const pen_load_state *state, uint32_t device) {
    return state->is_made ? state->load[device] : state->load[device] + state->change[device];
}
static inline double pen_load_state_bytes_after(const pen_load_state *state, uint32_t device) {
    const double bytes = state->bytes[device];
    if (state->is_made) return bytes;
    return device == state->goal   ? bytes + state->goal_bytes
           : device == state->home ? bytes - state->home_bytes
                                   : bytes;
}

// The largest load.
double pen_load_state_worst(const pen_load_state *state);

#endif // PEN_PARTITION_OBJECTIVE_LOAD_STATE_H
