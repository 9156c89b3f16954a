// Parameters that stay as they are: those whose names match. A batch normalization whose running
// statistics both match uses them and leaves them as they are, too.
#ifndef PEN_GRAPH_PASSES_GRADIENT_FREEZE_MATCHING_H
#define PEN_GRAPH_PASSES_GRADIENT_FREEZE_MATCHING_H

#include <stdbool.h>

#include "base/status.h"
#include "graph/graph_types.h"

// `pattern` is a POSIX extended regular expression; NULL: nothing is frozen. Before shapes are
// inferred.
//   INVALID_INPUT  it is no regular expression
//   NOT_FOUND      no parameter matches
//   UNSUPPORTED    the model uses a statistic that only training gives
PEN_NODISCARD pen_status pen_freeze_matching(pen_graph *graph, const char *pattern);

// The same of values that are chosen otherwise, [value_count].
PEN_NODISCARD pen_status pen_freeze_values(pen_graph *graph, const bool *is_frozen);

#endif // PEN_GRAPH_PASSES_GRADIENT_FREEZE_MATCHING_H
