#include "scheduler/serve/batcher_figures.h"

#include <inttypes.h>

// Upper ends of the histogram of latencies, in seconds.
static const double figures_bounds[PEN_BATCHER_BOUNDS] = {0.001, 0.002, 0.005, 0.01, 0.02, 0.05,
                                                          0.1,   0.2,   0.5,   1,    2,    5};

void pen_batcher_figures_note(pen_batcher_figures *figures, pen_status_code code, double seconds) {
    size_t bound = 0;
    figures->answered[code] += 1;
    if (code != PEN_CODE_OK) return;
    while (bound < PEN_BATCHER_BOUNDS && seconds > figures_bounds[bound])
        bound++;
    figures->latencies[bound] += 1;
    figures->latency_sum += seconds;
}

static const char *figures_code_name(pen_status_code code) {
    switch (code) {
    case PEN_CODE_OK:
        return "ok";
    case PEN_INVALID_INPUT:
        return "invalid";
    case PEN_NOT_FOUND:
        return "not_found";
    case PEN_DOES_NOT_FIT:
        return "exhausted";
    case PEN_DEADLINE:
        return "deadline";
    case PEN_UNAVAILABLE:
        return "unavailable";
    default:
        return "other";
    }
}

static void figures_print_answers(const pen_batcher_figures *figures, pen_text *text) {
    pen_text_print(text, "# TYPE penstock_requests_total counter\n");
    static const pen_status_code codes[] = {PEN_CODE_OK,      PEN_INVALID_INPUT, PEN_NOT_FOUND,
                                            PEN_DOES_NOT_FIT, PEN_DEADLINE,      PEN_UNAVAILABLE};
    uint64_t other = 0;
    for (uint32_t code = 0; code < PEN_BATCHER_CODES; code++) {
        other += figures->answered[code];
    }
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++) {
        other -= figures->answered[codes[i]];
        pen_text_print(text, "penstock_requests_total{outcome=\"%s\"} %" PRIu64 "\n",
                       figures_code_name(codes[i]), figures->answered[codes[i]]);
    }
    pen_text_print(text, "penstock_requests_total{outcome=\"other\"} %" PRIu64 "\n", other);
}

static void figures_print_latencies(const pen_batcher_figures *figures, pen_text *text) {
    uint64_t count = 0;
    pen_text_print(text, "# TYPE penstock_request_seconds histogram\n");
    for (size_t i = 0; i < PEN_BATCHER_BOUNDS; i++) {
        count += figures->latencies[i];
        pen_text_print(text, "penstock_request_seconds_bucket{le=\"%g\"} %" PRIu64 "\n",
                       figures_bounds[i], count);
    }
    count += figures->latencies[PEN_BATCHER_BOUNDS];
    pen_text_print(text,
                   "penstock_request_seconds_bucket{le=\"+Inf\"} %" PRIu64
                   "\npenstock_request_seconds_sum %.9g\npenstock_request_seconds_count %" PRIu64
                   "\n",
                   count, figures->latency_sum, count);
}

// What is a number by itself stands in a table; counters by code and the histogram come before.
void pen_batcher_figures_print(const pen_batcher_figures *figures, uint64_t queued, bool is_ready,
                               pen_text *text) {
    figures_print_answers(figures, text);
    figures_print_latencies(figures, text);
    const struct {
        const char *name, *type;
        uint64_t value;
    } lines[] = {
        {"penstock_batches_total", "counter", figures->batches},
        {"penstock_rows_total", "counter", figures->rows},
        {"penstock_recoveries_total", "counter", figures->recoveries},
        {"penstock_reloads_total", "counter", figures->reloads},
        {"penstock_reloads_failed_total", "counter", figures->failed_reloads},
        {"penstock_queued_requests", "gauge", queued},
        {"penstock_ready", "gauge", is_ready},
    };
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        pen_text_print(text, "# TYPE %s %s\n%s %" PRIu64 "\n", lines[i].name, lines[i].type,
                       lines[i].name, lines[i].value);
    }
}
