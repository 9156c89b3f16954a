// Loops and conditionals that are decided while importing: a loop's body is imported once for each
// round, a conditional's branch in its place. That is possible where the condition depends on
// shapes and constants only.

#include <string.h>

#include "base/limits.h"
#include "graph/import/tensorflow/graphdef_importer.h"

// ---- inner lists

static pen_status control_spend(pen_graphdef_importer *inner, uint32_t nodes) {
    inner->totals->round_nodes += nodes;
    inner->totals->round_bytes += nodes * (uint64_t)strlen(inner->prefix);
    if (inner->totals->round_bytes > PEN_INLINED_BYTES_LIMIT) {
        return pen_error(PEN_UNSUPPORTED,
                         "the rounds of the model's loops lead to names of more than %u bytes",
                         PEN_INLINED_BYTES_LIMIT);
    }
    const uint32_t asked = inner->request->options->round_nodes_limit;
    const uint32_t limit = asked > 0 ? asked : PEN_INLINED_NODES_LIMIT;
    if (inner->totals->round_nodes <= limit) return PEN_OK;
    return pen_error(PEN_UNSUPPORTED, "the rounds of the model's loops lead to more than %u nodes",
                     limit);
}

static pen_status control_open(pen_graphdef_importer *outer, const pen_graphdef_block *block,
                               const char *name, pen_graphdef_importer *out_inner) {
    *out_inner = *outer;
    out_inner->is_inner = true;
    out_inner->block = block;
    out_inner->prefix = out_inner->prefix_kept = name;
    PEN_TRY(control_spend(out_inner, block->flat->count));
    PEN_TRY(PEN_NEW(outer->arena, block->flat->count, &out_inner->is_kept));
    return pen_graphdef_importer_init(out_inner);
}

static void control_give(pen_graphdef_importer *inner, pen_graphdef_result *const *given,
                         uint32_t argument) {
    inner->results[inner->block->arguments[argument]][0] = given[argument];
}

// Imports nodes of an inner list: those that are kept, or the others.
static pen_status control_run(pen_graphdef_importer *inner, bool kept) {
    const pen_graphdef_block *block = inner->block;
    PEN_TRY(control_spend(inner, block->order.count));
    for (uint32_t i = 0; i < block->order.count; i++) {
        const uint32_t n = block->order.nodes[i];
        const bool is_argument = strcmp(block->flat->nodes[n].op, PEN_GRAPHDEF_ARGUMENT) == 0;
        if (is_argument || inner->is_kept[n] != kept) continue;
        PEN_TRY(pen_graphdef_importer_renew(inner, n));
        PEN_TRY(pen_graphdef_importer_at(inner, n));
    }
    return PEN_OK;
}

static pen_status control_output(pen_graphdef_importer *inner, uint32_t output,
                                 pen_graphdef_result **out_result) {
    return pen_graphdef_importer_operand(inner, &inner->block->outputs[output], out_result);
}

// Room for the arguments' results.
static pen_status control_arguments(pen_graphdef_importer *inner) {
    for (uint32_t a = 0; a < inner->block->argument_count; a++) {
        PEN_TRY(pen_graphdef_importer_renew(inner, inner->block->arguments[a]));
    }
    return PEN_OK;
}

// ---- what stays the same between rounds

// The argument that output `output` of a body is; UINT32_MAX: none, it is computed.
static uint32_t control_passed(const pen_graphdef_block *block, uint32_t output) {
    const pen_graphdef_input *input = &block->outputs[output];
    for (uint32_t steps = 0; steps < block->flat->count; steps++) {
        const uint32_t n = pen_graphdef_flat_find(block->flat, input->node);
        if (n == UINT32_MAX) return UINT32_MAX;
        const pen_graphdef_node *node = &block->flat->nodes[n];
        const bool is_many = strcmp(node->op, "IdentityN") == 0;
        const uint32_t next = is_many ? input->output : 0;
        if (strcmp(node->op, PEN_GRAPHDEF_ARGUMENT) == 0) return n; // they stand first, in order
        if (!is_many && strcmp(node->op, "Identity") != 0) return UINT32_MAX;
        if (next >= pen_graphdef_data_inputs(node)) return UINT32_MAX;
        input = &node->inputs[next];
    }
    return UINT32_MAX;
}

