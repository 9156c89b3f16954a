#include "scheduler/trace/trace_file.h"

#include <math.h>
#include <stdlib.h>

#include "base/format/json_writer.h"
#include "base/system/file.h"
#include "scheduler/trace/trace_levels.h"

// What a row shows.
typedef enum file_group {
    FILE_COMPUTE,
    FILE_SEND,
    FILE_RECEIVE,
} file_group;
#define FILE_GROUP_COUNT (FILE_RECEIVE + 1)
#define FILE_NO_ROW UINT32_MAX

// A row of the picture: events that do not overlap.
typedef struct file_row {
    uint32_t worker;
    uint32_t device;
    file_group group;
    uint32_t number; // among those of its device and group
    uint32_t next;   // of those
    double end;
} file_row;

// One line of the file.
typedef struct file_mark {
    double at; // microseconds
    char phase;
    uint32_t index; // X: an entry; s, f: an entry; C: a level
    uint64_t flow;
} file_mark;

typedef struct trace_file {
    const pen_trace *trace;
    pen_arena *arena;
    pen_json_writer json;
    const pen_trace_entry *entries;
    uint32_t entry_count;
    const pen_trace_level *levels;
    uint32_t level_count;
    file_row *rows;
    uint32_t row_count;
    uint32_t *first_row;    // [(device_count + worker_count) * FILE_GROUP_COUNT]
    uint32_t *row_of_entry; // [entry_count]
    file_mark *marks;
    size_t mark_count;
} trace_file;

// In sixteenths of a microsecond, so that few digits say it exactly.
static double file_time(double seconds) {
    return floor(seconds * 16e6) / 16;
}

static file_group file_group_of(pen_trace_kind kind) {
    switch (kind) {
    case PEN_TRACE_TASK:
    case PEN_TRACE_WAIT:
        return FILE_COMPUTE;
    case PEN_TRACE_SEND:
        return FILE_SEND;
    case PEN_TRACE_RECEIVE:
        return FILE_RECEIVE;
    }
    PEN_NEVER("a trace event of no kind");
}

// Puts each event into the first row of its device and group that is free when it starts.
static pen_status file_make_rows(trace_file *file) {
    const pen_trace *trace = file->trace;
    const size_t key_count = ((size_t)trace->device_count + trace->worker_count) * FILE_GROUP_COUNT;
    PEN_TRY(PEN_NEW(file->arena, key_count, &file->first_row));
    PEN_TRY(PEN_NEW(file->arena, file->entry_count, &file->row_of_entry));
    PEN_TRY(PEN_NEW(file->arena, file->entry_count, &file->rows));
    for (size_t k = 0; k < key_count; k++) {
        file->first_row[k] = FILE_NO_ROW;
    }
    for (uint32_t i = 0; i < file->entry_count; i++) {
        const pen_trace_event *event = &file->entries[i].event;
        const bool is_host = event->device == PEN_TRACE_HOST;
        const uint32_t worker =
            is_host ? file->entries[i].worker : trace->worker_of_device[event->device];
        const size_t owner = is_host ? (size_t)trace->device_count + worker : event->device;
        const file_group group = file_group_of(event->kind);
        uint32_t *link = &file->first_row[owner * FILE_GROUP_COUNT + (size_t)group];
        uint32_t number = 1;
        while (*link != FILE_NO_ROW && file->rows[*link].end > file_time(event->start_seconds)) {
            link = &file->rows[*link].next;
            number += 1;
        }
        if (*link == FILE_NO_ROW) {
            *link = file->row_count++;
            file->rows[*link] = (file_row){worker, event->device, group, number, FILE_NO_ROW, 0};
        }
        file->rows[*link].end = file_time(event->end_seconds);
        file->row_of_entry[i] = *link;
    }
    return PEN_OK;
}

// ---- arrows

static int file_compare_numbers(uint64_t a, uint64_t b) {
    return (a > b) - (a < b);
}

static int file_compare_frames(const pen_trace_event *a, const pen_trace_event *b) {
    if (a->form != b->form) return file_compare_numbers(a->form, b->form);
    if (a->channel != b->channel) return file_compare_numbers(a->channel, b->channel);
    if (a->round != b->round) return file_compare_numbers(a->round, b->round);
    return file_compare_numbers(a->sequence, b->sequence);
}

