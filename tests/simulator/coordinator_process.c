#include "tests/simulator/coordinator_process.h"

#include <stdlib.h>
#include <string.h>

#include "tests/simulator/checkpoints.h"
#include "tests/simulator/checks.h"
#include "tests/simulator/faults.h"
#include "tests/simulator/stuck.h"
#include "tests/simulator/waits.h"

#define COORDINATOR_STORE_RETRY (5 * WORLD_MILLISECOND)

static void coordinator_open(process *p, void *context, uint64_t value);
static void coordinator_try_generation(process *p, void *context, uint64_t value);

// ---- ends

void coordinator_exit(coordinator_process *c, const char *why) {
    process *p = c->process;
    WORLD_NOTE(p->world, p, why, 0, 0, 0);
    p->world->result->superseded += 1;
    process_crash(p, false);
}

void coordinator_over(process *p, void *context, uint64_t value) {
    (void)context;
    (void)value;
    WORLD_NOTE(p->world, p, "the training is over", 0, 0, 0);
    p->world->is_over = true;
}

void coordinator_died(process *p) {
    world_supervise(p->world, p->host);
}

static void coordinator_end_generation(coordinator_process *c) {
    coordinator_run *run = c->run;
    if (run == NULL) return;
    run->is_closed = true; // what links give back is no longer of interest
    for (uint32_t i = 1; i <= run->worker_count; i++) {
        link_disconnect(c->process, i);
    }
    c->run = NULL;
}

// ---- the store

pen_status_code coordinator_append_fence(coordinator_process *c, uint64_t generation) {
    process *p = c->process;
    pen_commit_record record = {.kind = PEN_COMMIT_FENCE,
                                .generation = generation,
                                .job = SIMULATION_JOB,
                                .coordinator = p->incarnation};
    const pen_status status = pen_commit_log_append(c->log, &record);
    const pen_status_code code = pen_status_get_code(status);
    WORLD_NOTE(p->world, p, "fence is appended", generation, code, 0);
    pen_status_ignore(status, "the code says it");
    if (code == PEN_CODE_OK && p->is_alive) check_fenced(p, &record);
    return code;
}

// The newest checkpoint that is whole, or the beginning. False: the disk refuses.
bool coordinator_load(coordinator_process *c, coordinator_run *run) {
    process *p = c->process;
    world *w = p->world;
    const shape *s = w->shape;
    const pen_commit_record *record;
    for (uint32_t i = 0;; i++) {
        record = pen_commit_log_manifest(c->log, i);
        if (record == NULL) break;
        const pen_status status =
            checkpoint_read(&p->disk->base, record, s->stage_count, run->parameters);
        const pen_status_code code = pen_status_get_code(status);
        if (status == PEN_OK) break;
        WORLD_NOTE(w, p, "checkpoint is damaged", record->manifest.step, code, 0);
        pen_status_ignore(status, "an older one will do");
        if (code == PEN_NO_STORAGE || !p->is_alive) return false;
        w->result->fallbacks += 1;
    }
    if (record == NULL) memcpy(run->parameters, s->parameters[0], sizeof run->parameters);
    const uint32_t step = record == NULL ? 0 : (uint32_t)record->manifest.step;
    // a bit that was read wrong since it opened the log
    const bool is_excused = faulty_disk_get_counts(w->disk)->flips > c->flips_before;
    check_recovered(p, run->generation, record, is_excused);
    WORLD_NOTE(w, p, "goes on from a checkpoint", step, run->generation, 0);
    for (uint32_t i = 0; i < s->stage_count; i++) {
        if (step <= s->step_count && run->parameters[i] == s->parameters[step][i]) continue;
        world_wrong(w, "I7", "the checkpoint of step %u has other parameters of stage %u", step, i);
        return false;
    }
    run->next_step = step + 1;
    run->done_step = step;
    run->saved_step = step;
    run->is_final = step == s->step_count;
    if (step > 0 && s->is_evaluated[step]) { // it may have been left out
        run->next_step = step;
        run->next_part = 2;
    }
    run->description[0] =
        ((uint64_t)step << 32) | (run->table->worker_count << 8) | run->table->variant;
    run->description[2] = run->generation;
    for (uint32_t i = 1; i <= run->worker_count; i++) {
        run->description[1] |= (uint64_t)run->hosts[i] << (8 * i);
    }
    return true;
}

