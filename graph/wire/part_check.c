#include "graph/wire/part_check.h"

#include <stdlib.h>
#include <string.h>

#include "graph/op.h"
#include "graph/op_known.h"

typedef struct part_checker {
    const part_record *record;
    const pen_graph *graph;
    uint32_t node_count;
    uint32_t *position; // [node_count] in the order; PEN_ID_NONE
} part_checker;

static const pen_node *check_node(const part_checker *c, uint32_t node) {
    return pen_graph_node(c->graph, (pen_node_id){node});
}

static bool check_is(const pen_node *node, const pen_op *op) {
    return node->op == op;
}

static bool check_is_moved(const pen_node *node) {
    return check_is(node, PEN_OP(send)) || check_is(node, PEN_OP(receive));
}

static pen_status check_lists(const part_record *record) {
    uint32_t at = 0;
    for (uint32_t l = 0; l < record->list_count; l++) {
        const pen_part_list *list = &record->lists[l];
        if (list->first != at || list->end < at || list->end > record->order_count) {
            return pen_error(PEN_CORRUPT,
                             "list %u is from %u to %u, expected from %u to at most %u", l,
                             list->first, list->end, at, record->order_count);
        }
        if (list->phase != 0 && list->kind != PEN_TASK_UPDATE) {
            return pen_error(PEN_CORRUPT, "list %u is no update, but of phase %u", l, list->phase);
        }
        at = list->end;
    }
    if (at == record->order_count) return PEN_OK;
    return pen_error(PEN_CORRUPT, "lists end at %u, but %u nodes run", at, record->order_count);
}

static pen_status check_reads(const part_checker *c, uint32_t n) {
    const pen_node *node = check_node(c, n);
    for (uint32_t i = 0; i < node->input_count; i++) {
        if (!pen_value_is(node->inputs[i])) continue;
        const pen_node_id maker = pen_graph_value(c->graph, node->inputs[i])->producer;
        if (!pen_node_is(maker) || check_is(check_node(c, maker.index), PEN_OP(receive))) continue;
        const uint32_t made = c->position[maker.index];
        if (check_is(node, PEN_OP(send)) || made < c->position[n]) continue;
        return pen_error(PEN_CORRUPT, "node '%s' runs before '%s', which it reads", node->name,
                         check_node(c, maker.index)->name);
    }
    return PEN_OK;
}

// Each node runs once, and after everything that it reads.
static pen_status check_order(part_checker *c) {
    const part_record *record = c->record;
    for (uint32_t n = 0; n < c->node_count; n++) {
        c->position[n] = PEN_ID_NONE;
    }
    for (uint32_t p = 0; p < record->order_count; p++) {
        const uint32_t n = record->order[p].index;
        if (n >= c->node_count) {
            return pen_error(PEN_CORRUPT, "node %u is to run, there are %u", n, c->node_count);
        }
        if (c->position[n] != PEN_ID_NONE || check_is_moved(check_node(c, n))) {
            return pen_error(PEN_CORRUPT, "node '%s' is to run %s", check_node(c, n)->name,
                             c->position[n] != PEN_ID_NONE ? "twice" : "on the device");
        }
        c->position[n] = p;
    }
    for (uint32_t n = 0; n < c->node_count; n++) {
        const pen_node *node = check_node(c, n);
        if (c->position[n] == PEN_ID_NONE && !check_is_moved(node)) {
            return pen_error(PEN_CORRUPT, "node '%s' is in no list", node->name);
        }
        PEN_TRY(check_reads(c, n));
    }
    return PEN_OK;
}

static int check_compare_ends(const void *left, const void *right) {
    const pen_part_end *a = left, *b = right;
    return (a->channel > b->channel) - (a->channel < b->channel);
}

static pen_status check_fed(const pen_graph *graph, const pen_part_end *end) {
    if (end->value.index >= pen_graph_value_count(graph)) {
        return pen_error(PEN_CORRUPT, "channel %u feeds value %u, which is not there", end->channel,
                         end->value.index);
    }
    const pen_value *value = pen_graph_value(graph, end->value);
    if (value->kind == PEN_VALUE_INPUT) return PEN_OK;
    return pen_error(PEN_CORRUPT, "channel %u feeds '%s', which is no input", end->channel,
                     value->name);
}

// The ends of transfer nodes and of what is fed, by channel.
static pen_status check_ends(const part_checker *c, pen_arena *arena, pen_wired_part *part) {
    const part_record *record = c->record;
    pen_part_end *ends;
    uint32_t count = 0;
    PEN_TRY(PEN_NEW(arena, (size_t)c->node_count + record->fed_count, &ends));
    for (uint32_t n = 0; n < c->node_count; n++) {
        const pen_node *node = check_node(c, n);
        if (!check_is_moved(node)) continue;
        const bool is_source = check_is(node, PEN_OP(send));
        ends[count++] = (pen_part_end){
            .channel = (uint32_t)pen_node_int(node, "channel"),
            .value = is_source ? node->inputs[0] : node->outputs[0],
            .is_source = is_source,
        };
    }
    for (uint32_t f = 0; f < record->fed_count; f++) {
        PEN_TRY(check_fed(c->graph, &record->fed[f]));
        ends[count++] = record->fed[f];
    }
    qsort(ends, count, sizeof *ends, check_compare_ends);
    for (uint32_t e = 1; e < count; e++) {
        if (ends[e].channel != ends[e - 1].channel) continue;
        return pen_error(PEN_CORRUPT, "channel %u ends at '%s' and at '%s'", ends[e].channel,
                         pen_value_name(c->graph, ends[e - 1].value),
                         pen_value_name(c->graph, ends[e].value));
    }
    part->ends = ends;
    part->end_count = count;
    return PEN_OK;
}

static pen_status check_kept(const part_checker *c) {
    for (uint32_t k = 0; k < c->record->kept_count; k++) {
        const pen_value_id value = c->record->kept[k];
        if (value.index < pen_graph_value_count(c->graph) &&
            pen_graph_value(c->graph, value)->kind == PEN_VALUE_COMPUTED) {
            continue;
        }
        return pen_error(PEN_CORRUPT, "value %u is to be kept, but not computed", value.index);
    }
    return PEN_OK;
}

// A part comes from outside: nothing in it is believed before these checks.
pen_status pen_part_check(const part_record *record, pen_graph *graph, pen_arena *arena,
                          pen_arena *scratch, pen_wired_part *out_part) {
    part_checker c = {.record = record, .graph = graph, .node_count = pen_graph_node_count(graph)};
    pen_part_list *lists;
    pen_node_id *order;
    pen_value_id *kept;
    PEN_TRY(PEN_NEW(scratch, c.node_count, &c.position));
    PEN_TRY(check_lists(record));
    PEN_TRY(check_order(&c));
    PEN_TRY(check_kept(&c));
    PEN_TRY(PEN_NEW(arena, record->list_count, &lists));
    PEN_TRY(PEN_NEW(arena, record->order_count, &order));
    PEN_TRY(PEN_NEW(arena, record->kept_count, &kept));
    memcpy(lists, record->lists, record->list_count * sizeof *lists);
    memcpy(order, record->order, record->order_count * sizeof *order);
    memcpy(kept, record->kept, record->kept_count * sizeof *kept);
    *out_part = (pen_wired_part){.part = {.graph = graph,
                                          .order = order,
                                          .order_count = record->order_count,
                                          .lists = lists,
                                          .list_count = record->list_count,
                                          .kept = kept,
                                          .kept_count = record->kept_count}};
    return check_ends(&c, arena, out_part);
}
