// The contract of the coordinator_*.c of this folder among themselves.
//
// The inside of a coordinator, for its files.
#ifndef PEN_SCHEDULER_RUNTIME_COORDINATOR_COORDINATOR_LINK_H
#define PEN_SCHEDULER_RUNTIME_COORDINATOR_COORDINATOR_LINK_H

#include "base/thread.h"
#include "scheduler/protocol/coordinator_core.h"
#include "scheduler/protocol/flight_recorder.h"
#include "scheduler/protocol/message.h"
#include "scheduler/runtime/coordinator/coordinator.h"
#include "scheduler/runtime/coordinator/coordinator_evidence.h"
#include "scheduler/runtime/coordinator/coordinator_shards.h"

#define COORDINATOR_PIECES 8 // of tensors, on their way at once
#define COORDINATOR_ROUNDS PEN_COORDINATOR_ROUND_LIMIT

// Tokens of frames: those of the host's channels from 0, then pieces of tensors, then descriptions.
#define COORDINATOR_PIECE_TOKEN ((uint64_t)1 << 40)
#define COORDINATOR_BLOB_TOKEN ((uint64_t)1 << 41)

// A frame from the host: one for each place of each channel.
typedef struct coordinator_frame {
    uint32_t form;
    uint32_t channel;
    uint64_t sequence;
    uint64_t round;
} coordinator_frame;

typedef enum coordinator_piece_state {
    COORDINATOR_PIECE_FREE,
    COORDINATOR_PIECE_WRITE, // goes to a worker
    COORDINATOR_PIECE_READ,  // comes from one
} coordinator_piece_state;

// Guarded by the lock.
typedef struct coordinator_piece {
    coordinator_piece_state state;
    uint32_t peer;
    uint64_t sequence;
    uint64_t bytes;
    char *memory;
    uint32_t checksum;
    bool is_lent;     // WRITE: the transport reads it
    bool is_arriving; // READ: the transport writes it
    bool is_there;    // at its target
} coordinator_piece;

#define COORDINATOR_TROUBLE_BYTES 400

typedef struct coordinator_worker {
    bool is_up;      // guarded by lock
    bool was_up;     // guarded by lock: in this generation
    bool is_lost;    // guarded by lock: its link went down, and not because it left the run
    bool is_refused; // guarded by lock: it may not take part
    bool has_said;   // guarded by lock: it cannot go on, and `failure` begins with why
    bool is_unjust;  // guarded by lock: it gave a code for its failure that it may not give
    bool wants_link; // guarded by lock: it went down while workers are being gathered
    char trouble[COORDINATOR_TROUBLE_BYTES]; // guarded by lock: why it cannot be called; "" unknown
    uint64_t incarnation;                    // guarded by lock, as it said
    pen_coordinator_identity identity;
    char store[PEN_MESSAGE_TEXT_BYTES]; // beneath which it writes, first; "": nowhere
    const void *blob;                   // its description; NULL: it has it
    uint64_t blob_bytes;
    uint32_t *blob_checksums;
    bool is_blob_sent;                  // guarded by lock: since it was last assigned
    pen_status failure;                 // guarded by lock: why it was lost, or what it said
    bool is_stopped;                    // guarded by lock: it has left the run, or one of
    bool computes;                      // its devices computes still; `waits` says which
    char waits[PEN_MESSAGE_TEXT_BYTES]; // what its devices waited for then
    uint64_t ponged;                    // guarded by lock: the last ping that it answered
    uint64_t survey_sequence;           // guarded by lock: of the last order
    bool is_surveyed;                   // guarded by lock: it was answered, so:
    pen_survey_answer answer;
    pen_status survey_failure;
} coordinator_worker;

typedef struct coordinator_announced {
    pen_coordinator_round round;
    const void **feeds;    // [channel_limit]
    uint32_t *checksums;   // [checksum_limit] of all that is fed
    uint32_t *first_check; // [channel_limit]
    uint64_t lent_count;   // guarded by lock: frames of it that the transport reads
    uint64_t number;       // guarded by lock, as the next
    double *terms;         // [microbatch_limit][PEN_TERMS_LIMIT] of the losses, as they come
    char *seen;            // [PEN_RUN_SEEN_LIMIT] values one behind the other, of a round of one
                           // microbatch; NULL: no form has any
    uint64_t seen_count[PEN_RUN_SEEN_LIMIT]; // bytes of them that have come
    pen_arrivals_order order;                // guarded by lock: with which it went
} coordinator_announced;

