// The contract of this folder towards its users, defined in coordinator_*.c.
//
// The coordinator's side of a generation: one run of the pipeline by a fixed set of workers. Links
// to them, the protocol core that says what is to be done when, rounds with what they are fed,
// tensors to and from the devices that hold them, checkpoints.
//
// A generation that failed is over: recovery destroys its coordinator, upon which the workers leave
// the run, and makes another of a higher generation, over the same workers or others.
//
// The transport's thread hands events to the core and sends what it says; a clock thread ticks, so
// that workers hear of a coordinator whose caller is busy; the caller's thread begins rounds,
// waits, and computes checksums. Every wait has a deadline, and the error says who waited for what.
//
// Lifetime: pen_coordinator_create to pen_coordinator_destroy; the spec outlives it.
// Threads:  one.
#ifndef PEN_SCHEDULER_RUNTIME_COORDINATOR_COORDINATOR_H
#define PEN_SCHEDULER_RUNTIME_COORDINATOR_COORDINATOR_H

#include "graph/arrivals.h"
#include "scheduler/runtime/coordinator/coordinator_told.h"
#include "scheduler/runtime/run/run_inquiry.h"
#include "scheduler/runtime/run/run_spec.h"
#include "scheduler/store/commit_log.h"
#include "scheduler/transport/transport.h"

typedef struct pen_coordinator pen_coordinator;

// A rendezvous, which may take several generations, and what was said of it. Lent as long as the
// coordinator is made.
typedef struct pen_coordinator_rendezvous {
    double began, end; // seconds of the clock
    bool is_said;      // who is waited for, and why
} pen_coordinator_rendezvous;
#define PEN_COORDINATOR_SAY_SECONDS 5.0 // after which it is

typedef struct pen_coordinator_setup {
    const pen_run_spec *spec; // workers' addresses are where they take links
    const pen_transport_kind *transport;
    pen_transport_tls tls;
    bool is_insecure;
    const char *token_file; // shared with workers of this host; NULL: none
    bool shares_memory;     // with workers of this host
    const char *job;        // text that all must have
    uint64_t plan_hash;
    double rendezvous_seconds;              // for all workers to be there
    pen_coordinator_rendezvous *rendezvous; // of which that is a part; NULL: it is the whole
    pen_coordinator_told *told; // in all generations; lent as long as the coordinator lives. NULL:
                                // this is the only one
    uint32_t local_worker;      // that is in this process and has the spec; 0: none
    uint64_t generation;        // from 1; higher than any that these workers had for the job
    const uint64_t *needed_bytes; // [worker_count + 1] of memory, that the plan takes in each
                                  // worker's process; 0: not known. NULL: whatever is there goes
    double lease_seconds;         // without a word of a worker, after which it is lost; 0: never
    double progress_seconds; // without a loss or a round done, while nothing computes; 0: never
    double load_seconds;     // from all being there to all being ready; 0: never
    double write_seconds;    // for one more part of a checkpoint to be written; 0: never
    bool is_local_store;     // each worker saves to a disk of its own
    const char *save_folder; // that is saved to, or else save_mirror: where there is none of the
                             // two that all workers see, one that does not is refused before
                             // anything is computed. NULL: it is not known, or nothing is saved
    const char *save_mirror; // NULL: there is none
    // [worker_count + 1] lent as long as the coordinator lives; NULL: not wanted. Set when the run
    // fails: who is not there, or failed; who is there and was refused: of another build; who had
    // been there.
    bool *is_missing;
    bool *is_refused;
    bool *was_there;
    // Makes the generation durable before anybody is assigned; on the caller's thread, within
    // create. NULL: it is so. An error ends create.
    pen_status (*fence)(void *context, uint64_t generation);
    void *fence_context;
    // Whether the process of a worker has ended, as far as is known here: asked now and then on the
    // caller's thread while it waits. Its link need not be waited for then. NULL: nothing is known.
    bool (*is_gone)(void *context, uint32_t worker);
    void *is_gone_context;
    // Not 0: workers are not waited for any longer (pen_interrupt_wished). NULL: nobody may say so.
    const volatile int *cancel;
} pen_coordinator_setup;

// What is run: a form for some microbatches.
typedef struct pen_coordinator_round {
    uint32_t form;
    uint32_t count;
    bool updates;
    bool continues;             // adds to the gradients of the round before
    uint64_t step;              // counted from 1
    uint64_t first_microbatch;  // of the step
    uint64_t step_microbatches; // that the step has in all its rounds
    pen_arrivals_order order;   // of lanes, where it is free; 0: as they come
    double loss_weight;         // of each microbatch: where the gradient of its loss begins
    double unscale;             // that gradients are multiplied by, where the loss is scaled
    uint64_t update;            // of the optimizer, counted from 1
    double learning_rate;
    uint64_t epoch; // for workers that read by themselves (run_data.h)
    uint64_t first_example;
    // [channel_count of the form] of channels from the host, what microbatch 0 is fed; those after
    // it follow. Lent until the round's losses are there.
    const void *const *feeds;
} pen_coordinator_round;

