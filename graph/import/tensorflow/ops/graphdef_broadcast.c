#include "graph/import/tensorflow/ops/graphdef_broadcast.h"
#include "graph/import/tensorflow/graphdef_mapping.h"

pen_status pen_graphdef_channel_vector(pen_graphdef_draft *draft, const char *suffix,
                                       pen_graphdef_value vector, pen_graphdef_value *out_value) {
    static const int64_t axes[] = {1, 2};
    return pen_graphdef_emit_with_ints(draft, "unsqueeze", suffix, vector,
                                       (pen_graphdef_integers){2, axes}, out_value);
}

// Operand `input` beside an image with channels first.
static pen_status broadcast_beside(pen_graphdef_draft *draft, uint32_t input, uint32_t rank,
                                   pen_graphdef_value *out_value) {
    if (rank == 4) return pen_graphdef_operand_first(draft, input, out_value);
    PEN_TRY(pen_graphdef_operand(draft, input, out_value));
    if (rank == 0) return PEN_OK;
    return pen_graphdef_channel_vector(draft, "channels", *out_value, out_value);
}

pen_status pen_graphdef_broadcast(pen_graphdef_draft *draft, uint32_t a, uint32_t b,
                                  bool *out_is_first, pen_graphdef_value out_operands[2]) {
    uint32_t rank_a = PEN_RANK_LIMIT, rank_b = PEN_RANK_LIMIT;
    PEN_TRY(pen_graphdef_draft_need(draft, a + 1));
    PEN_TRY(pen_graphdef_draft_need(draft, b + 1));
    const bool any =
        pen_graphdef_operand_is_first(draft, a) || pen_graphdef_operand_is_first(draft, b);
    const bool are_known = pen_graphdef_operand_rank(draft, a, &rank_a) &&
                           pen_graphdef_operand_rank(draft, b, &rank_b);
    const bool suits_a = rank_a == 4 || rank_a <= 1;
    const bool suits_b = rank_b == 4 || rank_b <= 1;
    *out_is_first = any && are_known && suits_a && suits_b;
    if (!*out_is_first) {
        PEN_TRY(pen_graphdef_operand(draft, a, &out_operands[0]));
        return pen_graphdef_operand(draft, b, &out_operands[1]);
    }
    PEN_TRY(broadcast_beside(draft, a, rank_a, &out_operands[0]));
    return broadcast_beside(draft, b, rank_b, &out_operands[1]);
}
