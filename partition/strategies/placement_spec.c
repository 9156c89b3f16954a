#include "partition/strategies/placement_spec.h"

#include <string.h>

#include "partition/spec/cluster_spec.h"
#include "partition/strategies/strategies.h"

#define PLACEMENT_ENTRY_LIMIT 4096 // pins, and so on
#define PLACEMENT_TIME_LIMIT 86400 // seconds
#define PLACEMENT_REPLICAS "replicas"

static const pen_option_field placement_nodes_item = {.kind = PEN_OPTION_PATTERN};

static const pen_option_field placement_pin_fields[] = {
    PEN_OPTION(PATTERN, pen_constraint_pin, nodes, "a node's name, or a pattern of names",
               .is_required = true),
    PEN_OPTION(TEXT, pen_constraint_pin, to, "name of a device", .is_required = true),
};
static const pen_option_table placement_pin_table = {
    PEN_OPTION_FIELDS(pen_constraint_pin, placement_pin_fields)};
static const pen_option_field placement_pin_item = {.kind = PEN_OPTION_MAPPING,
                                                    .table = &placement_pin_table};

static const pen_option_field placement_colocate_fields[] = {
    PEN_OPTION(LIST, pen_constraint_colocate, nodes,
               "names and patterns; all that they mean share a device",
               .item = &placement_nodes_item, .is_required = true, .count_minimum = 1,
               .count_maximum = PLACEMENT_ENTRY_LIMIT, .is_list_optional = true),
};
static const pen_option_table placement_colocate_table = {
    PEN_OPTION_FIELDS(pen_constraint_colocate, placement_colocate_fields)};
static const pen_option_field placement_colocate_item = {.kind = PEN_OPTION_MAPPING,
                                                         .table = &placement_colocate_table};

static const pen_option_field placement_no_split_fields[] = {
    PEN_OPTION(PATTERN, pen_constraint_no_split, nodes,
               "a name or pattern; what lies between two that it means stays with them",
               .is_required = true),
};
static const pen_option_table placement_no_split_table = {
    PEN_OPTION_FIELDS(pen_constraint_no_split, placement_no_split_fields)};
static const pen_option_field placement_no_split_item = {.kind = PEN_OPTION_MAPPING,
                                                         .table = &placement_no_split_table};

static const pen_option_field placement_forbid_fields[] = {
    PEN_OPTION(PATTERN, pen_constraint_forbid, nodes, "a node's name, or a pattern of names",
               .is_required = true),
    PEN_OPTION(TEXT, pen_constraint_forbid, on, "a device's name, n[01-16]/cpu0, or a pattern",
               .is_required = true),
};
static const pen_option_table placement_forbid_table = {
    PEN_OPTION_FIELDS(pen_constraint_forbid, placement_forbid_fields)};
static const pen_option_field placement_forbid_item = {.kind = PEN_OPTION_MAPPING,
                                                       .table = &placement_forbid_table};

static const pen_option_field placement_stages_fields[] = {
    PEN_OPTION(INTEGER, pen_stage_bounds, minimum, "devices that are used at least",
               PEN_OPTION_RANGE(1, PEN_CLUSTER_DEVICE_LIMIT)),
    PEN_OPTION(INTEGER, pen_stage_bounds, maximum, "and at most",
               PEN_OPTION_RANGE(1, PEN_CLUSTER_DEVICE_LIMIT)),
};

static pen_status placement_check_stages(const void *object, const pen_option_source *source) {
    const pen_stage_bounds *bounds = object;
    if (bounds->maximum == 0 || bounds->minimum <= bounds->maximum) return PEN_OK;
    return pen_option_blame(source, &bounds->maximum,
                            pen_error(PEN_INVALID_INPUT,
                                      "placement.stages.maximum: found %lld, expected at least the "
                                      "minimum, %lld",
                                      (long long)bounds->maximum, (long long)bounds->minimum));
}

