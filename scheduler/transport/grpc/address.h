// Addresses that processes listen and connect at: "host:port", "127.0.0.1:4000", "[::1]:4000".
#ifndef PEN_SCHEDULER_TRANSPORT_GRPC_ADDRESS_H
#define PEN_SCHEDULER_TRANSPORT_GRPC_ADDRESS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"

#define PEN_ADDRESS_TEXT_LIMIT 300 // with the 0 behind it

typedef struct pen_address {
    char host[256]; // without brackets
    uint16_t port;
    char text[PEN_ADDRESS_TEXT_LIMIT]; // the whole, as the system takes it
} pen_address;

// INVALID_INPUT: not of that form. The host "*" stands for all addresses of this machine.
PEN_NODISCARD pen_status pen_address_read(const char *text, pen_address *out_address);

// Whether this process could listen there now, by binding to it for a moment. IO: it could not,
// with the reason and what to do: the port is taken, the address is another machine's, ….
PEN_NODISCARD pen_status pen_address_check_free(const pen_address *address);

// Why a library that does not say it could not listen there: IO, as pen_address_check_free, which
// is asked; `otherwise` where the address is free.
PEN_NODISCARD pen_status pen_address_explain(const pen_address *address, const char *otherwise);

// Whether nobody outside of this machine can reach it: 127.x.x.x, ::1, localhost.
bool pen_address_is_loopback(const pen_address *address);

#endif // PEN_SCHEDULER_TRANSPORT_GRPC_ADDRESS_H
