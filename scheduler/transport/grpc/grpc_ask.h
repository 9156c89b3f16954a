// Asks a process whether it serves: grpc.health.v1.Health/Check, over a connection as links have.
#ifndef PEN_SCHEDULER_TRANSPORT_GRPC_GRPC_ASK_H
#define PEN_SCHEDULER_TRANSPORT_GRPC_GRPC_ASK_H

#include "scheduler/transport/transport.h"

// `address`: "host:port". `tls` as of a transport; its certificate is shown, and the other end's
// must be of the same authority, and for the host of `address` or for a name that ours is for; and
// no list of `tls` may have it.
// Waits for at most `seconds`. One thread.
//   UNAVAILABLE    nobody answers in that time, or says that it does not serve; why is in the text
//   INVALID_INPUT  no address; what the files of `tls` hold is wrong
PEN_NODISCARD pen_status pen_grpc_ask(const char *address, const pen_transport_tls *tls,
                                      double seconds);

// The version of gRPC's core, which has a number of its own: "29.0.0" is in gRPC 1.51. Threads:
// any.
const char *pen_grpc_version(void);

#endif // PEN_SCHEDULER_TRANSPORT_GRPC_GRPC_ASK_H
