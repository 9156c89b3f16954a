// The memory that two ends share, and whose turn it is.
#include "tests/simulator/ring/ring_world.h"

#include <inttypes.h>
#include <stdarg.h>

#define TOLD_LIMIT 64u

typedef struct world_event {
    uint32_t end;
    world_event_kind kind;
    uint64_t first, second;
} world_event;

world ring_world;
static world_event told[TOLD_LIMIT];
static uint64_t told_count;

// ---- what happened

static void event_print(const world_event *event, FILE *file) {
    static const char *const texts[] = {
        [EVENT_LOAD] = "loads the word at %" PRIu64 ": %" PRIu64,
        [EVENT_STORE] = "stores into the word at %" PRIu64 ": %" PRIu64,
        [EVENT_EXCHANGE] = "takes the word at %" PRIu64 ": %" PRIu64,
        [EVENT_READ] = "reads from %" PRIu64 ": %" PRIu64 " bytes",
        [EVENT_WRITE] = "writes at %" PRIu64 ": %" PRIu64 " bytes",
        [EVENT_SEEN] = "its store at %" PRIu64 " is seen, %" PRIu64 " bytes",
        [EVENT_BELL] = "rings; the other has %" PRIu64 " bells now, asleep %" PRIu64,
        [EVENT_LENT] = "is lent frame %" PRIu64 " of %" PRIu64 " bytes",
        [EVENT_SENT] = "has sent frame %" PRIu64 ", with bytes of its own %" PRIu64,
        [EVENT_BEGIN] = "begins to take frame %" PRIu64 " of %" PRIu64 " bytes",
        [EVENT_ARRIVED] = "has frame %" PRIu64 ", compared %" PRIu64,
        [EVENT_SLEEPS] = "sleeps; bells %" PRIu64 ", news %" PRIu64,
        [EVENT_DIES] = "dies; frames sent %" PRIu64 ", taken %" PRIu64,
        [EVENT_GONE] = "hears that the other is gone; frames sent %" PRIu64 ", taken %" PRIu64,
        [EVENT_FAILS] = "fails; frames sent %" PRIu64 ", taken %" PRIu64,
        [EVENT_PAUSES] = "stands still from turn %" PRIu64 " to %" PRIu64,
        [EVENT_LIE] = "lies at %" PRIu64 ": %" PRIu64,
    };
    fprintf(file, "  end %" PRIu32 " ", event->end);
    // NOLINTNEXTLINE(clang-diagnostic-format-nonliteral): one of those above
    fprintf(file, texts[event->kind], event->first, event->second);
    fputc('\n', file);
}

void world_tell(const world_end *end, world_event_kind kind, uint64_t first, uint64_t second) {
    const world_event event = {end->index, kind, first, second};
    uint64_t *digest = &ring_world.result->digest;
    *digest = (*digest ^ (first * 31 + second * 7 + kind * 2 + end->index)) * 0x100000001b3u;
    told[told_count++ % TOLD_LIMIT] = event;
    if (ring_world.is_verbose) event_print(&event, stderr);
}

void ring_simulation_tell_last(FILE *file) {
    const uint64_t first = told_count > TOLD_LIMIT ? told_count - TOLD_LIMIT : 0;
    fprintf(file, "seed %" PRIu64 "\n", ring_world.seed);
    for (uint64_t i = first; i < told_count; i++)
        event_print(&told[i % TOLD_LIMIT], file);
    fflush(file);
}

void world_wrong(const char *format, ...) {
    ring_simulation_result *result = ring_world.result;
    va_list arguments;
    if (!result->is_wrong) {
        result->is_wrong = true;
        va_start(arguments, format);
        vsnprintf(result->text, sizeof result->text, format, arguments);
        va_end(arguments);
    }
    if (ring_world.current != NULL) world_leave(ring_world.current);
}

// ---- turns

void world_leave(world_end *end) {
    swapcontext(&end->context, &ring_world.context);
}

void world_step(world_end *end) {
    end->steps_of_call += 1;
    ring_world.step_count += 1;
    if (end->budget == 0) {
        world_leave(end);
    } else {
        end->budget -= 1;
    }
}

// ---- what is on its way

// Where in the rings something is: offsets in the second one begin at 100000. UINT64_MAX: nowhere.
static uint64_t offset_within(const world_end *end, const void *at, uint64_t count, uint64_t first,
                              uint64_t limit) {
    for (uint32_t ring = 0; ring < 2; ring++) {
        const uint8_t *memory = ring_world.memory[ring][end->index];
        const uint64_t offset = (uint64_t)((uintptr_t)at - (uintptr_t)memory);
        if (offset >= first && offset < limit && count <= limit - offset) {
            return offset + (uint64_t)100000 * ring;
        }
    }
    return UINT64_MAX;
}

uint64_t world_offset(const world_end *end, const void *at) {
    return offset_within(end, at, 0, 0, PEN_RING_CONTROL_BYTES + 2 * PEN_RING_BYTES);
}

static void store_see(world_end *end, uint32_t index) {
    world_store *store = &end->stores[index];
    memcpy(store->at, store->bytes, store->count);
    world_tell(end, EVENT_SEEN, world_offset(end, store->at), store->count);
    end->store_count -= 1;
    for (uint32_t i = index; i < end->store_count; i++)
        end->stores[i] = end->stores[i + 1];
}

static bool store_overlaps(const world_store *one, const world_store *other) {
    return one->at < other->at + other->count && other->at < one->at + one->count;
}