static const pen_option_table placement_stages_table = {
    PEN_OPTION_FIELDS(pen_stage_bounds, placement_stages_fields),
    .check = placement_check_stages,
};

static const pen_option_field placement_owner_item = {.kind = PEN_OPTION_TEXT};

#define PLACEMENT_ENTRIES(name, member, item_field, text)                                          \
    PEN_OPTION_AS(name, LIST, pen_placement_spec, constraints.member, text, .item = &(item_field), \
                  .count_maximum = PLACEMENT_ENTRY_LIMIT)

static const pen_option_field placement_fields[] = {
    PEN_OPTION(TEXT, pen_placement_spec, strategy,
               "how a placement is looked for; `penstock place --help` lists them",
               .default_text = "auto"),
    PEN_OPTION(CHOICE, pen_placement_spec, objective, "what is made small",
               .choices = pen_objective_names, .default_text = "step_time"),
    PEN_OPTION_AS("time_limit", SECONDS, pen_placement_spec, time_limit_seconds, "for the search",
                  .minimum = PEN_OPTION_ABOVE(0), .maximum = PEN_OPTION_TO(PLACEMENT_TIME_LIMIT),
                  .default_text = "5s"),
    PEN_OPTION(INTEGER, pen_placement_spec, seed, "of the search; same seed, same plan",
               .minimum = PEN_OPTION_FROM(0), .default_text = "0"),
    PEN_OPTION(BOOL, pen_placement_spec, contiguous,
               "devices have an order that no tensor of the forward pass goes against",
               .default_text = "false"),
    PLACEMENT_ENTRIES("pin", pins, placement_pin_item, "nodes that must be on a device"),
    PLACEMENT_ENTRIES("colocate", colocated, placement_colocate_item, "nodes that share a device"),
    PLACEMENT_ENTRIES("no_split", no_splits, placement_no_split_item,
                      "blocks of nodes that stay whole"),
    PLACEMENT_ENTRIES("forbid", forbidden, placement_forbid_item,
                      "devices that nodes may not be on"),
    PEN_OPTION_AS("stages", MAPPING, pen_placement_spec, constraints.stages,
                  "how many devices are used; with replicas, by each",
                  .table = &placement_stages_table),
    PEN_OPTION(COUNT, pen_placement_spec, replicas,
               "pipelines that share a step's lanes, each on devices of its own; auto: as many as "
               "are fastest",
               PEN_OPTION_RANGE(1, PEN_CLUSTER_DEVICE_LIMIT), .default_text = "1"),
    PEN_OPTION(LIST, pen_placement_spec, owners,
               "who updates parameters: the replicas, or devices by name",
               .item = &placement_owner_item, .count_minimum = 1,
               .count_maximum = PEN_CLUSTER_DEVICE_LIMIT, .is_list_optional = true),
};

// The list of strategies says which there are; its names are not repeated here.
static pen_status placement_check(const void *object, const pen_option_source *source) {
    const pen_placement_spec *spec = object;
    for (uint32_t i = 0; pen_strategies[i] != NULL; i++) {
        if (strcmp(pen_strategies[i]->name, spec->strategy) == 0) return PEN_OK;
    }
    pen_arena *arena = NULL;
    const pen_strategy *strategy;
    PEN_TRY(pen_arena_create(&arena));
    pen_status found = pen_strategy_find(spec->strategy, arena, &strategy);
    if (pen_status_get_code(found) == PEN_NOT_FOUND) {
        const pen_status whole =
            pen_error(PEN_INVALID_INPUT, "placement.strategy: %s", pen_status_message(found));
        pen_status_ignore(found, "its message goes on with the path before it");
        found = pen_option_blame(source, &spec->strategy, whole);
    }
    pen_arena_destroy(arena);
    return found;
}

const pen_option_table pen_placement_table = {
    .help = "How a graph is placed on devices.",
    PEN_OPTION_FIELDS(pen_placement_spec, placement_fields),
    .check = placement_check,
};
