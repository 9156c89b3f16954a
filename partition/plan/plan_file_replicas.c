#include "partition/plan/plan_file_replicas.h"

#include <inttypes.h>
#include <string.h>

#include "base/format/yaml_writer.h"
#include "base/sets/order.h"
#include "base/text.h"
#include "partition/plan/replica_check.h"

pen_status pen_plan_file_device(const pen_plan_file_finder *finder, const char *const *name,
                                uint32_t *out_device) {
    const char **names;
    pen_text text;
    *out_device = pen_name_map_find(finder->devices, *name);
    if (*out_device != PEN_NAME_MAP_NONE) return PEN_OK;
    PEN_TRY(PEN_NEW(finder->arena, finder->plan->device_count, &names));
    for (uint32_t d = 0; d < finder->plan->device_count; d++) {
        names[d] = finder->plan->devices[d].name;
    }
    pen_text_init(&text, finder->arena);
    pen_text_print(&text, "device '%.100s' is none of the plan's: ", *name);
    pen_text_add_names(&text, *name, names, finder->plan->device_count, 8);
    return pen_option_blame(finder->source, name, pen_text_error(&text, PEN_INVALID_INPUT));
}

// Lanes and devices of replicas. Stages follow their devices: those of a replica are numbered
// together, and run its microbatches.
static pen_status replicas_take(const pen_plan_file_finder *finder, const plan_file *file,
                                pen_plan *plan) {
    const file_replica *items = file->replicas.items;
    const uint32_t count = file->replicas.count;
    pen_plan_replica *replicas;
    PEN_TRY(PEN_NEW(finder->arena, count, &replicas));
    for (uint32_t i = 0; i < count; i++) {
        const int64_t *lanes = items[i].lanes.items;
        const int64_t last = lanes[items[i].lanes.count - 1];
        uint32_t *devices;
        if (last < lanes[0]) {
            return pen_option_blame(finder->source, &items[i].lanes,
                                    pen_error(PEN_INVALID_INPUT,
                                              "replica %u: found lanes %" PRId64 " to %" PRId64
                                              ", expected the first and the last",
                                              i, lanes[0], last));
        }
        PEN_TRY(PEN_NEW(finder->arena, items[i].devices.count, &devices));
        for (uint32_t d = 0; d < items[i].devices.count; d++) {
            const char *const *names = items[i].devices.items;
            PEN_TRY(pen_status_add_context(pen_plan_file_device(finder, &names[d], &devices[d]),
                                           "in replica %u", i));
        }
        pen_sort_ids(devices, items[i].devices.count);
        replicas[i] = (pen_plan_replica){.first_lane = (uint32_t)lanes[0],
                                         .lane_count = (uint32_t)(last - lanes[0]) + 1,
                                         .device_count = items[i].devices.count,
                                         .devices = devices};
    }
    plan->replica_count = count;
    plan->replicas = replicas;
    return PEN_OK;
}

// Owners are kept in the order of devices, as their stages are.
static pen_status replicas_take_owners(const pen_plan_file_finder *finder, const plan_file *file,
                                       pen_plan *plan) {
    const char *const *names = file->owners.items;
    const uint32_t count = file->owners.count;
    uint32_t *owners;
    PEN_TRY(PEN_NEW(finder->arena, count, &owners));
    for (uint32_t i = 0; i < count; i++) {
        PEN_TRY(pen_status_add_context(pen_plan_file_device(finder, &names[i], &owners[i]),
                                       "in owners"));
        for (uint32_t j = 0; j < i; j++) {
            if (owners[j] != owners[i]) continue;
            return pen_option_blame(
                finder->source, &names[i],
                pen_error(PEN_INVALID_INPUT, "device '%s' is an owner twice", names[i]));
        }
    }
    pen_sort_ids(owners, count);
    plan->owner_count = count;
    plan->owners = owners;
    return PEN_OK;
}

