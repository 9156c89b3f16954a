// The opposite of fuse_layers, for formats that do not have our operators: each becomes the nodes
// that exporters write for it, in operators that ONNX has had since operator set 13.
//
//   gelu, swish, and what the format gives spellings of; rms_normalization; layer_normalization
//   without a scale; group_normalization, by way of instance_normalization; lstm, gru and rnn whose
//   examples come first (layout 1), which ONNX Runtime refuses, between transposes
//
// Types need not be known; where the axis of a normalisation counts from the first dimension and
// the rank is not known, the node stays. The result keeps its name.
#ifndef PEN_GRAPH_PASSES_FUSE_SPELL_LAYERS_H
#define PEN_GRAPH_PASSES_FUSE_SPELL_LAYERS_H

#include <stdint.h>

#include "base/status.h"
#include "graph/graph_types.h"

#define PEN_SPELLING_LIMIT 3

// How a format without an op of one operand writes it.
typedef struct pen_spelling {
    const char *op_name;
    const char *chain[PEN_SPELLING_LIMIT]; // ops of one operand, one behind the other
    const char *with; // then the op of x and that; NULL: the end of the chain is the result
} pen_spelling;

// With `spellings`, [count]. *out_graph is `graph` itself where there is nothing to spell, else a
// new graph in the same arena, whose values have the same names. OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_spell_layers(const pen_graph *graph, const pen_spelling *spellings,
                                          uint32_t count, const pen_graph **out_graph);

#endif // PEN_GRAPH_PASSES_FUSE_SPELL_LAYERS_H
