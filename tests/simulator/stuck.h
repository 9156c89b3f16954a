// Processes that are alive and do nothing: they answer, keep links and give signs of life, but
// what they work at stands still, and what they would say waits. As a disk that does not answer
// makes them, or a device that hangs.
#ifndef PEN_TESTS_SIMULATOR_STUCK_H
#define PEN_TESTS_SIMULATOR_STUCK_H

#include "tests/simulator/world.h"

// For so long. What waited then happens, in its order.
void process_stick(process *p, uint64_t nanoseconds);
// As world_call_in, of work: while the process is stuck it is not done.
void world_work_in(world *w, uint64_t delay, process *p, world_call call, void *context,
                   uint64_t value);
// Whether a message waits, because who sends it is stuck.
bool process_holds_message(process *p, uint32_t peer, const void *bytes, uint32_t count);

#endif // PEN_TESTS_SIMULATOR_STUCK_H
