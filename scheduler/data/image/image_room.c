#include "scheduler/data/image/image_room.h"

#include "base/memory.h"

pen_status pen_image_room_reserve(pen_image_room *room, size_t wanted) {
    if (wanted <= room->capacity) return PEN_OK;
    pen_image_room_clear(room);
    room->bytes = pen_memory_allocate_lazily(wanted, 1);
    if (room->bytes == NULL) return pen_error_out_of_memory();
    room->capacity = wanted;
    return PEN_OK;
}

void pen_image_room_clear(pen_image_room *room) {
    pen_memory_free(room->bytes);
    *room = (pen_image_room){0};
}
