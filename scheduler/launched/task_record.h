// What tasks tell each other in files: each about itself, who coordinates, and that it is over.
//
// Protobuf fields, whole or not there: they are renamed into place.
//
// Threads: plain data.
#ifndef PEN_SCHEDULER_LAUNCHED_TASK_RECORD_H
#define PEN_SCHEDULER_LAUNCHED_TASK_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

#define PEN_TASK_ADDRESS_BYTES 80
#define PEN_TASK_NODE_BYTES 64
#define PEN_TASK_REASON_BYTES 1024
#define PEN_TASK_RECORD_BYTES_LIMIT 4096 // of an encoded one

typedef struct pen_task_record {
    uint64_t rank;
    uint64_t size;
    uint64_t incarnation; // of the process
    char address[PEN_TASK_ADDRESS_BYTES];
    char
        node[PEN_TASK_NODE_BYTES]; // for messages; tasks of equal nodes share what they are granted
    char system[PEN_TASK_NODE_BYTES]; // on which `process` is a number, started at `began`
    uint64_t process;
    uint64_t began;
    uint64_t cores;
    uint64_t memory_bytes;
    bool shares_cores;
    bool shares_memory;
    bool is_worker;  // it never coordinates
    bool is_leaving; // it was told to end
    uint64_t beat;   // of who coordinates: grows while it lives

    // of the end
    uint64_t code; // exit code of all
    char reason[PEN_TASK_REASON_BYTES];
} pen_task_record;

// Returns the length, at most PEN_TASK_RECORD_BYTES_LIMIT.
size_t pen_task_record_encode(const pen_task_record *record,
                              uint8_t out_bytes[PEN_TASK_RECORD_BYTES_LIMIT]);
// CORRUPT: at which byte, what was found and what is possible
PEN_NODISCARD pen_status pen_task_record_decode(const void *bytes, size_t count,
                                                pen_task_record *out_record);

#endif // PEN_SCHEDULER_LAUNCHED_TASK_RECORD_H
