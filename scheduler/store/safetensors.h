// Named tensors in one file, in the safetensors layout:
//
//   8 bytes, little endian: length of the header
//   header: JSON {"name": {"dtype": "F32", "shape": [2, 3], "data_offsets": [begin, end]}, …,
//                 "__metadata__": {"key": "text"}}, padded with spaces to a multiple of 8
//   data: the tensors one after another, little endian, without gaps
//
// The reader trusts nothing: offsets must tile the data exactly, and lengths must be those of the
// shapes.
//
// Lifetime: a reader maps its file until it is closed; what it returns points there or into it.
// Threads:  a reader may be used by many once open.
#ifndef PEN_SCHEDULER_STORE_SAFETENSORS_H
#define PEN_SCHEDULER_STORE_SAFETENSORS_H

#include <stdint.h>

#include "base/status.h"
#include "graph/tensor_type.h"

typedef struct pen_safetensors_entry {
    const char *name;
    pen_tensor_type type;
    const void *data; // the bytes of `type`; NULL when only the header was parsed
    uint64_t offset;  // of the first of them in the file
} pen_safetensors_entry;

typedef struct pen_safetensors pen_safetensors;

//   NOT_FOUND, IO, OUT_OF_MEMORY
//   CORRUPT      not a safetensors file, or one that contradicts itself
//   UNSUPPORTED  an element type that Penstock does not have
PEN_NODISCARD pen_status pen_safetensors_open(const char *path, pen_safetensors **out_file);
// The same for bytes in memory, which are borrowed until it is closed. `path` is for messages.
PEN_NODISCARD pen_status pen_safetensors_parse(const char *path, const void *bytes, uint64_t length,
                                               pen_safetensors **out_file);
// The same for a file of `length` bytes, of which the first `given`, with the header, are in
// memory.
PEN_NODISCARD pen_status pen_safetensors_parse_header(const char *path, const void *bytes,
                                                      uint64_t given, uint64_t length,
                                                      pen_safetensors **out_file);
// Accepts NULL.
void pen_safetensors_close(pen_safetensors *file);

// In the order of the data.
uint32_t pen_safetensors_count(const pen_safetensors *file);
const pen_safetensors_entry *pen_safetensors_at(const pen_safetensors *file, uint32_t index);
// NULL when there is none of that name.
const pen_safetensors_entry *pen_safetensors_find(const pen_safetensors *file, const char *name);

// Called for tensor after tensor, piece after piece, in order: writes `bytes` of a tensor from byte
// `first` on to `out_data`.
typedef pen_status (*pen_safetensors_read)(void *context, uint32_t index, uint64_t first,
                                           void *out_data, uint64_t bytes);

#define PEN_SAFETENSORS_PIECE_BYTES ((uint64_t)1 << 20) // the most that is asked for at once

typedef struct pen_safetensors_source {
    uint32_t count;
    const char *const *names;            // [count], each once
    const pen_tensor_type *const *types; // [count]
    pen_safetensors_read read;
    void *context;
} pen_safetensors_source;

// Writes beside `path`, syncs, and renames: the file is there whole or not at all. Holds one piece
// in memory.
PEN_NODISCARD pen_status pen_safetensors_save(const char *path,
                                              const pen_safetensors_source *source);

#endif // PEN_SCHEDULER_STORE_SAFETENSORS_H
