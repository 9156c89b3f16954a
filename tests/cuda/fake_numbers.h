// What libraries over the fake driver round operands to.
//
// Threads: pure.
#ifndef PEN_TESTS_CUDA_FAKE_NUMBERS_H
#define PEN_TESTS_CUDA_FAKE_NUMBERS_H

#include "base/precision.h"

// To the nearest number that the precision has, ties to even; what is above all is infinite.
float fake_round(float x, pen_precision precision);

#endif // PEN_TESTS_CUDA_FAKE_NUMBERS_H