struct pen_coordinator {
    pen_coordinator_setup setup;
    const pen_run_spec *spec;
    const pen_run_table *table;
    pen_arena *arena;
    pen_transport *transport;
    uint64_t generation;
    uint64_t incarnation;
    double rendezvous_end; // seconds of the clock
    uint32_t channel_limit;
    uint32_t microbatch_limit;
    uint32_t **first_frame;                     // [form_count][channel_count]
    uint64_t (*seen_bytes)[PEN_RUN_SEEN_LIMIT]; // [form_count] of values that are seen
    uint64_t seen_first[PEN_RUN_SEEN_LIMIT];    // where each begins
    coordinator_frame *frames;                  // [frame_count]
    uint32_t frame_count;
    coordinator_worker *workers; // [worker_count + 1]
    pen_thread *clock;
    double beat_seconds;
    uint64_t piece_sequence;
    double question_end; // until when workers are asked how they stand

    pen_mutex lock;
    pen_condition changed; // something that the caller's thread waits for
    pen_condition stepped; // actions were carried out, and somebody waits for it
    pen_condition ended;   // the clock is to end
    // guarded by lock
    pen_coordinator_core *core;
    pen_flight_recorder *recorder;
    pen_coordinator_action *actions; // [action_limit]
    bool is_stepping;                // actions are carried out
    uint32_t stepper_count;          // threads that wait for that
    coordinator_announced announced[COORDINATOR_ROUNDS];
    pen_round_figures *figures[COORDINATOR_ROUNDS]; // [device_count]
    uint64_t figures_round[COORDINATOR_ROUNDS];
    uint64_t losses_end; // rounds whose losses are all here: below it
    uint64_t go_end;     // rounds that were told to update, and those before: below it
    char identity[PEN_MESSAGE_TEXT_BYTES]; // of the devices of the worker that said it first
    uint32_t identity_worker;              // 0: none has
    pen_coordinator_told told;             // where the setup has none
    bool wants_fence;                      // the core asked for it
    bool is_running;                       // all are started
    bool is_failed;
    bool is_explained; // somebody was told why
    pen_status_code explained_code;
    bool is_not_finite;
    bool is_closed;
    bool has_begun;       // a round
    double moved_at;      // when an event last showed that something moves,
    double longest_still; // and for how long none did, while rounds were under way
    pen_coordinator_reason reason;
    uint32_t failed_worker;
    pen_status fence_failure;
    coordinator_piece pieces[COORDINATOR_PIECES];
    coordinator_save save;
    coordinator_sought sought;
    coordinator_copy copy;
    coordinator_evidence evidence;
    coordinator_opinion opinion;
    // an inquiry that is waited for
    uint32_t asked_worker;
    uint32_t asked_what;
    uint64_t asked_offset;
    uint64_t part_total;
    void *part; // [PEN_MESSAGE_PART_LIMIT]
    uint64_t part_length;
    bool is_answered;
    uint64_t ping_sequence;
    uint64_t pong_here;
    bool is_ponged;
};

// Tells the core, now, and does what it says.
void pen_coordinator_step(pen_coordinator *c, const pen_coordinator_event *event);
// Whether a code of a worker may become ours. With the lock
bool pen_coordinator_may_fail_with(const pen_coordinator *c, uint32_t worker, uint32_t code);
// Says which code it gave, where it may not. Takes the error.
PEN_NODISCARD pen_status pen_coordinator_add_unjust(pen_status take_status, uint32_t code);
void pen_coordinator_tell(pen_coordinator *c, uint32_t worker, pen_message *message);
// Tells the core of pieces that a worker was sent or is asked for, or of which so many are there.
void pen_coordinator_note_pieces(pen_coordinator *c, uint32_t worker, uint32_t asked,
                                 uint32_t there);
