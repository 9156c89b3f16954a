#include "graph/op_table.h"

const pen_op_family pen_elementwise_family = {"elementwise", NULL, 0};
