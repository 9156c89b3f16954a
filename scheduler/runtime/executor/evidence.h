// What a device computed for a stage and microbatch, kept so that others can compute it again: all
// that its tasks read from elsewhere (frames, parameters, sums before they were added to), and a
// digest of all that they left behind for other tasks, devices and the update.
//
// As bytes it is a row of numbers of 64 bits, and contents padded to these, behind a head with a
// checksum. It names values and lists by their numbers in the part, so that it makes sense beside
// the description of a run alone (run_spec_wire.h), and to a process of the same build.
//
// Of values whose layout has gaps nothing is in the digest: what is in a gap is anything.
//
// Threads: one, that of the executor's device, until it is finished; then any, reading.
#ifndef PEN_SCHEDULER_RUNTIME_EXECUTOR_EVIDENCE_H
#define PEN_SCHEDULER_RUNTIME_EXECUTOR_EVIDENCE_H

#include "scheduler/runtime/executor/executor.h"

typedef struct pen_evidence pen_evidence;

// For tasks of `executor` with these lists and this microbatch of a round.
//   UNSUPPORTED    the device's memory is not the host's
//   OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_evidence_create(const pen_executor *executor, const uint32_t *lists,
                                             uint32_t list_count, uint64_t microbatch,
                                             pen_evidence **out_evidence);
// Accepts NULL.
void pen_evidence_destroy(pen_evidence *evidence);

// Right before one of the lists runs, and right after. OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_evidence_begin_list(pen_evidence *evidence, uint32_t list,
                                                 const pen_run_context *run);
void pen_evidence_end_list(pen_evidence *evidence);
// Whether all lists have run; then these bytes are whole, and stay as long as the evidence.
bool pen_evidence_is_whole(const pen_evidence *evidence);
const void *pen_evidence_bytes(const pen_evidence *evidence, uint64_t *out_count);

// The digest in it; compares its checksum. CORRUPT
PEN_NODISCARD pen_status pen_evidence_read(const void *bytes, uint64_t count, uint64_t *out_digest);
// Computes it again on an executor of the same part, nothing of which is shared or lent, and which
// has one copy at most of each value. Bytes are not trusted. CORRUPT; as pen_executor_run
PEN_NODISCARD pen_status pen_evidence_recompute(const void *bytes, uint64_t count,
                                                pen_executor *executor, uint64_t *out_digest);

#endif // PEN_SCHEDULER_RUNTIME_EXECUTOR_EVIDENCE_H
