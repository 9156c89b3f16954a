#include "base/sets/id_heap.h"

#include <stddef.h>

static uint32_t heap_key(const pen_id_heap *heap, uint32_t id) {
    return heap->keys == NULL ? id : heap->keys[id];
}

void pen_id_heap_push(pen_id_heap *heap, uint32_t id) {
    uint32_t at = heap->count++;
    while (at > 0 && heap_key(heap, heap->ids[(at - 1) / 2]) > heap_key(heap, id)) {
        heap->ids[at] = heap->ids[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    heap->ids[at] = id;
}

uint32_t pen_id_heap_pop(pen_id_heap *heap) {
    const uint32_t top = heap->ids[0], last = heap->ids[--heap->count];
    uint32_t at = 0;
    for (uint32_t child; (child = 2 * at + 1) < heap->count; at = child) {
        if (child + 1 < heap->count &&
            heap_key(heap, heap->ids[child + 1]) < heap_key(heap, heap->ids[child])) {
            child++;
        }
        if (heap_key(heap, heap->ids[child]) >= heap_key(heap, last)) break;
        heap->ids[at] = heap->ids[child];
    }
    heap->ids[at] = last;
    return top;
}
