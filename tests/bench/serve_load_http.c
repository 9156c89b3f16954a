// Calls over HTTP/1.1: a connection for each, kept alive, made when it is first needed.
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "tests/bench/serve_load.h"

#define HEAD_BYTES 4096
#define EVENTS_AT_ONCE 64

typedef struct http_connection {
    int socket;            // -1: none
    uint64_t sent;         // bytes of head and body
    char head[HEAD_BYTES]; // of the answer
    uint64_t head_length;  // read so far
    uint64_t body_left;    // when the head is whole
    bool is_open;          // a call is
    bool has_head;
    int status;
    bool closes; // the server will, after this answer
} http_connection;

static const load_request *http_request;
static char http_head[1024]; // of every request
static uint64_t http_head_length;
static http_connection http_connections[LOAD_CALLS_LIMIT];
static int http_poll;
// calls that failed while they were sent: they end at the next await
static uint32_t http_failed[LOAD_CALLS_LIMIT];
static uint32_t http_failed_count;

static void http_open(const load_request *request) {
    http_request = request;
    const int length =
        snprintf(http_head, sizeof http_head,
                 "POST /v2/models/%s/infer HTTP/1.1\r\nHost: localhost\r\nContent-Length: %llu\r\n"
                 "Inference-Header-Content-Length: %llu\r\n\r\n",
                 request->model, (unsigned long long)request->length,
                 (unsigned long long)request->json_length);
    if (length < 0 || (size_t)length >= sizeof http_head) load_fail("the model's name is too long");
    http_head_length = (uint64_t)length;
    http_poll = epoll_create1(EPOLL_CLOEXEC);
    if (http_poll < 0) load_fail("no epoll");
    for (uint32_t i = 0; i < request->calls; i++) {
        http_connections[i].socket = -1;
    }
}

static void http_close(http_connection *c) {
    if (c->socket >= 0) close(c->socket); // which takes it out of epoll
    c->socket = -1;
}

