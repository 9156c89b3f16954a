#include "scheduler/protocol/flight_recorder.h"

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/system/build.h"
#include "base/system/file.h"
#include "scheduler/protocol/flight_dump.h"
#include "scheduler/protocol/flight_wire.h"
#include "tests/support/check.h"
#include "tests/support/random_run_table.h"
#include "tests/support/record_bytes.h"
#include "tests/support/scratch.h"

// ---- a run of all cores, with recorders, where everything arrives at once

#define GENERATION 3
#define WORKERS 3
#define QUEUE 4096

typedef struct queued {
    uint32_t to;
    pen_worker_event worker;
    pen_coordinator_event coordinator;
} queued;

static const pen_run_table *table;
static pen_coordinator_core *coordinator;
static pen_worker_core *workers[WORKERS + 1];
static pen_flight_recorder *recorders[WORKERS + 1];
static pen_coordinator_action coordinator_actions[1024];
static pen_worker_action worker_actions[1024];
static queued queue[QUEUE];
static uint32_t queue_first, queue_end;
static const pen_coordinator_options options = {.generation = GENERATION, .first_round = 7};

static void push(queued event) {
    CHECK(queue_end - queue_first < QUEUE, "the queue is full");
    event.worker.generation = event.coordinator.generation = GENERATION;
    queue[queue_end++ % QUEUE] = event;
}

static void tell_coordinator(uint32_t from, pen_coordinator_event event) {
    event.worker = from;
    event.incarnation = 100 + from;
    push((queued){.coordinator = event});
}

static void do_worker(uint32_t w, const pen_worker_action *action) {
    const pen_run_form *form = &table->forms[action->form];
    const pen_run_channel *channel = &form->channels[action->channel];
    pen_worker_event event = {
        .form = action->form, .channel = action->channel, .sequence = action->sequence};
    pen_coordinator_event said = {.round = action->round,
                                  .form = action->form,
                                  .channel = action->channel,
                                  .sequence = action->sequence};
    switch (action->kind) {
    case PEN_WORKER_ACTION_LOAD:
        push((queued){w, .worker = {.kind = PEN_WORKER_EVENT_LOADED}});
        break;
    case PEN_WORKER_ACTION_READY:
        said.kind = PEN_COORDINATOR_EVENT_READY;
        tell_coordinator(w, said);
        break;
    case PEN_WORKER_ACTION_RUN:
        push((queued){w, .worker = {.kind = PEN_WORKER_EVENT_TASK_DONE, .device = action->device}});
        break;
    case PEN_WORKER_ACTION_SEND:
        event.kind = PEN_WORKER_EVENT_FRAME;
        push((queued){channel->target_worker, .worker = event});
        event.kind = PEN_WORKER_EVENT_LET_GO;
        push((queued){w, .worker = event});
        break;
    case PEN_WORKER_ACTION_GRANT:
        event.kind = PEN_WORKER_EVENT_CREDIT;
        said.kind = PEN_COORDINATOR_EVENT_CREDIT;
        if (channel->source_worker == 0) {
            tell_coordinator(w, said);
        } else {
            push((queued){channel->source_worker, .worker = event});
        }
        break;
    case PEN_WORKER_ACTION_LOSS:
    case PEN_WORKER_ACTION_GRADIENT:
        said.kind = action->kind == PEN_WORKER_ACTION_LOSS ? PEN_COORDINATOR_EVENT_LOSS
                                                           : PEN_COORDINATOR_EVENT_GRADIENT;
        said.microbatch = form->tasks[action->task].task.microbatch;
        said.stage = form->tasks[action->task].task.stage;
        tell_coordinator(w, said);
        break;
    case PEN_WORKER_ACTION_ROUND_DONE:
        said.kind = PEN_COORDINATOR_EVENT_ROUND_DONE;
        tell_coordinator(w, said);
        break;
    case PEN_WORKER_ACTION_READ:
        event.kind = PEN_WORKER_EVENT_READ;
        push((queued){w, .worker = event});
        break;
    case PEN_WORKER_ACTION_STOPPED:
        break;
    }
}

