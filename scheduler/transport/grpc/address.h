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

// Whether nobody outside of this machine can reach it: 127.x.x.x, ::1, localhost.
bool pen_address_is_loopback(const pen_address *address);

#endif // PEN_SCHEDULER_TRANSPORT_GRPC_ADDRESS_H
