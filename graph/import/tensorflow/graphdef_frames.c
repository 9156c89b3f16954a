#include "graph/import/tensorflow/graphdef_frames.h"

#include <string.h>

#include "graph/import/tensorflow/graphdef_resolve.h"

#define FRAMES_LIMIT 1024              // loops of a graph
#define FRAMES_VISITS_LIMIT (1u << 24) // nodes looked at, for all loops

// What a loop carries from round to round: Merge(Enter, NextIteration), and the Switch after it.
// What it only reads is an Enter alone.
typedef struct frame_variable {
    uint32_t merge, split; // UINT32_MAX: it stays as it is
    uint32_t enter, next;
} frame_variable;

typedef struct frame {
    pen_graphdef_flat *flat;
    uint32_t condition; // the LoopCond
    const char *name;
    uint32_t count;
    frame_variable *variables; // [count]
    uint32_t *argument;        // [flat's count], of Merge, Switch and Enter: which variable, plus 1
    uint8_t *seen;             // [flat's count]
    uint32_t *stack;           // [flat's count]
    pen_graphdef_input *values; // [count], after a round
} frame;

// The lists of a frame, with room for every node that the graph may come to have: all loops use
// them, one after the other.
static pen_status frame_make_room(frame *f, size_t node_count) {
    PEN_TRY(PEN_NEW(f->flat->arena, node_count, &f->variables));
    PEN_TRY(PEN_NEW(f->flat->arena, node_count, &f->argument));
    PEN_TRY(PEN_NEW(f->flat->arena, node_count, &f->seen));
    PEN_TRY(PEN_NEW(f->flat->arena, node_count, &f->values));
    return PEN_NEW(f->flat->arena, node_count, &f->stack);
}

static bool frame_is(const pen_graphdef_node *node, const char *op) {
    if (strcmp(node->op, op) == 0) return true;
    return strncmp(node->op, "Ref", 3) == 0 && strcmp(node->op + 3, op) == 0;
}

static uint32_t frame_find(const frame *f, const pen_graphdef_input *input) {
    return pen_graphdef_flat_find(f->flat, input->node);
}

static pen_status frame_incomplete(const frame *f, const pen_graphdef_node *node) {
    return pen_error(PEN_INVALID_INPUT, "loop '%.100s' is not whole: see '%.100s'", f->name,
                     node->name);
}

// ---- what a loop carries

// A variable of a loop is a Merge of Enter and NextIteration before a Switch.
static pen_status frame_read_variable(frame *f, uint32_t split, frame_variable *out_variable) {
    const pen_graphdef_node *nodes = f->flat->nodes;
    const uint32_t merge = frame_find(f, &nodes[split].inputs[0]);
    frame_variable variable = {merge, split, UINT32_MAX, UINT32_MAX};
    if (merge == UINT32_MAX || !frame_is(&nodes[merge], "Merge") ||
        pen_graphdef_data_inputs(&nodes[merge]) != 2) {
        return frame_incomplete(f, &nodes[split]);
    }
    for (uint32_t i = 0; i < 2; i++) {
        const uint32_t n = frame_find(f, &nodes[merge].inputs[i]);
        if (n == UINT32_MAX || pen_graphdef_data_inputs(&nodes[n]) != 1) {
            return frame_incomplete(f, &nodes[merge]);
        }
        if (frame_is(&nodes[n], "Enter")) variable.enter = n;
        if (frame_is(&nodes[n], "NextIteration")) variable.next = n;
    }
    if (variable.enter == UINT32_MAX || variable.next == UINT32_MAX) {
        return frame_incomplete(f, &nodes[merge]);
    }
    *out_variable = variable;
    return PEN_OK;
}

static bool frame_owns_split(const frame *f, const pen_graphdef_node *node) {
    return frame_is(node, "Switch") && pen_graphdef_data_inputs(node) == 2 &&
           frame_find(f, &node->inputs[1]) == f->condition;
}

