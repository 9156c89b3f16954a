// A package with which any process of the build computes again what a worker did: the description
// of that worker's run (run_spec_wire.h), and the evidence that it kept (evidence.h).
//
// Lifetime: what is packed is in the arena.
// Threads:  any.
#ifndef PEN_SCHEDULER_RUNTIME_WORKER_RECOMPUTE_H
#define PEN_SCHEDULER_RUNTIME_WORKER_RECOMPUTE_H

#include "scheduler/runtime/run/run_spec.h"

typedef struct pen_recompute_bytes {
    const void *bytes;
    uint64_t count;
} pen_recompute_bytes;

// OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_recompute_pack(const pen_run_spec *spec, uint32_t worker,
                                            pen_recompute_bytes evidence, pen_arena *arena,
                                            pen_recompute_bytes *out_package);

// Computes what the package says that `device` did, on one thread, within `memory_bytes` for values
// (0: no limit). Bytes are not trusted.
//   CORRUPT       a package that makes no sense
//   DOES_NOT_FIT  there is not as much memory
PEN_NODISCARD pen_status pen_recompute_carry_out(pen_recompute_bytes package, uint32_t device,
                                                 uint64_t memory_bytes, uint64_t *out_digest);

#endif // PEN_SCHEDULER_RUNTIME_WORKER_RECOMPUTE_H