static void coordinator_open(process *p, void *context, uint64_t value) {
    coordinator_process *c = context;
    world *w = p->world;
    (void)value;
    const pen_status status =
        pen_commit_log_open(&p->disk->base, SIMULATION_LOG, w->arena, &c->log);
    if (!p->is_alive || p->disk->has_crashed) {
        pen_status_ignore(status, "the process is dead");
        return;
    }
    if (status != PEN_OK) {
        WORLD_NOTE(w, p, "the log cannot be opened", pen_status_get_code(status), 0, 0);
        pen_status_ignore(status, "it is tried again");
        world_work_in(w, COORDINATOR_STORE_RETRY, p, coordinator_open, c, 0);
        return;
    }
    WORLD_NOTE(w, p, "the log is open", pen_commit_log_generation(c->log), 0, 0);
    const pen_commit_record *newest = pen_commit_log_manifest(c->log, 0);
    if (pen_commit_log_generation(c->log) > 0) w->result->takeovers += 1;
    if (newest != NULL && newest->manifest.step == w->shape->step_count) {
        uint64_t words[SHAPE_STAGES];
        const pen_status whole =
            checkpoint_read(&p->disk->base, newest, w->shape->stage_count, words);
        if (whole == PEN_OK) {
            coordinator_over(p, c, 0); // nothing is left to do
            return;
        }
        pen_status_ignore(whole, "the training goes on from an older one");
        if (!p->is_alive || p->disk->has_crashed) return;
    }
    coordinator_begin_generation(c);
}

// ---- who takes part

static bool coordinator_reaches(const coordinator_process *c, uint32_t host) {
    const world *w = c->process->world;
    const process *p = w->hosts[host].process;
    if (p == NULL || p->is_frozen) return false;
    return !w->network.is_cut[c->process->host][host] && !w->network.is_cut[host][c->process->host];
}

typedef struct coordinator_sight {
    bool is_present[SHAPE_WORKERS + 1];
    bool is_free[WORLD_HOSTS];
    uint32_t spares[WORLD_HOSTS];
    pen_recovery_situation situation;
} coordinator_sight;

static void coordinator_look(coordinator_process *c, coordinator_sight *out_sight) {
    const world *w = c->process->world;
    *out_sight = (coordinator_sight){0};
    for (uint32_t i = 1; i <= w->worker_count; i++) {
        out_sight->is_present[i] = coordinator_reaches(c, c->hosts[i]);
    }
    uint32_t count = 0;
    for (uint32_t h = WORLD_FIRST_WORKER; h < w->host_count; h++) {
        if (!w->hosts[h].is_spare) continue;
        out_sight->spares[count] = h;
        out_sight->is_free[count++] = !c->spare_is_used[h] && coordinator_reaches(c, h);
    }
    out_sight->situation = (pen_recovery_situation){.now = process_now(c->process),
                                                    .is_present = out_sight->is_present,
                                                    .spare_count = count,
                                                    .spare_is_free = out_sight->is_free};
}

bool coordinator_takes_back(coordinator_process *c) {
    coordinator_sight sight;
    coordinator_look(c, &sight);
    return pen_recovery_takes_back(c->recovery, &sight.situation);
}

static void coordinator_decide(process *p, void *context, uint64_t value) {
    coordinator_process *c = context;
    world *w = p->world;
    (void)value;
    if (c->run != NULL) return;
    for (;;) {
        coordinator_sight sight;
        pen_recovery_decision decision;
        coordinator_look(c, &sight);
        pen_recovery_decide(c->recovery, &sight.situation, &decision);
        WORLD_NOTE(w, p, "recovery decides", decision.kind, decision.worker, decision.spare);
        switch (decision.kind) {
        case PEN_RECOVERY_WAIT: {
            uint64_t wait = 5 * WORLD_MILLISECOND;
            const uint64_t now = process_now(p);
            if (decision.until > now && decision.until - now < wait) wait = decision.until - now;
            world_work_in(w, wait + 1000, p, coordinator_decide, c, 0);
            return;
        }
        case PEN_RECOVERY_USE_SPARE:
            c->hosts[decision.worker] = sight.spares[decision.spare];
            c->spare_is_used[sight.spares[decision.spare]] = true;
            continue;
        case PEN_RECOVERY_RESTART:
        case PEN_RECOVERY_REPLAN:
            coordinator_begin_generation(c);
            return;
        case PEN_RECOVERY_STOP:
            w->result->superseded -= 1;
            coordinator_exit(c, "gives up"); // somebody starts it again
            return;
        }
    }
}

