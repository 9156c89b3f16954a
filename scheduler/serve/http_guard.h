// Who may read pages that are for people: what their browsers send of it.
//
// Threads: pure.
#ifndef PEN_SCHEDULER_SERVE_HTTP_GUARD_H
#define PEN_SCHEDULER_SERVE_HTTP_GUARD_H

#include <stdbool.h>

// Whether a "Host" header names this machine: by an address, as "localhost", or as `own` (NULL:
// there is no other name). Any other name may be one that a web page of a stranger has made to mean
// this machine, to read what the browser of its reader can reach (DNS rebinding). A port may
// follow, and any will do: it may be forwarded. NULL, no header: no.
bool pen_http_host_is_allowed(const char *header, const char *own);

// Whether an "Authorization" header has the token: "Bearer TOKEN", or what a browser makes of a
// password ("Basic", base64 of "name:TOKEN" with any name). Always, where `token` is NULL; NULL, no
// header: no. Takes as long whatever is wrong with the token.
bool pen_http_token_is_allowed(const char *token, const char *header);

#endif // PEN_SCHEDULER_SERVE_HTTP_GUARD_H
