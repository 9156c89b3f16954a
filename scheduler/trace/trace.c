#include "scheduler/trace/trace.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/integer.h"
#include "base/memory.h"

#define TRACE_MAGIC 0x52544E50u // "PNTR"
#define TRACE_VERSION 1u

// ---- recording

typedef struct trace_row {
    pen_trace_event *events; // [row_limit], a ring
    uint64_t count;          // recorded so far, overwritten ones too
    char gap[48];            // rows have different writers: no two in a cache line
} trace_row;

struct pen_trace_recorder {
    uint32_t row_count;
    uint32_t row_limit;
    trace_row *rows;
    pen_trace_event *events; // of all rows
};

// Rows are rings of fixed size, taken before the training: recording an event allocates nothing and
// takes no lock, a row a thread.
pen_status pen_trace_recorder_create(uint32_t row_count, uint32_t row_limit,
                                     pen_trace_recorder **out_recorder) {
    size_t count;
    if (!pen_size_mul(row_count, row_limit, &count)) return pen_error_out_of_memory();
    pen_trace_recorder *recorder = pen_memory_allocate(1, sizeof *recorder);
    if (recorder == NULL) return pen_error_out_of_memory();
    recorder->row_count = row_count;
    recorder->row_limit = row_limit;
    recorder->rows = pen_memory_allocate(row_count, sizeof *recorder->rows);
    recorder->events = pen_memory_allocate(count, sizeof *recorder->events);
    if (recorder->rows == NULL || recorder->events == NULL) {
        pen_trace_recorder_destroy(recorder);
        return pen_error_out_of_memory();
    }
    for (uint32_t i = 0; i < row_count; i++) {
        recorder->rows[i].events = recorder->events + (size_t)i * row_limit;
    }
    *out_recorder = recorder;
    return PEN_OK;
}

void pen_trace_recorder_destroy(pen_trace_recorder *recorder) {
    if (recorder == NULL) return;
    pen_memory_free(recorder->rows);
    pen_memory_free(recorder->events);
    pen_memory_free(recorder);
}

void pen_trace_record(pen_trace_recorder *recorder, uint32_t row, const pen_trace_event *event) {
    if (recorder == NULL || row >= recorder->row_count) return;
    trace_row *own = &recorder->rows[row];
    own->events[own->count % recorder->row_limit] = *event;
    own->count += 1;
}

static int trace_compare_u64(uint64_t a, uint64_t b) {
    return (a > b) - (a < b);
}

// By start; equals by what they are, so that equal traces are in equal order.
static int trace_compare(const void *left, const void *right) {
    const pen_trace_event *a = left;
    const pen_trace_event *b = right;
    if (a->start_seconds != b->start_seconds) return a->start_seconds < b->start_seconds ? -1 : 1;
    if (a->end_seconds != b->end_seconds) return a->end_seconds < b->end_seconds ? -1 : 1;
    if (a->device != b->device) return trace_compare_u64(a->device, b->device);
    if (a->kind != b->kind) return trace_compare_u64(a->kind, b->kind);
    if (a->channel != b->channel) return trace_compare_u64(a->channel, b->channel);
    if (a->sequence != b->sequence) return trace_compare_u64(a->sequence, b->sequence);
    if (a->task.stage != b->task.stage) return trace_compare_u64(a->task.stage, b->task.stage);
    return trace_compare_u64(a->task.microbatch, b->task.microbatch);
}

// What the rings still hold, in the order of time, and how many events they have overwritten.
pen_status pen_trace_recorder_read(const pen_trace_recorder *recorder, pen_arena *arena,
                                   const pen_trace_event **out_events, uint32_t *out_count,
                                   uint64_t *out_lost) {
    uint64_t count = 0, lost = 0;
    pen_trace_event *events;
    for (uint32_t i = 0; recorder != NULL && i < recorder->row_count; i++) {
        const uint64_t kept = pen_min_u64(recorder->rows[i].count, recorder->row_limit);
        count += kept;
        lost += recorder->rows[i].count - kept;
    }
    if (count > UINT32_MAX) return pen_error_out_of_memory();
    PEN_TRY(PEN_NEW(arena, (size_t)count, &events));
    size_t at = 0;
    for (uint32_t i = 0; recorder != NULL && i < recorder->row_count; i++) {
        const trace_row *row = &recorder->rows[i];
        const size_t kept = (size_t)pen_min_u64(row->count, recorder->row_limit);
        memcpy(events + at, row->events, kept * sizeof *events);
        at += kept;
    }
    if (count > 1) qsort(events, (size_t)count, sizeof *events, trace_compare);
    *out_events = events;
    *out_count = (uint32_t)count;
    *out_lost = lost;
    return PEN_OK;
}

