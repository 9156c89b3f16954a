// The machine that this process runs on, and what of it this process may use.
#ifndef PEN_BASE_SYSTEM_MACHINE_H
#define PEN_BASE_SYSTEM_MACHINE_H

#include <stdint.h>

#include "base/arena.h"
#include "base/status.h"

typedef struct pen_machine {
    const char *system;           // "Linux 6.1.0 x86_64"
    const char *processor;        // as the processor calls itself; "" when not known
    const char *instruction_sets; // those that matter to kernels: "avx2 fma avx512f"; "" for none
    uint32_t core_count;          // logical processors that are online
    uint32_t core_count_allowed; // that this process may run on: affinity and cgroup quota, rounded
                                 // up; at least 1
    uint64_t memory_bytes;       // of the machine
    uint64_t memory_bytes_allowed; // of the machine, or the limit of cgroup or process when less
    uint64_t memory_bytes_free;    // that could be had now without swapping, by the system's guess
} pen_machine;

// Asks the system. What it does not say stays 0 or "". OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_machine_detect(pen_arena *arena, pen_machine *out_machine);

// Warns the user of a device with many more threads than its process, called `process`, may use
// `cores`: "this process", "worker 2 (10.0.0.2:7070)". 0 cores are not known, and not judged.
void pen_machine_warn_threads(const char *device, uint64_t threads, const char *process,
                              uint32_t cores);

// Cores' worth of processor time that this process gets while `threads` of it compute: `threads` on
// a machine that is free, 0.45 where a container may use 0.45 of a core. Computes for 0.2 s, and
// where it got less for 0.6 s, of which the best counts. UNAVAILABLE: no thread
PEN_NODISCARD pen_status pen_machine_measure_cores(uint32_t threads, double *out_cores);

// Processor time of this process so far, in seconds, of all its threads.
double pen_machine_processor_seconds(void);

// Most bytes that this process has had resident so far; 0 when the system does not say.
uint64_t pen_machine_resident_peak(void);

// Which start of this machine's system it is: the same text for all processes since then, and in
// containers; "" where the system does not say.
#define PEN_MACHINE_BOOT_BYTES 40
void pen_machine_boot(char out_text[PEN_MACHINE_BOOT_BYTES]);

// Bytes that this process has resident now; 0 when the system does not say.
uint64_t pen_machine_resident(void);

#endif // PEN_BASE_SYSTEM_MACHINE_H
