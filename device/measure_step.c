// Reuse distances: bytes that a step moves between two uses of a value.

#include "device/measure_op.h"
#include "graph/op.h"

typedef struct step_builder {
    const pen_graph *graph;
    const pen_node_id *order;
    uint32_t order_count;
    uint64_t *moved;    // [value_count], by home: bytes moved up to its last use
    bool *is_used;      // [value_count], by home: used before in this walk
    uint32_t *last_use; // [value_count], by home: position of its last use of all
    uint32_t *first_of_node;
    uint64_t *distances;
    uint64_t *in_place_inputs;
} step_builder;

// The value whose storage `value` has.
static pen_value_id step_home(const pen_graph *graph, pen_value_id value) {
    for (;;) {
        const pen_value *subject = pen_graph_value(graph, value);
        if (pen_value_is(subject->replaces)) return subject->replaces;
        if (subject->kind != PEN_VALUE_COMPUTED) return value;
        const pen_node *producer = pen_graph_node(graph, subject->producer);
        if (!producer->op->is_view) return value;
        value = producer->inputs[0];
    }
}

static uint32_t step_operand_count(const pen_node *node) {
    return node->input_count + node->output_count;
}

static pen_value_id step_operand(const pen_node *node, uint32_t operand) {
    return operand < node->input_count ? node->inputs[operand]
                                       : node->outputs[operand - node->input_count];
}

static pen_status step_allocate(step_builder *builder, pen_arena *arena) {
    const uint32_t node_count = pen_graph_node_count(builder->graph);
    const uint32_t value_count = pen_graph_value_count(builder->graph);
    uint32_t operand_count = 0;
    PEN_TRY(PEN_NEW(arena, value_count, &builder->moved));
    PEN_TRY(PEN_NEW(arena, value_count, &builder->is_used));
    PEN_TRY(PEN_NEW(arena, value_count, &builder->last_use));
    PEN_TRY(PEN_NEW(arena, node_count, &builder->first_of_node));
    PEN_TRY(PEN_NEW(arena, node_count, &builder->in_place_inputs));
    for (uint32_t n = 0; n < node_count; n++) {
        builder->first_of_node[n] = operand_count;
        operand_count += step_operand_count(pen_graph_node(builder->graph, (pen_node_id){n}));
    }
    return PEN_NEW(arena, operand_count, &builder->distances);
}

static void step_find_last_uses(step_builder *builder) {
    for (uint32_t p = 0; p < builder->order_count; p++) {
        const pen_node *node = pen_graph_node(builder->graph, builder->order[p]);
        for (uint32_t i = 0; i < step_operand_count(node); i++) {
            const pen_value_id value = step_operand(node, i);
            if (!pen_value_is(value)) continue;
            builder->last_use[step_home(builder->graph, value).index] = p;
        }
    }
}

static uint64_t step_find_in_place(const step_builder *builder, const pen_node *node,
                                   uint32_t position) {
    if (node->output_count == 0 || !pen_value_is(node->outputs[0])) return 0;
    const pen_value *output = pen_graph_value(builder->graph, node->outputs[0]);
    if (pen_value_is(output->replaces) || node->accumulates) return 0;
    for (uint32_t i = 0; i < node->input_count && i < 64; i++) {
        if ((node->op->in_place_inputs >> i & 1) == 0 || !pen_value_is(node->inputs[i])) continue;
        const pen_value_id home = step_home(builder->graph, node->inputs[i]);
        const pen_value *input = pen_graph_value(builder->graph, home);
        if (input->kind != PEN_VALUE_COMPUTED || builder->last_use[home.index] != position ||
            pen_tensor_type_bytes(&input->type) != pen_tensor_type_bytes(&output->type) ||
            input->layout != output->layout) {
            continue;
        }
        return (uint64_t)1 << i;
    }
    return 0;
}

// Walks the order once; the second walk finds what the first left used, as every step but the first
// does.
static uint64_t step_walk(step_builder *builder, uint64_t moved) {
    const pen_graph *graph = builder->graph;
    for (uint32_t p = 0; p < builder->order_count; p++) {
        const pen_node_id id = builder->order[p];
        const pen_node *node = pen_graph_node(graph, id);
        if (node->op->is_view) continue;
        const uint32_t first = builder->first_of_node[id.index];
        for (uint32_t i = 0; i < step_operand_count(node); i++) {
            const pen_value_id value = step_operand(node, i);
            if (!pen_value_is(value)) continue;
            const uint32_t home = step_home(graph, value).index;
            builder->distances[first + i] =
                builder->is_used[home] ? moved - builder->moved[home] : UINT64_MAX;
        }
        moved += pen_node_bytes(graph, id);
        for (uint32_t i = 0; i < step_operand_count(node); i++) {
            const pen_value_id value = step_operand(node, i);
            if (!pen_value_is(value)) continue;
            const uint32_t home = step_home(graph, value).index;
            builder->is_used[home] = true;
            builder->moved[home] = moved;
        }
        builder->in_place_inputs[id.index] = step_find_in_place(builder, node, p);
    }
    return moved;
}

pen_status pen_measure_step_build(const pen_graph *graph, const pen_node_id *order,
                                  uint32_t order_count, pen_arena *arena,
                                  const pen_measure_step **out_step) {
    step_builder builder = {.graph = graph, .order = order, .order_count = order_count};
    pen_measure_step *step;
    PEN_TRY(PEN_NEW(arena, 1, &step));
    PEN_TRY(step_allocate(&builder, arena));
    step_find_last_uses(&builder);
    step->step_bytes = step_walk(&builder, 0);
    (void)step_walk(&builder, step->step_bytes);
    step->first_of_node = builder.first_of_node;
    step->distances = builder.distances;
    step->in_place_inputs = builder.in_place_inputs;
    *out_step = step;
    return PEN_OK;
}
