#include "scheduler/runtime/executor/executor_inspect.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>

#include "base/checksum.h"
#include "base/text.h"
#include "device/run_context.h"
#include "graph/graph.h"
#include "graph/op.h"
#include "scheduler/runtime/executor/executor_state.h"

static const pen_node *inspect_node(const pen_executor *executor, uint32_t position) {
    return pen_graph_node(executor->spec.graph, executor->spec.order[position]);
}

static pen_finite_summary inspect_value(const pen_executor *executor, pen_value_id value,
                                        uint64_t microbatch) {
    uint64_t bytes;
    const void *memory = executor_look(executor, value, microbatch, &bytes);
    if (memory == NULL) return (pen_finite_summary){0};
    return pen_finite_summarize(memory, bytes,
                                pen_value_type(executor->spec.graph, value)->element);
}

static bool inspect_is_bad(const pen_finite_summary *summary) {
    return summary->nan_count + summary->infinite_count > 0;
}

// What repeated runs add to is not hashed: running statistics, sums over microbatches. Of what a
// kernel adds to by itself, some may be left from before: who reads it is looked at.
static void inspect_outputs(const pen_executor *executor, uint32_t position, uint64_t microbatch,
                            const pen_run_context *run, pen_node_inspection *out_inspection) {
    const pen_graph *graph = executor->spec.graph;
    const pen_node *node = inspect_node(executor, position);
    const bool adds = pen_run_adds(node, run);
    pen_node_inspection inspection = {.was_run = true};
    for (uint32_t i = 0; i < node->output_count && !node->op->adds_itself; i++) {
        const pen_value_id value = node->outputs[i];
        if (!pen_value_is(value) || pen_value_is(pen_graph_value(graph, value)->replaces)) continue;
        uint64_t bytes;
        const void *memory = executor_look(executor, value, microbatch, &bytes);
        if (memory == NULL) continue;
        const pen_element_type element = pen_value_type(graph, value)->element;
        if (!adds) inspection.hash = inspection.hash * 31 + pen_finite_hash(memory, bytes);
        if (!(pen_finite_magnitude(memory, bytes, element) < INFINITY)) inspection.is_bad = true;
    }
    *out_inspection = inspection;
}

static void inspect_sum(const pen_executor *executor, const pen_node *node, uint64_t microbatch,
                        uint64_t *checksums) {
    for (uint32_t i = 0; i < node->output_count; i++) {
        if (!pen_value_is(node->outputs[i])) continue;
        uint64_t bytes;
        const void *memory = executor_look(executor, node->outputs[i], microbatch, &bytes);
        if (memory != NULL) checksums[node->outputs[i].index] = pen_checksum_whole(memory, bytes);
    }
}

// Runs a list node by node and looks at what each makes, for the first that is not finite. Where
// the loss was finite, values of the forward pass may be infinite on purpose, as masks are.
pen_status pen_executor_inspect(pen_executor *executor, uint32_t list_index, uint64_t microbatch,
                                const pen_run_context *run, pen_executor_inspection *inspection) {
    pen_device *device = executor->spec.device;
    const pen_memory_list *list = &executor->lists[list_index];
    inspection->bad = UINT32_MAX;
    for (uint32_t p = list->first; p < list->end; p++) {
        const pen_node *node = inspect_node(executor, p);
        const pen_launch *launch = executor_launch(executor, p, microbatch);
        pen_node_inspection *found = &inspection->nodes[p];
        if (launch == NULL || node->op->is_update) continue;
        PEN_TRY(device->kind->enqueue(device, launch, run));
        PEN_TRY(device->kind->synchronize(device));
        executor_spoil(executor, p, microbatch);
        inspect_outputs(executor, p, microbatch, run, found);
        if (inspection->checksums != NULL) {
            inspect_sum(executor, node, microbatch, inspection->checksums);
        }
        if (inspection->is_loss_finite && node->role == PEN_ROLE_FORWARD) found->is_bad = false;
        if (!found->is_bad) continue;
        inspection->bad = p;
        return PEN_OK;
    }
    return PEN_OK;
}

