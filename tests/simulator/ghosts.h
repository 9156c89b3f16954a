// Ghosts: messages as an earlier generation, or an earlier process, would have said them, come to
// life. By the contracts of the cores they change nothing.
#ifndef PEN_TESTS_SIMULATOR_GHOSTS_H
#define PEN_TESTS_SIMULATOR_GHOSTS_H

#include "scheduler/protocol/message.h"
#include "tests/simulator/world.h"

// `message` was sent to `peer`: now and then its ghost follows.
void ghost_follow(process *from, uint32_t peer, const pen_message *message);

#endif // PEN_TESTS_SIMULATOR_GHOSTS_H
