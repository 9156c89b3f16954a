#include "scheduler/protocol/flight_recorder.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/memory.h"
#include "base/system/build.h"
#include "scheduler/protocol/flight_outcome.h"
#include "scheduler/protocol/flight_wire.h"
#include "scheduler/protocol/run_table_wire.h"

#define FLIGHT_RECORDER_LIMIT 64 // of a process: more are not dumped
#define FLIGHT_FOLDER_BYTES 4096
#define FLIGHT_BUFFER_BYTES 4096

// A slot is read while it may be written: `stamp` is 0 meanwhile, else the event's number + 1.
typedef struct flight_slot {
    atomic_uint_fast64_t stamp;
    atomic_uint_fast64_t words[FLIGHT_EVENT_WORDS];
} flight_slot;

// Kept as it is written: number, then these.
typedef struct flight_identity {
    atomic_bool is_whole;
    pen_coordinator_identity identity;
} flight_identity;

struct pen_flight_recorder {
    uint32_t worker;
    uint64_t generation;
    uint64_t incarnation;
    uint8_t *head; // [head_count] what was known at the start, encoded
    uint64_t head_count;
    atomic_uint_fast64_t recorded;
    atomic_bool has_offset;
    atomic_int_fast64_t clock_offset; // nanoseconds
    uint32_t identity_count;
    flight_identity identities[PEN_FLIGHT_IDENTITIES];
    flight_slot slots[PEN_FLIGHT_EVENTS];
};

static struct {
    _Atomic(pen_flight_recorder *) recorders[FLIGHT_RECORDER_LIMIT];
    atomic_int dumping; // dumps under way
    atomic_uint dumped; // files begun
    char folders[2][FLIGHT_FOLDER_BYTES];
    atomic_int folder;
} flight;

// ---- what is known at the start

typedef struct flight_bytes {
    uint8_t *bytes; // NULL: only counted
    uint64_t count;
} flight_bytes;

static void flight_put(flight_bytes *out, const void *bytes, uint64_t count) {
    if (out->bytes != NULL && count > 0) memcpy(out->bytes + out->count, bytes, count);
    out->count += count;
}

static void flight_put_word(flight_bytes *out, uint64_t word) {
    uint8_t bytes[8];
    for (uint32_t i = 0; i < 8; i++) {
        bytes[i] = (uint8_t)(word >> 8 * i);
    }
    flight_put(out, bytes, sizeof bytes);
}

static void flight_put_text(flight_bytes *out, const char *text) {
    const uint64_t count = text == NULL ? 0 : strlen(text);
    flight_put_word(out, count);
    flight_put(out, text, count);
}

#define FLIGHT_PACKED_BYTES 512 // room for any record below

static void flight_put_record(flight_bytes *out, const pen_record *record, const void *object) {
    uint8_t bytes[FLIGHT_PACKED_BYTES];
    PEN_ASSERT(pen_record_packed_size(record) <= sizeof bytes);
    pen_record_pack(record, object, bytes);
    flight_put(out, bytes, pen_record_packed_size(record));
}

static void flight_put_kinds(flight_bytes *out, const char *(*name_of)(uint64_t kind)) {
    uint64_t count = 0;
    while (count < FLIGHT_KIND_LIMIT && name_of(count) != NULL) {
        count++;
    }
    flight_put_word(out, count);
    for (uint64_t k = 0; k < count; k++) {
        flight_put_text(out, name_of(k));
    }
}

static void flight_put_head(flight_bytes *out, const pen_flight_setup *setup, const void *table,
                            uint64_t table_count) {
    flight_put_word(out, table_count);
    flight_put(out, table, table_count);
    flight_put_text(out, pen_build_name());
    flight_put_kinds(out, flight_worker_event_name);
    flight_put_kinds(out, flight_coordinator_event_name);
    flight_put_word(out, setup->options != NULL);
    if (setup->options != NULL) flight_put_record(out, &flight_options_record, setup->options);
    for (uint32_t w = 0; w <= setup->table->worker_count; w++) {
        flight_put_text(out, setup->worker_names == NULL ? NULL : setup->worker_names[w]);
    }
    for (uint32_t f = 0; f < setup->table->form_count; f++) {
        for (uint32_t c = 0; c < setup->table->forms[f].channel_count; c++) {
            flight_put_text(out, setup->channel_names == NULL ? NULL : setup->channel_names[f][c]);
        }
    }
}

