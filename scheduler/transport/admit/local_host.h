// Which addresses are this host's own, and whose processes are behind them.
//
// Nothing here looks names up in a network: those that are known are "localhost", this host's, and
// those in /etc/hosts.
//
// Threads: any.
#ifndef PEN_SCHEDULER_TRANSPORT_ADMIT_LOCAL_HOST_H
#define PEN_SCHEDULER_TRANSPORT_ADMIT_LOCAL_HOST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define PEN_LOCAL_HOST_BYTES 64  // of an address or name, with the 0 behind it
#define PEN_LOCAL_HOST_LIMIT 64u // ways to a process

// An address or name in its one form: "::1" for "0:0::1", "127.0.0.1" for "::ffff:127.0.0.1". Names
// stay; what is too long is cut.
void pen_local_host_write(const char *host, char out_text[PEN_LOCAL_HOST_BYTES]);

// Whether it is an address, and no name.
bool pen_local_host_is_address(const char *host);
// Whether `host`, an address or a name, is this host's own.
bool pen_local_host_is(const char *host);
// Whether the name `host` is that of the host that calls itself `own`.
bool pen_local_host_is_name(const char *host, const char *own);

// The address of this host that the system's list of hosts (/etc/hosts) has for a name. False: none
bool pen_local_host_find(const char *name, char out_address[PEN_LOCAL_HOST_BYTES]);
bool pen_local_host_find_in(const char *file, const char *name, // another list of that form
                            char out_address[PEN_LOCAL_HOST_BYTES]);

// A way to a process of this host: where it may take links, and what to call then.
typedef struct pen_local_way {
    char listens[PEN_LOCAL_HOST_BYTES];
    char calls[PEN_LOCAL_HOST_BYTES]; // "": as the user wrote it
} pen_local_way;
// All that a process may have been told to take links at, so that who calls `host` reaches it and
// no other. Their number; out_ways [PEN_LOCAL_HOST_LIMIT]
size_t pen_local_host_ways(const char *host, pen_local_way *out_ways);

// The addresses at which this process listens for connections to `port`. Their number; out_hosts
// [limit]
size_t pen_local_host_bound(uint16_t port, size_t limit, char (*out_hosts)[PEN_LOCAL_HOST_BYTES]);

// The user of the process at the other end of a connection within this host: it comes from
// `address` ("127.0.0.1:40000") to `port` of ours. False: it is not found
bool pen_local_host_user(const char *address, uint16_t port, uid_t *out_user);

#endif // PEN_SCHEDULER_TRANSPORT_ADMIT_LOCAL_HOST_H
