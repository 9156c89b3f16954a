// Bytes from one process to another over loopback: one measurement, printed as JSON.
//   transport_bench throughput WAY BYTES TOTAL [CERTIFICATES]   frames of BYTES until TOTAL
//   transport_bench round-trip WAY COUNT [CERTIFICATES]         64-byte messages, there and back
// WAY is tcp or a transport, with '+thread' behind it: messages are sent by another thread than
// that which hears of them; '+ring': frames go through shared memory, and round trips are made by
// frames; '+spin': tcp or the ring's thread does not sleep. Both sides' buffers rotate through
// 128 MiB. A transport's frames have checksums, made and compared by the thread that would compute.
// CERTIFICATES is a folder with ca.pem, cert.pem and key.pem: then over TLS.
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/checksum.h"
#include "base/clock.h"
#include "base/system/process_heap.h"
#include "base/thread.h"
#include "scheduler/transport/transport.h"

#define POOL_BYTES ((uint64_t)128 << 20)
#define WINDOW_BYTES ((uint64_t)32 << 20)
#define ROUND_LIMIT 100000
#define CREDIT_LIMIT 4096

typedef struct result { // shared by the two processes
    _Atomic int port;
    double seconds;
    double cpu_seconds[2];
    uint64_t bytes_copied[2];
    uint64_t wrong_count;
    double rounds[ROUND_LIMIT];
    uint64_t round_count;
} result;

typedef struct job {
    const char *way;
    bool is_round_trip, uses_thread, uses_ring, spins;
    uint64_t bytes, count;
    const char *certificates;
    result *shared;
} job;

static void fail(const char *what) {
    fprintf(stderr, "transport_bench: %s\n", what);
    _exit(1);
}

static void check(pen_status status) {
    if (status == PEN_OK) return;
    char text[1024];
    pen_status_format(status, text, sizeof text);
    fail(text);
}

static double cpu_seconds(void) {
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1e-6;
}

static uint8_t *make_pool(void) {
    uint8_t *pool =
        mmap(NULL, POOL_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pool == MAP_FAILED) fail("no memory");
    for (uint64_t i = 0; i < POOL_BYTES; i += 8) {
        const uint64_t value = i * 0x9e3779b97f4a7c15u;
        memcpy(pool + i, &value, sizeof value);
    }
    return pool;
}

static uint64_t pool_offset(const job *j, uint64_t i) {
    return i % (POOL_BYTES / j->bytes) * j->bytes;
}

// ---- raw TCP

static int tcp_socket(void) {
    const int one = 1, descriptor = socket(AF_INET, SOCK_STREAM, 0);
    if (descriptor < 0) fail("no socket");
    setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    return descriptor;
}

static int tcp_listen(const job *j) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    const int listener = tcp_socket(), one = 1;
    if (bind(listener, (struct sockaddr *)&address, length) != 0 || listen(listener, 1) != 0 ||
        getsockname(listener, (struct sockaddr *)&address, &length) != 0) {
        fail("cannot listen");
    }
    j->shared->port = ntohs(address.sin_port);
    const int descriptor = accept(listener, NULL, NULL);
    setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    return descriptor;
}

static int tcp_connect(const job *j) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    while (j->shared->port == 0)
        usleep(1000);
    address.sin_port = htons((uint16_t)j->shared->port);
    const int descriptor = tcp_socket();
    if (connect(descriptor, (struct sockaddr *)&address, sizeof address) != 0)
        fail("cannot connect");
    return descriptor;
}

static void tcp_move(int descriptor, uint8_t *bytes, uint64_t count, bool is_out) {
    while (count != 0) {
        const ssize_t moved =
            is_out ? write(descriptor, bytes, count) : read(descriptor, bytes, count);
        if (moved < 0 && errno == EAGAIN) continue; // spins
        if (moved <= 0) fail("the connection broke");
        bytes += moved;
        count -= (uint64_t)moved;
    }
}

