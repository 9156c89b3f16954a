#include "scheduler/protocol/member_core.h"

#include "tests/support/check.h"
#include "tests/support/dice.h"

#define OURS 900
#define LEASE 1000
#define BEAT 100

static pen_member_action actions[PEN_MEMBER_ACTION_LIMIT];
static uint32_t action_count;

static pen_member_core new_core(void) {
    const pen_member_options options = {.incarnation = OURS, .lease = LEASE, .beat = BEAT};
    pen_member_core core;
    pen_member_core_init(&core, &options);
    return core;
}

static void step(pen_member_core *core, pen_member_event event) {
    pen_member_core_step(core, &event, actions, &action_count);
}

static pen_member_answer judge(const pen_member_core *core, uint32_t peer, const char *job,
                               uint64_t generation, uint64_t incarnation) {
    bool leaves;
    const pen_member_answer answer =
        pen_member_core_judge(core, peer, job, generation, incarnation, &leaves);
    CHECK(!leaves || answer == PEN_MEMBER_BUSY, "who is waited for is busy");
    return answer;
}

static bool leaves_for(const pen_member_core *core, const char *job, uint64_t generation) {
    bool leaves;
    pen_member_core_judge(core, 0, job, generation, 78, &leaves);
    return leaves;
}

// "hello pull": what the last step said.
static const char *said(void) {
    static const char *const names[] = {"hello ",   "pull ", "load ", "leave ", "disconnect ",
                                        "stopped ", "beat ", "late ", "stuck "};
    static char text[128];
    text[0] = 0;
    for (uint32_t i = 0; i < action_count; i++) {
        strncat(text, names[actions[i].kind], sizeof text - strlen(text) - 1);
    }
    return text;
}

#define EXPECT(core, next, words)                                                                  \
    CHECK(strcmp(said(), (words)) == 0, "said '%s'", said());                                      \
    CHECK((core)->state == (next), "state %u", (unsigned)(core)->state)

// ---- every state with every event

typedef enum place {
    IDLE,
    CALLED,
    GREETED,
    PULLING,
    LOADING,
    RUNNING,
    LEAVING,         // it failed; the link is up
    LEAVING_ALONE,   // the link is down
    LEAVING_STOPPED, // it was told to stop
    LEFT,            // a run; the link is up
    SILENT,          // greeted, then silent: disconnecting
    PLACE_COUNT,
} place;

static void call(pen_member_core *core, const char *job, uint64_t generation) {
    step(core, (pen_member_event){.kind = PEN_MEMBER_EVENT_CALL,
                                  .job = job,
                                  .generation = generation,
                                  .incarnation = 77});
}

static void assign(pen_member_core *core, uint64_t generation, uint64_t incarnation) {
    step(core, (pen_member_event){.kind = PEN_MEMBER_EVENT_ASSIGN,
                                  .generation = generation,
                                  .incarnation = incarnation,
                                  .worker = 3});
}

static void tell(pen_member_core *core, pen_member_event_kind kind) {
    step(core, (pen_member_event){.kind = kind, .generation = 5});
}

