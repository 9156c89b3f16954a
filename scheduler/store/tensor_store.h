// Named tensors that lie somewhere, on one device or many, read and written in pieces: what is
// saved, loaded, hashed, exported and compared.
//
// Lifetime: as long as what holds the tensors.
// Threads:  one.
#ifndef PEN_SCHEDULER_STORE_TENSOR_STORE_H
#define PEN_SCHEDULER_STORE_TENSOR_STORE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "graph/tensor_slice.h"
#include "graph/tensor_type.h"

#define PEN_TENSOR_PIECE_BYTES ((uint64_t)8 << 20) // the most that is read or written at once

typedef struct pen_stored_tensor {
    const char *name; // unique in the store
    pen_tensor_type type;
    uint64_t bytes; // of the type, in the plain layout
    bool is_model;  // a parameter or running statistic of the model; else the optimizer's
    const pen_tensor_slice *slice; // of which tensor it is one; NULL: a tensor by itself
} pen_stored_tensor;

typedef struct pen_tensor_store {
    uint32_t count;
    const pen_stored_tensor *tensors; // [count]: the model's in its order, then the optimizer's
    void *context;
    // `bytes` from byte `first` on, at most PEN_TENSOR_PIECE_BYTES, within the tensor; both are
    // multiples of 8 unless the piece ends the tensor.
    PEN_NODISCARD pen_status (*read)(void *context, uint32_t index, uint64_t first, void *host,
                                     uint64_t bytes);
    PEN_NODISCARD pen_status (*write)(void *context, uint32_t index, uint64_t first,
                                      const void *host, uint64_t bytes);
} pen_tensor_store;

// Bytes of the largest piece that any of them needs, at least 1: small models need small buffers.
uint64_t pen_tensor_store_piece_bytes(const pen_tensor_store *store);

// How many of them are the model's; these come first.
uint32_t pen_tensor_store_model_count(const pen_tensor_store *store);

#define PEN_TENSOR_NONE UINT32_MAX
// The index of a tensor by name; PEN_TENSOR_NONE: there is none. Looks at each.
uint32_t pen_tensor_store_find(const pen_tensor_store *store, const char *name);

// A whole tensor, piece by piece. `bytes` must be the tensor's.
PEN_NODISCARD pen_status pen_tensor_store_read(const pen_tensor_store *store, uint32_t index,
                                               void *host, uint64_t bytes);
PEN_NODISCARD pen_status pen_tensor_store_write(const pen_tensor_store *store, uint32_t index,
                                                const void *host, uint64_t bytes);

// A hash of the bits of all tensors of the model, in order: FNV-1a over 64-bit words, the last one
// of a tensor filled up with zeros. OUT_OF_MEMORY; as the store's read
PEN_NODISCARD pen_status pen_tensor_store_hash(const pen_tensor_store *store, uint64_t *out_hash);

#endif // PEN_SCHEDULER_STORE_TENSOR_STORE_H
