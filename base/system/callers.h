// The contract of callers_enter.c and callers_read.c: who may call the sockets that listen, and how
// much a caller may send before it is known.
//
// A caller is a stranger until whoever listens says that it is known. Of strangers there are so
// many at a time, in all and of one address, each may send so many bytes, open so many HTTP/2
// streams, and take so long. Who is above a limit is hung up on before what it sent is looked at:
// gRPC (1.51) puts a message of any length together before it compares the length with its limit,
// makes a call of each stream that is opened, and so takes memory as long as somebody sends. Of one
// who is known there are as many bytes at most between two things that were understood.
//
// Where callers are not peers but clients, with calls of their own (`message_bytes`), they need not
// be hung up on at once: what is above a limit stays with the system, unread, until a call has been
// looked at or has ended. Each call that is taken may send a message; beside these there are as
// many bytes as of a stranger.
//
// These files also are recvmsg and close of the whole program, as descriptors.c is its accept4:
// what gRPC reads is counted there. It costs an atomic operation for each call of the system. In a
// program that does not take its recvmsg from here (the library, loaded by another) nobody is known
// or limited.
//
// Threads: any.
#ifndef PEN_BASE_SYSTEM_CALLERS_H
#define PEN_BASE_SYSTEM_CALLERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#define PEN_CALLER_TEXT_LIMIT 64 // "[address]:port"
#define PEN_CALLERS_DESCRIPTORS                                                                    \
    65536u // most; as many as one address can make connections to a port

typedef struct pen_callers_limits {
    uint32_t callers, callers_of_one;     // at a time: in all, and of one address
    uint32_t strangers, strangers_of_one; // of these
    uint32_t stranger_bytes, known_bytes;
    uint32_t streams;        // that a stranger opens, and others between two things understood
    double stranger_seconds; // then it is hung up on, within a second
    bool is_encrypted;       // streams are not seen, and only bytes are limited
    // Of clients: not 0
    uint64_t message_bytes; // of a call that was taken
    uint32_t known_streams; // open at a time, of one who is known
    uint64_t lent_bytes;    // to all whose messages are longer, so that these can be refused
    double idle_seconds;    // who is known and silent for longer makes room where there is none
    // Somebody was turned away or hung up on. Under a lock: may count and log. `address` is as
    // pen_caller_write writes it.
    void (*refused)(void *context, const char *address, const char *reason);
    void *context;
} pen_callers_limits;

// Limits those who call `port` from now on. Of a few ports at a time; false: there is no room.
bool pen_callers_watch(uint16_t port, const pen_callers_limits *limits);
// Nothing is called back any more.
void pen_callers_forget(uint16_t port);
// Hangs up on strangers who take too long, and gives back what those who are gone took. Once a
// second, from one thread.
void pen_callers_tick(uint16_t port);

// A caller that is there, or was. All 0: it is not among those that are counted.
typedef struct pen_caller {
    uint32_t place, serial, known_bytes;
} pen_caller;

// The one with this address, as pen_caller_write writes it, or with a scope
// ("[fe80::1%eth0]:4000").
pen_caller pen_callers_find(uint16_t port, const char *address);
void pen_caller_is_known(pen_caller caller);
// Something that it sent was understood.
void pen_caller_was_heard(pen_caller caller);
// A stream that it opened was served, or refused, and takes nothing any more.
void pen_caller_has_ended(pen_caller caller);
// Of a client: a stream that it opened is a call. One that has not ended is counted as such; others
// are forgotten by and by, since gRPC does not tell of all that it refuses.
void pen_caller_has_called(pen_caller caller);
// Of a client: its call is taken, and its message may come. Then, that it has come, with so many
// bytes, or will not.
void pen_caller_may_send(pen_caller caller);
void pen_caller_has_sent(pen_caller caller, uint64_t bytes);
// Whether it has sent more than its calls may, and nothing is lent any more: one of its messages is
// too long.
bool pen_caller_is_stuck(pen_caller caller);

// For accept4: whether to take a caller. False: it is to be closed.
bool pen_callers_may_enter(int listener, int descriptor);

// There is no descriptor for one more: the stranger that has been there for longest is hung up on,
// unless it has only just come.
void pen_callers_make_room(void);

// "127.0.0.1:4000", "[::1]:4000"; addresses of IPv4 alike, however they came. False: not over IP.
bool pen_caller_write(const struct sockaddr_storage *address, char *out_text, size_t size,
                      uint16_t *out_port);

#endif // PEN_BASE_SYSTEM_CALLERS_H
