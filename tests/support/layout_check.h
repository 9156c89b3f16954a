// Compares the cpu device in layouts other than plain with the reference kernels, one operator at
// a time, through the layout pass, the memory plan and the executor.
#ifndef PEN_TESTS_SUPPORT_LAYOUT_CHECK_H
#define PEN_TESTS_SUPPORT_LAYOUT_CHECK_H

#include "graph/passes/assign_layouts.h"
#include "tests/support/op_check.h"

// Which operands of the case are to lie in `layout`; all others are plain.
typedef struct layout_wish {
    pen_layout layout;
    uint32_t inputs;  // bit i: input i
    uint32_t outputs; // bit i: output i
} layout_wish;

// Runs the case with teams of 1, 2 and, by the seed, 3 to 16 threads, operands laid out as wished
// (NULL: as the device's own rules say), and compares all outputs: each element must be within
//     tolerance * (1 + |expected|), and the bits those of one thread.
void op_check_layout(const op_case *c, uint64_t seed, double tolerance, const layout_wish *wish);

#endif // PEN_TESTS_SUPPORT_LAYOUT_CHECK_H