// Within this machine a connection is there at once.
static bool http_connect(http_connection *c, uint32_t call) {
    const struct sockaddr_in address = {.sin_family = AF_INET,
                                        .sin_port = htons((uint16_t)http_request->port),
                                        .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const int one = 1;
    struct epoll_event event = {.events = EPOLLIN, .data.u32 = call};
    c->socket = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (c->socket < 0) load_fail("no socket");
    setsockopt(c->socket, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    if (connect(c->socket, (const struct sockaddr *)&address, sizeof address) == 0 &&
        epoll_ctl(http_poll, EPOLL_CTL_ADD, c->socket, &event) == 0) {
        return true;
    }
    http_close(c);
    return false;
}

// As much as the socket takes; false: it is broken.
static bool http_write(http_connection *c, uint32_t call) {
    const uint64_t total = http_head_length + http_request->length;
    struct epoll_event event = {.events = EPOLLIN, .data.u32 = call};
    while (c->sent < total) {
        struct iovec parts[2];
        size_t count = 0;
        uint64_t at = c->sent;
        if (at < http_head_length) {
            parts[count++] = (struct iovec){http_head + at, http_head_length - at};
            at = http_head_length;
        }
        void *body;
        const char *from = (const char *)http_request->bytes + (at - http_head_length);
        memcpy(&body, &from, sizeof body); // it is only read
        parts[count++] = (struct iovec){body, total - at};
        const struct msghdr message = {.msg_iov = parts, .msg_iovlen = count};
        const ssize_t done = sendmsg(c->socket, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (done < 0 && errno != EAGAIN) return false;
        if (done < 0) {
            event.events |= EPOLLOUT;
            break;
        }
        c->sent += (uint64_t)done;
    }
    return epoll_ctl(http_poll, EPOLL_CTL_MOD, c->socket, &event) == 0;
}

static void http_send(uint32_t call) {
    http_connection *c = &http_connections[call];
    c->sent = c->head_length = 0;
    c->has_head = c->closes = false;
    c->is_open = true;
    if ((c->socket >= 0 || http_connect(c, call)) && http_write(c, call)) return;
    http_close(c);
    http_failed[http_failed_count++] = call;
}

static load_outcome http_outcome(int status) {
    switch (status) {
    case 200:
        return LOAD_OK;
    case 429:
        return LOAD_SHED;
    case 504:
        return LOAD_LATE;
    default:
        return LOAD_OTHER;
    }
}

// The head is whole: its status, and how long the body is.
static void http_read_head(http_connection *c, uint64_t head_length) {
    const char *line = c->head;
    const char *const end = c->head + head_length;
    uint64_t length = 0;
    if (sscanf(line, "HTTP/1.%*d %d", &c->status) != 1) load_fail("the answer is no HTTP");
    while ((line = memchr(line, '\n', (size_t)(end - line))) != NULL && ++line < end) {
        if (strncasecmp(line, "Content-Length:", 15) == 0) length = strtoull(line + 15, NULL, 10);
        if (strncasecmp(line, "Connection: close", 17) == 0) c->closes = true;
    }
    const uint64_t here = c->head_length - head_length;
    if (here > length) load_fail("the answer is longer than it says");
    c->body_left = length - here;
    c->has_head = true;
}

// What has come of an answer; true: the call has ended.
static bool http_read(http_connection *c, load_outcome *out_outcome) {
    static char sink[1 << 18];
    *out_outcome = LOAD_REFUSED;
    for (;;) {
        char *const to = c->has_head ? sink : c->head + c->head_length;
        const uint64_t room = c->has_head ? sizeof sink : sizeof c->head - 1 - c->head_length;
        if (room == 0) load_fail("the answer's head is too long");
        const ssize_t done = recv(c->socket, to, room, MSG_DONTWAIT);
        if (done < 0 && errno == EAGAIN) return false;
        if (done <= 0) { // closed without an answer, or in the middle of one
            http_close(c);
            return true;
        }
        if (c->has_head) {
            if ((uint64_t)done > c->body_left) load_fail("the answer is longer than it says");
            c->body_left -= (uint64_t)done;
        } else {
            c->head_length += (uint64_t)done;
            c->head[c->head_length] = '\0';
            const char *end = strstr(c->head, "\r\n\r\n");
            if (end == NULL) continue;
            http_read_head(c, (uint64_t)(end + 4 - c->head));
        }
        if (c->body_left > 0) continue;
        *out_outcome = http_outcome(c->status);
        if (c->closes || c->sent < http_head_length + http_request->length) http_close(c);
        return true;
    }
}

// Connections that are closed while no call is open on them are made anew by the next.
static uint32_t http_await(double seconds, load_end *ends, uint32_t limit) {
    struct epoll_event events[EVENTS_AT_ONCE];
    uint32_t count = 0;
    while (count < limit && http_failed_count > 0) {
        ends[count++] = (load_end){http_failed[--http_failed_count], LOAD_REFUSED};
    }
    if (count > 0) return count;
    const struct timespec wait = {(time_t)seconds,
                                  (long)((seconds - (double)(time_t)seconds) * 1e9)};
    const int room = limit < EVENTS_AT_ONCE ? (int)limit : EVENTS_AT_ONCE;
    const int found = epoll_pwait2(http_poll, events, room, &wait, NULL);
    for (int i = 0; i < found; i++) {
        const uint32_t call = events[i].data.u32;
        http_connection *c = &http_connections[call];
        load_outcome outcome = LOAD_REFUSED;
        if (!c->is_open) {
            http_close(c);
        } else if ((events[i].events & EPOLLOUT) != 0 && !http_write(c, call)) {
            http_close(c);
            c->is_open = false;
            ends[count++] = (load_end){call, LOAD_REFUSED};
        } else if ((events[i].events & ~(uint32_t)EPOLLOUT) != 0 && http_read(c, &outcome)) {
            c->is_open = false;
            ends[count++] = (load_end){call, outcome};
        }
    }
    return count;
}

const load_door load_http = {"http", http_open, http_send, http_await};
