// Bytes from one process to another: one measurement, printed as JSON.
//   transport_bench throughput WAY BYTES TOTAL [MORE...]   frames of BYTES until TOTAL
//   transport_bench round-trip WAY COUNT [MORE...]         64-byte messages, there and back
// WAY is tcp, bare (the least that sends over gRPC) or a transport, with '+thread' behind it:
// messages are sent by another thread than that which hears of them; '+ring': frames go through
// shared memory, and round trips are made by frames; '+spin': tcp or the ring's thread does not
// sleep; '+sums': tcp and bare make and compare checksums, too, on the one thread that they have.
// Both sides' buffers rotate through 128 MiB. A transport's frames have checksums, which it
// makes and compares while it copies, or else the threads that would compute.
// --tls FOLDER: over TLS, with its ca.pem, cert.pem and key.pem. --hosts FROM TO ADDRESS: not over
// loopback, but from one network namespace to another, which has that address at its eth0; either
// has half of the cores.
#include "tests/bench/transport_bench.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/checksum.h"
#include "base/clock.h"
#include "base/system/process_heap.h"
#include "base/thread.h"
#include "scheduler/transport/transport.h"

// Frames under way, in bytes: about what the sockets of raw TCP hold. With 32 MiB, what has a
// checksum is out of the caches before it is sent.
#define WINDOW_BYTES ((uint64_t)8 << 20)
#define CREDIT_LIMIT 4096

void bench_fail(const char *what) {
    fprintf(stderr, "transport_bench: %s\n", what);
    _exit(1);
}

static void check(pen_status status) {
    if (status == PEN_OK) return;
    char text[1024];
    pen_status_format(status, text, sizeof text);
    bench_fail(text);
}

double bench_cpu_seconds(void) {
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1e-6;
}

void bench_pause(const bench_job *j) {
    if (j->pauses) usleep(1000);
}

uint8_t *bench_make_pool(void) {
    uint8_t *pool =
        mmap(NULL, BENCH_POOL_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pool == MAP_FAILED) bench_fail("no memory");
    for (uint64_t i = 0; i < BENCH_POOL_BYTES; i += 8) {
        const uint64_t value = i * 0x9e3779b97f4a7c15u;
        memcpy(pool + i, &value, sizeof value);
    }
    return pool;
}

uint64_t bench_pool_offset(const bench_job *j, uint64_t i) {
    return i % (BENCH_POOL_BYTES / j->bytes) * j->bytes;
}

void bench_sum(const bench_job *j, const uint8_t *at, uint64_t i) {
    j->shared->sums[i % BENCH_SUM_LIMIT] = pen_checksum_whole(at, j->bytes);
}

void bench_compare(const bench_job *j, const uint8_t *at, uint64_t i) {
    const uint64_t sum = pen_checksum_whole(at, j->bytes);
    j->shared->wrong_count += j->shared->sums[i % BENCH_SUM_LIMIT] != sum;
}

// ---- a transport

typedef struct end {
    const bench_job *job;
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
    bool is_compared[CREDIT_LIMIT];
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
    const bench_job *j = e->job;
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
    if (count != sizeof e->arrived) bench_fail("a credit that is none");
    pen_mutex_lock(&e->lock);
    memcpy(&e->arrived, bytes, sizeof e->arrived); // frames that the other end has handled
    pen_condition_broadcast(&e->changed);
    pen_mutex_unlock(&e->lock);
}

static pen_status end_begin(void *context, uint32_t peer, const pen_frame *frame,
                            pen_memory_place *out_place) {
    end *e = context;
    (void)peer;
    *out_place = pen_memory_place_at(e->pool + bench_pool_offset(e->job, frame->sequence));
    return PEN_OK;
}

