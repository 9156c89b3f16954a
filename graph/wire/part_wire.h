// The contract of this folder: a part as bytes, and back.
//
// A part (graph/passes/cut/cut_stages.h) as bytes, and back: what a worker is told to run.
//
// The bytes are protobuf messages, those of part.proto. They have the graph with types, layouts,
// attributes, names and positions in the user's model, the lists, and which values are the ends of
// channels. Contents of parameters and states, and of constants that are large, do not travel with
// them: such a value arrives without data but with their number of bytes, and whoever receives a
// part gets the contents by name. A large constant arrives as a parameter that is not trained.
//
// Threads: pure functions of their arguments.
#ifndef PEN_GRAPH_WIRE_PART_WIRE_H
#define PEN_GRAPH_WIRE_PART_WIRE_H

#include "base/record/record.h"
#include "graph/graph.h"
#include "graph/passes/cut/cut_stages.h"

// Where a channel begins or ends in a part.
typedef struct pen_part_end {
    uint32_t channel;
    pen_value_id value;
    bool is_source; // sent; else received or, where the value is an input, fed
} pen_part_end;

typedef struct pen_wired_part {
    pen_part part;
    uint32_t end_count;
    const pen_part_end *ends; // [end_count], by channel
} pen_wired_part;

// Which values of a part are constants that are too large to go with it: they arrive as parameters
// whose contents are to be sent. [value_count], in `arena`. OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_part_find_apart(const pen_graph *graph, pen_arena *arena,
                                             const bool **out_is_apart);

// Its fields: the messages of part.proto.
extern const pen_record pen_part_record;

// Equal parts give equal bytes, whatever the machine. Bytes live in the arena.
//   UNSUPPORTED  more than PEN_PART_BYTES_LIMIT
//   OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_part_encode(const pen_wired_part *part, pen_arena *arena,
                                         const void **out_bytes, uint64_t *out_byte_count);

// Trusts nothing: the part is whole, its graph is verified, every type is inferred anew, what lists
// read is made before, ends are those of its transfer nodes. Lives in the arena and borrows
// nothing.
//   CORRUPT  says what does not hold, and of which node or value
//   OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_part_decode(const void *bytes, uint64_t byte_count, pen_arena *arena,
                                         const pen_wired_part **out_part);

#endif // PEN_GRAPH_WIRE_PART_WIRE_H
