// Where exporters get contents from that a model has not itself: what was trained. And the element
// types that they are written in: that of the graph, or, of weights that were read from 16 bits,
// that again.
#ifndef PEN_GRAPH_IMPORT_EXPORT_CONTENTS_H
#define PEN_GRAPH_IMPORT_EXPORT_CONTENTS_H

#include <stdbool.h>

#include "base/system/file.h"
#include "graph/graph.h"

// What weights that were read from float16 or bfloat16 are written as.
typedef enum pen_export_types {
    PEN_EXPORT_TYPES_AUTO,    // float32 in ONNX; what the model came in keeps its types
    PEN_EXPORT_TYPES_FLOAT32, // as they were trained
    PEN_EXPORT_TYPES_OWN,     // as they were read, rounded to nearest even
} pen_export_types;
extern const char *const pen_export_types_names[]; // as in a job, ended by NULL

typedef struct pen_export_contents {
    // The contents of a parameter or state, of the bytes of its type; NULL for those it has in the
    // graph. Called more than once for a value; the same must be returned. NULL: all have theirs.
    const void *(*find)(void *context, const pen_graph *graph, pen_value_id value);
    void *context;
    // Parameters and states that were read from float16 or bfloat16 are written so.
    bool keeps_halves;
} pen_export_contents;

// What was found for a value; NULL: nothing was.
const void *pen_export_contents_find(const pen_export_contents *contents, const pen_graph *graph,
                                     pen_value_id value);

// What is written of a value.
typedef struct pen_export_tensor {
    pen_tensor_type type;  // as it is written
    const void *data;      // NULL: zeros
    pen_element_type from; // of `data`
} pen_export_tensor;

// What was found, or what the graph has.
pen_export_tensor pen_export_contents_tensor(const pen_export_contents *contents,
                                             const pen_graph *graph, pen_value_id value);

// Writes `bytes` of it from byte `first` on, both of whole elements. What gets another type is
// rounded to nearest even.
void pen_export_tensor_copy(const pen_export_tensor *tensor, uint64_t first, void *out,
                            uint64_t bytes);
// All of it, behind what the file has. IO
PEN_NODISCARD pen_status pen_export_tensor_write(const pen_export_tensor *tensor, pen_file *file);

#endif // PEN_GRAPH_IMPORT_EXPORT_CONTENTS_H
