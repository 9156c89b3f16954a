// Who is let in, with certificates made here by openssl.
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/clock.h"
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
    {"the caller's is signed by itself",
     {"ca.pem", "cert.pem", "key.pem"},
     {"ca.pem", "self_signed.pem", "key.pem"},
     "refused our certificate",
     true},
    {"the caller's is only to be called",
     {"ca.pem", "cert.pem", "key.pem"},
     {"ca.pem", "server_only.pem", "key.pem"},
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
        // who goes away during the handshake, not liking what it sees, may be counted or not
        CHECK(refusals != 0 || !c->is_refused_by_server, "%s: not counted", c->name);
    }
    station_close(&caller);
    station_close(&server);
}

// A caller that shows none: any TLS client.
static void wants_a_certificate(void **state) {
    (void)state;
    station server;
    char command[600];
    const pen_transport_options options = tls_options(1, "ca.pem", "cert.pem", "key.pem");
    CHECK_OK(station_open(&server, "grpc", &options, "127.0.0.1:0", 0));
    const char *log = scratch_path("s_client.log");
    snprintf(command, sizeof command,
             "sleep 1 | openssl s_client -connect 127.0.0.1:%u -CAfile %s -alpn h2 >%s 2>&1",
             server.port, options.tls.ca, log);
    (void)!system(command); // in TLS 1.3 the caller's handshake is over before the server's
    assert_int_equal(server.kind->counters(server.transport).refusals, 1);
    assert_int_equal(server.up_count[0], 0);
    station_close(&server);
}

static int tls_open_socket(uint16_t port) {
    const struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const int descriptor = socket(AF_INET, SOCK_STREAM, 0);
    CHECK(connect(descriptor, (const struct sockaddr *)&address, sizeof address) == 0, "connect");
    return descriptor;
}

// Handshakes that are begun and not gone on with are given up, counted and shown; others come
// through meanwhile.
static void half_open_handshakes_are_shed(void **state) {
    (void)state;
    enum { COUNT = 50 };
    station server, caller;
    int sockets[COUNT];
    const pen_transport_options of_server = tls_options(1, "ca.pem", "cert.pem", "key.pem");
    const pen_transport_options of_caller = tls_options(0, "ca.pem", "cert.pem", "key.pem");
    CHECK_OK(station_open(&server, "grpc", &of_server, "127.0.0.1:0", 0));
    CHECK_OK(station_open(&caller, "grpc", &of_caller, NULL, 0));
    for (int i = 0; i < COUNT; i++)
        sockets[i] = tls_open_socket(server.port);
    assert_true(station_link(&caller, &server, 0, 1));
    const double start = pen_clock_seconds();
    for (int i = 0; i < COUNT; i++) {
        const struct timeval wait = {.tv_sec = 30};
        uint8_t byte;
        (void)setsockopt(sockets[i], SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof wait);
        const ssize_t count = recv(sockets[i], &byte, 1, 0);
        CHECK(count == 0 || (count < 0 && errno == ECONNRESET), "connection %d is still there", i);
        close(sockets[i]);
    }
    const double seconds = pen_clock_seconds() - start;
    CHECK(seconds > 2 && seconds < 30, "%.1f s", seconds);
    uint64_t refusals = 0;
    for (uint32_t i = 0; i < 400 && refusals < COUNT; i++) { // gRPC tells afterwards
        refusals = server.kind->counters(server.transport).refusals;
        usleep(30000);
    }
    CHECK(refusals >= COUNT, "%d were counted", (int)refusals);
    station_close(&caller);
    station_close(&server);
}

// ---- names and roles

typedef struct role_case {
    const char *name;
    uint32_t peer;                      // of the caller
    const char *cert;                   // of the caller
    const char *coordinators, *workers; // that the server takes; NULL: any
    const char *servers;                // that the caller takes
    const char *text;                   // NULL: the link comes up
} role_case;

