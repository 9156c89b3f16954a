// Which status codes are for another process to say: what starts us again, or does not, goes by
// ours. The list stands once, for coordinators, which judge workers, and for workers, which judge
// each other.
#ifndef PEN_SCHEDULER_RUNTIME_RUN_PEER_CODE_H
#define PEN_SCHEDULER_RUNTIME_RUN_PEER_CODE_H

#include <stdbool.h>
#include <stdint.h>

// Whether any process can come to this code by itself, whatever it does: that somebody asked to
// stop, or that the user's input is wrong, is not among them. `code` is a number from outside.
bool pen_peer_code_is_plain(uint32_t code);

#endif // PEN_SCHEDULER_RUNTIME_RUN_PEER_CODE_H
