// What must hold of a part that came as bytes, besides that its graph is sound. For part_decode.c.
#ifndef PEN_GRAPH_WIRE_PART_CHECK_H
#define PEN_GRAPH_WIRE_PART_CHECK_H

#include "graph/wire/part_wire.h"

// As read, and not looked at: indices may be anything.
typedef struct part_claims {
    pen_graph *graph; // verified
    const pen_part_list *lists;
    uint32_t list_count;
    const uint32_t *order; // nodes
    uint32_t order_count;
    const uint32_t *kept; // values
    uint32_t kept_count;
    const pen_part_end *fed;
    uint32_t fed_count;
} part_claims;

// Lists cover the order, which has every node once but send and receive nodes, each after what it
// reads; each channel ends here once. CORRUPT names what does not hold.
PEN_NODISCARD pen_status pen_part_check(const part_claims *claims, pen_arena *arena,
                                        pen_arena *scratch, pen_wired_part *out_part);

#endif // PEN_GRAPH_WIRE_PART_CHECK_H