static int file_compare_entries(const void *left, const void *right) {
    const pen_trace_entry *a = *(const pen_trace_entry *const *)left;
    const pen_trace_entry *b = *(const pen_trace_entry *const *)right;
    const int frames = file_compare_frames(&a->event, &b->event);
    return frames != 0 ? frames : (a > b) - (a < b);
}

static int file_compare_key(const void *key, const void *element) {
    const pen_trace_entry *entry = *(const pen_trace_entry *const *)element;
    return file_compare_frames(key, &entry->event);
}

// An arrow from each send to its receive. A clock that is off can make a tensor arrive before it
// was sent: such arrows would point backwards, and are left out.
static pen_status file_make_arrows(trace_file *file) {
    const pen_trace_entry **sends;
    size_t send_count = 0;
    PEN_TRY(PEN_NEW(file->arena, file->entry_count, &sends));
    for (uint32_t i = 0; i < file->entry_count; i++) {
        if (file->entries[i].event.kind == PEN_TRACE_SEND) sends[send_count++] = &file->entries[i];
    }
    if (send_count == 0) return PEN_OK;
    qsort(sends, send_count, sizeof *sends, file_compare_entries);
    for (uint32_t i = 0; i < file->entry_count; i++) {
        const pen_trace_event *receive = &file->entries[i].event;
        if (receive->kind != PEN_TRACE_RECEIVE) continue;
        const pen_trace_entry *const *found =
            bsearch(receive, sends, send_count, sizeof *sends, file_compare_key);
        if (found == NULL) continue;
        const double start = file_time((*found)->event.start_seconds);
        const double end = file_time(receive->end_seconds);
        if (end < start) continue;
        const uint32_t from = (uint32_t)(*found - file->entries);
        file->marks[file->mark_count++] = (file_mark){start, 's', from, i};
        file->marks[file->mark_count++] = (file_mark){end, 'f', i, i};
    }
    return PEN_OK;
}

static int file_compare_marks(const void *left, const void *right) {
    const file_mark *a = left;
    const file_mark *b = right;
    if (a->at != b->at) return a->at < b->at ? -1 : 1;
    if (a->phase != b->phase)
        return a->phase == 'X' ? -1 : b->phase == 'X' ? 1 : b->phase - a->phase;
    if (a->index != b->index) return a->index < b->index ? -1 : 1;
    return file_compare_numbers(a->flow, b->flow);
}

static pen_status file_make_marks(trace_file *file) {
    const size_t limit = (size_t)file->entry_count * 3 + file->level_count;
    PEN_TRY(PEN_NEW(file->arena, limit, &file->marks));
    for (uint32_t i = 0; i < file->entry_count; i++) {
        const double start = file_time(file->entries[i].event.start_seconds);
        file->marks[file->mark_count++] = (file_mark){start, 'X', i, 0};
    }
    for (uint32_t i = 0; i < file->level_count; i++) {
        const double at = file_time(file->levels[i].seconds);
        file->marks[file->mark_count++] = (file_mark){at, 'C', i, 0};
    }
    PEN_TRY(file_make_arrows(file));
    if (file->mark_count > 1) {
        qsort(file->marks, file->mark_count, sizeof *file->marks, file_compare_marks);
    }
    return PEN_OK;
}

// ---- writing

static const char *file_device_name(const trace_file *file, uint32_t device) {
    return device == PEN_TRACE_HOST ? "inputs" : file->trace->device_names[device];
}

static pen_json_writer *file_begin(trace_file *file, const char *name, char phase,
                                   uint32_t worker) {
    const char text[2] = {phase, '\0'};
    pen_json_writer *json = &file->json;
    pen_json_begin_object(json);
    pen_json_key_text(json, "name", name);
    pen_json_key_text(json, "ph", text);
    pen_json_key_unsigned(json, "pid", (uint64_t)worker + 1);
    return json;
}

static void file_name(trace_file *file, const char *what, uint32_t worker, uint32_t row,
                      const char *name, uint32_t place) {
    const bool is_order = name == NULL;
    pen_json_writer *json = file_begin(file, what, 'M', worker);
    if (row != FILE_NO_ROW) pen_json_key_unsigned(json, "tid", (uint64_t)row + 1);
    pen_json_key_object(json, "args");
    if (is_order) {
        pen_json_key_unsigned(json, "sort_index", place);
    } else {
        pen_json_key_text(json, "name", name);
    }
    pen_json_end_object(json);
    pen_json_end_object(json);
}

