#include "partition/lower/stage_split.h"

#include <string.h>

#include "base/sets/id_heap.h"
#include "graph/graph.h"
#include "partition/problem/problem_lists.h"

// A directed graph of pieces, as lists of edges.
typedef struct split_builder {
    const pen_forward_owners *owners;
    pen_arena *arena;
    uint32_t piece_count;
    uint32_t *piece_of_node;  // [node_count], of forward nodes
    uint32_t *device;         // [piece_count]
    uint32_t *first_node;     // [piece_count], the lowest
    pen_problem_lists after;  // of pieces: those that read from them
    uint32_t *order;          // [piece_count], topological
    uint32_t *stage_of_piece; // [piece_count], its place there; PEN_ID_NONE: on a cycle
} split_builder;

static const pen_node *split_node(const split_builder *b, uint32_t node) {
    return pen_graph_node(b->owners->graph, (pen_node_id){node});
}

static bool split_is_forward(const split_builder *b, uint32_t node) {
    return split_node(b, node)->role == PEN_ROLE_FORWARD;
}

// The node whose result operand `input` is, as it travels; PEN_ID_NONE without one.
static uint32_t split_source(const split_builder *b, const pen_node *node, uint32_t input) {
    if (!pen_value_is(node->inputs[input])) return PEN_ID_NONE;
    const pen_value_id value = pen_forward_owners_source(b->owners, node->inputs[input]);
    if (!pen_value_is(value)) return PEN_ID_NONE;
    return pen_graph_value(b->owners->graph, value)->producer.index;
}

static pen_status split_link_pieces(split_builder *b) {
    pen_problem_edge *edges;
    uint32_t count = 0;
    for (uint32_t n = 0; n < b->owners->node_count; n++)
        count += split_is_forward(b, n) ? split_node(b, n)->input_count : 0;
    PEN_TRY(PEN_NEW(b->arena, count, &edges));
    count = 0;
    for (uint32_t n = 0; n < b->owners->node_count; n++) {
        if (!split_is_forward(b, n)) continue;
        const pen_node *node = split_node(b, n);
        for (uint32_t i = 0; i < node->input_count; i++) {
            const uint32_t source = split_source(b, node, i);
            if (source == PEN_ID_NONE) continue;
            const uint32_t from = b->piece_of_node[source], to = b->piece_of_node[n];
            if (from != to) edges[count++] = (pen_problem_edge){from, to};
        }
    }
    return pen_problem_lists_build(b->piece_count, edges, count, false, b->arena, &b->after);
}

// Orders the pieces; fewer than piece_count come out where there are cycles.
static pen_status split_sort(split_builder *b, uint32_t *out_sorted) {
    uint32_t *waiting;
    pen_id_heap ready = {.keys = b->first_node}; // the piece with the lowest first node first
    PEN_TRY(PEN_NEW(b->arena, b->piece_count, &waiting));
    PEN_TRY(PEN_NEW(b->arena, b->piece_count, &ready.ids));
    PEN_TRY(PEN_NEW(b->arena, b->piece_count, &b->order));
    PEN_TRY(PEN_NEW(b->arena, b->piece_count, &b->stage_of_piece));
    for (uint32_t e = 0; e < b->after.first[b->piece_count]; e++)
        waiting[b->after.ids[e]] += 1;
    for (uint32_t p = 0; p < b->piece_count; p++) {
        b->stage_of_piece[p] = PEN_ID_NONE;
        if (waiting[p] == 0) pen_id_heap_push(&ready, p);
    }
    uint32_t sorted = 0;
    while (ready.count > 0) {
        const uint32_t piece = pen_id_heap_pop(&ready);
        b->stage_of_piece[piece] = sorted;
        b->order[sorted++] = piece;
        for (uint32_t e = b->after.first[piece]; e < b->after.first[piece + 1]; e++) {
            if (--waiting[b->after.ids[e]] == 0) pen_id_heap_push(&ready, b->after.ids[e]);
        }
    }
    *out_sorted = sorted;
    return PEN_OK;
}

