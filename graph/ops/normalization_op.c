#include "graph/op_table.h"

const pen_op_family pen_normalization_family = {"normalization", NULL, 0};