// Viewers show rows in the order of thread_sort_index: compute, send and receive of a device stand
// together, devices in the job's order.
static pen_status file_write_names(trace_file *file) {
    static const char *const groups[FILE_GROUP_COUNT] = {"compute", "send", "receive"};
    for (uint32_t w = 0; w < file->trace->worker_count; w++) {
        file_name(file, "process_name", w, FILE_NO_ROW, file->trace->workers[w].name, 0);
        file_name(file, "process_sort_index", w, FILE_NO_ROW, NULL, w);
    }
    for (uint32_t r = 0; r < file->row_count; r++) {
        const file_row *row = &file->rows[r];
        const char *name;
        const char *device = file_device_name(file, row->device);
        if (row->number == 1) {
            PEN_TRY(pen_arena_format(file->arena, &name, "%s %s", device, groups[row->group]));
        } else {
            PEN_TRY(pen_arena_format(file->arena, &name, "%s %s %u", device, groups[row->group],
                                     row->number));
        }
        file_name(file, "thread_name", row->worker, r, name, 0);
        const uint32_t device_place = row->device == PEN_TRACE_HOST ? 0 : row->device + 1;
        const uint32_t place = (device_place * FILE_GROUP_COUNT + (uint32_t)row->group) * 64;
        file_name(file, "thread_sort_index", row->worker, r, NULL, place + row->number);
    }
    return PEN_OK;
}

static const char *file_value(const trace_file *file, const pen_trace_event *event) {
    if (event->form != 0 || event->channel == PEN_TRACE_NO_CHANNEL) return NULL;
    return file->trace->channels[event->channel].value;
}

// For whom a device waits: who makes what it is to read, or reads what it is to make anew.
static const char *file_awaited(const trace_file *file, const pen_trace_event *event) {
    if (event->form != 0 || event->channel == PEN_TRACE_NO_CHANNEL) return NULL;
    const pen_trace_channel *channel = &file->trace->channels[event->channel];
    return file_device_name(file, channel->source_device == event->device ? channel->target_device
                                                                          : channel->source_device);
}

static pen_status file_event_name(const trace_file *file, const pen_trace_event *event,
                                  const char **out_name) {
    const char *value = file_value(file, event);
    const char *kind = pen_trace_kind_name(event->kind);
    if (event->kind == PEN_TRACE_TASK) {
        return pen_arena_format(file->arena, out_name, "%s %u:%u",
                                pen_task_kind_name(event->task.kind), event->task.stage,
                                event->task.microbatch);
    }
    if (value == NULL) {
        *out_name = kind;
        return PEN_OK;
    }
    return pen_arena_format(file->arena, out_name,
                            event->kind == PEN_TRACE_WAIT ? "%s for %s" : "%s %s", kind, value);
}

// What a viewer shows of an event that is clicked; reading the file back takes the event from
// these.
static void file_write_arguments(trace_file *file, const pen_trace_event *event) {
    const bool is_move = event->kind == PEN_TRACE_SEND || event->kind == PEN_TRACE_RECEIVE;
    const char *value = file_value(file, event);
    pen_json_writer *json = &file->json;
    pen_json_key_object(json, "args");
    pen_json_key_unsigned(json, "step", event->step);
    pen_json_key_unsigned(json, "round", event->round);
    if (event->device != PEN_TRACE_HOST) pen_json_key_unsigned(json, "device", event->device);
    if (event->form != 0) pen_json_key_unsigned(json, "form", event->form);
    if (!is_move) {
        pen_json_key_text(json, "task", pen_task_kind_name(event->task.kind));
        pen_json_key_unsigned(json, "stage", event->task.stage);
        pen_json_key_unsigned(json, "microbatch", event->task.microbatch);
    }
    if (event->channel != PEN_TRACE_NO_CHANNEL) {
        pen_json_key_unsigned(json, "channel", event->channel);
    }
    if (value != NULL) pen_json_key_text(json, "value", value);
    if (event->kind == PEN_TRACE_WAIT && value != NULL) {
        pen_json_key_text(json, "waits_for", file_awaited(file, event));
    }
    if (is_move) {
        pen_json_key_unsigned(json, "frame", event->sequence);
        pen_json_key_unsigned(json, "bytes", event->bytes);
    }
    pen_json_end_object(json);
}

