// What workers are told as bytes, and back: RunSpec of run_spec.proto.
//
// Threads: any.
#ifndef PEN_SCHEDULER_RUNTIME_RUN_RUN_SPEC_WIRE_H
#define PEN_SCHEDULER_RUNTIME_RUN_RUN_SPEC_WIRE_H

#include "base/record/record.h"
#include "scheduler/runtime/run/run_spec.h"

extern const pen_record pen_run_spec_record;

// What is told to worker `worker`: parts of other workers' devices are left out. In `arena`.
PEN_NODISCARD pen_status pen_run_spec_encode(const pen_run_spec *spec, uint32_t worker,
                                             pen_arena *arena, const void **out_bytes,
                                             uint64_t *out_byte_count);
// Bytes are not trusted. CORRUPT says what; OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_run_spec_decode(const void *bytes, uint64_t byte_count,
                                             pen_arena *arena, const pen_run_spec **out_spec);

#endif // PEN_SCHEDULER_RUNTIME_RUN_RUN_SPEC_WIRE_H
