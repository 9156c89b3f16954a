// The load of one growing set of groups, wherever all others are.
//
// With uniform links the load of a device depends on its own groups alone. A segment is such a
// set, grown from a prefix, a set of groups that is placed before it. Links to the prefix stay for
// good; links to what is neither in the prefix nor in the segment may still become its own. The
// former give a bound that only grows with the segment, which is what prunes searches.
//
// Lifetime: lives in the arena it was made with, and borrows the problem.
// Threads:  belongs to one thread at a time.
#ifndef PEN_PARTITION_OBJECTIVE_SEGMENT_LOAD_H
#define PEN_PARTITION_OBJECTIVE_SEGMENT_LOAD_H

#include "partition/problem/device_classes.h"
#include "partition/problem/problem.h"

typedef struct pen_segment_load {
    const pen_problem *problem;
    bool *is_inside;       // [group_count]
    bool *is_before;       // [group_count] in the prefix
    uint32_t *read_inside; // [output_count] readers in the segment
    uint32_t *read_before; // [output_count] readers in the prefix
    double *compute;       // [kind_count] of the groups that can run there
    uint32_t *barred;      // [kind_count] groups that cannot
    uint32_t *pinned;      // [device_count] groups pinned there
    uint32_t pinned_count; // groups with a pin
    double bytes;
    double bytes_in_flight;
    double sent;       // costs of own outputs that others read
    double received;   // costs of foreign outputs that are read
    double sent_fixed; // the parts of them that no growth takes away
    double received_fixed;
    uint32_t count;
} pen_segment_load;

// An empty segment behind an empty prefix. OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_segment_load_new(const pen_problem *problem, pen_arena *arena,
                                              pen_segment_load **out_segment);

// Puts a group into the segment, or takes it out.
void pen_segment_load_add(pen_segment_load *segment, uint32_t group);
void pen_segment_load_remove(pen_segment_load *segment, uint32_t group);

// Puts a group into the prefix, or takes it out. The segment must be empty.
void pen_segment_load_advance(pen_segment_load *segment, uint32_t group);
void pen_segment_load_retreat(pen_segment_load *segment, uint32_t group);

// Whether every group may run on a device of the class. Memory is not looked at. Devices that
// groups are pinned to are alone in their class.
static inline bool pen_segment_load_allows(const pen_segment_load *segment,
                                           const pen_device_class *class) {
    return segment->barred[class->kind] == 0 &&
           (segment->pinned_count == 0 ||
            segment->pinned_count == segment->pinned[class->devices[0]]);
}

// Whether the class's devices have the memory.
static inline bool pen_segment_load_fits(const pen_segment_load *segment,
                                         const pen_device_class *class) {
    return segment->bytes + segment->bytes_in_flight * class->microbatches <= class->bytes_limit;
}

static inline double pen_segment_load_on(const pen_segment_load *segment,
                                         const pen_device_class *class) {
    return segment->compute[class->kind] * class->slowness + segment->sent * class->send +
           segment->received * class->receive;
}

// No larger segment behind the same prefix has a smaller load there.
static inline double pen_segment_load_bound(const pen_segment_load *segment,
                                            const pen_device_class *class) {
    return segment->compute[class->kind] * class->slowness + segment->sent_fixed * class->send +
           segment->received_fixed * class->receive;
}

#endif // PEN_PARTITION_OBJECTIVE_SEGMENT_LOAD_H
