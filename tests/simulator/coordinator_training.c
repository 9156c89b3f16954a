// The loop that trains: rounds, losses, checkpoints.

#include <string.h>

#include "tests/simulator/checks.h"
#include "tests/simulator/coordinator_process.h"

const coordinator_round_of *coordinator_find_round_of(const coordinator_run *run, uint64_t number) {
    const coordinator_round_of *round = &run->rounds[number % COORDINATOR_ROUNDS];
    PEN_ASSERT(round->number == number);
    return round;
}

// ---- beginning rounds

static bool training_is_save_due(const world *w, uint32_t step) {
    return step > 0 && (step % w->save_every == 0 || step == w->shape->step_count);
}

// The round that is to be begun next. False: none, or not yet.
static bool training_next(const world *w, const coordinator_run *run,
                          coordinator_round_of *out_round) {
    const shape *s = w->shape;
    const uint32_t step = run->next_step;
    if (run->next_part == 2) {
        *out_round = (coordinator_round_of){
            .step = step, .part = 2, .count = s->microbatch_count, .is_evaluation = true};
        return true;
    }
    // a checkpoint is of a step's end, before the next begins
    if (run->next_part == 0 && training_is_save_due(w, step - 1) && run->saved_step < step - 1) {
        return false;
    }
    if (step > s->step_count || step > run->done_step + 2) return false;
    *out_round =
        (coordinator_round_of){.step = step,
                               .part = run->next_part,
                               .count = s->counts[step][run->next_part],
                               .first_microbatch = run->next_part == 0 ? 0 : s->counts[step][0]};
    return true;
}

static void training_advance(const shape *s, coordinator_run *run) {
    const uint32_t step = run->next_step;
    if (run->next_part == 0 && s->counts[step][1] > 0) {
        run->next_part = 1;
    } else if (run->next_part < 2 && s->is_evaluated[step]) {
        run->next_part = 2;
    } else {
        run->next_part = 0;
        run->next_step += 1;
    }
}

static bool training_begin(coordinator_process *c) {
    coordinator_run *run = c->run;
    const world *w = c->process->world;
    uint64_t number;
    coordinator_round_of round;
    if (!pen_coordinator_core_can_begin(run->core, &number)) return false;
    if (run->queue_first < run->queue_end) return false; // one begin at a time
    if (!training_next(w, run, &round)) return false;
    round.number = number;
    run->rounds[number % COORDINATOR_ROUNDS] = round;
    const bool is_last = round.part == 1 || w->shape->counts[round.step][1] == 0;
    training_advance(w->shape, run);
    coordinator_feed_event(c, (pen_coordinator_event){.kind = PEN_COORDINATOR_EVENT_BEGIN,
                                                      .form = round.is_evaluation ? 1 : 0,
                                                      .count = round.count,
                                                      .updates = !round.is_evaluation && is_last,
                                                      .microbatch = round.first_microbatch,
                                                      .order = c->orders[round.step]});
    return true;
}

static bool training_save(coordinator_process *c) {
    coordinator_run *run = c->run;
    const world *w = c->process->world;
    const uint32_t step = run->next_step - 1;
    if (run->next_part != 0 || run->queue_first < run->queue_end) return false;
    if (!training_is_save_due(w, step) || run->saved_step >= step) return false;
    if (!pen_coordinator_core_can_save(run->core)) return false;
    run->saved_step = step;
    memset(run->has_summary, 0, sizeof run->has_summary);
    coordinator_feed_event(
        c, (pen_coordinator_event){.kind = PEN_COORDINATOR_EVENT_SAVE, .step = step});
    return true;
}

static void training_finish(coordinator_process *c) {
    coordinator_run *run = c->run;
    world *w = c->process->world;
    uint64_t step;
    if (run->is_stopping) {
        for (uint32_t i = 1; i <= run->worker_count; i++) {
            if (!run->has_stopped[i] && link_is_up(c->process, i)) return;
        }
        world_call_in(w, 0, c->process, coordinator_over, c, 0);
        return;
    }
    const bool is_saving =
        pen_coordinator_core_save_state(run->core, &step) != PEN_COORDINATOR_SAVE_NONE;
    const bool is_done = run->is_final && pen_coordinator_core_is_quiet(run->core);
    if (is_saving || (!is_done && !w->checks->has_ended_not_finite)) return;
    run->is_stopping = true;
    world_call_in(w, 200 * WORLD_MILLISECOND, c->process, coordinator_over, c, 0);
    coordinator_feed_event(c, (pen_coordinator_event){.kind = PEN_COORDINATOR_EVENT_STOP});
}

