// TensorFlow out: writes a model that came from TensorFlow as a frozen graph, with the contents it
// has now.
//
// What is written is what the outputs depend on: functions in the place of their calls, branches
// that are not taken left out, variables as constants. Nodes keep their names, so that who reads
// the graph finds its inputs and outputs where they were; an output that was a call's becomes an
// Identity of that name.
#ifndef PEN_GRAPH_IMPORT_TENSORFLOW_GRAPHDEF_EXPORT_H
#define PEN_GRAPH_IMPORT_TENSORFLOW_GRAPHDEF_EXPORT_H

#include "base/status.h"
#include "graph/import/export_contents.h"
#include "graph/import/import.h"

typedef struct pen_graphdef_export_options {
    pen_export_contents contents;
    // The device of a node of the graph: as it is to stand there, "/job:b", or a name, which is
    // written as a job's. NULL, or returning NULL: as it was.
    const char *(*device)(void *context, const char *node_name);
    void *device_context;
} pen_graphdef_export_options;

// Writes `path`, atomically; NULL: only looks whether the model can be written. `options` may be
// NULL.
//   UNSUPPORTED    the model did not come from TensorFlow
//   INVALID_INPUT  its contents are more than a protobuf can hold
//   NOT_FOUND, IO, OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_graphdef_export(const pen_model *model,
                                             const pen_graphdef_export_options *options,
                                             const char *path);

#endif // PEN_GRAPH_IMPORT_TENSORFLOW_GRAPHDEF_EXPORT_H
