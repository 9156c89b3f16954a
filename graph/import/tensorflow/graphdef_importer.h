// The contract of what builds: one block of nodes on its way to a graph, the model's or that of a
// loop. Each group below names the file that it is in.
//
// A loop's list is imported once for each round. What does not change between rounds (constants,
// and what is made of them and of arguments that stay) is imported once.
//
// Lifetime: in the model's arena.
// Threads:  one thread at a time.
#ifndef PEN_GRAPH_IMPORT_TENSORFLOW_GRAPHDEF_IMPORTER_H
#define PEN_GRAPH_IMPORT_TENSORFLOW_GRAPHDEF_IMPORTER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/pattern.h"
#include "graph/import/tensorflow/graphdef_block.h"
#include "graph/import/tensorflow/graphdef_convert.h"
#include "graph/import/tensorflow/graphdef_import.h"

// Shared by all lists.
typedef struct pen_graphdef_totals {
    pen_pattern *unfreeze; // or NULL
    uint32_t unfrozen_count;
    uint64_t splat_bytes;
    uint64_t round_nodes; // nodes of loops' rounds so far
    uint64_t round_bytes; // what the rounds add to their names
    pen_graphdef_origin *origin;
    pen_graphdef_pins pins;
} pen_graphdef_totals;

typedef struct pen_graphdef_importer {
    pen_graphdef_totals *totals;
    const pen_graphdef_request *request;
    pen_arena *arena;
    const char *path;
    pen_graph *graphs[PEN_GRAPHDEF_COPIES];
    bool is_inner; // a loop's or a conditional's
    const pen_graphdef_block *block;
    const char *prefix;             // of the names of nodes, of inner lists
    const char *prefix_kept;        // of those that stay
    bool *is_kept;                  // [flat's count], inner: imported once for all rounds
    uint32_t *result_counts;        // [flat's count]
    pen_graphdef_result ***results; // [flat's count][result_counts]
    bool *is_statistic;             // [flat's count]
} pen_graphdef_importer;

// ---- graphdef_sources.c: what the model brings

PEN_NODISCARD pen_status pen_graphdef_import_constant(pen_graphdef_importer *import, uint32_t n);
PEN_NODISCARD pen_status pen_graphdef_import_variable(pen_graphdef_importer *import, uint32_t n);
// `name`: the model's for it; NULL: the node's.
PEN_NODISCARD pen_status pen_graphdef_import_input(pen_graphdef_importer *import, uint32_t n,
                                                   const char *name);
// The size of a batch in the trials.
int64_t pen_graphdef_trial_batch(uint32_t trial);

// ---- graphdef_importer.c

// Results for all nodes, none of them made.
PEN_NODISCARD pen_status pen_graphdef_importer_init(pen_graphdef_importer *import);
// Fresh results of one node.
PEN_NODISCARD pen_status pen_graphdef_importer_renew(pen_graphdef_importer *import, uint32_t n);
// Imports one node of the list, unless it is there.
PEN_NODISCARD pen_status pen_graphdef_importer_at(pen_graphdef_importer *import, uint32_t n);
// What `input` names.
PEN_NODISCARD pen_status pen_graphdef_importer_operand(pen_graphdef_importer *import,
                                                       const pen_graphdef_input *input,
                                                       pen_graphdef_result **out_operand);

// ---- graphdef_control.c

// Puts a loop's rounds, or the branch taken, in the place of node `n`, which `draft` is of.
//   UNSUPPORTED  the rounds, or the branch, depend on data or on a size that the model leaves open
PEN_NODISCARD pen_status pen_graphdef_control_convert(pen_graphdef_importer *import, uint32_t n,
                                                      pen_graphdef_draft *draft);

// ---- graphdef_recurrent.c

// One loop whose unchanging nodes are imported.
typedef struct pen_graphdef_rounds {
    const pen_graphdef_control *control;
    pen_graphdef_importer *round;        // of its body
    const bool *is_kept;                 // [arguments], which of them stay
    pen_graphdef_result *const *initial; // [arguments]
} pen_graphdef_rounds;

// Makes an lstm, a gru or an rnn of a loop that is one. *out_is_one: it was; then the draft's
// results are there.
PEN_NODISCARD pen_status pen_graphdef_recurrent_convert(const pen_graphdef_rounds *rounds,
                                                        pen_graphdef_draft *draft,
                                                        bool *out_is_one);

#endif // PEN_GRAPH_IMPORT_TENSORFLOW_GRAPHDEF_IMPORTER_H
