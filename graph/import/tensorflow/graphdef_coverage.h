// Lists all that cannot be imported of a TensorFlow graph, before anything is built.
//
// Threads: one thread at a time.
#ifndef PEN_GRAPH_IMPORT_TENSORFLOW_GRAPHDEF_COVERAGE_H
#define PEN_GRAPH_IMPORT_TENSORFLOW_GRAPHDEF_COVERAGE_H

#include "base/arena.h"
#include "base/status.h"
#include "graph/import/tensorflow/graphdef_block.h"
#include "graph/import/tensorflow/graphdef_import.h"

// UNSUPPORTED: lists operators that have no entry in the table, conditionals whose predicate is
// not constant, and inputs of types that Penstock has not, once each, with count and a node.
PEN_NODISCARD pen_status pen_graphdef_coverage_check(const pen_graphdef_request *request,
                                                     const pen_graphdef_block *block,
                                                     pen_arena *arena);

// Whether the node is a variable, of either generation.
bool pen_graphdef_is_variable(const pen_graphdef_node *node);

#endif // PEN_GRAPH_IMPORT_TENSORFLOW_GRAPHDEF_COVERAGE_H
