// A reader for the protobuf wire format over bytes in memory (a mapped file, as a rule).
//
// Nothing is copied and nothing is trusted: each length is checked against what is left before it
// is used, varints have ten bytes at most, messages nest PEN_NESTING_LIMIT deep at most. The caller
// walks the fields of a message one by one and passes over those it does not know; submessages are
// opened as readers of their own, so nothing here recurses. Groups, which protobuf itself gave up,
// are refused.
//
//   while (true) {
//       pen_protobuf_field field;
//       PEN_TRY(pen_protobuf_next(&reader, &field));
//       if (field.number == 0) break;
//       …
//   }
//
// Every function returns CORRUPT, with the position in the file, when the bytes contradict
// themselves.
//
// Lifetime: readers, fields and scalars borrow the bytes.
// Threads:  a reader belongs to one thread at a time.
#ifndef PEN_BASE_FORMAT_PROTOBUF_READER_H
#define PEN_BASE_FORMAT_PROTOBUF_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/status.h"

// The wire types, by their numbers in the format.
typedef enum pen_protobuf_wire {
    PEN_PROTOBUF_VARINT = 0,
    PEN_PROTOBUF_FIXED64 = 1,
    PEN_PROTOBUF_BYTES = 2,
    PEN_PROTOBUF_FIXED32 = 5,
} pen_protobuf_wire;

// Bytes of a message that lie in pieces, one behind the other.
typedef struct pen_protobuf_piece {
    const uint8_t *bytes;
    uint64_t count;
} pen_protobuf_piece;

typedef struct pen_protobuf_reader {
    const uint8_t *origin; // positions count from here, and from `before` on
    const uint8_t *cursor;
    const uint8_t *end;             // of what lies in one piece
    const pen_protobuf_piece *next; // where the message goes on
    uint64_t beyond;                // bytes of the message that are in those
    uint64_t before;
    uint32_t depth; // messages around this one
} pen_protobuf_reader;

typedef struct pen_protobuf_field {
    uint32_t number; // 0: the message has ended
    pen_protobuf_wire wire;
    uint64_t integer;     // of a varint or fixed field
    const uint8_t *bytes; // [length], of a field of bytes
    size_t length;
    size_t position;                // of `bytes`
    size_t first;                   // bytes that lie in one piece: `length` where there is but one
    const pen_protobuf_piece *next; // where the others are
} pen_protobuf_field;

void pen_protobuf_init(pen_protobuf_reader *reader, const void *bytes, size_t length);
// A message in pieces, which are borrowed. Names and bytes of its fields are not to be asked for:
// they may lie in several.
void pen_protobuf_init_pieces(pen_protobuf_reader *reader, const pen_protobuf_piece *pieces,
                              uint64_t length);
// Bytes before where `reader` is, from the first byte of the outermost message.
size_t pen_protobuf_position(const pen_protobuf_reader *reader);

// The next field; its number is 0 at the end.
PEN_NODISCARD pen_status pen_protobuf_next(pen_protobuf_reader *reader,
                                           pen_protobuf_field *out_field);

// How often each field number below `limit` occurs in what is left of the message.
PEN_NODISCARD pen_status pen_protobuf_count(const pen_protobuf_reader *reader, uint32_t limit,
                                            uint32_t *out_counts);

// A reader for the message that `field`, just read by `reader`, holds.
PEN_NODISCARD pen_status pen_protobuf_open(const pen_protobuf_reader *reader,
                                           const pen_protobuf_field *field,
                                           pen_protobuf_reader *out_message);

// The next field of that number, opened; others are passed over. *out_more is false at the end.
PEN_NODISCARD pen_status pen_protobuf_next_message(pen_protobuf_reader *reader, uint32_t number,
                                                   pen_protobuf_reader *out_message,
                                                   bool *out_more);

// A single number: int32, int64, enum or bool.
PEN_NODISCARD pen_status pen_protobuf_int(const pen_protobuf_reader *reader,
                                          const pen_protobuf_field *field, int64_t *out_integer);
// A single float.
PEN_NODISCARD pen_status pen_protobuf_float(const pen_protobuf_reader *reader,
                                            const pen_protobuf_field *field, float *out_number);
// The bytes of a string field.
PEN_NODISCARD pen_status pen_protobuf_bytes(const pen_protobuf_reader *reader,
                                            const pen_protobuf_field *field,
                                            const uint8_t **out_bytes, size_t *out_length);
// A name: a string of at most PEN_NAME_BYTES_LIMIT bytes without 0, copied into the arena.
PEN_NODISCARD pen_status pen_protobuf_name(const pen_protobuf_reader *reader,
                                           const pen_protobuf_field *field, pen_arena *arena,
                                           const char **out_name);

// The scalars of one field that may repeat: packed, or a single one. `wire` is their type.
typedef struct pen_protobuf_scalars {
    pen_protobuf_reader reader; // over the packed bytes
    pen_protobuf_wire wire;
    bool is_single; // unpacked
    uint64_t single;
} pen_protobuf_scalars;
PEN_NODISCARD pen_status pen_protobuf_scalars_open(const pen_protobuf_reader *reader,
                                                   const pen_protobuf_field *field,
                                                   pen_protobuf_wire wire,
                                                   pen_protobuf_scalars *out_scalars);
// How many there are. Leaves `scalars` as it was.
PEN_NODISCARD pen_status pen_protobuf_scalars_count(const pen_protobuf_scalars *scalars,
                                                    uint64_t *out_count);
// The next one's bits; *out_more becomes false when there is none.
PEN_NODISCARD pen_status pen_protobuf_scalars_next(pen_protobuf_scalars *scalars,
                                                   uint64_t *out_bits, bool *out_more);

// An error at the place where `reader` is.
#define pen_protobuf_error(reader, ...)                                                            \
    pen_protobuf_error_at(__FILE__, __LINE__, (reader), __VA_ARGS__)
PEN_NODISCARD pen_status pen_protobuf_error_at(const char *file, int line,
                                               const pen_protobuf_reader *reader,
                                               const char *format, ...) PEN_PRINTF(4, 5);

#endif // PEN_BASE_FORMAT_PROTOBUF_READER_H
