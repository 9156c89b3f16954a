// Scaled dot product attention, in the parts that the fusing of attentions knows
// (graph/passes/fuse/attention_pattern.c), so that it becomes one operator wherever it can.

#include <math.h>

#include "graph/import/pytorch/ops/pt2_dropout.h"
#include "graph/import/pytorch/pt2_convert.h"
#include "graph/import/pytorch/pt2_mapping.h"

#define ATTENTION_HIDDEN (-1e30) // a score that does not count beside any other

// k or v with as many heads as q: each of its own as often as q's come on one.
static pen_status attention_repeat(pen_pt2_draft *draft, const char *name, pen_value_id *value) {
    const pen_tensor_type *q = pen_pt2_type(draft, "query"), *own = pen_pt2_type(draft, name);
    const uint32_t rank = own->shape.rank;
    if (!pen_pt2_bool(draft, "enable_gqa", false) || rank < 3 || q->shape.rank != rank) {
        return PEN_OK;
    }
    const int64_t heads = own->shape.dims[rank - 3], wanted = q->shape.dims[rank - 3];
    if (heads == wanted) return PEN_OK;
    if (heads <= 0 || wanted % heads != 0 || rank == PEN_RANK_LIMIT) {
        return pen_pt2_refuse(draft, "%lld heads of the query on %lld of the %s", (long long)wanted,
                              (long long)heads, name);
    }
    const int64_t numbers = own->shape.dims[rank - 1];
    if (numbers < 0) return pen_pt2_refuse(draft, "a %s of an open depth", name);
    int64_t copies[PEN_RANK_LIMIT], joined[PEN_RANK_LIMIT] = {0}; // 0: as it is
    for (uint32_t d = 0; d <= rank; d++) {
        copies[d] = d == rank - 2 ? wanted / heads : 1;
    }
    joined[rank - 3] = wanted;
    joined[rank - 2] = -1;
    joined[rank - 1] = numbers;
    PEN_TRY(pen_pt2_with_int(draft, "unsqueeze", "heads_apart", *value, (int64_t)rank - 2, value));
    PEN_TRY(pen_pt2_with_ints(draft, "expand", "repeated", *value, (pen_pt2_list){rank + 1, copies},
                              value));
    return pen_pt2_with_ints(draft, "reshape", "heads_joined", *value, (pen_pt2_list){rank, joined},
                             value);
}

// Whether row i sees column j, of as many as the scores have: where j <= i.
static pen_status attention_causal(pen_pt2_draft *draft, pen_value_id scores,
                                   pen_value_id *out_seen) {
    pen_value_id sizes, ones;
    PEN_TRY(pen_pt2_emit(draft, "shape", "score_sizes", PEN_INPUTS(scores),
                         PEN_WITH(pen_attribute_int("start", -2)), &sizes));
    PEN_TRY(pen_pt2_emit(draft, "constant_of_shape", "ones", PEN_INPUTS(sizes),
                         PEN_WITH(pen_attribute_float("value", 1)), &ones));
    PEN_TRY(pen_pt2_emit(draft, "trilu", "triangle", PEN_INPUTS(ones),
                         PEN_WITH(pen_attribute_int("upper", 0)), &ones));
    return pen_pt2_cast(draft, ones, PEN_BOOL, out_seen);
}

// Scores, but ATTENTION_HIDDEN where `seen` is false.
static pen_status attention_hide(pen_pt2_draft *draft, const char *suffix, pen_value_id seen,
                                 pen_value_id *scores) {
    pen_value_id hidden;
    PEN_TRY(pen_pt2_constant_number(draft, pen_pt2_type(draft, "query")->element, ATTENTION_HIDDEN,
                                    &hidden));
    return pen_pt2_where(draft, suffix, seen, *scores, hidden, scores);
}

