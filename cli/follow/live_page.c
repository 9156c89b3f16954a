#include "cli/follow/live_page.h"

#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/system/file.h"
#include "base/thread.h"
#include "cli/follow/history_feed.h"
#include "cli/run_output.h"
#include "scheduler/job/job_links.h"
#include "scheduler/report/report.h"
#include "scheduler/serve/http_pages.h"
#include "scheduler/transport/grpc/address.h"

#define LIVE_TOKEN_BYTES 4096
#define LIVE_TOKEN_LEAST 16
#define LIVE_BOX_LIMIT 4000 // drawn before the first step, which waits for it
#define LIVE_ERROR_BYTES 512
#define LIVE_PULSE_SECONDS 1.0
#define LIVE_HTML "text/html; charset=utf-8"
#define LIVE_HTTP "http://"
#define LIVE_HTTPS "https://"

// What a training says while it is prepared. The browser asks again by itself.
static const char live_wait[] =
    "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"/>"
    "<meta http-equiv=\"refresh\" content=\"2\"/><title>penstock</title></head>"
    "<body><p role=\"status\">The training is being prepared.</p></body></html>\n";

typedef enum live_state { LIVE_PREPARED, LIVE_RUNNING, LIVE_LOST } live_state;

static const char *const live_state_names[] = {"prepared", "running", "lost"};

// How far it is.
typedef struct live_figures {
    live_state state;
    bool has_step;
    pen_step_report last;
    uint64_t step, step_count, step_kept;
    uint64_t steps_here, examples; // of this process, as
    double seconds;
    uint64_t lost, recoveries;
    pen_engine_pulse pulse;       // of the devices; its texts are the engine's
    double pulse_at;              // when it was taken
    char error[LIVE_ERROR_BYTES]; // of the last loss
} live_figures;

struct pen_live_page {
    const char *title;
    pen_arena *arena;
    const char *token;
    pen_http_pages *pages;
    const pen_engine *engine; // NULL: before the start
    pen_mutex lock;           // guards what follows
    const char *html;
    size_t html_length;
    pen_training_history *history;
    live_figures figures;
};

// ---- for the one who asks

// What is not known before the first step is left out.
static void live_write_figures(const live_figures *figures, pen_json_writer *json) {
    const pen_step_report *last = &figures->last;
    pen_json_key_object(json, "live");
    pen_json_key_text(json, "state", live_state_names[figures->state]);
    pen_json_key_unsigned(json, "step", figures->step);
    pen_json_key_unsigned(json, "steps", figures->step_count);
    if (figures->has_step) {
        pen_json_key_unsigned(json, "epoch", last->epoch);
        pen_json_key_number(json, "loss", last->loss);
        if (last->target_count > 0) {
            pen_json_key_number(json, "accuracy",
                                (double)last->correct_count / (double)last->target_count);
        }
        pen_json_key_number(json, "learning_rate", last->learning_rate);
    }
    if (figures->seconds > 0) {
        const uint64_t left = figures->step_count - figures->step;
        pen_json_key_number(json, "examples_per_second",
                            (double)figures->examples / figures->seconds);
        pen_json_key_number(json, "left_seconds",
                            figures->seconds / (double)figures->steps_here * (double)left);
    }
    if (figures->pulse.bubble >= 0) pen_json_key_number(json, "bubble", figures->pulse.bubble);
    if (figures->pulse.has_slowest) {
        pen_json_key_unsigned(json, "slowest_stage", figures->pulse.slowest_stage);
        pen_json_key_text(json, "slowest_device", figures->pulse.slowest_device);
    }
    pen_json_key_number(json, "seconds", figures->seconds);
    pen_json_key_unsigned(json, "step_kept", figures->step_kept);
    pen_json_key_unsigned(json, "lost", figures->lost);
    pen_json_key_unsigned(json, "recoveries", figures->recoveries);
    if (figures->state == LIVE_LOST) pen_json_key_text(json, "error", figures->error);
    pen_json_end_object(json);
}

// What the training changes meanwhile is copied first, so that no step waits for a text.
static pen_status live_write_data(pen_live_page *page, pen_arena *arena, const char **out_text) {
    pen_training_history *history = NULL;
    pen_status status = PEN_OK;
    pen_text text;
    pen_json_writer json;
    pen_mutex_lock(&page->lock);
    const live_figures figures = page->figures;
    if (page->history != NULL) status = pen_training_history_copy(page->history, arena, &history);
    pen_mutex_unlock(&page->lock);
    PEN_TRY(status);
    pen_text_init(&text, arena);
    pen_json_init_text(&json, &text, 0);
    pen_json_begin_object(&json);
    live_write_figures(&figures, &json);
    pen_training_history_write(history, &json);
    pen_json_end_object(&json);
    PEN_TRY(pen_json_finish(&json));
    return pen_text_finish(&text, out_text);
}

