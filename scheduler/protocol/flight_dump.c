#include "scheduler/protocol/flight_dump.h"

#include <string.h>

#include "base/hash.h"
#include "scheduler/protocol/flight_wire.h"
#include "scheduler/protocol/run_table_wire.h"

#define DUMP_NAME_LIMIT 4096u // bytes of a name

typedef struct dump_cursor {
    const uint8_t *bytes;
    uint64_t count; // that are left
    uint64_t position;
} dump_cursor;

static pen_status dump_take(dump_cursor *cursor, uint64_t count, const uint8_t **out_bytes) {
    if (count > cursor->count) {
        return pen_error(PEN_CORRUPT, "it ends at byte %llu, where %llu more bytes are expected",
                         (unsigned long long)(cursor->position + cursor->count),
                         (unsigned long long)(count - cursor->count));
    }
    *out_bytes = cursor->bytes;
    cursor->bytes += count;
    cursor->position += count;
    cursor->count -= count;
    return PEN_OK;
}

static pen_status dump_word(dump_cursor *cursor, uint64_t *out_word) {
    const uint8_t *bytes;
    PEN_TRY(dump_take(cursor, 8, &bytes));
    *out_word = 0;
    for (uint32_t i = 0; i < 8; i++) {
        *out_word |= (uint64_t)bytes[i] << 8 * i;
    }
    return PEN_OK;
}

static pen_status dump_bounded(dump_cursor *cursor, const char *what, uint64_t limit,
                               uint64_t *out_word) {
    PEN_TRY(dump_word(cursor, out_word));
    if (*out_word <= limit) return PEN_OK;
    return pen_error(PEN_CORRUPT, "%s is %llu at byte %llu, at most %llu can be", what,
                     (unsigned long long)*out_word, (unsigned long long)(cursor->position - 8),
                     (unsigned long long)limit);
}

static pen_status dump_small(dump_cursor *cursor, const char *what, uint32_t *out_number) {
    uint64_t word;
    PEN_TRY(dump_bounded(cursor, what, UINT32_MAX, &word));
    *out_number = (uint32_t)word;
    return PEN_OK;
}

static pen_status dump_flag(dump_cursor *cursor, const char *what, bool *out_flag) {
    uint64_t word;
    PEN_TRY(dump_bounded(cursor, what, 1, &word));
    *out_flag = word != 0;
    return PEN_OK;
}

static pen_status dump_text(dump_cursor *cursor, const char *what, uint64_t limit, pen_arena *arena,
                            const char **out_text) {
    uint64_t length;
    const uint8_t *bytes = NULL;
    PEN_TRY(dump_bounded(cursor, what, limit, &length));
    PEN_TRY(dump_take(cursor, length, &bytes));
    PEN_ASSERT(bytes != NULL);
    char *text;
    PEN_TRY(PEN_NEW(arena, length + 1, &text));
    for (uint64_t i = 0; i < length; i++) { // it is printed: nothing that terminals act upon
        const bool is_plain = bytes[i] >= 0x20 && bytes[i] != 0x7f;
        text[i] = is_plain ? (char)bytes[i] : ' ';
    }
    *out_text = text;
    return PEN_OK;
}

// ---- what was known at the start

static pen_status dump_record(dump_cursor *cursor, const pen_record *record, void *out_object) {
    const uint8_t *bytes = NULL;
    const uint64_t position = cursor->position;
    PEN_TRY(dump_take(cursor, pen_record_packed_size(record), &bytes));
    PEN_ASSERT(bytes != NULL);
    return pen_status_add_context(pen_record_unpack(record, bytes, out_object),
                                  "in %s at byte %llu", record->name, (unsigned long long)position);
}

// Only a coordinator has options: they are what its core was made with, to be made again.
static pen_status dump_options(dump_cursor *cursor, pen_arena *arena,
                               const pen_coordinator_options **out_options) {
    bool is_there;
    pen_coordinator_options *options;
    *out_options = NULL;
    PEN_TRY(dump_flag(cursor, "whether it is a coordinator", &is_there));
    if (!is_there) return PEN_OK;
    PEN_TRY(PEN_NEW(arena, 1, &options));
    PEN_TRY(dump_record(cursor, &flight_options_record, options));
    if (options->generation == 0 || options->first_round >= PEN_RUN_ROUND_LIMIT) {
        return pen_error(PEN_CORRUPT, "generation %llu with first round %llu",
                         (unsigned long long)options->generation,
                         (unsigned long long)options->first_round);
    }
    const pen_lanes *lanes = &options->lanes;
    if (lanes->lanes > PEN_ARRIVALS_LANES || lanes->lanes > lanes->microbatches) {
        return pen_error(PEN_CORRUPT, "%u lanes of %u microbatches", lanes->lanes,
                         lanes->microbatches);
    }
    *out_options = options;
    return PEN_OK;
}

