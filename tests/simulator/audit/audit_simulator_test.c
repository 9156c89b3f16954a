// Audits through seeds of workers that compute wrongly, once or always, that are late, silent, or
// answer what nobody asked; and each mistake that is planted in the core (base/planted.h) must be
// found.

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/planted.h"
#include "scheduler/audit/audit_core.h"
#include "tests/support/chance.h"
#include "tests/support/check.h"

const char *pen_planted_mistake = "";

#define SEEDS 20000u
#define MISTAKE_SEEDS 3000u
#define WORKERS_LIMIT 5u
#define MICROBATCHES 3u
#define AUDITS 6u
#define DEADLINE 10u
#define EVENTS_LIMIT 200u // of an audit
#define TRUTH 0x70757468u

typedef enum false_kind {
    FALSE_NEVER,
    FALSE_ONCE,   // the first time of an audit
    FALSE_ALWAYS, // the same wrong bits
    FALSE_ANYHOW, // other wrong bits each time
} false_kind;

typedef struct world {
    chance chance;
    pen_arena *arena;
    uint32_t worker_count;
    pen_run_table table;
    pen_audit_core *core;
    bool has_room[WORKERS_LIMIT * (WORKERS_LIMIT + 1)];
    uint32_t false_worker; // 0: all are honest
    false_kind kind;
    bool is_quiet; // nobody is late, declines or repeats itself
    uint64_t now;
    // of the audit
    uint32_t computed; // by the false worker
    uint64_t first;    // digest of who computed it
    pen_audit_action noted, asked, earlier;
    bool is_over;
    bool is_seen[WORKERS_LIMIT][MICROBATCHES];
    char wrong[200]; // "": nothing is
} world;

#define WRONG(w, ...)                                                                              \
    do {                                                                                           \
        if ((w)->wrong[0] == '\0') snprintf((w)->wrong, sizeof(w)->wrong, __VA_ARGS__);            \
    } while (0)

static bool world_has_room(const world *w, uint32_t device, uint32_t worker) {
    return w->has_room[device * (w->worker_count + 1) + worker];
}

// What a worker comes to.
static uint64_t world_compute(world *w, uint32_t worker) {
    if (worker != w->false_worker) return TRUTH;
    const uint32_t before = w->computed++;
    switch (w->kind) {
    case FALSE_NEVER:
        return TRUTH;
    case FALSE_ONCE:
        return before == 0 ? TRUTH ^ 1 : TRUTH;
    case FALSE_ALWAYS:
        return TRUTH ^ 1;
    case FALSE_ANYHOW:
        return TRUTH ^ (1 + chance_below(&w->chance, 1u << 30));
    }
    return TRUTH;
}

// Of those who differ nobody but the false worker may be named alone, and it must be where a third
// can tell.
static void world_judge_blame(world *w, const pen_audit_action *action) {
    if (action->worker != w->false_worker) WRONG(w, "worker %u is blamed", action->worker);
    if (action->other == action->worker) WRONG(w, "worker %u is both", action->worker);
}

static void world_judge_pass(world *w, const pen_audit_action *action) {
    if (w->first != TRUTH) WRONG(w, "wrong bits of worker %u pass", w->noted.worker);
    if (action->worker != w->noted.worker) WRONG(w, "another worker passes");
}

static void world_judge_divided(world *w, const pen_audit_action *action) {
    uint32_t judges = 0;
    if (action->worker != w->false_worker && action->other != w->false_worker) {
        WRONG(w, "workers %u and %u are divided, and honest", action->worker, action->other);
    }
    for (uint32_t i = 1; i <= w->worker_count; i++) {
        judges += i != w->noted.worker && world_has_room(w, w->noted.device, i);
    }
    if (w->is_quiet && judges >= 2 && w->first != TRUTH) WRONG(w, "nobody is named of three");
}

static void world_take_action(world *w, const pen_audit_action *action) {
    switch (action->kind) {
    case PEN_AUDIT_ACTION_NOTE:
        w->noted = *action;
        w->is_seen[action->stage][action->microbatch] = true;
        if (w->table.forms[0].devices[action->device].worker != action->worker) {
            WRONG(w, "worker %u does not have device %u", action->worker, action->device);
        }
        return;
    case PEN_AUDIT_ACTION_ASK:
        if (!world_has_room(w, w->noted.device, action->worker)) {
            WRONG(w, "worker %u has no room", action->worker);
        }
        if (w->asked.worker == 0 && action->worker == w->noted.worker) {
            WRONG(w, "worker %u is asked of itself first", action->worker);
        }
        w->earlier = w->asked;
        w->asked = *action;
        return;
    case PEN_AUDIT_ACTION_PASS:
        world_judge_pass(w, action);
        break;
    case PEN_AUDIT_ACTION_BLAME:
        world_judge_blame(w, action);
        break;
    case PEN_AUDIT_ACTION_DIVIDED:
        world_judge_divided(w, action);
        break;
    case PEN_AUDIT_ACTION_GIVE_UP:
        if (w->is_quiet) WRONG(w, "given up for nothing");
        break;
    }
    w->is_over = true;
}

