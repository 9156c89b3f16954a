// A worker's process: the product's member and worker cores, and a driver around them that does as
// runtime/worker does.
#ifndef PEN_TESTS_SIMULATOR_WORKER_PROCESS_H
#define PEN_TESTS_SIMULATOR_WORKER_PROCESS_H

#include "scheduler/protocol/member_core.h"
#include "scheduler/protocol/message.h"
#include "tests/simulator/computing.h"

#define WORKER_QUEUE 64u

typedef struct worker_run {
    computing *memory;
    pen_worker_core *core;
    pen_worker_action *actions; // [action_limit]
    uint32_t action_limit;
    uint32_t running_count;
    uint64_t read_at; // when all that it reads will be there
    uint32_t missing_tensors;
    bool is_loaded;
    bool is_started;
    bool is_closed;
    uint32_t hosts[SHAPE_WORKERS + 1];
    bool is_stepping;
    uint32_t queue_first, queue_end;
    pen_worker_event queue[WORKER_QUEUE];
} worker_run;

typedef struct worker_process {
    process *process;
    pen_member_core member;
    worker_run *run;
    uint64_t description[SHAPE_WORDS];
    uint64_t tensor; // that arrives
    bool is_ticking;
    wait_watch watch, silence;
    uint64_t heard_count; // messages of its coordinator
    bool is_stepping;
    uint32_t queue_first, queue_end;
    pen_member_event queue[WORKER_QUEUE];
} worker_process;

void worker_start(process *p);
void worker_died(process *p);

// What links tell (links.h).
link_answer worker_accept(process *p, const link_introduction *introduction);
void worker_up(process *p, uint32_t peer);
void worker_down(process *p, uint32_t peer);
void worker_message(process *p, uint32_t peer, const pen_message *message);
uint64_t *worker_begin(process *p, uint32_t peer, const link_frame *frame, bool *out_is_refused);
void worker_end(process *p, uint32_t peer, const link_frame *frame);
void worker_let_go(process *p, uint64_t token);

// ---- within the worker
void worker_tick_once(worker_process *worker);
void worker_tell(worker_process *worker, uint32_t peer, pen_message *message);
void worker_fail(worker_process *worker, const char *why);
void worker_member(worker_process *worker, pen_member_event event);
void worker_feed(worker_process *worker, pen_worker_event event);
void worker_run_load(worker_process *worker, uint64_t generation, uint32_t number);
void worker_run_close(worker_process *worker);
void worker_run_check_loaded(worker_process *worker);
void worker_snapshot(worker_process *worker, const pen_message *order);

// A token of a frame.
static inline uint64_t frame_token(uint32_t form, uint32_t channel, uint64_t sequence) {
    return ((uint64_t)form << 60) | ((uint64_t)channel << 48) | sequence;
}

#endif // PEN_TESTS_SIMULATOR_WORKER_PROCESS_H