static void tcp_receiver(const job *j) {
    uint8_t *pool = make_pool();
    const int descriptor = tcp_listen(j);
    if (j->spins) fcntl(descriptor, F_SETFL, O_NONBLOCK);
    const double cpu = cpu_seconds();
    for (uint64_t i = 0; i < j->count; i++) {
        uint8_t *at = pool + pool_offset(j, i);
        tcp_move(descriptor, at, j->bytes, false);
        if (j->is_round_trip) tcp_move(descriptor, at, j->bytes, true);
    }
    if (!j->is_round_trip) tcp_move(descriptor, pool, 1, true);
    j->shared->cpu_seconds[1] = cpu_seconds() - cpu;
}

static void tcp_sender(const job *j) {
    uint8_t *pool = make_pool();
    const int descriptor = tcp_connect(j);
    if (j->spins) fcntl(descriptor, F_SETFL, O_NONBLOCK);
    usleep(200000); // until the other has touched its pool
    const double cpu = cpu_seconds(), start = pen_clock_seconds();
    for (uint64_t i = 0; i < j->count; i++) {
        const double round = pen_clock_seconds();
        uint8_t *at = pool + pool_offset(j, i);
        tcp_move(descriptor, at, j->bytes, true);
        if (!j->is_round_trip) continue;
        tcp_move(descriptor, at, j->bytes, false);
        j->shared->rounds[i] = pen_clock_seconds() - round;
    }
    if (!j->is_round_trip) tcp_move(descriptor, pool, 1, false);
    j->shared->seconds = pen_clock_seconds() - start;
    j->shared->cpu_seconds[0] = cpu_seconds() - cpu;
}

// ---- a transport

typedef struct end {
    const job *job;
    const pen_transport_kind *kind;
    pen_transport *transport;
    uint32_t peer; // the other's number
    bool is_sender;
    uint8_t *pool;
    pen_mutex lock;
    pen_condition changed;
    // guarded by lock
    bool is_up, is_down;
    uint64_t arrived, handled; // frames, or messages
    uint64_t lent;
    double round_start;
    uint32_t *checksums; // of frames that arrived: [CREDIT_LIMIT][chunks]
} end;

static pen_status end_accept(void *context, const pen_introduction *who, const char *address) {
    (void)context;
    (void)who;
    (void)address;
    return PEN_OK;
}

static void end_signal(end *e, bool *flag) {
    pen_mutex_lock(&e->lock);
    *flag = true;
    pen_condition_broadcast(&e->changed);
    pen_mutex_unlock(&e->lock);
}

static void end_up(void *context, uint32_t peer) {
    end *e = context;
    (void)peer;
    end_signal(e, &e->is_up);
}

static void end_down(void *context, uint32_t peer, pen_status take_reason) {
    end *e = context;
    (void)peer;
    if (e->is_sender && e->handled < e->job->count) check(take_reason);
    pen_status_ignore(take_reason, "the other is done");
    end_signal(e, &e->is_down);
}

static void end_send_round(end *e) {
    static const uint32_t checksum = 0; // of a frame that nobody compares
    static const uint8_t bytes[64] = {1};
    if (!e->job->uses_ring) {
        check(e->kind->send_message(e->transport, e->peer, bytes, e->job->bytes));
        return;
    }
    const pen_frame frame = {.bytes = e->job->bytes};
    pen_mutex_lock(&e->lock);
    e->lent += 1;
    pen_mutex_unlock(&e->lock);
    check(e->kind->send_frame(e->transport, e->peer, &frame, pen_memory_place_at(bytes), &checksum,
                              0));
}

static void end_next_round(end *e) {
    e->round_start = pen_clock_seconds();
    end_send_round(e);
}