// Links, fences, assigns, waits until all workers are ready.
//   UNAVAILABLE  workers are missing at the deadline, or one was lost; by name
//   DOES_NOT_FIT a worker may use less memory than the plan takes there; nothing was loaded
//   INVALID_INPUT a worker does not see what is saved to where it writes
//   CANCELLED    superseded: a worker serves a higher generation of this job, or the fence says so;
//                or a worker of another build or instruction set was refused; or it was wished
//   else         what a worker failed with, by name
PEN_NODISCARD pen_status pen_coordinator_create(const pen_coordinator_setup *setup,
                                                pen_coordinator **out_coordinator);
// Stops the workers and takes the links down, upon which they leave the run. Returns within half a
// second, whatever they do. Accepts NULL.
void pen_coordinator_destroy(pen_coordinator *coordinator);

// Whether the run is over, because of a worker or a link. The code of an error of it says whether
// another generation may do better (pen_recovery_may_help): of UNAVAILABLE, DEADLINE or CORRUPT it
// may; of INVALID_INPUT, which a worker found in the data, and NOT_FINITE not. Whoever asks again
// what ended it hears such a code again.
bool pen_coordinator_is_failed(pen_coordinator *coordinator);

// Announces a round. Waits while too many are under way. *out_round is its number.
PEN_NODISCARD pen_status pen_coordinator_begin_round(pen_coordinator *coordinator,
                                                     const pen_coordinator_round *round,
                                                     uint64_t *out_round);
// Waits for the losses of a round: out_losses [count], by microbatch. A training round with a loss
// that is not finite stops the training: no update follows.
PEN_NODISCARD pen_status pen_coordinator_await_losses(pen_coordinator *coordinator, uint64_t round,
                                                      pen_run_loss *out_losses);
// What is seen of a round of one microbatch whose losses are there, until as many rounds later have
// begun as may be under way. NULL: its form has no such value. UNAVAILABLE: not all has come
PEN_NODISCARD pen_status pen_coordinator_get_values(pen_coordinator *coordinator, uint64_t round,
                                                    const void *out_values[PEN_RUN_SEEN_LIMIT]);
// Waits until the round may update: *out_order is that of its lanes, where it is free. A training
// that was stopped so: 0, at once.
PEN_NODISCARD pen_status pen_coordinator_await_order(pen_coordinator *coordinator, uint64_t round,
                                                     pen_arrivals_order *out_order);
// Waits until no round is under way. After losses that are not finite: at once.
PEN_NODISCARD pen_status pen_coordinator_await_quiet(pen_coordinator *coordinator);

// ---- tensors, while no round is under way. A piece may be of any size; it moves in pieces of
// PEN_TRANSPORT_CHUNK_BYTES, several of which are under way at once.
// Lends the memory until pen_coordinator_flush; several may be on their way.
PEN_NODISCARD pen_status pen_coordinator_write(pen_coordinator *coordinator,
                                               const pen_tensor_piece *piece, const void *memory);
// Waits until all that was begun is there, and compares checksums.
PEN_NODISCARD pen_status pen_coordinator_flush(pen_coordinator *coordinator);
// The bytes are there when it returns. Nothing that is written may be under way.
PEN_NODISCARD pen_status pen_coordinator_read(pen_coordinator *coordinator,
                                              const pen_tensor_piece *piece, void *memory);

// ---- checkpoints: what the spec lists as `saved`, written by the workers. One at a time.
typedef enum pen_save_state {
    PEN_SAVE_NONE, // none was begun
    PEN_SAVE_WRITING,
    PEN_SAVE_DURABLE, // all shards are; the manifest may be published
    PEN_SAVE_FAILED,  // a worker could not; the run goes on
} pen_save_state;

typedef struct pen_coordinator_saved {
    pen_save_state state;
    uint64_t step;
    // DURABLE: a summary for each worker that has something to save. These and the text are valid
    // until the next save.
    uint32_t summary_count;
    const pen_shard_summary *summaries;
    const char *failure; // FAILED
} pen_coordinator_saved;

// Has the workers copy what they hold after step `step` aside, and write it to shards in `folder`
// (made by them where is_local_store): "g<generation>-s<step>-w<worker>.safetensors". Waits until
// no round is under way, and then until all have copied; training goes on meanwhile they write.
// Errors are those of the run, or NO_STORAGE, IO or NOT_FOUND: the folder takes no files, and
// nothing was begun; a save that fails later is told by poll.
PEN_NODISCARD pen_status pen_coordinator_save(pen_coordinator *coordinator, uint64_t step,
                                              const char *folder);