// By libmicrohttpd's thread: what stays is the page, which is made once.
static pen_status live_find(void *context, const char *path, pen_arena *arena,
                            pen_http_page *out_page) {
    pen_live_page *page = context;
    if (strcmp(path, "/") == 0) {
        pen_mutex_lock(&page->lock);
        const bool is_there = page->html != NULL;
        *out_page = (pen_http_page){.type = LIVE_HTML,
                                    .bytes = is_there ? page->html : live_wait,
                                    .length = is_there ? page->html_length : strlen(live_wait),
                                    .stays = true};
        pen_mutex_unlock(&page->lock);
        return PEN_OK;
    }
    if (strcmp(path, "/data") == 0) {
        out_page->type = "application/json";
        PEN_TRY(live_write_data(page, arena, &out_page->bytes));
        out_page->length = strlen(out_page->bytes);
        return PEN_OK;
    }
    if (strcmp(path, "/favicon.ico") == 0) { // browsers ask, and complain where there is nothing
        *out_page = (pen_http_page){.type = "image/x-icon", .bytes = "", .stays = true};
        return PEN_OK;
    }
    return pen_error(PEN_NOT_FOUND, "no such page");
}

// ---- life

// The first line of the file.
static pen_status live_read_token(pen_live_page *page, const char *path) {
    const char *text;
    size_t length;
    if (path == NULL) return PEN_OK;
    PEN_TRY(pen_file_read(path, LIVE_TOKEN_BYTES, page->arena, &text, &length));
    length = strcspn(text, "\r\n");
    if (length < LIVE_TOKEN_LEAST) {
        return pen_error(PEN_INVALID_INPUT,
                         "--live-token: found a first line of %zu bytes in '%s', expected %d at "
                         "least",
                         length, path, LIVE_TOKEN_LEAST);
    }
    return pen_arena_copy_text(page->arena, text, length, &page->token);
}

// What the address says before host and port, if it says anything.
static const char *live_skip_scheme(const char *address, bool *out_is_https) {
    *out_is_https = strncmp(address, LIVE_HTTPS, strlen(LIVE_HTTPS)) == 0;
    if (*out_is_https) return address + strlen(LIVE_HTTPS);
    const bool says_http = strncmp(address, LIVE_HTTP, strlen(LIVE_HTTP)) == 0;
    return says_http ? address + strlen(LIVE_HTTP) : address;
}

// The note has the host that was asked for, and the port that was taken.
static pen_status live_listen(pen_live_page *page, const pen_live_page_options *asked) {
    const pen_transport_tls tls = pen_job_transport_tls(asked->job);
    bool is_https;
    const char *address = live_skip_scheme(asked->address, &is_https);
    pen_address read;
    uint16_t port;
    if (is_https && tls.cert == NULL) {
        return pen_error(PEN_INVALID_INPUT, "--live %s needs tls: {ca, cert, key} in the job",
                         asked->address);
    }
    PEN_TRY(pen_arena_create(&page->arena));
    PEN_TRY(live_read_token(page, asked->token_file));
    const pen_http_pages_options options = {.address = address,
                                            .token = page->token,
                                            .tls = is_https ? &tls : NULL,
                                            .context = page,
                                            .find = live_find};
    PEN_TRY(pen_status_add_context(pen_address_read(address, &read), "for --live"));
    if (page->token == NULL && !pen_address_is_loopback(&read)) {
        return pen_error(PEN_INVALID_INPUT,
                         "--live %s can be reached from other machines: give --live-token FILE, or "
                         "let ssh forward a port of 127.0.0.1",
                         address);
    }
    PEN_TRY(
        pen_status_add_context(pen_http_pages_create(&options, &page->pages, &port), "for --live"));
    const size_t host_length = (size_t)(strrchr(address, ':') - address);
    pen_log(PEN_LOG_NOTE, "the page is at %s%.*s:%u/", is_https ? LIVE_HTTPS : LIVE_HTTP,
            (int)host_length, address, port);
    return PEN_OK;
}

