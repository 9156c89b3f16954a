#include "graph/passes/cut/replicate.h"

#include "graph/graph.h"
#include "graph/op.h"
#include "graph/op_known.h"
#include "graph/passes/copy_graph.h"

typedef struct replicator {
    const pen_replicate_request *request;
    pen_arena *arena;
    pen_graph_copy copy; // `values` and `nodes` of the replica that is made
    pen_value_id **values;
    pen_node_id **nodes; // [replica_count][node_count]
    pen_value_id **rows; // [replica_count][2 * node_count] statistics of a node's microbatches
    uint32_t *stages;    // [stage_limit] of the new graph's nodes
    uint32_t stage_limit;
    pen_node_id *order;
    uint32_t order_count;
} replicator;

// Puts a new node behind the others of the order.
static pen_status replicate_note(replicator *r, pen_node_id made, uint32_t stage) {
    if (made.index >= r->stage_limit) {
        const uint32_t limit = 2 * made.index + 64;
        uint32_t *stages;
        pen_node_id *order;
        PEN_TRY(PEN_NEW(r->arena, limit, &stages));
        PEN_TRY(PEN_NEW(r->arena, limit, &order));
        for (uint32_t i = 0; i < r->stage_limit; i++) {
            stages[i] = r->stages[i];
        }
        for (uint32_t i = 0; i < r->order_count; i++) {
            order[i] = r->order[i];
        }
        r->stages = stages;
        r->order = order;
        r->stage_limit = limit;
    }
    r->stages[made.index] = stage;
    r->order[r->order_count++] = made;
    return PEN_OK;
}

// ---- forward and backward, once for each replica

#define REPLICATE_RUNNING 1u // outputs of batch normalization: running mean and variance,
#define REPLICATE_BATCH 5u   // and the batch's own
#define REPLICATE_STATES 3u  // inputs

// Whether the node changes running statistics, and there are several that would.
static bool replicate_has_statistics(const replicator *r, const pen_node *node) {
    if (r->request->replica_count == 1 || node->op->statistics_inputs == 0) return false;
    for (uint32_t i = REPLICATE_RUNNING; i < REPLICATE_RUNNING + 2 && i < node->output_count; i++) {
        if (!pen_value_is(node->outputs[i])) continue;
        if (pen_value_is(pen_graph_value(r->copy.from, node->outputs[i])->replaces)) return true;
    }
    return false;
}

static bool replicate_is_running(const replicator *r, const pen_node *node, uint32_t output) {
    const bool is_one = output >= REPLICATE_RUNNING && output < REPLICATE_RUNNING + 2;
    return is_one && replicate_has_statistics(r, node);
}

// Names of what a node makes in a replica. Running statistics it leaves out.
static pen_status replicate_names(replicator *r, const pen_node *node, uint32_t replica,
                                  pen_node_spec *spec) {
    const char **names;
    PEN_TRY(PEN_NEW(r->arena, (size_t)node->output_count + REPLICATE_BATCH + 2, &names));
    for (uint32_t i = 0; i < node->output_count; i++) {
        if (!pen_value_is(node->outputs[i]) || replicate_is_running(r, node, i)) continue;
        names[i] = pen_value_name(r->copy.from, node->outputs[i]);
        if (replica == 0) continue;
        PEN_TRY(pen_arena_format(r->arena, &names[i], "%s@%u", names[i], replica));
    }
    spec->output_names = names;
    spec->output_count = node->output_count;
    if (!replicate_has_statistics(r, node)) return PEN_OK;
    for (uint32_t i = 0; i < 2; i++) {
        PEN_TRY(pen_arena_format(r->arena, &names[REPLICATE_BATCH + i], "%s/batch_%s@%u",
                                 node->name, i == 0 ? "mean" : "variance", replica));
    }
    spec->output_count = REPLICATE_BATCH + 2;
    return PEN_OK;
}

// Those of the node; random numbers that go by its name are those of the first replica's.
static pen_status replicate_random(replicator *r, const pen_node *node, pen_node_spec *spec) {
    pen_attribute_given *given;
    if (!node->op->is_random || pen_node_has(node, "stream")) return PEN_OK;
    PEN_TRY(PEN_NEW(r->arena, (size_t)spec->attribute_count + 1, &given));
    for (uint32_t i = 0; i < spec->attribute_count; i++) {
        given[i] = spec->attributes[i];
    }
    given[spec->attribute_count++] = pen_attribute_text("stream", pen_node_stream(node));
    spec->attributes = given;
    return PEN_OK;
}