static pen_member_core core_in(place where) {
    pen_member_core core = new_core();
    if (where == IDLE) return core;
    call(&core, "job", 5);
    EXPECT(&core, PEN_MEMBER_IDLE, "");
    if (where == CALLED) return core;
    tell(&core, PEN_MEMBER_EVENT_UP);
    EXPECT(&core, PEN_MEMBER_GREETED, "hello ");
    if (where == SILENT) {
        step(&core, (pen_member_event){.kind = PEN_MEMBER_EVENT_TICK, .now = LEASE});
        EXPECT(&core, PEN_MEMBER_GREETED, "disconnect ");
    }
    if (where == GREETED || where == SILENT) return core;
    assign(&core, 5, OURS);
    EXPECT(&core, PEN_MEMBER_PULLING, "pull ");
    CHECK(actions[0].generation == 5 && actions[0].worker == 3, "what");
    if (where == PULLING) return core;
    tell(&core, PEN_MEMBER_EVENT_DESCRIBED);
    EXPECT(&core, PEN_MEMBER_LOADING, "load ");
    CHECK(actions[0].generation == 5 && actions[0].worker == 3, "what");
    if (where == LOADING) return core;
    tell(&core, PEN_MEMBER_EVENT_LOADED);
    EXPECT(&core, PEN_MEMBER_RUNNING, "");
    if (where == RUNNING) return core;
    tell(&core, where == LEAVING_ALONE     ? PEN_MEMBER_EVENT_DOWN
                : where == LEAVING_STOPPED ? PEN_MEMBER_EVENT_STOP
                                           : PEN_MEMBER_EVENT_FAILED);
    EXPECT(&core, PEN_MEMBER_LEAVING, "leave ");
    if (where != LEFT) return core;
    tell(&core, PEN_MEMBER_EVENT_LEFT);
    EXPECT(&core, PEN_MEMBER_GREETED, "");
    return core;
}

static void check_outcome(place where, pen_member_event_kind kind, pen_member_state next,
                          const char *words) {
    pen_member_core core = core_in(where);
    const pen_member_event event = {.kind = kind,
                                    .now = kind == PEN_MEMBER_EVENT_TICK ? 1 : 0,
                                    .generation = 5,
                                    .incarnation = OURS,
                                    .worker = 3,
                                    .job = "job"};
    step(&core, event);
    CHECK(strcmp(said(), words) == 0, "place %u, event %u: said '%s', not '%s'", (unsigned)where,
          (unsigned)kind, said(), words);
    CHECK(core.state == next, "place %u, event %u: state %u", (unsigned)where, (unsigned)kind,
          (unsigned)core.state);
}

static void every_state_takes_every_event(void **state) {
    (void)state;
    static const struct {
        place where;
        pen_member_event_kind kind;
        pen_member_state next;
        const char *words;
    } moves[] = {
        {CALLED, PEN_MEMBER_EVENT_UP, PEN_MEMBER_GREETED, "hello "},
        {GREETED, PEN_MEMBER_EVENT_DOWN, PEN_MEMBER_IDLE, ""},
        {GREETED, PEN_MEMBER_EVENT_ASSIGN, PEN_MEMBER_PULLING, "pull "},
        {GREETED, PEN_MEMBER_EVENT_STOP, PEN_MEMBER_GREETED, "stopped "},
        {PULLING, PEN_MEMBER_EVENT_DOWN, PEN_MEMBER_LEAVING, "leave "},
        {PULLING, PEN_MEMBER_EVENT_DESCRIBED, PEN_MEMBER_LOADING, "load "},
        {PULLING, PEN_MEMBER_EVENT_FAILED, PEN_MEMBER_LEAVING, "leave "},
        {PULLING, PEN_MEMBER_EVENT_STOP, PEN_MEMBER_LEAVING, "leave "},
        {LOADING, PEN_MEMBER_EVENT_DOWN, PEN_MEMBER_LEAVING, "leave "},
        {LOADING, PEN_MEMBER_EVENT_LOADED, PEN_MEMBER_RUNNING, ""},
        {LOADING, PEN_MEMBER_EVENT_FAILED, PEN_MEMBER_LEAVING, "leave "},
        {LOADING, PEN_MEMBER_EVENT_STOP, PEN_MEMBER_LEAVING, "leave "},
        {RUNNING, PEN_MEMBER_EVENT_DOWN, PEN_MEMBER_LEAVING, "leave "},
        {RUNNING, PEN_MEMBER_EVENT_FAILED, PEN_MEMBER_LEAVING, "leave "},
        {RUNNING, PEN_MEMBER_EVENT_STOP, PEN_MEMBER_LEAVING, "leave "},
        {LEAVING, PEN_MEMBER_EVENT_LEFT, PEN_MEMBER_GREETED, ""},
        {LEAVING_ALONE, PEN_MEMBER_EVENT_LEFT, PEN_MEMBER_IDLE, ""},
        {LEAVING_STOPPED, PEN_MEMBER_EVENT_LEFT, PEN_MEMBER_GREETED, "stopped "},
        {LEFT, PEN_MEMBER_EVENT_DOWN, PEN_MEMBER_IDLE, ""},
        {LEFT, PEN_MEMBER_EVENT_STOP, PEN_MEMBER_GREETED, "stopped "},
        {SILENT, PEN_MEMBER_EVENT_DOWN, PEN_MEMBER_IDLE, ""},
    };
    for (place where = IDLE; where < PLACE_COUNT; where++) {
        const pen_member_state before = core_in(where).state;
        for (uint32_t kind = PEN_MEMBER_EVENT_UP; kind <= PEN_MEMBER_EVENT_TICK; kind++) {
            pen_member_state next = before;
            const char *words = "";
            for (uint32_t i = 0; i < sizeof moves / sizeof *moves; i++) {
                if (moves[i].where != where || moves[i].kind != (pen_member_event_kind)kind) {
                    continue;
                }
                next = moves[i].next;
                words = moves[i].words;
            }
            check_outcome(where, (pen_member_event_kind)kind, next, words);
        }
    }
}

