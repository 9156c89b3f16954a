// The contract of this folder. Option tables: what may stand in a file or on a command line, said
// once.
//
// A table describes the fields of a C struct as a user writes them: key, kind, range, default, one
// line of help, and where the value goes. From the table alone come the reading of a YAML mapping
// with its errors (position, found, possible), JSON Schema, and help.
//
// Kinds and the C type that each fills:
//   TEXT PATH PATTERN  const char *    never empty; a path is resolved beside the file read; a
//                                      pattern is a valid pen_pattern
//   SCALAR             const char *    text of any kind, as it is written: "64", "true", "adam"
//   INTEGER            int64_t
//   COUNT              int64_t         an integer, or auto: 0
//   NUMBER             double
//   BOOL               bool            true or false
//   BYTES              uint64_t        units as in base/format/quantity.h
//   SECONDS            double
//   RATE               double          operations a second
//   BANDWIDTH          double          bytes a second
//   INTERVAL           pen_interval
//   CHOICE             an enum         the position of the name in `choices`
//   LIST               pen_option_list of what `item` describes
//   MAP                pen_option_list of structs that begin with `const char *key`, the value at
//                                      `item->offset`; keys are free
//   MAPPING            the struct of `table`, embedded
//   ONE_OF             the struct of `table`, embedded: the mapping has exactly one key, whose
//                                      field is filled, and its index goes to `chosen_offset`;
//                                      the key alone, as text, stands for all defaults
//
// Lifetime: tables are static; what is read lives in the arena.
// Threads:  tables and what was read are immutable.
#ifndef PEN_BASE_OPTION_OPTION_H
#define PEN_BASE_OPTION_OPTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/format/json_writer.h"
#include "base/format/quantity.h"
#include "base/format/yaml_reader.h"
#include "base/status.h"
#include "base/text.h"

typedef enum pen_option_kind {
    PEN_OPTION_TEXT,
    PEN_OPTION_PATH,
    PEN_OPTION_PATTERN,
    PEN_OPTION_SCALAR,
    PEN_OPTION_INTEGER,
    PEN_OPTION_COUNT,
    PEN_OPTION_NUMBER,
    PEN_OPTION_BOOL,
    PEN_OPTION_BYTES,
    PEN_OPTION_SECONDS,
    PEN_OPTION_RATE,
    PEN_OPTION_BANDWIDTH,
    PEN_OPTION_INTERVAL,
    PEN_OPTION_CHOICE,
    PEN_OPTION_LIST,
    PEN_OPTION_MAP,
    PEN_OPTION_MAPPING,
    PEN_OPTION_ONE_OF,
} pen_option_kind;

typedef struct pen_option_list {
    void *items; // [count], one array
    uint32_t count;
} pen_option_list;

typedef struct pen_option_bound {
    bool is_set;
    bool is_excluded; // the bound itself is not allowed
    double value;
} pen_option_bound;

// .minimum = PEN_OPTION_FROM(1), .maximum = PEN_OPTION_BELOW(1)
#define PEN_OPTION_FROM(number)                                                                    \
    { .is_set = true, .value = (number) }
#define PEN_OPTION_ABOVE(number)                                                                   \
    { .is_set = true, .is_excluded = true, .value = (number) }
#define PEN_OPTION_TO(number)                                                                      \
    { .is_set = true, .value = (number) }
#define PEN_OPTION_BELOW(number)                                                                   \
    { .is_set = true, .is_excluded = true, .value = (number) }

#define PEN_OPTION_RANGE(low, high) .minimum = PEN_OPTION_FROM(low), .maximum = PEN_OPTION_TO(high)

typedef struct pen_option_table pen_option_table;
typedef struct pen_option_field pen_option_field;

struct pen_option_field {
    const char *key; // as written: "weight_decay". NULL for an item
    pen_option_kind kind;
    size_t offset;            // in the struct of the table
    size_t present_offset;    // of a bool that says whether it was written; 0, so never the first
                              // member, for none
    const char *help;         // one line
    bool is_required;         //
    const char *default_text; // as a user would write it; NULL leaves zero. For a LIST, one item
    pen_option_bound minimum; // of a number or quantity, in its base unit
    pen_option_bound maximum;
    bool takes_digits; // BOOL: 1 and 0 stand for true and false, of a key that was a number once
    const char *const *choices; // CHOICE: names, ended by NULL
    const pen_text_word *words; // CHOICE: what others call them: not taken, but told what is meant
    const pen_option_field *item; // LIST, MAP: of each item
    size_t entry_bytes;           // MAP: size of the entry struct
    uint32_t count_minimum;       // LIST, MAP: fewest items
    uint32_t count_maximum;       // LIST, MAP: most items; 0 for no limit
    bool is_list_optional;        // LIST: one item may stand without brackets
    size_t path_offset; // LIST, MAP: in the struct of the table, a `const char *` for the path (the
                        // text, where items are texts) that may stand in its place; 0, so never the
                        // first member, for none
    const pen_option_table *table; // MAPPING, ONE_OF
    bool may_be_file; // MAPPING, LIST of mappings: text instead is the path of a file that holds it
};

typedef struct pen_option_source pen_option_source;

