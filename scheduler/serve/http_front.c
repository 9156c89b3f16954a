#include "scheduler/serve/http_front.h"

#include <arpa/inet.h>
#include <errno.h>
#include <math.h>
#include <microhttpd.h>
#include <netdb.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/integer.h"
#include "base/memory.h"
#include "base/system/library.h"
#include "base/thread.h"
#include "scheduler/serve/door_callers.h"
#include "scheduler/serve/infer_json.h"
#include "scheduler/serve/infer_texts.h"
#include "scheduler/transport/grpc/address.h"
#include "scheduler/transport/grpc/pem_file.h"

#define HTTP_HEADER_JSON_LENGTH "Inference-Header-Content-Length"
#define HTTP_IDLE_SECONDS 60u
#define HTTP_CONNECTIONS_BESIDE 16 // that are about to be closed

// ---- libmicrohttpd, loaded when it is needed

#define HTTP_FUNCTIONS(X)                                                                          \
    X(add_response_header)                                                                         \
    X(create_response_from_buffer)                                                                 \
    X(destroy_response)                                                                            \
    X(get_connection_info)                                                                         \
    X(get_daemon_info)                                                                             \
    X(is_feature_supported)                                                                        \
    X(lookup_connection_value)                                                                     \
    X(queue_response)                                                                              \
    X(resume_connection)                                                                           \
    X(start_daemon)                                                                                \
    X(stop_daemon)                                                                                 \
    X(suspend_connection)

#define HTTP_MEMBER(name) __typeof__(&MHD_##name) name;
#define HTTP_SYMBOL(name) "MHD_" #name,
typedef struct http_functions {
    HTTP_FUNCTIONS(HTTP_MEMBER)
} http_functions;
static const char *const http_symbols[] = {HTTP_FUNCTIONS(HTTP_SYMBOL)};
static const char *const http_library_names[] = {"libmicrohttpd.so.12", NULL};

// Made once, and only read then.
static pthread_once_t http_once = PTHREAD_ONCE_INIT;
static http_functions mhd;
static pen_status http_load_status;

static void http_load_once(void) {
    const pen_library wanted = {.purpose = "libmicrohttpd, which serves HTTP",
                                .names = http_library_names,
                                .symbols = http_symbols,
                                .symbol_count = sizeof http_symbols / sizeof *http_symbols};
    http_load_status = pen_library_load(&wanted, &mhd);
}

static pen_status http_load(void) {
    (void)pthread_once(&http_once, http_load_once);
    if (http_load_status == PEN_OK) return PEN_OK;
    return pen_error(PEN_NOT_FOUND, "%s", pen_status_message(http_load_status));
}

// ---- connections

// One that is open. libmicrohttpd ends silent ones; one whose head or answer trickles never is.
typedef struct http_peer {
    struct http_peer *next, *previous;
    int socket;
    double until; // which a head may come, or an answer be taken; INFINITY: neither is awaited
} http_peer;

struct pen_http_front {
    pen_front_options options;
    atomic_uint open_count; // calls
    struct MHD_Daemon *daemon;
    pen_mutex lock;
    http_peer *peers; // guarded by lock, as what they hold
    pen_door_callers callers;
};

// libmicrohttpd tells of a connection before it reads from it, and before it closes its socket. Out
// of memory, a connection is without a peer: only silence ends it.
static void http_connected(void *context, struct MHD_Connection *connection, void **peer_place,
                           enum MHD_ConnectionNotificationCode code) {
    pen_http_front *front = context;
    http_peer *peer = *peer_place;
    if (code == MHD_CONNECTION_NOTIFY_STARTED) {
        const union MHD_ConnectionInfo *info =
            mhd.get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
        peer = info == NULL ? NULL : pen_memory_allocate(1, sizeof *peer);
        *peer_place = peer;
        if (peer == NULL) return;
        peer->socket = info->connect_fd;
        peer->until = pen_clock_seconds() + front->options.timeout_seconds;
        pen_mutex_lock(&front->lock);
        peer->next = front->peers;
        if (peer->next != NULL) peer->next->previous = peer;
        front->peers = peer;
        pen_mutex_unlock(&front->lock);
        return;
    }
    if (peer == NULL) return;
    pen_mutex_lock(&front->lock);
    if (peer->next != NULL) peer->next->previous = peer->previous;
    if (peer->previous != NULL) peer->previous->next = peer->next;
    if (front->peers == peer) front->peers = peer->next;
    pen_mutex_unlock(&front->lock);
    pen_memory_free(peer);
    *peer_place = NULL;
}