static void world_step(world *w, pen_audit_event event) {
    pen_audit_action actions[PEN_AUDIT_ACTIONS];
    uint32_t count;
    event.now = w->now;
    pen_audit_core_step(w->core, &event, actions, &count);
    for (uint32_t i = 0; i < count; i++) {
        world_take_action(w, &actions[i]);
    }
}

// Something happens while an answer is waited for: it comes, or does not, or another comes.
static void world_answer(world *w) {
    const pen_audit_action asked = w->asked;
    const uint64_t choice = w->is_quiet ? 0 : chance_below(&w->chance, 8);
    if (choice == 1 && w->earlier.worker != 0) { // late, to a question that is over
        world_step(w, (pen_audit_event){.kind = PEN_AUDIT_EVENT_OPINION,
                                        .worker = w->earlier.worker,
                                        .asked = w->earlier.asked,
                                        .digest = world_compute(w, w->earlier.worker)});
    } else if (choice == 2) {
        world_step(w, (pen_audit_event){.kind = PEN_AUDIT_EVENT_NO_OPINION,
                                        .worker = asked.worker,
                                        .asked = asked.asked});
    } else if (choice == 3) {
        w->now += 1 + chance_below(&w->chance, 2 * DEADLINE);
        world_step(w, (pen_audit_event){.kind = PEN_AUDIT_EVENT_TICK});
    } else if (choice == 4 && w->false_worker != 0) { // nobody asked it
        world_step(w, (pen_audit_event){.kind = PEN_AUDIT_EVENT_OPINION,
                                        .worker = w->false_worker,
                                        .asked = asked.asked,
                                        .digest = TRUTH ^ 1});
    } else {
        world_step(w, (pen_audit_event){.kind = PEN_AUDIT_EVENT_OPINION,
                                        .worker = asked.worker,
                                        .asked = asked.asked,
                                        .digest = world_compute(w, asked.worker)});
    }
}

static void world_audit(world *w, uint64_t step) {
    w->is_over = false;
    w->computed = 0;
    w->noted = w->asked = w->earlier = (pen_audit_action){0};
    world_step(
        w, (pen_audit_event){.kind = PEN_AUDIT_EVENT_STEP, .step = step, .count = MICROBATCHES});
    if (!pen_audit_core_is_busy(w->core)) return; // nobody could judge
    for (uint32_t i = 0; i < EVENTS_LIMIT && !w->is_over; i++) {
        if (!w->is_quiet && chance_one_in(&w->chance, 20)) break;
        if (w->asked.worker != 0) {
            world_answer(w);
        } else if (!w->is_quiet && chance_one_in(&w->chance, 10)) {
            world_step(w, (pen_audit_event){.kind = PEN_AUDIT_EVENT_NO_EVIDENCE,
                                            .worker = w->noted.worker,
                                            .step = w->noted.step});
        } else {
            w->first = world_compute(w, w->noted.worker);
            world_step(w, (pen_audit_event){.kind = PEN_AUDIT_EVENT_EVIDENCE,
                                            .worker = w->noted.worker,
                                            .step = w->noted.step,
                                            .digest = w->first});
        }
    }
    // now nobody says anything any more
    for (uint32_t i = 0; i < 2 * WORKERS_LIMIT && !w->is_over; i++) {
        w->now += DEADLINE + 1;
        world_step(w, (pen_audit_event){.kind = PEN_AUDIT_EVENT_TICK});
    }
    if (!w->is_over || pen_audit_core_is_busy(w->core)) WRONG(w, "it never ends");
}

