// A run in a worker's process: the worker core, tasks, loading, and shards.

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "scheduler/store/shard.h"
#include "tests/simulator/checkpoints.h"
#include "tests/simulator/stuck.h"
#include "tests/simulator/worker_process.h"

// ---- tasks

// The run was closed, and waited for what computes or reads.
static void running_leave(worker_process *worker, worker_run *run) {
    if (run->running_count > 0 || worker->run != run) return;
    worker->run = NULL;
    worker_member(worker, (pen_member_event){.kind = PEN_MEMBER_EVENT_LEFT});
}

typedef struct running_task {
    computing_task task;
    worker_process *worker;
    worker_run *run;
} running_task;

static void running_end(process *p, void *context, uint64_t value) {
    running_task *running = context;
    worker_process *worker = running->worker;
    worker_run *run = running->run;
    (void)value;
    run->running_count -= 1;
    if (run->is_closed) {
        running_leave(worker, run);
        return;
    }
    computing_end(run->memory, &running->task);
    WORLD_NOTE(p->world, p, "task ends", running->task.device, running->task.task,
               running->task.round);
    worker_feed(worker, (pen_worker_event){.kind = PEN_WORKER_EVENT_TASK_DONE,
                                           .device = running->task.device});
}

static void running_begin(worker_process *worker, const pen_worker_action *action) {
    process *p = worker->process;
    world *w = p->world;
    running_task *running = WORLD_NEW(w, running_task);
    running->worker = worker;
    running->run = worker->run;
    running->task = (computing_task){.device = action->device,
                                     .form = action->form,
                                     .task = action->task,
                                     .round = action->round};
    if (!computing_begin(worker->run->memory, &running->task)) {
        worker_fail(worker, "a frame was damaged");
        return;
    }
    worker->run->running_count += 1;
    const uint64_t most = chance_one_in(&w->chaos, 16) ? 1000 : 150;
    const uint64_t takes = chance_between(&w->chaos, 10, most) * WORLD_MICROSECOND;
    world_work_in(w, takes * p->slowness, p, running_end, running, 0);
}

// A frame that this worker reads by itself.
typedef struct running_reading {
    worker_process *worker;
    worker_run *run;
    pen_worker_event event;
    uint64_t round;
} running_reading;

static void running_end_reading(process *p, void *context, uint64_t value) {
    const running_reading *reading = context;
    (void)p;
    const pen_worker_event *event = &reading->event;
    const computing *memory = reading->run->memory;
    (void)value;
    reading->run->running_count -= 1;
    if (reading->run->is_closed) {
        running_leave(reading->worker, reading->run);
        return;
    }
    const pen_run_form *form = &memory->table->table->forms[event->form];
    const pen_run_channel *channel = &form->channels[event->channel];
    const computing_round *round = computing_find_round(memory, reading->round);
    const uint32_t microbatch = (uint32_t)(event->sequence % pen_run_slots(form, channel));
    computing_place *place = computing_target(memory, event->form, event->channel, event->sequence);
    computing_fill(place,
                   shape_expect(memory->shape,
                                (shape_content)memory->table->contents[event->form][event->channel],
                                memory->table->numbers[event->form][event->channel], round->step,
                                round->first_microbatch + microbatch, event->form == 1),
                   (uint32_t)(channel->bytes / 8), event->sequence);
    worker_feed(reading->worker, *event);
}

static void running_read(worker_process *worker, const pen_worker_action *action) {
    process *p = worker->process;
    running_reading *reading = WORLD_NEW(p->world, running_reading);
    *reading = (running_reading){worker,
                                 worker->run,
                                 {.kind = PEN_WORKER_EVENT_READ,
                                  .form = action->form,
                                  .channel = action->channel,
                                  .sequence = action->sequence},
                                 action->round};
    worker->run->running_count += 1;
    const uint64_t now = p->world->now;
    const uint64_t takes = chance_between(&p->world->chaos, 1, 200) * WORLD_MICROSECOND;
    worker_run *run = worker->run;
    if (run->read_at < now) run->read_at = now; // one after the other
    run->read_at += takes * p->slowness;
    world_work_in(p->world, run->read_at - now, p, running_end_reading, reading, 0);
}

