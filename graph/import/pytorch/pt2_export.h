// The way home: the `.pt2` file that a model was read from, with the contents that its parameters
// and buffers have now. All else stays as it is, byte for byte, but for the checksums of what
// changed; so `torch.export.load` takes it, and goes on from there.
//
// Weights of 16 bits, which are float32 here, are rounded back to their own type.
#ifndef PEN_GRAPH_IMPORT_PYTORCH_PT2_EXPORT_H
#define PEN_GRAPH_IMPORT_PYTORCH_PT2_EXPORT_H

#include "base/status.h"
#include "graph/import/export_contents.h"
#include "graph/import/import.h"
#include "graph/import/pytorch/pt2_weights.h"
#include "graph/import/stored_zip.h"

// What a model remembers of the file that it came from. Lives in the model's arena.
typedef struct pen_pt2_origin {
    pen_stored_zip archive;
    pen_pt2_weights weights;
} pen_pt2_origin;

typedef struct pen_pt2_export_options {
    pen_export_contents contents;
} pen_pt2_export_options;

// Writes `path`, atomically; NULL: only looks whether the model can be written. `options` may be
// NULL.
//   UNSUPPORTED  the model did not come from a .pt2 file
//   NOT_FOUND, IO, OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_pt2_export(const pen_model *model,
                                        const pen_pt2_export_options *options, const char *path);

#endif // PEN_GRAPH_IMPORT_PYTORCH_PT2_EXPORT_H