// What the kinds of events in the file are here; FLIGHT_KIND_LIMIT: there is none of that name.
typedef struct dump_kinds {
    uint32_t worker[FLIGHT_KIND_LIMIT];
    uint32_t coordinator[FLIGHT_KIND_LIMIT];
} dump_kinds;

static uint32_t dump_find_kind(const char *(*name_of)(uint64_t kind), const char *name) {
    uint32_t kind = 0;
    while (kind < FLIGHT_KIND_LIMIT) {
        const char *here = name_of(kind);
        if (here != NULL && strcmp(here, name) == 0) break;
        kind++;
    }
    return kind;
}

static pen_status dump_kinds_read(dump_cursor *cursor, pen_arena *arena,
                                  const char *(*name_of)(uint64_t kind),
                                  uint32_t out_kinds[FLIGHT_KIND_LIMIT]) {
    uint64_t count;
    PEN_TRY(dump_bounded(cursor, "a count of kinds", FLIGHT_KIND_LIMIT, &count));
    for (uint32_t k = 0; k < FLIGHT_KIND_LIMIT; k++) {
        const char *name;
        out_kinds[k] = FLIGHT_KIND_LIMIT;
        if (k >= count) continue;
        PEN_TRY(dump_text(cursor, "the length of a name", DUMP_NAME_LIMIT, arena, &name));
        out_kinds[k] = dump_find_kind(name_of, name);
    }
    return PEN_OK;
}

// One name for each worker and channel of the table, which was read before.
static pen_status dump_names(dump_cursor *cursor, pen_arena *arena, pen_flight_dump_file *dump) {
    const pen_run_table *table = dump->table;
    const char **workers, *const **channels;
    PEN_TRY(PEN_NEW(arena, (size_t)table->worker_count + 1, &workers));
    PEN_TRY(PEN_NEW(arena, table->form_count, &channels));
    for (uint32_t w = 0; w <= table->worker_count; w++) {
        PEN_TRY(dump_text(cursor, "the length of a name", DUMP_NAME_LIMIT, arena, &workers[w]));
    }
    for (uint32_t f = 0; f < table->form_count; f++) {
        const char **names;
        PEN_TRY(PEN_NEW(arena, table->forms[f].channel_count, &names));
        for (uint32_t c = 0; c < table->forms[f].channel_count; c++) {
            PEN_TRY(dump_text(cursor, "the length of a name", DUMP_NAME_LIMIT, arena, &names[c]));
        }
        channels[f] = names;
    }
    dump->worker_names = workers;
    dump->channel_names = channels;
    return PEN_OK;
}

// A dump is written by a process that fails and may be cut anywhere: every number is checked.
static pen_status dump_head(dump_cursor *cursor, pen_arena *arena, pen_flight_dump_file *dump,
                            dump_kinds *kinds) {
    uint64_t head_count, table_count, offset;
    const uint8_t *head_bytes, *table_bytes;
    PEN_TRY(dump_small(cursor, "the worker", &dump->worker));
    PEN_TRY(dump_small(cursor, "the process", &dump->process));
    PEN_TRY(dump_word(cursor, &dump->generation));
    PEN_TRY(dump_word(cursor, &dump->incarnation));
    PEN_TRY(dump_bounded(cursor, "the clock", INT64_MAX / 4, &dump->clock));
    PEN_TRY(dump_flag(cursor, "whether the clock is compared", &dump->has_offset));
    PEN_TRY(dump_word(cursor, &offset));
    PEN_TRY(dump_word(cursor, &dump->recorded));
    memcpy(&dump->clock_offset, &offset, sizeof offset);
    if (dump->clock_offset > INT64_MAX / 4 || dump->clock_offset < -(INT64_MAX / 4)) {
        return pen_error(PEN_CORRUPT, "clocks that differ by %lld ns",
                         (long long)dump->clock_offset);
    }
    PEN_TRY(dump_word(cursor, &head_count));
    PEN_TRY(dump_take(cursor, head_count, &head_bytes));
    dump_cursor head = {head_bytes, head_count, cursor->position - head_count};
    PEN_TRY(dump_word(&head, &table_count));
    PEN_TRY(dump_take(&head, table_count, &table_bytes));
    PEN_TRY(pen_run_table_decode(table_bytes, table_count, arena, &dump->table));
    if (dump->worker > dump->table->worker_count) {
        return pen_error(PEN_CORRUPT, "it is of worker %u of %u", dump->worker,
                         dump->table->worker_count);
    }
    PEN_TRY(dump_text(&head, "the length of a name", DUMP_NAME_LIMIT, arena, &dump->build));
    PEN_TRY(dump_kinds_read(&head, arena, flight_worker_event_name, kinds->worker));
    PEN_TRY(dump_kinds_read(&head, arena, flight_coordinator_event_name, kinds->coordinator));
    PEN_TRY(dump_options(&head, arena, &dump->options));
    if ((dump->worker == 0) != (dump->options != NULL)) {
        return pen_error(PEN_CORRUPT, "it is of a worker and of a coordinator");
    }
    PEN_TRY(dump_names(&head, arena, dump));
    if (head.count == 0) return PEN_OK;
    return pen_error(PEN_CORRUPT, "%llu bytes too many behind the names",
                     (unsigned long long)head.count);
}

