// What a worker says of itself is judged: one that claims another identity or too little memory is
// refused by name, and neither its words nor its codes become ours as they are.

#include "base/clock.h"
#include "base/system/build.h"
#include "base/thread.h"
#include "scheduler/protocol/message.h"
#include "tests/support/check.h"
#include "tests/support/generation_case.h"

#define FALSE_WORKER 2u
#define FALSE_BEFORE 98u // the incarnation before this one's, 99
#define FALSE_SECONDS 60 // by which a run that is to fail has failed
#define MEBIBYTE ((uint64_t)1 << 20)

// A worker made of a bare transport: it introduces itself, and fails when it is assigned.
typedef struct false_worker {
    pen_transport *transport;
    pen_message hello, fail;
    pen_message surveyed; // what it answers to an order
    pen_message stray;    // what it says before its HELLO, and again when it is assigned; if any
    const char *third; // where worker 3 is, which it calls when it is assigned; NULL: it does not
    bool refuses_workers;
    bool is_slow; // it answers no pings
    pen_mutex lock;
    bool is_assigned; // guarded by lock
} false_worker;

static void false_send(false_worker *w, pen_message *message) {
    uint8_t bytes[PEN_MESSAGE_ROOM];
    message->protocol = PEN_PROTOCOL_VERSION;
    if (message->incarnation == 0) message->incarnation = 99;
    memcpy(message->job, "generations", 12);
    const size_t length = pen_message_encode(message, bytes, sizeof bytes);
    CHECK_OK(w->transport->kind->send_message(w->transport, 0, bytes, length));
}

static pen_status false_accept(void *context, const pen_introduction *introduction,
                               const char *address) {
    const false_worker *w = context;
    (void)address;
    if (introduction->peer == 0 || !w->refuses_workers) return PEN_OK;
    return pen_error(PEN_INVALID_INPUT, "nobody may");
}

// Worker 1 may still call the one of the generation before, whose port this one may have.
static void false_up(void *context, uint32_t peer) {
    false_worker *w = context;
    if (peer != 0) return;
    if (w->stray.kind != PEN_MESSAGE_HELLO) false_send(w, &w->stray);
    false_send(w, &w->hello);
}

static void false_down(void *context, uint32_t peer, pen_status take_reason) {
    (void)context;
    (void)peer;
    pen_status_ignore(take_reason, "it is expected");
}

// As who is assigned, and is the lower number of the two, has to.
static void false_call_third(false_worker *w, uint64_t generation) {
    const pen_introduction self = {
        .job = "generations", .peer = FALSE_WORKER, .generation = generation, .incarnation = 99};
    CHECK_OK(w->transport->kind->introduce(w->transport, &self));
    CHECK_OK(w->transport->kind->connect(w->transport, 3, w->third, 20));
}

static void false_message(void *context, uint32_t peer, const void *bytes, uint64_t count) {
    false_worker *w = context;
    pen_message message;
    if (peer != 0) return;
    CHECK_OK(pen_message_decode(bytes, (size_t)count, &message));
    if (message.kind == PEN_MESSAGE_SURVEY) {
        w->surveyed.generation = message.generation;
        w->surveyed.sequence = message.sequence;
        false_send(w, &w->surveyed);
    }
    if (message.kind == PEN_MESSAGE_PING && !w->is_slow) {
        pen_message pong = {.kind = PEN_MESSAGE_PONG,
                            .generation = message.generation,
                            .sequence = message.sequence};
        false_send(w, &pong);
    }
    if (message.kind != PEN_MESSAGE_ASSIGN) return;
    w->fail.generation = message.generation;
    if (w->third != NULL) false_call_third(w, message.generation);
    pen_mutex_lock(&w->lock);
    w->is_assigned = true;
    pen_mutex_unlock(&w->lock);
    if (w->stray.incarnation == FALSE_BEFORE) false_send(w, &w->stray);
    if (w->fail.kind != PEN_MESSAGE_HELLO) false_send(w, &w->fail); // or that it is ready
}

