// A small training over several workers of this process, generation after generation, without the
// training loop: a run spec, its workers, and what they are to compute.
#ifndef PEN_TESTS_SUPPORT_GENERATION_CASE_H
#define PEN_TESTS_SUPPORT_GENERATION_CASE_H

#include "scheduler/runtime/coordinator/coordinator.h"
#include "scheduler/runtime/worker/worker.h"

#define GENERATION_WORKERS 3
#define GENERATION_ROUNDS 6

typedef struct generation_case {
    pen_arena *arena;
    struct pen_trainer *trainer; // whose graphs are used
    const pen_transport_kind *transport;
    pen_run_spec spec;
    pen_run_spec_worker workers[GENERATION_WORKERS + 1];
    pen_worker *running[GENERATION_WORKERS + 1]; // 1 has the spec, the others pull it
    const void **feeds;
    bool is_missing[GENERATION_WORKERS + 1];
    double lease_seconds, rendezvous_seconds, progress_seconds, load_seconds, write_seconds;
    const uint64_t *needed_bytes; // [GENERATION_WORKERS + 1]; NULL: nothing is said of memory
    const char *folder;           // of checkpoints
    // A worker was started, whose address may be changed. NULL: nobody wants to know.
    void (*started)(struct generation_case *g, uint32_t worker);
} generation_case;

// Three devices, one on each worker, on this kind of transport. Fails the test on error, as all
// here does.
void generation_case_init(generation_case *g, const char *transport);
void generation_case_deinit(generation_case *g);

void generation_start_worker(generation_case *g, uint32_t worker);
void generation_end_worker(generation_case *g, uint32_t worker);

// Calls the workers as this generation's coordinator.
PEN_NODISCARD pen_status generation_begin(generation_case *g, uint64_t generation,
                                          pen_coordinator **out_coordinator);
// Gives the devices the model's own contents.
PEN_NODISCARD pen_status generation_write(generation_case *g, pen_coordinator *coordinator);
// Announces a training round of all microbatches.
PEN_NODISCARD pen_status generation_begin_round(generation_case *g, pen_coordinator *coordinator,
                                                uint64_t *out_round);
// The sum of its losses.
PEN_NODISCARD pen_status generation_finish_round(generation_case *g, pen_coordinator *coordinator,
                                                 uint64_t round, double *out_loss);
// A whole generation: writes, trains, reads; the losses, and a checksum of all that is saved.
PEN_NODISCARD pen_status generation_train(generation_case *g, pen_coordinator *coordinator,
                                          double *out_losses, uint32_t *out_checksum);
// Of what is saved, as it is there now.
PEN_NODISCARD pen_status generation_read(generation_case *g, pen_coordinator *coordinator,
                                         uint32_t *out_checksum);

#endif // PEN_TESTS_SUPPORT_GENERATION_CASE_H