static void do_coordinator(const pen_coordinator_action *action) {
    pen_worker_event event = {.round = action->round,
                              .form = action->form,
                              .count = action->count,
                              .updates = action->updates,
                              .channel = action->channel,
                              .sequence = action->sequence};
    if (action->kind == PEN_COORDINATOR_ACTION_ASSIGN) {
        event.kind = PEN_WORKER_EVENT_ASSIGN;
    } else if (action->kind == PEN_COORDINATOR_ACTION_START) {
        event.kind = PEN_WORKER_EVENT_START;
    } else if (action->kind == PEN_COORDINATOR_ACTION_ROUND) {
        event.kind = PEN_WORKER_EVENT_ROUND;
    } else if (action->kind == PEN_COORDINATOR_ACTION_GO) {
        event.kind = PEN_WORKER_EVENT_GO;
    } else if (action->kind == PEN_COORDINATOR_ACTION_FEED) {
        event.kind = PEN_WORKER_EVENT_FRAME;
        tell_coordinator(0, (pen_coordinator_event){.kind = PEN_COORDINATOR_EVENT_LET_GO,
                                                    .form = action->form,
                                                    .channel = action->channel,
                                                    .sequence = action->sequence});
    } else {
        return;
    }
    push((queued){action->worker, .worker = event});
}

static void step_coordinator(const pen_coordinator_event *event) {
    uint32_t count;
    pen_flight_record_coordinator(recorders[0], event);
    pen_coordinator_core_step(coordinator, event, coordinator_actions, &count);
    pen_flight_add_coordinator(recorders[0], coordinator_actions, count);
    for (uint32_t i = 0; i < count; i++) {
        do_coordinator(&coordinator_actions[i]);
    }
}

static void step_worker(uint32_t w, const pen_worker_event *event) {
    uint32_t count;
    pen_flight_record_worker(recorders[w], event);
    const pen_worker_fault fault = pen_worker_core_step(workers[w], event, worker_actions, &count);
    pen_flight_add_worker(recorders[w], fault, worker_actions, count);
    for (uint32_t i = 0; i < count; i++) {
        do_worker(w, &worker_actions[i]);
    }
}

// Until nothing is under way, or `limit` events were taken.
static void run(uint32_t limit) {
    while (queue_first < queue_end && limit-- > 0) {
        const queued event = queue[queue_first++ % QUEUE];
        if (event.to == 0) {
            step_coordinator(&event.coordinator);
        } else {
            step_worker(event.to, &event.worker);
        }
    }
}

static void begin_rounds(uint32_t count) {
    uint64_t round;
    while (count > 0) {
        if (pen_coordinator_core_can_begin(coordinator, &round)) {
            const pen_coordinator_event begin = {.kind = PEN_COORDINATOR_EVENT_BEGIN,
                                                 .count = table->forms[0].microbatch_count,
                                                 .updates = true};
            step_coordinator(&begin);
            count -= 1;
        }
        run(UINT32_MAX);
    }
}

static const char *const *const *names_of_channels(pen_arena *arena) {
    const char **names, *const **all;
    CHECK_OK(PEN_NEW(arena, table->form_count, &all));
    for (uint32_t f = 0; f < table->form_count; f++) {
        CHECK_OK(PEN_NEW(arena, table->forms[f].channel_count, &names));
        for (uint32_t c = 0; c < table->forms[f].channel_count; c++) {
            CHECK_OK(pen_arena_format(arena, &names[c], "value_%u_%u", f, c));
        }
        all[f] = names;
    }
    return all;
}

static void start(pen_arena *arena) {
    static const pen_coordinator_identity identity = {0};
    const char *worker_names[] = {"here", "one", "two", "three"};
    uint32_t limit;
    table = chain_run_table(arena, WORKERS, 4, 2);
    CHECK(table->worker_count == WORKERS, "%u workers", table->worker_count);
    queue_first = queue_end = 0;
    pen_flight_setup setup = {.table = table,
                              .generation = GENERATION,
                              .incarnation = 100,
                              .options = &options,
                              .worker_names = worker_names,
                              .channel_names = names_of_channels(arena)};
    CHECK_OK(pen_coordinator_core_new(table, &options, arena, &coordinator, &limit));
    CHECK(limit <= 1024, "%u", limit);
    CHECK_OK(pen_flight_recorder_create(&setup, &recorders[0]));
    setup.options = NULL;
    for (uint32_t w = 1; w <= WORKERS; w++) {
        CHECK_OK(pen_worker_core_new(table, w, arena, &workers[w], &limit));
        CHECK(limit <= 1024, "%u", limit);
        setup.worker = w;
        setup.incarnation = 100 + w;
        CHECK_OK(pen_flight_recorder_create(&setup, &recorders[w]));
        tell_coordinator(
            w, (pen_coordinator_event){.kind = PEN_COORDINATOR_EVENT_HELLO, .identity = &identity});
    }
    run(UINT32_MAX);
}

