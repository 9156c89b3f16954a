// Text that grows in an arena, names that look alike, and quantities written for people.
//
// Appending never fails in the caller's face: a text that ran out of memory stays as it is and says
// so once, in pen_text_finish.
//
// Threads: a text belongs to one thread at a time.
#ifndef PEN_BASE_TEXT_H
#define PEN_BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/status.h"

typedef struct pen_text {
    pen_arena *arena;
    char *bytes; // [length], then a 0; NULL before the first append
    size_t length;
    size_t capacity;
    bool failed; // memory ran out
} pen_text;

void pen_text_init(pen_text *text, pen_arena *arena);

// Adds bytes, a string, or what printf would write.
void pen_text_append(pen_text *text, const char *bytes, size_t length);
void pen_text_add(pen_text *text, const char *string);
void pen_text_print(pen_text *text, const char *format, ...) PEN_PRINTF(2, 3);

// The whole text, ended by 0, which lives in the arena. Appending may go on afterwards; the result
// then is what it was. OUT_OF_MEMORY when any append failed.
PEN_NODISCARD pen_status pen_text_finish(pen_text *text, const char **out_text);

// Ends the text and makes an error of it. OUT_OF_MEMORY, or `code`.
#define pen_text_error(text, code)                                                                 \
    pen_status_is_error(pen_text_error_at(__FILE__, __LINE__, (text), (code)))
PEN_NODISCARD pen_status pen_text_error_at(const char *file, int line, pen_text *text,
                                           pen_status_code code);

// Insertions, deletions, replacements and swaps of neighbours that lead from `a` to `b`, letters
// compared without case. Only the first PEN_TEXT_DISTANCE_LIMIT bytes of each count.
#define PEN_TEXT_DISTANCE_LIMIT 96
size_t pen_text_distance(const char *a, const char *b);

// The index of the name that `wanted` is most likely a misspelling of (the first among equals), or
// `count` when none is near. Near is one that begins the other, or from which at most a third of
// the letters of the longer lead. One of more than PEN_TEXT_DISTANCE_LIMIT bytes is far. Where none
// is near, it is one that is within `wanted`, or the other way round: "horizontal_flip" of
// "random_horizontal_flip".
size_t pen_text_nearest(const char *wanted, const char *const *names, size_t count);

// What others call a thing, and what is to be said then: {"mse", "mean_squared_error"}. A `*` in
// the word stands for anything: "*epochs". With a "_" beside it the text must have "_", "-" or "."
// there, or a capital before a small letter: "lr_*" is "lr_find", "LrFind", and neither "lr" nor
// "lru".
typedef struct pen_text_word {
    const char *word;    // as somebody may write it
    const char *meaning; // what it is called here, or a sentence
} pen_text_word;

// The meaning of the first of `words` (ended by a NULL word; NULL: none) that `text` is, case, "_"
// and "-" aside: "CrossEntropyLoss" is "cross_entropy_loss". NULL: it is none of them.
const char *pen_text_find_word(const pen_text_word *words, const char *text);

// Whether `part` is in `text`, letters compared without case.
bool pen_text_contains(const char *text, const char *part);

// The names that `wanted` may stand for, likeliest first, at most `limit`: those that contain it
// (letters compared without case), then those at most half of whose letters are others, nearest
// first; equals in their order. Returns how many.
size_t pen_text_find_near(const char *wanted, const char *const *names, size_t count, size_t limit,
                          uint32_t *out_near);

// Adds "a, b, c": the name nearest to `wanted` first, the others in their order. Past `limit`
// names the rest is counted: "and 12 more". Where one is near, "; did you mean a?" follows.
void pen_text_add_names(pen_text *text, const char *wanted, const char *const *names, size_t count,
                        size_t limit);

// The name of the entry at `index` of one of our lists: strategies, schedules, verbs.
typedef const char *pen_text_name_fn(size_t index);

// The index of `name` in a list of `count` entries. NOT_FOUND: "unknown WHAT 'NAME', possible: …",
// nearest first, of which the text is put together in `arena`.
PEN_NODISCARD pen_status pen_text_find_name(const char *what, const char *name,
                                            pen_text_name_fn *name_at, size_t count,
                                            pen_arena *arena, size_t *out_index);

// Adds found text in double quotes, control characters and quotes escaped, cut with "..." at 60
// bytes: for messages about what a user wrote.
void pen_text_add_quoted(pen_text *text, const char *bytes, size_t length);

// Bytes of the UTF-8 sequence at `bytes`, or 0 when it is none (RFC 3629: no surrogates, no
// overlong forms). `length` is at least 1.
size_t pen_text_sequence_length(const unsigned char *bytes, size_t length);

// Makes a text of somebody else fit for a terminal or a log, in place: control characters (but
// line ends, where they are kept), bytes that are no UTF-8, and characters that hide or turn what
// stands around them become '?', one for each byte; a tab becomes a space. Returns `text`.
char *pen_text_clean(char *text, bool keeps_lines);

// Room for any of the texts below.
#define PEN_QUANTITY_TEXT_BYTES 32
// "512 bytes", "1.50 KiB", "12.0 GiB". Three significant digits. Returns `out_text`.
const char *pen_bytes_format(uint64_t bytes, char out_text[PEN_QUANTITY_TEXT_BYTES]);
// "870 ns", "1.50 ms", "12.3 s", "4 min 05 s", "3 h 12 min". Returns `out_text`.
const char *pen_seconds_format(double seconds, char out_text[PEN_QUANTITY_TEXT_BYTES]);
// "812", "1.50 k", "23.4 M", "1.20 G". For flops and parameters. Returns `out_text`.
const char *pen_count_format(uint64_t number, char out_text[PEN_QUANTITY_TEXT_BYTES]);

#endif // PEN_BASE_TEXT_H
