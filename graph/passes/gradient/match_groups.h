// Which group of the optimizer's a parameter is of: the first whose pattern its name matches. A
// slice of a parameter is of the group of the whole.
#ifndef PEN_GRAPH_PASSES_GRADIENT_MATCH_GROUPS_H
#define PEN_GRAPH_PASSES_GRADIENT_MATCH_GROUPS_H

#include <stdint.h>

#include "base/arena.h"
#include "graph/graph_types.h"
#include "graph/ops/training/optimizer.h"

// Of each value, `arena` has the number of its group, or PEN_ID_NONE.
//   INVALID_INPUT  a pattern is no regular expression; *out_group says whose
PEN_NODISCARD pen_status pen_match_groups(const pen_graph *graph, const pen_optimizer *optimizer,
                                          pen_arena *arena, const uint32_t **out_group_of,
                                          uint32_t *out_group);

// Whether each group has a parameter.
//   INVALID_INPUT  all that match its pattern belong to others
//   NOT_FOUND      none matches. *out_group says whose
PEN_NODISCARD pen_status pen_check_groups(const pen_graph *graph, const pen_optimizer *optimizer,
                                          pen_arena *arena, uint32_t *out_group);

// Parameters of groups that freeze stay as they are, and a batch normalization whose running
// statistics both are of such a group uses them. Before shapes are inferred.
//   INVALID_INPUT  a pattern is no regular expression
//   UNSUPPORTED    the model uses a statistic that only training gives
PEN_NODISCARD pen_status pen_freeze_groups(pen_graph *graph, const pen_optimizer *optimizer,
                                           pen_arena *arena, uint32_t *out_group);

#endif // PEN_GRAPH_PASSES_GRADIENT_MATCH_GROUPS_H
