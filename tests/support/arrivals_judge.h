// Some steps of asynchronous lanes, and what is wrong with them: found from which lanes made which
// version alone, by counting again.
#ifndef PEN_TESTS_SUPPORT_ARRIVALS_JUDGE_H
#define PEN_TESTS_SUPPORT_ARRIVALS_JUDGE_H

#include "base/random.h"
#include "graph/arrivals.h"

// How often something happened.
typedef struct arrivals_tally {
    uint64_t short_steps;
    uint64_t free_steps;   // whose lanes came as they came
    uint64_t at_the_limit; // gradients as old as they may be, which is not 0
    uint64_t alone;        // versions of one lane
    uint64_t together;     // of more
} arrivals_tally;

// Draws lanes, staleness and steps from the seed. NULL: nothing is wrong.
const char *arrivals_judge(uint64_t seed, arrivals_tally *tally);

#endif // PEN_TESTS_SUPPORT_ARRIVALS_JUDGE_H
