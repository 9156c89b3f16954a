#include "graph/import/tensorflow/graphdef_block.h"

#include <string.h>

#include "base/limits.h"

#define BLOCK_CALL "body"    // the call of the function that a part is
#define BODY_STEPS_LIMIT 512 // nodes looked at for one question

typedef struct block_work {
    uint64_t node_count; // that all parts so far have room for
} block_work;

static bool block_is(const pen_graphdef_node *node, const char *op) {
    return strcmp(node->op, op) == 0;
}

static bool block_is_while(const pen_graphdef_node *node) {
    return block_is(node, "While") || block_is(node, "StatelessWhile");
}

static bool block_is_if(const pen_graphdef_node *node) {
    return block_is(node, "If") || block_is(node, "StatelessIf");
}

bool pen_graphdef_is_control(const pen_graphdef_node *node) {
    return block_is_while(node) || block_is_if(node);
}

// ---- names

// The bytes up to the last '/' that both begin with.
static size_t block_shared(const char *a, const char *b, size_t length) {
    size_t shared = 0;
    for (size_t i = 0; i < length && a[i] == b[i] && a[i] != '\0'; i++) {
        if (a[i] == '/') shared = i + 1;
    }
    return shared;
}

static void block_share_names(pen_graphdef_block *block) {
    const char *first = "";
    for (uint32_t i = 0; i < block->order.count; i++) {
        const pen_graphdef_node *node = &block->flat->nodes[block->order.nodes[i]];
        const bool is_named = !block_is(node, "Identity") && !block_is(node, "IdentityN") &&
                              !block_is(node, PEN_GRAPHDEF_ARGUMENT);
        if (!is_named) continue;
        if (first[0] == '\0') {
            first = node->name;
            block->shared_bytes = block_shared(first, first, strlen(first));
        } else {
            block->shared_bytes = block_shared(first, node->name, block->shared_bytes);
        }
    }
    block->shared_name = first;
}

// ---- the function of a part, as a graph of its own

static pen_status block_argument(pen_graphdef_flat *from, uint32_t index,
                                 pen_graphdef_node *out_node, pen_graphdef_input *out_input) {
    const char *name;
    PEN_TRY(pen_arena_format(from->arena, &name, "argument/%u", index));
    *out_node = (pen_graphdef_node){.name = name, .op = PEN_GRAPHDEF_ARGUMENT, .device = ""};
    *out_input = (pen_graphdef_input){.node = name};
    return PEN_OK;
}

// A graph of the arguments and one call: so branches and bodies are made flat by the same code as
// calls.
static pen_status block_part_graph(pen_graphdef_flat *from, const pen_graphdef_node *control,
                                   const pen_graphdef_function *function, pen_graphdef *out_graph) {
    pen_graphdef_node *nodes;
    pen_graphdef_input *inputs;
    const uint32_t count = function->argument_count;
    PEN_TRY(PEN_NEW(from->arena, (size_t)count + 1, &nodes));
    PEN_TRY(PEN_NEW(from->arena, (size_t)count + 1, &inputs));
    for (uint32_t a = 0; a < count; a++) {
        PEN_TRY(block_argument(from, a, &nodes[a], &inputs[a]));
    }
    nodes[count] = *control;
    nodes[count].name = BLOCK_CALL;
    nodes[count].op = function->name;
    nodes[count].inputs = inputs;
    nodes[count].input_count = count;
    *out_graph = *from->source;
    out_graph->nodes = nodes;
    out_graph->node_count = count + 1;
    return PEN_OK;
}

static pen_status block_outputs(pen_graphdef_flat *from, const pen_graphdef_function *function,
                                pen_graphdef_block *part) {
    pen_graphdef_input *outputs;
    PEN_TRY(PEN_NEW(from->arena, (size_t)function->result_count + 1, &outputs));
    for (uint32_t r = 0; r < function->result_count; r++) {
        outputs[r] = (pen_graphdef_input){.node = BLOCK_CALL, .output = r};
    }
    part->outputs = outputs;
    part->output_count = function->result_count;
    return PEN_OK;
}

static pen_status block_prepare(pen_graphdef_block *block, uint32_t depth, block_work *work);

