#include "partition/lower/graph_constraints.h"

#include <string.h>

#include "base/name_map.h"
#include "base/sets/disjoint_sets.h"
#include "graph/graph.h"
#include "partition/spec/name_match.h"

typedef struct constraints_builder {
    const pen_forward_owners *owners;
    const pen_cluster *cluster;
    const pen_constraints *constraints;
    pen_arena *arena;
    pen_name_set nodes;
    const uint32_t *listed; // [nodes.count], node of each name
    pen_name_set devices;
    pen_disjoint_sets sets;
    uint32_t *pin;                        // [node_count]
    const pen_constraint_pin **pin_entry; // [node_count], the one that said so
    uint32_t *pin_node;                   // [node_count], and of which node
    pen_problem_forbidden *forbidden;
    uint32_t forbidden_count;
} constraints_builder;

// Users name nodes as `inspect` lists them; nodes that follow others have no say of their own.
static pen_status constraints_list_names(constraints_builder *builder) {
    const pen_forward_owners *owners = builder->owners;
    const char **names, **devices;
    uint32_t *listed, count = 0;
    PEN_TRY(PEN_NEW(builder->arena, owners->node_count, &names));
    PEN_TRY(PEN_NEW(builder->arena, owners->node_count, &listed));
    PEN_TRY(PEN_NEW(builder->arena, builder->cluster->device_count, &devices));
    for (uint32_t n = 0; n < owners->node_count; n++) {
        if (!owners->is_listed[n]) continue;
        names[count] = pen_node_name(owners->graph, (pen_node_id){n});
        listed[count++] = n;
    }
    for (uint32_t d = 0; d < builder->cluster->device_count; d++) {
        devices[d] = builder->cluster->devices[d].name;
    }
    builder->nodes = (pen_name_set){.names = names, .count = count, .what = "node"};
    builder->devices =
        (pen_name_set){.names = devices, .count = builder->cluster->device_count, .what = "device"};
    builder->listed = listed;
    return PEN_OK;
}

static pen_status constraints_match(const constraints_builder *builder, const char *text,
                                    pen_name_matches *out_matches) {
    return pen_match_names(&builder->nodes, text, builder->arena, out_matches);
}

static uint32_t constraints_node(const constraints_builder *builder,
                                 const pen_name_matches *matches, uint32_t index) {
    return builder->listed[matches->indices[index]];
}

static pen_status constraints_colocate(constraints_builder *builder,
                                       const pen_constraint_colocate *entry) {
    const char *const *texts = entry->nodes.items;
    uint32_t first = PEN_ID_NONE;
    for (uint32_t t = 0; t < entry->nodes.count; t++) {
        pen_name_matches matches;
        PEN_TRY(pen_constraints_blame(builder->constraints, &texts[t],
                                      constraints_match(builder, texts[t], &matches)));
        for (uint32_t i = 0; i < matches.count; i++) {
            const uint32_t node = constraints_node(builder, &matches, i);
            if (first == PEN_ID_NONE) first = node;
            pen_disjoint_sets_join(&builder->sets, first, node);
        }
    }
    return PEN_OK;
}

// Marks the forward nodes that some marked one leads to.
static void constraints_flow(const constraints_builder *builder, bool *marks) {
    const pen_graph *graph = builder->owners->graph;
    for (uint32_t n = 0; n < builder->owners->node_count; n++) {
        const pen_node *node = pen_graph_node(graph, (pen_node_id){n});
        if (node->role != PEN_ROLE_FORWARD) continue;
        for (uint32_t i = 0; i < node->input_count && !marks[n]; i++) {
            if (!pen_value_is(node->inputs[i])) continue;
            const pen_node_id producer = pen_graph_value(graph, node->inputs[i])->producer;
            marks[n] = pen_node_is(producer) && marks[producer.index];
        }
    }
}

