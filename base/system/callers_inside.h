// The contract of callers_enter.c (who may enter), callers_read.c (what they send) and called.c
// (who is called) among themselves.
#ifndef PEN_BASE_SYSTEM_CALLERS_INSIDE_H
#define PEN_BASE_SYSTEM_CALLERS_INSIDE_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/system/callers.h"
#include "base/system/stream_count.h"

#define CALLERS_PORTS 64u
#define CALLERS_CALLED CALLERS_PORTS // stands for no port: those who are called
#define CALLERS_PLACES 9216u
#define CALLERS_TRIM_COUNT 64u // strangers that are gone
#define CALLERS_LEFT_BITS 40
#define CALLERS_LEFT_MASK ((UINT64_C(1) << CALLERS_LEFT_BITS) - 1)
#define CALLERS_SERIAL_ONE (UINT64_C(1) << CALLERS_LEFT_BITS)

typedef struct callers_port {
    uint16_t port; // 0: free
    pen_callers_limits limits;
    uint32_t count, stranger_count;
    uint32_t oldest, newest; // places of its callers, as they came
    uint32_t gone_count;     // strangers, since memory was given back
    double trimmed_at;
    uint64_t lent_bytes; // to clients
} callers_port;

// A connection. Places are used again, never freed: who reads from a descriptor looks without lock.
typedef struct caller_place {
    _Atomic uint64_t state; // serial << CALLERS_LEFT_BITS | bytes that may come yet
    _Atomic uint32_t stream_count;
    _Atomic uint32_t streams_most; // of a client
    _Atomic bool is_over;          // it was hung up on
    _Atomic double waits_from;     // a client, whose next bytes are not read; 0: it does not
    _Atomic uint32_t port_index;
    // who reads from the descriptor
    pen_stream_count streams;
    // guarded by the lock; written before the place is found by its descriptor
    int descriptor;
    bool is_stranger;
    uint32_t call_count;     // of a client, that have not ended
    uint32_t open_count;     // of these, that may send
    uint64_t lent_bytes;     // to these
    uint32_t previous, next; // of the same port, or free; 0: none
    uint64_t cookie;         // of the socket: whether the descriptor still is that one
    double came_at, heard_at;
    uint8_t address[16];
    char text[PEN_CALLER_TEXT_LIMIT];
} caller_place;

extern struct pen_callers_all {
    pthread_mutex_t lock;
    callers_port ports[CALLERS_PORTS + 1]; // guarded by lock, as the rest
    uint32_t port_count;                   // those ever used
    uint32_t used, free;                   // places
    caller_place places[CALLERS_PLACES + 1];
    _Atomic uint32_t place_of[PEN_CALLERS_DESCRIPTORS]; // of descriptors; 0: not counted
} pen_callers_all;

uint32_t pen_caller_index(const caller_place *place);
uint32_t pen_caller_serial(const caller_place *place);
uint64_t pen_caller_cookie(int descriptor);
// An address as pen_caller_write writes it, without a scope.
void pen_caller_trim_scope(const char *address, char out_text[PEN_CALLER_TEXT_LIMIT]);
// With the lock held, as all that follow. False: there are too many.
bool pen_callers_enter(callers_port *port, int descriptor, const struct sockaddr_storage *address);
void pen_caller_leave(caller_place *place);
// Takes back what was lent.
void pen_caller_give_back(caller_place *place);
// Has all read that comes.
void pen_caller_let_all(caller_place *place);
// What a client regains in a second.
void pen_caller_refresh(caller_place *place);
void pen_caller_hang_up(caller_place *place);

#endif // PEN_BASE_SYSTEM_CALLERS_INSIDE_H
