// gRPC's own log. What it says of handshakes that failed at our servers is counted and shown: the
// other end learns nothing of why, so this is the only place that tells.
#include <grpc/support/log.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "base/log.h"
#include "base/system/callers.h"
#include "scheduler/transport/grpc/grpc_link.h"

#define LOG_SERVER_LIMIT 64
#define LOG_DESCRIPTOR_LIMIT 4096

static struct {
    pthread_mutex_t lock;
    struct {
        pen_grpc *transport; // NULL: free
        uint16_t port;
    } servers[LOG_SERVER_LIMIT]; // guarded by lock
} log_known = {.lock = PTHREAD_MUTEX_INITIALIZER};

// What a thread has learned of the handshake that it is about to give up.
typedef struct log_caller {
    uint16_t port; // of ours that it came to; 0: nothing is known
    uint32_t candidate_count;
    char address[PEN_ADDRESS_TEXT_LIMIT];
} log_caller;

static _Thread_local log_caller log_last;

void pen_grpc_log_add_server(pen_grpc *transport, uint16_t port) {
    pthread_mutex_lock(&log_known.lock);
    for (size_t i = 0; i < LOG_SERVER_LIMIT; i++) {
        if (log_known.servers[i].transport != NULL) continue;
        log_known.servers[i].transport = transport;
        log_known.servers[i].port = port;
        break; // where there is no place, its failures are not shown
    }
    pthread_mutex_unlock(&log_known.lock);
}

void pen_grpc_log_remove_server(pen_grpc *transport) {
    pthread_mutex_lock(&log_known.lock);
    for (size_t i = 0; i < LOG_SERVER_LIMIT; i++) {
        if (log_known.servers[i].transport == transport) log_known.servers[i].transport = NULL;
    }
    pthread_mutex_unlock(&log_known.lock);
}

// With the lock held. Port 0 stands for any.
static pen_grpc *log_find_server(uint16_t port) {
    for (size_t i = 0; i < LOG_SERVER_LIMIT; i++) {
        pen_grpc *transport = log_known.servers[i].transport;
        if (transport != NULL && (port == 0 || log_known.servers[i].port == port)) return transport;
    }
    return NULL;
}

static bool log_has_link(pen_grpc *transport, const char *address) {
    bool is_there = false;
    pen_mutex_lock(&transport->lock);
    for (uint32_t peer = 0; peer < PEN_TRANSPORT_PEER_LIMIT && !is_there; peer++) {
        const pen_grpc_link *link = transport->of_peer[peer];
        is_there = link != NULL && strcmp(link->address, address) == 0;
    }
    pen_mutex_unlock(&transport->lock);
    return is_there;
}

// The two ends of a connection. False: the descriptor is none over IP.
static bool log_get_ends(int descriptor, uint16_t *out_port, char *out_address, size_t size) {
    struct sockaddr_storage here = {0}, there = {0};
    socklen_t here_size = sizeof here, there_size = sizeof there;
    char text[PEN_CALLER_TEXT_LIMIT];
    uint16_t port;
    if (getsockname(descriptor, (struct sockaddr *)&here, &here_size) != 0) return false;
    if (getpeername(descriptor, (struct sockaddr *)&there, &there_size) != 0) return false;
    return pen_caller_write(&here, text, sizeof text, out_port) &&
           pen_caller_write(&there, out_address, size, &port);
}

// gRPC does not say whose handshake failed. It is one of the connections to a port of ours that
// are no links, and as a rule there is but one.
static void log_find_caller(log_caller *out) {
    *out = (log_caller){0};
    for (int descriptor = 0; descriptor < LOG_DESCRIPTOR_LIMIT; descriptor++) {
        uint16_t port;
        char address[PEN_ADDRESS_TEXT_LIMIT];
        if (!log_get_ends(descriptor, &port, address, sizeof address)) continue;
        pen_grpc *transport = log_find_server(port);
        if (transport == NULL || log_has_link(transport, address)) continue;
        if (out->candidate_count++ != 0) continue;
        out->port = port;
        memcpy(out->address, address, sizeof address);
    }
}

