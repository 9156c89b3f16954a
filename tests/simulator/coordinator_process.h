// A coordinator's process: the commit log, one generation after the other with the product's core,
// the policy of recovery, and a loop that trains as scheduler/train/train_loop.c does: rounds up to
// two steps ahead, a checkpoint every few steps, recovery from the newest.
#ifndef PEN_TESTS_SIMULATOR_COORDINATOR_PROCESS_H
#define PEN_TESTS_SIMULATOR_COORDINATOR_PROCESS_H

#include "scheduler/protocol/coordinator_core.h"
#include "scheduler/protocol/message.h"
#include "scheduler/protocol/recovery_policy.h"
#include "scheduler/store/commit_log.h"
#include "tests/simulator/computing.h"
#include "tests/simulator/links.h"
#include "tests/simulator/orders.h"

#define COORDINATOR_QUEUE 128u
#define COORDINATOR_ROUNDS 16u

typedef struct coordinator_round_of { // what a round is of
    uint64_t number;
    uint32_t step;
    uint32_t part;
    uint32_t count;
    uint32_t first_microbatch;
    bool is_evaluation;
} coordinator_round_of;

// A generation.
typedef struct coordinator_run {
    uint64_t generation;
    const shape_table *table;
    uint32_t worker_count;
    uint32_t hosts[SHAPE_WORKERS + 1];       // [worker]
    uint32_t job_numbers[SHAPE_WORKERS + 1]; // [worker] as the policy calls it
    uint64_t incarnations[SHAPE_WORKERS + 1];
    pen_coordinator_identity identities[SHAPE_WORKERS + 1];
    bool has_stopped[SHAPE_WORKERS + 1];
    pen_coordinator_core *core;
    pen_coordinator_action *actions;
    computing_channel *feeds[2];       // [form][channel_count]
    uint64_t parameters[SHAPE_STAGES]; // to be loaded, as words of frames
    uint64_t description[SHAPE_WORDS];
    bool is_fenced;
    bool is_over;
    bool is_closed;
    bool begins_anew; // others are to take part
    bool is_stopping;
    // training
    uint32_t next_step; // to be begun, with its part: 0 and 1 its rounds, 2 the evaluation
    uint32_t next_part;
    uint32_t done_step;
    uint64_t published_step; // whose manifest is durable
    uint32_t saved_step;     // of which SAVE was asked
    bool is_final;           // the last checkpoint is there
    coordinator_round_of rounds[COORDINATOR_ROUNDS];
    orders_step orders[SHAPE_STEPS + 1];
    pen_shard_summary summaries[SHAPE_WORKERS + 1];
    bool has_summary[SHAPE_WORKERS + 1];
    // what it waits for
    uint64_t owed[SHAPE_WORKERS + 1];        // stages whose parameters a worker is sent, as bits
    uint32_t shard_count;                    // that workers told of
    uint32_t report_count;                   // losses, gradients, ends of rounds
    uint64_t heard_count[SHAPE_WORKERS + 1]; // messages
    wait_watch watches[4];
    wait_watch silence[SHAPE_WORKERS + 1];
    bool is_stepping;
    uint32_t queue_first, queue_end;
    pen_coordinator_event queue[COORDINATOR_QUEUE];
} coordinator_run;

typedef struct coordinator_process {
    process *process;
    pen_commit_log *log;
    pen_recovery *recovery;
    coordinator_run *run;              // NULL: between generations
    uint32_t hosts[SHAPE_WORKERS + 1]; // [worker of the job]
    bool spare_is_used[WORLD_HOSTS];   // [host]
    bool is_ticking;
    uint64_t store_failures;
    uint64_t flips_before;             // of the disk, when it started
    uint64_t plan_number;              // of run tables chosen
    bool knows_order[SHAPE_STEPS + 1]; // of lanes, of steps that were done
    pen_arrivals_order orders[SHAPE_STEPS + 1];
} coordinator_process;

void coordinator_start(process *p);
void coordinator_died(process *p);

link_answer coordinator_accept(process *p, const link_introduction *introduction);
void coordinator_up(process *p, uint32_t peer);
void coordinator_down(process *p, uint32_t peer, bool is_final);
void coordinator_message(process *p, uint32_t peer, const pen_message *message);
void coordinator_let_go(process *p, uint64_t token);

// ---- within the coordinator

// coordinator_process.c
void coordinator_exit(coordinator_process *c, const char *why);
void coordinator_recover(coordinator_process *c);
pen_status_code coordinator_append_fence(coordinator_process *c, uint64_t generation);
bool coordinator_load(coordinator_process *c, coordinator_run *run);
void coordinator_begin_generation(coordinator_process *c);
void coordinator_over(process *p, void *context, uint64_t value);
// After a checkpoint: whether to begin anew with those who came back.
bool coordinator_takes_back(coordinator_process *c);
// coordinator_running.c
void coordinator_feed_event(coordinator_process *c, pen_coordinator_event event);
void coordinator_tell(coordinator_process *c, uint32_t peer, pen_message *message);
void coordinator_run_new_feeds(coordinator_process *c, coordinator_run *run);
// coordinator_training.c
void coordinator_train(coordinator_process *c);
void coordinator_take_losses(coordinator_process *c, uint64_t round);
void coordinator_take_round_done(coordinator_process *c, uint64_t round);
pen_status_code coordinator_publish(coordinator_process *c, uint64_t step);
const coordinator_round_of *coordinator_find_round_of(const coordinator_run *run, uint64_t number);

#endif // PEN_TESTS_SIMULATOR_COORDINATOR_PROCESS_H