// The first microbatch of a lane; of the one behind the last: how many there are.
static int64_t replicate_microbatch(const replicator *r, uint32_t lane) {
    const pen_replica *last = &r->request->replicas[r->request->replica_count - 1];
    const uint64_t lanes = (uint64_t)last->first_lane + last->lane_count;
    return (int64_t)((lane * (uint64_t)r->request->microbatch_count + lanes - 1) / lanes);
}

// Rows of the replica's microbatches: attributes of a stack_rows, [4].
static void replicate_stack(const replicator *r, uint32_t replica, int64_t tail, int64_t each,
                            pen_attribute_given *given) {
    const pen_replica *own = &r->request->replicas[replica];
    const int64_t first = replicate_microbatch(r, own->first_lane);
    const int64_t end = replicate_microbatch(r, own->first_lane + own->lane_count);
    given[0] = pen_attribute_int("tail", tail);
    given[1] = pen_attribute_int("each", each);
    given[2] = pen_attribute_int("capacity", (end - first) * each);
    given[3] = pen_attribute_int("first", first);
}

// What is the replica's alone: sums of its lanes in place of all, and rows of its microbatches.
static bool replicate_is_own(const pen_node *node) {
    return node->op == PEN_OP(tree_sum) || node->op == PEN_OP(stack_rows);
}

// Which lanes a sum is of, and which microbatches' rows are kept; all else is as in one pipeline.
static pen_status replicate_attributes(replicator *r, pen_node_id id, uint32_t replica,
                                       pen_node_spec *spec) {
    const pen_node *node = pen_graph_node(r->copy.from, id);
    const pen_replica *own = &r->request->replicas[replica];
    pen_attribute_given *given;
    PEN_TRY(pen_graph_copy_attributes(&r->copy, id, spec));
    if (!replicate_is_own(node)) return replicate_random(r, node, spec);
    PEN_TRY(PEN_NEW(r->arena, 4, &given));
    if (node->op == PEN_OP(stack_rows)) {
        replicate_stack(r, replica, pen_node_int(node, "tail"), pen_node_int(node, "each"), given);
        spec->attributes = given;
        spec->attribute_count = 4;
        return PEN_OK;
    }
    given[0] = pen_attribute_int("first", own->first_lane);
    given[1] = pen_attribute_int("end", (int64_t)own->first_lane + own->lane_count);
    given[2] = pen_attribute_int("each", pen_node_int(node, "each"));
    given[3] = pen_attribute_int("apart", pen_node_int(node, "apart"));
    spec->attributes = given;
    spec->attribute_count = 4;
    return PEN_OK;
}

static pen_status replicate_check_state(const replicator *r, const pen_node *node) {
    for (uint32_t i = 0; i < node->output_count; i++) {
        if (!pen_value_is(node->outputs[i])) continue;
        const pen_value *value = pen_graph_value(r->copy.from, node->outputs[i]);
        if (!pen_value_is(value->replaces) || r->request->replica_count == 1) continue;
        if (replicate_is_running(r, node, i)) continue;
        return pen_error(PEN_UNSUPPORTED,
                         "'%s' changes '%s' in every microbatch, which is not done in several "
                         "replicas yet; replicas: 1 does",
                         node->name, pen_value_name(r->copy.from, value->replaces));
    }
    return PEN_OK;
}

// What a microbatch had is kept as a row, and copied aside when the step ends: the next step's rows
// may come before the copy has arrived where it is sent.
static pen_status replicate_keep_rows(replicator *r, pen_node_id id, pen_node_id made,
                                      uint32_t replica) {
    const uint32_t stage = r->request->replicas[replica].stage_of_node[id.index];
    const char *name = pen_graph_node(r->copy.from, id)->name;
    pen_attribute_given attributes[4];
    replicate_stack(r, replica, 1, 1, attributes);
    for (uint32_t i = 0; i < 2; i++) {
        pen_value_id value = pen_graph_node(r->copy.to, made)->outputs[REPLICATE_BATCH + i];
        pen_node_id node;
        const char *own;
        PEN_TRY(pen_arena_format(r->arena, &own, "%s/rows_%u@%u", name, i, replica));
        pen_node_spec stack = pen_node_spec_of(PEN_OP(stack_rows), own);
        stack.inputs = &value;
        stack.input_count = 1;
        stack.attributes = attributes;
        stack.attribute_count = 4;
        PEN_TRY(pen_graph_add_node(r->copy.to, &stack, &node));
        pen_graph_set_accumulates(r->copy.to, node, true);
        PEN_TRY(replicate_note(r, node, stage));
        value = pen_graph_node(r->copy.to, node)->outputs[0];
        PEN_TRY(pen_arena_format(r->arena, &own, "%s/rows_%u/kept@%u", name, i, replica));
        pen_node_spec copy = pen_node_spec_of(PEN_OP(copy), own);
        copy.role = PEN_ROLE_UPDATE;
        copy.inputs = &value;
        copy.input_count = 1;
        PEN_TRY(pen_graph_add_node(r->copy.to, &copy, &node));
        PEN_TRY(replicate_note(r, node, stage));
        r->rows[replica][2 * id.index + i] = pen_graph_node(r->copy.to, node)->outputs[0];
    }
    return PEN_OK;
}