static void an_assignment_must_be_meant_for_us(void **state) {
    (void)state;
    pen_member_core core = core_in(GREETED);
    assign(&core, 5, OURS - 1);
    EXPECT(&core, PEN_MEMBER_GREETED, "");
    assign(&core, 4, OURS);
    EXPECT(&core, PEN_MEMBER_GREETED, "");
    assign(&core, 6, OURS);
    EXPECT(&core, PEN_MEMBER_GREETED, "");
    step(&core, (pen_member_event){.kind = PEN_MEMBER_EVENT_STOP, .generation = 4});
    EXPECT(&core, PEN_MEMBER_GREETED, "");
    assign(&core, 5, OURS);
    EXPECT(&core, PEN_MEMBER_PULLING, "pull ");
}

// A generation that was left, or was told to stop, is not run again.
static void a_generation_is_run_once(void **state) {
    (void)state;
    pen_member_core core = core_in(LEFT);
    assign(&core, 5, OURS);
    EXPECT(&core, PEN_MEMBER_GREETED, "");
    tell(&core, PEN_MEMBER_EVENT_DOWN);
    CHECK(judge(&core, 0, "job", 5, 77) == PEN_MEMBER_TAKE, "its coordinator may call");
    call(&core, "job", 5);
    tell(&core, PEN_MEMBER_EVENT_UP);
    assign(&core, 5, OURS);
    EXPECT(&core, PEN_MEMBER_GREETED, "");
    tell(&core, PEN_MEMBER_EVENT_DOWN);
    call(&core, "job", 6);
    tell(&core, PEN_MEMBER_EVENT_UP);
    assign(&core, 6, OURS);
    EXPECT(&core, PEN_MEMBER_PULLING, "pull ");
    core = core_in(GREETED);
    tell(&core, PEN_MEMBER_EVENT_STOP);
    assign(&core, 5, OURS);
    EXPECT(&core, PEN_MEMBER_GREETED, "");
}

// ---- who is taken

