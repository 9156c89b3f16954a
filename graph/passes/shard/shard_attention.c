// Attention by heads: each piece has some, with what they read.
#include "graph/op.h"
#include "graph/op_known.h"
#include "graph/passes/shard/sharder.h"

enum { ATTENTION_OPERANDS = 3, ATTENTION_MASK = 3 };

// Dimensions behind the heads in an operand (graph/ops/product/attention_op.c).
static uint32_t attention_from_end(const pen_node *node, const char *by_row) {
    return pen_node_int(node, by_row) != 0 ? 1 : 2;
}

// Whether the operand is cut by heads, and each of its pieces reads what the pieces of q read:
// several heads of q may share one.
static bool attention_fits(const sharder *s, pen_value_id operand, uint32_t from_end,
                           const shard_cut *of_q, int64_t heads_of_q) {
    const shard_cut *cut = pen_shard_cut_of(s, operand);
    const pen_shape *shape = &pen_value_type(s->from, operand)->shape;
    if (cut->ways != of_q->ways || cut->blocks != 1 || cut->axis + 1 + from_end != shape->rank) {
        return false;
    }
    const int64_t shared = heads_of_q / shape->dims[cut->axis];
    for (uint32_t p = 0; p <= cut->ways; p++) {
        if (cut->bounds[p] * shared != of_q->bounds[p]) return false;
    }
    return true;
}

// Where queries, keys and values are all cut by heads, else it reads them whole. A mask is for all
// heads, or cut like them.
pen_status pen_shard_attention(sharder *s, pen_node_id id, bool *out_done) {
    static const char *const by_row[] = {"q_by_row", "k_by_row", "v_by_row"};
    const pen_node *node = pen_graph_node(s->from, id);
    const pen_value_id *inputs[ATTENTION_OPERANDS + 1] = {NULL};
    *out_done = false;
    if (node->op != PEN_OP(attention) || node->output_count != 1) return PEN_OK;
    shard_cut cut = *pen_shard_cut_of(s, node->inputs[0]);
    if (cut.ways == 0) return PEN_OK;
    const int64_t heads = pen_value_type(s->from, node->inputs[0])->shape.dims[cut.axis];
    for (uint32_t i = 0; i < ATTENTION_OPERANDS; i++) {
        const uint32_t from_end = attention_from_end(node, by_row[i]);
        if (!attention_fits(s, node->inputs[i], from_end, &cut, heads)) return PEN_OK;
        inputs[i] = s->pieces[node->inputs[i].index].values;
    }
    const uint32_t rank = pen_value_type(s->from, node->outputs[0])->shape.rank;
    cut.axis = rank - 1 - attention_from_end(node, "y_by_row");
    if (node->input_count > ATTENTION_MASK) {
        PEN_TRY(
            pen_shard_operand(s, node->inputs[ATTENTION_MASK], &cut, 2, &inputs[ATTENTION_MASK]));
    }
    *out_done = true;
    return pen_shard_map(s, id, inputs, node->input_count, &cut);
}
