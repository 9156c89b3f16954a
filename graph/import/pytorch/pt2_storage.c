// What tensors share: operators that change in place, and views, made functional.
//
// A change of a base is its new value. A change of a view is put into what it is a view of, and so
// on down to the base: by the row's `write_back`, or, for any view at all, by the places that its
// elements have. Other views of the base fall behind, and are made again when they are next read.

#include "graph/import/pytorch/pt2_importer.h"

#define STORAGE_DEPTH_LIMIT 256 // views of views

pen_status pen_pt2_slot_new(pen_pt2_importer *import, const char *name,
                            const pen_pt2_tensor_meta *meta, pen_value_id value,
                            pen_pt2_slot **out_slot) {
    pen_pt2_slot *slot;
    PEN_TRY(PEN_NEW(import->arena, 1, &slot));
    PEN_TRY(PEN_NEW(import->arena, 1, &slot->storage));
    slot->storage->base = slot;
    slot->name = name;
    slot->meta = meta;
    slot->value = value;
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

pen_status pen_pt2_slot_read(pen_pt2_importer *import, pen_pt2_slot *slot,
                             pen_value_id *out_value) {
    pen_value_id parent;
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
    pen_value_id places, shown;
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
    pen_value_id parent, changed = PEN_VALUE_NONE;
    const pen_pt2_slot *base = slot->storage->base;
    if (base->refused != NULL) {
        return pen_error(PEN_UNSUPPORTED, "it changes %s '%.100s' in place", base->refused,
                         base->name);
    }
    if (slot->parent == NULL) {
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