// Marks the forward nodes that lead to some marked one.
static void constraints_flow_back(const constraints_builder *builder, bool *marks) {
    const pen_graph *graph = builder->owners->graph;
    for (uint32_t n = builder->owners->node_count; n-- > 0;) {
        const pen_node *node = pen_graph_node(graph, (pen_node_id){n});
        if (node->role != PEN_ROLE_FORWARD || !marks[n]) continue;
        for (uint32_t i = 0; i < node->input_count; i++) {
            if (!pen_value_is(node->inputs[i])) continue;
            const pen_node_id producer = pen_graph_value(graph, node->inputs[i])->producer;
            if (pen_node_is(producer)) marks[producer.index] = true;
        }
    }
}

// All that matches, and what lies between.
static pen_status constraints_no_split(constraints_builder *builder,
                                       const pen_constraint_no_split *entry) {
    pen_name_matches matches;
    PEN_TRY(pen_constraints_blame(builder->constraints, &entry->nodes,
                                  constraints_match(builder, entry->nodes, &matches)));
    bool *after, *before;
    PEN_TRY(PEN_NEW(builder->arena, builder->owners->node_count, &after));
    PEN_TRY(PEN_NEW(builder->arena, builder->owners->node_count, &before));
    for (uint32_t i = 0; i < matches.count; i++) {
        after[constraints_node(builder, &matches, i)] = true;
        before[constraints_node(builder, &matches, i)] = true;
    }
    constraints_flow(builder, after);
    constraints_flow_back(builder, before);
    const uint32_t first = constraints_node(builder, &matches, 0);
    for (uint32_t n = 0; n < builder->owners->node_count; n++) {
        if (after[n] && before[n]) pen_disjoint_sets_join(&builder->sets, first, n);
    }
    return PEN_OK;
}

// Two pins that contradict each other: both are told, each with its position.
static pen_status constraints_refuse_pin(const constraints_builder *builder, uint32_t group,
                                         const pen_constraint_pin *entry, uint32_t node,
                                         uint32_t device) {
    const pen_graph *graph = builder->owners->graph;
    const pen_constraint_pin *other = builder->pin_entry[group];
    const uint32_t other_node = builder->pin_node[group];
    const char *name = pen_node_name(graph, (pen_node_id){node});
    const char *other_name = pen_node_name(graph, (pen_node_id){other_node});
    const char *to = builder->devices.names[device];
    const char *other_to = builder->devices.names[builder->pin[group]];
    const pen_status told =
        other_node == node
            ? pen_error(PEN_INVALID_INPUT, "'%s' is pinned to '%s', and by \"%.60s\" to '%s'", name,
                        to, other->nodes, other_to)
            : pen_error(PEN_INVALID_INPUT,
                        "'%s' is pinned to '%s', but '%s', which must share its device, to '%s'",
                        name, to, other_name, other_to);
    const pen_status there =
        pen_error(PEN_INVALID_INPUT, "'%s' is pinned to '%s'", other_name, other_to);
    return pen_status_join(pen_constraints_blame(builder->constraints, &entry->to, told),
                           pen_constraints_blame(builder->constraints, &other->to, there));
}

// Pins hold for all that must share the device. Two that contradict are refused with both lines.
static pen_status constraints_pin(constraints_builder *builder, const pen_constraint_pin *entry) {
    pen_name_matches matches, device;
    PEN_TRY(pen_constraints_blame(builder->constraints, &entry->nodes,
                                  constraints_match(builder, entry->nodes, &matches)));
    pen_status status = pen_match_devices(&builder->devices, entry->to, builder->arena, &device);
    if (status == PEN_OK && device.count > 1) {
        status = pen_error(PEN_INVALID_INPUT, "'%s' means %u devices; a pin needs one", entry->to,
                           device.count);
    }
    PEN_TRY(pen_constraints_blame(builder->constraints, &entry->to, status));
    for (uint32_t i = 0; i < matches.count; i++) {
        const uint32_t node = constraints_node(builder, &matches, i);
        const uint32_t group = pen_disjoint_sets_find(&builder->sets, node);
        if (builder->pin[group] == device.indices[0]) continue;
        if (builder->pin[group] != PEN_PROBLEM_ANY) {
            return constraints_refuse_pin(builder, group, entry, node, device.indices[0]);
        }
        builder->pin[group] = device.indices[0];
        builder->pin_entry[group] = entry;
        builder->pin_node[group] = node;
    }
    return PEN_OK;
}

