// The contract of this folder: record tables, and all that is made from them.
//
// Record tables: the fields of a message or record, said once.
//
// A table describes the members of a C struct as they travel: number, name, kind, where the member
// lies, its limit. From the table alone come the writing and reading of protobuf bytes with all
// bounds, lines of text, fixed layouts without numbers, and the .proto file that other programs
// read by (tests/support/record_proto.h). What fields mean together is checked by whoever reads.
//
// Kinds and the member that each fills:
//   NUMBER   an unsigned integer, bool or enum  a varint, at most `limit`
//   SIGNED   int64_t                            a varint
//   INDEX    uint32_t, UINT32_MAX for none      a varint, one more than it is
//   FIXED    uint32_t, uint64_t or double       four or eight bytes
//   TEXT     char [size], ended by 0            bytes without a 0
//   NAME     const char *                       likewise, at most PEN_NAME_BYTES_LIMIT, copied
//                                               into the arena; left out: ""
//   BYTES    const void * and a size_t count    borrowed from what is read
//   SPAN     pen_record_span                    where bytes lie in what is read; what is written
//                                               ends before them
//   MESSAGE  the struct of `record`, embedded
// Any but TEXT, BYTES and SPAN may be a list: an array in the struct, or a pointer to items in the
// arena, and a uint32_t count.
//
// What is 0 or empty is not written, except items of lists, messages, and rows that say
// `is_always`. A row with `present` is written only where that member is true. What is read in
// several pieces of memory is read without putting them together.
//
// Lifetime: tables are static. Names and lists that are read live in the arena.
// Threads:  any; tables are immutable.
#ifndef PEN_BASE_RECORD_RECORD_H
#define PEN_BASE_RECORD_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/format/protobuf_reader.h"
#include "base/status.h"
#include "base/text.h"

typedef enum pen_record_kind {
    PEN_RECORD_NUMBER,
    PEN_RECORD_SIGNED,
    PEN_RECORD_INDEX,
    PEN_RECORD_FIXED,
    PEN_RECORD_TEXT,
    PEN_RECORD_NAME,
    PEN_RECORD_BYTES,
    PEN_RECORD_SPAN,
    PEN_RECORD_MESSAGE,
} pen_record_kind;

// How a member is repeated.
typedef enum pen_record_list {
    PEN_RECORD_ONE,
    PEN_RECORD_ARRAY, // in the struct, with room for `limit` items
    PEN_RECORD_ITEMS, // const item *: as many as were read, at most `limit`
} pen_record_list;

typedef struct pen_record_span {
    uint64_t offset; // from the first byte of what is read
    uint64_t count;
} pen_record_span;

typedef struct pen_record pen_record;

typedef struct pen_record_field {
    uint32_t number; // in protobuf bytes
    pen_record_kind kind;
    const char *name;    // "learning_rate"
    const char *help;    // for the .proto; NULL
    size_t offset;       // of the member
    size_t size;         // of the member, or of an item
    uint64_t limit;      // of a number, of the count of a list, of bytes; 0: what the member holds
    uint64_t item_limit; // of a number in a list; 0: likewise
    size_t count_offset; // ARRAY, ITEMS: of a uint32_t. BYTES: of a size_t
    size_t present;      // 1 + the offset of a bool that says whether it is there; 0: none
    const char *const *choices; // NUMBER: names of an enum's values, ended by NULL; these limit it
    const char *choices_name;   // the enum's: "Kind"
    const pen_record *record;   // MESSAGE
    pen_record_list list;
    uint32_t chosen; // the value of the table's `chosen` when this one of several is there
    bool is_choice;
    bool is_always;      // written also when it is 0
    bool is_packed;      // a list of numbers in one field
    bool is_required;    // NAME: not empty
    bool is_real;        // FIXED: a double
    bool is_text;        // SPAN: a text, for the .proto
    uint8_t packed_size; // bytes in a layout without numbers; 0: those of the member
} pen_record_field;

struct pen_record {
    const char *name; // "RoundDone"
    const char *help; // lines for the .proto; NULL
    const pen_record_field *fields;
    uint32_t field_count;
    size_t size;            // of the struct
    size_t position_offset; // of a size_t: at which byte it began; 0: none
    size_t chosen_offset;   // of an enum: which of several rows `is_choice` is there
    uint32_t chosen_none;   // its value when none is
};

