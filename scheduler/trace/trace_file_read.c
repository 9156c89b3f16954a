#include <math.h>
#include <string.h>

#include "base/format/json_reader.h"
#include "base/system/file.h"
#include "scheduler/trace/trace_file.h"

typedef struct trace_reader {
    const char *name; // of the file
    pen_arena *arena;
    pen_trace *trace;
    pen_trace_worker *workers;
    pen_trace_event **events;
} trace_reader;

static pen_status reader_blame(const trace_reader *reader, const char *what, size_t index,
                               const char *key, const char *expected) {
    return pen_error(PEN_INVALID_INPUT, "%s: %s %zu: '%s' is not %s", reader->name, what, index,
                     key, expected);
}

// Where a number stands: what[index].key
typedef struct reader_place {
    const char *what;
    size_t index;
    const json_t *object;
} reader_place;

// An integer of 0 to `most`.
static pen_status reader_integer(const trace_reader *reader, const reader_place *place,
                                 const char *key, uint64_t most, uint64_t *out_number) {
    const json_t *value = json_object_get(place->object, key);
    if (!json_is_integer(value) || json_integer_value(value) < 0 ||
        (uint64_t)json_integer_value(value) > most) {
        char expected[48];
        snprintf(expected, sizeof expected, "an integer of 0 to %llu", (unsigned long long)most);
        return reader_blame(reader, place->what, place->index, key, expected);
    }
    *out_number = (uint64_t)json_integer_value(value);
    return PEN_OK;
}

// The same as 32 bits; without the key, *out_number stays as it is if it `may_lack`.
static pen_status reader_small(const trace_reader *reader, const reader_place *place,
                               const char *key, bool may_lack, uint32_t *out_number) {
    uint64_t number;
    if (may_lack && json_object_get(place->object, key) == NULL) return PEN_OK;
    PEN_TRY(reader_integer(reader, place, key, UINT32_MAX - 1, &number));
    *out_number = (uint32_t)number;
    return PEN_OK;
}

static pen_status reader_number(const trace_reader *reader, const reader_place *place,
                                const char *key, double *out_number) {
    const json_t *value = json_object_get(place->object, key);
    if (!json_is_number(value) || !isfinite(json_number_value(value))) {
        return reader_blame(reader, place->what, place->index, key, "a number");
    }
    *out_number = json_number_value(value);
    return PEN_OK;
}

static pen_status reader_text(const trace_reader *reader, const reader_place *place,
                              const char *key, const char **out_text) {
    const json_t *value = json_object_get(place->object, key);
    if (!json_is_string(value)) {
        return reader_blame(reader, place->what, place->index, key, "a text");
    }
    return pen_arena_copy_text(reader->arena, json_string_value(value), json_string_length(value),
                               out_text);
}

static pen_status reader_list(const trace_reader *reader, const json_t *object, const char *key,
                              size_t limit, const json_t **out_list) {
    const json_t *value = json_object_get(object, key);
    if (!json_is_array(value)) {
        return pen_error(PEN_INVALID_INPUT,
                         "%s: '%s' is not a list: expected a trace that penstock wrote",
                         reader->name, key);
    }
    if (json_array_size(value) > limit) {
        return pen_error(PEN_INVALID_INPUT, "%s: '%s' has %zu entries, at most %zu are possible",
                         reader->name, key, json_array_size(value), limit);
    }
    *out_list = value;
    return PEN_OK;
}

// ---- the tables

static pen_status reader_workers(trace_reader *reader, const json_t *tables) {
    const json_t *list = NULL;
    PEN_TRY(reader_list(reader, tables, "workers", PEN_TRACE_DEVICE_LIMIT, &list));
    reader->trace->worker_count = (uint32_t)json_array_size(list);
    PEN_TRY(PEN_NEW(reader->arena, reader->trace->worker_count, &reader->workers));
    reader->trace->workers = reader->workers;
    for (uint32_t w = 0; w < reader->trace->worker_count; w++) {
        const reader_place place = {"worker", w, json_array_get(list, w)};
        pen_trace_worker *worker = &reader->workers[w];
        PEN_TRY(reader_text(reader, &place, "name", &worker->name));
        PEN_TRY(reader_small(reader, &place, "process", false, &worker->process));
        PEN_TRY(reader_integer(reader, &place, "lost", INT64_MAX, &worker->lost_count));
    }
    return PEN_OK;
}

