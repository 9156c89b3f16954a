#include "graph/analysis/forward_owner.h"

#include "base/sets/components.h"
#include "base/sets/disjoint_sets.h"
#include "graph/graph.h"
#include "graph/op.h"
#include "graph/op_known.h"

#define OWNER_ANCHOR_STEPS 4 // layout changes that follow each other

typedef struct owners_builder {
    const pen_graph *graph;
    pen_forward_owners *owners;
    uint32_t *home;
    uint32_t *root;
    uint32_t *anchor;   // [node_count], whom a layout change goes with; itself for others
    bool *has_gradient; // [node_count], some node is its gradient
    bool *from_input;   // [value_count]: computed from what is fed, not from parameters alone
    pen_disjoint_sets sets;
} owners_builder;

static const pen_node *owners_node(const owners_builder *builder, uint32_t node) {
    return pen_graph_node(builder->graph, (pen_node_id){node});
}

static bool owners_is_reorder(const pen_node *node) {
    return node->op == PEN_OP(reorder);
}

// The producer of the first operand that is computed; PEN_ID_NONE without one.
static uint32_t owners_first_producer(const owners_builder *builder, const pen_node *node) {
    for (uint32_t i = 0; i < node->input_count; i++) {
        if (!pen_value_is(node->inputs[i])) continue;
        const pen_node_id producer = pen_graph_value(builder->graph, node->inputs[i])->producer;
        if (pen_node_is(producer)) return producer.index;
    }
    return PEN_ID_NONE;
}

// The first forward node that reads a parameter or state; PEN_ID_NONE without one.
static uint32_t owners_first_reader(const owners_builder *builder, pen_value_id value) {
    const pen_readers *readers = &builder->owners->readers;
    for (uint32_t r = readers->first[value.index]; r < readers->first[value.index + 1]; r++) {
        const uint32_t reader = readers->nodes[r].index;
        if (owners_node(builder, reader)->role == PEN_ROLE_FORWARD) return reader;
    }
    return PEN_ID_NONE;
}

static uint32_t owners_of_update(const owners_builder *builder, const pen_node *node) {
    for (uint32_t i = 0; i < node->output_count; i++) {
        if (!pen_value_is(node->outputs[i])) continue;
        const pen_value_id old = pen_graph_value(builder->graph, node->outputs[i])->replaces;
        if (!pen_value_is(old)) continue;
        const uint32_t reader = owners_first_reader(builder, old);
        if (reader != PEN_ID_NONE) return reader;
    }
    return PEN_ID_NONE;
}

// Whether another node of the same gradient reads what a view looks at: the stage has it already.
static bool owners_has_viewed(const owners_builder *builder, const pen_node *node, uint32_t view) {
    const pen_readers *readers = &builder->owners->readers;
    const uint32_t v = node->inputs[0].index;
    if (!pen_node_is(node->gradient_of)) return false;
    for (uint32_t r = readers->first[v]; r < readers->first[v + 1]; r++) {
        const uint32_t reader = readers->nodes[r].index;
        const pen_node *other = owners_node(builder, reader);
        if (reader == view || other->op->is_view || !pen_role_is_backward(other->role)) continue;
        if (other->gradient_of.index == node->gradient_of.index) return true;
    }
    return false;
}

// The backward node that made what a view of the backward pass looks at: the gradient goes from
// there to whoever reads it, and not by way of the stage of the forward pass's view.
static uint32_t owners_viewed(const owners_builder *builder, const pen_node *node, uint32_t view) {
    if (!node->op->is_view || !pen_role_is_backward(node->role)) return PEN_ID_NONE;
    const pen_node_id maker = pen_graph_value(builder->graph, node->inputs[0])->producer;
    if (!pen_node_is(maker)) return PEN_ID_NONE;
    if (!pen_role_is_backward(owners_node(builder, maker.index)->role)) return PEN_ID_NONE;
    return owners_has_viewed(builder, node, view) ? PEN_ID_NONE : maker.index;
}