static pen_status flight_encode_head(pen_flight_recorder *recorder, const pen_flight_setup *setup,
                                     pen_arena *scratch) {
    const void *table;
    uint64_t table_count;
    flight_bytes counter = {0};
    PEN_TRY(pen_run_table_encode(setup->table, scratch, &table, &table_count));
    flight_put_head(&counter, setup, table, table_count);
    recorder->head = pen_memory_allocate(counter.count, 1);
    if (recorder->head == NULL) return pen_error_out_of_memory();
    flight_bytes out = {.bytes = recorder->head};
    flight_put_head(&out, setup, table, table_count);
    PEN_ASSERT(out.count == counter.count);
    recorder->head_count = out.count;
    return PEN_OK;
}

// ---- life

static void flight_register(pen_flight_recorder *recorder) {
    for (uint32_t i = 0; i < FLIGHT_RECORDER_LIMIT; i++) {
        pen_flight_recorder *none = NULL;
        if (atomic_compare_exchange_strong(&flight.recorders[i], &none, recorder)) return;
    }
}

// Waits for dumps that may read it.
static void flight_unregister(pen_flight_recorder *recorder) {
    for (uint32_t i = 0; i < FLIGHT_RECORDER_LIMIT; i++) {
        pen_flight_recorder *expected = recorder;
        if (atomic_compare_exchange_strong(&flight.recorders[i], &expected, NULL)) break;
    }
    while (atomic_load(&flight.dumping) > 0) {
        pen_clock_pause(0.001);
    }
}

// What a reader needs to know (the run table, names, options) is encoded now: when something fails
// there may be no memory for it.
pen_status pen_flight_recorder_create(const pen_flight_setup *setup,
                                      pen_flight_recorder **out_recorder) {
    PEN_ASSERT(setup->worker <= setup->table->worker_count);
    PEN_ASSERT((setup->worker == 0) == (setup->options != NULL));
    pen_flight_recorder *recorder = pen_memory_allocate(1, sizeof *recorder);
    pen_arena *scratch = NULL;
    if (recorder == NULL) return pen_error_out_of_memory();
    recorder->worker = setup->worker;
    recorder->generation = setup->generation;
    recorder->incarnation = setup->incarnation;
    atomic_init(&recorder->has_offset, setup->worker == 0);
    pen_status status = pen_arena_create(&scratch);
    if (status == PEN_OK) status = flight_encode_head(recorder, setup, scratch);
    pen_arena_destroy(scratch);
    if (status != PEN_OK) {
        pen_memory_free(recorder);
        return status;
    }
    flight_register(recorder);
    *out_recorder = recorder;
    return PEN_OK;
}

void pen_flight_recorder_destroy(pen_flight_recorder *recorder) {
    if (recorder == NULL) return;
    flight_unregister(recorder);
    pen_memory_free(recorder->head);
    pen_memory_free(recorder);
}

// ---- recording

static void flight_record(pen_flight_recorder *recorder, pen_flight_kind kind,
                          const uint64_t payload[FLIGHT_PAYLOAD_WORDS]) {
    const uint64_t number = atomic_load_explicit(&recorder->recorded, memory_order_relaxed);
    flight_slot *slot = &recorder->slots[number % PEN_FLIGHT_EVENTS];
    atomic_store_explicit(&slot->stamp, 0, memory_order_relaxed);
    // each word after the stamp: a reader that sees one sees that the slot is being written
    const uint64_t head[4] = {number, (uint64_t)(pen_clock_seconds() * 1e9), 0, (uint64_t)kind};
    for (uint32_t i = 0; i < 4; i++) {
        atomic_store_explicit(&slot->words[i], head[i], memory_order_release);
    }
    for (uint32_t i = 0; i < FLIGHT_PAYLOAD_WORDS; i++) {
        atomic_store_explicit(&slot->words[4 + i], payload[i], memory_order_release);
    }
    atomic_store_explicit(&slot->stamp, number + 1, memory_order_release);
    atomic_store_explicit(&recorder->recorded, number + 1, memory_order_release);
}

