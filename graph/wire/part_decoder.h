// The state of reading a part, and its pieces. For part_decode*.c and part_decoder.c.
//
// Values and nodes are walked side by side, as they were made: a node's outputs are the next
// values, and what it reads that is not computed stands before them. All functions return CORRUPT
// or an error that part_decode.c turns into it, or OUT_OF_MEMORY.
#ifndef PEN_GRAPH_WIRE_PART_DECODER_H
#define PEN_GRAPH_WIRE_PART_DECODER_H

#include <stdbool.h>

#include "base/format/protobuf_reader.h"
#include "graph/attribute.h"
#include "graph/graph.h"

#define PART_ATTRIBUTES_LIMIT 64u // of one node

typedef struct part_decoder {
    pen_arena *arena;
    pen_arena *scratch;
    pen_arena *node_scratch;    // in its place, for one node at a time
    pen_protobuf_reader values; // of the part, up to the next value
    pen_graph *graph;
    uint32_t file_count;
    const char **files;
    pen_value_id *inputs; // [PEN_NODE_ARITY_LIMIT], of the node at hand
    pen_value_id *outputs;
    const char **output_names;
    uint32_t *numbers;               // [PEN_NODE_ARITY_LIMIT]
    pen_attribute_given *attributes; // [PART_ATTRIBUTES_LIMIT]
} part_decoder;

// A value as read, with what becomes of it only in the graph.
typedef struct part_decoded_value {
    pen_value value;
    uint32_t replaces; // one more than it is
    bool has_contents;
    bool has_data;
} part_decoded_value;

// ---- numbers and positions

// At most `limit`; `what` it is, for the error.
PEN_NODISCARD pen_status pen_part_decode_uint(const pen_protobuf_reader *reader,
                                              const pen_protobuf_field *field, uint32_t limit,
                                              const char *what, uint32_t *out_number);
// Numbers of one field, packed or not, into `numbers` [limit] from *count on.
PEN_NODISCARD pen_status pen_part_decode_uints(const pen_protobuf_reader *reader,
                                               const pen_protobuf_field *field, const char *what,
                                               uint32_t limit, uint32_t *numbers, uint32_t *count);
// How many numbers fields `number` of the rest of the message hold.
PEN_NODISCARD pen_status pen_part_count_scalars(const pen_protobuf_reader *message, uint32_t number,
                                                pen_protobuf_wire wire, uint32_t *out_count);
PEN_NODISCARD pen_status pen_part_decode_position(const part_decoder *d,
                                                  const pen_protobuf_reader *reader,
                                                  const pen_protobuf_field *given,
                                                  pen_source *out_source);

// ---- values and nodes

// The next value of the part: an error when there is none.
PEN_NODISCARD pen_status pen_part_decode_value(part_decoder *d, part_decoded_value *out_value);
// Adds values that are not computed until there are `count`.
PEN_NODISCARD pen_status pen_part_decode_values_until(part_decoder *d, uint32_t count);
// Adds the node in field `given`, what it reads before it, and what it makes.
PEN_NODISCARD pen_status pen_part_decode_node(part_decoder *d, const pen_protobuf_reader *reader,
                                              const pen_protobuf_field *given);

#endif // PEN_GRAPH_WIRE_PART_DECODER_H