// ---- as bytes

static uint8_t *trace_put_u32(uint8_t *at, uint32_t number) {
    for (int i = 0; i < 4; i++) {
        *at++ = (uint8_t)(number >> (8 * i));
    }
    return at;
}

static uint8_t *trace_put_u64(uint8_t *at, uint64_t number) {
    at = trace_put_u32(at, (uint32_t)number);
    return trace_put_u32(at, (uint32_t)(number >> 32));
}

static uint8_t *trace_put_seconds(uint8_t *at, double seconds) {
    uint64_t bits;
    memcpy(&bits, &seconds, sizeof bits);
    return trace_put_u64(at, bits);
}

static uint32_t trace_take_u32(const uint8_t **at) {
    uint32_t number = 0;
    for (int i = 0; i < 4; i++) {
        number |= (uint32_t) * (*at)++ << (8 * i);
    }
    return number;
}

static uint64_t trace_take_u64(const uint8_t **at) {
    const uint64_t low = trace_take_u32(at);
    return low | (uint64_t)trace_take_u32(at) << 32;
}

static double trace_take_seconds(const uint8_t **at) {
    const uint64_t bits = trace_take_u64(at);
    double seconds;
    memcpy(&seconds, &bits, sizeof seconds);
    return seconds;
}

// Events as a worker sends them to the coordinator: fixed size, little-endian.
pen_status pen_trace_encode(const pen_trace_event *events, uint32_t count, pen_arena *arena,
                            const void **out_bytes, uint64_t *out_byte_count) {
    const size_t byte_count = PEN_TRACE_HEAD_BYTES + (size_t)count * PEN_TRACE_EVENT_BYTES;
    uint8_t *bytes;
    PEN_TRY(PEN_NEW(arena, byte_count, &bytes));
    uint8_t *at = trace_put_u32(bytes, TRACE_MAGIC);
    at = trace_put_u32(at, TRACE_VERSION);
    at = trace_put_u32(at, count);
    for (uint32_t i = 0; i < count; i++) {
        const pen_trace_event *event = &events[i];
        at = trace_put_u32(at, (uint32_t)event->kind);
        at = trace_put_u32(at, (uint32_t)event->task.kind);
        at = trace_put_u32(at, event->task.stage);
        at = trace_put_u32(at, event->task.microbatch);
        at = trace_put_u32(at, event->device);
        at = trace_put_u32(at, event->channel);
        at = trace_put_u32(at, event->form);
        at = trace_put_u64(at, event->round);
        at = trace_put_u64(at, event->step);
        at = trace_put_u64(at, event->sequence);
        at = trace_put_u64(at, event->bytes);
        at = trace_put_seconds(at, event->start_seconds);
        at = trace_put_seconds(at, event->end_seconds);
    }
    *out_bytes = bytes;
    *out_byte_count = byte_count;
    return PEN_OK;
}

static bool trace_is_in_order(const pen_trace_event *event) {
    return isfinite(event->start_seconds) && isfinite(event->end_seconds) &&
           event->start_seconds <= event->end_seconds;
}

