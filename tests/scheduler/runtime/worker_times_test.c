// Tasks and waits of a device with a clock of its own, which a test moves: when they are told, and
// that no time of them is lost.
#include "graph/graph.h"
#include "scheduler/runtime/worker/worker_device.h"
#include "scheduler/runtime/worker/worker_task.h"
#include "tests/support/check.h"

#define MARKS 1024
#define TASKS 2
#define EVENTS 4096

// The device: its queue stands at `now`, and is at each mark at once.
static double now, marks[MARKS];

static pen_status mark(pen_device *device, uint32_t number) {
    (void)device;
    CHECK(number < MARKS, "mark %u", number);
    marks[number] = now;
    return PEN_OK;
}

static pen_status marked(pen_device *device, uint32_t from, uint32_t to, pen_span *out_span) {
    (void)device;
    *out_span = (pen_span){marks[from], marks[to] - marks[from]};
    return PEN_OK;
}

static const pen_device_kind marking = {.mark = mark, .marked = marked};
static pen_device gpu = {&marking};

// Two tasks of a device; the executor, of which only the wait is asked, is of another.
static const pen_run_task tasks[TASKS] = {{.task = {PEN_TASK_FORWARD, 0, 0}, .receive_end = 1},
                                          {.task = {PEN_TASK_FORWARD, 0, 1}, .receive_end = 1}};
static const pen_run_device places = {.worker = 1, .task_end = TASKS};
static const pen_run_form form = {.task_count = TASKS, .tasks = tasks, .devices = &places};
static const pen_run_table table = {.form_count = 1, .forms = &form};

typedef struct times_case {
    pen_worker_run run;
    worker_device device;
    pen_device *host;
    pen_executor *executor;
    const pen_trace_event *events; // that were noted
    uint32_t count;
} times_case;

static void times_begin(times_case *c) {
    const pen_device_kind *kind;
    pen_graph *graph;
    *c = (times_case){.run = {.table = &table}};
    c->device = (worker_device){.run = &c->run, .device = &gpu, .arena = check_arena()};
    CHECK_OK(pen_device_kind_find("reference", &kind));
    CHECK_OK(kind->open(&(pen_device_options){.name = "host"}, &c->host));
    CHECK_OK(pen_graph_create(c->device.arena, "nothing", &graph));
    const pen_executor_spec spec = {.device = c->host, .graph = graph};
    CHECK_OK(pen_executor_create(&spec, &c->executor));
    c->device.executors = &c->executor;
    pen_mutex_init(&c->run.lock);
    CHECK_OK(pen_trace_recorder_create(1, EVENTS, &c->run.recorder));
    CHECK_OK(pen_worker_times_prepare(&c->device));
    now = 0;
}

static void times_end(times_case *c) {
    pen_trace_recorder_destroy(c->run.recorder);
    pen_mutex_deinit(&c->run.lock);
    pen_executor_destroy(c->executor);
    c->host->kind->close(c->host);
    pen_arena_destroy(c->device.arena);
}

static pen_trace_event event_of(uint32_t task) {
    return (pen_trace_event){
        .kind = PEN_TRACE_TASK, .task = tasks[task].task, .channel = PEN_TRACE_NO_CHANNEL};
}

// A task that begins once the fence of a channel is reached at `reached`, and takes `seconds`.
static void run_task(times_case *c, uint32_t task, double reached, double seconds) {
    const pen_trace_event event = event_of(task);
    CHECK_OK(pen_worker_times_begin(&c->device, &event));
    CHECK_OK(pen_worker_times_hold(&c->device));
    CHECK_OK(pen_worker_times_pass(&c->device, 0, 9)); // which was reached long ago
    CHECK_OK(pen_worker_times_hold(&c->device));
    if (reached > now) now = reached;
    CHECK_OK(pen_worker_times_pass(&c->device, 0, 0));
    CHECK_OK(pen_worker_times_start(&c->device));
    now += seconds;
    CHECK_OK(pen_worker_times_end(&c->device));
}

// The host saw a wait of the task for a channel.
static void see_wait(times_case *c, uint32_t task, uint32_t channel, double from, double to) {
    pen_trace_event event = event_of(task);
    event.kind = PEN_TRACE_WAIT;
    event.channel = channel;
    event.start_seconds = from;
    event.end_seconds = to;
    pen_mutex_lock(&c->run.lock);
    pen_worker_times_wait(&c->device, &event);
    pen_mutex_unlock(&c->run.lock);
}

