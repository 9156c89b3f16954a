// Lets readers of a dropout that drops nothing, by its ratio or outside of training, read what it
// passes on: it costs a copy and a mask, and hides what it stands between.
#ifndef PEN_GRAPH_PASSES_SKIP_DROPOUT_H
#define PEN_GRAPH_PASSES_SKIP_DROPOUT_H

#include "base/status.h"
#include "graph/graph_types.h"

// Changes nodes of a graph whose constants are folded; dropouts that nobody reads any more stay,
// for remove_dead. OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_skip_dropout(pen_graph *graph);

#endif // PEN_GRAPH_PASSES_SKIP_DROPOUT_H
