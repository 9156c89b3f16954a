// A long row of whole numbers that models of language learn from: the bytes of a text, or a file of
// tokens that a tokenizer wrote.
//
//   text     any file; each byte is a token, 0 to 255. Compressed by gzip, it is what is inside.
//   tokens   a NumPy file of one dimension, or bare little-endian numbers, which have no header:
//            two bytes each unless said otherwise
//
// Lifetime: the bytes are borrowed while the source is used; inflated bytes are the caller's.
// Threads:  immutable after it was read; any thread may copy from it.
#ifndef PEN_SCHEDULER_DATA_TOKEN_SOURCE_H
#define PEN_SCHEDULER_DATA_TOKEN_SOURCE_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "scheduler/data/dataset.h"

typedef struct pen_token_source {
    const char *path; // for messages
    pen_token_element element;
    uint64_t count;      // tokens
    const uint8_t *data; // little-endian
} pen_token_source;

// Reads a text whose `size` bytes are in memory. If they are compressed, what is inside goes to
// *out_inflated, to be freed with pen_memory_free (NULL otherwise, and after an error).
//   CORRUPT      the compressed data is damaged
//   UNSUPPORTED  more than PEN_TEXT_BYTES_LIMIT inside
//   OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_token_source_read_text(const uint8_t *bytes, size_t size,
                                                    const char *path, pen_token_source *out_source,
                                                    void **out_inflated);

// Reads a file of tokens whose `size` bytes are in memory. With PEN_TOKEN_AUTO the beginning of the
// file tells the two kinds apart.
//   INVALID_INPUT  an array of other than one dimension; bytes that are no whole number of tokens
//   UNSUPPORTED    an array of real numbers
//   CORRUPT        as pen_npy_read_header
PEN_NODISCARD pen_status pen_token_source_read_tokens(const uint8_t *bytes, size_t size,
                                                      const char *path, pen_token_element element,
                                                      pen_token_source *out_source);

// Copies tokens first … first + count - 1, all of which there are.
//   INVALID_INPUT  a token is negative, or none that int64 holds; names the file and its position
PEN_NODISCARD pen_status pen_token_source_copy(const pen_token_source *source, uint64_t first,
                                               uint64_t count, int64_t *out_tokens);

#endif // PEN_SCHEDULER_DATA_TOKEN_SOURCE_H
