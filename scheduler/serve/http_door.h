// A door for HTTP: how it listens, who may connect, and when a connection ends, over libmicrohttpd,
// which is loaded when it is asked for. What is answered, its two users say: http_front and
// http_pages.
//
// A connection whose first head does not come in `timeout_seconds` is ended, as is one that does
// not take its answer in that time; a later head has a minute from the answer before.
//
// Lifetime: open to close, in one place; a user is a struct that has its door first, or is reached
//           by the `context` of its handlers.
// Threads:  libmicrohttpd's calls the handlers; the owner's opens, closes, and ends who is late.
#ifndef PEN_SCHEDULER_SERVE_HTTP_DOOR_H
#define PEN_SCHEDULER_SERVE_HTTP_DOOR_H

#include <microhttpd.h>
#include <stdatomic.h>

#include "base/text.h"
#include "base/thread.h"
#include "scheduler/serve/door_callers.h"

// ---- libmicrohttpd's functions, by their names without "MHD_"
#define PEN_HTTP_FUNCTIONS(X)                                                                      \
    X(add_response_header)                                                                         \
    X(create_response_from_buffer)                                                                 \
    X(destroy_response)                                                                            \
    X(get_connection_info)                                                                         \
    X(get_daemon_info)                                                                             \
    X(get_version)                                                                                 \
    X(is_feature_supported)                                                                        \
    X(lookup_connection_value)                                                                     \
    X(queue_response)                                                                              \
    X(resume_connection)                                                                           \
    X(start_daemon)                                                                                \
    X(stop_daemon)                                                                                 \
    X(suspend_connection)

#define PEN_HTTP_MEMBER(name) __typeof__(&MHD_##name) name;
typedef struct pen_http_functions {
    PEN_HTTP_FUNCTIONS(PEN_HTTP_MEMBER)
} pen_http_functions;

typedef struct pen_http_peer pen_http_peer;

typedef struct pen_http_door {
    pen_front_options options;
    const pen_http_functions *mhd;
    atomic_uint open_count; // calls: the handlers count them
    struct MHD_Daemon *daemon;
    pen_mutex lock;
    pen_http_peer *peers; // guarded by lock, as what they hold
    pen_door_callers callers;
} pen_http_door;

// A header that an answer has besides its type.
typedef struct pen_http_header {
    const char *name, *value;
} pen_http_header;

typedef struct pen_http_answer {
    unsigned status;
    const char *type;
    const char *bytes; // [length]
    size_t length;
    bool stays;                     // the bytes do, as long as the door; else they are copied
    const pen_http_header *headers; // [header_count]
    uint32_t header_count;
} pen_http_answer;

// Listens, as the options say; `handle` and `release` are what libmicrohttpd calls, with `context`:
// for the pieces of a request, and when it is done. NOT_FOUND: libmicrohttpd is not installed.
// INVALID_INPUT, IO, UNAVAILABLE, OUT_OF_MEMORY: close it all the same
PEN_NODISCARD pen_status pen_http_door_open(pen_http_door *door, const pen_front_options *options,
                                            MHD_AccessHandlerCallback handle,
                                            MHD_RequestCompletedCallback release, void *context,
                                            uint16_t *out_port);
// Lets answers that are on their way end. Accepts one of zeros.
void pen_http_door_close(pen_http_door *door);
// Ends connections whose head is late. To be called several times a second, until it is closed.
void pen_http_door_end_late(pen_http_door *door);

// The head of a request is here: it waits for nothing more until it is answered.
void pen_http_door_begin(pen_http_door *door, struct MHD_Connection *connection);
// Whoever asks what is answered is no stranger.
void pen_http_door_know(const pen_http_door *door, struct MHD_Connection *connection);
// The request is done: the next has a minute.
void pen_http_door_end(pen_http_door *door, struct MHD_Connection *connection);
enum MHD_Result pen_http_door_answer(pen_http_door *door, struct MHD_Connection *connection,
                                     const pen_http_answer *answer);
// NULL: the request has no such header.
const char *pen_http_door_header(const pen_http_door *door, struct MHD_Connection *connection,
                                 const char *name);

#endif // PEN_SCHEDULER_SERVE_HTTP_DOOR_H