static void frame_number(frame *f, uint32_t index) {
    const frame_variable *variable = &f->variables[index];
    f->argument[variable->enter] = index + 1;
    if (variable->merge == UINT32_MAX) return;
    f->argument[variable->merge] = index + 1;
    f->argument[variable->split] = index + 1;
}

// Variables first, then values that enter and never change.
static pen_status frame_read(frame *f) {
    const pen_graphdef_node *nodes = f->flat->nodes;
    const uint32_t count = f->flat->count;
    f->count = 0;
    memset(f->argument, 0, count * sizeof *f->argument);
    f->name = nodes[f->condition].name;
    for (uint32_t n = 0; n < count; n++) {
        if (!frame_owns_split(f, &nodes[n])) continue;
        PEN_TRY(frame_read_variable(f, n, &f->variables[f->count]));
        frame_number(f, f->count++);
    }
    if (f->count == 0) return frame_incomplete(f, &nodes[f->condition]);
    f->name = pen_graphdef_text(&nodes[f->variables[0].enter], "frame_name", "");
    for (uint32_t n = 0; n < count; n++) {
        const bool is_entered =
            frame_is(&nodes[n], "Enter") && f->argument[n] == 0 &&
            pen_graphdef_data_inputs(&nodes[n]) == 1 &&
            strcmp(pen_graphdef_text(&nodes[n], "frame_name", ""), f->name) == 0;
        if (!is_entered) continue;
        f->variables[f->count] = (frame_variable){UINT32_MAX, UINT32_MAX, n, UINT32_MAX};
        frame_number(f, f->count++);
    }
    return PEN_OK;
}

// ---- functions

// Marks what `input` depends on, up to the loop's variables. *out_is_blocked: another loop is in
// the way, which must be folded before.
static pen_status frame_mark(frame *f, const pen_graphdef_input *input, bool *out_is_blocked) {
    uint32_t *stack = f->stack, depth = 0;
    const uint32_t root = frame_find(f, input);
    if (root == UINT32_MAX) return frame_incomplete(f, &f->flat->nodes[f->condition]);
    if (f->argument[root] != 0 || f->seen[root] != 0) return PEN_OK;
    f->seen[root] = 1;
    stack[depth++] = root;
    while (depth > 0) {
        const pen_graphdef_node *node = &f->flat->nodes[stack[--depth]];
        if (frame_is(node, "Exit") || frame_is(node, "Enter")) *out_is_blocked = true;
        if (*out_is_blocked) return PEN_OK;
        for (uint32_t i = 0; i < pen_graphdef_data_inputs(node); i++) {
            const uint32_t read = frame_find(f, &node->inputs[i]);
            if (read == UINT32_MAX) return frame_incomplete(f, node);
            if (f->argument[read] != 0 || f->seen[read] != 0) continue;
            f->seen[read] = 1;
            stack[depth++] = read; // each node is on the stack once
        }
    }
    return PEN_OK;
}

static pen_status frame_input(const frame *f, const pen_graphdef_input *input,
                              const pen_graphdef_function *function,
                              pen_graphdef_input *out_input) {
    const uint32_t n = frame_find(f, input);
    *out_input = *input;
    if (n == UINT32_MAX || f->argument[n] == 0) return PEN_OK;
    *out_input = (pen_graphdef_input){.node = function->arguments[f->argument[n] - 1]};
    return PEN_OK;
}

// The marked nodes, in their order; what they must only run after falls away.
static pen_status frame_nodes(const frame *f, pen_graphdef_function *function) {
    pen_graphdef_flat *flat = f->flat;
    uint32_t count = 0;
    for (uint32_t n = 0; n < flat->count; n++) {
        count += f->seen[n];
    }
    PEN_TRY(PEN_NEW(flat->arena, (size_t)count + 1, &function->nodes));
    for (uint32_t n = 0; n < flat->count; n++) {
        if (f->seen[n] == 0) continue;
        pen_graphdef_node *node = &function->nodes[function->node_count++];
        const pen_graphdef_input *inputs = flat->nodes[n].inputs;
        *node = flat->nodes[n];
        node->input_count = pen_graphdef_data_inputs(&flat->nodes[n]);
        PEN_TRY(PEN_NEW(flat->arena, (size_t)node->input_count + 1, &node->inputs));
        for (uint32_t i = 0; i < node->input_count; i++) {
            PEN_TRY(frame_input(f, &inputs[i], function, &node->inputs[i]));
        }
    }
    return PEN_OK;
}