// Comes from another process: counts, kinds and times are checked before anything uses them.
pen_status pen_trace_decode(const void *bytes, uint64_t byte_count, pen_arena *arena,
                            const pen_trace_event **out_events, uint32_t *out_count) {
    const uint8_t *at = bytes;
    if (byte_count < PEN_TRACE_HEAD_BYTES) {
        return pen_error(PEN_CORRUPT, "a trace of %llu bytes has no head",
                         (unsigned long long)byte_count);
    }
    if (trace_take_u32(&at) != TRACE_MAGIC || trace_take_u32(&at) != TRACE_VERSION) {
        return pen_error(PEN_CORRUPT, "a trace of an unknown kind or version");
    }
    const uint32_t count = trace_take_u32(&at);
    if (count > PEN_TRACE_EVENT_LIMIT ||
        byte_count - PEN_TRACE_HEAD_BYTES != (uint64_t)count * PEN_TRACE_EVENT_BYTES) {
        return pen_error(PEN_CORRUPT, "a trace of %u events has %llu bytes", count,
                         (unsigned long long)byte_count);
    }
    pen_trace_event *events;
    PEN_TRY(PEN_NEW(arena, count, &events));
    for (uint32_t i = 0; i < count; i++) {
        pen_trace_event *event = &events[i];
        const uint32_t kind = trace_take_u32(&at);
        const uint32_t task_kind = trace_take_u32(&at);
        if (kind >= PEN_TRACE_KIND_COUNT || task_kind >= PEN_TASK_KIND_COUNT) {
            return pen_error(PEN_CORRUPT, "event %u of a trace is of unknown kind %u, task %u", i,
                             kind, task_kind);
        }
        event->kind = (pen_trace_kind)kind;
        event->task.kind = (pen_task_kind)task_kind;
        event->task.stage = trace_take_u32(&at);
        event->task.microbatch = trace_take_u32(&at);
        event->device = trace_take_u32(&at);
        event->channel = trace_take_u32(&at);
        event->form = trace_take_u32(&at);
        event->round = trace_take_u64(&at);
        event->step = trace_take_u64(&at);
        event->sequence = trace_take_u64(&at);
        event->bytes = trace_take_u64(&at);
        event->start_seconds = trace_take_seconds(&at);
        event->end_seconds = trace_take_seconds(&at);
        if (!trace_is_in_order(event)) {
            return pen_error(PEN_CORRUPT, "event %u of a trace ends before it starts", i);
        }
    }
    *out_events = events;
    *out_count = count;
    return PEN_OK;
}

// ---- as a whole

// A trace may come from a file: numbers in it index tables, so each is compared with its table.
static pen_status trace_check_event(const pen_trace *trace, const pen_trace_worker *worker,
                                    uint32_t index) {
    const pen_trace_event *event = &worker->events[index];
    const bool is_move = event->kind == PEN_TRACE_SEND || event->kind == PEN_TRACE_RECEIVE;
    const char *wrong = NULL;
    if ((uint32_t)event->kind >= PEN_TRACE_KIND_COUNT) wrong = "kind";
    if ((uint32_t)event->task.kind >= PEN_TASK_KIND_COUNT) wrong = "task";
    if (event->device >= trace->device_count && !(is_move && event->device == PEN_TRACE_HOST)) {
        wrong = "device";
    }
    if (event->form >= PEN_TRACE_FORM_LIMIT) wrong = "form";
    if (!is_move && event->task.stage >= PEN_TRACE_STAGE_LIMIT) wrong = "stage";
    if (!is_move && trace->stage_count > 0 && event->task.stage >= trace->stage_count) {
        wrong = "stage";
    }
    if (event->channel != PEN_TRACE_NO_CHANNEL || is_move) {
        const bool is_listed = event->form != 0 || event->channel < trace->channel_count;
        if (!is_listed || event->channel >= PEN_TRACE_CHANNEL_LIMIT) wrong = "channel";
    }
    if (!trace_is_in_order(event)) wrong = "time";
    if (wrong == NULL) return PEN_OK;
    return pen_error(PEN_CORRUPT, "event %u of the trace of %s has a %s that is not there", index,
                     worker->name, wrong);
}

