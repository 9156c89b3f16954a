#include "graph/import/tensorflow/graphdef_match.h"

#include <string.h>

static const pen_graphdef_place match_none = {UINT32_MAX, 0};

pen_graphdef_place pen_graphdef_match(const pen_graphdef_block *block,
                                      const pen_graphdef_input *input) {
    for (uint32_t steps = 0; steps < block->flat->count; steps++) {
        const uint32_t n = pen_graphdef_flat_find(block->flat, input->node);
        if (n == UINT32_MAX) return match_none;
        const pen_graphdef_node *node = &block->flat->nodes[n];
        const bool is_many = strcmp(node->op, "IdentityN") == 0;
        const bool passes =
            is_many || strcmp(node->op, "Identity") == 0 || strcmp(node->op, "ReadVariableOp") == 0;
        const uint32_t next = is_many ? input->output : 0;
        if (!passes) return (pen_graphdef_place){n, input->output};
        if (next >= pen_graphdef_data_inputs(node)) return match_none;
        input = &node->inputs[next];
    }
    return match_none;
}

pen_graphdef_place pen_graphdef_match_operand(const pen_graphdef_block *block,
                                              pen_graphdef_place place, uint32_t input) {
    if (place.node == UINT32_MAX) return match_none;
    const pen_graphdef_node *node = &block->flat->nodes[place.node];
    if (input >= pen_graphdef_data_inputs(node)) return match_none;
    return pen_graphdef_match(block, &node->inputs[input]);
}

bool pen_graphdef_match_op(const pen_graphdef_block *block, pen_graphdef_place place,
                           const char *op) {
    return place.node != UINT32_MAX && strcmp(block->flat->nodes[place.node].op, op) == 0;
}

bool pen_graphdef_match_two(const pen_graphdef_block *block, pen_graphdef_place place,
                            const char *op, pen_graphdef_place out_operands[2]) {
    out_operands[0] = pen_graphdef_match_operand(block, place, 0);
    out_operands[1] = pen_graphdef_match_operand(block, place, 1);
    return pen_graphdef_match_op(block, place, op) && out_operands[1].node != UINT32_MAX;
}

bool pen_graphdef_match_argument(const pen_graphdef_block *block, pen_graphdef_place place,
                                 uint32_t argument) {
    return argument < block->argument_count && place.node == block->arguments[argument];
}

bool pen_graphdef_match_same(pen_graphdef_place a, pen_graphdef_place b) {
    return a.node == b.node && a.output == b.output && a.node != UINT32_MAX;
}
