#include "tests/simulator/faults.h"

#include <stdlib.h>
#include <string.h>

#include "tests/simulator/checks.h"
#include "tests/simulator/links.h"
#include "tests/simulator/stuck.h"

#define FAULT_LIMIT 10u

// ---- processes come back

static bool fault_has_coordinator(const world *w) {
    return w->hosts[0].process != NULL || w->hosts[1].process != NULL;
}

static void fault_restart(process *nobody, void *context, uint64_t host) {
    world *w = context;
    (void)nobody;
    if (w->hosts[host].process != NULL || w->hosts[host].is_gone) return;
    (void)process_start(w, (uint32_t)host);
}

static void fault_restart_coordinator(process *nobody, void *context, uint64_t value) {
    world *w = context;
    const uint32_t host = (uint32_t)value & 1;
    const bool may_rival = value >= 2;
    (void)nobody;
    if (w->hosts[host].process != NULL || (fault_has_coordinator(w) && !may_rival)) return;
    (void)process_start(w, host);
}

void world_supervise(world *w, uint32_t host) {
    if (host >= WORLD_FIRST_WORKER) {
        const uint64_t time = chance_one_in(&w->chaos, 3) ? chance_between(&w->chaos, 100, 800)
                                                          : chance_between(&w->chaos, 1, 40);
        world_call_in(w, time * WORLD_MILLISECOND, NULL, fault_restart, w, host);
        return;
    }
    const uint64_t wait = chance_between(&w->chaos, 1, 150) * WORLD_MILLISECOND;
    const bool may_rival = !w->is_calm && chance_one_in(&w->chaos, 4);
    world_call_in(w, wait, NULL, fault_restart_coordinator, w, host | (may_rival ? 2 : 0));
}

// ---- what goes wrong

static process *fault_choose(world *w, bool is_worker) {
    process *found[WORLD_HOSTS];
    uint32_t count = 0;
    const uint32_t first = is_worker ? WORLD_FIRST_WORKER : 0;
    const uint32_t end = is_worker ? w->host_count : WORLD_FIRST_WORKER;
    for (uint32_t h = first; h < end; h++) {
        if (w->hosts[h].process != NULL) found[count++] = w->hosts[h].process;
    }
    return count == 0 ? NULL : found[chance_below(&w->chaos, count)];
}

static process *fault_choose_any(world *w) {
    process *p = fault_choose(w, !chance_one_in(&w->chaos, 3));
    return p != NULL ? p : fault_choose(w, true);
}

// Whether a host may be lost for good, and the training go on.
static bool fault_may_go(const world *w) {
    uint32_t left = 0, spares = 0, gone = 0;
    for (uint32_t h = WORLD_FIRST_WORKER; h < w->host_count; h++) {
        if (w->hosts[h].is_gone) gone++;
        if (!w->hosts[h].is_gone && !w->hosts[h].is_spare) left++;
        if (!w->hosts[h].is_gone && w->hosts[h].is_spare) spares++;
    }
    if (w->on_loss == PEN_RECOVERY_ON_LOSS_REPLAN) return left > 1;
    // a coordinator that starts anew does not know who took whose place
    return w->on_loss == PEN_RECOVERY_ON_LOSS_SPARE && gone == 0 && spares > 0;
}

static void fault_crash_worker(world *w) {
    process *p = fault_choose(w, true);
    if (p == NULL) return;
    w->result->faults[SIMULATION_FAULT_WORKER_CRASH] += 1;
    if (chance_one_in(&w->chaos, 4) && fault_may_go(w) && !w->hosts[p->host].is_spare) {
        w->hosts[p->host].is_gone = true;
        w->result->faults[SIMULATION_FAULT_GONE] += 1;
    }
    process_crash(p, chance_one_in(&w->chaos, 3));
}

static void fault_crash_coordinator(world *w) {
    process *p = fault_choose(w, false);
    if (p == NULL) return;
    w->result->faults[SIMULATION_FAULT_COORDINATOR_CRASH] += 1;
    process_crash(p, chance_one_in(&w->chaos, 3));
}

static void fault_lose_all(world *w) {
    w->result->faults[SIMULATION_FAULT_POWER] += 1;
    for (uint32_t h = 0; h < w->host_count; h++) {
        process *p = w->hosts[h].process;
        if (p != NULL) process_crash(p, false);
    }
    faulty_disk_lose_power(w->disk, FAULTY_DISK_ANY);
}

