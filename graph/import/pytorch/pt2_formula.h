// Sizes that a file gives as formulas of symbols: "Mul(Integer(2), Symbol('s77', integer=True))".
//
// Lifetime: as the draft.
// Threads:  one thread at a time.
#ifndef PEN_GRAPH_IMPORT_PYTORCH_PT2_FORMULA_H
#define PEN_GRAPH_IMPORT_PYTORCH_PT2_FORMULA_H

#include <stdbool.h>

#include "base/status.h"
#include "graph/import/pytorch/pt2_convert.h"

// Computes a formula in the graph, as an int64 value without dimensions: from a symbol that a node
// has computed, or from the sizes of the model's inputs.
//   UNSUPPORTED  it has a function that is not known here, or a symbol that no input has
PEN_NODISCARD pen_status pen_pt2_formula_emit(pen_pt2_draft *draft, const char *formula,
                                              pen_value_id *out_value);

// Whether a formula is one symbol, and its name.
#define PEN_PT2_SYMBOL_BYTES 64
bool pen_pt2_formula_is_symbol(const char *formula, char out_name[PEN_PT2_SYMBOL_BYTES]);

#endif // PEN_GRAPH_IMPORT_PYTORCH_PT2_FORMULA_H
