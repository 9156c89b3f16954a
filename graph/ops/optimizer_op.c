#include "graph/op_table.h"

const pen_op_family pen_optimizer_family = {"optimizer", NULL, 0};
