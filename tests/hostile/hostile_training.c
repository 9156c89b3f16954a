#include "tests/hostile/hostile_training.h"

#include <inttypes.h>
#include <stdarg.h>

#include "base/clock.h"
#include "scheduler/runtime/run/run_inquiry.h"
#include "tests/hostile/wire_proxy.h"
#include "tests/support/chance.h"
#include "tests/support/check.h"

#define LEASE_SECONDS 2.0
#define UNDISTURBED_TRIES 5
#define SEEDS_OF_A_TRANSPORT 16 // one behind the other, for workers are started anew

const char *const hostile_profile_names[HOSTILE_PROFILE_COUNT] = {"late", "again", "careless",
                                                                  "liar", "one lie"};
const char *const hostile_way_names[HOSTILE_WAY_COUNT] = {"local", "grpc", "wire"};

#define DEED(name) (1u << MIDDLEMAN_##name)
#define CARELESS_DEEDS (DEED(DROP) | DEED(REPEAT) | DEED(DELAY) | DEED(REORDER) | DEED(CUT))
#define LIAR_DEEDS (CARELESS_DEEDS | DEED(CHANGE) | DEED(INVENT) | DEED(MISLEAD) | DEED(PRETEND))

#define SPARED(name) ((uint64_t)1 << MIDDLEMAN_##name)

// ---- what is done

static const uint32_t rates[] = {2, 5, 20, 50, 200, 1000};

static uint32_t draw_rate(chance *c, uint32_t from) {
    return rates[chance_between(c, from, sizeof rates / sizeof *rates - 1)];
}

// The middleman of a seed. In half of them one kind of message alone is meant, so that a training
// comes far before anything happens to it.
static middleman_plan hostile_plan(uint64_t seed, hostile_profile *out_profile,
                                   hostile_way *out_way) {
    static const hostile_profile profiles[] = {HOSTILE_LATE,     HOSTILE_AGAIN,  HOSTILE_CARELESS,
                                               HOSTILE_CARELESS, HOSTILE_LIAR,   HOSTILE_LIAR,
                                               HOSTILE_ONE_LIE,  HOSTILE_ONE_LIE};
    chance c = {chance_mix(seed + 1)};
    middleman_plan plan = {
        .seed = chance_next(&c), .only_kind = MIDDLEMAN_ANY_KIND, .most = UINT64_MAX};
    const hostile_profile profile = profiles[chance_below(&c, sizeof profiles / sizeof *profiles)];
    const bool has_kind = chance_one_in(&c, 2);
    const uint32_t kind = (uint32_t)chance_below(&c, MIDDLEMAN_OTHERS + 1);
    const hostile_way way = (hostile_way)(seed / SEEDS_OF_A_TRANSPORT % HOSTILE_WAY_COUNT);
    switch (profile) {
    case HOSTILE_LATE:
        plan.deeds = way == HOSTILE_WIRE ? DEED(DELAY) | DEED(CUT) : DEED(DELAY);
        plan.spared = SPARED(OTHERS);
        plan.one_in = draw_rate(&c, way == HOSTILE_WIRE ? 3 : 0); // links must come up again
        break;
    case HOSTILE_AGAIN:
        plan.deeds = DEED(REPEAT);
        plan.spared = SPARED(OTHERS);
        if (way != HOSTILE_WIRE) plan.spared |= SPARED(FRAMES); // transports bring them once
        plan.one_in = draw_rate(&c, 0);
        break;
    case HOSTILE_CARELESS:
        plan.deeds = CARELESS_DEEDS;
        plan.one_in = draw_rate(&c, 1);
        break;
    case HOSTILE_LIAR:
        plan.deeds = LIAR_DEEDS;
        plan.one_in = draw_rate(&c, 1);
        break;
    case HOSTILE_ONE_LIE:
        plan.deeds = chance_one_in(&c, 4) ? LIAR_DEEDS : DEED(CHANGE);
        plan.one_in = draw_rate(&c, 0);
        plan.most = chance_between(&c, 1, 3);
        break;
    }
    if (has_kind && profile != HOSTILE_LATE) {
        plan.only_kind = kind;
        plan.one_in = plan.one_in > 20 ? 5 : plan.one_in;
    }
    plan.delay_seconds = chance_one_in(&c, 4) && profile == HOSTILE_CARELESS ? 1.0 : 0.03;
    *out_profile = profile;
    *out_way = way;
    return plan;
}