static const role_case role_cases[] = {
    {"a coordinator by its name", 0, "coordinator.pem", "coordinator.example", "nobody", NULL,
     NULL},
    {"by its common name", 0, "cert.pem", "worker", "nobody", NULL,
     "its certificate is for localhost, 127.0.0.1, which may not be a coordinator here"},
    {"a coordinator by its URI", 0, "spiffe.pem", "spiffe://cluster.example/ns/a/sa/coordinator",
     "nobody", NULL, NULL},
    {"part of a URI", 0, "spiffe.pem", "spiffe://cluster.example/ns/a", NULL, NULL, "may not be"},
    {"another name", 0, "cert.pem", "coordinator.example", NULL, NULL,
     "its certificate is for localhost, 127.0.0.1, which may not be a coordinator here"},
    {"part of a name", 0, "coordinator.pem", "coordinator.exampl", NULL, NULL, "may not be"},
    {"a worker that calls itself coordinator", 0, "cert.pem", "coordinator.example", "localhost",
     NULL, "may not be a coordinator"},
    {"a worker", 2, "cert.pem", "coordinator.example", "localhost", NULL, NULL},
    {"a coordinator that calls itself worker", 2, "coordinator.pem", "coordinator.example",
     "there.example", NULL, "may not be a worker"},
    {"who is called has another name", 0, "cert.pem", NULL, NULL, "there.example",
     "may not be a worker"},
    {"who is called has the name", 0, "cert.pem", NULL, NULL, "127.0.0.1", NULL},
};

static pen_transport_names names_of(const char *const *name) {
    return (pen_transport_names){name, *name != NULL};
}

static void takes_names_for_their_roles(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof role_cases / sizeof *role_cases; i++) {
        const role_case *c = &role_cases[i];
        station server, caller;
        char address[64];
        pen_transport_options options = tls_options(5, "ca.pem", "cert.pem", "key.pem");
        options.tls.coordinators = names_of(&c->coordinators);
        options.tls.workers = names_of(&c->workers);
        CHECK_OK(station_open(&server, "grpc", &options, "127.0.0.1:0", 0));
        options = tls_options(c->peer, "ca.pem", c->cert, "key.pem");
        options.tls.workers = names_of(&c->servers);
        CHECK_OK(station_open(&caller, "grpc", &options, NULL, 0));
        snprintf(address, sizeof address, "127.0.0.1:%u", server.port);
        CHECK_OK(caller.kind->connect(caller.transport, 5, address, 8));
        if (c->text == NULL) {
            CHECK(station_wait_up(&caller, 5, 1), "%s: %s", c->name, caller.down_text);
        } else {
            CHECK(station_wait_down(&caller, 5, 1), "%s", c->name);
            CHECK(strstr(caller.down_text, c->text) != NULL, "%s: '%s'", c->name, caller.down_text);
            assert_int_equal(caller.down_code, PEN_INVALID_INPUT);
            // once: it is not tried again
            const uint64_t refusals = server.kind->counters(server.transport).refusals;
            CHECK(refusals == (c->servers == NULL), "%s", c->name);
            assert_int_equal(caller.up_count[5], 0);
        }
        station_close(&caller);
        station_close(&server);
    }
    station s;
    static const char *const name = "a";
    pen_transport_options options = tls_options(1, NULL, NULL, NULL);
    options.tls.coordinators = (pen_transport_names){&name, 1};
    CHECK_ERROR(station_open(&s, "grpc", &options, NULL, 0), PEN_INVALID_INPUT, "no certificates");
}

// ---- files that change

static void replace(const char *name, const char *by) {
    char command[900];
    snprintf(command, sizeof command, "cp %s %s.new && mv %s.new %s", tls_path(by), name, name,
             name);
    CHECK(system(command) == 0, "%s", command);
}

