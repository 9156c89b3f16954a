#include "partition/search/weighed.h"

#include <string.h>

#define WEIGHED_PLACES_MOST 4096
#define WEIGHED_BYTES_MOST (4u << 20) // of placements; a search has as many of these as threads
#define WEIGHED_FACTOR UINT64_C(0x9e3779b97f4a7c15)

pen_status pen_weighed_init(pen_weighed *weighed, uint32_t group_count, uint64_t wanted_count,
                            pen_arena *arena) {
    const uint64_t placement_bytes = (uint64_t)group_count * sizeof(uint32_t);
    uint32_t places = 1;
    while (places < WEIGHED_PLACES_MOST && places < 2 * wanted_count &&
           2 * places * placement_bytes <= WEIGHED_BYTES_MOST) {
        places *= 2;
    }
    *weighed = (pen_weighed){.group_count = group_count, .place_mask = places - 1, .arena = arena};
    return PEN_NEW(arena, places, &weighed->values);
}

pen_status pen_weighed_find(pen_weighed *weighed, const uint32_t *device_of_group,
                            pen_weighed_value **out_value) {
    const size_t placement_bytes = weighed->group_count * sizeof *device_of_group;
    uint64_t mixed = 0;
    for (uint32_t g = 0; g < weighed->group_count; g++)
        mixed = (mixed ^ device_of_group[g]) * WEIGHED_FACTOR + 1;
    mixed ^= mixed >> 32;
    pen_weighed_value *value =
        &weighed->values[(uint32_t)(mixed ^ mixed >> 16) & weighed->place_mask];
    uint32_t *kept = value->device_of_group;
    *out_value = value;
    if (kept != NULL && memcmp(kept, device_of_group, placement_bytes) == 0) return PEN_OK;
    if (kept == NULL) PEN_TRY(PEN_NEW(weighed->arena, weighed->group_count, &kept));
    memcpy(kept, device_of_group, placement_bytes);
    *value = (pen_weighed_value){.device_of_group = kept};
    return PEN_OK;
}