// Nodes come after what they are made from, so one walk upwards is enough. `fallback` is any
// forward node.
static void owners_assign(owners_builder *builder, uint32_t fallback) {
    for (uint32_t n = 0; n < builder->owners->node_count; n++) {
        const pen_node *node = owners_node(builder, n);
        const uint32_t viewed = owners_viewed(builder, node, n);
        uint32_t home = PEN_ID_NONE;
        if (node->role == PEN_ROLE_FORWARD) {
            home = n;
        } else if (viewed != PEN_ID_NONE && viewed < n) {
            home = builder->home[viewed];
        } else if (pen_node_is(node->gradient_of) && node->gradient_of.index < n) {
            home = builder->home[node->gradient_of.index];
        } else {
            if (node->role == PEN_ROLE_UPDATE) home = owners_of_update(builder, node);
            const uint32_t producer =
                home == PEN_ID_NONE ? owners_first_producer(builder, node) : home;
            home = producer == PEN_ID_NONE ? fallback : builder->home[producer];
        }
        builder->home[n] = home;
        if (pen_node_is(node->gradient_of)) builder->has_gradient[node->gradient_of.index] = true;
    }
}

// Which value a view looks at in the end, and which values depend on what the model is fed: only
// those can wait for another device.
static void owners_find_roots(owners_builder *builder) {
    for (uint32_t v = 0; v < builder->owners->value_count; v++) {
        builder->root[v] = v;
        builder->from_input[v] =
            pen_graph_value(builder->graph, (pen_value_id){v})->kind == PEN_VALUE_INPUT;
    }
    for (uint32_t n = 0; n < builder->owners->node_count; n++) {
        const pen_node *node = owners_node(builder, n);
        if (node->op->is_view) {
            builder->root[node->outputs[0].index] = builder->root[node->inputs[0].index];
        }
        bool any = false;
        for (uint32_t i = 0; i < node->input_count; i++) {
            if (pen_value_is(node->inputs[i])) any |= builder->from_input[node->inputs[i].index];
        }
        for (uint32_t i = 0; i < node->output_count; i++) {
            if (pen_value_is(node->outputs[i])) builder->from_input[node->outputs[i].index] = any;
        }
    }
}

// The home that all forward readers of a node's results have; PEN_ID_NONE when there are several.
static uint32_t owners_only_reader(const owners_builder *builder, const pen_node *node) {
    const pen_readers *readers = &builder->owners->readers;
    uint32_t only = PEN_ID_NONE;
    for (uint32_t i = 0; i < node->output_count; i++) {
        if (!pen_value_is(node->outputs[i])) continue;
        const uint32_t v = node->outputs[i].index;
        for (uint32_t r = readers->first[v]; r < readers->first[v + 1]; r++) {
            const uint32_t reader = builder->home[readers->nodes[r].index];
            if (owners_node(builder, readers->nodes[r].index)->role != PEN_ROLE_FORWARD) continue;
            if (only != PEN_ID_NONE && only != reader) return PEN_ID_NONE;
            only = reader;
        }
    }
    return only;
}

static bool owners_is_helper(const owners_builder *builder, const pen_node *node) {
    for (uint32_t i = 0; i < node->output_count; i++) {
        if (!pen_value_is(node->outputs[i])) continue;
        if (builder->from_input[node->outputs[i].index]) return false;
    }
    return !node->op->is_random;
}

// Whether `other` is computed from all that `node` is, and a gradient comes of it.
static bool owners_is_beside(const owners_builder *builder, const pen_node *node, uint32_t other) {
    const pen_node *beside = owners_node(builder, other);
    if (!builder->has_gradient[other] || beside->role != PEN_ROLE_FORWARD) return false;
    for (uint32_t i = 0; i < node->input_count; i++) {
        if (!pen_value_is(node->inputs[i])) continue;
        bool is_shared = false;
        for (uint32_t j = 0; j < beside->input_count && !is_shared; j++)
            is_shared = beside->inputs[j].index == node->inputs[i].index;
        if (!is_shared) return false;
    }
    return true;
}