static void fault_rival(process *nobody, void *context, uint64_t value) {
    world *w = context;
    (void)nobody;
    (void)value;
    const uint32_t host = w->hosts[0].process != NULL ? 1 : 0;
    if (w->hosts[host].process != NULL || w->is_calm) return;
    w->result->faults[SIMULATION_FAULT_RIVAL] += 1;
    (void)process_start(w, host);
}

static uint64_t fault_pause_time(world *w) {
    const uint64_t most = chance_one_in(&w->chaos, 2) ? 50 : 1500;
    return chance_between(&w->chaos, 1, most) * WORLD_MILLISECOND;
}

static void fault_freeze(world *w, bool is_coordinator) {
    process *p = fault_choose(w, !is_coordinator);
    if (p == NULL) return;
    const uint64_t time = fault_pause_time(w);
    w->result->faults[SIMULATION_FAULT_FREEZE] += 1;
    process_freeze(p, time);
    if (is_coordinator && !chance_one_in(&w->chaos, 3)) {
        world_call_in(w, chance_below(&w->chaos, time), NULL, fault_rival, w, 0);
    }
}

// Called in a call to the disk: the world goes on without the process.
static void fault_hold(void *context) {
    process *p = context;
    world *w = p->world;
    if (w->depth == 3) return;
    if (chance_one_in(&w->chaos, 2) && p->coordinator != NULL) {
        world_call_in(w, WORLD_MILLISECOND, NULL, fault_rival, w, 0);
    }
    process_hold(p, fault_pause_time(w));
}

static void fault_in_disk(world *w, bool is_crash) {
    process *p = fault_choose(w, chance_one_in(&w->chaos, 3));
    if (p == NULL) return;
    const uint64_t at = p->disk->call_count + chance_between(&w->chaos, 1, 40);
    if (is_crash) {
        p->disk->crash_at = at;
    } else {
        p->disk->pause_at = at;
        p->disk->pause = fault_hold;
        p->disk->context = p;
    }
}

static void fault_heal(process *nobody, void *context, uint64_t value) {
    world *w = context;
    (void)nobody;
    (void)value;
    WORLD_NOTE(w, NULL, "partition heals", 0, 0, 0);
    memset(w->network.is_cut, 0, sizeof w->network.is_cut);
}

static void fault_cut(world *w) {
    const bool is_one_way = chance_one_in(&w->chaos, 3);
    const uint64_t side = chance_next(&w->chaos);
    for (uint32_t a = 0; a < w->host_count; a++) {
        for (uint32_t b = 0; b < w->host_count; b++) {
            const bool a_side = (side >> a & 1) != 0, b_side = (side >> b & 1) != 0;
            if (a_side == b_side) continue;
            if (!is_one_way || a_side) w->network.is_cut[a][b] = true;
        }
    }
    w->result->faults[SIMULATION_FAULT_PARTITION] += 1;
    WORLD_NOTE(w, NULL, "network is cut", side, is_one_way, 0);
    const uint64_t most = chance_one_in(&w->chaos, 2) ? 30 : 1200;
    world_call_in(w, chance_between(&w->chaos, 1, most) * WORLD_MILLISECOND, NULL, fault_heal, w,
                  0);
}

static void fault_recover_speed(process *p, void *context, uint64_t value) {
    (void)context;
    (void)value;
    p->slowness = 1;
}

static void fault_slow(world *w) {
    process *p = fault_choose(w, true);
    if (p == NULL) return;
    p->slowness = chance_between(&w->chaos, 2, 30);
    w->result->faults[SIMULATION_FAULT_SLOW] += 1;
    world_call_in(w, chance_between(&w->chaos, 5, 300) * WORLD_MILLISECOND, p, fault_recover_speed,
                  p, 0);
}