// A number that a trace of an earlier version does not have.
static pen_status reader_number_else(const trace_reader *reader, const reader_place *place,
                                     const char *key, double other, double *out_number) {
    *out_number = other;
    if (json_object_get(place->object, key) == NULL) return PEN_OK;
    return reader_number(reader, place, key, out_number);
}

// fixed_bytes is all or nothing: levels of memory need it for every device. So is slowness.
static pen_status reader_devices(trace_reader *reader, const json_t *tables) {
    const json_t *list = NULL;
    const char **names;
    uint32_t *workers;
    double *fixed, *slowness;
    PEN_TRY(reader_list(reader, tables, "devices", PEN_TRACE_DEVICE_LIMIT, &list));
    const uint32_t count = (uint32_t)json_array_size(list);
    PEN_TRY(PEN_NEW(reader->arena, count, &names));
    PEN_TRY(PEN_NEW(reader->arena, count, &workers));
    PEN_TRY(PEN_NEW(reader->arena, count, &fixed));
    PEN_TRY(PEN_NEW(reader->arena, count, &slowness));
    bool is_told = count > 0, is_planned = count > 0;
    for (uint32_t d = 0; d < count; d++) {
        const reader_place place = {"device", d, json_array_get(list, d)};
        PEN_TRY(reader_text(reader, &place, "name", &names[d]));
        PEN_TRY(reader_small(reader, &place, "worker", false, &workers[d]));
        if (json_object_get(place.object, "fixed_bytes") == NULL) is_told = false;
        if (is_told) PEN_TRY(reader_number(reader, &place, "fixed_bytes", &fixed[d]));
        PEN_TRY(reader_number_else(reader, &place, "slowness", 0, &slowness[d]));
        is_planned = is_planned && slowness[d] > 0;
    }
    reader->trace->device_count = count;
    reader->trace->device_names = names;
    reader->trace->worker_of_device = workers;
    reader->trace->fixed_bytes = is_told ? fixed : NULL;
    reader->trace->planned_slowness = is_planned ? slowness : NULL;
    return PEN_OK;
}

// An end that is not said is the coordinator's host, which feeds inputs and takes losses.
static pen_status reader_channels(trace_reader *reader, const json_t *tables) {
    const json_t *list = NULL;
    pen_trace_channel *channels;
    PEN_TRY(reader_list(reader, tables, "channels", PEN_TRACE_CHANNEL_LIMIT, &list));
    const uint32_t count = (uint32_t)json_array_size(list);
    PEN_TRY(PEN_NEW(reader->arena, count, &channels));
    for (uint32_t c = 0; c < count; c++) {
        const reader_place place = {"channel", c, json_array_get(list, c)};
        channels[c].source_device = PEN_TRACE_HOST;
        channels[c].target_device = PEN_TRACE_HOST;
        channels[c].together = c;
        PEN_TRY(reader_text(reader, &place, "value", &channels[c].value));
        PEN_TRY(reader_small(reader, &place, "from", true, &channels[c].source_device));
        PEN_TRY(reader_small(reader, &place, "to", true, &channels[c].target_device));
        PEN_TRY(reader_small(reader, &place, "with", true, &channels[c].together));
        PEN_TRY(reader_integer(reader, &place, "bytes", INT64_MAX, &channels[c].bytes));
        PEN_TRY(reader_number_else(reader, &place, "planned_seconds", -1,
                                   &channels[c].planned_seconds));
        PEN_TRY(
            reader_number_else(reader, &place, "planned_latency", 0, &channels[c].planned_latency));
        channels[c].is_backward = json_is_true(json_object_get(place.object, "backward"));
        channels[c].is_per_step = json_is_true(json_object_get(place.object, "once_a_step"));
    }
    reader->trace->channel_count = count;
    reader->trace->channels = channels;
    return PEN_OK;
}

