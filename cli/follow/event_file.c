#include "cli/follow/event_file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/checksum.h"
#include "base/format/protobuf_writer.h"
#include "base/log.h"
#include "base/system/file.h"

#define EVENT_PREFIX "events.out.tfevents."
#define EVENT_MODE 0666     // less the umask
#define EVENT_HEAD_BYTES 12 // length, and its checksum
#define EVENT_FOOT_BYTES 4  // the checksum of the event
#define EVENT_TAG_BYTES 200 // longer names of losses are cut
#define EVENT_VALUE_LIMIT (4 + PEN_LOSSES_LIMIT + PEN_METRIC_COUNT)
#define EVENT_BYTES (100 + EVENT_VALUE_LIMIT * (EVENT_TAG_BYTES + 16))
#define EVENT_SESSION_START 1 // SessionLog.START

// ---- an event

typedef struct event_value {
    char tag[EVENT_TAG_BYTES];
    float value;
} event_value;

typedef struct event_record {
    double time; // seconds since 1970
    uint64_t step;
    const char *version; // of the first alone; else NULL
    bool is_start;
    uint32_t value_count;
    event_value values[EVENT_VALUE_LIMIT];
} event_record;

static void event_begin(event_record *event, uint64_t step) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    event->time = (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
    event->step = step;
    event->version = NULL;
    event->is_start = false;
    event->value_count = 0;
}

static void event_add(event_record *event, const char *group, const char *name, double number) {
    event_value *value = &event->values[event->value_count++];
    snprintf(value->tag, sizeof value->tag, "%s%s", group, name);
    value->value = (float)number;
}

// What a loss of a step and of an evaluation have in common; `prefix` is "" or "evaluation/".
static void event_add_losses(event_record *event, const char *prefix, double loss,
                             const double *terms, const pen_program *program) {
    char group[32];
    event_add(event, prefix, "loss", loss);
    snprintf(group, sizeof group, "%slosses/", prefix);
    for (uint32_t i = 0; i < program->term_count; i++) {
        event_add(event, group, program->losses[i].name, terms[i]);
    }
}

static void event_write_value(pen_protobuf_writer *writer, const void *context) {
    const event_value *value = context;
    pen_protobuf_write_text(writer, 1, value->tag);    // Value.tag
    pen_protobuf_write_float(writer, 2, value->value); // Value.simple_value
}

static void event_write_summary(pen_protobuf_writer *writer, const void *context) {
    const event_record *event = context;
    for (uint32_t i = 0; i < event->value_count; i++) { // Summary.value
        pen_protobuf_write_message(writer, 1, event_write_value, &event->values[i]);
    }
}

static void event_write_session(pen_protobuf_writer *writer, const void *context) {
    (void)context;
    pen_protobuf_write_int(writer, 1, EVENT_SESSION_START); // SessionLog.status
}

static void event_write(pen_protobuf_writer *writer, const event_record *event) {
    uint64_t time;
    memcpy(&time, &event->time, sizeof time);
    pen_protobuf_write_fixed(writer, 1, time, sizeof time);  // Event.wall_time
    pen_protobuf_write_int(writer, 2, (int64_t)event->step); // Event.step
    if (event->version != NULL) pen_protobuf_write_text(writer, 3, event->version);
    if (event->value_count > 0) pen_protobuf_write_message(writer, 5, event_write_summary, event);
    if (event->is_start) pen_protobuf_write_message(writer, 7, event_write_session, NULL);
}

// ---- a record

static void record_put_checksum(uint8_t *at, const uint8_t *bytes, uint64_t count) {
    const uint32_t checksum = pen_checksum(bytes, count);
    const uint32_t masked = (checksum >> 15 | checksum << 17) + 0xa282ead8U;
    for (uint32_t i = 0; i < 4; i++) {
        at[i] = (uint8_t)(masked >> 8 * i);
    }
}

// Whole, or not at all. A file whose name is gone takes bytes that nobody will read.
static bool record_append(pen_event_file *events, const uint8_t *bytes, size_t count) {
    struct stat about;
    if (fstat(events->file, &about) == 0 && about.st_nlink == 0) {
        errno = ENOENT;
        return false;
    }
    size_t done = 0;
    while (done < count) {
        const ssize_t part =
            pwrite(events->file, bytes + done, count - done, (off_t)(events->length + done));
        if (part < 0 && errno == EINTR) continue;
        if (part <= 0) break;
        done += (size_t)part;
    }
    if (done == count) {
        events->length += count;
        return true;
    }
    const int error_number = errno;
    const bool is_cut = done == 0 || ftruncate(events->file, (off_t)events->length) == 0;
    errno = is_cut ? error_number : EIO;
    return false;
}

