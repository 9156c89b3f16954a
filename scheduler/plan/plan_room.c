#include "scheduler/plan/plan_room.h"

#include <string.h>

// What lists of launches take of one device that trains alone: a microbatch, and the update.
static uint64_t room_lists(const pen_plan_model *model, const pen_cluster *cluster) {
    const pen_program *program = model->program;
    const pen_device_kind *kind = model->devices[0]->kind;
    if (cluster->device_count > 1 || cluster->devices[0].host != NULL) return 0;
    if (kind->list_bytes == NULL) return 0;
    const uint32_t first = program->update_first;
    uint64_t taken = 0;
    const uint64_t bytes =
        kind->list_bytes(program->graph, program->order, first) +
        kind->list_bytes(program->graph, program->order + first, program->order_count - first);
    return pen_list_room_take(kind, &taken, bytes);
}

// Of several devices, what lists take depends on the cut.
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
        room->devices[d].own_bytes = pen_device_own_bytes(device) + room_lists(model, cluster);
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