static void coordinators_are_judged_by_their_generation(void **state) {
    (void)state;
    for (place where = IDLE; where < PLACE_COUNT; where++) {
        pen_member_core core = core_in(where);
        const bool is_free = where == IDLE;
        CHECK(judge(&core, 0, "job", 4, 77) == (is_free ? PEN_MEMBER_TAKE : PEN_MEMBER_SUPERSEDED),
              "place %u: an older one", (unsigned)where);
        CHECK(judge(&core, 0, "other", 9, 77) == (is_free ? PEN_MEMBER_TAKE : PEN_MEMBER_BUSY),
              "place %u: of another job", (unsigned)where);
        CHECK(!leaves_for(&core, "other", 9), "which nothing is left for");
        CHECK(judge(&core, 0, "job", 6, 78) == (is_free ? PEN_MEMBER_TAKE : PEN_MEMBER_BUSY),
              "place %u: a newer one", (unsigned)where);
        CHECK(leaves_for(&core, "job", 6) == (where != IDLE && where != CALLED),
              "place %u: what is here is given up", (unsigned)where);
        const bool calls_again = where <= GREETED || where == SILENT;
        CHECK(judge(&core, 0, "job", 5, 77) == (calls_again ? PEN_MEMBER_TAKE : PEN_MEMBER_BUSY),
              "place %u: the same", (unsigned)where);
        const bool is_run = where != CALLED && where != GREETED && where != SILENT;
        CHECK(judge(&core, 0, "job", 5, 78) == (is_free  ? PEN_MEMBER_TAKE
                                                : is_run ? PEN_MEMBER_SUPERSEDED
                                                         : PEN_MEMBER_BUSY),
              "place %u: another of the same generation", (unsigned)where);
        CHECK(judge(&core, 0, "job", 0, 77) == PEN_MEMBER_SUPERSEDED, "of no generation");
    }
}

static void workers_are_taken_into_the_same_run(void **state) {
    (void)state;
    for (place where = IDLE; where < PLACE_COUNT; where++) {
        pen_member_core core = core_in(where);
        const bool is_leaving =
            where == LEAVING || where == LEAVING_ALONE || where == LEAVING_STOPPED;
        const pen_member_answer expected = where == LOADING || where == RUNNING ? PEN_MEMBER_TAKE
                                           : is_leaving                         ? PEN_MEMBER_BUSY
                                                                                : PEN_MEMBER_NO_RUN;
        CHECK(judge(&core, 2, "job", 5, 1) == expected, "place %u", (unsigned)where);
        CHECK(judge(&core, 2, "job", 4, 1) ==
                  (where == IDLE ? PEN_MEMBER_NO_RUN : PEN_MEMBER_SUPERSEDED),
              "place %u: of an older run", (unsigned)where);
        CHECK(judge(&core, 2, "job", 6, 1) == PEN_MEMBER_NO_RUN, "of a run to come");
        CHECK(judge(&core, 2, "other", 5, 1) == PEN_MEMBER_NO_RUN, "of another job");
    }
}

static void a_newer_coordinator_is_taken_when_the_run_is_left(void **state) {
    (void)state;
    pen_member_core core = core_in(RUNNING);
    CHECK(leaves_for(&core, "job", 7), "the run is to be left");
    pen_member_core_supersede(&core, actions, &action_count);
    EXPECT(&core, PEN_MEMBER_LEAVING, "disconnect leave ");
    pen_member_core_supersede(&core, actions, &action_count);
    EXPECT(&core, PEN_MEMBER_LEAVING, "");
    CHECK(judge(&core, 0, "job", 7, 78) == PEN_MEMBER_BUSY, "not left yet");
    tell(&core, PEN_MEMBER_EVENT_STOP);
    tell(&core, PEN_MEMBER_EVENT_LEFT);
    EXPECT(&core, PEN_MEMBER_GREETED, "");
    CHECK(judge(&core, 0, "job", 7, 78) == PEN_MEMBER_BUSY, "the old link is up");
    tell(&core, PEN_MEMBER_EVENT_DOWN);
    EXPECT(&core, PEN_MEMBER_IDLE, "");
    CHECK(judge(&core, 0, "job", 7, 78) == PEN_MEMBER_TAKE, "now");
    core = core_in(GREETED);
    pen_member_core_supersede(&core, actions, &action_count);
    EXPECT(&core, PEN_MEMBER_GREETED, "disconnect ");
    core = core_in(IDLE);
    pen_member_core_supersede(&core, actions, &action_count);
    EXPECT(&core, PEN_MEMBER_IDLE, "");
}

