#include "scheduler/store/tensor_store.h"

#include <string.h>

#include "base/integer.h"
#include "base/memory.h"

uint32_t pen_tensor_store_model_count(const pen_tensor_store *store) {
    uint32_t count = 0;
    while (count < store->count && store->tensors[count].is_model) {
        count++;
    }
    return count;
}

uint32_t pen_tensor_store_find(const pen_tensor_store *store, const char *name) {
    for (uint32_t i = 0; i < store->count; i++) {
        if (strcmp(store->tensors[i].name, name) == 0) return i;
    }
    return PEN_TENSOR_NONE;
}

pen_status pen_tensor_store_read(const pen_tensor_store *store, uint32_t index, void *host,
                                 uint64_t bytes) {
    PEN_ASSERT(index < store->count && bytes == store->tensors[index].bytes);
    for (uint64_t first = 0; first < bytes; first += PEN_TENSOR_PIECE_BYTES) {
        const uint64_t piece = pen_min_u64(PEN_TENSOR_PIECE_BYTES, bytes - first);
        PEN_TRY(store->read(store->context, index, first, (char *)host + first, piece));
    }
    return PEN_OK;
}

pen_status pen_tensor_store_write(const pen_tensor_store *store, uint32_t index, const void *host,
                                  uint64_t bytes) {
    PEN_ASSERT(index < store->count && bytes == store->tensors[index].bytes);
    for (uint64_t first = 0; first < bytes; first += PEN_TENSOR_PIECE_BYTES) {
        const uint64_t piece = pen_min_u64(PEN_TENSOR_PIECE_BYTES, bytes - first);
        PEN_TRY(store->write(store->context, index, first, (const char *)host + first, piece));
    }
    return PEN_OK;
}

static uint64_t store_hash_words(uint64_t hash, const unsigned char *bytes, uint64_t count) {
    for (uint64_t i = 0; i < count; i += sizeof(uint64_t)) {
        uint64_t word = 0;
        memcpy(&word, bytes + i, count - i < sizeof word ? count - i : sizeof word);
        hash = (hash ^ word) * 0x100000001b3u;
    }
    return hash;
}

// `piece` has pen_tensor_store_piece_bytes.
static pen_status store_hash_tensor(const pen_tensor_store *store, uint32_t index,
                                    unsigned char *piece, uint64_t *hash) {
    const uint64_t whole = store->tensors[index].bytes;
    for (uint64_t first = 0; first < whole; first += PEN_TENSOR_PIECE_BYTES) {
        const uint64_t bytes = pen_min_u64(PEN_TENSOR_PIECE_BYTES, whole - first);
        PEN_TRY(store->read(store->context, index, first, piece, bytes));
        *hash = store_hash_words(*hash, piece, bytes);
    }
    return PEN_OK;
}

uint64_t pen_tensor_store_piece_bytes(const pen_tensor_store *store) {
    uint64_t most = 1;
    for (uint32_t i = 0; i < store->count; i++) {
        most = pen_max_u64(most, pen_min_u64(store->tensors[i].bytes, PEN_TENSOR_PIECE_BYTES));
    }
    return most;
}

pen_status pen_tensor_store_hash(const pen_tensor_store *store, uint64_t *out_hash) {
    unsigned char *piece = pen_memory_allocate(pen_tensor_store_piece_bytes(store), 1);
    if (piece == NULL) return pen_error_out_of_memory();
    uint64_t hash = 0xcbf29ce484222325u;
    pen_status status = PEN_OK;
    for (uint32_t i = 0; status == PEN_OK && i < store->count; i++) {
        if (store->tensors[i].is_model) status = store_hash_tensor(store, i, piece, &hash);
    }
    pen_memory_free(piece);
    *out_hash = hash;
    return status;
}
