// The contract of the parts of the import of a `.pt2` file: pt2_importer.c walks the nodes,
// pt2_storage.c keeps what tensors share, pt2_draft.c and pt2_emit.c are what
// conversions see, pt2_nested.c has graphs within graphs, pt2_sources.c makes parameters, buffers
// and inputs.
//
// Names stand for values within a scope: the graph, or one that is nested in it.
//
// Lifetime: an importer lives for one import; all it makes is in the model's arena.
// Threads:  one thread at a time.
#ifndef PEN_GRAPH_IMPORT_PYTORCH_PT2_IMPORTER_H
#define PEN_GRAPH_IMPORT_PYTORCH_PT2_IMPORTER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/name_map.h"
#include "base/status.h"
#include "graph/graph.h"
#include "graph/import/import.h"
#include "graph/import/pytorch/pt2_convert.h"
#include "graph/import/pytorch/pt2_mapping.h"
#include "graph/import/pytorch/pt2_model.h"
#include "graph/import/pytorch/pt2_weights.h"

typedef struct pen_pt2_scope pen_pt2_scope;
typedef struct pen_pt2_slot pen_pt2_slot;

// The memory that a tensor and its views share.
typedef struct pen_pt2_storage {
    pen_pt2_slot *base;
    uint32_t version; // counts changes in place
    uint32_t born;    // how many there were before
    bool is_unseen;   // it was last changed where gradients do not see it
} pen_pt2_storage;

// A tensor of the file: a base, or a view of one.
struct pen_pt2_slot {
    const char *name;
    pen_pt2_storage *storage;
    const pen_pt2_tensor_meta *meta;
    pen_pt2_slot *parent; // what it is a view of; NULL: it is the base
    uint32_t depth;       // how many such there are
    pen_pt2_scope *scope; // where `node` stands
    const pen_pt2_node *node;
    uint32_t result;         // of the node
    pen_value_id value;      // as of `version`
    uint32_t version;        // of the storage; behind it: the view is made again when it is read
    bool is_state;           // a buffer that the model changes
    const char *refused;     // of a base: why it cannot be changed; NULL: it can
    pen_pt2_slot *origin;    // of a base that left no_grad: what it is there; NULL: it is new
    uint32_t origin_version; // of its storage, of which this is the value
};

// What a symbol of the file is.
typedef struct pen_pt2_known_symbol {
    pen_value_id value; // without dimensions
    const pen_pt2_symbol_meta *meta;
} pen_pt2_known_symbol;

struct pen_pt2_scope {
    const pen_pt2_graph_part *graph;
    bool stops_gradient;
    uint32_t depth;       // 0: the model's own graph
    pen_name_map index;   // of tensors
    pen_pt2_slot **slots; // [slot_capacity]
    uint32_t slot_capacity;
    pen_name_map symbol_index;
    pen_pt2_known_symbol *symbols; // [symbol_capacity]
    uint32_t symbol_capacity;
};

typedef struct pen_pt2_importer {
    pen_arena *arena;
    pen_graph *graph;
    const char *path;
    const pen_import_options *options;
    const pen_stored_zip *archive;
    const pen_pt2_model *model;
    const pen_pt2_weights *weights;
    pen_pt2_scope top;
    const char *batch;           // the symbol of the file that is the batch; NULL: none
    bool *is_read;               // [model->graph.input_count], by any node, or as an output
    bool *is_changed;            // [model->graph.input_count], in place
    pen_pt2_slot **ports;        // [model->graph.input_count]; NULL: no tensor, or unread
    pen_value_id *port_values;   // [model->graph.input_count], as given, before any change
    pen_value_id *weight_values; // [weights->count], of those that have one
    uint8_t *elements;           // [element_capacity], of values, as far as they are known
    uint32_t element_capacity;
    uint64_t table_bytes; // of constants that conversions made (pen_pt2_table)
    uint32_t storage_count;
    uint32_t unseen_before; // gradients do not see what happens now to storages born before this
} pen_pt2_importer;

// One conversion.
struct pen_pt2_draft {
    pen_pt2_importer *import;
    pen_pt2_scope *scope;
    const pen_pt2_node *node;
    const pen_pt2_mapping *mapping;
    const char *name;   // of what is added: "layers.0/linear_2"
    pen_value_id first; // stands for tensor argument 0; PEN_VALUE_NONE: that itself
    pen_status problem; // what was wrong with an argument
    uint32_t result_count;
    const pen_pt2_item **items; // [result_count], what the file calls the results
    pen_value_id *results;      // [result_count]
    pen_tensor_type *types;     // [result_count]
};

// ---- pt2_importer.c
PEN_NODISCARD pen_status pen_pt2_scope_init(pen_pt2_scope *scope, const pen_pt2_graph_part *graph,
                                            pen_arena *arena);
