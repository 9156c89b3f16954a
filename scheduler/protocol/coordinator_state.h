// The contract of coordinator_*.c among themselves.
//
// The inside of the coordinator's core, for coordinator_events.c (workers, states, deadlines),
// coordinator_rounds.c (rounds, losses, feeding), coordinator_saving.c and coordinator_text.c.
// Nobody else includes this.
#ifndef PEN_SCHEDULER_PROTOCOL_COORDINATOR_STATE_H
#define PEN_SCHEDULER_PROTOCOL_COORDINATOR_STATE_H

#include "scheduler/protocol/coordinator_core.h"
#include "scheduler/protocol/frame_feed.h"

typedef struct coordinator_worker {
    bool is_present;
    bool is_ready;
    bool is_blamed;   // the run failed because of it
    bool has_snapped; // of the save under way: it copied its tensors, or could not
    bool has_shard;   // its shard is durable, or will not be
    uint64_t incarnation;
    uint64_t heard_at;   // the last sign of life
    uint64_t done_round; // all below are done there
    int64_t owed_count;  // pieces that it is to take or give
    uint64_t owed_at;    // when that was last another number
} coordinator_worker;

typedef struct coordinator_round {
    uint64_t number;
    uint32_t form;
    uint32_t count;
    bool updates;
    uint32_t first_microbatch; // of the step
    pen_arrivals_order given;  // 0: lanes come as they come,
    pen_arrivals_tally tally;  // in this and the step's rounds before
    bool has_gone;             // `go` was given
    bool has_losses;           // LOSSES was said
    uint32_t loss_count;       // of those expected
    uint32_t worker_count;     // that are done
    uint64_t fed_count;        // frames sent and not let go
    bool *has_loss;            // [reporter limit][microbatch limit]
    pen_coordinator_loss *losses;
    bool *has_gradient; // as has_loss
} coordinator_round;

// A stage that reports losses, or gradients, of its microbatches.
typedef struct coordinator_reporter {
    uint32_t stage;
    uint32_t worker;
    uint32_t first; // microbatch
    uint32_t end;
} coordinator_reporter;

typedef struct coordinator_reporters {
    uint32_t count;
    coordinator_reporter *items; // [count]
} coordinator_reporters;

typedef struct coordinator_form {
    uint32_t feed_count;
    pen_frame_feed *feeds; // [feed_count]
    coordinator_reporters losses;
    coordinator_reporters gradients;
} coordinator_form;

struct pen_coordinator_core {
    const pen_run_table *table;
    pen_coordinator_options options;
    pen_coordinator_state state;
    coordinator_worker *workers; // [worker_count + 1], from 1
    coordinator_form *forms;     // [form_count]
    uint32_t microbatch_limit;   // over all forms
    uint64_t first_round;        // the oldest not done
    uint64_t announced_round;    // the next to be announced
    uint64_t end_round;          // the next to be begun
    uint64_t losses_round;       // the next whose losses are awaited
    bool is_not_finite;          // a loss of a training form was
    uint64_t now;                // the latest of all events
    uint64_t assigned_at;
    uint64_t fence_at;      // when it was asked for
    uint64_t progressed_at; // a loss or an end of a round came, or a round began from quiet
    bool is_fence_asked;    // FENCE was said
    bool is_fenced;         // and done
    uint64_t save_number;   // of the last save; 0: none was asked for
    bool save_is_failed;
    pen_coordinator_save_state save_state;
    uint64_t save_step;        // of the last save
    uint64_t save_at;          // when it was asked for, or last got on
    coordinator_round *rounds; // [PEN_COORDINATOR_ROUND_LIMIT] by number, in turn
    uint32_t action_limit;
    pen_coordinator_action *actions; // during a step
    uint32_t action_count;
};

pen_coordinator_action *pen_coordinator_act(pen_coordinator_core *core,
                                            pen_coordinator_action_kind kind);

// The run is over: tells the driver why, and everyone to stop.
void pen_coordinator_fail(pen_coordinator_core *core, pen_coordinator_reason reason,
                          uint32_t worker);

// Of the table and options: what rounds need.
PEN_NODISCARD pen_status pen_coordinator_rounds_init(pen_coordinator_core *core, pen_arena *arena);

void pen_coordinator_begin(pen_coordinator_core *core, const pen_coordinator_event *event);
void pen_coordinator_take_loss(pen_coordinator_core *core, const pen_coordinator_event *event);
void pen_coordinator_take_gradient(pen_coordinator_core *core, const pen_coordinator_event *event);
void pen_coordinator_end_round(pen_coordinator_core *core, const pen_coordinator_event *event);
void pen_coordinator_take_credit(pen_coordinator_core *core, const pen_coordinator_event *event);
void pen_coordinator_let_go(pen_coordinator_core *core, const pen_coordinator_event *event);

void pen_coordinator_begin_save(pen_coordinator_core *core, const pen_coordinator_event *event);
void pen_coordinator_take_snapped(pen_coordinator_core *core, const pen_coordinator_event *event);
void pen_coordinator_take_shard(pen_coordinator_core *core, const pen_coordinator_event *event);
void pen_coordinator_take_published(pen_coordinator_core *core, const pen_coordinator_event *event);
void pen_coordinator_advance_save(pen_coordinator_core *core);

// Announces, feeds, says `go` and what is done, as far as that goes.
void pen_coordinator_advance(pen_coordinator_core *core);

#endif // PEN_SCHEDULER_PROTOCOL_COORDINATOR_STATE_H