// ---- what the core wants

static void running_grant(worker_process *worker, const pen_worker_action *action) {
    const computing *memory = worker->run->memory;
    const computing_channel *ends = &memory->channels[action->form][action->channel];
    for (uint32_t i = 0; i < ends->capacity; i++) {
        if (ends->target[i].sequence < action->sequence) ends->target[i].is_held = false;
    }
    pen_message message = {.kind = PEN_MESSAGE_CREDIT,
                           .form = action->form,
                           .channel = action->channel,
                           .sequence = action->sequence};
    const pen_run_form *form = &memory->table->table->forms[action->form];
    worker_tell(worker, form->channels[action->channel].source_worker, &message);
}

static void running_send(worker_process *worker, const pen_worker_action *action) {
    const computing *memory = worker->run->memory;
    const pen_run_channel *channel =
        &memory->table->table->forms[action->form].channels[action->channel];
    computing_place *place =
        computing_source(memory, action->form, action->channel, action->sequence);
    const link_frame frame = {.kind = PEN_FRAME_VALUE,
                              .generation = memory->generation,
                              .incarnation = worker->process->incarnation,
                              .form = action->form,
                              .channel = action->channel,
                              .sequence = action->sequence,
                              .checksum = place->checksum,
                              .words = (uint32_t)(channel->bytes / 8)};
    place->is_held = true;
    link_send_frame(worker->process, channel->target_worker, &frame, place->words,
                    frame_token(action->form, action->channel, action->sequence));
}

static void running_tell_loss(worker_process *worker, const pen_worker_action *action) {
    const computing *memory = worker->run->memory;
    const pen_task *task = &memory->table->table->forms[action->form].tasks[action->task].task;
    const computing_round *round = computing_find_round(memory, action->round);
    const uint64_t word = memory->stages[task->stage].forward[task->microbatch];
    pen_message message = {.kind = PEN_MESSAGE_LOSS,
                           .round = action->round,
                           .form = action->form,
                           .microbatch = task->microbatch,
                           .stage = task->stage};
    message.value = shape_loss(memory->shape, round->step,
                               round->first_microbatch + task->microbatch, word, action->form == 1);
    worker_tell(worker, 0, &message);
}

static void running_tell_gradient(worker_process *worker, const pen_worker_action *action) {
    const pen_run_form *form = &worker->run->memory->table->table->forms[action->form];
    const pen_task *task = &form->tasks[action->task].task;
    pen_message message = {.kind = PEN_MESSAGE_GRADIENT,
                           .round = action->round,
                           .microbatch = task->microbatch,
                           .stage = task->stage};
    worker_tell(worker, 0, &message);
}

static void running_do(worker_process *worker, const pen_worker_action *action) {
    process *p = worker->process;
    pen_message message = {.kind = PEN_MESSAGE_READY};
    switch (action->kind) {
    case PEN_WORKER_ACTION_LOAD: // it was made for this generation
        break;
    case PEN_WORKER_ACTION_READY:
        worker_tell(worker, 0, &message);
        break;
    case PEN_WORKER_ACTION_RUN:
        WORLD_NOTE(p->world, p, "task begins", action->device, action->task, action->round);
        running_begin(worker, action);
        break;
    case PEN_WORKER_ACTION_SEND:
        WORLD_NOTE(p->world, p, "sends frame", action->form, action->channel, action->sequence);
        running_send(worker, action);
        break;
    case PEN_WORKER_ACTION_GRANT:
        running_grant(worker, action);
        break;
    case PEN_WORKER_ACTION_LOSS:
        running_tell_loss(worker, action);
        break;
    case PEN_WORKER_ACTION_GRADIENT:
        running_tell_gradient(worker, action);
        break;
    case PEN_WORKER_ACTION_ROUND_DONE:
        message.kind = PEN_MESSAGE_ROUND_DONE;
        message.round = action->round;
        worker_tell(worker, 0, &message);
        break;
    case PEN_WORKER_ACTION_READ:
        running_read(worker, action);
        break;
    case PEN_WORKER_ACTION_STOPPED:
        break;
    }
}