// In place of worker 2. It runs what we run, until a test changes that.
static void false_worker_open(false_worker *w, generation_case *g) {
    const char *numerics;
    uint16_t port;
    *w = (false_worker){.hello = {.kind = PEN_MESSAGE_HELLO}};
    pen_mutex_init(&w->lock);
    CHECK_OK(pen_worker_describe_numerics(PEN_KERNEL_LEVEL_AUTO, g->arena, &numerics));
    snprintf(w->hello.build, sizeof w->hello.build, "%s", pen_build_name());
    snprintf(w->hello.isa, sizeof w->hello.isa, "%s", numerics);
    const pen_transport_options options = {
        .self = {.peer = PEN_TRANSPORT_ANY_PEER, .incarnation = 99}};
    const pen_transport_events events = {.context = w,
                                         .accept = false_accept,
                                         .up = false_up,
                                         .down = false_down,
                                         .message = false_message};
    generation_end_worker(g, FALSE_WORKER);
    CHECK_OK(g->transport->create(&options, &events, &w->transport));
    CHECK_OK(g->transport->listen(w->transport, "127.0.0.1:0", &port));
    CHECK_OK(pen_arena_format(g->arena, &g->workers[FALSE_WORKER].address, "127.0.0.1:%u", port));
}

static void false_worker_close(false_worker *w) {
    w->transport->kind->close(w->transport);
    w->transport->kind->stop(w->transport);
    w->transport->kind->destroy(w->transport);
    pen_mutex_deinit(&w->lock);
}

// ---- what it claims to be

static void is_refused_by_name(void **unused) {
    (void)unused;
    static const struct {
        const char *build, *isa; // NULL: ours
        uint64_t memory_bytes;
        pen_status_code code;
        const char *text;
    } cases[] = {
        {"0.1.0+00000000", NULL, 0, PEN_CANCELLED, "worker 2 runs build '0.1.0+00000000'"},
        {"\x1b[2J\xff", NULL, 0, PEN_CANCELLED, "worker 2 runs build '?[2J?'"},
        {NULL, "kernel level v9", 0, PEN_CANCELLED, "worker 2 computes with 'kernel level v9'"},
        {NULL, NULL, 64 * MEBIBYTE, PEN_DOES_NOT_FIT,
         "device 'b' needs 4.00 GiB of memory with its process, and worker 2 may use 64.0 MiB"},
    };
    static const uint64_t needed[GENERATION_WORKERS + 1] = {0, 0, 4096 * MEBIBYTE, 0};
    generation_case g;
    generation_case_init(&g, "local");
    g.needed_bytes = needed;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        false_worker w;
        pen_coordinator *coordinator;
        false_worker_open(&w, &g);
        w.hello.memory_bytes = cases[i].memory_bytes;
        if (cases[i].build != NULL) {
            snprintf(w.hello.build, sizeof w.hello.build, "%s", cases[i].build);
        }
        if (cases[i].isa != NULL) snprintf(w.hello.isa, sizeof w.hello.isa, "%s", cases[i].isa);
        CHECK_ERROR(generation_begin(&g, i + 1, &coordinator), cases[i].code, cases[i].text);
        CHECK(!w.is_assigned, "it was assigned");
        false_worker_close(&w);
    }
    generation_case_deinit(&g);
}

// ---- what it fails with

static void its_codes_are_judged(void **unused) {
    (void)unused;
    static const struct {
        uint32_t code;
        pen_status_code ours;
        const char *text;
    } cases[] = {
        {PEN_OUT_OF_MEMORY, PEN_OUT_OF_MEMORY, "none is left"},
        {PEN_DOES_NOT_FIT, PEN_DOES_NOT_FIT, "none is left"},
        {PEN_NO_STORAGE, PEN_NO_STORAGE, "none is left"},
        {PEN_CANCELLED, PEN_UNAVAILABLE, "it says 'cancelled', which is not for a worker to say"},
        {PEN_INVALID_INPUT, PEN_UNAVAILABLE, "it says 'invalid input', which is not for"},
        {PEN_NOT_FOUND, PEN_UNAVAILABLE, "it says 'not found', which is not for"},
        {PEN_NOT_FINITE, PEN_UNAVAILABLE, "it says 'not finite', which is not for"},
        {PEN_CODE_OK, PEN_UNAVAILABLE, "it says code 0, which means nothing"},
        {4711, PEN_UNAVAILABLE, "it says code 4711, which means nothing"},
    };
    generation_case g;
    generation_case_init(&g, "local");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        false_worker w;
        pen_coordinator *coordinator;
        char text[1024];
        false_worker_open(&w, &g);
        w.fail = (pen_message){
            .kind = PEN_MESSAGE_FAIL, .code = cases[i].code, .text = "error: none is left"};
        const pen_status status = generation_begin(&g, i + 1, &coordinator);
        pen_status_format(status, text, sizeof text);
        CHECK(pen_status_get_code(status) == cases[i].ours, "code %u became: %s", cases[i].code,
              text);
        CHECK(strstr(text, cases[i].text) != NULL && strstr(text, "none is left") != NULL &&
                  strstr(text, "worker 2") != NULL,
              "code %u became: %s", cases[i].code, text);
        CHECK(g.is_missing[FALSE_WORKER], "it is not to blame");
        pen_status_ignore(status, "it is looked at");
        false_worker_close(&w);
    }
    generation_case_deinit(&g);
}

