// How the memory of a ring gets from its writer to its reader: over a socket in a folder that only
// this user may enter.
//
// Each process that takes rings listens there under a number. A writer calls it and hands over the
// memory with a token, which the reader has told it another way, for one link; the reader answers.
// From then on the socket carries bells (a packet of one byte each), and its end tells that the
// other process is gone. Both ends ask the system who is at the other one: another user is refused.
// The same socket hands out tokens for links to the process that listens (ring_door.h).
//
// Nothing here waits: what is not possible at once is said to be so.
//
// Threads: any.
#ifndef PEN_SCHEDULER_TRANSPORT_RING_RING_SOCKET_H
#define PEN_SCHEDULER_TRANSPORT_RING_RING_SOCKET_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"

#define PEN_RING_FOLDER_LIMIT 64

// Where processes of this host and user meet.
typedef struct pen_ring_meeting {
    char folder[PEN_RING_FOLDER_LIMIT];
    // The same for all processes that can hand each other memory there: of this start of this
    // machine, in this network, who see this folder.
    uint64_t host;
} pen_ring_meeting;

// Makes the folder, if it is not there. UNAVAILABLE: it is another user's, or open to others
PEN_NODISCARD pen_status pen_ring_meeting_make(const char *folder, pen_ring_meeting *out_meeting);
// The same with this user's, the first of its places.
PEN_NODISCARD pen_status pen_ring_meeting_find(pen_ring_meeting *out_meeting);
// The places by their order: $XDG_RUNTIME_DIR/penstock, /run/user/UID/penstock, /tmp/penstock-UID.
// False: there is none of this number here. The last one is always there.
#define PEN_RING_MEETING_PLACES 3u
bool pen_ring_meeting_folder(uint32_t place, char out_folder[PEN_RING_FOLDER_LIMIT]);
bool pen_ring_meeting_is_private(const char *folder); // this user's alone

// Listens under `name`. Removes what ended processes have left there. UNAVAILABLE
PEN_NODISCARD pen_status pen_ring_listen(const pen_ring_meeting *meeting, uint64_t name,
                                         int *out_listener);
// Whether the socket still has its name: folders of users go when they log out.
bool pen_ring_is_there(const pen_ring_meeting *meeting, uint64_t name);
void pen_ring_unlisten(const pen_ring_meeting *meeting, uint64_t name, int listener);
// The next one that calls; -1: nobody. Other users are refused.
int pen_ring_accept(int listener);

// Calls who listens under `name`. *out_socket is -1 when that is not possible yet. UNAVAILABLE:
// nobody listens there, or another user does
PEN_NODISCARD pen_status pen_ring_call(const pen_ring_meeting *meeting, uint64_t name,
                                       int *out_socket);
PEN_NODISCARD pen_status pen_ring_call_at(const char *path, int *out_socket); // by its whole name
// The first packet of a caller who wants a token. False: it is gone
bool pen_ring_ask(int socket);
// The first packet of a caller who hands memory over. IO
PEN_NODISCARD pen_status pen_ring_hand_over(int socket, uint64_t token, int memory);
// Reads it. *out_memory is to be closed; -1: it has not come yet, or *out_asks. CORRUPT,
// UNAVAILABLE
PEN_NODISCARD pen_status pen_ring_receive(int socket, uint64_t *out_token, int *out_memory,
                                          bool *out_asks);

// A bell, or the answer. A socket whose buffer is full holds enough of them.
void pen_ring_sound(int socket);
typedef enum pen_ring_heard {
    PEN_RING_SILENCE,
    PEN_RING_BELL,
    PEN_RING_GONE, // the other process has closed its end, or has ended
} pen_ring_heard;
// Takes a bell, or sees that the other end is gone.
pen_ring_heard pen_ring_hear(int socket);

#endif // PEN_SCHEDULER_TRANSPORT_RING_RING_SOCKET_H
