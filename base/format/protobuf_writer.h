// A writer for the protobuf wire format, to a stream or to memory.
//
// A message is preceded by its length, so each is written by a function that runs twice: once to
// count, once to write. Nothing is buffered: tensors go from where they are to the stream.
//
// Errors of the stream are kept until pen_protobuf_writer_finish.
// Threads: a writer belongs to one thread at a time.
#ifndef PEN_BASE_FORMAT_PROTOBUF_WRITER_H
#define PEN_BASE_FORMAT_PROTOBUF_WRITER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/status.h"

typedef struct pen_protobuf_writer {
    FILE *stream;   // NULL: to memory
    uint8_t *bytes; // [size]; NULL as well: only counts
    size_t size;
    uint64_t length; // bytes so far
    bool failed;
} pen_protobuf_writer;

// Writes the fields of a message. Called twice, and both times it writes the same.
typedef void (*pen_protobuf_body)(pen_protobuf_writer *writer, const void *context);

// `stream` is borrowed; NULL only counts.
void pen_protobuf_writer_init(pen_protobuf_writer *writer, FILE *stream);
// What is more than `size` bytes is only counted. `bytes` may be NULL likewise.
void pen_protobuf_writer_init_bytes(pen_protobuf_writer *writer, void *bytes, size_t size);

void pen_protobuf_write_int(pen_protobuf_writer *writer, uint32_t number, int64_t integer);
void pen_protobuf_write_float(pen_protobuf_writer *writer, uint32_t number, float single);
// The low `size` bytes of `bits`, 4 or 8.
void pen_protobuf_write_fixed(pen_protobuf_writer *writer, uint32_t number, uint64_t bits,
                              size_t size);
// A number alone, as in a packed field.
void pen_protobuf_write_varint(pen_protobuf_writer *writer, uint64_t integer);
void pen_protobuf_write_text(pen_protobuf_writer *writer, uint32_t number, const char *text);
// `bytes` may be NULL for zeros.
void pen_protobuf_write_bytes(pen_protobuf_writer *writer, uint32_t number, const void *bytes,
                              uint64_t length);
// Makes `count` bytes of a field from byte `first` on.
typedef void (*pen_protobuf_fill)(const void *context, uint64_t first, void *bytes, uint64_t count);
// Bytes that are made piece by piece while they are written; a piece is at most 4096 of them, and a
// multiple of 8 unless it is the last. Where bytes are only counted none are made.
void pen_protobuf_write_made(pen_protobuf_writer *writer, uint32_t number, uint64_t length,
                             pen_protobuf_fill fill, const void *context);
// The head of a field of bytes that lie elsewhere. To memory: they are counted, and left out.
void pen_protobuf_write_hole(pen_protobuf_writer *writer, uint32_t number, uint64_t length);
void pen_protobuf_write_message(pen_protobuf_writer *writer, uint32_t number,
                                pen_protobuf_body body, const void *context);

// IO when the stream refused bytes.
PEN_NODISCARD pen_status pen_protobuf_writer_finish(const pen_protobuf_writer *writer);

#endif // PEN_BASE_FORMAT_PROTOBUF_WRITER_H