// A pattern of nodes times a pattern of devices. What is pinned there already is a contradiction.
static pen_status constraints_forbid(constraints_builder *builder,
                                     const pen_constraint_forbid *entry) {
    pen_name_matches matches, devices;
    PEN_TRY(pen_constraints_blame(builder->constraints, &entry->nodes,
                                  constraints_match(builder, entry->nodes, &matches)));
    PEN_TRY(pen_constraints_blame(
        builder->constraints, &entry->on,
        pen_match_devices(&builder->devices, entry->on, builder->arena, &devices)));
    pen_problem_forbidden *grown;
    PEN_TRY(PEN_NEW(builder->arena,
                    builder->forbidden_count + (size_t)matches.count * devices.count, &grown));
    for (uint32_t i = 0; i < builder->forbidden_count; i++) {
        grown[i] = builder->forbidden[i];
    }
    for (uint32_t i = 0; i < matches.count; i++) {
        const uint32_t node = constraints_node(builder, &matches, i);
        for (uint32_t d = 0; d < devices.count; d++) {
            const uint32_t device = devices.indices[d];
            if (builder->pin[pen_disjoint_sets_find(&builder->sets, node)] == device) {
                return pen_constraints_blame(
                    builder->constraints, &entry->on,
                    pen_error(PEN_INVALID_INPUT, "'%s' is both pinned to '%s' and forbidden there",
                              builder->nodes.names[matches.indices[i]],
                              builder->devices.names[device]));
            }
            grown[builder->forbidden_count++] = (pen_problem_forbidden){node, device};
        }
    }
    builder->forbidden = grown;
    return PEN_OK;
}

// On devices of other kinds than its own, a node is forbidden. One that a pass has made another of
// is as free as if it were new.
static pen_status constraints_keep(constraints_builder *builder) {
    const pen_constraints *given = builder->constraints;
    const pen_cluster *cluster = builder->cluster;
    const size_t most = (size_t)given->kept_count * cluster->device_count;
    pen_problem_forbidden *grown;
    pen_name_map map;
    if (given->kept_count == 0) return PEN_OK;
    PEN_TRY(PEN_NEW(builder->arena, builder->forbidden_count + most, &grown));
    for (uint32_t i = 0; i < builder->forbidden_count; i++) {
        grown[i] = builder->forbidden[i];
    }
    pen_name_map_init(&map, builder->arena);
    for (uint32_t n = 0; n < builder->nodes.count; n++) {
        PEN_TRY(pen_name_map_add(&map, builder->nodes.names[n], builder->listed[n]));
    }
    for (uint32_t i = 0; i < given->kept_count; i++) {
        const uint32_t node = pen_name_map_find(&map, given->kept[i].node);
        for (uint32_t d = 0; d < cluster->device_count && node != PEN_NAME_MAP_NONE; d++) {
            if (strcmp(cluster->devices[d].kind, given->kept[i].kind) == 0) continue;
            grown[builder->forbidden_count++] = (pen_problem_forbidden){node, d};
        }
    }
    builder->forbidden = grown;
    return PEN_OK;
}