// What only reports on the training, the accuracy, say: nobody reads it, and no gradient comes of
// it. It goes with the loss of the same operands.
static void owners_join_report(owners_builder *builder, uint32_t n) {
    const pen_node *node = owners_node(builder, n);
    const uint32_t producer = owners_first_producer(builder, node);
    if (builder->has_gradient[n] || producer == PEN_ID_NONE) return;
    for (uint32_t i = 0; i < node->output_count; i++) {
        if (!pen_value_is(node->outputs[i])) continue;
        const pen_value_id output = node->outputs[i];
        if (pen_readers_count(&builder->owners->readers, output) > 0) return;
        if (pen_value_is(pen_graph_value(builder->graph, output)->replaces)) return;
    }
    const pen_readers *readers = &builder->owners->readers;
    for (uint32_t i = 0; i < node->input_count; i++) {
        if (!pen_value_is(node->inputs[i])) continue;
        const uint32_t v = node->inputs[i].index;
        for (uint32_t r = readers->first[v]; r < readers->first[v + 1]; r++) {
            const uint32_t other = readers->nodes[r].index;
            if (!owners_is_beside(builder, node, other)) continue;
            pen_disjoint_sets_join(&builder->sets, n, other);
            return;
        }
    }
    pen_disjoint_sets_join(&builder->sets, n, builder->home[producer]);
}

// Whether the backward pass of the node that made what is laid out anew reads it as it is then:
// with the reader, it would have to travel back.
static bool owners_is_read_back(const owners_builder *builder, const pen_node *node) {
    const pen_readers *readers = &builder->owners->readers;
    uint32_t source = owners_first_producer(builder, node);
    while (source != PEN_ID_NONE && (owners_node(builder, source)->op->is_view ||
                                     owners_is_reorder(owners_node(builder, source)))) {
        source = owners_first_producer(builder, owners_node(builder, source));
    }
    if (source == PEN_ID_NONE) return false;
    const uint32_t v = node->outputs[0].index;
    for (uint32_t r = readers->first[v]; r < readers->first[v + 1]; r++) {
        const uint32_t reader = readers->nodes[r].index;
        if (pen_role_is_backward(owners_node(builder, reader)->role) &&
            builder->home[reader] == source) {
            return true;
        }
    }
    return false;
}

// Helpers of one reader, reorders and views go with a neighbour: alone on another device, they
// would cost a transfer and compute nothing.
static void owners_join_forward(owners_builder *builder, uint32_t n) {
    const pen_node *node = owners_node(builder, n);
    if (owners_is_helper(builder, node) || owners_is_reorder(node)) {
        const uint32_t reader = owners_only_reader(builder, node);
        const bool is_read_back = owners_is_reorder(node) && owners_is_read_back(builder, node);
        if (reader != PEN_ID_NONE && !is_read_back) {
            pen_disjoint_sets_join(&builder->sets, n, reader);
            if (owners_is_reorder(node)) builder->anchor[n] = reader;
            if (owners_is_reorder(node)) return;
        }
    }
    owners_join_report(builder, n);
    if (!node->op->is_view && !owners_is_reorder(node)) return;
    const pen_node_id producer = pen_graph_value(builder->graph, node->inputs[0])->producer;
    const pen_readers *readers = &builder->owners->readers;
    const uint32_t output = node->outputs[0].index;
    // a view of an input, or of another such view, has nothing computed before it
    const pen_value_id root = {builder->root[node->inputs[0].index]};
    if (pen_node_is(pen_graph_value(builder->graph, root)->producer)) {
        pen_disjoint_sets_join(&builder->sets, n, builder->home[producer.index]);
        builder->anchor[n] = builder->home[producer.index];
    } else if (readers->first[output] < readers->first[output + 1]) {
        const uint32_t reader = readers->nodes[readers->first[output]].index;
        pen_disjoint_sets_join(&builder->sets, n, builder->home[reader]);
        builder->anchor[n] = builder->home[reader];
    }
}

