// Embeddings: rows of a parameter that are picked.
//
// Cut by columns, a piece picks the same rows and has some numbers of each: nothing is added. Where
// a product reads the same parameter and is cut by its rows (the output layer of a language model
// that is tied to its embedding), a piece has some rows: what others have counts as 0, and the
// pieces are added.
#include "graph/op.h"
#include "graph/op_known.h"
#include "graph/passes/shard/sharder.h"

bool pen_shard_is_embedding(const pen_graph *graph, pen_node_id id) {
    const pen_node *node = pen_graph_node(graph, id);
    if (node->op != PEN_OP(gather) || pen_node_int(node, "axis") != 0) return false;
    const pen_value *table = pen_graph_value(graph, node->inputs[0]);
    return table->kind == PEN_VALUE_PARAMETER && table->type.shape.rank == 2;
}

static bool embedding_is_tied(const sharder *s, pen_value_id table) {
    for (uint32_t r = s->readers.first[table.index]; r < s->readers.first[table.index + 1]; r++) {
        const pen_node_id reader = s->readers.nodes[r];
        if (s->ways[reader.index] == 0 || !pen_shard_is_product(s->from, reader)) continue;
        if (pen_shard_column_axis(pen_graph_node(s->from, reader)) == 0) return true;
    }
    return false;
}

static pen_status embedding_read(sharder *s, pen_node_id id, pen_value_id *out_indices) {
    const pen_value_id indices = pen_graph_node(s->from, id)->inputs[1];
    return pen_shard_indices(s, id, indices, &pen_value_type(s->from, indices)->shape, out_indices);
}

static pen_status embedding_by_columns(sharder *s, pen_node_id id, shard_cut *cut) {
    const pen_node *node = pen_graph_node(s->from, id);
    const pen_value_id *inputs[2];
    shard_cut out = *cut;
    out.axis = pen_value_type(s->from, node->outputs[0])->shape.rank - 1;
    PEN_TRY(pen_shard_cut_value(s, node->inputs[0], cut, &inputs[0]));
    pen_value_id *same, indices;
    PEN_TRY(PEN_NEW(s->arena, cut->ways, &same));
    PEN_TRY(embedding_read(s, id, &indices));
    for (uint32_t p = 0; p < cut->ways; p++) {
        same[p] = indices;
    }
    inputs[1] = same;
    return pen_shard_map(s, id, inputs, 2, &out);
}

// The rows that piece `piece` has of those that are picked, and 0 for others.
static pen_status embedding_pick(sharder *s, pen_node_id id, const shard_cut *cut, uint32_t piece,
                                 pen_value_id table, pen_value_id *out_rows) {
    const pen_element_type element = pen_value_type(s->copy.to, table)->element;
    shard_owned owned;
    pen_value_id indices, picked, is_here, zero;
    PEN_TRY(embedding_read(s, id, &indices));
    PEN_TRY(pen_shard_own(s, id, cut, piece, indices, &owned));
    PEN_TRY(pen_shard_apply(s, id, PEN_OP(gather), table, owned.indices, &picked));
    pen_shape shape = pen_value_type(s->copy.to, indices)->shape;
    shape.dims[shape.rank++] = 1;
    is_here = owned.is_here;
    PEN_TRY(pen_shard_reshape(s, id, &shape, NULL, &is_here));
    PEN_TRY(pen_shard_constant(s, element, 0, &zero));
    return pen_shard_where(s, id, is_here, picked, zero, out_rows);
}

static pen_status embedding_by_rows(sharder *s, pen_node_id id, shard_cut *cut) {
    const pen_node *node = pen_graph_node(s->from, id);
    const pen_value_id output = node->outputs[0], *tables;
    pen_value_id *rows;
    PEN_TRY(PEN_NEW(s->arena, cut->ways, &rows));
    PEN_TRY(pen_shard_cut_value(s, node->inputs[0], cut, &tables));
    for (uint32_t p = 0; p < cut->ways; p++) {
        PEN_TRY(embedding_pick(s, id, cut, p, tables[p], &rows[p]));
    }
    const shard_list list = {cut->ways, rows};
    return pen_shard_sum(s, id, &list, pen_value_name(s->from, output),
                         &s->copy.values[output.index]);
}

pen_status pen_shard_embedding(sharder *s, pen_node_id id, bool *out_done) {
    *out_done = s->ways[id.index] > 0 && pen_shard_is_embedding(s->from, id);
    if (!*out_done) return PEN_OK;
    const pen_node *node = pen_graph_node(s->from, id);
    const pen_shape *shape = &pen_value_type(s->from, node->inputs[0])->shape;
    const bool is_tied = embedding_is_tied(s, node->inputs[0]);
    shard_cut cut = {.ways = s->ways[id.index], .axis = is_tied ? 0 : 1, .blocks = 1};
    const int64_t extent = shape->dims[cut.axis];
    if (extent < cut.ways) {
        return pen_error(PEN_INVALID_INPUT, "'%s' has %lld %s, which are no %u ways: at most %lld",
                         node->name, (long long)extent, is_tied ? "rows" : "columns", cut.ways,
                         (long long)extent);
    }
    PEN_TRY(pen_shard_bounds(s, extent, 1, cut.ways, &cut.bounds));
    return is_tied ? embedding_by_rows(s, id, &cut) : embedding_by_columns(s, id, &cut);
}