// Zeros in place of a running statistic, which the node does not change.
static pen_status replicate_zeros(replicator *r, pen_value_id statistic, pen_value_id *out_zeros) {
    const pen_value *value = pen_graph_value(r->copy.from, statistic);
    char *zeros;
    const char *name;
    PEN_TRY(PEN_NEW(r->arena, (size_t)pen_tensor_type_bytes(&value->type), &zeros));
    PEN_TRY(pen_arena_format(r->arena, &name, "%s/zeros", value->name));
    return pen_graph_constant(r->copy.to, name, &value->type, zeros, out_zeros);
}

static pen_status replicate_inputs(replicator *r, const pen_node *node, pen_value_id *inputs) {
    for (uint32_t i = 0; i < node->input_count; i++) {
        const bool is_state = i >= REPLICATE_STATES && i < REPLICATE_STATES + 2;
        inputs[i] = PEN_VALUE_NONE;
        if (!pen_value_is(node->inputs[i])) continue;
        if (is_state && replicate_has_statistics(r, node)) {
            PEN_TRY(replicate_zeros(r, node->inputs[i], &inputs[i]));
            continue;
        }
        inputs[i] = r->copy.values[node->inputs[i].index];
        if (pen_value_is(inputs[i])) continue;
        return pen_error(
            PEN_UNSUPPORTED,
            "'%s' reads '%s' while the step is under way, which is not done in several "
            "replicas; replicas: 1 does",
            node->name, pen_value_name(r->copy.from, node->inputs[i]));
    }
    return PEN_OK;
}

// A node of the forward or backward pass, once more for a replica, with what it reads there.
static pen_status replicate_node(replicator *r, pen_node_id id, uint32_t replica) {
    const pen_node *node = pen_graph_node(r->copy.from, id);
    pen_node_spec spec;
    pen_value_id *inputs;
    pen_node_id made;
    const char *name = node->name;
    PEN_TRY(replicate_check_state(r, node));
    if (replica > 0) PEN_TRY(pen_arena_format(r->arena, &name, "%s@%u", node->name, replica));
    PEN_TRY(pen_graph_copy_spec(&r->copy, id, node->op, name, &spec));
    PEN_TRY(PEN_NEW(r->arena, node->input_count, &inputs));
    PEN_TRY(replicate_inputs(r, node, inputs));
    spec.inputs = inputs;
    spec.input_count = node->input_count;
    PEN_TRY(replicate_names(r, node, replica, &spec));
    PEN_TRY(replicate_attributes(r, id, replica, &spec));
    PEN_TRY(pen_graph_add_node(r->copy.to, &spec, &made));
    pen_graph_set_accumulates(r->copy.to, made, node->accumulates);
    r->copy.nodes[id.index] = made;
    for (uint32_t i = 0; i < node->output_count; i++) {
        if (!pen_value_is(node->outputs[i]) || replicate_is_running(r, node, i)) continue;
        const pen_value_id output = pen_graph_node(r->copy.to, made)->outputs[i];
        const pen_tensor_type type = *pen_value_type(r->copy.to, output);
        pen_graph_copy_value(&r->copy, node->outputs[i], output);
        if (replicate_is_own(node)) pen_graph_set_type(r->copy.to, output, &type);
    }
    PEN_TRY(replicate_note(r, made, r->request->replicas[replica].stage_of_node[id.index]));
    return replicate_has_statistics(r, node) ? replicate_keep_rows(r, id, made, replica) : PEN_OK;
}

