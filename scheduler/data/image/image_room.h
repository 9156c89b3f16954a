// Memory for pixels that a reader keeps from picture to picture, and that grows with the largest.
//
// A file may announce pixels that it lacks: a page of the room is resident once it is written to.
//
// Lifetime: {0} is an empty room; what it has is given back by clear.
// Threads:  one thread at a time.
#ifndef PEN_SCHEDULER_DATA_IMAGE_IMAGE_ROOM_H
#define PEN_SCHEDULER_DATA_IMAGE_IMAGE_ROOM_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

typedef struct pen_image_room {
    uint8_t *bytes;
    size_t capacity;
} pen_image_room;

// Makes it `wanted` bytes large at least. What was in it may be lost. OUT_OF_MEMORY; it is empty
// then
PEN_NODISCARD pen_status pen_image_room_reserve(pen_image_room *room, size_t wanted);

void pen_image_room_clear(pen_image_room *room);

#endif // PEN_SCHEDULER_DATA_IMAGE_IMAGE_ROOM_H
