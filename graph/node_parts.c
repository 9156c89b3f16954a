#include "graph/node_parts.h"

#include "graph/graph.h"

void pen_node_spec_fill(pen_node_spec *spec, pen_node_inputs inputs,
                        pen_node_attributes attributes) {
    spec->inputs = inputs.values;
    spec->input_count = inputs.count;
    spec->attributes = attributes.given;
    spec->attribute_count = attributes.count;
}
