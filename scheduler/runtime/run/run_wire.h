// Figures as bytes, and back: what messages carry that is not a field of theirs.
// Numbers are little endian; doubles travel as their bits.
//
// Lifetime: what is decoded is in the arena.
// Threads:  any.
#ifndef PEN_SCHEDULER_RUNTIME_RUN_RUN_WIRE_H
#define PEN_SCHEDULER_RUNTIME_RUN_RUN_WIRE_H

#include <stddef.h>

#include "base/arena.h"
#include "base/status.h"
#include "scheduler/runtime/run/run_inquiry.h"

// ---- ROUND_DONE: the figures of a worker's devices
#define PEN_ROUND_FIGURES_BYTES 36 // of each

// `out_bytes` has PEN_ROUND_FIGURES_BYTES x count.
void pen_round_figures_encode(const pen_round_figures *figures, uint32_t count,
                              unsigned char *out_bytes);
// How many there are in `length` bytes, and one of them. CORRUPT: not a whole number
PEN_NODISCARD pen_status pen_round_figures_count(size_t length, uint32_t *out_count);
pen_round_figures pen_round_figures_decode(const unsigned char *bytes, uint32_t index);

// ---- PART of an inquiry about figures
PEN_NODISCARD pen_status pen_run_figures_encode(const pen_run_inquiry_figures *figures,
                                                const pen_run_device_figures *devices,
                                                uint32_t count, pen_arena *arena,
                                                const void **out_bytes, uint64_t *out_byte_count);
// CORRUPT
PEN_NODISCARD pen_status pen_run_figures_decode(const void *bytes, uint64_t byte_count,
                                                pen_arena *arena,
                                                pen_run_inquiry_figures *out_figures,
                                                const pen_run_device_figures **out_devices,
                                                uint32_t *out_count);

// ---- PART of an inquiry about what was sent
#define PEN_RUN_SENT_BYTES 24 // of each
PEN_NODISCARD pen_status pen_run_sent_encode(const pen_run_sent *sent, uint32_t count,
                                             pen_arena *arena, const void **out_bytes,
                                             uint64_t *out_byte_count);
// CORRUPT
PEN_NODISCARD pen_status pen_run_sent_decode(const void *bytes, uint64_t byte_count,
                                             pen_arena *arena, const pen_run_sent **out_sent,
                                             uint32_t *out_count);

#endif // PEN_SCHEDULER_RUNTIME_RUN_RUN_WIRE_H
