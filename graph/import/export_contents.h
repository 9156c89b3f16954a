// Where exporters get contents from that a model has not itself: what was trained.
#ifndef PEN_GRAPH_IMPORT_EXPORT_CONTENTS_H
#define PEN_GRAPH_IMPORT_EXPORT_CONTENTS_H

#include "graph/graph.h"

typedef struct pen_export_contents {
    // The contents of a parameter or state, of the bytes of its type; NULL for those it has in the
    // graph. Called more than once for a value; the same must be returned. NULL: all have theirs.
    const void *(*find)(void *context, const pen_graph *graph, pen_value_id value);
    void *context;
} pen_export_contents;

// What was found for a value; NULL: nothing was.
static inline const void *pen_export_contents_find(const pen_export_contents *contents,
                                                   const pen_graph *graph, pen_value_id value) {
    if (contents->find == NULL) return NULL;
    if (pen_graph_value(graph, value)->kind == PEN_VALUE_CONSTANT) return NULL;
    return contents->find(contents->context, graph, value);
}

#endif // PEN_GRAPH_IMPORT_EXPORT_CONTENTS_H
