#include "partition/strategies/placement_spec.h"

#include <string.h>

#include "partition/spec/cluster_spec.h"
#include "partition/strategies/strategies.h"

#define PLACEMENT_ENTRY_LIMIT 4096 // pins, and so on
#define PLACEMENT_TIME_LIMIT 86400 // seconds

static const pen_option_field placement_nodes_item = {.kind = PEN_OPTION_PATTERN};

static const pen_option_field placement_pin_fields[] = {
    {.key = "nodes",
     .kind = PEN_OPTION_PATTERN,
     .offset = offsetof(pen_constraint_pin, nodes),
     .is_required = true,
     .help = "a node's name, or a pattern of names"},
    {.key = "to",
     .kind = PEN_OPTION_TEXT,
     .offset = offsetof(pen_constraint_pin, to),
     .is_required = true,
     .help = "name of a device"},
};
static const pen_option_table placement_pin_table = {
    .size = sizeof(pen_constraint_pin),
    PEN_OPTION_FIELDS(placement_pin_fields),
};
static const pen_option_field placement_pin_item = {
    .kind = PEN_OPTION_MAPPING,
    .table = &placement_pin_table,
};

static const pen_option_field placement_colocate_fields[] = {
    {.key = "nodes",
     .kind = PEN_OPTION_LIST,
     .offset = offsetof(pen_constraint_colocate, nodes),
     .item = &placement_nodes_item,
     .is_required = true,
     .count_minimum = 1,
     .count_maximum = PLACEMENT_ENTRY_LIMIT,
     .is_list_optional = true,
     .help = "names and patterns; all that they mean share a device"},
};
static const pen_option_table placement_colocate_table = {
    .size = sizeof(pen_constraint_colocate),
    PEN_OPTION_FIELDS(placement_colocate_fields),
};
static const pen_option_field placement_colocate_item = {
    .kind = PEN_OPTION_MAPPING,
    .table = &placement_colocate_table,
};

static const pen_option_field placement_no_split_fields[] = {
    {.key = "nodes",
     .kind = PEN_OPTION_PATTERN,
     .offset = offsetof(pen_constraint_no_split, nodes),
     .is_required = true,
     .help = "a name or pattern; what lies between two that it means stays with them"},
};
static const pen_option_table placement_no_split_table = {
    .size = sizeof(pen_constraint_no_split),
    PEN_OPTION_FIELDS(placement_no_split_fields),
};
static const pen_option_field placement_no_split_item = {
    .kind = PEN_OPTION_MAPPING,
    .table = &placement_no_split_table,
};

static const pen_option_field placement_forbid_fields[] = {
    {.key = "nodes",
     .kind = PEN_OPTION_PATTERN,
     .offset = offsetof(pen_constraint_forbid, nodes),
     .is_required = true,
     .help = "a node's name, or a pattern of names"},
    {.key = "on",
     .kind = PEN_OPTION_TEXT,
     .offset = offsetof(pen_constraint_forbid, on),
     .is_required = true,
     .help = "a device's name, n[01-16]/cpu0, or a pattern"},
};
static const pen_option_table placement_forbid_table = {
    .size = sizeof(pen_constraint_forbid),
    PEN_OPTION_FIELDS(placement_forbid_fields),
};
static const pen_option_field placement_forbid_item = {
    .kind = PEN_OPTION_MAPPING,
    .table = &placement_forbid_table,
};

static const pen_option_field placement_stages_fields[] = {
    {.key = "minimum",
     .kind = PEN_OPTION_INTEGER,
     .offset = offsetof(pen_stage_bounds, minimum),
     .minimum = PEN_OPTION_FROM(1),
     .maximum = PEN_OPTION_TO(PEN_CLUSTER_DEVICE_LIMIT),
     .help = "devices that are used at least"},
    {.key = "maximum",
     .kind = PEN_OPTION_INTEGER,
     .offset = offsetof(pen_stage_bounds, maximum),
     .minimum = PEN_OPTION_FROM(1),
     .maximum = PEN_OPTION_TO(PEN_CLUSTER_DEVICE_LIMIT),
     .help = "and at most"},
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
    .size = sizeof(pen_stage_bounds),
    PEN_OPTION_FIELDS(placement_stages_fields),
    .check = placement_check_stages,
};

#define PLACEMENT_ENTRIES(name, member, item_field, text)                                          \
    {                                                                                              \
        .key = (name), .kind = PEN_OPTION_LIST,                                                    \
        .offset = offsetof(pen_placement_spec, constraints.member), .item = &(item_field),         \
        .count_maximum = PLACEMENT_ENTRY_LIMIT, .help = (text)                                     \
    }

static const pen_option_field placement_fields[] = {
    {.key = "strategy",
     .kind = PEN_OPTION_TEXT,
     .offset = offsetof(pen_placement_spec, strategy),
     .default_text = "auto",
     .help = "how a placement is looked for; `penstock place --help` lists them"},
    {.key = "objective",
     .kind = PEN_OPTION_CHOICE,
     .offset = offsetof(pen_placement_spec, objective),
     .choices = pen_objective_names,
     .default_text = "step_time",
     .help = "what is made small"},
    {.key = "time_limit",
     .kind = PEN_OPTION_SECONDS,
     .offset = offsetof(pen_placement_spec, time_limit_seconds),
     .minimum = PEN_OPTION_ABOVE(0),
     .maximum = PEN_OPTION_TO(PLACEMENT_TIME_LIMIT),
     .default_text = "5s",
     .help = "for the search"},
    {.key = "seed",
     .kind = PEN_OPTION_INTEGER,
     .offset = offsetof(pen_placement_spec, seed),
     .minimum = PEN_OPTION_FROM(0),
     .default_text = "0",
     .help = "of the search; same seed, same plan"},
    {.key = "contiguous",
     .kind = PEN_OPTION_BOOL,
     .offset = offsetof(pen_placement_spec, contiguous),
     .default_text = "false",
     .help = "devices have an order that no tensor of the forward pass goes against"},
    PLACEMENT_ENTRIES("pin", pins, placement_pin_item, "nodes that must be on a device"),
    PLACEMENT_ENTRIES("colocate", colocated, placement_colocate_item, "nodes that share a device"),
    PLACEMENT_ENTRIES("no_split", no_splits, placement_no_split_item,
                      "blocks of nodes that stay whole"),
    PLACEMENT_ENTRIES("forbid", forbidden, placement_forbid_item,
                      "devices that nodes may not be on"),
    {.key = "stages",
     .kind = PEN_OPTION_MAPPING,
     .offset = offsetof(pen_placement_spec, constraints.stages),
     .table = &placement_stages_table,
     .help = "how many devices are used"},
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
    .size = sizeof(pen_placement_spec),
    PEN_OPTION_FIELDS(placement_fields),
    .check = placement_check,
};
