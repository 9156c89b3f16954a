// JSON from outside, read with jansson, which bounds neither memory nor depth enough: before it is
// asked, the text is walked once. Nesting is PEN_NESTING_LIMIT deep at most, and there are no more
// values, lists and objects than a text of its length would have that is not written to be costly:
// what jansson makes of it stays below twenty times its length. Lists of short numbers, as requests
// have them, are dense by nature: there it stays below fifty times.
//
// Lifetime: the value is the caller's, who releases it with json_decref.
// Threads:  any.
#ifndef PEN_BASE_FORMAT_JSON_READER_H
#define PEN_BASE_FORMAT_JSON_READER_H

#include <jansson.h>
#include <stddef.h>

#include "base/status.h"

// `name` is the file's, for messages.
//   `code`         it is no JSON, has a key twice, or is beyond the bounds above
//   OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_json_load(const char *name, const void *bytes, size_t length,
                                       pen_status_code code, json_t **out_root);
PEN_NODISCARD pen_status pen_json_load_numbers(const char *name, const void *bytes, size_t length,
                                               pen_status_code code, json_t **out_root);

// The version of jansson.
const char *pen_jansson_version(void);

#endif // PEN_BASE_FORMAT_JSON_READER_H