static void end(void) {
    for (uint32_t w = 0; w <= WORKERS; w++) {
        pen_flight_recorder_destroy(recorders[w]);
    }
    pen_flight_set_folder("");
}

// The bytes of the dump of a worker (0: the coordinator).
static void dump_of(const char *folder, uint32_t worker, pen_arena *arena, const char **out_bytes,
                    size_t *out_count) {
    char path[4096];
    snprintf(path, sizeof path, "%s/flight-g%d-w%u-%d.bin", folder, GENERATION, worker,
             (int)getpid());
    CHECK_OK(pen_file_read(path, 16u << 20, arena, out_bytes, out_count));
}

static void read_dump(const char *folder, uint32_t worker, pen_arena *arena,
                      pen_flight_dump_file *out_dump) {
    const char *bytes;
    size_t count;
    dump_of(folder, worker, arena, &bytes, &count);
    CHECK_OK(pen_flight_dump_decode(bytes, count, arena, out_dump));
    CHECK(out_dump->worker == worker, "worker %u", out_dump->worker);
}

// ---- tests

static void a_replay_does_what_was_done(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    const pen_flight_replay_options quiet = {0};
    const char *folder = scratch_path("deep/flight");
    start(arena);
    begin_rounds(5);
    pen_flight_record_note(recorders[2], "the link to worker 3 went\ndown");
    pen_flight_set_clock_offset(recorders[2], -0.25);
    pen_flight_set_folder(folder);
    CHECK(pen_flight_dump("a test") == WORKERS + 1, "all are written");
    for (uint32_t w = 0; w <= WORKERS; w++) {
        pen_flight_dump_file dump;
        pen_flight_replay_result result;
        read_dump(folder, w, arena, &dump);
        CHECK(strcmp(dump.reason, "a test") == 0, "'%s'", dump.reason);
        CHECK(dump.generation == GENERATION && dump.incarnation == 100 + w, "who it is");
        CHECK(dump.process == (uint32_t)getpid(), "%u", dump.process);
        CHECK(strcmp(dump.channel_names[0][0], "value_0_0") == 0, "names are kept");
        CHECK(dump.event_count == dump.recorded, "none is lost");
        CHECK(strcmp(dump.build, pen_build_name()) == 0, "'%s'", dump.build);
        CHECK_OK(pen_flight_replay(&dump, &quiet, arena, &result));
        CHECK(result.is_whole && result.stopped == NULL, "%s", result.stopped);
        CHECK(result.replayed == dump.event_count - (w == 2), "%llu",
              (unsigned long long)result.replayed);
        CHECK(result.compared == result.replayed && result.different == 0, "event %llu differs",
              (unsigned long long)result.first_different);
        CHECK(result.fault_count == 0, "faults");
        CHECK(result.state_count == 1, "%u lines", result.state_count);
        const char *expected = w == 0
                                   ? "the coordinator runs; rounds below 12 begun, none under way"
                                   : "has nothing to do";
        CHECK(strstr(result.state[0], expected) != NULL, "%s", result.state[0]);
        CHECK(dump.has_offset == (w == 0 || w == 2), "offset of %u", w);
        if (w != 2) continue;
        CHECK(dump.clock_offset == -250000000, "%lld", (long long)dump.clock_offset);
        char text[PEN_FLIGHT_LINE_BYTES];
        pen_flight_event_format(&dump, &dump.events[dump.event_count - 1], text);
        CHECK(strcmp(text, "the link to worker 3 went down") == 0, "'%s'", text);
    }
    end();
    pen_arena_destroy(arena);
}

