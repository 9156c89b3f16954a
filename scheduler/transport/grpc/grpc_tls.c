#include "scheduler/transport/grpc/grpc_tls.h"

#include <grpc/grpc_security.h>
#include <grpc/grpc_security_constants.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/arena.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/text.h"
#include "base/thread.h"
#include "scheduler/transport/grpc/pem_file.h"
#include "scheduler/transport/wire_format.h"

bool pen_grpc_tls_is_used(const pen_transport_tls *tls) {
    return tls->ca != NULL || tls->cert != NULL || tls->key != NULL;
}

pen_status pen_grpc_tls_check_address(const pen_transport_options *options,
                                      const pen_address *address) {
    if (pen_grpc_tls_is_used(&options->tls) || options->is_insecure) return PEN_OK;
    if (pen_address_is_loopback(address)) return PEN_OK;
    return pen_error(PEN_INVALID_INPUT,
                     "address '%s' can be reached from other machines, and there is no TLS: give "
                     "tls: {ca, cert, key}, or say --insecure",
                     address->text);
}

// ---- files that change

// False: it is not there.
static bool tls_get_stamp(const char *path, pen_grpc_stamp *out) {
    struct stat about;
    if (stat(path, &about) != 0) return false;
    *out = (pen_grpc_stamp){about.st_mtim, (uint64_t)about.st_size, about.st_ino};
    return true;
}

static bool tls_is_same(const pen_grpc_stamp *a, const pen_grpc_stamp *b) {
    return a->changed.tv_sec == b->changed.tv_sec && a->changed.tv_nsec == b->changed.tv_nsec &&
           a->bytes == b->bytes && a->node == b->node;
}

// Whether the files have changed since they were last looked at. One that is not there is about to
// be written.
static bool tls_has_changed(const pen_grpc_credentials *credentials, pen_grpc_stamp stamps[3]) {
    bool has_changed = false;
    for (uint32_t i = 0; i < 3; i++) {
        pen_grpc_stamp now;
        if (!tls_get_stamp(credentials->paths[i], &now)) return false;
        has_changed = has_changed || !tls_is_same(&now, &stamps[i]);
        stamps[i] = now;
    }
    return has_changed;
}

static pen_status tls_read(const pen_grpc_credentials *credentials, pen_arena *arena,
                           pen_pem_files *out_files) {
    const char *const paths[3] = {credentials->paths[0], credentials->paths[1],
                                  credentials->paths[2]};
    return pen_pem_read_all(paths, arena, out_files);
}

// What was read once, and is wrong now: said once, as the stamps are already the new ones.
static void tls_complain(pen_status take_status) {
    pen_log(PEN_LOG_WARNING, "%s; what was read before stays", pen_status_message(take_status));
    pen_status_ignore(take_status, "the files as they were still serve");
}

static grpc_ssl_pem_key_cert_pair tls_pair(const pen_pem_files *files) {
    return (grpc_ssl_pem_key_cert_pair){.private_key = files->texts[PEN_PEM_KEY],
                                        .cert_chain = files->texts[PEN_PEM_CERTIFICATE]};
}

// Reads the files anew; credentials that gRPC does not take leave those before them in force.
static pen_status tls_make_channel(pen_grpc_credentials *credentials) {
    pen_pem_files files;
    pen_arena *arena;
    PEN_TRY(pen_arena_create(&arena));
    pen_status status = tls_read(credentials, arena, &files);
    if (status == PEN_OK) {
        grpc_ssl_pem_key_cert_pair pair = tls_pair(&files);
        grpc_channel_credentials *made =
            grpc_ssl_credentials_create_ex(files.texts[PEN_PEM_AUTHORITIES], &pair, NULL, NULL);
        pen_pem_warn(&files);
        if (made != NULL && credentials->of_channels != NULL) {
            grpc_channel_credentials_release(credentials->of_channels);
        }
        if (made != NULL) credentials->of_channels = made;
        if (made != NULL) {
            pen_pem_find_name(files.texts[PEN_PEM_CERTIFICATE], credentials->own_name);
        }
    }
    pen_arena_destroy(arena);
    return status;
}

grpc_channel_credentials *pen_grpc_credentials_of_channels(pen_grpc_credentials *credentials) {
    if (credentials->paths[0] == NULL) return credentials->of_channels;
    if (tls_has_changed(credentials, credentials->channel_stamps)) {
        const pen_status status = tls_make_channel(credentials);
        if (status != PEN_OK) tls_complain(status);
    }
    return credentials->of_channels;
}

