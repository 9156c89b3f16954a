#include "graph/op_table.h"

const pen_op_family pen_matmul_family = {"matmul", NULL, 0};