// Nodes that must share a device, and may be on none. `entry` NULL: no constraint of the job's is
// about that.
static pen_status constraints_check_forbidden(constraints_builder *builder,
                                              const pen_constraint_forbid *entry) {
    const uint32_t device_count = builder->cluster->device_count;
    uint32_t *count;
    bool *is_counted;
    PEN_TRY(PEN_NEW(builder->arena, builder->owners->node_count, &count));
    PEN_TRY(PEN_NEW(builder->arena, builder->owners->node_count, &is_counted));
    for (uint32_t d = 0; d < device_count; d++) {
        for (uint32_t i = 0; i < builder->forbidden_count; i++) {
            const pen_problem_forbidden *f = &builder->forbidden[i];
            const uint32_t group = pen_disjoint_sets_find(&builder->sets, f->node);
            if (f->device != d || is_counted[group]) continue;
            is_counted[group] = true;
            if (++count[group] < device_count) continue;
            const pen_status status = pen_error(
                PEN_INVALID_INPUT,
                "'%s' and what must share its device are forbidden on all %u devices",
                pen_node_name(builder->owners->graph, (pen_node_id){f->node}), device_count);
            return entry == NULL ? status
                                 : pen_constraints_blame(builder->constraints, &entry->on, status);
        }
        memset(is_counted, 0, builder->owners->node_count * sizeof *is_counted);
    }
    return PEN_OK;
}

// What joins nodes comes before pins, since a pin holds for a whole group.
static pen_status constraints_apply(constraints_builder *builder) {
    const pen_constraints *given = builder->constraints;
    const pen_constraint_colocate *colocated = given->colocated.items;
    const pen_constraint_no_split *no_splits = given->no_splits.items;
    const pen_constraint_pin *pins = given->pins.items;
    const pen_constraint_forbid *forbidden = given->forbidden.items;
    for (uint32_t i = 0; i < given->colocated.count; i++) {
        PEN_TRY(constraints_colocate(builder, &colocated[i]));
    }
    for (uint32_t i = 0; i < given->no_splits.count; i++) {
        PEN_TRY(constraints_no_split(builder, &no_splits[i]));
    }
    for (uint32_t i = 0; i < given->pins.count; i++) {
        PEN_TRY(constraints_pin(builder, &pins[i]));
    }
    for (uint32_t i = 0; i < given->forbidden.count; i++) {
        PEN_TRY(constraints_forbid(builder, &forbidden[i]));
    }
    PEN_TRY(constraints_keep(builder));
    if (builder->forbidden_count == 0) return PEN_OK;
    const uint32_t count = given->forbidden.count;
    return constraints_check_forbidden(builder, count > 0 ? &forbidden[count - 1] : NULL);
}

// From patterns to a colour and a pin for each node: nodes of one colour share a device.
pen_status pen_graph_constraints_resolve(const pen_forward_owners *owners,
                                         const pen_cluster *cluster,
                                         const pen_constraints *constraints, pen_arena *arena,
                                         pen_graph_constraints *out_resolved) {
    constraints_builder builder = {
        .owners = owners, .cluster = cluster, .constraints = constraints, .arena = arena};
    uint32_t *color, *pin;
    PEN_TRY(pen_disjoint_sets_new(owners->node_count, arena, &builder.sets));
    PEN_TRY(PEN_NEW(arena, owners->node_count, &builder.pin));
    PEN_TRY(PEN_NEW(arena, owners->node_count, &builder.pin_entry));
    PEN_TRY(PEN_NEW(arena, owners->node_count, &builder.pin_node));
    PEN_TRY(PEN_NEW(arena, owners->node_count, &color));
    PEN_TRY(PEN_NEW(arena, owners->node_count, &pin));
    for (uint32_t n = 0; n < owners->node_count; n++) {
        pen_disjoint_sets_join(&builder.sets, n, owners->group[n]);
        builder.pin[n] = PEN_PROBLEM_ANY;
    }
    if (constraints != NULL) {
        PEN_TRY(constraints_list_names(&builder));
        PEN_TRY(constraints_apply(&builder));
    }
    for (uint32_t n = 0; n < owners->node_count; n++) {
        color[n] = pen_disjoint_sets_find(&builder.sets, n);
        pin[n] = builder.pin[color[n]];
    }
    *out_resolved = (pen_graph_constraints){.color = color,
                                            .pin = pin,
                                            .forbidden = builder.forbidden,
                                            .forbidden_count = builder.forbidden_count};
    return PEN_OK;
}

// ---- pins along a line of devices

#define LINE_DEVICES_LIMIT 256 // with pins