static bool tls_link(station *server, uint32_t peer, const char *ca, const char *cert,
                     const char *key, station *out_caller) {
    char address[64];
    const pen_transport_options options = tls_options(peer, ca, cert, key);
    CHECK_OK(station_open(out_caller, "grpc", &options, NULL, 0));
    snprintf(address, sizeof address, "127.0.0.1:%u", server->port);
    CHECK_OK(out_caller->kind->connect(out_caller->transport, 9, address, 8));
    if (peer == 0) return station_wait_up(out_caller, 9, 1);
    return !station_wait_down(out_caller, 9, 1) || out_caller->up_count[9] != 0;
}

static void certificates_change_while_it_runs(void **state) {
    (void)state;
    station server, first, second, third;
    char ca[300], cert[300], key[300], address[64];
    snprintf(ca, sizeof ca, "%s", tls_path("live_ca.pem"));
    snprintf(cert, sizeof cert, "%s", tls_path("live_cert.pem"));
    snprintf(key, sizeof key, "%s", tls_path("live_key.pem"));
    replace(ca, "ca.pem");
    replace(cert, "cert.pem");
    replace(key, "key.pem");
    pen_transport_options live = {.self = {.job = "test", .peer = 9},
                                  .tls = {.ca = ca, .cert = cert, .key = key}};
    CHECK_OK(station_open(&server, "grpc", &live, "127.0.0.1:0", 0));
    assert_true(tls_link(&server, 0, "ca.pem", "cert.pem", "key.pem", &first));

    replace(key, "other_key.pem"); // half of it: what was read before still serves
    assert_true(tls_link(&server, 0, "ca.pem", "cert.pem", "key.pem", &second));
    station_close(&second);
    assert_true(tls_link(&server, 1, "other_ca.pem", "other_cert.pem", "other_key.pem", &second) ==
                false);
    station_close(&second);
    station_close(&first);
    assert_true(tls_link(&server, 0, "ca.pem", "cert.pem", "key.pem", &first));

    replace(ca, "other_ca.pem");
    replace(cert, "other_cert.pem");
    assert_false(tls_link(&server, 1, "ca.pem", "cert.pem", "key.pem", &second));
    live.self.peer = 2; // a caller with the same files
    CHECK_OK(station_open(&third, "grpc", &live, NULL, 0));
    snprintf(address, sizeof address, "127.0.0.1:%u", server.port);
    CHECK_OK(third.kind->connect(third.transport, 9, address, 8));
    assert_true(station_wait_up(&third, 9, 1));
    const uint64_t count = server.message_count; // links that there are stay
    CHECK_OK(first.kind->send_message(first.transport, 9, "still here", 10));
    assert_true(station_wait(&server, &server.message_count, count + 1));
    assert_int_equal(first.down_count[9], 0);

    third.kind->disconnect(third.transport, 9);
    assert_true(station_wait_down(&third, 9, 1));
    replace(ca, "ca.pem");
    replace(cert, "cert.pem");
    replace(key, "key.pem");
    CHECK_OK(third.kind->connect(third.transport, 9, address, 8));
    assert_true(station_wait_up(&third, 9, 2)); // both ends have read them again
    station_close(&third);
    station_close(&second);
    station_close(&first);
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
                "tls: key: the file holds no private key in PEM form");
    options = tls_options(1, "ca.pem", "cert.pem", "other_key.pem");
    CHECK_ERROR(station_open(&s, "grpc", &options, NULL, 0), PEN_INVALID_INPUT,
                "it is not the key of the certificate");
}

PEN_TEST_MAIN(cmocka_unit_test(lets_in_who_has_a_certificate),
              cmocka_unit_test(wants_a_certificate),
              cmocka_unit_test(half_open_handshakes_are_shed),
              cmocka_unit_test(takes_names_for_their_roles),
              cmocka_unit_test(certificates_change_while_it_runs),
              cmocka_unit_test(wants_tls_beyond_this_machine),
              cmocka_unit_test(names_files_that_are_wrong))
