#include "graph/node_blame.h"

#include <stdio.h>

#include "graph/element.h"
#include "graph/op.h"

#define BLAME_BYTES 256 // of names; the rest are left out

pen_status pen_node_blame(const pen_graph *graph, const pen_node *node, pen_status status) {
    char names[BLAME_BYTES] = "";
    size_t used = 0;
    const bool is_data = pen_status_get_code(status) == PEN_INVALID_INPUT;
    for (uint32_t i = 0; is_data && i < node->input_count && used < sizeof names; i++) {
        if (!pen_value_is(node->inputs[i])) continue;
        if (!pen_element_is_integer(pen_value_type(graph, node->inputs[i])->element)) continue;
        const int length =
            snprintf(names + used, sizeof names - used, "%s'%s'",
                     used == 0 ? ", which reads " : ", ", pen_value_name(graph, node->inputs[i]));
        if (length < 0 || (size_t)length >= sizeof names - used) {
            names[used] = '\0';
            break;
        }
        used += (size_t)length;
    }
    return pen_status_add_context(status, "while running %s '%s'%s", node->op->name, node->name,
                                  names);
}
