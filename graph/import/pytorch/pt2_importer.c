#include "graph/import/pytorch/pt2_importer.h"

#include <string.h>

// ---- scopes

pen_status pen_pt2_scope_init(pen_pt2_scope *scope, const pen_pt2_graph_part *graph,
                              pen_arena *arena) {
    *scope = (pen_pt2_scope){.graph = graph};
    pen_name_map_init(&scope->index, arena);
    pen_name_map_init(&scope->symbol_index, arena);
    return PEN_OK;
}

pen_pt2_slot *pen_pt2_scope_find(const pen_pt2_scope *scope, const char *name) {
    const uint32_t index = pen_name_map_find(&scope->index, name);
    return index == PEN_NAME_MAP_NONE ? NULL : scope->slots[index];
}

const pen_pt2_known_symbol *pen_pt2_scope_symbol(const pen_pt2_scope *scope, const char *name) {
    const uint32_t index = pen_name_map_find(&scope->symbol_index, name);
    return index == PEN_NAME_MAP_NONE ? NULL : &scope->symbols[index];
}

// Room for one more in an array that doubles.
static pen_status scope_reserve(pen_arena *arena, void **items, uint32_t count, uint32_t *capacity,
                                size_t size) {
    if (count < *capacity) return PEN_OK;
    const uint32_t wanted = *capacity == 0 ? 64 : *capacity * 2;
    void *grown = pen_arena_allocate(arena, wanted, size, alignof(max_align_t));
    if (grown == NULL) return pen_error_out_of_memory();
    if (count > 0) memcpy(grown, *items, count * size);
    *items = grown;
    *capacity = wanted;
    return PEN_OK;
}

pen_status pen_pt2_scope_bind(pen_pt2_scope *scope, const char *name, pen_pt2_slot *slot) {
    const uint32_t count = scope->index.count;
    void *slots = scope->slots;
    if (pen_name_map_find(&scope->index, name) != PEN_NAME_MAP_NONE) {
        return pen_error(PEN_INVALID_INPUT, "tensor '%.100s' is made twice", name);
    }
    PEN_TRY(scope_reserve(scope->index.arena, &slots, count, &scope->slot_capacity,
                          sizeof *scope->slots));
    scope->slots = slots;
    scope->slots[count] = slot;
    if (slot->name == NULL) slot->name = name;
    if (slot->meta == NULL) slot->meta = pen_pt2_graph_tensor(scope->graph, name);
    return pen_name_map_add(&scope->index, name, count);
}

pen_status pen_pt2_scope_bind_symbol(pen_pt2_scope *scope, const char *name,
                                     const pen_pt2_known_symbol *symbol) {
    const uint32_t count = scope->symbol_index.count;
    void *symbols = scope->symbols;
    if (pen_name_map_find(&scope->symbol_index, name) != PEN_NAME_MAP_NONE) {
        return pen_error(PEN_INVALID_INPUT, "symbol '%.100s' is made twice", name);
    }
    PEN_TRY(scope_reserve(scope->index.arena, &symbols, count, &scope->symbol_capacity,
                          sizeof *scope->symbols));
    scope->symbols = symbols;
    scope->symbols[count] = *symbol;
    return pen_name_map_add(&scope->symbol_index, name, count);
}

// ---- what is known of values

pen_status pen_pt2_importer_note(pen_pt2_importer *import, pen_value_id value,
                                 pen_element_type element) {
    void *elements = import->elements;
    if (!pen_value_is(value)) return PEN_OK;
    while (value.index >= import->element_capacity) {
        const uint32_t count = import->element_capacity;
        PEN_TRY(scope_reserve(import->arena, &elements, count, &import->element_capacity,
                              sizeof *import->elements));
    }
    import->elements = elements;
    import->elements[value.index] = (uint8_t)element;
    return PEN_OK;
}

pen_element_type pen_pt2_importer_element(const pen_pt2_importer *import, pen_value_id value) {
    if (value.index < import->element_capacity && import->elements[value.index] != 0) {
        return (pen_element_type)import->elements[value.index];
    }
    return pen_value_type(import->graph, value)->element;
}