static void hostile_begin(middleman_plan *plan, hostile_way way) {
    CHECK_OK(pen_transport_kind_find(way == HOSTILE_LOCAL ? "local" : "grpc", &plan->inner));
    middleman_begin(plan);
}

// ---- a training

// Half of the rounds, a checkpoint while the others run, questions, and the parameters.
static pen_status hostile_run(hostile_world *world, pen_coordinator *coordinator,
                              hostile_numbers *out_numbers) {
    generation_case *g = &world->g;
    pen_coordinator_saved saved;
    const void *bytes;
    uint64_t count;
    double difference;
    PEN_TRY(generation_write(g, coordinator));
    for (uint32_t r = 0; r < GENERATION_ROUNDS; r++) {
        uint64_t round;
        if (r == GENERATION_ROUNDS / 2) PEN_TRY(pen_coordinator_save(coordinator, r, g->folder));
        PEN_TRY(generation_begin_round(g, coordinator, &round));
        PEN_TRY(generation_finish_round(g, coordinator, round, &out_numbers->losses[r]));
    }
    PEN_TRY(pen_coordinator_await_saved(coordinator, &saved));
    if (saved.state == PEN_SAVE_DURABLE) pen_coordinator_committed(coordinator, saved.step);
    for (uint32_t w = 1; w <= GENERATION_WORKERS; w++) {
        PEN_TRY(pen_coordinator_compare_clocks(coordinator, w, &difference));
        PEN_TRY(pen_coordinator_inquire(coordinator, w, PEN_RUN_INQUIRY_FIGURES, g->arena, &bytes,
                                        &count));
    }
    return generation_read(g, coordinator, &out_numbers->checksum);
}

static pen_status hostile_generation(hostile_world *world, hostile_numbers *out_numbers) {
    pen_coordinator *coordinator;
    memset(out_numbers, 0, sizeof *out_numbers);
    PEN_TRY(generation_begin(&world->g, ++world->generation, &coordinator));
    const pen_status status = hostile_run(world, coordinator, out_numbers);
    pen_coordinator_destroy(coordinator);
    return status;
}

// Others reach a worker through the middleman alone.
static void hostile_started(generation_case *g, uint32_t worker) {
    hostile_world *world = (hostile_world *)g;
    if (world->way != HOSTILE_WIRE) return;
    wire_proxy_aim(world->proxy, worker - 1, g->workers[worker].address);
    CHECK_OK(pen_arena_format(g->arena, &g->workers[worker].address, "127.0.0.1:%u",
                              wire_proxy_port(world->proxy, worker - 1)));
}

static void hostile_restart(hostile_world *world, middleman_plan *plan, hostile_way way) {
    generation_case *g = &world->g;
    for (uint32_t w = 1; w <= GENERATION_WORKERS; w++) {
        generation_end_worker(g, w);
    }
    hostile_begin(plan, way);
    if (way == HOSTILE_WIRE && world->proxy == NULL) world->proxy = wire_proxy_create();
    world->way = way;
    world->has_liars = false;
    g->transport = way == HOSTILE_WIRE ? plan->inner : &pen_transport_middleman;
    for (uint32_t w = 1; w <= GENERATION_WORKERS; w++) {
        generation_start_worker(g, w);
    }
}

void hostile_world_init(hostile_world *world, double patience) {
    middleman_plan plan = {0};
    *world = (hostile_world){.patience = patience};
    generation_case *g = &world->g;
    hostile_begin(&plan, HOSTILE_LOCAL);
    generation_case_init(g, "local");
    g->started = hostile_started;
    g->lease_seconds = LEASE_SECONDS * patience;
    g->rendezvous_seconds = 8 * patience;
    g->progress_seconds = 3 * patience;
    g->load_seconds = 5 * patience;
    g->write_seconds = 5 * patience;
    hostile_restart(world, &plan, HOSTILE_LOCAL);
    pen_status status = hostile_generation(world, &world->expected);
    for (uint32_t i = 0; status != PEN_OK && i < UNDISTURBED_TRIES; i++) {
        pen_status_ignore(status, "the machine has too much else to do");
        hostile_restart(world, &plan, HOSTILE_LOCAL);
        status = hostile_generation(world, &world->expected);
    }
    CHECK_OK(status);
}

