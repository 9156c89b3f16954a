// Which names a user means: a name, or a pattern of names.
//
// A text that is one of the names means that one. Otherwise, when it holds a sign that patterns are
// made of (one of ^ $ * + ? ( ) { } | [ ] \), it is a pattern (base/pattern.h), which may be found
// anywhere in a name. Otherwise it is a name that is not there, and the error lists near ones: a
// dot alone makes no pattern, since names have dots.
#ifndef PEN_PARTITION_SPEC_NAME_MATCH_H
#define PEN_PARTITION_SPEC_NAME_MATCH_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/status.h"

typedef struct pen_name_set {
    const char *const *names; // [count]
    uint32_t count;
    const char *what; // for messages: "node", "device"
} pen_name_set;

typedef struct pen_name_matches {
    const uint32_t *indices; // [count], ascending
    uint32_t count;          // at least 1
} pen_name_matches;

//   NOT_FOUND      none is meant: no node matches "^/layr4/", near: /layer4/conv1/Conv, ...
//   INVALID_INPUT  a pattern that is none
//   OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_match_names(const pen_name_set *set, const char *text,
                                         pen_arena *arena, pen_name_matches *out_matches);

// The same, where the text may also be a name with ranges (partition/spec/name_range.h), all of
// whose names must be there: "n[1-16]/cpu0". Such a text is not a pattern when it has no other of
// its signs.
PEN_NODISCARD pen_status pen_match_devices(const pen_name_set *set, const char *text,
                                           pen_arena *arena, pen_name_matches *out_matches);

#endif // PEN_PARTITION_SPEC_NAME_MATCH_H