static void http_set_end(pen_http_front *front, struct MHD_Connection *connection, double until) {
    const union MHD_ConnectionInfo *info =
        mhd.get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    http_peer *peer = info == NULL ? NULL : info->socket_context;
    if (peer == NULL) return;
    pen_mutex_lock(&front->lock);
    peer->until = until;
    pen_mutex_unlock(&front->lock);
}

// Whoever asks what is answered is no stranger.
static void http_know_caller(const pen_http_front *front, struct MHD_Connection *connection) {
    const union MHD_ConnectionInfo *info =
        mhd.get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    if (info != NULL) pen_door_callers_know(&front->callers, info->connect_fd);
}

// What is shut down here is closed by libmicrohttpd's thread, which sees its end.
void pen_http_front_end_late(pen_http_front *front) {
    const double now = pen_clock_seconds();
    pen_door_callers_tick(&front->callers);
    pen_mutex_lock(&front->lock);
    for (http_peer *peer = front->peers; peer != NULL; peer = peer->next) {
        if (now <= peer->until) continue;
        (void)shutdown(peer->socket, SHUT_RDWR);
        peer->until = INFINITY;
    }
    pen_mutex_unlock(&front->lock);
}

// ---- calls

typedef struct http_call {
    pen_http_front *front;
    struct MHD_Connection *connection;
    char *body;
    size_t length;
    size_t capacity;
    double began;               // when its head was here
    pen_status failure;         // of reading the body
    bool is_too_long;           // that is why
    pen_infer_request *request; // NULL: none was made, or it is done
    pen_status outcome;
    atomic_bool is_done; // the batcher has answered, and written the rest before
} http_call;

// A text and, behind it, bytes.
typedef struct http_answer {
    pen_arena *arena;
    pen_text text;
    const char *type;
    char *bytes; // all of it, where there is more than the text; NULL: there is not
    size_t length;
    size_t json_length; // 0: not to be told
} http_answer;

// libmicrohttpd copies what is answered with.
static enum MHD_Result http_queue(http_call *call, unsigned status, const http_answer *answer) {
    pen_http_front *front = call->front;
    const char *bytes = answer->bytes != NULL ? answer->bytes : answer->text.bytes;
    const size_t length = answer->bytes != NULL ? answer->length : answer->text.length;
    char number[32];
    void *copied;
    static const char nothing[] = "";
    const char *from = bytes == NULL ? nothing : bytes;
    memcpy(&copied, &from, sizeof copied); // it is copied, and not written to
    struct MHD_Response *response =
        mhd.create_response_from_buffer(length, copied, MHD_RESPMEM_MUST_COPY);
    if (response == NULL) return MHD_NO;
    (void)mhd.add_response_header(response, "Content-Type", answer->type);
    if (answer->json_length != 0) {
        snprintf(number, sizeof number, "%zu", answer->json_length);
        (void)mhd.add_response_header(response, HTTP_HEADER_JSON_LENGTH, number);
    }
    const enum MHD_Result result = mhd.queue_response(call->connection, status, response);
    http_set_end(front, call->connection, pen_clock_seconds() + front->options.timeout_seconds);
    mhd.destroy_response(response);
    return result;
}