// A bit of a shard turns, and stays so.
static void fault_rot(world *w) {
    const char *names[64];
    uint32_t count = 0;
    for (uint32_t i = 0; count < 64; i++) {
        const char *name = faulty_disk_name(w->disk, i);
        if (name == NULL) break;
        const bool is_shard = strncmp(name, SIMULATION_SHARDS "/", sizeof SIMULATION_SHARDS) == 0;
        const bool is_record =
            strncmp(name, SIMULATION_LOG "/commit.", sizeof SIMULATION_LOG "/commit." - 1) == 0;
        if (is_record || (is_shard && strstr(name, ".partial") == NULL)) names[count++] = name;
    }
    if (count == 0) return;
    const char *name = names[chance_below(&w->chaos, count)];
    if (faulty_disk_rot(w->disk, name)) {
        WORLD_NOTE(w, NULL, "a bit turns", 0, 0, 0);
        check_rotten(w, name);
    }
}

static void fault_link(world *w, bool is_reset) {
    process *p = fault_choose_any(w);
    if (p == NULL) return;
    const uint64_t choice = chance_next(&w->chaos);
    if (is_reset ? links_reset(p, choice) : links_break(p, choice)) {
        w->result->faults[is_reset ? SIMULATION_FAULT_RESET : SIMULATION_FAULT_BREAK] += 1;
    }
}

// ---- which, and when

typedef enum fault_choice {
    CHOICE_WORKER,
    CHOICE_COORDINATOR,
    CHOICE_POWER,
    CHOICE_FREEZE_WORKER,
    CHOICE_FREEZE_COORDINATOR,
    CHOICE_RIVAL,
    CHOICE_DISK_CRASH,
    CHOICE_DISK_PAUSE,
    CHOICE_CUT,
    CHOICE_RESET,
    CHOICE_BREAK,
    CHOICE_SLOW,
    CHOICE_ROT,
    CHOICE_COUNT,
} fault_choice;

static const uint8_t fault_weights[SIMULATION_PROFILE_COUNT][CHOICE_COUNT] = {
    [SIMULATION_ALL] = {6, 5, 1, 3, 3, 2, 5, 3, 4, 3, 4, 2, 2},
    [SIMULATION_LOSS_ONLY] = {[CHOICE_BREAK] = 4, [CHOICE_SLOW] = 1},
    [SIMULATION_CRASH] = {6, 5, 1, 0, 0, 0, 5, 0, 0, 2, 1, 1, 0},
    [SIMULATION_DISK] = {2, 4, 3, 0, 0, 0, 8, 4, 0, 0, 0, 0, 3},
    [SIMULATION_PARTITION] = {1, 1, 0, 0, 0, 0, 0, 0, 8, 3, 4, 1, 0},
    [SIMULATION_ZOMBIE] = {1, 2, 0, 4, 8, 4, 1, 6, 2, 0, 0, 1, 0},
};

static void fault_happen(process *nobody, void *context, uint64_t value) {
    world *w = context;
    (void)nobody;
    if (w->is_calm) return;
    WORLD_NOTE(w, NULL, "fault", value, 0, 0);
    switch ((fault_choice)value) {
    case CHOICE_WORKER:
        fault_crash_worker(w);
        break;
    case CHOICE_COORDINATOR:
        fault_crash_coordinator(w);
        break;
    case CHOICE_POWER:
        fault_lose_all(w);
        break;
    case CHOICE_FREEZE_WORKER:
        fault_freeze(w, false);
        break;
    case CHOICE_FREEZE_COORDINATOR:
        fault_freeze(w, true);
        break;
    case CHOICE_RIVAL:
        fault_rival(NULL, w, 0);
        break;
    case CHOICE_DISK_CRASH:
        fault_in_disk(w, true);
        break;
    case CHOICE_DISK_PAUSE:
        fault_in_disk(w, false);
        break;
    case CHOICE_CUT:
        fault_cut(w);
        break;
    case CHOICE_RESET:
        fault_link(w, true);
        break;
    case CHOICE_BREAK:
        fault_link(w, false);
        break;
    case CHOICE_SLOW:
        fault_slow(w);
        break;
    case CHOICE_ROT:
        fault_rot(w);
        break;
    case CHOICE_COUNT:
        break;
    }
}

