#include "scheduler/measure/link_probe.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/order.h"
#include "base/thread.h"

#define PROBE_TENSOR_BYTES ((size_t)8 << 20)
#define PROBE_RING_TENSORS 8 // tensors that are sent in turn: more than a cache holds
#define PROBE_TRANSFERS 15
#define PROBE_CHUNK_BYTES ((size_t)1 << 20)
#define PROBE_ROUNDS 501
#define PROBE_SMALL_BYTES 64
#define PROBE_DEADLINE_SECONDS 10

// ---- memory

typedef struct probe_bell {
    pen_mutex mutex;
    pen_condition changed;
    uint32_t turn; // guarded by mutex: even, the caller's; odd, the echo's
} probe_bell;

static void probe_wait_turn(probe_bell *bell, uint32_t turn) {
    pen_mutex_lock(&bell->mutex);
    while (bell->turn != turn)
        pen_condition_wait(&bell->changed, &bell->mutex);
    pen_mutex_unlock(&bell->mutex);
}

static void probe_set_turn(probe_bell *bell, uint32_t turn) {
    pen_mutex_lock(&bell->mutex);
    bell->turn = turn;
    pen_condition_broadcast(&bell->changed);
    pen_mutex_unlock(&bell->mutex);
}

static void probe_echo_bell(void *context) {
    probe_bell *bell = context;
    for (uint32_t round = 0; round < PROBE_ROUNDS; round++) {
        probe_wait_turn(bell, 2 * round + 1);
        probe_set_turn(bell, 2 * round + 2);
    }
}

static pen_status probe_bell_latency(double *out_latency) {
    probe_bell bell = {.turn = 0};
    double seconds[PROBE_ROUNDS];
    pen_thread *thread = NULL;
    pen_mutex_init(&bell.mutex);
    pen_condition_init(&bell.changed);
    const pen_status status = pen_thread_create("probe", probe_echo_bell, &bell, &thread);
    for (uint32_t round = 0; status == PEN_OK && round < PROBE_ROUNDS; round++) {
        const double started = pen_clock_seconds();
        probe_set_turn(&bell, 2 * round + 1);
        probe_wait_turn(&bell, 2 * round + 2);
        seconds[round] = pen_clock_seconds() - started;
    }
    pen_thread_join(thread);
    pen_condition_deinit(&bell.changed);
    pen_mutex_deinit(&bell.mutex);
    if (status == PEN_OK) *out_latency = pen_median(seconds, PROBE_ROUNDS) / 2;
    return status;
}

// `from` and `to` hold PROBE_RING_TENSORS tensors.
static double probe_copy_bandwidth(unsigned char *from, unsigned char *to) {
    double seconds[PROBE_TRANSFERS];
    memset(from, 1, PROBE_RING_TENSORS * PROBE_TENSOR_BYTES);
    memset(to, 2, PROBE_RING_TENSORS * PROBE_TENSOR_BYTES);
    for (uint32_t i = 0; i < PROBE_TRANSFERS; i++) {
        const size_t at = i % PROBE_RING_TENSORS * PROBE_TENSOR_BYTES;
        const double started = pen_clock_seconds();
        memcpy(to + at, from + at, PROBE_TENSOR_BYTES);
        seconds[i] = pen_clock_seconds() - started;
    }
    return (double)PROBE_TENSOR_BYTES / pen_median(seconds, PROBE_TRANSFERS);
}

pen_status pen_link_probe_memory(pen_link_probe *out_probe) {
    unsigned char *from = pen_memory_allocate(PROBE_RING_TENSORS, PROBE_TENSOR_BYTES);
    unsigned char *to = pen_memory_allocate(PROBE_RING_TENSORS, PROBE_TENSOR_BYTES);
    pen_link_probe probe = {0};
    pen_status status = from == NULL || to == NULL ? pen_error_out_of_memory() : PEN_OK;
    if (status == PEN_OK) status = probe_bell_latency(&probe.latency);
    if (status == PEN_OK) probe.bandwidth = probe_copy_bandwidth(from, to);
    pen_memory_free(from);
    pen_memory_free(to);
    if (status == PEN_OK) *out_probe = probe;
    return pen_status_add_context(status, "while probing memory");
}

// ---- TCP

static pen_status probe_system_error(const char *what) {
    const int reason = errno;
    const pen_status_code code = reason == EAGAIN || reason == EWOULDBLOCK ? PEN_DEADLINE : PEN_IO;
    return pen_error(code, "cannot %s: %s", what,
                     code == PEN_DEADLINE ? "nothing moved for 10 seconds" : strerror(reason));
}

static pen_status probe_send(int socket, const unsigned char *bytes, size_t count) {
    for (size_t done = 0; done < count;) {
        const size_t left = count - done;
        const ssize_t sent =
            send(socket, bytes + done, left < PROBE_CHUNK_BYTES ? left : PROBE_CHUNK_BYTES,
                 MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR) continue;
        if (sent <= 0) return probe_system_error("send over loopback");
        done += (size_t)sent;
    }
    return PEN_OK;
}

static pen_status probe_receive(int socket, unsigned char *bytes, size_t count) {
    for (size_t done = 0; done < count;) {
        const size_t left = count - done;
        const ssize_t received =
            recv(socket, bytes + done, left < PROBE_CHUNK_BYTES ? left : PROBE_CHUNK_BYTES, 0);
        if (received < 0 && errno == EINTR) continue;
        if (received == 0) return pen_error(PEN_IO, "the connection over loopback was closed");
        if (received < 0) return probe_system_error("receive over loopback");
        done += (size_t)received;
    }
    return PEN_OK;
}

