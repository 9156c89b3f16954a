// An entry of metadata in an ONNX file: a key and a value. Nodes, values, graphs and models have
// lists of them.
//
// Lifetime: texts are borrowed from the file.
// Threads:  functions share nothing.
#ifndef PEN_GRAPH_IMPORT_ONNX_ONNX_ENTRY_H
#define PEN_GRAPH_IMPORT_ONNX_ONNX_ENTRY_H

#include <stdbool.h>
#include <stddef.h>

#include "base/format/protobuf_reader.h"
#include "base/status.h"

// A piece of text in the file.
typedef struct pen_onnx_text {
    const char *bytes; // [length]
    size_t length;
} pen_onnx_text;

typedef struct pen_onnx_entry {
    pen_onnx_text key, value;
} pen_onnx_entry;

// Reads a StringStringEntryProto; what it leaves out is empty. CORRUPT
PEN_NODISCARD pen_status pen_onnx_entry_read(const pen_protobuf_reader *message,
                                             pen_onnx_entry *out_entry);

bool pen_onnx_text_is(pen_onnx_text text, const char *expected);

// Whether the entry says `value` under `key`.
bool pen_onnx_entry_is(const pen_onnx_entry *entry, const char *key, const char *value);

#endif // PEN_GRAPH_IMPORT_ONNX_ONNX_ENTRY_H
