// The inside of a protocol run, for protocol_run.c (cores and tasks) and protocol_run_links.c
// (messages, frames, transports). Nobody else includes this.
#ifndef PEN_TESTS_SUPPORT_PROTOCOL_RUN_STATE_H
#define PEN_TESTS_SUPPORT_PROTOCOL_RUN_STATE_H

#include <inttypes.h>

#include "scheduler/protocol/coordinator_core.h"
#include "scheduler/protocol/message.h"
#include "scheduler/protocol/worker_core.h"
#include "tests/support/check.h"
#include "tests/support/dice.h"
#include "tests/support/protocol_run.h"
#include "tests/support/simulated_transport.h"

#define RUN_GENERATION 4

typedef struct run_peer run_peer;

typedef struct run_device {
    run_peer *peer;
    uint32_t number;
    uint32_t round; // of the options, where its next task is sought
    uint32_t position;
    uint32_t task; // that runs
    uint64_t task_round;
    uint32_t task_form;
} run_device;

struct run_peer {
    struct protocol_runner *runner;
    uint32_t number;
    pen_transport *transport;
    uint16_t port;
    uint32_t up_count;
    pen_worker_core *core; // of a worker
    pen_worker_action *actions;
    bool has_stopped;
    uint64_t read_at; // when all that it reads will be there
};

// Places are words that hold which frame is in them.
typedef struct run_channel {
    uint64_t *source; // [copies]
    uint64_t *target; // [capacity]; of a shared one the source's
    bool *is_lent;    // [copies]
} run_channel;

typedef struct protocol_runner {
    const pen_run_table *table;
    const protocol_run_options *options;
    protocol_run_result *result;
    pen_arena *arena;
    dice d;
    pen_simulated_network *network;
    const pen_transport_kind *kind;
    run_peer *peers; // [worker_count + 1]
    pen_coordinator_core *coordinator;
    pen_coordinator_action *actions;
    run_device *devices;       // [device_count]
    run_channel **channels;    // [form_count][channel_count]
    uint32_t *loss_counts;     // [round_count] sent
    uint32_t *gradient_counts; // [round_count] told of
    uint32_t *update_counts;   // [round_count] updates begun
    uint32_t begun_count;
    uint32_t done_count;
    bool is_over;
} protocol_runner;

#define RUN_WRONG(runner, ...)                                                                     \
    do {                                                                                           \
        if ((runner)->result->wrong[0] == 0) {                                                     \
            snprintf((runner)->result->wrong, sizeof(runner)->result->wrong, __VA_ARGS__);         \
        }                                                                                          \
    } while (0)

void run_digest(protocol_runner *r, uint64_t a, uint64_t b, uint64_t c);

// The core takes an event, and what follows is done.
void run_worker_event(run_peer *peer, pen_worker_event event);
void run_coordinator_event(protocol_runner *r, pen_coordinator_event event);

// The word of a frame, and its place.
uint64_t run_word(uint32_t form, uint32_t channel, uint64_t sequence);
uint32_t run_place(const pen_run_form *form, uint32_t channel, uint64_t sequence, uint32_t places);

void run_send(run_peer *from, uint32_t to, pen_message message);
void run_send_frame(run_peer *from, uint32_t form_number, uint32_t channel, uint64_t sequence);
// Writes what a task, or the host, makes.
void run_make(protocol_runner *r, uint32_t form_number, uint32_t channel, uint64_t sequence);
// Whether what a device's task reads is in its place.
void run_check_inputs(protocol_runner *r, const run_device *device, const char *when);

extern const pen_transport_events run_transport_events; // without their context

#endif // PEN_TESTS_SUPPORT_PROTOCOL_RUN_STATE_H