void coordinator_recover(coordinator_process *c) {
    process *p = c->process;
    world *w = p->world;
    coordinator_run *run = c->run;
    bool is_missing[SHAPE_WORKERS + 1] = {false};
    for (uint32_t i = 1; i <= run->worker_count; i++) {
        is_missing[run->job_numbers[i]] = pen_coordinator_core_is_missing(run->core, i);
    }
    w->result->recoveries += 1;
    pen_recovery_note_failure(c->recovery, process_now(p), run->done_step, is_missing);
    coordinator_end_generation(c);
    world_work_in(w, chance_below(&w->chaos, WORLD_MILLISECOND), p, coordinator_decide, c, 0);
}

// ---- a generation

static void coordinator_tick(process *p, void *context, uint64_t value) {
    coordinator_process *c = context;
    (void)value;
    world_call_in(p->world, p->world->times.beat, p, coordinator_tick, c, 0);
    if (c->run == NULL) return;
    coordinator_feed_event(c, (pen_coordinator_event){.kind = PEN_COORDINATOR_EVENT_TICK});
    for (uint32_t i = 1; c->run != NULL && i <= c->run->worker_count; i++) {
        pen_message ping = {.kind = PEN_MESSAGE_PING};
        if (link_is_up(p, i)) coordinator_tell(c, i, &ping);
    }
    waits_tick_coordinator(c);
}

static void coordinator_choose(coordinator_process *c, coordinator_run *run) {
    world *w = c->process->world;
    for (uint32_t i = 1; i <= w->worker_count; i++) {
        if (pen_recovery_is_left_out(c->recovery, i)) continue;
        run->worker_count += 1;
        run->hosts[run->worker_count] = c->hosts[i];
        run->job_numbers[run->worker_count] = i;
    }
    PEN_ASSERT(run->worker_count > 0);
    if (chance_one_in(&w->chaos, 3)) c->plan_number += 1; // placed anew
    run->table = shape_get_table(w->shape, run->worker_count,
                                 (uint32_t)((w->variant + c->plan_number) % SHAPE_VARIANTS));
}

static void coordinator_new_core(coordinator_process *c, coordinator_run *run) {
    world *w = c->process->world;
    const pen_coordinator_options options = {
        .generation = run->generation,
        .first_round = chance_below(&w->chaos, 3) * 5,
        .self = {.protocol = PEN_PROTOCOL_VERSION, .build = "sim", .isa = "words"},
        .deadline = process_now(c->process) + w->times.recruit,
        .lease = w->times.lease,
        .progress = w->times.progress,
        .load = w->times.load,
        .write = w->times.write,
        .needs_fence = !w->fences_first,
        .lanes = w->shape->lanes};
    uint32_t limit;
    if (pen_coordinator_core_new(run->table->table, &options, w->arena, &run->core, &limit) !=
        PEN_OK) {
        abort();
    }
    run->actions = world_allocate(w, limit, sizeof *run->actions);
}

// False: it is tried again later, or never.
static bool coordinator_fence_first(coordinator_process *c, coordinator_run *run) {
    process *p = c->process;
    const pen_status_code code = coordinator_append_fence(c, run->generation);
    if (!p->is_alive || p->disk->has_crashed) return false;
    if (code == PEN_CANCELLED) {
        coordinator_exit(c, "is superseded");
        return false;
    }
    if (code != PEN_CODE_OK) return false;
    run->is_fenced = true;
    return coordinator_load(c, run);
}