// A message or frame of a round trip.
static void end_arrive(end *e) {
    const job *j = e->job;
    if (j->is_round_trip && !e->is_sender) end_send_round(e);
    if (j->is_round_trip && e->is_sender) {
        j->shared->rounds[e->arrived] = pen_clock_seconds() - e->round_start;
    }
    pen_mutex_lock(&e->lock);
    e->arrived += 1;
    const bool goes_on =
        j->is_round_trip && e->is_sender && !j->uses_thread && e->arrived < j->count;
    if (!goes_on) pen_condition_broadcast(&e->changed);
    pen_mutex_unlock(&e->lock);
    if (goes_on) end_next_round(e);
}

static void end_message(void *context, uint32_t peer, const void *bytes, uint64_t count) {
    end *e = context;
    (void)peer;
    if (e->job->is_round_trip) {
        end_arrive(e);
        return;
    }
    if (count != sizeof e->arrived) fail("a credit that is none");
    pen_mutex_lock(&e->lock);
    memcpy(&e->arrived, bytes, sizeof e->arrived); // frames that the other end has handled
    pen_condition_broadcast(&e->changed);
    pen_mutex_unlock(&e->lock);
}

static pen_status end_begin(void *context, uint32_t peer, const pen_frame *frame,
                            pen_memory_place *out_place) {
    end *e = context;
    (void)peer;
    *out_place = pen_memory_place_at(e->pool + pool_offset(e->job, frame->sequence));
    return PEN_OK;
}

static void end_end(void *context, uint32_t peer, const pen_frame *frame,
                    const uint32_t *checksums) {
    end *e = context;
    const uint32_t chunks = pen_frame_chunk_count(frame->bytes);
    (void)peer;
    if (e->job->is_round_trip) {
        end_arrive(e);
        return;
    }
    memcpy(e->checksums + frame->sequence % CREDIT_LIMIT * chunks, checksums,
           chunks * sizeof *checksums);
    pen_mutex_lock(&e->lock);
    e->arrived += 1;
    pen_condition_broadcast(&e->changed);
    pen_mutex_unlock(&e->lock);
}

static void end_let_go(void *context, uint32_t peer, uint64_t token) {
    end *e = context;
    (void)peer;
    (void)token;
    pen_mutex_lock(&e->lock);
    e->lent -= 1;
    pen_condition_broadcast(&e->changed);
    pen_mutex_unlock(&e->lock);
}

static void end_open(end *e, const job *j, bool is_sender) {
    static char ca[512], cert[512], key[512];
    *e = (end){.job = j, .is_sender = is_sender, .peer = is_sender ? 1 : 0};
    pen_process_heap_prepare();
    pen_mutex_init(&e->lock);
    pen_condition_init(&e->changed);
    e->pool = make_pool();
    const uint32_t chunks = pen_frame_chunk_count(j->bytes);
    e->checksums = calloc((size_t)CREDIT_LIMIT * chunks, sizeof *e->checksums);
    pen_transport_options options = {
        .self = {.job = "bench", .peer = is_sender ? 0 : 1, .shares_memory = j->uses_ring},
        .ring_spin_seconds = j->spins ? 1 : 0};
    if (j->certificates != NULL) {
        snprintf(ca, sizeof ca, "%s/ca.pem", j->certificates);
        snprintf(cert, sizeof cert, "%s/cert.pem", j->certificates);
        snprintf(key, sizeof key, "%s/key.pem", j->certificates);
        options.tls = (pen_transport_tls){.ca = ca, .cert = cert, .key = key};
    }
    const pen_transport_events events = {.context = e,
                                         .accept = end_accept,
                                         .up = end_up,
                                         .down = end_down,
                                         .message = end_message,
                                         .begin = end_begin,
                                         .end = end_end,
                                         .let_go = end_let_go};
    check(pen_transport_kind_find(j->way, &e->kind));
    check(e->kind->create(&options, &events, &e->transport));
}

static void end_wait(end *e, const bool *flag) {
    pen_mutex_lock(&e->lock);
    while (!*flag)
        pen_condition_wait(&e->changed, &e->lock);
    pen_mutex_unlock(&e->lock);
}

