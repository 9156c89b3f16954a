#include "partition/lower/graph_problem.h"

#include <math.h>
#include <string.h>

#include "base/format/yaml_writer.h"
#include "base/hash.h"
#include "base/integer.h"
#include "graph/analysis/memory_plan.h"
#include "graph/graph.h"
#include "graph/op.h"
#include "graph/op_known.h"

#define HASH_CONSTANT_BYTES 4096 // of a constant whose contents are part of what the graph is

typedef struct lowering {
    const pen_graph_problem_request *request;
    const pen_graph *graph;
    const pen_forward_owners *owners;
    const uint32_t *color;
    pen_arena *arena;
    bool *is_moved;          // [value_count], what another colour reads, as it travels
    uint32_t *node_of_value; // [value_count], of moved ones: the problem's node that stands for it
    uint32_t *stamp;         // [node_count], the last value charged to a colour, plus 1
    uint32_t node_count;     // of the problem
    pen_problem_node *nodes;
    pen_problem_edge *edges;
    uint32_t edge_count;
    const char **names;
} lowering;

static const pen_node *lowering_node(const lowering *l, uint32_t node) {
    return pen_graph_node(l->graph, (pen_node_id){node});
}

static double lowering_bytes(const lowering *l, uint32_t value) {
    return (double)pen_align_up(l->request->planned->bytes_of_value[value], PEN_MEMORY_ALIGNMENT);
}

// The value that an operand is, as it travels; PEN_ID_NONE where it is fed, persistent or left out.
static uint32_t lowering_source(const lowering *l, const pen_node *node, uint32_t input) {
    if (!pen_value_is(node->inputs[input])) return PEN_ID_NONE;
    return pen_forward_owners_source(l->owners, node->inputs[input]).index;
}

static void lowering_find_moved(lowering *l) {
    for (uint32_t n = 0; n < l->owners->node_count; n++) {
        const pen_node *node = lowering_node(l, n);
        for (uint32_t i = 0; i < node->input_count; i++) {
            const uint32_t source = lowering_source(l, node, i);
            if (source == PEN_ID_NONE) continue;
            const uint32_t producer =
                pen_graph_value(l->graph, (pen_value_id){source})->producer.index;
            if (l->color[producer] != l->color[n]) l->is_moved[source] = true;
        }
    }
}

// The first result that leaves a node's colour is the node's own, the others get nodes.
static void lowering_number_values(lowering *l) {
    l->node_count = l->owners->node_count;
    for (uint32_t n = 0; n < l->owners->node_count; n++) {
        const pen_node *node = lowering_node(l, n);
        bool is_first = true;
        for (uint32_t i = 0; i < node->output_count; i++) {
            if (!pen_value_is(node->outputs[i])) continue;
            const uint32_t v = node->outputs[i].index;
            if (!l->is_moved[v]) continue;
            l->node_of_value[v] = is_first ? n : l->node_count++;
            is_first = false;
        }
    }
}

// What part of a step's work a microbatch is charged: all of it where the objective is the step.
static double lowering_step_share(const lowering *l) {
    if (l->request->objective == PEN_OBJECTIVE_STEP_TIME) return 1.0;
    return 1.0 / (double)l->request->planned->microbatch_count;
}

static double lowering_transfer(const lowering *l, uint32_t value) {
    const double bytes = (double)l->request->planned->bytes_of_value[value];
    if (!pen_forward_owners_is_per_step(l->owners, (pen_value_id){value})) return bytes;
    return 2.0 * bytes * lowering_step_share(l);
}