// The figures that it was asked for: there its codes are judged likewise.
static void its_codes_of_surveys_are_judged(void **unused) {
    (void)unused;
    static const struct {
        uint32_t code;
        pen_status_code ours;
        const char *text;
    } cases[] = {
        {PEN_UNSUPPORTED, PEN_UNSUPPORTED, "no figures"},
        {PEN_DOES_NOT_FIT, PEN_DOES_NOT_FIT, "no figures"},
        {PEN_CANCELLED, PEN_UNAVAILABLE, "it says 'cancelled', which is not for a worker to say"},
        {PEN_INVALID_INPUT, PEN_UNAVAILABLE, "it says 'invalid input', which is not for"},
        {4711, PEN_UNAVAILABLE, "it says code 4711, which means nothing"},
    };
    generation_case g;
    generation_case_init(&g, "local");
    g.spec.survey = PEN_RUN_SURVEY_OPERATORS;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        false_worker w;
        pen_coordinator *coordinator;
        pen_survey_answer answer;
        pen_status failure;
        const pen_survey_order order = {.kind = PEN_SURVEY_RATES, .device = 1};
        false_worker_open(&w, &g);
        w.fail = (pen_message){.kind = PEN_MESSAGE_READY};
        w.surveyed = (pen_message){
            .kind = PEN_MESSAGE_SURVEYED, .code = cases[i].code, .text = "error: no figures"};
        CHECK_OK(generation_begin(&g, i + 1, &coordinator));
        pen_coordinator_order(coordinator, FALSE_WORKER, &order);
        CHECK_OK(pen_coordinator_await_survey(coordinator, FALSE_WORKER, 20, &answer, &failure));
        CHECK_ERROR(failure, cases[i].ours, cases[i].text);
        pen_coordinator_destroy(coordinator);
        false_worker_close(&w);
    }
    generation_case_deinit(&g);
}

// What it refuses another worker with is not what that one fails with: the two are told apart from
// mistakes of the user's.
static void what_it_refuses_with_is_judged(void **unused) {
    (void)unused;
    generation_case g;
    false_worker w;
    pen_coordinator *coordinator;
    generation_case_init(&g, "local");
    false_worker_open(&w, &g);
    w.refuses_workers = true;
    CHECK_ERROR(generation_begin(&g, 1, &coordinator), PEN_UNAVAILABLE, "nobody may");
    false_worker_close(&w);
    generation_case_deinit(&g);
}

// ---- and its refusal while another waits for the description of the run

static const pen_transport_kind *late_real;
static pen_transport_kind late_kind;
static struct late_blob { // of worker 3, which is sent behind the order to stop
    pen_frame frame;
    pen_memory_place payload;
    const uint32_t *checksums;
    uint64_t token;
    bool is_held, was_sent;
} late_blob;

static pen_status late_send_frame(pen_transport *transport, uint32_t peer, const pen_frame *frame,
                                  pen_memory_place payload, const uint32_t *checksums,
                                  uint64_t token) {
    if (frame->kind != PEN_FRAME_BLOB || peer != 3) {
        return late_real->send_frame(transport, peer, frame, payload, checksums, token);
    }
    late_blob = (struct late_blob){*frame, payload, checksums, token, true, false};
    return PEN_OK;
}

