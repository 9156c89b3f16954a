// The contract of this folder: what a strategy is asked, and what it answers.
//
// A strategy gives each group of a problem a device. Equal problems, options and seeds give equal
// placements, unless the result says that the clock cut the search. Work is counted in steps, as
// many as a common machine, not busy with other things, makes in about half of the time limit, or
// in the share of it that the options say.
// Searches by load or latency that are not told to count make the most of their time instead: how
// they cool follows the clock, and they say so.
#ifndef PEN_PARTITION_STRATEGIES_STRATEGY_H
#define PEN_PARTITION_STRATEGIES_STRATEGY_H

#include "partition/problem/problem.h"

typedef struct pen_strategy_options {
    uint64_t seed;
    double time_limit_seconds; // > 0
    double cut_seconds;    // searches in counted steps may go on so long if late; 0: the time limit
    uint32_t thread_count; // at least 1; `auto` alone uses more than one
    bool is_counted; // the clock alone ends a search, it does not hurry it; step time and traffic
                     // are searched so in any case
    bool begins_afresh; // every other run of a throughput problem that need not be contiguous owes
                        // nothing to those before: better answers, for longer work
    double
        work_share; // of the time limit, nominal, that counted steps are planned for; 0: about half
    const uint32_t *device_of_node; // [node_count] for `manual`: devices, or PEN_PROBLEM_ANY; NULL
    const uint32_t *known;          // [node_count] for `auto`: a placement that may be right; NULL
} pen_strategy_options;

typedef struct pen_strategy_result {
    uint32_t *device_of_group; // [group_count]
    double lower_bound;        // proved on the way, or 0
    bool is_cut;               // the clock had a part in it: another run may find another one
} pen_strategy_result;

typedef struct pen_strategy {
    const char *name;    // as on the command line: "greedy"
    const char *summary; // one line of --help
    bool judges_all;     // searches by every objective itself; others see what stands in for step
                         // time and traffic (partition/search/reduced_problem.h)
    bool counts_devices; // keeps the bounds of devices used itself; all that judge do for these two
    bool tries_all_small; // of a small problem it may be given all placements to choose from

    // Assigns every group to a device that may run it, without exceeding any device's memory, and
    // with an acyclic order of devices where the problem asks for one.
    //   DOES_NOT_FIT   no such placement was found; says what stands in the way
    //   UNSUPPORTED    the problem is not one that this strategy can do
    //   INVALID_INPUT  the devices wished for cannot be
    //   OUT_OF_MEMORY
    PEN_NODISCARD pen_status (*place)(const pen_problem *problem,
                                      const pen_strategy_options *options, pen_arena *arena,
                                      pen_strategy_result *out_result);
} pen_strategy;

#endif // PEN_PARTITION_STRATEGIES_STRATEGY_H
