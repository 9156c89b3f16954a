#include "scheduler/transport/grpc/certificates.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <openssl/bio.h>
#include <openssl/bn.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/system/file.h"
#include "scheduler/transport/grpc/pem_file.h"

#define CERTIFICATES_AUTHORITY_DAYS 3650u // at least: it signs for hosts that come later
#define CERTIFICATES_EARLIER_SECONDS 3600 // clocks of other machines may be behind
#define CERTIFICATES_HOST_LIMIT 1000u
#define CERTIFICATES_COMMON_NAME_LIMIT 64u // bytes, as the standard has it

typedef struct certificates_maker {
    const pen_certificates_request *request;
    pen_arena *arena;
    pen_certificates *made;
    pen_certificate_files authority_files;
    X509 *authority;
    EVP_PKEY *authority_key;
    time_t now;
    const char **written; // [2 + 2 * (host_count + 1)] files, so that none is left by a failure
    size_t written_count;
} certificates_maker;

// What one certificate is to say.
typedef struct certificates_subject {
    const char *name;  // common
    const char *names; // subjectAltName, as OpenSSL writes them; NULL: an authority
    uint32_t days;
} certificates_subject;

static pen_status certificates_error(const char *what) {
    const char *reason = ERR_reason_error_string(ERR_peek_last_error());
    const pen_status status = pen_error(PEN_INTERNAL, "certificates: cannot make %s: %s", what,
                                        reason == NULL ? "no reason is known" : reason);
    ERR_clear_error();
    return status;
}

// ---- hosts

static bool certificates_is_address(const char *host) {
    unsigned char bytes[sizeof(struct in6_addr)];
    return inet_pton(AF_INET, host, bytes) == 1 || inet_pton(AF_INET6, host, bytes) == 1;
}