static pen_status probe_set_options(int socket) {
    const int on = 1;
    const struct timeval deadline = {.tv_sec = PROBE_DEADLINE_SECONDS};
    if (setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) != 0 ||
        setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &deadline, sizeof deadline) != 0 ||
        setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &deadline, sizeof deadline) != 0) {
        return probe_system_error("set up a socket");
    }
    return PEN_OK;
}

// Two ends of one connection; -1 where there is none.
typedef struct probe_pair {
    int near;
    int far;
    unsigned char *received; // the far end's ring
    pen_status far_status;   // of its thread, read after it was joined
} probe_pair;

static pen_status probe_connect(int listener, probe_pair *pair) {
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t length = sizeof address;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (bind(listener, (const struct sockaddr *)&address, sizeof address) != 0 ||
        listen(listener, 1) != 0 ||
        getsockname(listener, (struct sockaddr *)&address, &length) != 0) {
        return probe_system_error("listen on loopback");
    }
    pair->near = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (pair->near < 0) return probe_system_error("open a socket");
    PEN_TRY(probe_set_options(pair->near));
    if (connect(pair->near, (const struct sockaddr *)&address, length) != 0) {
        return probe_system_error("connect to loopback");
    }
    pair->far = accept(listener, NULL, NULL);
    if (pair->far < 0) return probe_system_error("accept on loopback");
    return probe_set_options(pair->far);
}

static pen_status probe_open_pair(probe_pair *pair) {
    const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (listener < 0) return probe_system_error("open a socket");
    pen_status status = probe_set_options(listener);
    if (status == PEN_OK) status = probe_connect(listener, pair);
    (void)close(listener);
    return status;
}

// The far end: answers small messages, then answers each tensor with one.
static pen_status probe_answer(const probe_pair *pair) {
    unsigned char small[PROBE_SMALL_BYTES];
    for (uint32_t round = 0; round < PROBE_ROUNDS; round++) {
        PEN_TRY(probe_receive(pair->far, small, sizeof small));
        PEN_TRY(probe_send(pair->far, small, sizeof small));
    }
    for (uint32_t i = 0; i < PROBE_TRANSFERS; i++) {
        PEN_TRY(probe_receive(pair->far,
                              pair->received + i % PROBE_RING_TENSORS * PROBE_TENSOR_BYTES,
                              PROBE_TENSOR_BYTES));
        PEN_TRY(probe_send(pair->far, small, sizeof small));
    }
    return PEN_OK;
}

static void probe_run_far(void *context) {
    probe_pair *pair = context;
    pair->far_status = probe_answer(pair);
    // a near end that waits is told
    if (pair->far_status != PEN_OK) (void)shutdown(pair->far, SHUT_RDWR);
}

// Latency is half the median round trip of a small message. A tensor's time has one round trip in
// it, which is taken off where it is not most of the time.
static pen_status probe_ask(const probe_pair *pair, const unsigned char *sent,
                            pen_link_probe *out_probe) {
    unsigned char small[PROBE_SMALL_BYTES] = {0};
    double rounds[PROBE_ROUNDS], transfers[PROBE_TRANSFERS];
    for (uint32_t round = 0; round < PROBE_ROUNDS; round++) {
        const double started = pen_clock_seconds();
        PEN_TRY(probe_send(pair->near, small, sizeof small));
        PEN_TRY(probe_receive(pair->near, small, sizeof small));
        rounds[round] = pen_clock_seconds() - started;
    }
    const double round_trip = pen_median(rounds, PROBE_ROUNDS);
    for (uint32_t i = 0; i < PROBE_TRANSFERS; i++) {
        const double started = pen_clock_seconds();
        PEN_TRY(probe_send(pair->near, sent + i % PROBE_RING_TENSORS * PROBE_TENSOR_BYTES,
                           PROBE_TENSOR_BYTES));
        PEN_TRY(probe_receive(pair->near, small, sizeof small));
        transfers[i] = pen_clock_seconds() - started;
    }
    const double transfer = pen_median(transfers, PROBE_TRANSFERS);
    // the answer to a tensor takes one way of a round trip, as does its first byte
    const double moving = transfer > 2 * round_trip ? transfer - round_trip : transfer;
    *out_probe = (pen_link_probe){.bandwidth = (double)PROBE_TENSOR_BYTES / moving,
                                  .latency = round_trip / 2};
    return PEN_OK;
}

static pen_status probe_run_pair(probe_pair *pair, const unsigned char *sent,
                                 pen_link_probe *out_probe) {
    pen_thread *thread;
    PEN_TRY(pen_thread_create("probe", probe_run_far, pair, &thread));
    const pen_status status = probe_ask(pair, sent, out_probe);
    if (status != PEN_OK) (void)shutdown(pair->near, SHUT_RDWR);
    pen_thread_join(thread);
    return pen_status_join(status, pair->far_status);
}

pen_status pen_link_probe_loopback(pen_link_probe *out_probe) {
    probe_pair pair = {.near = -1, .far = -1};
    unsigned char *sent = pen_memory_allocate(PROBE_RING_TENSORS, PROBE_TENSOR_BYTES);
    pair.received = pen_memory_allocate(PROBE_RING_TENSORS, PROBE_TENSOR_BYTES);
    pen_status status =
        sent == NULL || pair.received == NULL ? pen_error_out_of_memory() : probe_open_pair(&pair);
    if (status == PEN_OK) {
        memset(sent, 1, PROBE_RING_TENSORS * PROBE_TENSOR_BYTES);
        memset(pair.received, 2, PROBE_RING_TENSORS * PROBE_TENSOR_BYTES);
        status = probe_run_pair(&pair, sent, out_probe);
    }
    if (pair.near >= 0) (void)close(pair.near);
    if (pair.far >= 0) (void)close(pair.far);
    pen_memory_free(sent);
    pen_memory_free(pair.received);
    return pen_status_add_context(status, "while probing TCP over loopback");
}