// Seconds that were planned are left out by earlier versions.
static pen_status reader_stages(trace_reader *reader, const json_t *tables) {
    const json_t *list = NULL;
    pen_trace_stage *stages;
    PEN_TRY(reader_list(reader, tables, "stages", PEN_TRACE_STAGE_LIMIT, &list));
    const uint32_t count = (uint32_t)json_array_size(list);
    PEN_TRY(PEN_NEW(reader->arena, count, &stages));
    for (uint32_t s = 0; s < count; s++) {
        const reader_place place = {"stage", s, json_array_get(list, s)};
        PEN_TRY(reader_small(reader, &place, "device", false, &stages[s].device));
        PEN_TRY(reader_number(reader, &place, "activation_bytes", &stages[s].activation_bytes));
        PEN_TRY(reader_number(reader, &place, "halved_bytes", &stages[s].halved_bytes));
        PEN_TRY(
            reader_number_else(reader, &place, "forward_seconds", 0, &stages[s].forward_seconds));
        PEN_TRY(reader_number_else(reader, &place, "backward_input_seconds", 0,
                                   &stages[s].backward_input_seconds));
        PEN_TRY(reader_number_else(reader, &place, "backward_weight_seconds", 0,
                                   &stages[s].backward_weight_seconds));
        PEN_TRY(reader_number_else(reader, &place, "update_seconds", 0, &stages[s].update_seconds));
    }
    reader->trace->stage_count = count;
    reader->trace->stages = stages;
    return PEN_OK;
}

// ---- the events

static bool reader_find_kind(const char *name, pen_trace_kind *out_kind) {
    for (int kind = 0; kind < PEN_TRACE_KIND_COUNT; kind++) {
        if (strcmp(name, pen_trace_kind_name((pen_trace_kind)kind)) != 0) continue;
        *out_kind = (pen_trace_kind)kind;
        return true;
    }
    return false;
}

static bool reader_find_task(const char *name, pen_task_kind *out_kind) {
    for (int kind = 0; kind < PEN_TASK_KIND_COUNT; kind++) {
        if (strcmp(name, pen_task_kind_name((pen_task_kind)kind)) != 0) continue;
        *out_kind = (pen_task_kind)kind;
        return true;
    }
    return false;
}

static pen_status reader_task(const trace_reader *reader, const reader_place *arguments,
                              pen_task *out_task) {
    const char *name = json_string_value(json_object_get(arguments->object, "task"));
    if (name == NULL || !reader_find_task(name, &out_task->kind)) {
        return reader_blame(reader, arguments->what, arguments->index, "task", "a kind of task");
    }
    PEN_TRY(reader_small(reader, arguments, "stage", false, &out_task->stage));
    return reader_small(reader, arguments, "microbatch", false, &out_task->microbatch);
}

// Of "X" events alone: the others follow from them.
static pen_status reader_event(trace_reader *reader, const reader_place *place) {
    const char *category = json_string_value(json_object_get(place->object, "cat"));
    const reader_place arguments = {place->what, place->index,
                                    json_object_get(place->object, "args")};
    pen_trace_event event = {.device = PEN_TRACE_HOST, .channel = PEN_TRACE_NO_CHANNEL};
    double at, duration;
    uint64_t worker;
    if (category == NULL || !reader_find_kind(category, &event.kind)) {
        return reader_blame(reader, place->what, place->index, "cat", "a kind of event");
    }
    PEN_TRY(reader_integer(reader, place, "pid", reader->trace->worker_count, &worker));
    if (worker == 0) return reader_blame(reader, place->what, place->index, "pid", "a worker");
    PEN_TRY(reader_number(reader, place, "ts", &at));
    PEN_TRY(reader_number(reader, place, "dur", &duration));
    event.start_seconds = at / 1e6;
    event.end_seconds = (at + duration) / 1e6;
    PEN_TRY(reader_integer(reader, &arguments, "step", INT64_MAX, &event.step));
    PEN_TRY(reader_integer(reader, &arguments, "round", INT64_MAX, &event.round));
    PEN_TRY(reader_small(reader, &arguments, "device", true, &event.device));
    PEN_TRY(reader_small(reader, &arguments, "form", true, &event.form));
    PEN_TRY(reader_small(reader, &arguments, "channel", true, &event.channel));
    if (event.kind == PEN_TRACE_TASK || event.kind == PEN_TRACE_WAIT) {
        PEN_TRY(reader_task(reader, &arguments, &event.task));
    } else {
        PEN_TRY(reader_integer(reader, &arguments, "frame", INT64_MAX, &event.sequence));
        PEN_TRY(reader_integer(reader, &arguments, "bytes", INT64_MAX, &event.bytes));
    }
    pen_trace_worker *own = &reader->workers[worker - 1];
    reader->events[worker - 1][own->event_count++] = event;
    return PEN_OK;
}

