// The server's door for gRPC: inference.GRPCInferenceService, over gRPC's C core.
//
// A thread takes calls and reads them; the batcher's thread answers. As many calls may be open as
// the options say; more are refused before a byte of them is read (RESOURCE_EXHAUSTED), and those
// that send no message for as long as a request may wait are ended.
//
// Lifetime: create to destroy; the batcher outlives it, and is stopped before it is destroyed.
// Threads:  one.
#ifndef PEN_SCHEDULER_SERVE_GRPC_FRONT_H
#define PEN_SCHEDULER_SERVE_GRPC_FRONT_H

#include <stdatomic.h>

#include "scheduler/serve/batcher.h"
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

// Waits for answers that are on their way, when a door is shut: a second at most. `open_count` is
// of calls.
void pen_front_await_answers(const atomic_uint *open_count);

typedef struct pen_grpc_front pen_grpc_front;

// Listens. *out_port is the port taken. INVALID_INPUT, UNAVAILABLE, OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_grpc_front_create(const pen_front_options *options,
                                               pen_grpc_front **out_front, uint16_t *out_port);
// Ends connections whose callers are late. To be called several times a second, until it is
// destroyed.
void pen_grpc_front_end_late(pen_grpc_front *front);
// Refuses calls from now on, and lets those that are open end. Accepts NULL.
void pen_grpc_front_destroy(pen_grpc_front *front);

#endif // PEN_SCHEDULER_SERVE_GRPC_FRONT_H