// A function of all variables that gives `values`.
static pen_status frame_function(frame *f, const char *what, uint32_t count,
                                 const pen_graphdef_input *values, pen_graphdef_function *function,
                                 bool *out_is_blocked) {
    pen_graphdef_flat *flat = f->flat;
    *function = (pen_graphdef_function){.argument_count = f->count, .result_count = count};
    memset(f->seen, 0, flat->count);
    for (uint32_t i = 0; i < count && !*out_is_blocked; i++) {
        PEN_TRY(frame_mark(f, &values[i], out_is_blocked));
    }
    if (*out_is_blocked) return PEN_OK;
    PEN_TRY(pen_arena_format(flat->arena, &function->name, "%s of loop %s", what, f->name));
    PEN_TRY(PEN_NEW(flat->arena, f->count, &function->arguments));
    for (uint32_t a = 0; a < f->count; a++) {
        PEN_TRY(pen_arena_format(flat->arena, &function->arguments[a], "variable %u", a));
    }
    PEN_TRY(PEN_NEW(flat->arena, count, &function->results));
    PEN_TRY(PEN_NEW(flat->arena, count, &function->values));
    for (uint32_t i = 0; i < count; i++) {
        PEN_TRY(pen_arena_format(flat->arena, &function->results[i], "result %u", i));
        PEN_TRY(frame_input(f, &values[i], function, &function->values[i]));
    }
    return frame_nodes(f, function);
}

// The source may be shared with other graphs, so lists are copied and not grown in place.
static pen_status frame_add_functions(frame *f, const pen_graphdef_function *added,
                                      uint32_t count) {
    pen_graphdef_flat *flat = f->flat;
    pen_graphdef *source;
    pen_graphdef_function *functions;
    uint64_t *sizes;
    const uint32_t before = flat->source->function_count;
    PEN_TRY(PEN_NEW(flat->arena, 1, &source));
    PEN_TRY(PEN_NEW(flat->arena, (size_t)before + count, &functions));
    PEN_TRY(PEN_NEW(flat->arena, (size_t)before + count, &sizes));
    if (before > 0) {
        memcpy(functions, flat->source->functions, before * sizeof *functions);
        memcpy(sizes, flat->function_sizes, before * sizeof *sizes);
    }
    for (uint32_t i = 0; i < count; i++) {
        functions[before + i] = added[i];
        if (pen_name_map_find(&flat->functions, added[i].name) != PEN_NAME_MAP_NONE) {
            return pen_error(PEN_INVALID_INPUT, "two loops are called '%.100s'", f->name);
        }
        PEN_TRY(pen_name_map_add(&flat->functions, added[i].name, before + i));
    }
    *source = *flat->source;
    source->functions = functions;
    source->function_count = before + count;
    flat->source = source;
    flat->function_sizes = sizes;
    return PEN_OK;
}

// ---- the loop

// From here on, an old loop looks like a While of version 2.
static pen_status frame_loop(frame *f, const pen_graphdef_function functions[2],
                             const char **out_name) {
    static const char *const names[] = {"cond", "body"};
    pen_graphdef_flat *flat = f->flat;
    pen_graphdef_node node = flat->nodes[f->condition];
    PEN_TRY(pen_arena_format(flat->arena, &node.name, "%s%s", f->name,
                             pen_graphdef_flat_find(flat, f->name) == UINT32_MAX ? "" : "/loop"));
    node.op = "While";
    node.input_count = f->count;
    node.attribute_count = 2;
    PEN_TRY(PEN_NEW(flat->arena, f->count, &node.inputs));
    PEN_TRY(PEN_NEW(flat->arena, 2, &node.attributes));
    for (uint32_t i = 0; i < f->count; i++) {
        node.inputs[i] = flat->nodes[f->variables[i].enter].inputs[0];
    }
    for (uint32_t i = 0; i < 2; i++) {
        node.attributes[i] = (pen_graphdef_attribute){
            .name = names[i], .kind = PEN_GRAPHDEF_TEXT, .text = functions[i].name};
    }
    *out_name = node.name;
    return pen_graphdef_flat_add(flat, &node);
}