static void coordinator_try_generation(process *p, void *context, uint64_t value) {
    coordinator_process *c = context;
    world *w = p->world;
    (void)value;
    if (c->run != NULL) return;
    coordinator_run *run = WORLD_NEW(w, coordinator_run);
    for (uint32_t i = 0; i < COORDINATOR_ROUNDS; i++) {
        run->rounds[i].number = WORLD_NEVER;
    }
    run->generation = pen_commit_log_generation(c->log) + 1;
    coordinator_choose(c, run);
    if (w->fences_first && !coordinator_fence_first(c, run)) {
        if (!p->is_alive || p->disk->has_crashed) return;
        world_work_in(w, COORDINATOR_STORE_RETRY, p, coordinator_try_generation, c, 0);
        return;
    }
    WORLD_NOTE(w, p, "generation begins", run->generation, run->worker_count, run->table->variant);
    w->result->generations += 1;
    coordinator_run_new_feeds(c, run);
    coordinator_new_core(c, run);
    c->run = run;
    const link_introduction self = {
        .peer = 0, .generation = run->generation, .incarnation = p->incarnation};
    for (uint32_t i = 1; i <= run->worker_count; i++) {
        link_call_peer(p, i, run->hosts[i], &self, w->times.recruit);
    }
}

void coordinator_begin_generation(coordinator_process *c) {
    coordinator_end_generation(c);
    coordinator_try_generation(c->process, c, 0);
}

// ---- links

static void coordinator_call_again(process *p, void *context, uint64_t peer) {
    const coordinator_run *run = context;
    if (p->coordinator->run != run || link_is_up(p, (uint32_t)peer)) return;
    const pen_coordinator_state state = pen_coordinator_core_state(run->core);
    if (state != PEN_COORDINATOR_RECRUIT && state != PEN_COORDINATOR_FENCE) return;
    const link_introduction self = {
        .peer = 0, .generation = run->generation, .incarnation = p->incarnation};
    link_call_peer(p, (uint32_t)peer, run->hosts[peer], &self, p->world->times.recruit);
}

link_answer coordinator_accept(process *p, const link_introduction *introduction) {
    (void)p;
    (void)introduction;
    return LINK_NEVER; // it calls
}

void coordinator_up(process *p, uint32_t peer) {
    WORLD_NOTE(p->world, p, "link is up", peer, 0, 0);
}

void coordinator_down(process *p, uint32_t peer, bool is_final) {
    coordinator_process *c = p->coordinator;
    WORLD_NOTE(p->world, p, "link is down", peer, is_final, 0);
    if (c->run == NULL) return;
    if (is_final) { // a worker knows of a higher generation
        coordinator_exit(c, "is told that it is superseded");
        return;
    }
    const coordinator_run *run = c->run;
    coordinator_feed_event(c, (pen_coordinator_event){.kind = PEN_COORDINATOR_EVENT_LOST,
                                                      .worker = peer,
                                                      .incarnation = run->incarnations[peer]});
    if (c->run != run) return;
    // it may come again
    world_call_in(p->world, chance_between(&p->world->chaos, 1, 5) * WORLD_MILLISECOND, p,
                  coordinator_call_again, c->run, peer);
}

// ---- life

void coordinator_start(process *p) {
    world *w = p->world;
    coordinator_process *c = WORLD_NEW(w, coordinator_process);
    c->process = p;
    c->flips_before = faulty_disk_get_counts(w->disk)->flips;
    p->coordinator = c;
    for (uint32_t i = 1; i <= w->worker_count; i++) {
        c->hosts[i] = WORLD_FIRST_WORKER + i - 1;
    }
    const pen_recovery_options options = {.on_loss = w->on_loss,
                                          .grace = w->times.grace,
                                          .attempts = 50,
                                          .worker_count = w->worker_count};
    if (pen_recovery_new(&options, w->arena, &c->recovery) != PEN_OK) abort();
    world_work_in(w, chance_below(&w->chaos, WORLD_MILLISECOND), p, coordinator_open, c, 0);
    world_call_in(w, w->times.beat, p, coordinator_tick, c, 0);
}
