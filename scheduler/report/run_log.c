#include "scheduler/report/run_log.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/format/json_reader.h"
#include "base/memory.h"
#include "base/system/file.h"

#define LOG_BYTES_LIMIT ((size_t)4 << 30)
#define LOG_LATE_SHARE 10 // the last of so many parts of the steps

typedef struct log_step {
    double loss, accuracy;
} log_step;

typedef struct log_reader {
    pen_run_log *log;
    log_step *steps; // [step_capacity], by their numbers from 1
    uint64_t step_capacity;
} log_reader;

static double log_number(const json_t *object, const char *key) {
    const json_t *value = json_object_get(object, key);
    return json_is_number(value) ? json_number_value(value) : NAN;
}

static uint64_t log_count(const json_t *object, const char *key) {
    const json_t *value = json_object_get(object, key);
    return json_is_integer(value) && json_integer_value(value) > 0
               ? (uint64_t)json_integer_value(value)
               : 0;
}

// Steps come in order; after one that was begun again from a checkpoint, what it had is replaced.
static void log_take_step(log_reader *reader, const json_t *line) {
    const uint64_t step = log_count(line, "step");
    const double seconds = log_number(line, "seconds");
    if (step == 0 || step > reader->step_capacity) return;
    reader->steps[step - 1] = (log_step){log_number(line, "loss"), log_number(line, "accuracy")};
    reader->log->step = step;
    reader->log->has_evaluation = false;
    if (isfinite(seconds)) reader->log->seconds += seconds;
}

static void log_take_end(pen_run_log *log, const json_t *line) {
    static const char *const names[] = {"", "done", "stopped", "failed"};
    const char *outcome = json_string_value(json_object_get(line, "outcome"));
    const char *hash = json_string_value(json_object_get(line, "parameters_hash"));
    const json_t *code = json_object_get(line, "exit_code");
    log->outcome = PEN_RUN_NONE;
    for (int i = PEN_RUN_DONE; outcome != NULL && i <= PEN_RUN_FAILED; i++) {
        if (strcmp(outcome, names[i]) == 0) log->outcome = (pen_run_outcome)i;
    }
    log->ended_early = json_is_true(json_object_get(line, "by_evaluation"));
    log->exit_code = json_is_integer(code) ? json_integer_value(code) : 0;
    snprintf(log->hash, sizeof log->hash, "%s", hash != NULL ? hash : "");
}

// What a line says of the run as a whole. Lines of events that nobody asks for are passed over.
static void log_take(log_reader *reader, const json_t *line) {
    pen_run_log *log = reader->log;
    const char *event = json_string_value(json_object_get(line, "event"));
    if (event == NULL) return;
    if (strcmp(event, "start") == 0) {
        log->outcome = PEN_RUN_NONE;
        log->step = log_count(line, "steps_kept");
        if (log->step > reader->step_capacity) log->step = 0;
        log->step_count = log_count(line, "job_steps");
        log->hash[0] = '\0';
    } else if (strcmp(event, "step") == 0) {
        log_take_step(reader, line);
    } else if (strcmp(event, "evaluation") == 0) {
        log->has_evaluation = true;
        for (pen_metric metric = 0; metric < PEN_METRIC_COUNT; metric++) {
            log->evaluation[metric] = log_number(line, pen_metric_names[metric]);
        }
    } else if (strcmp(event, "end") == 0) {
        log_take_end(log, line);
    }
}

// The means of the last tenth of the first `count` steps, at least of one. Steps without a loss,
// which were skipped, are left out.
static pen_run_means log_means(const log_reader *reader, uint64_t count) {
    const uint64_t late = count / LOG_LATE_SHARE + (count > 0 && count < LOG_LATE_SHARE);
    pen_run_means sum = {0, 0};
    if (count == 0 || count > reader->log->step) return (pen_run_means){NAN, NAN};
    uint64_t losses = 0;
    for (uint64_t i = count - late; i < count; i++) {
        sum.accuracy += reader->steps[i].accuracy;
        if (!isfinite(reader->steps[i].loss)) continue;
        sum.loss += reader->steps[i].loss;
        losses += 1;
    }
    return (pen_run_means){losses == 0 ? NAN : sum.loss / (double)losses,
                           sum.accuracy / (double)late};
}

// A line has a step at most, so there are no more steps than lines.
pen_status pen_run_log_parse(const char *bytes, size_t length, uint64_t rung,
                             pen_run_log *out_log) {
    log_reader reader = {.log = out_log, .step_capacity = 1};
    *out_log = (pen_run_log){0};
    for (size_t i = 0; i < length; i++)
        reader.step_capacity += bytes[i] == '\n';
    reader.steps = pen_memory_allocate(reader.step_capacity, sizeof *reader.steps);
    if (reader.steps == NULL) return pen_error_out_of_memory();
    for (uint64_t i = 0; i < reader.step_capacity; i++)
        reader.steps[i] = (log_step){NAN, NAN}; // steps of which the log has no line
    pen_status status = PEN_OK;
    for (size_t at = 0; at < length && status == PEN_OK;) {
        const char *end = memchr(bytes + at, '\n', length - at);
        if (end == NULL) break; // is still being written
        json_t *line = NULL;
        const size_t count = (size_t)(end - bytes) - at;
        status = pen_json_load("log", bytes + at, count, PEN_CORRUPT, &line);
        if (pen_status_get_code(status) == PEN_CORRUPT) {
            pen_status_ignore(status, "a line that was cut");
            status = PEN_OK;
        }
        if (line != NULL) log_take(&reader, line);
        json_decref(line);
        at += count + 1;
    }
    out_log->late = log_means(&reader, out_log->step);
    out_log->rung = log_means(&reader, rung);
    pen_memory_free(reader.steps);
    return status;
}

pen_status pen_run_log_read(const char *path, uint64_t rung, pen_run_log *out_log) {
    pen_arena *arena;
    const char *bytes;
    size_t length;
    if (access(path, F_OK) != 0) return pen_run_log_parse("", 0, rung, out_log);
    PEN_TRY(pen_arena_create(&arena));
    pen_status status = pen_file_read(path, LOG_BYTES_LIMIT, arena, &bytes, &length);
    if (status == PEN_OK) status = pen_run_log_parse(bytes, length, rung, out_log);
    pen_arena_destroy(arena);
    return status;
}