static void flight_add(pen_flight_recorder *recorder, uint64_t outcome) {
    const uint64_t recorded = atomic_load_explicit(&recorder->recorded, memory_order_relaxed);
    PEN_ASSERT(recorded > 0);
    flight_slot *slot = &recorder->slots[(recorded - 1) % PEN_FLIGHT_EVENTS];
    atomic_store_explicit(&slot->words[2], outcome, memory_order_relaxed);
}

void pen_flight_record_worker(pen_flight_recorder *recorder, const pen_worker_event *event) {
    uint64_t words[FLIGHT_PAYLOAD_WORDS];
    if (recorder == NULL) return;
    flight_pack_worker(event, words);
    flight_record(recorder, PEN_FLIGHT_WORKER, words);
}

void pen_flight_add_worker(pen_flight_recorder *recorder, pen_worker_fault fault,
                           const pen_worker_action *actions, uint32_t action_count) {
    if (recorder == NULL) return;
    flight_add(recorder, pen_flight_worker_outcome(fault, actions, action_count));
}

// Its number among those kept; FLIGHT_NO_IDENTITY: there is none, or no more room.
static uint32_t flight_keep_identity(pen_flight_recorder *recorder,
                                     const pen_coordinator_identity *identity) {
    if (identity == NULL || recorder->identity_count == PEN_FLIGHT_IDENTITIES) {
        return FLIGHT_NO_IDENTITY;
    }
    flight_identity *kept = &recorder->identities[recorder->identity_count];
    kept->identity = *identity;
    atomic_store_explicit(&kept->is_whole, true, memory_order_release);
    return recorder->identity_count++;
}

void pen_flight_record_coordinator(pen_flight_recorder *recorder,
                                   const pen_coordinator_event *event) {
    uint64_t words[FLIGHT_PAYLOAD_WORDS];
    if (recorder == NULL) return;
    flight_pack_coordinator(event, flight_keep_identity(recorder, event->identity), words);
    flight_record(recorder, PEN_FLIGHT_COORDINATOR, words);
}

void pen_flight_add_coordinator(pen_flight_recorder *recorder,
                                const pen_coordinator_action *actions, uint32_t action_count) {
    if (recorder == NULL) return;
    flight_add(recorder, pen_flight_coordinator_outcome(actions, action_count));
}

void pen_flight_record_note(pen_flight_recorder *recorder, const char *text) {
    uint64_t words[FLIGHT_PAYLOAD_WORDS] = {0};
    if (recorder == NULL) return;
    const uint64_t count = strnlen(text, PEN_FLIGHT_NOTE_BYTES - 1);
    for (uint64_t i = 0; i < count; i++) {
        words[i / 8] |= (uint64_t)(uint8_t)text[i] << i % 8 * 8;
    }
    flight_record(recorder, PEN_FLIGHT_NOTE, words);
}

void pen_flight_set_clock_offset(pen_flight_recorder *recorder, double seconds) {
    if (recorder == NULL || !(seconds > -1e9 && seconds < 1e9)) return;
    atomic_store(&recorder->clock_offset, (int_fast64_t)(seconds * 1e9));
    atomic_store(&recorder->has_offset, true);
}

// ---- writing; only what signal handlers may do

typedef struct flight_file {
    int descriptor;
    bool is_broken;
    uint64_t checksum;
    uint32_t count;
    uint8_t bytes[FLIGHT_BUFFER_BYTES];
} flight_file;

static void flight_flush(flight_file *file) {
    uint32_t written = 0;
    while (written < file->count && !file->is_broken) {
        const ssize_t some = write(file->descriptor, file->bytes + written, file->count - written);
        if (some < 0 && errno == EINTR) continue;
        if (some <= 0) {
            file->is_broken = true;
        } else {
            written += (uint32_t)some;
        }
    }
    file->count = 0;
}

