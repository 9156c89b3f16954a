#include "scheduler/measure/link_probe.h"

#include <stdint.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/sets/order.h"
#include "base/thread.h"

#define PROBE_TENSOR_BYTES ((size_t)8 << 20)
#define PROBE_RING_TENSORS 8 // tensors that are sent in turn: more than a cache holds
#define PROBE_TRANSFERS 15
#define PROBE_ROUNDS 501

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