static void end_end(void *context, uint32_t peer, const pen_frame *frame, const uint32_t *checksums,
                    bool is_compared) {
    end *e = context;
    const uint32_t chunks = pen_frame_chunk_count(frame->bytes);
    (void)peer;
    if (e->job->is_round_trip) {
        end_arrive(e);
        return;
    }
    memcpy(e->checksums + frame->sequence % CREDIT_LIMIT * chunks, checksums,
           chunks * sizeof *checksums);
    e->is_compared[frame->sequence % CREDIT_LIMIT] = is_compared;
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

static void end_open(end *e, const bench_job *j, bool is_sender) {
    static char ca[512], cert[512], key[512];
    *e = (end){.job = j, .is_sender = is_sender, .peer = is_sender ? 1 : 0};
    pen_process_heap_prepare();
    pen_mutex_init(&e->lock);
    pen_condition_init(&e->changed);
    e->pool = bench_make_pool();
    const uint32_t chunks = pen_frame_chunk_count(j->bytes);
    e->checksums = calloc((size_t)CREDIT_LIMIT * chunks, sizeof *e->checksums);
    pen_transport_options options = {
        .self = {.job = "bench", .peer = is_sender ? 0 : 1, .shares_memory = j->uses_ring},
        .is_insecure = j->certificates == NULL,
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
    e->job->shared->cpu_seconds[side] = bench_cpu_seconds() - cpu;
    e->job->shared->bytes_copied[side] = e->kind->counters(e->transport).bytes_copied;
    if (side == 1) end_wait(e, &e->is_down);
    e->kind->stop(e->transport);
    e->kind->destroy(e->transport);
}

// Frames that may be under way.
static uint64_t frame_window(const bench_job *j) {
    const uint64_t window = WINDOW_BYTES / j->bytes;
    if (window < 2) return 2 * j->bytes <= BENCH_POOL_BYTES ? 2 : 1;
    return window > CREDIT_LIMIT / 2 ? CREDIT_LIMIT / 2 : window;
}

// Credits go back when an eighth of the window has been handled.
static bool is_credit_due(const bench_job *j, uint64_t i) {
    const uint64_t every = frame_window(j) / 8;
    return every == 0 || (i + 1) % every == 0 || i + 1 == j->count;
}

static void transport_receiver(const bench_job *j) {
    static end e;
    char address[64];
    uint16_t port;
    end_open(&e, j, false);
    snprintf(address, sizeof address, "%s:0", j->address);
    check(e.kind->listen(e.transport, address, &port));
    j->shared->port = port;
    end_wait(&e, &e.is_up);
    const double cpu = bench_cpu_seconds();
    const uint32_t chunks = pen_frame_chunk_count(j->bytes);
    for (uint64_t i = 0; i < j->count; i++) {
        pen_mutex_lock(&e.lock);
        while (e.arrived <= i)
            pen_condition_wait(&e.changed, &e.lock);
        pen_mutex_unlock(&e.lock);
        if (j->is_round_trip) continue;
        j->shared->wrong_count +=
            !e.is_compared[i % CREDIT_LIMIT] &&
            pen_checksum_find_difference(e.pool + bench_pool_offset(j, i), j->bytes,
                                         e.checksums + i % CREDIT_LIMIT * chunks) != chunks;
        if (!is_credit_due(j, i)) continue;
        const uint64_t handled = i + 1;
        check(e.kind->send_message(e.transport, 0, &handled, sizeof handled));
    }
    end_close(&e, 1, cpu);
}

static void send_frames(end *e) {
    const bench_job *j = e->job;
    const uint32_t chunks = pen_frame_chunk_count(j->bytes);
    const uint64_t window = frame_window(j);
    for (uint64_t i = 0; i < j->count; i++) {
        pen_mutex_lock(&e->lock);
        while (i - e->arrived >= window || e->lent >= window) {
            pen_condition_wait(&e->changed, &e->lock);
        }
        e->lent += 1;
        pen_mutex_unlock(&e->lock);
        uint8_t *at = e->pool + bench_pool_offset(j, i);
        uint32_t *checksums = e->checksums + i % CREDIT_LIMIT * chunks;
        const pen_frame frame = {.sequence = i, .bytes = j->bytes};
        check(e->kind->sum_frame(e->transport, e->peer, &frame, pen_memory_place_at(at), checksums,
                                 i));
    }
    pen_mutex_lock(&e->lock);
    while (e->arrived < j->count)
        pen_condition_wait(&e->changed, &e->lock);
    pen_mutex_unlock(&e->lock);
}

static void send_rounds(end *e) {
    const bench_job *j = e->job;
    end_next_round(e);
    for (uint64_t i = 1; i <= j->count; i++) {
        pen_mutex_lock(&e->lock);
        while (e->arrived < (j->uses_thread ? i : j->count))
            pen_condition_wait(&e->changed, &e->lock);
        pen_mutex_unlock(&e->lock);
        if (!j->uses_thread) break;
        bench_pause(j);
        if (i < j->count) end_next_round(e);
    }
}

static void transport_sender(const bench_job *j) {
    static end e;
    char address[64];
    end_open(&e, j, true);
    while (j->shared->port == 0)
        usleep(1000);
    snprintf(address, sizeof address, "%s:%d", j->address, (int)j->shared->port);
    check(e.kind->connect(e.transport, 1, address, 20));
    end_wait(&e, &e.is_up);
    usleep(200000);
    const double cpu = bench_cpu_seconds(), start = pen_clock_seconds();
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

static void print(const bench_job *j) {
    bench_result *r = j->shared;
    if (r->wrong_count != 0) bench_fail("wrong checksums");
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
           "\"cpu_us_receiver\": %.3f, \"copies_sender\": %.3f, \"copies_receiver\": %.3f, "
           "\"line\": \"%s\"}\n",
           total * 1e-9 / r->seconds,
           (r->cpu_seconds[0] + r->cpu_seconds[1] + r->kernel_seconds) / (total * 1e-9),
           r->cpu_seconds[0] * 1e6 / (double)j->count, r->cpu_seconds[1] * 1e6 / (double)j->count,
           (double)r->bytes_copied[0] / total, (double)r->bytes_copied[1] / total, r->line);
}

typedef struct way {
    const char *name;
    void (*sender)(const bench_job *j);
    void (*receiver)(const bench_job *j);
} way;
static const way ways[] = {
    {"tcp", bench_tcp_sender, bench_tcp_receiver},
    {"bare", bench_grpc_sender, bench_grpc_receiver},
    {NULL, transport_sender, transport_receiver}, // the transport of that name
};

static void run_side(const bench_job *j, int side) {
    const way *found = ways;
    while (found->name != NULL && strcmp(found->name, j->way) != 0)
        found++;
    if (j->hosts[side] != NULL) bench_line_enter(j->hosts[side], side);
    if (j->hosts[side] != NULL && side == 0) {
        bench_line_describe(j->address, j->shared->line, sizeof j->shared->line);
    }
    (side == 0 ? found->sender : found->receiver)(j);
}

static int run(const bench_job *j) {
    int children[2], is_bad = 0;
    const double kernel = bench_line_kernel_seconds();
    for (int side = 0; side < 2; side++) {
        children[side] = fork(); // before either of them touches gRPC
        if (children[side] != 0) continue;
        run_side(j, side);
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
    j->shared->kernel_seconds = bench_line_kernel_seconds() - kernel;
    print(j);
    return 0;
}

static void read_way(bench_job *j, const char *text, char *out_way, size_t size) {
    snprintf(out_way, size, "%s", text);
    j->way = out_way;
    j->uses_thread = strstr(text, "+thread") != NULL;
    j->uses_ring = strstr(text, "+ring") != NULL;
    j->spins = strstr(text, "+spin") != NULL;
    j->pauses = strstr(text, "+pause") != NULL;
    j->uses_thread = j->uses_thread || j->pauses; // what calls back must not wait
    j->has_sums = strstr(text, "+sums") != NULL;
    out_way[strcspn(out_way, "+")] = '\0';
}

int main(int count, char **arguments) {
    char name[32];
    bench_job j = {.address = "127.0.0.1"};
    const bool is_round_trip = count > 3 && strcmp(arguments[1], "round-trip") == 0;
    const int words = is_round_trip ? 4 : 5;
    if (count < words) bench_fail("throughput WAY BYTES TOTAL | round-trip WAY COUNT");
    j.is_round_trip = is_round_trip;
    read_way(&j, arguments[2], name, sizeof name);
    j.bytes = is_round_trip ? 64 : strtoull(arguments[3], NULL, 10);
    if (j.bytes == 0 || j.bytes > BENCH_POOL_BYTES) bench_fail("BYTES is at most 128 MiB");
    j.count = strtoull(arguments[words - 1], NULL, 10) / (is_round_trip ? 1 : j.bytes);
    if (j.count == 0 || (is_round_trip && j.count > BENCH_ROUND_LIMIT)) bench_fail("wrong COUNT");
    for (int i = words; i < count; i++) {
        if (strcmp(arguments[i], "--tls") == 0 && i + 1 < count) {
            j.certificates = arguments[++i];
        } else if (strcmp(arguments[i], "--hosts") == 0 && i + 3 < count) {
            j.hosts[0] = arguments[++i];
            j.hosts[1] = arguments[++i];
            j.address = arguments[++i];
        } else {
            bench_fail("after these: --tls FOLDER, --hosts FROM TO ADDRESS");
        }
    }
    j.shared =
        mmap(NULL, sizeof *j.shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (j.shared == MAP_FAILED) bench_fail("no memory");
    return run(&j);
}