void coordinator_train(coordinator_process *c) {
    const coordinator_run *run = c->run;
    if (c->process->world->is_wrong || process_is_busy(c->process)) return;
    for (uint32_t i = 1; i <= run->worker_count; i++) {
        if (run->owed[i] != 0) return;
    }
    const pen_coordinator_state state = pen_coordinator_core_state(run->core);
    if (state == PEN_COORDINATOR_RUN) {
        (void)(training_save(c) || training_begin(c));
        training_finish(c);
    } else if (state == PEN_COORDINATOR_DONE && run->is_stopping) {
        training_finish(c);
    }
}

// ---- what comes of them

void coordinator_take_losses(coordinator_process *c, uint64_t number) {
    coordinator_run *run = c->run;
    world *w = c->process->world;
    const shape *s = w->shape;
    const coordinator_round_of *round = coordinator_find_round_of(run, number);
    for (uint32_t m = 0; m < round->count; m++) {
        const pen_coordinator_loss *loss =
            pen_coordinator_core_find_loss(run->core, number, m, s->stage_count - 1);
        const uint32_t of_step = round->first_microbatch + m;
        const shape_values *values = &s->values[round->step][s->stage_count - 1];
        const uint64_t word =
            round->is_evaluation ? values->evaluated[m] : values->forward[of_step];
        const uint64_t expected = shape_loss(s, round->step, of_step, word, round->is_evaluation);
        if (loss == NULL) {
            world_wrong(w, "I2", "losses of round %" PRIu64 " are said to be here, but %u is not",
                        number, m);
        } else if (loss->value != expected) {
            world_wrong(w, "I4", "the loss of microbatch %u of step %u is another", of_step,
                        round->step);
        }
    }
}

void coordinator_take_round_done(coordinator_process *c, uint64_t number) {
    coordinator_run *run = c->run;
    world *w = c->process->world;
    const coordinator_round_of *round = coordinator_find_round_of(run, number);
    const bool is_last = round->part == 1 || w->shape->counts[round->step][1] == 0;
    if (round->is_evaluation || !is_last) return;
    if (round->step != run->done_step + 1) {
        world_wrong(w, "I2", "step %u is done after step %u", round->step, run->done_step);
    }
    run->done_step = round->step;
    w->result->steps += 1;
}

// ---- the manifest

static void training_prune(coordinator_process *c) {
    const pen_shard_place place = {.disk = &c->process->disk->base, .folder = SIMULATION_SHARDS};
    pen_status_ignore(pen_commit_log_prune(c->log, &place, 2),
                      "what is not removed now is removed later");
}

pen_status_code coordinator_publish(coordinator_process *c, uint64_t step) {
    coordinator_run *run = c->run;
    process *p = c->process;
    world *w = p->world;
    pen_commit_record record = {.kind = PEN_COMMIT_MANIFEST,
                                .generation = run->generation,
                                .job = SIMULATION_JOB,
                                .manifest = {.step = step, .microbatches = 1}};
    pen_shard_summary shards[SHAPE_WORKERS];
    for (uint32_t i = 1; i <= run->worker_count; i++) {
        if (run->has_summary[i]) shards[record.manifest.shard_count++] = run->summaries[i];
    }
    record.manifest.shards = shards;
    pen_status status = pen_commit_log_append(c->log, &record);
    const pen_status_code code = pen_status_get_code(status);
    WORLD_NOTE(w, p, "manifest is appended", step, code, run->generation);
    pen_status_ignore(status, "the core is told");
    if (code == PEN_CODE_OK && p->is_alive) {
        check_published(p, &record);
        run->published_step = step;
        run->is_final = step == w->shape->step_count;
        w->result->commits += 1;
        if (!p->disk->has_crashed) training_prune(c);
    }
    return code;
}
