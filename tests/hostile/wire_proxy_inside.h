// Within wire_proxy.c and wire_envelope.c: the streams of a proxy, and what is done to envelopes.
#ifndef PEN_TESTS_HOSTILE_WIRE_PROXY_INSIDE_H
#define PEN_TESTS_HOSTILE_WIRE_PROXY_INSIDE_H

#include <grpc/grpc.h>
#include <grpc/grpc_security.h>

#include "base/thread.h"
#include "tests/hostile/middleman_inside.h"
#include "tests/hostile/wire_proxy.h"

#define WIRE_TARGET_BYTES 64
#define WIRE_KEPT 16u

struct wire_call;

typedef struct wire_tag {
    void (*done)(struct wire_call *call, unsigned way, bool success);
    struct wire_call *call;
    unsigned way;
} wire_tag;

typedef struct wire_item {
    struct wire_item *next;
    double due;
    bool lets_pass; // what comes next goes before it
    grpc_slice bytes;
} wire_item;

// One direction of a stream: 0 from who called, 1 to them.
typedef struct wire_way {
    grpc_call *from, *to;
    grpc_byte_buffer *incoming, *sending;
    wire_item *queue;
    uint32_t queued;
    bool is_reading, has_ended;
} wire_way;

typedef struct wire_call {
    struct wire_call *next;
    wire_proxy *proxy;
    grpc_channel *channel;
    wire_way ways[2];
    uint32_t pending; // batches
    bool has_status, is_closed, has_finished;
    int was_cancelled;
    grpc_metadata token; // that the caller shows, with its own value
    size_t token_count;  // 0 or 1
    grpc_metadata_array head, trailer;
    grpc_status_code status;
    grpc_slice details;
    wire_tag opened[2], read[2], written[2], half_closed, status_came, caller_left, finished;
} wire_call;

typedef struct wire_port {
    grpc_server *server;
    uint16_t port;
    char target[WIRE_TARGET_BYTES]; // guarded by the proxy's lock
    grpc_call *call;                // the next one
    grpc_call_details details;
    grpc_metadata_array metadata;
} wire_port;

struct wire_proxy {
    grpc_completion_queue *queue;
    wire_port ports[WIRE_PROXY_PORTS];
    wire_call *calls;
    pen_thread *thread;
    chance chance;
    grpc_slice kept[WIRE_KEPT];
    pen_mutex lock;
    bool is_stopping; // guarded by lock
};

// ---- wire_envelope.c

// Does to an envelope what the plan says; the slice is taken.
void wire_pass(wire_call *call, unsigned way, grpc_slice bytes);

#endif // PEN_TESTS_HOSTILE_WIRE_PROXY_INSIDE_H