static void flight_write(flight_file *file, const void *bytes, uint64_t count) {
    const uint8_t *at = bytes;
    file->checksum = pen_hash_bytes(file->checksum, bytes, count);
    for (uint64_t i = 0; i < count; i++) {
        if (file->count == sizeof file->bytes) flight_flush(file);
        file->bytes[file->count++] = at[i];
    }
}

static void flight_write_word(flight_file *file, uint64_t word) {
    uint8_t bytes[8];
    for (uint32_t i = 0; i < 8; i++) {
        bytes[i] = (uint8_t)(word >> 8 * i);
    }
    flight_write(file, bytes, sizeof bytes);
}

static void flight_write_identities(flight_file *file, const pen_flight_recorder *recorder) {
    for (uint32_t i = 0; i < PEN_FLIGHT_IDENTITIES; i++) {
        const flight_identity *kept = &recorder->identities[i];
        if (!atomic_load_explicit(&kept->is_whole, memory_order_acquire)) return;
        uint8_t bytes[FLIGHT_PACKED_BYTES];
        flight_bytes out = {.bytes = bytes};
        flight_put_record(&out, &flight_identity_record, &kept->identity);
        flight_write_word(file, FLIGHT_TAG_IDENTITY);
        flight_write(file, bytes, out.count);
    }
}

static void flight_write_events(flight_file *file, const pen_flight_recorder *recorder) {
    const uint64_t end = atomic_load_explicit(&recorder->recorded, memory_order_acquire);
    for (uint64_t n = end > PEN_FLIGHT_EVENTS ? end - PEN_FLIGHT_EVENTS : 0; n < end; n++) {
        const flight_slot *slot = &recorder->slots[n % PEN_FLIGHT_EVENTS];
        uint64_t words[FLIGHT_EVENT_WORDS];
        if (atomic_load_explicit(&slot->stamp, memory_order_acquire) != n + 1) continue;
        for (uint32_t i = 0; i < FLIGHT_EVENT_WORDS; i++) {
            words[i] = atomic_load_explicit(&slot->words[i], memory_order_acquire);
        }
        if (atomic_load_explicit(&slot->stamp, memory_order_relaxed) != n + 1) continue;
        flight_write_word(file, FLIGHT_TAG_EVENT);
        for (uint32_t i = 0; i < FLIGHT_EVENT_WORDS; i++) {
            flight_write_word(file, words[i]);
        }
    }
}

// Safe in a signal handler: no allocation, no lock, no buffered output.
static void flight_write_all(flight_file *file, const pen_flight_recorder *recorder,
                             const char *reason) {
    const uint64_t length = strnlen(reason, FLIGHT_REASON_BYTES - 1);
    flight_write(file, FLIGHT_MAGIC, FLIGHT_MAGIC_BYTES);
    flight_write_word(file, FLIGHT_VERSION);
    flight_write_word(file, recorder->worker);
    flight_write_word(file, (uint64_t)getpid());
    flight_write_word(file, recorder->generation);
    flight_write_word(file, recorder->incarnation);
    flight_write_word(file, (uint64_t)(pen_clock_seconds() * 1e9));
    flight_write_word(file, atomic_load(&recorder->has_offset));
    flight_write_word(file, (uint64_t)atomic_load(&recorder->clock_offset));
    flight_write_word(file, atomic_load(&recorder->recorded));
    flight_write_word(file, recorder->head_count);
    flight_write(file, recorder->head, recorder->head_count);
    flight_write_word(file, length);
    flight_write(file, reason, length);
    flight_write_identities(file, recorder);
    flight_write_events(file, recorder);
    flight_write_word(file, FLIGHT_TAG_END);
    const uint64_t checksum = file->checksum;
    flight_write_word(file, checksum);
    flight_flush(file);
}

typedef struct flight_path {
    char text[FLIGHT_FOLDER_BYTES + 128];
    uint32_t length;
} flight_path;

