#include "scheduler/transport/grpc/pem_file.h"

#include <arpa/inet.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/log.h"
#include "base/system/file.h"

#define PEM_FILE_BYTES_LIMIT (1u << 20)

static const struct pem_words {
    const char *key; // in `tls: {…}`
    const char *what;
} pem_words[] = {
    [PEN_PEM_AUTHORITIES] = {"ca", "certificate"},
    [PEN_PEM_CERTIFICATE] = {"cert", "certificate"},
    [PEN_PEM_KEY] = {"key", "private key"},
};

// Keys with a passphrase are refused rather than asked for at the terminal.
static int pem_no_passphrase(char *buffer, int size, int is_writing, void *context) {
    (void)buffer;
    (void)size;
    (void)is_writing;
    (void)context;
    return -1;
}

static const char *pem_reason(void) {
    const char *reason = ERR_reason_error_string(ERR_peek_last_error());
    return reason != NULL ? reason : "it is not what it says";
}

static BIO *pem_open(const char *text) {
    ERR_clear_error();
    return BIO_new_mem_buf(text, -1);
}

// NULL: there is none, or not at that place.
static X509 *pem_certificate(BIO *from) {
    return from == NULL ? NULL : PEM_read_bio_X509(from, NULL, pem_no_passphrase, NULL);
}

static EVP_PKEY *pem_key(const char *text) {
    BIO *from = pem_open(text);
    EVP_PKEY *key =
        from == NULL ? NULL : PEM_read_bio_PrivateKey(from, NULL, pem_no_passphrase, NULL);
    BIO_free(from);
    return key;
}

// How many certificates there are before the end of the text. -1: what stands there is none.
static int pem_count_certificates(const char *text) {
    BIO *from = pem_open(text);
    int count = 0;
    X509 *certificate;
    while ((certificate = pem_certificate(from)) != NULL) {
        X509_free(certificate);
        count += 1;
    }
    const unsigned long error = ERR_peek_last_error();
    BIO_free(from);
    const bool is_end =
        ERR_GET_LIB(error) == ERR_LIB_PEM && ERR_GET_REASON(error) == PEM_R_NO_START_LINE;
    return is_end ? count : -1;
}

static bool pem_holds(const char *text, pen_pem_kind kind) {
    if (kind != PEN_PEM_KEY) return pem_count_certificates(text) > 0;
    EVP_PKEY *key = pem_key(text);
    const bool is_there = key != NULL;
    EVP_PKEY_free(key);
    return is_there;
}

pen_status pen_pem_read(const char *path, pen_pem_kind kind, pen_arena *arena,
                        const char **out_text) {
    size_t length;
    const struct pem_words *words = &pem_words[kind];
    PEN_TRY(
        pen_status_add_context(pen_file_read(path, PEM_FILE_BYTES_LIMIT, arena, out_text, &length),
                               "while reading the file 'tls: %s'", words->key));
    if (strlen(*out_text) == length && pem_holds(*out_text, kind)) return PEN_OK;
    const pen_status status =
        pen_error(PEN_INVALID_INPUT, "%s: tls: %s: the file holds no %s in PEM form (%s)", path,
                  words->key, words->what, pem_reason());
    ERR_clear_error();
    return status;
}

// Whether the first certificate of `cert` is signed by one of the authorities, maybe with others
// of that file between. Times are not looked at.
static bool pem_is_signed(const char *authorities, const char *cert) {
    X509_STORE *store = X509_STORE_new();
    X509_STORE_CTX *context = X509_STORE_CTX_new();
    STACK_OF(X509) *between = sk_X509_new_null();
    BIO *from = pem_open(authorities);
    X509 *leaf = NULL, *certificate;
    bool is_signed = false;
    while (store != NULL && (certificate = pem_certificate(from)) != NULL) {
        (void)X509_STORE_add_cert(store, certificate);
        X509_free(certificate);
    }
    BIO_free(from);
    from = pem_open(cert);
    leaf = pem_certificate(from);
    while (between != NULL && (certificate = pem_certificate(from)) != NULL) {
        if (sk_X509_push(between, certificate) == 0) X509_free(certificate);
    }
    BIO_free(from);
    if (store != NULL && context != NULL && leaf != NULL &&
        X509_STORE_CTX_init(context, store, leaf, between) == 1) {
        X509_STORE_CTX_set_flags(context, X509_V_FLAG_NO_CHECK_TIME | X509_V_FLAG_PARTIAL_CHAIN);
        is_signed = X509_verify_cert(context) == 1;
    }
    sk_X509_pop_free(between, X509_free);
    X509_free(leaf);
    X509_STORE_CTX_free(context);
    X509_STORE_free(store);
    ERR_clear_error();
    return is_signed;
}

pen_status pen_pem_check(const pen_pem_files *files) {
    const char *const *paths = files->paths, *const *texts = files->texts;
    BIO *from = pem_open(texts[PEN_PEM_CERTIFICATE]);
    X509 *certificate = pem_certificate(from);
    EVP_PKEY *key = pem_key(texts[PEN_PEM_KEY]);
    const bool is_pair =
        certificate != NULL && key != NULL && X509_check_private_key(certificate, key) == 1;
    X509_free(certificate);
    EVP_PKEY_free(key);
    BIO_free(from);
    ERR_clear_error();
    if (is_pair) return PEN_OK;
    return pen_error(PEN_INVALID_INPUT, "%s: tls: key: it is not the key of the certificate '%s'",
                     paths[PEN_PEM_KEY], paths[PEN_PEM_CERTIFICATE]);
}