static bool store_may_be_seen(const world_end *end, uint32_t index) {
    if (end->stores[index].is_release) return index == 0;
    for (uint32_t i = 0; i < index; i++) {
        if (store_overlaps(&end->stores[i], &end->stores[index])) return false;
    }
    return true;
}

void world_see_one(world_end *end) {
    if (end->store_count == 0) return;
    const uint32_t index = world_draw(end->store_count);
    store_see(end, store_may_be_seen(end, index) ? index : 0);
}

void world_see_all(world_end *end) {
    while (end->store_count != 0)
        world_see_one(end);
}

static void store_add(world_end *end, void *at, const void *bytes, uint32_t count,
                      bool is_release) {
    if (end->store_count == WORLD_STORE_LIMIT) world_see_one(end);
    world_store *store = &end->stores[end->store_count++];
    store->at = at;
    store->count = count;
    store->is_release = is_release;
    memcpy(store->bytes, bytes, count);
}

// ---- what the product does to the memory

static uint64_t checked_offset(const world_end *end, const void *at, uint64_t count, uint64_t first,
                               uint64_t limit) {
    const uint64_t offset = offset_within(end, at, count, first, limit);
    if (offset == UINT64_MAX) {
        world_wrong("end %" PRIu32 " touches %" PRIu64 " bytes outside of the rings", end->index,
                    count);
    }
    return offset;
}

static uint64_t word_offset(const world_end *end, const void *at) {
    return checked_offset(end, at, sizeof(pen_ring_word), 0, sizeof(pen_ring_control));
}

static uint64_t records_offset(const world_end *end, const void *at, uint64_t count) {
    return checked_offset(end, at, count, PEN_RING_CONTROL_BYTES,
                          PEN_RING_CONTROL_BYTES + 2 * PEN_RING_BYTES);
}

static uint64_t simulated_load(const pen_ring_word *word) {
    world_end *end = ring_world.current;
    const uint64_t offset = word_offset(end, word);
    world_step(end);
    uint64_t value = atomic_load_explicit(word, memory_order_relaxed);
    for (uint32_t i = 0; i < end->store_count; i++) { // it sees its own at once
        if ((uintptr_t)end->stores[i].at == (uintptr_t)word) {
            memcpy(&value, end->stores[i].bytes, sizeof value);
        }
    }
    world_tell(end, EVENT_LOAD, offset, value);
    return value;
}

static void simulated_store(pen_ring_word *word, uint64_t value, memory_order order) {
    world_end *end = ring_world.current;
    const uint64_t offset = word_offset(end, word);
    world_step(end);
    world_tell(end, EVENT_STORE, offset, value);
    if (order == memory_order_seq_cst) {
        world_see_all(end);
        atomic_store_explicit(word, value, memory_order_relaxed);
    } else {
        store_add(end, word, &value, sizeof value, order == memory_order_release);
    }
}

static uint64_t simulated_exchange(pen_ring_word *word, uint64_t value) {
    world_end *end = ring_world.current;
    const uint64_t offset = word_offset(end, word);
    world_step(end);
    world_see_all(end);
    const uint64_t before = atomic_exchange_explicit(word, value, memory_order_relaxed);
    world_tell(end, EVENT_EXCHANGE, offset, before);
    return before;
}

// The next part of a copy: most are made of several.
static uint64_t copy_part(uint64_t left) {
    if (left <= 8 || world_draw(3) == 0) return left;
    return 1 + world_draw((uint32_t)left - 1);
}

// Heads and lengths go to memory of the product, which has room for so many bytes. Payloads go to
// where the frame belongs.
static bool may_read_to(const world_end *end, const uint8_t *to, uint64_t count) {
    const uint64_t offset = (uint64_t)((uintptr_t)to - (uintptr_t)end->taken);
    if (offset >= 2 * WORLD_MARGIN + WORLD_FRAME_BYTES) return count <= PEN_RING_HEAD_LIMIT;
    return offset >= WORLD_MARGIN && offset - WORLD_MARGIN + count <= end->taken_bytes;
}

static void simulated_read(void *to, const uint8_t *from, uint64_t count) {
    world_end *end = ring_world.current;
    uint8_t *bytes = to;
    const uint64_t offset = records_offset(end, from, count);
    if (!may_read_to(end, to, count)) {
        world_wrong("end %" PRIu32 " writes %" PRIu64 " bytes where there is no room for them",
                    end->index, count);
    }
    for (uint64_t done = 0; done < count;) {
        const uint64_t part = copy_part(count - done);
        world_step(end);
        memcpy(bytes + done, from + done, part);
        world_tell(end, EVENT_READ, offset + done, part);
        done += part;
    }
    world_step(end);
}

static void simulated_write(uint8_t *to, const void *from, uint64_t count) {
    world_end *end = ring_world.current;
    const uint8_t *bytes = from;
    const uint64_t offset = records_offset(end, to, count);
    for (uint64_t done = 0; done < count;) {
        const uint64_t part = copy_part(count - done);
        world_step(end);
        store_add(end, to + done, bytes + done, (uint32_t)part, false);
        world_tell(end, EVENT_WRITE, offset + done, part);
        done += part;
    }
}

const pen_ring_simulation pen_ring_simulated = {
    .load = simulated_load,
    .store = simulated_store,
    .exchange = simulated_exchange,
    .read = simulated_read,
    .write = simulated_write,
};