static void a_replay_says_where_a_run_stands(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    const pen_flight_replay_options quiet = {0};
    const char *folder = scratch_path("stands");
    uint64_t round;
    start(arena);
    CHECK(pen_coordinator_core_can_begin(coordinator, &round), "it runs");
    step_coordinator(
        &(pen_coordinator_event){.kind = PEN_COORDINATOR_EVENT_BEGIN, .count = 4, .updates = true});
    // the frames of worker 1 do not come through
    for (uint32_t guard = 0; queue_first < queue_end; guard++) {
        const queued event = queue[queue_first++ % QUEUE];
        if (event.to == 2 && event.worker.kind == PEN_WORKER_EVENT_FRAME) continue;
        if (event.to == 0) {
            step_coordinator(&event.coordinator);
        } else {
            step_worker(event.to, &event.worker);
        }
    }
    pen_flight_set_folder(folder);
    CHECK(pen_flight_dump("stuck") == WORKERS + 1, "all are written");
    pen_flight_dump_file dump;
    pen_flight_replay_result result;
    read_dump(folder, 2, arena, &dump);
    CHECK_OK(pen_flight_replay(&dump, &quiet, arena, &result));
    CHECK(strstr(result.state[0], "waits for worker 1 (one) to send 'value_0_") != NULL &&
              strstr(result.state[0], "microbatch 0, round 7, to run forward of stage 1") != NULL,
          "%s", result.state[0]);
    end();
    pen_arena_destroy(arena);
}

static void a_full_ring_keeps_the_last(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    const pen_flight_replay_options quiet = {0};
    const char *folder = scratch_path("full");
    pen_flight_dump_file dump;
    pen_flight_replay_result result;
    start(arena);
    begin_rounds(400);
    pen_flight_set_folder(folder);
    CHECK(pen_flight_dump("a test") == WORKERS + 1, "all are written");
    read_dump(folder, 2, arena, &dump);
    CHECK(dump.recorded > PEN_FLIGHT_EVENTS && dump.event_count == PEN_FLIGHT_EVENTS, "%llu, %u",
          (unsigned long long)dump.recorded, dump.event_count);
    CHECK(dump.events[0].number == dump.recorded - PEN_FLIGHT_EVENTS, "the last ones");
    for (uint32_t i = 1; i < dump.event_count; i++) {
        CHECK(dump.events[i].number == dump.events[i - 1].number + 1 &&
                  dump.events[i].clock >= dump.events[i - 1].clock,
              "event %u", i);
    }
    CHECK_OK(pen_flight_replay(&dump, &quiet, arena, &result));
    CHECK(!result.is_whole && result.replayed == 0, "nothing is replayed");
    end();
    pen_arena_destroy(arena);
}

static void a_changed_event_shows(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    const pen_flight_replay_options quiet = {0};
    const char *folder = scratch_path("changed");
    pen_flight_dump_file dump;
    pen_flight_replay_result result;
    start(arena);
    begin_rounds(1);
    pen_flight_set_folder(folder);
    CHECK(pen_flight_dump("a test") > 0, "written");
    read_dump(folder, 0, arena, &dump);
    pen_flight_event *events;
    CHECK_OK(PEN_NEW(arena, dump.event_count, &events));
    memcpy(events, dump.events, dump.event_count * sizeof *events);
    uint32_t loss = 0;
    while (events[loss].event.coordinator.kind != PEN_COORDINATOR_EVENT_LOSS) {
        loss++;
    }
    events[loss].event.coordinator.generation -= 1; // is not heard
    dump.events = events;
    CHECK_OK(pen_flight_replay(&dump, &quiet, arena, &result));
    CHECK(result.different > 0 && result.first_different >= loss, "%llu differ from %llu on",
          (unsigned long long)result.different, (unsigned long long)result.first_different);
    end();
    pen_arena_destroy(arena);
}

static void damage_is_found(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    const char *folder = scratch_path("damage");
    const char *bytes;
    char *damaged;
    size_t count;
    pen_flight_dump_file dump;
    start(arena);
    pen_flight_set_folder(folder);
    CHECK(pen_flight_dump("a test") > 0, "written");
    dump_of(folder, 1, arena, &bytes, &count);
    CHECK_OK(PEN_NEW(arena, count, &damaged));
    memcpy(damaged, bytes, count);
    pen_arena *scratch;
    CHECK_OK(pen_arena_create(&scratch));
    for (size_t i = 0; i < count; i++) {
        damaged[i] = (char)(damaged[i] ^ (char)(1 << i % 8));
        pen_status status = pen_flight_dump_decode(damaged, count, scratch, &dump);
        CHECK(status != PEN_OK, "byte %zu is not missed", i);
        pen_status_ignore(status, "expected");
        damaged[i] = bytes[i];
        status = pen_flight_dump_decode(bytes, i, scratch, &dump);
        CHECK(status != PEN_OK, "a cut at %zu is not missed", i);
        pen_status_ignore(status, "expected");
        pen_arena_reset(scratch);
    }
    CHECK_ERROR(pen_flight_dump_decode("hello, world, hello", 19, scratch, &dump),
                PEN_INVALID_INPUT, "not a dump of a flight recorder");
    pen_arena_destroy(scratch);
    end();
    pen_arena_destroy(arena);
}

