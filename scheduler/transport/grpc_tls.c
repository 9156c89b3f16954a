#include "scheduler/transport/grpc_tls.h"

#include <grpc/grpc_security.h>
#include <grpc/grpc_security_constants.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/file.h"
#include "scheduler/transport/wire_format.h"

#define TLS_FILE_BYTES_LIMIT (1u << 20)

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

// A PEM file whose text has a block of that kind: gRPC itself says only that something is wrong.
static pen_status tls_read(const char *path, const char *what, const char *block, pen_arena *arena,
                           const char **out_text) {
    size_t length;
    if (path == NULL) {
        return pen_error(PEN_INVALID_INPUT,
                         "tls: '%s' is missing; ca, cert and key belong "
                         "together",
                         what);
    }
    PEN_TRY(
        pen_status_add_context(pen_file_read(path, TLS_FILE_BYTES_LIMIT, arena, out_text, &length),
                               "while reading the file 'tls: %s'", what));
    if (strstr(*out_text, "-----BEGIN ") != NULL && strstr(*out_text, block) != NULL) return PEN_OK;
    return pen_error(PEN_INVALID_INPUT, "%s: tls: %s: the file holds no PEM block '%s'", path, what,
                     block);
}

static pen_status tls_create(const pen_transport_tls *tls, pen_arena *arena,
                             pen_grpc_credentials *out) {
    const char *ca;
    grpc_ssl_pem_key_cert_pair pair;
    PEN_TRY(tls_read(tls->ca, "ca", "CERTIFICATE-----", arena, &ca));
    PEN_TRY(tls_read(tls->cert, "cert", "CERTIFICATE-----", arena, &pair.cert_chain));
    PEN_TRY(tls_read(tls->key, "key", "PRIVATE KEY-----", arena, &pair.private_key));
    out->of_channels = grpc_ssl_credentials_create_ex(ca, &pair, NULL, NULL);
    grpc_ssl_server_certificate_config *config =
        grpc_ssl_server_certificate_config_create(ca, &pair, 1);
    if (config != NULL) {
        // takes the configuration
        out->of_servers = grpc_ssl_server_credentials_create_with_options(
            grpc_ssl_server_credentials_create_options_using_config(
                GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY, config));
    }
    if (out->of_channels != NULL && out->of_servers != NULL) return PEN_OK;
    return pen_error(PEN_INVALID_INPUT, "tls: gRPC does not take '%s', '%s' and '%s'", tls->ca,
                     tls->cert, tls->key);
}

pen_status pen_grpc_credentials_create(const pen_transport_tls *tls,
                                       pen_grpc_credentials *out_credentials) {
    *out_credentials = (pen_grpc_credentials){0};
    if (!pen_grpc_tls_is_used(tls)) {
        out_credentials->of_channels = grpc_insecure_credentials_create();
        out_credentials->of_servers = grpc_insecure_server_credentials_create();
        return PEN_OK;
    }
    pen_arena *arena;
    PEN_TRY(pen_arena_create(&arena));
    const pen_status status = tls_create(tls, arena, out_credentials);
    if (status != PEN_OK) pen_grpc_credentials_destroy(out_credentials);
    pen_arena_destroy(arena);
    return status;
}

void pen_grpc_credentials_destroy(pen_grpc_credentials *credentials) {
    if (credentials->of_channels != NULL)
        grpc_channel_credentials_release(credentials->of_channels);
    if (credentials->of_servers != NULL) grpc_server_credentials_release(credentials->of_servers);
    *credentials = (pen_grpc_credentials){0};
}

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

pen_status pen_grpc_tls_check_role(grpc_call *call, const pen_transport_options *options,
                                   uint32_t peer) {
    const bool is_coordinator = peer == 0;
    const pen_transport_names *allowed =
        is_coordinator ? &options->coordinators : &options->workers;
    static const char *const properties[] = {GRPC_X509_SAN_PROPERTY_NAME,
                                             GRPC_X509_CN_PROPERTY_NAME};
    char found[PEN_WIRE_TEXT_LIMIT / 2];
    size_t used = 0;
    bool is_listed = false;
    if (allowed->count == 0) return PEN_OK;
    grpc_auth_context *context = grpc_call_auth_context(call);
    found[0] = '\0';
    for (size_t i = 0; context != NULL && i < 2; i++) {
        grpc_auth_property_iterator names =
            grpc_auth_context_find_properties_by_name(context, properties[i]);
        const grpc_auth_property *name;
        while ((name = grpc_auth_property_iterator_next(&names)) != NULL) {
            is_listed = is_listed || tls_is_listed(allowed, name);
            const int length = (int)(name->value_length < 100 ? name->value_length : 100);
            const int more = snprintf(found + used, sizeof found - used, "%s%.*s",
                                      used == 0 ? "" : ", ", length, name->value);
            if (more > 0 && (size_t)more < sizeof found - used) used += (size_t)more;
        }
    }
    if (context != NULL) grpc_auth_context_release(context);
    if (is_listed) return PEN_OK;
    return pen_error(
        PEN_INVALID_INPUT,
        "its certificate is for %s, which may not be a %s here ('tls: %s', --allow-%s)",
        used == 0 ? "nobody" : found, is_coordinator ? "coordinator" : "worker",
        is_coordinator ? "coordinators" : "workers", is_coordinator ? "coordinator" : "worker");
}
