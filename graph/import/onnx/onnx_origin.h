// What a file of PyTorch's exporter says of where its values come from, in metadata.
//
// The exporter notes the parameters and buffers that the model had (graph_signature), which values
// are these (InputSpec.kind, where there is no signature), and what its optimizer has computed from
// them (folded_from). A file may have been changed since: what it says is compared with what it
// has.
//
// Lifetime: lives in the arena given.
// Threads:  filled in by one thread.
#ifndef PEN_GRAPH_IMPORT_ONNX_ONNX_ORIGIN_H
#define PEN_GRAPH_IMPORT_ONNX_ONNX_ORIGIN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/format/protobuf_reader.h"
#include "base/name_map.h"
#include "base/status.h"
#include "graph/import/onnx/onnx_entry.h"

// A tensor that the model had when it was exported.
typedef struct pen_onnx_target {
    const char *name;  // "blocks.0.qkv.weight"
    bool is_parameter; // else a buffer, or a constant
    bool is_updated;   // a buffer that a run of the model changes: it was exported for training
    bool is_found;     // the file has it; set by the importer
    const char *folded_into; // a value that was computed from it; NULL: none
} pen_onnx_target;

// A value that the exporter has computed.
typedef struct pen_onnx_computed {
    const char *name;
    uint32_t source_count;
    uint32_t parameter_count; // of the sources
    const char *parameter;    // the first of these; or NULL
} pen_onnx_computed;

typedef struct pen_onnx_origins {
    pen_arena *arena;
    bool is_marked; // the file says what its parameters are
    bool is_signed; // and those of the model, too
    pen_onnx_target *targets;
    uint32_t target_count, target_capacity;
    pen_name_map target_index;
    pen_onnx_computed *computed;
    uint32_t computed_count, computed_capacity;
    pen_name_map computed_index;
} pen_onnx_origins;

// Reads the metadata of a GraphProto. What is of another form than expected is passed over.
//   CORRUPT, OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_onnx_origins_read(const pen_protobuf_reader *graph, pen_arena *arena,
                                               pen_onnx_origins *out_origins);

// Looks in an entry of a node's metadata for PyTorch's call of an embedding: which row of the table
// gets no gradient (padding_idx). Leaves both alone where it says nothing of it.
void pen_onnx_origin_read_padding(const pen_onnx_entry *entry, bool *out_has_padding,
                                  int64_t *out_row);

// NULL when the file says nothing of a value of that name.
pen_onnx_target *pen_onnx_origins_target(const pen_onnx_origins *origins, const char *name);
const pen_onnx_computed *pen_onnx_origins_computed(const pen_onnx_origins *origins,
                                                   const char *name);

#endif // PEN_GRAPH_IMPORT_ONNX_ONNX_ORIGIN_H
