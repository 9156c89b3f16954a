#include "tests/simulator/world.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "tests/simulator/checks.h"
#include "tests/simulator/coordinator_process.h"
#include "tests/simulator/faults.h"
#include "tests/simulator/links.h"
#include "tests/simulator/stuck.h"
#include "tests/simulator/worker_process.h"

void *world_allocate(world *w, size_t count, size_t size) {
    void *memory = pen_arena_allocate(w->arena, count, size, 16);
    if (memory == NULL) abort();
    return memory;
}

// ---- the heap of events

static bool event_is_before(const world_event *a, const world_event *b) {
    return a->at != b->at ? a->at < b->at : a->order < b->order;
}

static void heap_put(world *w, world_event event) {
    if (w->heap_count == w->heap_room) {
        const uint32_t room = w->heap_room == 0 ? 512 : 2 * w->heap_room;
        world_event *heap = world_allocate(w, room, sizeof *heap);
        if (w->heap_count > 0) memcpy(heap, w->heap, w->heap_count * sizeof *heap);
        w->heap = heap;
        w->heap_room = room;
    }
    uint32_t at = w->heap_count++;
    while (at > 0) {
        const uint32_t parent = (at - 1) / 4;
        if (!event_is_before(&event, &w->heap[parent])) break;
        w->heap[at] = w->heap[parent];
        at = parent;
    }
    w->heap[at] = event;
}

static world_event heap_take(world *w) {
    const world_event first = w->heap[0];
    const world_event last = w->heap[--w->heap_count];
    uint32_t at = 0;
    for (;;) {
        const uint32_t begin = 4 * at + 1;
        if (begin >= w->heap_count) break;
        uint32_t best = begin;
        for (uint32_t i = begin + 1; i < begin + 4 && i < w->heap_count; i++) {
            if (event_is_before(&w->heap[i], &w->heap[best])) best = i;
        }
        if (!event_is_before(&w->heap[best], &last)) break;
        w->heap[at] = w->heap[best];
        at = best;
    }
    w->heap[at] = last;
    return first;
}

void world_put(world *w, uint64_t delay, world_event event) {
    event.at = w->now + delay;
    event.order = w->order++;
    heap_put(w, event);
}

void world_call_in(world *w, uint64_t delay, process *p, world_call call, void *context,
                   uint64_t value) {
    world_put(w, delay,
              (world_event){.process = p, .call = call, .context = context, .value = value});
}

void world_work_in(world *w, uint64_t delay, process *p, world_call call, void *context,
                   uint64_t value) {
    world_put(w, delay,
              (world_event){
                  .process = p, .call = call, .context = context, .value = value, .is_work = true});
}

static void events_add(world *w, world_events *events, const world_event *event) {
    if (events->count == events->room) {
        const uint32_t room = events->room == 0 ? 32 : 2 * events->room;
        world_event *items = world_allocate(w, room, sizeof *items);
        if (events->count > 0) memcpy(items, events->items, events->count * sizeof *items);
        events->items = items;
        events->room = room;
    }
    events->items[events->count++] = *event;
}

void world_defer(process *frozen, process *p, world_call call, void *context, uint64_t value) {
    const world_event event = {.process = p, .call = call, .context = context, .value = value};
    events_add(frozen->world, &frozen->deferred, &event);
}

bool world_step(world *w) {
    if (w->heap_count == 0) return false;
    const world_event event = heap_take(w);
    PEN_ASSERT(event.at >= w->now);
    w->now = event.at;
    process *p = event.process;
    if (p != NULL && !p->is_alive) return true;
    if (p != NULL && (p->is_frozen || p->is_held)) {
        events_add(w, &p->deferred, &event);
        return true;
    }
    if (p != NULL && process_is_busy(p) && event.is_work) {
        events_add(w, &p->held, &event);
        return true;
    }
    w->result->events += 1;
    event.call(p, event.context == NULL ? w : event.context, event.value);
    if (p != NULL && p->is_alive && p->disk->has_crashed) process_crash(p, false);
    if (p != NULL) check_process(p);
    return true;
}

// ---- notes

static uint64_t note_mix(uint64_t hash, uint64_t word) {
    return shape_hash(hash, word);
}

static void note_write(FILE *log, const world *w, const world_note *note) {
    fprintf(log, "%12.6f ms  ", (double)note->at / 1e6);
    if (note->process == UINT32_MAX) {
        fprintf(log, "world          ");
    } else {
        const process *p = w->processes[note->process];
        fprintf(log, "%s %2u (p%-3u)", p->host < WORLD_FIRST_WORKER ? "coord" : "host ", p->host,
                p->index);
    }
    fprintf(log, " %-28s %" PRIu64 " %" PRIu64 " %" PRIx64 "\n", note->text, note->numbers[0],
            note->numbers[1], note->numbers[2]);
}

void world_note_event(world *w, const process *p, const char *text, const uint64_t numbers[3]) {
    world_note *note = &w->notes[w->note_count++ % WORLD_NOTES];
    note->at = w->now;
    note->text = text;
    note->process = p == NULL ? UINT32_MAX : p->index;
    uint64_t hash = note_mix(w->result->digest, w->now ^ ((uint64_t)note->process << 48));
    for (uint32_t i = 0; i < 3; i++) {
        note->numbers[i] = numbers[i];
        hash = note_mix(hash, numbers[i]);
    }
    w->result->digest = note_mix(hash, (uint64_t)(uint8_t)text[0]);
    if (w->options.verbose != NULL) note_write(w->options.verbose, w, note);
}

