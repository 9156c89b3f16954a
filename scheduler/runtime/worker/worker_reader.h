// Reads what devices of a worker are fed from files of its own, on a thread of its own.
//
// Lifetime: what it is made with outlives it.
// Threads:  ask and close by any thread, create and destroy by one.
#ifndef PEN_SCHEDULER_RUNTIME_WORKER_WORKER_READER_H
#define PEN_SCHEDULER_RUNTIME_WORKER_WORKER_READER_H

#include "scheduler/runtime/run/run_data.h"

typedef struct pen_worker_reader pen_worker_reader;

// Examples of a microbatch: those at places `first` up to, without, `first` + `count` of the order
// of `epoch`.
typedef struct pen_reading {
    uint32_t form;
    uint32_t channel;
    uint64_t sequence;
    uint64_t round;
    uint32_t field; // run_data.h
    uint64_t epoch;
    uint64_t first;
    uint64_t count;
    uint64_t bytes; // of all of them
    void *memory;   // where they go
    double started; // by the clock, when it was begun
} pen_reading;

typedef struct pen_worker_reader_options {
    const pen_run_data *data;
    const char *folder;   // that all files must be in; NULL: any
    uint32_t asked_limit; // readings that wait, at most
    void *context;
    // On the reader's thread; must not block.
    void (*done)(void *context, const pen_reading *reading);
    void (*failed)(void *context, pen_status take_status);
    // On the reader's thread: waits until nobody reads `reading->memory` any more. NULL: nobody
    // does.
    pen_status (*await)(void *context, const pen_reading *reading);
} pen_worker_reader_options;

// Opens the files.
//   INVALID_INPUT  they are not those of the coordinator, or not in the folder
//   as pen_dataset_open; OUT_OF_MEMORY, UNAVAILABLE (no thread)
PEN_NODISCARD pen_status pen_worker_reader_create(const pen_worker_reader_options *options,
                                                  pen_worker_reader **out_reader);
// To be read, in the order in which they were asked for. Of a closed one nothing is.
void pen_worker_reader_ask(pen_worker_reader *reader, const pen_reading *reading);
// Nothing more is read, but what is being read. Returns at once. Accepts NULL.
void pen_worker_reader_close(pen_worker_reader *reader);
// Closes, and waits. Accepts NULL.
void pen_worker_reader_destroy(pen_worker_reader *reader);

#endif // PEN_SCHEDULER_RUNTIME_WORKER_WORKER_READER_H