// Pieces from whatever numbers them below `limit`: dense numbers, by first node. A layout change is
// in the piece of the node it goes with.
static pen_status split_number(split_builder *b, const uint32_t *piece_of_node,
                               const uint32_t *device_of_piece, uint32_t limit) {
    const uint32_t node_count = b->owners->node_count;
    uint32_t *dense;
    PEN_TRY(PEN_NEW(b->arena, limit, &dense));
    PEN_TRY(PEN_NEW(b->arena, limit, &b->device));
    PEN_TRY(PEN_NEW(b->arena, limit, &b->first_node));
    memset(dense, 0xff, limit * sizeof *dense);
    b->piece_count = 0;
    for (uint32_t n = 0; n < node_count; n++) {
        if (!split_is_forward(b, n)) continue;
        const uint32_t given = piece_of_node[b->owners->listed[n]];
        uint32_t *piece = &dense[given];
        if (*piece == PEN_ID_NONE) {
            *piece = b->piece_count++;
            b->device[*piece] = device_of_piece[given];
            b->first_node[*piece] = n;
        }
        b->piece_of_node[n] = *piece;
    }
    return split_link_pieces(b);
}

// ---- the result

static void split_write(const split_builder *b, pen_stage_split *split) {
    for (uint32_t s = 0; s < b->piece_count; s++) {
        split->device_of_stage[s] = b->device[b->order[s]];
    }
    for (uint32_t n = 0; n < b->owners->node_count; n++) {
        if (split_is_forward(b, n))
            split->stage_of_node[n] = b->stage_of_piece[b->piece_of_node[n]];
    }
    for (uint32_t n = 0; n < b->owners->node_count; n++) {
        if (!split_is_forward(b, n)) {
            split->stage_of_node[n] = split->stage_of_node[b->owners->home[n]];
        }
    }
    split->stage_count = b->piece_count;
}

// Two stages on a cycle, by a node of each.
static pen_status split_error_cycle(const split_builder *b) {
    uint32_t first = 0;
    while (b->stage_of_piece[first] != PEN_ID_NONE)
        first++;
    uint32_t second = first + 1; // a cycle has two
    while (b->stage_of_piece[second] != PEN_ID_NONE)
        second++;
    return pen_error(PEN_INVALID_INPUT,
                     "the stages of '%s' and '%s' wait for each other: no order of stages is "
                     "possible",
                     split_node(b, b->first_node[first])->name,
                     split_node(b, b->first_node[second])->name);
}

pen_status pen_stage_split_order(const pen_forward_owners *owners, pen_stage_split *split) {
    split_builder b = {.owners = owners};
    uint32_t sorted;
    PEN_TRY(pen_arena_create(&b.arena));
    pen_status status = PEN_NEW(b.arena, owners->node_count, &b.piece_of_node);
    if (status == PEN_OK) {
        status = split_number(&b, split->stage_of_node, split->device_of_stage, split->stage_count);
    }
    if (status == PEN_OK) status = split_sort(&b, &sorted);
    if (status == PEN_OK && sorted < b.piece_count) status = split_error_cycle(&b);
    if (status == PEN_OK) split_write(&b, split);
    pen_arena_destroy(b.arena);
    return status;
}

// Stages of a placement, numbered in the order of the forward pass.
pen_status pen_stage_split_build(const pen_forward_owners *owners, pen_stage_forming *forming,
                                 const uint32_t *device_of_node, pen_arena *arena,
                                 pen_stage_split *out_split) {
    const uint32_t given_count = forming->problem->given.node_count;
    pen_stage_split split;
    uint32_t *device;
    PEN_TRY(PEN_NEW(arena, given_count, &device));
    PEN_TRY(PEN_NEW(arena, given_count, &split.device_of_stage));
    PEN_TRY(PEN_NEW(arena, owners->node_count, &split.stage_of_node));
    for (uint32_t v = 0; v < given_count; v++) {
        // behind the graph's nodes are further results, which go with their colour
        const uint32_t node = v < owners->node_count ? v : forming->problem->given.nodes[v].color;
        device[v] = device_of_node[node];
    }
    PEN_TRY(pen_stage_forming_run(forming, device));
    split.stage_count = forming->stage_count;
    for (uint32_t s = 0; s < split.stage_count; s++) {
        split.device_of_stage[s] = forming->device_of_stage[s];
    }
    for (uint32_t n = 0; n < owners->node_count; n++) {
        split.stage_of_node[n] = forming->stage_of_node[n];
    }
    PEN_TRY(pen_stage_split_order(owners, &split));
    *out_split = split;
    return PEN_OK;
}
