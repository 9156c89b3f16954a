// The contract of the readers of JSON of a `.pt2` file, a value at a time: members of objects with
// the form that they must have, and what PyTorch says of a tensor.
//
// Lifetime: borrows the JSON; texts are copied into the arena given.
// Threads:  any.
#ifndef PEN_GRAPH_IMPORT_PYTORCH_PT2_JSON_H
#define PEN_GRAPH_IMPORT_PYTORCH_PT2_JSON_H

#include <jansson.h>

#include "base/arena.h"
#include "base/status.h"
#include "graph/import/pytorch/pt2_model.h"

// Member `key` of an object, of a type: JSON_OBJECT, say.
//   CORRUPT  `from` is no object, or has no such member of that type
PEN_NODISCARD pen_status pen_pt2_json_get(const json_t *from, const char *key, json_type type,
                                          const json_t **out_value);
// The only member of an object: PyTorch writes what may be of several kinds as {"as_int": 1}.
// CORRUPT
PEN_NODISCARD pen_status pen_pt2_json_union(const json_t *from, const char **out_key,
                                            const json_t **out_value);
// A text of at most PEN_NAME_BYTES_LIMIT bytes. CORRUPT, OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_pt2_json_text(const json_t *value, pen_arena *arena,
                                           const char **out_text);
// The same of member `key`.
PEN_NODISCARD pen_status pen_pt2_json_name(const json_t *from, const char *key, pen_arena *arena,
                                           const char **out_text);
// Reads {"dtype": 7, "sizes": [{"as_int": 4}, …], …}.
//   CORRUPT, OUT_OF_MEMORY
//   UNSUPPORTED  more than PEN_RANK_LIMIT dimensions
PEN_NODISCARD pen_status pen_pt2_json_tensor(const json_t *from, pen_arena *arena,
                                             pen_pt2_tensor_meta *out_meta);
// One argument of a node, or what an output is: {"as_tensor": {"name": "x"}}.
PEN_NODISCARD pen_status pen_pt2_json_argument(const json_t *from, pen_arena *arena,
                                               pen_pt2_argument *out_argument);

// A graph with its nodes and what is known of its tensors and symbols (pt2_graph.c).
PEN_NODISCARD pen_status pen_pt2_json_graph(const json_t *from, pen_arena *arena,
                                            pen_pt2_graph_part *out_graph);

#endif // PEN_GRAPH_IMPORT_PYTORCH_PT2_JSON_H