// ---- loops

// Edges between forward nodes, as lists: those of node n are to[first[n]] up to to[first[n + 1]].
typedef struct owners_edges {
    uint32_t *first; // [node_count + 1]
    uint32_t *to;
} owners_edges;

// Counts an edge, or writes it down.
static void owners_edge(owners_edges *edges, uint32_t from, uint32_t to) {
    if (edges->to == NULL) {
        edges->first[from + 1] += 1;
    } else {
        edges->to[edges->first[from]++] = to;
    }
}

// The forward node that changes a state for every microbatch; PEN_ID_NONE without one.
static uint32_t owners_changer(const owners_builder *builder, uint32_t value) {
    const pen_value *found = pen_graph_value(builder->graph, (pen_value_id){value});
    if (!pen_value_is(found->replaces) || !pen_node_is(found->producer)) return PEN_ID_NONE;
    const uint32_t maker = found->producer.index;
    return owners_node(builder, maker)->role == PEN_ROLE_FORWARD ? maker : PEN_ID_NONE;
}

// Edges of the forward pass, and between what changes a state and what reads it, both ways.
static void owners_visit_edges(const owners_builder *builder, owners_edges *edges) {
    const pen_readers *readers = &builder->owners->readers;
    for (uint32_t v = 0; v < builder->owners->value_count; v++) {
        const pen_value *value = pen_graph_value(builder->graph, (pen_value_id){v});
        const uint32_t maker = value->producer.index;
        const uint32_t changer = owners_changer(builder, v);
        const bool is_made =
            pen_node_is(value->producer) && owners_node(builder, maker)->role == PEN_ROLE_FORWARD;
        for (uint32_t r = readers->first[v]; is_made && r < readers->first[v + 1]; r++) {
            const uint32_t reader = readers->nodes[r].index;
            if (owners_node(builder, reader)->role != PEN_ROLE_FORWARD) continue;
            owners_edge(edges, maker, reader);
        }
        if (changer == PEN_ID_NONE) continue;
        const uint32_t state = value->replaces.index;
        for (uint32_t r = readers->first[state]; r < readers->first[state + 1]; r++) {
            owners_edge(edges, changer, readers->nodes[r].index);
            owners_edge(edges, readers->nodes[r].index, changer);
        }
    }
}

static pen_status owners_list_edges(const owners_builder *builder, pen_arena *arena,
                                    owners_edges *out_edges) {
    const uint32_t count = builder->owners->node_count;
    owners_edges edges = {0}, filled;
    PEN_TRY(PEN_NEW(arena, (size_t)count + 1, &edges.first));
    PEN_TRY(PEN_NEW(arena, (size_t)count + 1, &filled.first));
    owners_visit_edges(builder, &edges);
    for (uint32_t n = 0; n < count; n++) {
        edges.first[n + 1] += edges.first[n];
        filled.first[n] = edges.first[n];
    }
    PEN_TRY(PEN_NEW(arena, edges.first[count], &edges.to));
    filled.to = edges.to;
    owners_visit_edges(builder, &filled);
    *out_edges = edges;
    return PEN_OK;
}

// Whether a node that changes a state is not the only one that reads it.
static bool owners_has_loops(const owners_builder *builder) {
    const pen_readers *readers = &builder->owners->readers;
    for (uint32_t v = 0; v < builder->owners->value_count; v++) {
        const uint32_t changer = owners_changer(builder, v);
        if (changer == PEN_ID_NONE) continue;
        const uint32_t state = pen_graph_value(builder->graph, (pen_value_id){v})->replaces.index;
        for (uint32_t r = readers->first[state]; r < readers->first[state + 1]; r++) {
            if (readers->nodes[r].index != changer) return true;
        }
    }
    return false;
}

