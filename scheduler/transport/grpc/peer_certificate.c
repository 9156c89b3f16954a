#include "scheduler/transport/grpc/peer_certificate.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/log.h"
#include "base/memory.h"
#include "base/system/file.h"

#define PEER_FILE_BYTES_LIMIT ((size_t)16 << 20)

// A file as it was when it was last right.
typedef struct peer_file {
    char *path;
    struct timespec changed;
    uint64_t bytes, node;
} peer_file;

struct pen_revocations {
    peer_file lists, authorities;
    X509_STORE *store; // both, as they were last right
};

// ---- what a certificate is

static STACK_OF(X509_INFO) * peer_read(const char *text) {
    BIO *from = BIO_new_mem_buf(text, -1);
    STACK_OF(X509_INFO) *all = from == NULL ? NULL : PEM_X509_INFO_read_bio(from, NULL, NULL, NULL);
    BIO_free(from);
    ERR_clear_error();
    return all;
}

static void peer_describe(const X509 *certificate, pen_peer_certificate *out) {
    unsigned char digest[EVP_MAX_MD_SIZE];
    unsigned length = 0;
    BIGNUM *number = ASN1_INTEGER_to_BN(X509_get0_serialNumber(certificate), NULL);
    char *text = number == NULL ? NULL : BN_bn2hex(number);
    snprintf(out->serial, sizeof out->serial, "%s", text == NULL ? "" : text);
    OPENSSL_free(text);
    BN_free(number);
    out->fingerprint[0] = '\0';
    if (X509_digest(certificate, EVP_sha256(), digest, &length) != 1) length = 0;
    for (unsigned i = 0; i < length && i < 32; i++) {
        snprintf(out->fingerprint + (size_t)2 * i, 3, "%02x", digest[i]);
    }
}

bool pen_peer_certificate_describe(const char *pem, pen_peer_certificate *out_certificate) {
    STACK_OF(X509_INFO) *all = peer_read(pem);
    const X509_INFO *first = sk_X509_INFO_num(all) > 0 ? sk_X509_INFO_value(all, 0) : NULL;
    const bool is_there = first != NULL && first->x509 != NULL;
    if (is_there) peer_describe(first->x509, out_certificate);
    sk_X509_INFO_pop_free(all, X509_INFO_free);
    return is_there;
}

// ---- reading lists

// False: it is not there, or as it was.
static bool peer_has_changed(peer_file *file) {
    struct stat about;
    if (stat(file->path, &about) != 0) return false;
    if (about.st_mtim.tv_sec == file->changed.tv_sec &&
        about.st_mtim.tv_nsec == file->changed.tv_nsec && (uint64_t)about.st_size == file->bytes &&
        about.st_ino == file->node) {
        return false;
    }
    file->changed = about.st_mtim;
    file->bytes = (uint64_t)about.st_size;
    file->node = about.st_ino;
    return true;
}

// Adds what the file holds of the one or the other. *out_count is of how many.
static pen_status revocations_add(X509_STORE *store, const char *path, bool is_lists,
                                  pen_arena *arena, uint32_t *out_count) {
    const char *text;
    size_t length;
    *out_count = 0;
    PEN_TRY(
        pen_status_add_context(pen_file_read(path, PEER_FILE_BYTES_LIMIT, arena, &text, &length),
                               "while reading the file 'tls: %s'", is_lists ? "crl" : "ca"));
    STACK_OF(X509_INFO) *all = peer_read(text);
    for (int i = 0; i < sk_X509_INFO_num(all); i++) {
        const X509_INFO *one = sk_X509_INFO_value(all, i);
        if (is_lists && one->crl != NULL) {
            *out_count += X509_STORE_add_crl(store, one->crl) == 1;
        } else if (!is_lists && one->x509 != NULL) {
            *out_count += X509_STORE_add_cert(store, one->x509) == 1;
        }
    }
    sk_X509_INFO_pop_free(all, X509_INFO_free);
    ERR_clear_error();
    return PEN_OK;
}

static pen_status revocations_fill(pen_revocations *r, X509_STORE *store, pen_arena *arena) {
    uint32_t list_count = 0, authority_count = 0;
    PEN_TRY(revocations_add(store, r->authorities.path, false, arena, &authority_count));
    PEN_TRY(revocations_add(store, r->lists.path, true, arena, &list_count));
    if (list_count == 0) {
        return pen_error(PEN_INVALID_INPUT,
                         "%s: tls: crl: the file holds no list of revoked certificates in PEM form",
                         r->lists.path);
    }
    if (authority_count == 0) {
        return pen_error(PEN_INVALID_INPUT, "%s: tls: ca: the file holds no certificate",
                         r->authorities.path);
    }
    return PEN_OK;
}

// Nobody takes back whom `ca` names itself: OpenSSL wants a list of its authority, too, where it is
// not its own.
static int revocations_pass(int is_right, X509_STORE_CTX *context) {
    const int last = sk_X509_num(X509_STORE_CTX_get0_chain(context)) - 1;
    if (is_right == 1 || X509_STORE_CTX_get_error_depth(context) != last) return is_right;
    switch (X509_STORE_CTX_get_error(context)) {
    case X509_V_ERR_UNABLE_TO_GET_CRL:
    case X509_V_ERR_UNABLE_TO_GET_CRL_ISSUER: // the list is there, but not who signed it
    case X509_V_ERR_CRL_SIGNATURE_FAILURE:
        X509_STORE_CTX_set_error(context, X509_V_OK);
        return 1;
    default:
        return 0;
    }
}

