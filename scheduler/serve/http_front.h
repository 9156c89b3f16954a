// The server's door for HTTP: the Open Inference Protocol in JSON, health, and /metrics, over
// libmicrohttpd, which is loaded when it is asked for.
//
//   GET  /v2/health/live, /v2/health/ready, /v2, /v2/models/NAME, /v2/models/NAME/ready, /metrics
//   POST /v2/models/NAME/infer
//
// How it listens is http_door.h's. libmicrohttpd's thread reads requests; the batcher's answers. A
// body is refused as soon as it is longer than the options say, by its header where that says so;
// one that takes longer to come than a request may wait ends its connection. So does the first head
// of a connection; a later one has a minute from the answer before.
//
// Lifetime, threads: as grpc_front.h.
#ifndef PEN_SCHEDULER_SERVE_HTTP_FRONT_H
#define PEN_SCHEDULER_SERVE_HTTP_FRONT_H

#include "scheduler/serve/grpc_front.h"

typedef struct pen_http_front pen_http_front;

// Listens. NOT_FOUND: libmicrohttpd is not installed. INVALID_INPUT, IO, UNAVAILABLE,
// OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_http_front_create(const pen_front_options *options,
                                               pen_http_front **out_front, uint16_t *out_port);
// Ends connections whose head is late. To be called several times a second, until it is destroyed.
void pen_http_front_end_late(pen_http_front *front);
// After the batcher was stopped, so that no request waits. Accepts NULL.
void pen_http_front_destroy(pen_http_front *front);

#endif // PEN_SCHEDULER_SERVE_HTTP_FRONT_H
