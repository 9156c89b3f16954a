// Writes what array_cache.h reads.
//
// Lifetime: from create to destroy, which removes what was not committed.
// Threads:  one thread. Of several processes that make the same, one does; the others wait for it.
#ifndef PEN_SCHEDULER_DATA_CACHE_ARRAY_CACHE_WRITER_H
#define PEN_SCHEDULER_DATA_CACHE_ARRAY_CACHE_WRITER_H

#include "scheduler/data/cache/array_cache.h"

typedef struct pen_cache_writer pen_cache_writer;

// Makes the folder, and waits until no other process makes the same. What a process that was killed
// has left of it is removed.
//   CANCELLED      the user wants to stop
//   IO, NOT_FOUND, OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_cache_writer_create(const char *folder, const char *request,
                                                 pen_cache_writer **out_writer);
// Whether it waited: then what is wanted may be there already.
bool pen_cache_writer_has_waited(const pen_cache_writer *writer);

// Removes what was written so far, and begins with these fields, which are copied. IO,
// OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_cache_writer_begin(pen_cache_writer *writer,
                                                const pen_cache_field *fields,
                                                uint32_t field_count);
// Adds bytes of a row; of pictures, all of one. IO
PEN_NODISCARD pen_status pen_cache_writer_add(pen_cache_writer *writer, uint32_t field,
                                              const void *bytes, uint64_t length);
// Flushes, syncs and renames all of `row_count` rows. IO, OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_cache_writer_commit(pen_cache_writer *writer, uint64_t row_count);

// Bytes added since the beginning.
uint64_t pen_cache_writer_bytes(const pen_cache_writer *writer);

// Accepts NULL.
void pen_cache_writer_destroy(pen_cache_writer *writer);

#endif // PEN_SCHEDULER_DATA_CACHE_ARRAY_CACHE_WRITER_H
