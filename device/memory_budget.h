// What a device may take of memory, and has taken. It is counted, so that two devices that share
// memory cannot take each other's share.
//
// Threads: as the device's.
#ifndef PEN_DEVICE_MEMORY_BUDGET_H
#define PEN_DEVICE_MEMORY_BUDGET_H

#include <stdint.h>

#include "base/status.h"

typedef struct pen_memory_budget {
    const char *device;   // its name
    uint64_t bytes_limit; // 0: none
    uint64_t bytes_in_use;
} pen_memory_budget;

// Whether a buffer of so many bytes may be taken beside those in use. DOES_NOT_FIT
PEN_NODISCARD pen_status pen_memory_budget_check(const pen_memory_budget *budget, uint64_t bytes);

#endif // PEN_DEVICE_MEMORY_BUDGET_H