// The same coordinator opens a new link before we know that the old one is down.
static void a_link_is_replaced(void **state) {
    (void)state;
    pen_member_core core = core_in(GREETED);
    CHECK(judge(&core, 0, "job", 5, 77) == PEN_MEMBER_TAKE, "it calls again");
    call(&core, "job", 5);
    tell(&core, PEN_MEMBER_EVENT_DOWN);
    EXPECT(&core, PEN_MEMBER_IDLE, "");
    CHECK(judge(&core, 0, "job", 6, 78) == PEN_MEMBER_BUSY, "another waits for its link");
    tell(&core, PEN_MEMBER_EVENT_UP);
    EXPECT(&core, PEN_MEMBER_GREETED, "hello ");
    assign(&core, 5, OURS);
    EXPECT(&core, PEN_MEMBER_PULLING, "pull ");
    core = core_in(CALLED);
    tell(&core, PEN_MEMBER_EVENT_DOWN);
    CHECK(judge(&core, 0, "job", 6, 78) == PEN_MEMBER_TAKE, "it never came up");
}

static void the_last_jobs_are_remembered(void **state) {
    (void)state;
    pen_member_core core = new_core();
    char name[32];
    for (uint32_t i = 0; i < PEN_MEMBER_JOB_LIMIT + 1; i++) {
        snprintf(name, sizeof name, "job %u", i);
        call(&core, name, 10 + i);
        tell(&core, PEN_MEMBER_EVENT_DOWN);
    }
    for (uint32_t i = 1; i < PEN_MEMBER_JOB_LIMIT + 1; i++) {
        snprintf(name, sizeof name, "job %u", i);
        CHECK(judge(&core, 0, name, 9 + i, 77) == PEN_MEMBER_SUPERSEDED, "%s", name);
        CHECK(judge(&core, 0, name, 10 + i, 77) == PEN_MEMBER_TAKE, "%s", name);
        CHECK(judge(&core, 2, name, 9 + i, 77) == PEN_MEMBER_SUPERSEDED, "%s, a worker", name);
    }
    CHECK(judge(&core, 0, "job 0", 1, 77) == PEN_MEMBER_TAKE, "the first is forgotten");
}

// ---- time

static void it_beats_and_notices_silence(void **state) {
    (void)state;
    pen_member_core core = core_in(RUNNING);
    uint32_t beats = 0;
    for (uint64_t now = 0; now < LEASE; now += BEAT / 4) {
        step(&core, (pen_member_event){.kind = PEN_MEMBER_EVENT_TICK, .now = now});
        if (action_count > 0) {
            EXPECT(&core, PEN_MEMBER_RUNNING, "beat ");
            beats++;
        }
    }
    CHECK(beats == LEASE / BEAT - 1, "%u", beats);
    step(&core, (pen_member_event){.kind = PEN_MEMBER_EVENT_HEARD, .now = LEASE - 1});
    step(&core, (pen_member_event){.kind = PEN_MEMBER_EVENT_TICK, .now = 2 * LEASE - 2});
    EXPECT(&core, PEN_MEMBER_RUNNING, "beat ");
    step(&core, (pen_member_event){.kind = PEN_MEMBER_EVENT_TICK, .now = 2 * LEASE - 1});
    EXPECT(&core, PEN_MEMBER_LEAVING, "disconnect leave ");
    step(&core, (pen_member_event){.kind = PEN_MEMBER_EVENT_TICK, .now = 9 * LEASE});
    EXPECT(&core, PEN_MEMBER_LEAVING, "");
    core = core_in(RUNNING);
    core.options.lease = 0;
    step(&core, (pen_member_event){.kind = PEN_MEMBER_EVENT_TICK, .now = 1000 * LEASE});
    EXPECT(&core, PEN_MEMBER_RUNNING, "beat ");
    step(&core, (pen_member_event){.kind = PEN_MEMBER_EVENT_TICK, .now = 3});
    EXPECT(&core, PEN_MEMBER_RUNNING, "");
}

enum { LINK = 300, ASSIGN = 500, LOAD = 400, LEAVE = 700 };

