// penstock diagnose: what processes did last, from the dumps of their flight recorders.

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cli/command.h"
#include "cli/flight_view.h"

typedef struct diagnose_options {
    pen_cli_common common;
    int64_t events;
    bool replay;
} diagnose_options;

// An event of one of the dumps, on the coordinator's clock.
typedef struct diagnose_moment {
    int64_t clock; // nanoseconds
    uint32_t view;
    const pen_flight_event *event;
} diagnose_moment;

typedef struct diagnose {
    const diagnose_options *options;
    pen_arena *arena;
    pen_flight_view *views;
    uint32_t view_count;
    diagnose_moment *moments; // the last of all, oldest first
    uint32_t moment_count;
    uint64_t event_count; // of all dumps
} diagnose;

// ---- one time line

// Whether the last event of `a` that is not taken yet is later than that of `b`.
static bool diagnose_is_later(const diagnose_moment *a, const diagnose_moment *b) {
    if (a->clock != b->clock) return a->clock > b->clock;
    if (a->view != b->view) return a->view > b->view;
    return a->event->number > b->event->number;
}

// From the last back: in each step the latest of the dumps' last ones.
static pen_status diagnose_merge(diagnose *d) {
    uint32_t *left;
    PEN_TRY(PEN_NEW(d->arena, d->view_count, &left));
    for (uint32_t v = 0; v < d->view_count; v++) {
        left[v] = d->views[v].dump.event_count;
        d->event_count += left[v];
    }
    d->moment_count = (uint64_t)d->options->events < d->event_count ? (uint32_t)d->options->events
                                                                    : (uint32_t)d->event_count;
    PEN_TRY(PEN_NEW(d->arena, d->moment_count, &d->moments));
    for (uint32_t m = d->moment_count; m > 0; m--) {
        diagnose_moment latest = {.event = NULL};
        for (uint32_t v = 0; v < d->view_count; v++) {
            const pen_flight_dump_file *dump = &d->views[v].dump;
            if (left[v] == 0) continue;
            const pen_flight_event *event = &dump->events[left[v] - 1];
            const diagnose_moment moment = {(int64_t)event->clock + dump->clock_offset, v, event};
            if (latest.event == NULL || diagnose_is_later(&moment, &latest)) latest = moment;
        }
        left[latest.view] -= 1;
        d->moments[m - 1] = latest;
    }
    return PEN_OK;
}

static double diagnose_seconds(const diagnose *d, const diagnose_moment *moment) {
    return (double)(moment->clock - d->moments[d->moment_count - 1].clock) * 1e-9;
}

// The last notes that say what devices waited for, of dumps that cannot be replayed: those behind
// the last event of another kind, and those of a dump that was asked for.
static bool diagnose_is_wait(const pen_flight_event *event) {
    return event->kind == PEN_FLIGHT_NOTE && strncmp(event->event.note, "waits: ", 7) == 0;
}

// ---- in words

static void diagnose_print_states(const pen_flight_view *view) {
    const pen_flight_dump_file *dump = &view->dump;
    for (uint32_t i = 0; i < view->line_count; i++) {
        const pen_flight_line *line = &view->lines[i];
        if (line->kind == PEN_FLIGHT_LINE_STATE) printf("    %s\n", line->text);
    }
    uint32_t first = dump->event_count;
    while (first > 0 && dump->event_count - first < 64) { // the last time that somebody asked
        if (diagnose_is_wait(&dump->events[first - 1])) break;
        first--;
    }
    while (first > 0 && diagnose_is_wait(&dump->events[first - 1])) {
        first--;
    }
    for (uint32_t i = first; i < dump->event_count && diagnose_is_wait(&dump->events[i]); i++) {
        printf("    %s\n", dump->events[i].event.note + 7);
    }
}

