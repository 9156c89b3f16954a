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

#include "scheduler/serve/door_callers.h"

typedef struct pen_grpc_front pen_grpc_front;

// Listens. *out_port is the port taken. INVALID_INPUT, IO, UNAVAILABLE, OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_grpc_front_create(const pen_front_options *options,
                                               pen_grpc_front **out_front, uint16_t *out_port);
// Ends connections whose callers are late. To be called several times a second, until it is
// destroyed.
void pen_grpc_front_end_late(pen_grpc_front *front);
// Refuses calls from now on, and lets those that are open end. Accepts NULL.
void pen_grpc_front_destroy(pen_grpc_front *front);

#endif // PEN_SCHEDULER_SERVE_GRPC_FRONT_H