// The first microbatch of a lane (graph/lanes.h).
static uint32_t replicas_microbatch(const pen_plan *plan, uint32_t lane) {
    const uint64_t lanes = plan->lane_count > 0 ? plan->lane_count : 1;
    return (uint32_t)((lane * (uint64_t)plan->microbatch_count + lanes - 1) / lanes);
}

static bool replicas_is_owner(const pen_plan *plan, uint32_t device) {
    for (uint32_t i = 0; i < plan->owner_count; i++) {
        if (plan->owners[i] == device) return true;
    }
    return false;
}

// A stage is of the replica of its device; stages of one follow each other. Others are owners'.
static pen_status replicas_give_stages(const pen_plan_file_finder *finder, const plan_file *file,
                                       pen_plan *plan) {
    const file_stage *items = file->stages.items;
    pen_plan_replica *replicas;
    pen_stage *stages;
    memcpy(&replicas, &plan->replicas, sizeof replicas);  // made in replicas_take
    memcpy(&stages, &plan->stages.stages, sizeof stages); // as the stages were
    for (uint32_t s = 0; s < plan->stages.stage_count && plan->replica_count > 0; s++) {
        const uint32_t of = pen_plan_replica_of_device(plan, stages[s].device);
        stages[s].is_owner = of == PEN_ID_NONE && replicas_is_owner(plan, stages[s].device);
        if (stages[s].is_owner) continue;
        if (of == PEN_ID_NONE) {
            return pen_option_blame(finder->source, items[s].devices.items,
                                    pen_error(PEN_INVALID_INPUT,
                                              "stage %u is on device '%s', which is in no replica "
                                              "and no owner",
                                              s, plan->devices[stages[s].device].name));
        }
        pen_plan_replica *replica = &replicas[of];
        const uint32_t end = replica->first_lane + replica->lane_count;
        if (replica->stage_count == 0) replica->first_stage = s;
        if (replica->first_stage + replica->stage_count != s) {
            return pen_option_blame(
                finder->source, items[s].devices.items,
                pen_error(PEN_INVALID_INPUT,
                          "stage %u is on a device of replica %u, whose stages end "
                          "with stage %u: stages are numbered through the replicas",
                          s, of, replica->first_stage + replica->stage_count - 1));
        }
        replica->stage_count += 1;
        stages[s].first_microbatch = replicas_microbatch(plan, replica->first_lane);
        stages[s].microbatch_count = replicas_microbatch(plan, end) - stages[s].first_microbatch;
    }
    return PEN_OK;
}

pen_status pen_plan_file_replicas(const pen_plan_file_finder *finder, const plan_file *file,
                                  pen_plan *plan) {
    PEN_TRY(replicas_take(finder, file, plan));
    PEN_TRY(replicas_take_owners(finder, file, plan));
    return replicas_give_stages(finder, file, plan);
}

void pen_plan_file_write_replicas(const pen_plan *plan, pen_text *text) {
    if (plan->replica_count > 0) pen_text_add(text, "replicas:\n");
    for (uint32_t r = 0; r < plan->replica_count; r++) {
        const pen_plan_replica *replica = &plan->replicas[r];
        pen_text_print(text, "  - {lanes: [%u, %u], devices: [", replica->first_lane,
                       replica->first_lane + replica->lane_count - 1);
        for (uint32_t i = 0; i < replica->device_count; i++) {
            if (i > 0) pen_text_add(text, ", ");
            pen_yaml_add_text(text, plan->devices[replica->devices[i]].name);
        }
        pen_text_add(text, "]}\n");
    }
    if (plan->owner_count > 0) pen_text_add(text, "owners: [");
    for (uint32_t i = 0; i < plan->owner_count; i++) {
        if (i > 0) pen_text_add(text, ", ");
        pen_yaml_add_text(text, plan->devices[plan->owners[i]].name);
    }
    if (plan->owner_count > 0) pen_text_add(text, "]\n");
}