// NULL when the scope has none of that name.
pen_pt2_slot *pen_pt2_scope_find(const pen_pt2_scope *scope, const char *name);
const pen_pt2_known_symbol *pen_pt2_scope_symbol(const pen_pt2_scope *scope, const char *name);
// INVALID_INPUT: the name is there already.
PEN_NODISCARD pen_status pen_pt2_scope_bind(pen_pt2_scope *scope, const char *name,
                                            pen_pt2_slot *slot);
PEN_NODISCARD pen_status pen_pt2_scope_bind_symbol(pen_pt2_scope *scope, const char *name,
                                                   const pen_pt2_known_symbol *symbol);
// All nodes of the scope's graph, in order.
PEN_NODISCARD pen_status pen_pt2_importer_walk(pen_pt2_importer *import, pen_pt2_scope *scope);
// A draft of a node, its results not being there yet. `first` as in the draft. UNSUPPORTED: there
// is no row for its operator.
PEN_NODISCARD pen_status pen_pt2_draft_begin(pen_pt2_importer *import, pen_pt2_scope *scope,
                                             const pen_pt2_node *node, pen_value_id first,
                                             pen_pt2_draft *out_draft);
// What comes of a draft, of which a function of its row returned `status`: a mistake in an argument
// counts before that.
PEN_NODISCARD pen_status pen_pt2_draft_end(const pen_pt2_draft *draft, pen_status status);
// Runs the conversion of a node. Writes draft->results.
PEN_NODISCARD pen_status pen_pt2_importer_convert(pen_pt2_importer *import, pen_pt2_scope *scope,
                                                  const pen_pt2_node *node, pen_value_id first,
                                                  pen_pt2_draft *out_draft);
// Notes the element of a value, and finds it: unknown where it is not known.
PEN_NODISCARD pen_status pen_pt2_importer_note(pen_pt2_importer *import, pen_value_id value,
                                               pen_element_type element);
pen_element_type pen_pt2_importer_element(const pen_pt2_importer *import, pen_value_id value);
// "net.0/conv2d", the name of what a node adds.
PEN_NODISCARD pen_status pen_pt2_importer_name(const pen_pt2_importer *import,
                                               const pen_pt2_node *node, const char **out_name);

// ---- pt2_storage.c
// A base of its own.
PEN_NODISCARD pen_status pen_pt2_slot_new(pen_pt2_importer *import, const char *name,
                                          const pen_pt2_tensor_meta *meta, pen_value_id value,
                                          pen_pt2_slot **out_slot);
// A view that result `result` of the draft's node is of tensor argument 0 of it, `parent`.
PEN_NODISCARD pen_status pen_pt2_slot_new_view(const pen_pt2_draft *draft, uint32_t result,
                                               pen_pt2_slot *parent, pen_value_id value,
                                               pen_pt2_slot **out_slot);
// Its value as it is now.
PEN_NODISCARD pen_status pen_pt2_slot_read(pen_pt2_importer *import, pen_pt2_slot *slot,
                                           pen_value_id *out_value);
// Changes it in place, and with it its base and whatever else shows that.
PEN_NODISCARD pen_status pen_pt2_slot_write(pen_pt2_importer *import, pen_pt2_slot *slot,
                                            pen_value_id value);

// ---- pt2_sources.c
// Makes parameters, buffers and inputs, those that are read, and binds their names.
PEN_NODISCARD pen_status pen_pt2_sources_make(pen_pt2_importer *import);
// When all nodes are there: what buffers have become takes their place.
PEN_NODISCARD pen_status pen_pt2_sources_finish(pen_pt2_importer *import);
// What a symbol of the file is called in the graph: the first size of the first input "batch".
const char *pen_pt2_sources_symbol(const pen_pt2_importer *import, const char *name);
// The symbol of a graph that a formula is the name of; PEN_DIMENSION_UNKNOWN: it is none.
int64_t pen_pt2_sources_dimension(const pen_pt2_importer *import, const char *formula);

// ---- pt2_nested.c
// Whether an operator is one that has a graph as argument.
bool pen_pt2_is_nested(const pen_pt2_node *node);
PEN_NODISCARD pen_status pen_pt2_nested_import(pen_pt2_importer *import, pen_pt2_scope *scope,
                                               const pen_pt2_node *node);

// ---- pt2_coverage.c
// UNSUPPORTED: lists the operators of the model that Penstock has not.
PEN_NODISCARD pen_status pen_pt2_coverage_check(const pen_pt2_model *model, pen_arena *arena);

#endif // PEN_GRAPH_IMPORT_PYTORCH_PT2_IMPORTER_H
