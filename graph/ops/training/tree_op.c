// Sums over the lanes of a step (graph/lanes.h).
//
// tree_sum(x) keeps a stack of sums for lanes `first` up to `end`: x, which is the sum of a lane
// when that ends, is put on top, and while the two topmost are the halves of a larger block of
// lanes, they become one: below + top. While a lane is under way nothing happens. With the last
// lane, slot i of the output is block i of lanes `first` up to `end`; what lies above is anything.
// With `apart` lanes are not added: slot i is lane first + i.
//
// tree_total(stack, …) adds the blocks of the lanes that the step has as the tree says. Stack i is
// of lanes bounds[i] up to bounds[i + 1]: the whole of it, or its blocks alone, which are all that
// is sent to another device (graph/passes/cut/cut_part.c).
//
// rows_total(rows, …) are the rows of all lanes, those of one replica (stack_rows) behind those of
// another; zeros, where the step has none of its lanes, bounds[i] up to bounds[i + 1].
//
// fold_rows(x, rows; momentum) is what x becomes when row after row, of the microbatches that the
// step has, is taken in: x = x * momentum + row * (1 - momentum), in float64 and rounded to x each
// time. So a moving average comes of what microbatches had, as if they had changed it themselves.

#include "graph/graph.h"
#include "graph/lanes.h"
#include "graph/ops/shared/shape_rule.h"

// Parts of a graph come over the wire: what they say is bounded.
#define TREE_LANES_LIMIT 65536

static pen_status tree_check_range(const pen_infer_context *context, int64_t first, int64_t end) {
    if (0 <= first && first < end && end <= TREE_LANES_LIMIT) return PEN_OK;
    return pen_infer_error(context, PEN_INVALID_INPUT,
                           "found lanes %lld up to %lld, expected at least one", (long long)first,
                           (long long)end);
}

static pen_status tree_check_element(const pen_infer_context *context) {
    const pen_element_type element = pen_infer_input(context, 0)->element;
    if (element == PEN_FLOAT32 || element == PEN_FLOAT64) return PEN_OK;
    return pen_infer_error(context, PEN_INVALID_INPUT, "found %s, expected float32 or float64",
                           pen_element_name(element));
}

static pen_status tree_sum_infer(pen_infer_context *context) {
    const pen_node *node = pen_infer_node(context);
    const pen_tensor_type *x = pen_infer_input(context, 0);
    const int64_t first = pen_node_int(node, "first"), end = pen_node_int(node, "end");
    PEN_TRY(tree_check_element(context));
    PEN_TRY(tree_check_range(context, first, end));
    if (x->shape.rank == PEN_RANK_LIMIT) {
        return pen_infer_error(context, PEN_INVALID_INPUT,
                               "sums of %u dimensions leave none for lanes", x->shape.rank);
    }
    const int64_t slots = pen_node_int(node, "apart") != 0
                              ? end - first
                              : pen_lane_depth((uint32_t)first, (uint32_t)end);
    pen_tensor_type type = {x->element, {x->shape.rank + 1, {slots}}};
    for (uint32_t d = 0; d < x->shape.rank; d++) {
        type.shape.dims[d + 1] = x->shape.dims[d];
    }
    return pen_infer_set(context, 0, &type);
}

// Stack `i` must be what tree_sum makes of its lanes.
static pen_status tree_check_stack(const pen_infer_context *context, uint32_t i, int64_t first,
                                   int64_t end) {
    const pen_tensor_type *stack = pen_infer_input(context, i);
    const pen_tensor_type *like = pen_infer_input(context, 0);
    PEN_TRY(tree_check_range(context, first, end));
    pen_tensor_type wanted = *like;
    pen_lane_block blocks[PEN_LANE_BLOCKS];
    if (wanted.shape.rank > 0) {
        wanted.shape.dims[0] = pen_lane_blocks((uint32_t)first, (uint32_t)end, blocks);
        if (pen_tensor_type_equal(stack, &wanted)) return PEN_OK;
        wanted.shape.dims[0] = pen_lane_depth((uint32_t)first, (uint32_t)end);
    }
    if (wanted.shape.rank > 0 && pen_tensor_type_equal(stack, &wanted)) return PEN_OK;
    char found[PEN_SHAPE_TEXT_BYTES], text[PEN_SHAPE_TEXT_BYTES];
    return pen_infer_error(context, PEN_INVALID_INPUT, "stack %u is %s, expected %s", i,
                           pen_tensor_type_format(stack, found),
                           pen_tensor_type_format(&wanted, text));
}

