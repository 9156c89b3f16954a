// Devices that are alike, and the order in which a chain of segments may use them.
//
// Programs that cut a line (or a chain of down-sets) into segments give each segment a device. What
// they must remember is a state: how many devices of each class are in use or, where devices are
// too unequal for that, how far along a fixed sequence of devices one is.
//
// Lifetime: lives in the arena it was made with.
// Threads:  immutable once returned.
#ifndef PEN_PARTITION_PROBLEM_DEVICE_CLASSES_H
#define PEN_PARTITION_PROBLEM_DEVICE_CLASSES_H

#include "partition/problem/problem.h"

#define PEN_DEVICE_STATE_NONE UINT32_MAX

typedef struct pen_device_class {
    uint32_t kind;
    double slowness;
    double send;        // links counted at their mean
    double receive;     // likewise
    double bytes_limit; // rounding of sums allowed for
    uint32_t microbatches;
    uint32_t device_count;
    uint32_t *devices; // [device_count], ascending
    bool is_parallel;
} pen_device_class;

typedef struct pen_device_classes {
    uint32_t class_count;
    pen_device_class *classes; // [class_count]
    uint32_t *class_of_device; // [device_count]

    uint32_t state_count;
    uint32_t *next;     // [state_count][class_count] state after using one more, or NONE
    bool is_sequence;   // state s has passed the first s devices of `sequence`; s to s + 1 is free
    uint32_t *sequence; // [device_count]
} pen_device_classes;

// `seed` chooses the sequence where there is one: 0 takes fast devices first, others shuffle.
// OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_device_classes_new(const pen_problem *problem, uint64_t seed,
                                                pen_arena *arena, pen_device_classes **out_classes);

#endif // PEN_PARTITION_PROBLEM_DEVICE_CLASSES_H
