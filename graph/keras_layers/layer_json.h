// Objects of JSON as trees of YAML nodes, so that option tables read both.
//
// Members that are null are left out; texts are quoted scalars; numbers, true and false are plain
// ones, numbers with every digit that tells them apart.
//
// Lifetime: the tree lives in the arena, and does not need the JSON value any more.
// Threads:  any.
#ifndef PEN_GRAPH_KERAS_LAYERS_LAYER_JSON_H
#define PEN_GRAPH_KERAS_LAYERS_LAYER_JSON_H

#include "base/arena.h"
#include "base/format/json_reader.h"
#include "base/format/yaml_reader.h"
#include "base/status.h"

// `file` is the name in messages; it is copied. Positions are line 0: JSON values do not know where
// they stood.
//   INVALID_INPUT  nested deeper than PEN_NESTING_LIMIT
//   OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_layer_node_from_json(const json_t *value, const char *file,
                                                  pen_arena *arena, const pen_yaml_node **out_node);

#endif // PEN_GRAPH_KERAS_LAYERS_LAYER_JSON_H
