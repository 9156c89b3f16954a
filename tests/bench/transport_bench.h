// The contract of transport_bench*.c: one measurement of bytes between two processes.
#ifndef PEN_TESTS_BENCH_TRANSPORT_BENCH_H
#define PEN_TESTS_BENCH_TRANSPORT_BENCH_H

#include <stdbool.h>
#include <stdint.h>

#define BENCH_POOL_BYTES ((uint64_t)128 << 20)
#define BENCH_ROUND_LIMIT 100000
#define BENCH_SUM_LIMIT 65536 // frames under way

typedef struct bench_result { // shared by the two processes
    _Atomic int port;
    double seconds;
    double cpu_seconds[2]; // of the sender, of the receiver
    double kernel_seconds; // of threads that move packets for both
    uint64_t bytes_copied[2];
    uint64_t wrong_count;
    double rounds[BENCH_ROUND_LIMIT];
    uint64_t sums[BENCH_SUM_LIMIT];
    char line[128]; // between two hosts: what it is
} bench_result;

typedef struct bench_job {
    const char *way;
    bool is_round_trip, uses_thread, uses_ring, spins;
    bool pauses;   // before each round trip, until all threads sleep
    bool has_sums; // raw TCP and gRPC alone: checksums are made and compared
    uint64_t bytes, count;
    const char *certificates;
    const char *hosts[2]; // network namespaces of the sender and the receiver; NULL: this one
    const char *address;  // of the receiver
    bench_result *shared;
} bench_job;

_Noreturn void bench_fail(const char *what);
double bench_cpu_seconds(void); // of this process
void bench_pause(const bench_job *j);
uint8_t *bench_make_pool(void);
uint64_t bench_pool_offset(const bench_job *j, uint64_t i); // of frame i

// What those that send no checksums compare instead: the sender's of frame i, over memory.
void bench_sum(const bench_job *j, const uint8_t *at, uint64_t i);
void bench_compare(const bench_job *j, const uint8_t *at, uint64_t i);

// Sockets alone (transport_bench_tcp.c).
void bench_tcp_receiver(const bench_job *j);
void bench_tcp_sender(const bench_job *j);

// gRPC alone (transport_bench_grpc.c).
void bench_grpc_receiver(const bench_job *j);
void bench_grpc_sender(const bench_job *j);

// The line that a host is at (transport_bench_line.c).
// This thread, and those that it starts, are on that host from now on, and on its half of the
// cores: the first for side 0, the second for side 1.
void bench_line_enter(const char *host, int side);
// Congestion control towards an address, MTU and offloads.
void bench_line_describe(const char *address, char *out, uint64_t size);
// Processor time of the kernel's threads that move packets where no process does.
double bench_line_kernel_seconds(void);

#endif // PEN_TESTS_BENCH_TRANSPORT_BENCH_H
