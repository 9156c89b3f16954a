#include "graph/passes/gradient/build_gradients.h"

#include "graph/graph.h"
#include "graph/op.h"
#include "graph/op_known.h"
#include "graph/ops/shared/gradient_context.h"

// One gradient that flows into a value, from the rule of one reader. Contributions are found with
// readers in descending order, so a list built by pushing in front is in node order.
typedef struct gradients_contribution {
    pen_value_id gradient;
    pen_node_id reader; // whose operand it is the gradient of
    struct gradients_contribution *next;
} gradients_contribution;

typedef struct gradients_builder {
    pen_graph *graph;
    pen_arena *arena;
    uint32_t value_count; // of the forward graph: later values have no gradients
    uint32_t node_count;
    bool *needed;                           // [value_count]: a wanted value, or computed from one
    bool *reached;                          // [value_count]: the loss is computed from it, past no
                                            // op that stops gradients
    bool *wanted;                           // [value_count]
    gradients_contribution **contributions; // [value_count]
} gradients_builder;

static pen_status gradients_builder_init(gradients_builder *builder, pen_graph *graph) {
    builder->graph = graph;
    builder->arena = pen_graph_arena(graph);
    builder->value_count = pen_graph_value_count(graph);
    builder->node_count = pen_graph_node_count(graph);
    PEN_TRY(PEN_NEW(builder->arena, builder->value_count, &builder->needed));
    PEN_TRY(PEN_NEW(builder->arena, builder->value_count, &builder->reached));
    PEN_TRY(PEN_NEW(builder->arena, builder->value_count, &builder->wanted));
    return PEN_NEW(builder->arena, builder->value_count, &builder->contributions);
}

// Marks what is computed from a wanted value through floating-point values that no op stops.
static void gradients_mark_needed(gradients_builder *builder) {
    for (uint32_t n = 0; n < builder->node_count; n++) {
        const pen_node *node = pen_graph_node(builder->graph, (pen_node_id){n});
        bool any = false;
        if (node->op->stops_gradient) continue;
        for (uint32_t i = 0; i < node->input_count; i++) {
            if (pen_value_is(node->inputs[i])) any |= builder->needed[node->inputs[i].index];
        }
        for (uint32_t i = 0; any && i < node->output_count; i++) {
            const pen_value_id output = node->outputs[i];
            if (!pen_value_is(output)) continue;
            const pen_value *value = pen_graph_value(builder->graph, output);
            builder->needed[output.index] = pen_element_is_float(value->type.element) &&
                                            value->kind == PEN_VALUE_COMPUTED &&
                                            !pen_value_is(value->replaces);
        }
    }
}

static void gradients_mark_reached(gradients_builder *builder, pen_value_id loss) {
    builder->reached[loss.index] = true;
    for (uint32_t n = builder->node_count; n-- > 0;) {
        const pen_node *node = pen_graph_node(builder->graph, (pen_node_id){n});
        bool any = false;
        if (node->op->stops_gradient) continue;
        for (uint32_t i = 0; i < node->output_count; i++) {
            if (pen_value_is(node->outputs[i])) any |= builder->reached[node->outputs[i].index];
        }
        for (uint32_t i = 0; any && i < node->input_count; i++) {
            if (pen_value_is(node->inputs[i])) builder->reached[node->inputs[i].index] = true;
        }
    }
}

// Whether the gradient of some output is wanted on the way to a needed input.
static bool gradients_node_matters(const gradients_builder *builder, const pen_node *node) {
    bool output_matters = false;
    for (uint32_t i = 0; i < node->output_count; i++) {
        const pen_value_id output = node->outputs[i];
        if (!pen_value_is(output)) continue;
        output_matters |= builder->reached[output.index] && builder->needed[output.index];
    }
    return output_matters;
}

// One error that lists every op on the way without a gradient rule.
static pen_status gradients_check_rules(const gradients_builder *builder) {
    pen_status status = PEN_OK;
    for (uint32_t n = 0; n < builder->node_count; n++) {
        const pen_node *node = pen_graph_node(builder->graph, (pen_node_id){n});
        if (node->op->gradient != NULL || !gradients_node_matters(builder, node)) continue;
        pen_status missing = pen_error(PEN_UNSUPPORTED, "%s '%s' cannot be differentiated",
                                       node->op->name, node->name);
        if (node->source.file != NULL) {
            missing = pen_status_at_position(missing, node->source.file, node->source.line,
                                             node->source.column);
        }
        status = pen_status_join(status, missing);
    }
    return status;
}

static pen_status gradients_contribute(gradients_builder *builder, pen_value_id value,
                                       pen_value_id gradient, pen_node_id reader) {
    gradients_contribution *contribution;
    PEN_TRY(PEN_NEW(builder->arena, 1, &contribution));
    contribution->gradient = gradient;
    contribution->reader = reader;
    contribution->next = builder->contributions[value.index];
    builder->contributions[value.index] = contribution;
    return PEN_OK;
}

