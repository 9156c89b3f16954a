// What operators share whose results are elements of their operands.
//
// Threads: as the draft.
#ifndef PEN_GRAPH_IMPORT_PYTORCH_OPS_PT2_MOVEMENT_H
#define PEN_GRAPH_IMPORT_PYTORCH_OPS_PT2_MOVEMENT_H

#include "graph/import/pytorch/pt2_convert.h"

// `x` under the shape that the file has for a result. `suffix` as of pen_pt2_emit.
PEN_NODISCARD pen_status pen_pt2_reshape_to(pen_pt2_draft *draft, const char *suffix,
                                            pen_value_id x, uint32_t result,
                                            pen_value_id *out_value);

#endif // PEN_GRAPH_IMPORT_PYTORCH_OPS_PT2_MOVEMENT_H