// All is told: no two events overlap. Returns the seconds of a kind.
static double sum(times_case *c, pen_trace_kind kind) {
    uint64_t lost;
    double seconds = 0;
    CHECK_OK(pen_worker_times_finish(&c->device, 0));
    CHECK_OK(
        pen_trace_recorder_read(c->run.recorder, c->device.arena, &c->events, &c->count, &lost));
    CHECK(lost == 0, "%llu events are lost", (unsigned long long)lost);
    for (uint32_t i = 0; i < c->count; i++) {
        const pen_trace_event *event = &c->events[i];
        if (event->kind == kind) seconds += event->end_seconds - event->start_seconds;
        CHECK(i == 0 || event->start_seconds >= c->events[i - 1].end_seconds, "event %u: %g", i,
              event->start_seconds);
    }
    return seconds;
}

static void check_event(const times_case *c, uint32_t index, pen_trace_kind kind, double start,
                        double end) {
    const pen_trace_event *event = &c->events[index];
    CHECK(index < c->count && event->kind == kind, "event %u of %u", index, c->count);
    CHECK(event->start_seconds == start && event->end_seconds == end, "event %u: %g to %g", index,
          event->start_seconds, event->end_seconds);
}

// The thread waits, is told that it may go on, and then the queue waits: for the same, so one wait.
static void two_halves_of_a_wait_are_one(void **state) {
    (void)state;
    times_case c;
    times_begin(&c);
    run_task(&c, 0, 0, 2); // until 2
    see_wait(&c, 1, 0, 1, 3);
    now = 3;
    run_task(&c, 1, 7, 1);
    (void)sum(&c, PEN_TRACE_WAIT);
    CHECK(c.count == 3, "%u events", c.count); // the first fence was reached: no wait
    check_event(&c, 0, PEN_TRACE_TASK, 0, 2);
    check_event(&c, 1, PEN_TRACE_WAIT, 2, 7); // until 2 it computed
    check_event(&c, 2, PEN_TRACE_TASK, 7, 8);
    CHECK(c.events[1].channel == 0 && c.events[1].task.microbatch == 1, "for what");
    CHECK(c.device.wait_seconds == 5, "%g s", c.device.wait_seconds);
    CHECK(c.device.figures[0].busy_seconds == 3, "%g s", c.device.figures[0].busy_seconds);
    times_end(&c);
}

// The thread wakes again and again, for sends, say: that is one wait. Where there is no room for
// what it waits for in turn, the time is that of the last that has room.
static void no_wait_is_lost(void **state) {
    (void)state;
    for (uint32_t channels = 1; channels <= 3; channels++) {
        times_case c;
        times_begin(&c);
        for (uint32_t t = 0; t < 50; t++) { // more than a round has
            const double first = now;
            for (uint32_t i = 0; i < 100; i++)
                see_wait(&c, t % TASKS, 1 + i % channels, first + i, first + i + 1);
            now = first + 100;
            run_task(&c, t % TASKS, now + 1, 10);
        }
        CHECK(c.device.times.count <= c.device.times.limit, "%u", c.device.times.count);
        const double waited = sum(&c, PEN_TRACE_WAIT);
        CHECK(waited == 50 * 101 && c.device.wait_seconds == waited, "%u: %g s", channels, waited);
        CHECK(channels > 1 || c.count == 50 * 3, "%u events", c.count);
        CHECK(sum(&c, PEN_TRACE_TASK) == 50 * 10, "tasks");
        times_end(&c);
    }
}

// What the host saw of a wait ends microseconds after the device began, by its own word: the task
// is moved, and takes as long as it took.
static void a_task_keeps_its_length(void **state) {
    (void)state;
    times_case c;
    times_begin(&c);
    see_wait(&c, 0, 0, 0, 1.25);
    now = 1;
    run_task(&c, 0, 1, 2);
    (void)sum(&c, PEN_TRACE_TASK);
    CHECK(c.count == 2, "%u events", c.count);
    check_event(&c, 0, PEN_TRACE_WAIT, 0, 1.25);
    check_event(&c, 1, PEN_TRACE_TASK, 1.25, 3.25);
    times_end(&c);
}

PEN_TEST_MAIN(cmocka_unit_test(two_halves_of_a_wait_are_one), cmocka_unit_test(no_wait_is_lost),
              cmocka_unit_test(a_task_keeps_its_length))
