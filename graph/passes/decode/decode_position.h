// Makes of a model that looks back only a graph that computes one position.
//
//   token      [1, 1]  in the place of the input [1, sequence]
//   position   int64 [1], which one it is
//   <k>/kept   a state of the whole shape for each value of which earlier positions are read; the
//              graph writes its position into it and reads the positions up to it
//
// Everything that has positions has one, but what is the same for every input and read by all.
#ifndef PEN_GRAPH_PASSES_DECODE_DECODE_POSITION_H
#define PEN_GRAPH_PASSES_DECODE_DECODE_POSITION_H

#include "base/status.h"
#include "graph/analysis/causality.h"
#include "graph/graph_types.h"

typedef struct pen_decoding {
    pen_graph *graph;
    const pen_value_id *values; // [value_count of the old graph]: what each became; NONE
    pen_value_id position;
    const pen_value_id *states; // [kept_count of the causality], of its kept ones; lives in `graph`
} pen_decoding;

// `causality` is what was found for the request. The only output is that of the request.
//   UNSUPPORTED  a node that reads earlier positions cannot be told for one; says which, and why
PEN_NODISCARD pen_status pen_decode_position(const pen_graph *graph,
                                             const pen_causality_request *request,
                                             const pen_causality *causality,
                                             pen_decoding *out_decoding);

#endif // PEN_GRAPH_PASSES_DECODE_DECODE_POSITION_H
