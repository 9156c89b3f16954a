// `.pt2` archives made of their texts, whose checksums are right, so that none keeps a text from
// what reads it. For tests and fuzzers of what a file says.
//
// Threads: any.
#ifndef PEN_TESTS_SUPPORT_PT2_TEXT_H
#define PEN_TESTS_SUPPORT_PT2_TEXT_H

#include <stddef.h>
#include <stdint.h>

// An archive of a model.json, behind a NUL byte the list of weights, and behind another one that of
// constants. Contents of weights are in weight_0 (1024 bytes), weight_1 (16 bytes) and, among the
// constants, tensor_0 (64 bytes). Released with free; NULL: there is no memory.
uint8_t *pt2_text_archive(const uint8_t *text, size_t length, size_t *out_length);

#endif // PEN_TESTS_SUPPORT_PT2_TEXT_H
