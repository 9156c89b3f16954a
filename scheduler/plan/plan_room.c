#include "scheduler/plan/plan_room.h"

#include <string.h>

pen_status pen_plan_room_new(const pen_plan_model *model, const pen_cluster *cluster,
                             pen_arena *arena, pen_plan_room **out_room) {
    const uint32_t count = cluster->device_count;
    pen_plan_room *room;
    PEN_TRY(PEN_NEW(arena, 1, &room));
    PEN_TRY(PEN_NEW(arena, count, &room->devices));
    PEN_TRY(PEN_NEW(arena, count, &room->missing));
    memcpy(room->devices, cluster->devices, count * sizeof *room->devices);
    for (uint32_t d = 0; d < count; d++) {
        pen_device *device = model->devices[model->number_of_device[d]];
        room->devices[d].own_bytes = pen_device_own_bytes(device);
    }
    room->cluster = *cluster;
    room->cluster.devices = room->devices;
    *out_room = room;
    return PEN_OK;
}

bool pen_plan_room_learn(pen_plan_room *room) {
    bool is_new = false;
    for (uint32_t d = 0; d < room->cluster.device_count; d++) {
        is_new = is_new || room->missing[d] > 0;
        room->devices[d].own_bytes += room->missing[d];
        room->missing[d] = 0;
    }
    return is_new;
}