// In a child: an assertion there leaves dumps.
static void a_failed_assertion_dumps(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    const char *folder = scratch_path("assertion");
    pen_flight_dump_file dump;
    start(arena);
    begin_rounds(1);
    const pid_t child = fork();
    CHECK(child >= 0, "fork");
    if (child == 0) {
        signal(SIGABRT, SIG_DFL);
        pen_flight_set_folder(folder);
        step_worker(
            1, &(pen_worker_event){.kind = PEN_WORKER_EVENT_TASK_DONE, .generation = GENERATION});
        _exit(0);
    }
    int how;
    CHECK(waitpid(child, &how, 0) == child && WIFSIGNALED(how) && WTERMSIG(how) == SIGABRT,
          "the assertion ends it");
    char path[4096];
    const char *bytes;
    size_t count;
    snprintf(path, sizeof path, "%s/flight-g%d-w1-%d.bin", folder, GENERATION, (int)child);
    CHECK_OK(pen_file_read(path, 16u << 20, arena, &bytes, &count));
    CHECK_OK(pen_flight_dump_decode(bytes, count, arena, &dump));
    CHECK(strstr(dump.reason, "assertion failed: core->running_count > 0") != NULL, "'%s'",
          dump.reason);
    const pen_flight_event *last = &dump.events[dump.event_count - 1];
    CHECK(last->event.worker.kind == PEN_WORKER_EVENT_TASK_DONE && !last->has_outcome,
          "what it failed in is the last");
    end();
    pen_arena_destroy(arena);
}

// Fields are named where they are recorded: one that is added must be, too.
static void all_fields_are_recorded(void **state) {
    (void)state;
    CHECK(sizeof(pen_worker_event) == 56, "pen_worker_event has grown: flight_wire.c packs it");
    CHECK(sizeof(pen_coordinator_event) == 128,
          "pen_coordinator_event has grown to %zu: flight_wire.c packs it",
          sizeof(pen_coordinator_event));
    CHECK(sizeof(pen_coordinator_options) == 368,
          "pen_coordinator_options has grown to %zu: flight_recorder.c and flight_dump.c have it",
          sizeof(pen_coordinator_options));
}

static void events_have_the_same_bytes_as_ever(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    const pen_worker_event of_worker = {.kind = PEN_WORKER_EVENT_CREDIT,
                                        .generation = 1,
                                        .round = 2,
                                        .sequence = (uint64_t)3 << 40,
                                        .form = 4,
                                        .count = 5,
                                        .channel = 6,
                                        .device = 7,
                                        .updates = true};
    const pen_coordinator_event of_coordinator = {
        .kind = PEN_COORDINATOR_EVENT_SHARD,
        .worker = 1,
        .incarnation = UINT64_MAX,
        .generation = 2,
        .round = 3,
        .sequence = 4,
        .now = 5,
        .step = 6,
        .form = 7,
        .count = 8,
        .channel = 9,
        .microbatch = 10,
        .stage = 11,
        .code = 12,
        .order = 17,
        .updates = true,
        .loss = {.value = 13, .correct_count = 14, .target_count = 15}};
    uint64_t words[FLIGHT_PAYLOAD_WORDS];
    pen_text text;
    pen_text_init(&text, arena);
    flight_pack_worker(&of_worker, words);
    record_bytes_add(&text, "worker", words, sizeof words);
    flight_pack_coordinator(&of_coordinator, 16, words);
    record_bytes_add(&text, "coordinator", words, sizeof words);
    record_bytes_check(&text, "flight_bytes.txt");
    pen_arena_destroy(arena);
}

PEN_TEST_MAIN(cmocka_unit_test(events_have_the_same_bytes_as_ever),
              cmocka_unit_test(a_replay_does_what_was_done),
              cmocka_unit_test(a_replay_says_where_a_run_stands),
              cmocka_unit_test(a_full_ring_keeps_the_last), cmocka_unit_test(a_changed_event_shows),
              cmocka_unit_test(damage_is_found), cmocka_unit_test(a_failed_assertion_dumps),
              cmocka_unit_test(all_fields_are_recorded))