// It becomes part of file names and of what OpenSSL parses, so only signs that mean nothing there
// go.
pen_status pen_certificates_check_host(const char *host) {
    const size_t length = strlen(host);
    if (certificates_is_address(host)) return PEN_OK;
    if (strchr(host, ':') != NULL) {
        return pen_error(PEN_INVALID_INPUT,
                         "found the host \"%.200s\", expected a name or an address without a port",
                         host);
    }
    const bool is_name =
        length > 0 && length < 254 && host[0] != '-' && host[0] != '.' &&
        strspn(host, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._") == length;
    if (!is_name) {
        return pen_error(PEN_INVALID_INPUT,
                         "found the host \"%.200s\", expected a name or an address: letters, "
                         "digits, '-' and '.'",
                         host);
    }
    if (strcmp(host, "ca") != 0 && strcmp(host, PEN_CERTIFICATES_OWN) != 0) return PEN_OK;
    return pen_error(PEN_INVALID_INPUT,
                     "found the host \"%s\", whose files are %s, expected another name", host,
                     strcmp(host, "ca") == 0 ? "the authority's" : "those of this machine");
}

static pen_status certificates_check(const pen_certificates_request *request) {
    if (request->days == 0 || request->days > PEN_CERTIFICATES_DAYS_LIMIT) {
        return pen_error(PEN_INVALID_INPUT, "found %u days, expected 1 to %u", request->days,
                         PEN_CERTIFICATES_DAYS_LIMIT);
    }
    if (request->host_count > CERTIFICATES_HOST_LIMIT) {
        return pen_error(PEN_INVALID_INPUT, "found %zu hosts, expected %u at most",
                         request->host_count, CERTIFICATES_HOST_LIMIT);
    }
    for (size_t i = 0; i < request->host_count; i++) {
        PEN_TRY(pen_certificates_check_host(request->hosts[i]));
        for (size_t k = 0; k < i; k++) {
            if (strcmp(request->hosts[i], request->hosts[k]) != 0) continue;
            return pen_error(PEN_INVALID_INPUT, "found the host \"%s\" twice, expected it once",
                             request->hosts[i]);
        }
    }
    return PEN_OK;
}

// ---- one certificate

static bool certificates_add(X509 *certificate, X509V3_CTX *context, int kind, const char *value) {
    X509_EXTENSION *extension = X509V3_EXT_nconf_nid(NULL, context, kind, value);
    const bool is_added = extension != NULL && X509_add_ext(certificate, extension, -1) == 1;
    X509_EXTENSION_free(extension);
    return is_added;
}

// What it may be used for: to sign others, or for both ends of a connection.
static bool certificates_extend(X509 *certificate, X509 *authority,
                                const certificates_subject *subject) {
    X509V3_CTX context;
    X509V3_set_ctx_nodb(&context);
    X509V3_set_ctx(&context, authority, certificate, NULL, NULL, 0);
    const bool is_authority = subject->names == NULL;
    if (!certificates_add(certificate, &context, NID_basic_constraints,
                          is_authority ? "critical,CA:TRUE,pathlen:0" : "critical,CA:FALSE") ||
        !certificates_add(certificate, &context, NID_key_usage,
                          is_authority ? "critical,keyCertSign,cRLSign"
                                       : "critical,digitalSignature") ||
        !certificates_add(certificate, &context, NID_subject_key_identifier, "hash")) {
        return false;
    }
    if (is_authority) return true;
    return certificates_add(certificate, &context, NID_authority_key_identifier, "keyid:always") &&
           certificates_add(certificate, &context, NID_ext_key_usage, "serverAuth,clientAuth") &&
           certificates_add(certificate, &context, NID_subject_alt_name, subject->names);
}

static bool certificates_number(X509 *certificate) {
    BIGNUM *number = BN_new();
    const bool is_set = number != NULL &&
                        BN_rand(number, 127, BN_RAND_TOP_ONE, BN_RAND_BOTTOM_ANY) == 1 &&
                        BN_to_ASN1_INTEGER(number, X509_get_serialNumber(certificate)) != NULL;
    BN_free(number);
    return is_set;
}

static bool certificates_name(X509 *certificate, X509 *authority, const char *name) {
    X509_NAME *own = X509_get_subject_name(certificate);
    const char *fits = strlen(name) <= CERTIFICATES_COMMON_NAME_LIMIT ? name : "worker";
    return X509_NAME_add_entry_by_txt(own, "CN", MBSTRING_ASC, (const unsigned char *)fits, -1, -1,
                                      0) == 1 &&
           X509_set_issuer_name(certificate, X509_get_subject_name(authority)) == 1;
}

// A certificate for `key`, signed by the maker's authority, or by itself when it is one.
static X509 *certificates_sign(const certificates_maker *maker, EVP_PKEY *key,
                               const certificates_subject *subject) {
    X509 *certificate = X509_new();
    if (certificate == NULL) return NULL;
    const bool is_authority = subject->names == NULL;
    X509 *authority = is_authority ? certificate : maker->authority;
    time_t now = maker->now;
    const bool is_made =
        X509_set_version(certificate, X509_VERSION_3) == 1 && certificates_number(certificate) &&
        certificates_name(certificate, authority, subject->name) &&
        X509_time_adj_ex(X509_getm_notBefore(certificate), 0, -CERTIFICATES_EARLIER_SECONDS,
                         &now) != NULL &&
        X509_time_adj_ex(X509_getm_notAfter(certificate), (int)subject->days, 0, &now) != NULL &&
        X509_set_pubkey(certificate, key) == 1 &&
        certificates_extend(certificate, authority, subject) &&
        X509_sign(certificate, is_authority ? key : maker->authority_key, EVP_sha256()) > 0;
    if (is_made) return certificate;
    X509_free(certificate);
    return NULL;
}

static pen_status certificates_format_end(const X509 *certificate, char out_text[24]) {
    struct tm end;
    if (ASN1_TIME_to_tm(X509_get0_notAfter(certificate), &end) != 1 ||
        strftime(out_text, 24, "%Y-%m-%dT%H:%M:%SZ", &end) == 0) {
        return certificates_error("out when a certificate ends");
    }
    return PEN_OK;
}

// ---- files

static pen_status certificates_refuse(const char *path) {
    return pen_error(PEN_INVALID_INPUT,
                     "found %s, which is there already, expected a folder without it, or another "
                     "host",
                     path);
}

static pen_status certificates_write_all(int fd, const char *path, BIO *text) {
    char *bytes;
    const long length = BIO_get_mem_data(text, &bytes);
    for (long at = 0; at < length;) {
        const ssize_t count = write(fd, bytes + at, (size_t)(length - at));
        if (count < 0 && errno == EINTR) continue;
        if (count < 0) return pen_error(PEN_IO, "cannot write '%s': %s", path, strerror(errno));
        at += count;
    }
    if (fsync(fd) == 0) return PEN_OK;
    return pen_error(PEN_IO, "cannot write '%s': %s", path, strerror(errno));
}

// A new file, which nobody may have put there meanwhile; that of a key is the owner's alone from
// its first moment.
static pen_status certificates_write(certificates_maker *maker, const char *path, BIO *text,
                                     bool is_key) {
    const int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
                        is_key ? (mode_t)0600 : (mode_t)0644);
    if (fd < 0 && errno == EEXIST) return certificates_refuse(path);
    if (fd < 0) return pen_error(PEN_IO, "cannot write '%s': %s", path, strerror(errno));
    maker->written[maker->written_count++] = path;
    const pen_status status = certificates_write_all(fd, path, text);
    if (close(fd) == 0) return status;
    return pen_status_join(status,
                           pen_error(PEN_IO, "cannot write '%s': %s", path, strerror(errno)));
}