static void running_step(worker_process *worker, worker_run *run, const pen_worker_event *event) {
    world *w = worker->process->world;
    uint32_t count;
    const pen_worker_fault fault = pen_worker_core_step(run->core, event, run->actions, &count);
    if (fault != PEN_WORKER_FAULT_NONE) {
        world_wrong(w, "I3", "worker %u, event %u of round %" PRIu64 ": %s", run->memory->worker,
                    (unsigned)event->kind, event->round, pen_worker_fault_text(fault));
    }
    for (uint32_t i = 0; i < count; i++) {
        if (worker->run != run || run->is_closed || w->is_wrong) return;
        const pen_worker_action action = run->actions[i];
        running_do(worker, &action);
    }
}

void worker_feed(worker_process *worker, pen_worker_event event) {
    worker_run *run = worker->run;
    if (run == NULL) return;
    const bool is_ours = event.kind == PEN_WORKER_EVENT_LET_GO;
    if (run->is_closed && !is_ours) return;
    if (run->is_closed) return; // nothing more is asked of it
    PEN_ASSERT(run->queue_end - run->queue_first < WORKER_QUEUE);
    run->queue[run->queue_end++ % WORKER_QUEUE] = event;
    if (run->is_stepping) return;
    run->is_stepping = true;
    while (run->queue_first < run->queue_end && !run->is_closed && worker->run == run &&
           !worker->process->world->is_wrong) {
        const pen_worker_event next = run->queue[run->queue_first++ % WORKER_QUEUE];
        running_step(worker, run, &next);
    }
    run->is_stepping = false;
}

// ---- loading

static bool running_needs_peer(const computing *memory, uint32_t peer) {
    for (uint32_t f = 0; f < 2; f++) {
        const pen_run_form *form = &memory->table->table->forms[f];
        for (uint32_t c = 0; c < form->channel_count; c++) {
            const uint32_t source = form->channels[c].source_worker;
            const uint32_t target = form->channels[c].target_worker;
            if ((source == memory->worker && target == peer) ||
                (source == peer && target == memory->worker)) {
                return true;
            }
        }
    }
    return false;
}

static void running_loaded(process *p, void *context, uint64_t value) {
    worker_run *run = context;
    worker_process *worker = p->worker;
    (void)value;
    if (worker->run != run || run->is_closed) return;
    worker_member(worker, (pen_member_event){.kind = PEN_MEMBER_EVENT_LOADED});
    worker_feed(worker, (pen_worker_event){.kind = PEN_WORKER_EVENT_LOADED,
                                           .generation = run->memory->generation});
}

void worker_run_check_loaded(worker_process *worker) {
    worker_run *run = worker->run;
    process *p = worker->process;
    if (run == NULL || run->is_loaded || run->is_closed || run->missing_tensors > 0) return;
    for (uint32_t peer = 1; peer <= run->memory->table->worker_count; peer++) {
        if (peer == run->memory->worker || !running_needs_peer(run->memory, peer)) continue;
        if (!link_is_up(p, peer)) return;
    }
    run->is_loaded = true;
    world_work_in(p->world, chance_below(&p->world->chaos, WORLD_MILLISECOND), p, running_loaded,
                  run, 0);
}

// word 0: variant, worker count, and the step from which on; word 1: hosts; word 2: generation
static const shape_table *running_read_description(const worker_process *worker, worker_run *run) {
    const uint64_t *words = worker->description;
    for (uint32_t i = 1; i <= SHAPE_WORKERS; i++) {
        run->hosts[i] = (uint32_t)(words[1] >> (8 * i)) & 0xff;
    }
    return shape_get_table(worker->process->world->shape, (uint32_t)(words[0] >> 8) & 0xff,
                           (uint32_t)words[0] & 0xff);
}

