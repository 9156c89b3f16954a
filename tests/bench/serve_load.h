// The contract of serve_load*.c: calls of one model by one thread, over HTTP or gRPC.
#ifndef PEN_TESTS_BENCH_SERVE_LOAD_H
#define PEN_TESTS_BENCH_SERVE_LOAD_H

#include <stdbool.h>
#include <stdint.h>

#define LOAD_CALLS_LIMIT 1024
#define LOAD_REQUEST_LIMIT ((uint64_t)64 << 20) // bytes

typedef enum load_outcome {
    LOAD_OK,
    LOAD_SHED,    // 429, RESOURCE_EXHAUSTED
    LOAD_LATE,    // 504, DEADLINE_EXCEEDED
    LOAD_REFUSED, // no connection, or it was closed without an answer
    LOAD_OTHER,
    LOAD_OUTCOMES,
} load_outcome;

typedef struct load_request {
    int port; // of this machine
    const char *model;
    const void *bytes; // HTTP: the body; gRPC: the message
    uint64_t length;
    uint64_t json_length; // HTTP: how much of the body is JSON
    uint32_t calls;       // at once, at most
} load_request;

typedef struct load_end {
    uint32_t call;
    load_outcome outcome;
} load_end;

// A door of the server. Calls have numbers below `calls`; each is sent again only when it has
// ended.
typedef struct load_door {
    const char *name;
    void (*open)(const load_request *request); // borrowed until the process ends
    void (*send)(uint32_t call);
    // Calls that have ended: waits for the first, up to `seconds`. Returns how many, up to `limit`.
    uint32_t (*await)(double seconds, load_end *ends, uint32_t limit);
} load_door;

extern const load_door load_http;
extern const load_door load_grpc;

_Noreturn void load_fail(const char *what);

#endif // PEN_TESTS_BENCH_SERVE_LOAD_H
