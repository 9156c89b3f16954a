// JSON written as it comes: to a stream, or to a growing text.
//
// Commas and indentation are the writer's business; the caller only has to close what it opened
// and to give each value of an object a key (our own mistakes are asserted). Strings are escaped,
// bytes that are no UTF-8 become U+FFFD. Doubles have 17 significant digits, so they read back as
// what they were; infinities and NaN, for which JSON has no word, become null.
//
// Threads: a writer belongs to one thread at a time.
#ifndef PEN_BASE_FORMAT_JSON_WRITER_H
#define PEN_BASE_FORMAT_JSON_WRITER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/status.h"
#include "base/text.h"

#define PEN_JSON_DEPTH_LIMIT 64

typedef struct pen_json_writer {
    FILE *file;      // or NULL, when
    pen_text *text;  // the text grows
    uint32_t indent; // spaces a level; 0 writes all in one line
    uint32_t depth;
    bool key_written;                      // the next value belongs to it
    bool is_object[PEN_JSON_DEPTH_LIMIT];  // at each depth
    bool is_started[PEN_JSON_DEPTH_LIMIT]; // has a first entry
    bool failed;                           // the stream refused bytes
} pen_json_writer;

// `indent` is the number of spaces a level, 0 for one line. Both are borrowed until finished.
void pen_json_init_file(pen_json_writer *json, FILE *file, uint32_t indent);
void pen_json_init_text(pen_json_writer *json, pen_text *text, uint32_t indent);

void pen_json_begin_object(pen_json_writer *json);
void pen_json_end_object(pen_json_writer *json);
void pen_json_begin_array(pen_json_writer *json);
void pen_json_end_array(pen_json_writer *json);
void pen_json_key(pen_json_writer *json, const char *key);

void pen_json_text(pen_json_writer *json, const char *text);
void pen_json_text_bytes(pen_json_writer *json, const char *bytes, size_t length);
void pen_json_number(pen_json_writer *json, double number);
void pen_json_integer(pen_json_writer *json, int64_t number);
void pen_json_unsigned(pen_json_writer *json, uint64_t number);
void pen_json_bool(pen_json_writer *json, bool truth);
void pen_json_null(pen_json_writer *json);

// A key and its value in one call; arrays and objects are begun.
void pen_json_key_array(pen_json_writer *json, const char *key);
void pen_json_key_object(pen_json_writer *json, const char *key);
void pen_json_key_text(pen_json_writer *json, const char *key, const char *text);
void pen_json_key_number(pen_json_writer *json, const char *key, double number);
void pen_json_key_integer(pen_json_writer *json, const char *key, int64_t number);
void pen_json_key_unsigned(pen_json_writer *json, const char *key, uint64_t number);
void pen_json_key_bool(pen_json_writer *json, const char *key, bool truth);

// Ends the arrays and objects that are open beyond `depth`, for when something failed on the way.
void pen_json_end_to(pen_json_writer *json, uint32_t depth);

// Ends the line and says whether all was written. IO, OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_json_finish(pen_json_writer *json);

#endif // PEN_BASE_FORMAT_JSON_WRITER_H