// Makes a text by `write`, and answers with it.
static enum MHD_Result http_answer_text(http_call *call, unsigned status, const char *type,
                                        void (*write)(const http_call *call, pen_text *text)) {
    http_answer answer = {.type = type};
    if (pen_arena_create(&answer.arena) != PEN_OK) return MHD_NO;
    pen_text_init(&answer.text, answer.arena);
    write(call, &answer.text);
    const enum MHD_Result result = answer.text.failed ? MHD_NO : http_queue(call, status, &answer);
    pen_arena_destroy(answer.arena);
    return result;
}

static void http_write_outcome(const http_call *call, pen_text *text) {
    pen_infer_json_write_error(pen_status_message(call->outcome), text);
}

// Answers with an error, which it takes.
static enum MHD_Result http_fail(http_call *call, unsigned status, pen_status take_status) {
    pen_status_ignore(call->outcome, "another is told");
    call->outcome = take_status;
    if (status == 0) {
        status = (unsigned)pen_infer_codes_of(pen_status_get_code(take_status)).http;
    }
    return http_answer_text(call, status, "application/json", http_write_outcome);
}

static void http_write_nothing(const http_call *call, pen_text *text) {
    (void)call;
    (void)text;
}

static void http_write_server(const http_call *call, pen_text *text) {
    (void)call;
    pen_infer_json_write_server(text);
}

static void http_write_model(const http_call *call, pen_text *text) {
    pen_infer_json_write_model(call->front->options.model, text);
}

static void http_write_metrics(const http_call *call, pen_text *text) {
    pen_batcher_print_metrics(call->front->options.batcher, text);
}

// ---- inference

// By the batcher's thread: the connection goes on, and is answered by its own.
static void http_inferred(void *context, pen_infer_request *request, pen_status take_status) {
    http_call *call = context;
    (void)request; // the call has it
    call->outcome = take_status;
    call->is_done = true;
    mhd.resume_connection(call->connection);
}

// The JSON, and behind it the outputs that are asked for in binary.
static pen_status http_make_answer(const pen_infer_request *request, http_answer *answer) {
    const pen_served_model *model = request->model;
    const char *json;
    pen_infer_json_write(request, &answer->text);
    PEN_TRY(pen_text_finish(&answer->text, &json));
    answer->length = answer->text.length;
    for (uint32_t i = 0; i < model->output_count; i++) {
        if (!request->is_asked[i] || !request->is_in_binary[i]) continue;
        answer->json_length = answer->text.length;
        answer->length += request->rows * model->outputs[i].row_bytes;
    }
    if (answer->json_length == 0) return PEN_OK;
    PEN_TRY(PEN_NEW(answer->arena, answer->length, &answer->bytes));
    memcpy(answer->bytes, json, answer->json_length);
    char *to = answer->bytes + answer->json_length;
    for (uint32_t i = 0; i < model->output_count; i++) {
        if (!request->is_asked[i] || !request->is_in_binary[i]) continue;
        const uint64_t bytes = request->rows * model->outputs[i].row_bytes;
        memcpy(to, request->outputs[i], bytes);
        to += bytes;
    }
    answer->type = "application/octet-stream";
    return PEN_OK;
}

static enum MHD_Result http_answer_inferred(http_call *call) {
    http_answer answer = {.type = "application/json"};
    if (call->outcome != PEN_OK) {
        const pen_status failed = call->outcome;
        call->outcome = PEN_OK;
        return http_fail(call, 0, failed);
    }
    if (pen_arena_create(&answer.arena) != PEN_OK) return MHD_NO;
    pen_text_init(&answer.text, answer.arena);
    const pen_status status = http_make_answer(call->request, &answer);
    const enum MHD_Result result =
        status == PEN_OK ? http_queue(call, 200, &answer) : http_fail(call, 0, status);
    pen_arena_destroy(answer.arena);
    return result;
}

