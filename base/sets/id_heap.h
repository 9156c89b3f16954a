// Ids that wait, the one with the lowest key first.
#ifndef PEN_BASE_SETS_ID_HEAP_H
#define PEN_BASE_SETS_ID_HEAP_H

#include <stdint.h>

// A binary heap in storage of the caller's.
typedef struct pen_id_heap {
    const uint32_t *keys; // of each id, no two alike; NULL: the ids themselves
    uint32_t *ids;        // as many as may wait at once
    uint32_t count;
} pen_id_heap;

void pen_id_heap_push(pen_id_heap *heap, uint32_t id);

// Takes out the id with the lowest key. There is one.
uint32_t pen_id_heap_pop(pen_id_heap *heap);

#endif // PEN_BASE_SETS_ID_HEAP_H