pen_status pen_pt2_importer_name(const pen_pt2_importer *import, const pen_pt2_node *node,
                                 const char **out_name) {
    *out_name = node->name;
    if (node->module[0] == '\0') return PEN_OK;
    return pen_arena_format(import->arena, out_name, "%s/%s", node->module, node->name);
}

// ---- nodes

// Results are tensors, lists of them, and symbols: one after the other.
static pen_status import_list_results(pen_pt2_draft *draft) {
    const pen_pt2_node *node = draft->node;
    pen_arena *arena = draft->import->arena;
    uint64_t count = 0;
    for (uint32_t i = 0; i < node->result_count; i++) {
        count += node->results[i].count;
    }
    PEN_TRY(PEN_NEW(arena, count, &draft->items));
    PEN_TRY(PEN_NEW(arena, count, &draft->results));
    PEN_TRY(PEN_NEW(arena, count, &draft->types));
    for (uint32_t i = 0; i < node->result_count; i++) {
        for (uint32_t k = 0; k < node->results[i].count; k++) {
            const pen_pt2_item *item = &node->results[i].items[k];
            const uint32_t r = draft->result_count++;
            const pen_pt2_tensor_meta *tensor =
                pen_pt2_graph_tensor(draft->scope->graph, item->text);
            const pen_pt2_symbol_meta *symbol =
                pen_pt2_graph_symbol(draft->scope->graph, item->text);
            draft->items[r] = item;
            draft->results[r] = PEN_VALUE_NONE;
            if (item->kind == PEN_PT2_TENSOR && tensor != NULL) {
                const pen_element_type element = pen_pt2_element_of(tensor->element_number, true);
                draft->types[r] = (pen_tensor_type){element, tensor->shape};
            } else if (item->kind == PEN_PT2_SYMBOL && symbol != NULL) {
                draft->types[r].element = symbol->element;
            }
        }
    }
    return PEN_OK;
}

pen_status pen_pt2_draft_begin(pen_pt2_importer *import, pen_pt2_scope *scope,
                               const pen_pt2_node *node, pen_value_id first,
                               pen_pt2_draft *out_draft) {
    bool in_place;
    *out_draft = (pen_pt2_draft){.import = import,
                                 .scope = scope,
                                 .node = node,
                                 .mapping = pen_pt2_mapping_find(node->target, &in_place),
                                 .first = first};
    if (out_draft->mapping == NULL) {
        return pen_error(PEN_UNSUPPORTED, "operator %.100s", node->target);
    }
    PEN_TRY(pen_pt2_importer_name(import, node, &out_draft->name));
    return import_list_results(out_draft);
}

pen_status pen_pt2_draft_end(const pen_pt2_draft *draft, pen_status status) {
    if (draft->problem == PEN_OK) return status;
    pen_status_ignore(status, "what is wrong with an argument is said");
    return draft->problem;
}

pen_status pen_pt2_importer_convert(pen_pt2_importer *import, pen_pt2_scope *scope,
                                    const pen_pt2_node *node, pen_value_id first,
                                    pen_pt2_draft *out_draft) {
    PEN_TRY(pen_pt2_draft_begin(import, scope, node, first, out_draft));
    PEN_TRY(pen_pt2_draft_end(out_draft, out_draft->mapping->convert(out_draft)));
    for (uint32_t r = 0; r < out_draft->result_count; r++) {
        if (pen_value_is(first)) break; // views of places
        PEN_TRY(pen_pt2_importer_note(import, out_draft->results[r], out_draft->types[r].element));
    }
    return PEN_OK;
}

// The slot of argument 0, "self" as a rule; NULL when that is no tensor.
static pen_pt2_slot *import_first_slot(const pen_pt2_scope *scope, const pen_pt2_node *node) {
    const pen_pt2_argument *first = node->argument_count == 0 ? NULL : &node->arguments[0];
    if (first == NULL || first->count == 0 || first->items[0].kind != PEN_PT2_TENSOR) return NULL;
    return pen_pt2_scope_find(scope, first->items[0].text);
}