static bool reader_is_span(const json_t *event) {
    const char *phase = json_string_value(json_object_get(event, "ph"));
    return phase != NULL && strcmp(phase, "X") == 0;
}

// Two passes: counts for each worker, then the events. Other programs may have added events of
// their own, which are passed over.
static pen_status reader_events(trace_reader *reader, const json_t *root) {
    const json_t *list = NULL;
    uint32_t *counts;
    PEN_TRY(reader_list(reader, root, "traceEvents", 4 * (size_t)PEN_TRACE_EVENT_LIMIT, &list));
    const size_t count = json_array_size(list);
    PEN_TRY(PEN_NEW(reader->arena, reader->trace->worker_count, &counts));
    PEN_TRY(PEN_NEW(reader->arena, reader->trace->worker_count, &reader->events));
    for (size_t i = 0; i < count; i++) {
        const json_t *event = json_array_get(list, i);
        const json_t *pid = json_object_get(event, "pid");
        if (!reader_is_span(event) || !json_is_integer(pid)) continue;
        const json_int_t worker = json_integer_value(pid);
        if (worker >= 1 && worker <= (json_int_t)reader->trace->worker_count) {
            counts[worker - 1] += 1;
        }
    }
    for (uint32_t w = 0; w < reader->trace->worker_count; w++) {
        PEN_TRY(PEN_NEW(reader->arena, counts[w], &reader->events[w]));
        reader->workers[w].events = reader->events[w];
    }
    for (size_t i = 0; i < count; i++) {
        const reader_place place = {"event", i, json_array_get(list, i)};
        if (reader_is_span(place.object)) PEN_TRY(reader_event(reader, &place));
    }
    return PEN_OK;
}

// ---- the file

static pen_status reader_root(trace_reader *reader, const json_t *root) {
    const json_t *tables = json_object_get(root, "penstock");
    const char *schema = json_string_value(json_object_get(tables, "schema"));
    if (schema == NULL || strcmp(schema, "penstock/trace/1") != 0) {
        return pen_error(PEN_INVALID_INPUT,
                         "%s: no trace of penstock's (\"penstock\": {\"schema\": "
                         "\"penstock/trace/1\", ...} is missing)",
                         reader->name);
    }
    PEN_TRY(PEN_NEW(reader->arena, 1, &reader->trace));
    PEN_TRY(reader_workers(reader, tables));
    PEN_TRY(reader_devices(reader, tables));
    PEN_TRY(reader_channels(reader, tables));
    PEN_TRY(reader_stages(reader, tables));
    PEN_TRY(reader_events(reader, root));
    return pen_status_add_context(pen_trace_check(reader->trace), "in %s", reader->name);
}

pen_status pen_trace_file_parse(const char *name, const char *bytes, size_t length,
                                pen_arena *arena, const pen_trace **out_trace) {
    json_t *root = NULL;
    trace_reader reader = {.name = name, .arena = arena};
    if (length > PEN_TRACE_FILE_BYTES_LIMIT) {
        return pen_error(PEN_INVALID_INPUT, "%s: %zu bytes, at most %u are possible", name, length,
                         PEN_TRACE_FILE_BYTES_LIMIT);
    }
    PEN_TRY(pen_json_load(name, bytes, length, PEN_INVALID_INPUT, &root));
    const pen_status status = reader_root(&reader, root);
    if (status == PEN_OK) *out_trace = reader.trace;
    json_decref(root);
    return status;
}

pen_status pen_trace_file_read(const char *path, pen_arena *arena, const pen_trace **out_trace) {
    pen_mapping mapping;
    PEN_TRY(pen_mapping_open(path, &mapping));
    const pen_status status =
        pen_trace_file_parse(path, (const char *)mapping.bytes, mapping.length, arena, out_trace);
    pen_mapping_close(&mapping);
    return status;
}
