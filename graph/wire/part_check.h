// What must hold of a part that came as bytes, besides that its graph is sound. For part_decode.c.
#ifndef PEN_GRAPH_WIRE_PART_CHECK_H
#define PEN_GRAPH_WIRE_PART_CHECK_H

#include "graph/wire/part_record.h"

// Lists cover the order, which has every node once but send and receive nodes, each after what it
// reads; each channel ends here once. CORRUPT names what does not hold.
// `graph` is the record's, verified. Lives in `arena`.
PEN_NODISCARD pen_status pen_part_check(const part_record *record, pen_graph *graph,
                                        pen_arena *arena, pen_arena *scratch,
                                        pen_wired_part *out_part);

#endif // PEN_GRAPH_WIRE_PART_CHECK_H
