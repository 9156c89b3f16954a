// Who may be at the other end: mutual TLS from PEM files, or none.
#ifndef PEN_SCHEDULER_TRANSPORT_GRPC_GRPC_TLS_H
#define PEN_SCHEDULER_TRANSPORT_GRPC_GRPC_TLS_H

#include <grpc/grpc.h>
#include <stdbool.h>
#include <stddef.h>
#include <time.h>

#include "base/status.h"
#include "scheduler/transport/grpc/address.h"
#include "scheduler/transport/grpc/peer_certificate.h"
#include "scheduler/transport/grpc/pem_file.h"
#include "scheduler/transport/transport.h"

// What a file was like when it was read.
typedef struct pen_grpc_stamp {
    struct timespec changed;
    uint64_t bytes, node;
} pen_grpc_stamp;

typedef struct pen_grpc_credentials { // NULL: not made
    char *paths[3];                   // NULL: without TLS
    // the I/O thread's
    grpc_channel_credentials *of_channels;
    char own_name[PEN_PEM_NAME_BYTES]; // in the certificate of these
    pen_grpc_stamp channel_stamps[3];
    pen_revocations *revocations; // NULL: no certificate is taken back
    // gRPC's, whose threads ask for it at each handshake
    grpc_server_credentials *of_servers;
    pen_grpc_stamp server_stamps[3];
} pen_grpc_credentials;

// Reads the files. Without any, credentials that verify nobody and encrypt nothing. They must not
// be moved.
// INVALID_INPUT: some files are named, but not all; what one holds is wrong. NOT_FOUND, IO
PEN_NODISCARD pen_status pen_grpc_credentials_create(const pen_transport_tls *tls,
                                                     pen_grpc_credentials *out_credentials);
void pen_grpc_credentials_destroy(pen_grpc_credentials *credentials);
// For a new channel: of the files as they are now, or as they were when they were last right.
grpc_channel_credentials *pen_grpc_credentials_of_channels(pen_grpc_credentials *credentials);

bool pen_grpc_tls_is_used(const pen_transport_tls *tls);

// Whether links at `address` are allowed: loopback, TLS, or somebody said that it may be insecure.
PEN_NODISCARD pen_status pen_grpc_tls_check_address(const pen_transport_options *options,
                                                    const pen_address *address);

// Whether the other end of a call may be `peer`, by the names in its certificate. INVALID_INPUT
PEN_NODISCARD pen_status pen_grpc_tls_check_role(grpc_call *call, const pen_transport_tls *tls,
                                                 uint32_t peer);

// Whether the certificate of a call's other end was taken back by its authority. INVALID_INPUT
PEN_NODISCARD pen_status pen_grpc_tls_check_revoked(pen_grpc_credentials *credentials,
                                                    grpc_call *call);

// The certificates that a call's other end has shown, its own first, as PEM. NOT_FOUND: none.
PEN_NODISCARD pen_status pen_grpc_tls_chain(grpc_call *call, pen_arena *arena,
                                            const char **out_pem);

// The names in the certificate of a call's other end, separated by spaces. False: it showed none.
bool pen_grpc_tls_names(grpc_call *call, char *out_names, size_t size);

#endif // PEN_SCHEDULER_TRANSPORT_GRPC_GRPC_TLS_H
