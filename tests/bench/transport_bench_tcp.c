// Sockets alone: what a transport is compared with.
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "tests/bench/transport_bench.h"

static int tcp_socket(void) {
    const int one = 1, descriptor = socket(AF_INET, SOCK_STREAM, 0);
    if (descriptor < 0) bench_fail("no socket");
    setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    return descriptor;
}

static int tcp_listen(const bench_job *j) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = inet_addr(j->address)};
    socklen_t length = sizeof address;
    const int listener = tcp_socket(), one = 1;
    if (bind(listener, (struct sockaddr *)&address, length) != 0 || listen(listener, 1) != 0 ||
        getsockname(listener, (struct sockaddr *)&address, &length) != 0) {
        bench_fail("cannot listen");
    }
    j->shared->port = ntohs(address.sin_port);
    const int descriptor = accept(listener, NULL, NULL);
    setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    return descriptor;
}

static int tcp_connect(const bench_job *j) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = inet_addr(j->address)};
    while (j->shared->port == 0)
        usleep(1000);
    address.sin_port = htons((uint16_t)j->shared->port);
    const int descriptor = tcp_socket();
    if (connect(descriptor, (struct sockaddr *)&address, sizeof address) != 0)
        bench_fail("cannot connect");
    return descriptor;
}

static void tcp_move(int descriptor, uint8_t *bytes, uint64_t count, bool is_out) {
    while (count != 0) {
        const ssize_t moved =
            is_out ? write(descriptor, bytes, count) : read(descriptor, bytes, count);
        if (moved < 0 && errno == EAGAIN) continue; // spins
        if (moved <= 0) bench_fail("the connection broke");
        bytes += moved;
        count -= (uint64_t)moved;
    }
}

void bench_tcp_receiver(const bench_job *j) {
    uint8_t *pool = bench_make_pool();
    const int descriptor = tcp_listen(j);
    if (j->spins) fcntl(descriptor, F_SETFL, O_NONBLOCK);
    const double cpu = bench_cpu_seconds();
    for (uint64_t i = 0; i < j->count; i++) {
        uint8_t *at = pool + bench_pool_offset(j, i);
        tcp_move(descriptor, at, j->bytes, false);
        if (j->has_sums) bench_compare(j, at, i);
        if (j->is_round_trip) tcp_move(descriptor, at, j->bytes, true);
    }
    if (!j->is_round_trip) tcp_move(descriptor, pool, 1, true);
    j->shared->cpu_seconds[1] = bench_cpu_seconds() - cpu;
}

void bench_tcp_sender(const bench_job *j) {
    uint8_t *pool = bench_make_pool();
    const int descriptor = tcp_connect(j);
    if (j->spins) fcntl(descriptor, F_SETFL, O_NONBLOCK);
    usleep(200000); // until the other has touched its pool
    const double cpu = bench_cpu_seconds(), start = pen_clock_seconds();
    for (uint64_t i = 0; i < j->count; i++) {
        bench_pause(j);
        const double round = pen_clock_seconds();
        uint8_t *at = pool + bench_pool_offset(j, i);
        if (j->has_sums) bench_sum(j, at, i);
        tcp_move(descriptor, at, j->bytes, true);
        if (!j->is_round_trip) continue;
        tcp_move(descriptor, at, j->bytes, false);
        j->shared->rounds[i] = pen_clock_seconds() - round;
    }
    if (!j->is_round_trip) tcp_move(descriptor, pool, 1, false);
    j->shared->seconds = pen_clock_seconds() - start;
    j->shared->cpu_seconds[0] = bench_cpu_seconds() - cpu;
}