static pen_status late_send_message(pen_transport *transport, uint32_t peer, const void *bytes,
                                    uint64_t count) {
    struct late_blob *late = &late_blob;
    pen_message message;
    CHECK_OK(pen_message_decode(bytes, (size_t)count, &message));
    PEN_TRY(late_real->send_message(transport, peer, bytes, count));
    if (message.kind != PEN_MESSAGE_STOP || peer != 3 || !late->is_held) return PEN_OK;
    late->is_held = false;
    late->was_sent = true;
    return late_real->send_frame(transport, peer, &late->frame, late->payload, late->checksums,
                                 late->token);
}

static pen_status late_create(const pen_transport_options *options,
                              const pen_transport_events *events, pen_transport **out_transport) {
    PEN_TRY(late_real->create(options, events, out_transport));
    (*out_transport)->kind = &late_kind;
    return PEN_OK;
}

// Worker 1 is refused by worker 2; worker 3 leaves before the description has come to it, and is
// not the one that is blamed.
static void who_leaves_before_the_description_comes_is_not_lost(void **unused) {
    (void)unused;
    generation_case g;
    false_worker w;
    pen_coordinator *coordinator;
    generation_case_init(&g, "local");
    false_worker_open(&w, &g);
    w.refuses_workers = true;
    late_real = g.transport;
    late_kind = *late_real;
    late_kind.create = late_create;
    late_kind.send_frame = late_send_frame;
    late_kind.send_message = late_send_message;
    g.transport = &late_kind;
    CHECK_ERROR(generation_begin(&g, 1, &coordinator), PEN_UNAVAILABLE, "nobody may");
    CHECK(late_blob.was_sent, "worker 3 was not told to stop while it waited");
    CHECK(!g.is_missing[3], "worker 3 is said to be missing");
    false_worker_close(&w);
    generation_case_deinit(&g);
}

// The others lose their links to it, and one of them says so.
static void false_leave_others(false_worker *w, pen_coordinator *coordinator) {
    const double deadline = pen_clock_seconds() + FALSE_SECONDS;
    for (uint32_t peer = 1; peer <= GENERATION_WORKERS; peer += 2) {
        w->transport->kind->disconnect(w->transport, peer);
    }
    while (!pen_coordinator_is_failed(coordinator)) {
        if (pen_clock_seconds() > deadline) fail_msg("nobody missed a link to the worker");
        pen_clock_pause(0.01);
    }
}

typedef struct false_words {
    false_worker *worker;
    pen_message fail;
    double seconds; // after which it says so
} false_words;

static void false_say(void *context) {
    false_words *words = context;
    pen_clock_pause(words->seconds);
    false_send(words->worker, &words->fail);
}

// It leaves the run and says `code`, so much later. Returns what the run ended with; out_seconds:
// how long that took to find.
static pen_status false_fail_late(generation_case *g, uint64_t generation, pen_status_code code,
                                  double seconds, double *out_seconds) {
    false_worker w;
    pen_coordinator *coordinator;
    pen_thread *thread;
    uint64_t round;
    false_worker_open(&w, g);
    w.fail = (pen_message){.kind = PEN_MESSAGE_READY};
    w.third = g->workers[3].address;
    w.is_slow = true;
    CHECK_OK(generation_begin(g, generation, &coordinator));
    false_leave_others(&w, coordinator);
    false_words words = {.worker = &w, .seconds = seconds};
    words.fail = (pen_message){.kind = PEN_MESSAGE_FAIL,
                               .generation = generation,
                               .code = code,
                               .text = "error: index 20 is outside"};
    CHECK_OK(pen_thread_create("words", false_say, &words, &thread));
    const double began = pen_clock_seconds();
    const pen_status status = generation_begin_round(g, coordinator, &round);
    *out_seconds = pen_clock_seconds() - began;
    pen_thread_join(thread);
    pen_coordinator_destroy(coordinator);
    false_worker_close(&w);
    return status;
}

