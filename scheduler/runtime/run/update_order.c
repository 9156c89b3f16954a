#include "scheduler/runtime/run/update_order.h"

#include "graph/graph.h"
#include "graph/op.h"
#include "scheduler/runtime/run/part_buffers.h"

// Where each task is with updates last, in the order of phases.
static pen_status order_rank(const pen_update_order *order, pen_arena *arena, uint32_t **out_rank) {
    uint32_t *rank, next = 0, phase_end = 0;
    PEN_TRY(PEN_NEW(arena, order->task_count, &rank));
    for (uint32_t t = 0; t < order->task_count; t++) {
        const pen_task *task = &order->tasks[t];
        if (task->kind != PEN_TASK_UPDATE) {
            rank[t] = next++;
        } else if (task->microbatch >= phase_end) {
            phase_end = task->microbatch + 1;
        }
    }
    for (uint32_t phase = 0; phase < phase_end; phase++) {
        for (uint32_t t = 0; t < order->task_count; t++) {
            const pen_task *task = &order->tasks[t];
            if (task->kind == PEN_TASK_UPDATE && task->microbatch == phase) rank[t] = next++;
        }
    }
    *out_rank = rank;
    return PEN_OK;
}

// Of each value the highest rank, from 1, of the tasks so far that read or changed it. Views count
// as what they are of.
typedef struct order_seen {
    const pen_graph *graph;
    uint32_t *read;    // [value_count]
    uint32_t *changed; // [value_count]
    bool is_safe;      // no task so far came behind one that it should have come before
} order_seen;

static void order_read(order_seen *seen, pen_value_id value, uint32_t rank) {
    const uint32_t root = pen_part_value_root(seen->graph, value).index;
    if (seen->changed[root] > rank) seen->is_safe = false;
    if (seen->read[root] < rank) seen->read[root] = rank;
}

static void order_change(order_seen *seen, pen_value_id value, uint32_t rank) {
    const uint32_t root = pen_part_value_root(seen->graph, value).index;
    if (seen->changed[root] > rank || seen->read[root] > rank) seen->is_safe = false;
    if (seen->changed[root] < rank) seen->changed[root] = rank;
}

static void order_go_through(order_seen *seen, const pen_node *node, uint32_t rank) {
    for (uint32_t i = 0; i < node->input_count; i++) {
        if (pen_value_is(node->inputs[i])) order_read(seen, node->inputs[i], rank);
    }
    for (uint32_t i = 0; i < node->output_count && !node->op->is_view; i++) {
        if (!pen_value_is(node->outputs[i])) continue;
        const pen_value_id replaced = pen_graph_value(seen->graph, node->outputs[i])->replaces;
        order_change(seen, node->outputs[i], rank);
        if (pen_value_is(replaced)) order_change(seen, replaced, rank);
    }
}

pen_status pen_update_order_check(const pen_update_order *order, pen_arena *arena,
                                  bool *out_is_safe) {
    const pen_part *part = order->part;
    order_seen seen = {.graph = part->graph, .is_safe = true};
    uint32_t *rank;
    PEN_TRY(order_rank(order, arena, &rank));
    PEN_TRY(PEN_NEW(arena, pen_graph_value_count(part->graph), &seen.read));
    PEN_TRY(PEN_NEW(arena, pen_graph_value_count(part->graph), &seen.changed));
    for (uint32_t t = 0; t < order->task_count && seen.is_safe; t++) {
        if (order->list_of_task[t] == PEN_ID_NONE) continue;
        const pen_part_list *list = &part->lists[order->list_of_task[t]];
        for (uint32_t p = list->first; p < list->end; p++) {
            order_go_through(&seen, pen_graph_node(part->graph, part->order[p]), rank[t] + 1);
        }
    }
    *out_is_safe = seen.is_safe;
    return PEN_OK;
}

pen_status pen_update_order_put_last(const pen_update_order *order, pen_arena *arena) {
    pen_task *tasks;
    uint32_t *lists, *rank;
    PEN_TRY(order_rank(order, arena, &rank));
    PEN_TRY(PEN_NEW(arena, order->task_count, &tasks));
    PEN_TRY(PEN_NEW(arena, order->task_count, &lists));
    for (uint32_t t = 0; t < order->task_count; t++) {
        tasks[rank[t]] = order->tasks[t];
        lists[rank[t]] = order->list_of_task[t];
    }
    for (uint32_t t = 0; t < order->task_count; t++) {
        order->tasks[t] = tasks[t];
        order->list_of_task[t] = lists[t];
    }
    return PEN_OK;
}
