// Makes an authority and certificates that it signed: what links with TLS need.
//
// In a folder: `ca.pem` and `ca.key`, the authority; `NAME.pem` and `NAME.key` for each host, and
// for the machine that starts trainings. Keys are elliptic (P-256), and their files are the owner's
// alone.
//
// Threads: any.
#ifndef PEN_SCHEDULER_TRANSPORT_GRPC_CERTIFICATES_H
#define PEN_SCHEDULER_TRANSPORT_GRPC_CERTIFICATES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/status.h"

// The certificate of the machine that starts trainings, which nobody calls: its name.
#define PEN_CERTIFICATES_OWN "coordinator"
#define PEN_CERTIFICATES_DAYS_LIMIT 36500

typedef struct pen_certificates_request {
    const char *folder;       // made if it is not there
    const char *authority;    // another folder, with an authority, which signs; then certificates
                              // of hosts alone are made. NULL: it is in `folder`
    const char *const *hosts; // [host_count] as `host` of a device has them, without the port
    size_t host_count;
    uint32_t days; // that certificates are valid, from 1
} pen_certificates_request;

typedef struct pen_certificate_files {
    const char *name; // of the host
    const char *certificate, *key;
} pen_certificate_files;

typedef struct pen_certificates {
    const char *authority; // "certs/ca.pem"
    bool is_authority_new; // else the one that was there signed
    char expires[24];      // of the certificates: "2027-11-22T17:48:07Z"
    char authority_expires[24];
    size_t count;
    const pen_certificate_files *files; // [count], that of this machine first if it was made now
} pen_certificates;

// Whether a text may be a host of a certificate: a name, or an address, without a port.
// INVALID_INPUT
PEN_NODISCARD pen_status pen_certificates_check_host(const char *host);

// Makes what is not there. An authority that is there signs. Nothing is written unless all can be,
// and no file is replaced.
//   INVALID_INPUT  a host, or the days; a file is there already; the authority's certificate and
//                  key are not a pair, or it ends before the certificates would
//   NOT_FOUND, IO  a file cannot be read or written
PEN_NODISCARD pen_status pen_certificates_make(const pen_certificates_request *request,
                                               pen_arena *arena, const pen_certificates **out_made);

#endif // PEN_SCHEDULER_TRANSPORT_GRPC_CERTIFICATES_H