// A peer that gives signs of life and does nothing else, in every state.
static void every_wait_ends(void **state) {
    (void)state;
    static const struct {
        place where;
        uint64_t limit;
        pen_member_state next;
        const char *words;
        pen_member_wait wait;
    } ends[] = {
        {CALLED, LINK, PEN_MEMBER_IDLE, "disconnect ", PEN_MEMBER_WAIT_NONE},
        {GREETED, ASSIGN, PEN_MEMBER_GREETED, "disconnect ", PEN_MEMBER_WAIT_NONE},
        {PULLING, LOAD, PEN_MEMBER_LEAVING, "late leave ", PEN_MEMBER_WAIT_DESCRIPTION},
        {LOADING, LOAD, PEN_MEMBER_LEAVING, "late leave ", PEN_MEMBER_WAIT_LOADED},
        {RUNNING, LOAD, PEN_MEMBER_LEAVING, "late leave ", PEN_MEMBER_WAIT_START},
        {LEAVING, LEAVE, PEN_MEMBER_LEAVING, "stuck ", PEN_MEMBER_WAIT_LEFT},
        {LEAVING_STOPPED, LEAVE, PEN_MEMBER_LEAVING, "stuck ", PEN_MEMBER_WAIT_LEFT},
        {LEFT, ASSIGN, PEN_MEMBER_GREETED, "disconnect ", PEN_MEMBER_WAIT_NONE},
        {SILENT, LINK, PEN_MEMBER_GREETED, "stuck ", PEN_MEMBER_WAIT_DOWN},
    };
    for (uint32_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        pen_member_core core = core_in(ends[i].where);
        const uint64_t end = core.wait_at + ends[i].limit;
        core.options = (pen_member_options){OURS, LEASE, 100000, LINK, ASSIGN, LOAD, LEAVE};
        step(&core, (pen_member_event){.kind = PEN_MEMBER_EVENT_HEARD, .now = end - 1});
        step(&core, (pen_member_event){.kind = PEN_MEMBER_EVENT_TICK, .now = end - 1});
        CHECK(strcmp(said(), "") == 0, "%u, too early: said '%s'", i, said());
        step(&core, (pen_member_event){.kind = PEN_MEMBER_EVENT_TICK, .now = end});
        CHECK(strcmp(said(), ends[i].words) == 0, "%u: said '%s'", i, said());
        CHECK(core.state == ends[i].next, "%u: state %u", i, (unsigned)core.state);
        CHECK(actions[0].wait == ends[i].wait, "%u: wait %u", i, (unsigned)actions[0].wait);
    }
}

// Between rounds its coordinator may think for as long as it likes.
static void a_run_that_has_started_waits(void **state) {
    (void)state;
    pen_member_core core = core_in(LOADING);
    core.options.load = LOAD;
    core.options.lease = 0;
    step(&core, (pen_member_event){.kind = PEN_MEMBER_EVENT_STARTED, .generation = 4});
    step(&core, (pen_member_event){.kind = PEN_MEMBER_EVENT_STARTED, .generation = 5});
    tell(&core, PEN_MEMBER_EVENT_LOADED);
    step(&core, (pen_member_event){.kind = PEN_MEMBER_EVENT_TICK, .now = 100 * LOAD});
    EXPECT(&core, PEN_MEMBER_RUNNING, "beat ");
}

// A link that was dropped and comes up in that moment is none.
static void a_dropped_link_stays_dropped(void **state) {
    (void)state;
    pen_member_core core = core_in(CALLED);
    core.options.link = LINK;
    step(&core, (pen_member_event){.kind = PEN_MEMBER_EVENT_TICK, .now = LINK});
    EXPECT(&core, PEN_MEMBER_IDLE, "disconnect ");
    tell(&core, PEN_MEMBER_EVENT_UP);
    EXPECT(&core, PEN_MEMBER_IDLE, "");
    tell(&core, PEN_MEMBER_EVENT_DOWN);
    CHECK(judge(&core, 0, "other", 5, 77) == PEN_MEMBER_TAKE, "another may call");
}

