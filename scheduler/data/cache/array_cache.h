// Examples kept on disk as arrays, in a folder, so that what was costly to read is read once.
//
//   KEY/manifest.json   what it was made of, its fields, and a checksum of each file
//   KEY/0.data          the numbers of field 0, row after row, as the machine has them; of
//                       pictures, their bytes
//   KEY/0.ends          of pictures: where each ends in 0.data, eight bytes, little-endian
//   KEY.lock            held by the process that makes it
//
// It is written as KEY.part and renamed, so that KEY is whole or is not there. KEY is made of what
// the examples are made of (`request`), which the manifest has in full.
//
// Lifetime: from pen_array_cache_open to pen_array_cache_close; fields live in the arena given.
// Threads:  a cache may be read by all; a writer belongs to one thread.
#ifndef PEN_SCHEDULER_DATA_CACHE_ARRAY_CACHE_H
#define PEN_SCHEDULER_DATA_CACHE_ARRAY_CACHE_H

#include "base/system/file.h"
#include "scheduler/data/dataset.h"

typedef struct pen_cache_field {
    const char *name;
    bool is_label;
    bool is_pictures;              // then the next three are not used
    pen_npy_element element;       //
    uint32_t rank;                 // of one example, below PEN_RANK_LIMIT
    int64_t shape[PEN_RANK_LIMIT]; // of one example
} pen_cache_field;

typedef struct pen_array_cache {
    uint64_t row_count;
    uint32_t field_count;
    pen_cache_field *fields; // [field_count]
    pen_mapping *data;       // [field_count]
    pen_mapping *ends;       // [field_count], of pictures; else empty
    uint32_t *checksums;     // [field_count][2] of data and ends, as they were written
    uint64_t checksum;       // of all contents
} pen_array_cache;

#define PEN_CACHE_FIELDS_LIMIT (PEN_DATASET_INPUT_COUNT_LIMIT + PEN_DATASET_LABEL_COUNT_LIMIT)

// "FOLDER/KEY": where `request` is kept. OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_cache_path(const char *folder, const char *request, pen_arena *arena,
                                        const char **out_path);

// Maps what is kept of `request` in `folder`, and checks all of it.
//   NOT_FOUND  nothing is kept
//   CORRUPT    it is not what was written, or of something else
//   IO, OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_array_cache_open(const char *folder, const char *request,
                                              pen_arena *arena, pen_array_cache *out_cache);
// Accepts one that is all zero.
void pen_array_cache_close(pen_array_cache *cache);

// The bytes of picture `row` of a field.
const uint8_t *pen_array_cache_picture(const pen_array_cache *cache, uint32_t field, uint64_t row,
                                       uint64_t *out_length);

// Reads a manifest. As pen_array_cache_open; mappings stay empty.
PEN_NODISCARD pen_status pen_array_cache_parse(const char *name, const void *bytes, size_t length,
                                               const char *request, pen_arena *arena,
                                               pen_array_cache *out_cache);

#endif // PEN_SCHEDULER_DATA_CACHE_ARRAY_CACHE_H