void worker_run_load(worker_process *worker, uint64_t generation, uint32_t number) {
    process *p = worker->process;
    world *w = p->world;
    if (worker->run != NULL) {
        world_wrong(w, "I1", "a run is loaded while another is there");
        return;
    }
    worker_run *run = WORLD_NEW(w, worker_run);
    const shape_table *table = running_read_description(worker, run);
    if (worker->description[2] != generation) {
        world_wrong(w, "I1", "generation %" PRIu64 " is loaded with the description of %" PRIu64,
                    generation, worker->description[2]);
        return;
    }
    run->memory = computing_new(p, table, number, generation);
    if (pen_worker_core_new(table->table, number, w->arena, &run->core, &run->action_limit) !=
        PEN_OK) {
        abort();
    }
    run->actions = world_allocate(w, run->action_limit, sizeof *run->actions);
    worker->run = run;
    worker_feed(worker,
                (pen_worker_event){.kind = PEN_WORKER_EVENT_ASSIGN, .generation = generation});
    const link_introduction self = {
        .peer = number, .generation = generation, .incarnation = p->incarnation};
    for (uint32_t peer = number + 1; peer <= table->worker_count; peer++) {
        if (!running_needs_peer(run->memory, peer)) continue;
        link_call_peer(p, peer, run->hosts[peer], &self, w->times.load);
    }
    for (uint32_t s = 0; s < w->shape->stage_count; s++) {
        if (!computing_has_stage(run->memory, s) || w->sends_first) continue;
        run->missing_tensors += 1;
        pen_message pull = {.kind = PEN_MESSAGE_PULL,
                            .frame_kind = PEN_FRAME_TENSOR,
                            .number = s,
                            .sequence = s,
                            .byte_count = 8};
        worker_tell(worker, 0, &pull);
    }
    worker_run_check_loaded(worker);
}

void worker_run_close(worker_process *worker) {
    worker_run *run = worker->run;
    if (run == NULL) return;
    run->is_closed = true;
    for (uint32_t peer = 1; peer <= SHAPE_WORKERS; peer++) {
        if (peer != run->memory->worker) link_disconnect(worker->process, peer);
    }
}

// ---- shards

typedef struct running_shard {
    worker_process *worker;
    uint64_t generation;
    uint64_t step;
    uint64_t order;
    uint32_t number;
    checkpoint_part part;
} running_shard;

static void running_write_shard(process *p, void *context, uint64_t value) {
    running_shard *shard = context;
    worker_process *worker = shard->worker;
    pen_message message = {
        .kind = PEN_MESSAGE_SHARD, .sequence = shard->order, .step = shard->step};
    (void)value;
    const pen_status status = checkpoint_write_shard(p, &shard->part, shard->generation,
                                                     shard->step, shard->number, &message);
    message.code = (uint32_t)pen_status_get_code(status);
    WORLD_NOTE(p->world, p, "shard is written", shard->step, message.code, shard->generation);
    pen_status_ignore(status, "the coordinator is told");
    if (!p->is_alive || p->disk->has_crashed) return;
    if (worker->member.generation != shard->generation || worker->run == NULL) return;
    worker_tell(worker, 0, &message);
}

void worker_snapshot(worker_process *worker, const pen_message *order) {
    process *p = worker->process;
    world *w = p->world;
    const computing *memory = worker->run->memory;
    running_shard *shard = WORLD_NEW(w, running_shard);
    shard->worker = worker;
    shard->generation = memory->generation;
    shard->step = order->step;
    shard->order = order->sequence;
    shard->number = memory->worker;
    for (uint32_t s = 0; s < w->shape->stage_count; s++) {
        if (!computing_has_stage(memory, s)) continue;
        shard->part.stages[shard->part.count] = s;
        shard->part.words[shard->part.count++] = memory->stages[s].parameters;
    }
    pen_message message = {
        .kind = PEN_MESSAGE_SNAPPED, .sequence = order->sequence, .step = order->step};
    worker_tell(worker, 0, &message);
    world_work_in(w, chance_between(&w->chaos, 50, 2000) * WORLD_MICROSECOND, p,
                  running_write_shard, shard, 0);
}