// Whether somebody wishes to stop, and nothing is lost by it.
bool pen_coordinator_may_stop(const pen_coordinator *c);
pen_transport_events pen_coordinator_events(pen_coordinator *c);

// The run is over for a reason that the core does not see.
void pen_coordinator_end_run(pen_coordinator *c, pen_coordinator_reason reason, uint32_t worker);
// A worker is lost. Takes the reason.
void pen_coordinator_lose(pen_coordinator *c, uint32_t worker, pen_status take_reason);

// Waits until `is_done` holds (with the lock), the run fails, or, before its first round, somebody
// wishes it to stop. The lock is held at the call and after it.
typedef bool (*pen_coordinator_test)(const pen_coordinator *c, uint64_t argument);
PEN_NODISCARD pen_status pen_coordinator_await(pen_coordinator *c, pen_coordinator_test is_done,
                                               uint64_t argument);
// As pen_coordinator_compare_clocks, of a worker that may not answer, until question_end.
PEN_NODISCARD pen_status pen_coordinator_ask_clock(pen_coordinator *c, uint32_t worker,
                                                   double *out_seconds);
// Looks for workers whose processes have ended. Without the lock, on the caller's thread.
void pen_coordinator_look_for_gone(pen_coordinator *c);
// Says once who is not there and why, when the rendezvous has taken a while. As look_for_gone
void pen_coordinator_say_late(pen_coordinator *c);
// Why the run failed, with who waited for what; takes a second or two, or a lease where a worker
// that may be the cause is there and does not answer. Without the lock.
PEN_NODISCARD pen_status pen_coordinator_explain(pen_coordinator *c);

// ---- who made it fail (coordinator_cause.c)
// Whether a worker only says that its link to another is down. With the lock
bool pen_coordinator_is_messenger(const coordinator_worker *worker);
// Whether it said what went wrong there. With the lock
bool pen_coordinator_has_own_fault(const coordinator_worker *worker);
// Of a worker that failed, and may be a messenger: it may be the first to notice that another is
// gone, or leaves the run because it failed. Waits until one is lost or says why, or none will.
// 0: nobody. Without the lock.
uint32_t pen_coordinator_find_cause(pen_coordinator *c, uint32_t failed);

// ---- pieces of tensors (coordinator_tensors.c), from the transport
PEN_NODISCARD pen_status pen_coordinator_begin_piece(pen_coordinator *c, uint32_t peer,
                                                     const pen_frame *frame,
                                                     pen_memory_place *out_place);
void pen_coordinator_end_piece(pen_coordinator *c, const pen_frame *frame,
                               const uint32_t *checksums);
void pen_coordinator_take_piece(pen_coordinator *c, uint32_t peer, uint64_t sequence);
void pen_coordinator_let_piece_go(pen_coordinator *c, uint64_t index);
void pen_coordinator_end_arrivals(pen_coordinator *c, uint32_t peer); // holds the lock

// ---- (coordinator_link.c)

// A worker may not take part: it is told why, and the run ends with that.
void pen_coordinator_turn_away(pen_coordinator *c, uint32_t worker, uint32_t refusal,
                               pen_status take_status);

// ---- values that are seen (coordinator_values.c)
PEN_NODISCARD pen_status pen_coordinator_prepare_values(pen_coordinator *c);
void pen_coordinator_take_value(pen_coordinator *c, const pen_message *message);

// ---- what devices lack (coordinator_lacks.c). Without the lock.
// Warns of each line that was not told yet, with the name of the worker where it is another
// process.
void pen_coordinator_tell_lacks(pen_coordinator *c, uint32_t peer, const char *text, size_t length);

// ---- measuring (coordinator_survey.c), from the transport
void pen_coordinator_take_survey(pen_coordinator *c, uint32_t peer, const pen_message *message);

// ---- how it stands (coordinator_question.c). Without the lock.
// Says who waits for what, and has dumps written.
void pen_coordinator_answer_question(pen_coordinator *c);
// Has all processes write their flight recorders, without waiting for it.
void pen_coordinator_have_dumped(pen_coordinator *c, const char *reason);

#endif // PEN_SCHEDULER_RUNTIME_COORDINATOR_COORDINATOR_LINK_H