// OpenSSL's reasons that a user can do something about, in words.
static const char *log_reason_words(const char *reason) {
    static const struct {
        const char *reason, *words;
    } known[] = {
        {"certificate verify failed",
         "its certificate is not of the authority 'tls: ca', or has expired"},
        {"wrong version number", "it seems to speak without TLS"},
        {"http request", "it seems to speak HTTP, without TLS"},
        {"peer did not return a certificate", "it shows no certificate"},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (strncmp(reason, known[i].reason, strlen(known[i].reason)) == 0) return known[i].words;
    }
    return reason;
}

// The reason, without where in gRPC it was found.
static void log_shorten(const char *message, char *out_text, size_t size) {
    const char *from = strstr(message, "failed: ");
    from = from != NULL ? from + strlen("failed: ") : message;
    if (strncmp(from, "UNKNOWN:", 8) == 0) from += 8;
    snprintf(out_text, size, "%.*s", (int)strcspn(from, "{"), from);
    if (strstr(out_text, "Handshake read failed") != NULL) {
        snprintf(out_text, size,
                 "nothing more came from it during the handshake; it may not accept our "
                 "certificate");
        return;
    }
    const char *again = strstr(out_text, "SSL routines::");
    if (again != NULL) {
        char reason[200];
        snprintf(reason, sizeof reason, "%s", again + strlen("SSL routines::"));
        snprintf(out_text, size, "TLS handshake: %s", log_reason_words(reason));
    }
    for (size_t length = strlen(out_text); length != 0 && out_text[length - 1] == ' ';) {
        out_text[--length] = '\0';
    }
}

// The caller is gone by now: of those that were seen on the port one is named, and how many others
// it may have been. Whoever only looks whether somebody answers is not told of.
static void log_refusal(const char *message) {
    char reason[400], from[PEN_ADDRESS_TEXT_LIMIT + 40];
    log_shorten(message, reason, sizeof reason);
    if (strstr(reason, "TLS handshake: unexpected message") == reason)
        return; // address_answer.c looked
    pthread_mutex_lock(&log_known.lock);
    if (log_last.candidate_count == 0) log_find_caller(&log_last);
    if (log_last.candidate_count == 0) {
        snprintf(from, sizeof from, "an address that is gone");
    } else if (log_last.candidate_count == 1) {
        snprintf(from, sizeof from, "%s", log_last.address);
    } else {
        snprintf(from, sizeof from, "%s, or one of %u others", log_last.address,
                 log_last.candidate_count - 1);
    }
    pen_grpc *transport = log_find_server(log_last.port);
    if (transport != NULL) pen_grpc_server_count_refusal(transport, from, "", reason);
    log_last = (log_caller){0};
    pthread_mutex_unlock(&log_known.lock);
}

static void log_take(gpr_log_func_args *args) {
    if (strstr(args->file, "security_handshaker.cc") != NULL &&
        strstr(args->message, "handshake failed") != NULL) {
        pthread_mutex_lock(&log_known.lock); // while the connection is still there
        log_find_caller(&log_last);
        pthread_mutex_unlock(&log_known.lock);
    } else if (strstr(args->file, "chttp2_server.cc") != NULL &&
               strstr(args->message, "Handshaking failed") != NULL) {
        log_refusal(args->message);
    } else if (args->severity == GPR_LOG_SEVERITY_ERROR) {
        pen_log(PEN_LOG_DEBUG, "gRPC: %s", args->message);
    }
}

static void log_hook(void) {
    gpr_set_log_function(log_take);
    gpr_set_log_verbosity(GPR_LOG_SEVERITY_DEBUG); // handshakes are on that level
}

void pen_grpc_log_hook(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, log_hook);
}