static pen_status certificates_write_pair(certificates_maker *maker,
                                          const pen_certificate_files *files, X509 *certificate,
                                          EVP_PKEY *key) {
    BIO *text = BIO_new(BIO_s_mem()), *secret = BIO_new(BIO_s_secmem());
    pen_status status = PEN_OK;
    if (text == NULL || secret == NULL || PEM_write_bio_X509(text, certificate) != 1 ||
        PEM_write_bio_PrivateKey(secret, key, NULL, NULL, 0, NULL, NULL) != 1) {
        status = certificates_error("the text of a certificate");
    }
    if (status == PEN_OK) status = certificates_write(maker, files->key, secret, true);
    if (status == PEN_OK) status = certificates_write(maker, files->certificate, text, false);
    BIO_free(text);
    BIO_free(secret);
    return status;
}

// A key, its certificate, and both as files.
static pen_status certificates_make_one(certificates_maker *maker,
                                        const pen_certificate_files *files,
                                        const certificates_subject *subject) {
    EVP_PKEY *key = EVP_EC_gen("P-256");
    X509 *certificate = key == NULL ? NULL : certificates_sign(maker, key, subject);
    pen_status status = certificate == NULL ? certificates_error(files->certificate) : PEN_OK;
    if (status == PEN_OK) status = certificates_write_pair(maker, files, certificate, key);
    if (status == PEN_OK) {
        status = certificates_format_end(certificate, subject->names == NULL
                                                          ? maker->made->authority_expires
                                                          : maker->made->expires);
    }
    if (status == PEN_OK && subject->names == NULL) {
        maker->authority = certificate;
        maker->authority_key = key;
        return PEN_OK;
    }
    X509_free(certificate);
    EVP_PKEY_free(key);
    return status;
}

// `HOST.pem` and `HOST.key`; a ':' would look like a host's name to programs that copy files.
static pen_status certificates_name_files(certificates_maker *maker, const char *folder,
                                          const char *name, pen_certificate_files *out_files) {
    const char *file;
    char plain[256];
    snprintf(plain, sizeof plain, "%s", name);
    for (char *at = plain; *at != '\0'; at++)
        if (*at == ':') *at = '-';
    PEN_TRY(pen_arena_format(maker->arena, &file, "%s/%s.pem", folder, plain));
    *out_files = (pen_certificate_files){.name = name, .certificate = file};
    return pen_arena_format(maker->arena, &out_files->key, "%s/%s.key", folder, plain);
}

static bool certificates_is_there(const pen_certificate_files *files) {
    return access(files->certificate, F_OK) == 0 || access(files->key, F_OK) == 0;
}

// ---- the authority

static pen_status certificates_check_end(const certificates_maker *maker) {
    time_t end = maker->now + (time_t)maker->request->days * 86400;
    int days = 0, seconds = 0;
    if (X509_cmp_time(X509_get0_notAfter(maker->authority), &end) >= 0) return PEN_OK;
    (void)ASN1_TIME_diff(&days, &seconds, NULL, X509_get0_notAfter(maker->authority));
    if (days < 1) {
        return pen_error(PEN_INVALID_INPUT,
                         "%s: the authority ends on %s, expected one that is still valid for a "
                         "day: make another in another folder",
                         maker->authority_files.certificate, maker->made->authority_expires);
    }
    return pen_error(PEN_INVALID_INPUT,
                     "found %u days, but the authority %s ends on %s, expected at most %d",
                     maker->request->days, maker->authority_files.certificate,
                     maker->made->authority_expires, days);
}

