#include "graph/op_table.h"

const pen_op_family pen_reduction_family = {"reduction", NULL, 0};
