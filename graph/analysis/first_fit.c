#include "graph/analysis/first_fit.h"

#include <string.h>

#include "base/integer.h"

// Lists that one life touches: on each of 33 levels two stretches that it fills, with two lists
// each, and two that it fills in part.
#define FIT_LISTS_LIMIT (33u * 6u)

typedef struct fit_entry {
    uint64_t begin;
    uint64_t end;
} fit_entry;

// In order of offset; no two entries touch.
typedef struct fit_list {
    fit_entry *entries; // [capacity]
    uint32_t count;
    uint32_t capacity;
} fit_list;

typedef struct fit_stretch {
    fit_list throughout; // taken during all of the stretch, by lives that were cut so
    fit_list sometimes;  // taken at some time in it
} fit_stretch;

struct pen_first_fit {
    pen_arena *arena;
    uint32_t width;         // times, rounded up to a power of two
    fit_stretch *stretches; // [2 * width], the root at 1, the children of i at 2i and 2i + 1
    uint64_t steps;
};

// What a life touches: what is in its way, and what has to know of it.
typedef struct fit_life {
    uint32_t first;
    uint32_t last;
    const fit_list *blocking[FIT_LISTS_LIMIT];
    uint32_t blocking_count;
    fit_list *taking[FIT_LISTS_LIMIT];
    uint32_t taking_count;
} fit_life;

pen_status pen_first_fit_new(uint32_t time_count, pen_arena *arena, pen_first_fit **out_fit) {
    pen_first_fit *fit;
    PEN_TRY(PEN_NEW(arena, 1, &fit));
    fit->arena = arena;
    fit->width = 1;
    while (fit->width < time_count) {
        fit->width *= 2;
    }
    PEN_TRY(PEN_NEW(arena, (size_t)2 * fit->width, &fit->stretches));
    *out_fit = fit;
    return PEN_OK;
}

void pen_first_fit_clear(pen_first_fit *fit) {
    for (size_t i = 0; i < (size_t)2 * fit->width; i++) {
        fit->stretches[i].throughout.count = 0;
        fit->stretches[i].sometimes.count = 0;
    }
}

uint64_t pen_first_fit_steps(const pen_first_fit *fit) {
    return fit->steps;
}

// The first entry that ends above `offset`.
static uint32_t fit_list_find(const fit_list *list, uint64_t offset) {
    uint32_t low = 0, high = list->count;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (list->entries[middle].end > offset) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    return low;
}

static pen_status fit_list_grow(fit_list *list, pen_arena *arena) {
    if (list->count < list->capacity) return PEN_OK;
    const uint32_t capacity = list->capacity == 0 ? 2 : 2 * list->capacity;
    fit_entry *entries;
    PEN_TRY(PEN_NEW(arena, capacity, &entries));
    if (list->count > 0) memcpy(entries, list->entries, list->count * sizeof *entries);
    list->entries = entries;
    list->capacity = capacity;
    return PEN_OK;
}

// Counts the smallest gap as taken.
static void fit_list_close_gap(fit_list *list) {
    uint32_t smallest = 0;
    uint64_t smallest_bytes = UINT64_MAX;
    for (uint32_t i = 0; i + 1 < list->count; i++) {
        const uint64_t bytes = list->entries[i + 1].begin - list->entries[i].end;
        if (bytes >= smallest_bytes) continue;
        smallest_bytes = bytes;
        smallest = i;
    }
    list->entries[smallest].end = list->entries[smallest + 1].end;
    memmove(&list->entries[smallest + 1], &list->entries[smallest + 2],
            (list->count - smallest - 2) * sizeof *list->entries);
    list->count--;
}

// Entries that touch the new one become one with it.
static pen_status fit_list_add(fit_list *list, fit_entry taken, pen_first_fit *fit) {
    const uint32_t at = taken.begin == 0 ? 0 : fit_list_find(list, taken.begin - 1);
    uint32_t next = at;
    while (next < list->count && list->entries[next].begin <= taken.end) {
        taken.begin = pen_min_u64(taken.begin, list->entries[next].begin);
        taken.end = pen_max_u64(taken.end, list->entries[next].end);
        next++;
    }
    if (next == at) PEN_TRY(fit_list_grow(list, fit->arena));
    const uint32_t moved = list->count - next;
    if (next != at + 1 && moved > 0) {
        memmove(&list->entries[at + 1], &list->entries[next], moved * sizeof *list->entries);
        fit->steps += moved;
    }
    list->entries[at] = taken;
    list->count = at + 1 + moved;
    fit->steps += next - at + 1;
    if (list->count > PEN_FIRST_FIT_ENTRIES) {
        fit_list_close_gap(list);
        fit->steps += list->count;
    }
    return PEN_OK;
}

static void fit_life_blocked(fit_life *life, const fit_list *list) {
    if (list->count > 0) life->blocking[life->blocking_count++] = list;
}

// Goes down the tree along both ends of the life. Stretches that it fills are not entered; of
// those that it fills in part, only what is taken throughout is surely in its way.
static void fit_life_cut(fit_life *life, pen_first_fit *fit, uint32_t index, uint32_t begin,
                         uint32_t width) {
    fit_stretch *stretch = &fit->stretches[index];
    life->taking[life->taking_count++] = &stretch->sometimes;
    if (life->first <= begin && begin + (width - 1) <= life->last) {
        life->taking[life->taking_count++] = &stretch->throughout;
        fit_life_blocked(life, &stretch->sometimes);
        return;
    }
    fit_life_blocked(life, &stretch->throughout);
    const uint32_t half = width / 2, middle = begin + half;
    if (life->first < middle) fit_life_cut(life, fit, 2 * index, begin, half);
    if (life->last >= middle) fit_life_cut(life, fit, 2 * index + 1, middle, half);
}

// Goes up from offset 0 until no list has anything in the way.
static uint64_t fit_life_place(const fit_life *life, uint64_t bytes, uint64_t *steps) {
    uint64_t offset = 0;
    uint32_t clear_count = 0; // lists in a row with nothing in the way
    for (uint32_t i = 0; clear_count < life->blocking_count; i++) {
        const fit_list *list = life->blocking[i % life->blocking_count];
        uint32_t at = fit_list_find(list, offset);
        clear_count++;
        while (at < list->count && list->entries[at].begin < offset + bytes) {
            offset = list->entries[at++].end;
            clear_count = 1;
            *steps += 1;
        }
        *steps += 1;
    }
    return offset;
}

pen_status pen_first_fit_take(pen_first_fit *fit, uint32_t first, uint32_t last, uint64_t bytes,
                              uint64_t *out_offset) {
    PEN_ASSERT(first <= last && last < fit->width);
    fit_life life = {.first = first, .last = last};
    *out_offset = 0;
    if (bytes == 0) return PEN_OK;
    fit_life_cut(&life, fit, 1, 0, fit->width);
    *out_offset = fit_life_place(&life, bytes, &fit->steps);
    const fit_entry taken = {*out_offset, *out_offset + bytes};
    for (uint32_t i = 0; i < life.taking_count; i++) {
        PEN_TRY(fit_list_add(life.taking[i], taken, fit));
    }
    return PEN_OK;
}