static void world_tell_last(const world *w, FILE *log) {
    const uint64_t count = w->note_count < 60 ? w->note_count : 60;
    fprintf(log, "seed %" PRIu64 ", profile %s: the last %" PRIu64 " of %" PRIu64 " events\n",
            w->seed, simulation_profile_names[w->options.profile], count, w->note_count);
    for (uint64_t i = w->note_count - count; i < w->note_count; i++) {
        note_write(log, w, &w->notes[i % WORLD_NOTES]);
    }
}

static world *world_current;

void simulation_tell_last(FILE *log) {
    if (world_current != NULL) world_tell_last(world_current, log);
}

void world_wrong(world *w, const char *invariant, const char *format, ...) {
    if (w->is_wrong) return;
    w->is_wrong = true;
    simulation_result *result = w->result;
    result->is_wrong = true;
    snprintf(result->invariant, sizeof result->invariant, "%s", invariant);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(result->text, sizeof result->text, format, arguments);
    va_end(arguments);
}

// ---- processes

uint64_t process_now(const process *p) {
    const uint64_t now = p->world->now;
    const uint64_t rate = (uint64_t)(p->clock_drift < 0 ? -p->clock_drift : p->clock_drift);
    const uint64_t drift = now * rate / 1000000; // so that it never goes back
    return p->clock_offset + (p->clock_drift < 0 ? now - drift : now + drift);
}

process *process_start(world *w, uint32_t host) {
    PEN_ASSERT(w->hosts[host].process == NULL);
    if (w->process_count == WORLD_PROCESSES) return NULL;
    process *p = WORLD_NEW(w, process);
    p->world = w;
    p->index = w->process_count;
    p->host = host;
    p->is_alive = true;
    p->incarnation = chance_next(&w->dice) | 1;
    p->clock_offset = 1 + chance_below(&w->dice, 100 * WORLD_SECOND);
    p->clock_drift = (int64_t)chance_below(&w->dice, 40001) - 20000;
    p->slowness = 1;
    if (faulty_view_new(w->disk, p->index, &p->disk) != PEN_OK) abort();
    w->processes[w->process_count++] = p;
    w->hosts[host].process = p;
    WORLD_NOTE(w, p, "starts", p->incarnation, 0, 0);
    if (host < WORLD_FIRST_WORKER) {
        coordinator_start(p);
    } else {
        worker_start(p);
    }
    return p;
}

void process_crash(process *p, bool takes_power) {
    if (!p->is_alive) return;
    world *w = p->world;
    WORLD_NOTE(w, p, "dies", takes_power, 0, 0);
    p->is_alive = false;
    p->disk->has_crashed = true;
    if (w->hosts[p->host].process == p) w->hosts[p->host].process = NULL;
    links_forget(p);
    if (takes_power) {
        w->result->faults[SIMULATION_FAULT_POWER] += 1;
        faulty_disk_lose_power(w->disk, p->index);
    }
    if (p->coordinator != NULL) coordinator_died(p);
    if (p->worker != NULL) worker_died(p);
}

// What was kept for it comes to it now.
static void process_wake(process *p) {
    world *w = p->world;
    if (p->is_frozen || p->is_held) return;
    WORLD_NOTE(w, p, "thaws", 0, 0, 0);
    for (uint32_t i = 0; i < p->deferred.count; i++) {
        world_put(w, 0, p->deferred.items[i]);
    }
    p->deferred.count = 0;
}

static void process_thaw(process *p, void *context, uint64_t value) {
    process *frozen = context;
    (void)p;
    if (!frozen->is_alive || frozen->thaws_at != value) return;
    frozen->is_frozen = false;
    process_wake(frozen);
}

void process_hold(process *p, uint64_t nanoseconds) {
    world *w = p->world;
    p->is_held = true;
    process_freeze(p, nanoseconds);
    w->depth += 1;
    while (p->is_alive && p->is_frozen && !w->is_wrong && !w->is_over && world_step(w)) {
    }
    w->depth -= 1;
    p->is_held = false;
    process_wake(p);
}

void process_freeze(process *p, uint64_t nanoseconds) {
    world *w = p->world;
    const uint64_t thaws_at = w->now + nanoseconds;
    if (p->is_frozen && p->thaws_at >= thaws_at) return;
    WORLD_NOTE(w, p, "freezes", nanoseconds, 0, 0);
    p->is_frozen = true;
    p->thaws_at = thaws_at;
    world_call_in(w, nanoseconds, NULL, process_thaw, p, thaws_at);
}

// ---- the whole

static void world_run(world *w) {
    while (!w->is_wrong && !w->is_over && world_step(w)) {
        if (w->now > w->bound || w->result->events > w->event_limit) {
            world_wrong(w, "I8", "the training does not end: %" PRIu64 " events, %.3f s",
                        w->result->events, (double)w->now / 1e9);
        }
    }
    if (!w->is_over) world_wrong(w, "I8", "nothing happens any more");
}

void simulation_run(const simulation_options *options, FILE *log, simulation_result *out_result) {
    static pen_arena *arena;
    if (arena == NULL && pen_arena_create(&arena) != PEN_OK) abort();
    pen_arena_reset(arena);
    *out_result = (simulation_result){0};
    world *w = pen_arena_allocate(arena, 1, sizeof *w, 16);
    if (w == NULL) abort();
    w->options = *options;
    w->result = out_result;
    w->seed = options->seed;
    w->arena = arena;
    w->dice.state = chance_mix(options->seed ^ 0x5eed) + (uint64_t)options->profile;
    w->chaos.state = chance_next(&w->dice);
    world_current = w;
    world_draw(w);
    world_run(w);
    if (!w->is_wrong) check_end(w);
    world_count(w);
    if (w->is_wrong && log != NULL) {
        world_tell_last(w, log);
        fprintf(log, "seed %" PRIu64 ", profile %s: %s: %s\n", w->seed,
                simulation_profile_names[options->profile], out_result->invariant,
                out_result->text);
    }
    world_current = NULL;
}
