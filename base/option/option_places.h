// Where else in a file a key is possible that stands at a wrong place: `patience` under `train`.
//
// Threads: any; tables are constant.
#ifndef PEN_BASE_OPTION_OPTION_PLACES_H
#define PEN_BASE_OPTION_OPTION_PLACES_H

#include "base/option/option.h"

// Adds "is a key of evaluation", or "… of data.train with format: csv, data.eval with …": the
// mappings of `root` that have it; or, where `here`, which lacks it, would have it with another
// tag, "goes with format: csv, sql". False, and nothing is added: none has, or so many that
// it would say nothing.
bool pen_option_add_places(const pen_option_table *root, const pen_option_table *here,
                           const char *key, pen_text *text);

// The path of `key` as --set takes it, "train.epochs", where one mapping alone of `root` has it,
// and that is in no list and hangs on no tag; else NULL.
const char *pen_option_find_path(const pen_option_table *root, const char *key, pen_arena *arena);

// The path as --set takes it, "data.train.file", of a key that is written as a whole path: with
// "-" for "_", and any of `separators` between two keys. NULL: `root` has no such path, or it is
// one through a list. Keys that hang on a tag are found with any value of the tag.
const char *pen_option_match_path(const pen_option_table *root, const char *written,
                                  const char *separators, pen_arena *arena);

#endif // PEN_BASE_OPTION_OPTION_PLACES_H
