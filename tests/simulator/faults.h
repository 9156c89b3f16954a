// What a seed makes of a world: the job, its network and disk, and what goes wrong, and when.
#ifndef PEN_TESTS_SIMULATOR_FAULTS_H
#define PEN_TESTS_SIMULATOR_FAULTS_H

#include "tests/simulator/world.h"

// Draws all, and starts the processes.
void world_draw(world *w);

// A process of this host has ended: there will be another one, as a supervisor has it.
void world_supervise(world *w, uint32_t host);

// Puts what links and disk counted into the result.
void world_count(world *w);

#endif // PEN_TESTS_SIMULATOR_FAULTS_H
