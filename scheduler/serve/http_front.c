#include "scheduler/serve/http_front.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/integer.h"
#include "base/memory.h"
#include "scheduler/serve/http_door.h"
#include "scheduler/serve/infer_json.h"
#include "scheduler/serve/infer_texts.h"

#define HTTP_HEADER_JSON_LENGTH "Inference-Header-Content-Length"

struct pen_http_front {
    pen_http_door door;
};

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

static enum MHD_Result http_queue(http_call *call, unsigned status, const http_answer *answer) {
    char number[32];
    const pen_http_header header = {HTTP_HEADER_JSON_LENGTH, number};
    const pen_http_answer queued = {
        .status = status,
        .type = answer->type,
        .bytes = answer->bytes != NULL ? answer->bytes : answer->text.bytes,
        .length = answer->bytes != NULL ? answer->length : answer->text.length,
        .headers = &header,
        .header_count = answer->json_length != 0 ? 1 : 0};
    snprintf(number, sizeof number, "%zu", answer->json_length);
    return pen_http_door_answer(&call->front->door, call->connection, &queued);
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
    pen_infer_json_write_model(call->front->door.options.model, text);
}

static void http_write_metrics(const http_call *call, pen_text *text) {
    pen_batcher_print_metrics(call->front->door.options.batcher, text);
}

// ---- inference

// By the batcher's thread: the connection goes on, and is answered by its own.
static void http_inferred(void *context, pen_infer_request *request, pen_status take_status) {
    http_call *call = context;
    (void)request; // the call has it
    call->outcome = take_status;
    call->is_done = true;
    call->front->door.mhd->resume_connection(call->connection);
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
    const char *text = pen_http_door_header(&call->front->door, call->connection, name);
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
    const pen_front_options *options = &call->front->door.options;
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
    call->front->door.mhd->suspend_connection(call->connection);
    pen_batcher_submit(options->batcher, call->request);
    return MHD_YES;
}

// ---- paths

// Whether the path is "/v2/models/NAME" and then `rest`, with or without a version between.
static bool http_is_model_path(const http_call *call, const char *path, const char *rest) {
    const char *prefix = "/v2/models/", *name = call->front->door.options.model->name;
    const char *version = "/versions/" PEN_INFER_VERSION;
    if (strncmp(path, prefix, strlen(prefix)) != 0) return false;
    path += strlen(prefix);
    if (strncmp(path, name, strlen(name)) != 0) return false;
    path += strlen(name);
    if (strncmp(path, version, strlen(version)) == 0) path += strlen(version);
    return strcmp(path, rest) == 0;
}

// Says where the model is: a wrong name or version is the most frequent slip.
static pen_status http_refuse_path(const http_call *call, const char *path) {
    return pen_error(PEN_NOT_FOUND,
                     "there is nothing at '%.200s'; the model is at /v2/models/%.100s, and its "
                     "version, if named, is %s",
                     path, call->front->door.options.model->name, PEN_INFER_VERSION);
}

// Health is 503 while a lost worker is looked after: balancers go elsewhere.
static enum MHD_Result http_get(http_call *call, const char *path) {
    const bool is_ready = pen_batcher_is_ready(call->front->door.options.batcher);
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
    if (http_is_model_path(call, path, "/infer")) {
        return http_fail(call, 405, pen_error(PEN_INVALID_INPUT, "expected POST at this path"));
    }
    return http_fail(call, 0, http_refuse_path(call, path));
}

// Before the body: what can be refused by its head alone. True: it was, with *out_result.
static bool http_refuse_head(http_call *call, const char *path, const char *method,
                             enum MHD_Result *out_result) {
    const pen_front_options *options = &call->front->door.options;
    const char *header =
        pen_http_door_header(&call->front->door, call->connection, "Authorization");
    const bool is_post = strcmp(method, "POST") == 0;
    uint64_t length;
    if (!pen_infer_is_allowed(options->token, header == NULL ? "" : header,
                              header == NULL ? 0 : strlen(header))) {
        *out_result = http_fail(call, 401, pen_error(PEN_INVALID_INPUT, "no token, or another"));
    } else if (!is_post && strcmp(method, "GET") != 0) {
        *out_result = http_fail(call, 405, pen_error(PEN_INVALID_INPUT, "expected GET or POST"));
    } else if (is_post && !http_is_model_path(call, path, "/infer")) {
        *out_result = http_fail(call, 0, http_refuse_path(call, path));
    } else if (is_post && (!http_get_length(call, "Content-Length", 0, &length) ||
                           length > options->bytes_limit)) {
        *out_result = http_fail(call, 413,
                                pen_error(PEN_INVALID_INPUT, "a body has at most %llu bytes here",
                                          (unsigned long long)options->bytes_limit));
    } else if (is_post && atomic_load(&call->front->door.open_count) > options->calls_limit) {
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
    const uint64_t limit = call->front->door.options.bytes_limit;
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
    return pen_clock_seconds() > call->began + call->front->door.options.timeout_seconds;
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
        atomic_fetch_add(&call->front->door.open_count, 1);
        *call_place = call;
        pen_http_door_begin(&call->front->door, connection);
        if (http_refuse_head(call, path, method, &result)) return result;
        pen_http_door_know(&call->front->door, connection);
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
    (void)context;
    (void)code;
    if (call == NULL) return;
    pen_http_door_end(&call->front->door, connection);
    pen_status_ignore(call->failure, "the caller has gone");
    pen_status_ignore(call->outcome, "the caller was told");
    atomic_fetch_sub(&call->front->door.open_count, 1);
    pen_infer_request_destroy(call->request);
    pen_memory_free(call->body);
    pen_memory_free(call);
    *call_place = NULL;
}

// ---- life

pen_status pen_http_front_create(const pen_front_options *options, pen_http_front **out_front,
                                 uint16_t *out_port) {
    pen_http_front *front = pen_memory_allocate(1, sizeof *front);
    if (front == NULL) return pen_error_out_of_memory();
    const pen_status status =
        pen_http_door_open(&front->door, options, http_handle, http_release, front, out_port);
    if (status != PEN_OK) {
        pen_http_front_destroy(front);
        return status;
    }
    *out_front = front;
    return PEN_OK;
}

void pen_http_front_end_late(pen_http_front *front) {
    pen_http_door_end_late(&front->door);
}

void pen_http_front_destroy(pen_http_front *front) {
    if (front == NULL) return;
    pen_http_door_close(&front->door);
    pen_memory_free(front);
}
