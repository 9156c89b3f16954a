// A middleman between processes that speak gRPC: it takes their streams at ports of its own, opens
// others to whom they were meant for, and does harm to the envelopes that pass, as the plan of
// middleman.h says. Checksums of what it changes are made anew, so they are always right.
//
// Lifetime: wire_proxy_create to wire_proxy_destroy. Threads: any; it has one of its own.
#ifndef PEN_TESTS_HOSTILE_WIRE_PROXY_H
#define PEN_TESTS_HOSTILE_WIRE_PROXY_H

#include <stdint.h>

#define WIRE_PROXY_PORTS 3u

typedef struct wire_proxy wire_proxy;

// Fails the test on error.
wire_proxy *wire_proxy_create(void);
void wire_proxy_destroy(wire_proxy *proxy); // accepts NULL
uint16_t wire_proxy_port(const wire_proxy *proxy, unsigned index);
// Streams that come to a port from now on are for "host:port".
void wire_proxy_aim(wire_proxy *proxy, unsigned index, const char *address);

#endif // PEN_TESTS_HOSTILE_WIRE_PROXY_H