// The sum of the contributions to a computed value, as `add` nodes; PEN_VALUE_NONE without any.
static pen_status gradients_sum(gradients_builder *builder, pen_value_id value,
                                pen_value_id *out_sum) {
    const gradients_contribution *contribution = builder->contributions[value.index];
    *out_sum = PEN_VALUE_NONE;
    if (contribution == NULL) return PEN_OK;
    *out_sum = contribution->gradient;
    const pen_node_id producer = pen_graph_value(builder->graph, value)->producer;
    for (contribution = contribution->next; contribution != NULL;
         contribution = contribution->next) {
        const char *name;
        PEN_TRY(pen_arena_format(builder->arena, &name, "%s/gradient_sum",
                                 pen_value_name(builder->graph, value)));
        pen_node_spec spec = pen_node_spec_of(PEN_OP(add), name);
        const pen_value_id operands[2] = {*out_sum, contribution->gradient};
        spec.role = PEN_ROLE_BACKWARD_INPUT;
        spec.gradient_of = producer;
        spec.inputs = operands;
        spec.input_count = 2;
        PEN_TRY(pen_graph_add_simple(builder->graph, &spec, out_sum));
    }
    return PEN_OK;
}

// Calls the rule of node `n` and hands its results to the node's inputs.
static pen_status gradients_visit(gradients_builder *builder, uint32_t n) {
    const pen_node *node = pen_graph_node(builder->graph, (pen_node_id){n});
    if (!gradients_node_matters(builder, node)) return PEN_OK;
    const uint32_t input_count = node->input_count;
    const uint32_t output_count = node->output_count;
    const pen_value_id *inputs = node->inputs;   // in the arena: they stay where they are
    const pen_value_id *outputs = node->outputs; // also when nodes are added
    const pen_op *op = node->op;
    pen_value_id *of_output, *of_input;
    PEN_TRY(PEN_NEW(builder->arena, output_count, &of_output));
    PEN_TRY(PEN_NEW(builder->arena, input_count, &of_input));
    bool any = false;
    for (uint32_t i = 0; i < output_count; i++) {
        of_output[i] = PEN_VALUE_NONE;
        if (!pen_value_is(outputs[i])) continue;
        PEN_TRY(gradients_sum(builder, outputs[i], &of_output[i]));
        any |= pen_value_is(of_output[i]);
    }
    if (!any) return PEN_OK;
    for (uint32_t i = 0; i < input_count; i++) {
        of_input[i] = PEN_VALUE_NONE;
    }
    pen_gradient_context context = {builder->graph, {n}, builder->needed, of_output, of_input};
    PEN_TRY(pen_status_add_context(op->gradient(&context), "while differentiating %s '%s'",
                                   op->name, pen_node_name(builder->graph, (pen_node_id){n})));
    for (uint32_t i = input_count; i-- > 0;) { // pushed in front: the first operand ends up first
        if (!pen_value_is(of_input[i])) continue;
        PEN_TRY(gradients_contribute(builder, inputs[i], of_input[i], (pen_node_id){n}));
    }
    return PEN_OK;
}

// Uses are kept apart, with their readers, since whoever sums them decides where.
static pen_status gradients_collect(gradients_builder *builder, pen_value_id value,
                                    pen_gradient *out_gradient) {
    uint32_t count = 0;
    for (const gradients_contribution *c = builder->contributions[value.index]; c != NULL;
         c = c->next) {
        count++;
    }
    pen_value_id *uses;
    pen_node_id *readers;
    PEN_TRY(PEN_NEW(builder->arena, count, &uses));
    PEN_TRY(PEN_NEW(builder->arena, count, &readers));
    uint32_t i = 0;
    for (const gradients_contribution *c = builder->contributions[value.index]; c != NULL;
         c = c->next) {
        readers[i] = c->reader;
        uses[i++] = c->gradient;
    }
    *out_gradient =
        (pen_gradient){.value = value, .use_count = count, .uses = uses, .readers = readers};
    return PEN_OK;
}

// Backwards over nodes that lie between the wanted values and the loss; rules are checked before a
// node is added.
pen_status pen_build_gradients(pen_graph *graph, pen_value_id loss, pen_value_id seed,
                               uint32_t wanted_count, const pen_value_id *wanted,
                               pen_gradients **out_gradients) {
    PEN_ASSERT(pen_tensor_type_equal(pen_value_type(graph, loss), pen_value_type(graph, seed)));
    gradients_builder builder = {0};
    PEN_TRY(gradients_builder_init(&builder, graph));
    for (uint32_t i = 0; i < wanted_count; i++) {
        builder.needed[wanted[i].index] = true;
        builder.wanted[wanted[i].index] = true;
    }
    gradients_mark_needed(&builder);
    gradients_mark_reached(&builder, loss);
    PEN_TRY(gradients_check_rules(&builder));
    PEN_TRY(gradients_contribute(&builder, loss, seed, PEN_NODE_NONE));
    for (uint32_t n = builder.node_count; n-- > 0;) {
        PEN_TRY(gradients_visit(&builder, n));
    }
    pen_gradients *gradients;
    PEN_TRY(PEN_NEW(builder.arena, 1, &gradients));
    PEN_TRY(PEN_NEW(builder.arena, wanted_count, &gradients->items));
    gradients->count = wanted_count;
    for (uint32_t i = 0; i < wanted_count; i++) {
        PEN_TRY(gradients_collect(&builder, wanted[i], &gradients->items[i]));
    }
    *out_gradients = gradients;
    return PEN_OK;
}