static bool import_is_view(const pen_pt2_mapping *mapping, const pen_pt2_slot *first,
                           const pen_pt2_tensor_meta *result) {
    if (first == NULL || first->meta == NULL || result == NULL) return false;
    switch (mapping->view) {
    case PEN_PT2_VIEW_NEVER:
        return false;
    case PEN_PT2_VIEW_ALWAYS:
        return true;
    case PEN_PT2_VIEW_IF_CONTIGUOUS:
        return first->meta->is_contiguous;
    case PEN_PT2_VIEW_IF_SAME_TYPE:
        return first->meta->element == result->element;
    }
    return false;
}

// Binds a tensor that a node made: another name of argument 0, a view of it, or one of its own.
static pen_status import_bind_tensor(const pen_pt2_draft *draft, uint32_t r, bool in_place) {
    pen_pt2_importer *import = draft->import;
    const char *name = draft->items[r]->text;
    const pen_pt2_tensor_meta *meta = pen_pt2_graph_tensor(draft->scope->graph, name);
    pen_pt2_slot *first = import_first_slot(draft->scope, draft->node), *slot;
    if (in_place && r == 0 && first != NULL) return pen_pt2_scope_bind(draft->scope, name, first);
    if (import_is_view(draft->mapping, first, meta)) {
        PEN_TRY(pen_pt2_slot_new_view(draft, r, first, draft->results[r], &slot));
    } else {
        PEN_TRY(pen_pt2_slot_new(import, name, meta, draft->results[r], &slot));
    }
    return pen_pt2_scope_bind(draft->scope, name, slot);
}

// What is changed in place is written first, so that its new name shows the change.
static pen_status import_bind(const pen_pt2_draft *draft, bool in_place) {
    pen_pt2_slot *first = import_first_slot(draft->scope, draft->node);
    if (in_place && draft->result_count > 0 && first != NULL) {
        pen_value_id changed = draft->results[0];
        if (!pen_value_is(changed)) {
            return pen_error(PEN_UNSUPPORTED, "it does not say what becomes of its argument");
        }
        PEN_TRY(pen_pt2_slot_write(draft->import, first, changed));
    }
    for (uint32_t r = 0; r < draft->result_count; r++) {
        const pen_pt2_item *item = draft->items[r];
        const pen_pt2_known_symbol symbol = {
            .value = draft->results[r],
            .meta = pen_pt2_graph_symbol(draft->scope->graph, item->text)};
        if (item->kind == PEN_PT2_TENSOR) PEN_TRY(import_bind_tensor(draft, r, in_place));
        if (item->kind != PEN_PT2_SYMBOL || !pen_value_is(symbol.value)) continue;
        PEN_TRY(pen_pt2_scope_bind_symbol(draft->scope, item->text, &symbol));
    }
    return PEN_OK;
}

static pen_status import_node(pen_pt2_importer *import, pen_pt2_scope *scope,
                              const pen_pt2_node *node) {
    bool in_place;
    pen_pt2_draft draft;
    if (pen_pt2_is_nested(node)) return pen_pt2_nested_import(import, scope, node);
    const pen_pt2_mapping *mapping = pen_pt2_mapping_find(node->target, &in_place);
    if (mapping != NULL && mapping->is_nothing) return PEN_OK;
    PEN_TRY(pen_pt2_importer_convert(import, scope, node, PEN_VALUE_NONE, &draft));
    return import_bind(&draft, in_place);
}

// "in aten.conv2d.default 'net.0/conv2d', net.py line 16: y = self.net(x)"
static pen_status import_locate(pen_status status, const pen_pt2_importer *import,
                                const pen_pt2_node *node) {
    const char *name = node->name;
    if (status == PEN_OK) return PEN_OK;
    const pen_status named = pen_pt2_importer_name(import, node, &name);
    pen_status_ignore(named, "the node's own name will do");
    if (node->file == NULL) {
        return pen_status_add_context(status, "in %.100s '%.200s'", node->target, name);
    }
    return pen_status_add_context(status, "in %.100s '%.200s', %.200s line %u: %.100s",
                                  node->target, name, node->file, node->line, node->code);
}

pen_status pen_pt2_importer_walk(pen_pt2_importer *import, pen_pt2_scope *scope) {
    for (uint32_t i = 0; i < scope->graph->node_count; i++) {
        const pen_pt2_node *node = &scope->graph->nodes[i];
        PEN_TRY(import_locate(import_node(import, scope, node), import, node));
    }
    return PEN_OK;
}