// In the order of one device, for each replica; what is not computed is that of the first.
static pen_status replicate_replica(replicator *r, uint32_t replica) {
    const pen_replicate_request *request = r->request;
    const pen_graph *from = request->graph;
    PEN_TRY(PEN_NEW(r->arena, pen_graph_value_count(from), &r->values[replica]));
    PEN_TRY(PEN_NEW(r->arena, pen_graph_node_count(from), &r->nodes[replica]));
    PEN_TRY(PEN_NEW(r->arena, 2 * (size_t)pen_graph_node_count(from), &r->rows[replica]));
    for (uint32_t v = 0; v < pen_graph_value_count(from); v++) {
        const bool is_made = pen_graph_value(from, (pen_value_id){v})->kind == PEN_VALUE_COMPUTED;
        r->values[replica][v] = is_made ? PEN_VALUE_NONE : r->copy.values[v];
    }
    for (uint32_t n = 0; n < pen_graph_node_count(from); n++) {
        r->nodes[replica][n] = PEN_NODE_NONE;
    }
    r->copy.values = r->values[replica];
    r->copy.nodes = r->nodes[replica];
    for (uint32_t p = 0; p < request->order_count; p++) {
        if (pen_graph_node(from, request->order[p])->role == PEN_ROLE_UPDATE) continue;
        PEN_TRY(replicate_node(r, request->order[p], replica));
    }
    return PEN_OK;
}

// ---- updates, once

static bool replicate_is(const replicator *r, pen_value_id value, const pen_op *op) {
    const pen_node_id producer = pen_graph_value(r->copy.from, value)->producer;
    return pen_node_is(producer) && pen_graph_node(r->copy.from, producer)->op == op;
}

// What a node over all replicas reads: values[replica][index], and which lanes replicas have.
static pen_status replicate_over_all(replicator *r, pen_value_id *const *values, uint32_t index,
                                     pen_node_spec *spec) {
    const uint32_t count = r->request->replica_count;
    pen_value_id *inputs;
    pen_attribute_given *given;
    int64_t *bounds;
    PEN_TRY(PEN_NEW(r->arena, count, &inputs));
    PEN_TRY(PEN_NEW(r->arena, (size_t)count + 1, &bounds));
    PEN_TRY(PEN_NEW(r->arena, 1, &given));
    for (uint32_t i = 0; i < count; i++) {
        const pen_replica *replica = &r->request->replicas[i];
        inputs[i] = values[i][index];
        bounds[i] = replica->first_lane;
        bounds[i + 1] = (int64_t)replica->first_lane + replica->lane_count;
    }
    given[0] = pen_attribute_ints("bounds", count + 1, bounds);
    spec->inputs = inputs;
    spec->input_count = count;
    spec->attributes = given;
    spec->attribute_count = 1;
    return PEN_OK;
}

// The rows of all replicas, for an update in `stage`.
static pen_status replicate_rows(replicator *r, pen_value_id rows, uint32_t stage,
                                 pen_value_id *out_rows) {
    const char *name;
    pen_node_id made;
    PEN_TRY(pen_arena_format(r->arena, &name, "%s/all", pen_value_name(r->copy.from, rows)));
    pen_node_spec spec = pen_node_spec_of(PEN_OP(rows_total), name);
    spec.role = PEN_ROLE_UPDATE;
    PEN_TRY(replicate_over_all(r, r->values, rows.index, &spec));
    PEN_TRY(pen_graph_add_node(r->copy.to, &spec, &made));
    *out_rows = pen_graph_node(r->copy.to, made)->outputs[0];
    return replicate_note(r, made, stage);
}

// What an update reads: another update's, what is there once, or of all replicas.
static pen_status replicate_operand(replicator *r, const pen_node *node, pen_value_id value,
                                    uint32_t stage, pen_value_id *out_value) {
    const pen_graph *from = r->copy.from;
    const pen_node_id producer = pen_graph_value(from, value)->producer;
    if (!pen_node_is(producer) || pen_graph_node(from, producer)->role == PEN_ROLE_UPDATE ||
        r->request->replica_count == 1) {
        *out_value = r->copy.values[value.index];
        return PEN_OK;
    }
    if (replicate_is(r, value, PEN_OP(stack_rows))) {
        return replicate_rows(r, value, stage, out_value);
    }
    return pen_error(PEN_UNSUPPORTED,
                     "the update '%s' reads '%s', of which there is no sum over replicas; "
                     "replicas: 1 does without",
                     node->name, pen_value_name(from, value));
}

