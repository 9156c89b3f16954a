// The parts of which build_updates and build_versions make updates: nodes, sums of lanes, states,
// the optimizer.
#ifndef PEN_GRAPH_PASSES_GRADIENT_UPDATE_PARTS_H
#define PEN_GRAPH_PASSES_GRADIENT_UPDATE_PARTS_H

#include "base/arena.h"
#include "graph/attribute.h"
#include "graph/ops/training/optimizer.h"
#include "graph/passes/gradient/build_gradients.h"
#include "graph/passes/gradient/update_types.h"
#include "graph/tensor_type.h"

typedef struct updates_builder {
    pen_graph *graph;
    pen_arena *arena;
    const pen_optimizer *optimizer;
    const pen_op *op; // the optimizer's
    bool accumulate;
    const pen_step_shape *step;
    uint32_t *reader_count;   // [value_count when we start], nodes and uses of parameters
    const uint32_t *group_of; // [value_count when we start], of parameters: match_groups.h
    pen_updates updates;
    pen_value_id scale; // of gradients, from clipping; NONE without
} updates_builder;

// What an update reads, each NONE where it does not.
typedef struct updates_operands {
    pen_value_id named;                        // the parameter that it is called after
    const char *suffix;                        // and this, in names of what it makes; NULL: nothing
    pen_value_id parameter;                    // as it is now
    pen_value_id states[PEN_OPTIMIZER_STATES]; // likewise
    pen_value_id gradient;
    pen_value_id rows;
    pen_value_id step;
    pen_value_id scale;
} updates_operands;

// Adds a node that is called after a parameter.
PEN_NODISCARD pen_status pen_updates_node(updates_builder *builder, pen_node_spec *spec,
                                          pen_value_id parameter, const char *suffix,
                                          pen_node_id *out_node);

// A node that is run with each microbatch, and keeps for the update what it makes of a use's
// gradient.
typedef struct updates_kept {
    const pen_op *op;
    pen_value_id input;
    const pen_attribute_given *attributes; // [attribute_count]
    uint32_t attribute_count;
    const char *node;  // what it is called, after the parameter: "tree_sum"
    const char *value; // and what it makes: "gradient_lanes"
    bool accumulates;
} updates_kept;

// Adds such a node, for use `index` of the gradient.
PEN_NODISCARD pen_status pen_updates_keep(updates_builder *builder, const pen_gradient *gradient,
                                          uint32_t index, const updates_kept *kept,
                                          pen_value_id *out_value);

// Makes one use's gradient add up over microbatches.
PEN_NODISCARD pen_status pen_updates_accumulate(updates_builder *builder,
                                                const pen_gradient *gradient, uint32_t index,
                                                pen_value_id *out_sum);
// Keeps the sums of lanes of `sum`, which adds up over microbatches.
PEN_NODISCARD pen_status pen_updates_tree_sum(updates_builder *builder,
                                              const pen_gradient *gradient, uint32_t index,
                                              pen_value_id sum, pen_value_id *out_stack);
// Makes a use's gradient add up over the microbatches of each lane, and keeps the sums of lanes as
// the step has them: added as a tree, or each by itself.
PEN_NODISCARD pen_status pen_updates_sum_lanes(updates_builder *builder,
                                               const pen_gradient *gradient, uint32_t index,
                                               pen_value_id *out_stack);

// Makes a state of a parameter, of this type. It starts as zeros.
PEN_NODISCARD pen_status pen_updates_add_state(updates_builder *builder, pen_value_id parameter,
                                               const char *suffix, const pen_tensor_type *type,
                                               pen_value_id *out_state);

// A parameter as it is before the step, with new states of the optimizer; no gradient yet.
PEN_NODISCARD pen_status pen_updates_begin(updates_builder *builder, pen_value_id parameter,
                                           updates_operands *out_operands);
// The optimizer's node. *out_after: what has become of the parameter and its states.
PEN_NODISCARD pen_status pen_updates_apply(updates_builder *builder,
                                           const updates_operands *operands,
                                           updates_operands *out_after);
// Where the optimizer keeps averages: that of a parameter, of what it is after the step.
PEN_NODISCARD pen_status pen_updates_average(updates_builder *builder, pen_value_id parameter,
                                             pen_value_id after);
// What is after the step takes the place of what was before it.
void pen_updates_replace(updates_builder *builder, const updates_operands *before,
                         const updates_operands *after);

#endif // PEN_GRAPH_PASSES_GRADIENT_UPDATE_PARTS_H