// ---- random lives, held against simple rules

typedef struct life {
    pen_member_core core;
    dice dice;
    bool is_up;         // the link, as the transport has it
    bool is_connecting; // a call was taken, its link is not there yet
    bool has_run;       // LOAD without LEFT
    bool is_leaving;    // LEAVE without LEFT
    uint64_t loaded;    // the highest generation
    uint64_t heard_at;
    uint64_t now;
    uint64_t generation; // of the coordinator that was taken
    uint32_t load_count;
    uint32_t leave_count;
} life;

static void live_on(life *l, bool is_tick) {
    bool disconnects = false, leaves = false;
    for (uint32_t i = 0; i < action_count; i++) {
        switch (actions[i].kind) {
        case PEN_MEMBER_ACTION_LOAD:
            CHECK(!l->has_run && !l->is_leaving, "it loads while a run is here");
            CHECK(actions[i].generation > l->loaded, "generation %u after %u",
                  (unsigned)actions[i].generation, (unsigned)l->loaded);
            CHECK(actions[i].generation == l->generation && l->is_up, "of whom it listens to");
            l->has_run = true;
            l->loaded = actions[i].generation;
            l->load_count += 1;
            break;
        case PEN_MEMBER_ACTION_LEAVE:
            CHECK(!l->is_leaving, "it leaves twice");
            l->is_leaving = true;
            l->leave_count += 1;
            leaves = true;
            break;
        case PEN_MEMBER_ACTION_DISCONNECT:
            CHECK(l->is_up, "from nobody");
            disconnects = true;
            break;
        case PEN_MEMBER_ACTION_HELLO:
        case PEN_MEMBER_ACTION_PULL:
        case PEN_MEMBER_ACTION_STOPPED:
        case PEN_MEMBER_ACTION_BEAT:
            CHECK(l->is_up, "to nobody");
            break;
        case PEN_MEMBER_ACTION_LATE:
        case PEN_MEMBER_ACTION_STUCK:
            CHECK(false, "without a deadline");
            break;
        }
    }
    const bool is_silent = is_tick && l->is_up && l->now - l->heard_at >= LEASE;
    CHECK(!is_silent || disconnects || l->core.is_disconnecting, "silence is not noticed");
    CHECK(!disconnects || !l->has_run || leaves || l->is_leaving, "the run is kept");
}

static void live_tell(life *l, pen_member_event event) {
    event.now = l->now;
    if (event.kind == PEN_MEMBER_EVENT_HEARD || event.kind == PEN_MEMBER_EVENT_ASSIGN ||
        event.kind == PEN_MEMBER_EVENT_STOP || event.kind == PEN_MEMBER_EVENT_UP) {
        l->heard_at = l->now;
    }
    step(&l->core, event);
    live_on(l, event.kind == PEN_MEMBER_EVENT_TICK);
}

static void live_call(life *l) {
    const uint64_t generation = (uint64_t)dice_between(&l->dice, 1, (int64_t)l->generation + 2);
    const uint64_t caller = (uint64_t)dice_between(&l->dice, 70, 72) + generation * 10;
    bool leaves;
    const uint64_t highest = l->generation;
    const pen_member_answer answer =
        pen_member_core_judge(&l->core, 0, "job", generation, caller, &leaves);
    CHECK(generation >= highest || answer == PEN_MEMBER_SUPERSEDED, "an old one is taken");
    if (leaves) {
        CHECK(generation > highest, "for an old one");
        pen_member_core_supersede(&l->core, actions, &action_count);
        live_on(l, false);
        CHECK(l->is_leaving || !l->has_run, "the run is kept");
    }
    if (answer != PEN_MEMBER_TAKE) return;
    live_tell(l, (pen_member_event){.kind = PEN_MEMBER_EVENT_CALL,
                                    .job = "job",
                                    .generation = generation,
                                    .incarnation = caller});
    l->generation = generation;
    if (l->is_up) { // the transport takes the old link down first
        l->is_up = false;
        live_tell(l, (pen_member_event){.kind = PEN_MEMBER_EVENT_DOWN});
    }
    l->is_connecting = true;
}

