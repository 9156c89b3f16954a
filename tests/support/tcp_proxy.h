// A way between two ends of TCP connections that a test makes worse: it cuts connections, holds
// what is on them, and leads elsewhere.
//
// Threads: its own forwards; the functions may be called from any.
#ifndef PEN_TESTS_SUPPORT_TCP_PROXY_H
#define PEN_TESTS_SUPPORT_TCP_PROXY_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/thread.h"

#define TCP_PROXY_LIMIT 64 // connections at once

typedef struct tcp_proxy_connection {
    int ends[2];         // who came, and whom we called; -1: none
    uint64_t left;       // bytes until it is cut
    uint64_t byte_count; // forwarded
} tcp_proxy_connection;

typedef struct tcp_proxy {
    uint16_t port;
    int listener;
    pen_thread *thread;
    tcp_proxy_connection connections[TCP_PROXY_LIMIT];
    uint64_t drawn;
    _Atomic uint32_t target; // port of 127.0.0.1; tcp_proxy_lead changes it
    _Atomic bool is_held;    // nothing gets through, also no new connection
    _Atomic bool is_cut;     // asked for: all connections are reset
    _Atomic bool is_closing;
    // Each connection is reset after that many bytes, drawn in this range. 0: never.
    _Atomic uint64_t cut_least, cut_most;
    _Atomic uint64_t cut_count;        // of the connections that were reset so
    _Atomic uint64_t connection_count; // that came
    uint64_t seed;
} tcp_proxy;

void tcp_proxy_open(tcp_proxy *proxy, uint16_t target, uint64_t seed);
void tcp_proxy_lead(tcp_proxy *proxy, uint16_t target); // elsewhere, from now on
void tcp_proxy_cut(tcp_proxy *proxy);                   // all, now; returns when it is done
void tcp_proxy_close(tcp_proxy *proxy);

#endif // PEN_TESTS_SUPPORT_TCP_PROXY_H