// A header that is a number of bytes; `missing` where there is none. False: it is no number.
static bool http_get_length(const http_call *call, const char *name, uint64_t missing,
                            uint64_t *out_length) {
    const char *text = mhd.lookup_connection_value(call->connection, MHD_HEADER_KIND, name);
    char *end;
    *out_length = missing;
    if (text == NULL) return true;
    if (*text < '0' || *text > '9') return false;
    errno = 0;
    *out_length = strtoull(text, &end, 10);
    return errno == 0 && *end == '\0';
}

// The body is whole: the batcher gets it, and the connection waits.
static enum MHD_Result http_infer(http_call *call) {
    const pen_front_options *options = &call->front->options;
    uint64_t json_length;
    if (call->failure != PEN_OK) {
        const pen_status failed = call->failure;
        call->failure = PEN_OK;
        pen_batcher_count(options->batcher, pen_status_get_code(failed));
        return http_fail(call, call->is_too_long ? 413 : 0, failed);
    }
    pen_status status = PEN_OK;
    if (!http_get_length(call, HTTP_HEADER_JSON_LENGTH, call->length, &json_length) ||
        json_length > call->length) {
        status = pen_error(PEN_INVALID_INPUT,
                           HTTP_HEADER_JSON_LENGTH ": expected a number up to the body's %zu bytes",
                           call->length);
    }
    if (status == PEN_OK) {
        const char *body = call->body == NULL ? "" : call->body; // NULL: there was none
        status =
            pen_infer_json_read(options->model, body, call->length, json_length, &call->request);
    }
    pen_memory_free(call->body);
    call->body = NULL;
    if (status != PEN_OK) {
        pen_batcher_count(options->batcher, pen_status_get_code(status));
        return http_fail(call, 0, status);
    }
    call->request->deadline = pen_clock_seconds() + options->timeout_seconds;
    call->request->done = http_inferred;
    call->request->context = call;
    mhd.suspend_connection(call->connection);
    pen_batcher_submit(options->batcher, call->request);
    return MHD_YES;
}

// ---- paths

// Whether the path is "/v2/models/NAME" and then `rest`, with or without a version between.
static bool http_is_model_path(const http_call *call, const char *path, const char *rest) {
    const char *prefix = "/v2/models/", *name = call->front->options.model->name;
    const char *version = "/versions/" PEN_INFER_VERSION;
    if (strncmp(path, prefix, strlen(prefix)) != 0) return false;
    path += strlen(prefix);
    if (strncmp(path, name, strlen(name)) != 0) return false;
    path += strlen(name);
    if (strncmp(path, version, strlen(version)) == 0) path += strlen(version);
    return strcmp(path, rest) == 0;
}

// Health is 503 while a lost worker is looked after: balancers go elsewhere.
static enum MHD_Result http_get(http_call *call, const char *path) {
    const bool is_ready = pen_batcher_is_ready(call->front->options.batcher);
    const unsigned ready = is_ready ? 200 : 503;
    if (strcmp(path, "/v2/health/live") == 0) {
        return http_answer_text(call, 200, "application/json", http_write_nothing);
    }
    if (strcmp(path, "/v2/health/ready") == 0 || http_is_model_path(call, path, "/ready")) {
        return http_answer_text(call, ready, "application/json", http_write_nothing);
    }
    if (strcmp(path, "/v2") == 0 || strcmp(path, "/v2/") == 0) {
        return http_answer_text(call, 200, "application/json", http_write_server);
    }
    if (http_is_model_path(call, path, "")) {
        return http_answer_text(call, 200, "application/json", http_write_model);
    }
    if (strcmp(path, "/metrics") == 0) {
        return http_answer_text(call, 200, "text/plain; version=0.0.4", http_write_metrics);
    }
    return http_fail(call, 0, pen_error(PEN_NOT_FOUND, "there is nothing at this path"));
}