static bool control_is_random(const pen_graphdef_node *node) {
    return strstr(node->op, "Random") != NULL || strstr(node->op, "Multinomial") != NULL;
}

static void control_find_kept(pen_graphdef_importer *round, const bool *kept_arguments) {
    const pen_graphdef_block *block = round->block;
    for (uint32_t i = 0; i < block->order.count; i++) {
        const uint32_t n = block->order.nodes[i];
        const pen_graphdef_node *node = &block->flat->nodes[n];
        if (strcmp(node->op, PEN_GRAPHDEF_ARGUMENT) == 0) {
            round->is_kept[n] = kept_arguments[n];
            continue;
        }
        bool is_kept = !control_is_random(node) && strcmp(node->op, "IdentityN") != 0;
        for (uint32_t k = 0; is_kept && k < pen_graphdef_data_inputs(node); k++) {
            const uint32_t read = pen_graphdef_flat_find(block->flat, node->inputs[k].node);
            is_kept = read != UINT32_MAX && round->is_kept[read];
        }
        round->is_kept[n] = is_kept;
    }
}

// ---- loops

typedef struct control_loop {
    pen_graphdef_draft *draft;
    pen_graphdef_importer condition, round;
    uint32_t count;                      // of what the loop carries
    bool *is_kept;                       // [count]
    pen_graphdef_result **state, **next; // [count]
    uint32_t round_count;
} control_loop;

static pen_status loop_truth(const pen_graphdef_result *result, bool *out_truth) {
    const pen_graphdef_ints_known *ints = result->ints[0];
    if (pen_graphdef_ints_agree(result) && ints->count == 1) {
        *out_truth = ints->integers[0] != 0;
        return PEN_OK;
    }
    const bool is_open = ints != NULL && result->ints[1] != NULL;
    return pen_error(PEN_UNSUPPORTED,
                     is_open ? "whether it goes on depends on a size that the model leaves open: "
                               "save the model with sequences of a fixed length"
                             : "whether it goes on depends on data; possible are conditions on "
                               "constants and shapes");
}

static pen_status loop_goes_on(control_loop *loop, bool *out_goes_on) {
    pen_graphdef_result *result;
    for (uint32_t a = 0; a < loop->count; a++) {
        control_give(&loop->condition, loop->state, a);
    }
    PEN_TRY(control_run(&loop->condition, false));
    PEN_TRY(control_output(&loop->condition, 0, &result));
    PEN_TRY(loop_truth(result, out_goes_on));
    if (!*out_goes_on || loop->round_count < PEN_LOOP_ROUNDS_LIMIT) return PEN_OK;
    return pen_error(PEN_UNSUPPORTED, "it has more than %d rounds", PEN_LOOP_ROUNDS_LIMIT);
}

static pen_status loop_round(control_loop *loop) {
    pen_graphdef_result **next = loop->next;
    PEN_TRY(pen_arena_format(loop->round.arena, &loop->round.prefix, "%s/%u",
                             loop->draft->node->name, loop->round_count));
    for (uint32_t a = 0; a < loop->count; a++) {
        control_give(&loop->round, loop->state, a);
    }
    PEN_TRY(control_run(&loop->round, false));
    for (uint32_t i = 0; i < loop->count; i++) {
        next[i] = loop->state[i];
        if (!loop->is_kept[i]) PEN_TRY(control_output(&loop->round, i, &next[i]));
    }
    loop->next = loop->state;
    loop->state = next;
    loop->round_count++;
    return PEN_OK;
}

