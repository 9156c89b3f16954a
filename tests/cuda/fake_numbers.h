// What libraries over the fake driver round operands to, and their own number.
//
// Threads: pure.
#ifndef PEN_TESTS_CUDA_FAKE_NUMBERS_H
#define PEN_TESTS_CUDA_FAKE_NUMBERS_H

#include "base/precision.h"

// To the nearest number that the precision has, ties to even; what is above all is infinite.
float fake_round(float x, pen_precision precision);

// The major version of this library, as the name of its file has it: 13 of "libcublas.so.13".
int fake_major(void);

#endif // PEN_TESTS_CUDA_FAKE_NUMBERS_H