// Before the body: what can be refused by its head alone. True: it was, with *out_result.
static bool http_refuse_head(http_call *call, const char *path, const char *method,
                             enum MHD_Result *out_result) {
    const pen_front_options *options = &call->front->options;
    const char *header =
        mhd.lookup_connection_value(call->connection, MHD_HEADER_KIND, "Authorization");
    const bool is_post = strcmp(method, "POST") == 0;
    uint64_t length;
    if (!pen_infer_is_allowed(options->token, header == NULL ? "" : header,
                              header == NULL ? 0 : strlen(header))) {
        *out_result = http_fail(call, 401, pen_error(PEN_INVALID_INPUT, "no token, or another"));
    } else if (!is_post && strcmp(method, "GET") != 0) {
        *out_result = http_fail(call, 405, pen_error(PEN_INVALID_INPUT, "expected GET or POST"));
    } else if (is_post && !http_is_model_path(call, path, "/infer")) {
        *out_result =
            http_fail(call, 0, pen_error(PEN_NOT_FOUND, "there is no model at '%.200s'", path));
    } else if (is_post && (!http_get_length(call, "Content-Length", 0, &length) ||
                           length > options->bytes_limit)) {
        *out_result = http_fail(call, 413,
                                pen_error(PEN_INVALID_INPUT, "a body has at most %llu bytes here",
                                          (unsigned long long)options->bytes_limit));
    } else if (is_post && atomic_load(&call->front->open_count) > options->calls_limit) {
        pen_batcher_count(options->batcher, PEN_DOES_NOT_FIT);
        *out_result =
            http_fail(call, 0,
                      pen_error(PEN_DOES_NOT_FIT, "%u calls are open already: try again later",
                                options->calls_limit));
    } else {
        return false;
    }
    return true;
}

// More of the body: memory grows with what comes.
static void http_add(http_call *call, const char *bytes, size_t length) {
    const uint64_t limit = call->front->options.bytes_limit;
    if (call->failure != PEN_OK) return;
    if (length > limit - call->length) {
        call->is_too_long = true;
        call->failure = pen_error(PEN_INVALID_INPUT, "a body has at most %llu bytes here",
                                  (unsigned long long)limit);
        return;
    }
    if (length > call->capacity - call->length) {
        const size_t capacity = pen_max_u64(call->length + length, 2 * call->capacity);
        char *grown = pen_memory_allocate(capacity, 1);
        if (grown == NULL) {
            call->failure = pen_error_out_of_memory();
            return;
        }
        if (call->length > 0) memcpy(grown, call->body, call->length);
        pen_memory_free(call->body);
        call->body = grown;
        call->capacity = capacity;
    }
    memcpy(call->body + call->length, bytes, length);
    call->length += length;
}

// Whether a body has taken too long to come: libmicrohttpd only sees connections that are silent.
static bool http_is_late(const http_call *call) {
    return pen_clock_seconds() > call->began + call->front->options.timeout_seconds;
}

// libmicrohttpd calls this for the head, for each piece of the body, at its end, and again when the
// connection was resumed.
// NOLINTNEXTLINE(readability-function-size): libmicrohttpd says what its arguments are
static enum MHD_Result http_handle(void *context, struct MHD_Connection *connection,
                                   const char *path, const char *method, const char *version,
                                   const char *upload, size_t *upload_length, void **call_place) {
    http_call *call = *call_place;
    (void)version;
    if (call == NULL) {
        enum MHD_Result result;
        call = pen_memory_allocate(1, sizeof *call);
        if (call == NULL) return MHD_NO;
        call->front = context;
        call->connection = connection;
        call->began = pen_clock_seconds();
        atomic_fetch_add(&call->front->open_count, 1);
        *call_place = call;
        http_set_end(call->front, connection, INFINITY);
        if (http_refuse_head(call, path, method, &result)) return result;
        http_know_caller(call->front, connection);
        return MHD_YES;
    }
    if (*upload_length > 0) {
        if (http_is_late(call)) return MHD_NO; // ends the connection
        http_add(call, upload, *upload_length);
        *upload_length = 0;
        return MHD_YES;
    }
    if (strcmp(method, "GET") == 0) return http_get(call, path);
    return call->is_done ? http_answer_inferred(call) : http_infer(call);
}