// gRPC asks with a lock of its own for each server, which this does not lean on.
static bool tls_have_servers_changed(pen_grpc_credentials *credentials) {
    static pen_mutex lock = {PTHREAD_MUTEX_INITIALIZER};
    pen_mutex_lock(&lock);
    const bool have_changed = tls_has_changed(credentials, credentials->server_stamps);
    pen_mutex_unlock(&lock);
    return have_changed;
}

static grpc_ssl_certificate_config_reload_status
// gRPC asks before each handshake. Files that changed but cannot be read are complained of, and the
// old ones stay in force: a certificate half written must not close the door.
tls_fetch(void *context, grpc_ssl_server_certificate_config **out_config) {
    pen_grpc_credentials *credentials = context;
    pen_pem_files files;
    pen_arena *arena;
    if (!tls_have_servers_changed(credentials)) {
        return GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_UNCHANGED;
    }
    *out_config = NULL;
    pen_status status = pen_arena_create(&arena);
    if (status == PEN_OK) {
        status = tls_read(credentials, arena, &files);
        if (status == PEN_OK) {
            grpc_ssl_pem_key_cert_pair pair = tls_pair(&files);
            *out_config = grpc_ssl_server_certificate_config_create(
                files.texts[PEN_PEM_AUTHORITIES], &pair, 1);
        }
        pen_arena_destroy(arena);
    }
    if (status == PEN_OK) {
        return *out_config != NULL ? GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_NEW
                                   : GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_UNCHANGED;
    }
    tls_complain(status);
    return GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_UNCHANGED;
}

// ---- credentials

static pen_status tls_create(const pen_transport_tls *tls, pen_grpc_credentials *out) {
    const char *const paths[3] = {tls->ca, tls->cert, tls->key};
    for (uint32_t i = 0; i < 3; i++) {
        if (paths[i] == NULL) continue;
        const size_t size = strlen(paths[i]) + 1;
        out->paths[i] = pen_memory_allocate(size, 1);
        if (out->paths[i] == NULL) return pen_error_out_of_memory();
        memcpy(out->paths[i], paths[i], size);
    }
    PEN_TRY(tls_make_channel(out)); // reads them, and says what is wrong
    if (tls->crl != NULL) PEN_TRY(pen_revocations_open(tls->crl, tls->ca, &out->revocations));
    (void)tls_has_changed(out, out->channel_stamps);
    out->of_servers = grpc_ssl_server_credentials_create_with_options(
        grpc_ssl_server_credentials_create_options_using_config_fetcher(
            GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY, tls_fetch, out));
    if (out->of_channels != NULL && out->of_servers != NULL) return PEN_OK;
    return pen_error(PEN_INVALID_INPUT, "tls: gRPC does not take '%s', '%s' and '%s'", tls->ca,
                     tls->cert, tls->key);
}

pen_status pen_grpc_credentials_create(const pen_transport_tls *tls,
                                       pen_grpc_credentials *out_credentials) {
    *out_credentials = (pen_grpc_credentials){0};
    if (!pen_grpc_tls_is_used(tls)) {
        if (tls->coordinators.count != 0 || tls->workers.count != 0 || tls->crl != NULL) {
            return pen_error(PEN_INVALID_INPUT,
                             "tls: names of coordinators or workers, or lists of revoked "
                             "certificates, are given, but no certificates");
        }
        out_credentials->of_channels = grpc_insecure_credentials_create();
        out_credentials->of_servers = grpc_insecure_server_credentials_create();
        return PEN_OK;
    }
    const pen_status status = tls_create(tls, out_credentials);
    if (status != PEN_OK) pen_grpc_credentials_destroy(out_credentials);
    return status;
}

void pen_grpc_credentials_destroy(pen_grpc_credentials *credentials) {
    if (credentials->of_channels != NULL)
        grpc_channel_credentials_release(credentials->of_channels);
    if (credentials->of_servers != NULL) grpc_server_credentials_release(credentials->of_servers);
    pen_revocations_close(credentials->revocations);
    for (uint32_t i = 0; i < 3; i++)
        pen_memory_free(credentials->paths[i]);
    *credentials = (pen_grpc_credentials){0};
}