// Whoever reads the key can be taken for this process.
void pen_pem_warn_key(const char *path) {
    struct stat about;
    if (stat(path, &about) != 0 || (about.st_mode & S_IROTH) == 0) return;
    pen_log(PEN_LOG_WARNING,
            "tls: the key '%s' can be read by everybody on this machine (mode %04o), expected its "
            "owner alone: chmod 600",
            path, (unsigned)(about.st_mode & 07777));
}

// "Nov 28 03:45:45 2026 GMT"
static void pem_write_time(const ASN1_TIME *when, char out_text[64]) {
    BIO *to = BIO_new(BIO_s_mem());
    out_text[0] = '\0';
    if (to != NULL && ASN1_TIME_print(to, when) == 1) {
        const int length = BIO_read(to, out_text, 63);
        out_text[length > 0 ? length : 0] = '\0';
    }
    BIO_free(to);
}

// Both ends of its time: a clock that is wrong has it begin in the future.
static pen_status pem_judge_time(const char *path, const char *text) {
    char when[64];
    BIO *from = pem_open(text);
    X509 *certificate = pem_certificate(from);
    pen_status status = PEN_OK;
    if (certificate != NULL && X509_cmp_current_time(X509_get0_notAfter(certificate)) < 0) {
        pem_write_time(X509_get0_notAfter(certificate), when);
        status = pen_error(PEN_INVALID_INPUT, "tls: the certificate '%s' has expired, on %s", path,
                           when);
    } else if (certificate != NULL && X509_cmp_current_time(X509_get0_notBefore(certificate)) > 0) {
        pem_write_time(X509_get0_notBefore(certificate), when);
        status = pen_error(PEN_INVALID_INPUT,
                           "tls: the certificate '%s' is not valid before %s; is this machine's "
                           "clock right?",
                           path, when);
    }
    X509_free(certificate);
    BIO_free(from);
    ERR_clear_error();
    return status;
}

pen_status pen_pem_judge(const pen_pem_files *files) {
    const char *const *paths = files->paths, *const *texts = files->texts;
    PEN_TRY(pem_judge_time(paths[PEN_PEM_CERTIFICATE], texts[PEN_PEM_CERTIFICATE]));
    if (pem_is_signed(texts[PEN_PEM_AUTHORITIES], texts[PEN_PEM_CERTIFICATE])) return PEN_OK;
    return pen_error(PEN_INVALID_INPUT, "tls: the certificate '%s' is not signed by '%s'",
                     paths[PEN_PEM_CERTIFICATE], paths[PEN_PEM_AUTHORITIES]);
}

void pen_pem_warn(const pen_pem_files *files) {
    const pen_status status = pen_pem_judge(files);
    if (status != PEN_OK) pen_log(PEN_LOG_WARNING, "%s", pen_status_message(status));
    pen_status_ignore(status, "others may take it all the same, and files may be replaced");
    pen_pem_warn_key(files->paths[PEN_PEM_KEY]);
}

static bool pem_take_alternative(const GENERAL_NAME *name, char out_name[PEN_PEM_NAME_BYTES]) {
    if (name->type == GEN_DNS) {
        const char *text = (const char *)ASN1_STRING_get0_data(name->d.dNSName);
        const int length = ASN1_STRING_length(name->d.dNSName);
        if (length <= 0 || length >= PEN_PEM_NAME_BYTES - 8) return false;
        // one for any host of a domain is also for this one
        const bool is_any = text[0] == '*';
        snprintf(out_name, PEN_PEM_NAME_BYTES, "%s%.*s", is_any ? "own" : "", length - is_any,
                 text + is_any);
        return true;
    }
    if (name->type != GEN_IPADD) return false;
    const int family = ASN1_STRING_length(name->d.iPAddress) == 4 ? AF_INET : AF_INET6;
    return inet_ntop(family, ASN1_STRING_get0_data(name->d.iPAddress), out_name,
                     PEN_PEM_NAME_BYTES) != NULL;
}

void pen_pem_find_name(const char *certificate, char out_name[PEN_PEM_NAME_BYTES]) {
    BIO *from = pem_open(certificate);
    X509 *leaf = pem_certificate(from);
    GENERAL_NAMES *names =
        leaf == NULL ? NULL : X509_get_ext_d2i(leaf, NID_subject_alt_name, NULL, NULL);
    bool is_found = false;
    out_name[0] = '\0';
    for (int i = 0; names != NULL && !is_found && i < sk_GENERAL_NAME_num(names); i++)
        is_found = pem_take_alternative(sk_GENERAL_NAME_value(names, i), out_name);
    if (leaf != NULL && !is_found) {
        (void)X509_NAME_get_text_by_NID(X509_get_subject_name(leaf), NID_commonName, out_name,
                                        PEN_PEM_NAME_BYTES);
    }
    GENERAL_NAMES_free(names);
    X509_free(leaf);
    BIO_free(from);
    ERR_clear_error();
}

pen_status pen_pem_read_all(const char *const paths[3], pen_arena *arena,
                            pen_pem_files *out_files) {
    pen_pem_files files;
    for (uint32_t i = 0; i < 3; i++) {
        if (paths[i] == NULL) {
            return pen_error(PEN_INVALID_INPUT,
                             "tls: '%s' is missing; ca, cert and key belong together",
                             pem_words[i].key);
        }
        files.paths[i] = paths[i];
        PEN_TRY(pen_pem_read(paths[i], (pen_pem_kind)i, arena, &files.texts[i]));
    }
    PEN_TRY(pen_pem_check(&files));
    if (out_files != NULL) *out_files = files;
    return PEN_OK;
}

const char *pen_openssl_version(void) {
    return OpenSSL_version(OPENSSL_VERSION_STRING);
}
