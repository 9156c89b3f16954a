// What fuzzers share. A fuzzer is a file NAME_fuzz.c with LLVMFuzzerTestOneInput, which gives any
// bytes to one reader, looks at what comes of it, and leaves nothing behind. Seeds are in
// corpus/NAME, words in NAME.dict, inputs that once were findings in found/NAME. That file is all
// there is to add: `make fuzz` makes a program of it, and readers_test sweeps it, cutting and
// flipping its seeds and refusing it memory.
//
// Threads: none.
#ifndef PEN_TESTS_FUZZ_FUZZ_H
#define PEN_TESTS_FUZZ_FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/status.h"
#include "graph/import/import.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t limit, unsigned seed);

// Aborts unless `holds`.
void fuzz_must(bool holds);

// What a reader said of the bytes. Whether it is PEN_OK; an error is dropped, after it was seen to
// have a text and to be no mistake of our own.
bool fuzz_reads(pen_status status);

// What must succeed: aborts on any error, but for refused memory while fuzz_memory_fails. False
// then: the caller cleans up and returns.
bool fuzz_works(pen_status status);

// ---- for readers of models

// Reads a model in memory whose file's name is `name`, by which its kind is told, binds what it
// leaves open small, infers shapes and folds small constants. No other file is opened. `asked` is
// what a job asks for; NULL: nothing.
void fuzz_read_model(const uint8_t *bytes, size_t length, const char *name,
                     const pen_import_options *asked);

// The same of an archive made of the texts of a `.pt2` file, see pt2_text_archive.
void fuzz_read_pt2_text(const uint8_t *text, size_t length);

// ---- for readers of protobuf messages

// Changes a message so that it stays one: a field somewhere in it is rewritten, doubled, dropped or
// put at another place, and the lengths of the messages around it are set right. `bytes` has room
// for `limit`; returns the new length. For LLVMFuzzerCustomMutator, which the programs of `make
// fuzz` alone call.
size_t fuzz_change_message(uint8_t *bytes, size_t length, size_t limit, unsigned seed);

// ---- for the sweep over refused memory

extern bool fuzz_memory_fails;       // a fault is on
extern pen_status_code fuzz_outcome; // of the first error that fuzz_reads or fuzz_works saw

#endif // PEN_TESTS_FUZZ_FUZZ_H