static void end_close(end *e, int side, double cpu) {
    e->job->shared->cpu_seconds[side] = cpu_seconds() - cpu;
    e->job->shared->bytes_copied[side] = e->kind->counters(e->transport).bytes_copied;
    if (side == 1) end_wait(e, &e->is_down);
    e->kind->stop(e->transport);
    e->kind->destroy(e->transport);
}

// Frames that may be under way.
static uint64_t frame_window(const job *j) {
    const uint64_t window = WINDOW_BYTES / j->bytes;
    if (window < 2) return 2 * j->bytes <= POOL_BYTES ? 2 : 1;
    return window > CREDIT_LIMIT / 2 ? CREDIT_LIMIT / 2 : window;
}

// Credits go back when an eighth of the window has been handled.
static bool is_credit_due(const job *j, uint64_t i) {
    const uint64_t every = frame_window(j) / 8;
    return every == 0 || (i + 1) % every == 0 || i + 1 == j->count;
}

static void transport_receiver(const job *j) {
    static end e;
    uint16_t port;
    end_open(&e, j, false);
    check(e.kind->listen(e.transport, "127.0.0.1:0", &port));
    j->shared->port = port;
    end_wait(&e, &e.is_up);
    const double cpu = cpu_seconds();
    const uint32_t chunks = pen_frame_chunk_count(j->bytes);
    for (uint64_t i = 0; i < j->count; i++) {
        pen_mutex_lock(&e.lock);
        while (e.arrived <= i)
            pen_condition_wait(&e.changed, &e.lock);
        pen_mutex_unlock(&e.lock);
        if (j->is_round_trip) continue;
        const uint32_t wrong = pen_checksum_find_difference(
            e.pool + pool_offset(j, i), j->bytes, e.checksums + i % CREDIT_LIMIT * chunks);
        j->shared->wrong_count += wrong != chunks;
        if (!is_credit_due(j, i)) continue;
        const uint64_t handled = i + 1;
        check(e.kind->send_message(e.transport, 0, &handled, sizeof handled));
    }
    end_close(&e, 1, cpu);
}

static void send_frames(end *e) {
    const job *j = e->job;
    const uint32_t chunks = pen_frame_chunk_count(j->bytes);
    const uint64_t window = frame_window(j);
    for (uint64_t i = 0; i < j->count; i++) {
        pen_mutex_lock(&e->lock);
        while (i - e->arrived >= window || e->lent >= window) {
            pen_condition_wait(&e->changed, &e->lock);
        }
        e->lent += 1;
        pen_mutex_unlock(&e->lock);
        uint8_t *at = e->pool + pool_offset(j, i);
        uint32_t *checksums = e->checksums + i % CREDIT_LIMIT * chunks;
        pen_checksum_chunks(at, j->bytes, checksums);
        const pen_frame frame = {.sequence = i, .bytes = j->bytes};
        check(e->kind->send_frame(e->transport, e->peer, &frame, pen_memory_place_at(at), checksums,
                                  i));
    }
    pen_mutex_lock(&e->lock);
    while (e->arrived < j->count)
        pen_condition_wait(&e->changed, &e->lock);
    pen_mutex_unlock(&e->lock);
}

static void send_rounds(end *e) {
    const job *j = e->job;
    end_next_round(e);
    for (uint64_t i = 1; i <= j->count; i++) {
        pen_mutex_lock(&e->lock);
        while (e->arrived < (j->uses_thread ? i : j->count))
            pen_condition_wait(&e->changed, &e->lock);
        pen_mutex_unlock(&e->lock);
        if (!j->uses_thread) break;
        if (i < j->count) end_next_round(e);
    }
}

static void transport_sender(const job *j) {
    static end e;
    char address[64];
    end_open(&e, j, true);
    while (j->shared->port == 0)
        usleep(1000);
    snprintf(address, sizeof address, "127.0.0.1:%d", (int)j->shared->port);
    check(e.kind->connect(e.transport, 1, address, 20));
    end_wait(&e, &e.is_up);
    usleep(200000);
    const double cpu = cpu_seconds(), start = pen_clock_seconds();
    if (j->is_round_trip) {
        send_rounds(&e);
    } else {
        send_frames(&e);
    }
    j->shared->seconds = pen_clock_seconds() - start;
    e.handled = j->count;
    end_close(&e, 0, cpu);
}