static void diagnose_print_view(const pen_flight_view *view) {
    const pen_flight_dump_file *dump = &view->dump;
    char who[PEN_FLIGHT_LINE_BYTES], last[PEN_FLIGHT_LINE_BYTES] = "nothing";
    pen_flight_who_format(dump, dump->worker, who);
    if (dump->event_count > 0) {
        pen_flight_event_format(dump, &dump->events[dump->event_count - 1], last);
    }
    printf("%s: generation %" PRIu64 ", process %" PRIu32 "%s\n", who, dump->generation,
           dump->process,
           dump->has_offset ? "" : ", its clock was not compared with the coordinator's");
    printf("    written because of: %s\n", dump->reason);
    diagnose_print_states(view);
    printf("    %" PRIu64 " events, the last: %s\n", dump->recorded, last);
    for (uint32_t i = 0; i < view->line_count; i++) {
        const pen_flight_line *line = &view->lines[i];
        if (line->kind == PEN_FLIGHT_LINE_VERDICT) printf("    %s\n", line->text);
    }
    printf("    %s\n", view->path);
}

// Events, what came of them, and where the core of today does something else than the process did.
static void diagnose_print_replay(const pen_flight_view *view) {
    char who[PEN_FLIGHT_LINE_BYTES];
    pen_flight_who_format(&view->dump, view->dump.worker, who);
    printf("\nreplay of %s, generation %" PRIu64 ":\n", who, view->dump.generation);
    for (uint32_t i = 0; i < view->line_count; i++) {
        const pen_flight_line *line = &view->lines[i];
        switch (line->kind) {
        case PEN_FLIGHT_LINE_EVENT:
            printf("  %s\n", line->text);
            break;
        case PEN_FLIGHT_LINE_OTHER:
            printf("  %s  << something else came of it then\n", line->text);
            break;
        case PEN_FLIGHT_LINE_ACTION:
            printf("      %s\n", line->text);
            break;
        case PEN_FLIGHT_LINE_STATE:
        case PEN_FLIGHT_LINE_VERDICT:
            printf("  %s\n", line->text);
            break;
        }
    }
}

// The last events of all processes on one clock, which is what shows who waited for whom.
static pen_status diagnose_print(const diagnose *d) {
    for (uint32_t v = 0; v < d->view_count; v++) {
        diagnose_print_view(&d->views[v]);
    }
    printf("\nthe last %" PRIu32 " of %" PRIu64 " events, in seconds before the last:\n",
           d->moment_count, d->event_count);
    for (uint32_t m = 0; m < d->moment_count; m++) {
        const diagnose_moment *moment = &d->moments[m];
        const pen_flight_dump_file *dump = &d->views[moment->view].dump;
        char who[32], text[PEN_FLIGHT_LINE_BYTES];
        snprintf(who, sizeof who, dump->worker == 0 ? "coordinator" : "worker %" PRIu32,
                 dump->worker);
        pen_flight_event_format(dump, moment->event, text);
        printf("  %+12.6f  g%" PRIu64 " %-11s  %s\n", diagnose_seconds(d, moment), dump->generation,
               who, text);
    }
    for (uint32_t v = 0; d->options->replay && v < d->view_count; v++) {
        diagnose_print_replay(&d->views[v]);
    }
    if (fflush(stdout) != 0) return pen_error(PEN_IO, "cannot write to standard output");
    return PEN_OK;
}

// ---- as JSON

static void diagnose_write_lines(pen_json_writer *json, const char *key,
                                 const pen_flight_view *view, pen_flight_line_kind kind) {
    pen_json_key_array(json, key);
    for (uint32_t i = 0; i < view->line_count; i++) {
        if (view->lines[i].kind == kind) pen_json_text(json, view->lines[i].text);
    }
    pen_json_end_array(json);
}

