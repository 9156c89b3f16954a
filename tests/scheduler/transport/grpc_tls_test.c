// Who is let in, with certificates made here by openssl.
#include <stdio.h>

#include "tests/support/check.h"
#include "tests/support/scratch.h"
#include "tests/support/station.h"

// A file that tests/support/make_certificates.sh makes.
static const char *tls_path(const char *name) {
    static bool is_made;
    const char *path = scratch_path(name);
    if (!is_made) {
        char command[400];
        snprintf(command, sizeof command, "tests/support/make_certificates.sh %.*s",
                 (int)(strrchr(path, '/') - path), path);
        CHECK(system(command) == 0, "openssl made no certificates: %s", command);
        is_made = true;
    }
    return path;
}

static pen_transport_options tls_options(uint32_t peer, const char *ca, const char *cert,
                                         const char *key) {
    pen_transport_options options = {.self = {.job = "test", .peer = peer}};
    if (ca != NULL) options.tls.ca = tls_path(ca);
    if (cert != NULL) options.tls.cert = tls_path(cert);
    if (key != NULL) options.tls.key = tls_path(key);
    return options;
}

typedef struct tls_case {
    const char *name;
    const char *server[3], *caller[3]; // ca, cert, key
    const char *text;                  // of the caller's reason; NULL: the link comes up
    bool is_refused_by_server;         // who counts it
} tls_case;

static const tls_case tls_cases[] = {
    {"good", {"ca.pem", "cert.pem", "key.pem"}, {"ca.pem", "cert.pem", "key.pem"}, NULL, false},
    {"the caller's is of another authority",
     {"ca.pem", "cert.pem", "key.pem"},
     {"ca.pem", "other_cert.pem", "other_key.pem"},
     "refused our certificate",
     true},
    {"the caller's has expired",
     {"ca.pem", "cert.pem", "key.pem"},
     {"ca.pem", "expired.pem", "key.pem"},
     "refused our certificate",
     true},
    {"the caller speaks plaintext",
     {"ca.pem", "cert.pem", "key.pem"},
     {NULL, NULL, NULL},
     "it may ask for TLS",
     true},
    {"the server's is of another authority",
     {"ca.pem", "other_cert.pem", "other_key.pem"},
     {"ca.pem", "cert.pem", "key.pem"},
     "certificate is not of the authority 'tls: ca', or has expired",
     true},
    {"the server's has expired",
     {"ca.pem", "expired.pem", "key.pem"},
     {"ca.pem", "cert.pem", "key.pem"},
     "certificate is not of the authority 'tls: ca', or has expired",
     true},
    {"the server's is for another host",
     {"ca.pem", "elsewhere.pem", "key.pem"},
     {"ca.pem", "cert.pem", "key.pem"},
     "is for another host",
     false},
    {"the server speaks plaintext",
     {NULL, NULL, NULL},
     {"ca.pem", "cert.pem", "key.pem"},
     "speak without TLS",
     false},
};

static void tls_try(const tls_case *c) {
    station server, caller;
    char address[64];
    const pen_transport_options of_server =
        tls_options(1, c->server[0], c->server[1], c->server[2]);
    const pen_transport_options of_caller =
        tls_options(0, c->caller[0], c->caller[1], c->caller[2]);
    CHECK_OK(station_open(&server, "grpc", &of_server, "127.0.0.1:0", 0));
    CHECK_OK(station_open(&caller, "grpc", &of_caller, NULL, 0));
    snprintf(address, sizeof address, "127.0.0.1:%u", server.port);
    CHECK_OK(caller.kind->connect(caller.transport, 1, address, 8));
    if (c->text == NULL) {
        CHECK(station_wait_up(&caller, 1, 1), "%s", c->name);
        CHECK(strstr(server.introduction, "certificate 'localhost 127.0.0.1'") != NULL, "%s",
              server.introduction);
        CHECK_OK(caller.kind->send_message(caller.transport, 1, "secret", 6));
        CHECK(station_wait(&server, &server.message_count, 1), "%s", c->name);
    } else {
        CHECK(station_wait_down(&caller, 1, 1), "%s", c->name);
        CHECK(strstr(caller.down_text, c->text) != NULL, "%s: '%s'", c->name, caller.down_text);
        assert_int_equal(server.up_count[0], 0);
        assert_int_equal(caller.up_count[1], 0);
        const uint64_t refusals = server.kind->counters(server.transport).refusals;
        CHECK((refusals != 0) == c->is_refused_by_server, "%s: %d refusals", c->name,
              (int)refusals);
    }
    station_close(&caller);
    station_close(&server);
}

static void lets_in_who_has_a_certificate(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof tls_cases / sizeof *tls_cases; i++)
        tls_try(&tls_cases[i]);
}

static void wants_tls_beyond_this_machine(void **state) {
    (void)state;
    station s;
    pen_transport_options options = tls_options(1, NULL, NULL, NULL);
    CHECK_ERROR(station_open(&s, "grpc", &options, "0.0.0.0:0", 0), PEN_INVALID_INPUT,
                "there is no TLS");
    CHECK_OK(station_open(&s, "grpc", &options, NULL, 0));
    CHECK_ERROR(s.kind->connect(s.transport, 2, "192.0.2.1:4000", 1), PEN_INVALID_INPUT,
                "--insecure");
    CHECK_ERROR(s.kind->connect(s.transport, 2, "worker.example:4000", 1), PEN_INVALID_INPUT,
                "--insecure");
    CHECK_ERROR(s.kind->connect(s.transport, 2, "here", 1), PEN_INVALID_INPUT, "host:port");
    station_close(&s);
    options.is_insecure = true;
    CHECK_OK(station_open(&s, "grpc", &options, "0.0.0.0:0", 0));
    station_close(&s);
    options = tls_options(1, "ca.pem", "cert.pem", "key.pem");
    CHECK_OK(station_open(&s, "grpc", &options, "*:0", 0));
    station_close(&s);
}

static void names_files_that_are_wrong(void **state) {
    (void)state;
    station s;
    pen_transport_options options = tls_options(1, "ca.pem", "cert.pem", NULL);
    CHECK_ERROR(station_open(&s, "grpc", &options, NULL, 0), PEN_INVALID_INPUT, "'key' is missing");
    options = tls_options(1, "ca.pem", "cert.pem", "absent.pem");
    CHECK_ERROR(station_open(&s, "grpc", &options, NULL, 0), PEN_NOT_FOUND, "absent.pem");
    options = tls_options(1, "ca.pem", "cert.pem", "cert.pem");
    CHECK_ERROR(station_open(&s, "grpc", &options, NULL, 0), PEN_INVALID_INPUT,
                "no PEM block 'PRIVATE KEY");
    options = tls_options(1, "ca.pem", "cert.pem", "other_key.pem");
    CHECK_ERROR(station_open(&s, "grpc", &options, "127.0.0.1:0", 0), PEN_IO,
                "do not belong together");
}

PEN_TEST_MAIN(cmocka_unit_test(lets_in_who_has_a_certificate),
              cmocka_unit_test(wants_tls_beyond_this_machine),
              cmocka_unit_test(names_files_that_are_wrong))