// A value of a node with several results becomes a node of its own, so that each can be sent by
// itself; it goes with its maker's colour.
static void lowering_fill_nodes(lowering *l) {
    const pen_graph_constraints *constraints = l->request->constraints;
    for (uint32_t n = 0; n < l->owners->node_count; n++) {
        const pen_node *node = lowering_node(l, n);
        l->names[n] = node->name;
        l->nodes[n].color = l->color[n];
        l->nodes[n].loop = l->owners->loop[n];
        l->nodes[n].pin = constraints->pin[n];
        l->nodes[n].role = node->role == PEN_ROLE_TRANSFER ? PEN_ROLE_FORWARD : node->role;
        l->nodes[n].workspace_bytes = (double)l->request->planned->workspace_of_node[n];
    }
    for (uint32_t v = 0; v < l->owners->value_count; v++) {
        if (!l->is_moved[v]) continue;
        const pen_value *value = pen_graph_value(l->graph, (pen_value_id){v});
        const uint32_t node = l->node_of_value[v];
        l->nodes[node].transfer = lowering_transfer(l, v);
        if (node < l->owners->node_count) continue;
        l->names[node] = value->name;
        l->nodes[node].color = l->color[value->producer.index];
        l->nodes[node].pin = constraints->pin[value->producer.index];
        l->nodes[node].role = l->nodes[value->producer.index].role;
        l->edges[l->edge_count++] = (pen_problem_edge){value->producer.index, node};
    }
}

static void lowering_fill_edges(lowering *l) {
    for (uint32_t n = 0; n < l->owners->node_count; n++) {
        const pen_node *node = lowering_node(l, n);
        for (uint32_t i = 0; i < node->input_count; i++) {
            const uint32_t value = lowering_source(l, node, i);
            if (value == PEN_ID_NONE) continue;
            const uint32_t source =
                l->is_moved[value]
                    ? l->node_of_value[value]
                    : pen_graph_value(l->graph, (pen_value_id){value})->producer.index;
            l->edges[l->edge_count++] = (pen_problem_edge){source, n};
        }
    }
}

// Charges what is fed or persistent to the first node of each colour that reads it.
static void lowering_charge_sources(lowering *l) {
    const pen_forward_owners *owners = l->owners;
    for (uint32_t v = 0; v < owners->value_count; v++) {
        const pen_value *value = pen_graph_value(l->graph, (pen_value_id){v});
        if (value->kind == PEN_VALUE_COMPUTED || value->kind == PEN_VALUE_SCALAR) continue;
        for (uint32_t u = owners->user_first[v]; u < owners->user_first[v + 1]; u++) {
            const uint32_t user = owners->user_nodes[u];
            if (l->stamp[l->color[user]] == v + 1) continue;
            l->stamp[l->color[user]] = v + 1;
            if (value->kind == PEN_VALUE_INPUT) {
                l->nodes[user].bytes_in_flight += lowering_bytes(l, v);
            } else {
                l->nodes[user].bytes += lowering_bytes(l, v);
            }
        }
    }
}

// Charges what nodes make: sums over microbatches once, what the backward pass reads for every
// microbatch, the rest while it runs.
static void lowering_charge_results(lowering *l) {
    for (uint32_t v = 0; v < l->owners->value_count; v++) {
        const pen_value *value = pen_graph_value(l->graph, (pen_value_id){v});
        if (!pen_node_is(value->producer) || pen_value_is(value->replaces)) continue;
        if (l->owners->root[v] != v) continue;
        const pen_node *producer = pen_graph_node(l->graph, value->producer);
        pen_problem_node *charged = &l->nodes[value->producer.index];
        if (producer->accumulates) {
            charged->bytes += lowering_bytes(l, v);
        } else if (producer->role == PEN_ROLE_FORWARD && pen_forward_owners_is_kept(l->owners, v)) {
            charged->bytes_in_flight += lowering_bytes(l, v);
        } else {
            charged->workspace_bytes += lowering_bytes(l, v);
        }
    }
}

