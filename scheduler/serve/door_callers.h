// Who may connect to a door of the server: so many in all, three quarters of them of one address,
// and half of them without having asked anything that is answered (base/system/callers.h). Load
// balancers and generators of load come from one address, with hundreds of connections.
//
// Over gRPC what is read of a caller is bounded, too, whether or not it has a token: 128 KiB and
// `bytes_limit` for each of its calls that are taken.
//
// Lifetime: watch to forget. Threads: any; those two, one.
#ifndef PEN_SCHEDULER_SERVE_DOOR_CALLERS_H
#define PEN_SCHEDULER_SERVE_DOOR_CALLERS_H

#include <stdatomic.h>

#include "base/system/callers.h"
#include "scheduler/serve/batcher.h"
#include "scheduler/transport/grpc/refusals.h"
#include "scheduler/transport/transport.h"

// What both doors are told.
typedef struct pen_front_options {
    const char *address; // "host:port", port 0: any
    pen_batcher *batcher;
    const pen_served_model *model;
    const char *token;     // that callers must have; NULL: none
    pen_transport_tls tls; // gRPC: callers must have a certificate; all NULL: none
    bool is_https;         // HTTP: with TLS and the certificate of `tls`; callers need none
    uint64_t bytes_limit;  // of a request
    uint32_t calls_limit;  // open at once
    uint32_t connections_limit;
    double timeout_seconds; // of a request that names no time of its own
} pen_front_options;

typedef struct pen_door_callers {
    const char *door; // "gRPC"
    uint16_t port;    // 0: nobody is watched
    double tick_at;
    pen_refusals refused;
} pen_door_callers;

typedef enum pen_door_kind { PEN_DOOR_HTTP, PEN_DOOR_GRPC, PEN_DOOR_GRPC_TLS } pen_door_kind;

// How many calls gRPC may open on one connection at a time: a few more than may be open in all, so
// that those are refused, and do not wait.
uint32_t pen_door_streams(const pen_front_options *options);
// Of a door for gRPC what is sent is bounded, too, and without TLS which calls are opened.
void pen_door_callers_watch(pen_door_callers *callers, const char *door,
                            const pen_front_options *options, pen_door_kind kind, uint16_t port);
// Who calls over this socket has asked something that is answered.
void pen_door_callers_know(const pen_door_callers *callers, int descriptor);
// Hangs up on those who are late. To be called often, by one thread.
void pen_door_callers_tick(pen_door_callers *callers);
void pen_door_callers_forget(pen_door_callers *callers);

// Waits for answers that are on their way, when a door is shut: a second at most. `open_count` is
// of calls.
void pen_front_await_answers(const atomic_uint *open_count);

#endif // PEN_SCHEDULER_SERVE_DOOR_CALLERS_H