void hostile_world_deinit(hostile_world *world) {
    generation_case_deinit(&world->g);
    wire_proxy_destroy(world->proxy);
}

// Rendezvous, load, the write and the read of tensors, rounds, the save, questions.
double hostile_seconds_limit(double patience) {
    return 60 * patience;
}

// ---- judgement

static void find_wrong(hostile_outcome *outcome, const char *format, ...) PEN_PRINTF(2, 3);

static void find_wrong(hostile_outcome *outcome, const char *format, ...) {
    va_list arguments;
    if (outcome->wrong[0] != '\0') return;
    va_start(arguments, format);
    vsnprintf(outcome->wrong, sizeof outcome->wrong, format, arguments);
    va_end(arguments);
}

// What a training may end with. A peer that lies can say that anything is wrong with it, but not
// that it is a mistake of ours.
static bool hostile_may_end_with(hostile_profile profile, pen_status_code code) {
    switch (code) {
    case PEN_CODE_OK:
        return true;
    case PEN_UNAVAILABLE:
    case PEN_DEADLINE:
    case PEN_CORRUPT:
        return profile >= HOSTILE_CARELESS;
    case PEN_CANCELLED:
    case PEN_UNSUPPORTED:
    case PEN_NOT_FINITE:
    case PEN_DOES_NOT_FIT:
    case PEN_OUT_OF_MEMORY:
    case PEN_NO_STORAGE:
    case PEN_IO:
        return profile >= HOSTILE_LIAR;
    case PEN_INVALID_INPUT:
    case PEN_NOT_FOUND:
    case PEN_INTERNAL:
        break;
    }
    return false;
}

static bool hostile_is_equal(const hostile_numbers *found, const hostile_numbers *expected) {
    for (uint32_t r = 0; r < GENERATION_ROUNDS; r++) {
        if (found->losses[r] != expected->losses[r]) return false;
    }
    return found->checksum == expected->checksum;
}

static void hostile_judge(const hostile_world *world, const hostile_numbers *found,
                          hostile_outcome *outcome) {
    // nothing comes twice over a stream, so it is an error there, as what is lost
    const bool is_lost = outcome->profile == HOSTILE_AGAIN && outcome->way == HOSTILE_WIRE;
    if (!hostile_may_end_with(is_lost ? HOSTILE_CARELESS : outcome->profile, outcome->code)) {
        find_wrong(outcome, "it ended with '%s'", pen_status_code_name(outcome->code));
        outcome->is_of_time = outcome->code == PEN_UNAVAILABLE || outcome->code == PEN_DEADLINE;
    }
    for (const char *at = outcome->said; *at != '\0'; at++) {
        if (*at != '\n' && (unsigned char)*at < ' ') find_wrong(outcome, "its error has controls");
    }
    const bool is_equal = hostile_is_equal(found, &world->expected);
    if (outcome->code == PEN_CODE_OK && outcome->profile < HOSTILE_LIAR && !is_equal) {
        find_wrong(outcome, "it ended well with other numbers: checksum %08" PRIx32,
                   found->checksum);
    }
    if (outcome->wrong[0] == '\0' && outcome->seconds > hostile_seconds_limit(world->patience)) {
        outcome->is_of_time = true;
        find_wrong(outcome, "it took %.1f s", outcome->seconds);
    }
}

void hostile_train(hostile_world *world, uint64_t seed, hostile_outcome *out_outcome) {
    hostile_numbers found;
    hostile_way way;
    memset(out_outcome, 0, sizeof *out_outcome);
    middleman_plan plan = hostile_plan(seed, &out_outcome->profile, &way);
    const bool is_liar = out_outcome->profile >= HOSTILE_LIAR;
    if (is_liar || world->has_liars || way != world->way) {
        hostile_restart(world, &plan, way);
    } else {
        hostile_begin(&plan, way);
    }
    world->has_liars = is_liar;
    const double began = pen_clock_seconds();
    const pen_status status = hostile_generation(world, &found);
    out_outcome->seconds = pen_clock_seconds() - began;
    out_outcome->way = way;
    out_outcome->code = pen_status_get_code(status);
    out_outcome->deeds = middleman_count();
    if (status != PEN_OK) pen_status_format(status, out_outcome->said, sizeof out_outcome->said);
    pen_status_ignore(status, "it is judged");
    hostile_judge(world, &found, out_outcome);
}
