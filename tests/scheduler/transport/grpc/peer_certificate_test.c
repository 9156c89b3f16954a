#include "scheduler/transport/grpc/peer_certificate.h"

#include <stdlib.h>

#include "base/system/file.h"
#include "tests/support/check.h"
#include "tests/support/scratch.h"

// tests/support/make_certificates.sh makes them once.
static const char *of(const char *name) {
    static bool is_made;
    char command[512], path[64];
    if (!is_made) {
        snprintf(command, sizeof command, "sh tests/support/make_certificates.sh %s",
                 scratch_path("tls"));
        (void)scratch_file("made", "", 0);
        assert_int_equal(system(command), 0); // NOLINT(bugprone-command-processor,cert-env33-c)
        is_made = true;
    }
    snprintf(path, sizeof path, "tls/%s", name);
    return scratch_path(path);
}

static const char *text_of(pen_arena *arena, const char *name) {
    const char *text;
    size_t length;
    CHECK_OK(pen_file_read(of(name), 1 << 20, arena, &text, &length));
    return text;
}

static void replace(pen_arena *arena, const char *name, const char *with) {
    CHECK_OK(pen_file_write_text(of(name), text_of(arena, with)));
}

static void says_which_it_is(void **unused) {
    (void)unused;
    pen_arena *arena = check_arena();
    pen_peer_certificate about;
    assert_true(pen_peer_certificate_describe(text_of(arena, "cert.pem"), &about));
    assert_int_equal(strlen(about.fingerprint), 64);
    // of 20 random bytes, of which the first ones may be 0 and are left out
    CHECK(strlen(about.serial) % 2 == 0 && strlen(about.serial) <= 40, "%s", about.serial);
    char path[128];
    snprintf(path, sizeof path, "%s.pem", about.serial); // as the authority filed it
    assert_string_equal(text_of(arena, path), text_of(arena, "cert.pem"));
    assert_false(pen_peer_certificate_describe("nothing", &about));
    assert_false(pen_peer_certificate_describe(text_of(arena, "key.pem"), &about));
    pen_arena_destroy(arena);
}

static void refuses_what_was_revoked(void **unused) {
    (void)unused;
    static const struct {
        const char *list, *certificate, *text; // NULL: it is taken
        const char *authorities;               // NULL: ca.pem
    } cases[] = {
        {"ca_crl.pem", "cert.pem", NULL, NULL},
        {"ca_crl.pem", "revoked.pem", "is revoked ('tls: crl')", NULL},
        {"none_crl.pem", "revoked.pem", NULL, NULL},
        {"old_crl.pem", "cert.pem", "old_crl.pem' ('tls: crl') has expired", NULL},
        {"other_ca_crl.pem", "cert.pem", "has no list of the authority that signed", NULL},
        {"ca_crl.pem", "other_cert.pem", "does not hold", NULL},
        {"ca_crl.pem", "key.pem", "no certificate that can be read", NULL},
        // with an authority between: each needs a list, but not one that `ca` names itself
        {"both_crl.pem", "between_chain.pem", NULL, NULL},
        {"between_crl.pem", "between_chain.pem", "has no list of the authority that signed", NULL},
        {"ca_crl.pem", "between_chain.pem", "has no list of the authority that signed", NULL},
        {"between_crl.pem", "between_cert.pem", NULL, "between.pem"},
        {"between_crl.pem", "between_chain.pem", NULL, "between.pem"},
        {"both_crl.pem", "between_cert.pem", NULL, "between.pem"},
        {"both_crl.pem", "between_revoked.pem", "is revoked", "between.pem"},
        {"ca_crl.pem", "between_cert.pem", "has no list of the authority", "between.pem"},
    };
    pen_arena *arena = check_arena();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        pen_revocations *revocations;
        const char *authorities = cases[i].authorities;
        CHECK_OK(pen_revocations_open(
            of(cases[i].list), of(authorities == NULL ? "ca.pem" : authorities), &revocations));
        const pen_status status =
            pen_revocations_check(revocations, text_of(arena, cases[i].certificate));
        if (cases[i].text == NULL) {
            CHECK_OK(status);
        } else {
            CHECK_ERROR(status, PEN_INVALID_INPUT, cases[i].text);
        }
        pen_revocations_close(revocations);
    }
    pen_revocations *revocations;
    CHECK_ERROR(pen_revocations_open(of("cert.pem"), of("ca.pem"), &revocations), PEN_INVALID_INPUT,
                "holds no list of revoked certificates");
    CHECK_ERROR(pen_revocations_open(of("absent.pem"), of("ca.pem"), &revocations), PEN_NOT_FOUND,
                "absent.pem");
    pen_arena_destroy(arena);
}

static void reads_lists_that_changed(void **unused) {
    (void)unused;
    pen_arena *arena = check_arena();
    pen_revocations *revocations;
    const char *revoked = text_of(arena, "revoked.pem");
    replace(arena, "list.pem", "none_crl.pem");
    CHECK_OK(pen_revocations_open(of("list.pem"), of("ca.pem"), &revocations));
    CHECK_OK(pen_revocations_check(revocations, revoked));
    replace(arena, "list.pem", "ca_crl.pem");
    CHECK_ERROR(pen_revocations_check(revocations, revoked), PEN_INVALID_INPUT, "is revoked");
    // one that is half written, or away, leaves that in force
    CHECK_OK(pen_file_write_text(of("list.pem"), "-----BEGIN X509 CRL-----\nMII"));
    CHECK_ERROR(pen_revocations_check(revocations, revoked), PEN_INVALID_INPUT, "is revoked");
    assert_int_equal(remove(of("list.pem")), 0);
    CHECK_ERROR(pen_revocations_check(revocations, revoked), PEN_INVALID_INPUT, "is revoked");
    replace(arena, "list.pem", "none_crl.pem");
    CHECK_OK(pen_revocations_check(revocations, revoked));
    pen_revocations_close(revocations);
    pen_arena_destroy(arena);
}

PEN_TEST_MAIN(cmocka_unit_test(says_which_it_is), cmocka_unit_test(refuses_what_was_revoked),
              cmocka_unit_test(reads_lists_that_changed))
