// I13: no wait lasts longer than its deadline. Each process's waits are counted in its own ticks,
// so that neither a clock that drifts nor standing still counts; what a wait is, and what ends it,
// is told here once more, apart from the cores.
#ifndef PEN_TESTS_SIMULATOR_WAITS_H
#define PEN_TESTS_SIMULATOR_WAITS_H

#include "tests/simulator/coordinator_process.h"
#include "tests/simulator/worker_process.h"

// At each tick of a process.
void waits_tick_worker(worker_process *worker);
void waits_tick_coordinator(coordinator_process *c);

#endif // PEN_TESTS_SIMULATOR_WAITS_H