struct pen_option_table {
    const char *help; // one line on the whole
    const char
        *name;   // of a table that many fields have, for schema and help to say it once; or NULL
    size_t size; // of the struct
    const pen_option_field *fields;
    uint32_t field_count;

    // ONE_OF, and tables with a tag: where the index of the chosen field or variant goes (an enum).
    size_t chosen_offset;

    // A tag is a key of the mapping whose value chooses which variant's keys may stand beside it.
    // Each variant is a MAPPING field: its key is the value of the tag.
    const char *tag; // NULL for none
    const char *tag_help;
    const pen_text_word *tag_words; // what others call its values, or NULL
    const pen_option_field *variants;
    uint32_t variant_count;

    // Of a mapping with one required key: its value may stand in the mapping's place.
    bool may_stand_alone;

    // What keys are called elsewhere, with a sentence each that says what to write: {"wd", "it is
    // weight_decay"}. NULL for none
    const pen_text_word *words;

    // Says of a key that is in neither why it is not possible, or NULL: nothing to say.
    const char *(*explain)(const char *key); // NULL for none

    // Rules that span fields; NULL for none. Its errors are blamed by pen_option_blame.
    pen_status (*check)(const void *object, const pen_option_source *source);
};

// A field: a member of struct `type` under its own name, or under `written`. Its help comes next,
// then what else there is to say:
//   PEN_OPTION(NUMBER, sgd_options, lr, "learning rate", .minimum = PEN_OPTION_ABOVE(0))
#define PEN_OPTION(kind_name, type, member, ...)                                                   \
    PEN_OPTION_AS(#member, kind_name, type, member, __VA_ARGS__)
#define PEN_OPTION_AS(written, kind_name, type, member, ...)                                       \
    {                                                                                              \
        .key = (written), .kind = PEN_OPTION_##kind_name, .offset = offsetof(type, member),        \
        .help = __VA_ARGS__                                                                        \
    }

// The struct that a table fills, and its fields.
#define PEN_OPTION_FIELDS(type, array)                                                             \
    .size = sizeof(type), .fields = (array), .field_count = sizeof(array) / sizeof *(array)
#define PEN_OPTION_VARIANTS(array)                                                                 \
    .variants = (array), .variant_count = sizeof(array) / sizeof *(array)

typedef struct pen_option_settings {
    const char *file;    // paths are resolved beside it
    bool may_open_files; // false refuses parts in files of their own
} pen_option_settings;

// Reads a mapping into the zeroed struct `out_object`. INVALID_INPUT with position, found and
// possible; NOT_FOUND, IO for parts in files; OUT_OF_MEMORY.
PEN_NODISCARD pen_status pen_option_read(const pen_option_table *table, const pen_yaml_node *root,
                                         const pen_option_settings *settings, pen_arena *arena,
                                         void *out_object, const pen_option_source **out_source);

// The tree with the value of "PATH=VALUE" where PATH leads, as read by pen_option_read next. VALUE
// is YAML. A path has keys of mappings, and of lists indices from 0 or the `name` of an item:
// "train.optimizer.sgd.lr=0.01", "devices.a.memory=2GiB", "links[0].latency=1ms"; a key with dots
// stands in quotes. Mappings on the way that are not there are made. The VALUE null takes a key of
// a mapping away, as if it had not been written; where it is not there, nothing is done. What is
// set names "--set" and the assignment as its file in errors, and no line; all else keeps its
// place. INVALID_INPUT, and NOT_FOUND, IO of a part in a file of its own; OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_option_assign(const pen_option_table *table, const pen_yaml_node *root,
                                           const char *text, const pen_option_settings *settings,
                                           pen_arena *arena, const pen_yaml_node **out_root);

// Where the value in `*field` was written, or its mapping when it was not; NULL: nowhere.
const pen_yaml_node *pen_option_find_node(const pen_option_source *source, const void *field);

// Gives an error the position at which the value in `*field` was written, or that of its mapping
// when it was not. `field` is an address within the struct that was read.
PEN_NODISCARD pen_status pen_option_blame(const pen_option_source *source, const void *field,
                                          pen_status status);

// Fills the struct with what stands when nothing is written. OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_option_set_defaults(const pen_option_table *table, pen_arena *arena,
                                                 void *out_object);

// Parses one scalar, or one item of a LIST of scalars, and checks its range. INVALID_INPUT: found
// "x", expected ..., of a CHOICE also "did you mean y?"; OUT_OF_MEMORY. Paths stay as they are.
PEN_NODISCARD pen_status pen_option_parse(const pen_option_field *field, const char *text,
                                          pen_arena *arena, void *out_value);

// The key whose value may stand in place of a mapping; NULL: none.
const pen_option_field *pen_option_find_alone(const pen_option_table *table);

// Adds what the field expects: "an integer of at least 1", "adam, sgd or adamw".
void pen_option_describe(const pen_option_field *field, pen_text *text);

// Bytes of the C value of a field.
size_t pen_option_value_bytes(const pen_option_field *field);

// Writes the JSON Schema (draft 2020-12) of a file.
void pen_option_write_schema(const pen_option_table *table, const char *title,
                             pen_json_writer *json);

// Adds a line for each field, and those within it: key, help, what is expected, default.
void pen_option_write_help(const pen_option_table *table, pen_text *text);

#endif // PEN_BASE_OPTION_OPTION_H
