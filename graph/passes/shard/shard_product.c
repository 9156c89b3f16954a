// Products with a parameter, by columns or by rows.
#include "graph/op.h"
#include "graph/op_known.h"
#include "graph/passes/shard/sharder.h"

#define PRODUCT_STEPS 8 // nodes behind a product that are looked at

bool pen_shard_is_product(const pen_graph *graph, pen_node_id id) {
    const pen_node *node = pen_graph_node(graph, id);
    if (node->op != PEN_OP(matmul) && node->op != PEN_OP(gemm)) return false;
    const pen_value *b = pen_graph_value(graph, node->inputs[1]);
    const pen_value *a = pen_graph_value(graph, node->inputs[0]);
    return b->kind == PEN_VALUE_PARAMETER && b->type.shape.rank == 2 && a->type.shape.rank >= 2 &&
           !pen_value_same(node->inputs[0], node->inputs[1]) && pen_node_int(node, "transA") == 0;
}

uint32_t pen_shard_column_axis(const pen_node *node) {
    return pen_node_int(node, "transB") != 0 ? 0 : 1;
}

// ---- what the columns are of

// Columns that belong together: `blocks` equal parts, as of queries, keys and values, and in each
// units that are not cut, as the numbers of a head.
typedef struct product_columns {
    int64_t blocks;
    int64_t unit;
} product_columns;

// A view that takes the last dimension apart says what it was of: (heads, numbers), or (blocks,
// heads, numbers). False: it says nothing, or all.
static bool columns_read_view(const pen_graph *graph, const pen_node *view, uint32_t ways,
                              product_columns *columns) {
    const pen_shape *from = &pen_value_type(graph, view->inputs[0])->shape;
    const pen_shape *to = &pen_value_type(graph, view->outputs[0])->shape;
    const int64_t rows = pen_shape_count(from, 0, from->rank - 1);
    uint32_t first = 0;
    while (first < to->rank && pen_shape_count(to, 0, first) != rows) {
        first++;
    }
    const uint32_t parts = to->rank - first;
    const int64_t *dims = &to->dims[first];
    if (parts == 1) return true;
    if (parts == 2 && dims[0] >= ways) columns->unit = dims[1];
    if (parts == 2 && dims[0] < ways && columns->blocks == 1) columns->blocks = dims[0];
    if (parts == 3 && columns->blocks == 1 && dims[0] <= 3 && dims[1] >= ways) {
        columns->blocks = dims[0];
        columns->unit = dims[2];
    }
    return false;
}

// Goes on from `value` to the node that first reads it, as far as that leaves columns what they
// are.
static product_columns columns_find(const sharder *s, pen_value_id value, uint32_t ways) {
    product_columns columns = {1, 1};
    const pen_graph *graph = s->from;
    for (uint32_t step = 0; step < PRODUCT_STEPS; step++) {
        if (pen_readers_count(&s->readers, value) == 0) break;
        const pen_node_id reader = s->readers.nodes[s->readers.first[value.index]];
        const pen_node *node = pen_graph_node(graph, reader);
        const uint32_t last = pen_value_type(graph, value)->shape.rank - 1;
        bool goes_on = node->op->is_elementwise;
        if (node->op == PEN_OP(split) && columns.blocks == 1) {
            const int64_t axis = pen_node_int(node, "axis");
            goes_on = axis == -1 || axis == (int64_t)last;
            if (goes_on) columns.blocks = node->output_count;
        } else if (node->op->is_view && !node->op->is_elementwise) {
            goes_on = columns_read_view(graph, node, ways, &columns);
        }
        if (!goes_on || !pen_value_is(node->outputs[0])) break;
        value = node->outputs[0];
    }
    return columns;
}

static pen_status product_cut_columns(sharder *s, pen_node_id id, shard_cut *out_cut) {
    const pen_node *node = pen_graph_node(s->from, id);
    const uint32_t ways = s->ways[id.index];
    const pen_shape *shape = &pen_value_type(s->from, node->outputs[0])->shape;
    const int64_t count = shape->dims[shape->rank - 1];
    product_columns columns = columns_find(s, node->outputs[0], ways);
    if (count % columns.blocks != 0 || count / columns.blocks < ways ||
        shape->rank == PEN_RANK_LIMIT) {
        columns.blocks = 1;
    }
    const int64_t extent = count / columns.blocks;
    if (extent % columns.unit != 0 || extent / columns.unit < ways) columns.unit = 1;
    *out_cut = (shard_cut){.ways = ways, .axis = shape->rank - 1, .blocks = columns.blocks};
    if (extent >= ways) {
        return pen_shard_bounds(s, extent, columns.unit, ways, &out_cut->bounds);
    }
    return pen_error(PEN_INVALID_INPUT, "'%s' has %lld columns, which are no %u ways: at most %lld",
                     node->name, (long long)count, ways, (long long)count);
}

