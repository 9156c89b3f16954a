#include "tests/simulator/waits.h"

#include "tests/simulator/checks.h"

#define WAITS_SLACK 6u // ticks

// One wait: `key` is another number when it is another wait, or something has moved.
static void waits_count(process *p, wait_watch *watch, const char *what, uint64_t key,
                        uint64_t limit, uint64_t tick) {
    if (key != watch->key) *watch = (wait_watch){.key = key};
    watch->ticks += 1;
    if (limit == 0 || watch->ticks <= limit / tick + limit / tick / 20 + WAITS_SLACK) return;
    world_wrong(p->world, "I13", "waits for %s for %" PRIu64 " ticks of %.3f ms, at most %.3f ms",
                what, watch->ticks, (double)tick * 1e-6, (double)limit * 1e-6);
}

static const char *waits_of_worker(const worker_process *worker, uint64_t *out_limit) {
    const pen_member_core *core = &worker->member;
    const world_times *times = &worker->process->world->times;
    const bool has_started = worker->run != NULL && worker->run->is_started;
    *out_limit = times->load;
    switch (core->state) {
    case PEN_MEMBER_IDLE:
        *out_limit = core->is_called ? times->link : 0;
        return "a link";
    case PEN_MEMBER_GREETED:
        *out_limit = times->assign;
        if (core->is_disconnecting) *out_limit = times->link;
        return core->is_disconnecting ? "a link to go down" : "a coordinator";
    case PEN_MEMBER_PULLING:
        return "a description";
    case PEN_MEMBER_LOADING:
        return "what is to be loaded";
    case PEN_MEMBER_RUNNING:
        if (has_started) *out_limit = 0;
        return "the start";
    case PEN_MEMBER_LEAVING:
        *out_limit = times->leave;
        return "the end of a run";
    }
    PEN_NEVER("a state of a member");
}

void waits_tick_worker(worker_process *worker) {
    const pen_member_core *core = &worker->member;
    uint64_t limit;
    const char *what = waits_of_worker(worker, &limit);
    const uint64_t key = (core->call_count << 8) + ((uint64_t)core->state << 4) +
                         (core->is_called ? 1 : 0) + (core->is_disconnecting ? 2 : 0) +
                         (core->has_left ? 4 : 0) + (core->is_dropped ? 8 : 0);
    const world_times *times = &worker->process->world->times;
    waits_count(worker->process, &worker->watch, what, key, limit, times->beat / 2);
    const bool is_led = core->is_linked && !core->is_disconnecting;
    waits_count(worker->process, &worker->silence, "a word of its coordinator",
                (core->call_count << 32) + 2 * worker->heard_count + is_led,
                is_led ? times->lease : 0, times->beat / 2);
}

static void waits_of_save(coordinator_process *c, pen_coordinator_save_state state, uint64_t step) {
    coordinator_run *run = c->run;
    const world_times *times = &c->process->world->times;
    const uint64_t limit = state == PEN_COORDINATOR_SAVE_NONE       ? 0
                           : state == PEN_COORDINATOR_SAVE_SNAPPING ? times->load
                                                                    : times->write;
    const uint64_t key = (step << 32) + ((uint64_t)run->shard_count << 4) + (uint64_t)state;
    waits_count(c->process, &run->watches[1], "a checkpoint", key, limit, times->beat);
}

// From the assignment on.
static void waits_for_words(coordinator_process *c, pen_coordinator_state state) {
    coordinator_run *run = c->run;
    const world_times *times = &c->process->world->times;
    const bool counts = state == PEN_COORDINATOR_ASSIGN || state == PEN_COORDINATOR_RUN;
    for (uint32_t i = 1; i <= run->worker_count; i++) {
        waits_count(c->process, &run->silence[i], "a word of a worker",
                    2 * run->heard_count[i] + counts, counts ? times->lease : 0, times->beat);
    }
}

static void waits_of_run(coordinator_process *c) {
    coordinator_run *run = c->run;
    const world *w = c->process->world;
    const world_times *times = &w->times;
    uint64_t step, round, owed = 0, pieces = 0;
    const pen_coordinator_save_state saving = pen_coordinator_core_save_state(run->core, &step);
    waits_of_save(c, saving, step);
    for (uint32_t i = 1; i <= run->worker_count; i++) {
        owed |= run->owed[i];
        for (uint64_t bits = run->owed[i]; bits != 0; bits &= bits - 1)
            pieces++;
    }
    waits_count(c->process, &run->watches[2], "a piece", pieces, owed == 0 ? 0 : times->load,
                times->beat);
    (void)pen_coordinator_core_can_begin(run->core, &round);
    const bool is_quiet =
        pen_coordinator_core_is_quiet(run->core) || w->checks->has_ended_not_finite;
    waits_count(c->process, &run->watches[3], "rounds", (round << 32) + run->report_count,
                is_quiet ? 0 : times->progress, times->beat);
}

void waits_tick_coordinator(coordinator_process *c) {
    coordinator_run *run = c->run;
    const world_times *times = &c->process->world->times;
    if (run == NULL || run->is_over || run->is_stopping) return;
    const pen_coordinator_state state = pen_coordinator_core_state(run->core);
    uint64_t limit = 0;
    if (state == PEN_COORDINATOR_RECRUIT) limit = times->recruit;
    if (state == PEN_COORDINATOR_FENCE) limit = times->write;
    if (state == PEN_COORDINATOR_ASSIGN) limit = times->load;
    waits_count(c->process, &run->watches[0], "workers", (uint64_t)state, limit, times->beat);
    waits_for_words(c, state);
    if (state == PEN_COORDINATOR_RUN) waits_of_run(c);
}