static void record_write(pen_event_file *events, const event_record *event) {
    uint8_t bytes[EVENT_HEAD_BYTES + EVENT_BYTES + EVENT_FOOT_BYTES];
    pen_protobuf_writer writer;
    pen_protobuf_writer_init_bytes(&writer, bytes + EVENT_HEAD_BYTES, EVENT_BYTES);
    event_write(&writer, event);
    const uint64_t length = writer.length;
    for (uint32_t i = 0; i < 8; i++) {
        bytes[i] = (uint8_t)(length >> 8 * i);
    }
    record_put_checksum(bytes + 8, bytes, 8);
    record_put_checksum(bytes + EVENT_HEAD_BYTES + length, bytes + EVENT_HEAD_BYTES, length);
    if (record_append(events, bytes, EVENT_HEAD_BYTES + length + EVENT_FOOT_BYTES)) return;
    if (events->is_warned) return;
    pen_log(PEN_LOG_WARNING, "--tensorboard: cannot write '%s': %s; the training goes on without",
            events->path, strerror(errno));
    events->is_warned = true;
}

// ---- the file

// TensorBoard reads the files of a folder in the order of their names, which begin with seconds: a
// number above all that are there, though the last file may be of this second or the clock wrong.
static uint64_t event_file_number(const char *folder) {
    const size_t prefix = strlen(EVENT_PREFIX);
    uint64_t number = (uint64_t)time(NULL);
    DIR *open_folder = opendir(folder);
    if (open_folder == NULL) return number;
    for (const struct dirent *entry = readdir(open_folder); entry != NULL;
         entry = readdir(open_folder)) {
        if (strncmp(entry->d_name, EVENT_PREFIX, prefix) != 0) continue;
        const uint64_t other = strtoull(entry->d_name + prefix, NULL, 10);
        if (other >= number && other < 9999999999) number = other + 1;
    }
    closedir(open_folder);
    return number;
}

pen_status pen_event_file_open(const char *folder, pen_arena *arena, pen_event_file *out_events) {
    char host[65] = "";
    *out_events = (pen_event_file){0};
    if (folder == NULL) return PEN_OK;
    PEN_TRY(pen_folder_create(folder, arena));
    if (gethostname(host, sizeof host - 1) != 0) snprintf(host, sizeof host, "localhost");
    const char *path;
    PEN_TRY(pen_arena_format(arena, &path, "%s/" EVENT_PREFIX "%010llu.%s.%ld", folder,
                             (unsigned long long)event_file_number(folder), host, (long)getpid()));
    const int file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, EVENT_MODE);
    if (file < 0) return pen_error(PEN_IO, "cannot write '%s': %s", path, strerror(errno));
    *out_events = (pen_event_file){.path = path, .file = file};
    return PEN_OK;
}

void pen_event_file_close(pen_event_file *events) {
    if (events->path != NULL) close(events->file);
    *events = (pen_event_file){0};
}

void pen_event_file_start(pen_event_file *events, uint64_t step_kept) {
    event_record event;
    if (events->path == NULL) return;
    event_begin(&event, 0);
    event.version = "brain.Event:2";
    record_write(events, &event);
    event_begin(&event, step_kept == 0 ? 0 : step_kept + 1);
    event.is_start = true;
    record_write(events, &event);
}

// What is of this step alone stands without a group, as TensorBoard draws it first.
void pen_event_file_step(pen_event_file *events, const pen_step_report *report,
                         const pen_program *program) {
    event_record event;
    if (events->path == NULL) return;
    event_begin(&event, report->step);
    event_add_losses(&event, "", report->loss, report->terms, program);
    if (report->target_count > 0) {
        event_add(&event, "", "accuracy",
                  (double)report->correct_count / (double)report->target_count);
    }
    for (pen_metric metric = 0; metric < PEN_METRIC_COUNT; metric++) {
        if (!pen_metric_is_in(metric, report->metrics)) continue;
        event_add(&event, "", pen_metric_names[metric], report->metric_values[metric]);
    }
    event_add(&event, "", "learning_rate", report->learning_rate);
    const double seconds = report->seconds + report->wait_seconds;
    if (seconds > 0) {
        event_add(&event, "", "examples_per_second", (double)report->example_count / seconds);
    }
    record_write(events, &event);
}

void pen_event_file_evaluation(pen_event_file *events, uint64_t step,
                               const pen_evaluation *evaluation, const pen_program *program) {
    event_record event;
    if (events->path == NULL) return;
    event_begin(&event, step);
    event_add_losses(&event, "evaluation/", evaluation->loss, evaluation->terms, program);
    if (evaluation->target_count > 0) {
        event_add(&event, "evaluation/", "accuracy",
                  pen_evaluation_value(evaluation, PEN_METRIC_ACCURACY));
    }
    for (pen_metric metric = 0; metric < PEN_METRIC_COUNT; metric++) {
        if (!pen_metric_is_in(metric, evaluation->metrics)) continue;
        event_add(&event, "evaluation/", pen_metric_names[metric],
                  pen_evaluation_value(evaluation, metric));
    }
    record_write(events, &event);
}