// Colours are names that Chrome's viewer knows; other viewers ignore them.
static pen_status file_write_event(trace_file *file, const file_mark *mark) {
    static const char *const colors[PEN_TASK_KIND_COUNT] = {
        "thread_state_running", "thread_state_iowait", "thread_state_iowait", "rail_animation",
        "good"};
    const pen_trace_event *event = &file->entries[mark->index].event;
    const uint32_t row = file->row_of_entry[mark->index];
    const char *name;
    PEN_TRY(file_event_name(file, event, &name));
    pen_json_writer *json = file_begin(file, name, 'X', file->rows[row].worker);
    pen_json_key_unsigned(json, "tid", (uint64_t)row + 1);
    pen_json_key_text(json, "cat", pen_trace_kind_name(event->kind));
    pen_json_key_number(json, "ts", mark->at);
    pen_json_key_number(json, "dur", file_time(event->end_seconds) - mark->at);
    if (event->kind == PEN_TRACE_TASK) {
        pen_json_key_text(json, "cname", colors[event->task.kind]);
    }
    file_write_arguments(file, event);
    pen_json_end_object(json);
    return PEN_OK;
}

static void file_write_arrow(trace_file *file, const file_mark *mark) {
    const uint32_t row = file->row_of_entry[mark->index];
    const char *value = file_value(file, &file->entries[mark->index].event);
    pen_json_writer *json =
        file_begin(file, value != NULL ? value : "tensor", mark->phase, file->rows[row].worker);
    pen_json_key_unsigned(json, "tid", (uint64_t)row + 1);
    pen_json_key_text(json, "cat", "tensor");
    pen_json_key_number(json, "ts", mark->at);
    pen_json_key_unsigned(json, "id", mark->flow);
    // to the event that encloses its end, not to the next
    if (mark->phase == 'f') pen_json_key_text(json, "bp", "e");
    pen_json_end_object(json);
}

// Counters: microbatches in flight, and memory where the trace knows what is taken from the start.
static pen_status file_write_level(trace_file *file, const file_mark *mark) {
    const pen_trace_level *level = &file->levels[mark->index];
    const char *device = file->trace->device_names[level->device];
    const uint32_t worker = file->trace->worker_of_device[level->device];
    const bool is_told = file->trace->fixed_bytes != NULL && file->trace->stage_count > 0;
    for (int is_memory = 0; is_memory <= (is_told ? 1 : 0); is_memory++) {
        const char *name;
        PEN_TRY(
            pen_arena_format(file->arena, &name, is_memory ? "%s memory" : "%s in flight", device));
        pen_json_writer *json = file_begin(file, name, 'C', worker);
        pen_json_key_number(json, "ts", mark->at);
        pen_json_key_object(json, "args");
        if (is_memory) {
            pen_json_key_number(json, "bytes", level->bytes);
        } else {
            pen_json_key_unsigned(json, "microbatches", level->in_flight);
        }
        pen_json_end_object(json);
        pen_json_end_object(json);
    }
    return PEN_OK;
}

// ---- the tables

// Also part of the report's page, hence apart from the file.
void pen_trace_write_channels(pen_json_writer *json, const pen_trace *trace) {
    pen_json_key_array(json, "channels");
    for (uint32_t c = 0; c < trace->channel_count; c++) {
        const pen_trace_channel *channel = &trace->channels[c];
        pen_json_begin_object(json);
        pen_json_key_text(json, "value", channel->value);
        if (channel->source_device != PEN_TRACE_HOST) {
            pen_json_key_unsigned(json, "from", channel->source_device);
        }
        if (channel->target_device != PEN_TRACE_HOST) {
            pen_json_key_unsigned(json, "to", channel->target_device);
        }
        pen_json_key_bool(json, "backward", channel->is_backward);
        pen_json_key_bool(json, "once_a_step", channel->is_per_step);
        pen_json_key_unsigned(json, "bytes", channel->bytes);
        if (trace->planned_slowness != NULL && channel->planned_seconds >= 0) {
            pen_json_key_number(json, "planned_seconds", channel->planned_seconds);
            pen_json_key_number(json, "planned_latency", channel->planned_latency);
            if (channel->together != c) pen_json_key_unsigned(json, "with", channel->together);
        }
        pen_json_end_object(json);
    }
    pen_json_end_array(json);
}