// The authority that is there: its certificate and key must be a pair.
static pen_status certificates_load(certificates_maker *maker) {
    const pen_certificate_files *files = &maker->authority_files;
    const char *const paths[3] = {files->certificate, files->certificate, files->key};
    pen_pem_files read;
    PEN_TRY(pen_status_add_context(pen_pem_read_all(paths, maker->arena, &read),
                                   "while reading the authority of '%s'", maker->request->folder));
    BIO *text = BIO_new_mem_buf(read.texts[PEN_PEM_CERTIFICATE], -1);
    BIO *secret = BIO_new_mem_buf(read.texts[PEN_PEM_KEY], -1);
    if (text != NULL && secret != NULL) {
        maker->authority = PEM_read_bio_X509(text, NULL, NULL, NULL);
        maker->authority_key = PEM_read_bio_PrivateKey(secret, NULL, NULL, NULL);
    }
    BIO_free(text);
    BIO_free(secret);
    if (maker->authority == NULL || maker->authority_key == NULL) {
        return certificates_error("use of the authority");
    }
    if (X509_check_ca(maker->authority) == 0) {
        return pen_error(PEN_INVALID_INPUT,
                         "%s: found a certificate that may not sign others, expected an "
                         "authority's",
                         files->certificate);
    }
    PEN_TRY(certificates_format_end(maker->authority, maker->made->authority_expires));
    return certificates_check_end(maker);
}

// Each authority has a name of its own, so that messages tell them apart.
static pen_status certificates_begin_authority(certificates_maker *maker) {
    uint8_t bytes[4];
    char name[64];
    const uint32_t days = maker->request->days;
    maker->made->is_authority_new = !certificates_is_there(&maker->authority_files);
    maker->made->authority = maker->authority_files.certificate;
    if (!maker->made->is_authority_new) return certificates_load(maker);
    if (RAND_bytes(bytes, sizeof bytes) != 1) return certificates_error("a random name");
    snprintf(name, sizeof name, "penstock authority %02x%02x%02x%02x", bytes[0], bytes[1], bytes[2],
             bytes[3]);
    const certificates_subject subject = {
        name, NULL, days > CERTIFICATES_AUTHORITY_DAYS ? days : CERTIFICATES_AUTHORITY_DAYS};
    return certificates_make_one(maker, &maker->authority_files, &subject);
}

// ---- all

// Which files there will be; what is there already is found before anything is made.
static pen_status certificates_plan(certificates_maker *maker) {
    const pen_certificates_request *request = maker->request;
    pen_certificate_files *files, own;
    size_t count = 0;
    PEN_TRY(PEN_NEW(maker->arena, request->host_count + 1, &files));
    PEN_TRY(PEN_NEW(maker->arena, 2 * request->host_count + 4, &maker->written));
    const bool is_elsewhere = request->authority != NULL;
    PEN_TRY(certificates_name_files(maker, is_elsewhere ? request->authority : request->folder,
                                    "ca", &maker->authority_files));
    PEN_TRY(certificates_name_files(maker, request->folder, PEN_CERTIFICATES_OWN, &own));
    if (!is_elsewhere && !certificates_is_there(&own)) files[count++] = own;
    for (size_t i = 0; i < request->host_count; i++) {
        PEN_TRY(certificates_name_files(maker, request->folder, request->hosts[i], &files[count]));
        if (access(files[count].certificate, F_OK) == 0) {
            return certificates_refuse(files[count].certificate);
        }
        if (access(files[count].key, F_OK) == 0) return certificates_refuse(files[count].key);
        count++;
    }
    maker->made->files = files;
    maker->made->count = count;
    return PEN_OK;
}

static pen_status certificates_make_hosts(certificates_maker *maker) {
    for (size_t i = 0; i < maker->made->count; i++) {
        const pen_certificate_files *files = &maker->made->files[i];
        certificates_subject subject = {.name = files->name, .days = maker->request->days};
        if (strcmp(files->name, "localhost") == 0) {
            subject.names = "DNS:localhost,IP:127.0.0.1,IP:::1";
        } else {
            PEN_TRY(pen_arena_format(maker->arena, &subject.names, "%s:%s",
                                     certificates_is_address(files->name) ? "IP" : "DNS",
                                     files->name));
        }
        PEN_TRY(certificates_make_one(maker, files, &subject));
    }
    return PEN_OK;
}

pen_status pen_certificates_make(const pen_certificates_request *request, pen_arena *arena,
                                 const pen_certificates **out_made) {
    certificates_maker maker = {.request = request, .arena = arena, .now = time(NULL)};
    PEN_TRY(certificates_check(request));
    PEN_TRY(PEN_NEW(arena, 1, &maker.made));
    PEN_TRY(certificates_plan(&maker));
    PEN_TRY(pen_folder_create(request->folder, arena));
    pen_status status = certificates_begin_authority(&maker);
    if (status == PEN_OK) status = certificates_make_hosts(&maker);
    X509_free(maker.authority);
    EVP_PKEY_free(maker.authority_key);
    for (size_t i = 0; status != PEN_OK && i < maker.written_count; i++)
        (void)unlink(maker.written[i]);
    if (status == PEN_OK) *out_made = maker.made;
    return status;
}
