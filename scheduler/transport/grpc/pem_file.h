// Files with certificates and keys, read before gRPC does: it only says that something is wrong
// with them, and late.
//
// Threads: any.
#ifndef PEN_SCHEDULER_TRANSPORT_GRPC_PEM_FILE_H
#define PEN_SCHEDULER_TRANSPORT_GRPC_PEM_FILE_H

#include "base/arena.h"
#include "base/status.h"

typedef enum pen_pem_kind {
    PEN_PEM_AUTHORITIES, // certificates of those who sign
    PEN_PEM_CERTIFICATE, // with those between it and the authority behind it
    PEN_PEM_KEY,         // private, without a passphrase
} pen_pem_kind;

// Reads a file that must hold that, and checks that it does. The text is the arena's. NOT_FOUND,
// IO; INVALID_INPUT names the file and says what is wrong with it.
PEN_NODISCARD pen_status pen_pem_read(const char *path, pen_pem_kind kind, pen_arena *arena,
                                      const char **out_text);

typedef struct pen_pem_files {
    const char *paths[3], *texts[3]; // by kind
} pen_pem_files;

// Whether a certificate has that key. INVALID_INPUT
PEN_NODISCARD pen_status pen_pem_check(const pen_pem_files *files);
// Whether others who trust the same authorities take the certificate now. INVALID_INPUT: it has
// expired, is not valid yet, or none of the authorities has signed it.
PEN_NODISCARD pen_status pen_pem_judge(const pen_pem_files *files);
// Warns of what pen_pem_judge says, and of the key.
void pen_pem_warn(const pen_pem_files *files);
// Warns of a key that everybody on this machine can read.
void pen_pem_warn_key(const char *path);

// A name that a certificate is for, as whoever checks it would be told: that of a host, an address,
// or, where it has neither, its common name. "" when there is none.
#define PEN_PEM_NAME_BYTES 256
void pen_pem_find_name(const char *certificate, char out_name[PEN_PEM_NAME_BYTES]);

// Both, for three paths; out_files may be NULL. INVALID_INPUT: also when one is NULL.
PEN_NODISCARD pen_status pen_pem_read_all(const char *const paths[3], pen_arena *arena,
                                          pen_pem_files *out_files);

// The version of OpenSSL, "3.0.20".
const char *pen_openssl_version(void);

#endif // PEN_SCHEDULER_TRANSPORT_GRPC_PEM_FILE_H