// ---- events

typedef struct dump_context {
    uint32_t count;
    pen_coordinator_identity *all; // [PEN_FLIGHT_IDENTITIES]
    const dump_kinds *kinds;
} dump_context;

// Gives the kind of an event in the file the number that it has here.
static pen_status dump_translate(const uint32_t kinds[FLIGHT_KIND_LIMIT], uint64_t number,
                                 uint64_t kind, uint32_t *out_kind) {
    *out_kind = kind < FLIGHT_KIND_LIMIT ? kinds[kind] : FLIGHT_KIND_LIMIT;
    if (*out_kind < FLIGHT_KIND_LIMIT) return PEN_OK;
    return pen_error(PEN_CORRUPT, "event %llu is of kind %llu, which there is not",
                     (unsigned long long)number, (unsigned long long)kind);
}

static void dump_note(const uint64_t words[FLIGHT_PAYLOAD_WORDS], pen_flight_event *event) {
    for (uint32_t i = 0; i < PEN_FLIGHT_NOTE_BYTES - 1; i++) {
        const uint8_t byte = (uint8_t)(words[i / 8] >> i % 8 * 8);
        event->event.note[i] = byte == 0 ? '\0' : byte < 0x20 || byte == 0x7f ? ' ' : (char)byte;
        if (byte == 0) return;
    }
}

// Kinds are translated by their names, because the build that wrote them may have numbered them
// otherwise.
static pen_status dump_event(dump_cursor *cursor, const pen_flight_dump_file *dump,
                             const dump_context *identities, pen_flight_event *event) {
    uint64_t words[FLIGHT_EVENT_WORDS];
    uint32_t identity = FLIGHT_NO_IDENTITY, kind = 0;
    for (uint32_t i = 0; i < FLIGHT_EVENT_WORDS; i++) {
        PEN_TRY(dump_word(cursor, &words[i]));
    }
    *event = (pen_flight_event){
        .number = words[0], .clock = words[1], .has_outcome = words[2] != 0, .outcome = words[2]};
    if (words[3] >= PEN_FLIGHT_KIND_COUNT || event->clock > INT64_MAX / 4) {
        return pen_error(PEN_CORRUPT, "event %llu is of kind %llu at %llu ns",
                         (unsigned long long)words[0], (unsigned long long)words[3],
                         (unsigned long long)words[1]);
    }
    event->kind = (pen_flight_kind)words[3];
    switch (event->kind) {
    case PEN_FLIGHT_WORKER:
        PEN_TRY(flight_unpack_worker(words + 4, &event->event.worker));
        PEN_TRY(dump_translate(identities->kinds->worker, event->number,
                               (uint64_t)event->event.worker.kind, &kind));
        event->event.worker.kind = (pen_worker_event_kind)kind;
        break;
    case PEN_FLIGHT_COORDINATOR:
        PEN_TRY(flight_unpack_coordinator(words + 4, &event->event.coordinator, &identity));
        PEN_TRY(dump_translate(identities->kinds->coordinator, event->number,
                               (uint64_t)event->event.coordinator.kind, &kind));
        event->event.coordinator.kind = (pen_coordinator_event_kind)kind;
        if (identity < identities->count) {
            event->event.coordinator.identity = &identities->all[identity];
        }
        break;
    case PEN_FLIGHT_NOTE:
        dump_note(words + 4, event);
        break;
    }
    const bool is_of_other = dump->worker == 0 ? event->kind == PEN_FLIGHT_WORKER
                                               : event->kind == PEN_FLIGHT_COORDINATOR;
    if (!is_of_other) return PEN_OK;
    return pen_error(PEN_CORRUPT, "event %llu is of another role",
                     (unsigned long long)event->number);
}

