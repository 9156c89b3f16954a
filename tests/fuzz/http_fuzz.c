// Fuzzes the doors for HTTP, that of a server and that of pages: any bytes that a caller sends over
// a connection are answered, or end it, and the next caller is served. The first byte says which
// door it is, and whether callers need a token. Requests that could be read get answers of zeros,
// without a batcher. What a guard makes of the whole input is tried besides.
#include <netinet/in.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "scheduler/serve/http_front.h"
#include "scheduler/serve/http_guard.h"
#include "scheduler/serve/http_pages.h"
#include "scheduler/serve/infer_json.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/infer_case.h"

#define ANSWER_MILLISECONDS 3  // a head that is not whole gets none
#define NEXT_EACH 64           // inputs, then somebody asks who means well
#define NEXT_MILLISECONDS 5000 // so long at most

// In place of the batcher's, which the library would bring.
void pen_batcher_submit(pen_batcher *batcher, pen_infer_request *request) {
    (void)batcher;
    fuzz_must(request->rows > 0);
    request->done(request->context, request, PEN_OK);
}

bool pen_batcher_is_ready(pen_batcher *batcher) {
    (void)batcher;
    return true;
}

void pen_batcher_count(pen_batcher *batcher, pen_status_code code) {
    (void)batcher;
    (void)code;
}

void pen_batcher_print_metrics(pen_batcher *batcher, pen_text *text) {
    (void)batcher;
    pen_text_add(text, "penstock_requests_total 0\n");
}

static uint16_t listen_with(const char *token) {
    const pen_front_options options = {.address = "127.0.0.1:0",
                                       .model = &infer_model,
                                       .token = token,
                                       .bytes_limit = 4096,
                                       .calls_limit = 4,
                                       .connections_limit = 1024,
                                       .timeout_seconds = 1};
    pen_http_front *front; // as long as the program
    uint16_t port = 0;
    fuzz_must(fuzz_works(pen_http_front_create(&options, &front, &port)));
    return port;
}

static pen_status find_page(void *context, const char *path, pen_arena *arena,
                            pen_http_page *out_page) {
    (void)context;
    if (strcmp(path, "/none") == 0) return pen_error(PEN_NOT_FOUND, "none");
    *out_page = (pen_http_page){.type = "text/plain", .length = strlen(path)};
    return pen_arena_copy_text(arena, path, strlen(path), &out_page->bytes);
}

static uint16_t show_with(const char *token) {
    const pen_http_pages_options options = {
        .address = "127.0.0.1:0", .token = token, .find = find_page};
    pen_http_pages *pages; // as long as the program
    uint16_t port = 0;
    fuzz_must(fuzz_works(pen_http_pages_create(&options, &pages, &port)));
    return port;
}

// A name with a dot and a letter behind it is nobody's here.
static void try_guard(const uint8_t *data, size_t size) {
    char text[512];
    const size_t length = size < sizeof text - 1 ? size : sizeof text - 1;
    memcpy(text, data, length);
    text[length] = '\0';
    if (pen_http_host_is_allowed(text, NULL)) fuzz_must(strstr(text, ".e") == NULL);
    (void)pen_http_token_is_allowed("secret", text);
}

static int call(uint16_t port) {
    const struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr = {htonl(INADDR_LOOPBACK)}};
    const int caller = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    fuzz_must(caller >= 0);
    fuzz_must(connect(caller, (const struct sockaddr *)&address, sizeof address) == 0);
    return caller;
}

// Sends the bytes and waits for an answer, so long at most. Whether one came. The connection ends
// with a reset: a port may be needed again soon.
static bool ask(uint16_t port, const void *bytes, size_t size, int milliseconds) {
    const struct linger at_once = {.l_onoff = 1};
    char answer[4096];
    const int caller = call(port);
    struct pollfd wanted = {.fd = caller, .events = POLLIN};
    (void)send(caller, bytes, size, MSG_NOSIGNAL);
    const bool is_there = poll(&wanted, 1, milliseconds) == 1;
    while (is_there && recv(caller, answer, sizeof answer, MSG_DONTWAIT) > 0)
        ;
    fuzz_must(setsockopt(caller, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once) == 0);
    close(caller);
    return is_there;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const char next[] = "GET /v2/health/live HTTP/1.1\r\nHost: a\r\n\r\n";
    static uint16_t ports[4];
    static uint32_t count;
    if (ports[0] == 0) {
        ports[0] = listen_with(NULL);
        ports[1] = listen_with("secret");
        ports[2] = show_with(NULL);
        ports[3] = show_with("secret");
    }
    if (size == 0) return 0;
    try_guard(data + 1, size - 1);
    (void)ask(ports[data[0] % 4], data + 1, size - 1, ANSWER_MILLISECONDS);
    if (++count % NEXT_EACH == 0) {
        fuzz_must(ask(ports[0], next, sizeof next - 1, NEXT_MILLISECONDS));
        fuzz_must(ask(ports[2], next, sizeof next - 1, NEXT_MILLISECONDS));
    }
    return 0;
}
