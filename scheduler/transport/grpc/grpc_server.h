// The contract of the server: calls that come in, and their answers (grpc_health.c: about health).
//
// Callers that have not introduced themselves, and shown a certificate where TLS is used, take at
// most 64 MiB of the process, all together and whatever they send (base/system/callers.h; 47 MiB
// were measured). It is given back when they are gone.
#ifndef PEN_SCHEDULER_TRANSPORT_GRPC_GRPC_SERVER_H
#define PEN_SCHEDULER_TRANSPORT_GRPC_GRPC_SERVER_H

#include "scheduler/transport/grpc/grpc_link.h"

typedef struct pen_grpc_server {
    pen_grpc *transport;
    grpc_server *server;
    grpc_call *call; // the next one
    grpc_call_details details;
    grpc_metadata_array metadata;
    pen_grpc_tag requested, shut_down;
    bool is_shutting_down, is_down;
    uint16_t port;
    double look_at; // at callers
} pen_grpc_server;

// "127.0.0.1:4000" or "[::1]:4000": where a call comes from.
void pen_grpc_server_get_address(grpc_call *call, char *out_text, size_t size);
// Looks at callers when it is time to, and says when the next time is; I/O thread.
void pen_grpc_server_tick(pen_grpc *transport, double now);

// Answers an RPC that is no link: grpc.health.v1.Health/Check, or one that there is not. Takes the
// call.
void pen_grpc_health_answer(pen_caller caller, grpc_call *take_call, grpc_slice method);

#endif // PEN_SCHEDULER_TRANSPORT_GRPC_GRPC_SERVER_H