static void flight_path_add(flight_path *path, const char *text) {
    for (; *text != '\0' && path->length + 1 < sizeof path->text; text++) {
        path->text[path->length++] = *text;
    }
    path->text[path->length] = '\0';
}

static void flight_path_add_number(flight_path *path, uint64_t number) {
    char digits[24];
    uint32_t at = sizeof digits - 1;
    digits[at] = '\0';
    do {
        digits[--at] = (char)('0' + number % 10);
        number /= 10;
    } while (number != 0);
    flight_path_add(path, digits + at);
}

static void flight_make_folder(const char *folder) {
    flight_path path = {.length = 0};
    for (const char *at = folder; *at != '\0'; at++) {
        if (*at == '/' && path.length > 0) (void)mkdir(path.text, 0777);
        const char one[2] = {*at, '\0'};
        flight_path_add(&path, one);
    }
    (void)mkdir(path.text, 0777);
}

// Beside its place, and renamed: a dump that is there is whole, also where two threads write one.
static bool flight_dump_one(const pen_flight_recorder *recorder, const char *folder,
                            const char *reason) {
    flight_path path = {.length = 0}, part;
    flight_path_add(&path, folder);
    flight_path_add(&path, "/flight-g");
    flight_path_add_number(&path, recorder->generation);
    flight_path_add(&path, "-w");
    flight_path_add_number(&path, recorder->worker);
    flight_path_add(&path, "-");
    flight_path_add_number(&path, (uint64_t)getpid());
    flight_path_add(&path, ".bin");
    part = path;
    flight_path_add(&part, ".part");
    flight_path_add_number(&part, atomic_fetch_add(&flight.dumped, 1));
    flight_file file = {.checksum = PEN_HASH_START};
    // a new file: what is there under that name may lead elsewhere
    (void)unlink(part.text);
    file.descriptor = open(part.text, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (file.descriptor < 0) return false;
    flight_write_all(&file, recorder, reason);
    if (close(file.descriptor) != 0) file.is_broken = true;
    if (!file.is_broken && rename(part.text, path.text) == 0) return true;
    (void)unlink(part.text);
    return false;
}

uint32_t pen_flight_dump(const char *reason) {
    const char *folder = pen_flight_folder();
    const int error = errno;
    uint32_t written = 0;
    bool is_made = false;
    if (folder[0] == '\0') return 0;
    atomic_fetch_add(&flight.dumping, 1);
    for (uint32_t i = 0; i < FLIGHT_RECORDER_LIMIT; i++) {
        const pen_flight_recorder *recorder = atomic_load(&flight.recorders[i]);
        if (recorder == NULL) continue;
        if (!is_made) flight_make_folder(folder);
        is_made = true;
        written += flight_dump_one(recorder, folder, reason);
    }
    atomic_fetch_sub(&flight.dumping, 1);
    errno = error;
    return written;
}

// ---- where to

static void flight_say(const char *text) {
    const ssize_t written = write(STDERR_FILENO, text, strlen(text));
    (void)written; // nobody is left to tell
}

static void flight_on_assertion(const char *claim) {
    char reason[FLIGHT_REASON_BYTES] = "assertion failed: ";
    const size_t used = strlen(reason);
    const size_t length = strnlen(claim, sizeof reason - used - 1);
    memcpy(reason + used, claim, length);
    if (pen_flight_dump(reason) == 0) return;
    flight_say("flight recorder: ");
    flight_say(pen_flight_folder());
    flight_say(" (penstock diagnose shows it)\n");
}

const char *pen_flight_folder(void) {
    return flight.folders[atomic_load(&flight.folder)];
}

void pen_flight_set_folder(const char *folder) {
    const int other = 1 - atomic_load(&flight.folder);
    const size_t length = strnlen(folder, FLIGHT_FOLDER_BYTES - 1);
    memcpy(flight.folders[other], folder, length);
    flight.folders[other][length] = '\0';
    atomic_store(&flight.folder, other);
    pen_assert_set_hook(flight_on_assertion);
}