// The tables before the events that point into them.
static pen_status trace_check_tables(const pen_trace *trace) {
    if (trace->worker_count > PEN_TRACE_DEVICE_LIMIT ||
        trace->device_count > PEN_TRACE_DEVICE_LIMIT ||
        trace->stage_count > PEN_TRACE_STAGE_LIMIT ||
        trace->channel_count > PEN_TRACE_CHANNEL_LIMIT) {
        return pen_error(PEN_CORRUPT, "a trace of %u workers, %u devices, %u stages, %u channels",
                         trace->worker_count, trace->device_count, trace->stage_count,
                         trace->channel_count);
    }
    for (uint32_t d = 0; d < trace->device_count; d++) {
        if (trace->worker_of_device[d] < trace->worker_count) continue;
        return pen_error(PEN_CORRUPT, "device '%s' of a trace is of worker %u, there are %u",
                         trace->device_names[d], trace->worker_of_device[d], trace->worker_count);
    }
    for (uint32_t s = 0; s < trace->stage_count; s++) {
        if (trace->stages[s].device < trace->device_count &&
            isfinite(trace->stages[s].activation_bytes) && isfinite(trace->stages[s].halved_bytes))
            continue;
        return pen_error(PEN_CORRUPT, "stage %u of a trace is on a device that is not there", s);
    }
    for (uint32_t c = 0; c < trace->channel_count; c++) {
        const pen_trace_channel *channel = &trace->channels[c];
        const bool has_source = channel->source_device < trace->device_count ||
                                channel->source_device == PEN_TRACE_HOST;
        const bool has_target = channel->target_device < trace->device_count ||
                                channel->target_device == PEN_TRACE_HOST;
        if (has_source && has_target) continue;
        return pen_error(PEN_CORRUPT, "'%s' of a trace moves between devices %u and %u, of %u",
                         channel->value, channel->source_device, channel->target_device,
                         trace->device_count);
    }
    return PEN_OK;
}

pen_status pen_trace_check(const pen_trace *trace) {
    uint64_t event_count = 0;
    PEN_TRY(trace_check_tables(trace));
    for (uint32_t w = 0; w < trace->worker_count; w++) {
        const pen_trace_worker *worker = &trace->workers[w];
        event_count += worker->event_count;
        if (event_count > PEN_TRACE_EVENT_LIMIT) {
            return pen_error(PEN_CORRUPT, "a trace of more than %u events", PEN_TRACE_EVENT_LIMIT);
        }
        if (!isfinite(worker->clock_seconds)) {
            return pen_error(PEN_CORRUPT, "the clock of %s is not known", worker->name);
        }
        for (uint32_t i = 0; i < worker->event_count; i++) {
            PEN_TRY(trace_check_event(trace, worker, i));
        }
    }
    return PEN_OK;
}

// All workers' events on one clock, which begins at 0 with the first of them.
pen_status pen_trace_merge(const pen_trace *trace, pen_arena *arena,
                           const pen_trace_entry **out_entries, uint32_t *out_count) {
    pen_trace_entry *entries;
    size_t count = 0;
    double origin = INFINITY;
    PEN_TRY(pen_trace_check(trace));
    for (uint32_t w = 0; w < trace->worker_count; w++) {
        count += trace->workers[w].event_count;
    }
    PEN_TRY(PEN_NEW(arena, count, &entries));
    size_t at = 0;
    for (uint32_t w = 0; w < trace->worker_count; w++) {
        const pen_trace_worker *worker = &trace->workers[w];
        for (uint32_t i = 0; i < worker->event_count; i++) {
            entries[at] = (pen_trace_entry){worker->events[i], w};
            entries[at].event.start_seconds += worker->clock_seconds;
            entries[at].event.end_seconds += worker->clock_seconds;
            origin = fmin(origin, entries[at].event.start_seconds);
            at += 1;
        }
    }
    for (size_t i = 0; i < count; i++) {
        entries[i].event.start_seconds -= origin;
        entries[i].event.end_seconds -= origin;
    }
    // an entry begins with its event
    if (count > 1) qsort(entries, count, sizeof *entries, trace_compare);
    *out_entries = entries;
    *out_count = (uint32_t)count;
    return PEN_OK;
}

const char *pen_trace_kind_name(pen_trace_kind kind) {
    switch (kind) {
    case PEN_TRACE_TASK:
        return "compute";
    case PEN_TRACE_WAIT:
        return "wait";
    case PEN_TRACE_SEND:
        return "send";
    case PEN_TRACE_RECEIVE:
        return "receive";
    }
    PEN_NEVER("a trace event of no kind");
}
