// YAML read into a small tree that remembers where everything stood.
//
// The part of YAML that configuration needs: mappings with text keys, lists, scalars. Refused, with
// the position: anchors and aliases, tags, several documents, a key twice, files above
// PEN_SPEC_BYTES_LIMIT, more than PEN_SPEC_NODES_LIMIT nodes (files that programs write may have
// limits of their own), nesting above PEN_NESTING_LIMIT.
// Scalars stay text: what they mean is for whoever knows what was expected (base/option/option.h).
//
// Lifetime: a tree lives in the arena it was read into.
// Threads:  immutable once returned.
#ifndef PEN_BASE_FORMAT_YAML_READER_H
#define PEN_BASE_FORMAT_YAML_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/status.h"

typedef enum pen_yaml_kind {
    PEN_YAML_SCALAR,
    PEN_YAML_LIST,
    PEN_YAML_MAPPING,
} pen_yaml_kind;

typedef struct pen_yaml_node pen_yaml_node;
struct pen_yaml_node {
    pen_yaml_kind kind;
    const char *file; // as the user named it
    uint32_t line;    // counts from 1
    uint32_t column;  // in characters, counts from 1

    const char *text; // SCALAR: ended by 0, no 0 within; "" when nothing was written
    bool is_quoted;   // SCALAR: in quotes, or a block, so that it cannot mean a number

    uint32_t count;             // LIST, MAPPING: how many members
    const pen_yaml_node *first; // LIST, MAPPING: the first member, or NULL
    const pen_yaml_node *next;  // the member after this one, or NULL
    const pen_yaml_node *key;   // members of a mapping: the key, a SCALAR
};

// Reads a file. NOT_FOUND, IO, INVALID_INPUT, OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_yaml_read(const char *path, pen_arena *arena,
                                       const pen_yaml_node **out_root);

// Reads text that is in memory; `file` is its name in messages. INVALID_INPUT, OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_yaml_parse(const char *file, const char *bytes, size_t length,
                                        pen_arena *arena, const pen_yaml_node **out_root);

typedef struct pen_yaml_limits {
    size_t bytes;
    uint32_t nodes; // scalars, lists and mappings
} pen_yaml_limits;

// The same with other limits.
PEN_NODISCARD pen_status pen_yaml_parse_within(const char *file, const char *bytes, size_t length,
                                               pen_yaml_limits limits, pen_arena *arena,
                                               const pen_yaml_node **out_root);

// The member of a mapping that has `key`, or NULL.
const pen_yaml_node *pen_yaml_find(const pen_yaml_node *mapping, const char *key);

// Whether nothing was written: an empty scalar, ~ or null, not in quotes.
bool pen_yaml_is_nothing(const pen_yaml_node *node);

// Gives an error the position of `node`.
PEN_NODISCARD pen_status pen_yaml_blame(const pen_yaml_node *node, pen_status status);

// The version of libyaml.
const char *pen_yaml_version(void);

#endif // PEN_BASE_FORMAT_YAML_READER_H