// Values that a round passes on unchanged are kept aside: they are known inside as they are
// outside.
static pen_status loop_open(pen_graphdef_importer *outer, const pen_graphdef_control *control,
                            control_loop *loop) {
    const pen_graphdef_block *condition = &control->parts[PEN_GRAPHDEF_CONDITION];
    const pen_graphdef_block *round = &control->parts[PEN_GRAPHDEF_ROUND];
    const char *name = loop->draft->node->name;
    loop->count = loop->draft->operand_count;
    if (condition->argument_count != loop->count || round->argument_count != loop->count ||
        round->output_count != loop->count || condition->output_count != 1) {
        return pen_error(
            PEN_INVALID_INPUT,
            "it carries %u values; its condition takes %u and gives %u, its body takes "
            "%u and gives %u",
            loop->count, condition->argument_count, condition->output_count, round->argument_count,
            round->output_count);
    }
    PEN_TRY(control_open(outer, condition, name, &loop->condition));
    PEN_TRY(control_open(outer, round, name, &loop->round));
    PEN_TRY(control_arguments(&loop->condition));
    PEN_TRY(control_arguments(&loop->round));
    PEN_TRY(PEN_NEW(outer->arena, (size_t)loop->count + 1, &loop->is_kept));
    PEN_TRY(PEN_NEW(outer->arena, (size_t)loop->count + 1, &loop->state));
    PEN_TRY(PEN_NEW(outer->arena, (size_t)loop->count + 1, &loop->next));
    for (uint32_t i = 0; i < loop->count; i++) {
        loop->state[i] = loop->draft->operands[i];
        loop->is_kept[i] = control_passed(round, i) == i;
        control_give(&loop->round, loop->state, i);
    }
    control_find_kept(&loop->round, loop->is_kept);
    return control_run(&loop->round, true);
}

static pen_status control_while(pen_graphdef_importer *outer, const pen_graphdef_control *control,
                                pen_graphdef_draft *draft) {
    control_loop loop = {.draft = draft};
    bool goes_on = true, is_recurrent;
    PEN_TRY(loop_open(outer, control, &loop));
    const pen_graphdef_rounds rounds = {control, &loop.round, loop.is_kept, loop.state};
    PEN_TRY(pen_graphdef_recurrent_convert(&rounds, draft, &is_recurrent));
    if (is_recurrent) return PEN_OK;
    PEN_TRY(loop_goes_on(&loop, &goes_on));
    while (goes_on) {
        PEN_TRY(pen_status_add_context(loop_round(&loop), "in round %u", loop.round_count));
        PEN_TRY(loop_goes_on(&loop, &goes_on));
    }
    for (uint32_t i = 0; i < loop.count && i < draft->result_count; i++) {
        draft->results[i] = loop.state[i];
    }
    return PEN_OK;
}

// ---- conditionals

// The predicate is known while the model is read, so only the branch taken comes into the graph.
static pen_status control_if(pen_graphdef_importer *outer, const pen_graphdef_control *control,
                             pen_graphdef_draft *draft) {
    pen_graphdef_importer branch;
    PEN_TRY(pen_graphdef_draft_need(draft, 1));
    const pen_graphdef_result *predicate = draft->operands[0];
    const pen_graphdef_ints_known *ints = predicate->ints[0];
    if (!pen_graphdef_ints_agree(predicate) || ints->count != 1) {
        return pen_error(PEN_UNSUPPORTED,
                         "its predicate depends on data, or on a size that the model leaves open");
    }
    const bool is_true = ints->integers[0] != 0;
    const pen_graphdef_block *block =
        &control->parts[is_true ? PEN_GRAPHDEF_THEN : PEN_GRAPHDEF_ELSE];
    if (block->argument_count + 1 != draft->operand_count) {
        return pen_error(PEN_INVALID_INPUT, "its branch takes %u values, %u are given",
                         block->argument_count, draft->operand_count - 1);
    }
    PEN_TRY(control_open(outer, block, draft->node->name, &branch));
    PEN_TRY(control_arguments(&branch));
    for (uint32_t a = 0; a < block->argument_count; a++) {
        control_give(&branch, draft->operands + 1, a);
    }
    PEN_TRY(control_run(&branch, false));
    for (uint32_t i = 0; i < block->output_count && i < draft->result_count; i++) {
        PEN_TRY(control_output(&branch, i, &draft->results[i]));
    }
    return PEN_OK;
}

pen_status pen_graphdef_control_convert(pen_graphdef_importer *import, uint32_t n,
                                        pen_graphdef_draft *draft) {
    const pen_graphdef_control *control = import->block->controls[n];
    return control->is_while ? control_while(import, control, draft)
                             : control_if(import, control, draft);
}