// It fails, and leaves the run: the worker that misses its link is heard first, by far where the
// machine is busy.
static void who_misses_a_link_is_not_the_cause(void **unused) {
    (void)unused;
    generation_case g;
    generation_case_init(&g, "local");
    g.lease_seconds = 30;
    static const struct {
        pen_status_code code;
        double seconds;
    } cases[] = {{PEN_INVALID_INPUT, 0}, {PEN_CORRUPT, 0}, {PEN_INVALID_INPUT, 2.5}};
    for (uint32_t i = 0; i < 3; i++) {
        double took;
        CHECK_ERROR(false_fail_late(&g, i + 1, cases[i].code, cases[i].seconds, &took),
                    cases[i].code, "index 20 is out");
        CHECK(g.is_missing[FALSE_WORKER] && !g.is_missing[1] && !g.is_missing[3], "%u %u %u",
              g.is_missing[1], g.is_missing[2], g.is_missing[3]);
    }
    generation_case_deinit(&g);
}

// Both ends of a link miss each other, and nobody is at fault: that is known when both have said
// so, and not when a lease is over.
static void a_broken_link_is_nobodys_fault(void **unused) {
    (void)unused;
    generation_case g;
    double took;
    generation_case_init(&g, "local");
    g.lease_seconds = 30;
    CHECK_ERROR(false_fail_late(&g, 1, PEN_UNAVAILABLE, 0, &took), PEN_UNAVAILABLE, "");
    CHECK(took < 15, "it took %.3g s", took);
    for (uint32_t w = 1; w <= GENERATION_WORKERS; w++) {
        CHECK(!g.is_missing[w], "worker %u is said to be missing", w);
    }
    generation_case_deinit(&g);
}

// What it says before its HELLO, or said as another incarnation, is not the cause of anything.
static void what_is_not_heard_is_not_the_cause(void **unused) {
    (void)unused;
    generation_case g;
    generation_case_init(&g, "local");
    static const uint64_t incarnations[] = {99, FALSE_BEFORE};
    for (uint32_t i = 0; i < 2; i++) {
        false_worker w;
        pen_coordinator *coordinator;
        uint64_t round;
        false_worker_open(&w, &g);
        w.stray = (pen_message){.kind = PEN_MESSAGE_FAIL,
                                .generation = i + 1,
                                .incarnation = incarnations[i],
                                .code = PEN_CORRUPT,
                                .text = "error: of another run"};
        w.fail = (pen_message){.kind = PEN_MESSAGE_READY};
        w.third = g.workers[3].address;
        CHECK_OK(generation_begin(&g, i + 1, &coordinator));
        false_leave_others(&w, coordinator);
        CHECK_ERROR(generation_begin_round(&g, coordinator, &round), PEN_UNAVAILABLE,
                    "lost the link to worker 2");
        pen_coordinator_destroy(coordinator);
        false_worker_close(&w);
    }
    generation_case_deinit(&g);
}

static void its_words_are_cleaned(void **unused) {
    (void)unused;
    generation_case g;
    false_worker w;
    pen_coordinator *coordinator;
    char text[1024];
    generation_case_init(&g, "local");
    false_worker_open(&w, &g);
    w.fail = (pen_message){
        .kind = PEN_MESSAGE_FAIL, .code = PEN_IO, .text = "\x1b]0;title\x07 red\xff\n  \xc2\x9bJ"};
    const pen_status status = generation_begin(&g, 1, &coordinator);
    pen_status_format(status, text, sizeof text);
    CHECK(strstr(text, "?]0;title? red?") != NULL && strstr(text, "??J") != NULL, "%s", text);
    for (const char *at = text; *at != '\0'; at++) {
        CHECK(*at == '\n' || (*at >= ' ' && *at < 0x7f), "byte %02x in %s", (unsigned)*at, text);
    }
    pen_status_ignore(status, "it is looked at");
    false_worker_close(&w);
    generation_case_deinit(&g);
}

PEN_TEST_MAIN(cmocka_unit_test(is_refused_by_name), cmocka_unit_test(its_codes_are_judged),
              cmocka_unit_test(its_codes_of_surveys_are_judged),
              cmocka_unit_test(what_it_refuses_with_is_judged),
              cmocka_unit_test(who_leaves_before_the_description_comes_is_not_lost),
              cmocka_unit_test(who_misses_a_link_is_not_the_cause),
              cmocka_unit_test(a_broken_link_is_nobodys_fault),
              cmocka_unit_test(what_is_not_heard_is_not_the_cause),
              cmocka_unit_test(its_words_are_cleaned))
