// What tensors share: operators that change in place, and views, made functional.
//
// A change of a base is its new value. A change of a view is put into what it is a view of, and so
// on down to the base: by the row's `write_back`, or, for any view at all, by the places that its
// elements have. Other views of the base fall behind, and are made again when they are next read.

#include "graph/import/pytorch/pt2_importer.h"
#include "graph/op.h"

#define STORAGE_DEPTH_LIMIT 256 // views of views

pen_status pen_pt2_slot_new(pen_pt2_importer *import, const char *name,
                            const pen_pt2_tensor_meta *meta, pen_value_id value,
                            pen_pt2_slot **out_slot) {
    pen_pt2_slot *slot;
    PEN_TRY(PEN_NEW(import->arena, 1, &slot));
    PEN_TRY(PEN_NEW(import->arena, 1, &slot->storage));
    slot->storage->base = slot;
    slot->storage->born = import->storage_count++;
    slot->name = name;
    slot->meta = meta;
    slot->value = value;
    slot->is_state =
        pen_value_is(value) && pen_graph_value(import->graph, value)->kind == PEN_VALUE_STATE;
    *out_slot = slot;
    return PEN_OK;
}

pen_status pen_pt2_slot_new_view(const pen_pt2_draft *draft, uint32_t result, pen_pt2_slot *parent,
                                 pen_value_id value, pen_pt2_slot **out_slot) {
    pen_pt2_slot *slot;
    if (parent->depth >= STORAGE_DEPTH_LIMIT) {
        return pen_error(PEN_UNSUPPORTED, "a view of a view, %d deep", STORAGE_DEPTH_LIMIT);
    }
    PEN_TRY(PEN_NEW(draft->import->arena, 1, &slot));
    *slot = (pen_pt2_slot){.storage = parent->storage,
                           .parent = parent,
                           .depth = parent->depth + 1,
                           .scope = draft->scope,
                           .node = draft->node,
                           .result = result,
                           .value = value,
                           .version = parent->storage->version};
    *out_slot = slot;
    return PEN_OK;
}

// Runs the view's own node once more, on `first` in the place of what it is a view of.
static pen_status storage_view(pen_pt2_importer *import, const pen_pt2_slot *slot,
                               pen_value_id first, pen_value_id *out_value) {
    pen_pt2_draft draft;
    PEN_TRY(pen_pt2_importer_convert(import, slot->scope, slot->node, first, &draft));
    PEN_ASSERT(slot->result < draft.result_count);
    *out_value = draft.results[slot->result];
    if (pen_value_is(*out_value)) return PEN_OK;
    return pen_error(PEN_UNSUPPORTED, "'%.100s' is made by no node", slot->name);
}

// Whether something that is trained flows into a value.
static pen_status storage_learns(pen_pt2_importer *import, pen_value_id value, bool *out_learns) {
    const pen_graph *graph = import->graph;
    const uint32_t count = pen_graph_value_count(graph);
    uint32_t *waiting, waiting_count = 0;
    bool *is_met;
    *out_learns = false;
    if (!pen_value_is(value)) return PEN_OK;
    PEN_TRY(PEN_NEW(import->arena, count, &waiting));
    PEN_TRY(PEN_NEW(import->arena, count, &is_met));
    waiting[waiting_count++] = value.index;
    is_met[value.index] = true;
    while (waiting_count > 0 && !*out_learns) {
        const pen_value *at = pen_graph_value(graph, (pen_value_id){waiting[--waiting_count]});
        *out_learns = at->kind == PEN_VALUE_PARAMETER && at->trainable;
        if (!pen_node_is(at->producer)) continue;
        const pen_node *node = pen_graph_node(graph, at->producer);
        for (uint32_t i = 0; i < node->input_count && !node->op->stops_gradient; i++) {
            if (!pen_value_is(node->inputs[i]) || is_met[node->inputs[i].index]) continue;
            is_met[node->inputs[i].index] = true;
            waiting[waiting_count++] = node->inputs[i].index;
        }
    }
    return PEN_OK;
}

// A change that PyTorch's gradients do not see: they would flow as if it had not been. Through
// buffers none flow.
static pen_status storage_check_seen(pen_pt2_importer *import, const pen_pt2_slot *base) {
    bool learns;
    while (base->origin != NULL)
        base = base->origin->storage->base;
    if (base->storage->is_unseen || base->is_state) return PEN_OK;
    PEN_TRY(storage_learns(import, base->value, &learns));
    if (!learns) return PEN_OK;
    return pen_error(PEN_UNSUPPORTED,
                     "it changes '%.100s' in place, which is trained, under no_grad or behind it: "
                     "gradients would not see that; compute a new tensor",
                     base->name);
}