// One dump: who wrote it, why, and what it waited for.
static void diagnose_write_view(pen_json_writer *json, const pen_flight_view *view) {
    const pen_flight_dump_file *dump = &view->dump;
    pen_json_begin_object(json);
    pen_json_key_text(json, "file", view->path);
    pen_json_key_text(json, "role", dump->worker == 0 ? "coordinator" : "worker");
    pen_json_key_unsigned(json, "worker", dump->worker);
    pen_json_key_text(json, "name", dump->worker_names[dump->worker]);
    pen_json_key_unsigned(json, "generation", dump->generation);
    pen_json_key_unsigned(json, "process", dump->process);
    pen_json_key_text(json, "reason", dump->reason);
    pen_json_key_bool(json, "clock_is_compared", dump->has_offset);
    pen_json_key_unsigned(json, "events", dump->recorded);
    pen_json_key_unsigned(json, "events_kept", dump->event_count);
    diagnose_write_lines(json, "state", view, PEN_FLIGHT_LINE_STATE);
    diagnose_write_lines(json, "replay", view, PEN_FLIGHT_LINE_VERDICT);
    pen_json_key_array(json, "waits");
    for (uint32_t i = 0; i < dump->event_count; i++) {
        const pen_flight_event *event = &dump->events[i];
        if (diagnose_is_wait(event)) pen_json_text(json, event->event.note + 7);
    }
    pen_json_end_array(json);
    pen_json_end_object(json);
}

// All dumps, then the merged events.
static pen_status diagnose_write(const diagnose *d) {
    pen_json_writer json;
    pen_command_begin_json(&json, "diagnose");
    pen_json_key_array(&json, "dumps");
    for (uint32_t v = 0; v < d->view_count; v++) {
        diagnose_write_view(&json, &d->views[v]);
    }
    pen_json_end_array(&json);
    pen_json_key_array(&json, "events");
    for (uint32_t m = 0; m < d->moment_count; m++) {
        const diagnose_moment *moment = &d->moments[m];
        const pen_flight_dump_file *dump = &d->views[moment->view].dump;
        char text[PEN_FLIGHT_LINE_BYTES];
        pen_flight_event_format(dump, moment->event, text);
        pen_json_begin_object(&json);
        pen_json_key_number(&json, "seconds", diagnose_seconds(d, moment));
        pen_json_key_unsigned(&json, "generation", dump->generation);
        pen_json_key_unsigned(&json, "worker", dump->worker);
        pen_json_key_unsigned(&json, "number", moment->event->number);
        pen_json_key_text(&json, "text", text);
        pen_json_end_object(&json);
    }
    pen_json_end_array(&json);
    pen_json_end_object(&json);
    return pen_json_finish(&json);
}

static pen_status diagnose_run(pen_command_context *context, const void *options_given) {
    const diagnose_options *options = options_given;
    diagnose d = {.options = options, .arena = context->arena};
    PEN_TRY(pen_flight_views_read(options->common.operands, options->common.operand_count,
                                  context->arena, &d.views, &d.view_count));
    for (uint32_t v = 0; v < d.view_count; v++) {
        PEN_TRY(pen_flight_view_replay(&d.views[v], options->replay && !options->common.json,
                                       context->arena));
    }
    PEN_TRY(diagnose_merge(&d));
    return options->common.json ? diagnose_write(&d) : diagnose_print(&d);
}

static const pen_cli_option diagnose_cli_options[] = {
    PEN_CLI_VALUE(0, "events", "N", INTEGER, diagnose_options, events,
                  "how many of the last events are shown", PEN_OPTION_RANGE(1, 1000000),
                  .default_text = "40"),
    PEN_CLI_FLAG(0, "replay", diagnose_options, replay,
                 "show every event and what the protocol does on it"),
};

const pen_command pen_command_diagnose = {
    .name = "diagnose",
    .summary = "what processes did last, from the dumps they left",
    .table = {PEN_CLI_OPERANDS("FILE|FOLDER...", 1, 4096), PEN_CLI_OPTIONS(diagnose_cli_options),
              .examples = "penstock diagnose kept/flight\n"},
    .options_bytes = sizeof(diagnose_options),
    .run = diagnose_run,
};
