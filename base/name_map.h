// A map from names to indices, for tables that only grow. Insertion order never shows.
//
// Lifetime: lives in the arena it was made with; names are borrowed and must outlive it.
#ifndef PEN_BASE_NAME_MAP_H
#define PEN_BASE_NAME_MAP_H

#include <stdint.h>

#include "base/arena.h"
#include "base/status.h"

typedef struct pen_name_map {
    pen_arena *arena;
    uint32_t count;
    uint32_t capacity; // a power of two, or 0
    const char **names;
    uint32_t *indices;
} pen_name_map;

#define PEN_NAME_MAP_NONE UINT32_MAX

void pen_name_map_init(pen_name_map *map, pen_arena *arena);
// Makes room for `count` names in all, for who knows how many there will be: maps that grow leave
// their smaller tables in the arena. OUT_OF_MEMORY.
PEN_NODISCARD pen_status pen_name_map_reserve(pen_name_map *map, uint32_t count);
// PEN_NAME_MAP_NONE when `name` is not there.
uint32_t pen_name_map_find(const pen_name_map *map, const char *name);
// `name` must not be there yet. OUT_OF_MEMORY.
PEN_NODISCARD pen_status pen_name_map_add(pen_name_map *map, const char *name, uint32_t index);
// `wanted` itself if it is not there, else with a suffix, "_2" or above, with which it is not: one
// behind a taken one, found by bisection, so that thousands of equal names are no burden. The name
// is made in the map's arena, and not added. OUT_OF_MEMORY.
PEN_NODISCARD pen_status pen_name_map_free_name(const pen_name_map *map, const char *wanted,
                                                const char **out_name);

#endif // PEN_BASE_NAME_MAP_H
