#include "scheduler/plan/plan_room.h"

#include <string.h>

#include "graph/graph.h"
#include "scheduler/plan/kernel_sizes.h"
#include "scheduler/runtime/executor/part_memory.h"

// The program as the executor of one device that runs all of it.
static pen_part room_part(const pen_program *program, pen_part_list *lists) {
    lists[0] = (pen_part_list){.end = program->update_first};
    lists[1] = (pen_part_list){.first = program->update_first, .end = program->order_count};
    return (pen_part){.graph = program->graph,
                      .order = program->order,
                      .order_count = program->order_count,
                      .lists = lists,
                      .list_count = 2,
                      .kept = program->kept,
                      .kept_count = program->kept_count};
}

// What one device that trains alone takes beside what the memory model says of it: for lists of
// launches, and for further forms.
static pen_status room_find_alone(const pen_plan_model *model, pen_arena *arena,
                                  uint64_t *out_bytes) {
    pen_device *device = model->devices[0];
    pen_part_first first = {0};
    pen_part_list lists[2];
    pen_device_memory memory;
    pen_kernel_sizes *sizes;
    pen_part part = room_part(model->program, lists);
    *out_bytes = 0;
    if (!device->kind->has_own_memory) return PEN_OK;
    PEN_TRY(pen_kernel_sizes_new(device, arena, &sizes));
    PEN_TRY(PEN_NEW(arena, pen_graph_value_count(part.graph), &first.slots));
    const pen_part_memory_request request = {.part = &part,
                                             .value_bytes = pen_kernel_sizes_of_value,
                                             .workspace = pen_kernel_sizes_of_node,
                                             .context = &sizes,
                                             .device = device,
                                             .is_whole = true};
    PEN_TRY(pen_part_memory_find_first(&request, &first, &memory));
    *out_bytes = memory.workspace - first.working_bytes;
    for (uint32_t f = 0; f < model->forms.count; f++) {
        uint64_t bytes;
        part = room_part(model->forms.items[f].program, lists);
        PEN_TRY(pen_part_memory_find_further(&request, &first, &bytes));
        *out_bytes += bytes;
    }
    return PEN_OK;
}

// Of several devices, what lists and further forms take depends on the cut.
pen_status pen_plan_room_new(const pen_plan_model *model, const pen_cluster *cluster,
                             pen_arena *arena, pen_plan_room **out_room) {
    const uint32_t count = cluster->device_count;
    const bool is_alone = count == 1 && cluster->devices[0].host == NULL;
    uint64_t alone_bytes = 0;
    pen_plan_room *room;
    if (is_alone) PEN_TRY(room_find_alone(model, arena, &alone_bytes));
    PEN_TRY(PEN_NEW(arena, 1, &room));
    PEN_TRY(PEN_NEW(arena, count, &room->devices));
    PEN_TRY(PEN_NEW(arena, count, &room->missing));
    memcpy(room->devices, cluster->devices, count * sizeof *room->devices);
    for (uint32_t d = 0; d < count; d++) {
        pen_device *device = model->devices[model->number_of_device[d]];
        room->devices[d].own_bytes = pen_device_own_bytes(device) + alone_bytes;
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
