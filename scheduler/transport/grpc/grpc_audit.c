#include "scheduler/transport/grpc/grpc_audit.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/format/json_writer.h"
#include "base/text.h"
#include "scheduler/transport/grpc/grpc_tls.h"
#include "scheduler/transport/grpc/peer_certificate.h"

typedef struct audit_line {
    pen_arena *arena;
    pen_text text;
    pen_json_writer json;
} audit_line;

// "2026-11-28T08:47:18.125Z"
static void audit_format_time(char out_text[40]) {
    struct timespec now;
    struct tm parts;
    char seconds[24];
    (void)clock_gettime(CLOCK_REALTIME, &now);
    (void)gmtime_r(&now.tv_sec, &parts);
    if (strftime(seconds, sizeof seconds, "%Y-%m-%dT%H:%M:%S", &parts) == 0) seconds[0] = '\0';
    snprintf(out_text, 40, "%s.%03dZ", seconds, (int)(now.tv_nsec / 1000000));
}

// Lines that a full disk did not take are told of by the next one.
static pen_status audit_begin(audit_line *line, pen_rotating_log *log, const char *result) {
    char time[40];
    PEN_TRY(pen_arena_create(&line->arena));
    const uint64_t lost_count = pen_rotating_log_lost(log);
    audit_format_time(time);
    pen_text_init(&line->text, line->arena);
    pen_json_init_text(&line->json, &line->text, 0);
    pen_json_begin_object(&line->json);
    pen_json_key_text(&line->json, "schema", PEN_GRPC_AUDIT_SCHEMA);
    pen_json_key_text(&line->json, "time", time);
    pen_json_key_text(&line->json, "result", result);
    if (lost_count > 0) pen_json_key_unsigned(&line->json, "lost_before", lost_count);
    return PEN_OK;
}

static void audit_end(audit_line *line, pen_rotating_log *log) {
    const char *text;
    pen_json_end_object(&line->json);
    pen_text_add(&line->text, "\n");
    const pen_status status = pen_text_finish(&line->text, &text);
    if (status == PEN_OK) pen_rotating_log_add(log, text, strlen(text));
    pen_status_ignore(status, "without memory there are other worries");
    pen_arena_destroy(line->arena);
}

static void audit_add_certificate(audit_line *line, grpc_call *call, const char *names) {
    pen_peer_certificate about;
    const char *pem = NULL;
    pen_json_key_object(&line->json, "certificate");
    pen_json_key_text(&line->json, "names", names);
    const pen_status status = pen_grpc_tls_chain(call, line->arena, &pem);
    if (status == PEN_OK && pen_peer_certificate_describe(pem, &about)) {
        pen_json_key_text(&line->json, "serial", about.serial);
        pen_json_key_text(&line->json, "sha256", about.fingerprint);
    }
    pen_status_ignore(status, "its names are there");
    pen_json_end_object(&line->json);
}

// Words of others are cleaned; JSON escapes the rest.
static void audit_add_text(audit_line *line, const char *key, const char *text) {
    char clean[1024];
    snprintf(clean, sizeof clean, "%s", text);
    (void)pen_text_clean(clean, false);
    pen_json_key_text(&line->json, key, clean);
}

void pen_grpc_audit_add(pen_rotating_log *log, const pen_grpc_audit *link, pen_status status) {
    const pen_introduction *who = link->who;
    audit_line line;
    char role[32] = "coordinator";
    if (log == NULL) return;
    const char *result = status != PEN_OK ? "refused" : link->is_resumed ? "resumed" : "taken";
    const pen_status begun = audit_begin(&line, log, result);
    pen_status_ignore(begun, "without memory there are other worries");
    if (begun != PEN_OK) return;
    if (who->peer != 0) snprintf(role, sizeof role, "worker %u", who->peer);
    pen_json_key_text(&line.json, "who", role);
    pen_json_key_text(&line.json, "address", link->address);
    if (who->certificate != NULL) audit_add_certificate(&line, link->call, who->certificate);
    audit_add_text(&line, "job", who->job == NULL ? "" : who->job);
    pen_json_key_unsigned(&line.json, "generation", who->generation);
    if (status != PEN_OK) audit_add_text(&line, "reason", pen_status_message(status));
    audit_end(&line, log);
}

void pen_grpc_audit_add_stranger(pen_rotating_log *log, const char *address, const char *reason,
                                 uint64_t count) {
    audit_line line;
    if (log == NULL) return;
    const pen_status begun = audit_begin(&line, log, "refused");
    pen_status_ignore(begun, "without memory there are other worries");
    if (begun != PEN_OK) return;
    audit_add_text(&line, "address", address);
    audit_add_text(&line, "reason", reason);
    pen_json_key_unsigned(&line.json, "count", count);
    audit_end(&line, log);
}
