// The certificate that the other end of a link has shown, which gRPC has verified: what it is, for
// a log, and whether its authority has taken it back.
//
// Threads: each value by one at a time.
#ifndef PEN_SCHEDULER_TRANSPORT_GRPC_PEER_CERTIFICATE_H
#define PEN_SCHEDULER_TRANSPORT_GRPC_PEER_CERTIFICATE_H

#include <stdbool.h>

#include "base/arena.h"
#include "base/status.h"

typedef struct pen_peer_certificate {
    char serial[64];      // hexadecimal, as openssl prints it; cut if it is longer
    char fingerprint[65]; // SHA-256 of it, hexadecimal
} pen_peer_certificate;

// Of the first certificate of the PEM text. False: it holds none.
bool pen_peer_certificate_describe(const char *pem, pen_peer_certificate *out_certificate);

// Lists of revoked certificates, one for each authority, in one PEM file.
typedef struct pen_revocations pen_revocations;

// `authorities`: the PEM file of those who sign. Both are read again when they change; what cannot
// be used then is complained of once, and what was read before stays.
//   INVALID_INPUT  the file holds no list in PEM form
//   NOT_FOUND, IO, OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_revocations_open(const char *lists, const char *authorities,
                                              pen_revocations **out_revocations);
void pen_revocations_close(pen_revocations *revocations); // accepts NULL
// Whether the first certificate of `chain` (PEM text) still holds, and those that lead from it to
// an authority. INVALID_INPUT says why not: it was revoked; or nobody knows, for there is no list
// of its authority, or that is too old.
PEN_NODISCARD pen_status pen_revocations_check(pen_revocations *revocations, const char *chain);

#endif // PEN_SCHEDULER_TRANSPORT_GRPC_PEER_CERTIFICATE_H
