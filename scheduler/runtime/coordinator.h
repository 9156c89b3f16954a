// The coordinator's side of a run: links to the workers, the protocol core that says what is to be
// done when, rounds with what they are fed, tensors to and from the devices that hold them.
//
// The transport's thread hands events to the core and sends what it says; the caller's thread
// begins rounds, waits, and computes checksums. Every wait has a deadline: where nothing moves, the
// workers are asked who waits for what, and the answer is in the error.
//
// Lifetime: pen_coordinator_create to pen_coordinator_destroy; the spec outlives it.
// Threads:  one.
#ifndef PEN_SCHEDULER_RUNTIME_COORDINATOR_H
#define PEN_SCHEDULER_RUNTIME_COORDINATOR_H

#include "scheduler/runtime/run_inquiry.h"
#include "scheduler/runtime/run_spec.h"
#include "scheduler/transport/transport.h"

typedef struct pen_coordinator pen_coordinator;

typedef struct pen_coordinator_setup {
    const pen_run_spec *spec; // workers' addresses are where they take links
    const pen_transport_kind *transport;
    pen_transport_tls tls;
    bool is_insecure;
    const char *job;           // text that all must have
    uint64_t plan_hash;        //
    double rendezvous_seconds; // for all workers to be there
    uint32_t local_worker;     // that is in this process and has the spec; 0: none
} pen_coordinator_setup;

// What is run: a form for some microbatches.
typedef struct pen_coordinator_round {
    uint32_t form;
    uint32_t count;
    bool updates;
    bool continues;            // adds to the gradients of the round before
    uint64_t step;             // counted from 1
    uint64_t first_microbatch; // of the step
    double loss_weight;        // of each microbatch
    double learning_rate;
    // [channel_count of the form] of channels from the host, what microbatch 0 is fed; those after
    // it follow. Lent until the round's losses are there.
    const void *const *feeds;
} pen_coordinator_round;

// Links, assigns, waits until all workers are ready.
//   UNAVAILABLE  workers are missing at the deadline; names them with their addresses
//   INVALID_INPUT a worker of another build or instruction set
//   else         what a worker failed with, by name
PEN_NODISCARD pen_status pen_coordinator_create(const pen_coordinator_setup *setup,
                                                pen_coordinator **out_coordinator);
// Stops the workers, unless the run failed, and takes the links down. Accepts NULL.
void pen_coordinator_destroy(pen_coordinator *coordinator);

// Announces a round. Waits while too many are under way. *out_round is its number.
PEN_NODISCARD pen_status pen_coordinator_begin_round(pen_coordinator *coordinator,
                                                     const pen_coordinator_round *round,
                                                     uint64_t *out_round);
// Waits for the losses of a round: out_losses and out_correct [count], by microbatch. A training
// round with a loss that is not finite stops the training: no update follows.
PEN_NODISCARD pen_status pen_coordinator_await_losses(pen_coordinator *coordinator, uint64_t round,
                                                      double *out_losses, uint64_t *out_correct);
// Waits until no round is under way. After losses that are not finite: at once.
PEN_NODISCARD pen_status pen_coordinator_await_quiet(pen_coordinator *coordinator);

// ---- tensors, while no round is under way. A piece is of at most PEN_TRANSPORT_CHUNK_BYTES.
// Lends the memory until pen_coordinator_flush; several may be on their way.
PEN_NODISCARD pen_status pen_coordinator_write(pen_coordinator *coordinator,
                                               const pen_tensor_piece *piece, const void *memory);
PEN_NODISCARD pen_status pen_coordinator_flush(pen_coordinator *coordinator);
PEN_NODISCARD pen_status pen_coordinator_read(pen_coordinator *coordinator,
                                              const pen_tensor_piece *piece, void *memory);

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

#endif // PEN_SCHEDULER_RUNTIME_COORDINATOR_H
