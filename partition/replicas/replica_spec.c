#include "partition/replicas/replica_spec.h"

#include <string.h>

#include "partition/spec/name_match.h"

#define SPEC_REPLICAS "replicas"

bool pen_replicas_have_owners(const pen_placement_spec *placement) {
    const char *const *items = placement->owners.items;
    const uint32_t count = placement->owners.count;
    return count > 1 || (count == 1 && strcmp(items[0], SPEC_REPLICAS) != 0);
}

bool pen_replicas_are_asked(const pen_placement_spec *placement, uint32_t lane_count) {
    return (placement->replicas != 1 && lane_count > 1) || pen_replicas_have_owners(placement);
}

static pen_status spec_name_devices(const pen_cluster *cluster, pen_arena *arena,
                                    pen_name_set *out_set) {
    const char **names;
    PEN_TRY(PEN_NEW(arena, cluster->device_count, &names));
    for (uint32_t d = 0; d < cluster->device_count; d++) {
        names[d] = cluster->devices[d].name;
    }
    *out_set = (pen_name_set){names, cluster->device_count, "device"};
    return PEN_OK;
}

// An entry may mean several devices, and a device may be meant twice.
pen_status pen_replicas_find_owners(const pen_placement_spec *placement, const pen_cluster *cluster,
                                    pen_arena *arena, const uint32_t **out_owners,
                                    uint32_t *out_count, const void **out_field) {
    const char *const *items = placement->owners.items;
    pen_name_set set;
    bool *is_owner;
    uint32_t *owners;
    *out_owners = NULL;
    *out_count = 0;
    if (!pen_replicas_have_owners(placement)) return PEN_OK;
    PEN_TRY(spec_name_devices(cluster, arena, &set));
    PEN_TRY(PEN_NEW(arena, cluster->device_count, &is_owner));
    PEN_TRY(PEN_NEW(arena, cluster->device_count, &owners));
    for (uint32_t i = 0; i < placement->owners.count; i++) {
        pen_name_matches matches;
        *out_field = &items[i];
        if (strcmp(items[i], SPEC_REPLICAS) == 0) {
            return pen_error(PEN_INVALID_INPUT,
                             "placement.owners: found `replicas` beside devices, expected one or "
                             "the other");
        }
        PEN_TRY(pen_status_add_context(pen_match_devices(&set, items[i], arena, &matches),
                                       "placement.owners: `replicas`, or names of devices"));
        for (uint32_t m = 0; m < matches.count; m++) {
            is_owner[matches.indices[m]] = true;
        }
    }
    for (uint32_t d = 0; d < cluster->device_count; d++) {
        if (is_owner[d]) owners[(*out_count)++] = d;
    }
    *out_owners = owners;
    return PEN_OK;
}

// An owner runs no node, so nothing can be pinned to it.
static pen_status spec_check_pins(const pen_placement_spec *placement, const pen_cluster *cluster,
                                  uint32_t owner, const void **out_field) {
    const pen_constraint_pin *pins = placement->constraints.pins.items;
    const char *name = cluster->devices[owner].name;
    for (uint32_t i = 0; i < placement->constraints.pins.count; i++) {
        if (strcmp(pins[i].to, name) != 0) continue;
        *out_field = &pins[i].to;
        return pen_error(PEN_INVALID_INPUT,
                         "placement.pin: '%s' is pinned to '%s', which placement.owners names: an "
                         "owner runs no node; expected a device that is no owner",
                         pins[i].nodes, name);
    }
    return PEN_OK;
}

// Owners are looked at first, as they leave fewer devices for replicas; then pins, and last what
// there may be of replicas.
pen_status pen_replicas_check_spec(const pen_placement_spec *placement, const pen_cluster *cluster,
                                   uint32_t lane_count, pen_arena *arena, const void **out_field) {
    const uint32_t lanes = lane_count > 1 ? lane_count : 1;
    const long long replicas = (long long)placement->replicas;
    const uint32_t *owners;
    uint32_t owner_count;
    PEN_TRY(pen_replicas_find_owners(placement, cluster, arena, &owners, &owner_count, out_field));
    const uint32_t left = cluster->device_count - owner_count;
    if (left == 0) {
        return pen_error(PEN_INVALID_INPUT,
                         "placement.owners: found all %u devices, expected at most %u: replicas "
                         "run on the others",
                         owner_count, owner_count - 1);
    }
    for (uint32_t i = 0; i < owner_count; i++) {
        PEN_TRY(spec_check_pins(placement, cluster, owners[i], out_field));
    }
    *out_field = &placement->replicas;
    if (replicas > (long long)left) {
        return pen_error(PEN_INVALID_INPUT,
                         "placement.replicas: found %lld, expected at most %u: each has a device%s",
                         replicas, left,
                         owner_count > 0 ? " that is none of placement.owners" : "");
    }
    if (replicas > (long long)lanes) {
        return pen_error(PEN_INVALID_INPUT,
                         "placement.replicas: found %lld, expected at most %u: each has a lane of "
                         "its own (train.lanes)",
                         replicas, lanes);
    }
    return PEN_OK;
}
