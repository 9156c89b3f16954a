// Pages for people over HTTP, to be read and nothing else: the second user of http_door.h.
//
// A request must be a GET without a body, name this machine as its host and have the token, if
// there is one (http_guard.h). What is answered may not be kept, framed, or read by pages of
// others.
//
// Lifetime: create to destroy.
// Threads:  one of its own ends who is late, libmicrohttpd's asks for pages.
#ifndef PEN_SCHEDULER_SERVE_HTTP_PAGES_H
#define PEN_SCHEDULER_SERVE_HTTP_PAGES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/status.h"

typedef struct pen_http_pages pen_http_pages;

typedef struct pen_http_page {
    const char *type;  // "text/html; charset=utf-8"
    const char *bytes; // [length], in the arena, or as long as the pages
    size_t length;
    bool stays; // the latter
} pen_http_page;

typedef struct pen_http_pages_options {
    const char *address; // "host:port", port 0: any
    const char *token;   // that callers must have; NULL: none
    // HTTPS, with its certificate, while it is created; callers need none. NULL: HTTP
    const struct pen_transport_tls *tls;
    void *context;
    // The page at `path`, by libmicrohttpd's thread. NOT_FOUND: there is none. OUT_OF_MEMORY
    pen_status (*find)(void *context, const char *path, pen_arena *arena, pen_http_page *out_page);
} pen_http_pages_options;

// Listens. *out_port is the port taken.
//   INVALID_INPUT  the address can be reached from other machines, and there is no token
//   NOT_FOUND      libmicrohttpd is not installed, or a certificate is not there
//   UNSUPPORTED    libmicrohttpd has no TLS
//   IO, UNAVAILABLE, OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_http_pages_create(const pen_http_pages_options *options,
                                               pen_http_pages **out_pages, uint16_t *out_port);
// Nothing is asked for after that. Accepts NULL.
void pen_http_pages_destroy(pen_http_pages *pages);

#endif // PEN_SCHEDULER_SERVE_HTTP_PAGES_H