// Identities are written once and referred to by number, before the events that need them.
static pen_status dump_tagged(dump_cursor *cursor, pen_arena *arena, const dump_kinds *kinds,
                              pen_flight_dump_file *dump) {
    // every event is at least its words long: nothing is allocated that the bytes do not hold
    const uint64_t room = cursor->count / ((FLIGHT_EVENT_WORDS + 1) * 8);
    const uint64_t most = room < PEN_FLIGHT_EVENTS ? room : PEN_FLIGHT_EVENTS;
    dump_context identities = {.kinds = kinds};
    pen_flight_event *events;
    PEN_TRY(PEN_NEW(arena, most, &events));
    PEN_TRY(PEN_NEW(arena, PEN_FLIGHT_IDENTITIES, &identities.all));
    for (;;) {
        uint64_t tag;
        PEN_TRY(dump_bounded(cursor, "what comes next", FLIGHT_TAG_EVENT, &tag));
        if (tag == FLIGHT_TAG_END) break;
        if (tag == FLIGHT_TAG_IDENTITY) {
            if (identities.count == PEN_FLIGHT_IDENTITIES) {
                return pen_error(PEN_CORRUPT, "more than %u identities", PEN_FLIGHT_IDENTITIES);
            }
            PEN_TRY(
                dump_record(cursor, &flight_identity_record, &identities.all[identities.count++]));
            continue;
        }
        if (dump->event_count == most) {
            return pen_error(PEN_CORRUPT, "more than %u events, or it ends within one",
                             PEN_FLIGHT_EVENTS);
        }
        pen_flight_event *event = &events[dump->event_count];
        PEN_TRY(dump_event(cursor, dump, &identities, event));
        if (dump->event_count > 0 && event->number <= events[dump->event_count - 1].number) {
            return pen_error(PEN_CORRUPT, "event %llu comes behind event %llu",
                             (unsigned long long)event->number,
                             (unsigned long long)events[dump->event_count - 1].number);
        }
        dump->event_count += 1;
    }
    dump->events = events;
    return PEN_OK;
}

// The version before the checksum, so that a dump of another version is called that and not
// damaged.
static pen_status dump_decode(dump_cursor *cursor, pen_arena *arena, pen_flight_dump_file *dump) {
    const uint8_t *start = cursor->bytes;
    const uint64_t all = cursor->count;
    const uint8_t *magic;
    uint64_t version, checksum;
    if (all < FLIGHT_MAGIC_BYTES + 8 || memcmp(start, FLIGHT_MAGIC, FLIGHT_MAGIC_BYTES) != 0) {
        return pen_error(PEN_INVALID_INPUT, "this is not a dump of a flight recorder");
    }
    PEN_TRY(dump_take(cursor, FLIGHT_MAGIC_BYTES, &magic));
    PEN_TRY(dump_word(cursor, &version));
    if (version != FLIGHT_VERSION) {
        return pen_error(PEN_INVALID_INPUT, "a dump of version %llu, this build reads version %u",
                         (unsigned long long)version, FLIGHT_VERSION);
    }
    if (all < FLIGHT_MAGIC_BYTES + 16) return pen_error(PEN_CORRUPT, "the dump is cut short");
    dump_cursor tail = {start + all - 8, 8, all - 8};
    PEN_TRY(dump_word(&tail, &checksum));
    if (checksum != pen_hash_bytes(PEN_HASH_START, start, all - 8)) {
        return pen_error(PEN_CORRUPT, "its checksum is wrong: it is damaged, or cut short");
    }
    cursor->count -= 8;
    dump_kinds kinds;
    PEN_TRY(dump_head(cursor, arena, dump, &kinds));
    PEN_TRY(
        dump_text(cursor, "the length of the reason", FLIGHT_REASON_BYTES, arena, &dump->reason));
    PEN_TRY(dump_tagged(cursor, arena, &kinds, dump));
    if (cursor->count == 0) return PEN_OK;
    return pen_error(PEN_CORRUPT, "%llu bytes too many behind the events",
                     (unsigned long long)cursor->count);
}

pen_status pen_flight_dump_decode(const void *bytes, uint64_t count, pen_arena *arena,
                                  pen_flight_dump_file *out_dump) {
    dump_cursor cursor = {.bytes = bytes, .count = count};
    *out_dump = (pen_flight_dump_file){.reason = "", .build = ""};
    return pen_status_add_context(dump_decode(&cursor, arena, out_dump),
                                  "while reading a dump of %llu bytes", (unsigned long long)count);
}
