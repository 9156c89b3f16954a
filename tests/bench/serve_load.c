// Load on a server of the Open Inference Protocol, and what came of it, printed as JSON.
//
//   serve_load http|grpc PORT MODEL REQUEST JSON_LENGTH CALLS SECONDS [RATE SEED]
//
// REQUEST is a file: the body over HTTP, of which JSON_LENGTH bytes are JSON, or the message over
// gRPC. CALLS are open at once, at most. Without a rate each call is sent again as soon as it is
// answered: a closed loop. With one, requests are planned at random moments, RATE a second on
// average (a Poisson process drawn from SEED), whether or not others are answered: an open loop.
//
// A latency counts from the moment that was planned. So one that waited here for a free call, while
// the server stood still, says so; a loop that waited for it would not have sent the ones that it
// made wait (coordinated omission).
//
// The first WARM_SECONDS are not counted.
#include "tests/bench/serve_load.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/random.h"

#define WARM_SECONDS 1.0
#define DRAIN_SECONDS 20.0 // for answers, after the last request was planned
#define ENDS_AT_ONCE 64

static const char *const outcome_names[LOAD_OUTCOMES] = {"ok", "shed", "late", "refused", "other"};

typedef struct load {
    const load_door *door;
    load_request request;
    double seconds; // counted ones
    double rate;    // a second; 0: a closed loop
    pen_random_sequence dice;

    double begin;                     // of what counts
    double planned[LOAD_CALLS_LIMIT]; // of each call that is open
    uint32_t idle[LOAD_CALLS_LIMIT];  // calls that are not
    uint32_t idle_count;
    double next; // moment of the next request

    double *latencies; // of those answered
    uint64_t latency_count;
    uint64_t latency_capacity;
    uint64_t outcomes[LOAD_OUTCOMES]; // of requests that were planned while it counts
    uint64_t answered;                // in that time
    double worst_delay;               // between a planned moment and sending
} load;

_Noreturn void load_fail(const char *what) {
    fprintf(stderr, "serve_load: %s\n", what);
    _exit(1);
}

static double load_gap(load *l) {
    if (l->rate == 0) return 0;
    return -log(((double)pen_random_next(&l->dice) + 0.5) / 4294967296.0) / l->rate;
}

static void load_keep(load *l, double latency) {
    if (l->latency_count == l->latency_capacity) {
        const uint64_t capacity = l->latency_capacity == 0 ? 4096 : 2 * l->latency_capacity;
        double *grown = pen_memory_allocate(capacity, sizeof *grown);
        if (grown == NULL) load_fail("out of memory");
        if (l->latency_count > 0) {
            memcpy(grown, l->latencies, l->latency_count * sizeof *grown);
        }
        pen_memory_free(l->latencies);
        l->latencies = grown;
        l->latency_capacity = capacity;
    }
    l->latencies[l->latency_count++] = latency;
}

// Throughput is of answers that came while it counts, latencies are of requests planned then.
static void load_note(load *l, load_end end, double now) {
    const double planned = l->planned[end.call], over = l->begin + l->seconds;
    if (end.outcome == LOAD_OK && now >= l->begin && now < over) l->answered += 1;
    if (planned >= l->begin && planned < over) {
        l->outcomes[end.outcome] += 1;
        if (end.outcome == LOAD_OK) load_keep(l, now - planned);
    }
    l->idle[l->idle_count++] = end.call;
}

// All that is due, as far as calls are free.
static void load_send(load *l, double now) {
    const double over = l->begin + l->seconds;
    while (l->idle_count > 0 && l->next <= now && l->next < over) {
        const uint32_t call = l->idle[--l->idle_count];
        const double planned = l->rate == 0 ? now : l->next;
        l->planned[call] = planned;
        if (planned >= l->begin) l->worst_delay = fmax(l->worst_delay, now - planned);
        l->door->send(call);
        l->next = planned + load_gap(l);
    }
}