// Links cost seconds a byte, and a latency or what messages add to a load.
static pen_status lowering_devices(const lowering *l, pen_problem_given *given) {
    const pen_graph_problem_request *request = l->request;
    const pen_cluster *cluster = request->cluster;
    const pen_cluster_tables *tables = &cluster->tables;
    const uint32_t count = cluster->device_count;
    pen_problem_device *devices;
    const char **names;
    PEN_TRY(PEN_NEW(l->arena, count, &devices));
    PEN_TRY(PEN_NEW(l->arena, count, &names));
    for (uint32_t d = 0; d < count; d++) {
        const double own = (double)cluster->devices[d].own_bytes;
        devices[d] = (pen_problem_device){.kind = request->costs->row_of_device[d],
                                          .slowness = 1.0,
                                          .bytes_limit = fmax(0.0, request->bytes_limit[d] - own),
                                          .microbatches = request->microbatches[d]};
        names[d] = cluster->devices[d].name;
    }
    const bool is_load = request->objective == PEN_OBJECTIVE_THROUGHPUT;
    given->devices = devices;
    given->device_count = count;
    given->device_names = names;
    given->link = tables->byte_seconds;
    given->link_latency = is_load ? tables->message_load : tables->latency;
    given->link_load = tables->message_load;
    given->handling = tables->ends;
    given->handling_of_pair = cluster->link_of_pair;
    given->seats = tables->seats;
    return PEN_OK;
}

// Seconds of a microbatch; of updates those of a step where the objective wants them so.
static pen_status lowering_costs(const lowering *l, pen_problem_given *given) {
    const pen_cost_model *costs = l->request->costs;
    const double share = lowering_step_share(l);
    double *compute;
    PEN_TRY(PEN_NEW(l->arena, (size_t)costs->row_count * l->node_count, &compute));
    for (uint32_t row = 0; row < costs->row_count; row++) {
        for (uint32_t n = 0; n < l->owners->node_count; n++) {
            const double seconds = costs->costs[(size_t)row * costs->node_count + n].seconds;
            compute[(size_t)row * l->node_count + n] =
                l->nodes[n].role == PEN_ROLE_UPDATE ? seconds * share : seconds;
        }
    }
    given->compute = compute;
    given->kind_count = costs->row_count;
    return PEN_OK;
}

static pen_status lowering_allocate(lowering *l) {
    const uint32_t node_count = l->owners->node_count;
    uint64_t edge_count = l->owners->value_count;
    for (uint32_t n = 0; n < node_count; n++) {
        edge_count += lowering_node(l, n)->input_count;
    }
    PEN_TRY(PEN_NEW(l->arena, l->owners->value_count, &l->is_moved));
    PEN_TRY(PEN_NEW(l->arena, l->owners->value_count, &l->node_of_value));
    PEN_TRY(PEN_NEW(l->arena, node_count, &l->stamp));
    lowering_find_moved(l);
    lowering_number_values(l);
    PEN_TRY(PEN_NEW(l->arena, l->node_count, &l->nodes));
    PEN_TRY(PEN_NEW(l->arena, l->node_count, &l->names));
    return PEN_NEW(l->arena, edge_count, &l->edges);
}

// From a graph with costs, a cluster and constraints to plain arrays of numbers: strategies see
// nothing else.
pen_status pen_graph_problem_build(const pen_graph_problem_request *request, pen_arena *arena,
                                   pen_problem_given *out_given) {
    lowering l = {.request = request,
                  .graph = request->planned->graph,
                  .owners = request->owners,
                  .color = request->constraints->color,
                  .arena = arena};
    PEN_TRY(lowering_allocate(&l));
    lowering_fill_nodes(&l);
    lowering_fill_edges(&l);
    lowering_charge_sources(&l);
    lowering_charge_results(&l);
    pen_problem_given given = {.objective = request->objective,
                               .is_contiguous = request->is_contiguous,
                               .node_count = l.node_count,
                               .edge_count = l.edge_count,
                               .nodes = l.nodes,
                               .edges = l.edges,
                               .forbidden = request->constraints->forbidden,
                               .forbidden_count = request->constraints->forbidden_count,
                               .devices_used_minimum = request->devices_used_minimum,
                               .devices_used_maximum = request->devices_used_maximum,
                               .microbatch_count = request->planned->microbatch_count,
                               .step_time = request->step_time,
                               .step_time_context = request->step_time_context,
                               .names = l.names};
    PEN_TRY(lowering_devices(&l, &given));
    PEN_TRY(lowering_costs(&l, &given));
    *out_given = given;
    return PEN_OK;
}