// What a microbatch leaves of a state the next one reads: all from the readers of a state to what
// changes it, which is a circle with the change itself, runs for one microbatch after the other.
static pen_status owners_join_loops(owners_builder *builder, pen_arena *arena) {
    const uint32_t count = builder->owners->node_count;
    uint32_t *component, *first, *loop, component_count;
    owners_edges edges;
    PEN_TRY(PEN_NEW(arena, count, &loop));
    builder->owners->loop = loop;
    if (!owners_has_loops(builder)) return PEN_OK;
    PEN_TRY(owners_list_edges(builder, arena, &edges));
    PEN_TRY(PEN_NEW(arena, count, &component));
    PEN_TRY(pen_components_find(count, edges.first, edges.to, arena, component, &component_count));
    PEN_TRY(PEN_NEW(arena, component_count, &first));
    for (uint32_t n = 0; n < count; n++) {
        uint32_t *lowest = &first[component[n]]; // plus 1
        if (*lowest == 0) *lowest = n + 1;
        if (*lowest == n + 1) continue;
        pen_disjoint_sets_join(&builder->sets, *lowest - 1, n);
        loop[*lowest - 1] = loop[n] = *lowest;
    }
    return PEN_OK;
}

// ---- users of roots

// Counts the users of roots into counts[root + 1], or lists them from where counts[root] says.
static void owners_visit_users(const owners_builder *builder, uint32_t *counts, uint32_t *nodes) {
    for (uint32_t n = 0; n < builder->owners->node_count; n++) {
        const pen_node *node = owners_node(builder, n);
        for (uint32_t i = 0; i < node->input_count && !node->op->is_view; i++) {
            const bool is_early = i < 64 && (node->op->constant_inputs >> i & 1) != 0;
            if (!pen_value_is(node->inputs[i]) || is_early) continue;
            const uint32_t root = builder->root[node->inputs[i].index];
            if (nodes == NULL) {
                counts[root + 1] += 1;
            } else {
                nodes[counts[root]++] = n;
            }
        }
    }
}

static pen_status owners_list_users(const owners_builder *builder, pen_arena *arena) {
    pen_forward_owners *owners = builder->owners;
    const uint32_t value_count = owners->value_count;
    uint32_t *first, *next, *nodes;
    PEN_TRY(PEN_NEW(arena, (size_t)value_count + 1, &first));
    PEN_TRY(PEN_NEW(arena, value_count, &next));
    owners_visit_users(builder, first, NULL);
    for (uint32_t v = 0; v < value_count; v++) {
        first[v + 1] += first[v];
        next[v] = first[v];
    }
    PEN_TRY(PEN_NEW(arena, first[value_count], &nodes));
    owners_visit_users(builder, next, nodes);
    owners->user_first = first;
    owners->user_nodes = nodes;
    return PEN_OK;
}

// Reorders are not shown to strategies: they follow the node whose value they turn, or else the
// first node of their group.
static pen_status owners_finish(owners_builder *builder, pen_arena *arena) {
    pen_forward_owners *owners = builder->owners;
    uint32_t *group, *listed, *first;
    bool *is_listed;
    PEN_TRY(PEN_NEW(arena, owners->node_count, &group));
    PEN_TRY(PEN_NEW(arena, owners->node_count, &is_listed));
    PEN_TRY(PEN_NEW(arena, owners->node_count, &listed));
    PEN_TRY(PEN_NEW(arena, owners->node_count, &first));
    for (uint32_t n = 0; n < owners->node_count; n++) {
        const pen_node *node = owners_node(builder, n);
        group[n] = pen_disjoint_sets_find(&builder->sets, n);
        is_listed[n] = node->role == PEN_ROLE_FORWARD && !owners_is_reorder(node);
    }
    for (uint32_t n = 0; n < owners->node_count; n++) {
        first[n] = n;
    }
    for (uint32_t n = owners->node_count; n-- > 0;) {
        if (is_listed[n]) first[group[n]] = n;
    }
    for (uint32_t n = 0; n < owners->node_count; n++) {
        uint32_t node = builder->home[n];
        for (uint32_t step = 0; step < OWNER_ANCHOR_STEPS && !is_listed[node]; step++) {
            node = builder->anchor[node];
        }
        listed[n] = is_listed[node] ? node : first[group[n]];
    }
    owners->listed = listed;
    owners->home = builder->home;
    owners->root = builder->root;
    owners->group = group;
    owners->is_listed = is_listed;
    return PEN_OK;
}