// ---- rows, in one line each

#define PEN_RECORD_MEMBER(type, member)                                                            \
    .offset = offsetof(type, member), .size = sizeof(((type *)0)->member)
#define PEN_RECORD_ITEM(type, member, count)                                                       \
    .offset = offsetof(type, member), .size = sizeof(*((type *)0)->member),                        \
    .count_offset = offsetof(type, count)

#define PEN_RECORD_ROW(row, no, key, type, member, ...)                                            \
    {                                                                                              \
        .number = (no), .kind = PEN_RECORD_##row, .name = (key), PEN_RECORD_MEMBER(type, member),  \
        .help = __VA_ARGS__                                                                        \
    }
#define PEN_RECORD_BYTES_ROW(no, key, type, member, count, ...)                                    \
    {                                                                                              \
        .number = (no), .kind = PEN_RECORD_BYTES, .name = (key), .offset = offsetof(type, member), \
        .count_offset = offsetof(type, count), .help = __VA_ARGS__                                 \
    }
#define PEN_RECORD_LIST_ROW(how, row, no, key, type, member, count, ...)                           \
    {                                                                                              \
        .number = (no), .kind = PEN_RECORD_##row, .name = (key), .list = PEN_RECORD_##how,         \
        PEN_RECORD_ITEM(type, member, count), .help = __VA_ARGS__                                  \
    }
#define PEN_RECORD_PRESENT(type, member) .present = offsetof(type, member) + 1
#define PEN_RECORD_FIELDS(array) .fields = (array), .field_count = sizeof(array) / sizeof *(array)

// ---- protobuf

// Writes at most `size` bytes and returns how many there are in all, with those of a span that are
// left out. No heap.
size_t pen_record_encode(const pen_record *record, const void *object, void *out_bytes,
                         size_t size);
// In `arena`. OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_record_encode_new(const pen_record *record, const void *object,
                                               pen_arena *arena, const void **out_bytes,
                                               uint64_t *out_count);

// Reads the rest of a message into the zeroed struct `out_object`. Memory is taken for what has
// come alone: items are counted before. `arena` may be NULL where the table has no name or items.
// Fields that are not known are passed over; of one that comes twice the last counts.
//   CORRUPT        at which byte, which field, what was found and what is possible
//   OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_record_read(const pen_record *record, pen_protobuf_reader *reader,
                                         pen_arena *arena, void *out_object);
// The same of bytes in one piece.
PEN_NODISCARD pen_status pen_record_decode(const pen_record *record, const void *bytes,
                                           size_t count, pen_arena *arena, void *out_object);

// ---- text

// Adds a line "name: value" for each field that is there, those within a message indented by two
// more spaces than `indent`.
void pen_record_print(const pen_record *record, const void *object, uint32_t indent,
                      pen_text *text);

// ---- layouts without numbers: NUMBER, FIXED and TEXT rows behind each other, little endian

size_t pen_record_packed_size(const pen_record *record);
void pen_record_pack(const pen_record *record, const void *object, void *out_bytes);
// CORRUPT: a number that its member does not hold, a text without an end
PEN_NODISCARD pen_status pen_record_unpack(const pen_record *record, const void *bytes,
                                           void *out_object);

// ---- for the files of this folder

// The bits of a NUMBER, SIGNED, INDEX or FIXED at `at`, as they travel; and back.
uint64_t pen_record_get_bits(const pen_record_field *field, const void *at);
// The largest number that a member may hold: the last of its choices, its limit, or all its bits.
uint64_t pen_record_number_limit(const pen_record_field *field);
void pen_record_set_bits(const pen_record_field *field, void *at, uint64_t bits);
static inline bool pen_record_is_present(const pen_record_field *field, const void *object) {
    return field->present == 0 || ((const bool *)object)[field->present - 1];
}
// The first item of a list, or the member; and how many there are.
const char *pen_record_find_items(const pen_record_field *field, const void *object,
                                  uint32_t *out_count);

#endif // PEN_BASE_RECORD_RECORD_H
