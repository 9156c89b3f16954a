#include "scheduler/transport/grpc/failure_words.h"

#include <stddef.h>
#include <string.h>

// The first that fits counts.
static const struct failure_phrase {
    const char *text;
    const char *words;
    bool needs_tls; // else it is not that
} failure_phrases[] = {
    {"Connection refused", "connection refused", false},
    {"No route to host", "no route to the host", false},
    {"Network is unreachable", "the network is unreachable", false},
    {"Connection timed out", "the connection timed out", false},
    {"connect() timed out", "the connection timed out", false},
    {"FD shutdown", "the connection timed out", false},
    {"Domain name not found", "the host's name is not known", false},
    {"DNS resolution failed", "the host's name cannot be looked up", false},
    {"keepalive watchdog timeout", "the peer did not answer for some seconds", false},
    {"WRONG_VERSION_NUMBER", "TLS: the peer seems to speak without TLS", true},
    {"wrong version number", "TLS: the peer seems to speak without TLS", true},
    {"CERTIFICATE_VERIFY_FAILED",
     "TLS: the peer's certificate is not of the authority 'tls: ca', or has expired", true},
    {"certificate verify failed",
     "TLS: the peer's certificate is not of the authority 'tls: ca', or has expired", true},
    {"not in peer certificate", PEN_FAILURE_OTHER_HOST, true},
    {"tcp handshaker shutdown", "the host does not answer", false},
    {"Handshake read failed", "TLS: the peer did not finish the handshake; its log may say why",
     true},
    {"handshake", "TLS: the handshake failed", true},
    {"Handshake", "TLS: the handshake failed", true},
    {"Socket closed",
     "the peer closed the connection; with TLS, its log says whether it refused "
     "our certificate",
     true},
    {"Connection reset by peer",
     "the peer reset the connection; with TLS, its log says whether it "
     "refused our certificate",
     true},
    {"Socket closed", PEN_FAILURE_CLOSED, false},
    {"Connection reset by peer", PEN_FAILURE_CLOSED, false},
};

const char *pen_failure_words(const char *text, bool has_tls) {
    for (size_t i = 0; i < sizeof failure_phrases / sizeof *failure_phrases; i++) {
        const struct failure_phrase *phrase = &failure_phrases[i];
        if (phrase->needs_tls && !has_tls) continue;
        if (strstr(text, phrase->text) != NULL) return phrase->words;
    }
    return NULL;
}