// ---- in words

static void inspect_add_summary(pen_text *text, const pen_finite_summary *summary) {
    const uint64_t bad = summary->nan_count + summary->infinite_count;
    pen_text_print(text, "%" PRIu64 " of %" PRIu64 " elements are %s", bad, summary->count,
                   summary->infinite_count == 0 ? "not a number"
                   : summary->nan_count == 0    ? "infinite"
                                                : "infinite or not a number");
    if (bad < summary->count) {
        pen_text_print(text, ", the others from %.6g to %.6g", summary->minimum, summary->maximum);
    }
}

// The first operand that is bad itself: what that says of it. NULL: there is none.
static const char *inspect_find_origin(const pen_executor *executor, const pen_node *node,
                                       uint64_t microbatch, const char **out_name) {
    const pen_graph *graph = executor->spec.graph;
    for (uint32_t i = 0; i < node->input_count; i++) {
        if (!pen_value_is(node->inputs[i])) continue;
        const pen_value *value = pen_graph_value(graph, node->inputs[i]);
        const pen_finite_summary summary = inspect_value(executor, node->inputs[i], microbatch);
        if (!inspect_is_bad(&summary)) continue;
        *out_name = value->name;
        switch (value->kind) {
        case PEN_VALUE_INPUT:
        case PEN_VALUE_SCALAR:
            return "data";
        case PEN_VALUE_PARAMETER:
        case PEN_VALUE_STATE:
            return "parameters";
        case PEN_VALUE_CONSTANT:
            return "a constant of the model";
        case PEN_VALUE_COMPUTED:
            return "what another device made";
        }
    }
    return NULL;
}

static void inspect_add_operands(pen_text *text, const pen_executor *executor, const pen_node *node,
                                 uint64_t microbatch) {
    const pen_graph *graph = executor->spec.graph;
    for (uint32_t i = 0; i < node->input_count; i++) {
        if (!pen_value_is(node->inputs[i])) continue;
        const pen_finite_summary summary = inspect_value(executor, node->inputs[i], microbatch);
        if (summary.count == 0) continue;
        pen_text_print(text, ", '%s' from %.6g to %.6g", pen_value_name(graph, node->inputs[i]),
                       summary.minimum, summary.maximum);
    }
}

static void inspect_add_origin(pen_text *text, const pen_executor *executor, const pen_node *node,
                               const pen_finite_summary *output, uint64_t microbatch) {
    const char *name = NULL;
    const char *origin = inspect_find_origin(executor, node, microbatch, &name);
    if (origin != NULL) {
        pen_text_print(text, "; it comes from %s: '%s' is not finite", origin, name);
        return;
    }
    pen_text_print(text, "; %s in it",
                   output->infinite_count > 0 ? "an overflow" : "an undefined operation");
    // operands may have been overwritten where the node works in place
    inspect_add_operands(text, executor, node, microbatch);
}

pen_status pen_executor_describe_node(const pen_executor *executor, uint32_t position,
                                      pen_arena *arena, const char **out_text) {
    const pen_node *node = inspect_node(executor, position);
    return pen_arena_format(arena, out_text, "%s '%s'", node->op->name, node->name);
}

pen_status pen_executor_describe_bad(const pen_executor *executor, uint32_t position,
                                     uint64_t microbatch, pen_arena *arena, const char **out_text) {
    const pen_node *node = inspect_node(executor, position);
    pen_text text;
    pen_text_init(&text, arena);
    pen_text_print(&text, "%s '%s'", node->op->name, node->name);
    for (uint32_t i = 0; i < node->output_count; i++) {
        if (!pen_value_is(node->outputs[i])) continue;
        const pen_finite_summary summary = inspect_value(executor, node->outputs[i], microbatch);
        if (!inspect_is_bad(&summary)) continue;
        pen_text_print(&text, ": ");
        inspect_add_summary(&text, &summary);
        inspect_add_origin(&text, executor, node, &summary, microbatch);
        break;
    }
    return pen_text_finish(&text, out_text);
}
