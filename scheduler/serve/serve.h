// A trained model behind the Open Inference Protocol: over gRPC, HTTP, or both.
//
//   doors (grpc_front, http_front) ──► batcher ──► inference ──► devices of the job
//
// Rows of requests become batches of one size, `serve.max_batch` of the job, or of two, with its
// `serve.small_batch`. The outputs of a row are those that `predict --batch` of that size writes.
//
// Lifetime: create to destroy; the options' job outlives it.
// Threads:  one.
#ifndef PEN_SCHEDULER_SERVE_SERVE_H
#define PEN_SCHEDULER_SERVE_SERVE_H

#include "scheduler/job/job.h"
#include "scheduler/serve/served_model.h"

typedef struct pen_serve pen_serve;

typedef struct pen_serve_options {
    const pen_job *job;
    const char *parameters; // safetensors file; NULL: the model's own
    const char *grpc;       // addresses; NULL: that door stays shut
    const char *http;
    bool is_https; // HTTP with TLS, and the certificate of the job's `tls`
    bool insecure; // doors to other machines without TLS or token, and workers without TLS
} pen_serve_options;

// Whether these doors may be opened, as far as the options say. INVALID_INPUT: none is named; one
// can be reached from other machines, and the job has neither certificates nor a token for it.
// IO: the port is taken, or the address is another machine's.
PEN_NODISCARD pen_status pen_serve_check_doors(const pen_serve_options *options);
// Plans, starts the devices, opens the doors.
//   UNSUPPORTED    the model has outputs or inputs that cannot be served; names one
//   INVALID_INPUT, IO  as pen_serve_check_doors
//   else           as pen_inference_create, pen_grpc_front_create, pen_http_front_create
PEN_NODISCARD pen_status pen_serve_create(const pen_serve_options *options, pen_serve **out_serve);
// Answers what was taken, and shuts the doors. An error that ended it before: too few devices are
// left. Accepts NULL.
PEN_NODISCARD pen_status pen_serve_destroy(pen_serve *serve);

// Ports that the doors are at; 0: that one is shut.
uint16_t pen_serve_grpc_port(const pen_serve *serve);
uint16_t pen_serve_http_port(const pen_serve *serve);
const char *pen_serve_model_name(const pen_serve *serve);

// Has the parameters read again between two batches, while requests go on.
void pen_serve_reload(pen_serve *serve);
// Ends callers that are late. To be called several times a second.
void pen_serve_tend(pen_serve *serve);
// Whether it has ended by itself.
bool pen_serve_is_over(pen_serve *serve);

#endif // PEN_SCHEDULER_SERVE_SERVE_H