// The mask on the scores. *out_seen: the boolean mask, by which rows that see nothing give zeros.
static pen_status attention_mask(pen_pt2_draft *draft, pen_value_id *scores,
                                 pen_value_id *out_seen) {
    pen_value_id mask;
    *out_seen = PEN_VALUE_NONE;
    if (pen_pt2_bool(draft, "is_causal", false)) {
        PEN_TRY(attention_causal(draft, *scores, &mask));
        PEN_TRY(attention_hide(draft, "causal_scores", mask, scores));
    }
    PEN_TRY(pen_pt2_tensor_or_none(draft, "attn_mask", &mask));
    if (!pen_value_is(mask)) return PEN_OK;
    if (pen_pt2_type(draft, "attn_mask")->element == PEN_BOOL) {
        *out_seen = mask;
        return attention_hide(draft, "masked_scores", mask, scores);
    }
    PEN_TRY(pen_pt2_cast(draft, mask, pen_pt2_type(draft, "query")->element, &mask));
    return pen_pt2_pair(draft, "add", "masked_scores", *scores, mask, scores);
}

// PyTorch gives zeros for rows that a boolean mask hides wholly; here they would be a mean.
static pen_status attention_give(pen_pt2_draft *draft, pen_value_id shares, pen_value_id value,
                                 pen_value_id seen) {
    static const int64_t last = -1;
    pen_value_id y, any, axes;
    if (!pen_value_is(seen)) return pen_pt2_give_pair(draft, "matmul", shares, value);
    PEN_TRY(pen_pt2_pair(draft, "matmul", "mean", shares, value, &y));
    PEN_TRY(pen_pt2_cast(draft, seen, pen_pt2_type(draft, "query")->element, &any));
    PEN_TRY(pen_pt2_constant_ints(draft, 1, &last, &axes));
    PEN_TRY(pen_pt2_pair(draft, "reduce_max", "sees_any", any, axes, &any));
    return pen_pt2_give_pair(draft, "mul", y, any);
}

// aten.scaled_dot_product_attention(query, key, value, attn_mask?, dropout_p, is_causal, scale?,
// enable_gqa), each (…, heads, rows, numbers)
static pen_status convert_attention(pen_pt2_draft *draft) {
    pen_value_id q, k, v, scores, scale, seen;
    const pen_tensor_type *type = pen_pt2_type(draft, "query");
    const int64_t depth = type->shape.rank > 0 ? type->shape.dims[type->shape.rank - 1] : 0;
    if (type->shape.rank < 2 || depth <= 0) {
        return pen_pt2_refuse(draft, "a query of this shape");
    }
    PEN_TRY(pen_pt2_tensor(draft, "query", &q));
    PEN_TRY(pen_pt2_tensor(draft, "key", &k));
    PEN_TRY(pen_pt2_tensor(draft, "value", &v));
    PEN_TRY(attention_repeat(draft, "key", &k));
    PEN_TRY(attention_repeat(draft, "value", &v));
    PEN_TRY(pen_pt2_emit(draft, "matmul", "products", PEN_INPUTS(q, k),
                         PEN_WITH(pen_attribute_int("transB", 1)), &scores));
    const double factor = pen_pt2_float(draft, "scale", 1 / sqrt((double)depth));
    PEN_TRY(pen_pt2_constant_number(draft, type->element, factor, &scale));
    PEN_TRY(pen_pt2_pair(draft, "mul", "scores", scores, scale, &scores));
    PEN_TRY(attention_mask(draft, &scores, &seen));
    PEN_TRY(pen_pt2_emit(draft, "softmax", "shares", PEN_INPUTS(scores),
                         PEN_WITH(pen_attribute_int("axis", -1)), &scores));
    const double dropped = pen_pt2_float(draft, "dropout_p", 0);
    if (dropped > 0) PEN_TRY(pen_pt2_dropout(draft, "dropout", scores, dropped, &scores));
    return attention_give(draft, scores, v, seen);
}

static const pen_pt2_mapping attention_rows[] = {
    PEN_PT2_ROW("scaled_dot_product_attention.default", attention),
};
PEN_PT2_FAMILY(pen_pt2_attentions, attention_rows);
