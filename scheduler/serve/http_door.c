#include "scheduler/serve/http_door.h"

#include <arpa/inet.h>
#include <math.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/system/library.h"
#include "scheduler/serve/http_version.h"
#include "scheduler/transport/grpc/address.h"
#include "scheduler/transport/grpc/pem_file.h"

#define HTTP_IDLE_SECONDS 60u
#define HTTP_CONNECTIONS_BESIDE 16 // that are about to be closed

// ---- libmicrohttpd, loaded when it is needed

#define HTTP_SYMBOL(name) "MHD_" #name,
static const char *const http_symbols[] = {PEN_HTTP_FUNCTIONS(HTTP_SYMBOL)};
static const char *const http_library_names[] = {"libmicrohttpd.so.12", NULL};

// Made once, and only read then.
static pen_http_functions mhd;

static pen_status http_load(void) {
    static pen_library_once once;
    const pen_library wanted = {
        .purpose = "libmicrohttpd, which serves HTTP (Debian 12's package libmicrohttpd12)",
        .names = http_library_names,
        .symbols = http_symbols,
        .symbol_count = sizeof http_symbols / sizeof *http_symbols};
    return pen_library_load_once(&once, &wanted, &mhd);
}

// ---- connections

// One that is open. libmicrohttpd ends silent ones; one whose head or answer trickles never is.
struct pen_http_peer {
    pen_http_peer *next, *previous;
    int socket;
    double until; // which a head may come, or an answer be taken; INFINITY: neither is awaited
};

// libmicrohttpd tells of a connection before it reads from it, and before it closes its socket. Out
// of memory, a connection is without a peer: only silence ends it.
static void http_connected(void *context, struct MHD_Connection *connection, void **peer_place,
                           enum MHD_ConnectionNotificationCode code) {
    pen_http_door *door = context;
    pen_http_peer *peer = *peer_place;
    if (code == MHD_CONNECTION_NOTIFY_STARTED) {
        const union MHD_ConnectionInfo *info =
            mhd.get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
        peer = info == NULL ? NULL : pen_memory_allocate(1, sizeof *peer);
        *peer_place = peer;
        if (peer == NULL) return;
        peer->socket = info->connect_fd;
        peer->until = pen_clock_seconds() + door->options.timeout_seconds;
        pen_mutex_lock(&door->lock);
        peer->next = door->peers;
        if (peer->next != NULL) peer->next->previous = peer;
        door->peers = peer;
        pen_mutex_unlock(&door->lock);
        return;
    }
    if (peer == NULL) return;
    pen_mutex_lock(&door->lock);
    if (peer->next != NULL) peer->next->previous = peer->previous;
    if (peer->previous != NULL) peer->previous->next = peer->next;
    if (door->peers == peer) door->peers = peer->next;
    pen_mutex_unlock(&door->lock);
    pen_memory_free(peer);
    *peer_place = NULL;
}

static void http_set_end(pen_http_door *door, struct MHD_Connection *connection, double until) {
    const union MHD_ConnectionInfo *info =
        mhd.get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    pen_http_peer *peer = info == NULL ? NULL : info->socket_context;
    if (peer == NULL) return;
    pen_mutex_lock(&door->lock);
    peer->until = until;
    pen_mutex_unlock(&door->lock);
}

void pen_http_door_know(const pen_http_door *door, struct MHD_Connection *connection) {
    const union MHD_ConnectionInfo *info =
        mhd.get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    if (info != NULL) pen_door_callers_know(&door->callers, info->connect_fd);
}

// What is shut down here is closed by libmicrohttpd's thread, which sees its end.
void pen_http_door_end_late(pen_http_door *door) {
    const double now = pen_clock_seconds();
    pen_door_callers_tick(&door->callers);
    pen_mutex_lock(&door->lock);
    for (pen_http_peer *peer = door->peers; peer != NULL; peer = peer->next) {
        if (now <= peer->until) continue;
        (void)shutdown(peer->socket, SHUT_RDWR);
        peer->until = INFINITY;
    }
    pen_mutex_unlock(&door->lock);
}

void pen_http_door_begin(pen_http_door *door, struct MHD_Connection *connection) {
    http_set_end(door, connection, INFINITY);
}

void pen_http_door_end(pen_http_door *door, struct MHD_Connection *connection) {
    http_set_end(door, connection, pen_clock_seconds() + HTTP_IDLE_SECONDS);
}

const char *pen_http_door_header(const pen_http_door *door, struct MHD_Connection *connection,
                                 const char *name) {
    (void)door;
    return mhd.lookup_connection_value(connection, MHD_HEADER_KIND, name);
}

// libmicrohttpd does not write to what it answers with, but takes it as void *.
enum MHD_Result pen_http_door_answer(pen_http_door *door, struct MHD_Connection *connection,
                                     const pen_http_answer *answer) {
    static const char nothing[] = "";
    const char *from = answer->bytes == NULL ? nothing : answer->bytes;
    void *bytes;
    memcpy(&bytes, &from, sizeof bytes);
    struct MHD_Response *response = mhd.create_response_from_buffer(
        answer->length, bytes, answer->stays ? MHD_RESPMEM_PERSISTENT : MHD_RESPMEM_MUST_COPY);
    if (response == NULL) return MHD_NO;
    (void)mhd.add_response_header(response, "Content-Type", answer->type);
    for (uint32_t i = 0; i < answer->header_count; i++) {
        (void)mhd.add_response_header(response, answer->headers[i].name, answer->headers[i].value);
    }
    const enum MHD_Result result = mhd.queue_response(connection, answer->status, response);
    http_set_end(door, connection, pen_clock_seconds() + door->options.timeout_seconds);
    mhd.destroy_response(response);
    return result;
}

// ---- life