pen_status pen_live_page_open(const pen_live_page_options *options, pen_live_page **out_page) {
    if (options->address == NULL) {
        if (options->token_file == NULL) return PEN_OK;
        return pen_error(PEN_INVALID_INPUT, "--live-token: found no page that it is for, expected "
                                            "--live HOST:PORT");
    }
    pen_live_page *page = pen_memory_allocate(1, sizeof *page);
    if (page == NULL) return pen_error_out_of_memory();
    page->title = options->title;
    pen_mutex_init(&page->lock);
    const pen_status status = live_listen(page, options);
    if (status != PEN_OK) {
        pen_live_page_close(page);
        return status;
    }
    *out_page = page;
    return PEN_OK;
}

void pen_live_page_close(pen_live_page *page) {
    if (page == NULL) return;
    pen_http_pages_destroy(page->pages);
    pen_mutex_deinit(&page->lock);
    pen_arena_destroy(page->arena);
    pen_memory_free(page);
}

// ---- what it is told

static pen_status live_draw(pen_live_page *page, pen_trainer *trainer,
                            pen_training_history **out_history, const char **out_html) {
    const pen_run_picture picture = {.title = page->title, .box_limit = LIVE_BOX_LIMIT};
    pen_report report;
    PEN_TRY(pen_run_history_new(pen_trainer_program(trainer), page->arena, out_history));
    PEN_TRY(pen_run_picture_draw(pen_trainer_engine(trainer), &picture, page->arena, &report));
    report.is_live = true;
    return pen_report_html(&report, page->arena, out_html);
}

// It is drawn before the lock is taken: who asks meanwhile is told that it is prepared.
void pen_live_page_start(pen_live_page *page, pen_trainer *trainer) {
    pen_training_history *history = NULL;
    const char *html = NULL;
    if (page == NULL) return;
    const pen_status status = live_draw(page, trainer, &history, &html);
    if (status != PEN_OK) {
        pen_log(PEN_LOG_WARNING, "--live: there is no page: %s", pen_status_message(status));
        pen_status_ignore(status, "the training goes on without");
    }
    page->engine = pen_trainer_engine(trainer);
    pen_mutex_lock(&page->lock);
    page->figures.pulse.bubble = -1;
    page->history = history;
    page->html = status == PEN_OK ? html : NULL;
    page->html_length = page->html == NULL ? 0 : strlen(html);
    page->figures.state = LIVE_RUNNING;
    page->figures.step = page->figures.step_kept = pen_trainer_step_kept(trainer);
    page->figures.step_count = pen_trainer_get_size(trainer).step_count;
    pen_mutex_unlock(&page->lock);
}

// Of the devices it asks as often as anybody looks, or the line of progress does.
static void live_take_pulse(pen_live_page *page) {
    live_figures *figures = &page->figures;
    const double now = pen_clock_seconds();
    if (page->engine->kind->pulse == NULL || now < figures->pulse_at + LIVE_PULSE_SECONDS) return;
    figures->pulse_at = now;
    figures->pulse = (pen_engine_pulse){.bubble = -1};
    page->engine->kind->pulse(page->engine, &figures->pulse);
}

void pen_live_page_step(pen_live_page *page, const pen_program *program,
                        const pen_step_report *report) {
    if (page == NULL) return;
    pen_mutex_lock(&page->lock);
    live_figures *figures = &page->figures;
    live_take_pulse(page);
    figures->last = *report;
    figures->has_step = true;
    figures->step = report->step;
    figures->steps_here += 1;
    figures->examples += report->example_count;
    figures->seconds += report->seconds + report->wait_seconds;
    pen_history_feed_step(page->history, program, report);
    pen_mutex_unlock(&page->lock);
}

void pen_live_page_evaluation(pen_live_page *page, uint64_t step, const pen_step_report *report,
                              const pen_trainer *trainer) {
    if (page == NULL) return;
    pen_mutex_lock(&page->lock);
    pen_history_feed_evaluation(page->history, step, report, trainer);
    pen_mutex_unlock(&page->lock);
}

void pen_live_page_checkpoint(pen_live_page *page, uint64_t step) {
    if (page == NULL) return;
    pen_mutex_lock(&page->lock);
    page->figures.step_kept = step;
    pen_mutex_unlock(&page->lock);
}

void pen_live_page_lost(pen_live_page *page, const char *text) {
    if (page == NULL) return;
    pen_mutex_lock(&page->lock);
    page->figures.state = LIVE_LOST;
    page->figures.lost += 1;
    snprintf(page->figures.error, sizeof page->figures.error, "%s", text);
    pen_mutex_unlock(&page->lock);
}

void pen_live_page_recovered(pen_live_page *page) {
    if (page == NULL) return;
    pen_mutex_lock(&page->lock);
    page->figures.state = LIVE_RUNNING;
    page->figures.recoveries += 1;
    pen_mutex_unlock(&page->lock);
}