// Marks what nodes pinned to `device` lead to by the pinned node they come from.
static void line_flow(const pen_forward_owners *owners, const uint32_t *pin, uint32_t device,
                      uint32_t *origin) {
    for (uint32_t n = 0; n < owners->node_count; n++) {
        const pen_node *node = pen_graph_node(owners->graph, (pen_node_id){n});
        origin[n] = PEN_ID_NONE;
        if (node->role != PEN_ROLE_FORWARD) continue;
        if (pin[n] == device) origin[n] = n;
        for (uint32_t i = 0; i < node->input_count && origin[n] == PEN_ID_NONE; i++) {
            if (!pen_value_is(node->inputs[i])) continue;
            const pen_node_id producer = pen_graph_value(owners->graph, node->inputs[i])->producer;
            if (pen_node_is(producer)) origin[n] = origin[producer.index];
        }
    }
}

// Two pinned nodes, the first of which leads to the second.
typedef struct line_pins {
    uint32_t from; // PEN_ID_NONE: there are none
    uint32_t to;
} line_pins;

static pen_status line_refuse(const pen_forward_owners *owners, const pen_cluster *cluster,
                              const line_pins *there, const line_pins *back, const uint32_t *pin) {
    const pen_graph *graph = owners->graph;
    const uint32_t nodes[] = {there->from, there->to, back->from, back->to};
    const char *names[4];
    for (size_t i = 0; i < 4; i++) {
        names[i] = pen_node_name(graph, (pen_node_id){owners->listed[nodes[i]]});
    }
    const char *a = cluster->devices[pin[nodes[0]]].name;
    const char *b = cluster->devices[pin[nodes[1]]].name;
    return pen_error(PEN_INVALID_INPUT,
                     "the pins make a circle of devices, but the job asks for a line (contiguous: "
                     "true): '%s' on '%s' leads to '%s' on '%s', and '%s' on '%s' to '%s' on '%s'",
                     names[0], a, names[1], b, names[2], b, names[3], a);
}

// A line of devices is impossible when pinned nodes flow from a to b and others from b to a; told
// before any search, with the nodes.
pen_status pen_graph_constraints_check_line(const pen_forward_owners *owners,
                                            const pen_cluster *cluster,
                                            const pen_graph_constraints *resolved,
                                            pen_arena *arena) {
    const uint32_t device_count = cluster->device_count;
    uint32_t *origin, *number, count = 0;
    line_pins *pins;
    PEN_TRY(PEN_NEW(arena, owners->node_count, &origin));
    PEN_TRY(PEN_NEW(arena, device_count, &number)); // from 1, of devices with pins
    for (uint32_t n = 0; n < owners->node_count; n++) {
        const uint32_t pin = resolved->pin[n];
        if (pin == PEN_PROBLEM_ANY || number[pin] != 0 || count == LINE_DEVICES_LIMIT) continue;
        number[pin] = ++count;
    }
    PEN_TRY(PEN_NEW(arena, ((size_t)count + 1) * (count + 1), &pins));
    for (size_t i = 0; i < ((size_t)count + 1) * (count + 1); i++) {
        pins[i].from = PEN_ID_NONE;
    }
    for (uint32_t d = 0; d < device_count; d++) {
        if (number[d] == 0) continue;
        line_flow(owners, resolved->pin, d, origin);
        for (uint32_t n = 0; n < owners->node_count; n++) {
            const uint32_t pin = resolved->pin[n];
            if (origin[n] == PEN_ID_NONE || pin == PEN_PROBLEM_ANY || pin == d) continue;
            line_pins *there = &pins[(size_t)number[d] * (count + 1) + number[pin]];
            const line_pins *back = &pins[(size_t)number[pin] * (count + 1) + number[d]];
            if (there->from == PEN_ID_NONE) *there = (line_pins){origin[n], n};
            if (number[pin] == 0 || back->from == PEN_ID_NONE) continue;
            return line_refuse(owners, cluster, back, there, resolved->pin);
        }
    }
    return PEN_OK;
}