typedef struct http_handlers {
    MHD_AccessHandlerCallback handle;
    MHD_RequestCompletedCallback release;
    void *context;
} http_handlers;

static pen_status http_resolve(const char *text, struct addrinfo **out_list) {
    const struct addrinfo hints = {.ai_flags = AI_PASSIVE | AI_NUMERICSERV,
                                   .ai_family = AF_UNSPEC,
                                   .ai_socktype = SOCK_STREAM};
    pen_address address;
    char port[8];
    PEN_TRY(pen_address_read(text, &address));
    snprintf(port, sizeof port, "%u", address.port);
    if (getaddrinfo(address.host, port, &hints, out_list) == 0) return PEN_OK;
    return pen_error(PEN_INVALID_INPUT, "'%s' is no address of this machine", text);
}

// Protocols older than TLS 1.2 are broken.
#define HTTP_PRIORITIES "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2"

// What libmicrohttpd is told for TLS, in `out_items`, ended. It reads the texts while it starts.
static pen_status http_read_tls(const pen_front_options *options, pen_arena *arena,
                                struct MHD_OptionItem out_items[4]) {
    const char *const paths[] = {options->tls.ca, options->tls.cert, options->tls.key};
    pen_pem_files files;
    PEN_TRY(pen_pem_read_all(paths, arena, &files));
    if (mhd.is_feature_supported(MHD_FEATURE_TLS) != MHD_YES) {
        return pen_error(PEN_UNSUPPORTED, "libmicrohttpd of this machine has no TLS");
    }
    const struct {
        enum MHD_OPTION option;
        const char *text;
    } given[] = {{MHD_OPTION_HTTPS_MEM_CERT, files.texts[PEN_PEM_CERTIFICATE]},
                 {MHD_OPTION_HTTPS_MEM_KEY, files.texts[PEN_PEM_KEY]},
                 {MHD_OPTION_HTTPS_PRIORITIES, HTTP_PRIORITIES}};
    for (size_t i = 0; i < sizeof given / sizeof *given; i++) {
        // libmicrohttpd does not write to texts, but takes them as void *
        out_items[i] = (struct MHD_OptionItem){.option = given[i].option,
                                               .ptr_value = (void *)(uintptr_t)given[i].text};
    }
    return PEN_OK;
}

// One thread of libmicrohttpd waits for all connections.
static pen_status http_start(pen_http_door *door, const http_handlers *handlers,
                             const struct addrinfo *address, pen_arena *arena, uint16_t *out_port) {
    const pen_front_options *options = &door->options;
    struct MHD_OptionItem tls[4] = {{.option = MHD_OPTION_END}, {0}, {0}, {0}};
    unsigned flags = MHD_USE_AUTO_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME;
    if (address->ai_family == AF_INET6) flags |= MHD_USE_DUAL_STACK; // "::" is all addresses
    if (options->is_https) {
        flags |= MHD_USE_TLS;
        PEN_TRY(http_read_tls(options, arena, tls));
    }
    door->daemon = mhd.start_daemon(
        flags, 0, NULL, NULL, handlers->handle, handlers->context, MHD_OPTION_SOCK_ADDR,
        address->ai_addr, MHD_OPTION_CONNECTION_LIMIT,
        options->connections_limit + HTTP_CONNECTIONS_BESIDE, MHD_OPTION_CONNECTION_TIMEOUT,
        HTTP_IDLE_SECONDS, MHD_OPTION_NOTIFY_COMPLETED, handlers->release, handlers->context,
        MHD_OPTION_NOTIFY_CONNECTION, http_connected, door, MHD_OPTION_ARRAY, tls, MHD_OPTION_END);
    if (door->daemon == NULL) {
        pen_address where;
        PEN_TRY(pen_address_read(options->address, &where));
        return pen_address_explain(&where, "libmicrohttpd does not say why");
    }
    const union MHD_DaemonInfo *info = mhd.get_daemon_info(door->daemon, MHD_DAEMON_INFO_BIND_PORT);
    *out_port = info == NULL ? 0 : info->port;
    pen_door_callers_watch(&door->callers, options->is_https ? "HTTPS" : "HTTP", options,
                           PEN_DOOR_HTTP, *out_port);
    return PEN_OK;
}

static pen_status http_listen(pen_http_door *door, const http_handlers *handlers,
                              uint16_t *out_port) {
    struct addrinfo *found;
    pen_arena *arena;
    PEN_TRY(http_load());
    PEN_TRY(http_resolve(door->options.address, &found));
    pen_status status = pen_arena_create(&arena);
    if (status == PEN_OK) {
        status = http_start(door, handlers, found, arena, out_port);
        pen_arena_destroy(arena);
    }
    freeaddrinfo(found);
    return status;
}

pen_status pen_http_door_open(pen_http_door *door, const pen_front_options *options,
                              MHD_AccessHandlerCallback handle,
                              MHD_RequestCompletedCallback release, void *context,
                              uint16_t *out_port) {
    const http_handlers handlers = {.handle = handle, .release = release, .context = context};
    door->options = *options;
    door->mhd = &mhd;
    pen_mutex_init(&door->lock);
    return http_listen(door, &handlers, out_port);
}

void pen_http_door_close(pen_http_door *door) {
    if (door->mhd == NULL) return;
    if (door->daemon != NULL) {
        pen_front_await_answers(&door->open_count);
        mhd.stop_daemon(door->daemon);
        pen_door_callers_forget(&door->callers);
    }
    pen_mutex_deinit(&door->lock);
    door->mhd = NULL;
}

const char *pen_microhttpd_version(void) {
    const pen_status status = http_load();
    if (status == PEN_OK) return mhd.get_version();
    pen_status_ignore(status, "which is what is asked");
    return "not found";
}
