#include "base/name_map.h"

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

static pen_status name_map_grow(pen_name_map *map) {
    pen_name_map grown = {.arena = map->arena, .count = map->count};
    grown.capacity = map->capacity == 0 ? NAME_MAP_CAPACITY_FIRST : map->capacity * 2;
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

pen_status pen_name_map_add(pen_name_map *map, const char *name, uint32_t index) {
    if (map->count >= map->capacity / 2) PEN_TRY(name_map_grow(map));
    const uint32_t slot = name_map_slot(map, name);
    PEN_ASSERT(map->names[slot] == NULL);
    map->names[slot] = name;
    map->indices[slot] = index;
    map->count += 1;
    return PEN_OK;
}