// Whether all workers see a folder that was said to be saved to, as far as is known.
bool pen_coordinator_writes_to(pen_coordinator *coordinator, const char *folder);
void pen_coordinator_poll_saved(pen_coordinator *coordinator, pen_coordinator_saved *out_saved);
// Waits until the save is DURABLE or FAILED.
PEN_NODISCARD pen_status pen_coordinator_await_saved(pen_coordinator *coordinator,
                                                     pen_coordinator_saved *out_saved);
// The manifest of the save that is DURABLE was published: tells the workers. Another may follow.
void pen_coordinator_committed(pen_coordinator *coordinator, uint64_t step);
// It is still being published, and gets on: its deadline begins anew. Any thread, however often.
void pen_coordinator_keep_publishing(pen_coordinator *coordinator);
// It could not be, with this code; CANCELLED (superseded) ends the run.
void pen_coordinator_give_save_up(pen_coordinator *coordinator, uint64_t step,
                                  pen_status_code code);

// Asks a worker; the answer lives in `arena`.
PEN_NODISCARD pen_status pen_coordinator_inquire(pen_coordinator *coordinator, uint32_t worker,
                                                 pen_run_inquiry what, pen_arena *arena,
                                                 const void **out_bytes, uint64_t *out_count);
// What is to be added to the times of a worker to get those of this process.
PEN_NODISCARD pen_status pen_coordinator_compare_clocks(pen_coordinator *coordinator,
                                                        uint32_t worker, double *out_seconds);
// What each device did in a round that is done: out_figures [device_count], by each worker's clock.
// False: it is too long ago.
bool pen_coordinator_get_figures(pen_coordinator *coordinator, uint64_t round,
                                 pen_round_figures *out_figures);

// ---- audits. None of these waits for a worker, but await_audit, for a moment.
// Has a worker keep what it computes of a stage and microbatch in the next round, which is of form
// 0 and has that microbatch. Sets the round.
void pen_coordinator_note(pen_coordinator *coordinator, uint32_t worker, pen_run_note *note);
// Begins to fetch what a note asked for, when its round is done. The arena lives until what is
// fetched is forgotten. OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_coordinator_fetch_evidence(pen_coordinator *coordinator,
                                                        uint32_t worker, pen_arena *arena);
// Goes on with it, in the same arena. *out_bytes: all of it, none where the worker has kept
// nothing; NULL as long as it is not here.
//   UNAVAILABLE   the worker does not answer, or is lost
//   CORRUPT       its answers make no sense
//   DOES_NOT_FIT  this process may not take as much memory
PEN_NODISCARD pen_status pen_coordinator_find_evidence(pen_coordinator *coordinator,
                                                       pen_arena *arena, const void **out_bytes,
                                                       uint64_t *out_count);
typedef struct pen_coordinator_package {
    uint32_t device;
    const void *bytes; // pen_recompute_pack; lent until it is forgotten
    uint64_t byte_count;
} pen_coordinator_package;
// Begins to give a worker a package, which it is to compute again. `asked` is another number each
// time. What becomes of it, and that nothing does, is found by the next.
void pen_coordinator_recompute(pen_coordinator *coordinator, uint32_t worker, uint32_t asked,
                               const pen_coordinator_package *package);
// Whether the worker that was asked last has answered: the digest, or why there is none.
bool pen_coordinator_find_digest(pen_coordinator *coordinator, uint64_t *out_digest,
                                 bool *out_is_failed, char *out_text, size_t size);
// What equal bits depend on besides build and kernel level, as the workers say of their devices:
// lines as of pen_worker_run_identify. `out_text`: [PEN_MESSAGE_TEXT_BYTES]
void pen_coordinator_get_identity(pen_coordinator *coordinator, char *out_text);
// Waits a moment for either; answers SIGUSR1.
void pen_coordinator_await_audit(pen_coordinator *coordinator);
// What was fetched, and what is given, is not touched any longer.
void pen_coordinator_forget_audit(pen_coordinator *coordinator);

// ---- measuring, where the spec is a survey. A worker has one order at a time; several workers may
// have theirs at once.
void pen_coordinator_order(pen_coordinator *coordinator, uint32_t worker,
                           const pen_survey_order *order);
// Waits until the worker has carried its order out. What could not be measured is an error of
// `out_failure`, the run goes on then. As pen_coordinator_await_losses; DEADLINE: for `seconds` no
// figures came, though the worker is there
PEN_NODISCARD pen_status pen_coordinator_await_survey(pen_coordinator *coordinator, uint32_t worker,
                                                      double seconds, pen_survey_answer *out_answer,
                                                      pen_status *out_failure);

#endif // PEN_SCHEDULER_RUNTIME_COORDINATOR_COORDINATOR_H