static pen_status frame_exits(frame *f, const char *loop, uint32_t count) {
    pen_graphdef_flat *flat = f->flat;
    for (uint32_t n = 0; n < count; n++) {
        pen_graphdef_node *node = &flat->nodes[n];
        if (!frame_is(node, "Exit") || pen_graphdef_data_inputs(node) != 1) continue;
        const uint32_t split = frame_find(f, &node->inputs[0]);
        if (split == UINT32_MAX || split >= count || f->argument[split] == 0) continue;
        const uint32_t variable = f->argument[split] - 1;
        if (f->variables[variable].split != split) continue;
        node->op = "Identity";
        PEN_TRY(PEN_NEW(flat->arena, 1, &node->inputs));
        node->inputs[0] = (pen_graphdef_input){.node = loop, .output = variable};
        node->input_count = 1;
    }
    return PEN_OK;
}

// A loop with another loop inside waits until that one is folded.
static pen_status frame_fold(frame *f, bool *out_is_folded) {
    pen_graphdef_flat *flat = f->flat;
    const uint32_t condition = f->condition;
    pen_graphdef_function functions[2];
    bool is_blocked = false;
    const char *loop;
    const uint32_t count = flat->count;
    PEN_TRY(frame_read(f));
    if (pen_graphdef_data_inputs(&flat->nodes[condition]) != 1) {
        return frame_incomplete(f, &flat->nodes[condition]);
    }
    for (uint32_t i = 0; i < f->count; i++) {
        const frame_variable *variable = &f->variables[i];
        f->values[i] = (pen_graphdef_input){.node = flat->nodes[variable->enter].name};
        if (variable->next != UINT32_MAX) f->values[i] = flat->nodes[variable->next].inputs[0];
    }
    PEN_TRY(frame_function(f, "condition", 1, &flat->nodes[condition].inputs[0], &functions[0],
                           &is_blocked));
    if (!is_blocked) {
        PEN_TRY(frame_function(f, "body", f->count, f->values, &functions[1], &is_blocked));
    }
    *out_is_folded = !is_blocked;
    if (is_blocked) return PEN_OK;
    PEN_TRY(frame_add_functions(f, functions, 2));
    PEN_TRY(frame_loop(f, functions, &loop));
    return frame_exits(f, loop, count);
}

// Visits are limited, for each round may fold only one of many loops.
pen_status pen_graphdef_frames_fold(pen_graphdef_flat *flat) {
    uint32_t conditions[FRAMES_LIMIT], count = 0;
    uint64_t visits = 0;
    for (uint32_t n = 0; n < flat->count; n++) {
        if (!frame_is(&flat->nodes[n], "LoopCond")) continue;
        if (count == FRAMES_LIMIT) {
            return pen_error(PEN_UNSUPPORTED, "it has more than %d loops", FRAMES_LIMIT);
        }
        conditions[count++] = n;
    }
    frame f = {.flat = flat};
    if (count > 0) PEN_TRY(frame_make_room(&f, (size_t)flat->count + FRAMES_LIMIT));
    while (count > 0) { // the inner ones first
        uint32_t left = 0;
        for (uint32_t i = 0; i < count; i++) {
            bool is_folded = false;
            visits += flat->count;
            if (visits > FRAMES_VISITS_LIMIT) {
                return pen_error(PEN_UNSUPPORTED, "it has too many loops in too many nodes");
            }
            f.condition = conditions[i];
            PEN_TRY(frame_fold(&f, &is_folded));
            if (!is_folded) conditions[left++] = conditions[i];
        }
        if (left == count) {
            return pen_error(PEN_UNSUPPORTED, "loop '%.100s' is not closed",
                             flat->nodes[conditions[0]].name);
        }
        count = left;
    }
    return PEN_OK;
}
