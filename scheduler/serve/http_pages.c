#include "scheduler/serve/http_pages.h"

#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "scheduler/serve/http_door.h"
#include "scheduler/serve/http_guard.h"
#include "scheduler/transport/grpc/address.h"

#define PAGES_TICK_SECONDS 0.25
#define PAGES_CONNECTIONS 64u // a browser opens six
#define PAGES_CALLS 16u       // at once
#define PAGES_TIMEOUT_SECONDS 10
#define PAGES_TEXT "text/plain; charset=utf-8"

struct pen_http_pages {
    pen_http_door door;
    pen_http_pages_options options;
    char own_host[256];
    pen_thread *ticker; // ends who is late
    pen_mutex lock;
    pen_condition ends;
    bool is_ending; // guarded by lock
};

// ---- requests

static const pen_http_header pages_headers[] = {
    {"Cache-Control", "no-store"},
    {"X-Content-Type-Options", "nosniff"},
    {"X-Frame-Options", "DENY"},
    {"Referrer-Policy", "no-referrer"},
    {"Cross-Origin-Resource-Policy", "same-origin"},
    {"WWW-Authenticate", "Basic realm=\"penstock\", charset=\"UTF-8\""}, // of 401 alone
};
#define PAGES_HEADER_COUNT ((uint32_t)(sizeof pages_headers / sizeof *pages_headers))

static enum MHD_Result pages_answer(pen_http_pages *pages, struct MHD_Connection *connection,
                                    unsigned status, const pen_http_page *page) {
    const pen_http_answer answer = {.status = status,
                                    .type = page->type,
                                    .bytes = page->bytes,
                                    .length = page->length,
                                    .stays = page->stays,
                                    .headers = pages_headers,
                                    .header_count = PAGES_HEADER_COUNT - (status == 401 ? 0 : 1)};
    return pen_http_door_answer(&pages->door, connection, &answer);
}

static enum MHD_Result pages_refuse(pen_http_pages *pages, struct MHD_Connection *connection,
                                    unsigned status, const char *text) {
    const pen_http_page page = {
        .type = PAGES_TEXT, .bytes = text, .length = strlen(text), .stays = true};
    return pages_answer(pages, connection, status, &page);
}

static enum MHD_Result pages_find(pen_http_pages *pages, struct MHD_Connection *connection,
                                  const char *path) {
    pen_http_page page = {0};
    pen_arena *arena;
    if (pen_arena_create(&arena) != PEN_OK) return MHD_NO;
    const pen_status status = pages->options.find(pages->options.context, path, arena, &page);
    const pen_status_code code = pen_status_get_code(status);
    pen_status_ignore(status, "the caller is told its kind");
    enum MHD_Result result;
    if (code == PEN_CODE_OK) {
        result = pages_answer(pages, connection, 200, &page);
    } else if (code == PEN_NOT_FOUND) {
        result = pages_refuse(pages, connection, 404, "there is nothing at this path\n");
    } else {
        result = pages_refuse(pages, connection, 503, "not now: try again\n");
    }
    pen_arena_destroy(arena);
    return result;
}

// What can be refused by the head of a request. NULL: nothing; else why, with *out_status.
static const char *pages_judge(const pen_http_pages *pages, struct MHD_Connection *connection,
                               const char *method, unsigned *out_status) {
    const pen_http_door *door = &pages->door;
    const char *length = pen_http_door_header(door, connection, "Content-Length");
    if (!pen_http_host_is_allowed(pen_http_door_header(door, connection, "Host"),
                                  pages->own_host)) {
        *out_status = 421;
        return "ask for this machine by its address, or as localhost\n";
    }
    if (!pen_http_token_is_allowed(pages->options.token,
                                   pen_http_door_header(door, connection, "Authorization"))) {
        *out_status = 401;
        return "the token is needed, as the password of any name\n";
    }
    if (strcmp(method, "GET") != 0 && strcmp(method, "HEAD") != 0) {
        *out_status = 405;
        return "this can only be read\n";
    }
    const bool has_length = length != NULL && strcmp(length, "0") != 0;
    if (has_length || pen_http_door_header(door, connection, "Transfer-Encoding") != NULL) {
        *out_status = 413;
        return "expected no body\n";
    }
    if (atomic_load(&door->open_count) > door->options.calls_limit) {
        *out_status = 503;
        return "too much is asked at once: try again\n";
    }
    return NULL;
}