pen_status pen_pt2_slot_read(pen_pt2_importer *import, pen_pt2_slot *slot,
                             pen_value_id *out_value) {
    pen_value_id parent = PEN_VALUE_NONE;
    const pen_pt2_slot *origin = slot->storage->base->origin;
    if (origin != NULL && origin->storage->version != slot->storage->base->origin_version) {
        return pen_error(PEN_UNSUPPORTED,
                         "it reads '%.100s' as it left no_grad, and '%.100s', which it was there, "
                         "has been changed in place since",
                         slot->name, origin->name);
    }
    if (slot->version != slot->storage->version) {
        PEN_TRY(pen_pt2_slot_read(import, slot->parent, &parent));
        PEN_TRY(storage_view(import, slot, parent, &slot->value));
        slot->version = slot->storage->version;
    }
    *out_value = slot->value;
    if (pen_value_is(slot->value)) return PEN_OK;
    return pen_error(PEN_UNSUPPORTED, "it reads '%.100s', which Penstock has not", slot->name);
}

pen_status pen_pt2_places(pen_pt2_draft *draft, pen_value_id like, pen_value_id *out_value) {
    pen_value_id first, step, count, series, shape;
    PEN_TRY(pen_pt2_constant_number(draft, PEN_INT64, 0, &first));
    PEN_TRY(pen_pt2_constant_number(draft, PEN_INT64, 1, &step));
    PEN_TRY(pen_pt2_map(draft, "size", "count", like, &count));
    PEN_TRY(pen_pt2_emit(draft, "range", "series", PEN_INPUTS(first, count, step),
                         PEN_NO_ATTRIBUTES, &series));
    PEN_TRY(pen_pt2_map(draft, "shape", "sizes", like, &shape));
    return pen_pt2_pair(draft, "reshape", "places", series, shape, out_value);
}

pen_status pen_pt2_scatter_places(pen_pt2_draft *draft, pen_value_id base, pen_value_id places,
                                  pen_value_id changed, pen_value_id *out_value) {
    static const int64_t flat[] = {-1};
    const pen_pt2_list all = {1, flat};
    pen_value_id data, updates, shape, result;
    PEN_TRY(pen_pt2_with_ints(draft, "reshape", "shown", places, all, &places));
    PEN_TRY(pen_pt2_with_ints(draft, "reshape", "flat", base, all, &data));
    PEN_TRY(pen_pt2_with_ints(draft, "reshape", "changed", changed, all, &updates));
    PEN_TRY(pen_pt2_emit(draft, "scatter_elements", "written", PEN_INPUTS(data, places, updates),
                         PEN_WITH(pen_attribute_int("axis", 0)), &result));
    PEN_TRY(pen_pt2_map(draft, "shape", "whole", base, &shape));
    return pen_pt2_pair(draft, "reshape", "base", result, shape, out_value);
}

// Any view shows some of the elements of its base, each once: run on their places, it tells which.
static pen_status storage_scatter(pen_pt2_draft *draft, const pen_pt2_slot *slot,
                                  pen_value_id parent, pen_value_id changed,
                                  pen_value_id *out_value) {
    pen_value_id places = PEN_VALUE_NONE, shown;
    PEN_TRY(pen_pt2_places(draft, parent, &places));
    PEN_TRY(storage_view(draft->import, slot, places, &shown));
    return pen_pt2_scatter_places(draft, parent, shown, changed, out_value);
}

// What the view's parent becomes.
static pen_status storage_write_back(pen_pt2_importer *import, const pen_pt2_slot *slot,
                                     pen_value_id parent, pen_value_id changed,
                                     pen_value_id *out_value) {
    pen_pt2_draft draft;
    const pen_pt2_change change = {.changed = changed, .result = slot->result};
    PEN_TRY(pen_pt2_draft_begin(import, slot->scope, slot->node, parent, &draft));
    const pen_status status = draft.mapping->write_back != NULL
                                  ? draft.mapping->write_back(&draft, &change, out_value)
                                  : storage_scatter(&draft, slot, parent, changed, out_value);
    return pen_pt2_draft_end(&draft, status);
}

// Parents are read before anything is changed. The chain is at most STORAGE_DEPTH_LIMIT long.
pen_status pen_pt2_slot_write(pen_pt2_importer *import, pen_pt2_slot *slot, pen_value_id value) {
    pen_value_id parent = PEN_VALUE_NONE, changed = PEN_VALUE_NONE;
    const pen_pt2_slot *base = slot->storage->base;
    if (base->refused != NULL) {
        return pen_error(PEN_UNSUPPORTED, "it changes %s '%.100s' in place", base->refused,
                         base->name);
    }
    if (slot->parent == NULL) {
        const bool is_unseen = slot->storage->born < import->unseen_before;
        if (is_unseen || slot->origin != NULL) PEN_TRY(storage_check_seen(import, slot));
        slot->storage->is_unseen = is_unseen;
        if (slot->origin != NULL) {
            PEN_TRY(pen_pt2_slot_write(import, slot->origin, value));
            slot->origin_version = slot->origin->storage->version;
        }
        slot->storage->version++;
    } else {
        PEN_TRY(pen_pt2_slot_read(import, slot->parent, &parent));
        PEN_TRY(storage_write_back(import, slot, parent, value, &changed));
        PEN_TRY(pen_pt2_slot_write(import, slot->parent, changed));
    }
    slot->value = value;
    slot->version = slot->storage->version;
    return PEN_OK;
}