// An update, with what it reads of all replicas.
static pen_status replicate_update(replicator *r, pen_node_id id) {
    const pen_node *node = pen_graph_node(r->copy.from, id);
    const uint32_t stage = r->request->update_stage_of_node[id.index];
    pen_node_spec spec;
    pen_value_id *inputs;
    pen_node_id made;
    PEN_TRY(pen_graph_copy_spec(&r->copy, id, node->op, node->name, &spec));
    PEN_TRY(replicate_names(r, node, 0, &spec));
    if (node->op == PEN_OP(tree_total) || node->op == PEN_OP(lane_stack)) {
        PEN_TRY(replicate_over_all(r, r->values, node->inputs[0].index, &spec));
    } else {
        PEN_TRY(PEN_NEW(r->arena, node->input_count, &inputs));
        for (uint32_t i = 0; i < node->input_count; i++) {
            inputs[i] = PEN_VALUE_NONE;
            if (!pen_value_is(node->inputs[i])) continue;
            PEN_TRY(replicate_operand(r, node, node->inputs[i], stage, &inputs[i]));
        }
        spec.inputs = inputs;
        spec.input_count = node->input_count;
        PEN_TRY(pen_graph_copy_attributes(&r->copy, id, &spec));
    }
    PEN_TRY(pen_graph_add_node(r->copy.to, &spec, &made));
    pen_graph_set_accumulates(r->copy.to, made, node->accumulates);
    r->copy.nodes[id.index] = made;
    for (uint32_t i = 0; i < node->output_count; i++) {
        if (!pen_value_is(node->outputs[i])) continue;
        pen_graph_copy_value(&r->copy, node->outputs[i],
                             pen_graph_node(r->copy.to, made)->outputs[i]);
    }
    return replicate_note(r, made, stage);
}

// Running statistics take in what all microbatches had, where the first replica reads them: there
// they are evaluated with, too.
static pen_status replicate_fold(replicator *r, pen_node_id id) {
    const pen_node *node = pen_graph_node(r->copy.from, id);
    const uint32_t stage = r->request->replicas[0].stage_of_node[id.index];
    const pen_attribute_given momentum =
        pen_attribute_float("momentum", pen_node_float(node, "momentum"));
    for (uint32_t i = 0; i < 2; i++) {
        const pen_value_id changed = node->outputs[REPLICATE_RUNNING + i];
        const pen_value_id state = r->values[0][node->inputs[REPLICATE_STATES + i].index];
        const char *name = pen_value_name(r->copy.from, changed), *own;
        pen_node_id made;
        PEN_TRY(pen_arena_format(r->arena, &own, "%s/rows", name));
        pen_node_spec total = pen_node_spec_of(PEN_OP(rows_total), own);
        total.role = PEN_ROLE_UPDATE;
        PEN_TRY(replicate_over_all(r, r->rows, 2 * id.index + i, &total));
        PEN_TRY(pen_graph_add_node(r->copy.to, &total, &made));
        PEN_TRY(replicate_note(r, made, stage));
        const pen_value_id operands[2] = {state, pen_graph_node(r->copy.to, made)->outputs[0]};
        PEN_TRY(pen_arena_format(r->arena, &own, "%s/fold", name));
        pen_node_spec fold = pen_node_spec_of(PEN_OP(fold_rows), own);
        fold.role = PEN_ROLE_UPDATE;
        fold.inputs = operands;
        fold.input_count = 2;
        fold.output_names = &name;
        fold.output_count = 1;
        fold.attributes = &momentum;
        fold.attribute_count = 1;
        PEN_TRY(pen_graph_add_node(r->copy.to, &fold, &made));
        PEN_TRY(replicate_note(r, made, stage));
        pen_graph_set_replaces(r->copy.to, pen_graph_node(r->copy.to, made)->outputs[0], state);
    }
    return PEN_OK;
}

// All that replicas run comes before what is run once.
pen_status pen_replicate(const pen_replicate_request *request, pen_arena *arena,
                         pen_replicated *out_replicated) {
    replicator r = {.request = request, .arena = arena};
    PEN_TRY(pen_graph_copy_begin(request->graph, &r.copy));
    PEN_TRY(PEN_NEW(arena, request->replica_count, &r.values));
    PEN_TRY(PEN_NEW(arena, request->replica_count, &r.nodes));
    PEN_TRY(PEN_NEW(arena, request->replica_count, &r.rows));
    for (uint32_t i = request->replica_count; i-- > 0;) { // the first is the copy's at the end
        PEN_TRY(replicate_replica(&r, i));
    }
    for (uint32_t p = 0; p < request->order_count; p++) {
        if (pen_graph_node(request->graph, request->order[p])->role != PEN_ROLE_UPDATE) continue;
        PEN_TRY(replicate_update(&r, request->order[p]));
    }
    for (uint32_t p = 0; p < request->order_count; p++) {
        const pen_node *node = pen_graph_node(request->graph, request->order[p]);
        if (replicate_has_statistics(&r, node)) PEN_TRY(replicate_fold(&r, request->order[p]));
    }
    *out_replicated = (pen_replicated){.graph = r.copy.to,
                                       .order = r.order,
                                       .order_count = r.order_count,
                                       .stage_of_node = r.stages,
                                       .values = (const pen_value_id *const *)r.values};
    return PEN_OK;
}
