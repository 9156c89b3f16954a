// For passes that may change a graph, but not what it computes.
#ifndef PEN_TESTS_SUPPORT_SAME_OUTPUTS_H
#define PEN_TESTS_SUPPORT_SAME_OUTPUTS_H

#include "graph/graph.h"

// Runs both graphs on equal random inputs and parameters (matched by name) and fails the test
// unless all outputs have equal names and bits.
void check_same_outputs(const pen_graph *before, const pen_graph *after);

#endif // PEN_TESTS_SUPPORT_SAME_OUTPUTS_H