// Backward nodes, updates and sums get the forward node that they belong to; then nodes that cannot
// be apart are joined into groups.
pen_status pen_forward_owners_build(const pen_graph *graph, pen_arena *arena,
                                    const pen_forward_owners **out_owners) {
    pen_forward_owners *owners;
    PEN_TRY(PEN_NEW(arena, 1, &owners));
    owners->graph = graph;
    owners->node_count = pen_graph_node_count(graph);
    owners->value_count = pen_graph_value_count(graph);
    owners_builder builder = {.graph = graph, .owners = owners};
    PEN_TRY(pen_readers_build(graph, 0, NULL, arena, &owners->readers));
    PEN_TRY(PEN_NEW(arena, owners->node_count, &builder.home));
    PEN_TRY(PEN_NEW(arena, owners->node_count, &builder.anchor));
    PEN_TRY(PEN_NEW(arena, owners->node_count, &builder.has_gradient));
    PEN_TRY(PEN_NEW(arena, owners->value_count, &builder.root));
    PEN_TRY(PEN_NEW(arena, owners->value_count, &builder.from_input));
    PEN_TRY(pen_disjoint_sets_new(owners->node_count, arena, &builder.sets));
    uint32_t fallback = 0;
    while (fallback < owners->node_count &&
           owners_node(&builder, fallback)->role != PEN_ROLE_FORWARD) {
        fallback++;
    }
    if (fallback == owners->node_count) {
        return pen_error(PEN_INVALID_INPUT, "the graph has no forward node: nothing to place");
    }
    owners_assign(&builder, fallback);
    owners_find_roots(&builder);
    for (uint32_t n = 0; n < owners->node_count; n++) {
        builder.anchor[n] = n;
        pen_disjoint_sets_join(&builder.sets, n, builder.home[n]);
        if (owners_node(&builder, n)->role == PEN_ROLE_FORWARD) owners_join_forward(&builder, n);
    }
    PEN_TRY(owners_join_loops(&builder, arena));
    PEN_TRY(owners_list_users(&builder, arena));
    PEN_TRY(owners_finish(&builder, arena));
    *out_owners = owners;
    return PEN_OK;
}

pen_value_id pen_forward_owners_source(const pen_forward_owners *owners, pen_value_id value) {
    const pen_value_id root = {owners->root[value.index]};
    if (pen_node_is(pen_graph_value(owners->graph, root)->producer)) return root;
    return pen_node_is(pen_graph_value(owners->graph, value)->producer) ? value : PEN_VALUE_NONE;
}

bool pen_forward_owners_is_kept(const pen_forward_owners *owners, uint32_t root) {
    for (uint32_t u = owners->user_first[root]; u < owners->user_first[root + 1]; u++) {
        const pen_node_id user = {owners->user_nodes[u]};
        if (pen_graph_node(owners->graph, user)->role != PEN_ROLE_FORWARD) return true;
    }
    return false;
}

bool pen_forward_owners_is_per_step(const pen_forward_owners *owners, pen_value_id value) {
    const pen_node_id producer = pen_graph_value(owners->graph, value)->producer;
    if (!pen_node_is(producer)) return false;
    const pen_role role = pen_graph_node(owners->graph, producer)->role;
    return role == PEN_ROLE_UPDATE || role == PEN_ROLE_BACKWARD_WEIGHT;
}