static void fault_calm(process *nobody, void *context, uint64_t value) {
    world *w = context;
    const faulty_disk_rates none = {0};
    (void)nobody;
    (void)value;
    w->is_calm = true;
    WORLD_NOTE(w, NULL, "no more faults", 0, 0, 0);
    memset(w->network.is_cut, 0, sizeof w->network.is_cut);
    faulty_disk_set_rates(w->disk, &none);
    for (uint32_t h = 0; h < w->host_count; h++) {
        if (w->hosts[h].process == NULL) continue;
        w->hosts[h].process->disk->crash_at = 0;
        w->hosts[h].process->disk->pause_at = 0;
    }
}

// It gives signs of life, and no more, in whatever state it is.
static void fault_stick(process *nobody, void *context, uint64_t value) {
    world *w = context;
    process *p = fault_choose(w, !chance_one_in(&w->chaos, 3));
    (void)nobody;
    (void)value;
    if (w->is_calm || p == NULL) return;
    const uint64_t most = chance_one_in(&w->chaos, 4) ? 50 : 6000;
    w->result->faults[SIMULATION_FAULT_STUCK] += 1;
    process_stick(p, chance_between(&w->chaos, 1, most) * WORLD_MILLISECOND);
}

// In every fifth seed, from dice of their own, so that others mean what they meant.
static void fault_plan_stuck(world *w, uint64_t horizon) {
    const simulation_profile profile = w->options.profile;
    if (w->seed % 5 != 3 || profile == SIMULATION_LOSS_ONLY || profile == SIMULATION_CALM) return;
    chance dice = {.state = chance_mix(w->seed ^ 0x57ac)};
    w->sends_first = chance_one_in(&dice, 2);
    for (uint64_t count = chance_between(&dice, 1, 4); count > 0; count--) {
        world_call_in(w, chance_below(&dice, horizon), NULL, fault_stick, w, 0);
    }
}

static void fault_plan(world *w) {
    const uint8_t *weights = fault_weights[w->options.profile];
    uint32_t total = 0;
    for (uint32_t i = 0; i < CHOICE_COUNT; i++) {
        total += weights[i];
    }
    const uint64_t horizon = (chance_one_in(&w->dice, 4) ? chance_between(&w->dice, 100, 1500)
                                                         : chance_between(&w->dice, 10, 100)) *
                             WORLD_MILLISECOND;
    const uint64_t count = chance_one_in(&w->dice, 8)   ? 0
                           : chance_one_in(&w->dice, 8) ? chance_between(&w->dice, 4, FAULT_LIMIT)
                                                        : chance_between(&w->dice, 1, 4);
    for (uint64_t i = 0; i < count && total > 0; i++) {
        uint64_t at = chance_below(&w->dice, total);
        uint32_t choice = 0;
        while (at >= weights[choice]) {
            at -= weights[choice++];
        }
        world_call_in(w, chance_below(&w->dice, horizon), NULL, fault_happen, w, choice);
    }
    fault_plan_stuck(w, horizon);
    w->faults_end = horizon + 2 * WORLD_SECOND;
    w->bound = w->faults_end + 60 * WORLD_SECOND;
    w->event_limit = 2000000;
    world_call_in(w, w->faults_end, NULL, fault_calm, w, 0);
}

// ---- drawing

static uint32_t fault_draw_rate(world *w, uint32_t one_in, uint32_t most) {
    if (!chance_one_in(&w->dice, one_in)) return 0;
    return (uint32_t)chance_between(&w->dice, 1, most);
}

static void draw_network(world *w) {
    world_network *network = &w->network;
    const simulation_profile profile = w->options.profile;
    network->latency_min = chance_between(&w->dice, 5, 50) * WORLD_MICROSECOND;
    network->latency_max =
        network->latency_min + chance_between(&w->dice, 1, 500) * WORLD_MICROSECOND;
    network->stream_chance = (uint32_t)chance_below(&w->dice, 5);
    if (profile == SIMULATION_CALM || profile == SIMULATION_DISK) return;
    const bool is_loss_only = profile == SIMULATION_LOSS_ONLY;
    const uint32_t one_in = is_loss_only ? 2 : 4;
    network->lose = fault_draw_rate(w, one_in, is_loss_only ? 120000 : 50000);
    network->repeat = fault_draw_rate(w, one_in, 50000);
    network->delay = fault_draw_rate(w, one_in, 50000);
    network->delay_max = chance_between(&w->dice, 1, 20) * WORLD_MILLISECOND;
    network->corrupt = fault_draw_rate(w, one_in, 30000);
    network->ghost = fault_draw_rate(w, one_in, 20000);
    if (!is_loss_only) network->corrupt_deep = fault_draw_rate(w, 8, 1000);
}