static void http_release(void *context, struct MHD_Connection *connection, void **call_place,
                         enum MHD_RequestTerminationCode code) {
    http_call *call = *call_place;
    (void)code;
    if (call == NULL) return;
    http_set_end(context, connection, pen_clock_seconds() + HTTP_IDLE_SECONDS);
    pen_status_ignore(call->failure, "the caller has gone");
    pen_status_ignore(call->outcome, "the caller was told");
    atomic_fetch_sub(&call->front->open_count, 1);
    pen_infer_request_destroy(call->request);
    pen_memory_free(call->body);
    pen_memory_free(call);
    *call_place = NULL;
}

// ---- life

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
static pen_status http_start(pen_http_front *front, const struct addrinfo *address,
                             pen_arena *arena, uint16_t *out_port) {
    const pen_front_options *options = &front->options;
    struct MHD_OptionItem tls[4] = {{.option = MHD_OPTION_END}, {0}, {0}, {0}};
    unsigned flags = MHD_USE_AUTO_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME;
    if (address->ai_family == AF_INET6) flags |= MHD_USE_DUAL_STACK; // "::" is all addresses
    if (options->is_https) {
        flags |= MHD_USE_TLS;
        PEN_TRY(http_read_tls(options, arena, tls));
    }
    front->daemon = mhd.start_daemon(
        flags, 0, NULL, NULL, http_handle, front, MHD_OPTION_SOCK_ADDR, address->ai_addr,
        MHD_OPTION_CONNECTION_LIMIT, options->connections_limit + HTTP_CONNECTIONS_BESIDE,
        MHD_OPTION_CONNECTION_TIMEOUT, HTTP_IDLE_SECONDS, MHD_OPTION_NOTIFY_COMPLETED, http_release,
        front, MHD_OPTION_NOTIFY_CONNECTION, http_connected, front, MHD_OPTION_ARRAY, tls,
        MHD_OPTION_END);
    if (front->daemon == NULL) {
        return pen_error(PEN_UNAVAILABLE, "cannot listen at %s for HTTP", options->address);
    }
    const union MHD_DaemonInfo *info =
        mhd.get_daemon_info(front->daemon, MHD_DAEMON_INFO_BIND_PORT);
    *out_port = info == NULL ? 0 : info->port;
    pen_door_callers_watch(&front->callers, options->is_https ? "HTTPS" : "HTTP", options,
                           PEN_DOOR_HTTP, *out_port);
    return PEN_OK;
}

static pen_status http_listen(pen_http_front *front, uint16_t *out_port) {
    struct addrinfo *found;
    pen_arena *arena;
    PEN_TRY(http_load());
    PEN_TRY(http_resolve(front->options.address, &found));
    pen_status status = pen_arena_create(&arena);
    if (status == PEN_OK) {
        status = http_start(front, found, arena, out_port);
        pen_arena_destroy(arena);
    }
    freeaddrinfo(found);
    return status;
}

pen_status pen_http_front_create(const pen_front_options *options, pen_http_front **out_front,
                                 uint16_t *out_port) {
    pen_http_front *front = pen_memory_allocate(1, sizeof *front);
    if (front == NULL) return pen_error_out_of_memory();
    front->options = *options;
    pen_mutex_init(&front->lock);
    const pen_status status = http_listen(front, out_port);
    if (status != PEN_OK) {
        pen_http_front_destroy(front);
        return status;
    }
    *out_front = front;
    return PEN_OK;
}

void pen_http_front_destroy(pen_http_front *front) {
    if (front == NULL) return;
    if (front->daemon != NULL) {
        pen_front_await_answers(&front->open_count);
        mhd.stop_daemon(front->daemon);
        pen_door_callers_forget(&front->callers);
    }
    pen_mutex_deinit(&front->lock);
    pen_memory_free(front);
}