// Names that do not fit are left out. An authority signs what it is asked to: they are cleaned.
bool pen_grpc_tls_names(grpc_call *call, char *out_names, size_t size) {
    size_t used = 0;
    out_names[0] = '\0';
    grpc_auth_context *context = grpc_call_auth_context(call);
    if (context == NULL) return false;
    const bool is_known = grpc_auth_context_peer_is_authenticated(context) != 0;
    grpc_auth_property_iterator names =
        grpc_auth_context_find_properties_by_name(context, GRPC_X509_SAN_PROPERTY_NAME);
    const grpc_auth_property *name;
    while (is_known && (name = grpc_auth_property_iterator_next(&names)) != NULL) {
        const int length = (int)(name->value_length < 200 ? name->value_length : 200);
        const int more = snprintf(out_names + used, size - used, "%s%.*s", used == 0 ? "" : " ",
                                  length, name->value);
        if (more < 0 || (size_t)more >= size - used) break;
        used += (size_t)more;
    }
    grpc_auth_context_release(context);
    (void)pen_text_clean(out_names, false);
    return is_known;
}

static bool tls_is_listed(const pen_transport_names *allowed, const grpc_auth_property *name) {
    for (size_t i = 0; i < allowed->count; i++) {
        if (strlen(allowed->names[i]) == name->value_length &&
            memcmp(allowed->names[i], name->value, name->value_length) == 0) {
            return true;
        }
    }
    return false;
}

// The authority says "one of ours"; whether it may be a coordinator or a worker is said by the
// names in its certificate: those of subjectAltName (hosts, addresses, URIs like spiffe://…). The
// common name is no name of anybody's: authorities do not check it.
pen_status pen_grpc_tls_check_role(grpc_call *call, const pen_transport_tls *tls, uint32_t peer) {
    const bool is_coordinator = peer == 0;
    const pen_transport_names *allowed = is_coordinator ? &tls->coordinators : &tls->workers;
    char found[PEN_WIRE_TEXT_LIMIT / 2];
    size_t used = 0;
    bool is_listed = false;
    if (allowed->count == 0) return PEN_OK;
    grpc_auth_context *context = grpc_call_auth_context(call);
    found[0] = '\0';
    if (context != NULL) {
        grpc_auth_property_iterator names =
            grpc_auth_context_find_properties_by_name(context, GRPC_X509_SAN_PROPERTY_NAME);
        const grpc_auth_property *name;
        while ((name = grpc_auth_property_iterator_next(&names)) != NULL) {
            is_listed = is_listed || tls_is_listed(allowed, name);
            const int length = (int)(name->value_length < 100 ? name->value_length : 100);
            const int more = snprintf(found + used, sizeof found - used, "%s%.*s",
                                      used == 0 ? "" : ", ", length, name->value);
            if (more > 0 && (size_t)more < sizeof found - used) used += (size_t)more;
        }
        grpc_auth_context_release(context);
    }
    if (is_listed) return PEN_OK;
    (void)pen_text_clean(found, false);
    return pen_error(
        PEN_INVALID_INPUT,
        "its certificate is for %s, which may not be a %s here ('tls: %s', --allow-%s)",
        used == 0 ? "nobody" : found, is_coordinator ? "coordinator" : "worker",
        is_coordinator ? "coordinators" : "workers", is_coordinator ? "coordinator" : "worker");
}

// ---- certificates that were shown

static void tls_add_property(grpc_auth_context *context, const char *name, pen_text *text) {
    grpc_auth_property_iterator found = grpc_auth_context_find_properties_by_name(context, name);
    const grpc_auth_property *one;
    while ((one = grpc_auth_property_iterator_next(&found)) != NULL) {
        pen_text_append(text, one->value, one->value_length);
        pen_text_add(text, "\n");
    }
}

// A called end has its caller's own certificate apart from those that lead to an authority.
pen_status pen_grpc_tls_chain(grpc_call *call, pen_arena *arena, const char **out_pem) {
    grpc_auth_context *context = grpc_call_auth_context(call);
    pen_text text;
    if (context == NULL) return pen_error(PEN_NOT_FOUND, "it showed no certificate");
    pen_text_init(&text, arena);
    tls_add_property(context, GRPC_X509_PEM_CERT_PROPERTY_NAME, &text);
    tls_add_property(context, GRPC_X509_PEM_CERT_CHAIN_PROPERTY_NAME, &text);
    grpc_auth_context_release(context);
    return pen_text_finish(&text, out_pem);
}

// The handshake does not look at lists: whoever was let in is turned away here, with a word.
pen_status pen_grpc_tls_check_revoked(pen_grpc_credentials *credentials, grpc_call *call) {
    pen_arena *arena;
    const char *pem = "";
    if (credentials->revocations == NULL) return PEN_OK;
    PEN_TRY(pen_arena_create(&arena));
    pen_status status = pen_grpc_tls_chain(call, arena, &pem);
    if (status == PEN_OK) status = pen_revocations_check(credentials->revocations, pem);
    pen_arena_destroy(arena);
    return status;
}