// What the events' numbers mean. Viewers ignore this key; reading the file back needs it.
static void file_write_tables(pen_json_writer *json, const pen_trace *trace) {
    pen_json_key_object(json, "penstock");
    pen_json_key_text(json, "schema", "penstock/trace/1");
    pen_json_key_array(json, "workers");
    for (uint32_t w = 0; w < trace->worker_count; w++) {
        pen_json_begin_object(json);
        pen_json_key_text(json, "name", trace->workers[w].name);
        pen_json_key_unsigned(json, "process", trace->workers[w].process);
        pen_json_key_number(json, "clock_seconds", trace->workers[w].clock_seconds);
        pen_json_key_unsigned(json, "lost", trace->workers[w].lost_count);
        pen_json_end_object(json);
    }
    pen_json_end_array(json);
    pen_json_key_array(json, "devices");
    for (uint32_t d = 0; d < trace->device_count; d++) {
        pen_json_begin_object(json);
        pen_json_key_text(json, "name", trace->device_names[d]);
        pen_json_key_unsigned(json, "worker", trace->worker_of_device[d]);
        if (trace->fixed_bytes != NULL) {
            pen_json_key_number(json, "fixed_bytes", trace->fixed_bytes[d]);
        }
        if (trace->planned_slowness != NULL) {
            pen_json_key_number(json, "slowness", trace->planned_slowness[d]);
        }
        pen_json_end_object(json);
    }
    pen_json_end_array(json);
    pen_trace_write_channels(json, trace);
    pen_json_key_array(json, "stages");
    for (uint32_t s = 0; s < trace->stage_count; s++) {
        pen_json_begin_object(json);
        pen_json_key_unsigned(json, "device", trace->stages[s].device);
        pen_json_key_number(json, "activation_bytes", trace->stages[s].activation_bytes);
        pen_json_key_number(json, "halved_bytes", trace->stages[s].halved_bytes);
        if (trace->planned_slowness == NULL) {
            pen_json_end_object(json);
            continue;
        }
        pen_json_key_number(json, "forward_seconds", trace->stages[s].forward_seconds);
        pen_json_key_number(json, "backward_input_seconds",
                            trace->stages[s].backward_input_seconds);
        pen_json_key_number(json, "backward_weight_seconds",
                            trace->stages[s].backward_weight_seconds);
        pen_json_key_number(json, "update_seconds", trace->stages[s].update_seconds);
        pen_json_end_object(json);
    }
    pen_json_end_array(json);
    pen_json_end_object(json);
}

// Marks are sorted by time, as viewers expect events and arrows to be.
static pen_status file_write_all(trace_file *file) {
    pen_json_writer *json = &file->json;
    pen_json_begin_object(json);
    pen_json_key_text(json, "displayTimeUnit", "ms");
    file_write_tables(json, file->trace);
    pen_json_key_array(json, "traceEvents");
    PEN_TRY(file_write_names(file));
    for (size_t i = 0; i < file->mark_count; i++) {
        const file_mark *mark = &file->marks[i];
        switch (mark->phase) {
        case 'X':
            PEN_TRY(file_write_event(file, mark));
            break;
        case 'C':
            PEN_TRY(file_write_level(file, mark));
            break;
        default: // 's', 'f'
            file_write_arrow(file, mark);
        }
    }
    pen_json_end_array(json);
    pen_json_end_object(json);
    return pen_json_finish(json);
}

pen_status pen_trace_file_write(const pen_trace *trace, const char *path, pen_arena *arena) {
    trace_file file = {.trace = trace, .arena = arena};
    pen_file *out;
    PEN_TRY(pen_trace_merge(trace, arena, &file.entries, &file.entry_count));
    PEN_TRY(pen_trace_levels(trace, file.entries, file.entry_count, arena, &file.levels,
                             &file.level_count));
    PEN_TRY(file_make_rows(&file));
    PEN_TRY(file_make_marks(&file));
    PEN_TRY(pen_file_create_beside(path, &out));
    pen_json_init_file(&file.json, pen_file_stream(out), 0);
    pen_status status = file_write_all(&file);
    if (status == PEN_OK) status = pen_file_commit(out);
    return pen_status_join(status, pen_file_close(out));
}