// One device and stage on each worker.
static void world_make(world *w, uint64_t seed) {
    pen_run_device *devices;
    pen_run_task *tasks;
    pen_run_form *form;
    w->chance.state = seed;
    w->worker_count = (uint32_t)chance_between(&w->chance, 2, WORKERS_LIMIT);
    CHECK_OK(PEN_NEW(w->arena, w->worker_count, &devices));
    CHECK_OK(PEN_NEW(w->arena, w->worker_count * MICROBATCHES, &tasks));
    CHECK_OK(PEN_NEW(w->arena, 1, &form));
    for (uint32_t d = 0; d < w->worker_count; d++) {
        devices[d] = (pen_run_device){
            .worker = d + 1, .task_first = d * MICROBATCHES, .task_end = (d + 1) * MICROBATCHES};
        for (uint32_t m = 0; m < MICROBATCHES; m++) {
            tasks[d * MICROBATCHES + m] =
                (pen_run_task){.task = {.kind = PEN_TASK_FORWARD, .stage = d, .microbatch = m}};
        }
    }
    *form = (pen_run_form){.microbatch_count = MICROBATCHES,
                           .task_count = w->worker_count * MICROBATCHES,
                           .tasks = tasks,
                           .devices = devices};
    w->table = (pen_run_table){.worker_count = w->worker_count,
                               .device_count = w->worker_count,
                               .form_count = 1,
                               .forms = form};
    const bool is_roomy = chance_one_in(&w->chance, 2);
    for (uint32_t i = 0; i < w->worker_count * (w->worker_count + 1); i++) {
        w->has_room[i] = is_roomy || !chance_one_in(&w->chance, 3);
    }
    w->is_quiet = chance_one_in(&w->chance, 2);
    w->false_worker = (uint32_t)chance_below(&w->chance, w->worker_count + 1);
    w->kind = (false_kind)chance_between(&w->chance, FALSE_ONCE, FALSE_ANYHOW);
    const pen_audit_options options = {
        .every = 2, .seed = seed, .deadline = DEADLINE, .has_room = w->has_room};
    CHECK_OK(pen_audit_core_new(&w->table, &options, w->arena, &w->core));
}

// Audits of one seed. What is seen of each stage and microbatch goes to `is_seen` of who asks.
static bool run_seed(uint64_t seed, pen_arena *arena, char out_wrong[200],
                     bool is_seen[WORKERS_LIMIT][MICROBATCHES]) {
    world *w;
    pen_arena_reset(arena);
    CHECK_OK(PEN_NEW(arena, 1, &w));
    w->arena = arena;
    world_make(w, seed);
    for (uint64_t audit = 1; audit <= AUDITS && w->wrong[0] == '\0'; audit++) {
        if (pen_audit_core_is_due(w->core, 2 * audit - 1)) WRONG(w, "it is due too soon");
        if (!pen_audit_core_is_due(w->core, 2 * audit)) WRONG(w, "it is not due");
        world_audit(w, 2 * audit);
    }
    for (uint32_t s = 0; s < WORKERS_LIMIT; s++) {
        for (uint32_t m = 0; m < MICROBATCHES; m++) {
            is_seen[s][m] = is_seen[s][m] || w->is_seen[s][m];
        }
    }
    snprintf(out_wrong, 200, "%s", w->wrong);
    return w->wrong[0] == '\0';
}

// The first seed that goes wrong, from 1; 0: none does.
static uint64_t find_wrong(uint64_t seeds, char out_wrong[200]) {
    static bool is_seen[WORKERS_LIMIT][MICROBATCHES];
    pen_arena *arena = check_arena();
    uint64_t found = 0;
    memset(is_seen, 0, sizeof is_seen);
    for (uint64_t seed = 1; seed <= seeds && found == 0; seed++) {
        if (!run_seed(seed, arena, out_wrong, is_seen)) found = seed;
    }
    for (uint32_t i = 0; i < WORKERS_LIMIT * MICROBATCHES && found == 0; i++) {
        if (is_seen[i / MICROBATCHES][i % MICROBATCHES]) continue;
        snprintf(out_wrong, 200, "stage %u, microbatch %u is never drawn", i / MICROBATCHES,
                 i % MICROBATCHES);
        found = seeds;
    }
    pen_arena_destroy(arena);
    return found;
}

static void honest_workers_are_never_named(void **state) {
    (void)state;
    char wrong[200];
    const uint64_t seed = find_wrong(SEEDS, wrong);
    CHECK(seed == 0, "seed %llu: %s", (unsigned long long)seed, wrong);
}

static void planted_mistakes_are_found(void **state) {
    (void)state;
    FILE *file = fopen("scheduler/audit/audit_core.c", "re");
    char line[512], name[64], wrong[200];
    uint32_t count = 0;
    CHECK(file != NULL, "%s", strerror(errno));
    while (fgets(line, sizeof line, file) != NULL) {
        const char *at = strstr(line, "PEN_PLANTED(");
        if (at == NULL || sscanf(at, "PEN_PLANTED(%63[a-z_])", name) != 1) continue;
        pen_planted_mistake = name;
        const uint64_t seed = find_wrong(MISTAKE_SEEDS, wrong);
        pen_planted_mistake = "";
        printf("%-20s found at seed %5llu: %s\n", name, (unsigned long long)seed, wrong);
        CHECK(seed != 0, "%s is not found in %u seeds", name, MISTAKE_SEEDS);
        count += 1;
    }
    fclose(file);
    CHECK(count >= 6, "%u mistakes are planted", count);
}

PEN_TEST_MAIN(cmocka_unit_test(honest_workers_are_never_named),
              cmocka_unit_test(planted_mistakes_are_found))