static void draw_disk(world *w) {
    if (faulty_disk_new(chance_next(&w->dice), w->arena, &w->disk) != PEN_OK) abort();
    const bool is_disk = w->options.profile == SIMULATION_DISK;
    const bool is_all = w->options.profile == SIMULATION_ALL;
    if (!is_disk && (!is_all || !chance_one_in(&w->dice, 4))) return;
    const faulty_disk_rates rates = {.no_space = fault_draw_rate(w, 2, 20000),
                                     .write = fault_draw_rate(w, 2, 20000),
                                     .sync = fault_draw_rate(w, 2, 20000),
                                     .read = fault_draw_rate(w, 2, 10000),
                                     .flip = fault_draw_rate(w, 2, 10000),
                                     .done_after = fault_draw_rate(w, 2, 50000)};
    faulty_disk_set_rates(w->disk, &rates);
}

static void draw_times(world *w) {
    const bool is_patient =
        w->options.profile == SIMULATION_LOSS_ONLY || w->options.profile == SIMULATION_CALM;
    const uint64_t unit = is_patient ? 20 * WORLD_MILLISECOND : WORLD_MILLISECOND;
    w->times = (world_times){.lease = chance_between(&w->dice, 250, 500) * unit,
                             .progress = chance_between(&w->dice, 600, 1000) * unit,
                             .load = chance_between(&w->dice, 400, 800) * unit,
                             .recruit = chance_between(&w->dice, 200, 800) * unit,
                             .grace = chance_between(&w->dice, 10, 400) * WORLD_MILLISECOND,
                             .resume = chance_between(&w->dice, 100, 300) * unit,
                             .resend = chance_between(&w->dice, 3, 8) * WORLD_MILLISECOND,
                             .ack = chance_between(&w->dice, 2, 20) * 100 * WORLD_MICROSECOND};
    w->times.beat = w->times.lease / 20;
    w->times.write = w->times.load + w->times.load / 4;
    w->times.link = w->times.load;
    w->times.assign = w->times.recruit + w->times.write + w->times.load;
    w->times.leave = w->times.load;
}

static void draw_job(world *w) {
    w->shape = shape_get((uint32_t)chance_below(&w->dice, SHAPE_COUNT));
    w->worker_count = (uint32_t)chance_between(&w->dice, 1, w->shape->worker_limit);
    w->variant = (uint32_t)chance_below(&w->dice, SHAPE_VARIANTS);
    w->save_every = (uint32_t)chance_between(&w->dice, 1, 5);
    w->fences_first = chance_one_in(&w->dice, 2);
    w->on_loss = (pen_recovery_on_loss)chance_below(&w->dice, PEN_RECOVERY_ON_LOSS_STOP);
    const uint32_t spares =
        w->on_loss == PEN_RECOVERY_ON_LOSS_SPARE ? (uint32_t)chance_between(&w->dice, 1, 2) : 0;
    w->host_count = WORLD_FIRST_WORKER + w->worker_count + spares;
    for (uint32_t i = 0; i < spares; i++) {
        w->hosts[w->host_count - 1 - i].is_spare = true;
    }
}

void world_draw(world *w) {
    w->checks = WORLD_NEW(w, struct checks);
    draw_job(w);
    draw_network(w);
    draw_disk(w);
    draw_times(w);
    fault_plan(w);
    for (uint32_t h = WORLD_FIRST_WORKER; h < w->host_count; h++) {
        (void)process_start(w, h);
    }
    (void)process_start(w, 0);
}

void world_count(world *w) {
    const faulty_disk_counts *counts = faulty_disk_get_counts(w->disk);
    uint64_t *faults = w->result->faults;
    faults[SIMULATION_FAULT_DISK] = counts->failures;
    faults[SIMULATION_FAULT_FLIP] = counts->flips;
    faults[SIMULATION_FAULT_ROT] = counts->rotten;
    faults[SIMULATION_FAULT_DISK_CRASH] = counts->crashed_in;
    faults[SIMULATION_FAULT_DISK_PAUSE] = counts->paused_in;
    w->result->duration = w->now;
}
