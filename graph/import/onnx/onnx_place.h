// Metadata of ONNX nodes that says where a plan runs them.
//
// Nodes have metadata since ONNX 1.16, later than the models that are written here are of: readers
// that do not know it pass it over.
#ifndef PEN_GRAPH_IMPORT_ONNX_ONNX_PLACE_H
#define PEN_GRAPH_IMPORT_ONNX_ONNX_PLACE_H

#include "base/format/protobuf_writer.h"
#include "graph/import/node_places.h"

#define PEN_ONNX_DEVICE_KEY "penstock.device"
#define PEN_ONNX_STAGE_KEY "penstock.stage"

// Within a NodeProto. NULL: nothing is written.
void pen_onnx_write_place(pen_protobuf_writer *writer, const pen_node_place *place);

#endif // PEN_GRAPH_IMPORT_ONNX_ONNX_PLACE_H