static pen_status revocations_read(pen_revocations *r) {
    pen_arena *arena = NULL;
    X509_STORE *store = X509_STORE_new();
    pen_status status = store == NULL ? pen_error_out_of_memory() : pen_arena_create(&arena);
    if (status == PEN_OK) status = revocations_fill(r, store, arena);
    if (status == PEN_OK) {
        (void)X509_STORE_set_flags(store, X509_V_FLAG_CRL_CHECK | X509_V_FLAG_CRL_CHECK_ALL |
                                              X509_V_FLAG_PARTIAL_CHAIN);
        X509_STORE_set_verify_cb(store, revocations_pass);
        X509_STORE_free(r->store);
        r->store = store;
    } else {
        X509_STORE_free(store);
    }
    pen_arena_destroy(arena);
    return status;
}

static pen_status revocations_keep_path(peer_file *file, const char *path) {
    const size_t size = strlen(path) + 1;
    file->path = pen_memory_allocate(size, 1);
    if (file->path == NULL) return pen_error_out_of_memory();
    memcpy(file->path, path, size);
    (void)peer_has_changed(file);
    return PEN_OK;
}

pen_status pen_revocations_open(const char *lists, const char *authorities,
                                pen_revocations **out_revocations) {
    pen_revocations *r = pen_memory_allocate(1, sizeof *r);
    if (r == NULL) return pen_error_out_of_memory();
    pen_status status = revocations_keep_path(&r->lists, lists);
    if (status == PEN_OK) status = revocations_keep_path(&r->authorities, authorities);
    if (status == PEN_OK) status = revocations_read(r);
    if (status != PEN_OK) {
        pen_revocations_close(r);
        return status;
    }
    *out_revocations = r;
    return PEN_OK;
}

void pen_revocations_close(pen_revocations *revocations) {
    if (revocations == NULL) return;
    X509_STORE_free(revocations->store);
    pen_memory_free(revocations->lists.path);
    pen_memory_free(revocations->authorities.path);
    pen_memory_free(revocations);
}

// ---- looking into them

// What can be mended is said so that it can: by serial number, or by the file.
static pen_status revocations_blame(const pen_revocations *r, int error, const X509 *certificate) {
    pen_peer_certificate about = {.serial = ""};
    if (certificate != NULL) peer_describe(certificate, &about);
    switch (error) {
    case X509_V_ERR_CERT_REVOKED:
        return pen_error(PEN_INVALID_INPUT, "its certificate, serial %s, is revoked ('tls: crl')",
                         about.serial);
    case X509_V_ERR_UNABLE_TO_GET_CRL:
        return pen_error(PEN_INVALID_INPUT,
                         "'%s' ('tls: crl') has no list of the authority that signed its "
                         "certificate, serial %s",
                         r->lists.path, about.serial);
    case X509_V_ERR_CRL_HAS_EXPIRED:
        return pen_error(PEN_INVALID_INPUT,
                         "the list of revoked certificates '%s' ('tls: crl') has expired",
                         r->lists.path);
    default:
        return pen_error(PEN_INVALID_INPUT, "its certificate, serial %s, does not hold: %s",
                         about.serial, X509_verify_cert_error_string(error));
    }
}

static pen_status revocations_verify(const pen_revocations *r, X509 *leaf, STACK_OF(X509) * chain) {
    X509_STORE_CTX *context = X509_STORE_CTX_new();
    pen_status status = PEN_OK;
    if (context == NULL || X509_STORE_CTX_init(context, r->store, leaf, chain) != 1) {
        status = pen_error_out_of_memory();
    } else if (X509_verify_cert(context) != 1) {
        status = revocations_blame(r, X509_STORE_CTX_get_error(context),
                                   X509_STORE_CTX_get_current_cert(context));
    }
    X509_STORE_CTX_free(context);
    ERR_clear_error();
    return status;
}

// Whoever is let in by the handshake may be turned away here. So lists are read when they change,
// and not when somebody asks for it.
pen_status pen_revocations_check(pen_revocations *revocations, const char *chain) {
    const bool has_lists = peer_has_changed(&revocations->lists);
    if (peer_has_changed(&revocations->authorities) || has_lists) {
        const pen_status status = revocations_read(revocations);
        if (status != PEN_OK) {
            pen_log(PEN_LOG_WARNING, "%s; what was read before stays", pen_status_message(status));
            pen_status_ignore(status, "the lists as they were still serve");
        }
    }
    STACK_OF(X509_INFO) *all = peer_read(chain);
    STACK_OF(X509) *between = sk_X509_new_null();
    X509 *leaf = NULL;
    for (int i = 0; between != NULL && i < sk_X509_INFO_num(all); i++) {
        X509 *one = sk_X509_INFO_value(all, i)->x509;
        if (leaf == NULL) {
            leaf = one;
        } else if (one != NULL) {
            (void)sk_X509_push(between, one);
        }
    }
    const pen_status status =
        leaf == NULL ? pen_error(PEN_INVALID_INPUT, "it showed no certificate that can be read")
                     : revocations_verify(revocations, leaf, between);
    sk_X509_free(between);
    sk_X509_INFO_pop_free(all, X509_INFO_free);
    return status;
}
