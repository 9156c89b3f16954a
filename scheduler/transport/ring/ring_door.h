// Who wants a link to a process of this host and user asks it for a token here.
//
// A process that takes links gives its socket (ring_socket.h) a second name, which says where it
// takes them: PORT@HOST@NETWORK, in the same folder, which nobody else may enter. Who wants a link
// knows that name. Both ends ask the system who is at the other one, so a token goes to this user
// only, and comes from a process of this user only. What stands under the name is all that says
// which process takes links there: only this user can make such names.
//
// Nothing here waits.
//
// Threads: any.
#ifndef PEN_SCHEDULER_TRANSPORT_RING_RING_DOOR_H
#define PEN_SCHEDULER_TRANSPORT_RING_RING_DOOR_H

#include "scheduler/transport/ring/ring_socket.h"

#define PEN_RING_TOKEN_BYTES 16u
#define PEN_RING_DOOR_HOST 64
#define PEN_RING_DOOR_LIMIT 108 // bytes of its path, with the 0 behind it

// The path of the door of `host` and `port`. False: it is too long
bool pen_ring_door_path(const char *folder, const char *host, uint16_t port,
                        char out_path[PEN_RING_DOOR_LIMIT]);

// Names the socket that listens under `name`; a door that is there already is another's no more.
// UNAVAILABLE
PEN_NODISCARD pen_status pen_ring_door_open(const pen_ring_meeting *meeting, uint64_t name,
                                            const char *host, uint16_t port);
// Whether there is such a door, this process' or another's.
bool pen_ring_door_is_there(const pen_ring_meeting *meeting, const char *host, uint16_t port);
// Takes the door away, if it still leads to `name`.
void pen_ring_door_close(const pen_ring_meeting *meeting, uint64_t name, const char *host,
                         uint16_t port);

// Asks who takes links at `host` and `port` for a token, in each place where processes of this user
// meet. -1: no process of this user is known to take links there; *out_is_busy: it is, and has no
// time now.
int pen_ring_door_ask(const char *host, uint16_t port, bool *out_is_busy);
typedef enum pen_ring_answer {
    PEN_RING_ANSWER_NONE, // yet
    PEN_RING_ANSWER_TOKEN,
    PEN_RING_ANSWER_REFUSED, // or it is gone, or too many ask
} pen_ring_answer;
pen_ring_answer pen_ring_door_hear(int socket, uint8_t out_token[PEN_RING_TOKEN_BYTES]);

// Hands a token to who asked.
void pen_ring_door_answer(int socket, const uint8_t token[PEN_RING_TOKEN_BYTES]);

#endif // PEN_SCHEDULER_TRANSPORT_RING_RING_DOOR_H