// ---- the two cuts

// All pieces read the whole input, and what they give stays in pieces.
static pen_status product_by_columns(sharder *s, pen_node_id id) {
    const pen_node *node = pen_graph_node(s->from, id);
    const pen_value_id *inputs[3] = {NULL};
    shard_cut cut;
    PEN_TRY(product_cut_columns(s, id, &cut));
    shard_cut of_b = cut;
    of_b.axis = pen_shard_column_axis(node);
    pen_value_id *same, whole;
    PEN_TRY(PEN_NEW(s->arena, cut.ways, &same));
    PEN_TRY(pen_shard_whole(s, node->inputs[0], &whole));
    for (uint32_t p = 0; p < cut.ways; p++) {
        same[p] = whole;
    }
    inputs[0] = same;
    PEN_TRY(pen_shard_cut_value(s, node->inputs[1], &of_b, &inputs[1]));
    if (node->input_count > 2) {
        PEN_TRY(pen_shard_operand(s, node->inputs[2], &cut, 0, &inputs[2]));
    }
    return pen_shard_map(s, id, inputs, node->input_count, &cut);
}

// beta * c, added to what the pieces' products are together.
static pen_status product_add_bias(sharder *s, pen_node_id id, pen_value_id sum,
                                   pen_value_id *out_value) {
    const pen_node *node = pen_graph_node(s->from, id);
    const double beta = pen_node_float(node, "beta");
    pen_value_id bias, factor;
    PEN_TRY(pen_shard_whole(s, node->inputs[2], &bias));
    if (beta != 1) {
        PEN_TRY(pen_shard_constant(s, pen_value_type(s->copy.to, bias)->element, beta, &factor));
        PEN_TRY(pen_shard_apply(s, id, PEN_OP(mul), bias, factor, &bias));
    }
    const pen_value_id inputs[2] = {sum, bias};
    const shard_node add = {.op = PEN_OP(add),
                            .suffix = "bias",
                            .inputs = inputs,
                            .input_count = 2,
                            .output = pen_value_name(s->from, node->outputs[0])};
    return pen_shard_add(s, id, &add, out_value);
}

static pen_status product_by_rows(sharder *s, pen_node_id id) {
    const pen_node *node = pen_graph_node(s->from, id);
    const pen_value_id output = node->outputs[0];
    const shard_pieces *a = &s->pieces[node->inputs[0].index];
    const bool has_bias = node->input_count > 2 && pen_value_is(node->inputs[2]);
    shard_cut of_b = a->cut;
    of_b.axis = 1 - pen_shard_column_axis(node);
    const pen_value_id *inputs[2] = {a->values, NULL};
    PEN_TRY(pen_shard_cut_value(s, node->inputs[1], &of_b, &inputs[1]));
    PEN_TRY(pen_shard_map(s, id, inputs, 2, &a->cut));
    const shard_pieces products = s->pieces[output.index];
    s->pieces[output.index] = (shard_pieces){0}; // they are to be added, not put together
    pen_value_id *whole = &s->copy.values[output.index];
    const shard_list list = {products.cut.ways, products.values};
    PEN_TRY(pen_shard_sum(s, id, &list, has_bias ? NULL : pen_value_name(s->from, output), whole));
    return has_bias ? product_add_bias(s, id, *whole, whole) : PEN_OK;
}

// By rows where the input is in pieces along them, unless there are fewer rows than columns: then
// it is less to put the input together than to add outputs.
pen_status pen_shard_product(sharder *s, pen_node_id id, bool *out_done) {
    *out_done = s->ways[id.index] > 0 && pen_shard_is_product(s->from, id);
    if (!*out_done) return PEN_OK;
    const pen_node *node = pen_graph_node(s->from, id);
    const shard_cut *cut = pen_shard_cut_of(s, node->inputs[0]);
    const uint32_t column_axis = pen_shard_column_axis(node);
    const int64_t *dims = pen_value_type(s->from, node->inputs[1])->shape.dims;
    const bool is_along = cut->axis + 1 == pen_value_type(s->from, node->inputs[0])->shape.rank;
    const bool has_rows = dims[1 - column_axis] >= dims[column_axis];
    return cut->ways == s->ways[id.index] && is_along && has_rows ? product_by_rows(s, id)
                                                                  : product_by_columns(s, id);
}