// ---- both

static int compare(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void print(const job *j) {
    result *r = j->shared;
    if (r->wrong_count != 0) fail("wrong checksums");
    if (j->is_round_trip) {
        qsort(r->rounds, j->count, sizeof *r->rounds, compare);
        printf("{\"median_us\": %.2f, \"p99_us\": %.2f, \"cpu_us_sender\": %.3f, "
               "\"cpu_us_receiver\": %.3f}\n",
               r->rounds[j->count / 2] * 1e6, r->rounds[j->count * 99 / 100] * 1e6,
               r->cpu_seconds[0] * 1e6 / (double)j->count,
               r->cpu_seconds[1] * 1e6 / (double)j->count);
        return;
    }
    const double total = (double)j->bytes * (double)j->count;
    printf("{\"gb_per_s\": %.4f, \"cpu_s_per_gb\": %.4f, \"cpu_us_sender\": %.3f, "
           "\"cpu_us_receiver\": %.3f, \"copies_sender\": %.3f, \"copies_receiver\": %.3f}\n",
           total * 1e-9 / r->seconds, (r->cpu_seconds[0] + r->cpu_seconds[1]) / (total * 1e-9),
           r->cpu_seconds[0] * 1e6 / (double)j->count, r->cpu_seconds[1] * 1e6 / (double)j->count,
           (double)r->bytes_copied[0] / total, (double)r->bytes_copied[1] / total);
}

static int run(const job *j) {
    const bool is_tcp = strcmp(j->way, "tcp") == 0;
    int children[2], is_bad = 0;
    for (int side = 0; side < 2; side++) {
        children[side] = fork(); // before either of them touches gRPC
        if (children[side] != 0) continue;
        if (side == 1) (is_tcp ? tcp_receiver : transport_receiver)(j);
        if (side == 0) (is_tcp ? tcp_sender : transport_sender)(j);
        _exit(0);
    }
    for (int i = 0; i < 2; i++) {
        int status;
        const int child = wait(&status);
        if (status == 0) continue;
        is_bad = 1;
        kill(child == children[0] ? children[1] : children[0], SIGKILL);
    }
    if (is_bad) return 1;
    print(j);
    return 0;
}

int main(int count, char **arguments) {
    char way[32];
    job j = {.way = way};
    if (count < 4) fail("throughput WAY BYTES TOTAL | round-trip WAY COUNT [CERTIFICATES]");
    snprintf(way, sizeof way, "%s", arguments[2]);
    j.uses_thread = strstr(way, "+thread") != NULL;
    j.uses_ring = strstr(way, "+ring") != NULL;
    j.spins = strstr(way, "+spin") != NULL;
    way[strcspn(way, "+")] = '\0';
    j.is_round_trip = strcmp(arguments[1], "round-trip") == 0;
    if (j.is_round_trip) {
        j.bytes = 64;
        j.count = strtoull(arguments[3], NULL, 10);
        if (j.count == 0 || j.count > ROUND_LIMIT) fail("too many rounds");
        if (count > 4) j.certificates = arguments[4];
    } else {
        if (count < 5) fail("throughput WAY BYTES TOTAL");
        j.bytes = strtoull(arguments[3], NULL, 10);
        if (j.bytes == 0 || j.bytes > POOL_BYTES) fail("BYTES is at most 128 MiB");
        j.count = strtoull(arguments[4], NULL, 10) / j.bytes;
        if (count > 5) j.certificates = arguments[5];
    }
    j.shared =
        mmap(NULL, sizeof *j.shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (j.shared == MAP_FAILED) fail("no memory");
    return run(&j);
}