// The first dimension of a stack is gone.
static pen_status tree_total_infer(pen_infer_context *context) {
    const pen_node *node = pen_infer_node(context);
    uint32_t count;
    const int64_t *bounds = pen_node_ints(node, "bounds", &count);
    PEN_TRY(tree_check_element(context));
    if (count != node->input_count + 1) {
        return pen_infer_error(context, PEN_INVALID_INPUT,
                               "found %u bounds of lanes for %u stacks, expected one more", count,
                               node->input_count);
    }
    for (uint32_t i = 0; i < node->input_count; i++) {
        PEN_TRY(tree_check_stack(context, i, bounds[i], bounds[i + 1]));
    }
    const pen_tensor_type *stack = pen_infer_input(context, 0);
    pen_tensor_type type = {stack->element, {stack->shape.rank - 1, {0}}};
    for (uint32_t d = 1; d < stack->shape.rank; d++) {
        type.shape.dims[d - 1] = stack->shape.dims[d];
    }
    return pen_infer_set(context, 0, &type);
}

// Rows behind rows, which are alike but for their number.
static pen_status rows_total_infer(pen_infer_context *context) {
    const pen_node *node = pen_infer_node(context);
    pen_tensor_type all = *pen_infer_input(context, 0);
    uint32_t count;
    const int64_t *bounds = pen_node_ints(node, "bounds", &count);
    if (count != node->input_count + 1 || all.shape.rank == 0) {
        return pen_infer_error(
            context, PEN_INVALID_INPUT,
            "found %u bounds of lanes for rows of %u replicas, expected one more", count,
            node->input_count);
    }
    for (uint32_t i = 0; i < node->input_count; i++) {
        PEN_TRY(tree_check_range(context, bounds[i], bounds[i + 1]));
        pen_tensor_type rows = *pen_infer_input(context, i);
        const int64_t own = rows.shape.rank == 0 ? 0 : rows.shape.dims[0];
        const int64_t before = i == 0 ? 0 : all.shape.dims[0];
        rows.shape.dims[0] = all.shape.dims[0];
        if (!pen_tensor_type_equal(&rows, &all) || own > INT64_MAX - before) {
            return pen_infer_error(context, PEN_INVALID_INPUT, "rows %u are of another type", i);
        }
        all.shape.dims[0] = before + own;
    }
    return pen_infer_set(context, 0, &all);
}

static pen_status fold_rows_infer(pen_infer_context *context) {
    const pen_tensor_type *x = pen_infer_input(context, 0), *rows = pen_infer_input(context, 1);
    PEN_TRY(tree_check_element(context));
    const int64_t count = pen_shape_element_count(&x->shape);
    if (rows->element == PEN_FLOAT64 && rows->shape.rank == 2 && rows->shape.dims[1] == count) {
        return pen_infer_set(context, 0, x);
    }
    char text[PEN_SHAPE_TEXT_BYTES];
    return pen_infer_error(context, PEN_INVALID_INPUT,
                           "rows are %s, expected float64 rows of %lld elements",
                           pen_tensor_type_format(rows, text), (long long)count);
}

// A lane's sum is read, and a slot read and written, once in as many microbatches as a lane has.
static uint64_t tree_sum_bytes(const pen_graph *graph, pen_node_id id) {
    const pen_node *node = pen_graph_node(graph, id);
    const uint64_t each = (uint64_t)pen_node_int(node, "each");
    const uint64_t bytes = pen_tensor_type_bytes(pen_value_type(graph, node->inputs[0]));
    return 3 * (bytes / (each == 0 ? 1 : each));
}

static const pen_attribute_schema tree_sum_attributes[] = {
    PEN_INT_OR("first", 0),
    PEN_MUST("end", INT),
    PEN_INT_OR("each", 1), // microbatches of a lane, about
    PEN_INT_OR("apart", 0),
};
static const pen_attribute_schema tree_total_attributes[] = {PEN_MUST("bounds", INTS)};

static const pen_attribute_schema fold_rows_attributes[] = {PEN_MUST("momentum", FLOAT)};

static const pen_op tree_ops[] = {
    {"tree_sum", "sums of the lanes of a step, added in pairs as they come", PEN_TAKES(1, 1),
     PEN_GIVES(1, 1), PEN_ATTRIBUTES(tree_sum_attributes), .adds_itself = true,
     .infer = tree_sum_infer, .bytes = tree_sum_bytes},
    {"tree_total", "the sum over all lanes of a step", PEN_TAKES(1, PEN_VARIADIC), PEN_GIVES(1, 1),
     PEN_ATTRIBUTES(tree_total_attributes), .in_place_inputs = 1, .infer = tree_total_infer,
     .output_flops = 1},
    {"rows_total", "the rows of all lanes of a step", PEN_TAKES(1, PEN_VARIADIC), PEN_GIVES(1, 1),
     PEN_ATTRIBUTES(tree_total_attributes), .infer = rows_total_infer},
    {"fold_rows", "a moving average over rows", PEN_TAKES(2, 2), PEN_GIVES(1, 1),
     PEN_ATTRIBUTES(fold_rows_attributes), .in_place_inputs = 1, .infer = fold_rows_infer},
};

PEN_OP_FAMILY(tree);
