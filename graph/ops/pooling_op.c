#include "graph/op_table.h"

const pen_op_family pen_pooling_family = {"pooling", NULL, 0};