// Until all that was planned is answered, or the time for that is over.
static void load_run(load *l) {
    const double started = pen_clock_seconds();
    l->begin = started + WARM_SECONDS;
    l->next = started + load_gap(l);
    const double over = l->begin + l->seconds;
    for (;;) {
        load_end ends[ENDS_AT_ONCE];
        double now = pen_clock_seconds();
        load_send(l, now);
        const bool is_all_sent = l->next >= over || (l->rate == 0 && now >= over);
        if (is_all_sent && l->idle_count == l->request.calls) return;
        if (now > over + DRAIN_SECONDS) return;
        const bool is_next_known = l->idle_count > 0 && !is_all_sent;
        const double wait = is_next_known ? fmax(l->next - now, 0) : 0.1;
        const uint32_t count = l->door->await(wait, ends, ENDS_AT_ONCE);
        now = pen_clock_seconds();
        for (uint32_t i = 0; i < count; i++) {
            load_note(l, ends[i], now);
        }
    }
}

// ---- what came of it

static int load_compare(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void load_print(load *l) {
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    const double processor = (double)usage.ru_utime.tv_sec + (double)usage.ru_stime.tv_sec +
                             1e-6 * (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
    static const struct {
        const char *name;
        double share;
    } quantiles[] = {{"p50", 0.5}, {"p90", 0.9}, {"p99", 0.99}, {"max", 1}};
    printf("{\"outcomes\": {");
    for (int i = 0; i < LOAD_OUTCOMES; i++) {
        printf("%s\"%s\": %" PRIu64, i == 0 ? "" : ", ", outcome_names[i], l->outcomes[i]);
    }
    printf("}, \"unanswered\": %u, \"answered_a_second\": %.6g, \"worst_delay\": %.6g, "
           "\"processor_seconds\": %.4g",
           l->request.calls - l->idle_count, (double)l->answered / l->seconds, l->worst_delay,
           processor);
    if (l->latency_count > 0) {
        qsort(l->latencies, l->latency_count, sizeof *l->latencies, load_compare);
        for (size_t i = 0; i < sizeof quantiles / sizeof *quantiles; i++) {
            const double rank = ceil(quantiles[i].share * (double)l->latency_count);
            printf(", \"%s\": %.6g", quantiles[i].name, l->latencies[(uint64_t)rank - 1]);
        }
    }
    printf("}\n");
}

// ---- the command line

static void load_read(const char *path, load_request *request) {
    FILE *file = fopen(path, "rb");
    if (file == NULL) load_fail("cannot open the request");
    char *bytes = pen_memory_allocate(LOAD_REQUEST_LIMIT, 1);
    if (bytes == NULL) load_fail("out of memory");
    request->length = fread(bytes, 1, LOAD_REQUEST_LIMIT, file);
    if (request->length == 0 || request->length == LOAD_REQUEST_LIMIT) {
        load_fail("the request is empty, or too long");
    }
    fclose(file);
    request->bytes = bytes;
}

static double load_number(const char *text, double least, double most) {
    char *end;
    const double number = strtod(text, &end);
    if (end == text || *end != '\0' || !(number >= least) || number > most) {
        fprintf(stderr, "serve_load: found '%s', expected %g to %g\n", text, least, most);
        _exit(2);
    }
    return number;
}

int main(int argc, char **argv) {
    static load l;
    const bool is_grpc = argc > 1 && strcmp(argv[1], load_grpc.name) == 0;
    if ((argc != 8 && argc != 10) || (!is_grpc && strcmp(argv[1], load_http.name) != 0)) {
        fprintf(stderr, "serve_load http|grpc PORT MODEL REQUEST JSON_LENGTH CALLS SECONDS "
                        "[RATE SEED]\n");
        return 2;
    }
    l.door = is_grpc ? &load_grpc : &load_http;
    l.request.port = (int)load_number(argv[2], 1, 65535);
    l.request.model = argv[3];
    load_read(argv[4], &l.request);
    l.request.json_length = (uint64_t)load_number(argv[5], 0, (double)l.request.length);
    l.request.calls = (uint32_t)load_number(argv[6], 1, LOAD_CALLS_LIMIT);
    l.seconds = load_number(argv[7], 0.1, 3600);
    if (argc == 10) {
        const uint64_t seed = (uint64_t)load_number(argv[9], 0, 1e9);
        l.rate = load_number(argv[8], 1e-3, 1e6);
        l.dice = pen_random_sequence_of(pen_random_stream("arrivals", seed, 0));
    }
    while (l.idle_count < l.request.calls) {
        l.idle[l.idle_count] = l.idle_count;
        l.idle_count += 1;
    }
    l.door->open(&l.request);
    load_run(&l);
    load_print(&l);
    return fflush(stdout) == 0 ? 0 : 1;
}
