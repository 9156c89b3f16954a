// Segments along one line, by filling: device after device takes the stretch of the line that it
// can bear below a limit, and the least limit is sought at which all groups find a place.
//
// A pass costs a few visits of each group, however many devices there are, so this is the way to
// place what is too large for a program over all cuts and devices. What it gives up: each choice is
// final, made by how well the device is used and how little crosses the cut.
#ifndef PEN_PARTITION_SEARCH_LINE_FILL_H
#define PEN_PARTITION_SEARCH_LINE_FILL_H

#include "partition/problem/device_classes.h"
#include "partition/problem/problem.h"

typedef struct pen_line_fill_options {
    const pen_device_classes *classes;
    uint64_t seed;      // 0: each choice is the best one; else luck enters
    double bound;       // no placement is better; 0: a simple one is worked out
    double value_limit; // only better placements are looked for; INFINITY: any
    double precision;   // the search for the limit ends at such a share of the bound
    double deadline;    // by pen_clock_seconds, or INFINITY; one pass is always made
} pen_line_fill_options;

typedef struct pen_line_fill_result {
    bool is_found;
    double value; // the largest load; links between devices count at their mean
} pen_line_fill_result;

// Places the groups of a contiguous problem along `line`, a topological order of them. Fills
// device_of_group [group_count] when something was found. Throughput alone. OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_line_fill(const pen_problem *problem, const uint32_t *line,
                                       const pen_line_fill_options *options, pen_arena *arena,
                                       uint32_t *device_of_group, pen_line_fill_result *out_result);

#endif // PEN_PARTITION_SEARCH_LINE_FILL_H
