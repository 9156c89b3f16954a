// The contract of http_door.c with those who do without <microhttpd.h>: which libmicrohttpd there
// is.
#ifndef PEN_SCHEDULER_SERVE_HTTP_VERSION_H
#define PEN_SCHEDULER_SERVE_HTTP_VERSION_H

// Its version, "0.9.75", or "not found". Loads it. Threads: any.
const char *pen_microhttpd_version(void);

#endif // PEN_SCHEDULER_SERVE_HTTP_VERSION_H
