// Who may be at the other end: mutual TLS from PEM files, or none.
#ifndef PEN_SCHEDULER_TRANSPORT_GRPC_TLS_H
#define PEN_SCHEDULER_TRANSPORT_GRPC_TLS_H

#include <grpc/grpc.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/status.h"
#include "scheduler/transport/address.h"
#include "scheduler/transport/transport.h"

typedef struct pen_grpc_credentials { // NULL: not made
    grpc_channel_credentials *of_channels;
    grpc_server_credentials *of_servers;
} pen_grpc_credentials;

// Reads the files. Without any, credentials that verify nobody and encrypt nothing.
// INVALID_INPUT: some files are named, but not all; a file is not PEM. NOT_FOUND, IO
PEN_NODISCARD pen_status pen_grpc_credentials_create(const pen_transport_tls *tls,
                                                     pen_grpc_credentials *out_credentials);
void pen_grpc_credentials_destroy(pen_grpc_credentials *credentials);

bool pen_grpc_tls_is_used(const pen_transport_tls *tls);

// Whether links at `address` are allowed: loopback, TLS, or somebody said that it may be insecure.
PEN_NODISCARD pen_status pen_grpc_tls_check_address(const pen_transport_options *options,
                                                    const pen_address *address);

// Whether the other end of a call may be `peer`, by the names in its certificate. INVALID_INPUT
PEN_NODISCARD pen_status pen_grpc_tls_check_role(grpc_call *call,
                                                 const pen_transport_options *options,
                                                 uint32_t peer);

// The names in the certificate of a call's other end, separated by spaces. False: it showed none.
bool pen_grpc_tls_names(grpc_call *call, char *out_names, size_t size);

#endif // PEN_SCHEDULER_TRANSPORT_GRPC_TLS_H