// libmicrohttpd calls this for the head, and again at its end. `call_place` says which it is: a
// request is counted from its head until it is released.
// NOLINTNEXTLINE(readability-function-size): libmicrohttpd says what its arguments are
static enum MHD_Result pages_handle(void *context, struct MHD_Connection *connection,
                                    const char *path, const char *method, const char *version,
                                    const char *upload, size_t *upload_length, void **call_place) {
    pen_http_pages *pages = context;
    (void)version;
    (void)upload;
    if (*call_place == NULL) {
        unsigned status = 0;
        *call_place = pages;
        atomic_fetch_add(&pages->door.open_count, 1);
        pen_http_door_begin(&pages->door, connection);
        const char *why = pages_judge(pages, connection, method, &status);
        if (why != NULL) return pages_refuse(pages, connection, status, why);
        pen_http_door_know(&pages->door, connection);
        return MHD_YES;
    }
    if (*upload_length > 0) return MHD_NO; // ends the connection
    return pages_find(pages, connection, path);
}

static void pages_release(void *context, struct MHD_Connection *connection, void **call_place,
                          enum MHD_RequestTerminationCode code) {
    pen_http_pages *pages = context;
    (void)code;
    if (*call_place == NULL) return;
    pen_http_door_end(&pages->door, connection);
    atomic_fetch_sub(&pages->door.open_count, 1);
    *call_place = NULL;
}

// ---- life

// A step of a training may take minutes, so its thread cannot look after callers.
static void pages_tick(void *context) {
    pen_http_pages *pages = context;
    pen_mutex_lock(&pages->lock);
    while (!pages->is_ending) {
        (void)pen_condition_wait_for(&pages->ends, &pages->lock, PAGES_TICK_SECONDS);
        pen_mutex_unlock(&pages->lock);
        pen_http_door_end_late(&pages->door);
        pen_mutex_lock(&pages->lock);
    }
    pen_mutex_unlock(&pages->lock);
}

// A browser on another machine asks for the host it was told, or for this machine's own name.
static pen_status pages_check_address(pen_http_pages *pages) {
    pen_address address;
    PEN_TRY(pen_address_read(pages->options.address, &address));
    if (!pen_address_is_loopback(&address) && pages->options.token == NULL) {
        return pen_error(PEN_INVALID_INPUT,
                         "%s can be reached from other machines, which needs a token",
                         pages->options.address);
    }
    snprintf(pages->own_host, sizeof pages->own_host, "%s", address.host);
    const bool is_any = strcmp(address.host, "*") == 0 || strcmp(address.host, "0.0.0.0") == 0 ||
                        strcmp(address.host, "::") == 0;
    if (is_any && gethostname(pages->own_host, sizeof pages->own_host - 1) != 0) {
        pages->own_host[0] = '\0';
    }
    return PEN_OK;
}

static pen_status pages_open(pen_http_pages *pages, uint16_t *out_port) {
    pen_front_options front = {.address = pages->options.address,
                               .token = pages->options.token,
                               .is_https = pages->options.tls != NULL,
                               .calls_limit = PAGES_CALLS,
                               .connections_limit = PAGES_CONNECTIONS,
                               .timeout_seconds = PAGES_TIMEOUT_SECONDS};
    if (front.is_https) front.tls = *pages->options.tls;
    PEN_TRY(pages_check_address(pages));
    PEN_TRY(pen_http_door_open(&pages->door, &front, pages_handle, pages_release, pages, out_port));
    return pen_thread_create("pages", pages_tick, pages, &pages->ticker);
}

pen_status pen_http_pages_create(const pen_http_pages_options *options, pen_http_pages **out_pages,
                                 uint16_t *out_port) {
    pen_http_pages *pages = pen_memory_allocate(1, sizeof *pages);
    if (pages == NULL) return pen_error_out_of_memory();
    pages->options = *options;
    pen_mutex_init(&pages->lock);
    pen_condition_init(&pages->ends);
    const pen_status status = pages_open(pages, out_port);
    if (status != PEN_OK) {
        pen_http_pages_destroy(pages);
        return status;
    }
    *out_pages = pages;
    return PEN_OK;
}

void pen_http_pages_destroy(pen_http_pages *pages) {
    if (pages == NULL) return;
    if (pages->ticker != NULL) {
        pen_mutex_lock(&pages->lock);
        pages->is_ending = true;
        pen_condition_signal(&pages->ends);
        pen_mutex_unlock(&pages->lock);
        pen_thread_join(pages->ticker);
    }
    pen_http_door_close(&pages->door);
    pen_condition_deinit(&pages->ends);
    pen_mutex_deinit(&pages->lock);
    pen_memory_free(pages);
}