// FNV-1a
static uint64_t hash_text(uint64_t hash, const char *text) {
    return pen_hash_bytes(hash, text, strlen(text) + 1);
}

// Names and contents: another attribute is another model.
static uint64_t hash_attribute(uint64_t hash, const pen_attribute_schema *schema,
                               const pen_attribute_value *value) {
    if (!value->present) return hash;
    hash = hash_text(hash, schema->name);
    switch (schema->kind) {
    case PEN_ATTRIBUTE_INT:
        return pen_hash_bytes(hash, &value->integer, sizeof value->integer);
    case PEN_ATTRIBUTE_FLOAT:
        return pen_hash_bytes(hash, &value->number, sizeof value->number);
    case PEN_ATTRIBUTE_TEXT:
        return hash_text(hash, value->text);
    case PEN_ATTRIBUTE_INTS:
        hash = pen_hash_bytes(hash, &value->count, sizeof value->count);
        return pen_hash_bytes(hash, value->integers, value->count * sizeof *value->integers);
    case PEN_ATTRIBUTE_FLOATS:
        hash = pen_hash_bytes(hash, &value->count, sizeof value->count);
        return pen_hash_bytes(hash, value->numbers, value->count * sizeof *value->numbers);
    }
    return hash;
}

// What an operand is: by its name before any reordering, with its contents if it is a small
// constant.
static uint64_t hash_operand(uint64_t hash, const pen_graph *graph, pen_value_id id) {
    if (!pen_value_is(id)) return hash_text(hash, "");
    const pen_value *value = pen_graph_value(graph, id);
    while (pen_node_is(value->producer)) {
        const pen_node *producer = pen_graph_node(graph, value->producer);
        if (producer->op != PEN_OP(reorder)) break;
        value = pen_graph_value(graph, producer->inputs[0]);
    }
    hash = hash_text(hash, value->name);
    if (value->kind != PEN_VALUE_CONSTANT || value->data == NULL) return hash;
    if (value->data_bytes > HASH_CONSTANT_BYTES) return hash;
    return pen_hash_bytes(hash, value->data, value->data_bytes);
}

// What a forward node reads and how; the passes after it follow from that.
static uint64_t hash_wiring(uint64_t hash, const pen_graph *graph, const pen_node *node) {
    for (uint32_t i = 0; i < node->input_count; i++) {
        hash = hash_operand(hash, graph, node->inputs[i]);
    }
    for (uint32_t i = 0; i < node->op->attribute_count; i++) {
        hash = hash_attribute(hash, &node->op->attributes[i], &node->attributes[i]);
    }
    return hash;
}

uint64_t pen_graph_hash(const pen_forward_owners *owners) {
    uint64_t hash = PEN_HASH_START;
    for (uint32_t n = 0; n < owners->node_count; n++) {
        const pen_node *node = pen_graph_node(owners->graph, (pen_node_id){n});
        if (node->op == PEN_OP(reorder)) continue;
        hash = hash_text(hash, node->name);
        hash = hash_text(hash, node->op->name);
        const uint8_t role = (uint8_t)node->role;
        hash = pen_hash_bytes(hash, &role, 1);
        if (node->role == PEN_ROLE_FORWARD) hash = hash_wiring(hash, owners->graph, node);
        for (uint32_t i = 0; i < node->output_count; i++) {
            if (!pen_value_is(node->outputs[i])) continue;
            char text[PEN_SHAPE_TEXT_BYTES];
            pen_tensor_type_format(pen_value_type(owners->graph, node->outputs[i]), text);
            hash = hash_text(hash, text);
        }
    }
    return hash;
}
