#include "base/name_map.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define NAME_MAP_CAPACITY_FIRST 64

void pen_name_map_init(pen_name_map *map, pen_arena *arena) {
    *map = (pen_name_map){.arena = arena};
}

// FNV-1a: names are short, and come from files whose author gains nothing from collisions that a
// longer file would not give.
static uint32_t name_map_hash(const char *name) {
    uint32_t hash = 2166136261u;
    for (const char *c = name; *c != '\0'; c++) {
        hash = (hash ^ (unsigned char)*c) * 16777619u;
    }
    return hash;
}

// The slot that holds `name`, or the free one where it belongs.
static uint32_t name_map_slot(const pen_name_map *map, const char *name) {
    uint32_t slot = name_map_hash(name) & (map->capacity - 1);
    while (map->names[slot] != NULL && strcmp(map->names[slot], name) != 0) {
        slot = (slot + 1) & (map->capacity - 1);
    }
    return slot;
}

uint32_t pen_name_map_find(const pen_name_map *map, const char *name) {
    if (map->capacity == 0) return PEN_NAME_MAP_NONE;
    const uint32_t slot = name_map_slot(map, name);
    return map->names[slot] == NULL ? PEN_NAME_MAP_NONE : map->indices[slot];
}

static pen_status name_map_grow(pen_name_map *map, uint32_t capacity) {
    pen_name_map grown = {.arena = map->arena, .count = map->count, .capacity = capacity};
    PEN_TRY(PEN_NEW(map->arena, grown.capacity, &grown.names));
    PEN_TRY(PEN_NEW(map->arena, grown.capacity, &grown.indices));
    for (uint32_t i = 0; i < map->capacity; i++) {
        if (map->names[i] == NULL) continue;
        const uint32_t slot = name_map_slot(&grown, map->names[i]);
        grown.names[slot] = map->names[i];
        grown.indices[slot] = map->indices[i];
    }
    *map = grown;
    return PEN_OK;
}

// At most half of the slots are taken.
pen_status pen_name_map_reserve(pen_name_map *map, uint32_t count) {
    uint32_t capacity = map->capacity == 0 ? NAME_MAP_CAPACITY_FIRST : map->capacity;
    PEN_ASSERT(count <= UINT32_MAX / 4);
    while (capacity / 2 < count) {
        capacity *= 2;
    }
    return capacity == map->capacity ? PEN_OK : name_map_grow(map, capacity);
}

pen_status pen_name_map_add(pen_name_map *map, const char *name, uint32_t index) {
    if (map->count >= map->capacity / 2) PEN_TRY(pen_name_map_reserve(map, map->count + 1));
    const uint32_t slot = name_map_slot(map, name);
    PEN_ASSERT(map->names[slot] == NULL);
    map->names[slot] = name;
    map->indices[slot] = index;
    map->count += 1;
    return PEN_OK;
}

static bool name_map_is_free(const pen_name_map *map, const char *wanted, uint32_t suffix,
                             char *scratch, size_t scratch_bytes) {
    snprintf(scratch, scratch_bytes, "%s_%u", wanted, suffix);
    return pen_name_map_find(map, scratch) == PEN_NAME_MAP_NONE;
}

// Finds a free suffix by doubling and halving, not one by one: a model with 10,000 nodes of one
// name would need 50 million look-ups otherwise. It need not be the least free one.
pen_status pen_name_map_free_name(const pen_name_map *map, const char *wanted,
                                  const char **out_name) {
    if (pen_name_map_find(map, wanted) == PEN_NAME_MAP_NONE) {
        return pen_arena_copy_text(map->arena, wanted, strlen(wanted), out_name);
    }
    char *scratch;
    const size_t bytes = strlen(wanted) + sizeof "_4294967295";
    PEN_TRY(PEN_NEW(map->arena, bytes, &scratch));
    uint32_t taken = 1, free = 2; // "_1" counts as taken: the name itself is the first
    while (!name_map_is_free(map, wanted, free, scratch, bytes)) {
        taken = free;
        free *= 2; // ends: there are fewer than 2^31 names
    }
    while (free - taken > 1) {
        const uint32_t middle = taken + (free - taken) / 2;
        const bool is_free = name_map_is_free(map, wanted, middle, scratch, bytes);
        if (is_free) free = middle;
        if (!is_free) taken = middle;
    }
    snprintf(scratch, bytes, "%s_%u", wanted, free);
    *out_name = scratch;
    return PEN_OK;
}