// Nodes of all parts count together, since loops in loops multiply.
static pen_status block_part(pen_graphdef_flat *from, const pen_graphdef_node *control,
                             const char *attribute, uint32_t depth, block_work *work,
                             pen_graphdef_block *part) {
    const char *name = pen_graphdef_text(control, attribute, "");
    const uint32_t callee = pen_name_map_find(&from->functions, name);
    if (callee == PEN_NAME_MAP_NONE) {
        return pen_error(PEN_INVALID_INPUT, "its %s is '%.100s', which is no function of the graph",
                         attribute, name);
    }
    const pen_graphdef_function *function = &from->source->functions[callee];
    pen_graphdef *graph;
    PEN_TRY(PEN_NEW(from->arena, 1, &graph));
    PEN_TRY(PEN_NEW(from->arena, 1, &part->flat));
    PEN_TRY(block_part_graph(from, control, function, graph));
    PEN_TRY(pen_graphdef_flatten_part(from, graph, part->flat));
    work->node_count += part->flat->capacity;
    if (work->node_count > PEN_INLINED_NODES_LIMIT) {
        return pen_error(PEN_INVALID_INPUT, "loops lead to more than %u nodes",
                         PEN_INLINED_NODES_LIMIT);
    }
    PEN_TRY(block_outputs(from, function, part));
    part->argument_count = function->argument_count;
    PEN_TRY(PEN_NEW(from->arena, (size_t)part->argument_count + 1, &part->arguments));
    for (uint32_t a = 0; a < part->argument_count; a++) {
        part->arguments[a] = a; // the arguments stand first in the list
    }
    const pen_status status = block_prepare(part, depth + 1, work);
    from->inlined_bytes = part->flat->inlined_bytes;
    return status;
}

// ---- what depends on data

static bool block_asks_shape(const pen_graphdef_node *node) {
    return block_is(node, "Shape") || block_is(node, "Size") || block_is(node, "Rank") ||
           block_is(node, "Const") || block_is(node, PEN_GRAPHDEF_ARGUMENT);
}

static bool block_reads(const pen_graphdef_block *block, const pen_graphdef_input *input,
                        uint32_t *steps) {
    const uint32_t n = pen_graphdef_flat_find(block->flat, input->node);
    if (n == UINT32_MAX || *steps == BODY_STEPS_LIMIT) return true;
    const pen_graphdef_node *node = &block->flat->nodes[n];
    const uint32_t count = pen_graphdef_data_inputs(node);
    *steps += 1;
    if (block_asks_shape(node)) return false;
    if (count == 0) return true;
    if (block_is(node, "IdentityN") && input->output < count) {
        return block_reads(block, &node->inputs[input->output], steps);
    }
    for (uint32_t i = 0; i < count; i++) {
        if (block_reads(block, &node->inputs[i], steps)) return true;
    }
    return false;
}

// Whether what output `input` names depends on data, and not only on shapes: a guess that holds
// for all that is not a function's argument.
static bool block_reads_data(const pen_graphdef_block *block, const pen_graphdef_input *input) {
    uint32_t steps = 0;
    return block_reads(block, input, &steps);
}

// ---- controls

static pen_status block_control(pen_graphdef_block *block, uint32_t n, uint32_t depth,
                                block_work *work) {
    static const char *const of_while[] = {"cond", "body"};
    static const char *const of_if[] = {"then_branch", "else_branch"};
    pen_graphdef_control *control;
    const pen_graphdef_node node = block->flat->nodes[n];
    if (depth >= PEN_NESTING_LIMIT) {
        return pen_error(PEN_INVALID_INPUT, "loops and conditionals are more than %d deep",
                         PEN_NESTING_LIMIT);
    }
    PEN_TRY(PEN_NEW(block->flat->arena, 1, &control));
    *control = (pen_graphdef_control){.is_while = block_is_while(&node)};
    for (uint32_t p = 0; p < PEN_GRAPHDEF_PART_COUNT; p++) {
        PEN_TRY(block_part(block->flat, &node, control->is_while ? of_while[p] : of_if[p], depth,
                           work, &control->parts[p]));
    }
    block->controls[n] = control;
    return PEN_OK;
}

static pen_status block_prepare(pen_graphdef_block *block, uint32_t depth, block_work *work) {
    pen_graphdef_flat *flat = block->flat;
    PEN_TRY(pen_graphdef_resolve(flat, block->outputs, block->output_count, &block->order));
    PEN_TRY(PEN_NEW(flat->arena, (size_t)flat->count + 1, &block->controls));
    if (depth > 0) block_share_names(block);
    for (uint32_t i = 0; i < block->order.count; i++) {
        const uint32_t n = block->order.nodes[i];
        const pen_graphdef_node *node = &flat->nodes[n];
        const bool is_decidable = block_is_if(node) && node->input_count > 0 &&
                                  !block_reads_data(block, &node->inputs[0]);
        if (!block_is_while(node) && !is_decidable) continue;
        PEN_TRY(pen_status_add_context(block_control(block, n, depth, work),
                                       "in node %u, %.100s '%.100s'", node->position, node->op,
                                       node->name));
    }
    return PEN_OK;
}

pen_status pen_graphdef_block_prepare(pen_graphdef_block *block) {
    block_work work = {0};
    return block_prepare(block, 0, &work);
}