static void live_once(life *l) {
    l->now += (uint64_t)dice_between(&l->dice, 0, 60);
    switch (dice_between(&l->dice, 0, 10)) {
    case 0:
        live_call(l);
        break;
    case 1:
        if (!l->is_connecting) break;
        l->is_connecting = false;
        l->is_up = dice_between(&l->dice, 0, 4) > 0;
        live_tell(
            l, (pen_member_event){.kind = l->is_up ? PEN_MEMBER_EVENT_UP : PEN_MEMBER_EVENT_DOWN});
        break;
    case 2:
        if (!l->is_up || (!l->core.is_disconnecting && dice_between(&l->dice, 0, 9) > 0)) break;
        l->is_up = false;
        live_tell(l, (pen_member_event){.kind = PEN_MEMBER_EVENT_DOWN});
        break;
    case 3:
        if (l->is_leaving) {
            l->is_leaving = false;
            l->has_run = false;
            live_tell(l, (pen_member_event){.kind = PEN_MEMBER_EVENT_LEFT});
        }
        break;
    case 4:
    case 5:
        if (!l->is_up) break;
        live_tell(l, (pen_member_event){
                         .kind = PEN_MEMBER_EVENT_ASSIGN,
                         .generation = l->generation - (uint64_t)dice_between(&l->dice, 0, 1),
                         .incarnation = (uint64_t)dice_between(&l->dice, OURS - 1, OURS),
                         .worker = 1});
        break;
    case 6:
        if (!l->is_up) break;
        live_tell(l, (pen_member_event){.kind = PEN_MEMBER_EVENT_HEARD});
        break;
    case 7:
        live_tell(l, (pen_member_event){.kind = dice_between(&l->dice, 0, 1) == 0
                                                    ? PEN_MEMBER_EVENT_DESCRIBED
                                                    : PEN_MEMBER_EVENT_LOADED});
        break;
    case 8:
        if (dice_between(&l->dice, 0, 5) > 0) break;
        live_tell(l, (pen_member_event){.kind = PEN_MEMBER_EVENT_FAILED});
        break;
    case 9:
        if (!l->is_up || dice_between(&l->dice, 0, 5) > 0) break;
        live_tell(l,
                  (pen_member_event){.kind = PEN_MEMBER_EVENT_STOP, .generation = l->generation});
        break;
    default:
        live_tell(l, (pen_member_event){.kind = PEN_MEMBER_EVENT_TICK});
        break;
    }
}

static void random_lives_keep_the_rules(void **state) {
    (void)state;
    uint32_t load_count = 0, leave_count = 0;
    for (uint64_t seed = 0; seed < 300; seed++) {
        life l = {.core = new_core(), .dice = {.seed = seed}};
        for (uint32_t i = 0; i < 1000; i++) {
            live_once(&l);
        }
        load_count += l.load_count;
        leave_count += l.leave_count;
    }
    CHECK(load_count > 400 && leave_count > 1000, "%u, %u", load_count, leave_count);
}

PEN_TEST_MAIN(cmocka_unit_test(every_state_takes_every_event),
              cmocka_unit_test(an_assignment_must_be_meant_for_us),
              cmocka_unit_test(a_generation_is_run_once),
              cmocka_unit_test(coordinators_are_judged_by_their_generation),
              cmocka_unit_test(workers_are_taken_into_the_same_run),
              cmocka_unit_test(a_newer_coordinator_is_taken_when_the_run_is_left),
              cmocka_unit_test(a_link_is_replaced), cmocka_unit_test(the_last_jobs_are_remembered),
              cmocka_unit_test(it_beats_and_notices_silence), cmocka_unit_test(every_wait_ends),
              cmocka_unit_test(a_run_that_has_started_waits),
              cmocka_unit_test(a_dropped_link_stays_dropped),
              cmocka_unit_test(random_lives_keep_the_rules))
