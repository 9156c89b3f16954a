// Calls of libraries that divide their work, and so their sums, by the number of threads: between
// these two they have one, in a team and out of it.
#ifndef PEN_DEVICE_CPU_ONE_THREAD_H
#define PEN_DEVICE_CPU_ONE_THREAD_H

#include <omp.h>

// Returns what pen_one_thread_end takes.
static inline int pen_one_thread_begin(void) {
    const int team = omp_in_parallel() ? 1 : omp_get_max_threads();
    if (team > 1) omp_set_num_threads(1);
    return team;
}

static inline void pen_one_thread_end(int team) {
    if (team > 1) omp_set_num_threads(team);
}

#endif // PEN_DEVICE_CPU_ONE_THREAD_H
